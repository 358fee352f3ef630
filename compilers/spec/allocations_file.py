"""The file of allocations: a row for each number that a part of a fabric has.

`allocations` explains the kinds of numbers and their keys. A build writes the file (`text_of`), and
the next compile reads it (`read_allocations`). People copy and merge such files, so each row is
checked, and the first one that is wrong is refused with its line.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from types import MappingProxyType
from typing import NamedTuple

from compilers.spec.address_blocks import IPV6_BLOCK_LENGTH
from compilers.spec.allocations import (
    ASN,
    BEFORE,
    BUNDLE,
    CABLE,
    HOST,
    KINDS,
    LENGTH,
    LINK,
    POOL,
    POOL_VALUES,
    VERTEX,
    AllocatedNumbers,
    Allocations,
    scope_of,
)
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, shown

ALLOCATIONS = "allocations.csv"
"""The name of the file in the folder of a build."""
COLUMNS = ("plane", "kind", "key", "number", "freed", "name")
"""The columns of the file.

`freed` is empty for a number in use; among freed numbers it ranks them in the order in which they
were freed. `name` is that of a node whose key is its serial.
"""
LARGEST_INT32 = (1 << 31) - 1
LARGEST: Mapping[str, int] = MappingProxyType(
    {
        LINK: LARGEST_INT32,
        CABLE: LARGEST_INT32,
        BUNDLE: LARGEST_INT32,
        HOST: 1023,
        ASN: LAST_AS,
    }
)
"""The largest number of a kind: no pool has room for more links, and no switch has more hosts."""
COUNTED_FROM_1 = (CABLE, BUNDLE, ASN)
"""The kinds whose numbers begin at 1; all others begin at 0."""
LONGEST_BLOCK = 30
"""The longest prefix of an IPv4 block: it has room for the gateway and one host."""
_WHOLE_NUMBER = "(?:0|[1-9][0-9]{0,8})"
"""A whole number as keys have it, without zeros in front."""
_BEFORE_WORDS = f"(?P<before>{BEFORE})*"
"""Any number of `BEFORE` in front of a key."""
_LINK_KEY = re.compile(
    rf"{_BEFORE_WORDS}(?P<lower>{_WHOLE_NUMBER})-(?P<upper>{_WHOLE_NUMBER})/{_WHOLE_NUMBER}"
)
"""The key of a link or cable, such as 3-17/0."""


class KeyForm(NamedTuple):
    """The form that the keys of a kind have."""

    pattern: re.Pattern[str]
    """The pattern that a key matches as a whole."""
    words: str
    """The form in words, for messages."""


KEY_FORMS: Mapping[str, KeyForm] = MappingProxyType(
    {
        LINK: KeyForm(_LINK_KEY, "two vertices, the smaller first, and an index, such as 3-17/0"),
        CABLE: KeyForm(_LINK_KEY, "two vertices, the smaller first, and a socket, such as 3-17/0"),
        HOST: KeyForm(re.compile(rf"{_WHOLE_NUMBER}/.+"), "a vertex and a name, such as 3/db1"),
        ASN: KeyForm(re.compile(f"{_BEFORE_WORDS}{_WHOLE_NUMBER}"), "a vertex"),
    }
)
"""The form of the keys of these kinds. The keys of nodes and bundles are names of any form."""


def text_of(planes: Iterable[tuple[int, Allocations]]) -> Iterator[str]:
    """Yield the text of a file, in pieces of several lines.

    Args:
        planes: the number of each plane, 0 for a fabric of one plane, and its allocations.
    """
    yield ",".join(COLUMNS) + "\n"
    for plane, allocations in planes:
        for kind in KINDS:
            yield _text_of_kind(plane, allocations, kind)


def _text_of_kind(plane: int, allocations: Allocations, kind: str) -> str:
    """The lines of the file for the numbers of one kind in one plane."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    numbers = allocations.of(kind)
    names = allocations.names if kind == VERTEX else {}
    for key, number in numbers.used.items():
        cell = str(POOL_VALUES[key](number)) if kind == POOL else number
        writer.writerow((plane, kind, key, cell, "", names.get(key, "")))
    for rank, (key, number) in enumerate(numbers.freed.items(), 1):
        writer.writerow((plane, kind, key, number, rank, names.get(key, "")))
    return text.getvalue()


