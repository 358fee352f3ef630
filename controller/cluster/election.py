"""The election of the leader of a cluster of controllers, as one instance takes part in it.

The instance that creates the leader's key in the store leads until its lease ends. A leader renews
its lease. It counts the lease from before its request, less a margin, so it stops before the store
lets another one lead. Each leadership has a *term*, a number that only grows.

Each instance writes into the store how many switches answer it. A leader that lacks most of them
resigns if another instance has far more: it can repair little. No such instance becomes the leader
in its place, either.

`controller.cluster.cluster_member` starts an `Election`, and reads who leads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from operator import itemgetter
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

GIVE_WAY_AFTER = 30.0
"""Seconds for which a leader has to be outnumbered without a break before it resigns."""
SWITCHES = "switches/"
"""The prefix of the keys with the number of switches of each instance."""
FAR_MORE = 2
"""An instance is outnumbered if another one has more than so many times its switches."""


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
        self._answering = 0
        """How many switches of its build answer this instance."""
        self._expected = 0
        """How many switches its build has."""
        self._stored_number: tuple[int, int] | None = None
        """The lease and the number of switches that the store has of this instance; None for
        none."""
        self._outnumbered_since = inf
        """Since when this leader has been outnumbered; inf while it is not."""
        self.gave_way = ""
        """Why this instance resigned as the leader, in words; "" if it has not."""
        self._ended = Event()
        """Set once this instance has left the election."""
        self._thread = Thread(target=self._work, daemon=True, name="election")

    def start(self) -> None:
        """Take part in the election until `end`."""
        self._thread.start()

    def note_tick(self, answering: int, expected: int) -> None:
        """Note that the controller's event loop is not stuck.

        Args:
            answering: how many switches of its build answer this instance.
            expected: how many switches its build has.
        """
        self._last_tick = self._clock()
        self._answering, self._expected = answering, expected

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
        began = self._clock()
        is_outnumbered = False
        try:
            self.view = self._step()
            self._store_number(began)
            is_outnumbered = bool(self.term) and self._is_outnumbered(began)
        except Unavailable as error:
            self.view = replace(self.view, trouble=str(error))
        except (LookupError, ValueError, TypeError) as error:
            self.view = replace(self.view, trouble=f"cannot be understood: {error!r}")
        self._outnumbered_since = min(self._outnumbered_since, began) if is_outnumbered else inf
        if began >= self._outnumbered_since + GIVE_WAY_AFTER:
            self._give_way()

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
        may_become_leader = bool(self.term) or not self._is_outnumbered(requested_at)
        claimed = self._store.claim(self._lease, self.name, may_become_leader)
        ends = requested_at + lease_seconds - LEASE_MARGIN if claimed.is_ours else -inf
        if claimed.is_ours:
            self.gave_way = ""
        return Leadership(claimed.leader, claimed.term, ends)

    def _store_number(self, began: float) -> None:
        """Write how many switches answer this instance, if the store has another number.

        Args:
            began: when this step began. A slow store is asked for nothing that can wait, so that
                the lease is renewed in time.
        """
        number = self._lease, self._answering
        if self._stored_number != number and self._clock() < began + LEADER_PERIOD:
            self._put_number()

    def _put_number(self) -> None:
        """Write how many switches answer this instance."""
        if self._lease is not None:
            number = str(self._answering).encode()
            self._store.put_with_lease(f"{SWITCHES}{self.name}", number, self._lease)
            self._stored_number = self._lease, self._answering

    def _is_outnumbered(self, began: float) -> bool:
        """Whether this instance lacks most switches, and another one has far more.

        Args:
            began: when this step began, as for `_store_number`.
        """
        if 2 * self._answering > self._expected or self._clock() >= began + LEADER_PERIOD:
            return False
        return self._most_elsewhere()[1] > FAR_MORE * self._answering

    def _most_elsewhere(self) -> tuple[str, int]:
        """The other instance that most switches answer, and how many these are; ("", 0) for none.

        Raises:
            ValueError: the store has something that is no number.
        """
        stored = self._store.values(SWITCHES).items()
        names = ((key.removeprefix(SWITCHES), int(value)) for key, value in stored)
        others = [(name, number) for name, number in names if name != self.name]
        return max(others, key=itemgetter(1), default=("", 0))

    def _give_way(self) -> None:
        """Resign, unless the store takes no writes: then nobody could become the leader."""
        try:
            self._put_number()
            other, most = self._most_elsewhere()
        except (Unavailable, ValueError):
            return
        self.gave_way = f"{self._answering} switches answer it, and {most} answer {other}"
        self.resign()
