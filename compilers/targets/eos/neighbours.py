"""`show lldp neighbors | json` of Arista EOS."""

from __future__ import annotations

from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    End,
    NeighbourTables,
    Seen,
    Source,
    items,
    mapping,
    words,
)

PRINTED_BY = "the output of show lldp neighbors | json, a file per node"


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return "lldpNeighbors" in mapping(source.data)


def read(source: Source) -> Iterator[Seen]:
    """A fact per neighbour."""
    for entry in items(mapping(source.data).get("lldpNeighbors")):
        known = mapping(entry)
        near = words(known.get("port"))
        names, ports = words(known.get("neighborDevice")), words(known.get("neighborPort"))
        if near and names and ports:
            yield Seen(End((source.node,), near), End(names, ports))


FORM = NeighbourTables("eos", PRINTED_BY, fits, read)
