"""Connections without a framework: who counts as silent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from compilers.targets.openflow.protocol import FEATURES, MessageType, message
from controller.switches.connections.connection import datapath_class
from controller.switches.connections.sending import SEND_CHUNK_BYTES, SendPriority


class FrameworkDatapath:
    """Of the framework's class what ours uses."""

    def __init__(self, sock: socket.socket, _: object) -> None:
        self.socket, self.id, self.state, self.send_q = sock, 1, "main", True
        self.unreplied_echo_requests = [1, 2, 3]

    def set_state(self, state: str) -> None:
        self.state = state


@pytest.fixture
def pair() -> Iterator[tuple[Any, socket.socket]]:
    """A connection and its peer's socket; the hub's events are set, once."""
    event = dict.fromkeys(("wait", "set", "clear"), lambda: None) | {"is_set": lambda: True}
    names = "MAIN", "DEAD", "CONFIG"
    handler = SimpleNamespace(**{f"{name}_DISPATCHER": name.lower() for name in names})
    hub = SimpleNamespace(Event=lambda: SimpleNamespace(**event), sleep=lambda _: None)
    framework: Any = SimpleNamespace(hub=hub, handler=handler, datapath=FrameworkDatapath)
    states: list[str] = []
    said = {"changed": lambda one, **_: states.append(one.state), "put": lambda *_: None}
    can = {"of_build": lambda _: True, "full": lambda _: False}
    edge: Any = SimpleNamespace(silenced=False, **said, **can)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = datapath_class(framework, edge)(ours, ("127.0.0.1", 1))
        connection.told = states
        yield connection, theirs


def test_who_says_anything_is_not_silent(pair: tuple[Any, socket.socket]) -> None:
    """Not the echo reply alone counts: it may stand behind a large report."""
    connection, peer = pair
    peer.sendall(message(MessageType.PORT_STATUS, 0, bytes(72)))
    peer.shutdown(socket.SHUT_WR)
    connection._recv_loop()
    assert connection.unreplied_echo_requests == []


def test_who_says_nothing_is_silent(pair: tuple[Any, socket.socket]) -> None:
    connection, peer = pair
    peer.shutdown(socket.SHUT_WR)
    connection._recv_loop()
    assert connection.unreplied_echo_requests == [1, 2, 3]


@pytest.mark.parametrize(("rows", "left"), [(1, [1, 2, 3]), (2 * SEND_CHUNK_BYTES // 100, [])])
def test_who_still_takes_its_rows_is_not_silent(
    pair: tuple[Any, socket.socket], rows: int, left: list[int]
) -> None:
    """An echo request, or what fits into one chunk, tells nothing: the kernel has it."""
    connection, _ = pair
    connection.last = True
    connection.enqueue(SendPriority.BULK, message(MessageType.FLOW_MOD, 0, bytes(92)) * rows)
    connection._send_loop()
    assert not connection.queue
    assert connection.unreplied_echo_requests == left


def test_a_state_is_told_at_once_and_once(pair: tuple[Any, socket.socket]) -> None:
    """The framework's queue of events lets 128 wait, and whoever fills it is held up."""
    connection, peer = pair
    connection.state = "config"
    peer.sendall(message(MessageType.FEATURES_REPLY, 0, FEATURES.pack(datapath_id=7)))
    peer.shutdown(socket.SHUT_WR)
    connection._recv_loop()
    assert (connection.id, connection.told) == (7, ["main"])
    connection.end()
    connection.end()
    assert connection.told == ["main", "dead"]
