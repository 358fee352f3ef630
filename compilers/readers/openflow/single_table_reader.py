"""Reader of rows and groups of a switch with a single flow table.

Its rows lead from a prefix, with or without an ingress port, to a group. A row with an ingress port
comes before the row of the same prefix for all ports. Prefixes with the same groups form an egress
class, so that the result has the form of switches with several tables (`ovs_reader`).
"""

from __future__ import annotations

import numpy as np

from compilers.readers.emitted_forwarding import Claim, EmittedRows, EmittedSwitch
from compilers.readers.openflow.ovs_reader import (
    CLASS,
    Entry,
    ProgramText,
    ReadCarried,
    ReadClass,
    ReadPrefix,
    ReadRoute,
    claimed_by,
    lookups,
    read_groups,
    read_row,
    statements,
)
from compilers.readers.route_tables import Numbering


def read_single_table(text: ProgramText) -> EmittedSwitch:
    """The forwarding of a switch with a single table.

    Groups may be unused: a class has one for every port, also for those to switches without hosts.

    Raises:
        ValueError: an address makes no sense.
    """
    files = text.files
    program, wrong = read_groups(text)
    # The group, with the line, of each ingress port (0: any), by prefix and family.
    groups_of: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    claims: list[Claim] = []
    dispatched: dict[tuple[str, str], int] = {}
    for line, statement in statements(text.flows):
        row = read_row(statement, "single")
        if isinstance(row, ReadPrefix):
            groups = groups_of.setdefault((row.prefix, row.family), {})
            if row.right and row.in_port not in groups:
                groups[row.in_port] = row.group, line
                dispatched.setdefault((row.family, row.mac), line)
                continue
        elif row and not isinstance(row, ReadRoute | ReadClass | ReadCarried):
            claims.append(Claim(*row, files[0], line))
            continue
        wrong.append((files[0], line, statement))
    claims += (Claim("dispatched", value, files[0], line) for value, line in dispatched.items())
    classes: Numbering[tuple[tuple[int, int], ...]] = Numbering()
    entries: Numbering[Entry] = Numbering()
    entry_of_row: list[int] = []
    for (_, family), groups in groups_of.items():
        egress = classes[tuple(sorted((port, group) for port, (group, _) in groups.items()))]
        entry_of_row.append(entries[egress, family])
        for port, (group, line) in groups.items():
            row = ReadClass(0, port, egress, CLASS, group)
            program.row_lines.setdefault(row, line)
            program.rows.setdefault(egress, {})[port] = [row]
    lines = [min((line for _, line in groups.values()), default=0) for groups in groups_of.values()]
    names = [prefix for prefix, _ in groups_of]
    rows = EmittedRows(files[0], names, np.array(entry_of_row, np.int64), np.array(lines, np.int64))
    table, by_ingress = lookups(program, rows, list(entries), files)
    claimed = claimed_by("single") | {"dispatched"}
    return EmittedSwitch((table,), by_ingress, claimed, claims, wrong=wrong)
