"""The controller does nothing while a wrong table is to be seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mininet_scenarios.engines.fabric_child import FabricChild
from mininet_scenarios.ovs.controller_process import ControllerProcess
from mininet_scenarios.scenario.engine import EngineError, Setup
from tests.waiting import until


class Ovs:
    """Notes whether the controller is stopped while groups are changed."""

    def __init__(self, process: subprocess.Popen[bytes], empty: bool) -> None:
        self.process, self.empty, self.seen = process, empty, ""

    def ofctl(self, command: str, *_: str) -> str:
        self.seen += state(self.process) if command == "mod-group" else ""
        return "" if self.empty else " group_id=3,type=indirect,bucket=actions=output:1"

    def appctl(self, *_: str) -> None:
        """Nothing is cached."""


def state(process: subprocess.Popen[bytes]) -> str:
    """T: stopped; S: it waits; nothing where it has ended."""
    if process.poll() is not None:
        return ""
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1][0]


@pytest.mark.parametrize("fails", [False, True])
def test_a_table_is_wrong_only_while_the_controller_is_stopped(tmp_path: Path, fails: bool) -> None:
    child = FabricChild.__new__(FabricChild)
    child.vertex = {"1": 1}
    (tmp_path / "build").mkdir()
    child.controller = ControllerProcess(Setup((), (tmp_path / "build",), tmp_path))
    process = child.controller.process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=-1
    )
    try:
        ovs = child.ovs = Ovs(process, fails)  # type: ignore[assignment]
        if fails:
            with pytest.raises(EngineError):
                child.divert("1", 2, 3)
        else:
            child.divert("1", 2, 3)
            child.restore()
        assert ovs.seen == ("" if fails else "TT")
        until(lambda: state(process) != "T")
    finally:
        process.kill()
        process.communicate()
    ovs.empty = False
    child.divert("1", 2, 3)  # there is none any more
    child.restore()
