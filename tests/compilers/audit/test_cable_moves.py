"""The repair is the smallest: at most k moves for k swaps, and no fewer by exhaustive search."""

from __future__ import annotations

import random
from itertools import combinations, islice, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compilers.audit.cable_moves import CableMove, MoveComponent, components
from compilers.audit.resolve import ObservedCables, resolve
from compilers.audit.socket_numbers import CableSet, SocketNumbers
from compilers.audit.wiring_audit import check, cost
from compilers.readers.devices.neighbour_facts import NamedEnd, NeighbourFacts, NeighbourSighting
from compilers.wiring.wiring import Wiring
from tests.compilers.audit.makers import apply
from tests.compilers.fabrics import polarfly_build

FABRICS = (7, pytest.param(31, marks=pytest.mark.long))


def wired(cables: CableSet, nodes: int) -> ObservedCables:
    return ObservedCables(cables, frozenset(range(nodes)), frozenset(), (), ())


def swapped(cables: CableSet, rng: random.Random, k: int) -> CableSet:
    """The cables after k exchanges of two plugs anywhere."""
    for _ in range(k):
        a, b = rng.sample(sorted({end for pair in cables for end in pair}), 2)
        cables = (
            apply(cables, [CableMove("swap", a, b)])
            if (min(a, b), max(a, b)) not in cables
            else (cables)
        )
    return cables


@pytest.mark.parametrize("q", FABRICS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), k=st.integers(0, 5))
def test_k_swaps_take_at_most_k_moves(q: int, seed: int, k: int) -> None:
    wiring = polarfly_build(q).wiring
    planned = SocketNumbers(wiring).planned()
    present = swapped(planned, random.Random(seed), k)  # noqa: S311
    found = check(wiring, wired(present, len(wiring.names)))
    assert len(found.moves) <= k
    assert not found.swapped
    assert apply(present, found.moves) == planned
    assert found.good == (present == planned)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 5))
def test_swaps_at_one_node_are_found_there(seed: int, k: int) -> None:
    wiring = polarfly_build(7).wiring
    rng, ports = random.Random(seed), SocketNumbers(wiring)  # noqa: S311
    planned = present = ports.planned()
    ends = sorted({end for pair in planned for end in pair})
    for vertex in rng.sample(range(57), k):
        here = [end for end in ends if ports.vertex(end) == vertex]
        present = apply(present, [CableMove("swap", *rng.sample(here, 2))])
    moves = check(wiring, wired(present, 57)).moves
    assert len(moves) <= k
    assert apply(present, moves) == planned
    if k == 1:
        assert ports.vertex(moves[0].a) == ports.vertex(moves[0].b)


def every_move(present: CableSet, ports: range) -> list[CableMove]:
    plugged = {end for pair in present for end in pair}
    empty = [p for p in ports if p not in plugged]
    return [
        *(
            CableMove("swap", a, b)
            for a, b in combinations(sorted(plugged), 2)
            if (a, b) not in present
        ),
        *(CableMove("move", a, b) for a in plugged for b in empty),
        *(CableMove("add", a, b) for a, b in combinations(empty, 2)),
        *(CableMove("remove", a, b) for a, b in present),
    ]


def matchings(ports: range) -> list[CableSet]:
    """Every set of cables on the ports."""
    found: list[CableSet] = [frozenset()]
    for pair in combinations(ports, 2):
        found += [m | {pair} for m in found if all(set(pair).isdisjoint(other) for other in m)]
    return found


def test_no_repair_is_shorter() -> None:
    ports = range(6)
    for planned in (frozenset({(0, 1), (2, 3), (4, 5)}), frozenset({(0, 1), (2, 3)})):
        distance, edge = {planned: 0}, [planned]
        while edge:  # every move can be undone by another
            following = []
            for present in edge:
                for move in every_move(present, ports):
                    after = apply(present, [move])
                    if after not in distance:
                        distance[after] = distance[present] + 1
                        following.append(after)
            edge = following
        for present in matchings(ports):
            parts = components(planned, present)
            moves = [m for part in parts for m in islice(part.moves(lambda p: p), part.cost + 1)]
            assert apply(present, moves) == planned, (present, moves)
            assert len(moves) == cost(planned, present) == distance[present], (present, moves)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_anything_is_repaired(seed: int) -> None:
    wiring = polarfly_build(7).wiring
    rng = random.Random(seed)  # noqa: S311
    planned = present = SocketNumbers(wiring).planned()
    for _ in range(8):
        ports = sorted({end + d for pair in planned for end in pair for d in (0, 1)})
        moves = [
            m
            for kind in ("swap", "move", "add", "remove")
            if (m := a_move(kind, present, ports, rng))
        ]
        present = apply(present, [rng.choice(moves)])
    found = check(wiring, wired(present, 57))
    assert apply(found.wired.cables, found.moves) == planned
    assert len(found.moves) <= 8


