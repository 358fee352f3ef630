"""One hung switch costs the repair of a link elsewhere nothing.

62 ms became 6.1 s. Time stands still while a repair is carried out, so that it waits for nothing;
what it costs is counted in processor time, from the port status to the last byte for a socket.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import thread_time

import numpy as np

from compilers.targets.openflow.protocol import PORT_DOWN, PORT_MODIFIED, PORT_STATUS, MessageType
from compilers.targets.openflow.protocol import message as of_message
from controller.settings import Damping, Duties
from controller.switches.session import PROBE_AFTER, SLOW_AFTER, LiveFabric
from controller.upkeep.repair_keeper import Keeper
from tests.compilers.routed import routed
from tests.controller.makers import loaded
from tests.controller.stand_ins import StandIn
from tests.controller.switches.session_talk import names, slow

COSTS = 3.0
"""Times what a repair costs without a hung switch."""
LINKS = 7


class Fabric:
    """Switches of a build in memory, all programmed; hung: those that say nothing."""

    def __init__(self, build):
        self.build, self.hung, self.now = build, set(), [100.0]
        current = loaded(build)
        self.sessions = LiveFabric(current, names, clock=lambda: self.now[0])
        self.keeper = Keeper(self.sessions, Duties(damping=Damping(suppress=1e9)))
        datapaths = build.wiring.datapath_id.tolist()
        self.switches = [
            StandIn(number, ports[ports > 0].tolist())
            for number, ports in zip(datapaths, build.wiring.port, strict=True)
        ]
        for vertex, number in enumerate(datapaths):
            self.sessions.connected(vertex, number)
            self.run()
        assert self.sessions.complete

    def run(self):
        """Carry messages until there are none; which switches were sent any."""
        sent = set()
        while out := self.sessions.send.take():
            for one in out:
                sent.add(one.key)
                if one.key in self.hung:
                    continue
                answers, rest = self.switches[one.key].hear(bytes(one.data))
                assert not rest
                for answer in answers:
                    for message in answer:
                        self.sessions.received(one.key, message)
        return sent

    def tick(self, seconds):
        end = self.now[0] + seconds
        while self.now[0] < end:
            self.now[0] += 0.25
            self.sessions.tick()
            self.run()

    def says(self, vertex, link, up):
        """A port's end says that it is up or down: what that took, and who was sent something."""
        port = int(self.build.wiring.port[vertex, link])
        said = PORT_STATUS.pack(reason=PORT_MODIFIED, port=port, state=0 if up else PORT_DOWN)
        began = thread_time()
        self.sessions.received(vertex, of_message(MessageType.PORT_STATUS, 0, said))
        sent = self.run()
        return thread_time() - began, sent

    def repair(self, vertex, link):
        """A link goes down: what that took; and comes back."""
        before = self.keeper.repairs
        took, sent = self.says(vertex, link, up=False)
        assert self.keeper.repairs == before + 1, "in place without waiting"
        assert not self.keeper.rounds.busy
        assert len(sent - self.hung) > 1
        self.says(vertex, link, up=True)
        assert self.keeper.repairs == before + 2
        return took


def test_a_repair_takes_no_longer_beside_a_hung_switch():
    fabric = Fabric(replace(routed(q=5, protect="link"), identity="0123456789abcdef"))
    w = fabric.build.wiring
    hung = len(w.far) // 2
    ends = np.argwhere((w.far > np.arange(len(w.far))[:, None]) & (w.far != hung))
    ends = [(v, k) for v, k in ends[:: len(ends) // LINKS].tolist() if v != hung]

    def cost():
        return median(min(fabric.repair(*end) for _ in range(2)) for end in ends)

    quiet = cost()
    fabric.hung.add(hung)
    fabric.tick(PROBE_AFTER + SLOW_AFTER + 0.5)
    assert slow(fabric.sessions) == {hung}
    beside = cost()
    print(f"{1e3 * quiet:.1f} ms, beside a hung switch {1e3 * beside:.1f} ms")
    assert beside <= COSTS * quiet
