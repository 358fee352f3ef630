"""Routing tables from routes in any order: rows of one prefix in one table become one entry.

A switch with repair has tens of thousands of routes, so they are columns here, never objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import Chain, EmittedRows, Lookup, Port, Stage

T = TypeVar("T")
Integers = NDArray[np.int64]


class Numbers(dict[T, int]):
    """Numbers things from 0 in the order in which they are first asked for."""

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self)
        return number


class RouteWay(NamedTuple):
    """What a route says beside its prefix: its table, its metric, and the ports that share."""

    table: int
    metric: int
    stage: Stage


@dataclass(slots=True)
class RouteLines:
    """The routes of a router, a prefix, a way and a line each; those of one prefix share or follow.

    way is an index into `ways`, whose texts say all but the prefix. line is 0 where only the file
    is known.
    """

    prefix: list[str] = field(default_factory=list)
    way: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    ways: Numbers[str] = field(default_factory=Numbers)

    def add(self, prefix: str, way: str, line: int) -> None:
        """A route."""
        self.extend([prefix], [way], [line])

    def extend(self, prefixes: Iterable[str], ways: Iterable[str], lines: Iterable[int]) -> None:
        """Routes, a prefix, a way and a line each."""
        self.prefix.extend(prefixes)
        self.way.extend(map(self.ways.__getitem__, ways))
        self.line.extend(lines)

    def take(
        self, lines: Sequence[tuple[int, str]], heads: Mapping[str, bool | None]
    ) -> Sequence[tuple[int, str]]:
        """Take the lines that begin with one of these texts; the others are returned.

        Behind the text stand the prefix, a blank, and the way; a way is "" where the prefix is of
        the wrong family.

        Args:
            lines: with their numbers.
            heads: how routes begin; whether their prefixes are IPv6 ones, None: either.
        """
        for head, six in heads.items():
            mine = [each for each in lines if each[1].startswith(head)]
            if not mine:
                continue
            lines = [each for each in lines if not each[1].startswith(head)]
            cut = len(head)
            prefixes, _, words = zip(*(text[cut:].partition(" ") for _, text in mine), strict=True)
            ways: Iterable[str] = words
            wrong = {p for p in set(prefixes) if six is not None and (":" in p) != six}
            if wrong:
                ways = ["" if p in wrong else way for p, way in zip(prefixes, words, strict=True)]
            self.extend(prefixes, ways, (number for number, _ in mine))
        return lines

    def rows(self, *ways: str) -> Iterator[tuple[str, str, int]]:
        """Prefix, way and line of every route with one of these ways."""
        texts = {self.ways[way]: way for way in ways if way in self.ways}
        if texts:
            for at in np.flatnonzero(np.isin(self.way, list(texts))).tolist():
                yield self.prefix[at], texts[self.way[at]], self.line[at]

    def without(self, *ways: str, prefixes: Collection[str] = ()) -> RouteLines:
        """The other routes than those with one of these ways or prefixes."""
        texts, others = list(self.ways), RouteLines()
        columns = zip(self.prefix, map(texts.__getitem__, self.way), self.line, strict=True)
        if kept := [row for row in columns if row[1] not in ways and row[0] not in prefixes]:
            others.extend(*zip(*kept, strict=True))
        return others

    def tables(self, file: str, said: Mapping[str, RouteWay]) -> dict[int, Lookup]:
        """Every table by its number; routes of one prefix and one metric share.

        Args:
            file: where the routes stand.
            said: what ways say by their texts; routes of others are left out.
        """
        ways = {self.ways[text]: way for text, way in said.items()}
        number: Numbers[str] = Numbers()
        prefix = np.fromiter(map(number.__getitem__, self.prefix), np.int64, len(self.prefix))
        way = np.array(self.way, np.int64)
        line = np.array(self.line, np.int64)
        if len(ways) < len(self.ways):
            kept = np.isin(way, list(ways))
            prefix, way, line = prefix[kept], way[kept], line[kept]
        if not len(way):
            return {}
        table = np.zeros(len(self.ways), np.int64)
        table[list(ways)] = [each.table for each in ways.values()]
        tables, index = np.unique(table, return_inverse=True)
        place = index[way] * len(number) + prefix
        order = np.argsort(place * len(table) + way, kind="stable")
        place, way = place[order], way[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        entry, examples = _alike(way, first, np.diff(first, append=len(way)))
        chains = [_chain([ways[w] for w in way[start:end].tolist()]) for start, end in examples]
        names = np.array(list(number), object)[place[first] % len(number)]
        cuts = np.searchsorted(place[first], np.arange(1, len(tables)) * len(number))
        columns = names, entry, np.minimum.reduceat(line[order], first)
        parts = zip(*(np.split(column, cuts) for column in columns), strict=True)
        return {
            at: Lookup(EmittedRows(file, name.tolist(), entries, where), chains)
            for at, (name, entries, where) in zip(tables.tolist(), parts, strict=True)
            if len(name)
        }


def _alike(
    way: Integers, first: Integers, length: Integers
) -> tuple[Integers, list[tuple[int, int]]]:
    """The number of each run of ways, the same for equal ones; where one of each stands."""
    entry = np.zeros(len(first), np.int64)
    most = int(way.max()) + 1
    for step in range(int(length.max())):
        longer = np.flatnonzero(length > step)
        code = entry[longer] * most + way[first[longer] + step]
        entry[longer] = int(entry.max()) + 1 + np.unique(code, return_inverse=True)[1]
    _, example, entry = np.unique(entry, return_index=True, return_inverse=True)
    ends = first[example] + length[example]
    return entry, list(zip(first[example].tolist(), ends.tolist(), strict=True))


def _chain(ways: Sequence[RouteWay]) -> Chain:
    by_metric: dict[int, list[tuple[Port, int]]] = {}
    for way in ways:
        by_metric.setdefault(way.metric, []).extend(way.stage)
    return tuple(tuple(stage) for _, stage in sorted(by_metric.items()))
