"""Channels: against every path written out one by one, and with assignments that deadlock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import networkx
import pytest

from compilers.proof.lossless.channels import (
    channels_along,
    find_channels,
    rising_links,
    switch_ranks,
)
from compilers.tables.build import Build
from extensions.lossless.priorities import HOP, VALLEY, PriorityPlan
from tests.compilers.proof.makers import one_alternate
from tests.compilers.proof.oracle import ARRIVED, Oracle
from tests.compilers.proof.test_walks_elsewhere import built
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "supernode": "inductive-quad"}


def kinds(failures: str) -> tuple[str, ...]:
    return () if failures == "none" else (failures,)


def policed(balance: str, family: str = "polarfly", **keys: int | str) -> Build:
    """A build by a spec, whose routing is these keys and whose topology is the others."""
    routing = {key: keys.pop(key) for key in ("protect", "adjacent", "transit") if key in keys}
    return built({"family": family, **keys}, balance=balance, **routing)


def over_intermediates(build: Build) -> list[list[int]]:
    """The switches of every path over every intermediate, the two ends among them."""
    legs = {(path[0], path[-1]): path for path in every_path(build, "none")}
    order = range(build.tables.switches)
    return [
        legs.get((s, m), [s]) + legs.get((m, d), [d])[1:]
        for s in order
        for d in order
        for m in order
        if s != d
    ]


@cache
def every_path(build: Build, failures: str) -> list[list[int]]:
    """The switches of every path that the tables can emit, under every failure of a kind, once.

    By the plain walker, which shares no code with the walks.
    """
    oracle, far = Oracle(build), build.wiring.far
    links = [frozenset((s, int(t))) for s, row in enumerate(far) for t in row if t > s]
    cases: list[tuple[list[frozenset[int]], list[int]]] = [([], [])]
    cases += [([link], []) for link in links if failures == "link"]
    cases += [([], [node]) for node in range(len(far)) if failures == "node"]
    paths = {}
    for gone, down in cases:
        oracle.fail(gone, down)
        for *pair, found in oracle.outcomes():
            for path, outcome in found:
                assert outcome == ARRIVED, (pair, gone, down, path)
                paths[tuple(path)] = path
    return list(paths.values())


def by_hand(build: Build, scheme: str, failures: str) -> tuple[int, bool, int]:
    """The channels that the paths need, whether their waits have no cycle, waits on one channel."""
    rank = switch_ranks(build)
    graph: networkx.DiGraph = networkx.DiGraph()
    most = 0
    for path in every_path(build, failures):
        channel, held = 0, []
        for u, v in pairwise(path):
            if held:
                valley = rank[held[-1][0]] > rank[u] < rank[v]
                channel += {"hop": True, "single": False, "valley": valley}[scheme]
            held.append((u, v, channel))
        most = max(most, channel + 1)
        networkx.add_path(graph, held)
    alike = {(one[:2], other[:2]) for one, other in graph.edges if one[2] == other[2]}
    return most, networkx.is_directed_acyclic_graph(graph), len(alike)


BUILDS: dict[str, tuple[Callable[[], Build], str]] = {
    "minimal": (lambda: routed(q=3), "none"),
    "alternates, even q": (lambda: routed(q=4, spread=True), "none"),
    "alternates, a link": (lambda: routed(q=3, spread=True, protect="link"), "link"),
    "one alternate, a switch": (
        lambda: one_alternate(routed(q=3, spread=True, protect="node")),
        "node",
    ),
    "leaves and spines": (lambda: routed("oft", q=2), "none"),
    "marks, a switch": (lambda: policed("spread", q=3, protect="node"), "node"),
    "bounces, a switch": (
        lambda: policed("compact-valiant", q=3, adjacent="bounce", protect="node"),
        "node",
    ),
    "every hop": (lambda: policed("ecmp", "hyperx", sides="2x3", transit="ecmp"), "none"),
    "rows of supernodes": (lambda: routed(q=2, degree=0, **IQ), "none"),
}


@pytest.mark.parametrize("name", BUILDS)
def test_walk_is_what_every_path_says(name: str) -> None:
    made, failures = BUILDS[name]
    build = made()
    for scheme in ("hop", "valley", "single"):
        found = find_channels(build, scheme, kinds(failures))
        assert (found.count, found.is_deadlock_free, found.dependencies) == by_hand(
            build, scheme, failures
        )


@pytest.mark.parametrize("q", [3, 4])
@pytest.mark.parametrize("spread", [False, True])
def test_two_channels_are_enough_for_polarfly_and_one_is_not(q: int, spread: bool) -> None:
    build = routed(q=q, spread=spread)
    assert find_channels(build, "hop").count == 2 + spread
    valley = find_channels(build, "valley")
    assert (valley.count, valley.is_deadlock_free) == (2, True)
    single = find_channels(build, "single")
    assert not single.is_deadlock_free
    neighbours = [set(build.topology.graph.neighbours(v).tolist()) for v in range(q * q + q + 1)]
    assert single.cycle[0] == single.cycle[-1]
    assert len(single.cycle) > 3
    assert all(v in neighbours[u] for u, v in pairwise(single.cycle))


@pytest.mark.parametrize(
    ("parameters", "hop", "valley"),
    [
        ({"family": "polarstar", "supernode": "paley", "q": 3, "degree": 2}, 3, 2),
        ({"family": "pn", "q": 3}, 3, 2),
        ({"family": "oft", "q": 3}, 2, 1),
    ],
    ids=str,
)
def test_other_families(parameters: dict[str, int | str], hop: int, valley: int) -> None:
    build = routed(**parameters)
    assert [find_channels(build, scheme).count for scheme in ("hop", "valley")] == [hop, valley]
    assert find_channels(build, "valley").is_deadlock_free
    assert find_channels(build, "single").is_deadlock_free == (valley == 1)


@pytest.mark.parametrize("q", [3, 4])
@pytest.mark.parametrize(("spread", "failures"), [(False, "link"), (True, "node")])
def test_repair_needs_half_the_hops(q: int, spread: bool, failures: str) -> None:
    build = routed(q=q, spread=spread, protect=failures)
    hops, valley = (find_channels(build, scheme, [failures]) for scheme in ("hop", "valley"))
    assert hops.count == {"link": 5, "node": 3}[failures] + spread
    assert valley.is_deadlock_free
    assert valley.count <= 1 + hops.count // 2


def test_packets_that_loop_have_no_channels() -> None:
    build = routed(q=3)
    far, egress = build.wiring.far.tolist(), build.tables.routes.egress.copy()
    triangle = next(
        (u, v, w) for u in range(13) for v in far[u] for w in far[v] if w >= 0 <= v and w in far[u]
    )
    d = next(d for d in range(13) if d not in triangle)
    for u, v in pairwise((*triangle, triangle[0])):
        egress[u, d] = far[u].index(v)
    routes = replace(build.tables.routes, egress=egress)
    broken = replace(build, tables=replace(build.tables, routes=routes))
    for scheme in ("hop", "valley", "single"):
        assert not find_channels(broken, scheme).is_deadlock_free
    assert find_channels(broken, "hop").count == 0


@pytest.mark.parametrize("name", ["minimal", "alternates, a link"])
def test_channels_along_a_path_end_where_the_walk_does(name: str) -> None:
    made, failures = BUILDS[name]
    build = made()
    paths = [channels_along(build, path) for path in every_path(build, failures)]
    assert max(map(max, paths)) + 1 == find_channels(build, "valley", kinds(failures)).count
    assert all(first == 0 for first, *_ in paths)
    assert channels_along(build, [5]) == []
    up, down = int(build.wiring.far[12, 0]), int(build.wiring.far[0, -2])
    assert channels_along(build, [12, up]) == channels_along(build, [0, down]) == [0]


@pytest.mark.parametrize(
    ("routing", "scheme"),
    [
        ({"balance": "compact-valiant", "adjacent": "bounce"}, HOP),
        ({"balance": "spread"}, VALLEY),
        ({"balance": "valiant"}, HOP),
        ({"balance": "valiant"}, VALLEY),
    ],
)
def test_packets_by_the_plan_of_priorities_cannot_wait_in_a_circle(
    routing: dict[str, str], scheme: str
) -> None:
    """Each packet by the ports that the plan marks alone, in plain Python."""
    build = built({"family": "polarfly", "q": 3}, **routing)
    used = tuple(range(find_channels(build, scheme).count))
    plan = PriorityPlan(build, scheme, used, rising_links(build))
    far, port = build.wiring.far.tolist(), build.wiring.port.tolist()
    marked = [plan.marked_ports(v) for v in range(len(far))]
    graph: networkx.DiGraph = networkx.DiGraph()
    for path in (
        over_intermediates(build) if build.forwarding.intermediates else every_path(build, "none")
    ):
        number, held = 0, []
        for before, u, v in zip([None, *path], path, path[1:], strict=False):
            ports = {port[u][far[u].index(there)] for there in (before, v) if there is not None}
            number += before is not None and ports <= marked[u]
            held.append((u, v, plan.priorities[number]))
        networkx.add_path(graph, held)
    assert networkx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("scheme", [HOP, VALLEY])
@pytest.mark.parametrize("parameters", [{"q": 3}, {"q": 2, "degree": 0, **IQ}], ids=str)
def test_two_legs_need_the_channels_of_their_longest_path(
    parameters: dict[str, int | str], scheme: str
) -> None:
    build = policed("valiant", **parameters)
    rank = switch_ranks(build).tolist()
    most = 0
    for path in over_intermediates(build):
        triples = zip(path, path[1:], path[2:], strict=False)
        valleys = sum(rank[a] > rank[b] < rank[c] for a, b, c in triples)
        most = max(most, len(path) - 1 if scheme == HOP else 1 + valleys)
    assert find_channels(build, scheme).count == most
