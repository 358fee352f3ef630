"""A port-status message from socket to socket: the functions that hand it on, by their stacks.

They are those of the list in docs/architecture.md, and no more than ten.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compilers.targets.openflow.protocol import PORT_MODIFIED, PORT_STATUS, MessageType, message
from controller.app import Inbox
from controller.switches.connections.connection import use
from controller.switches.connections.sending import Outbox, SendQueue
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from tests.compilers.fabrics import polarfly_build
from tests.controller.makers import loaded
from tests.controller.switches.conforming_fabric import InMemory
from tests.controller.switches.test_connection import FrameworkDatapath, tcp_pair

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
MOST = 10


class Over(Exception):
    """The inbox has nothing more to handle."""


class Once:
    """An event of a hub that has no threads: set once, it lets one turn pass."""

    def __init__(self) -> None:
        self.there = False

    def is_set(self) -> bool:
        return self.there

    def set(self) -> None:
        self.there = True

    def clear(self) -> None:
        self.there = False

    def wait(self) -> None:
        if not self.there:
            raise Over


def stack() -> list[str]:
    """The functions of the controller that are on the stack now, the outermost first."""
    found, frame = [], sys._getframe(2)
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(ROOT / "controller"):
            found.append(frame.f_code.co_qualname.rpartition("<locals>.")[2])
        frame = frame.f_back
    return found[::-1]


def test_ten_functions_that_a_reader_can_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    build = replace(polarfly_build(3), identity="0123456789abcdef")
    now, words, outbox, path = [0.0], lambda *_: ("", ""), Outbox(), list[str]()
    fabric = LiveFabric(loaded(build), words, clock=lambda: now[0], send=outbox)
    keeper = Keeper(fabric)
    InMemory(build, fabric, now).connect()
    assert fabric.complete

    # One switch has a real socket from now on.
    event = SimpleNamespace(Event=Once, sleep=lambda _: None, spawn=lambda _: None)
    names = "MAIN", "DEAD", "CONFIG"
    handler = SimpleNamespace(**{f"{name}_DISPATCHER": name.lower() for name in names})
    framework: Any = SimpleNamespace(
        hub=event, handler=handler, datapath=FrameworkDatapath, controller=SimpleNamespace()
    )
    controller = SimpleNamespace(fabric=fabric, member=None, entrance=None)
    controller.pulse = SimpleNamespace(bug=lambda _, error: (_ for _ in ()).throw(error))
    inbox = Inbox(event, controller)  # type: ignore[arg-type] # the parts that it uses
    ours, theirs = tcp_pair()
    with ours, theirs:
        datapath = use(framework, inbox)(ours, ("127.0.0.1", 1))
        datapath.id, vertex = int(build.wiring.datapath_id[0]), 0
        switch = fabric.present[vertex]
        fabric._switches[datapath] = fabric._switches.pop(switch.key)
        switch.key, switch.talk.send = datapath, lambda *out: datapath.enqueue(*out)

        def note(call: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*args: Any) -> Any:
                path.extend(name for name in stack() if name not in path)
                return call(*args)

            return noted

        monkeypatch.setattr(inbox, "_count", note(inbox._count))
        monkeypatch.setattr(SendQueue, "put", note(SendQueue.put))
        monkeypatch.setattr(SendQueue, "take", note(SendQueue.take))
        said = PORT_STATUS.pack(reason=PORT_MODIFIED, port=int(build.wiring.port[0, 0]), state=1)
        theirs.sendall(message(MessageType.PORT_STATUS, 0, said))
        theirs.shutdown(socket.SHUT_WR)
        datapath._recv_loop()
        out, end = socket.socketpair()
        with out, end:
            datapath.socket = SimpleNamespace(fd=out)
            with pytest.raises(Over):
                inbox.work()
            assert end.recv(1 << 16)
        assert keeper.dead.any()
    assert len(path) <= MOST, path
    listed = re.findall(r"^\d+\. `([\w.]+)`", PAGE.read_text(), re.M)
    assert [name.rpartition(".")[2] for name in listed] == [
        name.rpartition(".")[2] for name in path
    ]
