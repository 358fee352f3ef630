"""Marked packets in any graph: waypoints, edge-disjoint paths, every path by hand; who refuses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from compilers.proof.explanation import explain
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.routing.makers import Hops, Topology, compiled

RANDOM: Topology = {"family": "jellyfish", "nodes": 20, "degree": 6, "seed": 1}
EMPTY: frozenset[frozenset[int]] = frozenset()


def polarfly(q: int) -> Topology:
    return {"family": "polarfly", "q": q}


@cache
def sprayed(q: int) -> Build:
    return compiled(polarfly(q), balance="spread", transit="minimal", protect="node")


def near(build: Build) -> list[set[int]]:
    return [set(row[row >= 0].tolist()) for row in build.wiring.far]


def taken(build: Build, pair: tuple[int, int]) -> list[Hops]:
    """The paths that packets of a pair take."""
    found = explain(build, *pair)
    alternates = zip((found.minimal, *found.alternates), found.weights, strict=True)
    return [tuple(path) for path, weight in alternates if weight]


@pytest.mark.parametrize("q", [3, 4])
def test_in_a_polarfly_a_link_of_the_second_switch_is_a_waypoint(q: int) -> None:
    """Each link of a switch r two links from d leads over another neighbour of d.

    But two can lead over the one that is next to r as well: that link, and the one to the apex.
    """
    links = near(sprayed(q))
    for r, d in permutations(range(len(links)), 2):
        if d in links[r]:
            continue
        (middle,) = links[r] & links[d]
        last = [w if d in links[w] else min(links[w] & links[d]) for w in links[r]]
        others = [waypoint for waypoint in last if waypoint != middle]
        assert len(set(others)) == len(others) >= len(last) - 2
        assert set(last) <= links[d]


@pytest.mark.parametrize("q", [3, pytest.param(5, marks=pytest.mark.long)])
def test_all_links_of_a_pair_in_a_polarfly_lie_on_edge_disjoint_paths(q: int) -> None:
    """q + 1, or q where an end is a quadric: as many as there are links."""
    build = sprayed(q)
    links = near(build)
    for pair in permutations(range(len(links)), 2):
        if sum(pair) % 3:
            continue
        most = min(len(links[end]) for end in pair)
        assert disjoint(taken(build, pair), most) == most


def test_most_links_of_a_pair_in_a_random_graph_do() -> None:
    build = compiled(RANDOM, balance="spread", transit="minimal")
    pairs = [pair for pair in permutations(range(20), 2) if sum(pair) % 9 == 0]
    assert min(disjoint(taken(build, pair), 6) for pair in pairs) >= 4


def disjoint(paths: list[Hops], enough: int) -> int:
    """How many of the paths share no link, at most `enough`: by search, one for each first link."""
    by_first: dict[int, list[frozenset[frozenset[int]]]] = {}
    for path in sorted(paths, key=len):
        by_first.setdefault(path[1], []).append(frozenset(map(frozenset, pairwise(path))))
    groups = sorted(by_first.values(), key=len)

    def most(place: int, used: frozenset[frozenset[int]], found: int) -> Iterator[int]:
        yield found
        if place < len(groups):
            for links in groups[place]:
                if not links & used:
                    yield from most(place + 1, used | links, found + 1)
            yield from most(place + 1, used, found)

    best = 0
    for tried, count in enumerate(most(0, EMPTY, 0)):
        best = max(best, count)
        if best == enough or tried > 20_000:
            break
    return best


@pytest.mark.parametrize("topology", [RANDOM, {"family": "hyperx", "sides": "3x3"}])
def test_paths_are_those_of_the_rule(topology: Topology) -> None:
    build = compiled(topology, balance="spread", transit="minimal")
    links, order = near(build), build.tables.switches
    after = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(order))

    def onward(path: Hops, d: int) -> Hops:
        while path[-1] != d:
            path = (*path, int(after[path[-1], d]))
        return path

    for s, d in [pair for pair in permutations(range(order), 2) if pair[0] % 6 == 0]:
        found = set()
        for r in links[s]:
            if r == after[s, d] or r == d or d in links[r]:
                found.add(onward((s, r), d))
            else:
                found |= {onward((s, r, w), d) for w in links[r] - links[s] - {s}}
        assert set(taken(build, (s, d))) == found


@pytest.mark.parametrize(
    ("topology", "protect"),
    [(RANDOM, "link"), ({"family": "dragonfly", "h": 2, "a": 4}, "node")],
)
def test_nothing_is_lost_or_loops_whatever_one_fails(topology: Topology, protect: str) -> None:
    build = compiled(topology, balance="spread", transit="minimal", protect=protect)
    walked, proved = (
        verify(build, ProofOptions(failures=("link", "node"), method=method))
        for method in ("walk", "auto")
    )
    for report in (walked, proved):
        assert report.passed
        assert report.alternates is not None
        assert report.alternates.strays == 0
        assert all(case.lost_pairs == case.looped == 0 for case in report.failures)


@pytest.mark.parametrize("target", ["ovs", "frr"])
def test_files_are_those_of_the_tables(target: str, tmp_path: Path) -> None:
    """Neighbours of the two ends of a link have several common ones here."""
    routing = {"balance": "spread", "protect": "link"}
    fabric = Fabric.from_spec({"name": "lab", "topology": RANDOM, "routing": routing})
    fabric.render(target, tmp_path, check=False)
    (emitted,) = fabric.check_emitted(tmp_path)
    assert emitted.passed


@pytest.mark.parametrize("target", ["srlinux", "srv6"])
def test_who_cannot_mark_packets_refuses_by_name(target: str, tmp_path: Path) -> None:
    routing = {"balance": "spread"}
    fabric = Fabric.from_spec({"name": "lab", "topology": RANDOM, "routing": routing})
    with pytest.raises(InputError, match=f"target {target} cannot do .*packets marked for the"):
        fabric.render(target, tmp_path)


@pytest.mark.parametrize(
    ("topology", "short"),
    [
        (polarfly(2), "1 at 0; 6 of 7"),
        ({"family": "megafly", "h": 2, "a": 4}, "1 at 0; 10 of 20"),
        (RANDOM | {"degree": 3}, "1 at 0; 6 of 20"),
        (RANDOM | {"nodes": 8, "degree": 3}, "0 at 0; 8 of 8"),
    ],
)
def test_switches_with_too_few_links_are_refused(topology: Topology, short: str) -> None:
    with pytest.raises(InputError, match="required 2 links or more of every switch") as refused:
        compiled(topology, balance="spread", transit="minimal")
    assert refused.value.problems[0].key == "routing.balance"
    assert f"given spread, and {short} switches have too few" in str(refused.value)
