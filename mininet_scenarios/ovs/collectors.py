"""Collectors: packets sent from every host to every other, and collected where they arrive.

Each collector (`ovsfabric`) is a bridge with the other ends of some hosts' ports.
A packet-out at a collector enters the fabric as if the host had sent it, and what the fabric
delivers to a host comes to us from its collector as a packet-in, with the port it came to.

Open vSwitch drops packet-ins when more than a hundred wait for a reader, and reads fifty messages
of a connection at a time. So each collector's packets go to each collector in turn, each starting
with another, and few of a collector's packets are on their way at once: nothing is dropped then.
"""

from __future__ import annotations

import base64
import io
import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.message_parts import output
from compilers.targets.openflow.protocol import (
    ANY,
    LOCAL,
    PACKET_OUT,
    MessageType,
    message,
)
from controller.openflow.messages import packet_in
from mininet_scenarios.ovs.frames import FrameWriter, HostFrame, HostPackets
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


Awaited = Callable[[HostFrame], bool]
"""Whether a frame that a host gets is one of those that are waited for."""
WAVE = 32
"""Frames sent at once: Open vSwitch drops packet-ins when more than a hundred wait."""
STILL = 0.1
"""Seconds without any frame after which the next are sent."""
BARRIER_POLL = 0.1


def frame_out(data: bytes, port: int, in_port: int = LOCAL) -> bytes:
    """A packet-out: the frame leaves by a port, or goes through the tables (`TABLES`)."""
    action = b"".join(part for part in output(port) if isinstance(part, bytes))
    head = PACKET_OUT.pack(buffer=ANY, in_port=in_port, actions_length=len(action))
    return message(MessageType.PACKET_OUT, 0, head + action + data)


class CollectorFrames:
    """Exchanges frames over the collectors' management sockets; hosts in the collectors' order."""

    def __init__(self, sockets: Sequence[Path], hosts: Sequence[str]) -> None:
        self.hosts, self.number = hosts, {name: i for i, name in enumerate(hosts)}
        self.connections = [ManagementConnection(path) for path in sockets]
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS

    def close(self) -> None:
        """Hang up."""
        for connection in self.connections:
            connection.socket.close()

    def exchange(
        self, frames: Sequence[HostFrame], awaited: Awaited, answers: int, patience: float
    ) -> list[HostFrame]:
        """Send each frame from its host; what hosts get until so many awaited ones have come.

        One that comes twice, as it was sent again, counts once.

        patience: seconds without any frame after which it ends, too.

        Raises:
            OpenVSwitchError: Open vSwitch refused a frame, or does not answer.
        """
        heard: list[HostFrame] = []
        for first in range(0, len(frames), WAVE):
            for name, data in frames[first : first + WAVE]:
                collector, host = divmod(self.number[name], COLLECTED)
                self.connections[collector].outgoing += frame_out(data, host + 1)
            heard += self._heard(settled(self.connections))
        came = set(filter(awaited, heard))
        while len(came) < answers and (more := self._heard(_waiting(self.connections, patience))):
            heard += more
            came.update(filter(awaited, more))
        return heard

    def _heard(self, packets: list[tuple[int, bytes]]) -> list[HostFrame]:
        """Packet-ins of collectors, by the hosts that they are for."""
        return [
            (self.hosts[number * COLLECTED + port - 1], bytes(data))
            for number, packet in packets
            for port, data in [packet_in(packet)]
        ]


def settled(connections: Sequence[ManagementConnection]) -> list[tuple[int, bytes]]:
    """Send all that waits, and a barrier; packet-ins until all have answered, with their sender.

    Raises:
        OpenVSwitchError: one does not answer.
    """
    found: list[tuple[int, bytes]] = []
    unanswered, deadline = len(connections), time.monotonic() + DAEMON_PATIENCE
    for connection in connections:
        connection.outgoing += message(MessageType.BARRIER_REQUEST, 0)
    while unanswered:
        heard = _messages(connections, BARRIER_POLL)
        unanswered -= sum(kind == MessageType.BARRIER_REPLY for _, kind, _ in heard)
        found += _packets(heard)
        if time.monotonic() > deadline:
            raise OpenVSwitchError(f"{unanswered} bridges do not answer")
    return found


def _waiting(
    connections: Sequence[ManagementConnection], patience: float
) -> list[tuple[int, bytes]]:
    """Packet-ins that come within so many seconds."""
    return _packets(_messages(connections, patience))


def _packets(heard: list[tuple[int, int, bytes]]) -> list[tuple[int, bytes]]:
    return [(number, data) for number, kind, data in heard if kind == MessageType.PACKET_IN]


