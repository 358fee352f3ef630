"""No interruption between the rounds of a drain has packets loop: a restart, a reload, a reading of
all switches, the lost connection of one. A switch that is slow has to change before another.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace

import pytest

from controller.rollout.mover import Mover
from controller.settings import Duties
from tests.compilers.routed import routed
from tests.controller.makers import loaded, no_history
from tests.controller.switches.conforming_fabric import OPEN_VSWITCH, InMemory
from tests.controller.upkeep.makers import CALM, network, unconnected

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
            prompt = next((out for out in self.queue if out.key != SLOW), None)
            if not self.queue:
                return
            if prompt is None and not waited:
                waited = True
                self.now[0] += STEP
                self.sessions.tick()
                continue
            waited = False
            out = prompt or self.queue[0]
            self.queue.remove(out)
            mods = len(self.switches[out.key].mods)
            self._answers(out.key, self.switches[out.key].take(bytes(out.data)))
            if self.checks and len(self.switches[out.key].mods) > mods:
                assert self.fabric.lost() == [], f"after a change of {out.key}"

    def settle(self, seconds=12):
        for _ in range(int(seconds / STEP)):
            self.tick(STEP)


def fabric(switches=None, known=None):
    """A fabric with its keeper, and what that knows from another process."""
    net, keeper = unconnected(Duties(patience=6, damping=CALM), BUILD)
    net = Late(BUILD, net.sessions, net.now, switches)
    if known:
        keeper.take_over(json.loads(json.dumps(known)))
    net.connect()
    return net, keeper


def drained():
    """The same, once what comes first is drained."""
    net, keeper = fabric()
    net.checks = True
    for name in FIRST:
        keeper.drain(name)
        net.settle(1)
    return net, keeper


def restarted(net, keeper):
    return fabric(net.switches, keeper.known())


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
        switch.wait()
    return net, keeper


@pytest.mark.parametrize("interrupted", [restarted, reloaded, read, left])
def test_an_interruption_between_rounds_loops_no_packets(interrupted):
    net, keeper = drained()
    keeper.drain(LAST)
    net.settle(5)
    wanted = [dict(switch.tables.rows) for switch in net.switches]
    for done in range(2, 62, 12):
        net, keeper = drained()
        keeper.drain(LAST)
        net.run(done)
        net, keeper = interrupted(net, keeper)
        net.settle()
        assert net.fabric.lost() == []
        assert [dict(switch.tables.rows) for switch in net.switches] == wanted
        assert net.sessions.complete


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