class _Line(NamedTuple):
    """A line of a file, for messages."""

    file: str
    """The name of the file."""
    number: int
    """The number of the line, from 1."""

    def error(self, required: str, given: str) -> InputError:
        """The error that the line is wrong."""
        todo = "restore the file that was written with the build, or copy it from the build"
        given = shown(given) if given else "nothing"
        return InputError.of(required, given, todo, self.file, line=self.number)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the file below the first one."""

    line: _Line
    """Where it stands."""
    plane: int
    """From 1; 0 for a fabric of one plane."""
    kind: str
    """One of `KINDS`."""
    key: str
    """The key of the number."""
    number: int
    """The number."""
    is_freed: bool
    """Whether the number is only reserved."""
    name: str
    """The name of a node that is known by its serial; "" for other rows."""


def read_allocations(text: str, file: str) -> dict[int, Allocations]:
    """The allocations of each plane, by its number, 0 for a fabric of one plane.

    Args:
        text: of a file.
        file: its name, for messages.

    Raises:
        InputError: it is no such file, with the first line that is wrong.
    """
    lines = _lines(text, file)
    first = next(lines, [])
    if tuple(first) != COLUMNS:
        raise _Line(file, 1).error(f"the first line {','.join(COLUMNS)}", ",".join(first))
    rows, uniqueness = list[_Row](), _Uniqueness()
    for number, cells in enumerate(lines, 2):
        row = _row(cells, _Line(file, number))
        uniqueness.require(row)
        rows.append(row)
    _require_vertices_without_gap(rows)
    _require_aligned_pools(rows)
    return {
        plane: _allocations_of([row for row in rows if row.plane == plane])
        for plane in sorted({row.plane for row in rows})
    }


def _lines(text: str, file: str) -> Iterator[list[str]]:
    """Yield the cells of each line.

    Raises:
        InputError: a line is no CSV.
    """
    reader = csv.reader(StringIO(text))
    try:
        yield from reader
    except csv.Error as error:
        raise _Line(file, reader.line_num).error("a line of CSV", str(error)) from None


def _row(cells: Sequence[str], line: _Line) -> _Row:
    """A line as a row.

    Raises:
        InputError: it is no such row.
    """
    if len(cells) != len(COLUMNS):
        required, given = f"six columns, {','.join(COLUMNS)}", f"{len(cells)}: {','.join(cells)}"
        raise line.error(required, given)
    plane, kind, key, number, freed, name = cells
    if kind not in KINDS:
        raise line.error(f"one of {', '.join(KINDS)}", kind)
    if not re.fullmatch(_WHOLE_NUMBER, plane) or not (freed.isdecimal() or not freed):
        raise line.error("whole numbers in the columns plane and freed", f"{plane} and {freed}")
    if kind == POOL:
        value = _pool_number(key, number, line)
    else:
        _require_key(kind, key, bool(freed), line)
        value = _number(kind, number, line)
    return _Row(line, int(plane), kind, key, value, bool(freed), name)


def _pool_number(key: str, text: str, line: _Line) -> int:
    """The number of a row of kind `pool`: an address, or the length of a block.

    Raises:
        InputError: the key is unknown, or the text is no such number.
    """
    if key not in POOL_VALUES:
        raise line.error(" or ".join(POOL_VALUES), key)
    try:
        number = int(POOL_VALUES[key](text))
    except ValueError:
        required = "a whole number" if key == LENGTH else f"an address of {key}"
        raise line.error(required, text) from None
    if key == LENGTH and not 1 <= number <= LONGEST_BLOCK:
        raise line.error(f"a number of a pool from 1 to {LONGEST_BLOCK}", text)
    return number


def _require_key(kind: str, key: str, is_freed: bool, line: _Line) -> None:
    """Pass when a key has the form of its kind.

    Only the key of a freed number may begin with `before`.

    Raises:
        InputError: it has not.
    """
    if kind not in KEY_FORMS:
        if not key:
            raise line.error("a name", key)
        return
    form = KEY_FORMS[kind]
    match = form.pattern.fullmatch(key)
    has_form = match is not None
    if match and kind in (LINK, CABLE):
        has_form = int(match["lower"]) < int(match["upper"])
    if match and match.groupdict().get("before"):
        has_form = has_form and is_freed
    if not has_form:
        raise line.error(form.words, key)


def _number(kind: str, text: str, line: _Line) -> int:
    """The number of a row that is not of kind `pool`, within the limits of its kind.

    Raises:
        InputError: it is no number, or beyond the limits.
    """
    try:
        number = int(text)
    except ValueError:
        raise line.error("a whole number", text) from None
    smallest, largest = int(kind in COUNTED_FROM_1), LARGEST.get(kind, LARGEST_INT32)
    if not smallest <= number <= largest:
        kind_with_article = f"an {kind}" if kind == ASN else f"a {kind}"
        required = f"a number of {kind_with_article} from {smallest} to {largest:,}"
        raise line.error(required, text)
    if kind == ASN and number in RESERVED_AS:
        raise line.error("an AS number that is not reserved", text)
    return number


class _Uniqueness:
    """The check that each key has one number, and each number one key, row by row."""

    def __init__(self) -> None:
        self._keys = set[tuple[int, str, str]]()
        """The plane, kind and key of each row."""
        self._key_of_number = dict[tuple[int, str, str, int], str]()
        """The key that has a number, by plane, kind, scope and number."""

    def require(self, row: _Row) -> None:
        """Pass when a further row has neither a key nor a number of an earlier row.

        The addresses and the length of a pool may be the same number.

        Raises:
            InputError: it has.
        """
        key = row.plane, row.kind, row.key
        if key in self._keys:
            required = f"one number for {row.kind} {row.key}"
            raise row.line.error(required, f"{row.number}, a second one")
        self._keys.add(key)
        number = row.plane, row.kind, scope_of(row.kind, row.key), row.number
        first_key = self._key_of_number.setdefault(number, row.key)
        if first_key != row.key and row.kind != POOL:
            required = f"a number of its own, not that of {first_key}"
            raise row.line.error(required, f"{row.number} for {row.key}")


def _require_vertices_without_gap(rows: Sequence[_Row]) -> None:
    """Pass when the vertices of each plane are 0, 1, … without a gap.

    No two rows have the same vertex, so there is a gap only if the largest is too large.

    Raises:
        InputError: there is a gap.
    """
    rows_of_plane = defaultdict[int, list[_Row]](list)
    for row in rows:
        if row.kind == VERTEX:
            rows_of_plane[row.plane].append(row)
    for vertex_rows in rows_of_plane.values():
        largest = max(vertex_rows, key=lambda row: row.number)
        if largest.number >= len(vertex_rows):
            required = f"vertices from 0 to {len(vertex_rows) - 1}, as so many nodes are listed"
            raise largest.line.error(required, str(largest.number))


def _require_aligned_pools(rows: Sequence[_Row]) -> None:
    """Pass when the addresses of `pool` rows are multiples of a block's size.

    Raises:
        InputError: one is not.
    """
    lengths = {row.plane: row.number for row in rows if (row.kind, row.key) == (POOL, LENGTH)}
    for row in rows:
        if row.kind != POOL or row.key == LENGTH:
            continue
        length, address_bits = IPV6_BLOCK_LENGTH, 128
        if row.key == "ipv4":
            length, address_bits = lengths.get(row.plane, LONGEST_BLOCK), 32
        host_bits = address_bits - length
        if row.number % (1 << host_bits):
            address = str(POOL_VALUES[row.key](row.number))
            raise row.line.error(f"the first address of a /{length}", address)


def _allocations_of(rows: Sequence[_Row]) -> Allocations:
    """The allocations of one plane, from its rows."""
    numbers = {}
    for kind in KINDS:
        rows_of_kind = [row for row in rows if row.kind == kind]
        if rows_of_kind:
            numbers[kind] = AllocatedNumbers(
                used={row.key: row.number for row in rows_of_kind if not row.is_freed},
                freed={row.key: row.number for row in rows_of_kind if row.is_freed},
            )
    return Allocations(numbers, {row.key: row.name for row in rows if row.name})
