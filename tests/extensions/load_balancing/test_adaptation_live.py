"""Weights that follow real loads: hosts of ER_3 send over links that HTB limits to 4 Mb/s each.

A permutation whose flows meet on links gets more through than without; uniform traffic is left
alone.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager, nullcontext

import pytest

from compilers.evaluation.traffic import PATTERNS
from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import ControllerChange, Flows, Setup
from tests.controller.makers import POLARFAB
from tests.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.long]
RATE, OFFERED, CONNECTIONS = 4.0, 0.9, 12
SPEC = """name: shifting
topology: {family: polarfly, q: 3}
routing: {balance: ugal-pf, minimal_share: 0.9}
"""


def step(*_words):
    return nullcontext(lambda *_: None)


@pytest.fixture
def engine(tmp_path):
    (tmp_path / "fabric.yaml").write_text(SPEC)
    folder = tmp_path / "build"
    subprocess.run([POLARFAB, "compile", tmp_path / "fabric.yaml", "-o", folder], check=True)
    setup = Setup((load(folder),), (folder,), tmp_path, framework="os-ken", rate=RATE)
    engine = MininetEngine(setup)
    try:
        engine.start(step)
        yield engine
    finally:
        engine.stop(step)


@contextmanager
def adapting(engine, folder):
    """Our controller in the place of the engine's, which keeps to the build's weights."""
    engine.apply(ControllerChange(False))
    status, log = folder / "status.json", folder / "events"
    inside = ["nsenter", f"--net=/proc/{engine.inner.process.pid}/ns/net"]
    words = [POLARFAB, "controller", engine.setup.folders[0], "--framework", "os-ken", "--json"]
    words += ["--link-rate", str(RATE), "--status-file", status]
    with log.open("w") as out:
        process = subprocess.Popen([*inside, *map(str, words)], stdout=out, stderr=out)
    try:
        until(lambda: status.exists() and json.loads(status.read_text())["complete"], "all", 40)
        yield lambda: [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
    finally:
        process.terminate()
        process.wait(20)


def flows(build, pattern, rate, protocol, parallel=1):
    traffic = PATTERNS[pattern](build.topology, 1, 0)
    rates = rate * traffic.amount
    return Flows(traffic.source, traffic.destination, rates, protocol, parallel)


def carried(engine, sent, seconds):
    return float(engine.carry(engine.hosts.names, sent, seconds)[0].sum())


def test_a_permutation_gets_more_through_and_uniform_traffic_is_left_alone(engine, tmp_path):
    build = engine.build
    hot = flows(build, "perm2hop", OFFERED * RATE, "tcp", CONNECTIONS)
    before = carried(engine, hot, 15)
    with adapting(engine, tmp_path) as events:
        calm = flows(build, "uniform", 0.6 * RATE, "udp")
        carried(engine, calm, 12)
        assert not [event for event in events() if event["event"] == "shifted"]
        carried(engine, hot, 40)
        after = carried(engine, hot, 15)
        shifted = [event for event in events() if event["event"] == "shifted"]
    offered = float(hot.rate.sum())
    print(f"of {offered:.1f} Mb/s {before:.1f} arrived, {after:.1f} with {len(shifted)} steps")
    assert shifted
    assert after > 1.2 * before
