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
    NeighbourForm,
    NeighbourRow,
    NeighbourSighting,
    NeighbourTable,
    OtherOutput,
    as_list,
    as_mapping,
    nonempty,
    seen_rows,
)
from compilers.targets.junos.outputs import elements, first_text, has_element, texts_of

OUTPUT_NAME = (
    "one file for each node, with Junos's output of show lldp neighbors as text or | display json"
)
"""The outputs that can be read, as messages name them."""
INFORMATION = "lldp-neighbors-information"
"""The element with the table."""
CHASSIS_COLUMN, PORT_COLUMN = "Chassis Id", "Port info"
"""The columns of the text with the neighbour's chassis and its port."""
COLUMNS = ("Local Interface", CHASSIS_COLUMN, PORT_COLUMN, "System Name")
"""The columns by which the header of the text is known."""
INTERFACE_NAME = "interface name"
"""The subtype of a port id that is the name of an interface."""
COMMAND = "show lldp neighbors | display json"
"""The command whose output is read, for messages."""
NOT_READ = (
    OtherOutput(
        re.compile(r"^LLDP Neighbor Information:", re.M), "that of detail as text", COMMAND
    ),
    OtherOutput(re.compile(rf"<{INFORMATION}"), "XML of Junos", COMMAND),
)
"""Other outputs that people collect by mistake."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is an LLDP neighbour table of Junos, as text or JSON."""
    return has_element(source.data, INFORMATION) or bool(
        source.data is None and _table_lines(source)
    )


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours that the table has."""
    return seen_rows(source, _json_rows(source) if source.data is not None else _text_rows(source))


def _json_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of the JSON.

    The neighbour's port has an id and a description, and its surer name comes first. That is the id
    if it is the name of an interface, otherwise the description.
    """
    for information in elements(source.data, INFORMATION):
        for entry in as_list(as_mapping(information).get("lldp-neighbor-information")):
            local_port = texts_of(entry, "lldp-local-interface") + texts_of(
                entry, "lldp-local-port-id"
            )
            name = texts_of(entry, "lldp-remote-system-name")
            chassis = texts_of(entry, "lldp-remote-chassis-id")
            description = texts_of(entry, "lldp-remote-port-description")
            port_id = texts_of(entry, "lldp-remote-port-id")
            if first_text(entry, "lldp-remote-port-id-subtype").lower() == INTERFACE_NAME:
                ports = nonempty(*port_id, *description)
            else:
                ports = nonempty(*description, *port_id)
            yield _without_unit(local_port), name or chassis, _without_unit(ports)


def _text_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of the text. A column begins where its name begins in the header.

    Raises:
        InputError: a row has no name in its last column.
    """
    header, *lines = _table_lines(source)
    chassis_start, port_start = header.index(CHASSIS_COLUMN), header.index(PORT_COLUMN)
    for line in lines:
        local_words = line[:chassis_start].split()
        if not local_words:
            continue
        # A long description moves the name of the neighbour to the right. The name is always the
        # last word of the row, as it has no blanks.
        port, _, name = line[port_start:].rstrip().rpartition(" ")
        if not name:
            raise source.wrong("columns as in the header", repr(line.strip()), "collect it again")
        local_port, far_port = nonempty(local_words[0]), nonempty(port.rstrip(" "))
        yield _without_unit(local_port), nonempty(name), _without_unit(far_port)


def _table_lines(source: NeighbourTable) -> list[str]:
    """The lines of the text from the header on; [] without a header."""
    lines = source.lines
    for index, line in enumerate(lines):
        if all(column in line for column in COLUMNS):
            return lines[index:]
    return []


def _without_unit(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of ports without `.0`, the number of a port's only logical interface (unit)."""
    return tuple(name.removesuffix(".0") for name in names)


FORM = NeighbourForm("junos", OUTPUT_NAME, fits, read, not_read=NOT_READ)
"""The form of these outputs, which is `Target.neighbours` of target junos."""
