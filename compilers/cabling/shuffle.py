"""Assign each link a position on a trunk, so that few types of cassettes are needed.

The wires inside a cassette follow from the positions that its lanes take on its trunks. Cassettes
with the same wires are one type. So positions are chosen by rules that depend only on what a
cassette looks like, not on its number.

Words: a *half* is one end of a link at a cassette. A *connector* is the halves at one cassette of
the links to one other cassette (`connectors`). The *view* of a connector is the lanes of the
cassette that its links take, with the lanes that they lead to. Cassettes are of one *kind* if they
have the same lanes, and the same links inside. In shapes, H is the number of halves in connectors,
and K of connectors.

The rules for the trunks between two cassettes:

1. One cassette *leads*, and its lanes take positions in their own order. The other one follows. The
   cassette of the more common kind leads.
2. Of two cassettes of one kind, the one whose view comes first in order leads.
3. If both views are the same, or cassettes of a kind have different views, rule 2 would give
   cassettes of this kind different wires. Then the trunk is *reversed*: links to higher front ports
   come first, and links to lower front ports last, in mirrored order. So both cassettes can have
   the same wires.
4. Two links between front ports of the same number, such as parallel cables, have no such order.
   Then the trunk stays straight.

Example: two links lead from front ports 1 and 3 of a cassette to front ports 3 and 1 of another
one. Both views are the same, so the trunk is reversed. At both cassettes the link from front port 1
takes the first position, and that from front port 3 the last one. So both have the same wires.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compilers.cabling.cable_plan import Cables
from compilers.cabling.cassette_types import CassetteType, fewest_cassette_types, types_of_cassettes
from compilers.cabling.connectors import (
    Bools,
    Connectors,
    Halves,
    Numbers,
    number_in_group,
    other_half,
    rank_of_rows,
    rows_of_groups,
)


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle:
    """How E links run through C cassettes and T trunks. All numbers begin at 0."""

    cluster: Numbers
    """int64[C], the cluster that each cassette belongs to."""
    cassette_type: Numbers
    """int64[C], the type of each cassette, an index into `types`."""
    types: tuple[CassetteType, ...]
    """The types of cassettes."""
    fewest_types: int
    """A lower bound on the number of types, whatever positions links take."""

    cassette: Numbers
    """int64[E, 2], the cassettes at both ends of each link."""
    front_port: Numbers
    """int64[E, 2], the front ports of these cassettes."""
    lane: Numbers
    """int64[E, 2], the lanes of these front ports."""
    ribbon: Numbers
    """int64[E, 2], the ribbons from the switches to the front ports."""
    trunk: Numbers
    """int64[E], the trunk of each link; -1 for a link inside its cassette."""
    position: Numbers
    """int64[E, 2], the positions on the trunk at both ends; -1 without a trunk."""

    ends: Numbers
    """int64[T, 2], the two cassettes of each trunk."""
    rear_ports: Numbers
    """int64[T, 2], the rear ports of these cassettes."""
    is_reversed: Bools
    """bool[T], whether a trunk is reversed: position k leads to the k-th position from the end."""


def shuffle(cables: Cables, lane_key: Numbers, expansion: Numbers, room: int) -> Shuffle:
    """Assign all links to cassettes, trunks and positions.

    Args:
        cables: the links; parallel cables are several links.
        lane_key: int64[E, 2], the numbers by which the lanes of a switch are sorted, for both ends
            of each link: by the positions of ports on the face plate.
        expansion: int64[S], the number of the expansion that added each switch, 0 for the first
            fabric; its links have cassettes of their own.
        room: how many links a trunk holds.
    """
    halves = Halves.of(cables, lane_key, expansion)
    connectors = Connectors.of_halves(halves)
    directions = _Directions.of(connectors, halves)
    order = _order_in_connector(connectors, halves, directions)
    split = _split_onto_trunks(connectors, order, directions.is_reversed, room)
    trunk = _trunk_numbers(connectors, split)
    first_rear_port = _first_rear_ports(connectors, halves, order, split.trunks)
    rear_port = first_rear_port[connectors.connector] + split.part
    trunks = _Trunks.of(connectors, halves, trunk, rear_port, directions.is_reversed)
    rear_position = rear_port * room + split.position
    cassette_type, types = types_of_cassettes(connectors, halves, rear_position, room)
    # -1 for the halves of links that stay inside their cassette.
    trunk_of_half, position_of_half = np.full((2, len(halves.cassette)), -1)
    trunk_of_half[connectors.half] = trunk
    position_of_half[connectors.half] = split.position
    switch = cables.ends.ravel().astype(np.int64)
    plugs = np.stack((halves.cassette, halves.front_port, switch), axis=1)
    return Shuffle(
        cluster=halves.cluster,
        cassette_type=cassette_type,
        types=types,
        fewest_types=fewest_cassette_types(connectors, halves),
        cassette=halves.cassette.reshape(-1, 2),
        front_port=halves.front_port.reshape(-1, 2),
        lane=halves.lane.reshape(-1, 2),
        ribbon=rank_of_rows(plugs).reshape(-1, 2),
        trunk=trunk_of_half.reshape(-1, 2)[:, 0],
        position=position_of_half.reshape(-1, 2),
        ends=trunks.ends,
        rear_ports=trunks.rear_ports,
        is_reversed=trunks.is_reversed,
    )


class _Trunks(NamedTuple):
    """T trunks, as in `Shuffle`."""

    ends: Numbers
    """int64[T, 2], the two cassettes of each trunk."""
    rear_ports: Numbers
    """int64[T, 2], the rear ports of these cassettes."""
    is_reversed: Bools
    """bool[T], whether it is reversed."""

    @classmethod
    def of(
        cls,
        connectors: Connectors,
        halves: Halves,
        trunk: Numbers,
        rear_port: Numbers,
        is_reversed: Bools,
    ) -> _Trunks:
        """The trunks of all connectors.

        Args:
            connectors: all connectors.
            halves: where the halves are plugged.
            trunk: int64[H], the trunk of each half.
            rear_port: int64[H], the rear port at the cassette of each half.
            is_reversed: bool[K], whether the trunks of a connector are reversed.
        """
        ends, rear_ports = np.zeros((2, trunk.max(initial=-1) + 1, 2), np.int64)
        is_reversed_trunk = np.zeros(len(ends), np.bool_)
        # The end at the lower cassette is the first one.
        side = (connectors.near > connectors.far).astype(np.int64)[connectors.connector]
        ends[trunk, side] = halves.cassette[connectors.half]
        rear_ports[trunk, side] = rear_port
        is_reversed_trunk[trunk] = is_reversed[connectors.connector]
        return cls(ends, rear_ports, is_reversed_trunk)


class _Directions(NamedTuple):
    """In which order the links of K connectors take positions."""

    is_reversed: Bools
    """bool[K], whether the trunks of a connector are reversed."""
    is_leader: Bools
    """bool[K], whether the cassette of a connector leads."""

    @classmethod
    def of(cls, connectors: Connectors, halves: Halves) -> _Directions:
        """The directions by the rules above."""
        near, far = connectors.near, connectors.far
        kind, view = _kinds(halves), _views(connectors, halves)
        # Connectors are in the order of (near, far). In the order of (far, near), the i-th one has
        # the same links as connector i, seen from the other cassette.
        far_view = view[np.lexsort((near, far))]

        # Rules 1 and 2: which cassette leads.
        rank = _ranks_of_kinds(kind)
        is_same_kind = kind[near] == kind[far]
        has_first_view = (view < far_view) | ((view == far_view) & (near < far))
        is_leader = np.where(is_same_kind, has_first_view, rank[near] > rank[far])

        # Rule 3: where a leader would give cassettes of one kind different wires.
        has_same_views = is_same_kind & (view == far_view)
        has_several_views = _kinds_with_several_views(connectors, kind, view)
        wires_would_differ = (
            has_same_views | has_several_views[kind[near]] | has_several_views[kind[far]]
        )
        # Rule 4: which trunks have a mirrored order.
        port = halves.front_port[connectors.half]
        is_between_equal_ports = port == other_half(port)
        links_between_equal_ports = np.bincount(
            connectors.connector, is_between_equal_ports, len(near)
        )
        can_mirror = (links_between_equal_ports <= 1) & (connectors.links > 1)
        return cls(wires_would_differ & can_mirror, is_leader)


def _views(connectors: Connectors, halves: Halves) -> Numbers:
    """The rank of each connector's view among all views, int64[K]; equal views rank equal."""
    lane = halves.cassette_lane[connectors.half]
    count = len(connectors.near)
    return rank_of_rows(_rows_of_links(connectors.connector, lane, other_half(lane), count))


