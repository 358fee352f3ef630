"""Routes as columns: a switch has tens of thousands, and their lines are made by numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.integer[Any]]
RouteTail = tuple[object, ...]
RoutePart = tuple[Column, Sequence[RouteTail], Column]
"""Prefixes, tails, and which of these each route is."""


@dataclass(frozen=True, slots=True, eq=False)
class PrefixTexts:
    """The text of every prefix of a fabric, and lines that begin with each, made once."""

    texts: Sequence[str]
    _behind: dict[str, NDArray[np.object_]] = field(default_factory=dict)

    def behind(self, head: str) -> NDArray[np.object_]:
        """object[n]: each of them behind the same text."""
        if head not in self._behind:
            lines = np.empty(len(self.texts), object)
            lines[:] = [head + text for text in self.texts]
            self._behind[head] = lines
        return self._behind[head]


@dataclass(frozen=True, slots=True, eq=False)
class RouteRows:
    """Routes, each a prefix and what follows it: (prefix, *tail) for templates that loop.

    _prefix: int[n], which of the texts. _tail: int[n], which of `_tails`. A template in the sandbox
    sees none of the fields: the methods of arrays write files.
    """

    _names: PrefixTexts
    _tails: Sequence[RouteTail]
    _prefix: Column
    _tail: Column

    @classmethod
    def of(cls, names: PrefixTexts, parts: Iterable[RoutePart]) -> RouteRows:
        """Routes in parts."""
        tails: list[RouteTail] = []
        none: Column = np.zeros(0, np.int64)
        columns = [(none, none)]
        for prefix, of_part, tail in parts:
            columns.append((prefix, tail + len(tails)))
            tails += of_part
        return cls(names, tails, *map(np.concatenate, zip(*columns, strict=True)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The prefix and the next hop of each route."""
        for prefix, tail in zip(self._prefix.tolist(), self._tail.tolist(), strict=True):
            yield self._names.texts[prefix], *self._tails[tail]

    def __len__(self) -> int:
        return len(self._prefix)

    def lines(self, form: str) -> str:
        """A line for each route, by a text in which `{}` is replaced by each of its words."""
        head, _, rest = form.partition("{}")
        said = np.empty(len(self._tails), object)
        said[:] = [f"{rest.format(*tail)}\n" for tail in self._tails]
        return "".join((self._names.behind(head)[self._prefix] + said[self._tail]).tolist())
