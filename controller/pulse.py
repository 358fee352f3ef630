"""The controller's pulse: steps of its loops under guard, and who is notified that it beats.

An exception in a step is an internal error: it is reported, counted and survived, since switches
forward on and the next step may succeed. Without a beat, a round of steps that all succeed, the
process ends.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from controller.switches.events import BugFound, Event

LOG = logging.getLogger("polarfab.controller")
"""Gets the tracebacks of internal errors."""
MOST_MISSED = 100
"""Looks without a beat after which the controller counts as dead: 10 s, as `server` looks. Looks
are counted and not seconds, because a long computation keeps the one who looks waiting, too."""
SICK_AFTER = 30
"""Looks without a beat after which health says so."""


@dataclass(slots=True)
class Pulse:
    """The pulse of a controller."""

    tell: Callable[[Event], None]
    """Takes events."""
    notify: Callable[[str], None] = field(default_factory=lambda: notifier(os.environ))
    """Takes messages for systemd."""
    bugs: int = 0
    """The number of exceptions that were our faults."""
    _missed: int = 0
    """The looks since the last beat."""
    _failed: bool = False
    """Whether a step of this round has failed."""
    _began: bool = False
    """Whether there was a beat."""
    _logged: str = ""
    """The last exception that was logged."""
    _threads: dict[str, Any] = field(default_factory=dict)
    """The green threads that have to live for a beat, by name."""

    @property
    def beats(self) -> bool:
        """Whether the last rounds of steps have succeeded."""
        return self._missed < SICK_AFTER

    def follow(self, name: str, thread: Any) -> None:
        """There is no beat any more once this green thread has ended."""
        self._threads[name] = thread

    def step(self, name: str, do: Callable[[], None]) -> None:
        """Take a step; an exception is reported and counted."""
        try:
            do()
        except Exception as error:
            self._failed = True
            self.bug(name, error)

    def bug(self, name: str, error: Exception) -> None:
        """An exception that is being handled: it is reported and counted, with a traceback in the
        log if it is another one than the last.
        """
        self.bugs += 1
        self.tell(BugFound(name, repr(error)))
        if repr(error) != self._logged:
            self._logged = repr(error)
            LOG.error("internal error in: %s", name, exc_info=error)

    def round(self) -> None:
        """A round of steps is over: a beat, if all have succeeded."""
        for name, thread in self._threads.items():
            self.step(name, partial(_require, not thread.dead, name))
        if not self._failed:
            self._missed = 0
            self.notify("WATCHDOG=1" if self._began else "READY=1")
            self._began = True
        self._failed = False

    def look(self) -> None:
        """The main thread looks, a few times a second.

        Raises:
            RuntimeError: there was no beat for too long; the process has to end.
        """
        self._missed += 1
        _require(self._missed < MOST_MISSED, "the loop that repairs and reports")


def _require(alive: bool, name: str) -> None:
    """Refuse to go on without a part that has stopped."""
    if not alive:
        raise RuntimeError(f"has stopped: {name}")


def notifier(environment: Any) -> Callable[[str], None]:
    """Sends messages to systemd (sd_notify), or nothing without NOTIFY_SOCKET."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return lambda _: None
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    sender.setblocking(False)
    path = "\0" + address[1:] if address.startswith("@") else address

    def notify(message: str) -> None:
        with suppress(OSError):
            sender.sendto(message.encode(), path)

    return notify
