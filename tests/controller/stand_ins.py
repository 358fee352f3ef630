"""Thousands of stand-in switches in one process, over sockets: rows are bytes, never objects.

They hold what a controller gives them and say so when they are read: bundles, multipart requests,
barriers, echoes and port status, as the OpenFlow specification has them. They forward nothing.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

import numpy as np

from compilers.tables.build import Build
from compilers.targets.openflow import protocol
from compilers.targets.openflow.bundled_blocks import (
    ROW_KEY,
    entries,
    fields_at,
    in_other_layout,
    row_keys,
)
from compilers.targets.openflow.group_and_flow_bytes import BUNDLE
from compilers.targets.openflow.message_parts import Block, bundle_control
from compilers.targets.openflow.protocol import (
    AGGREGATE_STATS,
    BUNDLE_ADD,
    BUNDLE_CONTROL,
    BUNDLED,
    FEATURES,
    FLOW_MOD,
    FLOW_STATS,
    GROUP_DESC,
    GROUP_MOD,
    HEADER,
    MATCH,
    MORE_PARTS,
    MULTIPART,
    PORT,
    PORT_DOWN,
    PORT_MODIFIED,
    PORT_STATUS,
    WRAPPER_BYTES,
    Bundle,
    FlowCommand,
    GroupCommand,
    MessageType,
    Multipart,
    OnfMessage,
    WireLayout,
    header,
    message,
    padded,
)
from controller.openflow.messages import echo_reply

RECEIVED_AT_ONCE, PART_BYTES = 1 << 20, 60_000
CONNECTED_AT_ONCE = 256
"""New connections between two looks at those that are there."""
RETRY = 1.0
"""Seconds until a switch whose connection has ended tries again."""
INNER_TYPE = WRAPPER_BYTES + 1
FLOW_KEY = [2, 3, INNER_TYPE, 49, BUNDLED + FLOW_MOD.size - 1]
"""Bytes that are alike in flow-mods of one layout: length, type, command, length of the match."""
GROUP_KEY = [2, 3, INNER_TYPE, 33]
"""The same of group-mods, without a match."""
REPORTED = {
    *("table", "priority", "idle_timeout", "hard_timeout", "flags", "cookie", *MATCH.formats),
    *("type", "group"),
}
"""Members that a switch reports as they were given."""
DESCRIPTION = protocol.DESCRIPTION.pack(hardware=b"Open vSwitch")


@dataclass(slots=True)
class StandIn:
    """A switch: its ports, and its rows and groups as blocks of what it reports of them."""

    datapath_id: int
    ports: list[int]
    down: set[int] = field(default_factory=set)
    rows: list[Block] = field(default_factory=list)
    groups: list[Block] = field(default_factory=list)
    filling: list[Block] = field(default_factory=list)

    @property
    def held(self) -> int:
        """How many rows and groups."""
        return sum(map(len, self.rows)) + sum(map(len, self.groups))

    def hear(self, data: bytes) -> tuple[list[Iterator[bytes]], bytes]:
        """Take whole messages; returns the answers to them, and the bytes that are left."""
        place, answers = 0, []
        while len(data) - place >= HEADER.size:
            kind, length, _ = header(data, place)
            if len(data) - place < length:
                break
            if kind == MessageType.EXPERIMENTER and _adds(data, place):
                self.filling.append(block := _run(data, place, length))
                place += block.size
            else:
                answers.append(self._answer(data[place : place + length]))
                place += length
        return answers, data[place:]

    def _answer(self, data: bytes) -> Iterator[bytes]:
        """Do what a message asks, at once; only a report is made as it is read."""
        kind, _, xid = header(data)
        if kind == MessageType.FEATURES_REQUEST:
            body = FEATURES.pack(datapath_id=self.datapath_id, tables=254)
            return iter([message(MessageType.FEATURES_REPLY, xid, body)])
        if kind == MessageType.BARRIER_REQUEST:
            return iter([message(MessageType.BARRIER_REPLY, xid)])
        if kind == MessageType.ECHO_REQUEST:
            return iter([echo_reply(data)])
        if kind == MessageType.MULTIPART_REQUEST:
            return self._report(Multipart(MULTIPART.read(data, HEADER.size).kind), xid)
        if kind == MessageType.EXPERIMENTER:
            committed = BUNDLE_CONTROL.read(data, HEADER.size).request == Bundle.COMMIT
            if committed:
                self._commit()
            self.filling = []
            return iter([bundle_control(Bundle.COMMIT_REPLY, BUNDLE, xid)] * committed)
        return iter([])

    def _commit(self) -> None:
        fresh = not self.rows  # then no row of the bundle replaces another
        for block in self.filling:
            if block[0, INNER_TYPE] == MessageType.FLOW_MOD:
                self._flows(block, fresh)
            else:
                self._groups(block)

    def _flows(self, block: Block, fresh: bool) -> None:
        if not fresh:
            gone = set(row_keys(block))
            self.rows = [kept for old in self.rows if len(kept := _without(old, gone))]
        if fields_at(block, FLOW_MOD, BUNDLED)["command"][0] == FlowCommand.ADD:
            self.rows.append(_reported(block, FLOW_MOD, FLOW_STATS))

    def _groups(self, block: Block) -> None:
        numbers = fields_at(block, GROUP_MOD, BUNDLED)["group"]
        self.groups = [
            kept
            for old in self.groups
            if len(kept := old[~np.isin(fields_at(old, GROUP_DESC)["group"], numbers)])
        ]
        if fields_at(block, GROUP_MOD, BUNDLED)["command"][0] != GroupCommand.DELETE:
            self.groups.append(_reported(block, GROUP_MOD, GROUP_DESC))

    def _report(self, wanted: Multipart, xid: int) -> Iterator[bytes]:
        for block in {Multipart.FLOW: self.rows, Multipart.GROUP_DESC: self.groups}.get(wanted, ()):
            for place in range(0, len(block), each := PART_BYTES // block.shape[1]):
                yield _part(wanted, xid, block[place : place + each].tobytes(), MORE_PARTS)
        body = DESCRIPTION if wanted == Multipart.DESC else b""
        if wanted == Multipart.AGGREGATE:
            body = AGGREGATE_STATS.pack(flows=sum(map(len, self.rows)))
        if wanted == Multipart.PORT_DESC:
            described = np.zeros(len(self.ports), PORT.dtype)
            described["port"] = self.ports
            described["state"] = [port in self.down for port in self.ports]
            body = described.tobytes()
        yield _part(wanted, xid, body, 0)


def _part(wanted: Multipart, xid: int, body: bytes, flags: int) -> bytes:
    head = MULTIPART.pack(kind=wanted, flags=flags)
    return message(MessageType.MULTIPART_REPLY, xid, head + body)


def _without(block: Block, gone: set[bytes]) -> Block:
    """The rows of a block, as reported, that are not in these places."""
    match = int(fields_at(block[:1], FLOW_STATS)["match_length"][0])
    end = FLOW_STATS.size - MATCH.size + padded(match)
    places = entries(in_other_layout(block[:, :end], FLOW_STATS, ROW_KEY))
    return block[[place not in gone for place in places]]


def _reported(block: Block, layout: WireLayout, form: WireLayout) -> Block:
    """What is added, as the switch reports it."""
    said, rest = fields_at(block, layout, BUNDLED), block[:, BUNDLED + layout.size :]
    found = np.zeros((len(block), form.size + rest.shape[1]), np.uint8)
    head = fields_at(found, form)
    for name in REPORTED & form.formats.keys():
        head[name] = said[name]
    head["length"] = found.shape[1]
    found[:, form.size :] = rest
    return found


@dataclass(slots=True, eq=False)
class _Link:
    """A connection: bytes received, and what is to be said."""

    vertex: int
    socket: socket.socket
    heard: bytes = b""
    saying: deque[Iterator[bytes]] = field(default_factory=deque)
    rest: memoryview = field(default_factory=lambda: memoryview(b""))
    writes: bool = False


class StandIns:
    """All switches of a build, connected to a controller; one thread serves them."""

    def __init__(self, build: Build, address: tuple[str, int]) -> None:
        wiring = build.wiring
        self.build, self.address = build, address
        self.switches = [
            StandIn(number, ports[ports > 0].tolist())
            for number, ports in zip(wiring.datapath_id.tolist(), wiring.port, strict=True)
        ]
        self._poll = selectors.DefaultSelector()
        self._links: dict[int, _Link] = {}
        self._retry = [(0.0, vertex) for vertex in range(len(wiring.far))]

    @property
    def held(self) -> int:
        """How many rows and groups all hold."""
        return sum(switch.held for switch in self.switches)

    def serve(self, until: Callable[[], object], patience: float, every: float = 0.1) -> float:
        """Serve until something is so, looked at now and then; returns the seconds.

        Raises:
            TimeoutError: it is not so after `patience` seconds.
        """
        began = looked = time.monotonic()
        while True:
            now = time.monotonic()
            if now - looked >= every:
                looked = now
                if until():
                    return time.monotonic() - began
                if now - began > patience:
                    raise TimeoutError(f"not within {patience:g} s")
            wait = 0.0 if self._connect(now) else every
            for key, events in self._poll.select(wait):
                self._serve(key.data, events)

    def cable(self, vertex: int, link: int, up: bool) -> None:
        """Both ends of a cable come up or go down, and their switches say so."""
        w = self.build.wiring
        far, far_port = int(w.far[vertex, link]), int(w.far_port[vertex, link])
        for end, port in ((vertex, int(w.port[vertex, link])), (far, far_port)):
            (self.switches[end].down.discard if up else self.switches[end].down.add)(port)
            state = 0 if up else PORT_DOWN
            said = PORT_STATUS.pack(reason=PORT_MODIFIED, port=port, state=state)
            self._say(self._links[end], [message(MessageType.PORT_STATUS, 0, said)])

    def cut_off(self, vertices: Iterable[int], away: float = inf) -> None:
        """The connections of these switches end; they try again after so many seconds."""
        for vertex in vertices:
            self._end(self._links[vertex], away)

    def call_back(self) -> None:
        """Those that are cut off try again."""
        self._retry = [(0.0, vertex) for _, vertex in self._retry]

    def close(self) -> None:
        """End all connections."""
        for link in self._links.values():
            link.socket.close()
        self._poll.close()

    def _connect(self, now: float) -> bool:
        """Connect some of those that are not; whether others wait for it."""
        for _ in range(CONNECTED_AT_ONCE):
            if not self._retry or self._retry[0][0] > now:
                return False
            _, vertex = heappop(self._retry)
            try:
                connection = socket.create_connection(self.address)
            except OSError:
                heappush(self._retry, (now + RETRY, vertex))
                continue
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links[vertex] = link = _Link(vertex, connection)
            self._poll.register(connection, selectors.EVENT_READ, link)
            self._say(link, [message(MessageType.HELLO, 0)])
        return True

    def _serve(self, link: _Link, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._write(link)
            if events & selectors.EVENT_READ:
                data = link.socket.recv(RECEIVED_AT_ONCE)
                if not data:
                    raise ConnectionResetError
                answers, link.heard = self.switches[link.vertex].hear(link.heard + data)
                for answer in answers:
                    self._say(link, answer)
        except BlockingIOError:
            pass
        except OSError:
            self._end(link, RETRY)

    def _end(self, link: _Link, away: float) -> None:
        self._poll.unregister(link.socket)
        link.socket.close()
        del self._links[link.vertex]
        heappush(self._retry, (time.monotonic() + away, link.vertex))

    def _say(self, link: _Link, messages: Sequence[bytes] | Iterator[bytes]) -> None:
        link.saying.append(iter(messages))
        self._write(link)

    def _write(self, link: _Link) -> None:
        try:
            while link.rest or link.saying:
                if not link.rest:
                    link.rest = memoryview(next(link.saying[0], b""))
                    if not link.rest:
                        link.saying.popleft()
                        continue
                link.rest = link.rest[link.socket.send(link.rest) :]
        except BlockingIOError:
            self._listen(link, writes=True)
            return
        self._listen(link, writes=False)

    def _listen(self, link: _Link, writes: bool) -> None:
        if writes != link.writes:
            link.writes = writes
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
            self._poll.modify(link.socket, events, link)


def _adds(data: bytes, place: int) -> bool:
    """Whether the experimenter message there adds a message to a bundle."""
    found = BUNDLE_ADD.read(data, place + HEADER.size)
    return (found.experimenter, found.kind) == (protocol.ONF, OnfMessage.BUNDLE_ADD)


def _run(data: bytes, place: int, length: int) -> Block:
    """The bundle-adds of one layout that begin here, as many as are there as a whole."""
    most = (len(data) - place) // length
    whole = np.frombuffer(data, np.uint8, most * length, place).reshape(most, length)
    key = FLOW_KEY if whole[0, INNER_TYPE] == MessageType.FLOW_MOD else GROUP_KEY
    unlike = (whole[:, key] != whole[0, key]).any(axis=1)
    return whole[: int(unlike.argmax()) or most].copy()
