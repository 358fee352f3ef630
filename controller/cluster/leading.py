"""Who leads, where several controllers are configured at the same switches. Time is injected.

Whoever creates the leader's key in the store leads, until its lease ends. A leader renews its
lease; it counts the lease from before it asked, less a margin, so it stops before the store lets
another one lead. What it wrote too late is refused by the switches: each leadership has a *term*,
which only grows, and is the generation id of its OpenFlow role (`controller.cluster.roles`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from time import CLOCK_BOOTTIME, clock_gettime
from typing import Protocol

LEASE_SECONDS = 5
"""Seconds that a lease lasts: how long a fabric is without a controller when its leader dies."""
LEASE_MARGIN = 1.0
"""Seconds by which a leader stops before its lease ends."""
LEADER_PERIOD = 0.5
"""Seconds between two looks at the store."""


class Unavailable(Exception):
    """The store does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Who leads: its name, its term, and whether it is the one who asked."""

    leader: str
    term: int
    ours: bool


class Store(Protocol):
    """What an election needs of a store. Every method may raise `Unavailable`."""

    def grant(self, ttl: int) -> tuple[int, float]:
        """A lease, and how many seconds it lasts."""

    def renew(self, lease: int) -> float:
        """Let it last that many seconds from now; 0: it has ended."""

    def claim(self, lease: int, name: str) -> Claimed:
        """Lead as long as the lease lasts, if nobody does."""

    def revoke(self, lease: int) -> None:
        """End a lease, and with it a leadership."""


def boottime() -> float:
    """Seconds of a clock that no one sets, and that goes on while the machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Leadership:
    """What an instance knows: the leader's name and term ("" and 0: unknown), until when it leads
    itself, and why the store does not answer.
    """

    leader: str = ""
    term: int = 0
    until: float = -inf
    trouble: str = ""


class Election:
    """One instance's part in it. `standing` is replaced as a whole: other threads may read it."""

    def __init__(self, store: Store, name: str, clock: Callable[[], float] = boottime) -> None:
        self.name, self.standing = name, Leadership()
        self._store, self._clock = store, clock
        self._lease: int | None = None

    def leads(self, term: int) -> bool:
        """Whether what this instance writes in this term is still meant."""
        standing = self.standing
        return standing.term == term and self._clock() < standing.until

    @property
    def term(self) -> int:
        """The term in which this instance leads now; 0 where it does not."""
        term = self.standing.term
        return term if self.leads(term) else 0

    def step(self) -> None:
        """Renew the lease and look who leads; called every `LEADER_PERIOD`."""
        try:
            self.standing = self._step()
        except Unavailable as error:
            self.standing = replace(self.standing, trouble=str(error))
        except (LookupError, ValueError, TypeError) as error:
            self.standing = replace(self.standing, trouble=f"cannot be understood: {error!r}")

    def resign(self) -> None:
        """Lead no more, and let another lead at once."""
        lease, self._lease = self._lease, None
        self.standing = Leadership()
        if lease is not None:
            try:
                self._store.revoke(lease)
            except Unavailable:
                return  # it ends by itself

    def _step(self) -> Leadership:
        asked = self._clock()
        if self._lease is not None and not (ttl := self._store.renew(self._lease)):
            self._lease = None
            self.standing = Leadership()
        if self._lease is None:
            self._lease, ttl = self._store.grant(LEASE_SECONDS)
        claimed = self._store.claim(self._lease, self.name)
        until = asked + ttl - LEASE_MARGIN if claimed.ours else -inf
        return Leadership(claimed.leader, claimed.term, until)
