"""The controller's output: a line per event, for people or as JSON for programs, and the status.

The controller's loop (`controller.app`) passes the events of each tick to a `Reporter`, which
prints them and has the status file written (`controller.status_file`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import gmtime, monotonic, strftime, time

from controller.state import State
from controller.status_file import StatusFile
from controller.switches.current import Current
from controller.switches.events import Event, FabricComplete, FileUnwritable, Kind
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, at_once
from inventory.problems import InputError, first_names

LINES_AT_ONCE = 5
"""Events of one kind that get a line each; further ones in the same tick share a line."""
REMINDER_PERIOD = 10.0
"""Seconds of silence after which an incomplete fabric lists the switches it waits for."""
PROGRESS_PERIOD = 1.0
"""Seconds between two counts of programmed switches."""
PERIOD_PER_WORK = 20
"""The period of the status without events, in multiples of the time that making it takes. So it
takes a twentieth of the loop's time."""
STATUS_AGE = 2.0
"""The longest such period, in seconds: on a busy machine making the status may take long by chance.
"""
DUE_NOW = 0.0
"""The time of a status that is due at once."""
LINE_PATIENCE, START_PATIENCE, END_PATIENCE = 0.02, 1.0, 2.0
"""Most seconds for which the reporter waits until the status is on the disk: before it prints
lines, at the controller's start, and at its end."""
STAMP = "%Y-%m-%dT%H:%M:%SZ"
"""The time in front of a line (ISO 8601)."""


@dataclass(slots=True)
class Reporter:
    """Prints a fabric's events, a line each after the time of day in UTC, and writes its status."""

    fabric: LiveFabric
    """The fabric whose events are printed."""
    state: Callable[[], State]
    """Returns the state of the fabric and its controller now."""
    write: Callable[[str], None]
    """Prints a line."""
    as_json: bool = False
    """Whether lines are JSON."""
    status_file: Path | None = None
    """The file that the state is written to; None for none."""
    clock: Callable[[], float] = monotonic
    """Seconds on a monotonic clock."""
    time_of_day: Callable[[], float] = time
    """Seconds since the epoch."""
    start_write: Start = at_once
    """Runs a write of the status file, in a thread or at once."""
    _status: StatusFile | None = field(init=False)
    """Writes the status file; None without one."""
    _trouble: str = ""
    """Why the status could not be written last; "" if it could."""
    _last_line: float = 0.0
    """When the last line was printed, by `clock`."""
    _reported_switches: int = 0
    """The number of programmed switches that was printed last."""
    _next_status: float = DUE_NOW
    """When the status is written next if there is no event before, by `clock`."""

    def __post_init__(self) -> None:
        file = self.status_file
        self._status = StatusFile(file, self.start_write, lambda: self.clock()) if file else None

    def start(self, where: str, current: Current) -> None:
        """Print that the controller listens, with the build of its folder; write a first status.

        A disk that is full or fails is only reported: the switches need a controller.

        Raises:
            InputError: the status file has a path where nobody can write.
        """
        self._last_line = self.clock()
        for event in self._write_status_if_due(START_PATIENCE):
            self.fabric.tell(event)
        self._next_status = DUE_NOW
        if self._status and self._status.is_misnamed:
            required, file = "a file that can be written", str(self.status_file)
            raise InputError.of(required, self._trouble, file=file, key="status_file")
        if not self.as_json:
            self._say(
                f"{where}; build {current.identity}, {current.switches} switches expected;"
                f" proved: {current.proved}"
            )

    def report(self, events: list[Event], last: bool = False) -> None:
        """Report the events since the last call; called a few times a second.

        Args:
            events: the events. One is appended if the status file cannot be written.
            last: whether the controller ends: then the status is written in any case.
        """
        if events or last:
            self._next_status = DUE_NOW
        if last and self._status:
            self._status.wait(END_PATIENCE)
        events += self._write_status_if_due(END_PATIENCE if last else LINE_PATIENCE)
        if self.as_json:
            for event in events:
                self.write(json.dumps(event.record()))
        else:
            for line in self._lines(events):
                self._say(line)
                self._last_line = self.clock()

    def _say(self, line: str) -> None:
        """Print a line after the time of day."""
        self.write(f"{strftime(STAMP, gmtime(self.time_of_day()))} {_printable(line)}")

    def _lines(self, events: list[Event]) -> Iterable[str]:
        """The lines of events, then one on the progress of programming if that is due.

        The caller notes the time of each line when it has printed it: the progress depends on it.
        """
        fabric = self.fabric
        yield from _grouped(events)
        done = fabric.expected - len(fabric.missing())
        complete = [event for event in events if event.type is FabricComplete]
        if complete and fabric.complete:
            took = f"{complete[-1].seconds:.2f} s"
            yield f"{done}/{fabric.expected} programmed in {took}: the fabric is complete"
            self._reported_switches = done
        elif done != self._reported_switches and self.clock() - self._last_line > PROGRESS_PERIOD:
            yield f"{done}/{fabric.expected} programmed"
            self._reported_switches = done
        elif self.clock() - self._last_line > REMINDER_PERIOD and not fabric.complete:
            self._last_line = self.clock()
            if self.state().role["role"] != "follower":  # the leader waits for its switches
                missing = first_names(fabric.missing(), LINES_AT_ONCE)
                yield f"{done}/{fabric.expected} programmed; waiting for {missing}"

    def _write_status_if_due(self, patience: float) -> list[Event]:
        """Write the status if that is due: after events, before their lines are printed, and
        otherwise at intervals. With thousands of switches making the status takes long.

        Args:
            patience: most seconds to wait for the disk, so that the line follows the status.

        Returns:
            An event if the file cannot be written, for a new reason; else none.
        """
        file, began = self._status, self.clock()
        if file is None:
            return []
        if not file.is_writing() and began >= self._next_status:
            file.put(json.dumps(self.state().status), patience)
            took = self.clock() - began
            self._next_status = began + min(PERIOD_PER_WORK * took, STATUS_AGE)
        before, self._trouble = self._trouble, file.trouble
        if self._trouble in ("", before):
            return []
        return [FileUnwritable(str(file.path), self._trouble)]


def _printable(line: str) -> str:
    r"""A line with escapes for what is not printable: a name from outside forges no other line.

    >>> _printable("no family 'a\nb'")
    "no family 'a\\nb'"
    """
    if line.isprintable():
        return line
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def _grouped(events: list[Event]) -> Iterable[str]:
    """The lines of events: at most `LINES_AT_ONCE` of a kind, then how many more there are.

    Kinds come in the order of their first events.
    """
    by_kind: dict[Kind, list[Event]] = {}
    for event in events:
        if event.type.line:
            by_kind.setdefault(event.type, []).append(event)
    for events_of_kind in by_kind.values():
        yield from map(str, events_of_kind[:LINES_AT_ONCE])
        further = events_of_kind[LINES_AT_ONCE:]
        if further:
            yield f"{len(further)} more of these, the first: {further[0]}"
