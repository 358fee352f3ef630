"""The OpenFlow changes and requests of one connection, until the switch has answered them. No I/O.

Each switch (`controller.switches.switch`) has a `Conversation`, which takes changes and requests
and gets the switch's answers. Changes go one after the other. A change is a list of steps, each
ended by a barrier.

With bundles there are two steps. The first opens an ONF bundle and fills it. The second commits it,
which is atomic; it is sent only if the switch has found no fault in the first. In a single step
Open vSwitch would skip a message that it cannot read, and commit the rest.

Without bundles there are more steps (`controller.switches.unbundled_steps`). If the switch refuses
one, `controller.switches.switch` undoes the earlier ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import inf
from time import monotonic

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.protocol import (
    MessageType,
    Multipart,
    header,
)
from controller.openflow import multipart
from controller.openflow.messages import Error, SessionXid, committed_bundle
from controller.switches.connections.sending import SendPriority
from controller.switches.unbundled_steps import unbundled_steps

OPENING, COMMIT, DISCARD = rows.opening(), rows.commit(), rows.discard(SessionXid.DISCARD)
"""The messages that open a bundle, commit it, and discard it."""
REQUEST = 0xA0
"""The kind of a message, in the upper 8 bits of its xid, of multipart requests. The kinds of a
program's messages (`RowKind`) are smaller."""
MOST_REPLY = 64 << 20
"""Largest reply in bytes, all its messages together; a switch that sends more is disconnected."""


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The result of a change.

    If `committed` is false, the switch is unchanged, except in two cases: it left after the commit
    was sent (`lost`), or it has no bundles. In these two cases its state is unknown.
    """

    committed: bool
    """Whether the switch has confirmed the change."""
    first_errors: tuple[Error, ...] = ()
    """The first error of each kind."""
    error_count: int = 0
    """The number of all errors."""
    lost: bool = False
    """Whether the switch left after the commit was sent."""
    text: str = ""
    """Why nothing was sent; "" if something was."""

    @property
    def error(self) -> Error | None:
        """The first error."""
        return self.first_errors[0] if self.first_errors else None

    @property
    def timed_out(self) -> bool:
        """Whether a busy switch has given the bundle up: it may take another one."""
        return any(error.timed_out for error in self.first_errors)


Done = Callable[[ChangeOutcome], None]
"""Called once with the result of a change."""
Send = Callable[[SendPriority, bytes], None]
"""Puts bytes into a connection's queue."""
OnReply = Callable[[bytes | None], None]
"""Called once with the body of the reply to a request, or None if there is no reply."""
OnReplies = Callable[[Mapping[Multipart, bytes | None]], None]
"""Called once with the replies to several requests."""


@dataclass(slots=True)
class ChangeInProgress:
    """A change in progress.

    Only the first error of each kind is kept. A kind is the error's type and code, and the kind of
    row and the role of the refused message.
    """

    number: int
    """The change's number: even, and unique among a connection's changes."""
    parts: Sequence[bytes]
    """Bytes of one or more messages each, as bundled adds."""
    done: Done
    """Called with the outcome."""
    bundled: bool = True
    """Whether the messages are sent as a bundle."""
    on_sent: Callable[[], None] = lambda: None
    """Called when the last step has been sent, if that is not the first step, too."""
    over: bool = False
    """Whether the change has ended."""
    size: int = 0
    """The bytes of all parts, once the change has started."""
    _unsent: deque[Sequence[bytes]] = field(default_factory=deque)
    """The messages of each step that has not been sent."""
    _first_errors: dict[tuple[int, int, int], Error] = field(default_factory=dict)
    """The first error of each kind."""
    _error_count: int = 0
    """The number of all errors."""
    _step: int = -1
    """The number of the step that was sent last."""
    _confirmed: bool = False
    """Whether the commit has been confirmed, or need not be."""

    def start(self) -> list[bytes]:
        """The messages of the first step; `parts` is emptied."""
        parts, self.parts = self.parts, ()
        self.size = sum(map(len, parts))
        if self.bundled:
            self._unsent.extend([(OPENING, *parts), (COMMIT,)])
        else:
            self._unsent.extend((step,) for step in unbundled_steps(parts))
            self._confirmed = True
        return self._next()

    def error(self, error: Error) -> bytes:
        """Take an error of the switch; returns the bytes to send next."""
        self._error_count += 1
        self._first_errors.setdefault((error.type, error.code, error.xid >> ROLE_SHIFT), error)
        return self._after_barrier() if error.xid == self._awaited else b""

    def received(self, message: bytes) -> bytes:
        """Take a bundle reply or a barrier reply; returns the bytes to send next."""
        if not self._unsent and committed_bundle(message) == rows.BUNDLE:
            self._confirmed = True
        kind, _, xid = header(message)
        is_awaited = (kind, xid) == (MessageType.BARRIER_REPLY, self._awaited)
        return self._after_barrier() if is_awaited else b""

    def lost(self) -> None:
        """End the change: the connection has ended."""
        self._finish(committed=False, lost=True)

    @property
    def is_sent(self) -> bool:
        """Whether all steps have been sent."""
        return not self._unsent

    @property
    def _awaited(self) -> int:
        """The xid of the barrier whose reply is awaited.

        It has the change's number, which is even, or the next one: so the barriers of two steps in
        a row differ.
        """
        return rows.xid(RowKind.BARRIER, self.number + self._step % 2)

    def _next(self) -> list[bytes]:
        """The messages of the next step."""
        self._step += 1
        step = self._unsent.popleft() if self._unsent else ()
        return [*step, rows.barrier(self.number + self._step % 2)]

    def _after_barrier(self) -> bytes:
        """The bytes to send after the switch has answered a step's barrier, or refused it."""
        if self._unsent and not self._error_count:
            return b"".join(self._next())
        committed = self._confirmed and not self._error_count
        self._finish(committed=committed)
        return DISCARD if self.bundled and not committed else b""

    def _finish(self, *, committed: bool, lost: bool = False) -> None:
        """End the change, and pass its outcome on, once."""
        if not self.over:
            self.over = True
            first_errors = tuple(self._first_errors.values())
            self.done(ChangeOutcome(committed, first_errors, self._error_count, lost))


