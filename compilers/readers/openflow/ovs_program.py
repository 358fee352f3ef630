"""The egress classes and groups of one switch, and the chains by which they forward packets.

A *chain* is the sequence of port sets that a switch tries in order (`emitted_forwarding`). An
*entry* is what routes lead to, a class and an address family. `ovs_reader` and
`single_table_reader` fill an `OvsProgram` with the rows and groups of a switch, and get its lookup
tables by `lookups`.

A fast-failover group uses the first bucket that is up. A select group shares by weight among the
buckets that are up. Open vSwitch sends no packet back to its ingress port unless the action is
`in_port` (OpenFlow Switch Specification 1.3.5, §5.6.1 and §4.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    Chain,
    EmittedRows,
    LineText,
    Lookup,
    Port,
    PortSet,
    marked,
)
from compilers.readers.openflow.program_text import (
    ANY_PORT,
    NO_WATCH,
    BucketText,
    Entry,
    GroupText,
    ProgramFiles,
    ProgramText,
    ReadClass,
    parse_group,
    statements,
)
from compilers.readers.route_tables import Numbering

CLASS, INGRESS, CAME_MARKED = 0xFFFF, 0x10000, 0x20000
"""Bits of metadata: the class; set in packets from hosts; set in packets that came in marked."""
MOST_DEPTH = 2
"""How many groups may lead to each other, the first one not counted."""


@dataclass(frozen=True, slots=True)
class OvsProgram:
    """The egress classes and groups of a switch."""

    class_rows: dict[int, dict[int, list[ReadClass]]] = field(default_factory=dict)
    """The rows of classes, by class and by ingress port, or ANY_PORT."""
    groups: dict[int, GroupText] = field(default_factory=dict)
    """The groups, by number."""
    ports_of_hosts: dict[str, set[int]] = field(default_factory=dict)
    """The ports whose packets have the bit INGRESS, by address family."""
    row_lines: dict[ReadClass, int] = field(default_factory=dict)
    """The line of each row in flows.txt."""
    group_lines: dict[int, int] = field(default_factory=dict)
    """The line of each group in groups.txt, by number."""

    def row(self, entry: Entry, in_port: int) -> ReadClass | None:
        """The row that packets of an entry from a port match; None: they match none."""
        egress, family = entry
        metadata = egress
        if in_port in self.ports_of_hosts.get(family, ()):
            metadata |= INGRESS
        rows_of_class = self.class_rows.get(egress, {})
        rows = [
            row
            for row in (*rows_of_class.get(in_port, ()), *rows_of_class.get(ANY_PORT, ()))
            if metadata & row.mask == row.metadata
        ]
        return max(rows, key=lambda row: row.priority, default=None)

    def row_chain(self, row: ReadClass, in_port: int) -> Chain:
        """The chain of ports by which a row forwards a packet from a port."""
        if not row.members:
            return self.chain(row.group, in_port)
        ingress = f"port {in_port}, where it came in"
        return (tuple((port if port != in_port else ingress, 1) for port in row.members),)

    def chain(self, number: int, in_port: int, depth: int = 0) -> Chain:
        """The chain of ports by which a group forwards a packet from a port.

        Args:
            number: the number of the group.
            in_port: the ingress port; ANY_PORT: any that no bucket names.
            depth: how many groups have led to this one.
        """
        group = self.groups.get(number, GroupText(number, "indirect", ()))
        if group.kind == "select":
            weighted_ports = ((_bucket_port(b, in_port), b.weight) for b in group.buckets)
            return (tuple(weighted_ports),)
        chain: list[PortSet] = []
        for bucket in group.buckets:
            if bucket.action == "group":
                is_watched = bucket.watch == ("group", bucket.target) and not bucket.marking_mac
                if is_watched and depth < MOST_DEPTH:
                    chain += self.chain(bucket.target, in_port, depth + 1)
                else:
                    chain.append((("a group that is not watched", 1),))
            elif bucket.action == "output" and bucket.target == in_port:
                chain.append(())  # Open vSwitch drops a packet that would go back by `output`
            else:
                chain.append(((_bucket_port(bucket, in_port), 1),))
        return tuple(chain)

    def special_ports(self, number: int, depth: int = 0) -> set[int]:
        """The ingress ports whose packets a group may forward otherwise than those of most ports.

        These are the ports that its buckets name.

        Args:
            number: the number of the group.
            depth: how many groups have led to this one.
        """
        ports: set[int] = set()
        group = self.groups.get(number)
        for bucket in group.buckets if group else ():
            if bucket.action != "group":
                _, watched_port = bucket.watch
                ports.add(bucket.target or watched_port)
            elif depth < MOST_DEPTH:
                ports |= self.special_ports(bucket.target, depth + 1)
        return ports


def _bucket_port(bucket: BucketText, in_port: int) -> int | str:
    """The port of a bucket; words where no port of the tables does the same."""
    target = in_port if bucket.action == "in_port" else bucket.target
    if bucket.action == "group":
        return f"group {target}"
    if bucket.watch not in (("port", target), NO_WATCH):
        return f"port {target} while {' '.join(map(str, bucket.watch))} is up"
    if (bucket.action, target) == ("output", in_port):
        return f"port {target}, where it came in"
    return marked(target) if bucket.marking_mac else target


def read_groups(text: ProgramText) -> tuple[OvsProgram, list[LineText]]:
    """Read the groups of a switch.

    Returns:
        A program with the groups, and the lines that are no groups or repeat a group's number.
    """
    program = OvsProgram()
    wrong: list[LineText] = []
    for line, statement in statements(text.groups):
        group = parse_group(statement)
        if group and group.number not in program.groups:
            program.groups[group.number] = group
            program.group_lines[group.number] = line
        else:
            wrong.append((text.files.groups, line, statement))
    return program, wrong


def lookups(
    program: OvsProgram, rows: EmittedRows, entries: Sequence[Entry], files: ProgramFiles
) -> tuple[Lookup, dict[Port, tuple[Lookup, ...]]]:
    """The table for packets from any port, and the tables for packets from ports that differ.

    Args:
        program: the classes and groups.
        rows: the routes.
        entries: the class and the family to which each entry leads.
        files: the files of rows and of groups.
    """
    chains = _Chains(program, files)
    for_any_port = np.array([chains.number(entry, ANY_PORT) for entry in entries], np.int64)
    by_port: dict[int, NDArray[np.int64]] = {}
    for index, entry in enumerate(entries):
        for port in _ports_that_differ(program, entry):
            if port not in by_port:
                by_port[port] = for_any_port.copy()
            by_port[port][index] = chains.number(entry, port)
    by_ingress: dict[Port, tuple[Lookup, ...]] = {
        port: (Lookup(rows, chains.chains, numbers, chains.places),)
        for port, numbers in by_port.items()
    }
    return Lookup(rows, chains.chains, for_any_port, chains.places), by_ingress


def _ports_that_differ(program: OvsProgram, entry: Entry) -> set[int]:
    """The ports whose packets an entry may treat in another way than those of other ports."""
    egress, family = entry
    rows_by_port = program.class_rows.get(egress, {})
    ports = {*program.ports_of_hosts.get(family, ()), *rows_by_port}
    for row in rows_by_port.get(ANY_PORT, ()):
        # Rows for packets from hosts are matched from ports of hosts, which are counted above.
        if not row.metadata & INGRESS:
            ports |= program.special_ports(row.group).union(row.members)
    return ports - {ANY_PORT}


class _Chains:
    """The chains of a switch, numbered, each with the place that states it."""

    def __init__(self, program: OvsProgram, files: ProgramFiles) -> None:
        self.program, self.files = program, files
        self.chains: list[Chain] = []
        """The chains, by number."""
        self.places: list[tuple[str, int]] = []
        """The file and the line that state each chain."""
        self._numbers: Numbering[tuple[ReadClass | None, int]] = Numbering()
        """The number of the chain of a row for packets from a port."""
        self._rows_to_group = Counter(row.group for row in program.row_lines)
        """How many rows lead to each group."""

    def number(self, entry: Entry, in_port: int) -> int:
        """The number of the chain of an entry for packets from a port, or from ANY_PORT."""
        row = self.program.row(entry, in_port)
        number = self._numbers[row, in_port]
        if number == len(self.chains):
            self.chains.append(self.program.row_chain(row, in_port) if row else ())
            self.places.append(self._place(row))
        return number

    def _place(self, row: ReadClass | None) -> tuple[str, int]:
        """Where a difference of a row is: in its group, unless other rows lead there, too.

        If several rows share the group, it is right for some of them, so the row is at fault.
        """
        if row is None:
            return self.files.flows, 0
        group_lines = self.program.group_lines
        if self._rows_to_group[row.group] == 1 and row.group in group_lines:
            return self.files.groups, group_lines[row.group]
        return self.files.flows, self.program.row_lines[row]
