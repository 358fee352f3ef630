"""Alternates and repair by search, for fabrics where no construction is known.

At switch u, let v be the next hop towards d. A neighbour r of u *repairs* d where the minimal path
from r to d meets neither u nor v, so r helps whether the link u–v or the switch v has failed. It is
an *alternate* for d if its path does not meet u; *edge-disjoint*, if it shares no link with the
minimal path either. Rows of a switch with the same next hop, alternates and repairs form one class,
so that no state per destination is needed. In PolarStar that makes 4 to 6 classes per link.

Where too few neighbours repair, one whose own next hop is u can still help: it *bounces* the packet
to a neighbour that repairs u for it. Then comes a neighbour whose path meets v: it helps if only
the link has failed, or if v repairs in turn. The last choice is one that bounces, and meets v then.

With bounced ways (`Policy.bounces`) a destination next to u has alternates, too: neighbours whose
path does not meet u, and those that bounce a packet of u to one that repairs u for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternates import spread
from compilers.routing.port_ranking import in_turn, ranked
from compilers.routing.split_classes import deciding_rows
from compilers.spec.policy import Policy
from compilers.tables.intermediate_form import Classes, Tables, empty_egress, local, no_route
from compilers.tables.walk import Walker
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

REPAIR_ORDER = 2
Bits = NDArray[np.bool_]
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class SearchedPaths:
    """Minimal paths of S switches towards the D switches that have hosts.

    tables, wiring: their source. ends: int64[D], the destinations. after: int32[S, D], the next
    switch, or the destination itself once reached. egress: [S, D], the class. depth: the links of
    the longest path.
    """

    tables: Tables
    wiring: Wiring
    ends: NDArray[np.int64]
    after: NDArray[np.int32]
    egress: Numbers
    depth: int

    @classmethod
    def of(cls, tables: Tables, wiring: Wiring, topology: Topology) -> SearchedPaths:
        """The paths of tables that reach every destination."""
        ends = np.flatnonzero(topology.endpoints)
        walker = Walker.of(tables, wiring.cables())
        after, egress = walker.next_switch(ends), np.ascontiguousarray(walker.egress(ends))
        # A packet at a switch without links stays there.
        after = np.where(after < 0, np.arange(len(after), dtype=np.int32)[:, None], after)
        return cls(tables, wiring, ends, after, egress, topology.diameter)

    def walk(self, first: Numbers) -> list[Numbers]:
        """The switch of each packet after 0, 1, … `depth` links from `first`, int32[…, D] each."""
        column = np.arange(len(self.ends))
        steps = [np.broadcast_to(first, (*first.shape[:-1], len(column)))]
        for _ in range(self.depth):
            steps.append(self.after[steps[-1], column])
        return steps

    def near(self, switch: int) -> Numbers:
        """int32[K, 1]: the neighbours of a switch."""
        far = self.wiring.far[switch]
        near: Numbers = far[far >= 0][:, None]
        return near

    def present(self) -> list[int]:
        """The switches that have links."""
        present: list[int] = np.flatnonzero(self.wiring.far[:, 0] >= 0).tolist()
        return present

    def routed(self, switch: int) -> NDArray[np.int64]:
        """int64[n]: the columns of the destinations that the switch has a link towards."""
        return np.flatnonzero(self.after[switch] != switch)

    def rows(self, switch: int) -> Numbers:
        """int64[D]: the row that matches each destination at the switch."""
        return deciding_rows(self.tables.routes, switch, self.ends)[0]


def with_choices(tables: Tables, wiring: Wiring, topology: Topology, policy: Policy) -> Tables:
    """Tables with classes by next hop and choices, with protection, bounce and alternates.

    Args:
        tables: minimal, with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        topology: for the switches with hosts and the diameter.
        policy: protection and balancing.
    """
    paths = SearchedPaths.of(tables, wiring, topology)
    split, repair, alternate, away = _split(paths, policy)
    paths = SearchedPaths.of(split, wiring, topology)
    if policy.protects:
        split = _protected(paths, repair, away)
    elif policy.bounces:
        bounce = ranked(repair, split.classes.port, wiring, 1)
        split = replace(split, classes=replace(split.classes, bounce=bounce))
    paths = replace(paths, tables=split)
    if policy.bounces:
        alternate |= _bounced_ways(paths, alternate.shape)
    if policy.balances:
        split = _balanced(paths, alternate, policy)
    return split


def _split(paths: SearchedPaths, policy: Policy) -> tuple[Tables, Bits, Bits, Bits]:
    """Tables with the classes split by choices, and the three `_choices`, bool[S, C, K] each."""
    tables, links = paths.tables, paths.wiring.far.shape[1]
    present = paths.present()
    parts = [_parts(paths, switch, policy) for switch in present]
    most = max(len(part.port) for part in parts)
    egress = empty_egress(tables.switches, tables.routes.egress.shape[1], most)
    egress[...] = no_route(egress)
    port = np.zeros((tables.switches, most), np.int32)
    choices = np.zeros((3, tables.switches, most, links), np.bool_)
    for switch, part in zip(present, parts, strict=True):
        egress[switch, part.row] = part.number
        egress[switch, tables.routes.egress[switch] == local(tables.routes.egress)] = local(egress)
        port[switch, : len(part.port)] = part.port
        choices[:, switch, : len(part.port), : part.choices.shape[2]] = part.choices
    routes = replace(tables.routes, egress=egress)
    return Tables(routes=routes, classes=Classes.minimal(port)), *choices


@dataclass(frozen=True, slots=True, eq=False)
class _SearchParts:
    """The classes of a switch: rows and their class numbers; port and bool[3, C, K] by class."""

    row: Numbers
    number: Numbers
    port: Numbers
    choices: Bits


def _parts(paths: SearchedPaths, switch: int, policy: Policy) -> _SearchParts:
    """One class a next hop and set of choices; the first of each next hop keeps its number."""
    choices = _choices(paths, switch, policy)
    links, old = len(choices) // 3, paths.tables.classes.port[switch]
    away = paths.routed(switch)
    row, starts, order = _grouped(paths.rows(switch)[away])
    common = np.logical_and.reduceat(choices[:, away[order]], starts, axis=1).T
    before = paths.tables.routes.egress[switch, row]
    keys = np.column_stack((before, np.packbits(common, axis=1)))
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    base = distinct[:, 0].astype(np.int64)
    first = np.r_[True, base[1:] != base[:-1]]
    number = np.where(first, base, len(old) - 1 + np.cumsum(~first))
    port = np.concatenate((old, old[base[~first]]))
    number = number[inverse.ravel()]
    by_class = np.zeros((3, len(port), links), np.bool_)
    by_class[:, number] = common.reshape(len(common), 3, links).transpose(1, 0, 2)
    return _SearchParts(row, number, port, by_class)


def _grouped(keys: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The distinct keys, the start of each in sorted order, and that order."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return ordered[starts], starts, order


def _choices(paths: SearchedPaths, switch: int, policy: Policy) -> Bits:
    """bool[3K, D], by link: the neighbour repairs, is an alternate, does not send it back."""
    minimal = paths.walk(np.array([switch]))
    near = paths.near(switch)
    steps = paths.walk(near)
    hop = minimal[1]
    direct = hop == paths.ends
    away = near != hop
    avoids = np.ones_like(away)
    for step in steps:
        away &= step != switch
        avoids &= (step != hop) | direct
    # An adjacent switch is reached minimally only (PolarFly paper, §VII), but for bounced ways.
    alternate = away if policy.bounces else away & ~direct
    if policy.marks:  # whatever comes back: the next switch sends it on by a link that serves
        alternate = np.broadcast_to(near != hop, away.shape)
    if policy.shortest:
        alternate = alternate & (_links(steps, paths.ends) < _links(minimal, paths.ends))
    if policy.edge_disjoint:
        for ours in pairwise(steps):
            for theirs in pairwise(minimal):
                alternate = alternate & ~_same_link(ours, theirs)
    return np.concatenate((away & avoids, alternate, away))


def _links(steps: list[Numbers], ends: NDArray[np.int64]) -> Numbers:
    """int[…, D]: how many links it is to each destination."""
    links: Numbers = np.count_nonzero([step != ends for step in steps], axis=0)
    return links


def _same_link(ours: tuple[Numbers, Numbers], theirs: tuple[Numbers, Numbers]) -> Bits:
    forth = (ours[0] == theirs[0]) & (ours[1] == theirs[1])
    back = (ours[0] == theirs[1]) & (ours[1] == theirs[0])
    same: Bits = (forth | back) & (ours[0] != ours[1])
    return same


def _protected(paths: SearchedPaths, repair: Bits, away: Bits) -> Tables:
    """Tables with protection by ports that repair, then ports whose neighbour bounces, then ports
    whose neighbour does not send the packet back, then those whose neighbour bounces it so that it
    does not come back. Ports that repair are also the bounce.

    Where a class has none of the first two, as above the leaves of a tree, packets that bounce go
    first to ports whose paths avoid the second switch from here: what the other end has lost.
    """
    tables, wiring = paths.tables, paths.wiring
    minimal = tables.classes.port
    order = bounce = ranked(repair, minimal, wiring, REPAIR_ORDER)
    bounced, turned = _turning(paths, repair.shape, bounce)
    if (_used(paths, repair.shape) & ~(repair | bounced).any(axis=2)).any():
        beyond = _beyond_next(paths, repair.shape)
        bounce = ranked(repair, minimal, wiring, REPAIR_ORDER, before=beyond)
        bounced, turned = _turning(paths, repair.shape, bounce)
    for more in (bounced & ~repair, away & ~repair, turned & ~(bounced | away | repair)):
        order = in_turn(order, ranked(more, minimal, wiring, REPAIR_ORDER))
    return replace(tables, classes=replace(tables.classes, protection=order, bounce=bounce))


def _used(paths: SearchedPaths, shape: tuple[int, ...]) -> Bits:
    """bool[S, C]: the classes that destinations have."""
    used = np.zeros(shape[:2], np.bool_)
    for switch in paths.present():
        used[switch, paths.egress[switch, paths.routed(switch)]] = True
    return used


def _turning(paths: SearchedPaths, shape: tuple[int, ...], bounce: NDArray[np.uint16]) -> Bits:
    """bool[2, S, C, K]: links whose neighbour bounces packets past the next hop, or past here."""
    found = np.zeros((2, *shape), np.bool_)
    for switch in paths.present():
        for which, only_link in enumerate((False, True)):
            serves = _bounced(paths, switch, bounce, only_link)
            numbers, links = _by_class(paths, switch, serves)
            found[which, switch, numbers, : links.shape[1]] = links
    return found


def _beyond_next(paths: SearchedPaths, shape: tuple[int, ...]) -> Bits:
    """bool[S, C, K]: links whose neighbour's path avoids the second switch on the way from here."""
    found = np.zeros(shape, np.bool_)
    for switch in paths.present():
        second = paths.after[paths.after[switch], np.arange(len(paths.ends))]
        avoids = np.ones((len(paths.near(switch)), len(second)), np.bool_)
        for step in paths.walk(paths.near(switch)):
            avoids &= (step != second) | (second == paths.ends)
        numbers, links = _by_class(paths, switch, avoids)
        found[switch, numbers, : links.shape[1]] = links
    return found


