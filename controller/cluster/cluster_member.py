"""A member of a cluster of controllers: it follows, or leads and continues its predecessor's work.

`controller.composition` joins a cluster where the settings name one (`join`), and calls `tick`. A
leader whose lease has ended (`lapsed`) restarts its process, which drops all its pending work. No
I/O here: calls to the store run in threads.

The instance that creates the leader's key in the store leads until its lease ends. A leader renews
its lease; it counts the lease from before its request, less a margin, so it stops before the store
lets another one lead. Switches refuse its late messages: each leadership has a *term*, which only
grows and is the generation id of its OpenFlow role (`controller.cluster.roles`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from math import inf
from threading import Event, Thread
from time import CLOCK_BOOTTIME, clock_gettime
from typing import Any, Literal

from controller.cluster.build_copies import BuildCopies
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

LEASE_SECONDS = 5
"""Seconds of a lease: the longest time a fabric is without a controller when its leader dies."""
LEASE_MARGIN = 1.0
"""Seconds by which a leader stops before its lease ends."""
LEADER_PERIOD = 0.5
"""Seconds between two requests to the store."""
THREAD_PATIENCE = 5.0
"""Most seconds to wait at the end for the thread of the election."""
WORKS_AFTER = 2.0
"""Seconds for which the store has to answer until it counts as working again."""
MOST_FAULTS = 4
"""Most faults of the store that are reported until it works again."""
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
    until: float = -inf
    """When this instance's leadership ends unless it renews its lease, by the election's clock."""
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
                return  # the lease ends by itself

    def _step(self) -> Leadership:
        """Renew the lease, or get another one, and claim the leadership."""
        requested_at, seconds = self._clock(), 0.0
        if self._lease is not None:
            seconds = self._store.renew(self._lease)
            if not seconds:
                self._lease = None
                self.view = Leadership()
        if self._lease is None:
            self._lease, seconds = self._store.grant(LEASE_SECONDS)
        claimed = self._store.claim(self._lease, self.name)
        until = requested_at + seconds - LEASE_MARGIN if claimed.is_ours else -inf
        return Leadership(claimed.leader, claimed.term, until)


UNUSED = "it is not used, as the store has a record"
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
        self._reread_at: float | None = None
        """When the predecessor's record is read again; None if it is being read, or was read."""
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
        self._retiring: Future[bool] | None = None
        """Whether there was a journal to rename; None before it is renamed, and afterwards."""
        self._retired_journal = False
        """Whether the journal was renamed, or there was none."""

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
            self.term, self.state, self._reread_at = term, "preparing", self.fabric.clock()
        if self._reread_at is not None and self.fabric.clock() >= self._reread_at:
            self._reread_at = None
            self.record.inherit(self.fabric.identity, self._inherited)
        if not self.term:
            self.roles.follow(self._election.view.term)
        self.roles.tick()

    def report_lapse(self) -> None:
        """Report that this instance leads no more, before its process restarts."""
        self._tell_changes()
        self.fabric.tell(events.LeadershipLost(self._election.name))

    def resign(self) -> None:
        """Leave the election, so that another instance leads at once."""
        self._election.end()

    # From follower to leader

    def _inherited(self, inherited: Inherited | Unavailable) -> None:
        """Continue from the predecessor's record, or read it again later.

        Args:
            inherited: the record and its builds, or why the store does not give them.
        """
        self._reread_at = self.fabric.clock() + RECORD_RETRY
        try:
            if isinstance(inherited, Unavailable):
                raise inherited
            record, builds = inherited
            if record is not None:
                self.mover.go_on(record, builds.__getitem__)
                self._journal_use = UNUSED
            else:
                Resumption(self.mover, self._journal).begin(shares_record=True)
                damaged = self._journal.damaged
                self._journal_use = "it is damaged" if damaged else "the store has what it says"
        except (InputError, Unavailable) as error:
            if str(error) != self._reported_wait:  # else a line every two seconds
                self._reported_wait = str(error)
                self.fabric.tell(events.LeaderWaits(self._election.name, self._reported_wait))
            return
        self._reread_at, self.state = None, "leader"
        self.record.lead(self.term, record)
        self.roles.lead(self.term)
        self.mover.keeper.expect()

    def _retire_journal(self) -> None:
        """Rename the folder's journal once the store has a record, and report that.

        A follower does so, too: if it came to lead after the store has lost its data, it would go
        on from a journal that may be months old.
        """
        if self._retired_journal:
            return
        if self.state == "follower" and self._copies.found_record:
            self._journal_use = UNUSED
        is_stored = self.record.is_stored or self.state == "follower"
        if self._journal_use and self._retiring is None and is_stored:
            self._retiring = self._journal.retire()
        if self._retiring is None or not self._retiring.done():
            return
        try:
            if self._retiring.result():
                file = str(self._journal.retired_file)
                self.fabric.tell(events.JournalRetired(file, self._journal_use))
        except OSError as error:
            reason = error.strerror or str(error)
            self.fabric.tell(events.FileUnwritable(str(self._journal.file), reason))
        self._retired_journal, self._retiring = True, None

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
        told, now = self._reported_faults, self.fabric.clock()
        if fault:
            self._last_fault_at = now
            if fault not in told and len(told) < MOST_FAULTS:
                told.add(fault)
                self.fabric.tell(events.StoreChanged(fault))
        elif told and now >= self._last_fault_at + WORKS_AFTER:
            told.clear()
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
        settings: of the controller.
        fabric: the switches.
        keeper: repairs the tables.
        history: of the builds on this machine.
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
    election.start()
    files = InOrder(NO_LIMIT, "build history").add
    mover = Mover(fabric, keeper, history, record, start=in_thread, files=files)
    copies = BuildCopies(fabric, store(), history, files=files)
    return ClusterMember(mover, record, election, copies)
