"""`show lldp neighbors [detail]` of Arista EOS, as text or JSON.

The forms are those of NAPALM's and ntc-templates' test data. In JSON a table is a list of
neighbours, and with `detail` a mapping from ports to what each sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NeighbourRow,
    NeighbourTables,
    Seen,
    Source,
    items,
    mapping,
    seen_rows,
    words,
)

PRINTED_BY = "the output of show lldp neighbors | json, or of detail, a file per node"
HEADER = re.compile(r"Port +Neighbor Device ID +Neighbor Port ID +TTL")
ROW = re.compile(r"(\S+) +(?:(\S+) +(\S+)|(\S.*?) {2,}(\S.*?)|(\S+)) +\d+")
DETAIL = re.compile(r"Interface (\S+) detected (\d{1,9}) LLDP neighbors?:")
NAME = re.compile(r'- System Name: *"?(.*?)"?')
PORT = re.compile(r'Port ID +: *"?(.*?)"?')
DESCRIPTION = re.compile(r'- Port Description: *"?(.*?)"?')
CHASSIS = re.compile(r"Chassis ID +: *(.*)")
NEIGHBOUR = re.compile(r"Neighbor \S+, age .*")


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    if source.data is not None:
        return "lldpNeighbors" in mapping(source.data)
    output = source.output
    return bool(HEADER.search(output) or DETAIL.search(output))


def read(source: Source) -> Iterator[Seen]:
    """A fact per neighbour."""
    if source.data is not None:
        table = mapping(source.data).get("lldpNeighbors")
        rows = _details(source, table) if isinstance(table, dict) else _entries(table)
    elif DETAIL.search(source.output):
        rows = _detail_lines(source)
    else:
        rows = _lines(source)
    return seen_rows(source, rows)


def _entries(table: object) -> Iterator[NeighbourRow]:
    for known in map(mapping, items(table)):
        device, port = known.get("neighborDevice"), known.get("neighborPort")
        yield words(known.get("port")), words(device), words(port)


def _details(source: Source, table: dict[str, object]) -> Iterator[NeighbourRow]:
    for near, interface in table.items():
        if "lldpNeighborInfo" not in mapping(interface):
            raise source.wrong(PRINTED_BY, f"{near} without lldpNeighborInfo", "collect it again")
        for known in map(mapping, items(mapping(interface)["lldpNeighborInfo"])):
            far = mapping(known.get("neighborInterfaceInfo"))
            identifier = str(far.get("interfaceId") or "").strip('"')
            addresses = (mapping(a).get("address") for a in items(known.get("managementAddresses")))
            ports = words(far.get("interfaceId_v2"), identifier, far.get("interfaceDescription"))
            yield (
                words(near),
                words(known.get("systemName"), known.get("chassisId"), *addresses),
                ports,
            )


def _lines(source: Source) -> Iterator[NeighbourRow]:
    lines = source.lines
    header = next(n for n, line in enumerate(lines) if HEADER.search(line))
    for number, line in enumerate(lines[header + 1 :], header + 2):
        if not line.strip("- "):
            continue
        row = ROW.fullmatch(line.strip())
        if not row:
            raise source.wrong("four columns", repr(line.strip()), "collect it again", number)
        yield words(row[1]), words(row[2] or row[4]), words(row[3] or row[5] or row[6])


def _detail_lines(source: Source) -> Iterator[NeighbourRow]:
    near, promised, there = "", 0, 0
    names: dict[re.Pattern[str], str] = {}
    for line in map(str.strip, [*source.lines, "Interface - detected 0 LLDP neighbors:"]):
        head = DETAIL.fullmatch(line)
        if (head or NEIGHBOUR.fullmatch(line)) and names:
            ports = words(names.get(PORT), names.get(DESCRIPTION))
            yield words(near), words(names.get(NAME), names.get(CHASSIS)), ports
            names = {}
        if head:
            if there != promised:
                given = f"{there} at {near}"
                raise source.wrong(f"{promised} neighbours", given, "collect it again")
            near, promised, there = head[1], int(head[2]), 0
        elif NEIGHBOUR.fullmatch(line):
            there += 1
            names[NEIGHBOUR] = line
        for pattern in (NAME, PORT, DESCRIPTION, CHASSIS):
            if value := pattern.fullmatch(line):
                names.setdefault(pattern, value[1])


FORM = NeighbourTables("eos", PRINTED_BY, fits, read)
