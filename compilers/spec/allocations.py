"""The numbers that parts of a fabric have, and how the next compile keeps them the same.

A build writes its numbers into a file, and the next compile reads it (`allocations_file`). Each
part of the fabric has a key among those of its kind:

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

The block of addresses of a switch and its loopback follow from its vertex and the numbers of the
pool, so they have no numbers of their own. The VLAN of marked packets is the same on every link.

A number that nobody uses any more is *freed*. It stays reserved until its pool is full. Then the
one that was freed first is taken again (`assign_numbers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from itertools import count
from types import MappingProxyType

# The kinds of numbers, which the table above explains.
VERTEX, LINK, CABLE, BUNDLE, HOST, POOL = "vertex", "link", "cable", "bundle", "host", "pool"
ASN = "asn"
KINDS = (VERTEX, LINK, CABLE, BUNDLE, HOST, ASN, POOL)
"""All kinds of numbers, in the order of the file."""
BEFORE = "before "
"""What stands in front of the key of a number that was freed when vertices got other numbers."""
RESERVABLE_KINDS = (LINK, CABLE, BUNDLE, HOST, ASN)
"""The kinds whose numbers can be reserved for another build of the fabric.

Vertices have no gap, so none is reserved for a switch that is not there.
"""
SIZES: Mapping[str, int] = MappingProxyType({LINK: 1 << 20, CABLE: 99_999, BUNDLE: 9_999})
"""How many numbers of a kind there are, if a fabric does not have more already.

There are as many pairs of addresses as the usual pool of links holds if packets are marked, and as
many labels as their digits distinguish.
"""
LENGTH = "length"
"""The key of `pool` for the length of a block, which a build has in its own `fabric.json`."""
POOL_VALUES: Mapping[str, type[IPv4Address] | type[IPv6Address] | type[int]] = MappingProxyType(
    {"ipv4": IPv4Address, "ipv6": IPv6Address, LENGTH: int}
)
"""By key of `pool`: the type by which its number is read and written."""


@dataclass(frozen=True, slots=True)
class AllocatedNumbers:
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

    numbers: Mapping[str, AllocatedNumbers] = field(default_factory=dict)
    """The numbers of each kind."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the nodes that are known by their serials, by serial."""

    def of(self, kind: str) -> AllocatedNumbers:
        """The numbers of a kind."""
        return self.numbers.get(kind) or AllocatedNumbers()

    def __bool__(self) -> bool:
        return any(map(bool, self.numbers.values()))

    def with_reserved(self, other: Allocations) -> Allocations:
        """These numbers, and as reserved ones those that only another build of the fabric has.

        Blocks of addresses begin where they do in the other build, if nothing here says where.
        """
        merged = dict(self.numbers)
        for kind in RESERVABLE_KINDS:
            numbers, others = self.of(kind), other.of(kind)
            taken = {
                (scope_of(kind, key), number)
                for key, number in (*numbers.used.items(), *numbers.freed.items())
            }
            reserved = {
                key: number
                for key, number in (*others.freed.items(), *others.used.items())
                if key not in numbers.used and (scope_of(kind, key), number) not in taken
            }
            if reserved:
                merged[kind] = AllocatedNumbers(numbers.used, {**numbers.freed, **reserved})
        if pools := {**other.of(POOL).used, **self.of(POOL).used}:
            merged[POOL] = AllocatedNumbers(pools)
        return Allocations(merged, self.names)


def assign_numbers(
    previous: AllocatedNumbers, keys: Iterable[str], size: int, first: int = 0
) -> AllocatedNumbers:
    """Give every key a number.

    A key keeps its number. A new key gets the smallest number that is not reserved. If all are
    reserved, it gets the number that was freed first.

    >>> assign_numbers(AllocatedNumbers({"a": 0, "b": 1}), ["b", "c"], 3)
    AllocatedNumbers(used={'b': 1, 'c': 2}, freed={'a': 0})
    >>> assign_numbers(AllocatedNumbers({"a": 0, "b": 1}), ["b", "c", "d"], 3)
    AllocatedNumbers(used={'b': 1, 'c': 2, 'd': 0}, freed={})

    Args:
        previous: the numbers so far. A key that had a freed number has it again.
        keys: all keys that need a number now.
        size: how many numbers there are. If the keys need more, larger numbers follow.
        first: the smallest number.
    """
    keys = list(keys)
    kept = _kept_numbers(previous, keys)
    used, freed = dict(kept.used), dict(kept.freed)
    reserved = {*used.values(), *freed.values()}
    unreserved = (number for number in count(first) if number not in reserved)
    smallest = next(unreserved)
    end = first + size
    for key in keys:
        if key in used:
            continue
        # Freed numbers from `end` on stay reserved: beyond the size, new numbers follow.
        reusable = (old_key for old_key, number in freed.items() if number < end)
        freed_first = next(reusable, None) if smallest >= end else None
        if freed_first is not None:
            used[key] = freed.pop(freed_first)
        else:
            used[key], smallest = smallest, next(unreserved)
    return AllocatedNumbers({key: used[key] for key in keys}, freed)


def _kept_numbers(previous: AllocatedNumbers, keys: Iterable[str]) -> AllocatedNumbers:
    """The numbers of the keys that had one, used or freed, with all others freed.

    Numbers that are freed now come after those that were freed earlier.
    """
    needed = dict.fromkeys(keys)
    used = {key: previous.used[key] for key in needed if key in previous.used}
    freed_now = {key: number for key, number in previous.used.items() if key not in needed}
    freed = {**previous.freed, **freed_now}
    used |= {key: freed.pop(key) for key in needed if key in freed}
    return AllocatedNumbers(used, freed)


def scope_of(kind: str, key: str) -> str:
    """The scope in which the number of a key is unique: a switch for hosts, else the fabric, ""."""
    return key.partition("/")[0] if kind == HOST else ""