def _messages(
    connections: Sequence[ManagementConnection], patience: float
) -> list[tuple[int, int, bytes]]:
    """Messages that come within so many seconds: which connection's, their type, and whole."""
    found = []
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            connection.flush()
            events = selectors.EVENT_READ | selectors.EVENT_WRITE * bool(connection.outgoing)
            selector.register(connection.socket, events, number)
        for key, events in selector.select(patience):
            if events & selectors.EVENT_READ:
                data = connections[key.data].read()
                found += [(key.data, k, data[at : at + size]) for at, k, size in headers(data)]
    return found


TURN_XID = 0
"""The round that a probe's packets say they are of; those of exchanges begin with 1."""
FABRIC_LATE = 1.0
"""Seconds after which a packet that has not come is lost."""


class FabricProbe(Thread):
    """Sends a packet over each pair of hosts (int64[n, 2]) every `interval` seconds."""

    def __init__(
        self,
        sockets: Sequence[Path],
        writer: FrameWriter,
        pairs: NDArray[np.int64],
        interval: float,
    ) -> None:
        super().__init__(daemon=True)
        self.writer, self.pairs, self.interval = writer, pairs, interval
        self.connections = [ManagementConnection(path) for path in sockets]
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS
            connection.flush()
        self.pair_of = {pair: number for number, pair in enumerate(map(tuple, pairs.tolist()))}
        self.sent: list[float] = []
        self.heard: dict[tuple[int, int], tuple[float, int]] = {}
        self.over, self.failure = Event(), ""

    def run(self) -> None:
        """Until `stop`, and then until the last packets are there or late."""
        with selectors.DefaultSelector() as selector:
            for number, connection in enumerate(self.connections):
                selector.register(connection.socket, selectors.EVENT_READ, number)
            begin = time.monotonic()
            try:
                while not self.over.is_set():
                    due = begin + len(self.sent) * self.interval
                    if time.monotonic() >= due:
                        self._send()
                    self._hear(selector, max(0.0, min(due - time.monotonic(), FABRIC_LATE)))
                end = time.monotonic() + FABRIC_LATE
                every = len(self.sent) * len(self.pairs)
                while len(self.heard) < every and (left := end - time.monotonic()) > 0:
                    self._hear(selector, left)
            except OpenVSwitchError as error:
                self.failure = str(error)

    def stop(self) -> str:
        """What it saw, as `probing.decode` takes it.

        Raises:
            OpenVSwitchError: Open vSwitch hung up meanwhile.
        """
        self.over.set()
        self.join()
        for connection in self.connections:
            connection.socket.close()
        if self.failure:
            raise OpenVSwitchError(self.failure)
        rounds, pairs = len(self.sent), len(self.pairs)
        received, hops = (
            np.full((rounds, pairs), np.nan),
            np.full((rounds, pairs), SILENT, np.int16),
        )
        for (sequence, pair), (at, links) in self.heard.items():
            received[sequence, pair], hops[sequence, pair] = at, links
        out = io.BytesIO()
        np.savez(
            out,
            pair=np.tile(np.arange(pairs, dtype=np.int32), rounds),
            sequence=np.repeat(np.arange(rounds, dtype=np.int32), pairs),
            sent=np.repeat(np.array(self.sent, np.float64), pairs),
            received=received.ravel(),
            hops=hops.ravel(),
        )
        return base64.b64encode(out.getvalue()).decode()

    def _send(self) -> None:
        source, destination = self.pairs.T
        numbers = np.full(len(source), len(self.sent), np.int64)
        outs = self.writer.outs(
            HostPackets(source, destination, numbers), source % COLLECTED + 1, TURN_XID
        )
        self.sent.append(time.monotonic())
        for number, connection in enumerate(self.connections):
            connection.outgoing += outs[source // COLLECTED == number].tobytes()
            connection.flush()

    def _hear(self, selector: selectors.BaseSelector, patience: float) -> None:
        for key, _ in selector.select(patience):
            connection = self.connections[key.data]
            rows = self.writer.ins(connection.read())
            connection.flush()
            now = time.monotonic()
            for row in rows[rows["round"] == TURN_XID]:
                destination = int(row["destination"])
                if key.data * COLLECTED + int(row["in_port"]) - 1 == destination:
                    pair = self.pair_of[int(row["source"]), destination]
                    arrived = now, hops_of(int(row["ttl"]))
                    self.heard.setdefault((int(row["number"]), pair), arrived)
