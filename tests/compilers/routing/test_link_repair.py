"""Tables repaired after failures: the routes of a compile of what is left, little else moves."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from compilers.forwarding.walks import minimal_hops
from compilers.proof.walks.delivery import verify
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import RepairedTables, repair_tables
from compilers.routing.minimal_routes import minimal_tables
from compilers.tables import computed_array
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray
from compilers.tables.fib import Fib
from compilers.wiring.damage import Damage, remaining_fabric
from tests.compilers.routed import routed
from tests.compilers.routing.makers import links_of, some
from tests.compilers.wiring.makers import damaged, missing, ports

STAR: dict[str, object] = {
    "family": "polarstar",
    "q": 2,
    "supernode": "inductive-quad",
    "degree": 0,
}
FABRICS: list[dict[str, object]] = [
    *({"family": "polarfly", "q": q} for q in (2, 3, 4)),
    STAR,
    {"family": "pn", "q": 2},
    {"family": "oft", "q": 2},
]
each_fabric = pytest.mark.parametrize("fabric", FABRICS, ids=lambda f: f"{f['family']}-{f['q']}")
few_or_all = pytest.mark.parametrize("most", [5, pytest.param(10**6, marks=pytest.mark.long)])


def with_tables(build: Build, repair: RepairedTables) -> np.ndarray:
    return ports(replace(build, tables=repair.tables))


def by_search(build: Build, damage: Damage) -> tuple[np.ndarray, np.ndarray]:
    """int[S, S], bool[S, S]: the port of each row by networkx, and where there has to be one.

    A row keeps its port where that leads a link nearer; else the first link that does takes its
    place, counted from the sum of both ends among those that are left.
    """
    wiring, old, order = build.wiring, ports(build), build.tables.switches
    live = (wiring.far >= 0) & ~damage.links
    graph = nx.Graph([(s, int(wiring.far[s, k])) for s, k in np.argwhere(live).tolist()])
    hops = np.full((order, order), -1)
    for s, lengths in nx.all_pairs_shortest_path_length(graph):
        hops[s, list(lengths)] = list(lengths.values())
    port, width = old.copy(), int(live.sum(axis=1).max())
    used = [
        dict(zip(wiring.port[s, live[s]], wiring.far[s, live[s]], strict=True))
        for s in range(order)
    ]
    joined = (hops > 0) & build.topology.endpoints
    for s, d in np.argwhere(joined).tolist():
        if port[s, d] not in used[s] or hops[used[s][port[s, d]], d] != hops[s, d] - 1:
            turn = [(s + d + step) % width for step in range(width)]
            links = [k for k in turn if k < len(used[s])]
            near = [[*used[s].items()][k] for k in links]
            port[s, d] = next(p for p, far in near if hops[far, d] == hops[s, d] - 1)
    return port, joined


@few_or_all
@each_fabric
def test_rows_keep_their_ports_or_take_the_first_that_leads_nearer(
    fabric: dict[str, object], most: int
) -> None:
    """A link, two links, a node: as the controller repairs them, and as they are compiled."""
    build = routed(**fabric)  # type: ignore[arg-type]
    intact, links = IntactBuild.of(build), links_of(build)
    chosen = np.random.default_rng(1).choice(len(links), (min(most, 60), 2))
    pairs = [[links[i], links[j]] for i, j in chosen.tolist()]
    nodes = [v for v, _ in some([(v, 0) for v in range(build.tables.switches)], most)]
    cases: list[tuple[list[int], list[tuple[int, int]]]] = [
        *(([], [link]) for link in some(links, most)),
        *(([], pair) for pair in pairs),
        *(([node], []) for node in nodes),
    ]
    for gone in cases:
        damage = missing(build.wiring, *gone)
        expected, joined = by_search(build, damage)
        repair = repair_tables(intact, damage.links)
        after = with_tables(build, repair)
        assert (after[joined] == expected[joined]).all(), gone
        for node in gone[0]:
            near = build.wiring.far[node]
            assert (after[near[near >= 0], node] == 0).all()
        ends = np.flatnonzero(build.topology.endpoints & ~damage.absent)
        if joined[np.ix_(ends, ends)].sum() == len(ends) * (len(ends) - 1):
            assert (ports(damaged(build, damage))[joined] == expected[joined]).all(), gone


@pytest.mark.parametrize(
    "fabric",
    [
        {"family": "polarfly", "q": 3},
        {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3},
    ],
)
def test_computed_routes_are_repaired_as_stored_ones(
    fabric: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = routed(**fabric)  # type: ignore[arg-type]
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)
    routes = minimal_tables(stored.topology, stored.wiring).routes
    assert isinstance(routes.egress, ComputedArray)
    computed = replace(stored, tables=replace(stored.tables, routes=routes))
    for link in some(links_of(stored), 3):
        dead = missing(stored.wiring, [], [link]).links
        ours, theirs = (repair_tables(IntactBuild.of(build), dead) for build in (computed, stored))
        assert (with_tables(stored, ours) == with_tables(stored, theirs)).all()
        assert np.array_equal(ours.changed_rows, theirs.changed_rows)


@pytest.mark.long
def test_rows_of_a_thousand_switches_too() -> None:
    build = routed(q=31)
    intact, links = IntactBuild.of(build), links_of(build)
    for gone in [[link] for link in some(links, 2)] + [some(links, 9)]:
        damage = missing(build.wiring, [], gone)
        expected, joined = by_search(build, damage)
        assert (
            with_tables(build, repair_tables(intact, damage.links))[joined] == expected[joined]
        ).all()


@few_or_all
@each_fabric
def test_packets_arrive_by_every_path_and_no_class_names_a_dead_port(
    fabric: dict[str, object], most: int
) -> None:
    """Alternates too, by the rule of the switch; minimal as the graph of what is left says."""
    build = routed(**fabric, spread=True, protect="link")  # type: ignore[arg-type]
    intact = IntactBuild.of(build)
    for link in some(links_of(build), most):
        damage = missing(build.wiring, [], [link])
        repair = repair_tables(intact, damage.links)
        topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
        if repair.cut_off_pairs:
            continue
        report = verify(replace(build, topology=topology, wiring=wiring, tables=repair.tables))
        # Classes that no row leads to keep their dead ports: this is no build that would pass.
        assert report.delivered == report.minimal == report.pairs, (link, report)
        assert report.alternates is None or not report.alternates.strays
        assert not dead_ports_in_use(build, damage, repair)


def dead_ports_in_use(build: Build, damage: Damage, repair: RepairedTables) -> set[tuple[int, int]]:
    """Switches and dead ports that a class names to which a row leads."""
    classes, egress = repair.tables.classes, repair.tables.routes.egress
    count = classes.port.shape[1]
    used = [set(np.unique(row[row < count]).tolist()) for row in egress]
    dead = {(s, int(build.wiring.port[s, k])) for s, k in np.argwhere(damage.links).tolist()}
    named = set()
    for part in (classes.port[..., None], classes.alternate, classes.protection, classes.bounce):
        named |= {(s, int(part[s, c, i])) for s, c, i in np.argwhere(part) if c in used[s]}
    return named & dead


@each_fabric
def test_alternates_of_a_row_that_changed_do_not_come_back(fabric: dict[str, object]) -> None:
    build = routed(**fabric, spread=True, protect="link")  # type: ignore[arg-type]
    intact, everyone = IntactBuild.of(build), np.arange(build.tables.switches)
    followed = 0
    for u, k in some(links_of(build), 6):
        damage = missing(build.wiring, [], [(u, k)])
        repair = repair_tables(intact, damage.links)
        cables, port = build.wiring.far_by_port(), ports(replace(build, tables=repair.tables))
        egress = Fib.of(repair.tables, cables).egress(everyone)
        moved = np.argwhere((port != ports(build)) & (port > 0)).tolist()
        for s, d in moved:
            for first in repair.tables.classes.alternate[s, egress[s, d]]:
                at = int(cables[s, first]) if first else d
                while at != d:
                    assert at != s, (s, d, first)
                    at = int(cables[at, port[at, d]])
                    followed += 1
    assert followed or build.topology.family == "oft" or build.tables.switches == 7


def test_a_link_of_a_thousand_switches_touches_few_rows_and_classes() -> None:
    """O(q): a PolarFly of 993 switches has 986,049 rows and 63,488 classes."""
    build = routed(q=31, spread=True, protect="link")
    intact, classes = IntactBuild.of(build), build.tables.classes
    for link in some(links_of(build), 8):
        repair = repair_tables(intact, missing(build.wiring, [], [link]).links)
        after = repair.tables
        rows = np.argwhere(after.routes.egress != build.tables.routes.egress)
        assert (rows == repair.changed_rows).all()
        assert 0 < len(rows) <= 4 * 31
        changed = np.zeros(classes.port.shape, np.bool_)
        for name in ("alternate", "weight", "protection", "bounce"):
            changed |= (getattr(after.classes, name) != getattr(classes, name)).any(axis=2)
        assert set(map(tuple, np.argwhere(changed))) <= set(map(tuple, repair.changed_classes))
        assert len(repair.changed_classes) <= 3 * 32
        assert set(repair.changed_classes[:, 0]) == {link[0], build.wiring.far[link]}


def test_a_class_keeps_two_ports_of_repair_where_neighbours_are_left() -> None:
    """And the new one repairs: a second link that fails then loses nothing behind it."""
    build = routed(q=5, spread=True, protect="link")
    u, k = links_of(build)[30]
    repair = repair_tables(IntactBuild.of(build), missing(build.wiring, [], [(u, k)]).links)
    order = repair.tables.classes.protection[u]
    there = build.tables.classes.port[u] != build.wiring.port[u, k]
    behind = there & (np.arange(len(there)) < build.wiring.far.shape[1])
    behind &= build.tables.classes.port[u] > 0
    assert (np.count_nonzero(order[behind], axis=1) == 2).all()


def test_cut_off_destinations_have_no_row_at_the_ends_and_no_failures_no_changes() -> None:
    build = routed(q=2)
    intact = IntactBuild.of(build)
    quadric = int(np.flatnonzero(build.topology.graph.degrees == 2)[0])
    gone = missing(build.wiring, [], [(quadric, 0), (quadric, 1)])
    repair = repair_tables(intact, gone.links)
    after = with_tables(build, repair)
    near = build.wiring.far[quadric][:2]
    assert (after[near, quadric] == 0).all()
    assert (after[quadric] == ports(build)[quadric]).all()
    assert quadric not in repair.switches
    none = repair_tables(intact, np.zeros_like(gone.links))
    assert none.tables is build.tables
    assert not len(none.switches)


def test_two_islands_count_what_is_out_of_reach() -> None:
    build = routed(q=2)
    far = build.wiring.far
    a, b = links_of(build)[0][0], int(far[links_of(build)[0]])
    outward = [
        (s, k) for s in (a, b) for k in range(3) if far[s, k] >= 0 and far[s, k] not in (a, b)
    ]
    repair = repair_tables(IntactBuild.of(build), missing(build.wiring, [], outward).links)
    assert repair.cut_off_pairs == 2 * 2 * (build.tables.switches - 2)


@each_fabric
def test_a_drained_switch_passes_nothing_on_and_gets_what_is_its_own(
    fabric: dict[str, object],
) -> None:
    build = routed(**fabric, spread=True, protect="link")  # type: ignore[arg-type]
    intact, order = IntactBuild.of(build), build.tables.switches
    none = np.zeros(build.wiring.far.shape, np.bool_)
    for drained, _ in some([(v, 0) for v in range(order)], 4):
        aside = np.arange(order) == drained
        repair = repair_tables(intact, none, aside)
        assert drained not in repair.switches
        near = build.wiring.far[drained]
        gone = {int(s): int(p) for s, p in zip(near, build.wiring.far_port[drained], strict=True)}
        path = Fib.of(repair.tables, build.wiring.far_by_port())
        ends = np.flatnonzero(build.topology.endpoints)
        after, hops = path.next_switch(ends), minimal_hops(path, ends)
        others = np.delete(np.arange(order), drained)
        cut = repair.cut_off_pairs
        assert (hops[others] < 0).sum() == cut
        through = (after[others] == drained) & (ends != drained)
        assert not through.any() or cut
        for s in others[np.isin(others, near)].tolist():
            assert gone[s] not in repair.tables.classes.alternate[s]


def test_a_drained_switch_with_a_dead_link_is_reached_by_shortest_paths() -> None:
    """Some of its links were overlooked where no other switch had as many."""
    build = routed(q=4)
    far, drained = build.wiring.far, 11
    near = far[drained, far[drained] >= 0].tolist()
    intact, everyone = IntactBuild.of(build), np.arange(len(far))
    others = [v for v in range(len(far)) if v not in (drained, *near)]
    # Each other switch loses a link too, so that none has as many as the drained one had.
    ends = [(drained, 0), *((v, int(np.argmax(far[v] >= 0))) for v in (*near[1:], *others))]
    damage = missing(build.wiring, [], ends)
    repair = repair_tables(intact, damage.links, everyone == drained)
    live = (far >= 0) & ~damage.links
    graph = nx.Graph([(s, int(far[s, k])) for s, k in np.argwhere(live).tolist()])
    hops = minimal_hops(Fib.of(repair.tables, build.wiring.far_by_port()), everyone)
    for s, length in nx.single_source_shortest_path_length(graph, drained).items():
        assert hops[s, drained] == length or s == drained


@each_fabric
def test_hosts_of_a_drained_switch_are_led_around_a_drained_neighbour(
    fabric: dict[str, object],
) -> None:
    """Its rows led into the neighbour, which may be drained because it forwards nothing."""
    build = routed(**fabric, protect="link")  # type: ignore[arg-type]
    intact, order, far = IntactBuild.of(build), build.tables.switches, build.wiring.far
    none, ends = np.zeros(far.shape, np.bool_), np.flatnonzero(build.topology.endpoints)
    for switch, link in some(links_of(build), 4):
        neighbour = int(far[switch, link])
        repair = repair_tables(intact, none, np.isin(np.arange(order), (switch, neighbour)))
        path = Fib.of(repair.tables, build.wiring.far_by_port())
        after = path.next_switch(ends)[switch]
        assert not ((after == neighbour) & (ends != neighbour)).any()


@each_fabric
def test_hosts_of_a_drained_switch_are_led_around_its_dead_link(fabric: dict[str, object]) -> None:
    """Its own rows stayed as they were, and sent their packets over the dead link."""
    build = routed(**fabric, protect="link")  # type: ignore[arg-type]
    intact, order, far = IntactBuild.of(build), build.tables.switches, build.wiring.far
    ends = np.flatnonzero(build.topology.endpoints)
    for switch, link in some(links_of(build), 4):
        damage = missing(build.wiring, [], [(switch, link)])
        neighbour = int(far[switch, np.flatnonzero(far[switch] >= 0)[-1]])
        for drained in ([switch], [switch, neighbour]):
            aside = np.isin(np.arange(order), drained)
            repair = repair_tables(intact, damage.links, aside)
            live = (far >= 0) & ~damage.links
            path = Fib.of(repair.tables, build.wiring.far_by_port())
            after = path.next_switch(ends)[switch]
            hops = minimal_hops(path, ends)[switch]
            graph = nx.DiGraph()
            for s, k in np.argwhere(live).tolist():
                t = int(far[s, k])
                if not aside[t] or s == switch:
                    graph.add_edge(s, t)
            for column, end in enumerate(ends.tolist()):
                if aside[end]:
                    continue
                near = [t for t in graph.neighbors(switch) if not aside[t] or t == end]
                joined = any(nx.has_path(graph, t, end) for t in near)
                assert (hops[column] >= 0) == joined, (switch, drained, end)
                if joined:
                    assert after[column] in near
