"""The next hops of every switch as tables: by which links packets leave, and in which shares.

What comes in is a program (`rule.Program`) and the elements that are down. The rule is evaluated
once for every switch, egress class and ingress link. `Hops` has its results by ingress link.
`LinkShares` has the same by the link that packets leave by: `link_crossings` searches backwards,
from a link to the pairs of switches that send packets over it. `changed_paths` compares the `Hops`
before and after a failure.

A packet *returns* where it comes in by the minimal link of its class, so that the switch treats it
as one that came back. `returning_packets` bounds the load of packets that have not returned, and
that of packets that have (`LinkShares.only_returning`).

Letters in the loops: p the program, s a switch, c an egress class, n how many next links a packet
has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Array, Program, is_up, marks, next_links
from compilers.tables.build import Build

ANY_CLASS = 0
"""The class argument for marked packets that are spread. Another class that is spread would make no
difference, as the links by which these packets leave depend on the ingress link only."""


class Hops(NamedTuple):
    """The links by which packets leave S switches with C egress classes and K links."""

    host: Array
    """float64[S, C, K], the share of hosts' packets of a class that leaves by each link."""
    marked: Array
    """float64[S, C, K], the part of `host` that leaves with a mark; no row without marks."""
    transit: Array
    """int16[S, C, K, M], the links by which packets of a class that came in by a link leave, in
    equal parts; below 0 where there is none."""
    onward: Array
    """float64[S, K], by ingress link the share of marked packets that each link of `Program.onward`
    gets if it is up; no row without marks."""
    up: Array
    """bool[S, K], the links that are up."""

    @classmethod
    def of(cls, p: Program, build: Build, dead: Array, packets: int) -> Hops:
        """Evaluate the rule for all switches.

        Args:
            p: the program of the build.
            build: its weights, and the switches that have hosts.
            dead: int64[n], the elements that are down.
            packets: an estimate of the work, by which `for_packets` decides whether the loop runs
                as Python or as machine code.
        """
        (switches, most_links), classes = p.far.shape, p.order.shape[1]
        marking_switches = switches if marks(p) else 0
        next_links_in_transit = p.shares.shape[2] if p.every_hop else 1
        empty = cls(
            host=np.zeros((switches, classes, most_links)),
            marked=np.zeros((marking_switches, classes, most_links)),
            transit=np.full((switches, classes, most_links, next_links_in_transit), -1, np.int16),
            onward=np.zeros((marking_switches, most_links)),
            up=np.zeros((switches, most_links), np.bool_),
        )
        return empty.evaluated_at(p, build, dead, np.arange(switches), packets)

    def evaluated_at(
        self, p: Program, build: Build, dead: Array, switches: Array, packets: int
    ) -> Hops:
        """A copy in which the rows of some switches are evaluated anew.

        Args:
            p: the program of the build.
            build: its weights, and the switches that have hosts.
            dead: int64[n], the elements that are down.
            switches: int64[m], these switches.
            packets: an estimate of the work, by which `for_packets` decides whether the loop runs
                as Python or as machine code.
        """
        hops = Hops(*(column.copy() for column in self))
        weight = np.ascontiguousarray(build.tables.classes.weight)
        has_hosts = np.ascontiguousarray(build.topology.endpoints)
        for_packets(packets, write_hops)(p, weight, has_hosts, dead, switches, hops)
        return hops


