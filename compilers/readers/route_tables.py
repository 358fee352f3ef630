"""Routing tables from routes in any order: rows of one prefix in one table become one entry.

A switch with repair has tens of thousands of routes, so they are columns here, never objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    Chain,
    EmittedRows,
    Lookup,
    Port,
    Stage,
    covering,
)
from compilers.readers.exact_text import exact_address, exact_network
from compilers.readers.text_lines import TextLines

T = TypeVar("T")
Integers = NDArray[np.int64]


class Numbers(dict[T, int]):
    """Numbers things from 0 in the order in which they are first asked for."""

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self)
        return number

    def of(self, keys: Collection[T]) -> Integers:
        """int64[n]: the numbers of things."""
        if not self:  # so they have their places as numbers, unless one comes twice
            self.update(zip(keys, range(len(keys)), strict=True))
            if len(self) == len(keys):
                return np.arange(len(keys))
            self.clear()
        return np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))


class RouteHop(NamedTuple):
    """What a route says besides its prefix: its table, its metric, and the ports that share."""

    table: int
    metric: int
    stage: Stage


class RouteLines:
    """The routes of a router, a prefix, a next hop and a line each; those of one prefix share or
    follow.

    prefixes, next_hops: their texts, numbered; a next hop is all that a route says but its prefix.
    line is 0 where only the file is known.
    """

    def __init__(self) -> None:
        self.prefixes: Numbers[str] = Numbers()
        self.next_hops: Numbers[str] = Numbers()
        self._parts: list[Integers] = []

    def columns(self) -> Integers:
        """int64[3, n]: the prefix, the next hop and the line of every route, in order."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.zeros((3, 0), np.int64), *self._parts], axis=1)]
        return self._parts[0]

    def extend(self, prefixes: Sequence[str], hops: Sequence[str], lines: Sequence[int]) -> None:
        """Routes, a prefix, a next hop and a line each."""
        columns = (self.prefixes.of(prefixes), self.next_hops.of(hops), np.array(lines, np.int64))
        self._parts.append(np.array(columns))

    def add(self, lines: TextLines, head: int, six: bool | None) -> None:
        """Lines of routes: behind so many bytes a prefix, a blank, and the next hop.

        A next hop is "" where the prefix is not of this family; None: either.
        """
        (prefixes, prefix), (hops, hop) = (part.alike() for part in lines.split(head))
        wrong = np.array([six is not None and (":" in text) != six for text in prefixes])
        hop = self.next_hops.of(hops)[hop]
        if wrong.any():
            hop[wrong[prefix]] = self.next_hops[""]
        self._parts.append(np.array((self.prefixes.of(prefixes)[prefix], hop, lines.number)))

    def absorb(self, others: RouteLines) -> None:
        """Add the routes of others."""
        prefix, hop, line = others.columns()
        prefixes, hops = (
            self.prefixes.of(list(others.prefixes)),
            self.next_hops.of(list(others.next_hops)),
        )
        self._parts.append(np.array((prefixes[prefix], hops[hop], line)))

    def rows(self, *hops: str) -> Iterator[tuple[str, str, int]]:
        """Prefix, next hop and line of every route with one of these next hops."""
        prefixes, texts = list(self.prefixes), list(self.next_hops)
        numbers = [self.next_hops[hop] for hop in hops if hop in self.next_hops]
        if numbers:
            columns = self.columns()
            for prefix, hop, line in columns[:, np.isin(columns[1], numbers)].T.tolist():
                yield prefixes[prefix], texts[hop], line

    def same(self, others: RouteLines) -> bool:
        """Whether the routes are the same, in whatever order."""
        prefix, hop, _ = self.columns()
        number, which, _ = others.columns()
        known = (
            np.array([own.get(text, -1) for text in all_of], np.int64)
            for own, all_of in (
                (self.prefixes, others.prefixes),
                (self.next_hops, others.next_hops),
            )
        )
        codes = prefix * len(self.next_hops) + hop
        number, which = (named[at] for named, at in zip(known, (number, which), strict=True))
        if len(codes) != len(number) or (number < 0).any() or (which < 0).any():
            return False
        return np.array_equal(np.sort(codes), np.sort(number * len(self.next_hops) + which))

    def first_lines(self) -> dict[str, int]:
        """The line where each next hop occurs first."""
        _, hop, line = self.columns()
        first = np.full(len(self.next_hops), -1, np.int64)
        first[hop[::-1]] = line[::-1]
        found = zip(self.next_hops, first.tolist(), strict=True)
        return {text: at for text, at in found if at >= 0}

    def reworded(self, words: Mapping[str, str]) -> RouteLines:
        """The routes with these next hops, which are written in other words there."""
        others = RouteLines()
        others.prefixes = self.prefixes
        number = [others.next_hops[words[hop]] if hop in words else -1 for hop in self.next_hops]
        prefix, hop, line = self.columns()
        hop = np.array([*number, -1], np.int64)[hop]
        others._parts = [np.array((prefix, hop, line))[:, hop >= 0]]
        return others

    def without(self, prefixes: Iterable[str]) -> RouteLines:
        """The routes of other prefixes."""
        others, left_out = RouteLines(), frozenset(prefixes)
        if kept := [row for row in self.rows(*self.next_hops) if row[0] not in left_out]:
            others.extend(*zip(*kept, strict=True))
        return others

    def uncovered(self, ends: Collection[str]) -> Iterator[str]:
        """The first and the last prefix of each family, where none of these networks holds it.

        Texts that are no prefixes are left out.
        """
        named = list(self.prefixes)
        there = [named[number] for number in np.unique(self.columns()[0]).tolist()]
        for six in (False, True):
            last = [exact_network(end) for end in ends if (":" in end) == six and covering(end)]
            hops = there, reversed(there)
            others = (
                (p for p in hop if (":" in p) == six and p not in ends and covering(p))
                for hop in hops
            )
            for prefix in dict.fromkeys(p for hop in others for p in islice(hop, 1)):
                if not any(exact_address(prefix.partition("/")[0]) in network for network in last):
                    yield prefix

    def tables(self, file: str, said: Mapping[str, RouteHop]) -> dict[int, Lookup]:
        """Every table by its number; routes of one prefix and one metric share.

        Args:
            file: where the routes are.
            said: what next hops say by their texts; routes of others are left out.
        """
        hops = {self.next_hops[text]: hop for text, hop in said.items()}
        prefix, hop, line = self.columns()
        if len(hops) < len(self.next_hops):
            prefix, hop, line = self.columns()[:, np.isin(hop, list(hops))]
        if not len(hop):
            return {}
        count = len(self.prefixes)
        table = np.zeros(len(self.next_hops), np.int64)
        table[list(hops)] = [each.table for each in hops.values()]
        tables, index = np.unique(table, return_inverse=True)
        place = index[hop] * count + prefix
        order = np.argsort(place * len(table) + hop, kind="stable")
        place, hop = place[order], hop[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        entry, examples = _alike(hop, first, np.diff(first, append=len(hop)))
        chains = [_chain([hops[w] for w in hop[start:end].tolist()]) for start, end in examples]
        names = list(self.prefixes)
        cuts = np.searchsorted(place[first], np.arange(1, len(tables)) * count)
        columns = entry, np.minimum.reduceat(line[order], first), place[first] % count
        every = np.arange(len(chains))
        parts = zip(*(np.split(column, cuts) for column in columns), strict=True)
        return {
            at: Lookup(EmittedRows(file, names, *part), chains, every)
            for at, part in zip(tables.tolist(), parts, strict=True)
            if len(part[0])
        }


def _alike(
    hop: Integers, first: Integers, length: Integers
) -> tuple[Integers, list[tuple[int, int]]]:
    """The number of each run of next hops, the same for equal ones; where one of each is."""
    entry = np.zeros(len(first), np.int64)
    most = int(hop.max()) + 1
    for step in range(int(length.max())):
        longer = np.flatnonzero(length > step)
        code = entry[longer] * most + hop[first[longer] + step]
        entry[longer] = int(entry.max()) + 1 + np.unique(code, return_inverse=True)[1]
    _, example, entry = np.unique(entry, return_index=True, return_inverse=True)
    ends = first[example] + length[example]
    return entry, list(zip(first[example].tolist(), ends.tolist(), strict=True))


def _chain(hops: Sequence[RouteHop]) -> Chain:
    by_metric: dict[int, list[tuple[Port, int]]] = {}
    for hop in hops:
        by_metric.setdefault(hop.metric, []).extend(hop.stage)
    return tuple(tuple(stage) for _, stage in sorted(by_metric.items()))
