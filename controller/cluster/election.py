"""The election of the leader of a cluster of controllers, as one instance takes part in it.

The instance that creates the leader's key in the store leads until its lease ends. A leader renews
its lease. It counts the lease from before its request, less a margin, so it stops before the store
lets another one lead. Each leadership has a *term*, a number that only grows.
`controller.cluster.cluster_member` starts an `Election`, and reads who leads.
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
THREAD_PATIENCE = 5.0
"""Most seconds to wait at the end for the thread of the election."""
STUCK = 30.0
"""Seconds without a tick after which the controller's event loop counts as stuck: then the lease is
not renewed."""


def boottime() -> float:
    """Seconds of a monotonic clock that runs on while the machine sleeps."""
    return clock_gettime(CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader, as far as an instance knows it."""

    leader: str = ""
    """The leader's name; "" while it is unknown."""
    term: int = 0
    """The leader's term; 0 while it is unknown."""
    ends: float = -inf
    """When this instance's leadership ends unless it renews its lease, by the election's clock;
    -inf while another one leads."""
    trouble: str = ""
    """Why the store does not answer; "" while it does."""


class Election:
    """One instance's part in an election, in a thread for as long as the event loop ticks."""

    def __init__(self, store: Etcd, name: str, clock: Callable[[], float] = boottime) -> None:
        self.name = name
        """This instance's name in the store."""
        self.view = Leadership()
        """The leader as this instance knows it. Other threads may read it: it is replaced whole."""
        self._store, self._clock = store, clock
        self._lease: int | None = None
        """This instance's lease; None without one."""
        self._last_tick = clock()
        """When the controller's event loop ticked last."""
        self._ended = Event()
        """Set once this instance has left the election."""
        self._thread = Thread(target=self._work, daemon=True, name="election")

    def start(self) -> None:
        """Take part in the election until `end`."""
        self._thread.start()

    def note_tick(self) -> None:
        """Note that the controller's event loop is not stuck."""
        self._last_tick = self._clock()

    def end(self) -> None:
        """Resign, and leave the election."""
        self._ended.set()
        self._thread.join(THREAD_PATIENCE)
        self.resign()

    def _work(self) -> None:
        """Take a step every `LEADER_PERIOD`, in a thread, while the event loop is not stuck."""
        while not self._ended.wait(LEADER_PERIOD):
            if self._clock() - self._last_tick < STUCK:
                self.step()

    def leads(self, term: int) -> bool:
        """Whether this instance still leads in this term."""
        view = self.view
        return view.term == term and self._clock() < view.ends

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
                return  # the lease ends by itself

    def _step(self) -> Leadership:
        """Renew the lease, or get another one, and claim the leadership."""
        requested_at, lease_seconds = self._clock(), 0.0
        if self._lease is not None:
            lease_seconds = self._store.renew(self._lease)
            if not lease_seconds:  # it has ended
                self._lease = None
                self.view = Leadership()
        if self._lease is None:
            self._lease, lease_seconds = self._store.grant(LEASE_SECONDS)
        claimed = self._store.claim(self._lease, self.name)
        ends = requested_at + lease_seconds - LEASE_MARGIN if claimed.is_ours else -inf
        return Leadership(claimed.leader, claimed.term, ends)