def _rows_of_links(group: Numbers, lane: Numbers, far_lane: Numbers, count: int) -> Numbers:
    """A row for each group of links: the lanes at both ends of each link, by the near lane.

    Args:
        group: int64[m], the group of each link.
        lane: int64[m], its lane at the near end.
        far_lane: int64[m], its lane at the far end.
        count: how many groups there are.

    Group 0 has links from lane 3 to lane 5 and from lane 1 to lane 4, group 1 from lane 2 to 0:

    >>> group, lane, far_lane = np.array([[0, 1, 0], [3, 2, 1], [5, 0, 4]])
    >>> _rows_of_links(group, lane, far_lane, 2).tolist()  # -2 fills up the short row
    [[1, 4, 3, 5], [2, 0, -2, -2]]
    """
    by_lane = np.lexsort((lane, group))
    both_lanes = np.stack((lane[by_lane], far_lane[by_lane]), axis=1)
    return rows_of_groups(np.repeat(group[by_lane], 2), both_lanes.ravel(), count)


def _kinds_with_several_views(connectors: Connectors, kind: Numbers, view: Numbers) -> Bools:
    """Whether the cassettes of a kind have different views of others of their kind: bool, by kind.

    Args:
        connectors: all connectors.
        kind: int64[C], the kind of each cassette.
        view: int64[K], of `_views`.
    """
    near = connectors.near
    within_kind = np.flatnonzero(kind[near] == kind[connectors.far])
    by_view = within_kind[np.lexsort((view[within_kind], near[within_kind]))]
    # int64[C], equal for cassettes that have the same views.
    views_of_cassette = rank_of_rows(rows_of_groups(near[by_view], view[by_view], len(kind)))
    kind_of_combination, _ = np.unique(np.stack((kind, views_of_cassette)), axis=1)
    has_several: Bools = np.bincount(kind_of_combination) > 1
    return has_several


