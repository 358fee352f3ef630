"""Neighbour facts as values, the same for every tool, and the file that each was read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from compilers.readers.devices.device_files import without_prompts
from inventory.problems import InputError


class End(NamedTuple):
    """One end of a cable: words that may name the node and its port, the surest first.

    A port word `#7` is the port with the number 7, other words are names or labels.
    """

    nodes: tuple[str, ...]
    ports: tuple[str, ...]


class Seen(NamedTuple):
    """The node of `near` sees `far` at its port."""

    near: End
    far: End


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was seen.

    reporters: words for the nodes whose own tables were read. forms: of such nodes, the form of the
    table.
    """

    seen: tuple[Seen, ...]
    reporters: frozenset[tuple[str, ...]]
    forms: tuple[tuple[tuple[str, ...], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """One table: the file that it is from, its text, its JSON where it is such, and its node."""

    file: str
    text: str
    node: str
    data: Any = None

    @property
    def output(self) -> str:
        """The text, with empty lines for prompts and comments."""
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
    """An output that is recognised only to say what to collect in its place."""

    looks: re.Pattern[str]
    """What its text has."""
    name: str
    """What it is, in words."""
    instead: str
    """The command to type."""


@dataclass(frozen=True, slots=True)
class NeighbourTables:
    """A form of neighbour tables, as the devices of a system print them."""

    form: str
    """What the form is called where a user names it."""
    printed_by: str
    """What prints it, in words."""
    fits: Callable[[Source], bool]
    """Whether a table looks like this."""
    read: Callable[[Source], Iterator[Seen]]
    """What a table says; an InputError where it is of this form, but wrong."""
    of_one_node: bool = True
    """Whether a table is of one node, which the file's name tells."""
    not_read: tuple[OtherOutput, ...] = ()
    """Other outputs of the same system that people collect, and that are refused."""


NAMELESS, UNNAMED_PORT = "a device without a name", "a port without a name"
"""What stands for the names that a neighbour does not send."""
NeighbourRow = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Names of the local port, of the neighbour, and of its port, the surest first."""


def seen_rows(source: Source, rows: Iterable[NeighbourRow]) -> Iterator[Seen]:
    """A fact per row of a table of one node.

    A neighbour that sends no name, or none of its port, is there all the same.

    Raises:
        InputError: a row without a local port, which no form has.
    """
    for near, names, ports in rows:
        if not near:
            required = "a local port in every row of a neighbour table"
            raise source.wrong(required, "a row without one", "collect it again")
        if names or ports:
            far = End(names or (NAMELESS,), ports or (UNNAMED_PORT,))
            yield Seen(End((source.node,), near), far)


def mapping(value: object) -> dict[str, Any]:
    """The value where it is a mapping, else an empty one: neighbours may send anything."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The members of a list; a single value alone, as tools print lists of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def words(*values: object) -> tuple[str, ...]:
    """The texts among the values that are not empty, each once, in order."""
    texts = (v.strip() for v in values if isinstance(v, str))
    return tuple(dict.fromkeys(text for text in texts if text))
