"""Limits on peers that connect to the controller: messages a second, and time to identify oneself.

The switch sessions (`controller.switches.session`) and the listening sockets use them: a rate limit
for messages of unknown peers, counts of rejected peers for the log, and the table of half-open
connections. No I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from controller.switches.events import Event, Kind

REPORT_PERIOD = 60.0
"""Seconds between two events about the same host and reason. The second event has their count."""
MOST_REASONS = 100
"""Most pairs of host and reason of a kind of event that are counted apart at a time.

As many more may be of hosts of the fabric's own switches. Of further hosts only the reasons are
counted apart, again so many at most. All further ones are one pair. It is a tenth of
`EVENTS_KEPT`, so that guessed tokens from many addresses leave older events readable."""
OTHERS = "other hosts"
"""The host of the pairs that stand for further hosts."""
TOO_MANY = "too many hosts and reasons to list"
"""The reason of the pair that stands for all further hosts and reasons."""

_Cause = tuple[Kind, str, str]
"""Why a peer was rejected: the kind of event, its host and the reason."""


@dataclass(slots=True)
class TokenBucket:
    """A token bucket: limits the messages a second that all unknown peers together may send.

    It holds at most the messages of one second, which may all come at once.
    """

    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    rate: float
    """Messages a second."""
    _tokens: float = field(init=False)
    """The messages that the bucket held at the last refill or taking."""
    _last_refill: float = field(init=False)
    """When the bucket was refilled last, by `clock`."""

    def __post_init__(self) -> None:
        self._tokens, self._last_refill = self.rate, self.clock()

    def take(self, messages: int) -> bool:
        """Take so many messages from the bucket if it holds them; returns whether it did."""
        now = self.clock()
        self._tokens = min(self.rate, self._tokens + (now - self._last_refill) * self.rate)
        self._last_refill = now
        if self._tokens < messages:
            return False
        self._tokens -= messages
        return True


@dataclass(slots=True)
class RejectedPeers:
    """Counts rejected peers, and reports each cause at most once in `REPORT_PERIOD` seconds."""

    tell: Callable[[Event], None]
    """Reports an event."""
    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    is_own: Callable[[str], bool] = lambda _: False
    """Whether a host is one of the fabric's switches, as far as is known."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many were rejected, by the name of the kind of event."""
    _last_reports: dict[_Cause, float] = field(default_factory=dict)
    """When each cause was reported last, by `clock`."""
    _unreported: dict[_Cause, int] = field(default_factory=dict)
    """How often each cause has happened since its last report."""

    def add(self, kind: Kind, host: str, reason: str) -> None:
        """Count a rejected peer; a new cause is reported at once."""
        self.counts[kind.name] += 1
        cause = self._cause(kind, host, reason)
        if cause in self._last_reports:
            self._unreported[cause] = self._unreported.get(cause, 0) + 1
            return
        self._last_reports[cause] = self.clock()
        kind, host, reason = cause  # `host` may be OTHERS now
        self.tell(kind(host, reason, 1))

    def recent(self, kind: Kind, host: str, reason: str) -> tuple[int, float]:
        """How often a cause has happened since its last report, and when it may be reported again.

        Returns:
            The count, with the reported one, and the seconds until the next report. Both are zero
            if the cause may be reported now.
        """
        cause = self._cause(kind, host, reason)
        seconds_left = self._last_reports.get(cause, -inf) + REPORT_PERIOD - self.clock()
        return (1 + self._unreported.get(cause, 0), seconds_left) if seconds_left > 0 else (0, 0.0)

    def tick(self) -> None:
        """After `REPORT_PERIOD` seconds, report a cause that has happened again, or forget it."""
        now = self.clock()
        for cause in [
            cause for cause, at in self._last_reports.items() if now - at >= REPORT_PERIOD
        ]:
            times = self._unreported.pop(cause, 0)
            if times:
                self._last_reports[cause] = now
                kind, host, reason = cause
                self.tell(kind(host, reason, times))
            else:
                del self._last_reports[cause]

    def _cause(self, kind: Kind, host: str, reason: str) -> _Cause:
        """The cause to count a rejected peer under: a common one if there are too many causes."""
        of_kind = [cause for cause in self._last_reports if cause[0] is kind]
        common = sum(cause[1] == OTHERS for cause in of_kind)
        cause, cause_of_others = (kind, host, reason), (kind, OTHERS, reason)
        pairs = len(of_kind) - common
        if cause in self._last_reports or pairs < MOST_REASONS:
            return cause
        if pairs < 2 * MOST_REASONS and self.is_own(host):
            return cause
        if cause_of_others in self._last_reports or common < MOST_REASONS:
            return cause_of_others
        return kind, OTHERS, TOO_MANY


