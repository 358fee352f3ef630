"""Slots of rows and groups, case by case: what is sent in which order, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from compilers.targets.openflow.bundled_blocks import added_groups, row_keys
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.update.difference import TableDifference, changed_by_number
from compilers.update.order import path_fibs
from compilers.update.slots import (
    ChangeCounts,
    Slots,
    change_counts,
    changes_by_round,
    constant_round,
    messages,
    single_table_slots,
)
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
    exists_before, exists_after = (np.array(part) for part in zip(*BOTH, strict=True))
    given = {
        "exists_before": exists_before,
        "exists_after": exists_after,
        "round": np.array([1, 1, 1, 1]),
    } | more
    return Slots(kind_of(block), block, other, **given)


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
    assert row_keys(put) == row_keys(routes[[1, 3]])
    assert row_keys(drop) == row_keys(routes[2:3])
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
    found = change_counts([slots, marker])
    assert found["routes"] == ChangeCounts(1, 1, 1)
    assert not any(found[part] for part in ("groups", "classes", "local"))
    assert change_counts([slots], 0)["routes"] == ChangeCounts(1, 0, 0)
    assert change_counts([slots], 1)["routes"] == ChangeCounts(0, 1, 1)
    assert changes_by_round([slots, marker], 3).tolist() == [1, 2, 0]
    assert ChangeCounts(1, 2, 3) + ChangeCounts(4, 5, 6) == ChangeCounts(5, 7, 9)
    assert ChangeCounts(200, 300, 400) + ChangeCounts(100, 100, 100) == ChangeCounts(300, 400, 500)
    assert [bool(ChangeCounts(*c)) for c in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]] == [
        False,
        True,
        True,
        True,
    ]


def test_the_marker_changes_last_and_rows_in_their_rounds(program):
    """A marker in the first round says that a switch holds what it does not hold yet."""
    other = Encoder(build(policy=("minimal", "node"))).program(3)
    slots = list(single_table_slots(program, other, constant_round(2), constant_round(3), 5))
    for each in slots:
        rounds = {*each.round[each.exists_after & each.is_changed].tolist()}
        wanted = {RowKind.MARKER: {5}, RowKind.ROUTE: {2}}.get(each.kind, {0})
        assert rounds <= wanted
        if each.kind != RowKind.ROUTE:
            assert {*each.round[each.is_changed & ~each.exists_after].tolist()} <= {5}
    assert any(each.kind == RowKind.MARKER and each.is_changed.any() for each in slots)
    assert any(each.kind == RowKind.GROUP for each in slots)


def test_a_class_differs_by_any_of_its_ports():
    """All of its ports had to differ, with one operator changed."""
    old = build(policy=("minimal", "node"))
    classes = old.tables.classes
    protection = classes.protection.copy()
    protection[3, 5, 1] = protection[3, 5, 0]
    nodes = TableDifference.of(old, old).nodes
    found = changed_by_number(classes, replace(classes, protection=protection), nodes)
    assert np.argwhere(found).tolist() == [[3, 5]]
    assert not changed_by_number(classes, classes, nodes).any()


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
    behind = several.wiring.far_by_port()[np.arange(len(used))[:, None, None], used]
    there = classes.port > 0
    assert np.array_equal(np.sort(steps, axis=2)[there], np.sort(behind, axis=2)[there])
    assert len(path_fibs(build(topology, ("ecmp", "none")))) == 1
