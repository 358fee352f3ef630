"""Reader of `ibnetdiscover`, which prints the nodes and cables of a whole InfiniBand fabric.

The facts that it yields are compared with the cables of a build, as those of LLDP are for Ethernet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NamedEnd,
    NeighbourForm,
    NeighbourSighting,
    NeighbourTable,
    OtherOutput,
    nonempty,
)

OUTPUT_NAME = "the output of ibnetdiscover"
"""What a text is to be, in words for messages."""
IBNET_NODE = re.compile(r'(?:Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-f]{16})"(?:\s*#\s*"([^"]*)")?')
"""The line of a node: `Switch  36 "S-0250460000010000"  # "leaf0" enhanced port 0 lid 1 lmc 0`."""
LINK = re.compile(
    r'\[(\d{1,6})\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d{1,6})\]'
    r'(?:\[ext \d+\])?(?:\([0-9a-f]+\))?(?:\s*#\s*(?:lid[^"]*)?"([^"]*)")?'
)
"""The line of a port: `[1]  "S-0250460000020000"[3]  # "leaf1" lid 2 4xHDR`."""
NOT_READ = (
    OtherOutput(
        re.compile(r"^(?:Switch|Ca|Rt)\s*:\s*0x", re.M), "a list (-l, -S, -H)", "ibnetdiscover"
    ),
    OtherOutput(re.compile(r"^(?:SW|CA|RT)\s+\d+\s+\d+ 0x", re.M), "ports (-p)", "ibnetdiscover"),
)
"""Other outputs of `ibnetdiscover`, which are refused by name."""


def fits(source: NeighbourTable) -> bool:
    """Whether a text looks like the output of `ibnetdiscover`."""
    return any(IBNET_NODE.match(line) for line in source.text.splitlines())


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """Yield a fact for each port with a cable.

    A node is known by its GUID, or by the first word of its description. With option -g, ports of a
    chassis also have the number on the chassis (`[ext 3]`), which is not used.
    """
    node_names: tuple[str, ...] | None = None
    """The names of the node whose ports are read; None before the first node."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if node := IBNET_NODE.match(line):
            node_names = _names(node[1], node[2])
        elif node_names and (link := LINK.match(line)):
            far = NamedEnd(_names(link[2], link[4]), (f"#{int(link[3])}",))
            yield NeighbourSighting(NamedEnd(node_names, (f"#{int(link[1])}",)), far)
        elif node_names and line.startswith("["):
            given = f"a port as {line.strip()!r}"
            raise source.wrong(OUTPUT_NAME, given, "run it without options, or with -g", number)


def _names(guid: str, description: str | None) -> tuple[str, ...]:
    """The names by which a node is known: its GUID, its description, and the first word of that."""
    first = (description or "").split()[:1]
    return nonempty(f"0x{guid}", description, *first)


FORM = NeighbourForm("ibnetdiscover", OUTPUT_NAME, fits, read, of_one_node=False, not_read=NOT_READ)
"""The reader, as target opensm registers it."""
