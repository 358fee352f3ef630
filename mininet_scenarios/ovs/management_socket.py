"""OpenFlow 1.3 by the management socket of each bridge, which is not the controller's.

Such a connection disturbs no controller and is disturbed by none: it never becomes master, and it
gets packet-ins only when it asks for them. Many connections are served at once, in one thread. By
them the packet counters of ports and of every rule are read: flows and buckets of groups.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import (
    REPORTED_ROW,
    ROW_ENTRY_BYTES,
    columns,
    entries,
    read_row,
    reported_rows,
    runs,
)
from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.message_parts import output
from compilers.targets.openflow.protocol import (
    ANY,
    BUCKET_COUNTER,
    GROUP_STATS,
    HEADER,
    LOCAL,
    PACKET_OUT,
    PORT_STATS,
    SET_CONFIG,
    WHOLE_PACKET,
    MessageType,
    Multipart,
    header,
    message,
)
from compilers.wiring.wiring import Wiring
from controller.openflow import messages as openflow
from controller.openflow import multipart
from controller.switches.reconcile import held
from mininet_scenarios.ovs.openvswitch import DAEMON_PATIENCE, OpenVSwitchError

SOCKET_READ_BYTES = 1 << 20
WHOLE_PACKETS = message(MessageType.SET_CONFIG, 0, SET_CONFIG.pack(most_bytes=WHOLE_PACKET))
"""Asks for packet-ins with all of the packet; Open vSwitch has no packet buffers."""


class ManagementConnection:
    """A connection to the management socket of a bridge; `outgoing` is what waits to be sent.

    Open vSwitch waits a second for our greeting, so that goes at once.
    """

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.sendall(message(MessageType.HELLO, 0))
        self.socket.setblocking(False)
        self.outgoing = bytearray()
        self.incoming = bytearray()

    def flush(self) -> None:
        """Send as much of `outgoing` as the switch takes now."""
        while self.outgoing:
            try:
                sent = self.socket.send(self.outgoing)
            except BlockingIOError:
                return
            del self.outgoing[:sent]

    def read(self) -> list[tuple[int, bytes]]:
        """Whole messages that have arrived, with their types; echo requests are answered, too.

        Raises:
            OpenVSwitchError: the switch has hung up, or sent an error.
        """
        try:
            data = self.socket.recv(SOCKET_READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise OpenVSwitchError("Open vSwitch hung up a management connection")
        self.incoming += data
        arrived, start = list[tuple[int, bytes]](), 0
        while start + HEADER.size <= len(self.incoming):
            kind, length, _ = header(self.incoming, start)
            if start + length > len(self.incoming):
                break
            whole = bytes(self.incoming[start : start + length])
            start += length
            if kind == MessageType.ECHO_REQUEST:
                self.outgoing += openflow.echo_reply(whole)
            if kind == MessageType.ERROR:
                error = openflow.Error.read(whole)
                raise OpenVSwitchError(f"OpenFlow error of type {error.type}, code {error.code}")
            arrived.append((kind, whole))
        del self.incoming[:start]
        return arrived


def messages(
    connections: Sequence[ManagementConnection], patience: float
) -> list[tuple[int, int, bytes]]:
    """Send what waits; messages that come first within so many seconds: whose, their type, whole.

    Raises:
        OpenVSwitchError: a switch has hung up, or sent an error.
    """
    received = []
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            connection.flush()
            events = selectors.EVENT_READ
            if connection.outgoing:
                events |= selectors.EVENT_WRITE
            selector.register(connection.socket, events, number)
        for key, events in selector.select(patience):
            if events & selectors.EVENT_READ:
                received += [
                    (key.data, *typed_message) for typed_message in connections[key.data].read()
                ]
    return received


def settle(
    connections: Sequence[ManagementConnection], barriers: int = 2
) -> list[tuple[int, int, bytes]]:
    """Send all that waits; the messages that come until all of it has been done.

    A bridge hands over packet-ins before it reads its messages: after its second barrier nothing
    from before the first one is left. Replies are there after one.

    Raises:
        OpenVSwitchError: one does not answer.
    """
    received: list[tuple[int, int, bytes]] = []
    for _ in range(barriers):
        unanswered, deadline = len(connections), time.monotonic() + DAEMON_PATIENCE
        for connection in connections:
            connection.outgoing += message(MessageType.BARRIER_REQUEST, 0)
        while unanswered:
            heard = messages(connections, 1)
            unanswered -= sum(kind == MessageType.BARRIER_REPLY for _, kind, _ in heard)
            received += heard
            if time.monotonic() > deadline:
                raise OpenVSwitchError(f"{unanswered} bridges do not answer")
    return received


def frame_out(data: bytes, port: int, in_port: int = LOCAL) -> bytes:
    """A packet-out: the frame leaves by a port, or goes through the tables (`TABLES`)."""
    action = b"".join(part for part in output(port) if isinstance(part, bytes))
    head = PACKET_OUT.pack(buffer=ANY, in_port=in_port, actions_length=len(action))
    return message(MessageType.PACKET_OUT, 0, head + action + data)


def sent_by_port(
    folder: Path, bridges: Mapping[str, int], wiring: Wiring, what: str = "packets"
) -> NDArray[np.int64]:
    """int64[S, ports + 1]: packets, or bytes, that have left each switch by its cabled ports.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: the switch that each bridge is.
        wiring: has the ports.
        what: `packets` or `bytes`.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    cables = wiring.cables()
    sent = np.zeros(cables.shape, np.int64)
    bodies = replies(folder, bridges, Multipart.PORT_STATS, multipart.ports_wanted())
    for bridge, body in bodies.items():
        rows = multipart.records(body, PORT_STATS)
        rows = rows[rows["port"] < cables.shape[1]]
        sent[bridges[bridge], rows["port"]] = rows[f"sent_{what}"]
    sent[cables < 0] = 0
    return sent


