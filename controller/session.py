"""The sessions of a fabric: what happens to switches in, bytes to send out. No framework, no I/O.

A switch that connects waits for its turn, is read, and gets the difference between what it holds
and its program as one transaction; one that is right already gets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal, Protocol

from compilers.build import Build
from compilers.targets.openflow import Program
from compilers.targets.openflow_pipeline import generation_of
from controller import reading, reconcile, wire
from controller.conversation import Answer, Conversation
from controller.events import Event, Kind
from controller.hooks import Hooks
from controller.sending import Priority
from controller.transaction import Done, Outcome
from controller.turns import Turns

PROBE_XID = 0xFFFFFF02
"""The xid of the barrier that asks an earlier connection of a switch whether it is alive."""
AT_ONCE = 1024
"""Switches that are read and programmed at the same time: what bounds the memory that it takes.

No fewer: one ovs-vswitchd with a thousand bridges takes at most 50 messages of a connection each
time around, and a time around costs the same for one bridge as for all.
"""
PATIENCE = 60.0
"""Seconds that a switch may take to answer; then its connection is ended and it starts anew."""


class Programs(Protocol):
    """Where programs come from: `compilers.targets.openflow.Encoder`, or what stands before it."""

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""

    def program(self, vertex: int, generation: int) -> Program:
        """What the vertex is to hold now, with class and group numbers of this generation."""

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""


@dataclass(frozen=True, slots=True)
class Current:
    """The build that the switches are to hold: its identity, names (a text a vertex), programs.

    build: the whole of it, for those who show it.
    """

    identity: str
    names: Sequence[str]
    programs: Programs
    build: Build | None = None


@dataclass(frozen=True, slots=True)
class Out:
    """Something for the edge to do: send data to a connection, or end it when data is None."""

    key: Any
    priority: Priority
    data: bytes | None


@dataclass(slots=True)
class _Session:
    """A connection: the vertex it is (None: not of this build), its address, how far it got.

    foreign counts what others have in the switch; again: it is to be read once more; generation: of
    the numbers that its program has.
    """

    datapath_id: int
    peer: str
    talk: Conversation
    vertex: int | None = None
    state: Literal["waiting", "reading", "changing", "programmed", "refused"] = "waiting"
    flows: bytes | None = None
    foreign: int = 0
    again: bool = False
    generation: int = 0
    told: bool = False


@dataclass(slots=True)
class Fabric:
    """All switches of a build and their connections.

    A connection is known by any hashable key. Not thread-safe. error_names puts error numbers in
    words. duplicates has a message for each vertex of which two connections are known to be alive.
    parts: what others have to say in the status, by its name.
    What is to be sent stands in the outbox, which the edge empties by `take` after each call.
    """

    current: Current
    error_names: wire.Names
    foreign: reconcile.Policy = "keep"
    clock: Callable[[], float] = monotonic
    hooks: Hooks = field(default_factory=Hooks)
    errors: dict[str, str] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    duplicates: dict[int, str] = field(default_factory=dict)
    differences: dict[str, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "removed": 0, "none": 0}
    )
    parts: dict[str, Callable[[], Any]] = field(default_factory=dict)
    _sessions: dict[Hashable, _Session] = field(default_factory=dict)
    _present: dict[int, Hashable] = field(default_factory=dict)
    _programmed: set[int] = field(default_factory=set)
    _probes: list[Hashable] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _strangers: set[str] = field(default_factory=set)
    _outbox: list[Out] = field(default_factory=list)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(AT_ONCE, self._read)

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
        """How many switches have a program."""
        return len(self.current.programs.by_datapath_id)

    @property
    def complete(self) -> bool:
        """Whether every switch has its program."""
        return len(self._programmed) == self.expected

    # What the edge calls

    def take(self) -> list[Out]:
        """What is to be sent, in order; it is handed out once."""
        out, self._outbox = self._outbox, []
        return out

    def connected(self, key: Hashable, datapath_id: int, peer: str = "") -> None:
        """A switch has named itself.

        One that returns may be here before its old connection is known to be dead, so it has its
        turn at once. `tick` asks the old one.
        """

        def send(priority: Priority, data: bytes) -> None:
            self._outbox.append(Out(key, priority, data))

        def fault(error: wire.Error) -> None:
            self._fault(key, error)

        session = _Session(datapath_id, peer, Conversation(send, fault, self.clock))
        self._sessions[key] = session
        self._place(key, session)

    def received(self, key: Hashable, message: bytes) -> None:
        """A switch has sent a message.

        Raises:
            reading.Malformed: it cannot be read; the connection is to be ended.
        """
        session = self._sessions.get(key)
        if session is None or session.vertex is None:
            return
        kind, _, xid = wire.header(message)
        if (kind, xid) == (wire.BARRIER_REPLY, PROBE_XID):
            self._alive(session)
        elif kind in _ANSWERS:
            session.talk.received(message)
        if kind not in _OWN and self._present.get(session.vertex) == key:
            self.hooks.message(kind, session.vertex, message)

    def closed(self, key: Hashable) -> None:
        """A connection has ended."""
        session = self._sessions.pop(key, None)
        if session is None:
            return
        self._turns.end(key)
        session.talk.lost()
        if session.vertex is not None:
            self._one_less(key, session.vertex)

    def stranger(self, host: str) -> None:
        """A peer on this host left without naming itself as an OpenFlow 1.3 switch."""
        if host not in self._strangers:
            self._strangers.add(host)
            self._tell("stranger", host)

    def barred(self, host: str, text: str) -> None:
        """A peer on this host could not show that it is a switch of ours."""
        if host not in self._strangers:
            self._strangers.add(host)
            self._tell("barred", host, text)

    def malformed(self, key: Hashable, text: str) -> None:
        """A switch has sent what cannot be read; its connection is ended."""
        session = self._sessions.get(key)
        if session is not None and session.vertex is not None:
            self._tell("malformed", self.names[session.vertex], text)

    def tick(self) -> None:
        """Time passes: ask connections that others have taken the place of, end silent ones."""
        self.hooks.tick()
        asked = [key for key in self._probes if key in self._sessions]
        self._probes = []
        for key in asked:
            self._outbox.append(Out(key, Priority.URGENT, wire.barrier(PROBE_XID)))
        for key, session in self._sessions.items():
            if not session.told and session.talk.overdue(PATIENCE):
                session.told = True
                if session.vertex is not None:
                    self._tell("silent", self.names[session.vertex])
                self._outbox.append(Out(key, Priority.URGENT, None))

    # What other parts of the controller call

    def load(self, current: Current) -> None:
        """Have the switches hold this build from now on: each is read again and put right."""
        self.current = self.hooks.loaded(current)
        self._programmed.clear()
        self._present.clear()
        self.duplicates.clear()
        self.errors.clear()
        self.unknown.clear()
        self._tell("loaded", self.identity)
        for key, session in list(self._sessions.items()):
            session.vertex = None
            self._place(key, session)

    def cannot_load(self, text: str) -> None:
        """A build was to be loaded and cannot be: the current one stays."""
        self._tell("kept", self.identity, text)

    def reconcile(self, vertex: int) -> None:
        """Read a switch again, and put right what has changed by other hands.

        Raises:
            KeyError: it is not connected.
        """
        self._wait(self._present[vertex])

    def change(self, vertex: int, parts: Sequence[bytes], done: Done) -> None:
        """Change a switch by these messages (bundled adds), all or none, after earlier changes.

        Raises:
            KeyError: it is not connected.
        """
        session = self._sessions[self._present[vertex]]
        session.again |= session.state == "reading"  # what is being read will have changed
        session.talk.bundle(parts, done)

    def ask(self, vertex: int, kind: reading.Multipart, body: bytes, answer: Answer) -> None:
        """Request something of a switch; the answer gets the reply's parts joined, or None.

        Raises:
            KeyError: it is not connected.
        """
        self._sessions[self._present[vertex]].talk.ask(kind, body, answer)

    def tell(self, event: Event) -> None:
        """Have something reported."""
        self._events.append(event)

    def send(self, vertex: int, data: bytes) -> None:
        """Send a message that wants no answer (packet-out), before bulk.

        Raises:
            KeyError: it is not connected.
        """
        self._outbox.append(Out(self._present[vertex], Priority.URGENT, data))

    @property
    def in_sync(self) -> frozenset[int]:
        """The vertices whose switches hold their program."""
        return frozenset(self._programmed)

    def generation(self, vertex: int) -> int:
        """The generation of numbers that a switch in sync holds.

        Raises:
            KeyError: it is not connected.
        """
        return self._sessions[self._present[vertex]].generation

    @property
    def connections(self) -> dict[int, str]:
        """The address of each connected switch, by vertex."""
        return {vertex: self._sessions[key].peer for vertex, key in self._present.items()}

    # What reports call

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
        sessions = {v: self._sessions[key] for v, key in self._present.items()}
        return {
            "build": self.identity,
            "expected": self.expected,
            "programmed": [self.names[v] for v in sorted(self._programmed)],
            "complete": self.complete,
            "errors": self.errors | {self.names[v]: text for v, text in self.duplicates.items()},
            "unknown": [f"{datapath_id:016x}" for datapath_id in sorted(self.unknown)],
            "foreign": {self.names[v]: s.foreign for v, s in sorted(sessions.items()) if s.foreign},
            "differences": dict(self.differences),
            **{name: part() for name, part in self.parts.items()},
        }

    # Coming and going

    def _place(self, key: Hashable, session: _Session) -> None:
        """Find out which vertex a connection is, and let it wait for its turn."""
        vertex = self.current.programs.by_datapath_id.get(session.datapath_id)
        if vertex is None:
            self._turns.end(key)
            if session.datapath_id not in self.unknown:
                self.unknown.add(session.datapath_id)
                self._tell("unknown", f"{session.datapath_id:016x}")
            return
        if vertex in self._present:
            self._probes.append(self._present[vertex])
        session.vertex = vertex
        self._present[vertex] = key
        self._programmed.discard(vertex)
        self._tell("connected", self.names[vertex])
        self._wait(key)

    def _one_less(self, key: Hashable, vertex: int) -> None:
        """A connection of a switch has ended: the last of the others counts, if there are any."""
        others = [other for other, s in self._sessions.items() if s.vertex == vertex]
        if len(others) < 2:
            self.duplicates.pop(vertex, None)
        if self._present.get(vertex) != key:
            return
        self._programmed.discard(vertex)
        if not others:
            del self._present[vertex]
            self._tell("left", self.names[vertex])
            self.hooks.present(vertex, False)
            return
        self._present[vertex] = others[-1]
        if self._sessions[others[-1]].state == "programmed":
            self._programmed.add(vertex)

    def _alive(self, session: _Session) -> None:
        """A connection has answered after another of the same switch came up: both are alive."""
        vertex = session.vertex
        other = self._sessions.get(self._present.get(vertex)) if vertex is not None else None
        if vertex is None or other is None or other is session or vertex in self.duplicates:
            return
        text = (
            f"connected twice under one datapath id, from {session.peer} and from {other.peer}, "
            "and both got its program; give each switch a datapath id of its own"
        )
        self.duplicates[vertex] = text
        self._tell("duplicate", self.names[vertex], text)

    # Reading and putting right

    def _wait(self, key: Hashable) -> None:
        """Have the switch read when its turn comes; a turn that runs is taken again afterwards."""
        session = self._sessions[key]
        if session.state in ("reading", "changing"):
            session.again = True
            return
        session.state = "waiting"
        self._turns.ask(key)

    def _read(self, key: Hashable) -> None:
        session = self._sessions[key]
        session.state, session.again = "reading", False

        def flows(body: bytes | None) -> None:
            session.flows = body

        def groups(body: bytes | None) -> None:
            found, session.flows = session.flows, None
            if key in self._sessions:
                self._compare(key, session, found, body)

        session.talk.ask(reading.Multipart.FLOW, reading.flows_wanted(), flows)
        session.talk.ask(reading.Multipart.GROUP_DESC, b"", groups)

    def _compare(
        self, key: Hashable, session: _Session, flows: bytes | None, groups: bytes | None
    ) -> None:
        """The switch has said what it holds, or that it won't say (None)."""
        if session.vertex is None or session.again:
            self._end_turn(key, session)
            return
        if flows is None or groups is None:
            self._refuse(key, session, "does not tell its flows and groups")
            return
        held = reconcile.held(flows, groups)
        session.generation = generation_of(held.marker)
        program = self.current.programs.program(session.vertex, session.generation)
        found = reconcile.difference(program, held, self.foreign)
        session.foreign = found.foreign
        for what in ("added", "changed", "removed"):
            self.differences[what] += getattr(found, what)
        if not found.parts:
            self.differences["none"] += 1
            self._in_sync(key, session)
            return
        session.state = "changing"
        session.talk.bundle(found.parts, lambda outcome: self._changed(key, session, outcome))

    def _changed(self, key: Hashable, session: _Session, outcome: Outcome) -> None:
        if outcome.lost:
            return
        if outcome.committed:
            self._in_sync(key, session)
        else:
            self._refuse(key, session, self._explain(outcome))

    def _in_sync(self, key: Hashable, session: _Session) -> None:
        """The switch holds its program."""
        session.state, vertex = "programmed", session.vertex
        if vertex is not None and not session.again and self._present.get(vertex) == key:
            name = self.names[vertex]
            self._programmed.add(vertex)
            self.errors.pop(name, None)
            self._tell("programmed", name)
            self.hooks.present(vertex, True)
            if self.complete:
                self._tell("complete", self.identity)
        self._end_turn(key, session)

    def _refuse(self, key: Hashable, session: _Session, text: str) -> None:
        session.state = "refused"
        if session.vertex is not None:
            self._note("refused", session.vertex, text)
        self._end_turn(key, session)

    def _end_turn(self, key: Hashable, session: _Session) -> None:
        if session.state not in ("programmed", "refused"):
            session.state = "waiting"
        self._turns.end(key)
        if session.again and session.vertex is not None:
            session.again = False
            self._wait(key)

    def _fault(self, key: Hashable, error: wire.Error) -> None:
        """An error that answers nothing that is under way."""
        session = self._sessions.get(key)
        if session is None or session.vertex is None or session.state != "programmed":
            return
        name = self.names[session.vertex]
        if name not in self.errors:
            self._note("error", session.vertex, self._explain(Outcome(True, error, 1)))

    def _note(self, kind: Kind, vertex: int, text: str) -> None:
        name = self.names[vertex]
        self.errors[name] = text
        self._tell(kind, name, text)

    def _explain(self, outcome: Outcome) -> str:
        """The first error in words, where in the program it is, and how many there are."""
        if outcome.error is None:
            return "did not confirm the commit of its bundle"
        what, more = self.current.programs.describe(outcome.error.xid), outcome.errors - 1
        rest = f", and {more} more error{'s' * (more > 1)}" if more else ""
        return f"{outcome.error.words(self.error_names)} ({what}){rest}"

    def _tell(self, kind: Kind, node: str, text: str = "") -> None:
        self._events.append(Event(kind, node, text, self.clock()))


_ANSWERS = frozenset(
    {wire.Type.ERROR, wire.Type.MULTIPART_REPLY, wire.Type.BARRIER_REPLY, wire.Type.EXPERIMENTER}
)
_OWN = _ANSWERS | {wire.Type.HELLO, wire.Type.ECHO_REQUEST, wire.Type.ECHO_REPLY}
