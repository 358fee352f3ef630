"""Marked spread, the balance `spread`: a bit in the packet makes two switches choose at random.

A packet from a host of switch s to switch d goes in three stages:

1. s sends it over any of its links, all with the same share. Unless that link is the minimal one,
   the packet is marked.
2. The next switch, r, takes the mark off. If d is a neighbour of r, the packet goes there. If not,
   r sends it to any neighbour w except s, neighbours of s, and *twins* of s, which have the same
   neighbours as s.
3. From w on it goes minimally.

In PolarFly the only neighbour of r that is also one of s is the apex of the triangle on s–r. The
packet's path is one of these, with 4 links at most:

    s - d, s - r - d, s - x - d, or s - r - w - (w×d) - d

Here x is the next switch on the minimal path from s to d, and w×d the one common neighbour of w and
d. The path from w does not lead back to r: w×d is r only if r is next to d. In other graphs the
path may lead over r again, but a loop is not possible: the mark is cleared once, and minimal paths
end.

Where r sends a marked packet depends only on the link that it came in on. So K sets of links at a
switch with K links serve all destinations, and none is stored, as they follow from the cables
(`onward_links`). Every switch needs at least two links for marked packets of each link, in case one
fails (`require_onward`).

This is the rule of Spraypoint (RNG, arXiv 2604.15261) in any graph. The paper chooses a waypoint,
the neighbour of d by which the packet enters; in PolarFly each link of r leads over another
waypoint, so to choose a link is to choose a waypoint.

In a *permutation* each host sends to one host and receives from one. The load of a link hardly
depends on who sends to whom, so every permutation is carried about equally well. In a PolarFly with
(q + 1)/2 hosts at each switch, the links carry at least .45 of the rate at which hosts can send at
q = 5, .46 at q = 7, .48 at q = 13, and .49 at q = 31. In an OFT, whose leaves have a twin, with p
hosts at each leaf, they carry exactly (q + 1)/(2p) of this rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import apex_links_of, in_one_triangle, link_blocks, other_links
from compilers.tables.intermediate_form import AvoidedLinks
from compilers.topology.triangles import SEVERAL
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused

LEAST_ONWARD = 2
"""The fewest links that a switch must have for the marked packets that come in by a link."""


def onward_links(wiring: Wiring) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Yield the links by which marked packets leave, a block of switches at a time.

    Yields:
        The range of n switches, and bool[n, K, K]: entry [s, k, j] says whether a marked packet
        that came in on link k may leave by link j.
    """
    for switches in link_blocks(wiring):
        yield switches, _onward(wiring, switches)


def fewest_onward(wiring: Wiring) -> int:
    """Return the fewest links over which any switch spreads the marked packets of a link."""
    return int(_fewest_by_switch(wiring).min())


def _fewest_by_switch(wiring: Wiring) -> NDArray[np.int64]:
    """Return the fewest links over which each switch spreads marked packets of a link, int64[S].

    For a switch without links it is K + 1, which is more than any switch has.
    """
    no_links = wiring.far.shape[1] + 1
    fewest = np.full(len(wiring.far), no_links)
    for switches, usable in onward_links(wiring):
        count = np.count_nonzero(usable, axis=2)
        fewest[switches] = np.where(wiring.far[switches] >= 0, count, no_links).min(axis=1)
    return fewest


def require_onward(wiring: Wiring, balance: str) -> None:
    """Pass when every marked packet still has a link to leave by after any one link has failed.

    Args:
        wiring: the cables.
        balance: its name, for the message.

    Raises:
        Refused: some switch has fewer than two links for marked packets of some link.
    """
    fewest = _fewest_by_switch(wiring)
    too_few = np.flatnonzero(fewest < LEAST_ONWARD)
    if len(too_few):
        name, links = wiring.names[int(too_few[0])], int(fewest[too_few[0]])
        required = f"{LEAST_ONWARD} links or more of every switch for what comes in by another"
        given = f"{links} at {name}; {len(too_few):,} of {len(fewest):,} switches have too few"
        todo = "write compact-valiant, or valiant if every switch has hosts, or add links"
        raise Refused(Finding(("routing", "balance"), required, f"{balance}, and {given}", todo))


