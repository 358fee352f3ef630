"""One change of one switch: a list of steps, each ended by a barrier. No I/O.

With bundles there are two: an ONF bundle is opened and filled, and only if the switch has found no
fault by then is it committed, which is atomic. The two are needed: Open vSwitch skips a message
that it cannot read and would commit the rest.

Without bundles the order is the one in which no packet is lost: groups before the rows that use
them; rows from the last table to the first; the marker; then removals, rows from the first table to
the last, groups at the end. What tells packets from hosts goes first of all: they fall back to the
paths of transit. What was done before a refusal is taken back by who asked for the change
(`controller.switches.switch`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

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
from controller.openflow.messages import Error, SessionXid, commits

OPENING, COMMIT, DISCARD = rows.opening(), rows.commit(), rows.discard(SessionXid.DISCARD)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a transaction.

    committed: the switch has confirmed it. Otherwise the switch is unchanged, unless it left (lost)
    after the commit was sent, or has no bundles: then its state is unknown. kinds: of `errors`
    errors the first of each kind. text: why nothing was sent, instead of an error.
    """

    committed: bool
    kinds: tuple[Error, ...] = ()
    errors: int = 0
    lost: bool = False
    text: str = ""

    @property
    def error(self) -> Error | None:
        """The first error."""
        return self.kinds[0] if self.kinds else None

    @property
    def timed_out(self) -> bool:
        """Whether a busy switch has given the bundle up: it may take another one."""
        return any(error.timed_out for error in self.kinds)


Done = Callable[[Outcome], None]
"""Called once with the result of a transaction."""


@dataclass(slots=True)
class Change:
    """A change in progress. number: even, and unique among a connection's changes.

    parts: bundled adds. bundled: whether they are sent as a bundle. then: is called when all has
    been sent. over: whether it has ended. size: the bytes of all parts, once it has started. Of
    errors of one kind, which is type and code, and what the refused message is about (kind of row
    and role), the first is kept.
    """

    number: int
    parts: Sequence[bytes]
    done: Done
    bundled: bool = True
    then: Callable[[], None] = lambda: None
    over: bool = False
    size: int = 0
    _left: deque[Sequence[bytes]] = field(default_factory=deque)
    _kinds: dict[tuple[int, int, int], Error] = field(default_factory=dict)
    _errors: int = 0
    _step: int = -1
    _confirmed: bool = False

    def start(self) -> list[bytes]:
        """The first messages to send; they are not kept afterwards."""
        parts, self.parts = self.parts, ()
        self.size = sum(map(len, parts))
        if self.bundled:
            self._left.extend([(OPENING, *parts), (COMMIT,)])
        else:
            self._left.extend((step,) for step in steps(parts))
            self._confirmed = True
        return self._next()

    def error(self, error: Error) -> bytes:
        """The switch has reported an error; returns the bytes to send."""
        self._errors += 1
        self._kinds.setdefault((error.type, error.code, error.xid >> ROLE_SHIFT), error)
        return self._answered() if error.xid == self._awaited else b""

    def received(self, message: bytes) -> bytes:
        """The switch has sent a bundle or barrier reply; returns the bytes to send."""
        if not self._left and commits(message) == rows.BUNDLE:
            self._confirmed = True
        kind, _, xid = header(message)
        awaited = MessageType.BARRIER_REPLY, self._awaited
        return self._answered() if (kind, xid) == awaited else b""

    def lost(self) -> None:
        """The connection has ended."""
        self._finish(False, lost=True)

    @property
    def last(self) -> bool:
        """Whether all has been sent."""
        return not self._left

    @property
    def _awaited(self) -> int:
        """The xid of the barrier whose reply is awaited; it changes from step to step."""
        return rows.xid(RowKind.BARRIER, self.number + self._step % 2)

    def _next(self) -> list[bytes]:
        self._step += 1
        step = self._left.popleft() if self._left else ()
        return [*step, rows.barrier(self.number + self._step % 2)]

    def _answered(self) -> bytes:
        """The switch has handled everything sent, or refuses the barrier itself."""
        if self._left and not self._errors:
            return b"".join(self._next())
        good = self._confirmed and not self._errors
        self._finish(good)
        return DISCARD if self.bundled and not good else b""

    def _finish(self, committed: bool, lost: bool = False) -> None:
        if not self.over:
            self.over = True
            self.done(Outcome(committed, tuple(self._kinds.values()), self._errors, lost))


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
