"""Pairs without a path, counted by walks over networkx's graph of what is left."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from compilers.routing.cut_off_pairs import count_cut_off_pairs
from tests.compilers.routed import routed


def by_search(far: np.ndarray, endpoints: np.ndarray, dead: np.ndarray, drained: np.ndarray) -> int:
    """A graph for each source: no arc leaves a drained switch, except the source."""
    works = (far >= 0) & ~dead
    arcs = [(s, int(far[s, k])) for s, k in np.argwhere(works).tolist()]
    wired = nx.Graph(arcs)
    gone = {v for part in nx.connected_components(wired) if drained[[*part]].all() for v in part}
    count = 0
    for source in set(wired) - gone:
        leads_on = any(s == source and not drained[t] for s, t in arcs)
        if not endpoints[source] and (drained[source] or not leads_on):
            continue
        graph = nx.DiGraph([(s, t) for s, t in arcs if not drained[s] or s == source])
        reached = nx.descendants(graph, source) | {source} if source in graph else {source}
        count += sum(endpoints[v] and v not in reached for v in set(wired) - gone)
    return count


@pytest.mark.parametrize("fabric", [{"q": 2}, {"q": 3}, {"family": "oft", "q": 2}])
def test_pairs_without_a_path_are_those_of_a_search(fabric: dict[str, object]) -> None:
    build = routed(**fabric)  # type: ignore[arg-type]
    far, endpoints = build.wiring.far, build.topology.endpoints
    chance, counts = np.random.default_rng(4), set()
    for _ in range(60):
        dead = np.zeros(far.shape, np.bool_)
        parts = chance.random(2)
        for s, k in np.argwhere((far >= 0) & (chance.random(far.shape) < parts[0])).tolist():
            dead[s, k] = True
            dead[far[s, k], np.flatnonzero(far[far[s, k]] == s)[0]] = True
        drained = chance.random(len(far)) < parts[1]
        count = count_cut_off_pairs(far, endpoints, dead, drained)
        assert count == by_search(far, endpoints, dead, drained)
        counts.add(count)
    assert len(counts) > 5
