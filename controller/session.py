"""The sessions of a fabric: what happens to switches in, bytes to send out. No framework, no I/O.

A push has two steps. First the bundle is opened and filled, up to a barrier; only if the switch has
found no fault by then is the bundle committed. The pause is needed: Open vSwitch leaves a message
that it cannot read out of the bundle and would commit the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal, Protocol

from controller import wire

DISCARD_XID = 0xFFFFFF01
"""The xid of the request to drop a refused bundle; a program's own xids are below."""
PROBE_XID = 0xFFFFFF02
"""The xid of the barrier that asks an earlier connection of a switch whether it is alive."""

Kind = Literal[
    "connected",
    "programmed",
    "refused",
    "error",
    "left",
    "complete",
    "unknown",
    "duplicate",
    "stranger",
    "status",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling: its kind, the node's name (or datapath id, or address), details.

    at is when, in seconds of the monotonic clock.
    """

    kind: Kind
    node: str
    text: str = ""
    at: float = field(default_factory=monotonic, compare=False)


class Programs(Protocol):
    """Where programs come from: `compilers.targets.openflow.Encoder`."""

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""

    @property
    def commit(self) -> bytes:
        """The commit of the bundle, and a barrier."""

    def prepare(self, vertex: int) -> bytes:
        """The vertex's bundle, opened and filled, and a barrier."""

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""


@dataclass(slots=True)
class _Push:
    """A connection of a switch and how far its program got; barrier is the xid it waits for.

    peer is the address it comes from.
    """

    vertex: int
    barrier: int
    peer: str
    state: Literal["filling", "committing", "programmed", "refused"] = "filling"
    committed: bool = False
    error: wire.Error | None = None
    errors: int = 0


@dataclass(slots=True)
class Fabric:
    """All switches of a build and their connections.

    identity and names (a text a vertex) are the build's; error_names puts error numbers in words.
    A connection is known by any hashable key. Not thread-safe. duplicates has a message for each
    vertex of which two connections are known to be alive.
    """

    identity: str
    names: Sequence[str]
    programs: Programs
    error_names: wire.Names
    errors: dict[str, str] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    duplicates: dict[int, str] = field(default_factory=dict)
    _pushes: dict[Hashable, _Push] = field(default_factory=dict)
    _current: dict[int, Hashable] = field(default_factory=dict)
    _programmed: set[int] = field(default_factory=set)
    _probes: list[Hashable] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _strangers: set[str] = field(default_factory=set)

    @property
    def expected(self) -> int:
        """How many switches have a program."""
        return len(self.programs.by_datapath_id)

    @property
    def complete(self) -> bool:
        """Whether every switch has its program."""
        return len(self._programmed) == self.expected

    def connected(self, key: Hashable, datapath_id: int, peer: str = "") -> bytes:
        """A switch has named itself; returns what to send it, b"" to one that is not ours.

        A switch that returns may be here before its old connection is known to be dead, so it is
        programmed at once. `probes` asks the old one.
        """
        vertex = self.programs.by_datapath_id.get(datapath_id)
        if vertex is None:
            if datapath_id not in self.unknown:
                self.unknown.add(datapath_id)
                self._tell("unknown", f"{datapath_id:016x}")
            return b""
        program = self.programs.prepare(vertex)
        if vertex in self._current:
            self._probes.append(self._current[vertex])
        self._pushes[key] = _Push(vertex, wire.last_xid(program), peer)
        self._current[vertex] = key
        self._programmed.discard(vertex)
        self._tell("connected", self.names[vertex])
        return program

    def probes(self) -> list[tuple[Hashable, bytes]]:
        """The connections to ask whether they are alive, and what to send them; each once.

        One whose program is on its way is asked later: the question would land in the middle.
        """
        asked = [key for key in self._probes if key in self._pushes]
        self._probes = [key for key in asked if self._pushes[key].state == "filling"]
        return [(key, wire.barrier(PROBE_XID)) for key in asked if key not in self._probes]

    def received(self, key: Hashable, message: bytes) -> bytes:
        """A switch has sent an error, a bundle reply or a barrier reply; returns what to send."""
        push = self._pushes.get(key)
        if push is None:
            return b""
        kind, _, xid = wire.header(message)
        if kind == wire.ERROR:
            self._error(push, wire.Error.read(message))
        elif wire.commits(message) == wire.bundle_of(self.programs.commit):
            push.committed = True
        elif (kind, xid) == (wire.BARRIER_REPLY, PROBE_XID):
            self._alive(push)
        elif (kind, xid) == (wire.BARRIER_REPLY, push.barrier):
            if push.state == "filling":
                return self._filled(push)
            if push.state == "committing":
                self._finished(key, push)
        return b""

    def closed(self, key: Hashable) -> None:
        """A connection has ended."""
        push = self._pushes.pop(key, None)
        if push is None:
            return
        if push.vertex in self.duplicates:
            self._one_less(push.vertex)
        elif self._current.get(push.vertex) == key:
            del self._current[push.vertex]
            self._programmed.discard(push.vertex)
            self._tell("left", self.names[push.vertex])

    def stranger(self, host: str) -> None:
        """A peer on this host left without naming itself as an OpenFlow 1.3 switch."""
        if host not in self._strangers:
            self._strangers.add(host)
            self._tell("stranger", host)

    def drain(self) -> list[Event]:
        """The events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def missing(self) -> list[str]:
        """The names of the switches that do not have their program, in vertex order."""
        expected = set(self.programs.by_datapath_id.values())
        return [self.names[v] for v in sorted(expected - self._programmed)]

    def status(self) -> dict[str, Any]:
        """The state as the status file has it."""
        return {
            "build": self.identity,
            "expected": self.expected,
            "programmed": [self.names[v] for v in sorted(self._programmed)],
            "complete": self.complete,
            "errors": self.errors | {self.names[v]: text for v, text in self.duplicates.items()},
            "unknown": [f"{datapath_id:016x}" for datapath_id in sorted(self.unknown)],
        }

    def _tell(self, kind: Kind, node: str, text: str = "") -> None:
        self._events.append(Event(kind, node, text))

    def _alive(self, push: _Push) -> None:
        """A connection has answered after another of the same switch came up: both are alive."""
        other = self._pushes.get(self._current.get(push.vertex))
        if other is None or other is push or push.vertex in self.duplicates:
            return
        text = (
            f"connected twice under one datapath id, from {push.peer} and from {other.peer}, and "
            "both got its program; give each switch a datapath id of its own"
        )
        self.duplicates[push.vertex] = text
        self._tell("duplicate", self.names[push.vertex], text)

    def _one_less(self, vertex: int) -> None:
        """One of several connections of a switch has ended: the last of the others counts."""
        left = {key: push for key, push in self._pushes.items() if push.vertex == vertex}
        self._current[vertex], push = list(left.items())[-1]
        self._programmed.discard(vertex)
        if push.state == "programmed":
            self._programmed.add(vertex)
        if len(left) == 1:
            del self.duplicates[vertex]

    def _error(self, push: _Push, error: wire.Error) -> None:
        push.error = push.error or error
        push.errors += 1
        if push.state == "programmed" and push.errors == 1:
            self._note("error", push)

    def _filled(self, push: _Push) -> bytes:
        commit = self.programs.commit
        if push.error:
            self._refuse(push)
            return wire.discard(wire.bundle_of(commit), DISCARD_XID)
        push.state, push.barrier = "committing", wire.last_xid(commit)
        return commit

    def _finished(self, key: Hashable, push: _Push) -> None:
        if push.errors or not push.committed:
            self._refuse(push)
            return
        push.state = "programmed"
        if self._current.get(push.vertex) != key:
            return
        name = self.names[push.vertex]
        self._programmed.add(push.vertex)
        self.errors.pop(name, None)
        self._tell("programmed", name)
        if self.complete:
            self._tell("complete", self.identity)

    def _refuse(self, push: _Push) -> None:
        push.state = "refused"
        self._note("refused", push)

    def _note(self, kind: Kind, push: _Push) -> None:
        name = self.names[push.vertex]
        self.errors[name] = self._explain(push)
        self._tell(kind, name, self.errors[name])

    def _explain(self, push: _Push) -> str:
        """The first error in words, where in the program it is, and how many there are."""
        if push.error is None:
            return "did not confirm the commit of its bundle"
        what, more = self.programs.describe(push.error.xid), push.errors - 1
        rest = f", and {more} more error{'s' * (more > 1)}" if more else ""
        return f"{push.error.words(self.error_names)} ({what}){rest}"
