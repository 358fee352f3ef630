"""A member of a cluster of controllers: it follows, or leads and continues its predecessor's work.

A leader whose lease has ended restarts its process (`again`), which drops all its pending work. No
I/O here: calls to the store run in the store worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Literal, TypeVar

from controller.cluster.leading import LEADER_PERIOD, Election, Unavailable, boottime
from controller.cluster.roles import Roles
from controller.cluster.store import Etcd
from controller.rollout import shared_record
from controller.rollout.build_history import BuildHistory
from controller.rollout.mover import Mover
from controller.rollout.shared_record import Record
from controller.settings import Settings
from controller.switches.current import Current
from controller.switches.events import (
    LeaderChanged,
    LeadershipLost,
    LeaderWaits,
    RoleContested,
    StoreChanged,
)
from inventory.problems import InputError

T = TypeVar("T")
STUCK = 30.0
"""Seconds without a tick after which the hub counts as stuck and the lease is not renewed."""


class StoreWorker:
    """A thread that runs one job at a time; answers are delivered in the thread that polls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._jobs: SimpleQueue[tuple[Callable[[Any], Any], Callable[[Any], None]]] = SimpleQueue()
        self._done: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        Thread(target=self._work, daemon=True, name="store").start()

    def do(self, job: Callable[[Any], T], answer: Callable[[T | Unavailable], None]) -> None:
        """Queue a job; answer gets its result, or the reason why it failed."""
        self._jobs.put((job, answer))

    def poll(self) -> None:
        """Deliver the answers that have arrived."""
        while not self._done.empty():
            answer, result = self._done.get()
            answer(result)

    def _work(self) -> None:
        while True:
            job, answer = self._jobs.get()
            try:
                result = job(self._store)
            except Unavailable as error:
                result = error
            except Exception as error:
                result = Unavailable(f"the store's content cannot be used: {error!r}")
            self._done.put((answer, result))


class Campaign:
    """A thread that runs an election for as long as the hub ticks."""

    def __init__(self, election: Election, clock: Callable[[], float]) -> None:
        self._election, self._clock = election, clock
        self._seen, self._over = clock(), Event()
        self._thread = Thread(target=self._work, daemon=True, name="election")
        self._thread.start()

    def tick(self) -> None:
        """The hub is alive."""
        self._seen = self._clock()

    def end(self) -> None:
        """Resign."""
        self._over.set()
        self._thread.join(5.0)
        self._election.resign()

    def _work(self) -> None:
        while not self._over.wait(LEADER_PERIOD):
            if self._clock() - self._seen < STUCK:
                self._election.step()


RETRY = 2.0
"""Seconds between a new leader's attempts to read its predecessor's record."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """A predecessor's record, and the builds it names that we do not have, proved."""

    record: Record | None
    builds: dict[str, Current]