def replies(
    folder: Path, bridges: Iterable[str], kind: Multipart, wanted: bytes = b""
) -> dict[str, bytes]:
    """The body of each bridge's reply to a multipart request.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    names, request = list(bridges), multipart.request(kind, 0, wanted)
    connections = [ManagementConnection(folder / f"{bridge}.mgmt") for bridge in names]
    for connection in connections:
        connection.outgoing += request
    bodies = [bytearray() for _ in names]
    for number, answer, data in settle(connections, barriers=1):
        if answer == MessageType.MULTIPART_REPLY:
            bodies[number] += multipart.part(data)[1]
    for connection in connections:
        connection.socket.close()
    return dict(zip(names, map(bytes, bodies), strict=True))


RuleKey = tuple[int, tuple[object, ...]]
"""A switch, and `Rule.key`."""


def packets_by_rule(folder: Path, bridges: Mapping[str, int]) -> dict[RuleKey, int]:
    """Packets since it was added, of each flow and each bucket.

    Args:
        folder: of Open vSwitch's sockets.
        bridges: the switch that each bridge is.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    counted: dict[RuleKey, int] = {}
    for bridge, body in replies(folder, bridges, Multipart.FLOW, multipart.flows_wanted()).items():
        for block in runs(body, ROW_ENTRY_BYTES):
            packets = columns(block, REPORTED_ROW)["packets"].tolist()
            for row, count in zip(entries(reported_rows(block)), packets, strict=True):
                counted[bridges[bridge], _place(row)] = count
    wanted = multipart.groups_wanted()
    for bridge, body in replies(folder, bridges, Multipart.GROUP, wanted).items():
        for block in runs(body, GROUP_STATS.size):
            numbers = heads(block, GROUP_STATS)["group"].tolist()
            buckets = np.ascontiguousarray(block[:, GROUP_STATS.size :]).view(BUCKET_COUNTER.dtype)
            for number, row in zip(numbers, buckets["packets"].tolist(), strict=True):
                for bucket, count in enumerate(row):
                    counted[bridges[bridge], (number, bucket)] = count
    return counted


def generations(folder: Path, bridges: Mapping[str, int]) -> dict[int, int]:
    """The generation of the class and group numbers in each switch, by its marker.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    bodies = replies(folder, bridges, Multipart.FLOW, multipart.flows_wanted())
    return {bridges[name]: generation_of(held(body, b"").marker) for name, body in bodies.items()}


@cache
def _place(row: bytes) -> tuple[object, ...]:
    """The place of a row; cached, as the same rows are read again and again."""
    return read_row(row).place
