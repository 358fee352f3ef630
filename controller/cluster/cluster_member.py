"""A member of a cluster of controllers: it follows, or leads and continues its predecessor's work.

A leader whose lease has ended restarts its process (`again`), which drops all its pending work. No
I/O here: calls to the store run in the store worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

from controller.cluster.leader_events import (
    BuildInherited,
    LeaderChanged,
    LeadershipLost,
    LeaderWaits,
    RoleContested,
    StoreChanged,
)
from controller.cluster.leading import Election, Unavailable, boottime
from controller.cluster.roles import Roles
from controller.cluster.store import Etcd
from controller.cluster.store_worker import Campaign, StoreWorker
from controller.rollout import shared_record
from controller.rollout.build_archive import beside, find, unpack
from controller.rollout.mover import Mover
from controller.rollout.shared_record import Record
from controller.settings import Settings
from controller.switches.connection import send_urgent
from controller.switches.current import Current
from inventory.problems import InputError

RETRY = 2.0
"""Seconds between a new leader's attempts to read its predecessor's record."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """A predecessor's record, and the builds it names that we do not have, packed."""

    record: Record | None
    builds: dict[str, bytes | None]


class ClusterMember:
    """One controller of a cluster; `roles` sits between the app and the fabric.

    mover: makes the `Mover`, given the function it calls before each step of a move.
    state: "preparing" is a leader that still reads its predecessor's record.
    """

    def __init__(
        self,
        mover: Callable[[Callable[[Record], bool]], Mover],
        folder: Path,
        read: Callable[[Path], Current],
        election: Election,
        jobs: StoreWorker,
        send: Callable[[Hashable, bytes | None], None],
        again: Callable[[], None],
    ) -> None:
        self.mover, self.folder = mover(self.agree), folder.resolve()
        self.fabric = self.mover.fabric
        self.state: Literal["follower", "preparing", "leader"] = "follower"
        self.term = 0
        self.roles = Roles(self.fabric, send, self._refused, self.fabric.clock)
        self._read, self._election, self._jobs, self._again = read, election, jobs, again
        self._record: Record | None = None
        self._writing: Record | None = None
        self._retry: float | None = None
        self._leader, self._trouble, self._told = "", "", set[int]()
        self.fabric.parts["leading"] = self.status
        self.fabric.hooks.on_tick(self.tick)

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
            own = self.fabric.identity
            self._jobs.do(lambda store: _inherit(store, own), self._inherited)
        if not self.term:
            self.roles.follow(self._election.view.term)
        elif self.state == "leader" and not self.mover.busy:
            self.agree(Record(self.fabric.identity))
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
            self._clear(self._record)
        self._writing = None

    # From follower to leader

    def _inherited(self, found: Inherited | Unavailable) -> None:
        """The predecessor's record has arrived: continue from there."""
        try:
            if isinstance(found, Unavailable):
                raise found
            if found.record is not None:
                self._go_on(found.record, found.builds)
        except (InputError, Unavailable) as error:
            self.fabric.tell(LeaderWaits(self._election.name, str(error)))
            self._retry = self.fabric.clock() + RETRY
            return
        self._record, self.state = found.record, "leader"
        self.roles.lead(self.term)

    def _go_on(self, record: Record, packed: dict[str, bytes | None]) -> None:
        """Load the record's build, or resume its move.

        Raises:
            InputError, Unavailable: one of its builds cannot be had.
        """
        current = self.fabric.current
        old, new = (
            current if name == current.identity else self._unpacked(name, packed.get(name))
            for name in (record.build, record.to or record.build)
        )
        if current.identity not in (record.build, record.to):
            self.fabric.tell(BuildInherited(record.to or record.build, current.identity))
        if record.to:
            self.mover.resume(old, new, record)
        elif old is not current:
            self.fabric.load(old)

    def _unpacked(self, identity: str, data: bytes | None) -> Current:
        if data is None:
            raise Unavailable(f"build {identity} is neither on this machine nor in the store")
        place = beside(self.folder, identity)
        rmtree(place, ignore_errors=True)
        unpack(data, place)
        return self._read(place)

    # Builds and events

    def _packed(self, identity: str) -> bytes | None:
        """One of our builds, packed; None if it cannot be read (then only we can continue)."""
        try:
            return find(self.folder, identity)
        except InputError:
            return None

    def _clear(self, record: Record) -> None:
        """Delete unpacked builds that are no longer needed."""
        for place in beside(self.folder, record.build).parent.glob("*"):
            if place.name not in (record.build, record.to):
                rmtree(place, ignore_errors=True)

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


def _inherit(store: shared_record.RecordStore, own: str) -> Inherited:
    record = shared_record.read(store)
    needed = {record.build, record.to} - {"", own} if record else set()
    return Inherited(record, {name: shared_record.fetch(store, name) for name in sorted(needed)})


def join(
    settings: Settings,
    mover: Callable[[Callable[[Record], bool]], Mover],
    folder: Path,
    report: Callable[[], None],
) -> tuple[ClusterMember, Callable[[], None]]:
    """Join a cluster of controllers.

    Args:
        settings: with a group.
        mover: makes the `Mover`, given the function it calls before each step of a move.
        folder: the build folder.
        report: prints pending events, before the process restarts.

    Returns:
        The instance, and a function that resigns, so that another one leads at once.

    Raises:
        InputError: the TLS files cannot be used.
    """
    from controller.switches.current import read_build

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

    one = ClusterMember(
        mover,
        folder,
        lambda place: read_build(place, unverified=True),
        election,
        StoreWorker(stores[1]),
        send_urgent,
        again,
    )
    one.fabric.hooks.on_tick(campaign.tick)
    return one, campaign.end
