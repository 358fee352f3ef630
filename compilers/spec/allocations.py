"""The file of allocations: the numbers that parts of a fabric have, so that they stay the same.

A build writes the file, and the next compile reads it (`read_allocations`). Each row gives one part
of the fabric, its key, one number:

| kind | key | number |
|---|---|---|
| `vertex` | the serial of a node, else its name | its vertex |
| `link` | both vertices and an index: `3-17/0` | its pair of addresses in the pool of links |
| `cable` | both vertices and its socket: `3-17/0` | the number on its label |
| `bundle` | racks and clusters at both ends | the number on the label of the bundle |
| `host` | vertex and name: `3/db1` | its number at its switch, from 0 |
| `asn` | a vertex | its AS number, in a fabric with eBGP |
| `pool` | `ipv4` or `ipv6` | the first address of block 0 |
| `pool` | `length` | the length of the IPv4 block of a switch |

The block of addresses of a switch and its loopback follow from its vertex and the rows of the pool,
so they have no rows. The VLAN of marked packets is the same on every link.

A number that nobody uses any more is *freed*. It stays reserved until its pool is full. Then the
one that was freed first is taken again.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from ipaddress import IPv4Address, IPv6Address
from itertools import count
from types import MappingProxyType

from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, shown

ALLOCATIONS = "allocations.csv"
"""The name of the file in the folder of a build."""
COLUMNS = ("plane", "kind", "key", "number", "freed", "name")
"""The columns of the file."""
# The kinds of numbers, which the table above explains.
VERTEX, LINK, CABLE, BUNDLE, HOST, POOL = "vertex", "link", "cable", "bundle", "host", "pool"
ASN = "asn"
KINDS = (VERTEX, LINK, CABLE, BUNDLE, HOST, ASN, POOL)
"""All kinds of numbers, in the order of the file."""
SIZES: Mapping[str, int] = MappingProxyType({LINK: 1 << 20, CABLE: 99_999, BUNDLE: 9_999})
"""How many numbers of a kind there are, if a fabric does not have more already: as many pairs of
addresses as the usual pool of links holds if packets are marked, and as many labels as their digits
distinguish."""
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
_WHOLE_NUMBER = "(?:0|[1-9][0-9]{0,8})"
"""A whole number as keys have it, without zeros in front."""
_BEFORE_WORDS = "(?P<before>before )*"
"""What stands in front of the key of a number that was freed when vertices got other numbers."""
_LINK_KEY = re.compile(
    rf"{_BEFORE_WORDS}(?P<lower>{_WHOLE_NUMBER})-(?P<upper>{_WHOLE_NUMBER})/{_WHOLE_NUMBER}"
)
"""The key of a link or cable, such as 3-17/0."""
KEYS: Mapping[str, tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        LINK: (_LINK_KEY, "two vertices, the smaller first, and an index, such as 3-17/0"),
        CABLE: (_LINK_KEY, "two vertices, the smaller first, and a socket, such as 3-17/0"),
        HOST: (re.compile(rf"{_WHOLE_NUMBER}/.+"), "a vertex and a name, such as 3/db1"),
        ASN: (re.compile(f"{_BEFORE_WORDS}{_WHOLE_NUMBER}"), "a vertex"),
    }
)
"""The form of the keys of a kind, and the same in words; other keys are names."""
COUNTED_FROM_1 = (CABLE, BUNDLE, ASN)
"""The kinds whose numbers begin at 1; all others begin at 0."""
LONGEST_BLOCK = 30
"""The longest prefix of an IPv4 block: it has room for the gateway and one host."""
LENGTH = "length"
"""The key of `pool` for the length of a block, which a build has in its own `fabric.json`."""
POOL_VALUES: Mapping[str, type[IPv4Address] | type[IPv6Address] | type[int]] = MappingProxyType(
    {"ipv4": IPv4Address, "ipv6": IPv6Address, LENGTH: int}
)
"""The type of the number of each key of `pool`."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one kind."""

    used: Mapping[str, int] = field(default_factory=dict)
    """The number of each key."""
    freed: Mapping[str, int] = field(default_factory=dict)
    """The reserved numbers by the key that had them, in the order in which they were freed."""

    def __bool__(self) -> bool:
        return bool(self.used or self.freed)


