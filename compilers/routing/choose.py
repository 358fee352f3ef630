"""Alternates, protection and bounce of every egress class, by what neighbours do with its packets.

At switch u, let v be the next hop towards d. A neighbour r of u *repairs* d where the minimal path
from r to d meets neither u nor v, so r helps whether the link u–v or the switch v has failed. It is
an *alternate* for d if its path does not meet u; *edge-disjoint*, if it shares no link with the
minimal path either. Rows of a switch with the same next hop, alternates and repairs form one class,
so that no state per destination is needed. In PolarStar that makes 4 to 6 classes per link.

Where too few neighbours repair, one whose own next hop is u can still help: it *bounces* the packet
to a neighbour that repairs u for it. Then comes a neighbour whose path meets v: it helps if only
the link has failed, or if v repairs in turn. The last choice is one that bounces, and meets v then.

With bounced paths (`Forwarding.bounces`) a destination next to u has alternates, too: neighbours
whose path does not meet u, and those that bounce a packet of u to one that repairs u for them.

Where packets in transit take any shortest path, a class with several next hops needs no other
repair: packets that came in by one of them try the others (`_among_next_hops`).

Families whose algebra says all that construct it instead (`Family.choices`), in the same orders
(`ranked`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.split_classes import deciding_rows, split_direct
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import LARGEST_SEARCH
from compilers.tables.computed_array import unless_large
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables, empty_egress, local, no_route
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    counts,
)
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.shared_risk import several_modules
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused

ORDER = 2
"""Ports of an order of protection or bounce."""
TURNS = 2
"""Rounds in which classes with several next hops learn what packets that come back do elsewhere."""
LARGEST_WEIGHT, MOST = 100, 65535
RANKED_ENTRIES_AT_ONCE = 1 << 20
Bits = NDArray[np.bool_]
Numbers = NDArray[Any]
Words = NDArray[np.uint64]


def choices(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
    whole: bool = True,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Minimal tables with the alternates and the protection that are asked for.

    Args:
        tables: minimal.
        topology: the fabric, or what is left of it after damage.
        wiring: likewise.
        forwarding: what the tables shall mean.
        whole: whether nothing is missing; only then the constructions hold.
        module: int32[S, K], the module of its switch that each link is on, where that is known: of
            ports that serve alike, those of other modules than the minimal one's come first.
    """
    if not forwarding.has_alternates and not forwarding.repairs:
        return tables
    if whole:
        family = family_of(topology.family)
        made: Tables | None = family.choices(tables, topology, wiring, forwarding, module)
        if made is not None:
            return made
    # Direct classes first: an adjacent switch has other alternates or none, and another repair.
    return searched(split_direct(tables, wiring), topology, wiring, forwarding, module)


def require_searchable(topology: Topology, forwarding: Forwarding, balance: str) -> None:
    """Pass unless a damaged fabric is too large to search it, or packets are to be marked in it.

    Raises:
        Refused: the fabric has more than `LARGEST_SEARCH` switches, or packets are to be marked.
    """
    order, searches = topology.graph.order, forwarding.has_alternates or forwarding.repairs
    if forwarding.marks:
        path: tuple[str, ...] = ("routing", "balance")
        required, given = "a balance without marks in a damaged fabric", balance
        todo = "write compact-valiant, or repair the fabric"
    elif order > LARGEST_SEARCH and searches:
        path = ("routing",)
        required = "minimal routes without protection in a damaged fabric of more than "
        required += f"{LARGEST_SEARCH:,} switches"
        given = f"alternates or protection for {order:,} switches"
        todo = "remove `balance` and `protect`, or repair the fabric: only in a whole "
        todo += "PolarFly or PolarStar they need no search"
    else:
        return
    raise Refused(Finding(path, required, given, todo))


