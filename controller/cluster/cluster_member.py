"""One of several controllers: it follows, or leads and goes on where its predecessor stopped.

A leader whose lease is over starts anew as a process (`again`): nothing of what it meant to do is
left then. No I/O here; what waits for the store is done at the desk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, Protocol

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
from controller.cluster.store_worker import Campaign, Desk
from controller.rollout import shared_record
from controller.rollout.build_archive import beside, find, unpack
from controller.rollout.mover import Mover
from controller.rollout.shared_record import Record
from controller.settings import Settings
from controller.switches.connection import send_urgent
from controller.switches.current import Current
from inventory.problems import InputError

RETRY = 2.0
"""Seconds after which the store is asked again for what a leader needs before it can begin."""


class Jobs(Protocol):
    """Who asks the store: `controller.cluster.store_worker.Desk`."""

    def do(self, job: Callable[[Any], Any], answer: Callable[[Any], None]) -> None:
        """Have a job done with the store."""

    def poll(self) -> None:
        """Give the answers that are there."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a new leader finds: the record, and the builds that it names and we have not, packed."""

    record: Record | None
    builds: dict[str, bytes | None]


class Several:
    """One instance among the others; `roles` stands between the edge and the fabric.

    mover makes the one that moves the fabric, and asks before each step of a move.
    state: "preparing" is a leader that learns what its predecessor did.
    """

    def __init__(
        self,
        mover: Callable[[Callable[[Record], bool]], Mover],
        folder: Path,
        read: Callable[[Path], Current],
        election: Election,
        jobs: Jobs,
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
        """Whether this instance led and must not write any more."""
        return bool(self.term) and not self._election.leads(self.term)

    def status(self) -> dict[str, Any]:
        """Who leads, as the status file has it."""
        return {
            "role": self.state,
            "instance": self._election.name,
            "leader": self._election.standing.leader,
            "term": self._election.standing.term,
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
            self.roles.follow(self._election.standing.term)
        elif self.state == "leader" and not self.mover.busy:
            self.agree(Record(self.fabric.identity))
        self.roles.tick()

    def agree(self, record: Record) -> bool:
        """Whether the store has this record; it is on its way where not."""
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
        """The store has told what the predecessor did: go on from there."""
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
        """Have the fabric hold what the record says.

        Raises:
            InputError, Unavailable: a build of it cannot be had.
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
            raise Unavailable(f"build {identity} is neither here nor in the store")
        place = beside(self.folder, identity)
        rmtree(place, ignore_errors=True)
        unpack(data, place)
        return self._read(place)

    # Elsewhere

    def _packed(self, identity: str) -> bytes | None:
        """A build of ours; None where it cannot be read: then only we can go on with it."""
        try:
            return find(self.folder, identity)
        except InputError:
            return None

    def _clear(self, record: Record) -> None:
        """Let go of builds from the store that are needed no more."""
        for place in beside(self.folder, record.build).parent.glob("*"):
            if place.name not in (record.build, record.to):
                rmtree(place, ignore_errors=True)

    def _refused(self, datapath_id: int) -> None:
        if datapath_id not in self._told:
            self._told.add(datapath_id)
            self.fabric.tell(RoleContested(f"{datapath_id:016x}"))

    def _tell_changes(self) -> None:
        standing = self._election.standing
        if standing.trouble != self._trouble:
            self._trouble = standing.trouble
            self.fabric.tell(StoreChanged(standing.trouble))
        if standing.leader != self._leader:
            self._leader = standing.leader
            self.fabric.tell(LeaderChanged(standing.leader, standing.term))


def _inherit(store: shared_record.Shelf, own: str) -> Inherited:
    record = shared_record.read(store)
    needed = {record.build, record.to} - {"", own} if record else set()
    return Inherited(record, {name: shared_record.fetch(store, name) for name in sorted(needed)})


def join(
    settings: Settings,
    mover: Callable[[Callable[[Record], bool]], Mover],
    folder: Path,
    report: Callable[[], None],
) -> tuple[Several, Callable[[], None]]:
    """Be one of several controllers from now on.

    Args:
        settings: with the group.
        mover: makes the one that moves the fabric, and asks before each step of a move.
        folder: where the build is.
        report: prints what has happened, before the process starts anew.

    Returns:
        The instance, and what lets another one lead at once.

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

    one = Several(
        mover,
        folder,
        lambda place: read_build(place, unverified=True),
        election,
        Desk(stores[1]),
        send_urgent,
        again,
    )
    one.fabric.hooks.on_tick(campaign.tick)
    return one, campaign.end
