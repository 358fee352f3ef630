"""The sessions of a fabric's switches: which are connected, and which hold their programs.

The controller's app passes messages in (`LiveFabric.received`), and sets the function that sends
bytes (`LiveFabric.send`). A switch that connects waits for admission, is read
(`controller.switches.switch`), and gets the difference between its content and its program in one
change. A switch that holds its program already gets nothing. Moves, repairs and reports read and
change the state here. No framework, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from compilers.targets.openflow.protocol import MessageType, header
from controller.openflow.messages import Error, ErrorNames, SessionXid, turn_of
from controller.settings import ForeignRows
from controller.switches import events
from controller.switches.connections.sending import Outbox, SendPriority
from controller.switches.conversation import ChangeOutcome, Conversation
from controller.switches.current import Current, Upkeep
from controller.switches.events import Event, Kind
from controller.switches.listening_clock import ListeningClock
from controller.switches.peers import RejectedPeers
from controller.switches.reconcile import Difference
from controller.switches.switch import (
    MOST_DRIFTS,
    Admission,
    ConnectionFacts,
    ForeignEntries,
    Switch,
    most_at_once,
)
from inventory.problems import first_names

GROUPS_NAMED = 3
"""Most borrowed groups that an event names."""
MOST_NAMED = 3
"""Most names of a certificate that an event lists."""
MOST_UNKNOWN = 1000
"""Most datapath ids for the status that are not in the build."""
MOST_UNKNOWN_TOLD = 100
"""Most of them that events report, so that strangers do not crowd out older events."""
SWITCH_PATIENCE = 120.0
"""Most seconds that a switch which answers probes may take to answer a request; then its connection
is closed."""
PROBE_AFTER, MOST_PROBES = 2.0, 500
"""Seconds of silence after which a switch is probed by an echo request, and most probes a second
(in a larger fabric switches are probed less often)."""
SLOW_AFTER = 1.0
"""Seconds without an answer to a probe after which a switch is slow: rounds do not wait for it."""
SILENT_AFTER = 8.0
"""Seconds without an answer to a probe after which a switch is disconnected."""
PROBE_PATIENCE = 5.0
"""Seconds without an answer to a probe after which a switch is disconnected where another
connection has its datapath id and may be the same switch, which has returned. That connection comes
from the same host, or has a certificate; a connection from elsewhere may be anybody's.
"""
DUPLICATE_PATIENCE = 10.0
"""Seconds after which a second connection with a datapath id counts as gone, unless another has
come; Open vSwitch tries again after 8 s."""
BUSY_SWITCHES = 64
"""For each so many switches that have to answer at the same time, `SLOW_AFTER` and `SILENT_AFTER`
are multiplied by one more: all these switches may be one process."""
WORK_RATE = 200_000
"""Bytes of a change (a thousand rows) for which a switch gets a second more to answer a probe."""
ANSWER_TYPES = frozenset(
    {
        MessageType.ERROR,
        MessageType.MULTIPART_REPLY,
        MessageType.BARRIER_REPLY,
        MessageType.EXPERIMENTER,
    }
)
"""The types of messages that answer a change or a request: replies to bundles are experimenter
messages."""


@dataclass(slots=True)
class LiveFabric:
    """All switches of a build and their connections. Not thread-safe.

    A connection is identified by any hashable key.
    """

    current: Current
    """The build that switches are programmed with."""
    error_names: ErrorNames
    """Gives the names of an OpenFlow error's type and code."""
    foreign: ForeignRows = "keep"
    """The treatment of foreign rows."""
    clock: Callable[[], float] = monotonic
    """Seconds on a monotonic clock."""
    upkeep: Upkeep = field(default_factory=Upkeep)
    """Repairs the tables and discovers the links; its methods are called when switches come, go or
    report something.
    """
    survey: dict[int, int | None] | None = None
    """During a survey, in which switches are only read: by vertex of a switch that was read, the
    cookie of its build marker, or None without a marker. None while there is no survey.
    """
    errors: dict[str, str] = field(default_factory=dict)
    """The last error of each switch, by node."""
    awaits_role: Callable[[Container[int]], bool] = lambda _: False
    """Whether a connected switch of these, by datapath id, has neither confirmed nor refused our
    role as its master. None has without other controllers; with them, `Roles` sets this.
    """
    unknown: set[int] = field(default_factory=set)
    """The datapath ids that are not in the build."""
    differences: dict[str, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "removed": 0, "none": 0}
    )
    """How many rows and groups were added, changed and removed, and how often nothing differed."""
    present: dict[int, Switch] = field(default_factory=dict)
    """The connected switches of the build, by vertex."""
    send: Callable[[Any, SendPriority, bytes | None], None] = field(default_factory=Outbox)
    """Puts bytes into a connection's queue, or closes the connection (None)."""
    _switches: dict[Hashable, Switch] = field(default_factory=dict)
    """All connections by their keys, also those of switches that are not in the build."""
    _programmed: set[int] = field(default_factory=set)
    """The vertices whose switches were read to hold their program."""
    _claimants: dict[int, Switch] = field(default_factory=dict)
    """By vertex, a second connection with the datapath id of a switch that is connected."""
    _hosts: dict[int, str] = field(default_factory=dict)
    """The host that each switch of a build connected from last, by datapath id."""
    _hosts_noted: dict[int, str] = field(default_factory=dict)
    """The same while another controller leads: without TLS, as anybody says."""
    _own_hosts: frozenset[str] | None = None
    """All hosts of the fabric's switches, as far as is known; None to collect them anew."""
    _programming_start: float | None = None
    """When the first switch connected; None once all have held their programs."""
    _silent_load: bool = False
    """Whether the build was loaded without an event."""
    _events: list[Event] = field(default_factory=list)
    """The events since the last report."""
    admission: Admission = field(init=False)
    """Limits how many switches are read and programmed at a time."""
    rejected: RejectedPeers = field(init=False)
    """Counts the peers that were rejected."""
    listening_clock: ListeningClock = field(init=False)
    """The clock of all time-outs of switches."""

    def __post_init__(self) -> None:
        self.listening_clock = ListeningClock(self.clock)
        self.rejected = RejectedPeers(self.tell, self.clock, self._is_own_host)
        self.admission = Admission(most_at_once(self.expected))

    @property
    def identity(self) -> str:
        """The identity of the current build."""
        return self.current.identity

    @property
    def names(self) -> Sequence[str]:
        """The node's name of each vertex."""
        return self.current.names

    @property
    def expected(self) -> int:
        """The number of switches that have a program."""
        return self.current.switches

    @property
    def complete(self) -> bool:
        """Whether every switch was read to hold its program."""
        return len(self._programmed) == self.expected

    # Called by the app

    def connected(
        self,
        key: Hashable,
        datapath_id: int,
        peer: str = "",
        certificate: frozenset[str] | None = None,
    ) -> None:
        """Start the session of a switch that has connected and sent its datapath id.

        A returning switch may connect before its old connection is known to be dead: then the new
        one waits until the old one has ended, or has not answered a probe.

        Args:
            key: the connection.
            datapath_id: the datapath id.
            peer: the switch's address.
            certificate: the nodes that its certificate names; None without TLS.
        """
        talk = Conversation(
            partial(self.send, key), partial(self._fault, key), self.listening_clock
        )
        switch = Switch(
            key,
            datapath_id=datapath_id,
            peer=peer,
            talk=talk,
            owner=self,
            certificate=certificate,
            connection=ConnectionFacts(self.listening_clock()),
        )
        self._switches[key] = switch
        self._place(key, switch)

    def received(self, key: Hashable, message: bytes) -> None:
        """Handle a switch's message.

        Raises:
            Malformed: it cannot be read; the caller closes the connection.
        """
        switch = self._switches.get(key)
        if switch is None or switch.vertex is None:
            return
        kind, _, xid = header(message)
        switch.connection.last_message_at = self.listening_clock()
        switch.connection.is_slow = False
        answers_probe = (kind, xid) == (MessageType.ECHO_REPLY, SessionXid.PROBE)
        # Against a claimant only the answer counts: other messages may have been sent before.
        if answers_probe or switch.vertex not in self._claimants:
            switch.connection.probe_sent_at = None
        if answers_probe:
            self._reject_claimant(switch, switch.vertex)
        elif kind in ANSWER_TYPES:
            switch.talk.received(message)
        elif kind == MessageType.PORT_STATUS:
            self.upkeep.port_status(switch.vertex, message)
        elif kind == MessageType.PACKET_IN:
            self.upkeep.packet_in(switch.vertex, message)
        elif (kind, xid) == (MessageType.ECHO_REPLY, SessionXid.TURN):
            self.upkeep.answered(switch.vertex, turn_of(message))

    def closed(self, key: Hashable) -> None:
        """End the session of a connection that has ended."""
        if (switch := self._switches.pop(key, None)) is None:
            return
        for claimed_vertex, claimant in list(self._claimants.items()):
            if claimant is switch:
                del self._claimants[claimed_vertex]
        vertex, switch.vertex = switch.vertex, None
        if vertex is not None:
            del self.present[vertex]
            self._programmed.discard(vertex)
            self.upkeep.left(vertex)
            successor = self._claimants.pop(vertex, None)
            if successor is not None:
                self._assign(successor, vertex)
            else:
                self.tell(events.SwitchLeft(self.names[vertex]))
        self.admission.end(switch)
        switch.talk.lost()

    def malformed(self, key: Hashable, text: str) -> None:
        """Report that a switch has sent malformed data, for which its connection is closed."""
        switch = self._switches.get(key)
        if switch is not None and switch.vertex is not None:
            self.tell(events.MalformedMessage(self.names[switch.vertex], text))

    def tick(self, yield_to_others: Callable[[], None] = lambda: None) -> None:
        """Check all time-outs, and read switches again that are not in sync; called at intervals.

        Args:
            yield_to_others: called in between, so that other work goes on.
        """
        self.rejected.tick()
        self._probe_and_disconnect()
        yield_to_others()
        for switch in list(self.present.values()):
            if switch.retry_at <= self.listening_clock():
                switch.request_reading()
        self.upkeep.tick()

    def _probe_and_disconnect(self) -> None:
        """Probe the switches that are silent, and disconnect those that do not answer."""
        awaited = [switch for switch in self._switches.values() if switch.talk.awaits]
        for switch in awaited:
            patience = SWITCH_PATIENCE + switch.talk.running_bytes / WORK_RATE
            if switch.talk.tick(patience):
                self._disconnect(switch, patience)
        now, load = self.listening_clock(), 1 + len(awaited) // BUSY_SWITCHES
        probe_after = max(PROBE_AFTER, len(self.present) / MOST_PROBES)
        for vertex, switch in list(self.present.items()):  # apps may run while one is closed
            connection = switch.connection
            if connection.probe_sent_at is None:
                if now - connection.last_message_at >= probe_after:
                    switch.probe()
                continue
            unanswered = now - connection.probe_sent_at
            work = switch.talk.running_bytes / WORK_RATE
            connection.is_slow |= unanswered > SLOW_AFTER * load + work
            claimant = self._claimants.get(vertex)
            may_have_returned = claimant is not None and claimant.may_be(switch)
            patience = PROBE_PATIENCE if may_have_returned else SILENT_AFTER * load + work
            if unanswered > patience:
                self._disconnect(switch, patience)

    def _disconnect(self, switch: Switch, patience: float) -> None:
        """Disconnect a switch that has not answered for so many seconds."""
        if switch.vertex is not None:
            self.tell(events.SwitchSilent(self.names[switch.vertex], patience))
        self._close(switch.key)
        self.closed(switch.key)

    # Called by other parts of the controller

    def load(self, current: Current, silent: bool = False) -> None:
        """Make this build the current one: every switch is read again and reconciled.

        Args:
            current: the build.
            silent: whether no event reports it, as it is an intermediate state of a move.
        """
        self.current = self.upkeep.adopt(current)
        self._own_hosts = None
        self.admission.capacity = most_at_once(self.expected)
        self._programmed.clear()
        self.present.clear()
        self._claimants.clear()
        self.errors.clear()
        self._silent_load = silent
        # The others stay with an intermediate build, so that strangers are not reported anew.
        self.unknown.difference_update(self.current.programs.by_datapath_id)
        if not silent:
            self.unknown.clear()
            self.tell(events.BuildLoaded(self.identity, str(current.proved)))
        for switch in self._switches.values():
            switch.vertex = None
        for key, switch in list(self._switches.items()):
            if key in self._switches:  # apps may run while one is closed
                self._place(key, switch)

    def watched_by(self, upkeep: Upkeep) -> None:
        """Set the upkeep, which adopts the current build."""
        self.upkeep = upkeep
        self.current = upkeep.adopt(self.current)

    def drifted(self, vertex: int, difference: Difference) -> None:
        """Take the audit's finding that a switch in sync does not hold its program any more.

        Raises:
            KeyError: it is not connected.
        """
        switch = self.present[vertex]
        self._programmed.discard(vertex)
        self.tell(
            events.DriftFound(
                self.names[vertex], difference.added, difference.changed, difference.removed
            )
        )
        if switch.record_drift():
            switch.mark_drifting(difference)
        else:
            switch.request_reading()

    def tell(self, event: Event) -> None:
        """Report an event."""
        self._events.append(event)

    def report_unknown(self, datapath_id: int, peer: str) -> None:
        """Report once that a switch has connected which is not of the build.

        Args:
            datapath_id: the switch's OpenFlow datapath id.
            peer: the address that it connects from.
        """
        if datapath_id not in self.unknown and len(self.unknown) < MOST_UNKNOWN:
            self.unknown.add(datapath_id)
            if len(self.unknown) > MOST_UNKNOWN_TOLD:
                return
            self.tell(events.UnknownDatapath(f"{datapath_id:016x}", peer))

    def note_host(self, datapath_id: int, address: str, certificate: frozenset[str] | None) -> None:
        """Note from where a switch is connected while another controller leads.

        Args:
            datapath_id: the switch's OpenFlow datapath id.
            address: the address that the switch connects from, with the port.
            certificate: the nodes that the switch's certificate names; None without TLS.
        """
        vertex = self.current.programs.by_datapath_id.get(datapath_id)
        if vertex is not None and (certificate is None or self.names[vertex] in certificate):
            self._hosts_noted[datapath_id] = address.rpartition(":")[0]
            self._own_hosts = None

    def _is_own_host(self, host: str) -> bool:
        """Whether a switch of the build was connected from a host, or is managed there."""
        if self._own_hosts is None:
            build = self.current.build
            management = build.wiring.management if build else ()
            hosts = (*management, *self._hosts.values(), *self._hosts_noted.values())
            self._own_hosts = frozenset(hosts)
        return host in self._own_hosts

    @property
    def in_sync(self) -> frozenset[int]:
        """The vertices whose switches were read to hold their program."""
        return frozenset(self._programmed)

    def state(self, vertex: int) -> str:
        """A switch's state: "in sync", "absent", or that of its connection (`Switch.state`)."""
        if vertex in self._programmed:
            return "in sync"
        switch = self.present.get(vertex)
        return "absent" if switch is None else switch.state

    @property
    def duplicates(self) -> dict[int, str]:
        """A message for each vertex whose datapath id another switch has as well."""
        since = self.listening_clock() - DUPLICATE_PATIENCE
        return {
            vertex: switch.connection.duplicate_text
            for vertex, switch in self.present.items()
            if switch.connection.duplicate_seen_at >= since
        }

    # Called by reports

    def take_events(self) -> list[Event]:
        """The events since the last call, in order; the next call does not return them again."""
        recent, self._events = self._events, []
        return recent

    def missing(self) -> list[str]:
        """The names of the switches that do not have their program, in vertex order."""
        expected = set(self.current.programs.by_datapath_id.values())
        return [self.names[v] for v in sorted(expected - self._programmed)]

    def is_of_others(self, build: Current) -> bool:
        """Whether switches are connected, and a build has no switch of the current one.

        It is then of another fabric, or of another plane of this one.
        """
        ours = set(self.current.programs.by_datapath_id)
        return bool(self.present) and ours.isdisjoint(build.programs.by_datapath_id)

    def misnamed(self, build: Current) -> list[str]:
        """The connected switches whose certificates lack the names that another build gives them.

        Loaded, that build would close their connections.
        """
        vertex_of, names = build.programs.by_datapath_id, []
        for switch in self.present.values():
            vertex = vertex_of.get(switch.datapath_id)
            if vertex is not None and switch.certificate is not None:
                name = build.names[vertex]
                if name not in switch.certificate:
                    names.append(name)
        return names

    # Coming and going

    def _place(self, key: Hashable, switch: Switch) -> None:
        """Find the vertex of a connection, and queue it for reading."""
        vertex = self.current.programs.by_datapath_id.get(switch.datapath_id)
        if vertex is None:
            self.admission.end(switch)
            self.report_unknown(switch.datapath_id, switch.peer)
            return
        name = self.names[vertex]
        if switch.certificate is not None and name not in switch.certificate:
            named = first_names(sorted(switch.certificate), MOST_NAMED) or "no switch"
            reason = f"it has the datapath id of switch {name} and a certificate that names {named}"
            self.rejected.add(events.PeerMisnamed, switch.peer.rpartition(":")[0], reason)
            self._close(key)
        elif vertex in self.present:
            self._claim(vertex, switch)
        else:
            self._assign(switch, vertex)

    def _claim(self, vertex: int, switch: Switch) -> None:
        """Let a second connection with a switch's datapath id wait until the first has answered.

        Only one connection waits, the claimant. A later one takes its place only if it may be the
        connected switch and the claimant may not.
        """
        connected, claimant = self.present[vertex], self._claimants.get(vertex)
        if claimant is not None:
            is_likelier = switch.may_be(connected) and not claimant.may_be(connected)
            if not is_likelier:
                self._close(switch.key)
                return
            self._close(claimant.key)
        self._claimants[vertex] = switch
        connected.probe()

    def _assign(self, switch: Switch, vertex: int) -> None:
        """Make a connection that of a vertex's switch, and queue it for reading."""
        last_host = self._hosts.get(switch.datapath_id, switch.host)
        if last_host != switch.host and switch.certificate is None:
            self.tell(events.SwitchReaddressed(self.names[vertex], switch.peer, last_host))
        self._hosts[switch.datapath_id] = switch.host
        self._own_hosts = None
        switch.vertex = vertex
        self.present[vertex] = switch
        self._programmed.discard(vertex)
        now = self.clock()
        switch.connection.owns_vertex_since = now
        if self._programming_start is None:
            self._programming_start = now
        datapath_id = f"{switch.datapath_id:016x}"
        self.tell(events.SwitchConnected(self.names[vertex], datapath_id, switch.peer))
        self.upkeep.arrived(vertex)
        switch.request_reading()

    def _reject_claimant(self, switch: Switch, vertex: int) -> None:
        """Close the claimant of a switch's datapath id: the switch has answered a probe."""
        if (claimant := self._claimants.pop(vertex, None)) is None:
            return
        peers, datapath_id = (switch.peer, claimant.peer), f"{switch.datapath_id:016x}"
        event = events.DuplicateDatapath(self.names[vertex], datapath_id, peers)
        if vertex not in self.duplicates:
            self.tell(event)
        switch.connection.duplicate_text = event.text
        switch.connection.duplicate_seen_at = self.listening_clock()
        self._close(claimant.key)

    def _close(self, key: Hashable) -> None:
        """Close a connection."""
        self.send(key, SendPriority.URGENT, None)

    # Called by switches

    def compared(self, switch: Switch, difference: Difference, corrects: bool) -> None:
        """Take the result of reading a switch.

        Args:
            switch: the switch.
            difference: the difference between the switch and its program.
            corrects: whether the switch gets the difference now; else it is only compared.
        """
        foreign_before, switch.last_read_at = switch.foreign, self.clock()
        shadowing_rows, borrowed = len(difference.shadowing), difference.borrowed
        switch.foreign = ForeignEntries(difference.foreign, shadowing_rows, borrowed)
        if shadowing_rows > foreign_before.shadowing_rows and switch.vertex is not None:
            name = self.names[switch.vertex]
            self.tell(events.RowsShadowed(name, shadowing_rows, *difference.shadowing[-1]))
        if not {*borrowed} <= {*foreign_before.borrowed_groups} and switch.vertex is not None:
            first_numbers = ", ".join(map(str, borrowed[:GROUPS_NAMED]))
            name, count = self.names[switch.vertex], len(borrowed)
            self.tell(events.GroupsBorrowed(name, count, first_numbers))
        if not corrects:
            return
        for correction in ("added", "changed", "removed"):
            self.differences[correction] += getattr(difference, correction)
        if not difference.parts:
            self.differences["none"] += 1

    def synced(self, switch: Switch) -> None:
        """Note that a switch was read to hold its program."""
        vertex = switch.vertex
        if vertex is None:
            return
        name, was_complete = self.names[vertex], self.complete
        self._programmed.add(vertex)
        self.errors.pop(name, None)
        now, since = self.clock(), switch.connection.owns_vertex_since
        switch.connection.owns_vertex_since = None
        self.tell(events.SwitchProgrammed(name, None if since is None else now - since))
        self.upkeep.program_read(vertex, True)
        if self.complete and not was_complete:
            start, self._programming_start = self._programming_start, None
            seconds = 0.0 if start is None else now - start
            if not self._silent_load:
                self.tell(events.FabricComplete(self.identity, self.expected, seconds))

    def refused(self, switch: Switch, outcome: ChangeOutcome | None) -> None:
        """Note that a switch has refused its program, or (None) could not be read."""
        if switch.vertex is not None:
            self._report_error(events.ProgramRefused, switch.vertex, outcome)
            self._program_lost(switch.vertex)

    def forgets(self, switch: Switch, difference: Difference) -> None:
        """Note that a switch has confirmed its program, but was read not to hold it."""
        if switch.vertex is not None:
            name = self.names[switch.vertex]
            event = events.ProgramForgotten(
                name, switch.drifts, difference.added, difference.changed, difference.removed
            )
            self.errors[name] = event.text
            if switch.drifts == MOST_DRIFTS:  # the first time; it is read again and again
                self.tell(event)
            self._program_lost(switch.vertex)

    def _program_lost(self, vertex: int) -> None:
        """Note that a switch does not hold its program."""
        self._programmed.discard(vertex)
        self.upkeep.program_read(vertex, False)

    def _fault(self, key: Hashable, error: Error) -> None:
        """Report a bundle that a switch has given up, or an error that answers no message."""
        switch = self._switches.get(key)
        if switch is None or switch.vertex is None:
            return
        name = self.names[switch.vertex]
        if error.timed_out:
            self.tell(events.BundleGivenUp(name))
        elif switch.state == "in sync" and name not in self.errors:
            outcome = ChangeOutcome(True, (error,), 1)
            self._report_error(events.ProgrammedFault, switch.vertex, outcome)

    def _report_error(self, kind: Kind, vertex: int, outcome: ChangeOutcome | None) -> None:
        """Report the first error of a switch, unless it is the last that was reported of it.

        Args:
            kind: the kind of event.
            vertex: the switch.
            outcome: the outcome of its change; None if it does not say what it holds.
        """
        name = self.names[vertex]
        fault: dict[str, Any] = {"error_type": None, "error_code": None, "entry": "", "errors": 0}
        if outcome is None:
            reason = "does not answer requests for its flows and groups"
        elif (error := outcome.error) is None:
            reason = outcome.text or "did not confirm the commit of its bundle"
        else:
            entry, more = self.current.programs.describe(error.xid), outcome.error_count - 1
            noun = "errors" if more > 1 else "error"
            and_more = f", and {more} more {noun}" if more else ""
            reason = f"{error.words(self.error_names)} ({entry}){and_more}"
            fault = {
                "error_type": error.type,
                "error_code": error.code,
                "entry": entry,
                "errors": outcome.error_count,
            }
        if self.errors.get(name) != reason:
            self.errors[name] = reason
            self.tell(kind(name, reason, **fault))