def searched(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Tables with classes by next hop and choices, with protection, bounce and alternates.

    Args:
        tables: minimal, with separate direct classes (`compilers.routing.split_classes`).
        topology: for the switches with hosts and the diameter.
        wiring: the cables.
        forwarding: what the tables shall mean.
        module: as for `choices`.
    """
    paths = ClassPaths.of(tables, wiring, topology, forwarding.every_hop)
    paths, repair, alternate, away = _split(paths, forwarding)
    if forwarding.repairs:
        paths = _protected(paths, repair, alternate, away, forwarding.every_hop, module)
    elif forwarding.bounces:
        bounce = ranked(repair, paths.classes.port, wiring, 1)
        paths = paths.having(bounce=bounce)
    if forwarding.bounces:
        bounce = paths.classes.bounce

        def bounced(switch: int) -> Bits:
            direct: Bits = paths.after[switch] == paths.ends
            return _bounced(paths, switch, bounce)[None] & direct

        alternate |= paths.by_class(bounced, alternate.shape)[0]
    if not forwarding.has_alternates:
        return paths.tables
    links = np.packbits(alternate, axis=2)
    classes = spread(paths.classes, wiring, links, forwarding.minimal_share)
    return replace(paths.tables, classes=classes)


@dataclass(frozen=True, slots=True, eq=False)
class ClassPaths:
    """Minimal paths of S switches towards the D switches that have hosts.

    tables, wiring: their source. ends: int64[D], the destinations. after: int32[S, D], the next
    switch, or the destination itself once reached. egress: [S, D], the class. depth: the links of
    the longest path. distance: uint8[S, S], links between switches where packets take any shortest
    path, and turns: int32[n, S, D], where packets of several next hops try to go that came in by
    one of these, -1: nowhere; else empty.
    """

    tables: Tables
    wiring: Wiring
    ends: NDArray[np.int64]
    after: NDArray[np.int32]
    egress: Numbers
    depth: int
    distance: NDArray[np.uint8]
    turns: NDArray[np.int32]

    @classmethod
    def of(cls, tables: Tables, wiring: Wiring, topology: Topology, every_hop: bool) -> ClassPaths:
        """The paths of tables that reach every destination."""
        ends = np.flatnonzero(topology.endpoints)
        fib = Fib.of(tables, wiring.cables())
        after, egress = fib.next_switch(ends), np.ascontiguousarray(fib.egress(ends))
        # A packet at a switch without links stays there.
        after = np.where(after < 0, np.arange(len(after), dtype=np.int32)[:, None], after)
        switches = np.arange(len(after) if every_hop else 0)
        distance = distances(neighbour_table(topology.graph), switches)
        other = _other_hops(wiring.far, after, distance[:, ends])
        turns = np.stack((other, np.where(other < 0, np.int32(-1), after[: len(other)])))
        return cls(tables, wiring, ends, after, egress, topology.diameter, distance, turns)

    @property
    def classes(self) -> Classes:
        """Those of the tables."""
        return self.tables.classes

    def having(self, **orders: Numbers) -> ClassPaths:
        """The same with other `bounce` or `protection` of the classes."""
        return replace(self, tables=replace(self.tables, classes=replace(self.classes, **orders)))

    def walk(self, first: Numbers) -> list[Numbers]:
        """The switch of each packet after 0, 1, … `depth` links from `first`, int32[…, D] each."""
        column = np.arange(len(self.ends))
        steps = [np.broadcast_to(first, (*first.shape[:-1], len(column)))]
        for _ in range(self.depth):
            steps.append(self.after[steps[-1], column])
        return steps

    def meets(
        self, first: Numbers, other: Numbers | int, steps: list[Numbers] | None = None
    ) -> Bits:
        """bool[…, D]: whether packets from `first` may come to another switch, or begin there.

        steps: `walk(first)`, where that is known.
        """
        if len(self.distance):
            between, ends = self.distance[first, other].astype(np.int16), self.ends
            met: Bits = between + self.distance[other, ends] == self.distance[first, ends]
            return met
        passed: Bits = np.any([step == other for step in steps or self.walk(first)], axis=0)
        return passed

    def turned(self, came: Numbers | int, at: Numbers) -> tuple[Bits, Numbers]:
        """bool[…, D]: whether the switch that a packet came from is a next hop where it is at.

        And where it goes from there, -1: back, as that is the only next hop.
        """
        column = np.arange(len(self.ends))
        back: Bits = self.distance[came, self.ends] + 1 == self.distance[at, self.ends]
        over = np.full(back.shape, -1, np.int32)
        for turn in self.turns[::-1, at, column]:
            over = np.where((turn >= 0) & (turn != came), turn, over)
        return back, over

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

    def by_class(self, found: Callable[[int], Bits], shape: tuple[int, ...]) -> Bits:
        """bool[n, S, C, K]: what holds for all destinations of each class.

        Args:
            found: of a switch, bool[n, K, D], by link and destination.
            shape: S, C, K.
        """
        every: Bits | None = None
        for switch in self.present():
            away, bits = self.routed(switch), found(switch)
            number, starts, order = _grouped(self.egress[switch, away])
            common = np.logical_and.reduceat(bits[..., away[order]], starts, axis=2)
            every = np.zeros((len(bits), *shape), np.bool_) if every is None else every
            every[:, switch, number, : bits.shape[1]] = common.transpose(0, 2, 1)
        return np.zeros((1, *shape), np.bool_) if every is None else every


def _other_hops(
    far: NDArray[np.int32], after: NDArray[np.int32], distance: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """int32[S, D]: the next switch on the first shortest path other than `after`, -1: there is
    none.

    The first is that of the link after the minimal one, or after that, round the switch, as in
    `ranked`.
    """
    links = far.shape[1]
    found = np.full((len(distance), after.shape[1]), -1, np.int32)
    for switch, near in enumerate(far[: len(distance)] if links > 1 else ()):
        nearer = (near >= 0)[:, None] & (distance[near] + 1 == distance[switch])
        minimal = (near[:, None] == after[switch]).argmax(axis=0)
        turn = (minimal + np.arange(1, links)[:, None]) % links
        there = np.take_along_axis(nearer, turn, axis=0)
        link = np.take_along_axis(turn, there.argmax(axis=0)[None], axis=0)[0]
        found[switch] = np.where(there.any(axis=0), near[link], -1)
    return found


def _split(paths: ClassPaths, forwarding: Forwarding) -> tuple[ClassPaths, Bits, Bits, Bits]:
    """Paths with the classes split by choices, and the three `_choices`, bool[S, C, K] each.

    One class a next hop and set of choices; the first of each next hop keeps its number.
    """
    tables, links = paths.tables, paths.wiring.far.shape[1]
    parts = {switch: _parts(paths, switch, forwarding) for switch in paths.present()}
    most = max(len(port) for _, _, port, _ in parts.values())
    egress = empty_egress(tables.switches, tables.routes.egress.shape[1], most)
    egress[...] = no_route(egress)
    port = np.zeros((tables.switches, most), np.int32)
    found = np.zeros((3, tables.switches, most, links), np.bool_)
    for switch, (row, number, ports, common) in parts.items():
        egress[switch, row] = number
        egress[switch, tables.routes.egress[switch] == local(tables.routes.egress)] = local(egress)
        port[switch, : len(ports)] = ports
        found[:, switch, number, : common.shape[2]] = common.transpose(1, 0, 2)
    routes = replace(tables.routes, egress=egress)
    split = Tables(routes=routes, classes=Classes.minimal(port))
    number = Fib.of(split, paths.wiring.cables()).egress(paths.ends)
    return replace(paths, tables=split, egress=np.ascontiguousarray(number)), *found


def _parts(
    paths: ClassPaths, switch: int, forwarding: Forwarding
) -> tuple[Numbers, Numbers, Numbers, Bits]:
    """The rows of a switch, int64[R], their class numbers, int64[R], the port of each class, and
    the choices of each row, bool[R, 3, K].
    """
    found, old = _choices(paths, switch, forwarding), paths.classes.port[switch]
    away = paths.routed(switch)
    row = deciding_rows(paths.tables.routes, switch, paths.ends)[0][away]
    row, starts, order = _grouped(row)
    common = np.logical_and.reduceat(found[..., away[order]], starts, axis=2).transpose(2, 0, 1)
    if forwarding.every_hop:  # a class with several next hops needs no other repair
        several = common[:, 1].any(axis=1)
        common[several, 0] = common[several, 2] = False
    before = paths.tables.routes.egress[switch, row]
    keys = np.column_stack((before, np.packbits(common.reshape(len(row), -1), axis=1)))
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    base = distinct[:, 0].astype(np.int64)
    first = np.r_[True, base[1:] != base[:-1]]
    number = np.where(first, base, len(old) - 1 + np.cumsum(~first))
    return row, number[inverse.ravel()], np.concatenate((old, old[base[~first]])), common


def _grouped(keys: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The distinct keys, the start of each in sorted order, and that order."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return ordered[starts], starts, order


def _choices(paths: ClassPaths, switch: int, forwarding: Forwarding) -> Bits:
    """bool[3, K, D], by link: the neighbour repairs, is an alternate, does not send it back."""
    minimal = paths.walk(np.array([switch]))
    near = paths.near(switch)
    steps = paths.walk(near)
    hop = minimal[1]
    direct = hop == paths.ends
    away = near != hop
    if len(paths.distance):
        back, over = paths.turned(switch, near)
        away &= ~back | (over >= 0)
        avoids = ~paths.meets(np.where(back, over, near), hop) | direct
    else:
        away &= ~paths.meets(near, switch, steps)
        avoids = ~paths.meets(near, hop, steps) | direct
    # An adjacent switch is reached minimally only (PolarFly paper, §VII), but for bounced paths.
    alternate = away if forwarding.bounces else away & ~direct
    if forwarding.marks:  # whatever comes back: the next switch sends it on by a link that serves
        alternate = np.broadcast_to(near != hop, away.shape)
    if forwarding.alternates == "shortest":
        ours, theirs = (np.sum([at != paths.ends for at in each], 0) for each in (steps, minimal))
        alternate = alternate & (ours < theirs)
    if forwarding.disjoint:
        for a, b in pairwise(steps):
            for u, v in pairwise(minimal):
                same = (a == u) & (b == v) | (a == v) & (b == u)
                alternate = alternate & ~(same & (a != b))
    return np.stack((away & avoids, alternate, away))


def _protected(
    paths: ClassPaths,
    repair: Bits,
    alternate: Bits,
    away: Bits,
    every_hop: bool,
    module: NDArray[np.int32] | None,
) -> ClassPaths:
    """Paths with protection by ports that repair, then ports whose neighbour bounces, then ports
    whose neighbour does not send the packet back, then those whose neighbour bounces it so that it
    does not come back. Ports that repair are also the bounce.

    Where a class has none of the first two, as above the leaves of a tree, packets that bounce go
    first to ports whose paths avoid the second switch from here: what the other end has lost.

    Args:
        paths: of tables with classes by choices.
        repair: bool[S, C, K], by link; alternate, away: the same.
        alternate: see above.
        away: see above.
        every_hop: whether packets in transit take any alternate; those repair the classes that
            have some.
        module: as for `choices`.
    """
    minimal, wiring, shape = paths.classes.port, paths.wiring, repair.shape
    several: Bits = np.logical_and(alternate.any(axis=2, keepdims=True), every_hop)
    first: Bits | None = None
    if module is not None and several_modules(module):
        own = wiring.port[:, None] == minimal[..., None]
        first = module[:, None] != np.where(own, module[:, None], -1).max(axis=2, keepdims=True)
    order = bounce = ranked(repair, minimal, wiring, ORDER, before=first)
    if every_hop:
        for _ in range(TURNS):
            bounce = _among_next_hops(paths, alternate, bounce)
            paths = replace(paths, turns=_turned(paths, several, bounce))
        order = np.where(several, np.uint16(0), order)

    def turning(bounce: NDArray[np.uint16]) -> Bits:
        """bool[2, S, C, K]: links whose neighbour bounces packets past the next hop, past here."""
        return paths.by_class(
            lambda at: np.stack([_bounced(paths, at, bounce, link) for link in (False, True)]),
            shape,
        )

    bounced, turned = turning(bounce)
    if (_used(paths, shape) & ~(repair | bounced | several).any(axis=2)).any():

        def beyond(switch: int) -> Bits:
            """bool[1, K, D]: links whose neighbour's path avoids the second switch from here."""
            second = paths.after[paths.after[switch], np.arange(len(paths.ends))]
            avoids: Bits = ~paths.meets(paths.near(switch), second) | (second == paths.ends)
            return avoids[None]

        before = paths.by_class(beyond, shape)[0]
        again = ranked(repair, minimal, wiring, ORDER, before=before)
        bounce = np.where(several, bounce, again)
        bounced, turned = turning(bounce)
    left = ~several
    if every_hop:  # a neighbour that repairs, and sent the packet here, has other next hops
        left = left & ~repair.any(axis=2, keepdims=True)
    for more in (bounced & ~repair, away & ~repair, turned & ~(bounced | away | repair)):
        order = in_turn(order, ranked(more & left, minimal, wiring, ORDER, before=first))
    return paths.having(protection=order, bounce=bounce)


def _used(paths: ClassPaths, shape: tuple[int, ...]) -> Bits:
    """bool[S, C]: the classes that destinations have."""
    used = np.zeros(shape[:2], np.bool_)
    switch, column = np.nonzero(paths.after != np.arange(len(paths.after))[:, None])
    used[switch, paths.egress[switch, column]] = True
    return used


def _turned(paths: ClassPaths, several: Bits, bounce: NDArray[np.uint16]) -> NDArray[np.int32]:
    """int32[B + 1, S, D]: as `ClassPaths.turns`, by bounce of classes with several next hops."""
    here = np.arange(len(paths.after))[:, None]
    known = np.minimum(paths.egress, bounce.shape[1] - 1)
    some = several[here, known, 0] & (paths.egress < bounce.shape[1])
    cables = paths.wiring.cables()
    tried = (
        np.where(port > 0, cables[here, port], -1)
        for port in bounce[here, known].transpose(2, 0, 1)
    )
    return np.where(some, np.stack((*tried, paths.after)), np.int32(-1))


def _among_next_hops(
    paths: ClassPaths, others: Bits, bounce: NDArray[np.uint16]
) -> NDArray[np.uint16]:
    """uint16[S, C, B]: `bounce`, and for classes with several next hops those that packets try
    which came in on one of them, as the only next hop there is down.

    A next hop whose only one is not that of the minimal next hop; if there is none, links behind
    which no such switch is met, then any next hop.

    Args:
        paths: any shortest ones.
        others: bool[S, C, K], the next hops of each class other than the minimal one.
        bounce: of classes with one next hop.
    """
    minimal, wiring, ends = paths.classes.port, paths.wiring, paths.ends
    column, here = np.arange(len(ends)), np.arange(len(paths.after))[:, None]
    alone: Bits = np.equal(others.any(axis=2), False)
    alone = alone[here, np.minimum(paths.egress, others.shape[1] - 1)]
    sole = np.where(alone & (paths.after != ends), paths.after, np.int32(-1))

    def found(switch: int) -> Bits:
        """bool[2, K, D]: next hops with another only one; links that meet no only next hop."""
        near, hop = paths.near(switch), paths.after[switch]
        nearer = np.equal(paths.distance[near, ends] + 1, paths.distance[switch, ends])
        behind = np.asarray(np.where(nearer, sole[near, column], -1))
        differs = (behind < 0) | (behind != sole[hop, column])
        back, over = paths.turned(switch, near)
        start = np.where(back, over, near)
        clear = ~nearer & (start >= 0)
        for one in behind:
            clear &= ~paths.meets(start, one) | (one < 0)
        both: Bits = np.stack((nearer & differs, clear)) & (near != hop)
        return both

    disjoint, clear = paths.by_class(found, others.shape)
    some = (others & disjoint).any(axis=2, keepdims=True)
    sets = others & disjoint, clear & ~others & ~some, others & ~some
    first, *more = (ranked(usable, minimal, wiring, bounce.shape[2]) for usable in sets)
    first[..., 1:] = 0  # to the minimal next hop then, which has another one
    return np.where(others.any(axis=2, keepdims=True), reduce(in_turn, more, first), bounce)


def _bounced(
    paths: ClassPaths, switch: int, bounce: NDArray[np.uint16], only_link: bool = False
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


def ranked(
    usable: Bits,
    minimal: NDArray[np.int32],
    wiring: Wiring,
    count: int,
    before: Bits | None = None,
) -> NDArray[np.uint16]:
    """uint16[S, C, count]: the first usable ports of each class, 0 beyond the last.

    Args:
        usable: bool[S, C, K], by link.
        minimal: int32[S, C], each class's minimal port. The link after it comes first, then the
            others round the switch, so that classes begin with different ports.
        wiring: the ports of links.
        count: the number of ports.
        before: bool[S, C, K], links that come before all others; None: none do.
    """
    order, classes, links = usable.shape
    result = np.zeros((order, classes, count), np.uint16)
    beyond = _words(np.arange(links) > np.arange(links)[:, None])
    step = max(1, RANKED_ENTRIES_AT_ONCE // (classes * links))
    for first in range(0, order, step):
        part = slice(first, first + step)
        port, after = wiring.port[part], _links_of(wiring.port[part], minimal[part])
        sets = [usable[part]] if before is None else [usable[part] & before[part], usable[part]]
        left = [_words(some) for some in sets]
        for rank in range(min(count, links)):
            link = _first(left, beyond[after])
            found = np.take_along_axis(port, np.maximum(link, 0).reshape(len(port), -1), axis=1)
            result[part, :, rank] = np.where(link >= 0, found.reshape(link.shape), 0)
    return result


def _links_of(port: NDArray[np.int32], minimal: NDArray[np.int32]) -> NDArray[np.int16]:
    """int16[n, C]: the first link on each minimal port, 0 where there is none."""
    most = int(max(port.max(initial=0), minimal.max(initial=0)))
    link = np.zeros((len(port), most + 1), np.int16)
    row = np.arange(len(port))
    for number in reversed(range(port.shape[1])):
        link[row, port[:, number]] = number
    return np.take_along_axis(link, minimal, axis=1)


def _words(usable: Bits) -> Words:
    """uint64[…, ⌈K/64⌉]: links as bits, the lowest of the first word for the first."""
    packed = np.packbits(usable, axis=-1, bitorder="little")
    room = np.zeros((*packed.shape[:-1], -(-packed.shape[-1] // 8) * 8), np.uint8)
    room[..., : packed.shape[-1]] = packed
    return room.view("<u8")


def _first(sets: list[Words], beyond: Words) -> NDArray[np.int64]:
    """int64[n, C]: the first link, in turn, of the first set that has one, and -1 where none has.

    It is taken out of all sets.

    Args:
        sets: uint64[n, C, W] each, one within the next.
        beyond: uint64[n, C, W], the links at which turns begin; those before come after them.
    """
    chosen = sets[-1]
    for some in reversed(sets[:-1]):
        chosen = np.where(some.any(axis=2, keepdims=True), some, chosen)
    later = chosen & beyond
    chosen = np.where(later.any(axis=2, keepdims=True), later, chosen)
    word = (chosen != 0).argmax(axis=2)[..., None]
    bits = np.take_along_axis(chosen, word, axis=2)
    lowest = bits & (~bits + np.uint64(1))
    for some in sets:
        rest = np.take_along_axis(some, word, axis=2) & ~lowest
        np.put_along_axis(some, word, rest, axis=2)
    # A power of two is exact as a float, and its exponent is the place of the bit.
    place = np.frexp(lowest.astype(np.float64))[1] - 1
    link: NDArray[np.int64] = np.where(lowest > 0, word * 64 + place, -1)[..., 0]
    return link


def in_turn(first: NDArray[np.uint16], then: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """uint16[S, C, n]: the ports of `first`, with its empty places filled from `then`."""
    both = np.concatenate((first, then), axis=2)
    place = np.argsort(both == 0, axis=2, kind="stable")[..., : first.shape[2]]
    return np.take_along_axis(both, place, axis=2)


def spread(
    classes: Classes, wiring: Wiring, links: NDArray[np.uint8], minimal_share: Fraction | None
) -> Classes:
    """Classes with alternates over these links, as in `AlternateLinks`, packed where many."""
    weight = weight_pairs(counts(links), minimal_share)
    packed = AlternateLinks(links, wiring.port.astype(np.uint16), weight)
    ports = AlternatePorts(packed)
    weights = AlternateWeights(packed, ports.shape[2])
    return replace(classes, alternate=unless_large(ports), weight=unless_large(weights))


def weight_pairs(
    alternates: NDArray[np.integer], minimal_share: Fraction | None
) -> NDArray[np.uint16]:
    """uint16[S, C, 2]: whole weights of the minimal port and of each alternate.

    Args:
        alternates: int[S, C], the number of alternates of each class.
        minimal_share: the minimal port's part, None for one share each.
    """
    result = np.ones((*alternates.shape, 2), np.uint16)
    if minimal_share is not None:
        for count in np.unique(alternates[alternates > 0]).tolist():
            where = alternates == count
            result[where] = _ratio(minimal_share, count)
    return result


def _ratio(minimal_share: Fraction, alternates: int) -> tuple[int, int]:
    """The weight of the minimal port, and that of each alternate."""
    if minimal_share == 1:
        return 1, 0
    ratio = minimal_share * alternates / (1 - minimal_share)
    if ratio > LARGEST_WEIGHT:
        whole = Fraction(min(round(ratio), MOST))
    elif 0 < ratio < Fraction(1, LARGEST_WEIGHT):
        whole = Fraction(1, min(round(1 / ratio), MOST))
    else:
        whole = ratio.limit_denominator(LARGEST_WEIGHT)
    return whole.numerator, whole.denominator
