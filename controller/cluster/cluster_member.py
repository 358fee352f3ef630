"""A member of a cluster of controllers: it follows, or leads and continues its predecessor's work.

`controller.composition` joins a cluster where the settings name one (`join`), and calls `tick`. A
leader whose lease has ended (`lapsed`) restarts its process, which drops all its pending work. No
I/O here: calls to the store run in threads.

Who leads is decided by an election (`controller.cluster.election`). Each leadership has a *term*, a
number that only grows. It is the generation id of the leader's OpenFlow role
(`controller.cluster.roles`), so switches refuse late messages of an earlier leader.
"""

from __future__ import annotations

from concurrent.futures import Future
from math import inf
from typing import Any, Literal

from controller.cluster.build_copies import BuildCopies
from controller.cluster.election import Election
from controller.cluster.roles import Roles
from controller.cluster.shared_record import Inherited, SharedRecord
from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.move_journal import MoveJournal
from controller.rollout.mover import Mover
from controller.rollout.resumption import Resumption
from controller.settings import Settings
from controller.switches import events
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.session import LiveFabric
from controller.upkeep.background import NO_LIMIT, InOrder, in_thread
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError

WORKS_AFTER = 2.0
"""Seconds for which the store has to answer until it counts as working again."""
MOST_FAULTS = 4
"""Most faults of the store that are reported until it works again."""
JOURNAL_UNUSED = "it is not used, as the store has a record"
"""What becomes of a journal where the store already has a record."""
RECORD_RETRY = 2.0
"""Seconds between a new leader's attempts to read its predecessor's record."""


