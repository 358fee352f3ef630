"""Routing tables from the routes of a configuration, which may stand in any order.

Routes of one prefix in one table become one row of a `Lookup`: those of one metric share, those of
greater metrics are tried after them. A switch with repair has tens of thousands of routes, so these
are columns of numbers, never objects.

Example: the routes to 10.0.0.0/24 are one row, and those to 10.0.1.0/24 another one. If both rows
have the next hops "via swp1" and "via swp2", they lead to one *entry*, with one chain of ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    Chain,
    EmittedRows,
    Lookup,
    Port,
    PortSet,
    covering,
)
from compilers.readers.exact_text import exact_address, exact_network
from compilers.readers.text_lines import TextLines

T = TypeVar("T")
Integers = NDArray[np.int64]


class Numbering(dict[T, int]):
    """Numbers keys from 0, in the order in which they are first looked up.

    >>> numbers = Numbering()
    >>> numbers["a"], numbers["b"], numbers["a"]
    (0, 1, 0)
    """

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self)
        return number

    def of(self, keys: Collection[T]) -> Integers:
        """int64[n]: the numbers of keys."""
        if not self:  # fast where no key comes twice: the numbers count up from 0
            self.update(zip(keys, range(len(keys)), strict=True))
            if len(self) == len(keys):
                return np.arange(len(keys))
            self.clear()
        return np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))


class RouteHop(NamedTuple):
    """The meaning of the next hop of a route."""

    table: int
    """The number of the routing table."""
    metric: int
    """The metric: routes with the least one are tried first."""
    ports: PortSet
    """The ports that share packets, with their weights; () discards."""


class _SortedRoutes(NamedTuple):
    """Some routes, n in all, sorted by table, then by prefix, then by next hop."""

    table: Integers
    """int64[n]: the number of the routing table of each route."""
    prefix: Integers
    """int64[n]: the number of its prefix."""
    hop: Integers
    """int64[n]: the number of its next hop."""
    line: Integers
    """int64[n]: its line."""

    def first_of_rows(self) -> Integers:
        """int64[rows]: the first route of each row, which is the routes of a table and a prefix."""
        is_first = np.ones(len(self.prefix), np.bool_)
        is_first[1:] = (np.diff(self.table) != 0) | (np.diff(self.prefix) != 0)
        return np.flatnonzero(is_first)


class _RowEntries(NamedTuple):
    """The entries of rows: rows with equal next hops lead to one entry."""

    entry: Integers
    """int64[rows]: the entry of each row."""
    example: Integers
    """int64[entries]: a row of each entry."""


class RouteLines:
    """Routes of a router, each with a prefix, a next hop and a line, 0 where that is not known.

    A next hop is everything that a route states except its prefix, as a text. In arrays prefixes
    and next hops are numbers, by `prefixes` and `next_hops`.
    """

    def __init__(self) -> None:
        self.prefixes: Numbering[str] = Numbering()
        """The texts of prefixes, numbered."""
        self.next_hops: Numbering[str] = Numbering()
        """The texts of next hops, numbered."""
        self._added: list[Integers] = []
        """int64[3, n] for each addition of n routes: their prefixes, next hops and lines."""

    def columns(self) -> Integers:
        """int64[3, n]: the prefix, the next hop and the line of every route, in the order added."""
        if len(self._added) != 1:
            self._added = [np.concatenate([np.zeros((3, 0), np.int64), *self._added], axis=1)]
        return self._added[0]

    def extend(self, prefixes: Sequence[str], hops: Sequence[str], lines: Sequence[int]) -> None:
        """Add routes, with a prefix, a next hop and a line each."""
        columns = (self.prefixes.of(prefixes), self.next_hops.of(hops), np.array(lines, np.int64))
        self._added.append(np.array(columns))

    def add(self, lines: TextLines, width: int, in_ipv6: bool | None) -> None:
        """Add lines of routes: some bytes, a prefix, a blank, and the next hop.

        Args:
            lines: the lines.
            width: how many bytes each line has before the prefix.
            in_ipv6: whether prefixes have to be IPv6 ones; None: either. Routes with a prefix of
                the wrong family get the next hop "".
        """
        prefix_column, hop_column = lines.split(width)
        # The different texts of each column, and for each line the index of its text among them.
        prefixes, prefix = prefix_column.different_texts()
        hops, hop = hop_column.different_texts()
        hop = self.next_hops.of(hops)[hop]
        if in_ipv6 is not None:
            is_wrong = np.array([(":" in text) != in_ipv6 for text in prefixes], np.bool_)
            if is_wrong.any():
                hop[is_wrong[prefix]] = self.next_hops[""]
        self._added.append(np.array((self.prefixes.of(prefixes)[prefix], hop, lines.number)))

    def absorb(self, others: RouteLines) -> None:
        """Add the routes of another object."""
        prefix, hop, line = others.columns()
        prefixes = self.prefixes.of(list(others.prefixes))
        hops = self.next_hops.of(list(others.next_hops))
        self._added.append(np.array((prefixes[prefix], hops[hop], line)))

    def rows(self, *hops: str) -> Iterator[tuple[str, str, int]]:
        """Yield the prefix, the next hop and the line of every route with one of some next hops."""
        prefixes, texts = list(self.prefixes), list(self.next_hops)
        numbers = [self.next_hops[hop] for hop in hops if hop in self.next_hops]
        if numbers:
            columns = self.columns()
            for prefix, hop, line in columns[:, np.isin(columns[1], numbers)].T.tolist():
                yield prefixes[prefix], texts[hop], line

    def has_same_routes(self, others: RouteLines) -> bool:
        """Whether both have the same routes, in whatever order and lines."""
        prefix, hop, _ = self.columns()
        other_prefix, other_hop, _ = others.columns()
        # The other routes by the numbers of these routes; -1 for texts that are in no route here.
        prefixes = np.array([self.prefixes.get(text, -1) for text in others.prefixes], np.int64)
        hops = np.array([self.next_hops.get(text, -1) for text in others.next_hops], np.int64)
        other_prefix, other_hop = prefixes[other_prefix], hops[other_hop]
        if len(prefix) != len(other_prefix) or (other_prefix < 0).any() or (other_hop < 0).any():
            return False
        routes = np.sort(prefix * len(self.next_hops) + hop)
        return np.array_equal(routes, np.sort(other_prefix * len(self.next_hops) + other_hop))

    def first_lines(self) -> dict[str, int]:
        """The first line of each next hop."""
        _, hop, line = self.columns()
        first = np.full(len(self.next_hops), -1, np.int64)
        # From the last route to the first: each overwrites the line of a later one.
        first[hop[::-1]] = line[::-1]
        lines = zip(self.next_hops, first.tolist(), strict=True)
        return {text: number for text, number in lines if number >= 0}

    def with_next_hops(self, new_texts: Mapping[str, str]) -> RouteLines:
        """The routes with some next hops, under other texts.

        Args:
            new_texts: the new text of each of these next hops. Routes with others are left out.
        """
        others = RouteLines()
        others.prefixes = self.prefixes
        new_number = [
            others.next_hops[new_texts[hop]] if hop in new_texts else -1 for hop in self.next_hops
        ]
        prefix, hop, line = self.columns()
        hop = np.array([*new_number, -1], np.int64)[hop]
        others._added = [np.array((prefix, hop, line))[:, hop >= 0]]
        return others

    def without(self, prefixes: Iterable[str]) -> RouteLines:
        """The routes without those of some prefixes."""
        remaining, left_out = RouteLines(), frozenset(prefixes)
        rows = [row for row in self.rows(*self.next_hops) if row[0] not in left_out]
        if rows:
            remaining.extend(*zip(*rows, strict=True))
        return remaining

    def uncovered(self, discarded: Collection[str]) -> Iterator[str]:
        """Yield the first and the last prefix of each family, if no discarded network contains it.

        The discards of a fabric contain all its prefixes, so looking at two of these is enough.

        Args:
            discarded: networks. A text that is no network is left out, as is a prefix that is none.
        """
        names = list(self.prefixes)
        used = [names[number] for number in np.unique(self.columns()[0]).tolist()]
        for is_ipv6 in (False, True):
            networks = [
                exact_network(text)
                for text in discarded
                if (":" in text) == is_ipv6 and covering(text)
            ]
            of_family = [
                prefix
                for prefix in used
                if (":" in prefix) == is_ipv6 and prefix not in discarded and covering(prefix)
            ]
            for prefix in dict.fromkeys((*of_family[:1], *of_family[-1:])):
                address = exact_address(prefix.partition("/")[0])
                if not any(address in network for network in networks):
                    yield prefix

    def tables(self, file: str, meanings: Mapping[str, RouteHop]) -> dict[int, Lookup]:
        """The routing tables, by number.

        Args:
            file: where the routes are.
            meanings: the meaning of next hops, by their texts. Routes with others are left out.
        """
        hops = {self.next_hops[text]: hop for text, hop in meanings.items()}
        routes = self._sorted_routes(hops)
        if not len(routes.hop):
            return {}
        # In arrays by row: the routes of a row are those from `first` to before `end`.
        first = routes.first_of_rows()
        end = np.append(first[1:], len(routes.hop))
        table, prefix = routes.table[first], routes.prefix[first]
        line = np.minimum.reduceat(routes.line, first)
        entry, example = _row_entries(routes.hop, first, end - first)
        chains = [
            _chain([hops[number] for number in routes.hop[first[row] : end[row]].tolist()])
            for row in example.tolist()
        ]
        names, all_chains = list(self.prefixes), np.arange(len(chains))
        lookups: dict[int, Lookup] = {}
        numbers, first_row = np.unique(table, return_index=True)
        rows_of_tables = map(slice, first_row, np.append(first_row[1:], len(table)))
        for number, of_table in zip(numbers.tolist(), rows_of_tables, strict=True):
            rows = EmittedRows(file, names, entry[of_table], line[of_table], prefix[of_table])
            lookups[number] = Lookup(rows, chains, all_chains)
        return lookups

    def _sorted_routes(self, hops: Mapping[int, RouteHop]) -> _SortedRoutes:
        """The routes with some next hops.

        Args:
            hops: the numbers of these next hops, with their meanings.
        """
        prefix, hop, line = self.columns()
        if len(hops) < len(self.next_hops):
            prefix, hop, line = self.columns()[:, np.isin(hop, list(hops))]
        table_of_hop = np.zeros(len(self.next_hops), np.int64)
        table_of_hop[list(hops)] = [meaning.table for meaning in hops.values()]
        table_index = np.unique(table_of_hop, return_inverse=True)[1]
        # To sort one number for each route is faster than to sort the three columns in it.
        sorting_number = table_index[hop]
        sorting_number = sorting_number * len(self.prefixes) + prefix
        sorting_number = sorting_number * len(self.next_hops) + hop
        order = np.argsort(sorting_number, kind="stable")
        hop = hop[order]
        return _SortedRoutes(table_of_hop[hop], prefix[order], hop, line[order])


def _row_entries(hop: Integers, first: Integers, length: Integers) -> _RowEntries:
    """The entries of rows: rows with equal next hops lead to one entry.

    Args:
        hop: int64[n], the next hop of each route.
        first: int64[rows], the first route of each row.
        length: int64[rows], how many routes each row has.

    Rows with the next hops 4 5, then 4, then 4 5:

    >>> rows = _row_entries(np.array([4, 5, 4, 4, 5]), np.array([0, 2, 3]), np.array([2, 1, 2]))
    >>> rows.entry.tolist(), rows.example.tolist()
    ([1, 0, 1], [1, 0])
    """
    # A pass for each position in a row: rows with the same number so far and the same next hop at
    # the position get a new number, greater than all numbers of rows that ended before.
    number = np.zeros(len(first), np.int64)
    hop_count = int(hop.max()) + 1
    for position in range(int(length.max())):
        longer = np.flatnonzero(length > position)
        hop_at_position = hop[first[longer] + position]
        number_and_hop = number[longer] * hop_count + hop_at_position
        new_number = np.unique(number_and_hop, return_inverse=True)[1]
        number[longer] = int(number.max()) + 1 + new_number
    _, example, entry = np.unique(number, return_index=True, return_inverse=True)
    return _RowEntries(entry, example)


def _chain(hops: Sequence[RouteHop]) -> Chain:
    """The port sets of a row, by ascending metric."""
    by_metric: dict[int, list[tuple[Port, int]]] = {}
    for hop in hops:
        by_metric.setdefault(hop.metric, []).extend(hop.ports)
    return tuple(tuple(port_set) for _, port_set in sorted(by_metric.items()))