@dataclass(frozen=True, slots=True)
class Allocations:
    """The numbers of one plane of a fabric. Without any, numbers follow from the hardware."""

    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    """The numbers of each kind."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the nodes that are known by their serials, by serial."""

    def of(self, kind: str) -> Numbers:
        """The numbers of a kind."""
        return self.numbers.get(kind) or Numbers()

    def __bool__(self) -> bool:
        return any(map(bool, self.numbers.values()))

    def lines(self, plane: int = 0) -> Iterator[str]:
        """Yield the lines of the file, without its first line.

        Args:
            plane: from 1; 0 for a fabric of one plane.
        """
        line = StringIO()
        writer = csv.writer(line, lineterminator="\n")
        for kind in KINDS:
            numbers = self.of(kind)
            names = self.names if kind == VERTEX else {}
            for key, number in numbers.used.items():
                text = str(POOL_VALUES[key](number)) if kind == POOL else number
                writer.writerow((plane, kind, key, text, "", names.get(key, "")))
            for rank, (key, number) in enumerate(numbers.freed.items(), 1):
                writer.writerow((plane, kind, key, number, rank, names.get(key, "")))
            yield line.getvalue()
            line.seek(0)
            line.truncate()

    def with_reserved(self, other: Allocations) -> Allocations:
        """These numbers, and as reserved ones those that only another build of the fabric has.

        Blocks of addresses begin where they do in the other build, if nothing here says where.
        """
        merged = dict(self.numbers)
        for kind in (LINK, CABLE, BUNDLE, HOST, ASN):
            numbers, others = self.of(kind), other.of(kind)
            in_use = {
                (_scope(kind, key), number)
                for key, number in (*numbers.used.items(), *numbers.freed.items())
            }
            reserved = {
                key: number
                for key, number in (*others.freed.items(), *others.used.items())
                if key not in numbers.used and (_scope(kind, key), number) not in in_use
            }
            if reserved:
                merged[kind] = Numbers(numbers.used, {**numbers.freed, **reserved})
        if pools := {**other.of(POOL).used, **self.of(POOL).used}:
            merged[POOL] = Numbers(pools)
        return Allocations(merged, self.names)


