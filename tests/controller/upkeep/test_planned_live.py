"""Nodes that are planned and a switch that fails, on real Open vSwitch: half of q = 3 is there."""

from __future__ import annotations

from time import monotonic

import pytest

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.cluster.meddler import Meddler
from tests.controller.makers import Running, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.waiting import until

pytestmark = pytest.mark.live

PLANNED = 0, 2, 7, 9, 10, 11
FAILS = 3
ARRIVAL = 2.0
"""Seconds after the start in which switches have to connect."""


def compiled(folder):
    """A build whose planned nodes are half of all."""
    states = dict.fromkeys(PLANNED, ", state: planned")
    nodes = [f"  - {{name: n{v}, type: leaf{states.get(v, '')}}}" for v in range(13)]
    types = "node_types: {leaf: {ports: [{count: 8}]}}"
    (folder / "inventory.yaml").write_text("\n".join([types, "nodes:", *nodes]))
    spec = folder / "fabric.yaml"
    topology = "topology: {family: polarfly, q: 3}\nrouting: {balance: minimal}"
    spec.write_text(f"name: half\n{topology}\ninventory: inventory.yaml\n")
    return compile_into(folder / "build", spec, quick=True)


def test_a_switch_fails_where_half_of_the_nodes_are_planned(tmp_path, tmp_path_factory):
    """Planned nodes counted as gone, and then it was not drained: 20 % were lost for good."""
    folder, front = compiled(tmp_path), next(makers.PORTS)
    build = load(folder)
    there = sorted({*range(13)}.difference(PLANNED))
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        probe = Probe(ovs, build)
        times = ("--arrival", f"{ARRIVAL:g}", "--patience", "1")
        running = Running(ovs, tmp_path, polarfab(folder, "os-ken", *times), bridges=())
        began = monotonic()
        try:
            with Meddler(front, running.port, None) as meddler:
                makers.connect(ovs, front, *(f"s{v}" for v in there))
                status = running.wait_for(len(there), "complete")
                assert status["expected"] == len(there)
                until(lambda: not probe.lost(), "all pairs have paths")
                while monotonic() < began + 2 * ARRIVAL:
                    assert not probe.lost()
                assert running.status()["links"]["drained"] == []
                probe.without = there.index(FAILS)  # the probe counts switches that are there
                number = int(build.wiring.datapath_id[FAILS])
                meddler.management([number])
                meddler.cut(number)
                ovs.ofctl("del-flows", f"s{FAILS}")
                ovs.ofctl("del-groups", f"s{FAILS}")
                assert probe.lost()
                until(lambda: not probe.lost(), "nothing goes over the switch", 20)
                running.says(f"switch n{FAILS} has been disconnected for 1 s")
                assert running.status()["links"]["drained"] == [f"n{FAILS}"]
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()
