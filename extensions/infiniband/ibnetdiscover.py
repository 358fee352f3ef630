"""`ibnetdiscover`: the whole InfiniBand fabric in one table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    End,
    NeighbourTables,
    OtherOutput,
    Seen,
    Source,
    words,
)

PRINTED_BY = "the output of ibnetdiscover"
IBNET_NODE = re.compile(r'(?:Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-f]{16})"(?:\s*#\s*"([^"]*)")?')
LINK = re.compile(
    r'\[(\d{1,6})\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d{1,6})\]'
    r'(?:\[ext \d+\])?(?:\([0-9a-f]+\))?(?:\s*#\s*(?:lid[^"]*)?"([^"]*)")?'
)


NOT_READ = (
    OtherOutput(
        re.compile(r"^(?:Switch|Ca|Rt)\s*:\s*0x", re.M), "a list (-l, -S, -H)", "ibnetdiscover"
    ),
    OtherOutput(re.compile(r"^(?:SW|CA|RT)\s+\d+\s+\d+ 0x", re.M), "ports (-p)", "ibnetdiscover"),
)


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return any(IBNET_NODE.match(line) for line in source.text.splitlines())


def read(source: Source) -> Iterator[Seen]:
    """A fact per port; with -g, ports of a chassis have another number behind theirs.

    A node is known by its GUID, or by the first word of its description.
    """
    here: tuple[str, ...] = ()
    for number, line in enumerate(source.text.splitlines(), 1):
        if node := IBNET_NODE.match(line):
            here = _names(node[1], node[2])
        elif here and (link := LINK.match(line)):
            far = End(_names(link[2], link[4]), (f"#{int(link[3])}",))
            yield Seen(End(here, (f"#{int(link[1])}",)), far)
        elif here and line.startswith("["):
            given = f"a port as {line.strip()!r}"
            raise source.wrong(PRINTED_BY, given, "run it without options, or with -g", number)


def _names(guid: str, description: str | None) -> tuple[str, ...]:
    """The names by which a node is known: its GUID, its description, and the first word of that."""
    first = (description or "").split()[:1]
    return words(f"0x{guid}", description, *first)


FORM = NeighbourTables(
    "ibnetdiscover", PRINTED_BY, fits, read, of_one_node=False, not_read=NOT_READ
)
