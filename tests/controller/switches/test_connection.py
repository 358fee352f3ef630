"""Connections without a framework: what is sent, and when."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from compilers.targets.openflow.protocol import MessageType, header, message
from controller.switches.connections.connection import HELLO, MESSAGES_A_CHECK, use_connections
from controller.switches.connections.sending import SEND_CHUNK_BYTES, SendPriority


class FrameworkDatapath:
    """Of the framework's class what ours uses."""

    def __init__(self, sock: socket.socket, _: object) -> None:
        self.socket, self.id, self.state, self.send_q = sock, 1, "main", True

    def set_state(self, state: str) -> None:
        self.state = state


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        return server.accept()[0], theirs


@pytest.fixture
def pair() -> Iterator[tuple[Any, socket.socket]]:
    """A connection and its peer's socket; threads are only noted."""
    spawned: list[Any] = []
    names = "MAIN", "DEAD", "CONFIG"
    handler = SimpleNamespace(**{f"{name}_DISPATCHER": name.lower() for name in names})
    hub = SimpleNamespace(spawn=lambda do: spawned.append(do) or do, sleep=lambda _: None)
    framework: Any = SimpleNamespace(
        hub=hub, handler=handler, datapath=FrameworkDatapath, controller=SimpleNamespace()
    )
    states: list[str] = []

    def note(one: Any) -> None:
        states.append(one.state)

    said = {"note_named": note, "note_ended": note, "put": lambda *_: None}
    can = {
        "is_of_build": lambda _: True,
        "must_pause": lambda _: False,
        "note_unsent": lambda _: None,
    }
    can["bears"] = lambda *_: True
    edge: Any = SimpleNamespace(is_silenced=False, **said, **can)
    ours, theirs = tcp_pair()
    with ours, theirs:
        connection = use_connections(framework, edge)(ours, ("127.0.0.1", 1))
        connection.told, connection.spawned = states, spawned
        yield connection, theirs


def bulk(messages: int) -> bytes:
    return message(MessageType.FLOW_MOD, 0, bytes(92)) * messages


def received(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := peer.recv(1 << 16)):
        data += part
    return data


def test_what_the_socket_takes_is_sent_at_once(pair: tuple[Any, socket.socket]) -> None:
    connection, peer = pair
    connection.socket.setblocking(False)
    connection.socket = SimpleNamespace(fd=connection.socket)
    connection.enqueue(SendPriority.BULK, bulk(2))
    connection.enqueue(SendPriority.URGENT, HELLO)
    connection.flush()
    assert received(peer, 208) == HELLO + bulk(2)
    assert connection.spawned == []


def test_what_the_socket_does_not_take_goes_on_where_it_stopped(
    pair: tuple[Any, socket.socket],
) -> None:
    """In a thread, and what is urgent meanwhile does not go into the middle of a message."""
    connection, peer = pair
    ours, rows = connection.socket, bulk(20 * SEND_CHUNK_BYTES // 100)
    ours.setblocking(False)
    connection.socket = SimpleNamespace(fd=ours)
    connection.enqueue(SendPriority.BULK, rows)
    connection.flush()
    (send_on,) = connection.spawned
    connection.enqueue(SendPriority.URGENT, HELLO)
    connection.flush()
    ours.setblocking(True)
    connection.socket = ours
    with ThreadPoolExecutor() as pool:
        said = pool.submit(received, peer, len(rows) + len(HELLO))
        send_on()
        data = said.result()
    assert len(data) == len(rows) + len(HELLO)
    place, kinds = 0, []
    while place < len(data):
        kind, length, _ = header(data, place)
        kinds.append(kind)
        place += length
    assert kinds.count(MessageType.HELLO) == 1
    assert connection.sender is None, "the next one sends at once again"


def test_a_peer_that_reads_nothing_loses_its_connection(pair: tuple[Any, socket.socket]) -> None:
    """Nobody else ends it if it is no switch of the build."""
    connection, _ = pair
    connection.socket.settimeout(0.05)
    connection.enqueue(SendPriority.BULK, bulk(1 << 17))
    connection.flush()
    (send_on,) = connection.spawned
    send_on()
    assert (connection.told, connection.send_q) == (["dead"], None)
    assert connection.socket.recv(1) == b"", "its receiver wakes"


def test_a_stranger_that_talks_too_much_is_ended(pair: tuple[Any, socket.socket]) -> None:
    """A thousand that asked for echoes had a repair take 51 s, and switches leave."""
    connection, peer = pair
    looks: list[int] = []
    ended: list[str] = []
    connection.inbox.accepts = lambda _, messages: looks.append(messages) or len(looks) < 3
    connection.inbox.report_malformed = lambda _, text: ended.append(text)
    peer.sendall(message(MessageType.ECHO_REQUEST, 7) * 64)
    connection.serve()
    assert looks == [MESSAGES_A_CHECK] * 3
    assert ended == ["too many messages of peers that are no switches of the build"]
    assert connection.told[-1] == "dead"


@pytest.mark.parametrize(
    "said",
    [
        message(MessageType.MULTIPART_REPLY, 7, bytes(65_000)),
        message(MessageType.MULTIPART_REPLY, 7, bytes(8)),
        message(MessageType.HELLO, 7, bytes(1000)),
        message(MessageType.ECHO_REQUEST, 7, bytes(1000)),
        message(99, 7),
    ],
    ids=["long-reply", "reply", "long-hello", "long-echo", "unknown"],
)
def test_the_framework_reads_only_the_handshake_of_a_peer_without_a_name(
    pair: tuple[Any, socket.socket], said: bytes
) -> None:
    """Twenty peers with 64 KB of match fields, a second each, held a repair for 44 s."""
    connection, peer = pair
    connection.id, connection.state = None, "handshake"
    read: list[int] = []
    ended: list[str] = []
    parser = SimpleNamespace(msg=lambda _, __, kind, *___: read.append(kind) or kind)
    events = SimpleNamespace(ofp_msg_to_ev=lambda parsed: parsed)
    brick = SimpleNamespace(send_event_to_observers=lambda *_: None, get_handlers=lambda *_: [])
    connection.framework.parser, connection.framework.ofp_event = parser, events
    connection.ofp_brick = brick
    connection.inbox.report_malformed = lambda _, text: ended.append(text)
    told = message(MessageType.PACKET_IN, 0, bytes(65_000))
    peer.sendall(HELLO + told + message(MessageType.ERROR, 1, bytes(76)) + said + HELLO)
    connection.serve()
    assert read == [MessageType.HELLO, MessageType.ERROR]
    assert len(ended) == 1
    assert connection.told[-1] == "dead"
