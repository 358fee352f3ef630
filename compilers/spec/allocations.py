"""Allocations: the numbers that parts of a fabric have, one row a number, so that they stay.

| kind | key | number |
|---|---|---|
| `vertex` | the serial of a node, else its name | its vertex |
| `link` | both vertices and an index: `3-17/0` | its pair of addresses in the pool of links |
| `cable` | both vertices and its socket: `3-17/0` | the number on its label |
| `bundle` | racks and clusters at both ends | the number on the label of the bundle |
| `host` | vertex and name: `3/db1` | its number at its switch, from 0 |
| `pool` | `ipv4` or `ipv6` | the first address of block 0 |
| `pool` | `length` | the length of the IPv4 block of a switch |

The block of addresses of a switch, its loopback and its AS number follow from its vertex, so they
have no rows. The VLAN of marked packets is the same on every link.

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

from inventory.problems import InputError, shown

ALLOCATIONS = "allocations.csv"
"""The name of the file in the folder of a build."""
COLUMNS = ("plane", "kind", "key", "number", "freed", "name")
"""The columns of the file."""
VERTEX, LINK, CABLE, BUNDLE, HOST, POOL = "vertex", "link", "cable", "bundle", "host", "pool"
KINDS = (VERTEX, LINK, CABLE, BUNDLE, HOST, POOL)
"""The kinds of numbers, in the order of the file."""
SIZES: Mapping[str, int] = MappingProxyType({LINK: 1 << 20, CABLE: 99_999, BUNDLE: 9_999})
"""How many numbers of a kind there are, if a fabric does not have more already. There are as many
pairs of addresses as the usual pool of links holds where packets are marked, and as many labels as
their digits can tell apart."""
LARGEST: Mapping[str, int] = MappingProxyType(
    {LINK: (1 << 31) - 1, CABLE: (1 << 31) - 1, BUNDLE: (1 << 31) - 1, HOST: 1023}
)
"""The largest number of a kind: no pool has room for more links, and no switch has more hosts."""
_ENDS = re.compile(r"(before )*([0-9]+)-([0-9]+)/[0-9]+")
KEYS: Mapping[str, tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        LINK: (_ENDS, "two vertices, the smaller first, and an index, such as 3-17/0"),
        CABLE: (_ENDS, "two vertices, the smaller first, and a socket, such as 3-17/0"),
        HOST: (re.compile(r"[0-9]+/.+"), "a vertex and a name, such as 3/db1"),
    }
)
"""The form of the keys of a kind, and the same in words; other keys are names."""
LENGTH = "length"
"""The key of `pool` for the length of a block, which a build has in its own `fabric.json`."""
VALUES: Mapping[str, type[IPv4Address] | type[IPv6Address] | type[int]] = MappingProxyType(
    {"ipv4": IPv4Address, "ipv6": IPv6Address, LENGTH: int}
)
"""What the keys of `pool` have as numbers."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of one kind."""

    used: Mapping[str, int] = field(default_factory=dict)
    """The number of each key."""
    freed: Mapping[str, int] = field(default_factory=dict)
    """The numbers that are reserved, by the key that had them, those that were freed first first.
    """

    def __bool__(self) -> bool:
        return bool(self.used or self.freed)


@dataclass(frozen=True, slots=True)
class Allocations:
    """The numbers of a fabric of one plane. Without any, they follow from the hardware."""

    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    """The numbers of each kind."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each node that is known by its serial, by this serial."""

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
                text = str(VALUES[key](number)) if kind == POOL else number
                writer.writerow((plane, kind, key, text, "", names.get(key, "")))
            for place, (key, number) in enumerate(numbers.freed.items(), 1):
                writer.writerow((plane, kind, key, number, place, names.get(key, "")))
            yield line.getvalue()
            line.seek(0)
            line.truncate()

    def with_reserved(self, other: Allocations) -> Allocations:
        """These numbers, with those reserved that only another build of the fabric has given."""
        merged = dict(self.numbers)
        for kind in (LINK, CABLE, BUNDLE, HOST):
            mine, theirs = self.of(kind), other.of(kind)
            taken = {(_scope(kind, key), n) for key, n in (*mine.used.items(), *mine.freed.items())}
            more = {
                key: number
                for key, number in (*theirs.freed.items(), *theirs.used.items())
                if key not in mine.used and (_scope(kind, key), number) not in taken
            }
            if more:
                merged[kind] = Numbers(mine.used, {**mine.freed, **more})
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
    rows = csv.reader(StringIO(text))
    first = next(rows, [])
    if tuple(first) != COLUMNS:
        raise _wrong(file, 1, f"the first line {','.join(COLUMNS)}", ",".join(first))
    used = defaultdict[tuple[int, str], dict[str, int]](dict)
    freed = defaultdict[tuple[int, str], dict[str, int]](dict)
    names, holder = defaultdict[int, dict[str, str]](dict), dict[tuple[object, ...], str]()
    vertices = dict[int, list[tuple[int, int]]]()
    for line, row in enumerate(rows, 2):
        plane, kind, key, number, is_freed, name = _row(row, file, line)
        place = plane, kind
        if key in used[place] or key in freed[place]:
            raise _wrong(file, line, f"one number for {kind} {key}", f"{number}, a second one")
        other = holder.setdefault((*place, _scope(kind, key), number), key)
        if other != key and kind != POOL:
            required = f"a number of its own, not that of {other}"
            raise _wrong(file, line, required, f"{number} for {key}")
        (freed if is_freed else used)[place][key] = number
        if kind == VERTEX:
            vertices.setdefault(plane, []).append((number, line))
        if name:
            names[plane][key] = name
    for of_plane in vertices.values():
        last, line = max(of_plane)
        if last >= len(of_plane):
            required = f"vertices from 0 to {len(of_plane) - 1}, as so many nodes are listed"
            raise _wrong(file, line, required, str(last))
    planes = sorted({plane for plane, _ in (*used, *freed)})
    return {
        plane: Allocations(
            {
                kind: Numbers(used.get((plane, kind), {}), freed.get((plane, kind), {}))
                for kind in KINDS
                if (plane, kind) in used or (plane, kind) in freed
            },
            names[plane],
        )
        for plane in planes
    }


