"""The column certificate: three local conditions a destination, for any family, damaged or not.

Towards a destination d, let n(u) be the next switch of u over its minimal port. The conditions:

1. Every switch with cables is one link farther from d than n(u), by the cabling; d delivers.
2. With s = n(r) ≠ d, if hosts at s may choose the link to r: for each of the first two neighbours
   of bounce of r, as far as there are any, n(β) ≠ r. If switches may fail: the minimal path of the
   second, or of s where there is but one, avoids the first.
3. With v = n(u) and ρ one of the first two neighbours of repair of u: where n(ρ) ≠ u, the minimal
   path of ρ avoids v (if v ≠ d, and switches may fail); where n(ρ) = u, ρ has a neighbour of bounce
   β with n(β) ≠ ρ, whose minimal path avoids u (and v likewise).

They imply what walking finds. *Without failures*: a minimal path from w meets a switch y only at
position dist(w, y). A host at s that chooses w with n(w) ≠ s is thus at d after 1 + dist(w, d)
links, never at s again; (2) says that it chooses no other. And no packet enters a switch by the
port that its class has there: from w over n(w) the distance falls, and s is not n(w).
By *bounced ways*, those of (2), it enters r so: r bounces it to β, from where it has a minimal path
that does not come back, or, without a β, returns it to s. All that follows is on minimal paths.
*One failure*: a packet meets it at some u whose minimal link, or v, is down. It did not come in by
that link, so the rule of `Classes` sends it to ρ1, to ρ2 if it came from ρ1, or back to ρ1 where
there is no ρ2. At ρ it goes on by its minimal path, which does not come back to u, so does not
use the link u-v, and does not meet v by (3); or it bounces to β, and the same holds of β's path.
So two repairs and one bounce stand for all ways in, all ways out and all failures. A packet that
meets the failure at r, on a bounced way, goes over the second β, or back to s; by (2) the failed
switch is not on its path, and n(β) ≠ r keeps it off the failed link.

*Marked packets* (`compilers.routing.marked_spread`). What a host at s sends by an alternate to r,
with n(r) ≠ d, r sends on to some w. (2) is then asked of w with n(w) = r, in the place of r: all
others are on minimal paths after two links, and come to nobody by its minimal port. Where n(r) = d
the packet is in transit at r, and n(r) is not s. While r has more ways than elements fail, one that
is up serves; so failures are met as above, and by whom is asked in (3) of those that are spread,
too.

The conditions suffice and are not necessary: the destinations where one does not hold are walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Progress
from compilers.proof.certificate.certificate import Bits, Certificate
from compilers.proof.certificate.class_neighbours import ClassNeighbours
from compilers.proof.certificate.spread_columns import LinkSets, SpreadColumns, onward_sets
from compilers.proof.walks.forwarding import Forwarding, Numbers, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from compilers.topology.distance import distances, neighbour_table

CERTIFICATE_CELLS_AT_ONCE = 1 << 19
NO_STRETCH = -MOST_HOPS


def column_certificate(
    build: Build, f: Forwarding, failures: bool, progress: Progress | None = None
) -> Certificate:
    """Look at the columns of all destinations; at (3) only where failures are asked for."""
    delivered, repaired, ways, longest = [], [], 0, 0
    for column in _columns(build, f, progress):
        delivers = column.minimal() & column.apart()
        repaired.append(column.repairs() if failures else ({}, {}, {}))
        ways += column.count()
        longest = max(longest, column.longest(delivers, longest))
        delivered.append(delivers)
    delivers = np.concatenate(delivered)
    repairs, stretch, hops = (_whole(found) for found in zip(*repaired, strict=True))
    return Certificate(
        destinations=np.flatnonzero(build.topology.endpoints),
        delivers=delivers,
        repairs={kind: delivers & holds for kind, holds in repairs.items()},
        stretch=stretch,
        hops=hops,
        ways=ways,
        longest=longest,
    )


def _whole(parts: Sequence[dict[str, Numbers]]) -> dict[str, Numbers]:
    """By kind of failure, what was found of all blocks of destinations."""
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def _columns(build: Build, f: Forwarding, progress: Progress | None) -> Iterator[_Columns]:
    """The columns of all switches with hosts, a block at a time."""
    neighbours, onward = ClassNeighbours.of(f, build.topology.endpoints), onward_sets(f)
    table = neighbour_table(build.topology.graph)
    ends = np.flatnonzero(build.topology.endpoints)
    step = max(1, CERTIFICATE_CELLS_AT_ONCE // f.switches)
    for first in range(0, len(ends), step):
        some = ends[first : first + step]
        yield _Columns.of(build, f, neighbours, onward, table, some)
        if progress:
            progress(first + len(some), len(ends))


@dataclass(frozen=True, slots=True, eq=False)
class _BouncedWays:
    """The n switches that hosts, or marks, send packets to which these get on their minimal port.

    cell: intp[n], the cell of each; column: its destination. first: where it sends them, other: if
    that is down. avoids: bool[n], the minimal path of the other does not meet the first.
    """

    cell: Numbers
    column: Numbers
    first: Numbers
    other: Numbers
    avoids: Bits

    @classmethod
    def of(cls, n: ClassNeighbours, row: Numbers, after: Numbers, ways: Numbers) -> _BouncedWays:
        """Those at ways, intp[2, n]: columns, and switches; row and after as in `_Columns`."""
        column, switch = ways
        width = after.shape[1]
        base, cell = column * width, column * width + switch
        nowhere = base + width - 1
        number, back = row.take(cell), after.take(cell)
        first, again = n.bounce.take(number) + base, n.bounce_again.take(number) + base
        returned = first == nowhere
        first = np.where(returned, back, first)
        other = np.where(again == nowhere, back, again)
        one = after.take(other)
        avoids = (other != first) & (one != first) & (after.take(one) != first)
        return cls(cell, column, first, other, avoids | returned)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """D columns of the next-hop matrix, as arrays over [D, S + 1] cells, numbered row by row.

    The last cell of a row is nowhere, and next to itself. row: intp[D, S + 1], the class; after:
    intp[D, S + 1], the cell over the minimal port; dist: int16[D, S + 1], links to the destination
    by `after`, 0 where none lead there. home, base: intp[D, 1], the cells of the destination and of
    switch 0.
    bounced: where hosts one link nearer may choose the link to a switch (2). spread: where marked
    packets are sent on, None where none is marked.
    """

    build: Build
    n: ClassNeighbours
    destinations: NDArray[np.int64]
    joined: Bits
    shortest: NDArray[np.uint8]
    row: Numbers
    after: Numbers
    dist: NDArray[np.int16]
    home: Numbers
    base: Numbers
    arrived: Bits
    bounced: _BouncedWays
    spread: SpreadColumns | None

    @classmethod
    def of(
        cls,
        build: Build,
        f: Forwarding,
        n: ClassNeighbours,
        onward: LinkSets | None,
        table: NDArray[np.int64],
        destinations: NDArray[np.int64],
    ) -> _Columns:
        count, order = len(destinations), f.switches
        rows = Towards.of(f, destinations).rows.reshape(order, count).T
        row = np.zeros((count, order + 1), np.intp)
        row[:, :-1] = rows
        base = (np.arange(count) * (order + 1))[:, None]
        after = np.full((count, order + 1), order, np.intp)
        after[:, :-1] = n.port.take(row[:, :-1])
        after += base
        home = base + destinations[:, None]
        dist, at = _followed(after, home)
        arrived = at == home
        dist[~arrived] = 0
        joined = table[:-1].min(axis=1, initial=order) < order
        spread = None
        if onward is not None:
            spread = SpreadColumns.of(f, n, onward, build.wiring.far, row, base)
        back = np.zeros((2, 0), np.intp)
        if n.spread:
            # Of a row that leads nowhere the entry means nothing; condition (1) fails there.
            to, entry = after[:, :-1], n.entry.take(row[:, :-1])
            sent = n.chooses(row.take(to), entry)
            if spread:
                sent = (sent & ~spread.here[:, :-1]) | spread.sends(to, entry)
            back = np.array(np.nonzero(sent & (to != home) & joined))
        return cls(
            build=build,
            n=n,
            destinations=destinations,
            joined=joined,
            shortest=distances(table, destinations, depth=int(dist.max()) - 1),
            row=row,
            after=after,
            dist=dist,
            home=home,
            base=base,
            arrived=arrived[:, :-1],
            bounced=_BouncedWays.of(n, row, after, back),
            spread=spread,
        )

    @property
    def own(self) -> Numbers:
        """intp[D, S]: the cells of all switches."""
        return self.base + np.arange(self.after.shape[1] - 1)

    @property
    def bounced_after(self) -> int:
        """The links after which packets are bounced."""
        return 2 if self.spread else 1

    def minimal(self) -> Bits:
        """bool[D]: condition (1), and that whatever is marked has a way on."""
        good = self.arrived & (self.dist[:, :-1] <= self.shortest)
        delivers = self.after.ravel().take(self.home) == self.home
        holds: Bits = (good | ~self.joined).all(axis=1) & delivers[:, 0]
        return holds & ~self.spread.stuck if self.spread else holds

    def apart(self) -> Bits:
        """bool[D]: condition (2), but for switches that fail."""
        way = self.bounced
        holds = np.ones(len(self.destinations), np.bool_)
        back = (self.after.take(way.first) == way.cell) | (self.after.take(way.other) == way.cell)
        holds[way.column[back]] = False
        return holds

    def repairs(self) -> tuple[dict[str, Bits], dict[str, Numbers], dict[str, Numbers]]:
        """Condition (3): bool[D], and the most links added and taken, int64[D], by kind of failure.

        Only switches that packets come to are looked at.
        """
        row = self.row[:, :-1]
        first = _Repairs.of(self, self.n.first.take(row) + self.base)
        second = _Repairs.of(self, self.n.second.take(row) + self.base)
        none = second.over == self.base + len(self.joined)
        comes: Bits = first.back.copy()
        chosen, spread = np.zeros((2, *comes.shape), np.bool_)
        if self.n.spread:
            entry = self.n.first_entry.take(row)
            chosen = self.n.chooses(self.row.take(first.over), entry)
            if self.spread:
                chosen &= ~self.spread.here[:, :-1]
                spread = self.spread.sends(first.over, entry)
            comes |= chosen | spread
        way, bounces = self.bounced, np.zeros(comes.shape, np.bool_)
        if len(way.cell):
            over = np.full(self.after.size, -1)
            over[way.cell] = way.first
            bounces = over.take(first.over) == self.own
            comes |= bounces
        spare = none | ~comes
        whole = self._depth()
        depth = whole[:, :-1]
        # What comes from the first neighbour of repair came over its minimal port, or from hosts,
        # or was spread there on its second link, or bounced.
        beside = 1 + np.maximum(
            np.where(first.back, whole.take(first.over), spread), bounces * self.bounced_after
        )
        met = (depth > 0) | self.build.topology.endpoints
        met &= self.own != self.home
        inner = met & (self.after[:, :-1] != self.home)
        holds: dict[str, Bits] = {}
        stretch: dict[str, Numbers] = {}
        hops: dict[str, Numbers] = {}
        for kind, where, good, other in (
            ("link", met, first.link, second.link),
            ("node", inner, first.node, second.node),
        ):
            holds[kind] = (~where | (good & (spare | other))).all(axis=1)
            added = np.where(spare, first.length, np.maximum(first.length, second.length))
            most = np.maximum(first.length + depth, np.where(spare, 0, second.length + beside))
            for found, links in ((stretch, added - self.dist[:, :-1]), (hops, most)):
                found[kind] = links.max(axis=1, where=where, initial=0).astype(np.int64)
            again = 1 + self.dist.take(way.other).astype(np.int64)
            np.maximum.at(stretch[kind], way.column, again - self.dist.take(way.cell))
            np.maximum.at(hops[kind], way.column, again + self.bounced_after)
        holds["node"][way.column[~way.avoids]] = False
        return holds, stretch, hops

    def _depth(self) -> NDArray[np.int16]:
        """int16[D, S + 1]: the most links after which packets come to a switch, 0 if none do."""
        row, after = self.row[:, :-1], self.after[:, :-1]
        depth = np.zeros(self.after.size, np.int16)
        sends = self.build.topology.endpoints & (self.own != self.home)
        depth[after[sends & self.n.enters.take(row)]] = 1
        arrive = {1 + self.bounced_after: self.bounced.first}
        if self.n.spread:
            own, here = self.own, depth.take(self.own) == 0
            if self.spread:
                here &= ~self.spread.here[:, :-1]
                arrive[2] = self.spread.to
            depth[self._over_alternates(own[here])] = 1
        ended = np.zeros(self.after.shape, np.bool_)
        ended[:, -1] = True
        ended.ravel()[self.home] = True
        for level in range(1, MOST_HOPS):
            moving = np.flatnonzero((depth == level) & ~ended.ravel())
            if not len(moving) and level >= max(arrive):
                break
            depth[self.after.ravel()[moving]] = level + 1
            depth[arrive.get(level + 1, moving[:0])] = level + 1
        return depth.reshape(self.after.shape)

    def _over_alternates(self, cells: Numbers) -> Numbers:
        """Of these cells, those to which a neighbour's hosts may choose the link."""
        found = []
        for far, entry in zip(self.build.wiring.far.T, self.n.link_entry.T, strict=True):
            here = cells % self.after.shape[1]
            over = cells - here + far[here]
            comes = (far[here] >= 0) & self.n.chooses(self.row.take(over), entry[here])
            found.append(cells[comes])
            cells = cells[~comes]
        return np.concatenate(found)

    def count(self) -> int:
        """The ports that hosts may choose, over the pairs of these destinations."""
        ends = np.flatnonzero(self.build.topology.endpoints)
        ways = self.n.ways.take(self.row[:, ends])
        own = self.n.ways.take(self.row.ravel().take(self.home))
        return int(ways.sum(dtype=np.int64) - own.sum(dtype=np.int64))

    def longest(self, delivers: Bits, known: int) -> int:
        """The links of the longest way to destinations that are delivered, if above `known`."""
        ends = np.flatnonzero(self.build.topology.endpoints)
        dist = self.dist[delivers][:, ends]
        way, after = self.bounced, self.bounced_after
        # No shorter than a link and the minimal path of the switch that bounces.
        bounced = 1 + after + self.dist.take(way.first)[delivers[way.column]]
        known = max(known, int(bounced.max(initial=0)))
        most = int(dist.max(initial=0)) + self.n.spread * after
        if most <= known:
            return known
        row = self.row[delivers][:, ends]
        away = dist > 0
        found = max(known, int(dist.max(initial=0, where=self.n.enters.take(row))))
        if self.spread:
            to = self.spread.to[delivers[self.spread.to // self.after.shape[1]]]
            found = max(found, int((2 + self.dist.take(to)).max(initial=0)))
        for link in range(self.build.wiring.far.shape[1]):
            if found >= most:
                break
            far = self.build.wiring.far[ends, link]
            taken = away & (far >= 0) & self.n.chooses(row, np.array(link))
            if self.spread:
                taken &= ~self.spread.here[delivers][:, far]
            over = self.dist[delivers][:, far]
            found = max(found, 1 + int(over.max(initial=-1, where=taken)))
        return found


def _followed(after: Numbers, home: Numbers) -> tuple[NDArray[np.int16], Numbers]:
    """The links that packets of all cells take, and where they are then."""
    at = (home - home % after.shape[1]) + np.arange(after.shape[1])
    dist = np.zeros(after.shape, np.int16)
    flat = after.ravel()
    for _ in range(MOST_HOPS):
        away = at != home
        moved = flat.take(at)
        if not (moved != at)[away].any():
            break
        dist += away
        at = np.where(away, moved, at)
    return dist, at


@dataclass(frozen=True, slots=True, eq=False)
class _Repairs:
    """The repair of every cell over one neighbour.

    over: intp[D, S], the cell of the neighbour. back: bool[D, S], its minimal port leads back.
    link, node: bool[D, S], it repairs these failures. length: int16[D, S], links from there on.
    """

    over: Numbers
    back: Bits
    link: Bits
    node: Bits
    length: NDArray[np.int16]

    @classmethod
    def of(cls, c: _Columns, over: Numbers) -> _Repairs:
        """Look at the minimal paths of neighbours, and those that they bounce to."""
        flat, dist, own, v = c.after.ravel(), c.dist.ravel(), c.own, c.after[:, :-1]
        there = over != c.base + own.shape[1]
        one = flat.take(over)
        back = there & (one == own)
        link = there & ~back
        # A neighbour of u meets v, one or two links away, at position one or two or never.
        node = link & (one != v) & (flat.take(one) != v)
        length = np.where(there, 1 + dist.take(over), NO_STRETCH).astype(np.int16)
        cell = np.flatnonzero(back)
        u, rho, failed = own.ravel()[cell], over.ravel()[cell], v.ravel()[cell]
        base = np.broadcast_to(c.base, own.shape).ravel()[cell]
        beta = c.n.bounce.take(c.row.ravel().take(rho)) + base
        path = [beta]
        for _ in range(3):
            path.append(flat.take(path[-1]))
        good = (beta != base + own.shape[1]) & (path[1] != rho)
        good &= (path[1] != u) & (path[2] != u)
        avoids = np.logical_and.reduce([at != failed for at in path])
        link.ravel()[cell] = good
        node.ravel()[cell] = good & avoids
        length.ravel()[cell] = 2 + dist.take(beta)
        return cls(over, back, link, node, length)
