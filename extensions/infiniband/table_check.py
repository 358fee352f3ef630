"""The check of the forwarding tables that OpenSM gets, `lfts.txt`, against those of a build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Egress, local, no_route
from extensions.infiniband.cable_check import CheckedCables
from extensions.infiniband.lft_tables import NO_PORT
from extensions.infiniband.lfts import LFTS
from extensions.infiniband.lid_walk import LidEnds
from extensions.infiniband.subnet_files import SubnetFiles
from extensions.infiniband.table_text import TableText, read_tables

Progress = Callable[[int, int], None] | None
"""Called with (switches done, all switches)."""


def checked_ports(
    files: SubnetFiles, cables: CheckedCables, progress: Progress
) -> NDArray[np.int16]:
    """Read the forwarding table of every switch, and compare it with the routes.

    Returns:
        int16[S, n], the port of each switch towards each LID, as the tables state it; NO_PORT where
        they state none.
    """
    build, file, ends = files.build, files.folder / LFTS, cables.ends
    port = np.full((len(build.wiring.names), len(ends.guid)), NO_PORT, np.int16)
    # Packets to switches take the minimal tables, those to hosts the tables of their LID's layer.
    layer_tables = files.lid_layers.tables if files.lid_layers else ()
    switches, wiring_cables = np.arange(build.tables.switches), build.wiring.far_by_port()
    egress = [
        Fib.of(tables, wiring_cables).egress(switches) for tables in (build.tables, *layer_tables)
    ]
    vertices, compared = set(files.vertices().values()), set[int]()
    for table in read_tables(file, files.differences):
        vertex = cables.vertex_of_id.get(f"S-{table.switch:016x}")
        if vertex is None or vertex in compared:
            stated = f"{table.switch:#x}"
            files.differences.add(file, table.line, stated, "one table a switch")
            continue
        compared.add(vertex)
        lids = _lids_of_lines(files, ends, table)
        port[vertex, lids.number[lids.exists]] = table.port[lids.exists]
        values = np.stack([values_of_switches[vertex] for values_of_switches in egress])
        expected = _expected_ports(files, ends, vertex, values)
        switch = build.wiring.names[vertex]
        _add_wrong_ports(files, switch, ends, table, lids, port[vertex], expected)
        if progress:
            progress(len(compared), len(vertices))
    for vertex in vertices - compared:
        files.differences.add(file, 0, "no table", f"one of {build.wiring.names[vertex]}")
    return port


@dataclass(frozen=True, slots=True, eq=False)
class _LidsOfLines:
    """The LIDs that n lines of a table are for."""

    number: NDArray[np.int64]
    """int64[n], the number of each line's LID among all LIDs; arbitrary where `exists` is false."""
    exists: NDArray[np.bool_]
    """bool[n], whether there is such a LID."""


def _lids_of_lines(files: SubnetFiles, ends: LidEnds, table: TableText) -> _LidsOfLines:
    """The LIDs of a table's lines; reports lines for unknown ports, and repeated lines."""
    file, last = files.folder / LFTS, len(ends.guid) - 1
    # `ends` is ordered by GUID, so the LIDs of a port are numbered one after the other.
    first_of_port = np.searchsorted(ends.guid, table.guid).clip(0, last)
    number = first_of_port + _index_at_port(ends, first_of_port, table.lid, files.lids_per_host)
    number = number.clip(0, last)
    exists = ends.guid[number] == table.guid
    for row in np.flatnonzero(~exists).tolist():
        line = table.line + 1 + row
        files.differences.add(file, line, f"{table.guid[row]:#x}", "no such port")
    existing_rows = np.flatnonzero(exists)
    _, first_of_lid = np.unique(number[existing_rows], return_index=True)
    for row in np.delete(existing_rows, first_of_lid).tolist():
        line, stated = table.line + 1 + row, f"{table.guid[row]:#x} again"
        files.differences.add(file, line, stated, "one line for each LID")
    return _LidsOfLines(number, exists)


def _index_at_port(
    ends: LidEnds,
    first_of_port: NDArray[np.int64],
    lid: NDArray[np.int64],
    lids_per_host: int,
) -> NDArray[np.int64]:
    """Which of the LIDs of its port each line is for, int64[n].

    OpenSM may give a port other LIDs than the files have. But the first LID of a host is a multiple
    of the number of LIDs that a host has. With four LIDs each, one host may have 8 to 11 in the
    files, and 20 to 23 in OpenSM. LID 22 is then its LID 2, as is LID 10. Switches have one LID.

    Args:
        ends: the LIDs.
        first_of_port: int64[n], the number of the first LID of each line's port.
        lid: int64[n], the LID that each line states.
        lids_per_host: how many LIDs a host has.
    """
    is_of_host = ends.port[first_of_port] > 0
    index: NDArray[np.int64] = np.where(is_of_host, lid % lids_per_host, 0)
    return index


def _add_wrong_ports(
    files: SubnetFiles,
    switch: str,
    ends: LidEnds,
    table: TableText,
    lids: _LidsOfLines,
    stated_port: NDArray[np.int16],
    expected_port: NDArray[np.int64],
) -> None:
    """Add a difference for each LID to which a table states another port than the routes.

    Args:
        files: the files, whose differences are added to.
        switch: the name of a switch.
        ends: the n LIDs.
        table: the table of this switch.
        lids: the LIDs that its lines are for.
        stated_port: int16[n], the port towards each LID by the table, or NO_PORT.
        expected_port: int64[n], the port towards each LID by the routes, or NO_PORT.
    """
    line_of_lid = np.full(len(ends.guid), table.line)  # without a line: the head of the table
    line_of_lid[lids.number[lids.exists]] = table.line + 1 + np.flatnonzero(lids.exists)
    for lid in np.flatnonzero(stated_port != expected_port).tolist():
        layer = f" (LID {ends.layer[lid]})" if files.lid_layers else ""
        stated = f"{switch} to {ends.guid[lid]:#x}{layer} by port {stated_port[lid]}"
        line = int(line_of_lid[lid])
        files.differences.add(files.folder / LFTS, line, stated, f"by port {expected_port[lid]}")


def _expected_ports(
    files: SubnetFiles, ends: LidEnds, vertex: int, egress: Egress
) -> NDArray[np.int64]:
    """The port of a switch towards each LID by the routes, int64[n]; NO_PORT: none.

    Args:
        files: the files, and the build with the routes.
        ends: the n LIDs.
        vertex: the switch.
        egress: [1 + layers, S], its egress values, the minimal ones first.
    """
    forwards = egress < no_route(egress)
    port = np.full(egress.shape, NO_PORT, np.int64)
    port[forwards] = files.build.tables.classes.port[vertex, egress[forwards]]
    # Packets to the LIDs of hosts are forwarded by the layers, those to switches minimally.
    tables_of_lid = np.where(ends.port > 0, ends.layer + 1, 0) if files.lid_layers else 0
    expected: NDArray[np.int64] = port[tables_of_lid, ends.vertex]
    is_local = (egress[0] == local(egress))[ends.vertex]
    expected[is_local] = ends.port[is_local]
    return expected
