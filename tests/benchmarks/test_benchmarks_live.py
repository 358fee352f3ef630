"""Benchmarks over real switches, on a small fabric: that they measure, not how fast."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.simulate import simgrid_speed
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric

pytestmark = pytest.mark.live


def run(*words: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.long
def test_every_way_is_measured_beside_the_bare_server() -> None:
    rows = {push["what"]: push for push in run("controller", "--q", "3", "--repeat", "1")}
    bare = rows["bare socket server, same bundles"]
    assert bare["ratio"] == 1
    for name in ("ryu", "os-ken"):
        cold, same = rows[f"{name}, from nothing"], rows[f"{name}, nothing to change"]
        assert (cold["sent"], same["sent"]) == (bare["sent"], 0)
        assert cold["seconds"] > 0
        assert 0 < cold["echo"] < 5, "sooner than the probe of Open vSwitch gives up"
        assert 10 < cold["megabytes"] < 500


@pytest.mark.long
def test_starts_are_compared_in_one_run() -> None:
    ours, stock, fabric = run("emulate", "--q", "3")
    assert ours["ratio"] == 1
    assert stock["seconds"] > ours["seconds"] > fabric["seconds"] > 0
    assert stock["ratio"] == pytest.approx(stock["seconds"] / ours["seconds"])


def test_the_speed_of_simgrid() -> None:
    build = compile_fabric(load_fabric({"name": "lab", "topology": {"family": "polarfly", "q": 7}}))
    speed = simgrid_speed(build)
    assert speed is not None
    assert 1e4 < speed < 1e8