class ClusterMember:
    """One controller of a cluster.

    Args:
        mover: moves the fabric.
        record: the mover's record.
        election: this instance's part in the election.
        copies: copies builds that the record names to this machine.

    Attributes:
        state: follower, leader, or preparing: a leader that still reads its predecessor's record.
        term: the term in which it leads; 0 if it does not.
        roles: the OpenFlow roles, between the app and the fabric.
    """

    def __init__(
        self, mover: Mover, record: SharedRecord, election: Election, copies: BuildCopies
    ) -> None:
        self.mover, self.record = mover, record
        self.fabric = self.mover.fabric
        self.state: Literal["follower", "preparing", "leader"] = "follower"
        self.term = 0
        self.roles = Roles(self.fabric)
        self._election, self._copies = election, copies
        self._reported_wait = ""
        """Why this leader cannot begin yet, as the last event said it."""
        self._read_record_at: float | None = None
        """When a leader that is preparing reads its predecessor's record, again if that failed.
        None while the record is being read, and for a follower and a leader."""
        self._reported_leader = ""
        """The leader, as the last event named it."""
        self._reported_faults: set[str] = set()
        """The faults of the store that were reported since it worked last."""
        self._last_fault_at = -inf
        """When the store did not answer last, by the fabric's clock."""
        self._journal = MoveJournal(record.history.folder, self.fabric)
        """The folder's journal, of a time in which this controller ran without a store."""
        self._journal_use = ""
        """What became of the journal, in words; "" before it is known."""
        self._renaming: Future[bool] | None = None
        """The renaming of the journal (`MoveJournal.retire`); None before it and afterwards."""
        self._has_retired_journal = False
        """Whether the renaming has ended."""

    @property
    def lapsed(self) -> bool:
        """Whether this instance led and must not write to switches any more."""
        return bool(self.term) and not self._election.leads(self.term)

    def status(self) -> dict[str, Any]:
        """Role, leader and term, for the status file."""
        return {
            "role": "follower" if self.lapsed else self.state,
            "instance": self._election.name,
            "leader": self._election.view.leader,
            "term": self._election.view.term,
            "sessions": len(self.roles),
        }

    def tick(self) -> None:
        """Take the next step towards leading, or after another leader; called at intervals."""
        self._election.note_tick()
        self._tell_changes()
        if self.lapsed:
            return
        self.record.poll()
        self._retire_journal()
        self._copies.tick(is_follower=self.state == "follower")
        term = self._election.term
        if term and not self.term:
            self.term, self.state, self._read_record_at = term, "preparing", self.fabric.clock()
        if self._read_record_at is not None and self.fabric.clock() >= self._read_record_at:
            self._read_record_at = None
            self.record.inherit(self.fabric.identity, self._inherited)
        if not self.term:
            self.roles.follow(self._election.view.term)
        self.roles.tick()

    def report_lapse(self) -> None:
        """Report that this instance leads no more, before its process restarts."""
        self._tell_changes()
        self.fabric.tell(events.LeadershipLost(self._election.name))

    def begin(self) -> None:
        """Take part in the election from now on."""
        self._election.start()

    def resign(self) -> None:
        """Leave the election, so that another instance leads at once."""
        self._election.end()

    # From follower to leader

    def _inherited(self, inherited: Inherited | Unavailable) -> None:
        """Continue from the predecessor's record, or read it again later.

        Args:
            inherited: the record and its builds, or why the store does not give them.
        """
        self._read_record_at = self.fabric.clock() + RECORD_RETRY
        try:
            if isinstance(inherited, Unavailable):
                raise inherited
            record, builds = inherited
            if record is not None:
                self.mover.go_on(record, builds.__getitem__)
                self._journal_use = JOURNAL_UNUSED
            else:
                Resumption(self.mover, self._journal).begin(shares_record=True)
                damaged = self._journal.damaged
                self._journal_use = "it is damaged" if damaged else "the store has what it says"
        except (InputError, Unavailable) as error:
            if str(error) != self._reported_wait:  # else a line every two seconds
                self._reported_wait = str(error)
                self.fabric.tell(events.LeaderWaits(self._election.name, self._reported_wait))
            return
        self._read_record_at, self.state = None, "leader"
        self.record.lead(self.term, record)
        self.roles.lead(self.term)
        self.mover.keeper.expect()

    def _retire_journal(self) -> None:
        """Rename the folder's journal once the store has a record, and report that.

        A follower does so, too: if it came to lead after the store has lost its data, it would go
        on from a journal that may be months old.
        """
        if self._has_retired_journal:
            return
        if self.state == "follower" and self._copies.found_record:
            self._journal_use = JOURNAL_UNUSED
        is_stored = self.record.is_stored or self.state == "follower"
        if self._journal_use and self._renaming is None and is_stored:
            self._renaming = self._journal.retire()
        if self._renaming is None or not self._renaming.done():
            return
        try:
            if self._renaming.result():
                file = str(self._journal.retired_file)
                self.fabric.tell(events.JournalRetired(file, self._journal_use))
        except OSError as error:
            reason = error.strerror or str(error)
            self.fabric.tell(events.FileUnwritable(str(self._journal.file), reason))
        self._has_retired_journal, self._renaming = True, None

    def _tell_changes(self) -> None:
        """Report that another instance leads, or that the store has failed or works again."""
        view = self._election.view
        self._tell_faults(view.trouble or self.record.trouble)
        if view.leader != self._reported_leader:
            self._reported_leader = view.leader
            self.fabric.tell(events.LeaderChanged(view.leader, view.term))

    def _tell_faults(self, fault: str) -> None:
        """Report that the store has failed, each fault once, or that it works again.

        The same failure may show in turn as several faults, such as of TLS.

        Args:
            fault: what is wrong now; "" while the store answers.
        """
        reported, now = self._reported_faults, self.fabric.clock()
        if fault:
            self._last_fault_at = now
            if fault not in reported and len(reported) < MOST_FAULTS:
                reported.add(fault)
                self.fabric.tell(events.StoreChanged(fault))
        elif reported and now >= self._last_fault_at + WORKS_AFTER:
            reported.clear()
            self.fabric.tell(events.StoreChanged(""))


def join(
    settings: Settings,
    fabric: LiveFabric,
    keeper: Keeper,
    history: BuildHistory,
    tls: TlsFiles | None,
) -> ClusterMember:
    """Join a cluster of controllers, by settings with a group.

    Args:
        settings: the controller's settings.
        fabric: the switches.
        keeper: repairs the tables.
        history: the builds on this machine.
        tls: the TLS files, which may change; None for plain text.
    """
    group = settings.group
    if group is None:
        raise ValueError("no group")

    def store() -> Etcd:
        """A client for one thread, with a connection of its own."""
        return Etcd(group.urls, group.prefix, (lambda: tls.store) if tls else None)

    record = SharedRecord(store(), history)
    election = Election(store(), group.name)
    files = InOrder(NO_LIMIT, "build history").add
    mover = Mover(fabric, keeper, history, record, start=in_thread, files=files)
    copies = BuildCopies(fabric, store(), history, start_write=files)
    return ClusterMember(mover, record, election, copies)
