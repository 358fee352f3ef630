"""Layers by LID: in-trees, paths that share no link, and lanes without cycles of waits."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import networkx
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from compilers.evaluation.traffic import PATTERNS
from compilers.forwarding.single_packets import SinglePackets
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from extensions.infiniband.lid_layers import LidLayers, lid_layers
from tests.compilers.routed import routed

Path = tuple[int, ...]


def made(q: int, count: int, lanes: int = 8) -> tuple[Build, LidLayers]:
    build = routed(q=q)
    return build, lid_layers(build, count, lanes)


@cache
def paths(q: int, count: int, lanes: int = 8) -> dict[tuple[int, int], list[Path]]:
    """The switches of each layer's path between two switches, by the tables' next hop."""
    build, found = made(q, count, lanes)
    every = np.arange(build.tables.switches)
    steps = [
        Fib.of(tables, build.wiring.far_by_port()).next_switch(every).tolist()
        for tables in found.tables
    ]
    walked: dict[tuple[int, int], list[Path]] = {}
    for s in every.tolist():
        for d in every.tolist():
            if s != d:
                walked[s, d] = [_path(step, s, d) for step in steps]
    return walked


def _path(step: list[list[int]], s: int, d: int) -> Path:
    path = [s]
    while path[-1] != d:
        assert len(path) < 6
        path.append(step[path[-1]][d])
    return tuple(path)


def links(path: Path) -> set[tuple[int, int]]:
    return set(pairwise(path))


def apart(several: list[Path]) -> int:
    """How many paths there are of which no two share a link."""
    for count in range(len(several), 1, -1):
        for chosen in combinations(several, count):
            if all(not links(a) & links(b) for a, b in combinations(chosen, 2)):
                return count
    return 1


def shares(q: int, count: int, lanes: int, wanted: int) -> tuple[float, float]:
    """Of pairs two links apart, and of adjacent ones: those with so many paths apart."""
    by_kind: dict[bool, list[bool]] = {True: [], False: []}
    for several in paths(q, count, lanes).values():
        by_kind[len(min(several, key=len)) == 2].append(apart(several) >= wanted)
    return float(np.mean(by_kind[False])), float(np.mean(by_kind[True]))


@pytest.mark.parametrize(
    ("q", "count", "lanes", "wanted", "two_links", "adjacent"),
    [
        (3, 2, 8, 2, 0.98, 0.93),
        (3, 4, 8, 3, 0.8, 0.16),
        (5, 2, 8, 2, 0.997, 0.98),
        (5, 4, 8, 3, 0.95, 0.53),
        (7, 2, 4, 2, 0.98, 0.88),
        (7, 4, 8, 3, 0.99, 0.8),
        (7, 4, 8, 2, 1.0, 0.99),
        pytest.param(7, 8, 8, 4, 0.98, 0.4, marks=pytest.mark.long),
        pytest.param(13, 2, 8, 2, 0.999, 0.99, marks=pytest.mark.long),
        pytest.param(13, 4, 8, 3, 0.99, 0.95, marks=pytest.mark.long),
        pytest.param(13, 8, 8, 5, 0.99, 0.55, marks=pytest.mark.long),
    ],
)
def test_paths_of_a_pair_share_no_link(
    q: int, count: int, lanes: int, wanted: int, two_links: float, adjacent: float
) -> None:
    """The shares that docs/targets/opensm.md names."""
    found = shares(q, count, lanes, wanted)
    assert found[0] >= two_links
    assert found[1] >= adjacent


@pytest.mark.parametrize(("q", "count"), [(4, 2), (5, 4)])
def test_one_path_is_minimal_and_none_is_longer_than_four_links(q: int, count: int) -> None:
    build, _ = made(q, count)
    for (s, d), several in paths(q, count).items():
        assert tuple(SinglePackets(build, d).minimal_path(s).switches) in several
        assert max(map(len, several)) <= 5
        assert all(len({*path}) == len(path) for path in several)


@pytest.mark.parametrize(("q", "count", "lanes"), [(4, 2, 2), (7, 4, 8)])
def test_no_cycle_of_waits_on_a_lane(q: int, count: int, lanes: int) -> None:
    _, found = made(q, count, lanes)
    assert found.count <= lanes
    waits = [networkx.DiGraph() for _ in range(lanes)]
    everything = networkx.DiGraph()
    for pair, several in paths(q, count, lanes).items():
        for path in several:
            waits[int(found.lane[pair])].add_edges_from(pairwise(pairwise(path)))
            everything.add_edges_from(pairwise(pairwise(path)))
    assert all(networkx.is_directed_acyclic_graph(graph) for graph in waits)
    assert not networkx.is_directed_acyclic_graph(everything)


def peak(q: int, count: int, pattern: str, split: str) -> float:
    """The load of the most loaded link, in units of what a switch's hosts send."""
    traffic = PATTERNS[pattern](routed(q=q).topology, 1, 1)
    pairs = list(zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True))
    several = [paths(q, count)[pair] if pair[0] != pair[1] else [] for pair in pairs]
    rows = [
        (number * count + k, link)
        for number, of_pair in enumerate(several)
        for k, path in enumerate(of_pair)
        for link in links(path)
    ]
    known = {link: i for i, link in enumerate(sorted({link for _, link in rows}))}
    share, link = np.array([(variable, known[link]) for variable, link in rows]).T
    if split != "best":
        weight = np.full((len(pairs), count), 1 / count)
        if split == "minimal":
            shortest = [min(range(count), key=lambda k: len(s[k]) if s else 0) for s in several]
            weight = np.eye(count)[shortest]
        return float(np.bincount(link, weight.ravel()[share]).max())
    size = len(pairs) * count
    full = coo_array((np.ones(len(link)), (link, share)), shape=(len(known), size + 1)).tolil()
    full[:, size] = -1
    flow = np.arange(size) // count
    sent = coo_array((np.ones(size), (flow, np.arange(size))), shape=(len(pairs), size + 1))
    found = linprog(
        np.eye(1, size + 1, size)[0],
        A_ub=full.tocsr(),
        b_ub=np.zeros(len(known)),
        A_eq=sent.tocsr(),
        b_eq=np.ones(len(pairs)),
    )
    return float(found.fun)


@pytest.mark.parametrize(
    ("q", "count", "equal", "best"),
    [
        (7, 2, 1.3, 2.1),
        (7, 4, 1.6, 3.6),
        pytest.param(7, 8, 1.7, 4.4, marks=pytest.mark.long),
        pytest.param(13, 2, 1.3, 2.2, marks=pytest.mark.long),
        pytest.param(13, 4, 2.0, 4.4, marks=pytest.mark.long),
        pytest.param(13, 8, 2.2, 6.2, marks=pytest.mark.long),
    ],
)
def test_the_most_loaded_link_of_perm2hop(q: int, count: int, equal: float, best: float) -> None:
    """How many times less than by minimal routes: the figures of docs/targets/opensm.md."""
    minimal = peak(q, count, "perm2hop", "minimal")
    assert minimal / peak(q, count, "perm2hop", "equal") >= equal
    assert minimal / peak(q, count, "perm2hop", "best") >= best