@dataclass(slots=True)
class _PendingRequest:
    """A request that the switch has not answered in full."""

    kind: int
    """The type of the multipart request."""
    on_reply: OnReply
    """Called with the reply."""
    since: float
    """When the request was sent, or the latest part of the reply came."""
    patience: float
    """Seconds that the reply may take."""
    bodies: list[bytes] = field(default_factory=list)
    """The bodies of the reply so far: OpenFlow divides a long reply into several messages."""
    size: int = 0
    """The bytes of these bodies."""


class Conversation:
    """The changes and requests that a switch has not answered yet.

    Args:
        send: puts bytes into the connection's queue.
        fault: gets errors that match none of our requests, and those of bundles that the switch
            has given up.
        clock: seconds on a monotonic clock.

    Attributes:
        bundles: whether the switch has bundles; without them a change goes in steps.
    """

    def __init__(
        self,
        send: Send,
        fault: Callable[[Error], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.send, self._fault, self.clock = send, fault, clock
        self.bundles = True
        self._change_numbers = count(0, 2)
        """The numbers of the next changes."""
        self._request_numbers = count()
        """The numbers of the next requests."""
        self._last_answer = 0.0
        """When the switch last answered a step of the running change, or that change began."""
        self._running: ChangeInProgress | None = None
        """The change that the switch carries out; None while there is none."""
        self._waiting: deque[ChangeInProgress] = deque()
        """The changes that wait for the running one to end."""
        self._once_idle: list[Callable[[], None]] = []
        """The functions to call once no change is under way (`once_idle`)."""
        self._requests: dict[int, _PendingRequest] = {}
        """The requests that are not answered, by xid."""

    def change(
        self, parts: Sequence[bytes], done: Done, on_sent: Callable[[], None] = lambda: None
    ) -> None:
        """Apply these messages (bundled adds), atomically if the switch can, after earlier ones.

        Args:
            parts: the messages.
            done: gets the outcome.
            on_sent: called when the last step has been sent after the answer to an earlier one;
                bulk messages that it sends follow that step. It is not called if the change ends
                before its last step, or has a single step, as a change without bundles may.
        """
        number = next(self._change_numbers) & MOST_NUMBER
        self._waiting.append(ChangeInProgress(number, parts, done, self.bundles, on_sent))
        for part in self._begin():
            self.send(SendPriority.BULK, part)

    def ask(
        self,
        kind: Multipart,
        body: bytes,
        on_reply: OnReply,
        patience: float = inf,
        priority: SendPriority = SendPriority.URGENT,
    ) -> None:
        """Send a multipart request, ahead of bulk."""
        xid = rows.xid(REQUEST, next(self._request_numbers) & MOST_NUMBER)
        self._requests[xid] = _PendingRequest(kind, on_reply, self.clock(), patience)
        self.send(priority, multipart.request(kind, xid, body))

    def ask_all(
        self,
        requests: Mapping[Multipart, bytes],
        on_replies: OnReplies,
        patience: float = inf,
        priority: SendPriority = SendPriority.URGENT,
    ) -> None:
        """Send several requests.

        Args:
            requests: the bodies of the requests, by their types.
            on_replies: called once, with the replies to all of them.
            patience: seconds after which one without a reply counts as refused.
            priority: of the requests.
        """
        replies: dict[Multipart, bytes | None] = {}

        def take_reply(kind: Multipart, body: bytes | None) -> None:
            replies[kind] = body
            if len(replies) == len(requests):
                on_replies(replies)

        for kind, body in requests.items():
            self.ask(kind, body, partial(take_reply, kind), patience, priority)

    def received(self, message: bytes) -> None:
        """Handle an error, or an answer to one of our messages.

        Raises:
            Malformed: it cannot be read.
        """
        kind, _, xid = header(message)
        if kind == MessageType.ERROR:
            self._error(Error.read(message))
        elif kind == MessageType.MULTIPART_REPLY:
            self._reply(xid, message)
        elif self._running is not None:
            self._last_answer = self.clock()
            self._go_on(self._running.received(message))

    def once_idle(self, on_idle: Callable[[], None]) -> None:
        """Call a function once all changes have ended, or at once if none is under way.

        Until then what the switch holds is not what it will hold.
        """
        if self._running is None:
            on_idle()
        else:
            self._once_idle.append(on_idle)

    def lost(self) -> None:
        """Fail all open changes and requests: the connection has ended."""
        self._once_idle.clear()
        changes = list(self._waiting)
        if self._running is not None:
            changes.insert(0, self._running)
            self._running = None
        for change in changes:
            change.lost()
        self._waiting.clear()
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.on_reply(None)

    def tick(self, patience: float) -> bool:
        """Fail the requests that have waited for longer than their own patience.

        Returns:
            Whether any other answer has been outstanding for longer than `patience` seconds.
        """
        now = self.clock()
        late = [
            xid for xid, request in self._requests.items() if now - request.since > request.patience
        ]
        for xid in late:
            self._requests.pop(xid).on_reply(None)
        oldest = [request.since for request in self._requests.values()]
        oldest += [self._last_answer] if self._running else []
        return bool(oldest) and now - min(oldest) > patience

    @property
    def awaits(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._requests) or self._running is not None

    @property
    def running_bytes(self) -> int:
        """The bytes of the change that the switch is carrying out."""
        return self._running.size if self._running else 0

    def _begin(self) -> list[bytes]:
        """Start the next change, unless one is running; returns its first messages."""
        if self._running is not None or not self._waiting:
            return []
        self._running, self._last_answer = self._waiting.popleft(), self.clock()
        return self._running.start()

    def _go_on(self, next_bytes: bytes) -> None:
        """Go on with the running change after the switch has answered.

        Args:
            next_bytes: what the change sends next, which may be nothing.
        """
        if next_bytes:
            self.send(SendPriority.BULK, next_bytes)
        change = self._running
        if change is not None and change.over:
            self._running = None
            self._begin_next()
        elif change is not None and next_bytes and change.is_sent:
            change.on_sent()

    def _begin_next(self) -> None:
        """Begin the next change; if none waits, call those who wait for that."""
        for part in self._begin():
            self.send(SendPriority.BULK, part)
        if self._running is None:
            waiting, self._once_idle = self._once_idle, []
            for on_idle in waiting:
                on_idle()

    def _error(self, error: Error) -> None:
        """Take an error of the switch: of a request, of the running change, or of neither."""
        if error.xid == SessionXid.DISCARD:
            return
        if error.xid >> XID_BITS == REQUEST:
            request = self._requests.pop(error.xid, None)
            if request is not None:
                request.on_reply(None)
        elif self._running is not None:
            if error.timed_out:
                self._fault(error)
            self._go_on(self._running.error(error))
        else:
            self._fault(error)

    def _reply(self, xid: int, message: bytes) -> None:
        """Take one message of the reply to a multipart request.

        Raises:
            Malformed: it is of another type, or the reply is too long.
        """
        request = self._requests.get(xid)
        if request is None:
            return
        reply = multipart.part(message)
        request.bodies.append(reply.body)
        request.size += len(reply.body)
        request.since = self.clock()
        if reply.kind != request.kind or request.size > MOST_REPLY:
            raise Malformed(f"a reply of type {reply.kind} with {request.size} bytes")
        if reply.is_last:
            del self._requests[xid]
            request.on_reply(b"".join(request.bodies))
