"""Collects the routes of switches that differ from those of their programs. No I/O.

A controller may have ended, or loaded its build again, between the rounds of a change. Then some
switches hold old routes and others new ones. If each were corrected as it is read, routes would
change in no order, and packets could loop. Instead the keeper (`controller.upkeep.repair_keeper`)
leaves these switches as they are until all are read. `HeldRouteReadings` collects what they hold,
which a `RouteReader` reads. The keeper takes it as the fabric's tables (`tables_as_held`), and
changes them in rounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import added_rows, entries, split_row
from compilers.routing.exact_rows import covered_destinations, with_rows
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import RepairedTables, distinct_pairs
from compilers.tables.fib import LOST, MOST_HOPS
from compilers.tables.intermediate_form import no_route
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind, cookie
from compilers.targets.openflow.group_and_flow_bytes import IPV6_NUMBER, kind_of, xid_numbers
from compilers.targets.openflow.profiles import Profile
from compilers.update.repair_rounds import GONE
from controller.switches.reconcile import SwitchContent

DifferingRoutes = dict[int, int]
"""The routes of a switch that differ from those of its program: by prefix number the egress class
that the switch's row leads to, or GONE where the switch has no row for the prefix."""


@dataclass(frozen=True, slots=True)
class RouteReader:
    """Reads route rows of switches of one profile, with class numbers of one generation.

    A route row matches a prefix, and its instructions lead to an egress class.
    """

    prefix_by_match: dict[bytes, int]
    """The number of the prefix by the match of a row."""
    class_by_instructions: dict[bytes, int]
    """The number of the egress class by the instructions of a row."""

    @classmethod
    def of(cls, encoder: Encoder, profile: Profile, generation: int) -> RouteReader:
        """The reader of the routes of a build.

        It has the encoder make a row for each prefix with any class, and a row for each class with
        any prefix.
        """
        tables = encoder.build.tables
        routes = tables.routes
        aggregates = routes.aggregate[routes.aggregate >= 0]
        prefixes = np.unique(routes.prefix)
        # Prefixes of switches have the numbers below S.
        prefixes = prefixes[(prefixes < tables.switches) | np.isin(prefixes, aggregates)]
        classes = np.arange(tables.classes.port.shape[1])
        prefix_by_match: dict[bytes, int] = {}
        class_by_instructions: dict[bytes, int] = {}
        any_class, any_prefix = np.zeros_like(prefixes), np.repeat(prefixes[:1], len(classes))
        for block in encoder.route_messages(prefixes, any_class, generation, profile):
            for row, prefix in zip(entries(added_rows(block)), prefixes.tolist(), strict=True):
                prefix_by_match[split_row(row).fields] = prefix
        for block in encoder.route_messages(any_prefix, classes, generation, profile):
            for row, egress in zip(entries(added_rows(block)), classes.tolist(), strict=True):
                class_by_instructions[split_row(row).instructions] = egress
        return cls(prefix_by_match, class_by_instructions)

    def differing_routes(
        self, program: FlowProgram, content: SwitchContent
    ) -> DifferingRoutes | None:
        """The routes of a switch that differ from those of its program.

        None if that is not known: the switch holds a route row that is no route of this build.

        Args:
            program: the switch's program.
            content: what the switch holds, as it was read.
        """
        differing: DifferingRoutes = {}
        held_rows, program_rows = content.rows, set[bytes]()
        for block in program.flows:
            if not len(block) or kind_of(block) != RowKind.ROUTE:
                continue
            rows = entries(added_rows(block))
            program_rows.update(rows)
            prefixes = (xid_numbers(block) % IPV6_NUMBER).tolist()
            differing |= {
                prefix: GONE
                for prefix, row in zip(prefixes, rows, strict=True)
                if row not in held_rows
            }
        for row in held_rows - program_rows:
            parts = split_row(row)
            if parts.members.cookie != cookie(RowKind.ROUTE):
                continue
            prefix = self.prefix_by_match.get(parts.fields)
            egress = self.class_by_instructions.get(parts.instructions)
            if prefix is None or egress is None:
                return None
            differing[prefix] = egress
        return differing


@dataclass(slots=True)
class HeldRouteReadings:
    """The differing routes of all switches that are left as they are for now.

    It is true (`bool`) while there are such switches.
    """

    not_yet_in_sync: set[int]
    """The switches that have not been in sync since they connected, or since the build was loaded.
    Only the routes of these are collected: an earlier process may have changed them."""
    by_vertex: dict[int, DifferingRoutes] = field(default_factory=dict)
    """The routes that were collected, by the vertex of their switch."""
    deadline: float = inf
    """When these switches are corrected at the latest, even if others have yet to be read: a time
    on the clock of the keeper."""
    _readers: dict[tuple[Profile, int], RouteReader] = field(default_factory=dict)
    """The readers of routes, by the profile of a switch and the generation of its numbers."""

    def __bool__(self) -> bool:
        return bool(self.by_vertex)

    def expect(self, vertices: Iterable[int]) -> None:
        """Collect the routes of these switches once they are read."""
        self.not_yet_in_sync.update(vertices)

    def collect(
        self,
        vertex: int,
        content: SwitchContent,
        encoder: Encoder,
        generation: int,
        program: FlowProgram,
        deadline: float,
    ) -> bool:
        """Collect the routes of a switch, if they differ from those of its program.

        Args:
            vertex: the switch.
            content: what it holds, as it was read.
            encoder: the programs of the build.
            generation: the generation of the class and group numbers in the switch.
            program: the switch's program.
            deadline: the `deadline` of all readings, if this switch is the first of them.

        Returns:
            Whether they differ: the switch is to be left as it is for now.
        """
        profile = encoder.profile(vertex)
        # `RouteReader` knows a route by the metadata that its row writes for the table of classes.
        # A switch of one table has no such rows.
        has_one_table = profile.single
        if vertex not in self.not_yet_in_sync or has_one_table:
            return False
        reader = self._readers.get((profile, generation))
        if reader is None:
            reader = RouteReader.of(encoder, profile, generation)
            self._readers[profile, generation] = reader
        differing = reader.differing_routes(program, content)
        if not differing:
            return False
        if not self.by_vertex:
            self.deadline = deadline
        self.by_vertex[vertex] = differing
        return True

    def forget(self, vertex: int) -> None:
        """Forget what was collected of a switch that has left."""
        self.by_vertex.pop(vertex, None)

    def note_in_sync(self, vertex: int) -> None:
        """Note that a switch holds its program."""
        self.not_yet_in_sync.discard(vertex)
        self.by_vertex.pop(vertex, None)

    def clear(self) -> set[int]:
        """Forget what was collected, and return of which switches.

        Their routes are collected again when they are read next.
        """
        vertices = {*self.by_vertex}
        self.by_vertex.clear()
        return vertices

    def take(self) -> dict[int, DifferingRoutes]:
        """Return what was collected, by vertex, and forget it.

        It becomes the fabric's tables, so these switches are corrected when they are read next.
        """
        taken, self.by_vertex = self.by_vertex, {}
        self.not_yet_in_sync.difference_update(taken)
        return taken


