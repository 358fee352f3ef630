"""Drains on real Open vSwitch while hosts send: nothing is lost, nor goes over what is drained."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager

import numpy as np
import pytest
import yaml

from compilers.tables.folders.build_folder import load
from compilers.wiring.shared_risk import find, groups
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import ControllerChange, Setup
from tests.controller.makers import POLARFAB, compile_into
from tests.controller.rollout.makers import step
from tests.controller.rollout.windows import loses_nothing
from tests.waiting import until

pytestmark = pytest.mark.live
INTERVALS = (0.04, 0.16)
OPTICS = {"name": "m{module}/{}", "modules": 2, "count": 4, "role": "fabric"}
FABRIC = {
    "name": "lab",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"protect": "module"},
    "inventory": "inventory.yaml",
}
INVENTORY = {
    "node_types": {
        "leaf": {"ports": [OPTICS, {"name": "h{}", "count": 1, "role": "host"}], "units": 1}
    },
    "generate": {"type": "leaf", "racks": {"units": 4}},
}
TOKEN = "0123456789abcdef"  # noqa: S105


@pytest.fixture
def engine(tmp_path):
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(FABRIC))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(INVENTORY))
    folder = compile_into(tmp_path / "build", tmp_path / "fabric.yaml")
    engine = MininetEngine(Setup((load(folder),), (folder,), tmp_path, framework="os-ken"))
    try:
        engine.start(step)
        yield engine
    finally:
        engine.stop(step)


@contextmanager
def commanded(engine, folder):
    """Our controller in the place of the engine's, and `polarfab drain` beside it."""
    engine.apply(ControllerChange(False))
    status, log, token = folder / "status.json", folder / "events", folder / "tokens"
    token.write_text(f"olga operate {TOKEN}\n")
    token.chmod(0o600)
    inside = ["nsenter", f"--net=/proc/{engine.inner.process.pid}/ns/net", POLARFAB]
    words = ["controller", engine.setup.folders[0], "--framework", "os-ken", "--json"]
    words += ["--no-discover"]  # whose packets are counted as hosts' are
    words += ["--http", "127.0.0.1:8081", "--token-file", token, "--status-file", status]

    def repairs():
        return log.read_text().count('"event": "repaired"')

    def drain(*words):
        before = repairs()
        to = ["--to", "http://127.0.0.1:8081", "--token-file", token]
        subprocess.run([*inside, "drain", *words, *to], check=True, capture_output=True)
        until(lambda: repairs() > before, f"tables: {log}")

    with log.open("w") as out:
        process = subprocess.Popen([*inside, *map(str, words)], stdout=out, stderr=out)
    try:
        until(lambda: status.exists() and json.loads(status.read_text())["complete"], "all", 40)
        yield drain
    finally:
        process.terminate()
        process.wait(20)


def loads(engine, but=()):
    """[S, P]: by its counter, what a port sends of a packet of every pair, and of its answer.

    but: switches whose hosts do not send.
    """
    counts = 1 - np.eye(len(engine.hosts.names), dtype=np.int64)
    counts[list(but)] = counts[:, list(but)] = 0
    replies, _, _, sent = engine.exchange(counts, lambda *_: None, 4)
    assert (replies == counts).all()
    return sent


def test_a_module_and_a_rack_are_drained_under_traffic(engine, tmp_path):
    wiring = engine.build.wiring
    with commanded(engine, tmp_path) as drain:
        module = find(wiring, engine.build.hardware, "module:n3/m1")
        ends = [
            (s, int(wiring.port[s, k]))
            for s, t in (*module.links, *(link[::-1] for link in module.links))
            for k in np.flatnonzero(wiring.far[s] == t)
        ]
        used = tuple(np.array(ends).T)
        assert (loads(engine)[used] > 0).all()
        rack = groups(wiring, engine.build.hardware, "rack")[1]
        inside = list(rack.switches)
        assert loads(engine, inside)[inside].any()

        def drains(_):
            drain(module.name)
            drain(module.name, "--end")
            drain(rack.name)

        loses_nothing(engine, INTERVALS, drains)
        assert not loads(engine, inside)[inside].any()
        drain(rack.name, "--end")
        assert (loads(engine)[used] > 0).all()
        drain(module.name)
        assert not loads(engine)[used].any()
