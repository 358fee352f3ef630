"""A change of a switch without bundles: its messages in steps, each ended by a barrier. No I/O.

The order is the one in which no packet is lost: groups before the rows that use them; rows from the
last table to the first; the marker; then removals, rows from the first table to the last, groups at
the end. What tells packets from hosts goes first of all: they fall back to the ways of transit. The
next step waits for the answer to the barrier, and there is none after a refusal: what was done by
then is taken back by who asked for the change (`controller.switches.switch`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.protocol import (
    ALL_TABLES,
    FLOW_MOD,
    GROUP_MOD,
    HEADER,
    WRAPPER_BYTES,
    FlowCommand,
    GroupCommand,
    MessageType,
    header,
)
from controller.openflow.messages import Error
from controller.switches.transaction import Done, Refusals

FIRST, GROUPS, ROWS, MARKER, OLD_ROWS, OLD_GROUPS = range(6)


def steps(parts: Sequence[bytes]) -> list[bytes]:
    """Bundled messages as plain ones, those of each step together, in the order of the steps."""
    found: dict[tuple[int, int], list[bytes]] = {}
    adds = False
    for message in _plain(parts):
        step = _step(message, adds)
        adds |= step[0] in (GROUPS, ROWS, MARKER)
        found.setdefault(step, []).append(message)
    return [b"".join(found[step]) for step in sorted(found)]


def _plain(parts: Sequence[bytes]) -> Iterator[bytes]:
    for part in parts:
        place = 0
        while place < len(part):
            length = header(part, place)[1]
            yield part[place + WRAPPER_BYTES : place + length]
            place += length


def _step(message: bytes, adds: bool) -> tuple[int, int]:
    """The step of a message, and its place among those of its kind.

    adds: whether something was added before; a removal in front of that makes room for it.
    """
    kind, _, xid = header(message)
    if kind == MessageType.GROUP_MOD:
        removed = GROUP_MOD.read(message, HEADER.size).command == GroupCommand.DELETE
        return (OLD_GROUPS if removed else GROUPS, 0)
    row = FLOW_MOD.read(message, HEADER.size)
    about, role = xid >> XID_BITS, (xid & MOST_NUMBER) >> ROLE_SHIFT
    if row.command == FlowCommand.ADD:
        return (MARKER, 0) if about == RowKind.MARKER else (ROWS, ALL_TABLES - row.table)
    entering = about == RowKind.CLASS and role in (GroupRole.ENTER, GroupRole.FALLBACK)
    makes_room = about == RowKind.CLEAR and not adds
    return (FIRST, 0) if entering or makes_room else (OLD_ROWS, row.table)


@dataclass(slots=True)
class PhasedChange:
    """A change in progress. number: even, and unique among a connection's changes."""

    number: int
    parts: Sequence[bytes]
    done: Done
    state: Literal["filling", "done"] = "filling"
    _left: deque[bytes] = field(default_factory=deque)
    _refusals: Refusals = field(default_factory=Refusals)
    _step: int = 0

    def start(self) -> list[bytes]:
        """The first messages to send."""
        self._left.extend(steps(self.parts))
        self.parts = ()
        return [self._next()]

    def error(self, error: Error) -> bytes:
        """The switch has reported an error; returns the bytes to send."""
        self._refusals.add(error)
        return self._answered() if error.xid == self._awaited else b""

    def received(self, message: bytes) -> bytes:
        """The switch has answered a barrier; returns the bytes to send."""
        kind, _, xid = header(message)
        awaited = MessageType.BARRIER_REPLY, self._awaited
        return self._answered() if (kind, xid) == awaited else b""

    def lost(self) -> None:
        """The connection has ended."""
        self._finish(lost=True)

    @property
    def _awaited(self) -> int:
        """The xid of the barrier whose reply is awaited; it changes from step to step."""
        return rows.xid(RowKind.BARRIER, self.number + self._step % 2)

    def _next(self) -> bytes:
        step = self._left.popleft() if self._left else b""
        return step + rows.barrier(self.number + self._step % 2)

    def _answered(self) -> bytes:
        if self._left and not self._refusals.count:
            self._step += 1
            return self._next()
        self._finish()
        return b""

    def _finish(self, lost: bool = False) -> None:
        if self.state != "done":
            self.state = "done"
            good = not lost and not self._refusals.count
            self.done(self._refusals.outcome(good, lost))
