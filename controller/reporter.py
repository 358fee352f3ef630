"""What the controller tells: lines for people or JSON for machines, and the status file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from controller.switches.events import Event, Kind
from controller.switches.session import LiveFabric
from inventory.problems import InputError, Problem

LINES_AT_ONCE = 5
"""Events of one kind that get a line each; more than that in one go share one."""
REMIND = 10.0
"""Seconds of silence after which an incomplete fabric says what it waits for."""
PROGRESS = 1.0
"""Seconds between two counts of what is programmed."""
EVENT_LINES: dict[Kind, str] = {
    "refused": "switch {node} refused its program and keeps what it had: {text}",
    "error": "switch {node} reports an error after it was programmed: {text}",
    "left": "switch {node} left",
    "unknown": "datapath id {node} is not in this build; it gets nothing",
    "duplicate": "switch {node} {text}",
    "status": "cannot write {node}: {text}",
    "stranger": "a peer on {node} hung up before it named itself as an OpenFlow 1.3 switch",
    "barred": "a peer on {node} was turned away: {text}",
    "malformed": "switch {node} is cut off for what it sent: {text}",
    "silent": "switch {node} does not answer and is cut off",
    "loaded": "build {node} is loaded",
    "kept": "build {node} stays, the new one cannot be used: {text}",
    "round": "round {node}",
    "moved": "all switches hold build {node}; they are read again",
    "link-down": "link {node} is down: {text}",
    "link-up": "link {node} is up",
    "suppressed": "link {node} flaps and is not used {text}",
    "reused": "link {node} is calm and is used again, if it is up",
    "drained": "switch {node} is gone for {text}: traffic goes around it",
    "back": "switch {node} is back: traffic passes it again",
    "repaired": "tables for {node}: {text}",
    "miswired": "miswired, {node}: {text}",
    "wired": "all cables that are seen are as planned",
    "shifted": "weights moved at {node}: {text}",
    "leader": "{node} leads",
    "deposed": "{node} leads no more, and starts anew",
    "store": "the store: {node}",
    "contested": "datapath id {node} does not take us as its master",
    "not-ready": "{node} leads and cannot begin: {text}",
    "inherited": "the fabric holds build {node}, not {text} of the folder; SIGHUP moves it there",
}
SUMMARIES: dict[Kind, str] = {
    "refused": "{count} more switches refused their program, the first of them {node}: {text}",
    "error": "{count} more switches report errors after they were programmed",
    "left": "{count} switches more left",
    "unknown": "{count} more datapath ids are not in this build",
    "duplicate": "{count} more switches connected twice, the first of them {node}: {text}",
    "status": "cannot write {node}: {text}",
    "stranger": "peers on {count} more hosts hung up before they named themselves",
    "barred": "peers on {count} more hosts were turned away, the first on {node}: {text}",
    "malformed": "{count} more switches are cut off for what they sent, the first of them {node}: "
    "{text}",
    "silent": "{count} more switches do not answer and are cut off",
    "loaded": "{count} more builds are loaded",
    "kept": "{count} more builds cannot be used",
    "round": "{count} more rounds, the first of them {node}",
    "moved": "{count} more builds came",
    "link-down": "{count} more links are down, the first of them {node}: {text}",
    "link-up": "{count} more links are up",
    "suppressed": "{count} more links flap and are not used",
    "reused": "{count} more links are calm and are used again",
    "drained": "{count} more switches are gone: traffic goes around them",
    "back": "{count} more switches are back",
    "repaired": "tables changed {count} more times, the last for {node}: {text}",
    "miswired": "{count} more moves, the first of them {node}: {text}",
    "wired": "all cables that are seen are as planned",
    "shifted": "weights moved {count} more times",
    "deposed": "{node} leads no more, and starts anew",
    "leader": "{count} more leaders, the first of them {node}",
    "store": "{count} more words of the store",
    "contested": "{count} more datapath ids do not take us as their master",
    "not-ready": "{node} leads and cannot begin: {text}",
    "inherited": "the fabric holds build {node}, not {text} of the folder; SIGHUP moves it there",
}


@dataclass(slots=True)
class Reporter:
    """Turns a fabric's events into output. `write` gets a line at a time, observers each event.

    stands_by: whether no switches are waited for, since another controller leads.
    """

    fabric: LiveFabric
    write: Callable[[str], None]
    as_json: bool = False
    status_file: Path | None = None
    observers: list[Callable[[Event], None]] = field(default_factory=list)
    clock: Callable[[], float] = monotonic
    stands_by: Callable[[], bool] = lambda: False
    _written: str = ""
    _unwritable: str = ""
    _since: float | None = None
    _spoke: float = 0.0
    _counted: int = 0

    def start(self, where: str) -> None:
        """Say that the controller listens, and leave a first status.

        Raises:
            InputError: the status file cannot be written.
        """
        self._spoke = self.clock()
        try:
            self._status()
        except OSError as error:
            raise InputError(
                Problem(
                    file=str(self.status_file),
                    key="--status-file",
                    required="a file that can be written",
                    given=error.strerror or str(error),
                )
            ) from error
        if not self.as_json:
            self.write(
                f"{where}; build {self.fabric.identity}, {self.fabric.expected} switches expected"
            )

    def tick(self) -> None:
        """Report what has happened since the last tick; called a few times a second."""
        events = self.fabric.drain()
        for event in events:
            for observe in self.observers:
                observe(event)
        unwritable = ""
        try:
            self._status()
        except OSError as error:
            unwritable = error.strerror or str(error)
        if unwritable and unwritable != self._unwritable:
            events.append(Event("status", str(self.status_file), unwritable))
        self._unwritable = unwritable
        if self.as_json:
            for event in events:
                self.write(json.dumps({"event": event.kind, **_details(event)}))
        else:
            for line in self._lines(events):
                self.write(line)
                self._spoke = self.clock()

    def _lines(self, events: list[Event]) -> Iterable[str]:
        fabric, kinds = self.fabric, {event.kind for event in events}
        if self._since is None:
            self._since = next((event.at for event in events if event.kind == "connected"), None)
        for kind in EVENT_LINES:
            yield from _of_kind(kind, [event for event in events if event.kind == kind])
        done = fabric.expected - len(fabric.missing())
        if "complete" in kinds and fabric.complete:
            seconds = events[-1].at - (self._since or events[-1].at)
            self._since = None
            yield f"{done}/{fabric.expected} programmed in {seconds:.2f} s: the fabric is complete"
            self._counted = done
        elif done != self._counted and self.clock() - self._spoke > PROGRESS:
            yield f"{done}/{fabric.expected} programmed"
            self._counted = done
        elif not (fabric.complete or self.stands_by()) and self.clock() - self._spoke > REMIND:
            yield f"{done}/{fabric.expected} programmed; waiting for {_some(fabric.missing())}"

    def _status(self) -> None:
        """Write the status file beside itself and rename it, if it has changed."""
        text = json.dumps(self.fabric.status())
        if self.status_file is None or text == self._written:
            return
        beside = self.status_file.with_name(f".{self.status_file.name}.part")
        beside.write_text(text)
        beside.rename(self.status_file)
        self._written = text


def _details(event: Event) -> dict[str, str]:
    return {key: value for key in ("node", "text") if (value := getattr(event, key))}


def _of_kind(kind: Kind, events: list[Event]) -> Iterable[str]:
    for event in events[:LINES_AT_ONCE]:
        yield EVENT_LINES[kind].format(node=event.node, text=event.text)
    if rest := events[LINES_AT_ONCE:]:
        yield SUMMARIES[kind].format(count=len(rest), node=rest[0].node, text=rest[0].text)


def _some(names: list[str]) -> str:
    more = len(names) - LINES_AT_ONCE
    return ", ".join(names[:LINES_AT_ONCE]) + (f" and {more} more" if more > 0 else "")
