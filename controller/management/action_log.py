"""The action log: who asked a controller for what, one line of JSON each, only ever appended.

A request is written and flushed to the disk before it is carried out; what cannot be written is not
done. If it is refused a second line says why.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.switches.events import Event, TrialOver
from inventory.problems import InputError

LINES_SHOWN = 200
"""The newest lines that the API shows."""


class ActionTaken(Event):
    """Somebody has asked for a change; outcome is `asked`, or why it was refused."""

    kind = "action"
    subject = "{who}"
    detail = "{action} {what} ({role} {address}): {outcome}"
    line = "{node}: {text}"
    more = "{count} more actions, the first by {node}: {text}"

    who: str
    role: str
    address: str
    action: str
    what: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who asks: the name and the role of a token, and where from."""

    name: str
    role: str
    address: str


CONTROLLER = Actor("controller", "", "")
"""The controller itself, where time runs out."""


class ActionLog:
    """The action log of a controller, `.NAME.actions` beside its build folder.

    tell: reports an event.
    """

    def __init__(self, folder: Path, tell: Callable[[Event], None]) -> None:
        place = folder.resolve()
        self.file, self._tell = place.with_name(f".{place.name}.actions"), tell

    @contextmanager
    def asked(self, actor: Actor, action: str, what: str = "") -> Iterator[None]:
        """Write down a request, and why it was refused.

        Raises:
            InputError: it cannot be written, or the request is refused.
        """
        self.write(actor, action, what, "asked")
        try:
            yield
        except InputError as error:
            self.write(actor, action, what, f"refused: {error}")
            raise

    def write(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line.

        Raises:
            InputError: it cannot be written.
        """
        event = ActionTaken(actor.name, actor.role, actor.address, action, what, outcome)
        record = event.record()
        line = {word: record[word] for word in record if word not in ("event", "node", "text")}
        try:
            descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, json.dumps(line).encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            given = error.strerror or str(error)
            required = "an action log that can be written: nothing is done without a record"
            raise InputError.of(required, given, file=str(self.file)) from error
        self._tell(event)

    def last(self) -> list[dict[str, Any]]:
        """The newest lines, the newest last.

        Raises:
            InputError: it cannot be read.
        """
        try:
            with self.file.open("rb") as file:
                lines = file.readlines()[-LINES_SHOWN:]
            return [json.loads(line) for line in lines]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            given = str(error)
            raise InputError.of("an action log to read", given, file=str(self.file)) from error

    def happened(self, event: Event) -> None:
        """Write down that the controller goes back by itself; also where that cannot be written."""
        if isinstance(event, TrialOver):
            try:
                self.write(CONTROLLER, "rollback", event.before, "nobody confirmed")
            except InputError:
                return  # a fabric is not left on trial for the sake of a line
