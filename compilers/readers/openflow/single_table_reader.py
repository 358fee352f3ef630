"""Reader of rows and groups of a switch with a single flow table.

`profiled_check` calls `read_single_table` for switches whose profile has one table. Rows lead from
a prefix, with or without an ingress port, to a group. A row with an ingress port has a higher
priority than the row of the same prefix for all ports. Prefixes with the same groups form an egress
class, so that the result has the form of switches with several tables (`ovs_reader`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from compilers.readers.emitted_forwarding import Claim, EmittedRows, EmittedSwitch, LineText
from compilers.readers.openflow.ovs_program import CLASS, OvsProgram, lookups, read_groups
from compilers.readers.openflow.program_text import (
    SINGLE_TABLE,
    Entry,
    ProgramText,
    ReadClass,
    ReadIntermediateRow,
    ReadPrefix,
    ReadRoute,
    claim_kinds_of,
    parse_row,
    statements,
)
from compilers.readers.route_tables import Numbering


class _GroupAndLine(NamedTuple):
    """The group to which a row leads, and the row's line."""

    group: int
    """The number of the group."""
    line: int
    """The line of the row."""


class _PrefixKey(NamedTuple):
    """A prefix of one address family."""

    prefix: str
    """The prefix, as the rows write it."""
    family: str
    """`ip` or `ipv6`."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a single table, by their purpose."""

    file: str
    """The name of the file."""
    groups: dict[_PrefixKey, dict[int, _GroupAndLine]] = field(default_factory=dict)
    """The group of packets for each prefix, by ingress port, or ANY_PORT."""
    dispatched: dict[tuple[str, str], int] = field(default_factory=dict)
    """The first line with each address family and Ethernet address of the gateway."""
    claims: list[Claim] = field(default_factory=list)
    """The facts that other rows state."""
    wrong: list[LineText] = field(default_factory=list)
    """The rows that no rule reads, or that are wrong."""

    @classmethod
    def read(cls, text: ProgramText) -> _Rows:
        """Read the rows of a switch."""
        rows = cls(text.files.flows)
        for line, statement in statements(text.flows):
            row = parse_row(statement, SINGLE_TABLE)
            match row:
                case ReadPrefix():
                    is_right = rows._add(row, line)
                case None:
                    is_right = False
                case ReadRoute() | ReadClass() | ReadIntermediateRow():
                    is_right = False  # the grammar has such rows for other switches only
                case kind, value:
                    is_right = True
                    rows.claims.append(Claim(kind, value, rows.file, line))
            if not is_right:
                rows.wrong.append((rows.file, line, statement))
        return rows

    def _add(self, row: ReadPrefix, line: int) -> bool:
        """Add a row of a prefix; False: its priority is wrong, or there is such a row already."""
        groups = self.groups.setdefault(_PrefixKey(row.prefix, row.family), {})
        if not row.has_priority_of_length or row.in_port in groups:
            return False
        groups[row.in_port] = _GroupAndLine(row.group, line)
        self.dispatched.setdefault((row.family, row.mac), line)
        return True


def read_single_table(text: ProgramText) -> EmittedSwitch:
    """The forwarding of a switch with a single table.

    Groups may be unused: a class has one for every port, also for those to switches without hosts.

    Raises:
        ValueError: an address makes no sense.
    """
    program, wrong = read_groups(text)
    rows = _Rows.read(text)
    claims = [
        *rows.claims,
        *(Claim("dispatched", value, rows.file, line) for value, line in rows.dispatched.items()),
    ]
    entries: Numbering[Entry] = Numbering()
    entry_of_row = _add_classes(program, rows, entries)
    first_lines = [
        min((group.line for group in groups.values()), default=0) for groups in rows.groups.values()
    ]
    emitted_rows = EmittedRows(
        rows.file,
        [key.prefix for key in rows.groups],
        np.array(entry_of_row, np.int64),
        np.array(first_lines, np.int64),
    )
    table, by_ingress = lookups(program, emitted_rows, list(entries), text.files)
    claimed_kinds = claim_kinds_of(SINGLE_TABLE) | {"dispatched"}
    return EmittedSwitch((table,), by_ingress, claimed_kinds, claims, wrong=[*wrong, *rows.wrong])


def _add_classes(program: OvsProgram, rows: _Rows, entries: Numbering[Entry]) -> list[int]:
    """Make an egress class of all prefixes with the same groups.

    Args:
        program: gets the rows of the classes.
        rows: the rows of the switch.
        entries: numbers the class and the address family of each prefix.

    Returns:
        The entry of each prefix.
    """
    classes: Numbering[tuple[tuple[int, int], ...]] = Numbering()
    entry_of_row: list[int] = []
    for key, groups in rows.groups.items():
        group_of_port = sorted((port, group) for port, (group, _) in groups.items())
        egress = classes[tuple(group_of_port)]
        entry_of_row.append(entries[egress, key.family])
        for port, (group, line) in groups.items():
            # As in table 2 of a switch with several tables. All its rows have one priority here.
            row = ReadClass(priority=0, in_port=port, metadata=egress, mask=CLASS, group=group)
            program.row_lines.setdefault(row, line)
            program.class_rows.setdefault(egress, {})[port] = [row]
    return entry_of_row
