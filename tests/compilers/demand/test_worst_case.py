"""Weights against the worst traffic, beside the linear program that has its dual in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths
from compilers.demand.worst_case import RELATIVE_GAP, worst_case
from compilers.evaluation.traffic import PATTERNS
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.routed import routed


def every_pair(order: int) -> Traffic:
    ends = np.arange(order)
    return Traffic.of(np.repeat(ends, order), np.tile(ends, order))


def optimum(paths: FlowPaths, traffic: Traffic, order: int) -> float:
    """Prices of a source and a destination on every arc that no pair's load there exceeds."""
    arcs, shares = np.unique(paths.arc), np.count_nonzero(paths.has_next_hop)
    width = shares + len(arcs) * 2 * order + 1
    sums, rows = np.zeros((len(paths.has_next_hop), width)), []
    sums[np.repeat(np.arange(len(sums)), paths.has_next_hop.sum(axis=1)), np.arange(shares)] = 1
    for place, arc in enumerate(arcs):
        base = shares + place * 2 * order
        total = np.zeros(width)
        total[base : base + 2 * order], total[-1] = 1, -1
        rows.append(total)
        here = paths.arc == arc
        for flow in np.unique(paths.flow[here]):
            row = np.zeros(width)
            np.add.at(row, paths.next_hop[here & (paths.flow == flow)], 1)
            row[base + traffic.source[flow]] = row[base + order + traffic.destination[flow]] = -1
            rows.append(row)
    cost = np.zeros(width)
    cost[-1] = 1
    solved = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(len(sums)))
    return float(solved.fun)


@pytest.mark.parametrize("bounces", [False, True])
def test_it_is_near_the_linear_program(bounces: bool) -> None:
    build = routed(q=2, spread=True, bounces=bounces)
    traffic = every_pair(7)
    paths = Fluid.of(build).paths(traffic)
    found, least = worst_case(paths, traffic), optimum(paths, traffic, 7)
    assert found.load_bound - 1e-9 <= least <= found.worst_load + 1e-9
    assert found.worst_load <= (1 + RELATIVE_GAP) * least
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)


def fabric(q: int, demand: str) -> Fabric:
    routing = {"balance": "compact-valiant", "adjacent": "bounce", "demand": demand}
    topology = {"family": "polarfly", "q": q}
    return Fabric.from_spec({"name": "lab", "topology": topology, "routing": routing}).compile()


def test_no_permutation_loads_a_link_more() -> None:
    built = fabric(3, "worst-case")
    assert built.verify().passed
    fluid = Fluid.of(built.build)
    traffic = every_pair(13)
    found = worst_case(fluid.paths(traffic), traffic)
    for pattern in ("tornado", "permutation", "perm1hop", "perm2hop"):
        for seed in range(3):
            some = PATTERNS[pattern](built.build.topology, 2, seed)
            assert fluid.loads_by_weights(some).max() <= 1.02 * found.worst_load


def test_a_large_fabric_is_refused_with_file_and_line(tmp_path: Path) -> None:
    spec = tmp_path / "fabric.yaml"
    spec.write_text(
        "name: lab\ntopology: {family: polarfly, q: 11}\n"
        "routing:\n  balance: compact-valiant\n  demand: worst-case\n"
    )
    with pytest.raises(InputError, match=r"fabric\.yaml:5: routing\.demand: required flows whose"):
        Fabric.from_spec(spec).compile()
