"""Groups the links of each switch by rack, so that links to one rack get ports of one module.

`compilers.wiring.port_assignment` gives the ports, group by group. In shapes, S is the number of
switches, K the most links of a switch, and G the most groups of a switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PortGroups:
    """The order in which the links of S switches take ports."""

    order: NDArray[np.int64]
    """int64[S, K]: the links of each switch, group by group, the largest first."""
    sizes: NDArray[np.int32]
    """int32[S, G]: the links in each group, 0 beyond the last."""
    is_one_module: bool
    """Whether a switch counts as a single module, so that groups need not fit into one."""
    spread_number: NDArray[np.int32] | None = None
    """int32[S, K]: the numbers by which links are spread over modules, whatever their group
    (`compilers.wiring.module_spread`); None to fill module after module."""

    @classmethod
    def single(cls, far: NDArray[np.int32]) -> PortGroups:
        """Return all links of a switch as one group, in their order."""
        links = np.broadcast_to(np.arange(far.shape[1]), far.shape)
        return cls(
            links, np.count_nonzero(far >= 0, axis=1)[:, None].astype(np.int32), is_one_module=True
        )

    @classmethod
    def of(
        cls, far: NDArray[np.int32], rack_of_vertex: NDArray[np.int32], place: NDArray[np.int64]
    ) -> PortGroups:
        """Group the links of each switch by the rack of the vertex at the other end.

        The switch below has links to vertices 1, 2 and 3, of which 1 and 3 are in rack 0. So links
        0 and 2 are its first group, and link 1 its second one.

        >>> far, rack = np.array([[1, 2, 3]], np.int32), np.array([1, 0, 1, 0], np.int32)
        >>> groups = PortGroups.of(far, rack, place=np.arange(4))
        >>> groups.order.tolist(), groups.sizes.tolist()
        ([[0, 2, 1]], [[2, 1, 0]])

        Args:
            far: int32[S, K], the neighbour at each link, -1 beyond the last.
            rack_of_vertex: int32[S], the rack of each vertex.
            place: int64[S], the order of vertices within a rack.
        """
        present = far >= 0
        no_rack = np.int32(np.iinfo(np.int32).max)
        rack_of_link = np.where(present, rack_of_vertex[far], no_rack)
        # Sort the links of each switch by rack, and number its groups from 0. All are [S, K].
        ordered = np.sort(rack_of_link, axis=1)
        starts = np.ones(far.shape, bool)
        starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        number_in_order = np.cumsum(starts, axis=1) - 1
        # The size of each group by its number. A link beyond the last adds nothing.
        switch = np.arange(len(far))[:, None]
        sizes = np.zeros(far.shape, np.int32)
        group_index = np.broadcast_to(switch, far.shape), number_in_order
        np.add.at(sizes, group_index, ordered != no_rack)
        # Sorting twice gives the place of each link in that order, and so its group's number.
        rank = np.argsort(np.argsort(rack_of_link, axis=1, kind="stable"), axis=1, kind="stable")
        size_of_group = sizes[switch, number_in_order[switch, rank]]
        place_of_link = np.where(present, place[far], 0)
        order = np.lexsort((place_of_link, rack_of_link, -size_of_group, ~present), axis=1)
        return cls(order, np.sort(sizes, axis=1)[:, ::-1], is_one_module=False)

    def sizes_without(self, switch: int, pinned: Mapping[int, int]) -> list[int]:
        """Return the sizes of a switch's groups, without the links whose ports are fixed."""
        ends = np.cumsum(self.sizes[switch])
        position = {link: i for i, link in enumerate(self.order[switch].tolist())}
        sizes = self.sizes[switch].copy()
        for link in pinned:
            # The group of a link is the first one that ends behind its position.
            sizes[np.searchsorted(ends, position[link], side="right")] -= 1
        return [int(size) for size in sizes if size]


def alike_rows(rows: NDArray[np.integer]) -> list[tuple[list[int], NDArray[np.int64]]]:
    """Return the different rows of a table, int[N, M], each with the indexes of the rows like it.

    The rows are in the order in which they first appear. A dictionary finds equal rows, as sorting
    wide rows takes longer than everything else in the wiring.

    >>> [(row, indexes.tolist()) for row, indexes in alike_rows(np.array([[1, 2], [3, 4], [1, 2]]))]
    [([1, 2], [0, 2]), ([3, 4], [1])]
    """
    number_of_row: dict[bytes, int] = {}
    number = np.array(
        [number_of_row.setdefault(row.tobytes(), len(number_of_row)) for row in rows], np.int64
    )
    indexes = [np.flatnonzero(number == n) for n in range(len(number_of_row))]
    return [(rows[rows_alike[0]].tolist(), rows_alike) for rows_alike in indexes]
