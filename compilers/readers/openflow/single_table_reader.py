"""Reader of the rows of a switch of one table: prefixes, with and without a way in, to groups.

A row for packets that come in on some port stands before that of the same prefix for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from compilers.readers.emitted_forwarding import (
    Chain,
    Claim,
    EmittedRows,
    EmittedSwitch,
    Lookup,
    Port,
)
from compilers.readers.openflow.ovs_reader import (
    OvsProgram,
    ReadCarried,
    ReadClass,
    ReadPrefix,
    ReadRoute,
    claimed_by,
    read_groups,
    read_row,
    text_lines,
)


@dataclass(slots=True)
class _PrefixRow:
    """The groups of a prefix, by the port where packets come in, 0: any; the first line."""

    family: str
    line: int
    groups: dict[int, int] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)


def read_single_table(folder: Path) -> EmittedSwitch:
    """The program of a switch of one table, from its folder.

    A class may have groups without a route that leads there, as ports to switches without hosts.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files = str(folder / "flows.txt"), str(folder / "groups.txt")
    program, wrong = read_groups(files[1])
    prefixes: dict[str, _PrefixRow] = {}
    claims: list[Claim] = []
    dispatched: set[tuple[str, str]] = set()
    for line, text in text_lines(Path(files[0])):
        found = read_row(text, "single")
        if isinstance(found, ReadPrefix):
            row = prefixes.setdefault(found.prefix, _PrefixRow(found.family, line))
            if not found.right or found.in_port in row.groups:
                wrong.append((files[0], line, text))
                continue
            row.groups[found.in_port], row.lines[found.in_port] = found.group, line
            if found[:2] not in dispatched:
                dispatched.add(found[:2])
                claims.append(Claim("dispatched", found[:2], files[0], line))
        elif found and not isinstance(found, ReadRoute | ReadClass | ReadCarried):
            claims.append(Claim(*found, files[0], line))
        else:
            wrong.append((files[0], line, text))
    table, by_ingress = _lookups(program, prefixes, files)
    return EmittedSwitch(
        (table,), by_ingress, claimed_by("single") | {"dispatched"}, claims, wrong=wrong
    )


def _lookups(
    program: OvsProgram, prefixes: dict[str, _PrefixRow], files: tuple[str, str]
) -> tuple[Lookup, dict[Port, tuple[Lookup, ...]]]:
    """What packets from any port meet, and what those do from ports that a row or a group knows."""
    rows = EmittedRows(
        files[0],
        list(prefixes),
        np.arange(len(prefixes)),
        np.array([row.line for row in prefixes.values()], np.int64),
    )
    chains: list[Chain] = []
    places: list[tuple[str, int]] = []
    known: dict[tuple[int, int], int] = {}

    def numbers(in_port: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        found = []
        for row in prefixes.values():
            port = in_port if in_port in row.groups else 0
            group = row.groups.get(port, -1)
            if (group, in_port) not in known:
                known[group, in_port] = len(chains)
                chains.append(program.chain(group, in_port) if group >= 0 else ())
                places.append((files[0], row.lines.get(port, 0)))
            found.append(known[group, in_port])
        return np.array(found, np.int64)

    ports = {port for row in prefixes.values() for port in row.groups}
    for row in prefixes.values():
        ports |= program.aware(row.groups.get(0, -1))
    by_ingress: dict[Port, tuple[Lookup, ...]] = {
        port: (Lookup(rows, chains, numbers(port), places),) for port in sorted(ports - {0})
    }
    return Lookup(rows, chains, numbers(0), places), by_ingress
