"""Reader of the neighbours that `lldpctl -f json` of lldpd prints on a switch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import (
    NeighbourRow,
    NeighbourTables,
    OtherOutput,
    Seen,
    Source,
    items,
    mapping,
    seen_rows,
    words,
)

COMMAND = "lldpctl -f json"
PRINTED_BY = "the output of lldpctl -f json, a file per node"
NOT_READ = (
    OtherOutput(
        re.compile(r"^LLDP neighbors:", re.M),
        "text of lldpctl",
        f"{COMMAND}, or on SONiC show lldp table",
    ),
    OtherOutput(re.compile(r"^lldp\.[^=\s]+="), "keyvalue of lldpctl", COMMAND),
    OtherOutput(re.compile(r"<lldp[ >]"), "XML of lldpctl", COMMAND),
)


def fits(source: Source) -> bool:
    """Whether a table has this form."""
    return "lldp" in mapping(source.data)


def read(source: Source) -> Iterator[Seen]:
    """The neighbours of each interface, which may be several.

    Raises:
        InputError: it is another form of lldpctl, or incomplete.
    """
    lldp = mapping(source.data).get("lldp")
    if not isinstance(lldp, dict):
        raise source.wrong(PRINTED_BY, "another form of it", "use -f json, not json0 or keyvalue")
    return seen_rows(source, _rows(source, lldp))


def _rows(source: Source, lldp: dict[str, Any]) -> Iterator[NeighbourRow]:
    """The rows of the JSON: the neighbours of each port.

    Raises:
        InputError: a neighbour is without chassis or port.
    """
    for entry in items(lldp.get("interface")):
        for port, neighbours in mapping(entry).items():
            for facts in map(mapping, items(neighbours)):
                if not {"chassis", "port"} <= facts.keys():
                    given = f"{port} without chassis and port"
                    raise source.wrong(PRINTED_BY, given, "collect it again")
                far = mapping(facts.get("port"))
                ports = words(mapping(far.get("id")).get("value"), far.get("descr"))
                yield words(port), _chassis(mapping(facts.get("chassis"))), ports


def _chassis(value: object) -> tuple[str, ...]:
    """The names of a neighbour: its system name, which is a key, management addresses and id."""
    chassis: dict[str, Any] = mapping(value)
    name = None
    if chassis and "type" not in mapping(chassis.get("id")):
        name, inner = next(iter(chassis.items()))
        chassis = mapping(inner)
    return words(name, *items(chassis.get("mgmt-ip")), mapping(chassis.get("id")).get("value"))


FORM = NeighbourTables("lldpctl", PRINTED_BY, fits, read, not_read=NOT_READ)
