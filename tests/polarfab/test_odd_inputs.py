"""Inputs that once ended in a traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compilers.audit.route_report import RouteReport
from inventory.problems import InputError
from polarfab import cli
from tests.compilers.fabrics import polarfly_build


def test_a_probe_without_a_timeline(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "name: s\nfabric: {name: lab, topology: {family: polarfly, q: 2}}\n"
        "traffic: {probe: {pairs: 4}}\n"
    )
    sys.argv = ["polarfab", "emulate", str(scenario), "--engine", "model"]
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code, capfd.readouterr().err


@pytest.mark.parametrize("more", [{"gateway": 7}, {"nexthops": [{"dev": "eth1", "gateway": 7}]}])
def test_a_gateway_that_is_a_number(tmp_path: Path, more: dict[str, object]) -> None:
    route = {"dst": "10.0.0.0/24", "dev": "eth0", "protocol": "186", "flags": [], **more}
    if "nexthops" in more:
        del route["dev"]
    (tmp_path / "0.json").write_text(json.dumps([route]))
    with pytest.raises(InputError):
        RouteReport.of(polarfly_build(2), [tmp_path / "0.json"], "linux")
