"""The destinations of a build in blocks, each with the egress classes of all switches for it.

An *egress class* is a forwarding equivalence class of a switch: a set of destinations with the same
next hops. The local proof takes a block at a time:

- Usually every switch has a row for each destination. Then a block is up to `DESTINATIONS_AT_ONCE`
  destinations (`SeparateBlocks`).
- An *aggregate* is a prefix that covers several destinations. In a fabric with aggregates, a block
  is the destinations of one aggregate (`AggregateBlocks`). Most switches have a single row for all
  destinations of the block, that of the aggregate, so their class is proved only once.

A switch is *listed* in a block if it has its own row for at least one destination; all others use
`default`, the class of the aggregate's row.

The blocks are numbered from 0. In shapes, k is the number of destinations in a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.program import egress_classes
from compilers.forwarding.rule import DELIVER, DROP
from compilers.proof.local.class_cases import NONE
from compilers.proof.local.minimal_paths import DestinationRows
from compilers.tables.build import Build
from compilers.tables.fib import Fib

DESTINATIONS_AT_ONCE = 256
"""The most destinations in a block of `SeparateBlocks`. The arrays of a block have an entry for
each switch and each destination, so this number bounds their size."""
NO_ROW = DROP
"""In place of an egress class: the switch has no row for this prefix. A packet for which a switch
has no row at all is dropped, so the number is that of DROP."""


@dataclass(frozen=True, slots=True, eq=False)
class DestinationBlock:
    """Destinations that are proved together."""

    indexes: slice
    """Their indexes in the array of all destinations."""
    rows: DestinationRows
    """The egress classes of all switches for them."""


@dataclass(frozen=True, slots=True, eq=False)
class SeparateBlocks:
    """Blocks of a build in which every switch looks up a row for each destination."""

    fib: Fib
    """The routes of the build."""
    build: Build
    """The build that is proved."""
    destinations: NDArray[np.int64]
    """int64[D], the switches with hosts."""

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return ceil(len(self.destinations) / DESTINATIONS_AT_ONCE)

    def block(self, number: int) -> DestinationBlock:
        """Block `number`. Every switch is listed, as it has a row for each destination."""
        first = number * DESTINATIONS_AT_ONCE
        indexes = slice(first, min(first + DESTINATIONS_AT_ONCE, len(self.destinations)))
        destinations = self.destinations[indexes]
        egress = egress_classes(self.build, destinations, self.fib).T
        switches = np.arange(len(egress), dtype=np.int32)
        default = np.full(len(egress), NONE, np.int16)
        rows = DestinationRows(
            destinations=destinations,
            listed=switches,
            row=switches,
            egress=np.ascontiguousarray(egress),
            default=default,
        )
        return DestinationBlock(indexes, rows)


@dataclass(frozen=True, slots=True, eq=False)
class AggregateBlocks:
    """Blocks of a build with aggregates: a block is the k destinations of one aggregate.

    The same k consecutive switches, a *group*, are the destinations of one aggregate, and have rows
    for the same R prefixes. There are G groups. A *table row* is a group with one of its R
    prefixes; it has the number group · R + index of the prefix.
    """

    destinations: NDArray[np.int64]
    """int64[S], the vertices, all of which have hosts."""
    aggregate: NDArray[np.int32]
    """int32[G], the aggregate prefix of each group."""
    classes: NDArray[np.int16]
    """int16[G·R, k], by table row the class of each switch of the group, or NO_ROW."""
    rows_by_prefix: NDArray[np.intp]
    """intp[G·R], the numbers of the table rows, sorted by their prefix."""
    first_of_prefix: NDArray[np.intp]
    """intp[P + 1], where the rows of each of P prefixes begin in `rows_by_prefix`."""

    @classmethod
    def of(cls, build: Build) -> AggregateBlocks | None:
        """The blocks of a build, or None.

        None if some switch has no hosts, or if the switches of a group do not share one aggregate.
        """
        routes = build.tables.routes
        groups, width = routes.prefix.shape
        switches = len(routes.egress)
        k = switches // groups  # a group has as many switches as its aggregate has destinations
        if groups * k != switches or k == 1 or not build.topology.endpoints.all():
            return None
        aggregate = routes.aggregate.reshape(groups, k)
        if aggregate[0, 0] < 0 or (aggregate != aggregate[:, :1]).any():
            return None
        classes = np.empty((groups, width, k), np.int16)
        class_of_value = class_numbers(routes.egress.dtype, build.tables.classes.port.shape[1])
        for group in range(groups):
            members = slice(group * k, (group + 1) * k)
            classes[group] = class_of_value[np.asarray(routes.egress[members])].T
        prefix = np.asarray(routes.prefix).ravel()
        rows_by_prefix = np.argsort(prefix, kind="stable")
        first_of_prefix = np.searchsorted(prefix[rows_by_prefix], np.arange(int(prefix.max()) + 2))
        return cls(
            destinations=np.arange(switches),
            aggregate=aggregate[:, 0],
            classes=classes.reshape(groups * width, k),
            rows_by_prefix=rows_by_prefix,
            first_of_prefix=first_of_prefix,
        )

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self.aggregate)

    def _table_rows_for(self, prefix: int) -> NDArray[np.intp]:
        """The numbers of the table rows for a prefix, one for each group that has the prefix."""
        if not 0 <= prefix < len(self.first_of_prefix) - 1:
            return self.rows_by_prefix[:0]
        return self.rows_by_prefix[self.first_of_prefix[prefix] : self.first_of_prefix[prefix + 1]]

    def block(self, number: int) -> DestinationBlock:
        """Block i: the destinations of group i.

        All switches of a group are listed if the group has a row for at least one destination.

        Args:
            number: i.
        """
        groups, k = len(self.aggregate), self.classes.shape[1]
        rows_of_group = len(self.classes) // groups
        indexes = slice(number * k, (number + 1) * k)
        # By group and switch of the group: the class of the aggregate's row.
        default = np.full((groups, k), NO_ROW, np.int16)
        of_aggregate = self._table_rows_for(int(self.aggregate[number]))
        default[of_aggregate // rows_of_group] = self.classes[of_aggregate]
        of_destinations = [self._table_rows_for(d) for d in range(indexes.start, indexes.stop)]
        listed_groups = np.unique(np.concatenate(of_destinations) // rows_of_group)
        # The class by listed group, switch of the group and destination.
        egress = np.repeat(default[listed_groups][:, :, None], k, axis=2)
        for j, table_rows in enumerate(of_destinations):
            # A row for the destination is a longer match than the row for the aggregate. A switch
            # of the group without a row for the destination keeps the class of the aggregate.
            own_classes = self.classes[table_rows]
            group = np.searchsorted(listed_groups, table_rows // rows_of_group)
            egress[group, :, j] = np.where(own_classes == NO_ROW, egress[group, :, j], own_classes)
        listed = (listed_groups[:, None] * k + np.arange(k)).ravel().astype(np.int32)
        row = np.full(groups * k, NONE, np.int32)
        row[listed] = np.arange(len(listed))
        rows = DestinationRows(
            destinations=self.destinations[indexes],
            listed=listed,
            row=row,
            egress=np.ascontiguousarray(egress.reshape(-1, k)),
            default=default.ravel(),
        )
        return DestinationBlock(indexes, rows)


def class_numbers(egress_type: np.dtype[Any], classes: int) -> NDArray[np.int16]:
    """The egress class that each value of `Routes.egress` stands for.

    Args:
        egress_type: the type of the values. The largest one stands for delivery.
        classes: how many classes a switch has.

    Returns:
        int16[n], by value: the class, DELIVER or NO_ROW.
    """
    delivery = np.iinfo(egress_type).max
    # The value `delivery - 1` stands for "no route", so it is no class.
    class_count = min(classes, delivery - 1)
    number = np.full(int(delivery) + 1, NO_ROW, np.int16)
    number[:class_count] = np.arange(class_count)
    number[delivery] = DELIVER
    return number


def destination_blocks(build: Build) -> SeparateBlocks | AggregateBlocks:
    """The blocks of a build: by aggregates where `AggregateBlocks.of` allows it, else separate."""
    blocks = AggregateBlocks.of(build)
    if blocks is not None:
        return blocks
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    return SeparateBlocks(fib, build, np.flatnonzero(build.topology.endpoints))
