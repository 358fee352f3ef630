"""Marked spread: a bit in the packet, and fixed weights carry every permutation alike.

A host's packet leaves by any link of its switch, all with one share. Unless that link is the
minimal one, the packet is marked. The next switch, r, takes the mark off. If the destination is r's
neighbour, it goes there; else by any link of r but the one that it came in on, over the switch s,
and those to the apex of the triangle on that, which is joined to s as well, and to a twin of s,
which has the same neighbours. From there on it goes minimally:

    s - d, s - r - d, s - x - d, or s - r - w - (w×d) - d, 4 links at most

Where a marked packet goes depends on the link that it came in on, so q + 1 sets of links at a
switch serve all destinations, and none is kept: the cables say them. At w no path leads back: w×d
is r only if r is next to d.

The rule is that of Spraypoint (RNG, arXiv 2604.15261), and holds in any graph: s sends over any
link, r over any but those to s, to the neighbours of s and to twins of s, and from w on packets go
minimally, over r again where w's path leads there. No loop is possible: the mark is cleared once,
and minimal paths end. The paper's waypoint is the neighbour of d that the packet enters by; in
PolarFly each link of r leads over another one, so to choose a link is to choose a waypoint. Every
switch needs two links for what comes in marked by another (`require_onward`).

Every permutation is carried at .45 of the hosts' rate or more at q = 5, .46 at 7, .48 at 13, .49 at
31, p = (q + 1)/2 hosts a switch: each link is the first, second, third or last of a part of the
packets that hardly depends on who sends to whom. In an OFT, whose leaves have a twin, it is exactly
(q + 1)/2p.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import apex_of, apexes, link_blocks, other_links
from compilers.topology.triangles import SEVERAL
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused

LEAST_ONWARD = 2


def onward_links(wiring: Wiring) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """By which links a marked packet leaves that came in over a link, some switches at a time.

    Yields:
        The switches, and bool[n, K, K]: by the link that it came in on, those that it may take.
    """
    for some in link_blocks(wiring):
        yield some, _onward(wiring, some)


def fewest_onward(wiring: Wiring) -> int:
    """The fewest links that a switch spreads the packets of a cable over."""
    return int(_counts_onward(wiring).min())


def _counts_onward(wiring: Wiring) -> NDArray[np.int64]:
    """int64[S]: the same of each switch; of those without links more than there are links."""
    found = np.full(len(wiring.far), wiring.far.shape[1] + 1)
    for some, usable in onward_links(wiring):
        count = np.where(wiring.far[some] >= 0, np.count_nonzero(usable, axis=2), found[0])
        found[some] = count.min(axis=1)
    return found


def require_onward(wiring: Wiring, balance: str) -> None:
    """Pass when one link can fail and every marked packet still has one to leave by.

    Raises:
        Refused: some switch has fewer than two for packets of some link.
    """
    count = _counts_onward(wiring)
    if len(short := np.flatnonzero(count < LEAST_ONWARD)):
        name, links = wiring.names[int(short[0])], int(count[short[0]])
        required = f"{LEAST_ONWARD} links or more of every switch for what comes in by another"
        given = f"{links} at {name}; {len(short):,} of {len(count):,} switches have too few"
        todo = "write valiant or compact-valiant, or add links"
        raise Refused(Finding(("routing", "balance"), required, f"{balance}, and {given}", todo))


def onward_ports(wiring: Wiring, switch: int) -> NDArray[np.uint16]:
    """uint16[K, K]: the ports by which marked packets leave, by the link they came in on; 0: none.

    Args:
        wiring: the cables.
        switch: a vertex.
    """
    usable = _onward(wiring, slice(switch, switch + 1))[0]
    ports: NDArray[np.uint16] = np.where(usable, wiring.port[switch], 0).astype(np.uint16)
    return ports


def _onward(wiring: Wiring, some: slice) -> NDArray[np.bool_]:
    """bool[n, K, K]: the links of some switches as in `onward_links`."""
    far = wiring.far[some]
    alike = np.where(far >= 0, _twins(wiring)[far], -1)
    usable = other_links(far) & ~_triangles(wiring, some)
    usable &= alike[:, :, None] != alike[:, None, :]
    return usable


def _triangles(wiring: Wiring, some: slice) -> NDArray[np.bool_]:
    """bool[n, K, K]: whether the neighbours over two links of some switches are cabled."""
    far, apex = wiring.far, apex_of(wiring)[some]
    found = apexes(apex)
    s, k = np.nonzero(apex == SEVERAL)
    if not len(s):
        return found
    near = far[some][s]
    arcs = np.sort((np.arange(len(far))[:, None] * len(far) + far)[far >= 0])
    key = near[np.arange(len(s)), k][:, None].astype(np.int64) * len(far) + near
    place = np.searchsorted(arcs, key).clip(max=len(arcs) - 1)
    found[s, k] = (arcs[place] == key) & (near >= 0)
    return found


@lru_cache(maxsize=1)
def _twins(wiring: Wiring) -> NDArray[np.int64]:
    """int64[S]: a number that switches with the same neighbours have in common."""
    return np.unique(wiring.far, axis=0, return_inverse=True)[1].ravel()