class UsedParts(NamedTuple):
    """The links and switches that routes lead over."""

    links: NDArray[np.bool_]
    """bool[S, K], the links, marked at the switch that sends."""
    transit: NDArray[np.bool_]
    """bool[S], the switches that pass packets on to others."""

    def joined_with(self, other: UsedParts | None) -> UsedParts:
        """These and others; None for no others."""
        if other is None:
            return self
        return UsedParts(self.links | other.links, self.transit | other.transit)


def parts_used(intact: IntactBuild, differing: dict[int, DifferingRoutes]) -> UsedParts:
    """What the routes lead over that switches hold instead of those of their programs.

    Args:
        intact: the build.
        differing: the routes that differ from these, by vertex.
    """
    far = intact.wiring.far
    used = UsedParts(np.zeros(far.shape, np.bool_), np.zeros(len(far), np.bool_))
    switch, prefix, egress = _columns(_held_rows(differing, GONE))
    links = intact.link_of_class.shape[1]
    leads_on = (egress >= 0) & (egress < links)  # the others deliver, or lead nowhere
    switch, prefix, egress = switch[leads_on], prefix[leads_on], egress[leads_on]
    link = intact.link_of_class[switch, egress]
    is_linked = link < far.shape[1]
    switch, prefix, link = switch[is_linked], prefix[is_linked], link[is_linked]
    following = far[switch, link]
    used.links[switch, link] = True
    used.transit[following[following != prefix]] = True
    return used


def tables_as_held(
    intact: IntactBuild, tables: RepairedTables, differing: dict[int, DifferingRoutes]
) -> RepairedTables:
    """The tables that switches hold.

    Args:
        intact: the build.
        tables: the tables of their programs.
        differing: the routes that differ from these, by vertex.
    """
    routes = tables.tables.routes
    switch, prefix, egress = _columns(_held_rows(differing, no_route(routes.egress)))
    routes = with_rows(routes, switch, prefix, egress)
    return replace(
        tables,
        tables=replace(tables.tables, routes=routes),
        fib=intact.fib_of(routes),
        changed_rows=distinct_pairs(
            np.concatenate((tables.changed_rows, np.column_stack((switch, prefix))))
        ),
    )


def held_routes_loop(
    tables: RepairedTables, differing: dict[int, DifferingRoutes], unread: Iterable[int]
) -> bool:
    """Whether packets are known to loop by routes that switches were read to hold.

    The routes of programs do not loop. So each loop leads over one of the routes that differ.

    Args:
        tables: the tables that switches hold (`tables_as_held`).
        differing: the routes that differ from those of the programs, by vertex.
        unread: the switches of which it is not known what they hold.
    """
    routes = tables.tables.routes
    switch, prefix, _ = _columns(_held_rows(differing, GONE))
    destinations = covered_destinations(routes, prefix)
    next_switch = tables.fib.next_switch(destinations)  # int32[S, D]
    next_switch[[*unread]] = LOST
    # A packet for each destination of each of the routes: where it is, and the column of its
    # destination. An aggregate has several destinations.
    is_aggregate = prefix >= len(next_switch)
    covers = prefix[is_aggregate, None] == routes.aggregate[destinations]
    row, columns_of_aggregates = np.nonzero(covers)
    columns_of_switches = np.searchsorted(destinations, prefix[~is_aggregate])
    at = np.concatenate((switch[~is_aggregate], switch[is_aggregate][row]))
    column = np.concatenate((columns_of_switches, columns_of_aggregates))
    for _ in range(MOST_HOPS):
        following = next_switch[at, column]
        goes_on = (following >= 0) & (following != at)
        if not goes_on.any():
            return False
        at, column = following[goes_on], column[goes_on]
    return True


def _held_rows(differing: dict[int, DifferingRoutes], gone: int) -> list[tuple[int, int, int]]:
    """The switch, the prefix and the class of each of these routes; `gone` where it has none."""
    return [
        (vertex, prefix, gone if egress == GONE else egress)
        for vertex, routes_held in differing.items()
        for prefix, egress in routes_held.items()
    ]


def _columns(rows: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """int64[3, n]: the switches, prefixes and classes of n rows."""
    return np.array(rows, np.int64).reshape(-1, 3).T
