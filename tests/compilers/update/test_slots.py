"""Slots of rows and groups, case by case: what stands when, what is sent, what is counted.

Each case is one that a changed operator in `compilers.update` survived without.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from compilers.targets.openflow.bundled_blocks import added_groups, row_places
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of, xid_numbers
from compilers.update.difference import TableDifference, changed_classes
from compilers.update.move_plan import Update, _merged, _others
from compilers.update.order import path_fibs
from compilers.update.slots import (
    Counts,
    Slots,
    changes_by_round,
    counts,
    in_round,
    matched,
    messages,
    single_table_slots,
)
from compilers.update.update_proof import _spreading
from tests.compilers.update.updates import build

BOTH = list(product([False, True], repeat=2))


@pytest.fixture(scope="module")
def program():
    return Encoder(build(policy=("compact-valiant", "node"))).program(3)


def block_of(program, kind, size=4):
    blocks = program.groups if kind == RowKind.GROUP else program.flows
    return next(b[:size] for b in blocks if len(b) >= size and kind_of(b) == kind)


def slots_of(block, **more):
    """A slot for each of: nothing, only before, only after, both with another value."""
    other = block.copy()
    other[:, -1] ^= 1
    had, has = (np.array(part) for part in zip(*BOTH, strict=True))
    given = {"had": had, "has": has, "round": np.array([1, 1, 1, 1])} | more
    return Slots(kind_of(block), block, other, **given)


@pytest.mark.parametrize("kind", [RowKind.ROUTE, RowKind.GROUP])
def test_what_changes(program, kind):
    slots = slots_of(block_of(program, kind))
    assert slots.differ.tolist() == [False, True, True, True]
    same = replace(slots, after=slots.before.copy())
    assert same.differ.tolist() == [False, True, True, False]
    assert replace(slots, after=slots.before).differ.tolist() == [False, True, True, False]
    longer = np.pad(slots.after, ((0, 0), (0, 8)))
    assert replace(slots, after=longer).differ.tolist() == [False, True, True, True]


def standing(slots, round):
    return [bytes(row) for block in slots.held_after(round) for row in block]


def test_what_stands_in_each_round(program):
    slots = slots_of(block_of(program, RowKind.ROUTE))
    before, after = ([bytes(row) for row in part] for part in (slots.before, slots.after))
    assert standing(slots, -1) == standing(slots, 0) == [before[2], before[3]]
    assert standing(slots, 1) == standing(slots, 2) == [after[1], after[3]]
    late = replace(slots, since=0)  # of a row that another one gave way to
    assert standing(late, -1) == []
    assert standing(late, 0) == [before[2], before[3]]
    until = replace(slots, until=np.array([9, 3, 9, 2]))  # others come to these places
    assert standing(until, 1) == [after[1], after[3]]
    assert standing(until, 2) == [after[1]]
    assert standing(until, 3) == []


def test_slots_turned_taken_and_apart(program):
    slots = slots_of(block_of(program, RowKind.ROUTE), round=np.array([0, 1, 2, 3]))
    turned = slots.turned()
    assert turned.had.tolist() == slots.has.tolist()
    assert turned.has.tolist() == slots.had.tolist()
    assert standing(turned, 9) == [bytes(slots.before[n]) for n in (2, 3)]
    chosen = np.array([False, True, False, True])
    assert slots.take(chosen).round.tolist() == [1, 3]
    assert slots.take(chosen, np.full(4, 7)).round.tolist() == [7, 7]
    gone, come = slots.split(2, 5)
    assert not gone.has.any()
    assert not come.had.any()
    assert (gone.round.tolist(), come.round.tolist()) == ([2] * 4, [5] * 4)
    assert gone.had.tolist() == slots.had.tolist()
    assert come.has.tolist() == slots.has.tolist()
    numbers = slots.numbers
    own = np.where(slots.has, xid_numbers(slots.after), xid_numbers(slots.before))
    assert numbers.tolist() == own.tolist()


def test_slots_of_one_side(program):
    block = block_of(program, RowKind.ROUTE)
    added, removed = Slots.only_after(block, 2), Slots.only_before(block, 2)
    assert (added.had.any(), added.has.all()) == (False, True)
    assert (removed.had.all(), removed.has.any()) == (True, False)
    assert not Slots.unchanged(block).differ.any()
    assert len(standing(added, 1)) == len(standing(removed, 2)) == 0
    assert len(standing(added, 2)) == len(standing(removed, 1)) == len(block)
    pair = np.array([0, -1, 1]), np.array([2, 3, -1])
    paired = Slots.paired(block, block, pair, np.zeros(3, int))
    assert (paired.had.tolist(), paired.has.tolist()) == ([True, False, True], [True, True, False])
    assert not paired.before[1].any()
    assert not paired.after[2].any()
    assert bytes(paired.before[2]) == bytes(block[1])
    empty = np.zeros((0, block.shape[1]), np.uint8)
    fresh = np.full(3, -1), np.array([2, 3, -1])
    assert Slots.paired(empty, block, fresh, np.zeros(3, int)).kind == RowKind.ROUTE


def test_what_is_sent_in_a_round_and_in_which_order(program):
    routes, groups = block_of(program, RowKind.ROUTE), block_of(program, RowKind.GROUP)
    slots = [slots_of(routes), slots_of(groups)]
    assert messages(slots, 0) == messages(slots, 2) == []
    sent = messages(slots, 1)
    assert [kind_of(block) for block in sent] == [RowKind.GROUP] * 2 + [RowKind.ROUTE] * 2 + [
        RowKind.GROUP
    ]
    fresh, stale, put, drop, gone = sent
    assert [len(block) for block in sent] == [1, 1, 2, 1, 1]
    assert added_groups(fresh) == added_groups(groups[1:2])
    assert added_groups(stale) == added_groups(groups[3:])
    assert row_places(put) == row_places(routes[[1, 3]])
    assert row_places(drop) == row_places(routes[2:3])
    assert added_groups(gone) == added_groups(groups[2:3])
    later = replace(slots[1], round=np.array([1, 2, 1, 2]))
    (only,) = messages([later], 1)
    assert added_groups(only) == added_groups(groups[2:3])
    two = [slots_of(groups), slots_of(groups[::-1])]  # the later leads to the earlier: goes first
    assert [added_groups(b) for b in messages(two, 1)[-2:]] == [
        added_groups(groups[1:2]),
        added_groups(groups[2:3]),
    ]


def test_what_is_counted(program):
    slots = slots_of(block_of(program, RowKind.ROUTE), round=np.array([0, 0, 1, 1]))
    marker = slots_of(np.repeat(block_of(program, RowKind.MARKER, 1), 4, axis=0))
    found = counts([slots, marker])
    assert found["routes"] == Counts(1, 1, 1)
    assert not any(found[part] for part in ("groups", "classes", "local"))
    assert counts([slots], 0)["routes"] == Counts(1, 0, 0)
    assert counts([slots], 1)["routes"] == Counts(0, 1, 1)
    assert changes_by_round([slots, marker], 3).tolist() == [1, 2, 0]
    assert Counts(1, 2, 3) + Counts(4, 5, 6) == Counts(5, 7, 9)
    assert Counts(200, 300, 400) + Counts(100, 100, 100) == Counts(300, 400, 500)
    assert [bool(Counts(*c)) for c in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]] == [
        False,
        True,
        True,
        True,
    ]


def test_the_marker_changes_last_and_rows_in_their_rounds(program):
    """A marker in the first round says that a switch holds what it does not hold yet."""
    other = Encoder(build(policy=("minimal", "node"))).program(3)
    slots = list(single_table_slots(program, other, in_round(2), in_round(3), 5))
    for each in slots:
        rounds = {*each.round[each.has & each.differ].tolist()}
        wanted = {RowKind.MARKER: {5}, RowKind.ROUTE: {2}}.get(each.kind, {0})
        assert rounds <= wanted
        if each.kind != RowKind.ROUTE:
            assert {*each.round[each.differ & ~each.has].tolist()} <= {5}
    assert any(each.kind == RowKind.MARKER and each.differ.any() for each in slots)
    assert any(each.kind == RowKind.GROUP for each in slots)


def test_rows_are_matched_by_their_places(program):
    block = block_of(program, RowKind.ROUTE)
    (same,) = matched([block], [block.copy()], in_round(1), in_round(2))
    assert not same.differ.any()
    found = list(matched([block[:3]], [block[1:]], in_round(1), in_round(2)))
    assert sum(int((each.had & each.has).sum()) for each in found) == 2
    assert sum(int((each.had & ~each.has).sum()) for each in found) == 1
    assert sum(int((~each.had & each.has).sum()) for each in found) == 1
    (gone,) = [each for each in found if not each.has.any()]
    assert gone.round.tolist() == [2]
    groups = block_of(program, RowKind.GROUP)
    for before, after in (([block, groups], [block]), ([block], [block, groups])):
        found = list(matched(before, after, in_round(1), in_round(2)))
        assert sum(int(each.differ.sum()) for each in found) == len(groups)
    other = block.copy()
    other[:, -1] ^= 1
    found = list(matched([groups, block], [groups, other], in_round(1), in_round(2)))
    assert sum(int(each.differ.sum()) for each in found) == len(block)


def test_rows_that_an_aggregate_serves_go_in_its_round():
    """Cells are switch times S plus destination; other prefixes, and other switches, go last."""
    nodes = SimpleNamespace(prefix=np.array([4, -1, 7, 2]), prefix6=np.array([4, -1, 7, 3]))
    new = SimpleNamespace(tables=SimpleNamespace(switches=4))
    difference = SimpleNamespace(new=new, nodes=nodes)
    merged = np.array([4 * 1 + 0, 4 * 1 + 3, 4 * 2 + 2]), np.array([3, 2, 1], np.uint8)
    row = np.zeros((4, 4), np.uint8)
    update = Update(difference, row, merged, np.zeros((4, 2), bool), 9)
    asked = np.array([4, 2, 7, 9, 3, 0])
    assert update.rounds_of_gone(1, asked, v6=False).tolist() == [3, 2, 9, 9, 9, 9]
    assert update.rounds_of_gone(1, asked, v6=True).tolist() == [3, 9, 9, 9, 2, 9]
    assert update.rounds_of_gone(2, asked, v6=False).tolist() == [9, 9, 1, 9, 9, 9]
    assert update.rounds_of_gone(3, asked, v6=False).tolist() == [9] * 6
    many = SimpleNamespace(tables=SimpleNamespace(switches=300))
    nodes = SimpleNamespace(prefix=np.arange(300)[::-1], prefix6=np.arange(300))
    cells = np.sort(299 * 300 + np.array([0, 7, 299])), np.array([4, 5, 6], np.uint8)
    difference = SimpleNamespace(new=many, nodes=nodes)
    large = Update(difference, row, cells, np.zeros((4, 2), bool), 9)
    asked = np.array([299, 292, 0, 7])
    assert large.rounds_of_gone(299, asked, v6=False).tolist() == [4, 5, 6, 9]
    assert large.rounds_of_gone(299, np.array([7]), v6=True).tolist() == [5]
    none = replace(update, merged=(np.zeros(0, int), np.zeros(0, np.uint8)))
    assert none.rounds_of_gone(1, asked, v6=False).tolist() == [9] * 4
    assert not len(update.rounds_of_gone(1, asked[:0], v6=False))


def test_a_class_differs_by_any_of_its_ports():
    """All of its ports had to differ, with one operator changed."""
    old = build(policy=("minimal", "node"))
    classes = old.tables.classes
    protection = classes.protection.copy()
    protection[3, 5, 1] = protection[3, 5, 0]
    nodes = TableDifference.of(old, old).nodes
    found = changed_classes(classes, replace(classes, protection=protection), nodes)
    assert np.argwhere(found).tolist() == [[3, 5]]
    assert not changed_classes(classes, classes, nodes).any()


def test_a_walker_for_each_of_the_paths_at_every_hop():
    """Rows were proved by the minimal ports alone."""
    topology = "{family: hyperx, sides: 3x3}"
    several = build(topology, ("ecmp, transit: ecmp", "none"))
    classes = several.tables.classes
    found = path_fibs(several)
    assert len(found) == 1 + classes.alternate.shape[2] > 1
    count = classes.port.shape[1]
    steps = np.stack([each.step[:, 2 : 2 + count] for each in found], axis=2)
    used = np.concatenate((classes.port[..., None], classes.alternate), axis=2)
    used = np.where((used > 0) & (classes.weight > 0), used, classes.port[..., None])
    behind = several.wiring.cables()[np.arange(len(used))[:, None, None], used]
    there = classes.port > 0
    assert np.array_equal(np.sort(steps, axis=2)[there], np.sort(behind, axis=2)[there])
    assert len(path_fibs(build(topology, ("ecmp", "none")))) == 1


def test_marks_move_in_place_only_where_rows_lead_where_they_led():
    marked = build("{family: polarfly, q: 4}", ("spread", "none"))
    assert TableDifference.of(marked, marked).in_place
    assert TableDifference.of(marked, marked)._same_next_hops()
    egress = np.array(marked.tables.routes.egress)
    egress[3, 9] = (int(egress[3, 9]) + 1) % 5
    routes = replace(marked.tables.routes, egress=egress)
    other = replace(marked, tables=replace(marked.tables, routes=routes), identity="8" * 16)
    found = TableDifference.of(marked, other)
    assert not found.in_place
    assert not replace(found, in_place=True)._same_next_hops()


@pytest.mark.parametrize(("one", "other"), [("none", "node"), ("node", "none")])
def test_rows_by_intermediates_differ_where_one_build_repairs(one, other):
    builds = [build("{family: polarfly, q: 4}", ("valiant", protect)) for protect in (one, other)]
    assert _others(TableDifference.of(*builds))
    same = TableDifference.of(builds[0], builds[0])
    assert not _others(same)
    places = np.arange(len(same.nodes.node_after))
    nodes = SimpleNamespace(node_before=places, node_after=places[::-1])
    assert _others(SimpleNamespace(old=builds[0], new=builds[0], nodes=nodes))


@pytest.mark.parametrize(("family", "q"), [("oft", 3), ("polarfly", 4)])
def test_which_switches_spread_marked_packets(family, q):
    """Those next to a switch with hosts, and not for a neighbour: no leaf of an OFT.

    With links that are not there taken for such, or any word of the condition for another, leaves
    counted, and the proof of a move followed packets that nobody sends.
    """
    marked = build(f"{{family: {family}, q: {q}}}", ("spread", "none"))
    far, ends = marked.wiring.far, marked.topology.endpoints
    destinations = np.flatnonzero(ends)[::3]
    vertex = np.array([*range(len(far)), -1])
    walker = path_fibs(marked)[0]
    found = _spreading(marked, walker, destinations, vertex)
    assert found.shape == (len(far) + 2, len(destinations))
    assert not found[-2:].any()
    for s in range(len(far)):
        near = [int(v) for v in far[s] if v >= 0]
        beside = any(ends[v] for v in near)
        for column, d in enumerate(destinations.tolist()):
            assert found[s, column] == (beside and s != d and d not in near)
    assert not len(_spreading(replace(marked, balance="minimal"), walker, destinations, vertex))


def test_which_rows_give_way_to_an_aggregate():
    """Those that merge and change; one of the two was enough, with one operator changed."""
    truth = np.array([[True, True, False, False], [True, False, True, False]])
    found = SimpleNamespace(
        aggregates=np.array([9]),
        merged=truth,
        changed=np.array([[True, False, True, False], [False, True, True, False]]),
        destinations=np.array([1, 4, 6, 7]),
        cells=np.arange(8, dtype=np.uint8).reshape(2, 4),
    )
    cells, rounds = _merged(found, 10)
    assert (cells.tolist(), rounds.tolist()) == ([1, 16], [0, 6])
    assert _merged(found, 300)[0].tolist() == [1, 306]
    none, _ = _merged(SimpleNamespace(aggregates=np.zeros(0)), 10)
    assert not len(none)
