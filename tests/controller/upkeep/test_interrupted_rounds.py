"""No interruption between the rounds of a drain has packets loop: a restart, a reload, a reading of
all switches, the lost connection of one. A switch that is slow has to change before another.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from functools import cache

import pytest

from controller.rollout.mover import Mover
from controller.settings import Duties
from tests.compilers.routed import routed
from tests.compilers.wiring.makers import damaged, missing
from tests.controller.makers import loaded, no_history
from tests.controller.switches.conforming_fabric import OPEN_VSWITCH, InMemory
from tests.controller.upkeep.makers import (
    CALM,
    hold,
    links_of,
    network,
    tables_for,
    told,
    unconnected,
)

BUILD = replace(routed(q=3), identity="0123456789abcdef")
"""Once 1, 2 and 4 are drained: the row of 3 towards 0 leads over 8 until 10 is drained, and that of
8 over 3 from then on."""
OTHER = replace(routed(q=3, spread=True, protect="link"), identity="fedcba9876543210")
SLOW, FIRST, LAST = 3, ("1", "2", "4"), "10"
STEP = 0.25


class Late(InMemory):
    """Switches of which one is late: the others have answered, and time has passed, before it hears
    anything. After each message packets of all pairs have to arrive.
    """

    def __init__(self, build, sessions, now, switches=None):
        super().__init__(build, sessions, now, OPEN_VSWITCH)
        self.queue, self.checks = deque(), switches is not None
        if switches is not None:
            self.switches[:] = switches

    def run(self, most=1 << 30):
        """Carry messages, so many at most, until nobody has anything to say."""
        waited = False
        for _ in range(most):
            self.queue.extend(self.sessions.send.take())
            ready = [out for out in self.queue if out.key not in self.hung]
            prompt = next((out for out in ready if out.key != SLOW), None)
            if not ready:
                return
            if prompt is None and not waited:
                waited = True
                self.now[0] += STEP
                self.sessions.tick()
                continue
            waited = False
            out = prompt or ready[0]
            self.queue.remove(out)
            mods = len(self.switches[out.key].mods)
            self._answers(out.key, self.switches[out.key].take(bytes(out.data)))
            if self.checks and len(self.switches[out.key].mods) > mods:
                assert self.fabric.lost() == [], f"after a change of {out.key}"

    def cable(self, vertex, link, up, most=1 << 30):
        self.fabric.cable((vertex, int(self.build.wiring.port[vertex, link])), up)
        self.run(most)

    def settle(self, seconds=12):
        for _ in range(int(seconds / STEP)):
            self.tick(STEP)


def fabric(switches=None, known=None, absent=()):
    """A fabric with its keeper, and what that knows from another process."""
    net, keeper = unconnected(Duties(patience=6, damping=CALM), BUILD)
    net = Late(BUILD, net.sessions, net.now, switches)
    if known:
        keeper.take_over(json.loads(json.dumps(known)))
    keeper.expect()
    net.connect(*set(range(13)).difference(absent))
    return net, keeper


def drained():
    """The same, once what comes first is drained."""
    net, keeper = fabric()
    for name in FIRST:
        keeper.drain(name)
        net.settle(1)
    net.checks = True
    return net, keeper


@cache
def wanted():
    """The rows of all switches once all is drained."""
    net, keeper = drained()
    keeper.drain(LAST)
    net.settle(5)
    return [dict(switch.tables.rows) for switch in net.switches]


def restarted(net, keeper):
    return fabric(net.switches, keeper.links_record())


def reloaded(net, keeper):
    net.sessions.load(loaded(BUILD))
    return net, keeper


def left(net, keeper):
    net.sessions.closed(SLOW)
    net.queue = deque(out for out in net.queue if out.key != SLOW)
    net.settle(1)
    net.connect(SLOW)
    return net, keeper


def read(net, keeper):
    for switch in net.sessions.present.values():
        switch.request_reading()
    return net, keeper


@pytest.mark.parametrize("interrupted", [restarted, reloaded, read, left])
def test_an_interruption_between_rounds_loops_no_packets(interrupted):
    for done in range(8, 62, 18):
        net, keeper = drained()
        net.sessions.take_events()
        keeper.drain(LAST)
        net.run(done)
        net, keeper = interrupted(net, keeper)
        net.settle()
        assert interrupted is not left or "repaired" in told(net)
        assert not keeper.status()["repairing"]
        assert net.fabric.lost() == []
        assert [dict(switch.tables.rows) for switch in net.switches] == wanted()
        assert net.sessions.complete


def test_a_move_begins_once_the_rounds_of_a_drain_have_ended():
    """Each switch was corrected as it was read, and packets looped."""
    net, keeper = drained()
    keeper.drain(LAST)
    net.run(26)
    mover = Mover(net.sessions, keeper, no_history())
    net.also.append(mover.tick)
    mover.prepare(loaded(OTHER), net.tick)
    mover.move(loaded(OTHER))
    net.settle(5)
    assert mover.rollout.state == "done"
    assert net.fabric.lost() == []


def test_a_move_reads_no_switch_before_the_round_that_it_was_sent():
    """Groups that the round adds were added again, which switches refuse: the move had failed."""
    net, keeper = network()
    name = net.build.wiring.names[1]
    keeper.drain(name)
    net.run()
    keeper.drain(name, ends=True)
    mover = Mover(net.sessions, keeper, no_history())
    net.also.append(mover.tick)
    mover.move(loaded(OTHER))
    for _ in range(40):
        net.tick()
    assert mover.rollout.state == "done", mover.status()


def test_a_switch_that_connects_late_after_a_restart_is_waited_for():
    """The others went on after 10 s, and packets looped."""
    net, keeper = drained()
    keeper.drain(LAST)
    net.run(38)
    net, keeper = fabric(net.switches, keeper.links_record(), [SLOW])
    net.settle(15)
    assert keeper.status()["repairing"]
    net.connect(SLOW)
    net.settle()
    assert not keeper.status()["repairing"]
    assert net.sessions.complete


def test_rounds_of_a_drain_wait_for_a_switch_that_hangs():
    """The next round followed after a second, and packets looped."""
    net, keeper = drained()
    net.hung.add(SLOW)
    keeper.drain(LAST)
    net.settle(7)
    assert keeper.status()["repairing"]
    net.hung.clear()
    net.settle(1)
    assert not keeper.status()["repairing"]
    assert keeper.drained[10]


@pytest.mark.parametrize("faults", [1, 1 << 30])
def test_rounds_of_a_drain_begin_anew_once_if_a_switch_refuses(faults):
    """The next round followed, and packets looped; one that refuses again delays no other."""
    net, keeper = drained()
    net.checks = faults == 1
    net.switches[SLOW].takes, net.switches[SLOW].faults = 0, faults
    keeper.drain(LAST)
    net.settle(4)
    assert not keeper.rounds.busy
    assert keeper.repairs == len(FIRST) + 2 + (faults > 1)
    assert keeper.drained[SLOW] == (faults > 1)
    assert net.sessions.complete == (faults == 1)


def test_a_failure_has_the_rounds_of_a_drain_go_on_without_a_switch_that_hangs():
    net, keeper = drained()
    net.hung.add(SLOW)
    keeper.drain(LAST)
    net.settle(2)
    net.checks = False
    link = next(link for link in links_of(BUILD) if link[0] == 5)
    net.cable(*link, False)
    net.settle(2)
    assert not keeper.status()["repairing"]
    assert keeper.repairs == len(FIRST) + 2


def test_a_drain_during_a_repair_does_not_end_its_rounds_when_a_switch_leaves():
    """The repair had to wait for that switch, like the drain."""
    net, keeper = fabric()
    net.sessions.take_events()
    net.cable(*links_of(BUILD)[0], False, most=4)
    assert keeper.rounds.busy
    keeper.drain(LAST)
    net.sessions.closed(12)
    net.settle(1)
    assert told(net).count("repaired") == 1
    assert keeper.status()["repairing"]
    net.connect(12)
    net.settle(1)
    assert told(net).count("repaired") == 1
    assert keeper.drained[10]


def test_a_link_that_is_back_waits_for_a_switch_that_has_just_left():
    """As nothing is lost without the link, its use has the same order as a drain."""
    net, keeper = fabric()
    net.cable(*links_of(BUILD)[0], False)
    net.sessions.closed(SLOW)
    net.cable(*links_of(BUILD)[0], True)
    net.settle(2)
    assert keeper.repairs == 1
    net.connect(SLOW)
    net.settle(1)
    assert keeper.repairs == 2
    assert not hold(net, BUILD.tables)


def test_a_link_that_joins_a_switch_again_waits_for_none():
    net, keeper = fabric()
    links = [link for link in links_of(BUILD) if 12 in (link[0], BUILD.wiring.far[link])]
    for link in links:
        net.cable(*link, False)
    assert net.fabric.lost()
    net.sessions.closed(SLOW)
    repairs = keeper.repairs
    net.cable(*links[1], True)
    assert keeper.repairs == repairs + 1


def test_a_dead_link_is_repaired_although_a_switch_does_not_say_what_it_holds():
    """After a restart that was waited for until the switch was cut off."""
    net, _ = unconnected(Duties(damping=CALM), BUILD)
    net.connect()
    vertex, link = links_of(BUILD)[0]
    net.fabric.cable((vertex, int(BUILD.wiring.port[vertex, link])), False, tell=False)
    switches = net.switches
    net, _ = unconnected(Duties(damping=CALM), BUILD)
    net.switches[:] = switches
    net.hung = {12}
    net.connect()
    for _ in range(16):
        net.tick()
    assert net.sessions.present.keys() == set(range(13))
    assert not hold(net, tables_for((vertex, link), build=BUILD), range(12))


def test_a_drain_does_not_wait_for_a_switch_that_is_not_installed():
    build = replace(damaged(BUILD, missing(BUILD.wiring, [12], [])), identity="89abcdef01234567")
    net, keeper = unconnected(Duties(damping=CALM), build)
    net.connect(*range(12))
    keeper.drain("1")
    assert keeper.repairs == 1


def test_a_drain_waits_for_switches_that_are_read():
    net, keeper = drained()
    read(net, keeper)
    net.run(6)
    keeper.drain(LAST)
    net.settle()
    assert net.sessions.complete
    assert keeper.drained[10]


@pytest.mark.parametrize("returns", [True, False])
def test_a_drain_waits_for_a_switch_that_has_just_left(returns):
    net, keeper = drained()
    net.sessions.closed(SLOW)
    keeper.drain(LAST)
    net.settle(2)
    assert keeper.repairs == len(FIRST)
    if returns:
        net.connect(SLOW)
    net.settle()
    assert keeper.repairs > len(FIRST)
    assert keeper.drained.sum() == len(FIRST) + 1 + (not returns)
    assert net.fabric.lost() == []
