"""Reader of the neighbours of Juniper Junos, from `show lldp neighbors` as text or JSON.

The forms are those of ntc-templates' and NAPALM's test data and of Juniper's Junos XML API, with
and without `detail`. Port info is the neighbour's port description where it sends one. With
`detail`, the local port id is the SNMP number of the local interface. `check wiring` reads the
outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NeighbourRow,
    NeighbourTables,
    OtherOutput,
    Seen,
    Source,
    as_list,
    as_mapping,
    nonempty,
    seen_rows,
)
from compilers.targets.junos.outputs import has_output, outputs, text, texts

OUTPUT_NAME = "the output of show lldp neighbors, or | display json of it, of Junos, a file a node"
"""The outputs that can be read, as messages name them: text or JSON, a file for each node."""
INFORMATION = "lldp-neighbors-information"
"""The element with the table."""
COLUMNS = ("Local Interface", "Chassis Id", "Port info", "System Name")
"""The names of the columns that are read of the text."""
INTERFACE_NAME = "interface name"
"""The subtype of a port id that is the name of an interface."""
COMMAND_TO_USE = "show lldp neighbors | display json"
"""The command whose output is read, for messages."""
NOT_READ = (
    OtherOutput(
        re.compile(r"^LLDP Neighbor Information:", re.M), "that of detail as text", COMMAND_TO_USE
    ),
    OtherOutput(re.compile(rf"<{INFORMATION}"), "XML of Junos", COMMAND_TO_USE),
)
"""Other outputs that people collect by mistake."""


def fits(source: Source) -> bool:
    """Whether a source is an LLDP neighbour table of Junos, as text or JSON."""
    return has_output(source.data, INFORMATION) or bool(source.data is None and _table(source))


def read(source: Source) -> Iterator[Seen]:
    """The neighbours that the table has."""
    return seen_rows(source, _entries(source) if source.data is not None else _lines(source))


def _entries(source: Source) -> Iterator[NeighbourRow]:
    """The rows of the JSON: names of the own port, of the neighbour, and of the neighbour's port.

    A port may have several names, of which the first is the surest. A neighbour's port has an id
    and a description. The id is the surer name if it is the name of an interface, otherwise the
    description is.
    """
    for information in outputs(source.data, INFORMATION):
        for entry in as_list(as_mapping(information).get("lldp-neighbor-information")):
            near = texts(entry, "lldp-local-interface") + texts(entry, "lldp-local-port-id")
            name = texts(entry, "lldp-remote-system-name")
            chassis = texts(entry, "lldp-remote-chassis-id")
            description = texts(entry, "lldp-remote-port-description")
            port_id = texts(entry, "lldp-remote-port-id")
            if text(entry, "lldp-remote-port-id-subtype").lower() == INTERFACE_NAME:
                ports = nonempty(*port_id, *description)
            else:
                ports = nonempty(*description, *port_id)
            yield _without_unit(near), name or chassis, _without_unit(ports)


def _lines(source: Source) -> Iterator[NeighbourRow]:
    """The rows of the text; columns begin where the words of the header do.

    Raises:
        InputError: a row has no name in its last column.
    """
    header, *lines = _table(source)
    _, chassis_start, port_start, _ = (header.index(column) for column in COLUMNS)
    for line in lines:
        local_words = line[:chassis_start].split()
        if not local_words:
            continue
        # A long description moves the name of the neighbour to the right. The name is always the
        # last word of the row, as it has no blanks.
        port, _, name = line[port_start:].rstrip().rpartition(" ")
        if not name:
            raise source.wrong("columns as in the header", repr(line.strip()), "collect it again")
        near, far_port = nonempty(local_words[0]), nonempty(port.rstrip(" "))
        yield _without_unit(near), nonempty(name), _without_unit(far_port)


def _table(source: Source) -> list[str]:
    """The lines of the text from the header on; [] without a header."""
    lines = source.lines
    for index, line in enumerate(lines):
        if all(column in line for column in COLUMNS):
            return lines[index:]
    return []


def _without_unit(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of ports without `.0`, the number of a port's only logical interface (unit)."""
    return tuple(name.removesuffix(".0") for name in names)


FORM = NeighbourTables("junos", OUTPUT_NAME, fits, read, not_read=NOT_READ)