def _bounced(
    paths: SearchedPaths, switch: int, bounce: NDArray[np.uint16], only_link: bool = False
) -> Bits:
    """bool[K, D]: links whose neighbour bounces a packet of this switch so that it arrives.

    Past the next hop, or with `only_link` past this switch, so that only the link is avoided.
    """
    near = paths.near(switch)
    cables = paths.wiring.cables()
    port = bounce[near, np.minimum(paths.egress[near[:, 0]], bounce.shape[1] - 1), 0]
    over = cables[near, port]
    back = paths.after[near[:, 0]] == switch
    hop = paths.after[switch]
    serves: Bits = back & (port > 0) & (near != hop)
    for step in paths.walk(over):
        serves &= step != switch if only_link else (step != hop) | (hop == paths.ends)
    return serves


def _bounced_ways(paths: SearchedPaths, shape: tuple[int, ...]) -> Bits:
    """bool[S, C, K]: links to neighbours that bounce what is for another neighbour, so it arrives.

    Args:
        paths: of tables with bounce ports.
        shape: S, C, K.
    """
    found = np.zeros(shape, np.bool_)
    for switch in paths.present():
        direct = paths.after[switch] == paths.ends
        bounced = _bounced(paths, switch, paths.tables.classes.bounce) & direct
        numbers, links = _by_class(paths, switch, bounced)
        found[switch, numbers, : links.shape[1]] = links
    return found


def _by_class(paths: SearchedPaths, switch: int, bits: Bits) -> tuple[Numbers, Bits]:
    """The classes of a switch, and bool[C, K]: whether `bits` hold for all destinations of each."""
    away = paths.routed(switch)
    number, starts, order = _grouped(paths.egress[switch, away])
    return number, np.logical_and.reduceat(bits[:, away[order]], starts, axis=1).T


def _balanced(paths: SearchedPaths, alternate: Bits, policy: Policy) -> Tables:
    """Tables with alternates and weights."""
    links = np.packbits(alternate, axis=2)
    classes = spread(paths.tables.classes, paths.wiring, links, policy.minimal_share)
    return replace(paths.tables, classes=classes)
