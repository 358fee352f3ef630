"""Routes for templates as columns of numbers, which numpy turns into lines: a switch has many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.integer[Any]]
RouteTail = tuple[object, ...]
"""What follows the prefix of a route, for a template: next hop, metric, table."""
RoutePart = tuple[Column, Sequence[RouteTail], Column]
"""Routes: the numbers of their prefixes, some tails, and the number of each route's tail."""


@dataclass(frozen=True, slots=True, eq=False)
class PrefixTexts:
    """The texts of all prefixes of a fabric, which the routes of all switches share."""

    texts: Sequence[str]
    _behind: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    """The results of `behind`, by the text before the prefixes."""

    def behind(self, head: str) -> NDArray[np.object_]:
        """object[n]: every prefix with a text before it."""
        if head not in self._behind:
            lines = np.empty(len(self.texts), object)
            lines[:] = [head + text for text in self.texts]
            self._behind[head] = lines
        return self._behind[head]


@dataclass(frozen=True, slots=True, eq=False)
class RouteRows:
    """Routes; a template that loops over them gets (prefix, *tail) of each.

    All fields are hidden from templates: arrays have methods that write files.
    """

    _names: PrefixTexts
    _tails: Sequence[RouteTail]
    _prefix: Column
    """int[n]: the number of each route's prefix."""
    _tail: Column
    """int[n]: the place of each route's tail in `_tails`."""

    @classmethod
    def of(cls, names: PrefixTexts, parts: Iterable[RoutePart]) -> RouteRows:
        """The routes of several parts, one after the other."""
        tails: list[RouteTail] = []
        none: Column = np.zeros(0, np.int64)
        prefix_columns, tail_columns = [none], [none]
        for prefix, of_part, tail in parts:
            prefix_columns.append(prefix)
            tail_columns.append(tail + len(tails))
            tails += of_part
        return cls(names, tails, np.concatenate(prefix_columns), np.concatenate(tail_columns))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The prefix and the tail of each route."""
        for prefix, tail in zip(self._prefix.tolist(), self._tail.tolist(), strict=True):
            yield self._names.texts[prefix], *self._tails[tail]

    def __len__(self) -> int:
        return len(self._prefix)

    def lines(self, form: str) -> str:
        """A line for each route.

        Args:
            form: a line in which `{}` stands for the prefix, and for each part of the tail.
        """
        head, _, rest = form.partition("{}")
        ends = np.empty(len(self._tails), object)
        ends[:] = [f"{rest.format(*tail)}\n" for tail in self._tails]
        return "".join((self._names.behind(head)[self._prefix] + ends[self._tail]).tolist())
