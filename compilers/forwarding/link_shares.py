"""By which links packets leave a switch, and what share by each.

The rule (`rule.py`) is asked once for every switch, egress class and ingress link.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Array, Program, next_links
from compilers.tables.build import Build

ANY_SPREAD = 0
"""A class whose marked packets a switch spreads: they leave alike in all such classes."""


class LinkShares(NamedTuple):
    """The shares of S switches with C egress classes and K links."""

    host: Array
    """float64[S, C, K], the share of hosts' packets of a class that leaves by each link."""
    marked: Array
    """float64[S, C, K], the part of `host` that leaves with a mark; no row without marks."""
    first: Array
    """int64[S·K·C + 1]. Packets in transit that leave switch s by link k and are of class c are the
    entries from first[(s·K + k)·C + c] to the next."""
    came: Array
    """int16[n], the ingress link of each entry."""
    part: Array
    """float64[n], the share of the packets from that link which leaves so."""
    onward: Array
    """float64[S, K], the share of marked packets that came by a link which each link of
    `Program.onward` gets; no row without marks."""


def link_shares(p: Program, build: Build, dead: Array, packets: int) -> LinkShares:
    """The shares of a build while some elements are down.

    Args:
        p: its program.
        build: its weights, and the switches that have hosts.
        dead: int64[n], the elements that are down.
        packets: how much there is to do, as `for_packets` counts it.
    """
    (switches, links), classes = p.far.shape, p.order.shape[1]
    marking = switches if len(p.onward) else 0
    host, marked = np.zeros((switches, classes, links)), np.zeros((marking, classes, links))
    onward = np.zeros((marking, links))
    weight = np.ascontiguousarray(build.tables.classes.weight)
    ends = np.ascontiguousarray(build.topology.endpoints)
    for_packets(packets, share_hosts)(p, weight, ends, dead, host, marked)
    for_packets(packets, share_marked)(p, dead, onward)
    first = np.zeros(switches * links * classes + 1, np.int64)
    count = for_packets(packets, share_transit)
    none = np.zeros(0)
    count(p, dead, first, first, none.astype(np.int16), none)
    np.cumsum(first, out=first)
    came, part = np.zeros(first[-1], np.int16), np.zeros(first[-1])
    count(p, dead, first, first[:-1].copy(), came, part)
    return LinkShares(host, marked, first, came, part, onward)


@loop
def share_hosts(
    p: Program, weight: Array, ends: Array, dead: Array, host: Array, marked: Array
) -> None:
    """Write what leaves by each link of the packets of hosts: by weights, of links that are up."""
    switches, classes, links = host.shape
    link, tags = np.empty(links + 1, np.int64), np.empty(links + 1, np.int64)
    for s in range(switches):
        for c in range(classes if ends[s] else 0):
            n, total = next_links(p, s, HOST, PLAIN, c, dead, link, tags), 0.0
            for i in range(n):
                total += weight_of(p, weight, s, c, link[i])
            for i in range(n):
                if link[i] >= 0:
                    share = weight_of(p, weight, s, c, link[i]) / total if total > 0 else 1.0 / n
                    host[s, c, link[i]] += share
                    if tags[i] == MARKED:
                        marked[s, c, link[i]] += share


@loop
def weight_of(p: Program, weight: Array, s: int, c: int, link: int) -> float:
    """The weight of a link in a class; 0 where it has no share."""
    for i in range(p.shares.shape[2]):
        if p.shares[s, c, i] == link:
            return float(weight[s, c, i])
    return 0.0


@loop
def share_marked(p: Program, dead: Array, onward: Array) -> None:
    """Write the share of each link that marked packets leave by."""
    links = p.far.shape[1]
    link, tags = np.empty(links + 1, np.int64), np.empty(links + 1, np.int64)
    for s in range(len(onward)):
        for came in range(links):
            n = 0
            if p.far[s, came] >= 0:
                n = next_links(p, s, came, MARKED, ANY_SPREAD, dead, link, tags)
            onward[s, came] = 1.0 / n if n > 0 else 0.0


@loop
def share_transit(
    p: Program, dead: Array, first: Array, place: Array, came_by: Array, part: Array
) -> None:
    """Count the entries of packets in transit, or write them where there is room for them.

    Args:
        p: what switches hold.
        dead: the elements that are down.
        first: int64[S·K·C + 1] of `LinkShares`; where entries are counted, each count is added one
            place behind.
        place: int64[S·K·C], where the next entry of each is written.
        came_by: int16[n], written.
        part: float64[n], written.
    """
    switches, classes, _ = p.order.shape
    links = p.far.shape[1]
    link, tags = np.empty(links + 1, np.int64), np.empty(links + 1, np.int64)
    for s in range(switches):
        for c in range(classes):
            for came in range(links):
                if p.far[s, came] < 0:
                    continue
                n = next_links(p, s, came, PLAIN, c, dead, link, tags)
                for i in range(n):
                    if link[i] < 0:
                        continue
                    entry = (s * links + link[i]) * classes + c
                    if len(part) == 0:
                        first[entry + 1] += 1
                    else:
                        came_by[place[entry]], part[place[entry]] = came, 1.0 / n
                        place[entry] += 1
