"""Collectors: packets sent from every host to every other, and collected where they arrive.

Each collector (`ovsfabric`) is a bridge with the other ends of some hosts' ports.
A packet-out at a collector enters the fabric as if the host had sent it, and what the fabric
delivers to a host comes to us from its collector as a packet-in, with the port it came to.

Open vSwitch drops packet-ins when more than a hundred wait for a reader, and reads fifty messages
of a connection at a time. So each collector's packets go to each collector in turn, each starting
with another, and few of a collector's packets are on their way at once: nothing is dropped then.
"""

from __future__ import annotations

import selectors
import time
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import MessageType, message
from mininet_scenarios.ovs.frames import FrameWriter, HostPackets
from mininet_scenarios.ovs.management_socket import WHOLE_PACKETS, ManagementConnection, headers
from mininet_scenarios.ovs.openvswitch import DAEMON_PATIENCE, OpenVSwitchError, PrivateOvs
from mininet_scenarios.ovs.ovsfabric import COLLECTED, collector_name
from mininet_scenarios.scenario.engine import SILENT, Progress, hops_of

BATCH, ON_THEIR_WAY = 50, 100
"""Packet-outs sent at once by a connection, and how many of its packets may be under way."""
QUIET_SECONDS = 0.2
"""Seconds without any packet, after which the switch is asked whether it has done all."""

HOPS_BY_TTL = np.array([hops_of(ttl) for ttl in range(256)], np.int16)


class Collectors:
    """The collectors of so many hosts, on a running Open vSwitch."""

    def __init__(self, ovs: PrivateOvs, hosts: int) -> None:
        names = [collector_name(number) for number in range(-(-hosts // COLLECTED))]
        self.sockets, self.turn = [ovs.folder / f"{name}.mgmt" for name in names], 0
        for name in names:
            ovs.ofctl("add-flow", name, "priority=1,actions=controller:65535")

    def exchange(
        self, writer: FrameWriter, packets: HostPackets, progress: Progress
    ) -> NDArray[np.int16]:
        """Send the packets; int16[n], the links that each has crossed, SILENT where it was lost.

        A packet that comes to another host than it should is lost.

        Raises:
            OpenVSwitchError: Open vSwitch hung up or refused a packet.
        """
        self.turn += 1
        round_ = _Round(len(self.sockets), writer, packets, self.turn)
        with ExitStack() as stack:
            stack.enter_context(round_.selector)
            round_.connect(
                [stack.enter_context(ManagementConnection(path)) for path in self.sockets]
            )
            while round_.missing:
                sent = round_.send()
                heard = round_.receive()
                progress(len(packets) - round_.missing, len(packets))
                if not heard and not sent:
                    round_.settle()
                    if not any(map(len, round_.waiting)):
                        break
        return round_.hops


class _Round:
    """One exchange: what of each collector's packets is sent, and what has arrived."""

    def __init__(self, count: int, writer: FrameWriter, packets: HostPackets, turn: int) -> None:
        self.selector, self.connections = selectors.DefaultSelector(), list[ManagementConnection]()
        self.writer, self.turn = writer, turn
        self.hops = np.full(len(packets), SILENT, np.int16)
        self.missing = len(packets)
        here, there = packets.source // COLLECTED, packets.destination // COLLECTED
        after = (there - here) % count
        self.order = np.lexsort((packets.destination, packets.number, after, here))
        packets = packets[self.order]
        outs = writer.outs(packets, packets.source % COLLECTED + 1, turn)
        ends = np.searchsorted(here[self.order], np.arange(count + 1))
        self.waiting = [outs[first:last] for first, last in pairwise(ends)]
        self.on_their_way = np.zeros(count, np.int64)
        keys = _keys(packets.source, packets.destination, packets.number)
        self.by_key = np.argsort(keys)
        self.keys = keys[self.by_key]

    def connect(self, connections: list[ManagementConnection]) -> None:
        """Use these, one a collector; returns when all of them get what is collected."""
        self.connections = connections
        for number, connection in enumerate(connections):
            connection.outgoing += WHOLE_PACKETS
            self.selector.register(connection.socket, selectors.EVENT_READ, number)
        self.settle()

    def send(self) -> bool:
        """Send whatever may go on its way now; says whether there was anything."""
        sent = False
        for number, connection in enumerate(self.connections):
            waiting = self.waiting[number]
            if len(waiting) and self.on_their_way[number] + BATCH <= ON_THEIR_WAY:
                connection.outgoing += waiting[:BATCH].tobytes()
                self.waiting[number] = waiting[BATCH:]
                self.on_their_way[number] += min(BATCH, len(waiting))
                sent = True
            connection.flush()
        return sent

    def receive(self) -> dict[int, int]:
        """Note what has been collected: how many barrier replies came, by collectors heard of."""
        heard = {}
        for key, _ in self.selector.select(QUIET_SECONDS):
            data = self.connections[key.data].read()
            self._note(key.data, self.writer.ins(data))
            heard[key.data] = sum(kind == MessageType.BARRIER_REPLY for _, kind, _ in headers(data))
        return heard

    def settle(self) -> None:
        """Wait until the switch has done all that it was sent; what is missing then is lost.

        A collector hands over what it has collected before it reads its messages: after its second
        barrier nothing from before the first one is left.

        Raises:
            OpenVSwitchError: it does not answer.
        """
        for _ in range(2):
            unanswered, deadline = (
                set(range(len(self.connections))),
                time.monotonic() + DAEMON_PATIENCE,
            )
            for connection in self.connections:
                connection.outgoing += message(MessageType.BARRIER_REQUEST, 0)
            while unanswered:
                for connection in self.connections:
                    connection.flush()
                unanswered -= {number for number, replies in self.receive().items() if replies}
                if time.monotonic() > deadline:
                    raise OpenVSwitchError("a collector does not answer")
        self.on_their_way[:] = 0

    def _note(self, number: int, rows: NDArray[Any]) -> None:
        """Packets that a collector has collected."""
        rows = rows[rows["round"] == self.turn]
        sent_by = rows["source"].astype(np.int64) // COLLECTED
        self.on_their_way -= np.bincount(sent_by, minlength=len(self.on_their_way))
        rows = rows[
            number * COLLECTED + rows["in_port"].astype(np.int64) - 1 == rows["destination"]
        ]
        names = ("source", "destination", "number")
        keys = _keys(*(rows[name].astype(np.int64) for name in names))
        found = self.order[self.by_key[np.searchsorted(self.keys, keys)]]
        self.missing -= int(np.count_nonzero(self.hops[found] == SILENT))
        self.hops[found] = HOPS_BY_TTL[rows["ttl"]]


def _keys(
    source: NDArray[np.int64], destination: NDArray[np.int64], number: NDArray[np.int64]
) -> NDArray[np.int64]:
    return source << 42 | destination << 21 | number
