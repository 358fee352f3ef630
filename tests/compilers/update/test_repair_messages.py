"""From repair to repair: switches hold what the encoder says, and no mixture loses a packet.

The switches are programmed by the messages alone (`openflow_switch`), the order is compared with
the one that `plan` finds from the whole tables.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compilers.forwarding.program import program_of
from compilers.forwarding.walks import minimal_hops
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.targets.openflow.carried_rows import CarriedRows
from compilers.targets.openflow.encoder import Encoder
from compilers.update.move_plan import plan
from compilers.update.repair_messages import repair_messages
from compilers.update.repair_rounds import GONE, RepairRounds
from compilers.update.update_proof import prove
from tests.compilers.routed import routed
from tests.compilers.targets.openflow_switch import Switch
from tests.compilers.update.updates import MINIMAL, Moving, build

SLOW = settings(max_examples=4, suppress_health_check=list(HealthCheck))
ADDRESSED = "addressing: {ipv6: fd00::/48}\n"
STAR = "{family: polarstar, q: 2, supernode: inductive-quad, degree: 3}"
MARKED = ((3, "none"), (3, "link"), (4, "link"))
FABRICS = [
    (f"{{family: polarfly, q: {q}}}", policy, more)
    for q, more in ((2, ""), (3, ADDRESSED), (4, ""))
    for policy in (MINIMAL, ("minimal", "node"), ("compact-valiant", "link"))
]
FABRICS += [(STAR, MINIMAL, ADDRESSED), (STAR, ("compact-valiant", "link"), "")]
FABRICS += [("{family: polarfly, q: 3}", ("valiant", word), "") for word in ("none", "link")]
FABRICS += [(STAR, ("valiant", "link"), ADDRESSED)]
FABRICS += [(f"{{family: polarfly, q: {q}}}", ("spread", word), "") for q, word in MARKED]
HYPERX, FAT_TREE = "{family: hyperx, sides: 3x3}", "{family: fat-tree, k: 4}"
OFT = "{family: oft, q: 2}"
AT_EVERY_HOP = "ecmp, transit: ecmp"
PROTECTIONS = "none", "link", "node"
FABRICS += [
    (topology, (AT_EVERY_HOP, protect), "")
    for topology in (HYPERX, FAT_TREE, OFT)
    for protect in PROTECTIONS
]
HYPERX_WITHOUT_PROTECTION = (HYPERX, (AT_EVERY_HOP, "none"), "")


def repair(whole, chance, links, nodes):
    """The tables after so many random links have failed, and nodes are drained."""
    far = whole.wiring.far
    dead, aside = np.zeros(far.shape, np.bool_), np.zeros(len(far), np.bool_)
    for u, k in chance.sample(np.argwhere(far >= 0).tolist(), links):
        dead[u, k] = True
        dead[far[u, k], np.flatnonzero(far[far[u, k]] == u)] = True
    aside[chance.sample(range(len(far)), nodes)] = True
    return repair_tables(IntactBuild.of(whole), dead, aside)


def programs(whole, tables, generation):
    encoder = Encoder(replace(whole, tables=tables))
    found = (encoder.program(v, generation) for v in range(tables.switches))
    return [Switch().apply((*program.groups, *program.flows)) for program in found]


def rounds_of(whole, old, new, generation):
    change = RepairRounds.of_repairs(old, new)
    generations = np.full(old.tables.switches, generation)
    encoder = Encoder(whole).with_tables(old.tables)
    return repair_messages(encoder, new.tables, change, generations)


def carry_out(switch, messages):
    switch.apply([np.frombuffer(b"".join(messages), np.uint8)])


@SLOW
@given(
    fabric=st.sampled_from(FABRICS),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=4),
    seed=st.integers(0, 1 << 30),
    generation=st.integers(0, 1),
)
def test_switches_hold_the_repaired_programs(fabric, steps, seed, generation):
    """Links and nodes fail and come back, other ones with each step."""
    whole, chance = build(fabric[0], fabric[1], (), fabric[2]), Random(seed)  # noqa: S311
    repairs = [repair(whole, chance, *step) for step in ((0, 0), *steps, (0, 0))]
    switches = programs(whole, whole.tables, generation)
    for old, new in pairwise(repairs):
        for messages in rounds_of(whole, old, new, generation):
            for vertex, parts in messages.items():
                carry_out(switches[vertex], parts)
        assert switches == programs(whole, new.tables, generation)


@pytest.mark.parametrize(("q", "protect"), MARKED)
def test_marked_packets_are_not_spread_over_what_has_failed(q, protect):
    """A drained switch had a third of its transit, and 2 % of all packets took a silent link."""
    whole = build(f"{{family: polarfly, q: {q}}}", ("spread", protect))
    chance, far = Random(q), whole.wiring.far  # noqa: S311
    for links, nodes in ((1, 0), (0, 1), (2, 1)):
        new = repair(whole, chance, links, nodes)
        switches = programs(whole, whole.tables, 0)
        for messages in rounds_of(whole, repair(whole, chance, 0, 0), new, 0):
            for vertex, parts in messages.items():
                carry_out(switches[vertex], parts)
        assert switches == programs(whole, new.tables, 0)
        repaired_build = replace(whole, tables=new.tables)
        onward = program_of(repaired_build).onward
        avoided = new.tables.avoided.links
        assert avoided.any()
        assert not (onward & avoided[:, None, :]).any()
        is_linked = far >= 0
        assert onward.any(axis=2)[is_linked].all()
        for vertex in range(len(far)):
            own = program_of(repaired_build, vertex).onward[0]
            assert (own == onward[vertex])[is_linked[vertex]].all()


@pytest.mark.parametrize("q", [3, 4])
def test_no_mixture_loses_marked_packets_where_a_switch_has_few_links(q):
    """Neighbours sent packets on to a switch that had no link left for them."""
    whole = build(f"{{family: polarfly, q: {q}}}", ("spread", "link"))
    intact, far, chance = IntactBuild.of(whole), whole.wiring.far, Random(q)  # noqa: S311
    none = np.zeros(far.shape, np.bool_)
    for switch in {3: (0, len(far) - 1), 4: (0,)}[q]:
        dead = none.copy()
        for k in np.flatnonzero(far[switch] >= 0)[: q - 1].tolist():
            dead[switch, k] = True
            dead[far[switch, k], np.flatnonzero(far[far[switch, k]] == switch)] = True
        moving, nodes = (
            Moving(plan(whole, whole)),
            [repair_tables(intact, none), repair_tables(intact, dead)],
        )
        for old, new in (nodes, nodes[::-1]):
            for messages in rounds_of(whole, old, new, 0):
                for vertex in chance.sample(list(messages), len(messages)):
                    carry_out(moving.switches[vertex], messages[vertex])
                    assert not moving.worst()[1]
            assert moving.switches == programs(whole, new.tables, 0)
        moving.switches = programs(whole, nodes[1].tables, 0)
        for v, k in np.argwhere(dead).tolist():
            del moving.cables[v, int(whole.wiring.port[v, k])]
        assert not moving.worst()[1]  # a KeyError where a packet takes a dead link


@pytest.mark.parametrize("balance", ["spread", "compact-valiant"])
def test_no_packet_takes_a_dead_link_next_to_a_drained_switch(balance):
    """Packets to the drained switch took it, and with q = 3 half of some marked packets."""
    whole = build("{family: polarfly, q: 3}", (balance, "link"))
    intact, far = IntactBuild.of(whole), whole.wiring.far
    for switch in (0, len(far) - 1):
        dead, drained = np.zeros(far.shape, np.bool_), np.arange(len(far)) == far[switch, 1]
        dead[switch, 0] = True
        dead[far[switch, 0], np.flatnonzero(far[far[switch, 0]] == switch)] = True
        moving = Moving(plan(whole, whole))
        for v, k in np.argwhere(dead).tolist():
            del moving.cables[v, int(whole.wiring.port[v, k])]
        old, new = repair_tables(intact, dead), repair_tables(intact, dead, drained)
        moving.switches = programs(whole, old.tables, 0)
        for before, after in ((old, new), (new, old)):
            for messages in rounds_of(whole, before, after, 0):
                for vertex in messages:
                    carry_out(moving.switches[vertex], messages[vertex])
                    assert not moving.worst()[1]  # a KeyError where a packet takes the dead link


def test_packets_do_not_go_by_a_drained_intermediate():
    """A drained switch had half of its transit, and 8 % of all packets were lost if it held none
    of its rows.
    """
    whole = build("{family: polarfly, q: 3}", ("valiant", "none"))
    drained, far = 10, whole.wiring.far
    aside = np.arange(len(far)) == drained
    new = repair_tables(IntactBuild.of(whole), np.zeros(far.shape, np.bool_), aside)
    switches = programs(whole, whole.tables, 0)
    for messages in rounds_of(whole, repair(whole, Random(0), 0, 0), new, 0):  # noqa: S311
        for vertex, parts in messages.items():
            carry_out(switches[vertex], parts)
    assert switches == programs(whole, new.tables, 0)
    for vertex in range(len(far)):
        carried = CarriedRows.of(replace(whole, tables=new.tables), vertex)
        goes_on = {*np.flatnonzero(carried.egress < 0).tolist()} - {carried.own_number}
        assert goes_on == ({drained} if drained in far[vertex] else set())


# Node 2 drops what it has for 3, to which 6 goes back by 2; until then 2 leads to 3 by 6.
@example(fabric=FABRICS[1], links=(3, 3), seed=3709238, generation=0)
# Classes of one path come to two: their rows do not go until those of two are there.
@example(fabric=HYPERX_WITHOUT_PROTECTION, links=(1, 0), seed=0, generation=0)
# Rows that packets from anywhere take are there before routes lead to them.
@example(fabric=HYPERX_WITHOUT_PROTECTION, links=(0, 1), seed=0, generation=0)
# Both legs of a path over an intermediate are long.
@example(fabric=FABRICS[11], links=(3, 3), seed=65592013, generation=0)
@settings(SLOW, max_examples=10)
@given(
    fabric=st.sampled_from(FABRICS),
    links=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    seed=st.integers(0, 1 << 30),
    generation=st.integers(0, 1),
)
def test_every_mixture_delivers(fabric, links, seed, generation):
    """What was not cut off, that is; and nothing runs in a circle."""
    whole, chance = build(fabric[0], fabric[1], (), fabric[2]), Random(seed)  # noqa: S311
    old, new = (repair(whole, chance, count, 0) for count in links)
    update = plan(*(replace(whole, tables=one.tables) for one in (old, new)))
    moving, node = Moving(update, generation), update.nodes.node_of_new
    moving.hosts = chance.sample(moving.hosts, min(12, len(moving.hosts)))
    ends = np.flatnonzero(whole.topology.endpoints)
    cut_off = any((minimal_hops(one.fib, ends) < 0).any() for one in (old, new))
    bound = (1 + whole.forwarding.intermediates) * prove(
        update
    ).hop_bound + 1  # of a leg, where they carry

    def check():
        longest, wrong = moving.worst()
        assert not [text for text in wrong if not cut_off or "loops" in text]
        assert longest <= bound

    for messages in rounds_of(whole, old, new, generation):
        vertices = list(messages)
        chance.shuffle(vertices)
        stop = chance.choice(vertices)
        for vertex in vertices:
            carry_out(moving.switches[node[vertex]], messages[vertex])
            if vertex == stop:
                check()
        check()


@pytest.mark.parametrize("protect", PROTECTIONS)
def test_draining_and_its_end_lose_nothing_where_every_hop_shares_packets(protect):
    """A class sent packets on to its bounce if they came from a next hop that it was to gain."""
    whole = build(OFT, (AT_EVERY_HOP, protect))
    intact, far = IntactBuild.of(whole), whole.wiring.far
    chance, none = Random(0), np.zeros(far.shape, np.bool_)  # noqa: S311
    moving, all_nodes = Moving(plan(whole, whole)), repair_tables(intact, none)
    for drained in range(0, len(far), 3):  # two of each layer, or three
        without = repair_tables(intact, none, np.arange(len(far)) == drained)
        for old, new in ((all_nodes, without), (without, all_nodes)):
            for messages in rounds_of(whole, old, new, 0):
                vertices = list(messages)
                chance.shuffle(vertices)
                stop = chance.choice(vertices)
                for vertex in vertices:
                    carry_out(moving.switches[vertex], messages[vertex])
                    if vertex in (stop, vertices[-1]):
                        assert not moving.worst()[1], (drained, vertex)


@pytest.mark.parametrize("q", [3, 4])
def test_rows_change_in_the_rounds_of_a_plan(q):
    whole = replace(routed(q=q, spread=True, protect="link"), identity="0" * 16)
    chance = Random(q)  # noqa: S311
    for links, nodes in ((1, 0), (3, 0), (0, 1), (2, 1)):
        old, new = repair(whole, chance, 1, 0), repair(whole, chance, links, nodes)
        update = plan(*(replace(whole, tables=one.tables) for one in (old, new)))
        change = RepairRounds.of_repairs(old, new)
        assert change.last_round == update.last_round
        rows = change.rows
        columns = (rows.switch.tolist(), rows.prefix.tolist(), rows.egress.tolist())
        for switch, prefix, egress, round in zip(*columns, rows.round.tolist(), strict=True):
            if egress != GONE:
                assert update.change_rounds(switch, np.array([prefix])) == round
            else:
                assert round == update.last_round


def test_weights_change_groups_alone():
    whole = build("{family: polarfly, q: 3}", ("compact-valiant", "link"))
    classes = whole.tables.classes
    pairs, weight = np.argwhere(classes.port > 0)[::3], classes.weight.copy()
    weight[tuple(pairs[::2].T)] += np.arange(1, weight.shape[2] + 1, dtype=np.uint16)
    tables = replace(whole.tables, classes=replace(classes, weight=weight))
    change = RepairRounds.of_classes(pairs)
    generations = np.arange(whole.tables.switches) % 2
    (messages,) = repair_messages(Encoder(whole), tables, change, generations)
    both = [[programs(whole, t, g) for g in (0, 1)] for t in (whole.tables, tables)]
    for vertex, generation in enumerate(generations.tolist()):
        before, after = (side[generation][vertex] for side in both)
        rows = dict(before.rows)
        if vertex in messages:
            carry_out(before, messages[vertex])
        assert before == after
        assert before.rows == rows
