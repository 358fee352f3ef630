"""LID layers of PolarStar: two paths a pair that share no link, and lanes without cycles."""

from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
import pytest

from compilers.tables.fib import Fib
from extensions.infiniband.lid_layers import lid_layers
from tests.compilers.routed import routed


@pytest.mark.parametrize(
    ("supernode", "q", "degree", "lanes"),
    [
        ("paley", 3, 2, 6),
        pytest.param("inductive-quad", 3, 3, 6, marks=pytest.mark.long),
        pytest.param("paley", 4, 4, 8, marks=pytest.mark.long),
        pytest.param("inductive-quad", 5, 3, 8, marks=pytest.mark.long),
    ],
)
def test_paths_of_a_pair_share_no_link_and_lanes_have_no_cycle(
    supernode: str, q: int, degree: int, lanes: int
) -> None:
    """Through the tables: one minimal, both of at most 5 links."""
    build = routed("polarstar", supernode=supernode, q=q, degree=degree)
    found = lid_layers(build, 2, lanes)
    assert found.count == lanes
    order, cables = build.tables.switches, build.wiring.far_by_port()
    fibs = [Fib.of(tables, cables) for tables in (build.tables, *found.tables)]
    steps = [fib.next_switch(np.arange(order)).tolist() for fib in fibs]
    waits = [networkx.DiGraph() for _ in range(lanes)]
    for s in range(order):
        for d in set(range(order)) - {s}:
            minimal, *paths = ([*pairwise(_path(step, s, d))] for step in steps)
            assert minimal in paths
            assert max(map(len, paths)) <= 5
            assert not {*paths[0]} & {*paths[1]}
            for path in paths:
                waits[int(found.lane[s, d])].add_edges_from(pairwise(path))
    assert all(graph and networkx.is_directed_acyclic_graph(graph) for graph in waits)
    assert not networkx.is_directed_acyclic_graph(networkx.compose_all(waits))


def _path(step: list[list[int]], s: int, d: int) -> list[int]:
    path = [s]
    while path[-1] != d:
        assert len(path) < 7
        path.append(step[path[-1]][d])
    return path
