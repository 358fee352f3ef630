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
    NeighbourRow,
    NeighbourTables,
    Seen,
    Source,
    as_list,
    as_mapping,
    nonempty,
    seen_rows,
)

OUTPUT_NAME = "the output of show lldp neighbors | json, or of detail, a file per node"
"""The output, as messages name it."""
HEADER = re.compile(r"Port +Neighbor Device ID +Neighbor Port ID +TTL")
"""`Port       Neighbor Device ID       Neighbor Port ID    TTL`, in the table."""
ROW = re.compile(
    r"(?P<near>\S+) +(?:(?P<name>\S+) +(?P<port>\S+)"
    r"|(?P<spaced_name>\S.*?) {2,}(?P<spaced_port>\S.*?)|(?P<only_port>\S+)) +\d+"
)
"""`Et1/1      spine.example            Ethernet7           120`, in the table. Names and ports may
have spaces, and a name may be missing."""
DETAIL = re.compile(r"Interface (\S+) detected (\d{1,9}) LLDP neighbors?:")
"""`Interface Ethernet1/1 detected 1 LLDP neighbors:`, in the output with `detail`."""
NAME = re.compile(r'- System Name: *"?(.*?)"?')
"""`- System Name: "spine.example"`."""
PORT = re.compile(r'Port ID +: *"?(.*?)"?')
"""`Port ID     : "Ethernet7"`."""
DESCRIPTION = re.compile(r'- Port Description: *"?(.*?)"?')
"""`- Port Description: "eth0"`."""
CHASSIS = re.compile(r"Chassis ID +: *(.*)")
"""`Chassis ID     : 02aa.0000.0001`."""
NEIGHBOUR = re.compile(r"Neighbor \S+, age .*")
"""`Neighbor 02aa.0000.0001/"Ethernet7", age 12 seconds`."""


def fits(source: Source) -> bool:
    """Whether a source is an LLDP neighbour table of EOS, as text or JSON."""
    if source.data is not None:
        return "lldpNeighbors" in as_mapping(source.data)
    output = source.output
    return bool(HEADER.search(output) or DETAIL.search(output))


def read(source: Source) -> Iterator[Seen]:
    """The neighbours that the table has, one for each line, block or entry."""
    if source.data is not None:
        table = as_mapping(source.data).get("lldpNeighbors")
        rows = _details(source, table) if isinstance(table, dict) else _entries(table)
    elif DETAIL.search(source.output):
        rows = _detail_lines(source)
    else:
        rows = _lines(source)
    return seen_rows(source, rows)


def _entries(table: object) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors | json`: a list of neighbours."""
    for neighbour in map(as_mapping, as_list(table)):
        device, port = neighbour.get("neighborDevice"), neighbour.get("neighborPort")
        yield nonempty(neighbour.get("port")), nonempty(device), nonempty(port)


def _details(source: Source, table: dict[str, object]) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors detail | json`: the neighbours of each port."""
    for near, interface in table.items():
        if "lldpNeighborInfo" not in as_mapping(interface):
            raise source.wrong(OUTPUT_NAME, f"{near} without lldpNeighborInfo", "collect it again")
        for neighbour in map(as_mapping, as_list(as_mapping(interface)["lldpNeighborInfo"])):
            far = as_mapping(neighbour.get("neighborInterfaceInfo"))
            identifier = str(far.get("interfaceId") or "").strip('"')
            managements = map(as_mapping, as_list(neighbour.get("managementAddresses")))
            addresses = (management.get("address") for management in managements)
            names = nonempty(neighbour.get("systemName"), neighbour.get("chassisId"), *addresses)
            ports = nonempty(far.get("interfaceId_v2"), identifier, far.get("interfaceDescription"))
            yield nonempty(near), names, ports


def _lines(source: Source) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors`, below the line with the names of columns."""
    lines = source.lines
    header = next(index for index, line in enumerate(lines) if HEADER.search(line))
    for number, line in enumerate(lines[header + 1 :], header + 2):  # from 1, as messages say it
        if not line.strip("- "):
            continue
        row = ROW.fullmatch(line.strip())
        if not row:
            raise source.wrong("four columns", repr(line.strip()), "collect it again", number)
        port = row["port"] or row["spaced_port"] or row["only_port"]
        yield nonempty(row["near"]), nonempty(row["name"] or row["spaced_name"]), nonempty(port)


@dataclass(slots=True)
class _Interface:
    """An interface in the output of `show lldp neighbors detail`."""

    name: str
    """The name of the interface."""
    stated_count: int
    """The number of neighbours that its first line states."""
    neighbours: list[dict[re.Pattern[str], str]] = field(default_factory=list)
    """For each neighbour, by pattern, the first text that matched."""


def _detail_lines(source: Source) -> Iterator[NeighbourRow]:
    """The rows of `show lldp neighbors detail`, a block for each neighbour of an interface.

    Raises:
        InputError: an interface has fewer or more blocks than its first line says.
    """
    for interface in _interfaces(source):
        count = len(interface.neighbours)
        if count != interface.stated_count:
            required, given = f"{interface.stated_count} neighbours", f"{count} at {interface.name}"
            raise source.wrong(required, given, "collect it again")
        for texts in interface.neighbours:
            names = nonempty(texts.get(NAME), texts.get(CHASSIS))
            yield nonempty(interface.name), names, nonempty(texts.get(PORT), texts.get(DESCRIPTION))


def _interfaces(source: Source) -> list[_Interface]:
    """The interfaces of an output. The first is for neighbours above any interface.

    Raises:
        InputError: a field is above the first neighbour of its interface: lines are missing.
    """
    interfaces = [_Interface("no interface", 0)]
    for number, line in enumerate(map(str.strip, source.lines), 1):
        neighbours = interfaces[-1].neighbours
        if head := DETAIL.fullmatch(line):
            interfaces.append(_Interface(head[1], int(head[2])))
        elif NEIGHBOUR.fullmatch(line):
            neighbours.append({})
        for pattern in (NAME, PORT, DESCRIPTION, CHASSIS):
            text = pattern.fullmatch(line)
            if text and not neighbours:
                required = "a neighbour above its fields"
                raise source.wrong(required, repr(line), "collect it again", number)
            if text:
                neighbours[-1].setdefault(pattern, text[1])
    return interfaces


FORM = NeighbourTables("eos", OUTPUT_NAME, fits, read)
