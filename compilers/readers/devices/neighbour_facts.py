"""Which device sees which neighbour at which port, in one form for all systems and tools.

Readers of LLDP tables and of other forms (`NeighbourForm`) yield facts, each a `NeighbourSighting`:
a device sees a neighbour. The audit (`compilers.audit`) resolves the names in a fact to nodes and
ports of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from compilers.readers.devices.device_files import without_prompts
from inventory.problems import InputError


class NamedEnd(NamedTuple):
    """One end of a cable, by the names that it may have, the most reliable first."""

    nodes: tuple[str, ...]
    """Names of the node: its host name, MAC addresses, a serial number."""
    ports: tuple[str, ...]
    """Names and labels of its port; `#7` is the port with the number 7."""


class NeighbourSighting(NamedTuple):
    """A device sees a neighbour at one of its ports."""

    near: NamedEnd
    """The device, and its port."""
    far: NamedEnd
    """The neighbour, and its port."""


@dataclass(frozen=True, slots=True)
class NeighbourFacts:
    """All facts in a set of neighbour tables."""

    seen: tuple[NeighbourSighting, ...]
    """The neighbours that devices see."""
    reporters: frozenset[tuple[str, ...]]
    """The nodes whose own tables were read, each by the names that it may have."""
    forms: tuple[tuple[tuple[str, ...], str], ...] = ()
    """The form of each reporter's table: the names of the reporter, and the name of the form, such
    as `lldpctl`."""


@dataclass(frozen=True, slots=True)
class NeighbourTable:
    """The text of one table, and where it comes from."""

    file: str
    """The name of its file, for messages."""
    text: str
    """The table, as it was copied or collected."""
    node: str
    """The device that printed it."""
    data: Any = None
    """The value of the text, where it is JSON."""

    @property
    def output(self) -> str:
        """The text, with empty lines in the place of prompts and comments."""
        return without_prompts(self.text)

    @property
    def lines(self) -> list[str]:
        """The lines of the output."""
        return self.output.splitlines()

    def wrong(self, required: str, given: str, todo: str = "", line: int = 0) -> InputError:
        """The error to raise for a mistake in this table."""
        return InputError.of(required, given, todo, self.file, line)


@dataclass(frozen=True, slots=True)
class OtherOutput:
    """An output that is not read, and that people collect by mistake."""

    pattern: re.Pattern[str]
    """Matches somewhere in its text."""
    name: str
    """The name of the output in messages."""
    command: str
    """The command whose output to collect in its place."""


@dataclass(frozen=True, slots=True)
class NeighbourForm:
    """A form in which the devices of a system print their neighbours, and its reader."""

    name: str
    """The name of the form on the command line."""
    output_name: str
    """What the table is and which command prints it, in messages."""
    fits: Callable[[NeighbourTable], bool]
    """Whether a table has this form."""
    read: Callable[[NeighbourTable], Iterator[NeighbourSighting]]
    """Reads a table of this form; raises InputError where the table is wrong."""
    of_one_node: bool = True
    """Whether a table is of one node, whose name is that of the file."""
    not_read: tuple[OtherOutput, ...] = ()
    """Other outputs of the same system, for which a message names the right command."""


UNNAMED_DEVICE, UNNAMED_PORT = "a device without a name", "a port without a name"
"""In the place of names that a neighbour does not send."""
NeighbourRow = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Names of the local port, of the neighbour, and of the neighbour's port, the most reliable of each
first."""


def seen_rows(source: NeighbourTable, rows: Iterable[NeighbourRow]) -> Iterator[NeighbourSighting]:
    """Yield the facts of a table of one node, one for each row.

    A neighbour that sends no name, or none for its port, is a fact as well. A row without both is
    left out.

    Raises:
        InputError: a row has no local port, as it has in every form.
    """
    for near, names, ports in rows:
        if not near:
            required = "a local port in every row of a neighbour table"
            raise source.wrong(required, "a row without one", "collect it again")
        if names or ports:
            far = NamedEnd(names or (UNNAMED_DEVICE,), ports or (UNNAMED_PORT,))
            yield NeighbourSighting(NamedEnd((source.node,), near), far)


def as_mapping(value: object) -> dict[str, Any]:
    """A value if it is a mapping, else an empty mapping: neighbours may send anything."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A value as a list: some tools print a list of one as its only member, and none as null."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def nonempty(*values: object) -> tuple[str, ...]:
    """The texts among some values that are not empty, each once, in order.

    >>> nonempty("leaf-1", None, " leaf-1 ", "00:11:22:33:44:55")
    ('leaf-1', '00:11:22:33:44:55')
    """
    texts = [value.strip() for value in values if isinstance(value, str)]
    return tuple(dict.fromkeys(text for text in texts if text))
