"""A member of a cluster of controllers: it follows, or leads and continues its predecessor's work.

A leader whose lease has ended (`lapsed`) restarts its process, which drops all its pending work. No
I/O here: calls to the store run in the store worker.
"""

from __future__ import annotations

from typing import Any, Literal

from controller.cluster.leading import Election
from controller.cluster.roles import Roles
from controller.cluster.shared_record import Inherited, SharedRecord, StoreWorker
from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.mover import Mover
from controller.settings import Settings
from controller.switches.events import (
    LeaderChanged,
    LeadershipLost,
    LeaderWaits,
    RoleContested,
    StoreChanged,
)
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError

RETRY = 2.0
"""Seconds between a new leader's attempts to read its predecessor's record."""


class ClusterMember:
    """One controller of a cluster; `roles` sits between the app and the fabric.

    mover: moves the fabric. record: the mover's.
    state: "preparing" is a leader that still reads its predecessor's record.
    """

    def __init__(self, mover: Mover, record: SharedRecord, election: Election) -> None:
        self.mover, self.record = mover, record
        self.fabric = self.mover.fabric
        self.state: Literal["follower", "preparing", "leader"] = "follower"
        self.term = 0
        self.roles = Roles(self.fabric, self._refused, self.fabric.clock)
        self._election = election
        self._retry: float | None = None
        self._leader, self._trouble, self._told = "", "", set[int]()

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
        self._election.alive()
        self._tell_changes()
        if self.lapsed:
            return
        self.record.jobs.poll()
        if not self.term and (term := self._election.term):
            self.term, self.state, self._retry = term, "preparing", self.fabric.clock()
        if self._retry is not None and self.fabric.clock() >= self._retry:
            self._retry = None
            self.record.inherit(self.fabric.identity, self._inherited)
        if not self.term:
            self.roles.follow(self._election.view.term)
        self.roles.tick()

    def deposed(self) -> None:
        """Say that another instance may lead."""
        self._tell_changes()
        self.fabric.tell(LeadershipLost(self._election.name))

    def resign(self) -> None:
        """Have another instance lead at once."""
        self._election.end()

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
        self._retry, self.state = None, "leader"
        self.record.lead(self.term, found.record)
        self.roles.lead(self.term)
        if self.mover.keeper:
            self.mover.keeper.expect()

    # Events

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


def join(
    settings: Settings, fabric: LiveFabric, keeper: Keeper, history: BuildHistory
) -> ClusterMember:
    """Join a cluster of controllers, by settings with a group.

    Raises:
        InputError: the TLS files cannot be used.
    """
    group = settings.group
    if group is None:
        raise ValueError("no group")
    context = settings.tls.asking() if settings.tls else None
    stores = [Etcd(group.urls, group.prefix, context) for _ in range(2)]
    record = SharedRecord(StoreWorker(stores[1]), history)
    election = Election(stores[0], group.name)
    election.start()
    return ClusterMember(Mover(fabric, keeper, history, record), record, election)
