"""Rows of others over ours, against Open vSwitch's own rule written out bit by bit."""

import random
import tracemalloc
from time import process_time

import pytest

from compilers.readers.openflow.rows import ROW, Malformed, read_row
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.protocol import MATCH, OXM, OXM_MATCH, padded
from controller.openflow.row_overlap import shadowing
from controller.switches import reconcile
from tests.controller.reported import as_entries

BITS = {"in_port": 32, "eth_type": 16, "ipv4_dst": 32, "eth_dst": 48}


def row(table, priority, match, cookie=0x99):
    """The canonical form of a row; match: (value, mask) by field."""
    fields = tuple(
        parts.oxm(name, value, None if mask == (1 << BITS[name]) - 1 else mask)
        for name, (value, mask) in match.items()
    )
    body = b"".join(parts.flow_add(table, priority, cookie, fields).body)
    (entry,) = as_entries(parts.block(rows.bundled_add(14, body, 0)))
    (form,) = reconcile.read_content(entry, b"").foreign
    return form


def whole(**fields):
    return {name: (value, (1 << BITS[name]) - 1) for name, value in fields.items()}


IP = whole(eth_type=0x800)
ROUTE = row(1, 24, IP | {"ipv4_dst": (0x0A000100, 0xFFFFFF00)})
MISS = row(0, 0, {})


@pytest.mark.parametrize(
    ("foreign", "stands_over"),
    [
        (row(1, 60000, {}), True),
        (row(1, 24, whole(in_port=3)), True),
        (row(1, 25, IP | whole(ipv4_dst=0x0A000107)), True),
        (row(1, 23, {}), False),
        (row(0, 60000, {}), False),
        (row(9, 60000, {}), False),
        (row(1, 60000, whole(eth_type=0x88CC)), False),
        (row(1, 60000, IP | whole(ipv4_dst=0x0A000207)), False),
    ],
)
def test_a_row_stands_over_ours_if_a_packet_may_match_it_instead(foreign, stands_over):
    assert shadowing([foreign], [ROUTE, MISS]) == [read_row(foreign)] * stands_over


def test_many_rows_as_bit_by_bit():
    chance = random.Random(5)  # noqa: S311

    def some(count):
        made = {}
        for _ in range(count):
            match = {}
            for name in chance.sample([*BITS], chance.randint(0, 3)):
                mask = chance.choice([(1 << BITS[name]) - 1, 3, 1])
                match[name] = chance.randrange(4) & mask, mask
            place = chance.randrange(3), chance.randrange(4), match
            made[row(*place)] = place
        return made

    def over(other, one):
        (table, priority, match), (own_table, own_priority, own) = other, one
        return (
            own
            and table == own_table
            and priority >= own_priority
            and not any(
                (match[name][0] ^ own[name][0]) & match[name][1] & own[name][1]
                for name in match.keys() & own.keys()
            )
        )

    foreign, ours = some(150), some(40)
    expected = {
        read_row(form)
        for form, other in foreign.items()
        if any(over(other, o) for o in ours.values())
    }
    assert set(shadowing(foreign, ours)) == expected
    assert 10 < len(expected) < 140


@pytest.mark.parametrize("many", ["fields", "masks"])
def test_foreign_rows_with_a_field_or_mask_of_their_own_each_cost_no_more_than_others(many):
    """A hostile switch chooses them; the bits of their fields were numbered, each row longer."""
    ours = [row(1, 24, IP | {"ipv4_dst": (i << 8, 0xFFFFFF00)}) for i in range(300)]

    def spent(others):
        began = process_time()
        tracemalloc.start()
        shadowing(others, ours)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return process_time() - began, peak

    usual = [row(1, 30, whole(in_port=i)) for i in range(300)]
    hostile = [row(1, 30, {"eth_dst": (0, 1 + i)} | whole(in_port=1)) for i in range(300)]
    if many == "fields":
        hostile = [_of_one_field(usual[0], number, 200) for number in range(300)]
    (seconds, memory), (usual_seconds, usual_memory) = spent(hostile), spent(usual)
    assert seconds < 4 * usual_seconds
    assert memory < 4 * usual_memory


def _of_one_field(form, number, length):
    """A row with one field of so many bytes."""
    field = OXM.pack(space=number, field=0, length=length) + bytes(length)
    size = MATCH.size + len(field)
    match = MATCH.pack(match_type=OXM_MATCH, match_length=size) + field + bytes(padded(size) - size)
    return form[: ROW.itemsize - MATCH.size] + match


def test_a_row_that_is_cut_off_is_malformed():
    with pytest.raises(Malformed):
        shadowing([row(1, 1, IP)[:-2]], [ROUTE])
