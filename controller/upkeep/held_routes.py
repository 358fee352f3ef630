"""Reads routes that differ from those of the programs out of the tables of switches. No I/O.

A controller that ended, or loaded its build again, between the rounds of a change has left switches
with old and new routes. To correct each as it is read would change routes in no order, and packets
could loop. Instead the keeper (`controller.upkeep.repair_keeper`) collects the routes that switches
hold (`RouteReader.changes`), takes them as the fabric's tables (`held_instead`), and corrects them
in rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import added_rows, entries, split_row
from compilers.routing.exact_rows import with_rows
from compilers.routing.link_repair import Intact, Repaired, distinct
from compilers.tables.intermediate_form import no_route
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind, cookie
from compilers.targets.openflow.group_and_flow_bytes import IPV6_NUMBER, kind_of, xid_numbers
from compilers.targets.openflow.profiles import Profile
from compilers.update.repair_rounds import GONE
from controller.switches.reconcile import SwitchContent

COOKIE_MEMBER = 5
"""The index of the cookie in `compilers.readers.openflow.rows.ROW`."""
Changes = dict[int, int]
"""The class that a switch's row for each prefix leads to, by prefix number; GONE without a row."""


@dataclass(frozen=True, slots=True)
class RouteReader:
    """Reads route rows of switches that can do the same and hold one generation of numbers."""

    prefix: dict[bytes, int]
    """The prefix number by the match of a row."""
    egress: dict[bytes, int]
    """The class number by the instructions of a row."""

    @classmethod
    def of(cls, encoder: Encoder, profile: Profile, generation: int) -> RouteReader:
        """The reader of the routes of a build."""
        tables = encoder.build.tables
        routes = tables.routes
        aggregates = routes.aggregate[routes.aggregate >= 0]
        numbers = np.unique(routes.prefix)
        numbers = numbers[(numbers < tables.switches) | np.isin(numbers, aggregates)]
        classes = np.arange(tables.classes.port.shape[1])
        prefix: dict[bytes, int] = {}
        egress: dict[bytes, int] = {}
        first = np.repeat(numbers[:1], len(classes))
        for block in encoder.route_messages(numbers, np.zeros_like(numbers), generation, profile):
            matches = (split_row(row)[1] for row in entries(added_rows(block)))
            prefix.update(zip(matches, numbers.tolist(), strict=True))
        for block in encoder.route_messages(first, classes, generation, profile):
            instructions = (split_row(row)[2] for row in entries(added_rows(block)))
            egress.update(zip(instructions, classes.tolist(), strict=True))
        return cls(prefix, egress)

    def changes(self, program: FlowProgram, held: SwitchContent) -> Changes:
        """The routes of a switch that differ from those of its program.

        {} if it holds a route row that is no route of this build.

        Args:
            program: the switch's program.
            held: its content, as it was read.
        """
        changes: Changes = {}
        held_rows, program_rows = held.rows, set[bytes]()
        for block in program.flows:
            if not len(block) or kind_of(block) != RowKind.ROUTE:
                continue
            rows = entries(added_rows(block))
            program_rows.update(rows)
            prefixes = (xid_numbers(block) % IPV6_NUMBER).tolist()
            changes |= {
                prefix: GONE
                for prefix, row in zip(prefixes, rows, strict=True)
                if row not in held_rows
            }
        for row in held_rows - program_rows:
            head, match, instructions = split_row(row)
            if head[COOKIE_MEMBER] != cookie(RowKind.ROUTE):
                continue
            prefix, egress = self.prefix.get(match), self.egress.get(instructions)
            if prefix is None or egress is None:
                return {}
            changes[prefix] = egress
        return changes


def held_instead(intact: Intact, tables: Repaired, changes: dict[int, Changes]) -> Repaired:
    """The tables that switches hold.

    Args:
        intact: the build.
        tables: the tables of their programs.
        changes: the routes that differ from these, by vertex.
    """
    routes = tables.tables.routes
    no_egress = no_route(routes.egress)
    rows = [
        (vertex, prefix, no_egress if egress == GONE else egress)
        for vertex, routes_held in changes.items()
        for prefix, egress in routes_held.items()
    ]
    switch, prefix, egress = _columns(rows)
    routes = with_rows(routes, switch, prefix, egress)
    return replace(
        tables,
        tables=replace(tables.tables, routes=routes),
        fib=intact.fib_of(routes),
        rows=distinct(np.concatenate((tables.rows, np.column_stack((switch, prefix))))),
    )


def _columns(rows: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """int64[3, n]: the switches, prefixes and classes of n rows."""
    return np.array(rows, np.int64).reshape(-1, 3).T