def _row(row: Sequence[str], file: str, line: int) -> tuple[int, str, str, int, bool, str]:
    """The plane, kind, key and number of a row, whether the number is freed, and the name.

    Raises:
        InputError: it is no such row.
    """
    if len(row) != len(COLUMNS):
        required, given = f"six columns, {','.join(COLUMNS)}", f"{len(row)}: {','.join(row)}"
        raise _wrong(file, line, required, given)
    plane, kind, key, number_text, turn, name = row
    if kind not in KINDS:
        raise _wrong(file, line, f"one of {', '.join(KINDS)}", kind)
    if not plane.isdecimal() or not (turn.isdecimal() or not turn):
        required = "whole numbers in the columns plane and freed"
        raise _wrong(file, line, required, f"{plane} and {turn}")
    pattern, form = KEYS.get(kind, (None, "a name"))
    ends = pattern.fullmatch(key) if pattern else None
    if pattern and (not ends or (kind in (LINK, CABLE) and int(ends[2]) >= int(ends[3]))):
        raise _wrong(file, line, form, key)
    if not key or (kind == POOL and key not in VALUES):
        raise _wrong(file, line, " or ".join(VALUES) if kind == POOL else form, key)
    first, last = int(kind in (CABLE, BUNDLE)), LARGEST.get(kind, (1 << 31) - 1)
    if key == LENGTH and kind == POOL:
        first, last = 1, 30
    try:
        number = int(VALUES[key](number_text)) if kind == POOL else int(number_text)
    except ValueError:
        required = f"an address of {key}" if key in ("ipv4", "ipv6") else "a whole number"
        raise _wrong(file, line, required, number_text) from None
    if (kind != POOL or key == LENGTH) and not first <= number <= last:
        required = f"a number of a {kind} from {first} to {last:,}"
        raise _wrong(file, line, required, number_text)
    return int(plane), kind, key, number, bool(turn), name


def allocated(before: Numbers, wanted: Iterable[str], size: int, first: int = 0) -> Numbers:
    """Give every key a number: its own, the smallest that is not reserved, or one freed before.

    >>> allocated(Numbers({"a": 0, "b": 1}), ["b", "c"], 3)
    Numbers(used={'b': 1, 'c': 2}, freed={'a': 0})
    >>> allocated(Numbers({"a": 0, "b": 1}), ["b", "c", "d"], 3)
    Numbers(used={'b': 1, 'c': 2, 'd': 0}, freed={})

    Args:
        before: the numbers before. A key that had a freed number has it again.
        wanted: all keys that need a number now.
        size: how many numbers there are. If the keys need more, larger numbers follow.
        first: the smallest number.
    """
    keys = list(wanted)
    now, freed = set(keys), dict(before.freed)
    used = {key: before.used[key] for key in keys if key in before.used}
    freed |= {key: number for key, number in before.used.items() if key not in now}
    used |= {key: freed.pop(key) for key in keys if key in freed}
    reserved = {*used.values(), *freed.values()}
    unused = (number for number in count(first) if number not in reserved)
    number = next(unused)
    for key in keys:
        if key in used:
            continue
        if number >= first + size and freed:
            used[key] = freed.pop(next(iter(freed)))
        else:
            used[key], number = number, next(unused)
    return Numbers({key: used[key] for key in keys}, freed)


def _scope(kind: str, key: str) -> str:
    """What a number of a key has to differ within: hosts are numbered by switch."""
    return key.partition("/")[0] if kind == HOST else ""


def _wrong(file: str, line: int, required: str, given: str) -> InputError:
    todo = "restore the file that was written with the build, or copy it from the build"
    return InputError.of(required, shown(given) if given else "nothing", todo, file, line=line)
