"""The check of rendered SRv6 files against the tables: those of target srv6, and SONiC's.

The files of each switch are read here. Its segment routes are compared with the tables in
`switch_segments`, and the paths of hosts, which lead over those routes, in `carrier_check`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.readers.exact_text import bare, exact_lines, read_exact
from compilers.tables.build import Build
from extensions.host_paths.carrier_check import CarrierCheck, Progress
from extensions.host_paths.switch_segment_text import (
    SegmentTable,
    read_segments,
    read_sonic_segments,
)
from extensions.host_paths.switch_segments import (
    BRIDGE,
    SwitchSegments,
    host_interface,
    row_text,
)

HOSTS_FOLDER = "hosts"
"""The folder that has a folder for each host, in the output of target srv6."""
SONIC_VLAN = "Vlan2"
"""The interface of several hosts of a switch on SONiC."""


def check_segments(
    build: Build, _options: object, folder: Path, progress: Progress, accept: tuple[str, ...]
) -> EmittedReport:
    """Compare the files of target srv6 with the tables; see `Target.fabric_check`.

    The check needs no options of the target, as the files show which were chosen.
    """
    differences = DifferenceList(accept)
    tables: dict[int, SegmentTable] = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        switch_folder = folder / build.wiring.names[vertex]
        try:
            tables[vertex] = read_segments(switch_folder / "srv6.batch", differences)
            _check_settings(build, vertex, switch_folder / "srv6-sysctl.conf", differences)
            frr_table = read_segments(switch_folder / "srv6.conf", differences)
            _compare_files(tables[vertex], frr_table, differences)
        except (OSError, UnicodeDecodeError) as error:
            # An OSError names its file; a UnicodeDecodeError does not.
            file = Path(getattr(error, "filename", switch_folder))
            differences.add(file, 0, "cannot be read", "a file of SIDs")
    segments = SwitchSegments(build, tables, differences)
    segments.check()
    pairs = CarrierCheck(segments).check(folder / HOSTS_FOLDER, progress)
    return EmittedReport(
        "srv6",
        switches=len(tables),
        pairs=pairs.checked,
        delivered=pairs.delivered,
        differences=differences.count,
        examples=tuple(differences.examples),
        accepted=differences.accepted,
    )


def _check_settings(build: Build, vertex: int, file: Path, differences: DifferenceList) -> None:
    """Compare the settings of a kernel, without which it drops packets with segments.

    Each interface that packets come in by has one: those of links, and that of the hosts.
    """
    wiring = build.wiring
    link_ports = wiring.port[vertex][wiring.far[vertex] >= 0].tolist()
    links = [wiring.port_name(vertex, port) for port in link_ports]
    hosts = host_interface(build, vertex, BRIDGE)
    interfaces = ["all", *links, *([hosts] if hosts else [])]
    expected = {f"net/ipv6/conf/{name}/seg6_enabled = 1" for name in interfaces}
    expected.add("net/ipv6/conf/all/forwarding = 1")
    missing = set(expected)
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if text in expected:
            missing.discard(text)
        elif bare(text) and bare(text)[0] not in "#;":
            differences.add_unread(file, line, text)
    for text in sorted(missing):
        differences.add(file, 0, "nothing of it", text)


def check_sonic_segments(build: Build, folder: Path) -> DifferenceList:
    """Compare the segment routes in CONFIG_DB of all switches with the tables.

    The files of hosts are those of target srv6, and are checked there.
    """
    differences = DifferenceList()
    tables = {}
    for vertex in np.flatnonzero(build.topology.present).tolist():
        file = folder / build.wiring.names[vertex] / "config_db.json"
        try:
            tables[vertex] = read_sonic_segments(file, differences)
        except (OSError, LookupError, TypeError, ValueError):
            differences.add(file, 0, "no SIDs", "those of a switch")
    SwitchSegments(build, tables, differences, SONIC_VLAN).check()
    return differences


def _compare_files(
    expected: SegmentTable, table: SegmentTable, differences: DifferenceList
) -> None:
    """Note where a file of a switch differs from its other file, for the other routing software.

    Args:
        expected: the segment routes of the file that is compared with the tables.
        table: the segment routes of the other file.
        differences: gets what differs.
    """
    if expected.rows == table.rows:
        return
    for usids in expected.rows.keys() | table.rows.keys():
        row, expected_row = table.rows.get(usids), expected.rows.get(usids)
        if row != expected_row:
            expected_text = f"{row_text(usids, expected_row)} in {expected.file.name}"
            line = table.lines.get(usids, 0)
            differences.add(table.file, line, row_text(usids, row), expected_text)
