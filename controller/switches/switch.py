"""One connected switch: it waits for its turn, is read, and is put right. No I/O."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, Protocol

from compilers.targets.openflow.flow_tables import generation_of
from compilers.targets.openflow.protocol import Multipart
from controller.openflow.multipart import flows_wanted
from controller.settings import ForeignRows
from controller.switches import reconcile
from controller.switches.conversation import Conversation
from controller.switches.current import Current
from controller.switches.transaction import Outcome


class Owner(Protocol):
    """What a switch needs of the fabric that it belongs to."""

    current: Current
    foreign: ForeignRows

    def ask_turn(self, switch: Switch) -> None:
        """Have `read` called when its turn comes."""

    def turn_over(self, switch: Switch) -> None:
        """Its turn has ended, or it wants none any more."""

    def described(self, switch: Switch, ports: bytes) -> None:
        """It has described its ports."""

    def compared(self, found: reconcile.Difference) -> None:
        """It has been read."""

    def synced(self, switch: Switch) -> None:
        """It holds its program."""

    def refused(self, switch: Switch, outcome: Outcome | None) -> None:
        """It does not take its program; without an outcome it cannot be read."""


@dataclass(slots=True, eq=False)
class Switch:
    """A connection: the vertex it is (None: not of this build), its address, how far it got.

    foreign counts what others have in the switch; again: it is to be read once more; generation: of
    the numbers that its program has; told: that it is silent.
    """

    key: Hashable
    datapath_id: int
    peer: str
    talk: Conversation
    owner: Owner
    vertex: int | None = None
    state: Literal["waiting", "reading", "changing", "programmed", "refused"] = "waiting"
    foreign: int = 0
    again: bool = False
    generation: int = 0
    told: bool = False
    gone: bool = False
    _flows: bytes | None = None

    def wait(self) -> None:
        """Be read when its turn comes; a turn that runs is taken again afterwards."""
        if self.state in ("reading", "changing"):
            self.again = True
            return
        self.state = "waiting"
        self.owner.ask_turn(self)

    def read(self) -> None:
        """Ask for all that it holds, and before that for its ports: what it is to hold may differ
        by them.
        """
        self.state, self.again = "reading", False
        self.talk.ask(Multipart.PORT_DESC, b"", self._told_ports)
        self.talk.ask(Multipart.FLOW, flows_wanted(), self._told_flows)
        self.talk.ask(Multipart.GROUP_DESC, b"", self._told_groups)

    def lost(self) -> None:
        """Its connection has ended."""
        self.gone = True
        self.owner.turn_over(self)
        self.talk.lost()

    def _told_ports(self, body: bytes | None) -> None:
        if body is not None and not self.gone:
            self.owner.described(self, body)

    def _told_flows(self, body: bytes | None) -> None:
        self._flows = body

    def _told_groups(self, body: bytes | None) -> None:
        """It has said what it holds, or that it won't say (None)."""
        flows, self._flows = self._flows, None
        if self.gone:
            return
        if self.vertex is None or self.again:
            self._end_turn()
        elif flows is None or body is None:
            self._refuse(None)
        else:
            self._put_right(self.vertex, reconcile.held(flows, body))

    def _put_right(self, vertex: int, held: reconcile.Held) -> None:
        self.generation = generation_of(held.marker)
        program = self.owner.current.programs.program(vertex, self.generation)
        found = reconcile.difference(program, held, self.owner.foreign)
        self.foreign = found.foreign
        self.owner.compared(found)
        if found.parts:
            self.state = "changing"
            self.talk.bundle(found.parts, self._changed)
        else:
            self._sync()

    def _changed(self, outcome: Outcome) -> None:
        if outcome.lost:
            return
        if outcome.committed:
            self._sync()
        else:
            self._refuse(outcome)

    def _sync(self) -> None:
        self.state = "programmed"
        if not self.again:
            self.owner.synced(self)
        self._end_turn()

    def _refuse(self, outcome: Outcome | None) -> None:
        self.state = "refused"
        self.owner.refused(self, outcome)
        self._end_turn()

    def _end_turn(self) -> None:
        if self.state not in ("programmed", "refused"):
            self.state = "waiting"
        self.owner.turn_over(self)
        if self.again and self.vertex is not None:
            self.again = False
            self.wait()
