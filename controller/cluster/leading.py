"""Leader election among the controllers of one fabric. Time is injected.

The instance that creates the leader's key in the store leads until its lease ends. A leader renews
its lease; it counts the lease from before its request, less a margin, so it stops before the store
lets another one lead. Switches refuse its late messages: each leadership has a *term*, which only
grows and is the generation id of its OpenFlow role (`controller.cluster.roles`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from threading import Event, Thread
from time import CLOCK_BOOTTIME, clock_gettime

from controller.cluster.store import Etcd, Unavailable

LEASE_SECONDS = 5
"""Seconds of a lease: the longest time a fabric is without a controller when its leader dies."""
LEASE_MARGIN = 1.0
"""Seconds by which a leader stops before its lease ends."""
LEADER_PERIOD = 0.5
"""Seconds between two requests to the store."""
STUCK = 30.0
"""Seconds without a tick after which the hub counts as stuck and the lease is not renewed."""


def boottime() -> float:
    """Seconds of a clock that is never set and runs on while the machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Leadership:
    """An instance's view: the leader's name and term ("" and 0: unknown), until when it leads
    itself, and why the store does not answer.
    """

    leader: str = ""
    term: int = 0
    until: float = -inf
    trouble: str = ""


class Election:
    """One instance's part in an election, in a thread for as long as the hub ticks.

    Other threads may read `view`: it is replaced whole.
    """

    def __init__(self, store: Etcd, name: str, clock: Callable[[], float] = boottime) -> None:
        self.name, self.view = name, Leadership()
        self._store, self._clock = store, clock
        self._lease: int | None = None
        self._seen, self._over = clock(), Event()
        self._thread = Thread(target=self._work, daemon=True, name="election")

    def start(self) -> None:
        """Take part until `end`."""
        self._thread.start()

    def alive(self) -> None:
        """The hub ticks."""
        self._seen = self._clock()

    def end(self) -> None:
        """Resign, and take part no more."""
        self._over.set()
        self._thread.join(5.0)
        self.resign()

    def _work(self) -> None:
        while not self._over.wait(LEADER_PERIOD):
            if self._clock() - self._seen < STUCK:
                self.step()

    def leads(self, term: int) -> bool:
        """Whether this instance still leads in this term."""
        view = self.view
        return view.term == term and self._clock() < view.until

    @property
    def term(self) -> int:
        """The term in which this instance leads now; 0 if it does not."""
        term = self.view.term
        return term if self.leads(term) else 0

    def step(self) -> None:
        """Renew the lease and read the leader; called every `LEADER_PERIOD`."""
        try:
            self.view = self._step()
        except Unavailable as error:
            self.view = replace(self.view, trouble=str(error))
        except (LookupError, ValueError, TypeError) as error:
            self.view = replace(self.view, trouble=f"cannot be understood: {error!r}")

    def resign(self) -> None:
        """Resign, so that another instance leads at once."""
        lease, self._lease = self._lease, None
        self.view = Leadership()
        if lease is not None:
            try:
                self._store.revoke(lease)
            except Unavailable:
                return  # it ends by itself

    def _step(self) -> Leadership:
        asked = self._clock()
        if self._lease is not None and not (ttl := self._store.renew(self._lease)):
            self._lease = None
            self.view = Leadership()
        if self._lease is None:
            self._lease, ttl = self._store.grant(LEASE_SECONDS)
        claimed = self._store.claim(self._lease, self.name)
        until = asked + ttl - LEASE_MARGIN if claimed.ours else -inf
        return Leadership(claimed.leader, claimed.term, until)
