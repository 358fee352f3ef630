"""`lldpctl -f json` of lldpd, run on one switch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import (
    End,
    NeighbourTables,
    Seen,
    Source,
    items,
    mapping,
    words,
)

PRINTED_BY = "the output of lldpctl -f json, a file per node"


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return "lldp" in mapping(source.data)


def read(source: Source) -> Iterator[Seen]:
    """A fact for each neighbour of each interface; lldpd keeps several a port."""
    lldp = mapping(source.data).get("lldp")
    if not isinstance(lldp, dict):
        raise source.wrong(PRINTED_BY, "another form of it", "use -f json, not json0 or keyvalue")
    for entry in items(lldp.get("interface")):
        for port, facts in mapping(entry).items():
            names = _chassis(mapping(facts).get("chassis"))
            far = mapping(mapping(facts).get("port"))
            ports = words(mapping(far.get("id")).get("value"), far.get("descr"))
            if names and ports:
                yield Seen(End((source.node,), (port,)), End(names, ports))


def _chassis(value: object) -> tuple[str, ...]:
    """The system name, which lldpctl makes a key, and the management addresses."""
    known: dict[str, Any] = mapping(value)
    name = None
    if known and "type" not in mapping(known.get("id")):
        name, inner = next(iter(known.items()))
        known = mapping(inner)
    return words(name, *items(known.get("mgmt-ip")), mapping(known.get("id")).get("value"))


FORM = NeighbourTables("lldpctl", PRINTED_BY, fits, read)