def a_move(kind: str, present: CableSet, ports: list[int], rng: random.Random) -> CableMove | None:
    plugged = sorted({end for pair in present for end in pair})
    empty = [p for p in ports if p not in plugged]
    if kind == "swap":
        a, b = rng.sample(plugged, 2)
        return None if (min(a, b), max(a, b)) in present else CableMove("swap", a, b)
    if kind == "move":
        return CableMove("move", rng.choice(plugged), rng.choice(empty))
    if kind == "add":
        return CableMove("add", *rng.sample(empty, 2))
    return CableMove("remove", *rng.choice(sorted(present)))


def facts_of(wiring: Wiring, cables: CableSet, names: list[str]) -> NeighbourFacts:
    """What LLDP on every node would say."""
    ports = SocketNumbers(wiring)
    ends = {p: NamedEnd((names[ports.vertex(p)],), (ports.name(p),)) for c in cables for p in c}
    seen = [NeighbourSighting(ends[a], ends[b]) for pair in cables for a, b in (pair, pair[::-1])]
    return NeighbourFacts(tuple(seen), frozenset((name,) for name in names))


@pytest.mark.parametrize("q", FABRICS)
@settings(max_examples=5)
@example(seed=411, size=4, k=1)  # one of four adjacent switches without a majority of its cables
@given(seed=st.integers(0, 2**32), size=st.integers(2, 4), k=st.integers(0, 2))
def test_nodes_in_the_wrong_place(q: int, seed: int, size: int, k: int) -> None:
    wiring = polarfly_build(q).wiring
    rng = random.Random(seed)  # noqa: S311
    kind = wiring.far[:, -1] >= 0  # quadrics have a port fewer, and stand in for each other only
    there = [v for v in range(len(wiring.names)) if kind[v]]
    cycle = rng.sample(there, size)
    names = list(wiring.names)
    for place, vertex in zip(cycle[1:] + cycle[:1], cycle, strict=True):
        names[place] = wiring.names[vertex]
    present = swapped(SocketNumbers(wiring).planned(), rng, k)
    found = check(wiring, resolve(facts_of(wiring, present, names), wiring))
    start = cycle.index(min(cycle))
    assert found.swapped == ((*cycle[start:], *cycle[:start]),)
    assert len(found.moves) <= k
    assert apply(present, found.moves) == SocketNumbers(wiring).planned()


def test_noise_is_set_aside() -> None:
    wiring = polarfly_build(7).wiring
    ports, planned = SocketNumbers(wiring), SocketNumbers(wiring).planned()
    names = [f"{name}.dc1.example.net".upper() for name in wiring.names]
    facts = facts_of(wiring, planned, names)

    def end(port: int) -> NamedEnd:
        return NamedEnd((names[ports.vertex(port)],), (ports.name(port),))

    a, b = sorted(port for pair in planned for port in pair)[:2]  # a likely pair by number alone
    noise = [
        NeighbourSighting(end(a), NamedEnd(("a-phone",), ("1",))),
        NeighbourSighting(end(a), end(b)),
    ]
    found = check(wiring, resolve(NeighbourFacts((*noise, *facts.seen), facts.reporters), wiring))
    assert found.good
    assert found.wired.strangers == ((a, "a-phone"),)
    assert found.wired.contested == {(a, b)}
    once = [seen for seen in facts.seen if seen.near not in (end(a), end(b))]
    found = check(wiring, resolve(NeighbourFacts((*noise, *once), facts.reporters), wiring))
    assert found.good


def test_some_plugs_of_two_nodes_are_not_the_nodes() -> None:
    """Three of five plugs exchanged: three moves, and as many if the nodes were exchanged first."""
    wiring = polarfly_build(4).wiring
    ports, planned = SocketNumbers(wiring), SocketNumbers(wiring).planned()
    u, v = next(
        (u, v)
        for u, v in combinations(range(21), 2)
        if set(wiring.far[u, :3]).isdisjoint(wiring.far[v, :3])
        and v not in wiring.far[u]
        and (wiring.far[[u, v]] >= 0).all()
    )
    plugs = [[s * ports.width + int(wiring.port[s, k]) for s in (u, v)] for k in range(3)]
    present = apply(planned, [CableMove("swap", one, two) for one, two in plugs])
    found = check(wiring, wired(present, 21))
    assert not found.swapped
    assert len(found.moves) == 3
    assert apply(present, found.moves) == planned


