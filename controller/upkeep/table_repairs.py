"""Computes tables around failures, and the messages that change switches to them.

The keeper (`controller.upkeep.repair_keeper`) calls `TableRepair.between` for the loaded build, and
`DetouredBuilds.of` for the two builds of a move. Both may run in a thread, so they only read their
arguments. No state, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import RepairedTables, avoided_links, repair_tables
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds
from controller.switches.events import Event, TablesRepaired
from controller.upkeep.link_state import Links

EventMaker = Callable[..., Event]
"""Makes the event of a repair. Its only argument is `seconds`, the time from the begin of the
computation until all switches held the tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """What traffic is to be routed around, in a fabric of S switches with up to K links each."""

    dead: NDArray[np.bool_]
    """bool[S, K], whether a link is dead."""
    drained: NDArray[np.bool_]
    """bool[S], whether a switch is drained."""

    @classmethod
    def of(cls, links: Links) -> Failures:
        """The failures at the last look at the links."""
        return cls(links.dead, links.drained)

    @classmethod
    def none(cls, intact: IntactBuild) -> Failures:
        """No failures in a build."""
        far = intact.wiring.far
        return cls(np.zeros(far.shape, np.bool_), np.zeros(len(far), np.bool_))

    @classmethod
    def broken(cls, links: Links) -> Failures:
        """The links that are broken, and the switches that were read not to hold their program."""
        return cls(links.dead & links.broken, links.drained & links.lacking_program)

    @classmethod
    def certain(cls, links: Links, before: Failures, now: float) -> Failures:
        """What has failed for certain; all else stays as the tables in force have it.

        A switch that is only disconnected may still forward, and what is back can wait. What the
        tables in force avoid is used only if pairs have no path without it.

        Args:
            links: the links and switches as they are now.
            before: what the tables in force route around.
            now: the time.
        """
        lacking = links.avoided & links.lacking_program
        return cls(*links.least_avoided(before.dead, before.drained | lacking, now))

    def without(self, links: NDArray[np.bool_], switches: NDArray[np.bool_]) -> Failures:
        """These without some links, bool[S, K], and switches, bool[S]."""
        return Failures(self.dead & ~links, self.drained & ~switches)

    def exceed(self, other: Failures) -> bool:
        """Whether these have a dead link, or a drained switch, that the others have not."""
        has_more_links = (self.dead & ~other.dead).any()
        return bool(has_more_links or (self.drained & ~other.drained).any())

    def equals(self, other: Failures) -> bool:
        """Whether both have the same dead links and drained switches."""
        same_dead = np.array_equal(self.dead, other.dead)
        return same_dead and np.array_equal(self.drained, other.drained)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.dead.any() or self.drained.any())

    def affected_rows(self, intact: IntactBuild) -> int:
        """About how many rows lead over these links and through these switches.

        A switch has a row for each of the S destinations, spread over its K links.
        """
        far = intact.wiring.far
        avoided = np.count_nonzero(avoided_links(far, self.dead, self.drained))
        switches, links = far.shape
        return int(avoided * switches // links)

    def isolated_switches(self, intact: IntactBuild) -> set[int]:
        """The switches all of whose links are avoided.

        A drained switch without hosts does not count: it needs no link.
        """
        linked = intact.wiring.far >= 0  # bool[S, K], as `live`
        live = linked & ~avoided_links(intact.wiring.far, self.dead, self.drained)
        needs_link = linked.any(axis=1) & (intact.endpoints | ~self.drained)
        return {*np.flatnonzero(needs_link & ~live.any(axis=1)).tolist()}

    def tables_around(self, intact: IntactBuild) -> RepairedTables:
        """The tables that lead around these failures."""
        return repair_tables(intact, self.dead, self.drained)


class TableRepair(NamedTuple):
    """A change of tables, from those that lead around earlier failures to those of now."""

    failures: Failures
    """What the tables lead around."""
    tables: RepairedTables
    """The tables that lead around the failures."""
    rounds: list[Round]
    """The messages of the change, round by round. They suit switches that hold their programs of
    `programs`, with the class and group numbers of `generations`."""
    programs: Encoder
    """The programs of the tables before the change."""
    generations: NDArray[np.int64]
    """int64[S], the generation of class and group numbers at each switch."""
    make_event: EventMaker
    """Makes the event of the repair."""

    @classmethod
    def within_reach(
        cls,
        between: Callable[[Failures], TableRepair],
        failures: Failures,
        certain: Failures,
        in_force: Failures,
        unreachable: frozenset[int],
        unread: bool,
        packets_loop: bool,
    ) -> TableRepair | None:
        """Compute a change of tables that switches which cannot change need not follow.

        While they forward by their old rows, and others by new ones, packets could loop. So if a
        change would change them, only what has failed for certain is routed around.

        Args:
            between: computes the change to tables around these failures.
            failures: what traffic is to be routed around.
            certain: what has failed for certain (`Failures.certain`).
            in_force: what the rows of all switches route around.
            unreachable: the switches that forward and cannot change.
            unread: whether it is not known what one of these holds.
            packets_loop: whether packets loop by routes that some other switches hold instead of
                those around `in_force`.

        Returns:
            The change; None if all of it has to wait for these switches.
        """
        repair = None if unread else between(failures)
        if repair and not repair.changes(unreachable):
            return repair
        if certain.equals(in_force) and not packets_loop:
            return None
        return repair if repair and certain.equals(failures) else between(certain)

    @classmethod
    def between(
        cls,
        before: RepairedTables,
        failures: Failures,
        intact: IntactBuild,
        programs: Encoder,
        generations: NDArray[np.int64],
    ) -> TableRepair:
        """Compute a change of tables.

        Args:
            before: the tables that are in force.
            failures: what traffic is to be routed around.
            intact: the tables without failures.
            programs: the programs of the tables in force.
            generations: int64[S], the generation of class and group numbers at each switch.
        """
        began = perf_counter()
        tables = failures.tables_around(intact)
        make_event = _event_maker(failures, tables, perf_counter() - began)
        change = RepairRounds.of_repairs(before, tables)
        rounds = repair_messages(programs, tables.tables, change, generations)
        return cls(failures, tables, rounds, programs, generations, make_event)

    def changes(self, vertices: Iterable[int]) -> bool:
        """Whether one of these switches has to change."""
        return any(not round.keys().isdisjoint(vertices) for round in self.rounds)


class DetouredBuilds(NamedTuple):
    """Both builds of a move that waits halfway, with tables around what has failed since."""

    failures: Failures
    """What the tables lead around, by the links and switches of the old build."""
    new_failures: Failures
    """The same by the links and switches of the new build."""
    old: Build
    """The build that the move left, with repaired tables."""
    new: Build
    """The build that the move leads to, with repaired tables."""
    repair: RepairedTables
    """The repaired tables of the old build."""
    make_event: EventMaker
    """Makes the event of the repair."""
    link_state: dict[str, Any]
    """The links and switches as they were when the computation began, for a record."""

    @classmethod
    def of(
        cls,
        failures: Failures,
        intact: IntactBuild,
        old: Build,
        new_failures: Failures,
        new: Build,
        link_state: dict[str, Any],
    ) -> DetouredBuilds:
        """Compute the detour of a move.

        Args:
            failures: what has failed, by the links and switches of the old build.
            intact: the old build's tables without failures.
            old: the old build.
            new_failures: what has failed, by the links and switches of the new build.
            new: the new build.
            link_state: the links and switches that these failures are from.
        """
        began = perf_counter()
        repair = failures.tables_around(intact)
        new_repair = new_failures.tables_around(IntactBuild.of(new)) if new_failures else None
        return cls(
            failures,
            new_failures,
            replace(old, tables=repair.tables),
            replace(new, tables=new_repair.tables) if new_repair else new,
            repair,
            _event_maker(failures, repair, perf_counter() - began),
            link_state,
        )


def _event_maker(failures: Failures, tables: RepairedTables, computed: float) -> EventMaker:
    """The function that makes the event of a repair.

    Args:
        failures: what the tables lead around.
        tables: the repaired tables.
        computed: the seconds that computing them took.
    """
    return partial(
        TablesRepaired,
        dead_links=int(np.count_nonzero(failures.dead)) // 2,
        drained_switches=int(np.count_nonzero(failures.drained)),
        rows=len(tables.changed_rows),
        classes=len(tables.changed_classes),
        switches=len(tables.switches),
        cut_off_pairs=tables.cut_off_pairs,
        computed=computed,
    )
