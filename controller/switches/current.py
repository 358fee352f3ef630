"""The current build, which switches are programmed with, and the interface of its repairs.

`controller.switches.session.LiveFabric` has a `Current`, and calls an `Upkeep` when switches come,
go, or report something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from compilers.proof.proved import Proved
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.verified_mark import require_verified
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.profiles import Profile
from controller.switches.reconcile import SwitchContent

UNPROVED = Proved()
"""The result of verification for a build that was not verified."""


class ProgramSource(Protocol):
    """A source of switch programs: `Encoder`, or a layer in front of it."""

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's current program, with class and group numbers of this generation."""

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do, as far as is known."""

    def restrict(self, vertex: int, able: Profile) -> None:
        """Encode the vertex's program for a switch that can do no more than this profile."""

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""


@dataclass(frozen=True, slots=True)
class Current:
    """The build that switches are programmed with."""

    identity: str
    """The build's identity."""
    names: Sequence[str]
    """The nodes' names by vertex."""
    programs: ProgramSource
    """The programs of the switches."""
    build: Build | None = None
    """The complete build, from which moves and repairs are planned. None where only programs are
    known, as in tests of the sessions."""
    proved: Proved = UNPROVED
    """What verification proved of the build, for display."""

    @property
    def switches(self) -> int:
        """The number of switches that have a program."""
        return len(self.programs.by_datapath_id)


class Upkeep:
    """Hooks that a fabric calls so that its programs can be adapted to failures.

    Every method of this base class does nothing: a fabric without repairs uses it as it is.
    `controller.upkeep.repair_keeper.Keeper` overrides them.
    """

    def adopt(self, current: Current) -> Current:
        """A build is being loaded.

        Returns:
            The build, or the build with other programs, which the fabric then uses in its place.
        """
        return current

    def arrived(self, vertex: int) -> None:
        """A switch has connected."""

    def described(self, vertex: int, ports: bytes) -> None:
        """A switch has described its ports (`ofp_port`), before its rows are read."""

    def port_status(self, vertex: int, message: bytes) -> None:
        """A switch reports a change of a port."""

    def packet_in(self, vertex: int, message: bytes) -> None:
        """A switch sends a packet."""

    def answered(self, vertex: int, turn: int) -> None:
        """A switch answers the echo request that followed the probe frames of a turn.

        To discover links, each switch sends probe frames over its links, in turns of its own.

        Args:
            vertex: the switch.
            turn: the number of the turn, from the echo request.
        """

    def leaves_unchanged(
        self,
        vertex: int,  # noqa: ARG002
        program: FlowProgram,  # noqa: ARG002
        content: SwitchContent,  # noqa: ARG002
    ) -> bool:
        """Whether a switch that does not hold its program is left unchanged for now.

        It is corrected when it is read again.

        Args:
            vertex: the switch.
            program: the switch's program.
            content: what the switch holds.
        """
        return False

    def program_read(self, vertex: int, is_held: bool) -> None:
        """A switch was read, or has refused its program.

        Args:
            vertex: the switch.
            is_held: whether it holds its program.
        """

    def left(self, vertex: int) -> None:
        """A switch has left."""

    def has_transit(self, vertex: int) -> bool:  # noqa: ARG002
        """Whether traffic is known to be routed through a switch."""
        return False

    def transit_switches(self, build: Build) -> frozenset[int]:  # noqa: ARG002
        """The switches of another build that its traffic is known to be routed through, once it is
        loaded.
        """
        return frozenset()

    def is_cabled(self, vertex: int) -> bool:  # noqa: ARG002
        """Whether a switch that is not in sync may forward all the same: its neighbours report that
        cables to it are up.
        """
        return False

    def tick(self) -> None:
        """Do what is due; called a few times a second."""


def read_build(folder: Path, unverified: bool = False) -> Current:
    """The build in a folder, with an encoder for its programs.

    The build is read into memory: later changes of the folder do not change it.

    Raises:
        InputError: the build is missing, damaged or not verified, or needs a capability that the
            OpenFlow target lacks.
    """
    from compilers.targets.openflow.encoder import Encoder

    build = load(folder, in_memory=True)
    if not unverified:
        require_verified(folder, build)
    return replace(current_of(build, Encoder(build)), proved=Proved.read(folder, build))


def current_of(build: Build, programs: ProgramSource) -> Current:
    """A build with these programs."""
    return Current(build.identity, build.wiring.names, programs, build)
