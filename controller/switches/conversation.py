"""Bundles, requests and replies of one connection; bundles go one after the other. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import inf
from time import monotonic

from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, XID_BITS, xid
from compilers.targets.openflow.protocol import Malformed, MessageType, Multipart, header
from controller.openflow import multipart
from controller.openflow.messages import Error, SessionXid
from controller.switches.connections.sending import SendPriority
from controller.switches.transaction import Change, Done

REQUEST = 0xA0
"""The upper 8 bits of the xids of multipart requests; a program's have smaller ones there."""
MOST_REPLY = 64 << 20
"""Largest reply in bytes, all parts together; a switch that sends more is disconnected."""

Send = Callable[[SendPriority, bytes], None]
Answer = Callable[[bytes | None], None]
"""Called once with the reply to a request, its parts joined, or None if there is no reply."""
Answers = Callable[[Mapping[Multipart, bytes | None]], None]
"""Called once with the replies to several requests."""


@dataclass(slots=True)
class _PendingRequest:
    kind: int
    answer: Answer
    since: float
    patience: float
    parts: list[bytes] = field(default_factory=list)
    size: int = 0


class Conversation:
    """The transactions and requests that a switch has not answered yet.

    bundles: whether the switch has them; without, a change goes in steps. send puts bytes into the
    connection's queue; fault gets errors that match none of our requests, and those of bundles that
    the switch has given up.
    """

    def __init__(
        self,
        send: Send,
        fault: Callable[[Error], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.send, self._fault, self.clock = send, fault, clock
        self.bundles = True
        self._numbers = count(0, 2)
        self._xids = count()
        self._since = 0.0
        self._running: Change | None = None
        self._waiting: deque[Change] = deque()
        self._requests: dict[int, _PendingRequest] = {}

    def change(
        self, parts: Sequence[bytes], done: Done, then: Callable[[], None] = lambda: None
    ) -> None:
        """Apply these messages (bundled adds), atomically if the switch can, after earlier ones.

        then: is called when the last step has been sent in answer to the one before; what it sends
        as bulk follows.
        """
        number = next(self._numbers) & MOST_NUMBER
        self._waiting.append(Change(number, parts, done, self.bundles, then))
        for part in self._begin():
            self.send(SendPriority.BULK, part)

    def ask(
        self,
        kind: Multipart,
        body: bytes,
        answer: Answer,
        patience: float = inf,
        priority: SendPriority = SendPriority.URGENT,
    ) -> None:
        """Send a multipart request, ahead of bulk."""
        number = xid(REQUEST, next(self._xids) & MOST_NUMBER)
        self._requests[number] = _PendingRequest(kind, answer, self.clock(), patience)
        self.send(priority, multipart.request(kind, number, body))

    def ask_all(
        self,
        requests: Mapping[Multipart, bytes],
        answer: Answers,
        patience: float = inf,
        priority: SendPriority = SendPriority.URGENT,
    ) -> None:
        """Send several requests; answer is called once, with the replies to all of them.

        patience: seconds after which one without a reply counts as refused.
        """
        replies: dict[Multipart, bytes | None] = {}

        def told(kind: Multipart, body: bytes | None) -> None:
            replies[kind] = body
            if len(replies) == len(requests):
                answer(replies)

        for kind, body in requests.items():
            self.ask(kind, body, partial(told, kind), patience, priority)

    def received(self, message: bytes) -> None:
        """Handle an error, or an answer to one of our messages.

        Raises:
            Malformed: it cannot be read.
        """
        kind, _, number = header(message)
        if kind == MessageType.ERROR:
            self._error(Error.read(message))
        elif kind == MessageType.MULTIPART_REPLY:
            self._reply(number, message)
        elif self._running is not None:
            self._since = self.clock()
            self._go_on(self._running.received(message))

    def lost(self) -> None:
        """The connection has ended: all open transactions and requests fail."""
        running, self._running = self._running, None
        for transaction in ([running] if running else []) + list(self._waiting):
            transaction.lost()
        self._waiting.clear()
        requests, self._requests = self._requests, {}
        for request in requests.values():
            request.answer(None)

    def tick(self) -> None:
        """Time passes: requests that have waited for longer than their patience are refused."""
        now = self.clock()
        late = [n for n, one in self._requests.items() if now - one.since > one.patience]
        for number in late:
            self._requests.pop(number).answer(None)

    def overdue(self, patience: float) -> bool:
        """Whether an answer has been outstanding for longer than `patience` seconds."""
        oldest = [request.since for request in self._requests.values()]
        oldest += [self._since] if self._running else []
        return bool(oldest) and self.clock() - min(oldest) > patience

    @property
    def awaits(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._requests) or self._running is not None

    @property
    def busy(self) -> bool:
        """Whether a bundle is in progress or queued."""
        return self._running is not None

    @property
    def changing(self) -> int:
        """The bytes of the change that the switch is carrying out."""
        return self._running.size if self._running else 0

    def _begin(self) -> list[bytes]:
        """What the next change begins with, unless one is running."""
        if self._running is not None or not self._waiting:
            return []
        self._running, self._since = self._waiting.popleft(), self.clock()
        return self._running.start()

    def _go_on(self, answer: bytes) -> None:
        """Send the running change's next messages; start the next change when it is done."""
        if answer:
            self.send(SendPriority.BULK, answer)
        if self._running is not None and self._running.over:
            self._running = None
            for part in self._begin():
                self.send(SendPriority.BULK, part)
        elif self._running is not None and answer and self._running.last:
            self._running.then()

    def _error(self, error: Error) -> None:
        if error.xid == SessionXid.DISCARD:
            return
        if error.xid >> XID_BITS == REQUEST:
            if request := self._requests.pop(error.xid, None):
                request.answer(None)
        elif self._running is not None:
            if error.timed_out:
                self._fault(error)
            self._go_on(self._running.error(error))
        else:
            self._fault(error)

    def _reply(self, number: int, message: bytes) -> None:
        request = self._requests.get(number)
        if request is None:
            return
        kind, body, last = multipart.part(message)
        request.parts.append(body)
        request.size += len(body)
        request.since = self.clock()
        if kind != request.kind or request.size > MOST_REPLY:
            raise Malformed(f"a reply of type {kind} with {request.size} bytes")
        if last:
            del self._requests[number]
            request.answer(b"".join(request.parts))