class LinkShares(NamedTuple):
    """The shares of packets that leave S switches with C egress classes by each of their K links.

    Packets in transit are n entries, sorted by the link that they leave by. Those that leave switch
    s by link k and are of class c are the entries from first[(s·K + k)·C + c] to the next value of
    `first`.
    """

    host: Array
    """float64[S, C, K], the share of hosts' packets of a class that leaves by each link."""
    marked: Array
    """float64[S, C, K], the part of `host` that leaves with a mark; no row without marks."""
    first: Array
    """int64[S·K·C + 1], the first entry of each switch, link and class."""
    ingress: Array
    """int16[n], the ingress link of each entry."""
    part: Array
    """float64[n], the share of the packets from the ingress link that leaves by the entry's
    link."""
    onward: Array
    """float64[S, K], as in `Hops`."""
    returning: Array
    """bool[n], whether the packets of an entry return here: they came in by the minimal link."""
    only_returning: bool
    """Whether only packets count that have returned here or at a switch before; else all count."""

    @classmethod
    def of(cls, hops: Hops, returning: Array | None = None) -> LinkShares:
        """Sort packets in transit by the links that they leave by.

        Args:
            hops: the links by ingress link.
            returning: bool[S, C, K], whether packets of a class that come in by a link return. If
                it is given, only packets that have returned count. None: all packets count.
        """
        switches, classes, most_links, _ = hops.transit.shape
        # One entry for each next link of packets in transit, and the numbers by which `first` finds
        # it: of the switch and the link that the packets leave by, and of their class.
        s, c, ingress, place = np.nonzero(hops.transit >= 0)
        leaves_by = (s * most_links + hops.transit[s, c, ingress, place]) * classes + c
        part = 1.0 / np.count_nonzero(hops.transit >= 0, axis=3)[s, c, ingress]
        order = np.argsort(leaves_by, kind="stable")
        first = np.zeros(switches * most_links * classes + 1, np.int64)
        np.cumsum(np.bincount(leaves_by, minlength=len(first) - 1), out=first[1:])
        if returning is None:
            entry_returns = np.zeros(len(leaves_by), np.bool_)
        else:
            entry_returns = returning[s, c, ingress][order]
        return cls(
            host=hops.host,
            marked=hops.marked,
            first=first,
            ingress=ingress[order].astype(np.int16),
            part=part[order],
            onward=hops.onward,
            returning=entry_returns,
            only_returning=returning is not None,
        )


@loop
def write_hops(
    p: Program, weight: Array, has_hosts: Array, dead: Array, switches: Array, hops: Hops
) -> None:
    """Write the links by which packets leave some switches while elements are down.

    Args:
        p: the program.
        weight: uint16[S, C, 1 + A], of `Classes`.
        has_hosts: bool[S], the switches with hosts.
        dead: int64[n], the elements that are down.
        switches: int64[m], the switches.
        hops: written for these switches.
    """
    _, classes, most_links, next_links_in_transit = hops.transit.shape
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    for s in switches:
        for ingress in range(most_links):
            if p.far[s, ingress] < 0:
                continue
            hops.up[s, ingress] = is_up(p, s, ingress, dead)
            for c in range(classes):
                n = next_links(p, s, ingress, PLAIN, c, dead, link, tags)
                for i in range(next_links_in_transit):
                    hops.transit[s, c, ingress, i] = link[i] if i < n else -1
            if len(hops.onward) > 0:
                n = next_links(p, s, ingress, MARKED, ANY_CLASS, dead, link, tags)
                hops.onward[s, ingress] = 1.0 / n if n > 0 else 0.0
        if has_hosts[s]:
            write_host_shares(p, weight, dead, s, hops, link, tags)


@loop
def write_host_shares(
    p: Program, weight: Array, dead: Array, s: int, hops: Hops, link: Array, tags: Array
) -> None:
    """Write the shares of hosts' packets that leave switch s by each link that is up, by weight.

    The arguments are those of `write_hops`; `link` and `tags` are int64[K + 1], overwritten.
    """
    hops.host[s] = 0
    if len(hops.marked) > 0:
        hops.marked[s] = 0
    for c in range(hops.host.shape[1]):
        n, total = next_links(p, s, HOST, PLAIN, c, dead, link, tags), 0.0
        for i in range(n):
            total += weight_of(p, weight, s, c, link[i])
        for i in range(n):
            if link[i] >= 0:
                share = weight_of(p, weight, s, c, link[i]) / total if total > 0 else 1.0 / n
                hops.host[s, c, link[i]] += share
                if tags[i] == MARKED:
                    hops.marked[s, c, link[i]] += share


@loop
def weight_of(p: Program, weight: Array, s: int, c: int, link: int) -> float:
    """The weight of a link in a class; 0 where it has no share."""
    for i in range(p.shares.shape[2]):
        if p.shares[s, c, i] == link:
            return float(weight[s, c, i])
    return 0.0
