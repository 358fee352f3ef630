"""Who wants to know of switches: handlers by kind of message, for comings and goings, for time.

What is no answer to a question of ours (port status, packet-in, …) is given to the handlers of its
kind. A handler takes the vertex and the whole message; what it wants to say to a switch goes
through the fabric. An exception of a handler is a bug of ours and not the switch's fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compilers.targets.openflow.protocol import MessageType

Handler = Callable[[int, bytes], None]
Adopt = Callable[[Any], Any]
"""Takes the build that is being loaded (`Current`), and gives it or another."""
Presence = Callable[[int, bool], None]
"""Takes a vertex, and whether its switch has just been found in sync, or has just left."""


@dataclass(slots=True)
class Hooks:
    """The handlers, called in the order in which they were registered."""

    _handlers: dict[int, list[Handler]] = field(default_factory=dict)
    _presence: list[Presence] = field(default_factory=list)
    _ports: list[Handler] = field(default_factory=list)
    _ticks: list[Callable[[], None]] = field(default_factory=list)
    _loads: list[Adopt] = field(default_factory=list)

    def on(self, kind: MessageType, handler: Handler) -> None:
        """Have the messages of a kind."""
        self._handlers.setdefault(kind, []).append(handler)

    def on_presence(self, handler: Presence) -> None:
        """Be told of switches that are in sync, and of those that leave."""
        self._presence.append(handler)

    def on_ports(self, handler: Handler) -> None:
        """Have the ports (`ofp_port`, one after the other) of switches before they are read."""
        self._ports.append(handler)

    def on_tick(self, handler: Callable[[], None]) -> None:
        """Be called a few times a second."""
        self._ticks.append(handler)

    def on_load(self, adopt: Adopt) -> None:
        """Have a say in what is loaded, before switches are read."""
        self._loads.append(adopt)

    def message(self, kind: int, vertex: int, message: bytes) -> None:
        """A switch has sent this."""
        for handler in self._handlers.get(kind, ()):
            handler(vertex, message)

    def ports(self, vertex: int, described: bytes) -> None:
        """A switch has described its ports."""
        for handler in self._ports:
            handler(vertex, described)

    def present(self, vertex: int, up: bool) -> None:
        """A switch is in sync, or has left."""
        for handler in self._presence:
            handler(vertex, up)

    def tick(self) -> None:
        """Time passes."""
        for handler in self._ticks:
            handler()

    def loaded(self, current: Any) -> Any:
        """A build is being loaded; returns what is to be."""
        for adopt in self._loads:
            current = adopt(current)
        return current
