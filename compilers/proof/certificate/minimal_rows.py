"""Minimal delivery of every pair, proved a row at a time, without following a packet.

At most one class serves a destination j at a switch s, so one neighbour x of s is its next hop;
where j is a neighbour of x, j is two links away by way of x. So *counting* the pairs (x, j) with j
next to x and served over x counts destinations that are reached in two links, each once.

**Diameter two** (PolarFly). If every neighbour is served directly and s counts N - 1 - deg(s)
others, all destinations are counted: each is reached in one link or, not being a neighbour, in two,
as the neighbour over which it goes serves it directly.

**Supernodes** (PolarStar, h switches each). Call two supernodes *near* if a link joins them, or if
they are the same; the others are remote. If

1. every switch has exactly one link to each other supernode that is near its own,
2. remote supernodes X, Y have exactly one common neighbour Z(X, Y),
3. every switch serves its neighbours directly, and counts all of the other supernodes near its own,
4. what it does not count of its own has no common neighbour with it, and is served over another
   supernode,
5. it serves remote supernodes by their aggregates, over a supernode that is next to them,

then all pairs have minimal paths. Near: by 3 in one or two links; by 4 in three, no less, as the
next hop is near and counts the destination. Remote, d in Y: a path of two links has its middle in
Z(X, Y) by 2, at the one switch w there that s is joined to, by 1; by 5 that is the next hop. So d
is reached in two links if w is joined to it, which holds of one switch of Y by 1, else in three.

Each returns how many pairs are so many links apart, or None where a condition does not hold, which
proves nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import PortUse
from compilers.proof.walks.forwarding import Numbers
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route

NO_LINK = -1
SECOND_NEIGHBOURS_AT_ONCE = 1 << 16
HopCounts = tuple[int, ...]


def minimal_rows(build: Build) -> HopCounts | None:
    """The hop counts of a whole fabric of which the rows prove that all pairs have minimal paths.

    Args:
        build: sound cables and prefixes (`compilers.proof.soundness.build_soundness.walkable`).
    """
    if not build.topology.endpoints.all() or len(build.topology.endpoints) < 2:
        return None
    if build.tables.routes.exact:
        return _two_links(build)
    return _Supernodes.of(build).hop_counts() if build.topology.hierarchy > 1 else None


def _link_of(build: Build, use: PortUse, some: slice) -> NDArray[np.int16]:
    """int16[n, C + 1]: the link over which each class of some switches leads, and none."""
    link = use.part(some).links(build.tables.classes.port[some])
    last = no_route(build.tables.routes.egress)
    found = np.full((len(link), min(link.shape[1], last) + 1), NO_LINK, np.int16)
    found[:, :-1] = link[:, : found.shape[1] - 1]
    return found


def _two_links(build: Build) -> HopCounts | None:
    egress, far = build.tables.routes.egress, build.wiring.far.astype(np.intp)
    order, width = far.shape
    here, links = local(egress), _link_of(build, PortUse.of(build.wiring), slice(None))
    none = links.shape[1] - 1
    # One more row, of a switch that is nobody's: what is not cabled leads there, and on to itself.
    table = np.append(np.where(far < 0, order, far), np.full((1, width), order), axis=0)
    degree = np.count_nonzero(far >= 0, axis=1)
    number = np.arange(width, dtype=np.int16)
    served = np.full(order + 1, NO_LINK, np.int16)
    for s in range(order):
        if egress[s, s] != here:
            return None
        links[s].take(np.minimum(egress[s], none), out=served[:-1], mode="clip")
        near = table[s]
        if not (served.take(near) == number)[far[s] >= 0].all():
            return None
        counted = served.take(table[near]) == number[:, None]
        if np.count_nonzero(counted) != order - 1 - degree[s]:
            return None
    ones = int(degree.sum())
    counts = np.array([0, ones, order * (order - 1) - ones])
    return tuple(np.trim_zeros(counts, "b").tolist())


class _Supernodes:
    """The rows of a fabric of G supernodes of h switches, one supernode at a time.

    near: bool[G, G], supernodes that are joined, or the same. far: int32[S, K], the switch behind
    each link, S + G where there is none. row: int32[S + G + 1], the row of each prefix at the
    switches of the supernode that is looked at, R where there is none.
    """

    def __init__(self, build: Build, near: NDArray[np.bool_]) -> None:
        whole = len(build.wiring.far) + len(near)
        self.build, self.near = build, near
        self.far = np.where(build.wiring.far < 0, np.int32(whole), build.wiring.far)
        self.use = PortUse.of(build.wiring)
        self.none = build.tables.routes.egress.shape[1]
        self.row = np.full(whole + 1, self.none, np.int32)

    @property
    def linked(self) -> NDArray[np.bool_]:
        """bool[S, K]: where there are links."""
        linked: NDArray[np.bool_] = self.far < len(self.row) - 1
        return linked

    @classmethod
    def of(cls, build: Build) -> _Supernodes:
        """Join the supernodes by the cables."""
        h, far = build.topology.hierarchy, build.wiring.far
        count = len(far) // h
        near = np.eye(count, dtype=np.bool_)
        for x in range(count):
            own = far[x * h : (x + 1) * h]
            near[x, own[own >= 0] // h] = True
        return cls(build, near)

    def hop_counts(self) -> HopCounts | None:
        """The pairs that are so many links apart; None where a condition does not hold."""
        h, count = self.build.topology.hierarchy, len(self.near)
        prefix = self.build.tables.routes.prefix
        if len(self.far) != h * count or len(prefix) != count or not self._regular():
            return None
        aggregate = len(self.far) + np.arange(count).repeat(h)
        if (self.build.tables.routes.aggregate != aggregate).any():
            return None
        twos = threes = 0
        for x in range(count):
            found = self._supernode(x)
            if found is None:
                return None
            remote = h * int(np.count_nonzero(~self.near[x]))
            twos += found[0] + remote
            threes += found[1] + remote * (h - 1)
        ones = int(np.count_nonzero(self.linked))
        return tuple(np.trim_zeros(np.array([0, ones, twos, threes]), "b").tolist())

    def _regular(self) -> bool:
        """Conditions 1 and 2."""
        h, count = self.build.topology.hierarchy, len(self.near)
        near = [np.flatnonzero(row) for row in self.near]
        for x in range(count):
            own = self.far[x * h : (x + 1) * h]
            s, k = np.nonzero((own < len(self.row) - 1) & (own // h != x))
            joined = np.bincount(s * count + own[s, k] // h, minlength=h * count)
            beside = near[x][near[x] != x]
            once = np.zeros(count, np.bool_)
            once[beside] = True
            if (joined.reshape(h, count) != once).any():
                return False
            if len(beside) == 0:
                continue
            behind = np.concatenate([near[z][near[z] != z] for z in beside.tolist()])
            if (np.bincount(behind, minlength=count)[~self.near[x]] != 1).any():
                return False
        return True

    def _supernode(self, x: int) -> tuple[int, int] | None:
        """The pairs of a supernode and those near it that are two, three links apart."""
        h = self.build.topology.hierarchy
        own = slice(x * h, (x + 1) * h)
        egress, prefix = self.build.tables.routes.egress[own], self.build.tables.routes.prefix[x]
        known = np.flatnonzero(prefix < len(self.row) - 1)
        self.row[prefix[known]] = known
        served = np.full((h, self.none + 1), NO_LINK, np.int16)
        for member, link in enumerate(_link_of(self.build, self.use, own)):
            number = np.minimum(egress[member], len(link) - 1)
            link.take(number, out=served[member, :-1], mode="clip")
        found = self._near(x, egress, served) if self._remote(x, egress, prefix, served) else None
        self.row[prefix[known]] = self.none
        return found

    def _near(self, x: int, egress: Numbers, served: NDArray[np.int16]) -> tuple[int, int] | None:
        """Conditions 3 and 4: the pairs that are two, three links apart."""
        h, first = len(served), x * len(served)
        member = np.arange(h)[:, None]
        home = self.row[first : first + h]
        if (home == self.none).any() or (egress[member.ravel(), home] != local(egress)).any():
            return None
        near = self.far[first : first + h]
        there = near < len(self.row) - 1
        if (there & (served[member, self.row[near]] != np.arange(near.shape[1]))).any():
            return None
        inside = there & (near - first >= 0) & (near - first < h)
        links, links_inside = (np.count_nonzero(part, axis=1) for part in (there, inside))
        joined, common = np.eye(h, dtype=np.bool_), np.zeros((h, h), np.bool_)
        s, k = np.nonzero(inside)
        joined[s, near[s, k] - first] = True
        twos, twos_inside = self._two_links(near, there, served, first, common)
        others = h * (int(np.count_nonzero(self.near[x])) - 1)
        if (twos - twos_inside + links - links_inside != others).any():
            return None
        # Of its own supernode all with a common neighbour have to be counted.
        left = ~joined & ~common
        if (np.count_nonzero(left, axis=1) != h - 1 - links_inside - twos_inside).any():
            return None
        s, to = np.nonzero(left)
        link = served[s, home[to]]
        if (link < 0).any() or inside[s, link].any():
            return None
        return int(twos.sum()), len(s)

    def _two_links(
        self,
        near: Numbers,
        there: NDArray[np.bool_],
        served: NDArray[np.int16],
        first: int,
        common: NDArray[np.bool_],
    ) -> tuple[Numbers, Numbers]:
        """int64[h] twice: what each member serves two links away, and how much of that inside.

        `common` gets the members that have a common neighbour.
        """
        h, width = near.shape
        number = np.arange(width, dtype=np.int16)[:, None]
        twos, twos_inside = np.zeros((2, h), np.int64)
        step = max(1, SECOND_NEIGHBOURS_AT_ONCE // (width * width))
        for begin in range(0, h, step):
            some = slice(begin, begin + step)
            second = self.far[np.where(there[some], near[some], 0)]
            second[~there[some]] = len(self.row) - 1
            row = self.row.take(second)
            for member, (rows, ends) in enumerate(zip(row, second, strict=True), begin):
                counted = served[member].take(rows) == number
                twos[member] = np.count_nonzero(counted)
                place = np.flatnonzero((ends - np.int32(first)).view(np.uint32) < h)
                common[member, ends.ravel()[place] - first] = True
                twos_inside[member] = np.count_nonzero(counted.ravel()[place])
        return twos, twos_inside

    def _remote(self, x: int, egress: Numbers, prefix: Numbers, served: NDArray[np.int16]) -> bool:
        """Condition 5, and no rows but these and those of single switches near x."""
        h, order = len(served), len(self.far)
        other, single = np.empty(prefix.shape, np.bool_), prefix < order
        other[single] = ~self.near[x, prefix[single] // h]
        other[~single] = np.append(self.near[x], True)[prefix[~single] - order]
        if other.any() and (egress[:, other] != no_route(egress)).any():
            return False
        remote = np.flatnonzero(~self.near[x])
        rows = self.row[order + remote]
        # What the supernode behind each link is next to; at the end, one that is next to none.
        beside = np.flatnonzero(self.near[x])
        leads = np.zeros((len(beside) + 1, len(remote)), np.bool_)
        leads[:-1] = self.near[beside[:, None], remote]
        own = self.far[x * h : (x + 1) * h]
        behind = np.where(own < order, np.searchsorted(beside, own // h), len(beside))
        # A link that is none, -1, is the last.
        behind = np.append(behind, np.full((h, 1), len(beside)), axis=1) * len(remote)
        number = np.arange(len(remote))
        return all(
            bool(
                leads.ravel().take(behind[m].take(served[m].take(rows), mode="wrap") + number).all()
            )
            for m in range(h)
        )
