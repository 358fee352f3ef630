"""One atomic change of one switch: an ONF bundle in two steps. No I/O.

First the bundle is opened and filled, up to a barrier; only if the switch has found no fault by
then is the bundle committed. The two steps are needed: Open vSwitch skips a
message that it cannot read and would commit the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.protocol import MessageType, header
from controller.openflow.messages import Error, SessionXid, commits

OPENING, COMMIT, DISCARD = rows.opening(), rows.commit(), rows.discard(SessionXid.DISCARD)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a transaction.

    committed: the switch has confirmed it. Otherwise the switch is unchanged, unless it left (lost)
    after the commit was sent, or has no bundles: then its state is unknown. error is the first of
    `errors` errors; kinds: the first of each kind. text: why nothing was sent, instead of an error.
    """

    committed: bool
    error: Error | None = None
    errors: int = 0
    lost: bool = False
    kinds: tuple[Error, ...] = ()
    text: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether a busy switch has given the bundle up: it may take another one."""
        return any(error.timed_out for error in self.kinds)


@dataclass(slots=True)
class Refusals:
    """The errors that a switch reports of one change; of a kind only the first is kept.

    A kind is type and code, and what the refused message is about: kind of row and role.
    """

    count: int = 0
    _kinds: dict[tuple[int, int, int], Error] = field(default_factory=dict)

    def add(self, error: Error) -> None:
        """One more."""
        self.count += 1
        self._kinds.setdefault((error.type, error.code, error.xid >> rows.ROLE_SHIFT), error)

    def outcome(self, committed: bool, lost: bool = False) -> Outcome:
        """The result of the change."""
        kinds = tuple(self._kinds.values())
        return Outcome(committed, kinds[0] if kinds else None, self.count, lost, kinds)


Done = Callable[[Outcome], None]
"""Called once with the result of a transaction."""


@dataclass(slots=True)
class Transaction:
    """A bundle in progress. number: even, and unique among a connection's transactions."""

    number: int
    parts: Sequence[bytes]
    done: Done
    state: Literal["filling", "committing", "done"] = "filling"
    _confirmed: bool = False
    _refusals: Refusals = field(default_factory=Refusals)

    def start(self) -> list[bytes]:
        """The first messages to send; they are not kept afterwards."""
        parts, self.parts = self.parts, ()
        return [OPENING, *parts, rows.barrier(self.number)]

    def error(self, error: Error) -> bytes:
        """The switch has reported an error; returns the bytes to send."""
        self._refusals.add(error)
        return self._answered() if error.xid == self._awaited else b""

    def received(self, message: bytes) -> bytes:
        """The switch has sent a bundle or barrier reply; returns the bytes to send."""
        if self.state == "committing" and commits(message) == rows.BUNDLE:
            self._confirmed = True
        kind, _, xid = header(message)
        awaited = MessageType.BARRIER_REPLY, self._awaited
        return self._answered() if (kind, xid) == awaited else b""

    @property
    def _awaited(self) -> int:
        """The xid of the barrier whose reply is awaited."""
        return rows.xid(RowKind.BARRIER, self.number + (self.state == "committing"))

    def _answered(self) -> bytes:
        """The switch has handled everything sent, or refuses the barrier itself."""
        if self.state == "filling" and not self._refusals.count:
            self.state = "committing"
            return COMMIT + rows.barrier(self.number + 1)
        good = self._confirmed and not self._refusals.count
        self._finish(self._refusals.outcome(good))
        return b"" if good else DISCARD

    def lost(self) -> None:
        """The connection has ended."""
        self._finish(self._refusals.outcome(False, lost=True))

    def _finish(self, outcome: Outcome) -> None:
        if self.state != "done":
            self.state = "done"
            self.done(outcome)