def _kinds(halves: Halves) -> Numbers:
    """The kind of each cassette, int64[C]."""
    count, cassette = len(halves.cluster), halves.cassette
    lane, far_lane = halves.cassette_lane, other_half(halves.cassette_lane)
    by_lane = np.lexsort((lane, cassette))
    lanes = rows_of_groups(cassette[by_lane], lane[by_lane], count)
    # Of each link inside a cassette, the half with the lower lane.
    inside = np.flatnonzero((cassette == other_half(cassette)) & (lane < far_lane))
    links_inside = _rows_of_links(cassette[inside], lane[inside], far_lane[inside], count)
    return rank_of_rows(np.concatenate((lanes, links_inside), axis=1))


def _ranks_of_kinds(kind: Numbers) -> Numbers:
    """The rank of each cassette's kind, int64[C]; the kind with the most cassettes has the highest.

    Args:
        kind: int64[C], the kind of each cassette.
    """
    cassettes = np.bincount(kind)
    ascending = np.lexsort((np.arange(len(cassettes)), cassettes))
    return np.argsort(ascending)[kind]


def _order_in_connector(connectors: Connectors, halves: Halves, directions: _Directions) -> Numbers:
    """The number of each half in the order of its connector, int64[H], from 0."""
    connector, half = connectors.connector, connectors.half
    by_lane = _rank_in_connector(connector, halves.cassette_lane[half])
    straight = np.where(directions.is_leader[connector], by_lane, other_half(by_lane))

    near_front = halves.front_port[half]
    far_front = other_half(near_front)
    direction = np.sign(near_front - far_front)  # -1: the link leads to a higher front port
    low, high = np.minimum(near_front, far_front), np.maximum(near_front, far_front)
    # Links to higher front ports come first, then straight ones, then links to lower front ports in
    # mirrored order: from the other cassette the same keys give the order from the end.
    mirrored = _rank_in_connector(
        connector, direction, -direction * low, -direction * high, -direction * (half // 2)
    )
    return np.where(directions.is_reversed[connector], mirrored, straight)


class _Split(NamedTuple):
    """The links of K connectors on trunks."""

    part: Numbers
    """int64[H], which trunk of its connector each half takes."""
    position: Numbers
    """int64[H], its position on that trunk."""
    trunks: Numbers
    """int64[K], how many trunks each connector has."""


def _split_onto_trunks(
    connectors: Connectors, order: Numbers, is_reversed: Bools, room: int
) -> _Split:
    """Split connectors with more links than a trunk holds into several trunks.

    Args:
        connectors: all connectors.
        order: int64[H], of `_order_in_connector`.
        is_reversed: bool[K], whether the trunks of a connector are reversed.
        room: how many links a trunk holds.
    """
    trunks = np.zeros(len(connectors.links), np.int64)
    part, position = np.zeros((2, len(order)), np.int64)
    forms = {*zip(connectors.links.tolist(), is_reversed.tolist(), strict=True)}
    for links, reverses in sorted(forms):
        sizes = chunks(links, room, reverses)
        part_of_link = np.repeat(np.arange(len(sizes)), sizes)
        position_of_link = number_in_group(part_of_link)
        has_form = (connectors.links == links) & (is_reversed == reverses)
        trunks[has_form] = len(sizes)
        half_has_form = has_form[connectors.connector]
        part[half_has_form] = part_of_link[order[half_has_form]]
        position[half_has_form] = position_of_link[order[half_has_form]]
    return _Split(part, position, trunks)


def chunks(links: int, room: int, is_reversed: bool) -> list[int]:
    """How many links each trunk of a connector gets: about equal, and the same from either end.

    Args:
        links: how many links the connector has.
        room: how many links a trunk holds.
        is_reversed: whether the trunks are reversed. Then an odd number of links needs an odd
            number of trunks, so that the middle link stays in the middle.

    >>> chunks(10, 4, is_reversed=False), chunks(7, 4, is_reversed=True)
    ([3, 4, 3], [2, 3, 2])
    """
    count = -(-links // room)  # rounded up
    if is_reversed and links % 2 == 1 and count % 2 == 0:
        count += 1
    smallest, left_over = divmod(links, count)
    sizes = [smallest] * count
    sizes[count // 2] += left_over % 2
    for from_end in range(left_over // 2):
        sizes[from_end] += 1
        sizes[-1 - from_end] += 1
    return sizes


def _trunk_numbers(connectors: Connectors, split: _Split) -> Numbers:
    """The trunk of each half, int64[H]; trunks are numbered in the order of their cassettes."""
    connector = connectors.connector
    # Both connectors of two cassettes share their trunks: the lower cassette numbers them.
    from_lower = connectors.near < connectors.far
    numbered = np.where(from_lower, split.trunks, 0)
    number = (np.cumsum(numbered) - numbered)[connector] + split.part
    return np.where(from_lower[connector], number, other_half(number))


def _first_rear_ports(
    connectors: Connectors, halves: Halves, order: Numbers, trunks: Numbers
) -> Numbers:
    """The rear port of each connector's first trunk at its cassette, int64[K].

    At a cassette, connectors are in the order of the lanes that they take. If the first one has two
    trunks and the second one has one, they begin at rear ports 0 and 2.

    Args:
        connectors: all connectors.
        halves: where the halves are plugged.
        order: int64[H], of `_order_in_connector`.
        trunks: int64[K], how many trunks each connector has.
    """
    near, connector = connectors.near, connectors.connector
    lane = halves.cassette_lane[connectors.half]
    in_order = np.lexsort((order, connector))
    lanes_of_connectors = rows_of_groups(connector[in_order], lane[in_order], len(near))
    by_lanes = np.lexsort((connectors.far, rank_of_rows(lanes_of_connectors), near))
    trunks_before = np.cumsum(trunks[by_lanes]) - trunks[by_lanes]
    # The connectors of a cassette follow each other by lanes, as they do in `near`, which ascends.
    # The rear ports of a cassette are counted from its first connector.
    first_of_cassette = np.searchsorted(near, near)
    first_port = np.empty(len(near), np.int64)
    first_port[by_lanes] = trunks_before - trunks_before[first_of_cassette]
    return first_port


def _rank_in_connector(connector: Numbers, *keys: Numbers) -> Numbers:
    """The number of each half among those of its connector, int64[H], when sorted by keys.

    Args:
        connector: int64[H], the connector of each half.
        keys: int64[H] each, the most important first.
    """
    sorting = np.lexsort((*reversed(keys), connector))
    rank = np.empty(len(connector), np.int64)
    rank[sorting] = number_in_group(connector[sorting])
    return rank
