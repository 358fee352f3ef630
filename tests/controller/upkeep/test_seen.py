"""In sync means read back: switches that lie, forget, refuse or hang, and time is the test's."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.protocol import Multipart
from controller.rollout.mover import Mover
from controller.settings import Damping, Duties
from controller.switches.session import (
    BUSY_SWITCHES,
    PROBE_AFTER,
    SILENT_AFTER,
    SLOW_AFTER,
    WORK_RATE,
)
from controller.switches.switch import LAST_RETRY, MOST_DRIFTS
from controller.upkeep.port_counters import PortCounters
from controller.upkeep.rolling_audit import READINGS_AT_ONCE, REREAD_AFTER, RollingAudit
from tests.compilers.routed import routed
from tests.controller.makers import loaded, no_history
from tests.controller.switches.conforming_switch import Shape
from tests.controller.switches.session_talk import slow
from tests.controller.switches.test_conforming_switches import in_memory
from tests.controller.upkeep.makers import unconnected

BUILD = replace(routed(q=2), identity="0123456789abcdef")
BAD, PERIOD, TICK = 3, 300.0, 0.25


def network(shape=None, audit=PERIOD, **shapes):
    net = in_memory(Shape(**shapes), BUILD, {BAD: shape} if shape else None)
    net.also.append(RollingAudit(net.sessions, audit, lambda: net.keeper.change_number).tick)
    return net


def wait(net, seconds):
    for _ in range(round(seconds / TICK)):
        net.tick(TICK)


def kinds(net):
    return [event.kind for event in net.sessions.take_events() if event.node == str(BAD)]


def lost(net):
    """Pairs of hosts that lose packets, but for those of the bad switch."""
    return [(a, b) for a, b in net.fabric.lost() if BAD not in (a[0], b[0])]


def drained(net):
    return np.flatnonzero(net.keeper.drained).tolist()


def forgets_all(switch):
    switch.tables.rows.clear()
    switch.tables.groups.clear()
    switch.committed()


@pytest.mark.parametrize("bundles", [True, False])
def test_a_switch_that_confirms_everything_and_holds_nothing_is_found_at_once(bundles):
    liar = Shape(lies=True) if bundles else Shape(lies=True, bundles=False)
    net = network(liar)
    wait(net, 1)
    assert net.sessions.state(BAD) == "drifting"
    assert net.sessions.missing() == [str(BAD)]
    assert not net.sessions.complete
    text = net.sessions.errors[str(BAD)]
    assert text.startswith("confirms its program and does not keep it, as it was read ")
    assert kinds(net).count("forgotten") == 1
    assert drained(net) == [BAD]
    assert lost(net) == []
    wait(net, 120)
    assert kinds(net) == [], "it is tried again, and told once"
    net.fabric.switches[BAD].shape = Shape()
    wait(net, 2 * LAST_RETRY + 2)
    assert net.sessions.complete
    assert net.sessions.errors == {}
    assert drained(net) == []
    assert net.fabric.lost() == []


def test_what_was_counted_only_is_read_in_full_soon():
    net = network()
    wait(net, TICK * (len(net.fabric.switches) // READINGS_AT_ONCE + 2))
    assert not any(net.sessions.present[v].due(net.now[0] - REREAD_AFTER) for v in range(7))
    switch = net.fabric.switches[BAD]
    key, row = next((k, r) for k, r in switch.tables.rows.items() if r.table == 1)
    kept, commit = replace(row, instructions=b""), switch.committed

    def altered():
        """Each commit leaves another row than was sent, and as many."""
        if key in switch.tables.rows:
            switch.tables.rows[key] = kept
        commit()

    switch.committed = altered
    net.sessions.take_events()
    link = next(end for end in net.fabric.far if end[0] == BAD)
    net.fabric.cable(link, up=False)
    net.run()
    wait(net, 1)
    altered()
    wait(net, 3 * REREAD_AFTER + 2)
    assert net.sessions.state(BAD) in ("drifting", "in sync")
    net.sessions.present[BAD].request_reading()
    net.run()
    wait(net, 1)
    assert net.sessions.state(BAD) == "drifting", "a count proves nothing for ever"
    assert not net.sessions.complete


def test_one_that_drifts_again_and_again_gets_no_transit():
    net = network(audit=10.0)
    wait(net, 2)
    net.sessions.take_events()
    told = []
    for drift in range(1, MOST_DRIFTS + 1):
        forgets_all(net.fabric.switches[BAD])
        for _ in range(round(12 / TICK)):
            net.tick(TICK)
            told += kinds(net)
            if told.count("drift") == drift:
                break
    assert told.count("drift") == MOST_DRIFTS
    assert told[-1] == "forgotten"
    assert not net.sessions.complete
    net.tick(TICK)
    assert drained(net) == [BAD]
    assert lost(net) == []
    wait(net, 2 * LAST_RETRY)
    assert net.sessions.complete, "calm again"
    assert net.fabric.lost() == []


def test_a_refusal_is_tried_again_with_growing_waits_and_new_limits():
    net = network(Shape(bundles=False, rows=4), bundles=False)
    switch = net.fabric.switches[BAD]
    assert net.sessions.state(BAD) == "refused"
    assert "of which the switch holds 4" in net.sessions.errors[str(BAD)]
    asked, report = [], switch.report

    def told(what, body):
        if what == 12:  # table features
            asked.append(net.now[0])
        return report(what, body)

    switch.report = told
    wait(net, 100)
    rests = [round(b - a) for a, b in pairwise(asked)]
    assert rests == sorted(rests)
    assert rests[:3] == [2, 4, 8]
    assert max(rests) == LAST_RETRY
    assert lost(net) == []
    assert drained(net) == [BAD]
    switch.shape = Shape(bundles=False)
    wait(net, LAST_RETRY + 1)
    assert net.sessions.complete
    assert net.fabric.lost() == []


def test_ports_of_a_switch_that_refuses_its_program_are_counted():
    """It carries traffic, and may lose it."""
    net = network(Shape(bundles=False, rows=10))
    assert net.sessions.state(BAD) == "refused"
    net.also.append(PortCounters(net.sessions).tick)
    asked = []
    net.sessions.present[BAD].talk.ask = lambda kind, *_: asked.append(kind)
    net.tick(TICK)
    assert asked == [Multipart.PORT_STATS]


def test_a_hung_switch_is_cut_off_in_seconds_and_delays_no_other():
    net = network()
    wait(net, 2)
    net.hung.add(BAD)
    wait(net, PROBE_AFTER + SLOW_AFTER + 2 * TICK)
    assert slow(net.sessions) == {BAD}
    link = next(one for one in net.fabric.links if BAD in (one[0], net.fabric.far[one][0]))
    near = next(end for end in (link, net.fabric.far[link]) if end[0] != BAD)
    net.fabric.cable(near, up=False, tell=False)
    net.sessions.received(near[0], net.fabric.switches[near[0]].link(near[1], False))
    net.run()
    assert not net.keeper.rounds.busy, "all others are repaired, and at once"
    assert "repaired" in [event.kind for event in net.sessions.take_events()]
    wait(net, SILENT_AFTER)
    assert BAD not in net.sessions.present
    wait(net, 6)
    assert drained(net) == [BAD]
    assert lost(net) == []


def test_a_switch_that_hangs_in_a_round_is_not_waited_for_long():
    net = network()
    wait(net, 2)
    net.hung.add(BAD)
    link = next(one for one in net.fabric.links if BAD in (one[0], net.fabric.far[one][0]))
    near = next(end for end in (link, net.fabric.far[link]) if end[0] != BAD)
    net.sessions.received(near[0], net.fabric.switches[near[0]].link(near[1], False))
    net.run()
    wait(net, SLOW_AFTER + 3 * TICK)
    assert not net.keeper.rounds.busy


def other():
    """Another build of the fabric."""
    return loaded(replace(routed(q=2, spread=True, protect="link"), identity="f" * 16))


def mover_of(net):
    """One that has begun to move to another build."""
    mover = Mover(net.sessions, net.keeper, no_history())
    net.also.append(mover.tick)
    mover.move(other(), True, all_or_none=False)
    return mover


def moving(net, seconds=0.06):
    """Move to another build; the most pairs of hosts that lose packets after any commit."""
    mover, worst = mover_of(net), []
    for vertex, switch in enumerate(net.fabric.switches):

        def changed(before=switch.committed, vertex=vertex):
            before()
            if vertex != BAD:
                worst.append(lost(net))

        switch.committed = changed
    for _ in range(200):
        net.tick(seconds)
        if not mover.busy and mover.rollout:
            break
    assert worst, "every switch was changed"
    return max(worst, key=len), mover


@pytest.mark.parametrize("amiss", ["drifting", "absent"])
def test_a_fabric_with_a_switch_amiss_moves_in_rounds_that_lose_nothing(amiss):
    """All switches were loaded at once, each at its own time."""
    odd = {"drifting": Shape(lies=True), "absent": None}
    net = network(odd[amiss])
    if amiss == "absent":
        net.sessions.closed(BAD)
    wait(net, 8)
    assert (net.sessions.state(BAD), drained(net)) == (amiss, [BAD])
    pairs, mover = moving(net)
    assert pairs == []
    assert mover.rollout.state == "done"
    assert net.sessions.identity == "f" * 16
    wait(net, 2)
    assert net.sessions.missing() == [str(BAD)]
    assert lost(net) == []
    net.fabric.switches[BAD].shape = Shape()
    if amiss == "absent":
        net.sessions.connected(BAD, net.fabric.switches[BAD].datapath_id)
    wait(net, 2 * LAST_RETRY + 2)
    assert net.sessions.complete
    assert net.fabric.lost() == []


def test_a_switch_that_becomes_amiss_while_a_move_reads_gets_no_transit():
    """The move began with tables that led through it."""
    net = network()
    net.fabric.switches[BAD].shape = Shape(lies=True)
    net.fabric.switches[BAD].tables.rows.clear()
    mover = mover_of(net)
    for _ in range(200):
        net.tick(0.06)
        if not mover.busy:
            break
    assert mover.rollout.state == "failed"
    assert mover.rollout.reason.startswith(f"{BAD} became amiss")
    wait(net, 8)
    assert (drained(net), lost(net)) == ([BAD], [])
    mover.move(other(), True, all_or_none=False)
    wait(net, 8)
    assert (mover.rollout.state, net.sessions.identity) == ("done", "f" * 16)
    assert lost(net) == []


def test_a_fabric_whose_switches_refuse_its_build_moves_to_another():
    """Most are amiss, so no traffic is led around them: the move was refused for ever."""
    refuses = Shape(bundles=False, rows=4)
    net = in_memory(Shape(), BUILD, dict.fromkeys(range(5), refuses))
    wait(net, 2)
    assert (len(net.sessions.missing()), drained(net)) == (5, [])
    mover = mover_of(net)
    wait(net, 8)
    assert (mover.rollout.state, net.sessions.identity) == ("done", "f" * 16)
    for switch in net.fabric.switches:
        switch.shape = Shape()
    wait(net, 2 * LAST_RETRY + 2)
    assert net.sessions.complete
    assert net.fabric.lost() == []


def test_a_switch_that_returns_while_the_others_move_follows():
    net = network()
    net.sessions.closed(BAD)
    wait(net, 8)
    tick = net.tick

    def returns(seconds):
        if net.now[0] > began + 0.1 and BAD not in net.sessions.present:
            net.sessions.connected(BAD, net.fabric.switches[BAD].datapath_id)
        tick(seconds)

    began, net.tick = net.now[0], returns
    pairs, mover = moving(net)
    assert (pairs, mover.rollout.state) == ([], "done")
    wait(net, 2)
    assert net.sessions.complete
    assert net.fabric.lost() == []


def test_a_switch_that_carries_out_a_large_change_is_neither_slow_nor_silent():
    """One that answers nothing while it commits 90,000 rows was cut off in the middle."""
    net = network()
    wait(net, 2)
    net.hung.add(BAD)
    many = [bytes(row) for row in Encoder(BUILD).program(BAD).parts] * 3000
    size = sum(map(len, many))
    net.sessions.present[BAD].talk.change(many, lambda _: None)
    net.run()
    net.sessions.take_events()
    wait(net, SLOW_AFTER + size / WORK_RATE - 1)
    assert slow(net.sessions) == set()
    assert BAD in net.sessions.present
    wait(net, PROBE_AFTER + 2)
    assert slow(net.sessions) == {BAD}
    wait(net, SILENT_AFTER)
    assert BAD not in net.sessions.present, "but not for ever"


def test_a_busy_process_of_many_switches_is_given_more_time():
    """All were slow after a second, and rounds went on without them."""
    build = replace(routed(q=9), identity="9" * 16)
    net = in_memory(Shape(), build)
    wait(net, 2)
    every = range(len(net.fabric.switches))
    net.hung.update(every)
    for vertex in every:
        net.sessions.present[vertex].talk.change([b""], lambda _: None)
    wait(net, PROBE_AFTER + SLOW_AFTER + 2 * TICK)
    assert len(every) > BUSY_SWITCHES
    assert slow(net.sessions) == set()
    wait(net, SLOW_AFTER + 2 * TICK)
    assert slow(net.sessions) == set(every)


def test_a_reboot_whose_new_connection_claims_the_place_counts_as_leaving():
    """It had transit before it had its program, and no damping however often it rebooted."""
    net = network()
    wait(net, 2)
    datapath_id = net.fabric.switches[BAD].datapath_id
    forgets_all(net.fabric.switches[BAD])
    net.fabric.switches[BAD].shape = Shape(bundles=False, rows=10)
    net.sessions.connected("again", datapath_id)
    net.sessions.closed(BAD)
    net.fabric.switches += [None] * 100
    net.hung.add("again")
    net.run()
    wait(net, 7)
    assert drained(net) == [BAD], "it was not read to hold its program"
    del net.fabric.switches[7:]
    assert lost(net) == []


def test_every_reboot_counts_for_damping():
    net, net.keeper = unconnected(Duties(damping=Damping()), BUILD, shape=Shape())
    net.connect()
    keys, datapath_id = [BAD], net.fabric.switches[BAD].datapath_id
    for number in range(4):
        keys.append(f"again {number}")
        net.sessions.connected(keys[-1], datapath_id)
        net.sessions.closed(keys[-2])
        net.hung.add(keys[-1])
        net.run()
    net.tick(TICK)
    assert drained(net) == [BAD], "at once, and not after the patience for switches that left"


def test_without_an_audit_what_was_changed_is_read_in_full_all_the_same():
    """Wrong rows of the right number stayed for ever."""
    net = network(audit=0.0)
    wait(net, 2)
    assert not any(net.sessions.present[v].due(net.now[0] - REREAD_AFTER) for v in range(7))
    switch = net.fabric.switches[BAD]
    key, row = next((k, r) for k, r in switch.tables.rows.items() if r.table == 1)
    net.sessions.present[BAD].note_change()
    net.sessions.present[BAD].talk.change([], lambda _: None)
    net.run()
    switch.tables.rows[key] = replace(row, instructions=b"")
    wait(net, 1)
    assert switch.tables.rows[key].instructions == row.instructions
    wait(net, 2 * REREAD_AFTER)
    switch.tables.rows[key] = replace(row, instructions=b"")
    wait(net, 60)
    assert switch.tables.rows[key].instructions == b"", "0: no other switch is read"
