"""Live programs: the build's tables after repair and load shifting, one program per switch.

They sit between the fabric and the OpenFlow encoder. A change of tables becomes messages for the
switches concerned, round by round: no mixture of a round loops or drops packets that the old tables
delivered. From then on a switch that connects gets the new tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_repair import Intact, Repaired, repaired
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.profiles import Profile
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds
from controller.switches.events import TablesRepaired
from controller.upkeep.link_state import Links


class LivePrograms:
    """The programs of a build's switches; build has the current tables.

    discovers: programs have the row that sends LLDP frames to the controller. compiled: those of
    the build as it was compiled.
    """

    def __init__(self, build: Build, encoder: Encoder, discovers: bool = False) -> None:
        self.build, self.discovers = build, discovers
        self.compiled = self._encoder = encoder

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""
        return self._encoder.by_datapath_id

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""
        return self._encoder.describe(number)

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's current program."""
        program = self._encoder.program(vertex, generation)
        if self.discovers:
            return replace(program, flows=(rows.discovery(), *program.flows))
        return program

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do."""
        return self._encoder.profile(vertex)

    def told(self, vertex: int, able: Profile) -> None:
        """The vertex's switch has shown that it can do no more than this."""
        self._encoder.told(vertex, able)

    def as_now(self) -> LivePrograms:
        """These programs for good: what switches tell from now on does not change them."""
        return LivePrograms(self.build, self._encoder.as_now(), self.discovers)

    def hold(self, tables: Tables) -> None:
        """Replace the tables; their class numbers mean the same ports."""
        self.build = replace(self.build, tables=tables)
        self._encoder = self._encoder.with_tables(tables)

    def messages(
        self, tables: Tables, change: RepairRounds, generations: NDArray[np.int64]
    ) -> list[Round]:
        """The messages that bring the switches to other tables, round by round.

        Args:
            tables: as for `hold`.
            change: the rows that differ, and the round in which each may change.
            generations: int64[S], of the class and group numbers in each switch.
        """
        return repair_messages(self._encoder, tables, change, generations)


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """What traffic is to be routed around: links, bool[S, K], and switches, bool[S]."""

    dead: NDArray[np.bool_]
    drained: NDArray[np.bool_]

    @classmethod
    def of(cls, links: Links) -> Failures:
        """As of the last look at the links."""
        return cls(links.dead, links.drained)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.dead.any() or self.drained.any())

    def rows(self, intact: Intact) -> int:
        """About how many rows lead over these links and through these switches."""
        far = intact.wiring.far
        avoided = np.count_nonzero(self.dead | ((far >= 0) & self.drained[far]))
        return int(avoided * len(far) // far.shape[1])

    def alone(self, intact: Intact) -> set[int]:
        """The switches that pass packets on and have no link left to do so."""
        linked = intact.wiring.far >= 0
        live = linked & ~self.dead & ~self.drained[intact.wiring.far]
        return {*np.flatnonzero(linked.any(axis=1) & ~live.any(axis=1) & ~self.drained).tolist()}

    def around(self, intact: Intact) -> Repaired:
        """The tables without them."""
        return repaired(intact, self.dead, self.drained)


@dataclass(frozen=True, slots=True, eq=False)
class TableRepair:
    """The change from one repair of a build to another.

    tables: those of `found`, with weights that follow load. rounds: the messages, for switches that
    hold `programs` with numbers of `generations`, int64[S]. computed: seconds to compute `found`.
    """

    failures: Failures
    found: Repaired
    tables: Tables
    rounds: list[Round]
    programs: LivePrograms
    generations: NDArray[np.int64]
    computed: float

    @classmethod
    def to(
        cls,
        failures: Failures,
        intact: Intact,
        before: Repaired,
        weighted: Callable[[Tables], Tables],
        programs: LivePrograms,
        generations: NDArray[np.int64],
    ) -> TableRepair:
        """Compute it. Arguments are read only; programs are those of the tables that stand."""
        began = perf_counter()
        found = failures.around(intact)
        computed = perf_counter() - began
        tables = weighted(found.tables)
        rounds = programs.messages(tables, RepairRounds.between(before, found), generations)
        return cls(failures, found, tables, rounds, programs, generations, computed)

    def done(self, seconds: float) -> TablesRepaired:
        """The event, so long after the failures were found."""
        found = self.found
        return TablesRepaired(
            dead_links=int(np.count_nonzero(self.failures.dead)) // 2,
            drained_switches=int(np.count_nonzero(self.failures.drained)),
            rows=len(found.rows),
            classes=len(found.classes),
            switches=len(found.switches),
            cut_off_pairs=found.cut_off,
            computed=self.computed,
            seconds=seconds,
        )
