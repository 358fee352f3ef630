"""Who is heard, and who is turned away. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from controller.switches.events import Event, Kind

MOST_BETWEEN = 1.0
"""Seconds between two looks that count as heard at most."""


@dataclass(slots=True)
class ListeningClock:
    """Seconds in which switches could be heard, on a machine that may be very busy.

    Not counted is the time in which we did other work, or fell behind with what they had said. Who
    is behind by the same all the time hears everybody, so that one who never stops talking does not
    keep others that are dead from being missed.
    """

    clock: Callable[[], float]
    """Seconds on a clock that is never set."""
    _deaf: float = 0.0
    """The seconds that do not count."""
    _looked: float | None = None
    """When it was looked last."""
    _behind: float = 0.0
    """How many seconds we were behind then."""

    def __call__(self) -> float:
        """The time by this clock."""
        return self.clock() - self._deaf

    def look(self, oldest: float | None) -> None:
        """Called a few times a second.

        Args:
            oldest: when the first message came that waits; None if none does.
        """
        now = self.clock()
        looked = now if self._looked is None else self._looked
        behind = 0.0 if oldest is None else max(0.0, looked - oldest)
        heard = min(now - looked, MOST_BETWEEN) - max(0.0, behind - self._behind)
        self._deaf += now - looked - max(0.0, heard)
        self._looked, self._behind = now, behind


@dataclass(slots=True)
class Allowance:
    """Messages that all peers together may send in a second; they may all come at once."""

    clock: Callable[[], float]
    """Seconds on a clock that is never set."""
    rate: float
    """Messages a second."""
    _left: float = field(init=False)
    """How many messages more were allowed when it was asked last."""
    _since: float = field(init=False)
    """When that was."""

    def __post_init__(self) -> None:
        self._left, self._since = self.rate, self.clock()

    def takes(self, messages: int) -> bool:
        """Whether so many more are allowed; then they count."""
        now = self.clock()
        self._left = min(self.rate, self._left + (now - self._since) * self.rate)
        self._since = now
        allowed = self._left >= messages
        self._left -= messages if allowed else 0
        return allowed


RETELL = 60.0
"""Seconds between two lines about the same host and reason; the second says how often since."""
MOST_REASONS = 1000
"""Hosts and reasons that are distinguished in that time; further ones share a line."""
OTHERS = "other hosts"
"""What that line has in the place of a host."""


@dataclass(slots=True)
class RejectedPeers:
    """Peers that were turned away, by kind of event, host and reason."""

    tell: Callable[[Event], None]
    """Takes events."""
    clock: Callable[[], float]
    """Seconds on a clock that is never set."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many were turned away, by the name of the kind of event."""
    _since: dict[tuple[Kind, str, str], float] = field(default_factory=dict)
    """When it was told last, by kind of event, host and reason."""
    _more: dict[tuple[Kind, str, str], int] = field(default_factory=dict)
    """How often it has happened since."""

    def add(self, kind: Kind, host: str, reason: str) -> None:
        """A peer on this host was turned away; the first time it is reported at once."""
        self.counts[kind.name] += 1
        key = self._key(kind, host, reason)
        if key in self._since:
            self._more[key] = self._more.get(key, 0) + 1
            return
        self._since[key] = self.clock()
        self.tell(kind(*key[1:], 1))

    def recent(self, kind: Kind, host: str, reason: str) -> tuple[int, float]:
        """How often that was lately, and for how many seconds it still counts."""
        key = self._key(kind, host, reason)
        left = self._since.get(key, -inf) + RETELL - self.clock()
        return (1 + self._more.get(key, 0), left) if left > 0 else (0, 0.0)

    def tick(self) -> None:
        """Time passes: tell what has happened again meanwhile, and forget what has not."""
        now = self.clock()
        for key in [key for key, since in self._since.items() if now - since >= RETELL]:
            times = self._more.pop(key, 0)
            if times:
                self._since[key] = now
                self.tell(key[0](*key[1:], times))
            else:
                del self._since[key]

    def _key(self, kind: Kind, host: str, reason: str) -> tuple[Kind, str, str]:
        """What is told of as one; others where there are too many."""
        key = kind, host, reason
        full = key not in self._since and len(self._since) >= MOST_REASONS
        return (kind, OTHERS, "too many hosts and reasons to list") if full else key


class HalfOpen:
    """Half-open connections, by address: their peers have not shown yet that they belong here.

    There is room for `most`, since each is an open file. When it is full, the host that has most of
    them loses its oldest one, so that neither many idle connections nor many from one host keep
    others out.
    """

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most, self._clock = most, clock
        self._since: dict[Any, float] = {}
        """When each began, the oldest first."""

    def enter(self, address: Any) -> Any:
        """Add a connection; returns the one that has to give way to it, which is out already."""
        self._since[address] = self._clock()
        if len(self._since) <= self._most:
            return None
        ((busiest, _),) = Counter(host for host, *_ in self._since).most_common(1)
        oldest = next(address for address in self._since if address[0] == busiest)
        self.leave(oldest)
        return oldest

    def leave(self, address: Any) -> None:
        """A connection is not half-open any more, or has ended."""
        self._since.pop(address, None)

    def wait(self, address: Any) -> None:
        """A connection is never late from now on, but still gives way to others."""
        if address in self._since:
            self._since[address] = inf

    def late(self, patience: float) -> list[Any]:
        """The connections that have been half-open for longer than `patience` seconds."""
        before = self._clock() - patience
        return [address for address, since in self._since.items() if since < before]
