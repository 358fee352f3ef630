"""Predictions from the tables: hops of every pair, and the load of every link.

With alternates, intermediates or ways at every hop, a switch chooses among several ways by a hash
that nobody predicts, so hops and loads are known between bounds; without, the bounds meet. The same
under an outage, where packets are forwarded by the rule of
`compilers.tables.intermediate_form.Classes` and no controller acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import HOME, NOWHERE, Forwarding, Numbers, Towards
from compilers.routing.intermediates import intermediates
from compilers.routing.marked_spread import require_short_marks
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Egress
from compilers.tables.walk import LOOPED, LOST, MISDELIVERED, MOST_HOPS
from mininet_scenarios.scenario.outage import SWITCH_DOWN, Outage

Loads = NDArray[np.int64]
N = TypeVar("N", np.int64, np.float64)
Visit = Callable[[Numbers, Numbers], None]
"""Takes the packets that go on, by their numbers, and the arcs that they leave by."""
PREDICTED_CELLS_AT_ONCE = 1 << 20
MOST_WAYS = 1 << 16
"""More than a class can have."""
BY_TABLES = -3
"""In the place of an arc: the one that the tables say."""
CIRCLE = -4
"""In the place of an arc: one by which the packet has come before."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Where the tables lead packets in a fabric of S switches, while `outage` is the case.

    first: int8[S, S], links from each switch to each other by the first of its ways that is up,
    negative where packets don't arrive (`FAULTS`). fewest and most: int8[S, S], the
    same over all ways; fewest is negative where one of them fails, most where all of them do.
    egress: [S, S], the class.
    """

    build: Build
    whole: Forwarding
    outage: Outage
    forwarding: Forwarding
    egress: Egress
    first: NDArray[np.int8]
    fewest: NDArray[np.int8]
    most: NDArray[np.int8]

    @classmethod
    def of(cls, build: Build, outage: Outage | None = None) -> Prediction:
        """Follow a packet of every pair by each of its ways.

        Raises:
            InputError: packets can stay marked.
        """
        require_short_marks(build, "a prediction")
        return _predict(build, Forwarding.of(build), outage or Outage())

    def under(self, outage: Outage) -> Prediction:
        """The same tables while something else is wrong."""
        return _predict(self.build, self.whole, outage)

    def with_port(self, switch: int, egress: int, port: int) -> Prediction:
        """The same where a class of a switch has another port."""
        ports = self.build.tables.classes.port.copy()
        ports[switch, egress] = port
        classes = replace(self.build.tables.classes, port=ports)
        tables = replace(self.build.tables, classes=classes)
        return Prediction.of(replace(self.build, tables=tables), self.outage)

    @property
    def varies(self) -> bool:
        """Whether packets have several ways, so that bounds are all there is."""
        return len(self.whole.weighted) > 1 or self.build.carries

    def loads(self, packets: Loads) -> Loads:
        """int64[S, ports + 1]: packets out of each port when packets[s, d] go from s to d.

        Each by the first of its ways that is up.
        """
        arcs = np.zeros(len(self.whole.end), np.int64)
        for towards, source, column in self._blocks(packets):
            amount = packets[source, towards.destinations[column]]
            for way in _first_ways(self.build, towards, source, column):
                which = way.which

                def count(packet: Numbers, out: Numbers, amount: Loads = amount[which]) -> None:
                    np.add.at(arcs, out, amount[packet])

                follow(towards, way, column[which], source[which], count)
        return self.by_port(arcs)

    def load_bounds(self, packets: Loads) -> tuple[Loads, Loads]:
        """int64[S, ports + 1] twice: the fewest and the most packets out of each port."""
        if not self.varies:
            loads = self.loads(packets)
            return loads, loads
        bounds = np.zeros((2, len(self.whole.end)), np.int64)
        for towards, source, column in self._blocks(packets):
            amount = packets[source, towards.destinations[column]]
            self._add_bounds(towards, source, column, amount, bounds)
        return self.by_port(bounds[0]), self.by_port(bounds[1])

    def visits(self, packets: Loads) -> Iterator[tuple[Numbers, ...]]:
        """How packets pass switches, by every way that the tables allow for them.

        Yields source and destination, int[n], the arcs that they come by and leave by, and whether
        they come marked.
        """
        for towards, source, column in self._blocks(packets):
            for way in ways(self.build, towards, source, column):
                ends, begins = towards.destinations[column[way.which]], source[way.which]
                at, found = self.forwarding.hosts[begins], list[tuple[Numbers, Numbers, Numbers]]()

                def note(
                    packet: Numbers,
                    out: Numbers,
                    at: Numbers = at,
                    found: list[tuple[Numbers, Numbers, Numbers]] = found,
                ) -> None:
                    found.append((packet, at[packet], out))
                    at[packet] = self.forwarding.end[out]

                follow(towards, way, column[way.which], begins, note)
                for taken, (packet, came, left) in enumerate(found):
                    marked = np.full(len(packet), way.marked and taken == 1)
                    yield begins[packet], ends[packet], came, left, marked

    def by_port(self, arcs: NDArray[N]) -> NDArray[N]:
        """[S, ports + 1] of a value for each arc."""
        port = self.build.wiring.port
        of_links = arcs.reshape(len(port), -1)[:, :-1]
        widest = max(len(names) for names in self.build.wiring.port_names)
        table = np.zeros((len(port), widest + 1), arcs.dtype)
        switch, link = np.nonzero(port)
        table[switch, port[switch, link]] = of_links[switch, link]
        return table

    def on_the_way(self, other: Prediction, vertex: NDArray[np.int64]) -> Prediction:
        """While the fabric moves to another build: what is promised of every mixture of both.

        A pair that both deliver arrives, over no more links than the longest paths of both together
        (docs/how-to/plan.md); of others nothing is known.

        Args:
            other: of the build to come.
            vertex: int64[S], the numbers of our switches there; negative where it has them not.
        """
        there = (vertex[:, None] >= 0) & (vertex >= 0)
        later = np.where(there, other.fewest[vertex[:, None], vertex], LOST)
        sure = (self.fewest >= 0) & (later >= 0)
        fewest = np.where(sure, np.minimum(self.fewest, 1), LOST).astype(np.int8)
        bound = max(0, int(self.most.max())) + max(0, int(other.most.max()))
        most = np.where(np.eye(len(sure), dtype=np.bool_), 0, bound).astype(np.int8)
        return replace(self, fewest=fewest, most=most)

    def path(self, source: int, destination: int) -> tuple[int, ...]:
        """The switches that a packet passes by the first of its ways; where it ends is the last."""
        towards = Towards.of(self.forwarding, np.array([destination]))
        at, column = np.array([source]), np.zeros(1, np.int64)
        path = [source]

        def note(_: Numbers, out: Numbers) -> None:
            path.append(int(self.forwarding.end[out[0]]) // self.forwarding.slots)

        for way in _first_ways(self.build, towards, at, column):
            follow(towards, way, column, at, note)
        return tuple(path)

    def _add_bounds(
        self, towards: Towards, source: Numbers, column: Numbers, amount: Loads, bounds: Loads
    ) -> None:
        """Of what a pair sends, a link gets as often all as the way taken crosses it."""
        crossed: list[Numbers] = []
        choices = np.zeros(len(source), np.int64)
        arcs = len(self.whole.end)
        for number, way in enumerate(ways(self.build, towards, source, column)):
            which = way.which
            choices[which] += 1
            at = (which * arcs * MOST_WAYS) + number

            def note(packet: Numbers, out: Numbers, at: Numbers = at) -> None:
                crossed.append(at[packet] + out.astype(np.int64) * MOST_WAYS)

            follow(towards, way, column[which], source[which], note)
        if not crossed:
            return
        keys, times = np.unique(np.concatenate(crossed), return_counts=True)
        places, begin, count = np.unique(keys // MOST_WAYS, return_index=True, return_counts=True)
        pair, arc = np.divmod(places, arcs)
        least = np.where(count == choices[pair], np.minimum.reduceat(times, begin), 0)
        np.add.at(bounds[0], arc, amount[pair] * least)
        np.add.at(bounds[1], arc, amount[pair] * np.maximum.reduceat(times, begin))

    def _blocks(self, packets: Loads) -> Iterator[tuple[Towards, Numbers, Numbers]]:
        """Pairs that send, by blocks of destinations: the source and the column of each."""
        step = max(1, PREDICTED_CELLS_AT_ONCE // (len(self.whole.end) * len(self.whole.weighted)))
        up = self.outage.up(self.whole.switches)
        ends = np.flatnonzero(packets.any(axis=0) & up)
        for first in range(0, len(ends), step):
            destinations = ends[first : first + step]
            sends = (packets[:, destinations] > 0) & up[:, None]
            sends &= np.arange(len(packets))[:, None] != destinations
            source, column = np.nonzero(sends)
            yield Towards.of(self.forwarding, destinations), source, column


def _predict(build: Build, whole: Forwarding, outage: Outage) -> Prediction:
    forwarding, order = outage.forwarding(whole), whole.switches
    first = np.full((order, order), LOST, np.int8)
    fewest, most = first.copy(), first.copy()
    up = outage.up(order)
    for hops in (first, fewest, most):
        hops[up, up] = 0
    step = max(1, PREDICTED_CELLS_AT_ONCE // order)
    for start in range(0, order, step):
        destinations = np.arange(start, min(start + step, order))
        towards = Towards.of(forwarding, destinations)
        between = up[:, None] & up[destinations]
        between &= np.arange(order)[:, None] != destinations
        source, column = np.nonzero(between)
        found = _hops(build, towards, source, column)
        for table, hops in zip((first, fewest, most), found, strict=True):
            table[source, destinations[column]] = hops
    egress = forwarding.walker.egress(np.arange(order))
    return Prediction(build, whole, outage, forwarding, egress, first, fewest, most)


def _hops(
    build: Build, towards: Towards, source: Numbers, column: Numbers
) -> tuple[NDArray[np.int8], ...]:
    """int8[n] three times: hops by the first way, by the shortest, by the longest."""
    first = np.full(len(source), MOST_HOPS + 1, np.int8)
    fewest, most = first.copy(), np.full(len(source), np.iinfo(np.int8).min, np.int8)
    for way in ways(build, towards, source, column):
        which = way.which
        hops = follow(towards, way, column[which], source[which])
        new = first[which] > MOST_HOPS
        first[which[new]] = hops[new]
        fewest[which] = np.minimum(fewest[which], hops)
        most[which] = np.maximum(most[which], hops)
    return first, fewest, most


@dataclass(frozen=True, slots=True, eq=False)
class WeightedWay:
    """A way that some packets from hosts may take: its first link, and its second when marked.

    number: of the first in `Forwarding.weighted`; the one after the last is for packets without
    any. which: int64[n], of the packets, those that may. out: int32[n], the arc that each leaves
    by. onward: int32[n], the arc that the next switch sends it to, `BY_TABLES` where its tables
    say. part: float64[n], of what leaves by `out` the share that goes on like this. route: int32[H,
    n], in the place of `onward` the arcs behind the first, to the end.
    """

    number: int
    marked: bool
    which: Numbers
    out: Numbers
    onward: Numbers
    part: NDArray[np.float64]
    route: NDArray[np.int32] | None = None

    @classmethod
    def by_tables(cls, number: int, marked: bool, which: Numbers, out: Numbers) -> WeightedWay:
        """A way on which each switch behind the first does what its tables say."""
        return cls(number, marked, which, out, np.full_like(out, BY_TABLES), np.ones(len(out)))

    def take(self, some: Numbers) -> WeightedWay:
        """The same for some of its packets."""
        route = None if self.route is None else self.route[:, some]
        which, out, onward, part = (x[some] for x in (self.which, self.out, self.onward, self.part))
        return WeightedWay(self.number, self.marked, which, out, onward, part, route)


def ways(build: Build, towards: Towards, source: Numbers, column: Numbers) -> Iterator[WeightedWay]:
    """The ways of n packets from hosts, those by the first weighted port first."""
    f = towards.forwarding
    if build.carries:
        yield from _ways_over(build, towards, source, column)
        return
    if f.every_hop:
        yield from _every_way(towards, source, column)
        return
    row = towards.row(source, column)
    chooses = np.zeros(len(source), np.bool_)
    for number, weighted in enumerate(f.weighted):
        out = weighted.take(row)
        live = np.flatnonzero((out >= 0) & ~f.down(out, _dead(len(out))))
        chooses[live] = True
        if len(live) and number and f.marks:
            yield from _marked_ways(towards, number, live, out[live], column[live])
        elif len(live):
            yield WeightedWay.by_tables(number, False, live, out[live])
    rest = np.flatnonzero(~chooses)
    if len(rest):
        out = towards.way_out(f.hosts[source[rest]], column[rest], _dead(len(rest)))
        yield WeightedWay.by_tables(len(f.weighted), False, rest, out)


def _marked_ways(
    towards: Towards, number: int, which: Numbers, out: Numbers, column: Numbers
) -> Iterator[WeightedWay]:
    """The ways of packets that leave by an arc, marked: the next switch spreads them, or not."""
    f = towards.forwarding
    arc = f.end[out].astype(np.int64)
    spreads = towards.spreads(arc // f.slots, column)
    onward = arc // f.slots * f.slots + np.arange(f.slots - 1)[:, None]
    there = np.unpackbits(f.onward[arc], axis=1, count=f.slots - 1, bitorder="little").T > 0
    live = spreads & there & ~f.down(onward, _dead(len(arc)))
    count = np.count_nonzero(live, axis=0)
    if not spreads.all():
        yield WeightedWay.by_tables(number, True, which[~spreads], out[~spreads])
    for some, then in zip((*live, spreads & (count == 0)), (*onward, None), strict=True):
        if some.any():
            next_arc = np.full(len(arc), NOWHERE, np.int32) if then is None else then
            part = 1 / np.maximum(count[some], 1)
            yield WeightedWay(number, True, which[some], out[some], next_arc[some], part)


def _ways_over(
    build: Build, towards: Towards, source: Numbers, column: Numbers
) -> Iterator[WeightedWay]:
    """The ways over each intermediate; first that over the source itself, which is the minimal one.

    A neighbour of the intermediate whose link there is down gives it up, if switches repair.
    """
    f, ends = towards.forwarding, intermediates(build)
    part, number, every = (
        np.full(len(source), 1 / len(ends)),
        len(f.weighted),
        np.arange(len(source)),
    )
    out = towards.way_out(f.hosts[source], column, _dead(len(source)))
    yield replace(WeightedWay.by_tables(number, False, every, out), part=part)
    for via in ends.tolist():
        which = np.flatnonzero(source != via)
        if not len(which):
            continue
        leg, near = Towards.of(f, np.array([via])), np.full(f.switches, NOWHERE, np.int64)
        there = np.flatnonzero((f.end >= 0) & (f.end // f.slots == via))
        near[there // f.slots] = there
        arcs, to = f.hosts[source[which]], column[which]
        carries, route = np.ones(len(which), np.bool_), list[Numbers]()
        while len(route) < 2 * MOST_HOPS:
            at = arcs // f.slots
            down = (near[at] >= 0) & f.down(near[at], _dead(len(at)))
            ended = carries & ((at == via) | (down & (build.protect != "none")))
            carries &= ~ended
            arcs = np.where(ended, f.hosts[at], arcs)
            out = towards.way_out(arcs, to, _dead(len(at)))
            first = np.flatnonzero(carries)
            out[first] = leg.way_out(arcs[first], np.zeros_like(first), _dead(len(first)))
            out = np.where(route[-1] < 0, route[-1], out) if route else out
            route.append(out)
            if (out < 0).all():
                break
            arcs = np.where(out >= 0, f.end[out], arcs).astype(np.int64)
        yield _routed(number + 1, which, np.stack(route), part[which])


def _every_way(towards: Towards, source: Numbers, column: Numbers) -> Iterator[WeightedWay]:
    """The ways shared at every hop; a packet that comes by a link again runs in a circle."""
    f = towards.forwarding
    which, arcs, part = np.arange(len(source)), f.hosts[source], np.ones(len(source))
    route = np.zeros((0, len(source)), np.int32)
    while len(route) <= MOST_HOPS:
        going = arcs >= 0
        left = np.flatnonzero(going)
        packet, out = towards.ways_out(arcs[left], column[which[left]], _dead(len(left)))
        each = np.concatenate((np.flatnonzero(~going), left[packet]))
        out = np.concatenate((route[-1, ~going] if len(route) else out[:0], out))
        share = np.bincount(each, minlength=len(which))
        order = np.argsort(each, kind="stable")
        each, out = each[order], out[order]
        which, part = which[each], part[each] / share[each]
        circles = (out >= 0) & (route[:, each] == out).any(axis=0)
        out = np.where(circles, np.int32(CIRCLE), out)
        route = np.concatenate((route[:, each], out[None]))
        arcs = np.where(out >= 0, f.end[out], NOWHERE).astype(np.int64)
        if (out < 0).all():
            break
    rank = np.arange(len(which)) - np.searchsorted(which, which)
    for number in range(int(rank.max(initial=-1)) + 1):
        some = np.flatnonzero(rank == number)
        yield _routed(len(f.weighted), which[some], route[:, some], part[some])


def _routed(
    number: int, which: Numbers, route: NDArray[np.int32], part: NDArray[np.float64]
) -> WeightedWay:
    """A way of which all arcs are known."""
    onward = np.full(len(which), BY_TABLES, np.int32)
    return WeightedWay(number, False, which, route[0], onward, part, route[1:])


def _first_ways(
    build: Build, towards: Towards, source: Numbers, column: Numbers
) -> Iterator[WeightedWay]:
    """The first way of each packet that is up."""
    found = np.zeros(len(source), np.bool_)
    for way in ways(build, towards, source, column):
        new = ~found[way.which]
        found[way.which] = True
        if new.any():
            yield way.take(np.flatnonzero(new))
        if found.all():
            break


def follow(
    towards: Towards,
    way: WeightedWay,
    column: Numbers,
    at: Numbers,
    visit: Visit | None = None,
) -> NDArray[np.int8]:
    """int8[n]: links that packets take which leave the switches `at` by a way; or a fault."""
    f, out, onward, route = towards.forwarding, way.out, way.onward, way.route
    hops = np.full(len(out), LOOPED, np.int8)
    left = np.arange(len(out))
    for taken in range(2 * MOST_HOPS + 1):
        home = at == towards.destinations[column]
        arrived = (out == HOME) & home
        hops[left[arrived]] = taken
        hops[left[(out == HOME) & ~home]] = MISDELIVERED
        hops[left[out == NOWHERE]] = LOST
        going = np.flatnonzero(out >= 0)
        if not len(going) or taken == (MOST_HOPS if route is None else len(route)):
            break
        left, column, out = left[going], column[going], out[going]
        if visit:
            visit(left, out)
        arc = f.end[out].astype(np.int64)
        at = arc // f.slots
        if route is not None:
            out = route[taken, left]
            continue
        out = towards.way_out(arc, column, _dead(len(arc)))
        if not taken:
            out = np.where(onward[left] == BY_TABLES, out, onward[left])
    return hops


def _dead(packets: int) -> tuple[Numbers]:
    return (np.full(packets, SWITCH_DOWN, np.int32),)
