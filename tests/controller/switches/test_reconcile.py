"""Differences against an independent reading by Ryu's parser, and against bytes of all kinds."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.readers.openflow.rows import Malformed, read_row
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import OUR_GROUPS
from compilers.targets.openflow.protocol import AGGREGATE_STATS
from controller.switches import reconcile
from tests.compilers.fabrics import polarfly_build
from tests.controller.reported import as_entries


def groups_of(program):
    """Groups as a switch that holds them reports them."""
    found = []
    for block in program.groups:
        for message in block:
            mod = message.tobytes()[32:]
            body = mod[2:3] + b"\0" + mod[4:]
            found.append(struct.pack("!H", len(body) + 2) + body)
    return found


def foreign(priority):
    """A row of others as a switch reports it."""
    body = b"".join(parts.flow_add(1, priority, 9, (parts.oxm("eth_type", 0x0800),)).body)
    (entry,) = as_entries(parts.block(rows.bundled_add(14, body, 0)))
    return entry


def flows_of(program):
    return [entry for block in program.flows for entry in as_entries(block)]


def commands(messages):
    """(type, command) of each message of a difference."""
    found = []
    for part in getattr(messages, "parts", messages):
        place = 0
        while place < len(part):
            kind, at = part[place + 25], place + 32
            command = part[at + 17] if kind == 14 else part[at + 1]
            found.append((kind, command))
            place += int.from_bytes(part[place + 2 : place + 4], "big")
    return found


@pytest.fixture(scope="module")
def program():
    return Encoder(replace(polarfly_build(4), identity="0123456789abcdef")).program(3)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_there_in_any_order_lacks_nothing(program, seed):
    flows, groups = flows_of(program), groups_of(program)
    np.random.default_rng(seed).shuffle(flows)
    np.random.default_rng(seed).shuffle(groups)
    found = reconcile.difference(program, reconcile.read_content(b"".join(flows), b"".join(groups)))
    assert (found.parts, found.added, found.changed, found.removed) == ((), 0, 0, 0)


@pytest.mark.parametrize("seed", range(2))
def test_what_was_taken_away_is_added_and_nothing_else(program, seed):
    pick = np.random.default_rng(seed)
    flows, groups = flows_of(program), groups_of(program)
    lost_flows = [flows[i] for i in pick.choice(len(flows), 3, replace=False)]
    lost_groups = [groups[i] for i in pick.choice(len(groups), 2, replace=False)]
    held = reconcile.read_content(
        b"".join(f for f in flows if f not in lost_flows),
        b"".join(g for g in groups if g not in lost_groups),
    )
    found = reconcile.difference(program, held)
    assert commands(found) == [(15, 0)] * 2 + [(14, 0)] * 3
    assert found.added == 5


def test_a_group_that_differs_is_changed_in_place(program):
    groups = groups_of(program)
    groups[1] = groups[1][:2] + b"\1" + groups[1][3:]
    held = reconcile.read_content(b"".join(flows_of(program)), b"".join(groups))
    found = reconcile.difference(program, held)
    assert (commands(found), found.changed) == ([(15, 1)], 1)


def test_what_is_too_much_goes_last_and_groups_after_rows(program):
    less = FlowProgram(program.groups[:1], program.flows[1:])
    held = reconcile.read_content(b"".join(flows_of(program)), b"".join(groups_of(program)))
    order = commands(reconcile.difference(less, held))
    assert order == sorted(order, key=lambda kind: kind[0] != 14)
    assert {(14, 4)} <= set(order) <= {(14, 4), (15, 2)}


def test_a_total_is_of_our_groups_in_any_order_and_tells_each_change(program):
    groups, ours = groups_of(program), reconcile.Fingerprint.of(program)
    foreign = groups[0][:4] + struct.pack("!I", OUR_GROUPS + 1) + groups[0][8:]

    def total(*groups, more=0):
        count = sum(map(len, program.flows)) + more
        counted = AGGREGATE_STATS.pack(packets=9, bytes=9, flows=count)
        return reconcile.Fingerprint.read(counted, b"".join(groups))

    assert total(*groups[::-1], foreign) == ours
    other = groups[0][:-1] + b"\1"
    lies = total(*groups[1:]), total(other, *groups[1:]), total(*groups, more=1)
    assert ours not in lies


def test_what_others_add_meanwhile_stays_when_a_change_is_taken_back(program):
    """A switch without bundles has done a part of it; a row of others made way for one of ours."""
    flows, groups = flows_of(program), groups_of(program)
    theirs = [foreign(port) for port in (4, 5)]
    group = groups[0][:4] + struct.pack("!I", OUR_GROUPS + 1) + groups[0][8:]
    before = reconcile.read_content(b"".join((*flows, theirs[0])), b"".join(groups))
    now = reconcile.read_content(b"".join((*flows[2:], theirs[1])), b"".join((*groups[1:], group)))
    assert commands(reconcile.restoring_messages(before, now)) == [(15, 0)] + [(14, 0)] * 3


def form(fields, instructions=()):
    """The canonical form of a row that is not ours."""
    body = b"".join(parts.flow_add(1, 5, 9, tuple(fields), *instructions).body)
    (entry,) = as_entries(parts.block(rows.bundled_add(14, body, 0)))
    (row,) = reconcile.read_content(entry, b"").foreign
    return row


def test_what_a_mask_hides_tells_no_rows_apart():
    """But for fields of experimenters, whose values begin with who they are."""
    ipv4 = parts.oxm("eth_type", 0x0800)
    net, other = (parts.oxm("ipv4_dst", value, 0xFFFFFF00) for value in (0x0A000100, 0x0A0001FF))
    assert form([ipv4, net]) != form([ipv4, other])
    assert read_row(form([ipv4, net])) == read_row(form([ipv4, other]))
    hidden = form([ipv4, parts.oxm("ipv4_dst", 7, 0)])
    assert read_row(hidden).place == read_row(form([ipv4])).place
    theirs = (struct.pack("!HBBIHH", 0xFFFF, 5 << 1 | 1, 8, 0x2320, 0, 0),)
    assert read_row(form([ipv4, theirs])).place != read_row(form([ipv4])).place


def test_reordered_fields_and_full_masks_are_the_same_row():
    fields = [
        parts.oxm("eth_type", 0x0800),
        parts.oxm("ipv4_dst", 7),
        parts.oxm("in_port", 3),
    ]
    masked = [*fields[::2], parts.oxm("ipv4_dst", 7, 0xFFFFFFFF)]
    goto, meta = parts.goto_table(2), parts.write_metadata(1, 3)

    one, other = form(fields, (meta, goto)), form(masked, (goto, meta))
    assert one != other
    assert read_row(one) == read_row(other)
    assert read_row(one).place == read_row(form(fields, ())).place
    assert read_row(one) != read_row(form(fields, (goto,)))


def test_a_group_that_rows_of_others_lead_to_stays(program):
    """They were removed with it, under `keep`, and nothing told of it."""
    action = parts.group(700)
    body = b"".join(parts.flow_add(1, 5, 9, (), parts.apply_actions(action)).body)
    (row,) = as_entries(parts.block(rows.bundled_add(14, body, 0)))
    groups = groups_of(program)
    groups += [groups[0][:4] + struct.pack("!I", number) + groups[0][8:] for number in (700, 701)]
    held = reconcile.read_content(b"".join((*flows_of(program), row)), b"".join(groups))
    kept = reconcile.difference(program, held)
    assert (commands(kept), kept.removed, kept.borrowed) == ([(15, 2)], 1, (700,))
    removed = reconcile.difference(program, held, "remove")
    assert (commands(removed), removed.borrowed) == ([(14, 4), (15, 2), (15, 2)], ())


def test_rounds_delete_no_group_that_rows_of_others_lead_to(program):
    """A repair's or a move's rounds took the rows of another app away, and nothing told of it."""
    groups = groups_of(program)
    added = groups[0][:4] + struct.pack("!I", 700) + groups[0][8:]
    without = reconcile.read_content(b"".join(flows_of(program)), b"".join(groups))
    held = reconcile.read_content(b"".join(flows_of(program)), b"".join((*groups, added)))
    deletion = reconcile.difference(program, held).parts
    addition = reconcile.restoring_messages(held, without)
    number = int.from_bytes(added[4:8], "big")
    for round, alone, borrowed in ((deletion, [(15, 2)], []), (addition, [(15, 0)], [(15, 1)])):
        for groups_of_others, expected in (((number,), borrowed), ((), alone), ((1,), alone)):
            messages = reconcile.without_borrowed_deletions([b"".join(round)], groups_of_others)
            assert commands(messages) == expected


@settings(max_examples=100)
@given(st.binary(max_size=300), st.binary(max_size=80), st.randoms(use_true_random=False))
def test_no_bytes_are_more_than_malformed(program, flows, groups, pick):
    entry = bytearray(b"".join(flows_of(program)))
    for _ in range(pick.randrange(4)):
        entry[pick.randrange(len(entry))] ^= 1 << pick.randrange(8)
    for body in (flows, bytes(entry), bytes(entry[: pick.randrange(len(entry))])):
        try:
            reconcile.difference(program, reconcile.read_content(body, groups))
        except Malformed:
            continue
