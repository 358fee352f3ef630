"""Throughput by the text of what was emitted: alternates are in the files, not only in tables."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.readers.emitted_check import EmittedCheck
from compilers.spec.fabric_file import load_fabric
from compilers.tables.intermediate_form import Classes, Routes, Tables, local
from compilers.targets.target_lookup import target

HOSTS = 4


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """PolarFly q = 7 with Compact Valiant."""
    file = tmp_path_factory.mktemp("q7") / "fabric.yaml"
    file.write_text(
        "name: lab\ntopology: {family: polarfly, q: 7}\n"
        "routing: {balance: compact-valiant, disjoint: none}\n"
    )
    return compile_fabric(load_fabric(file))


def tables_of(name, build, out):
    """Tables with a class for every pair of ways that the files of a switch know.

    One port for packets in transit, and those that packets from hosts share.
    """
    able = target(name)
    build, chosen = able.check(build)
    checked = EmittedCheck(build, out, able.reader(chosen))
    order, width = build.tables.switches, int(build.wiring.port.max()) + 1
    egress = np.zeros((order, order), np.uint16)
    port = np.zeros((order, 2 * width), np.int32)
    entering = np.zeros((order, 2 * width, width), np.uint16)
    for vertex in range(order):
        (ways,) = checked.switch(vertex).ways
        known = {}
        for d in range(order):
            shared = ways.sets[int(ways.chosen[d])]
            k = known.setdefault((int(ways.port[d]), shared), len(known))
            egress[vertex, d] = k
        egress[vertex, vertex] = local(egress)
        for (first, shared), k in known.items():
            others = [p for p in shared if p != first]
            port[vertex, k] = first
            entering[vertex, k, : len(others)] = others
    weight = np.concatenate((port[..., None] > 0, entering > 0), axis=2).astype(np.uint16)
    none = np.zeros((order, 2 * width, 0), np.uint16)
    prefix = np.arange(order, dtype=np.int32)[None]
    routes = Routes(prefix, egress, np.full(order, -1, np.int32))
    return Tables(routes, Classes(port, entering, weight, none, none))


@pytest.mark.parametrize("name", ["eos", "nxos", "sonic", "junos"])
def test_alternates_lift_perm2hop(name, build, tmp_path):
    """Minimal routes carry 12.5 % of it, the tables as compiled, which ovs gets, 32 %."""
    target(name).render(build, tmp_path)
    emitted = replace(build, tables=tables_of(name, build, tmp_path))
    found, ovs = (throughput(b, "perm2hop", HOSTS) for b in (emitted, build))
    assert found.minimal.share == ovs.minimal.share == pytest.approx(0.125)
    assert found.as_emitted.share == pytest.approx(ovs.as_emitted.share) == pytest.approx(7 / 22)
