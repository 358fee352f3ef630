"""Where the links of a fabric are plugged at cassettes: halves of links, and connectors.

A *cassette* is a passive box: ribbons of fibres from switches end at its front ports, and inside,
each *lane* of a front port leads to a trunk behind it. A *half* is one end of a link; link e has
the halves 2e and 2e + 1. A *connector* is a set of links, not a plug: all links from one cassette
to another, as seen from one of the two. `shuffle` gives the halves of each connector positions on
trunks.

Example: switch A of cassette 0 has two links to switch B of cassette 1. They are plugged at lanes 0
and 1 of a front port of cassette 0, and at two lanes of a front port of cassette 1. Each cassette
has one connector, of two halves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables
from compilers.wiring.hardware import Hardware

Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]
FILLER = -2
"""Fills up short rows. It is less than every value, so that a short row sorts before a longer one
that begins with the same values."""


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Where the halves of E links are plugged, at the front ports of C cassettes."""

    cassette: Numbers
    """int64[2E], the cassette of each half."""
    front_port: Numbers
    """int64[2E], the front port of each half; front ports are in the order of rack units."""
    lane: Numbers
    """int64[2E], the lane of each half at its front port."""
    width: int
    """The lanes of a front port: as many as the switch with the most links uses."""
    cluster: Numbers
    """int64[C], the cluster of each cassette."""

    @classmethod
    def of(cls, cables: Cables, lane_key: Numbers, expansion: Numbers) -> Halves:
        """Plug each half at a lane of a front port of the cassette for its cluster and expansion.

        Args:
            cables: the links; parallel cables are several links.
            lane_key: int64[E, 2], the numbers by which the lanes of a switch are sorted, for both
                ends of each link: by the positions of ports on the face plate.
            expansion: int64[S], the number of the expansion that added each switch; 0 for the first
                fabric. Links that an expansion added have cassettes of their own.
        """
        hardware = cables.hardware
        # For each half, its switch, and the expansion that added its link. That is the expansion of
        # the link's newer switch.
        switch = cables.ends.ravel().astype(np.int64)
        added_by = np.repeat(expansion[cables.ends].max(axis=1), 2)

        # Cassettes are the pairs of an expansion and a cluster that occur, in this order.
        clusters = len(hardware.cluster_names)
        expansion_and_cluster = clusters * added_by + hardware.cluster[switch].astype(np.int64)
        cassettes, cassette = np.unique(expansion_and_cluster, return_inverse=True)

        lane = _lanes(cables, lane_key, switch, added_by)
        return cls(
            cassette=cassette.ravel(),
            front_port=_front_ports(hardware)[switch],
            lane=lane,
            width=int(lane.max(initial=0)) + 1,
            cluster=cassettes % clusters,
        )

    @property
    def cassette_lane(self) -> Numbers:
        """int64[2E], the number of each half's lane among all lanes of its cassette."""
        return self.front_port * self.width + self.lane


@dataclass(frozen=True, slots=True, eq=False)
class Connectors:
    """The K connectors of all cassettes, and the H halves whose link leaves its cassette."""

    near: Numbers
    """int64[K], ascending, the cassette that each connector belongs to."""
    far: Numbers
    """int64[K], the cassette that each connector leads to."""
    links: Numbers
    """int64[K], how many links each connector has."""
    half: Numbers
    """int64[H], the numbers of these halves; both halves of a link follow each other."""
    connector: Numbers
    """int64[H], the connector that each of these halves belongs to."""

    @classmethod
    def of_halves(cls, halves: Halves) -> Connectors:
        """The connectors between the cassettes of some halves."""
        far_cassette = other_half(halves.cassette)
        half = np.flatnonzero(halves.cassette != far_cassette)
        # A pair of cassettes as one number, which `divmod` takes apart again.
        count = len(halves.cluster)
        pair = halves.cassette[half] * count + far_cassette[half]
        pairs, connector = np.unique(pair, return_inverse=True)
        near, far = np.divmod(pairs, count)
        links = np.bincount(connector, minlength=len(pairs))
        return cls(near, far, links, half, connector.ravel())


def _front_ports(hardware: Hardware) -> Numbers:
    """The front port of each switch, int64[S]: its number in its cluster by rack, then by unit."""
    by_unit = np.lexsort((hardware.unit, hardware.rack, hardware.cluster))
    front_port = np.empty(len(by_unit), np.int64)
    front_port[by_unit] = number_in_group(hardware.cluster[by_unit])
    return front_port


def _lanes(cables: Cables, lane_key: Numbers, switch: Numbers, added_by: Numbers) -> Numbers:
    """The lane of each half, int64[2E]: its number in its ribbon by key, then by socket.

    A *ribbon* is all halves at one switch whose links one expansion added.

    Args:
        cables: the links.
        lane_key: int64[E, 2], as in `Halves.of`.
        switch: int64[2E], the switch of each half.
        added_by: int64[2E], the expansion that added the link of each half.
    """
    by_key = np.lexsort((np.repeat(cables.socket, 2), lane_key.ravel(), added_by, switch))
    ribbon = rank_of_rows(np.stack((switch, added_by), axis=1))
    lane = np.empty(len(switch), np.int64)
    lane[by_key] = number_in_group(ribbon[by_key])
    return lane


def other_half(values: Numbers) -> Numbers:
    """The value of the other half of each link, for values in the order of halves.

    >>> other_half(np.array([1, 2, 3, 4])).tolist()
    [2, 1, 4, 3]
    """
    return values.reshape(-1, 2)[:, ::-1].ravel()


def number_in_group(group: NDArray[np.integer]) -> Numbers:
    """The number of each item in its group, from 0; the items of a group follow each other.

    >>> number_in_group(np.array([5, 5, 5, 2, 2])).tolist()
    [0, 1, 2, 0, 1]
    """
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    return np.arange(len(group)) - np.repeat(starts, np.diff([*starts, len(group)]))


def rows_of_groups(group: Numbers, value: Numbers, count: int) -> Numbers:
    """A row of values for each group, int64[count, n]; short rows are filled up with FILLER.

    Args:
        group: int64[m], the group of each value; the values of a group follow each other.
        value: int64[m], the values.
        count: how many groups there are.
    """
    column = number_in_group(group)
    table = np.full((count, int(column.max(initial=0)) + 1), FILLER)
    table[group, column] = value
    return table


def rank_of_rows(rows: Numbers) -> Numbers:
    """The rank of each row among the different rows, int64[n].

    >>> rank_of_rows(np.array([[3, 1], [2, 9], [3, 1]])).tolist()
    [1, 0, 1]
    """
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()
