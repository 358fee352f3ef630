"""Reader of the neighbours of Arista EOS, from `show lldp neighbors [detail]` as text or JSON.

The forms are those of NAPALM's and ntc-templates' test data. In JSON the table is a list of
neighbours, and with `detail` a mapping from ports to their neighbours. `check wiring` reads the
outputs by `FORM`: each row is a local port, and the names of the neighbour and of its port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compilers.readers.devices.neighbour_facts import (
    NeighbourForm,
    NeighbourRow,
    NeighbourSighting,
    NeighbourTable,
    as_list,
    as_mapping,
    nonempty,
    seen_rows,
)

OUTPUT_NAME = "the output of show lldp neighbors | json, or of detail, a file per node"
"""The outputs that can be read, as messages name them."""
HEADER = re.compile(r"Port +Neighbor Device ID +Neighbor Port ID +TTL")
"""`Port       Neighbor Device ID       Neighbor Port ID    TTL`, in the table."""
ROW = re.compile(
    r"(?P<local_port>\S+) +(?:(?P<name>\S+) +(?P<port>\S+)"
    r"|(?P<spaced_name>\S.*?) {2,}(?P<spaced_port>\S.*?)|(?P<only_port>\S+)) +\d+"
)
"""`Et1/1      spine.example            Ethernet7           120`, in the table. Names and ports may
have spaces, and a name may be missing."""
INTERFACE_LINE = re.compile(r"Interface (\S+) detected (\d{1,9}) LLDP neighbors?:")
"""`Interface Ethernet1/1 detected 1 LLDP neighbors:`, in the output with `detail`."""
SYSTEM_NAME = re.compile(r'- System Name: *"?(.*?)"?')
"""`- System Name: "spine.example"`."""
PORT_ID = re.compile(r'Port ID +: *"?(.*?)"?')
"""`Port ID     : "Ethernet7"`."""
PORT_DESCRIPTION = re.compile(r'- Port Description: *"?(.*?)"?')
"""`- Port Description: "eth0"`."""
CHASSIS_ID = re.compile(r"Chassis ID +: *(.*)")
"""`Chassis ID     : 02aa.0000.0001`."""
NEIGHBOUR_LINE = re.compile(r"Neighbor \S+, age .*")
"""`Neighbor 02aa.0000.0001/"Ethernet7", age 12 seconds`."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is an LLDP neighbour table of EOS, as text or JSON."""
    if source.data is not None:
        return "lldpNeighbors" in as_mapping(source.data)
    output = source.output
    return bool(HEADER.search(output) or INTERFACE_LINE.search(output))


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours that the table has, one for each line, block or entry."""
    if source.data is not None:
        table = as_mapping(source.data).get("lldpNeighbors")
        rows = _json_detail_rows(source, table) if isinstance(table, dict) else _json_rows(table)
    elif INTERFACE_LINE.search(source.output):
        rows = _text_detail_rows(source)
    else:
        rows = _text_rows(source)
    return seen_rows(source, rows)


def _json_rows(table: object) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors | json`: a list of neighbours."""
    for neighbour in map(as_mapping, as_list(table)):
        device, port = neighbour.get("neighborDevice"), neighbour.get("neighborPort")
        yield nonempty(neighbour.get("port")), nonempty(device), nonempty(port)


def _json_detail_rows(source: NeighbourTable, table: dict[str, object]) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors detail | json`: the neighbours of each port.

    Raises:
        InputError: a port has no list of neighbours.
    """
    for local_port, interface in table.items():
        if "lldpNeighborInfo" not in as_mapping(interface):
            given = f"{local_port} without lldpNeighborInfo"
            raise source.wrong(OUTPUT_NAME, given, "collect it again")
        for neighbour in map(as_mapping, as_list(as_mapping(interface)["lldpNeighborInfo"])):
            far_port = as_mapping(neighbour.get("neighborInterfaceInfo"))
            quoted_id = str(far_port.get("interfaceId") or "")  # `"Ethernet7"`, with the quotes
            ports = nonempty(
                far_port.get("interfaceId_v2"),
                quoted_id.strip('"'),
                far_port.get("interfaceDescription"),
            )
            managements = map(as_mapping, as_list(neighbour.get("managementAddresses")))
            addresses = (management.get("address") for management in managements)
            names = nonempty(neighbour.get("systemName"), neighbour.get("chassisId"), *addresses)
            yield nonempty(local_port), names, ports


def _text_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors`, below the line with the names of columns.

    Raises:
        InputError: a line is no row of the table.
    """
    lines = source.lines
    header = next(index for index, line in enumerate(lines) if HEADER.search(line))
    first_number = header + 2  # the line below the header; messages count lines from 1
    for number, line in enumerate(lines[header + 1 :], first_number):
        if not line.strip("- "):
            continue
        row = ROW.fullmatch(line.strip())
        if not row:
            raise source.wrong("four columns", repr(line.strip()), "collect it again", number)
        name = row["name"] or row["spaced_name"]
        port = row["port"] or row["spaced_port"] or row["only_port"]
        yield nonempty(row["local_port"]), nonempty(name), nonempty(port)


@dataclass(slots=True)
class _Interface:
    """An interface in the output of `show lldp neighbors detail`."""

    name: str
    """The name of the interface."""
    stated_count: int
    """The number of neighbours that its first line states."""
    neighbours: list[dict[re.Pattern[str], str]] = field(default_factory=list)
    """For each neighbour its fields: by the pattern of a field, the text of its first line."""


def _text_detail_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors detail`, a block for each neighbour of an interface.

    Raises:
        InputError: an interface has fewer or more blocks than its first line says.
    """
    for interface in _interfaces(source):
        count = len(interface.neighbours)
        if count != interface.stated_count:
            required, given = f"{interface.stated_count} neighbours", f"{count} at {interface.name}"
            raise source.wrong(required, given, "collect it again")
        for fields in interface.neighbours:
            names = nonempty(fields.get(SYSTEM_NAME), fields.get(CHASSIS_ID))
            ports = nonempty(fields.get(PORT_ID), fields.get(PORT_DESCRIPTION))
            yield nonempty(interface.name), names, ports


def _interfaces(source: NeighbourTable) -> list[_Interface]:
    """The interfaces of an output, after one that stands for no interface.

    Lines are missing if there are neighbours above the first interface. They are put into an
    interface that has to have 0 neighbours, so that its count is wrong.

    Raises:
        InputError: a field is above the first neighbour of its interface: lines are missing.
    """
    interfaces = [_Interface("no interface", stated_count=0)]
    for number, line in enumerate(map(str.strip, source.lines), 1):
        neighbours = interfaces[-1].neighbours
        if interface := INTERFACE_LINE.fullmatch(line):
            interfaces.append(_Interface(interface[1], int(interface[2])))
        elif NEIGHBOUR_LINE.fullmatch(line):
            neighbours.append({})
        for pattern in (SYSTEM_NAME, PORT_ID, PORT_DESCRIPTION, CHASSIS_ID):
            text = pattern.fullmatch(line)
            if text and not neighbours:
                required = "a neighbour above its fields"
                raise source.wrong(required, repr(line), "collect it again", number)
            if text:
                neighbours[-1].setdefault(pattern, text[1])
    return interfaces


FORM = NeighbourForm("eos", OUTPUT_NAME, fits, read)
"""The form of these outputs, which is `Target.neighbours` of target eos."""
