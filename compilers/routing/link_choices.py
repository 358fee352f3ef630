"""What the neighbour at each link can do for the packets of each egress class, by a search.

The *choices* of a destination at a switch are three sets of links (`LinkChoices`). Let u be the
switch, v its next hop and r another neighbour:

- r is *loop-free* if its path does not come to u again;
- r *repairs* if it is loop-free and its path does not come to v, which may be down;
- r is an *alternate* if it may share the traffic that enters at u. It is loop-free, or any r where
  the balance marks packets, and meets the conditions that the balance adds (`Forwarding`).

For example, in the ring 0-1-2-3-0 let u = 0 and r = 3. Towards d = 2 let v = 1: the path of r is
3-2, so r repairs. Towards d = 1, which is v itself, the path of r is 3-0-1 or 3-2-1, as the tables
say. If it is 3-0-1, r is not loop-free. If it is 3-2-1, r repairs the link 0-1; that no path to v
avoids v is no matter.

Where packets are shared at every hop, the path of r is any shortest one. If u is a next hop of r, a
packet from u makes a *U-turn* at r: r does not send it back, but to the first usable switch w of a
list of candidates (`ClassPaths.u_turn`). Then r is loop-free if there is such a w, and the paths
that have to avoid v are those from w.

`split_by_choices` takes minimal tables, and splits their classes so that all destinations of a
class have the same next hop and the same choices. `compilers.routing.choose` calls it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from compilers.routing.class_paths import Bits, ClassPaths, Numbers, group_equal_keys
from compilers.routing.split_classes import longest_prefix_rows
from compilers.spec.forwarding import Forwarding
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables, empty_egress, local, no_route


class LinkChoices(NamedTuple):
    """What the neighbour at each link can do.

    The fields are bool[S, C, K], by switch, class and link; or for one switch bool[K, D], by link
    and destination.
    """

    repair: Bits
    """Whether the neighbour repairs: its path meets neither this switch nor the next hop."""
    alternate: Bits
    """Whether the neighbour may share the traffic that enters here."""
    loop_free: Bits
    """Whether the neighbour's path does not lead back to this switch."""

    @classmethod
    def of_stack(cls, links: Bits) -> LinkChoices:
        """The choices as views of one array with three sets of links, bool[3, …]."""
        repair, alternate, loop_free = links
        return cls(repair, alternate, loop_free)


@dataclass(frozen=True, slots=True, eq=False)
class _SplitRows:
    """The R rows of a switch, with classes by next hop and choices."""

    row: Numbers
    """int64[R], the rows."""
    new_class: Numbers
    """int64[R], the new class of each row."""
    port: Numbers
    """int32[C], the minimal port of each class."""
    links: Bits
    """bool[R, 3, K], the choices of each row, stacked in the order of `LinkChoices`."""


def split_by_choices(paths: ClassPaths, forwarding: Forwarding) -> tuple[ClassPaths, LinkChoices]:
    """Split the classes so that all rows of a class have the same next hop and choices.

    The first class of each next hop keeps its number.

    Returns:
        The paths with the new classes, and the choices of each class.
    """
    tables, most_links = paths.tables, paths.wiring.far.shape[1]
    rows_of = {switch: _split_rows(paths, switch, forwarding) for switch in paths.cabled_switches()}
    most_classes = max(len(rows.port) for rows in rows_of.values())
    egress = empty_egress(tables.switches, tables.routes.egress.shape[1], most_classes)
    egress[...] = no_route(egress)
    port = np.zeros((tables.switches, most_classes), np.int32)
    choices_of_class = np.zeros((3, tables.switches, most_classes, most_links), np.bool_)
    for switch, rows in rows_of.items():
        egress[switch, rows.row] = rows.new_class
        egress[switch, tables.routes.egress[switch] == local(tables.routes.egress)] = local(egress)
        port[switch, : len(rows.port)] = rows.port
        by_choice = rows.links.transpose(1, 0, 2)
        choices_of_class[:, switch, rows.new_class, : by_choice.shape[2]] = by_choice
    routes = replace(tables.routes, egress=egress)
    split = Tables(routes=routes, classes=Classes.minimal(port))
    class_of_destination = Fib.of(split, paths.wiring.far_by_port()).egress(paths.destinations)
    new_paths = replace(
        paths, tables=split, egress_class=np.ascontiguousarray(class_of_destination)
    )
    return new_paths, LinkChoices.of_stack(choices_of_class)


