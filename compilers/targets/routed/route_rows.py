"""The routes of a switch for templates, as columns of numbers that numpy turns into lines.

A switch has a route to every prefix, so a tuple for each route would be slow. Many routes differ in
their prefix only: what follows it, the *tail*, is stored once. The targets linux, frr and bird give
`RouteRows` to their templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.integer[Any]]
RouteTail = tuple[object, ...]
"""What follows the prefix of a route in its line, such as next hop, metric and table."""


class RoutePart(NamedTuple):
    """Some routes of a switch, such as those of one table: n routes with few different tails."""

    prefix: Column
    """int[n]: the number of each route's prefix."""
    tails: Sequence[RouteTail]
    """The different tails."""
    tail: Column
    """int[n]: the index of each route's tail in `tails`."""


@dataclass(frozen=True, slots=True, eq=False)
class PrefixTexts:
    """The texts of all prefixes of a fabric, which the routes of all switches share."""

    texts: Sequence[str]
    """Every prefix, by its number."""
    _line_starts: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    """The results of `line_starts`, by their `head`, as every switch asks for the same few."""

    def line_starts(self, head: str) -> NDArray[np.object_]:
        """object[n]: a text and then the prefix, such as `ip route 10.0.0.0/30`, of every prefix.

        Args:
            head: the text before the prefix, such as `ip route `.
        """
        if head not in self._line_starts:
            lines = np.empty(len(self.texts), object)  # str objects, which numpy can add
            lines[:] = [head + text for text in self.texts]
            self._line_starts[head] = lines
        return self._line_starts[head]


@dataclass(frozen=True, slots=True, eq=False)
class RouteRows:
    """Routes; a template that loops over them gets (prefix, *tail) of each.

    All fields are hidden from templates: arrays have methods that write files.
    """

    _prefixes: PrefixTexts
    """The texts of prefixes, by number."""
    _tails: Sequence[RouteTail]
    """The different tails of the routes."""
    _prefix: Column
    """int[n]: the number of each route's prefix."""
    _tail: Column
    """int[n]: the index of each route's tail in `_tails`."""

    @classmethod
    def of(cls, prefixes: PrefixTexts, parts: Iterable[RoutePart]) -> RouteRows:
        """The routes of several parts, part by part."""
        tails: list[RouteTail] = []
        no_routes: Column = np.zeros(0, np.int64)
        prefix_columns, tail_columns = [no_routes], [no_routes]
        for part in parts:
            prefix_columns.append(part.prefix)
            tail_columns.append(part.tail + len(tails))
            tails += part.tails
        return cls(prefixes, tails, np.concatenate(prefix_columns), np.concatenate(tail_columns))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The prefix and the tail of each route."""
        for prefix, tail in zip(self._prefix.tolist(), self._tail.tolist(), strict=True):
            yield self._prefixes.texts[prefix], *self._tails[tail]

    def __len__(self) -> int:
        return len(self._prefix)

    def lines(self, form: str) -> str:
        """A line for each route.

        Args:
            form: a line such as `ip route {} {}`: the first `{}` stands for the prefix, the
                others for the values of the tail.
        """
        head, _, rest = form.partition("{}")
        ends = np.empty(len(self._tails), object)
        ends[:] = [f"{rest.format(*tail)}\n" for tail in self._tails]
        return "".join((self._prefixes.line_starts(head)[self._prefix] + ends[self._tail]).tolist())
