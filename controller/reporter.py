"""The controller's output: lines for people or JSON for programs, and the status file."""

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
from inventory.problems import InputError

LINES_AT_ONCE = 5
"""Events of one kind that get a line each; further ones in the same tick share a line."""
REMIND = 10.0
"""Seconds of silence after which an incomplete fabric lists the switches it waits for."""
PROGRESS = 1.0
"""Seconds between two counts of programmed switches."""

STATUS_SHARE = 20
"""Between events the status is made again when this many times as long as it took has passed."""
STATUS_AGE = 2.0
"""Seconds after which it is made in any case: on a busy machine it may take long by chance."""
LINE_PATIENCE, START_PATIENCE, END_PATIENCE = 0.02, 1.0, 2.0
"""Seconds that lines, the start and the end wait for the disk until the status is in the file."""
STAMP = "%Y-%m-%dT%H:%M:%SZ"
"""The time in front of a line (ISO 8601)."""


@dataclass(slots=True)
class Reporter:
    """Prints a fabric's events, a line each, which begins with the time of day in UTC."""

    fabric: LiveFabric
    """The fabric whose events are printed."""
    state: Callable[[], State]
    """Returns the state of the fabric and its controller now."""
    write: Callable[[str], None]
    """Takes one line at a time."""
    as_json: bool = False
    """Whether lines are JSON."""
    status_file: Path | None = None
    """The file that the state is written to; None for none."""
    clock: Callable[[], float] = monotonic
    """Seconds on a clock that is never set."""
    wall: Callable[[], float] = time
    """Seconds since the epoch."""
    start_write: Start = at_once
    """Starts to write the status file."""
    _status: StatusFile | None = field(init=False)
    """Writes it; None without one."""
    _trouble: str = ""
    """Why it could not be written last; "" if it could."""
    _spoke: float = 0.0
    """When the last line was printed."""
    _counted: int = 0
    """How many programmed switches were reported last."""
    _due: float = 0.0
    """When the status is written next, if nothing happens before."""

    def __post_init__(self) -> None:
        file = self.status_file
        self._status = StatusFile(file, self.start_write, lambda: self.clock()) if file else None

    def start(self, where: str, current: Current) -> None:
        """Print that the controller listens, with the build of its folder; write a first status.

        Raises:
            InputError: the status file cannot be written.
        """
        self._spoke = self.clock()
        self._write_status_if_due(START_PATIENCE)
        self._due = 0.0
        if self._trouble:
            required, file = "a file that can be written", str(self.status_file)
            raise InputError.of(required, self._trouble, file=file, key="status_file")
        if not self.as_json:
            self._say(
                f"{where}; build {current.identity}, {current.switches} switches expected;"
                f" proved: {current.proved}"
            )

    def report(self, events: list[Event], last: bool = False) -> None:
        """Report what has happened since the last call; called a few times a second.

        last: with the status as it is at the end.
        """
        if events or last:
            self._due = 0.0
        if last and self._status:
            self._status.wait(END_PATIENCE)
        events += self._write_status_if_due(END_PATIENCE if last else LINE_PATIENCE)
        if self.as_json:
            for event in events:
                self.write(json.dumps(event.record()))
        else:
            for line in self._lines(events):
                self._say(line)
                self._spoke = self.clock()

    def _say(self, line: str) -> None:
        """Print a line with the time of day."""
        self.write(f"{strftime(STAMP, gmtime(self.wall()))} {line}")

    def _lines(self, events: list[Event]) -> Iterable[str]:
        """The lines of events, and one on the progress of programming if it is time for one."""
        fabric = self.fabric
        yield from _grouped(events)
        done = fabric.expected - len(fabric.missing())
        complete = [event for event in events if event.type is FabricComplete]
        if complete and fabric.complete:
            took = f"{complete[-1].seconds:.2f} s"
            yield f"{done}/{fabric.expected} programmed in {took}: the fabric is complete"
            self._counted = done
        elif done != self._counted and self.clock() - self._spoke > PROGRESS:
            yield f"{done}/{fabric.expected} programmed"
            self._counted = done
        elif self.clock() - self._spoke > REMIND and not fabric.complete:
            self._spoke = self.clock()
            if self.state().role["role"] != "follower":  # else another one expects them
                yield f"{done}/{fabric.expected} programmed; waiting for {_some(fabric.missing())}"

    def _write_status_if_due(self, patience: float) -> list[Event]:
        """Have the status written if it is due, and tell once if it cannot be written.

        It is due with every event, before the event's line is printed. Between events it is written
        more rarely: with thousands of switches it would take a tenth of an idle controller's time.

        patience: seconds to wait for the disk, so that a line comes after the status that has it.
        """
        file, began = self._status, self.clock()
        if file is None:
            return []
        if not file.awaits_disk() and began >= self._due:
            file.put(json.dumps(self.state().status), patience)
            self._due = began + min(STATUS_SHARE * (self.clock() - began), STATUS_AGE)
        before, self._trouble = self._trouble, file.trouble
        if self._trouble in ("", before):
            return []
        return [FileUnwritable(str(file.path), self._trouble)]


def _grouped(events: list[Event]) -> Iterable[str]:
    """The lines of events by kind, in the order of each kind's first event."""
    by_kind: dict[Kind, list[Event]] = {}
    for event in events:
        if event.type.line:
            by_kind.setdefault(event.type, []).append(event)
    for of_kind in by_kind.values():
        yield from map(str, of_kind[:LINES_AT_ONCE])
        rest = of_kind[LINES_AT_ONCE:]
        if rest:
            yield f"{len(rest)} more of these, the first: {rest[0]}"


def _some(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - LINES_AT_ONCE
    return ", ".join(names[:LINES_AT_ONCE]) + (f" and {more} more" if more > 0 else "")