def test_a_dark_switch_lacks_the_cables_that_its_neighbours_do_not_see() -> None:
    wiring = polarfly_build(7).wiring
    ports, planned = SocketNumbers(wiring), SocketNumbers(wiring).planned()
    there = frozenset(p for p in planned if max(map(ports.vertex, p)) < 40)
    found = check(wiring, wired(there, 40))
    assert found.absent == tuple(range(40, 57))
    assert found.missing == {p for p in planned - there if min(map(ports.vertex, p)) < 40}
    assert found.unseen == planned - there - found.missing
    assert {m.kind for m in found.moves} == {"add"}
    assert not found.good


def test_between_two_switches_that_are_not_read_nothing_is_missing() -> None:
    wiring = polarfly_build(7).wiring
    ports, planned = SocketNumbers(wiring), SocketNumbers(wiring).planned()
    there = frozenset(p for p in planned if 3 in map(ports.vertex, p))
    found = check(wiring, ObservedCables(there, frozenset({3}), frozenset(), (), ()))
    assert found.good
    assert found.unseen == planned - there
    one = min(there)
    found = check(wiring, ObservedCables(there - {one}, frozenset({3}), frozenset(), (), ()))
    assert (found.missing, found.moves) == ({one}, (CableMove("add", *one),))


def test_a_switch_that_is_read_and_sees_nothing_lacks_all_its_cables() -> None:
    wiring = polarfly_build(7).wiring
    ports, planned = SocketNumbers(wiring), SocketNumbers(wiring).planned()
    there = frozenset(p for p in planned if 5 not in map(ports.vertex, p))
    found = check(wiring, wired(there, 57))
    assert found.missing == planned - there
    assert not found.absent
    assert not found.unseen


def test_everything_shuffled_is_repaired_in_no_time() -> None:
    wiring = polarfly_build(13).wiring
    planned = SocketNumbers(wiring).planned()
    ends = sorted({end for pair in planned for end in pair})
    random.Random(1).shuffle(ends)  # noqa: S311
    present = frozenset((min(p), max(p)) for p in zip(ends[::2], ends[1::2], strict=True))
    found = check(wiring, wired(present, 183))
    assert apply(present, found.moves) == planned


@pytest.mark.parametrize("nodes", [1, 2, 3, 8])
def test_a_cycle_is_split_until_each_part_is_one_cable(nodes: int) -> None:
    part = MoveComponent(tuple(range(12)), begins_planned=True, is_cycle=True)
    moves = [*islice(part.moves(lambda port: port % nodes), part.cost + 1)]
    present = frozenset((min(p), max(p)) for p in pairwise((*part.sockets[1:], 0)) if p[0] % 2)
    assert apply(present, moves) == frozenset(
        zip(part.sockets[::2], part.sockets[1::2], strict=True)
    )
    assert len(moves) == part.cost


@pytest.mark.parametrize(
    ("kind", "at_one", "at_two"),
    [
        (
            "swap",
            "swap the plugs in eth1 and eth2 at node 0",
            "swap the plugs in 0 eth1 and 1 eth1",
        ),
        ("move", "move the plug in eth1 to eth2 at node 0", "move the plug in 0 eth1 to 1 eth1"),
        ("add", "add a cable from 0 eth1 to 0 eth2", "add a cable from 0 eth1 to 1 eth1"),
        (
            "remove",
            "remove the cable from 0 eth1 to 0 eth2",
            "remove the cable from 0 eth1 to 1 eth1",
        ),
    ],
)
def test_a_move_is_a_sentence_that_names_a_node_once(kind: str, at_one: str, at_two: str) -> None:
    ports = SocketNumbers(polarfly_build(2).wiring)
    place = {(ports.node(e), ports.name(e)): e for pair in ports.planned() for e in pair}
    first, second, other = (place[end] for end in (("0", "eth1"), ("0", "eth2"), ("1", "eth1")))
    assert CableMove(kind, first, second).sentence(ports) == at_one
    assert CableMove(kind, first, other).sentence(ports) == at_two
