"""Tables around what is dead or drained, and the change of running switches to them.

A change of tables becomes messages for the switches concerned, round by round: no mixture of a
round loops or drops packets that the old tables delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_repair import Intact, Repaired, repaired
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow.encoder import Encoder
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds
from controller.switches.events import Event, TablesRepaired
from controller.upkeep.link_state import Links


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
    programs: Encoder
    generations: NDArray[np.int64]
    computed: float

    @classmethod
    def to(
        cls,
        failures: Failures,
        intact: Intact,
        before: Repaired,
        weighted: Callable[[Tables], Tables],
        programs: Encoder,
        generations: NDArray[np.int64],
    ) -> TableRepair:
        """Compute it. Arguments are read only; programs are those of the current tables."""
        began = perf_counter()
        found = failures.around(intact)
        computed = perf_counter() - began
        tables = weighted(found.tables)
        change = RepairRounds.between(before, found)
        rounds = repair_messages(programs, tables, change, generations)
        return cls(failures, found, tables, rounds, programs, generations, computed)

    def done(self, seconds: float) -> Event:
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