def onward_ports(
    wiring: Wiring, switch: int, avoided: AvoidedLinks | None = None
) -> NDArray[np.uint16]:
    """Return the ports by which marked packets leave a switch, uint16[K, K].

    Entry [k, j] is the port of link j, or 0 if packets that came in on link k may not take it.

    Args:
        wiring: the cables.
        switch: a vertex.
        avoided: the links that are not to be used; None: there are none.
    """
    usable = _onward(wiring, slice(switch, switch + 1))[0]
    if avoided is not None:
        usable = without_links(usable, avoided.links[switch], avoided.dead[switch])
    ports: NDArray[np.uint16] = np.where(usable, wiring.port[switch], 0).astype(np.uint16)
    return ports


def without_links(
    usable: NDArray[np.bool_], avoided: NDArray[np.bool_], dead: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the links for marked packets without the avoided ones.

    Where no others are left, avoided links to drained switches stay; where none of these is left
    either, dead links stay. The repaired tables send no marked packet to such a place
    (`dead_ends`), but while switches change their tables some may still come.

    Args:
        usable: bool[..., K, K], as `onward_links` yields them.
        avoided: bool[..., K], the links that are not to be used.
        dead: bool[..., K], those of these links that have failed.
    """
    not_avoided = usable & ~avoided[..., None, :]
    not_dead = usable & ~dead[..., None, :]
    fallback = np.where(not_dead.any(axis=-1, keepdims=True), not_dead, usable)
    return np.where(not_avoided.any(axis=-1, keepdims=True), not_avoided, fallback)


def dead_ends(wiring: Wiring, avoided: AvoidedLinks) -> NDArray[np.int64]:
    """Return where marked packets come in and have no link left to leave by, int64[n, 2].

    Each row has a switch, and one of its links that still works.

    Args:
        wiring: all cables.
        avoided: the links that are not to be used.
    """
    works = (wiring.far >= 0) & ~avoided.dead
    # A switch has at least LEAST_ONWARD links for the packets of each link. With fewer avoided
    # links there is one left.
    may_have_none = np.count_nonzero(avoided.links, axis=1) >= LEAST_ONWARD
    blocked = [np.zeros((0, 2), np.int64)]
    for switch in np.flatnonzero(may_have_none & works.any(axis=1)).tolist():
        usable = _onward(wiring, slice(switch, switch + 1))[0] & ~avoided.links[switch]
        links = np.flatnonzero(works[switch] & ~usable.any(axis=1))
        blocked.append(np.column_stack((np.full(len(links), switch), links)))
    return np.concatenate(blocked)


def _onward(wiring: Wiring, switches: slice) -> NDArray[np.bool_]:
    """Return the links for marked packets of a range of switches, as `onward_links` yields them."""
    far = wiring.far[switches]
    twins = np.where(far >= 0, _twins(wiring)[far], -1)
    usable = other_links(far) & ~_triangles(wiring, switches)
    usable &= twins[:, :, None] != twins[:, None, :]
    return usable


def _triangles(wiring: Wiring, switches: slice) -> NDArray[np.bool_]:
    """Return whether the neighbours at links k and j are cabled to each other, bool[n, K, K]."""
    far, apex = wiring.far, apex_links_of(wiring)[switches]
    cabled = in_one_triangle(apex)
    # A link in several triangles has several apexes, and `apex` only says so. For these links, look
    # up whether the neighbour is cabled to each other neighbour.
    s, k = np.nonzero(apex == SEVERAL)
    if not len(s):
        return cabled
    neighbours = far[switches][s]
    at_link = neighbours[np.arange(len(s)), k][:, None].astype(np.int64)
    # A pair of switches u, v is the number u·S + v.
    cabled_pairs = np.sort((np.arange(len(far))[:, None] * len(far) + far)[far >= 0])
    pairs = at_link * len(far) + neighbours
    index = np.searchsorted(cabled_pairs, pairs).clip(max=len(cabled_pairs) - 1)
    cabled[s, k] = (cabled_pairs[index] == pairs) & (neighbours >= 0)
    return cabled


@lru_cache(maxsize=1)
def _twins(wiring: Wiring) -> NDArray[np.int64]:
    """Return a number for each switch, int64[S]; switches with the same neighbours share one."""
    return np.unique(wiring.far, axis=0, return_inverse=True)[1].ravel()
