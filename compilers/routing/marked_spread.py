"""Marked spread: a bit in the packet, and fixed weights carry every permutation alike.

A host's packet leaves by any link of its switch, all with one share. Unless that link is the
minimal one, the packet is marked. The next switch, r, takes the mark off. If the destination is r's
neighbour, it goes there; else by any link of r but the one that it came in on, over the switch s,
and those to the apex of the triangle on that, which is joined to s as well, and to a twin of s,
which has the same neighbours. From there on it goes minimally:

    s - d, s - r - d, s - x - d, or s - r - w - (w×d) - d, 4 links at most

In PN a point has hosts, and so has a line. The first link leads to the other side; where that is
the destination's, one link more is needed for a random switch of the side from which the minimal
path is unique: r keeps the mark, and w spreads the packet again. So a mark ends on the side that
the destination is not on:

    s - r - w - r' - (r'×d) - d, 5 links at most

Where a marked packet goes depends on the link that it came in on, so q + 1 sets of links at a
switch serve all destinations, and none is kept: the cables say them. At w no way leads back: w×d is
r only if r is next to d. The same holds for any graph in which w's routes are minimal.

Every permutation is carried at .45 of the hosts' rate or more at q = 5, .46 at 7, .48 at 13, .49 at
31, p = (q + 1)/2 hosts a switch: each link is the first, second, third or last of a part of the
packets that hardly depends on who sends to whom. In an OFT, whose leaves have a twin, it is exactly
(q + 1)/2p, in PN (q + 1)/5p: a packet comes to every switch of a side alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import apex_of, apexes, link_blocks, other_links
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

KEY = "routing.balance"
ONE_SIDE = -1


@lru_cache(maxsize=1)
def sides(topology: Topology) -> NDArray[np.int8]:
    """int8[S]: 0 or 1, the side of each switch of two that links join, if both have hosts.

    `ONE_SIDE` in other fabrics. Where there are two, hosts mark packets on the minimal link, too,
    and a mark stays while the packet is on its destination's side.
    """
    graph, kind = topology.graph, topology.kind
    tail = np.repeat(kind, np.diff(graph.offsets))
    two = len(topology.kinds) == 2 and bool((tail != kind[graph.targets]).all())
    if two and len(np.unique(kind[topology.endpoints])) == 2:
        return kind.astype(np.int8)
    return np.full(len(kind), ONE_SIDE, np.int8)


def onward_links(wiring: Wiring) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """By which links a marked packet leaves that came in over a link, some switches at a time.

    Yields:
        The switches, and bool[n, K, K]: by the link that it came in on, those that it may take.
    """
    for some in link_blocks(wiring):
        yield some, _onward(wiring, some)


def fewest_onward(wiring: Wiring) -> int:
    """The fewest links that a switch spreads the packets of a cable over."""
    counts = (
        np.count_nonzero(usable, axis=2)[wiring.far[some] >= 0]
        for some, usable in onward_links(wiring)
    )
    return min(int(count.min()) for count in counts if len(count))


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
    usable = other_links(far) & ~apexes(apex_of(wiring)[some])
    usable &= alike[:, :, None] != alike[:, None, :]
    return usable


@lru_cache(maxsize=1)
def _twins(wiring: Wiring) -> NDArray[np.int64]:
    """int64[S]: a number that switches with the same neighbours have in common."""
    return np.unique(wiring.far, axis=0, return_inverse=True)[1].ravel()


def keeps_marks(build: Build) -> bool:
    """Whether packets can stay marked where they are spread, which they do on one of two sides."""
    return build.marks and bool(sides(build.topology)[0] != ONE_SIDE)


def require_short_marks(build: Build, what: str) -> None:
    """Pass when marks end at the next switch, or there are none.

    Args:
        build: any.
        what: cannot follow others, with its article: "a prediction".

    Raises:
        InputError: packets can stay marked.
    """
    if keeps_marks(build):
        required = f"another balance, as {what} cannot follow packets that stay marked"
        todo = "compile with balance: compact-valiant for that"
        raise InputError.of(required, f"{build.balance} in {build.topology.family}", todo, key=KEY)


def require_unmarked(build: Build, what: str) -> None:
    """Pass when no packets are marked.

    Args:
        build: any.
        what: cannot follow marked packets, with its article: "a simulation".

    Raises:
        InputError: they are.
    """
    if build.marks:
        required = f"another balance, as {what} cannot follow marked packets"
        todo = "compile with balance: compact-valiant for that"
        raise InputError.of(required, build.balance, todo, key=KEY)
