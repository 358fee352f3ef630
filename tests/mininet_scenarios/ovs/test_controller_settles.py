"""Waiting for the controller: an error of a switch may pass, and no switch may have power."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import save
from mininet_scenarios.ovs import controller_process
from mininet_scenarios.ovs.controller_process import ControllerProcess
from mininet_scenarios.scenario.engine import EngineError, Setup


@pytest.fixture
def controller(tmp_path: Path, compiled: Callable[[int], Build]) -> Iterator[ControllerProcess]:
    save(compiled(2), tmp_path / "build")
    found = ControllerProcess(Setup((), (tmp_path / "build",), tmp_path))
    found.log.write_text("its last words")
    found.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1)
    yield found
    found.process.kill()
    found.process.communicate()


def says(controller: ControllerProcess, *statuses: dict[str, Any]) -> None:
    """What the status file says, look by look; from then on the last."""
    rest = iter(statuses[:-1])
    controller.status = lambda: next(rest, statuses[-1])  # type: ignore[method-assign]


def quietly(done: int, total: int) -> None:
    """Progress of no interest."""
    assert done <= total


def test_an_error_that_passes_is_none(controller: ControllerProcess) -> None:
    build = controller.build
    names = list(build.wiring.names)
    bad = {"build": build.identity, "programmed": names[1:], "errors": {names[0]: "too busy"}}
    good = {"build": build.identity, "programmed": names, "errors": {}}
    says(controller, bad, bad, good)
    assert controller.settle(set(), 30, quietly) == ""


def test_an_error_that_stands_is_told(
    controller: ControllerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_process, "STANDING", 0.1)
    names = list(controller.build.wiring.names)
    says(controller, {"programmed": names[1:], "errors": {names[0]: "table full"}})
    with pytest.raises(EngineError, match=f"switch {names[0]} refused its program: table full"):
        controller.settle(set(), 30, quietly)


def test_errors_of_switches_without_power_are_none(
    controller: ControllerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_process, "STANDING", 0.0)
    build = controller.build
    names = list(build.wiring.names)
    dark = {int(build.wiring.datapath_id[0])}
    waits = {"programmed": [], "errors": {names[0]: "gone"}}
    says(controller, waits, waits, {"programmed": names[1:], "build": build.identity})
    assert controller.settle(dark, 30, quietly) == ""


def test_a_fabric_without_power_waits_for_the_first_status(controller: ControllerProcess) -> None:
    dark = set(map(int, controller.build.wiring.datapath_id))
    says(controller, {}, {"programmed": [], "build": controller.build.identity})
    assert controller.settle(dark, 30, quietly) == ""
