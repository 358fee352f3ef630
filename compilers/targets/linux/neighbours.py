"""Reader of LLDP neighbours from `lldpctl -f json`, the command of the daemon lldpd.

`check wiring` reads the output by `FORM`: each row is a local port, and the names of the neighbour
and of its port. All targets whose switches run lldpd on Linux use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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

COMMAND = "lldpctl -f json"
"""The command whose output is read."""
OUTPUT_NAME = "the output of lldpctl -f json, a file per node"
"""The output, as messages name it."""
NOT_READ = (
    OtherOutput(
        re.compile(r"^LLDP neighbors:", re.M),
        "text of lldpctl",
        f"{COMMAND}, or on SONiC show lldp table",
    ),
    OtherOutput(re.compile(r"^lldp\.[^=\s]+="), "keyvalue of lldpctl", COMMAND),
    OtherOutput(re.compile(r"<lldp[ >]"), "XML of lldpctl", COMMAND),
)
"""Outputs that people collect by mistake. They are refused with the command to use."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is JSON of lldpctl."""
    return "lldp" in as_mapping(source.data)


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours of each interface, which may be several.

    Raises:
        InputError: the JSON is of another form (`json0`), or incomplete.
    """
    lldp = as_mapping(source.data).get("lldp")
    if not isinstance(lldp, dict):
        raise source.wrong(OUTPUT_NAME, "another form of it", "use -f json, not json0 or keyvalue")
    return seen_rows(source, _rows(source, lldp))


def _rows(source: NeighbourTable, lldp: dict[str, Any]) -> Iterator[NeighbourRow]:
    """The rows of the JSON: the neighbours of each port.

    Raises:
        InputError: a neighbour is without chassis or port.
    """
    for entry in as_list(lldp.get("interface")):
        for port, neighbours in as_mapping(entry).items():
            for neighbour in map(as_mapping, as_list(neighbours)):
                if not {"chassis", "port"} <= neighbour.keys():
                    given = f"{port} without chassis and port"
                    raise source.wrong(OUTPUT_NAME, given, "collect it again")
                far_port = as_mapping(neighbour["port"])
                ports = nonempty(as_mapping(far_port.get("id")).get("value"), far_port.get("descr"))
                yield nonempty(port), _names(neighbour["chassis"]), ports


def _names(value: object) -> tuple[str, ...]:
    """The names of a neighbour: its system name, management addresses, and chassis id.

    Args:
        value: the value of `chassis`: a mapping from the system name to the chassis,
            `{"leaf7": {"id": …}}`, or the chassis alone where a neighbour sends no name.
    """
    chassis = as_mapping(value)
    name = None
    # The id of a chassis has a `type`. Otherwise the key is a system name, which may be "id".
    is_chassis = "type" in as_mapping(chassis.get("id"))
    if chassis and not is_chassis:
        name, chassis_of_name = next(iter(chassis.items()))
        chassis = as_mapping(chassis_of_name)
    return nonempty(
        name, *as_list(chassis.get("mgmt-ip")), as_mapping(chassis.get("id")).get("value")
    )


FORM = NeighbourForm("lldpctl", OUTPUT_NAME, fits, read, not_read=NOT_READ)
"""The form of these outputs, which is `Target.neighbours` of target linux, and of others on
Linux."""
