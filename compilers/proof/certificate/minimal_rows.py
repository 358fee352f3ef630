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

from compilers.proof.forwarding import Numbers
from compilers.proof.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route

NO_LINK = -1
HopCounts = tuple[int, ...]


def minimal_rows(build: Build) -> HopCounts | None:
    """The hop counts of a whole fabric of which the rows prove that all pairs have minimal paths.

    Args:
        build: sound cables and prefixes (`compilers.proof.soundness.walkable`).
    """
    if not build.topology.endpoints.all() or len(build.topology.endpoints) < 2:
        return None
    if build.tables.routes.exact:
        return _two_links(build)
    return _Supernodes.of(build).hop_counts() if build.topology.hierarchy > 1 else None


def _link_of(build: Build) -> NDArray[np.int16]:
    """int16[S, 2^b]: the link over which each egress value of a switch leads."""
    port = build.tables.classes.port
    link = PortUse.of(build.wiring).links(port)
    values = no_route(build.tables.routes.egress) + 2
    found = np.full((len(port), values), NO_LINK, np.int16)
    classes = min(port.shape[1], values - 2)
    found[:, :classes] = link[:, :classes]
    return found


def _two_links(build: Build) -> HopCounts | None:
    egress, far = build.tables.routes.egress, build.wiring.far.astype(np.intp)
    order, width = far.shape
    here, links = local(egress), _link_of(build)
    # One more row, of a switch that is nobody's: what is not cabled leads there, and on to itself.
    table = np.append(np.where(far < 0, order, far), np.full((1, width), order), axis=0)
    degree = np.count_nonzero(far >= 0, axis=1)
    number = np.arange(width, dtype=np.int16)
    served = np.full(order + 1, NO_LINK, np.int16)
    for s in range(order):
        if egress[s, s] != here:
            return None
        links[s].take(egress[s], out=served[:-1])
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

    near: bool[G, G], supernodes that are joined, or the same.
    """

    def __init__(self, build: Build, near: NDArray[np.bool_], far: Numbers) -> None:
        self.build, self.near, self.far = build, near, far
        self.links = _link_of(build)

    @classmethod
    def of(cls, build: Build) -> _Supernodes:
        """Join the supernodes by the cables."""
        h, far = build.topology.hierarchy, build.wiring.far
        count = len(far) // h
        near = np.eye(count, dtype=np.bool_)
        s, k = np.nonzero(far >= 0)
        near[s // h, far[s, k] // h] = True
        return cls(build, near, far.astype(np.intp))

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
            found = self._near(x)
            if found is None or not self._remote(x):
                return None
            remote = h * int(np.count_nonzero(~self.near[x]))
            twos += found[0] + remote
            threes += found[1] + remote * (h - 1)
        ones = int(np.count_nonzero(self.far >= 0))
        return tuple(np.trim_zeros(np.array([0, ones, twos, threes]), "b").tolist())

    def _regular(self) -> bool:
        """Conditions 1 and 2."""
        h, count = self.build.topology.hierarchy, len(self.near)
        s, k = np.nonzero(self.far >= 0)
        to = self.far[s, k] // h
        other = s // h != to
        joined = np.bincount(s[other] * count + to[other], minlength=len(self.far) * count)
        apart = self.near & ~np.eye(count, dtype=np.bool_)
        if (joined.reshape(count, h, count) != apart[:, None, :]).any():
            return False
        step = apart.astype(np.float32)
        common = step @ step
        return bool((common[~self.near] == 1).all())

    def _rows(self, x: int) -> Numbers:
        """intp[S + G]: the row of each prefix at the switches of a supernode, the last for none."""
        prefix = self.build.tables.routes.prefix[x]
        whole = len(self.far) + len(self.near)
        rows = np.full(whole + 1, len(prefix), np.intp)
        known = prefix < whole
        rows[prefix[known]] = np.flatnonzero(known)
        return rows[:whole]

    def _served(self, x: int) -> NDArray[np.int16]:
        """int16[h, R + 1]: the link over which each row leads, at the switches of a supernode."""
        h = self.build.topology.hierarchy
        own = slice(x * h, (x + 1) * h)
        egress = self.build.tables.routes.egress[own].astype(np.intp)
        served = np.take_along_axis(self.links[own], egress, axis=1)
        return np.append(served, np.full((h, 1), NO_LINK, np.int16), axis=1)

    def _near(self, x: int) -> tuple[int, int] | None:
        """Conditions 3 and 4: the pairs of a supernode and those near that are two, three apart."""
        h, width = self.build.topology.hierarchy, self.far.shape[1]
        own = np.arange(x * h, (x + 1) * h)
        egress = self.build.tables.routes.egress
        rows, served = self._rows(x), self._served(x)
        member = np.arange(h)[:, None]
        home = rows[own]
        if (home == served.shape[1] - 1).any():
            return None
        if (egress[own, home] != local(egress)).any():
            return None
        near = self.far[own]
        there = near >= 0
        number = np.arange(width)
        if (there & (served[member, rows[near]] != number)).any():
            return None
        second = np.where(there[..., None], self.far[near], -1)
        cabled = second >= 0
        row = np.where(cabled, rows[second], served.shape[1] - 1).reshape(h, -1)
        counted = (served[member, row].reshape(second.shape) == number[:, None]) & cabled
        inside = cabled & (second // h == x)
        twos = np.count_nonzero(counted, axis=(1, 2))
        twos_inside = np.count_nonzero(counted & inside, axis=(1, 2))
        links_inside = np.count_nonzero(there & (near // h == x), axis=1)
        links = np.count_nonzero(there, axis=1)
        others = h * (int(np.count_nonzero(self.near[x])) - 1)
        if (twos - twos_inside + links - links_inside != others).any():
            return None
        # Of its own supernode all with a common neighbour have to be counted.
        joined, common = np.eye(h, dtype=np.bool_), np.zeros((h, h), np.bool_)
        s, k = np.nonzero(there & (near // h == x))
        joined[s, near[s, k] - x * h] = True
        s, k, n = np.nonzero(inside)
        common[s, second[s, k, n] - x * h] = True
        left = ~joined & ~common
        if (np.count_nonzero(left, axis=1) != h - 1 - links_inside - twos_inside).any():
            return None
        s, to = np.nonzero(left)
        link = served[s, home[to]]
        if (link < 0).any() or (near[s, link] // h == x).any():
            return None
        return int(twos.sum()), len(s)

    def _remote(self, x: int) -> bool:
        """Condition 5, and no rows for single switches of remote supernodes."""
        h, order = self.build.topology.hierarchy, len(self.far)
        own, prefix = slice(x * h, (x + 1) * h), self.build.tables.routes.prefix[x]
        egress = self.build.tables.routes.egress[own]
        single = prefix < order
        single[single] = ~self.near[x, prefix[single] // h]
        if (egress[:, single] != no_route(egress)).any():
            return False
        remote = np.flatnonzero(~self.near[x])
        served, row = self._served(x), self._rows(x)[order + remote]
        link = served[:, row]
        over = np.take_along_axis(self.far[own], np.maximum(link, 0).astype(np.intp), axis=1)
        leads = (link >= 0) & (over >= 0) & self.near[over // h, remote]
        return bool(leads.all())
