"""Reader of the rows of a switch of one table: prefixes, with and without an ingress port, to
groups.

A row for packets that come in on some port is before that of the same prefix for all others. So
prefixes with the same groups are a class, with a row for each way in, as on other switches.
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
from compilers.readers.route_tables import Numbers


def read_single_table(text: ProgramText) -> EmittedSwitch:
    """The program of a switch of one table.

    A class may have groups without a route that leads there, as ports to switches without hosts.

    Raises:
        ValueError: an address makes no sense.
    """
    files = text.files
    program, wrong = read_groups(text)
    prefixes: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    claims: list[Claim] = []
    dispatched: dict[tuple[str, str], int] = {}
    for line, said in statements(text.flows):
        row = read_row(said, "single")
        if isinstance(row, ReadPrefix):
            led = prefixes.setdefault((row.prefix, row.family), {})
            if row.right and row.in_port not in led:
                led[row.in_port] = row.group, line
                dispatched.setdefault((row.family, row.mac), line)
                continue
        elif row and not isinstance(row, ReadRoute | ReadClass | ReadCarried):
            claims.append(Claim(*row, files[0], line))
            continue
        wrong.append((files[0], line, said))
    claims += (Claim("dispatched", value, files[0], line) for value, line in dispatched.items())
    number: Numbers[tuple[tuple[int, int], ...]] = Numbers()
    entries: Numbers[Entry] = Numbers()
    led_by: list[int] = []
    for (_, family), led in prefixes.items():
        egress = number[tuple(sorted((port, group) for port, (group, _) in led.items()))]
        led_by.append(entries[egress, family])
        for port, (group, line) in led.items():
            row = ReadClass(0, port, egress, CLASS, group)
            program.row_lines.setdefault(row, line)
            program.rows.setdefault(egress, {})[port] = [row]
    first = [min((line for _, line in led.values()), default=0) for led in prefixes.values()]
    names = [prefix for prefix, _ in prefixes]
    rows = EmittedRows(files[0], names, np.array(led_by, np.int64), np.array(first, np.int64))
    table, by_ingress = lookups(program, rows, list(entries), files)
    claimed = claimed_by("single") | {"dispatched"}
    return EmittedSwitch((table,), by_ingress, claimed, claims, wrong=wrong)
