"""The controller's watchdog: it guards the steps of the loops, and ends a process that hangs.

`controller.composition` runs each step of the controller through `Watchdog.step`. An exception in a
step is an internal error: it is reported and counted, and the controller goes on, since switches
forward all the same and the next step may succeed. A round in which all steps succeed is a
heartbeat, of which systemd is notified. The main thread checks a few times a second, and ends the
process after `MOST_MISSED` checks without a heartbeat.

The main thread may hang itself, so a second thread guards its checks (`Watchdog.guard_checks`): it
looks once in `GUARD_PERIOD` whether the main thread has checked since, and ends the process if that
was not so for `MOST_IDLE_LOOKS` looks in a row.
"""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread, get_ident
from typing import Any

from controller.printer import to_errors
from controller.switches.events import BugFound, Event

MOST_MISSED = 100
"""Checks without a heartbeat until the process ends: 10 s, as `controller.app` checks. Checks are
counted, not seconds, because a long computation delays the checker too."""
GUARD_PERIOD = 1.0
"""Seconds between two looks of the thread that guards the checks."""
IDLE_SHARE = 0.01
"""The share of the time between two looks that a thread may compute and yet count as held."""
MOST_IDLE_LOOKS = 60
"""Looks of this thread without a check of the main thread between them, before the process ends.
Looks are counted, so that a process that was stopped does not end when it goes on."""
UNHEALTHY_AFTER = 30
"""Checks without a heartbeat until the status page and `/health` say that the loop is stuck."""


@dataclass(slots=True)
class Watchdog:
    """The watchdog of a controller."""

    tell: Callable[[Event], None]
    """Takes events."""
    notify: Callable[[str], None] = field(default_factory=lambda: notifier(os.environ))
    """Takes messages for systemd."""
    print_error: Callable[[str], None] = to_errors
    """Prints the tracebacks of internal errors."""
    internal_errors: int = 0
    """The number of exceptions in steps and handlers."""
    _checks: int = 0
    """All checks of the main thread."""
    _missed_checks: int = 0
    """The checks since the last heartbeat."""
    _step_failed: bool = False
    """Whether a step of this round has failed."""
    _has_begun: bool = False
    """Whether there was a heartbeat."""
    _last_printed: str = ""
    """The last exception whose traceback was printed."""
    _threads: dict[str, Any] = field(default_factory=dict)
    """The green threads that have to live for a heartbeat, by name."""

    @property
    def healthy(self) -> bool:
        """Whether there was a heartbeat within the last `UNHEALTHY_AFTER` checks."""
        return self._missed_checks < UNHEALTHY_AFTER

    def follow(self, name: str, thread: Any) -> None:
        """Require a green thread: once it has ended, there are no heartbeats any more."""
        self._threads[name] = thread

    def step(self, name: str, run: Callable[[], None]) -> None:
        """Run a step; an exception is reported and counted."""
        try:
            run()
        except Exception as error:
            self._step_failed = True
            self.record_error(name, error)

    def record_error(self, name: str, error: Exception) -> None:
        """Report and count an exception that is being handled.

        Its traceback is printed, unless the exception printed last was the same.
        """
        self.internal_errors += 1
        self.tell(BugFound(name, repr(error)))
        if repr(error) != self._last_printed:
            self._last_printed = repr(error)
            lines = "".join(traceback.format_exception(error)).rstrip()
            self.print_error(f"internal error in: {name}\n{lines}")

    def end_round(self) -> None:
        """End a round of steps: if all have succeeded, this is a heartbeat."""
        for name, thread in self._threads.items():
            self.step(name, partial(_require_alive, not thread.dead, name))
        if not self._step_failed:
            self._missed_checks = 0
            self.notify("WATCHDOG=1" if self._has_begun else "READY=1")
            self._has_begun = True
        self._step_failed = False

    def check(self) -> None:
        """Check for heartbeats; called by the main thread a few times a second.

        Raises:
            RuntimeError: there was no heartbeat for too long; the process has to end.
        """
        self._checks += 1
        self._missed_checks += 1
        _require_alive(self._missed_checks < MOST_MISSED, "the loop that repairs and reports")

    def guard_checks(self, end: Callable[[], None], period: float = GUARD_PERIOD) -> None:
        """Start the thread that calls `end` once the system has held this thread for too long.

        It is held while it neither checks nor computes. A long computation, such as the plan of a
        move in a large fabric, ends by itself.

        Args:
            end: ends the process.
            period: the seconds between two looks.
        """
        processor_clock = time.pthread_getcpuclockid(get_ident())

        def guard() -> None:
            """Look at the guarded thread once in a period, until it was held too often in a row."""
            checks, computed, idle_looks = self._checks, 0.0, 0
            while idle_looks < MOST_IDLE_LOOKS:
                time.sleep(period)
                checks_before, checks = checks, self._checks
                computed_before, computed = computed, time.clock_gettime(processor_clock)
                has_checked = checks != checks_before
                has_computed = computed - computed_before >= IDLE_SHARE * period
                idle_looks = 0 if has_checked or has_computed else idle_looks + 1
            end()

        Thread(target=guard, daemon=True, name="watchdog").start()


def end_process() -> None:
    """End the process at once, whatever holds its loop, and say why on stderr, if that answers."""
    seconds = MOST_IDLE_LOOKS * GUARD_PERIOD
    reason = f"polarfab: the controller's loop has not come back for {seconds:g} s; it ends\n"
    writer = Thread(target=os.write, args=(2, reason.encode()), daemon=True)
    writer.start()
    writer.join(1)
    os._exit(1)


def _require_alive(is_alive: bool, name: str) -> None:
    """Raise an error unless a part of the controller is alive: a thread, or the loop.

    Raises:
        RuntimeError: the part of this name has stopped.
    """
    if not is_alive:
        raise RuntimeError(f"has stopped: {name}")


def notifier(environment: Any) -> Callable[[str], None]:
    """A function that sends messages to systemd (sd_notify); without NOTIFY_SOCKET, nothing."""
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