class ClusterMember:
    """One controller of a cluster; `roles` sits between the app and the fabric.

    mover: makes the `Mover`, given the function it calls before each step of a move.
    state: "preparing" is a leader that still reads its predecessor's record.
    """

    def __init__(
        self,
        mover: Callable[[Callable[[Record], bool]], Mover],
        history: BuildHistory,
        election: Election,
        jobs: StoreWorker,
        again: Callable[[], None],
    ) -> None:
        self.mover, self.history = mover(self.agree), history
        self.fabric = self.mover.fabric
        self.state: Literal["follower", "preparing", "leader"] = "follower"
        self.term = 0
        self.roles = Roles(self.fabric, self._refused, self.fabric.clock)
        self._election, self._jobs, self._again = election, jobs, again
        self._record: Record | None = None
        self._writing: Record | None = None
        self._retry: float | None = None
        self._leader, self._trouble, self._told = "", "", set[int]()
        self.fabric.parts["leading"] = self.status
        self.fabric.ticks.append(self.tick)

    @property
    def lapsed(self) -> bool:
        """Whether this instance led and must not write to switches any more."""
        return bool(self.term) and not self._election.leads(self.term)

    def status(self) -> dict[str, Any]:
        """Role, leader and term, for the status file."""
        return {
            "role": self.state,
            "instance": self._election.name,
            "leader": self._election.view.leader,
            "term": self._election.view.term,
            "sessions": len(self.roles),
        }

    def tick(self) -> None:
        """Time passes."""
        self._tell_changes()
        if self.lapsed:
            self.fabric.tell(LeadershipLost(self._election.name))
            self._again()
            return
        self._jobs.poll()
        if not self.term and (term := self._election.term):
            self.term, self.state, self._retry = term, "preparing", self.fabric.clock()
        if self._retry is not None and self.fabric.clock() >= self._retry:
            self._retry = None
            own, history = self.fabric.identity, self.history
            self._jobs.do(lambda store: _inherit(store, own, history), self._inherited)
        if not self.term:
            self.roles.follow(self._election.view.term)
        self.roles.tick()

    def agree(self, record: Record) -> bool:
        """Whether the store has this record; if not, start writing it."""
        if self._record != record and self._writing is None and self.state == "leader":
            self._writing, term = record, self.term
            self._jobs.do(
                lambda store: shared_record.write(store, term, record, self._packed), self._written
            )
        return self._record == record

    def _written(self, done: bool | Unavailable) -> None:
        if done is True and self._writing:
            self._record = self._writing
        self._writing = None

    # From follower to leader

    def _inherited(self, found: Inherited | Unavailable) -> None:
        """The predecessor's record has arrived: continue from there, or ask for it again."""
        self._retry = self.fabric.clock() + RETRY
        try:
            if isinstance(found, Unavailable):
                raise found
            if found.record is not None:
                self.mover.go_on(found.record, found.builds.__getitem__)
        except (InputError, Unavailable) as error:
            self.fabric.tell(LeaderWaits(self._election.name, str(error)))
            return
        self._retry, self._record, self.state = None, found.record, "leader"
        self.roles.lead(self.term)
        self.fabric.expect()

    # Builds and events

    def _packed(self, identity: str) -> bytes | None:
        """One of our builds, packed; None if it cannot be read (then only we can continue)."""
        try:
            return self.history.packed(identity)
        except InputError:
            return None

    def _refused(self, datapath_id: int) -> None:
        if datapath_id not in self._told:
            self._told.add(datapath_id)
            self.fabric.tell(RoleContested(f"{datapath_id:016x}"))

    def _tell_changes(self) -> None:
        view = self._election.view
        if view.trouble != self._trouble:
            self._trouble = view.trouble
            self.fabric.tell(StoreChanged(view.trouble))
        if view.leader != self._leader:
            self._leader = view.leader
            self.fabric.tell(LeaderChanged(view.leader, view.term))


def _inherit(store: shared_record.RecordStore, own: str, history: BuildHistory) -> Inherited:
    """Read the record; prove and keep its builds that are only in the store.

    Raises:
        Unavailable: one cannot be had, or loses packets.
    """
    record = shared_record.read(store)
    builds = {}
    for identity in sorted(record.builds - {own}) if record else ():
        try:
            if identity in history.kept():
                builds[identity] = history.read(identity)
                continue
            packed = shared_record.fetch(store, identity)
            if packed is None:
                raise Unavailable(f"build {identity} is neither on this machine nor in the store")
            builds[identity] = history.receive(packed, expect=identity)
        except InputError as error:
            raise Unavailable(str(error)) from error
    return Inherited(record, builds)


def join(
    settings: Settings,
    mover: Callable[[Callable[[Record], bool]], Mover],
    history: BuildHistory,
    report: Callable[[], None],
) -> tuple[ClusterMember, Callable[[], None]]:
    """Join a cluster of controllers.

    Args:
        settings: with a group.
        mover: makes the `Mover`, given the function it calls before each step of a move.
        history: the builds of this controller.
        report: prints pending events, before the process restarts.

    Returns:
        The instance, and a function that resigns, so that another one leads at once.

    Raises:
        InputError: the TLS files cannot be used.
    """
    group = settings.group
    if group is None:
        raise ValueError("no group")
    context = settings.tls.asking() if settings.tls else None
    stores = [Etcd(group.urls, group.prefix, context) for _ in range(2)]
    election = Election(stores[0], group.name)
    campaign = Campaign(election, boottime)

    def again() -> None:
        report()
        sys.stdout.flush()
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - what we were started with

    one = ClusterMember(mover, history, election, StoreWorker(stores[1]), again)
    one.fabric.ticks.append(campaign.tick)
    return one, campaign.end
