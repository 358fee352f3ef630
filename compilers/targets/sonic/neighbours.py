"""`show lldp table` of SONiC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import End, NeighbourTables, Seen, Source, words

PRINTED_BY = "the output of show lldp table, a file per node"
LLDP_COLUMNS = ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return "LocalPort" in source.text and "RemoteDevice" in source.text


def read(source: Source) -> Iterator[Seen]:
    """A fact per row; the rule under the header says where columns begin and end."""
    lines = source.text.splitlines()
    header = next((i for i, line in enumerate(lines) if "LocalPort" in line), len(lines))
    rule = lines[header + 1] if header + 1 < len(lines) else ""
    spans = [match.span() for match in re.finditer("-+", rule)]
    if len(spans) < len(LLDP_COLUMNS):
        given = f"no rule of {len(LLDP_COLUMNS)} columns under the header"
        raise source.wrong(PRINTED_BY, given, "copy the whole output", min(header + 1, len(lines)))
    for line in lines[header + 2 :]:
        if set(line.strip()) <= {"-"} or line.startswith("Total entries"):
            continue
        port, device, port_id, _, description = (line[a:b] for a, b in spans[: len(LLDP_COLUMNS)])
        near, names, ports = words(port), words(device), words(port_id, description)
        if near and names and ports:
            yield Seen(End((source.node,), near), End(names, ports))


FORM = NeighbourTables("sonic", PRINTED_BY, fits, read)
