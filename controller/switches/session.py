"""The sessions of a fabric: messages from switches in, bytes to send out. No framework, no I/O.

A switch that connects waits for admission, is read, and gets the difference between its content and
its program as one transaction. A switch that holds its program already gets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from compilers.targets.openflow.protocol import MessageType, Multipart, header, message
from controller.openflow.messages import Error, Names, SessionXid
from controller.settings import ForeignRows
from controller.switches.admission import Admission, most_at_once
from controller.switches.connections.claims import Claims
from controller.switches.connections.inbox import ListeningClock
from controller.switches.connections.rejected_peers import RejectedPeers
from controller.switches.connections.sending import Out, SendPriority
from controller.switches.conversation import Answer, Conversation
from controller.switches.current import Current
from controller.switches.events import (
    BuildKept,
    BuildLoaded,
    DuplicateDatapath,
    Event,
    FabricComplete,
    FaultReport,
    MalformedMessage,
    PeerMisnamed,
    ProgrammedFault,
    ProgramRefused,
    RowsShadowed,
    SwitchConnected,
    SwitchLeft,
    SwitchProgrammed,
    SwitchSilent,
    UnknownDatapath,
)
from controller.switches.fault_reports import fault_report, lesser_profiles
from controller.switches.hooks import Adopt, Hooks
from controller.switches.reconcile import Difference
from controller.switches.switch import Switch
from controller.switches.transaction import Done, Outcome

PROBE = message(MessageType.ECHO_REQUEST, SessionXid.PROBE)
"""Asks a switch whether it is alive, when another connection claims its datapath id."""
MOST_UNKNOWN = 1000
"""Datapath ids that are not in the build and are kept for the status."""
SWITCH_PATIENCE = 120.0
"""Seconds that a switch may take to answer before its connection is closed."""


@dataclass(slots=True)
class LiveFabric:
    """All switches of a build and their connections.

    A connection is identified by any hashable key. Not thread-safe. error_names gives the names of
    error numbers. parts: the sections that other modules add to the status, by name.
    rejected: peers that were turned away. heard: the clock by which switches are silent or gone.
    Outgoing data is collected in an outbox, which the app empties with `take` after each call.
    """

    current: Current
    error_names: Names
    foreign: ForeignRows = "keep"
    clock: Callable[[], float] = monotonic
    hooks: Hooks = field(default_factory=Hooks)
    errors: dict[str, str] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    differences: dict[str, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "removed": 0, "none": 0}
    )
    parts: dict[str, Callable[[], Any]] = field(default_factory=dict)
    _switches: dict[Hashable, Switch] = field(default_factory=dict)
    _present: dict[int, Hashable] = field(default_factory=dict)
    _programmed: set[int] = field(default_factory=set)
    _connected: dict[int, float] = field(default_factory=dict)
    _began: float | None = None
    _events: list[Event] = field(default_factory=list)
    _outbox: list[Out] = field(default_factory=list)
    _admission: Admission = field(init=False)
    _claims: Claims = field(init=False)
    rejected: RejectedPeers = field(init=False)
    heard: ListeningClock = field(init=False)

    def __post_init__(self) -> None:
        self.heard = ListeningClock(self.clock)
        self._claims = Claims(self.heard)
        self.rejected = RejectedPeers(self.tell, self.clock)
        self._admission = Admission(most_at_once(self.expected), self._begin)

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
        return len(self.current.programs.by_datapath_id)

    @property
    def complete(self) -> bool:
        """Whether every switch has its program."""
        return len(self._programmed) == self.expected

    # Called by the app

    def take(self) -> list[Out]:
        """The data to send, in order; each item is returned once."""
        out, self._outbox = self._outbox, []
        return out

    def connected(
        self,
        key: Hashable,
        datapath_id: int,
        peer: str = "",
        certificate: frozenset[str] | None = None,
    ) -> None:
        """A switch has connected and sent its datapath id.

        A returning switch may connect before its old connection is known to be dead: then the new
        one waits until the old one has ended, or has not answered.

        Args:
            key: of the connection.
            datapath_id: what the peer says it is.
            peer: its address.
            certificate: the nodes that its certificate names; None without TLS.
        """

        def send(priority: SendPriority, data: bytes) -> None:
            self._outbox.append(Out(key, priority, data))

        talk = Conversation(send, partial(self._fault, key), self.heard)
        switch = Switch(key, datapath_id, peer, talk, self, certificate)
        self._switches[key] = switch
        self._place(key, switch)

    def received(self, key: Hashable, message: bytes) -> None:
        """A switch has sent a message.

        Raises:
            Malformed: it cannot be read; the caller closes the connection.
        """
        switch = self._switches.get(key)
        if switch is None or switch.vertex is None:
            return
        kind, _, xid = header(message)
        if (kind, xid) == (MessageType.ECHO_REPLY, SessionXid.PROBE):
            self._alive(switch)
        elif kind in _ANSWERS:
            switch.talk.received(message)
        if kind not in _OWN and self._present.get(switch.vertex) == key:
            self.hooks.message(kind, switch.vertex, message)

    def closed(self, key: Hashable) -> None:
        """A connection has ended."""
        switch = self._switches.pop(key, None)
        if switch is None:
            return
        if switch.vertex is not None:
            self._one_less(key, switch.vertex)
        self._claims.ended(key)
        switch.lost()

    def malformed(self, key: Hashable, text: str) -> None:
        """A switch has sent malformed data; its connection is closed."""
        switch = self._switches.get(key)
        if switch is not None and switch.vertex is not None:
            self.tell(MalformedMessage(self.names[switch.vertex], text))

    def tick(self) -> None:
        """Time passes: settle claims, give requests up, close silent connections.

        Raises:
            ExceptionGroup: what has failed of the handlers, which come last.
        """
        self.rejected.tick()
        for vertex in self._claims.unanswered():
            dead = self._present[vertex]
            self._close(dead)
            self._one_less(dead, vertex)
            self._switches[dead].vertex = None
        awaited = ((key, one) for key, one in self._switches.items() if one.talk.awaits)
        for key, switch in awaited:
            switch.talk.tick()
            if not switch.told and switch.talk.overdue(SWITCH_PATIENCE):
                switch.told = True
                if switch.vertex is not None:
                    self.tell(SwitchSilent(self.names[switch.vertex], SWITCH_PATIENCE))
                self._close(key)
        self.hooks.tick()

    # Called by other parts of the controller

    def load(self, current: Current) -> None:
        """Make this build the current one: every switch is read again and reconciled."""
        self.current = self.hooks.loaded(current)
        self._admission.most = most_at_once(self.expected)
        self._programmed.clear()
        self._present.clear()
        self._claims.clear()
        self.errors.clear()
        self.unknown.clear()
        self.tell(BuildLoaded(self.identity, str(current.proved)))
        for key, switch in list(self._switches.items()):
            switch.vertex = None
            self._place(key, switch)

    def adopt(self, adopt: Adopt) -> None:
        """Register a handler that may replace builds being loaded; apply it to the current one."""
        self.hooks.on_load(adopt)
        self.current = adopt(self.current)

    def cannot_load(self, text: str) -> None:
        """A build could not be loaded: the current one stays."""
        self.tell(BuildKept(self.identity, text))

    def reconcile(self, vertex: int) -> None:
        """Read a switch again, and undo changes that others made.

        Raises:
            KeyError: it is not connected.
        """
        self._switches[self._present[vertex]].wait()

    def compare(self, vertex: int, done: Callable[[Difference | None], None]) -> None:
        """Read a switch that is in sync and compare it with its program, but change nothing.

        Raises:
            KeyError: it is not connected.
        """
        self._switches[self._present[vertex]].compare(done)

    def change(self, vertex: int, parts: Sequence[bytes], done: Done) -> None:
        """Apply these messages (bundled adds) to a switch atomically, after earlier changes.

        Raises:
            KeyError: it is not connected.
        """
        switch = self._switches[self._present[vertex]]
        switch.again |= switch.state == "reading"  # the reading in progress is out of date
        switch.talk.bundle(parts, done)

    def ask(self, vertex: int, kind: Multipart, body: bytes, answer: Answer) -> None:
        """Send a multipart request; answer is called with the joined reply, or None.

        Raises:
            KeyError: it is not connected.
        """
        self._switches[self._present[vertex]].talk.ask(kind, body, answer)

    def tell(self, event: Event) -> None:
        """Report an event."""
        self._events.append(event)

    def send(self, vertex: int, data: bytes) -> None:
        """Send a message that needs no answer (packet-out), ahead of bulk.

        Raises:
            KeyError: it is not connected.
        """
        self._outbox.append(Out(self._present[vertex], SendPriority.URGENT, data))

    @property
    def in_sync(self) -> frozenset[int]:
        """The vertices whose switches hold their program."""
        return frozenset(self._programmed)

    def generation(self, vertex: int) -> int:
        """The generation of the class and group numbers in a switch that is in sync.

        Raises:
            KeyError: it is not connected.
        """
        return self._switches[self._present[vertex]].generation

    @property
    def ages(self) -> dict[int, float]:
        """Seconds since each connected switch was last compared with its program, by vertex."""
        now, present = self.clock(), self._present.items()
        compared = {vertex: self._switches[key].compared for vertex, key in present}
        return {vertex: round(now - at, 1) for vertex, at in compared.items() if at is not None}

    @property
    def shadowed(self) -> dict[int, int]:
        """How many rows of others stand over rows of ours in each switch that has some."""
        found = {vertex: self._switches[key].shadowing for vertex, key in self._present.items()}
        return {vertex: count for vertex, count in sorted(found.items()) if count}

    @property
    def duplicates(self) -> dict[int, str]:
        """A message for each vertex whose datapath id another switch has as well."""
        return self._claims.duplicates

    def connected_now(self, vertex: int) -> bool:
        """Whether a switch is connected."""
        return vertex in self._present

    @property
    def connections(self) -> dict[int, str]:
        """The address of each connected switch, by vertex."""
        return {vertex: self._switches[key].peer for vertex, key in self._present.items()}

    # Called by reports

    def drain(self) -> list[Event]:
        """The events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def missing(self) -> list[str]:
        """The names of the switches that do not have their program, in vertex order."""
        expected = set(self.current.programs.by_datapath_id.values())
        return [self.names[v] for v in sorted(expected - self._programmed)]

    def status(self) -> dict[str, Any]:
        """The state as the status file has it."""
        switches = {v: self._switches[key] for v, key in self._present.items()}
        return {
            "build": self.identity,
            **self.proved(),
            "expected": self.expected,
            "programmed": [self.names[v] for v in sorted(self._programmed)],
            "complete": self.complete,
            "errors": self.errors | {self.names[v]: text for v, text in self.duplicates.items()},
            "unknown": [f"{datapath_id:016x}" for datapath_id in sorted(self.unknown)],
            "foreign": {self.names[v]: s.foreign for v, s in sorted(switches.items()) if s.foreign},
            "profiles": lesser_profiles(self.current, self._present),
            "shadowed": {self.names[v]: count for v, count in self.shadowed.items()},
            "differences": dict(self.differences),
            **{name: part() for name, part in self.parts.items()},
        }

    def proved(self) -> dict[str, str]:
        """What was proved of the current build, and what its policy promises beyond that."""
        proved = self.current.proved
        return {"proved": str(proved), "caveat": proved.caveat}

    # Coming and going

    def _place(self, key: Hashable, switch: Switch) -> None:
        """Find the vertex of a connection, and queue it for reading."""
        vertex = self.current.programs.by_datapath_id.get(switch.datapath_id)
        if vertex is None:
            self._admission.end(key)
            if switch.datapath_id not in self.unknown and len(self.unknown) < MOST_UNKNOWN:
                self.unknown.add(switch.datapath_id)
                self.tell(UnknownDatapath(f"{switch.datapath_id:016x}", switch.peer))
            return
        name = self.names[vertex]
        if switch.certificate is not None and name not in switch.certificate:
            named = ", ".join(sorted(switch.certificate)) or "nobody"
            reason = f"it has the datapath id of switch {name} and a certificate that names {named}"
            self.rejected.add(PeerMisnamed, switch.peer.rpartition(":")[0], reason)
            self._close(key)
        elif vertex in self._present:
            if self._claims.add(vertex, key):
                self._outbox.append(Out(self._present[vertex], SendPriority.URGENT, PROBE))
            else:
                self._close(key)
        else:
            self._settle(key, switch, vertex)

    def _settle(self, key: Hashable, switch: Switch, vertex: int) -> None:
        """A connection is that of a switch from now on."""
        switch.vertex = vertex
        self._present[vertex] = key
        self._programmed.discard(vertex)
        self._connected[vertex] = now = self.clock()
        self._began = now if self._began is None else self._began
        number = f"{switch.datapath_id:016x}"
        self.tell(SwitchConnected(self.names[vertex], number, switch.peer))
        switch.wait()

    def _one_less(self, key: Hashable, vertex: int) -> None:
        """A connection of a switch has ended: the one that claims its place gets it, if any."""
        if self._present.get(vertex) != key:
            return
        del self._present[vertex]
        self._programmed.discard(vertex)
        claims = self._claims.take(vertex)
        if claims is None:
            self.tell(SwitchLeft(self.names[vertex]))
            self.hooks.present(vertex, False)
        else:
            self._settle(claims, self._switches[claims], vertex)

    def _alive(self, switch: Switch) -> None:
        """A switch has answered while another connection claims its place: it keeps it."""
        vertex = switch.vertex
        if vertex is None or self._present.get(vertex) != switch.key:
            return
        claims = self._claims.take(vertex)
        if claims is None:
            return
        peers = switch.peer, self._switches[claims].peer
        event = DuplicateDatapath(self.names[vertex], f"{switch.datapath_id:016x}", peers)
        if self._claims.answered(vertex, event.text):
            self.tell(event)
        self._close(claims)

    def _close(self, key: Hashable) -> None:
        self._outbox.append(Out(key, SendPriority.URGENT, None))

    # Called by switches

    def described(self, switch: Switch, ports: bytes) -> None:
        """A switch has described its ports."""
        if switch.vertex is not None and self._present.get(switch.vertex) == switch.key:
            self.hooks.ports(switch.vertex, ports)

    def compared(self, switch: Switch, found: Difference, corrects: bool) -> None:
        """A switch has been read; if `corrects`, it gets the difference now."""
        before, switch.foreign, switch.shadowing = (
            switch.shadowing,
            found.foreign,
            len(found.shadowing),
        )
        switch.compared = self.clock()
        if switch.shadowing > before and switch.vertex is not None:
            name = self.names[switch.vertex]
            self.tell(RowsShadowed(name, switch.shadowing, *found.shadowing[-1]))
        if not corrects:
            return
        for what in ("added", "changed", "removed"):
            self.differences[what] += getattr(found, what)
        self.differences["none"] += not found.parts

    def synced(self, switch: Switch) -> None:
        """A switch holds its program."""
        vertex = switch.vertex
        if vertex is None or self._present.get(vertex) != switch.key:
            return
        name = self.names[vertex]
        self._programmed.add(vertex)
        self.errors.pop(name, None)
        now, since = self.clock(), self._connected.pop(vertex, None)
        self.tell(SwitchProgrammed(name, None if since is None else now - since))
        self.hooks.present(vertex, True)
        if self.complete:
            seconds = now - (now if self._began is None else self._began)
            self._began = None
            self.tell(FabricComplete(self.identity, self.expected, seconds))

    def refused(self, switch: Switch, outcome: Outcome | None) -> None:
        """A switch has refused its program; None if it could not be read."""
        if switch.vertex is not None:
            self._note(ProgramRefused, switch.vertex, outcome)

    def turn_over(self, switch: Switch) -> None:
        """Another switch may be read and programmed."""
        self._admission.end(switch.key)

    def ask_turn(self, switch: Switch) -> None:
        """Queue a switch for reading."""
        self._admission.ask(switch.key)

    def _begin(self, key: Hashable) -> None:
        self._switches[key].read()

    def _fault(self, key: Hashable, error: Error) -> None:
        """An error has arrived that answers nothing in progress."""
        switch = self._switches.get(key)
        if switch is None or switch.vertex is None or switch.state != "programmed":
            return
        name = self.names[switch.vertex]
        if name not in self.errors:
            self._note(ProgrammedFault, switch.vertex, Outcome(True, error, 1))

    def _note(self, kind: type[FaultReport], vertex: int, outcome: Outcome | None) -> None:
        """Report what a switch refuses; None if it does not say what it holds."""
        event = fault_report(
            kind, self.names[vertex], outcome, self.current.programs, self.error_names
        )
        self.errors[event.switch] = event.reason
        self.tell(event)


_ANSWERS = frozenset(
    {
        MessageType.ERROR,
        MessageType.MULTIPART_REPLY,
        MessageType.BARRIER_REPLY,
        MessageType.EXPERIMENTER,
    }
)
_OWN = _ANSWERS | {MessageType.HELLO, MessageType.ECHO_REQUEST, MessageType.ECHO_REPLY}