class _HostsByCount:
    """Hosts and how many connections each has. The host with most is found without a search."""

    def __init__(self) -> None:
        self._count_of: dict[str, int] = {}
        """How many connections each host has, more than 0."""
        self._with_count: dict[int, dict[str, None]] = {}
        """The hosts with so many connections, by the number, if there are any."""
        self.most = 0
        """The highest number; 0 without hosts."""
        self.connections = 0
        """How many connections all hosts have."""

    def __contains__(self, host: str) -> bool:
        return host in self._count_of

    def set_count(self, host: str, count: int) -> None:
        """Set how many connections a host has."""
        before = self._count_of.pop(host, 0)
        self.connections += count - before
        if before:
            del self._with_count[before][host]
            if not self._with_count[before]:
                del self._with_count[before]
        if count:
            self._count_of[host] = count
            self._with_count.setdefault(count, {})[host] = None
        self.most = max(self.most, count)
        while self.most and self.most not in self._with_count:
            self.most -= 1

    def busiest(self) -> str:
        """The host with most connections; "" without hosts."""
        return next(iter(self._with_count[self.most])) if self.most else ""


class HalfOpen:
    """The table of half-open connections: those whose peers have not identified themselves yet.

    Connections are named by their addresses: pairs of host and port. There is room for `most`,
    since each is an open file. When the table is full, the host that has most entries loses its
    oldest one, so that neither many idle connections nor many from one host keep others out. The
    preferred hosts, such as those of the fabric's switches, lose none while another host has one.
    But if together they hold more than half of the room, one that has more connections than each
    other host counts like these.
    """

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most, self._clock = most, clock
        self._by_host: dict[str, dict[Any, float]] = {}
        """When each connection was opened, by host and address, the oldest of a host first."""
        self._preferred_hosts, self._other_hosts = _HostsByCount(), _HostsByCount()
        """The preferred hosts, and all others, by their connections."""
        self._entries = 0
        """How many connections there are."""

    def enter(self, address: Any, *, is_preferred: bool = False) -> Any:
        """Add a connection.

        Args:
            address: its address.
            is_preferred: whether it is from a host such as those of the fabric's own switches.

        Returns:
            The address of the connection that was removed to make room, which the caller has to
            close; None if there was room.
        """
        self.leave(address)
        host = address[0]
        connections = self._by_host.setdefault(host, {})
        connections[address] = self._clock()
        self._entries += 1
        is_preferred = is_preferred or host in self._preferred_hosts
        self._other_hosts.set_count(host, 0 if is_preferred else len(connections))
        self._preferred_hosts.set_count(host, len(connections) if is_preferred else 0)
        if self._entries <= self._most:
            return None
        preferred, others = self._preferred_hosts, self._other_hosts
        has_too_many = preferred.connections > self._most / 2 and preferred.most > others.most
        busiest_host = (preferred if has_too_many or not others.most else others).busiest()
        oldest = next(iter(self._by_host[busiest_host]))
        self.leave(oldest)
        return oldest

    def leave(self, address: Any) -> None:
        """Remove a connection: it is not half-open any more, or has ended."""
        host = address[0]
        connections = self._by_host.get(host, {})
        if address in connections:
            del connections[address]
            self._entries -= 1
            hosts = self._preferred_hosts if host in self._preferred_hosts else self._other_hosts
            hosts.set_count(host, len(connections))
            if not connections:
                del self._by_host[host]

    def exempt(self, address: Any) -> None:
        """Exempt a connection from the time limit; it may still be removed to make room."""
        connections = self._by_host.get(address[0], {})
        if address in connections:
            connections[address] = inf

    def late(self, patience: float) -> list[Any]:
        """The addresses that have been half-open for longer than `patience` seconds."""
        latest = self._clock() - patience
        return [
            address
            for connections in self._by_host.values()
            for address, opened in connections.items()
            if opened < latest
        ]