def text_of(planes: Iterable[tuple[int, Allocations]]) -> Iterator[str]:
    """Yield the text of a file with the allocations of these planes."""
    yield ",".join(COLUMNS) + "\n"
    for plane, allocations in planes:
        yield from allocations.lines(plane)


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
        raise _row_error(file, 1, f"the first line {','.join(COLUMNS)}", ",".join(first))
    rows, holders = list[_Row](), _Holders(file)
    for line, cells in enumerate(lines, 2):
        row = _row(cells, file, line)
        holders.add(row)
        rows.append(row)
    _require_vertices_without_gap(rows, file)
    _require_aligned_pools(rows, file)
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
        raise _row_error(file, reader.line_num, "a line of CSV", str(error)) from None


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the file below the first one."""

    line: int
    """Its number."""
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


class _Holders:
    """The keys of a file, and the key that has each number."""

    def __init__(self, file: str) -> None:
        self.file = file
        """The name of the file."""
        self.keys = set[tuple[int, str, str]]()
        """The plane, kind and key of each row."""
        self.holder = dict[tuple[int, str, str, int], str]()
        """The key that has a number, by plane, kind, scope and number."""

    def add(self, row: _Row) -> None:
        """Add a row.

        Raises:
            InputError: its key has a number, or another key of its kind and scope has this number.
        """
        key = row.plane, row.kind, row.key
        if key in self.keys:
            required = f"one number for {row.kind} {row.key}"
            raise _row_error(self.file, row.line, required, f"{row.number}, a second one")
        self.keys.add(key)
        number = row.plane, row.kind, _scope(row.kind, row.key), row.number
        holder = self.holder.setdefault(number, row.key)
        if holder != row.key and row.kind != POOL:
            required = f"a number of its own, not that of {holder}"
            raise _row_error(self.file, row.line, required, f"{row.number} for {row.key}")


def _require_vertices_without_gap(rows: Sequence[_Row], file: str) -> None:
    """Pass when the vertices of each plane are 0, 1, … without a gap.

    Raises:
        InputError: they are not.
    """
    vertices = defaultdict[int, list[_Row]](list)
    for row in rows:
        if row.kind == VERTEX:
            vertices[row.plane].append(row)
    for plane_rows in vertices.values():
        last = max(plane_rows, key=lambda row: (row.number, row.line))
        if last.number >= len(plane_rows):
            required = f"vertices from 0 to {len(plane_rows) - 1}, as so many nodes are listed"
            raise _row_error(file, last.line, required, str(last.number))


def _require_aligned_pools(rows: Sequence[_Row], file: str) -> None:
    """Pass when the addresses of `pool` rows are multiples of a block's size.

    Raises:
        InputError: one is not.
    """
    lengths = {row.plane: row.number for row in rows if (row.kind, row.key) == (POOL, LENGTH)}
    for row in rows:
        if row.kind != POOL or row.key == LENGTH:
            continue
        length = lengths.get(row.plane, LONGEST_BLOCK) if row.key == "ipv4" else 64
        bits = 32 - length if row.key == "ipv4" else 128 - length
        if row.number % (1 << bits):
            address = str(POOL_VALUES[row.key](row.number))
            raise _row_error(file, row.line, f"the first address of a /{length}", address)


def _allocations_of(rows: Sequence[_Row]) -> Allocations:
    """The allocations of one plane, from its rows."""
    numbers = {}
    for kind in KINDS:
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind:
            numbers[kind] = Numbers(
                used={row.key: row.number for row in of_kind if not row.is_freed},
                freed={row.key: row.number for row in of_kind if row.is_freed},
            )
    return Allocations(numbers, {row.key: row.name for row in rows if row.name})


def _row(cells: Sequence[str], file: str, line: int) -> _Row:
    """A line as a row.

    Args:
        cells: of the line.
        file: the name of the file.
        line: its number.

    Raises:
        InputError: it is no such row.
    """
    if len(cells) != len(COLUMNS):
        required, given = f"six columns, {','.join(COLUMNS)}", f"{len(cells)}: {','.join(cells)}"
        raise _row_error(file, line, required, given)
    plane, kind, key, number, freed, name = cells
    if kind not in KINDS:
        raise _row_error(file, line, f"one of {', '.join(KINDS)}", kind)
    if not re.fullmatch(_WHOLE_NUMBER, plane) or not (freed.isdecimal() or not freed):
        required = "whole numbers in the columns plane and freed"
        raise _row_error(file, line, required, f"{plane} and {freed}")
    _require_key(kind, key, bool(freed), file, line)
    value = _number(kind, key, number, file, line)
    return _Row(line, int(plane), kind, key, value, bool(freed), name)


def _require_key(kind: str, key: str, is_freed: bool, file: str, line: int) -> None:
    """Pass when a key has the form of its kind.

    Only the key of a freed number may begin with `before`.

    Raises:
        InputError: it has not.
    """
    if kind == POOL:
        if key not in POOL_VALUES:
            raise _row_error(file, line, " or ".join(POOL_VALUES), key)
        return
    pattern, form = KEYS.get(kind, (None, "a name"))
    match = pattern.fullmatch(key) if pattern else None
    has_form = bool(match) if pattern else bool(key)
    if match and kind in (LINK, CABLE):
        has_form = int(match["lower"]) < int(match["upper"])
    if match and match.groupdict().get("before"):
        has_form = has_form and is_freed
    if not has_form:
        raise _row_error(file, line, form, key)


def _number(kind: str, key: str, text: str, file: str, line: int) -> int:
    """The number of a row, within the limits of its kind.

    Raises:
        InputError: it is no number, or beyond the limits.
    """
    try:
        number = int(POOL_VALUES[key](text)) if kind == POOL else int(text)
    except ValueError:
        required = f"an address of {key}" if key in ("ipv4", "ipv6") else "a whole number"
        raise _row_error(file, line, required, text) from None
    if kind == POOL and key != LENGTH:
        return number
    first, last = 1 if kind in COUNTED_FROM_1 else 0, LARGEST.get(kind, LARGEST_INT32)
    if kind == POOL:
        first, last = 1, LONGEST_BLOCK
    if not first <= number <= last:
        noun = f"an {kind}" if kind == ASN else f"a {kind}"
        required = f"a number of {noun} from {first} to {last:,}"
        raise _row_error(file, line, required, text)
    if kind == ASN and number in RESERVED_AS:
        raise _row_error(file, line, "an AS number that is not reserved", text)
    return number


def assign_numbers(before: Numbers, keys: Iterable[str], size: int, first: int = 0) -> Numbers:
    """Give every key a number.

    A key keeps its number. A new key gets the smallest number that is not reserved; if all are, the
    number that was freed first.

    >>> assign_numbers(Numbers({"a": 0, "b": 1}), ["b", "c"], 3)
    Numbers(used={'b': 1, 'c': 2}, freed={'a': 0})
    >>> assign_numbers(Numbers({"a": 0, "b": 1}), ["b", "c", "d"], 3)
    Numbers(used={'b': 1, 'c': 2, 'd': 0}, freed={})

    Args:
        before: the numbers before. A key that had a freed number has it again.
        keys: all keys that need a number now.
        size: how many numbers there are. If the keys need more, larger numbers follow.
        first: the smallest number.
    """
    keys = list(keys)
    needed, freed = set(keys), dict(before.freed)
    used = {key: before.used[key] for key in keys if key in before.used}
    freed |= {key: number for key, number in before.used.items() if key not in needed}
    used |= {key: freed.pop(key) for key in keys if key in freed}
    reserved = {*used.values(), *freed.values()}
    unused = (number for number in count(first) if number not in reserved)
    number = next(unused)  # for the next new key, while there are enough
    for key in keys:
        if key in used:
            continue
        is_full = number >= first + size
        freed_first = next((old for old, n in freed.items() if is_full and n < first + size), None)
        if freed_first is not None:
            used[key] = freed.pop(freed_first)
        else:
            used[key], number = number, next(unused)
    return Numbers({key: used[key] for key in keys}, freed)


def _scope(kind: str, key: str) -> str:
    """The scope in which the number of a key is unique: a switch for hosts, else the fabric, ""."""
    return key.partition("/")[0] if kind == HOST else ""


def _row_error(file: str, line: int, required: str, given: str) -> InputError:
    """The error that a line of the file is wrong."""
    todo = "restore the file that was written with the build, or copy it from the build"
    return InputError.of(required, shown(given) if given else "nothing", todo, file, line=line)
