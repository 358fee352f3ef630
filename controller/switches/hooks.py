"""Hooks: handlers for messages by type, for switches that come and go, for loads and for ticks.

A message that answers no request of ours (port status, packet-in, …) goes to the handlers of its
type. A handler takes the vertex and the whole message, and answers through the fabric. An exception
in a handler is a bug of ours and not the switch's fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compilers.targets.openflow.protocol import MessageType

Handler = Callable[[int, bytes], None]
Adopt = Callable[[Any], Any]
"""Takes the build that is being loaded (`Current`); returns it or a replacement."""
Presence = Callable[[int, bool], None]
"""Takes a vertex, and True if its switch is now in sync or False if it has left."""


@dataclass(slots=True)
class Hooks:
    """The handlers, called in the order in which they were registered."""

    _handlers: dict[int, list[Handler]] = field(default_factory=dict)
    _presence: list[Presence] = field(default_factory=list)
    _ports: list[Handler] = field(default_factory=list)
    _ticks: list[Callable[[], None]] = field(default_factory=list)
    _loads: list[Adopt] = field(default_factory=list)

    def on(self, kind: MessageType, handler: Handler) -> None:
        """Register a handler for one type of message."""
        self._handlers.setdefault(kind, []).append(handler)

    def on_presence(self, handler: Presence) -> None:
        """Register a handler for switches that come into sync or leave."""
        self._presence.append(handler)

    def on_ports(self, handler: Handler) -> None:
        """Register a handler for port descriptions (`ofp_port`), called before rows are read."""
        self._ports.append(handler)

    def on_tick(self, handler: Callable[[], None]) -> None:
        """Register a handler that is called a few times a second."""
        self._ticks.append(handler)

    def on_load(self, adopt: Adopt) -> None:
        """Register a handler that may replace a build being loaded, before switches are read."""
        self._loads.append(adopt)

    def message(self, kind: int, vertex: int, message: bytes) -> None:
        """A switch has sent this message."""
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
        """Time passes; one that fails does not keep the others from their work.

        Raises:
            ExceptionGroup: what has failed.
        """
        failed = []
        for handler in self._ticks:
            try:
                handler()
            except Exception as error:
                failed.append(error)
        if failed:
            raise ExceptionGroup("; ".join(map(repr, failed)), failed)

    def loaded(self, current: Any) -> Any:
        """A build is being loaded; returns the build to load."""
        for adopt in self._loads:
            current = adopt(current)
        return current
