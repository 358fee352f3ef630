"""`show lldp neighbors` of Juniper Junos, as text or `| display json`.

The forms are those of ntc-templates' test data and of Juniper's Junos XML API, where every value is
a list of `{"data": …}`. Port info is the neighbour's port description where it sends one.
"""

from __future__ import annotations

import re
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

PRINTED_BY = "the output of show lldp neighbors, or | display json of it, of Junos, a file a node"
INFORMATION = "lldp-neighbors-information"
COLUMNS = ("Local Interface", "Chassis Id", "Port info", "System Name")
REMOTE_PORT = "lldp-remote-port-description", "lldp-remote-port-id"


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return INFORMATION in mapping(source.data) or bool(_table(source))


def read(source: Source) -> Iterator[Seen]:
    """A fact per neighbour."""
    rows = _entries(source) if source.data is not None else _lines(source)
    for near, names, ports in rows:
        if near and names and ports:
            yield Seen(End((source.node,), near), End(names, ports))


def _entries(source: Source) -> Iterator[tuple[tuple[str, ...], ...]]:
    for information in items(mapping(source.data).get(INFORMATION)):
        for entry in items(mapping(information).get("lldp-neighbor-information")):
            near = _data(entry, "lldp-local-port-id") or _data(entry, "lldp-local-interface")
            ports = [word for key in REMOTE_PORT for word in _data(entry, key)]
            yield _bare(near), _data(entry, "lldp-remote-system-name"), _bare(words(*ports))


def _lines(source: Source) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Rows; columns begin where the words of the header do."""
    header, *lines = _table(source)
    starts = [header.index(word) for word in COLUMNS]
    for line in lines:
        # A long description moves the name to the right: it has no blanks, and is the last word.
        near, *_ = (line[: starts[1]].split(), "")
        port, _, name = line[starts[2] :].rstrip().rpartition(" ")
        if near and name:
            yield _bare(words(near[0])), words(name), _bare(words(re.sub(" +$", "", port)))


def _table(source: Source) -> list[str]:
    """The lines from the header on."""
    lines = source.text.splitlines()
    headers = (i for i, line in enumerate(lines) if all(word in line for word in COLUMNS))
    return lines[next(headers, len(lines)) :]


def _data(entry: object, key: str) -> tuple[str, ...]:
    return words(*(mapping(value).get("data") for value in items(mapping(entry).get(key))))


def _bare(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of ports without the number of their one logical interface."""
    return tuple(name.removesuffix(".0") for name in names)


FORM = NeighbourTables("junos", PRINTED_BY, fits, read)