def _split_rows(paths: ClassPaths, switch: int, forwarding: Forwarding) -> _SplitRows:
    """Return the rows of a switch with their classes and choices.

    The choices of a row are those that all destinations of the row have. Rows with the same old
    class and the same choices form a new class.
    """
    old_ports, remote = paths.classes.port[switch], paths.remote_columns(switch)
    row_of_destination, _ = longest_prefix_rows(paths.tables.routes, switch, paths.destinations)
    rows = group_equal_keys(row_of_destination[remote])
    # bool[3, K, n], the choices of the n destinations, sorted by their rows.
    of_destinations = np.stack(_choices_at(paths, switch, forwarding))[..., remote[rows.order]]
    links = np.logical_and.reduceat(of_destinations, rows.starts, axis=2).transpose(2, 0, 1)
    if forwarding.every_hop:  # a class with several next hops needs no other repair
        of_rows = LinkChoices.of_stack(links.transpose(1, 0, 2))
        has_several_hops = of_rows.alternate.any(axis=1)
        of_rows.repair[has_several_hops] = of_rows.loop_free[has_several_hops] = False
    old_class = paths.tables.routes.egress[switch, rows.keys]
    # Rows with equal keys, which are an old class and its choices as bits, form a new class.
    keys = np.column_stack((old_class, np.packbits(links.reshape(len(rows.keys), -1), axis=1)))
    distinct_keys, key_of_row = np.unique(keys, axis=0, return_inverse=True)
    # By distinct key: the first one of each old class keeps its number, and the others get numbers
    # after all old classes. For example, keys of the old classes 0, 0, 1, 1 get 0, 2, 1, 3.
    old_number = distinct_keys[:, 0].astype(np.int64)
    is_first = np.r_[True, old_number[1:] != old_number[:-1]]
    new_number = np.where(is_first, old_number, len(old_ports) - 1 + np.cumsum(~is_first))
    return _SplitRows(
        row=rows.keys,
        new_class=new_number[key_of_row.ravel()],
        port=np.concatenate((old_ports, old_ports[old_number[~is_first]])),
        links=links,
    )


def _choices_at(paths: ClassPaths, switch: int, forwarding: Forwarding) -> LinkChoices:
    """Return what each neighbour of a switch can do for packets to each destination, bool[K, D]."""
    minimal = paths.walk(np.array([switch]))
    # The path of a packet that the switch sends to a neighbour, by the switch after each link.
    steps = paths.walk(paths.neighbours(switch))
    next_hop = minimal[1]
    loop_free, avoids_next_hop = _switches_avoided(paths, switch, next_hop, steps)
    # A next hop that is the destination cannot be avoided: there the link to it is repaired.
    repair = loop_free & (avoids_next_hop | (next_hop == paths.destinations))
    alternate = _alternates(paths, forwarding, loop_free, minimal, steps)
    return LinkChoices(repair=repair, alternate=alternate, loop_free=loop_free)


def _switches_avoided(
    paths: ClassPaths, switch: int, next_hop: Numbers, steps: list[Numbers]
) -> tuple[Bits, Bits]:
    """Return whether the path of each neighbour avoids this switch, and the next hop.

    Args:
        paths: the minimal paths.
        switch: the switch u of the module's text.
        next_hop: int32[1, D], its next hop v, which itself does not count as loop-free.
        steps: the paths of its neighbours (`ClassPaths.walk`).

    Returns:
        bool[K, D] twice: whether a neighbour is loop-free; and whether its path avoids v.
    """
    neighbours = paths.neighbours(switch)
    is_other = neighbours != next_hop
    if not paths.shared_at_every_hop:
        loop_free = is_other & ~paths.meets(neighbours, switch, steps)
        return loop_free, ~paths.meets(neighbours, next_hop, steps)
    turn = paths.u_turn(switch, neighbours)
    loop_free = is_other & (~turn.is_returned | (turn.next_switch >= 0))
    goes_to = np.where(turn.is_returned, turn.next_switch, neighbours)
    return loop_free, ~paths.meets(goes_to, next_hop)


def _alternates(
    paths: ClassPaths,
    forwarding: Forwarding,
    loop_free: Bits,
    minimal: list[Numbers],
    steps: list[Numbers],
) -> Bits:
    """Return which neighbours of a switch may share the traffic that enters there, bool[K, D].

    Args:
        paths: the minimal paths.
        forwarding: the conditions of the balance.
        loop_free: bool[K, D], the neighbours that are loop-free.
        minimal: the paths of the switch (`ClassPaths.walk`).
        steps: the paths of its neighbours.
    """
    next_hop = minimal[1]
    if forwarding.marks:
        # Any other neighbour, even one whose path leads back: it spreads marked packets.
        alternate: Bits = np.broadcast_to(steps[0] != next_hop, loop_free.shape)
    elif forwarding.bounces:
        alternate = loop_free
    else:
        # A packet for an adjacent switch takes the minimal path only (PolarFly paper, §VII).
        alternate = loop_free & (next_hop != paths.destinations)
    if forwarding.alternates == "shortest":
        links_left = np.sum([switches != paths.destinations for switches in steps], axis=0)
        minimal_links = np.sum([switches != paths.destinations for switches in minimal], axis=0)
        alternate = alternate & (links_left < minimal_links)
    if forwarding.disjoint:
        alternate = alternate & ~_shares_link(steps, minimal)
    return alternate


def _shares_link(walks: list[Numbers], minimal: list[Numbers]) -> Bits:
    """Whether walks cross a link of the minimal path, in either direction, bool[K, D]."""
    shared: Bits = np.zeros(walks[0].shape, np.bool_)
    for a, b in pairwise(walks):
        for u, v in pairwise(minimal):
            same = (a == u) & (b == v) | (a == v) & (b == u)
            shared |= same & (a != b)
    return shared
