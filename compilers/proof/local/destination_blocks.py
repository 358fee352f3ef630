"""The destinations of a build in blocks, each with the egress classes of all switches for it.

The local proof takes a block at a time. Usually a block is some destinations, each with a row of
its own in every switch (`SeparateBlocks`). In a fabric with aggregates a block is the destinations
of one aggregate (`AggregateBlocks`). Most switches have one row for all destinations of such a
block, and this row is proved only once.

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
"""The destinations in a block of `SeparateBlocks`. The arrays of a block have an entry for each
switch and each of them, so this bounds their size."""


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
        """The block with this number; every switch is listed in it."""
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

    k consecutive switches are a *group*: they have the same aggregate as destinations, and rows for
    the same R prefixes as switches. There are G groups.
    """

    destinations: NDArray[np.int64]
    """int64[S], the vertices, all of which have hosts."""
    aggregate: NDArray[np.int32]
    """int32[G], the aggregate prefix of each group."""
    classes: NDArray[np.int16]
    """int16[G·R, k], by *table row* (a group and a row of its switches) the class of each switch of
    the group. DROP stands for a switch that has no such row."""
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
        """The numbers of the table rows for a prefix."""
        if not 0 <= prefix < len(self.first_of_prefix) - 1:
            return self.rows_by_prefix[:0]
        return self.rows_by_prefix[self.first_of_prefix[prefix] : self.first_of_prefix[prefix + 1]]

    def block(self, number: int) -> DestinationBlock:
        """The block with this number, which is that of its aggregate's group.

        The switches of a group are listed if it has a row for one of the destinations.
        """
        groups, k = len(self.aggregate), self.classes.shape[1]
        rows_of_group = len(self.classes) // groups
        indexes = slice(number * k, (number + 1) * k)
        default = np.full((groups, k), DROP, np.int16)  # by switch, the class of the aggregate
        of_aggregate = self._table_rows_for(int(self.aggregate[number]))
        default[of_aggregate // rows_of_group] = self.classes[of_aggregate]
        of_destinations = [self._table_rows_for(d) for d in range(indexes.start, indexes.stop)]
        listed_groups = np.unique(np.concatenate(of_destinations) // rows_of_group)
        # The class by listed group, switch of the group and destination.
        egress = np.repeat(default[listed_groups][:, :, None], k, axis=2)
        for j, table_rows in enumerate(of_destinations):
            # A row for the destination comes before that for the aggregate. DROP: this switch of
            # the group has no row for the destination, so the class of the aggregate stays.
            own_classes = self.classes[table_rows]
            group = np.searchsorted(listed_groups, table_rows // rows_of_group)
            egress[group, :, j] = np.where(own_classes == DROP, egress[group, :, j], own_classes)
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
        int16[n], by value: the class; DELIVER or DROP.
    """
    delivery = np.iinfo(egress_type).max
    # The value below it stands for "no route", so it is no class.
    class_count = min(classes, delivery - 1)
    number = np.full(int(delivery) + 1, DROP, np.int16)
    number[:class_count] = np.arange(class_count)
    number[delivery] = DELIVER
    return number


def destination_blocks(build: Build) -> SeparateBlocks | AggregateBlocks:
    """The blocks of a build, by aggregates if it has some."""
    blocks = AggregateBlocks.of(build)
    if blocks is not None:
        return blocks
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    return SeparateBlocks(fib, build, np.flatnonzero(build.topology.endpoints))
