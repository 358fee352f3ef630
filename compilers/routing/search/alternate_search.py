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
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternates import spread
from compilers.routing.port_ranking import in_turn, ranked
from compilers.routing.search.searched_paths import SearchedPaths
from compilers.spec.policy import Policy
from compilers.tables.intermediate_form import Classes, Tables, empty_egress, local, no_route
from compilers.topology.labelled_graph import Topology
from compilers.wiring.shared_risk import several_modules
from compilers.wiring.wiring import Wiring

REPAIR_ORDER = 2
TURNS = 2
"""Rounds in which classes with several ways learn what packets that they send back do elsewhere."""
Bits = NDArray[np.bool_]
Numbers = NDArray[Any]


def with_choices(
    tables: Tables,
    wiring: Wiring,
    topology: Topology,
    policy: Policy,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Tables with classes by next hop and choices, with protection, bounce and alternates.

    Args:
        tables: minimal, with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        topology: for the switches with hosts and the diameter.
        policy: protection and balancing.
        module: int32[S, K], the module of its switch that each link is on: of ports that repair
            alike, those of other modules than the minimal one's come first.
    """
    paths = SearchedPaths.of(tables, wiring, topology, policy.every_hop)
    split, repair, alternate, away = _split(paths, policy)
    paths = SearchedPaths.of(split, wiring, topology, policy.every_hop)
    if policy.protects:
        others = alternate if policy.every_hop else None
        split = _protected(paths, repair, away, others, module)
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
    if policy.every_hop:  # a class with several ways needs no other repair
        several = common[:, links : 2 * links].any(axis=1)
        common[several, :links] = common[several, 2 * links :] = False
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
    away, start = near != hop, near
    if len(paths.distance):
        back, over = paths.turned(switch, near)
        away &= ~back | (over >= 0)
        start = np.where(back, over, near)
    else:
        away &= ~paths.meets(near, switch)
    avoids = ~paths.meets(start, hop) | direct
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


def _on_other_modules(paths: SearchedPaths, module: NDArray[np.int32], links: int) -> Bits:
    """bool[S, C, K]: links on other modules than the minimal link of each class."""
    minimal = paths.tables.classes.port
    own = paths.wiring.port[:, None, :links] == minimal[..., None]
    number = np.where(own, module[:, None, :links], -1).max(axis=2)
    other: Bits = module[:, None, :links] != number[..., None]
    return other


def _protected(
    paths: SearchedPaths,
    repair: Bits,
    away: Bits,
    others: Bits | None = None,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Tables with protection by ports that repair, then ports whose neighbour bounces, then ports
    whose neighbour does not send the packet back, then those whose neighbour bounces it so that it
    does not come back. Ports that repair are also the bounce.

    Where a class has none of the first two, as above the leaves of a tree, packets that bounce go
    first to ports whose paths avoid the second switch from here: what the other end has lost.

    Args:
        paths: of tables with classes by choices.
        repair: bool[S, C, K], by link.
        away: the same.
        others: the other ways of each class, where packets in transit take any of them; they repair
            the classes that have some.
        module: int32[S, K], of each link, whose others come first; None: all are on one.
    """
    tables, wiring = paths.tables, paths.wiring
    minimal = tables.classes.port
    first = None
    if module is not None and several_modules(module):
        first = _on_other_modules(paths, module, repair.shape[2])
    order = bounce = ranked(repair, minimal, wiring, REPAIR_ORDER, before=first)
    several = np.zeros((*minimal.shape, 1), np.bool_)
    if others is not None:
        several = np.asarray(others.any(axis=2, keepdims=True))
        for _ in range(TURNS):
            bounce = _among_ways(paths, others, bounce)
            paths = replace(paths, turns=_turned(paths, several, bounce))
        order = np.where(several, np.uint16(0), order)
    bounced, turned = _turning(paths, repair.shape, bounce)
    if (_used(paths, repair.shape) & ~(repair | bounced | several).any(axis=2)).any():
        beyond = _beyond_next(paths, repair.shape)
        again = ranked(repair, minimal, wiring, REPAIR_ORDER, before=beyond)
        bounce = np.where(several, bounce, again)
        bounced, turned = _turning(paths, repair.shape, bounce)
    left = ~several
    if others is not None:  # a neighbour that repairs, and sent the packet here, has other ways
        left = left & ~repair.any(axis=2, keepdims=True)
    for more in (bounced & ~repair, away & ~repair, turned & ~(bounced | away | repair)):
        order = in_turn(order, ranked(more & left, minimal, wiring, REPAIR_ORDER, before=first))
    return replace(tables, classes=replace(tables.classes, protection=order, bounce=bounce))


def _turned(paths: SearchedPaths, several: Bits, bounce: NDArray[np.uint16]) -> NDArray[np.int32]:
    """int32[B + 1, S, D]: as `SearchedPaths.turns`, by the bounce of classes with several ways."""
    here = np.arange(len(paths.after))[:, None]
    known = np.minimum(paths.egress, bounce.shape[1] - 1)
    some = several[here, known, 0] & (paths.egress < bounce.shape[1])
    cables = paths.wiring.cables()
    tried = (
        np.where(port > 0, cables[here, port], -1)
        for port in bounce[here, known].transpose(2, 0, 1)
    )
    return np.where(some, np.stack((*tried, paths.after)), np.int32(-1))


def _among_ways(
    paths: SearchedPaths, others: Bits, bounce: NDArray[np.uint16]
) -> NDArray[np.uint16]:
    """uint16[S, C, B]: `bounce`, and for classes with several ways those that packets try which
    came in on one of them, as the only next hop there is down.

    A way whose only next hop is not the minimal way's; if there is none, links behind which no such
    next hop is met, then any way.
    """
    minimal, wiring = paths.tables.classes.port, paths.wiring
    lone: Bits = np.equal(others.any(axis=2), False)
    column = np.arange(len(paths.ends))
    here = np.arange(len(paths.after))[:, None]
    lone = lone[here, np.minimum(paths.egress, others.shape[1] - 1)]
    sole = np.where(lone & (paths.after != paths.ends), paths.after, np.int32(-1))
    apart, beside = np.zeros(others.shape, np.bool_), np.zeros(others.shape, np.bool_)
    for switch in paths.present():
        near, hop = paths.near(switch), paths.after[switch]
        way = np.equal(paths.distance[near, paths.ends] + 1, paths.distance[switch, paths.ends])
        behind = np.asarray(np.where(way, sole[near, column], -1))
        same: Bits = np.equal(behind, sole[hop, column])
        back, over = paths.turned(switch, near)
        start = np.where(back, over, near)
        clear = ~way & (start >= 0)
        for one in behind:
            clear &= ~paths.meets(start, one) | (one < 0)
        for found, serves in ((apart, way & ((behind < 0) | ~same)), (beside, clear)):
            numbers, links = _by_class(paths, switch, serves & (near != hop))
            found[switch, numbers, : links.shape[1]] = links
    some = (others & apart).any(axis=2, keepdims=True)
    sets = others & apart, beside & ~others & ~some, others & ~some
    first, *more = (ranked(usable, minimal, wiring, bounce.shape[2]) for usable in sets)
    first[..., 1:] = 0  # to the minimal way next, which has another next hop
    return np.where(others.any(axis=2, keepdims=True), reduce(in_turn, more, first), bounce)


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
        avoids = ~paths.meets(paths.near(switch), second) | (second == paths.ends)
        numbers, links = _by_class(paths, switch, avoids)
        found[switch, numbers, : links.shape[1]] = links
    return found


def _bounced(
    paths: SearchedPaths, switch: int, bounce: NDArray[np.uint16], only_link: bool = False
) -> Bits:
    """bool[K, D]: links whose neighbour bounces a packet of this switch so that it arrives.

    Past the next hop, or with `only_link` past this switch, so that only the link is avoided.
    """
    near, hop = paths.near(switch), paths.after[switch]
    cables = paths.wiring.cables()
    port = bounce[near, np.minimum(paths.egress[near[:, 0]], bounce.shape[1] - 1), 0]
    over = cables[near, port]
    back = paths.after[near[:, 0]] == switch
    serves: Bits = back & (port > 0) & (near != hop)
    if len(paths.distance):
        serves &= paths.turned(switch, near)[1] < 0
        again, further = paths.turned(near, over)
        over = np.where(again, further, over)
        serves &= over >= 0
    met = paths.meets(over, switch if only_link else hop)
    return serves & ~met if only_link else serves & (~met | (hop == paths.ends))


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
