"""Half-open connections: those of peers that have not shown yet that they belong here. No I/O.

There is room for a limited number, since each is an open file. When it is full, the host that has
most of them loses its oldest one, so that neither many idle connections nor many from one host keep
others out.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Hashable
from math import inf
from time import monotonic

from inventory.problems import InputError

OTHER_FILES = 128
"""Open files besides connections of switches: HTTP clients, the store, logs, what Python opens."""
LEAST_HALF_OPEN, MOST_HALF_OPEN = 64, 1024
"""Half-open connections beyond one for each switch."""


class HalfOpen:
    """At most `most` half-open connections, each with the host that it comes from."""

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most, self._clock = most, clock
        self._since: dict[str, dict[Hashable, float]] = {}
        self._host: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._host)

    def enter(self, key: Hashable, host: str) -> Hashable | None:
        """Add a connection; returns the one that has to give way to it, which is out already."""
        self._host[key] = host
        self._since.setdefault(host, {})[key] = self._clock()
        if len(self._host) <= self._most:
            return None
        crowd = max(self._since.values(), key=len)
        oldest = next(iter(crowd))
        self.leave(oldest)
        return oldest

    def leave(self, key: Hashable) -> None:
        """A connection is not half-open any more, or has ended."""
        host = self._host.pop(key, None)
        if host is not None:
            del self._since[host][key]
            if not self._since[host]:
                del self._since[host]

    def wait(self, key: Hashable) -> None:
        """A connection is never late from now on, but still gives way to others."""
        if key in self._host:
            self._since[self._host[key]][key] = inf

    def late(self, patience: float) -> list[Hashable]:
        """The connections that have been half-open for longer than `patience` seconds."""
        before = self._clock() - patience
        return [key for crowd in self._since.values() for key, at in crowd.items() if at < before]


def half_open_room(switches: int) -> int:
    """Raise the limit of open files as far as it goes; returns the room for half-open connections.

    Every switch has room for two connections: one that is dead and one with which it returns.

    Raises:
        InputError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * switches + OTHER_FILES + LEAST_HALF_OPEN
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError.of(
            required=f"at least {needed:,} open files for {switches:,} switches",
            given=f"a hard limit of {hard:,}",
            todo=f"start it with: ulimit -Hn {needed}; or LimitNOFILE={needed} in systemd's unit",
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return switches + MOST_HALF_OPEN
    return min(switches + MOST_HALF_OPEN, hard - switches - OTHER_FILES)
