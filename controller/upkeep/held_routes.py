"""Reads routes that differ from those of the programs out of the tables of switches. No I/O.

A controller may have ended, or loaded its build again, between the rounds of a change. Then some
switches hold old routes and others new ones. If each were corrected as it is read, routes would
change in no order, and packets could loop. Instead the keeper (`controller.upkeep.repair_keeper`)
collects the routes that switches hold (`RouteReader.changes`), takes them as the fabric's tables
(`held_instead`), and corrects them in rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import added_rows, entries, split_row
from compilers.routing.exact_rows import with_rows
from compilers.routing.intact_build import Intact
from compilers.routing.link_repair import Repaired, distinct
from compilers.tables.intermediate_form import no_route
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind, cookie
from compilers.targets.openflow.group_and_flow_bytes import IPV6_NUMBER, kind_of, xid_numbers
from compilers.targets.openflow.profiles import Profile
from compilers.update.repair_rounds import GONE
from controller.switches.reconcile import SwitchContent

COOKIE_MEMBER = 5
"""The index of the cookie among the members of a row's head, which `split_row` returns first."""
Changes = dict[int, int]
"""The class that a switch's row for each prefix leads to, by prefix number; GONE without a row."""


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
                _, match, _ = split_row(row)
                prefix_by_match[match] = prefix
        for block in encoder.route_messages(any_prefix, classes, generation, profile):
            for row, egress in zip(entries(added_rows(block)), classes.tolist(), strict=True):
                _, _, instructions = split_row(row)
                class_by_instructions[instructions] = egress
        return cls(prefix_by_match, class_by_instructions)

    def changes(self, program: FlowProgram, held: SwitchContent) -> Changes:
        """The routes of a switch that differ from those of its program.

        Empty if it holds a route row that is no route of this build: nothing can be said then.

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
            prefix = self.prefix_by_match.get(match)
            egress = self.class_by_instructions.get(instructions)
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
