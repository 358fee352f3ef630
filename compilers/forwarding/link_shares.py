"""The next hops of every switch as tables: by which links packets leave, and in which shares.

What comes in is a program (`rule.Program`) and the failed elements. The rule is evaluated once for
every switch, egress class and ingress link. There are two forms of the result:

- `NextHopTable` is by ingress link: where do packets go that come in here? `changed_paths` compares
  the tables before and after a failure.
- `LinkShares` is by the link that packets leave by: where did they come in? `link_crossings`
  searches backwards with it, from a link to the pairs of switches that send packets over it.

A packet *returns* to a switch where it comes in by the minimal link of its class there. The switch
then treats it as one that was sent back. `returning_packets` computes the loads of packets that
have not returned anywhere and of those that have from a table of each kind
(`LinkShares.only_returned`).

Letters in the loops: p the program, s a switch, c an egress class, n how many next links a packet
has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import for_packets, inlined_loop, loop
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Array, Program, is_up, marks, next_links
from compilers.tables.build import Build

EQUAL_SHARES = 1e-12
"""The largest difference of two shares that count as equal: more than the error of their sums."""
ANY_CLASS = 0
"""The class argument of `next_links` for marked packets that are spread, which ignores it. Classes
are numbered so that 0 is one that is spread (`rule.spreads`)."""


class NextHopTable(NamedTuple):
    """The links by which packets leave S switches with C egress classes and K links."""

    host_share: Array
    """float64[S, C, K], the share of hosts' packets of a class that leaves by each link."""
    marked_share: Array
    """float64[S, C, K], the part of `host_share` that leaves with a mark; no row without marks."""
    transit_links: Array
    """int16[S, C, K, M], the links by which packets of a class that came in by a link leave, in
    equal parts; below 0 where there is none."""
    spread_share: Array
    """float64[S, K], by ingress link the share of marked packets that leaves by each link over
    which they are spread: 1/n for n links of `Program.onward` that are up. No row without marks."""
    is_up: Array
    """bool[S, K], the links that are up."""

    @classmethod
    def of(cls, p: Program, build: Build, failed: Array, packets: int) -> NextHopTable:
        """Evaluate the rule for all switches.

        Args:
            p: the program of the build.
            build: its weights, and the switches that have hosts.
            failed: int64[n], the failed elements.
            packets: an estimate of the work, by which `for_packets` decides whether the loop runs
                as Python or as machine code.
        """
        (switches, most_links), classes = p.far.shape, p.order.shape[1]
        marking_switches = switches if marks(p) else 0
        next_links_in_transit = p.shares.shape[2] if p.every_hop else 1
        empty = cls(
            host_share=np.zeros((switches, classes, most_links)),
            marked_share=np.zeros((marking_switches, classes, most_links)),
            transit_links=np.full(
                (switches, classes, most_links, next_links_in_transit), -1, np.int16
            ),
            spread_share=np.zeros((marking_switches, most_links)),
            is_up=np.zeros((switches, most_links), np.bool_),
        )
        return empty.evaluated_at(p, build, failed, np.arange(switches), packets)

    def evaluated_at(
        self, p: Program, build: Build, failed: Array, switches: Array, packets: int
    ) -> NextHopTable:
        """A copy in which the rows of some switches are evaluated anew.

        Args:
            p: the program of the build.
            build: its weights, and the switches that have hosts.
            failed: int64[n], the failed elements.
            switches: int64[m], these switches.
            packets: as in `of`.
        """
        table = NextHopTable(*(column.copy() for column in self))
        weight = np.ascontiguousarray(build.tables.classes.weight)
        has_hosts = np.ascontiguousarray(build.topology.endpoints)
        for_packets(packets, write_next_hops)(p, weight, has_hosts, failed, switches, table)
        return table


class LinkShares(NamedTuple):
    """The shares of packets that leave S switches with C egress classes by each of their K links.

    An entry is a switch, a class, an ingress link and one of the next links of packets in transit
    there. The n entries are sorted by switch, next link and class. Those of one switch, next link
    and class begin at `first_entry[place]` and end before `first_entry[place + 1]`; their place is
    that of `place_in_entries`.
    """

    host_share: Array
    """float64[S, C, K], the share of hosts' packets of a class that leaves by each link."""
    marked_share: Array
    """float64[S, C, K], the part of `host_share` that leaves with a mark; no row without marks."""
    first_entry: Array
    """int64[S·K·C + 1], the first entry of each switch, link and class."""
    ingress: Array
    """int16[n], the ingress link of each entry."""
    share: Array
    """float64[n], the share of the packets from the ingress link that leaves by the entry's
    link."""
    spread_share: Array
    """float64[S, K], as in `NextHopTable`."""
    is_return: Array
    """bool[n], whether the packets of an entry came in by the minimal link, and so return to the
    switch that sent them. All are False unless `only_returned` is set."""
    only_returned: bool
    """False: all packets count. True: only those count that have returned to some switch."""

    @classmethod
    def of(cls, table: NextHopTable, returns: Array | None = None) -> LinkShares:
        """Sort packets in transit by the links that they leave by.

        Args:
            table: the links by ingress link.
            returns: bool[S, C, K], whether packets of a class that come in by a link return. If
                it is given, only packets that have returned count. None: all packets count.
        """
        switches, classes, most_links, _ = table.transit_links.shape
        # One entry for each next link of packets in transit, and its `place_in_entries`.
        s, c, ingress, i = np.nonzero(table.transit_links >= 0)
        place = (s * most_links + table.transit_links[s, c, ingress, i]) * classes + c
        share = 1.0 / np.count_nonzero(table.transit_links >= 0, axis=3)[s, c, ingress]
        order = np.argsort(place, kind="stable")
        first = np.zeros(switches * most_links * classes + 1, np.int64)
        np.cumsum(np.bincount(place, minlength=len(first) - 1), out=first[1:])
        if returns is None:
            entry_returns = np.zeros(len(place), np.bool_)
        else:
            entry_returns = returns[s, c, ingress][order]
        return cls(
            host_share=table.host_share,
            marked_share=table.marked_share,
            first_entry=first,
            ingress=ingress[order].astype(np.int16),
            share=share[order],
            spread_share=table.spread_share,
            is_return=entry_returns,
            only_returned=returns is not None,
        )


@inlined_loop
def place_in_entries(leaving: LinkShares, s: int, k: int, c: int) -> int:
    """The place in `first_entry` of packets in transit of class c that leave switch s by link k."""
    classes, most_links = leaving.host_share.shape[1], leaving.host_share.shape[2]
    place: int = (s * most_links + k) * classes + c
    return place


@loop
def write_next_hops(
    p: Program, weight: Array, has_hosts: Array, failed: Array, switches: Array, table: NextHopTable
) -> None:
    """Write the links by which packets leave some switches while elements are down.

    Args:
        p: the program.
        weight: uint16[S, C, 1 + A], of `Classes`.
        has_hosts: bool[S], the switches with hosts.
        failed: int64[n], the failed elements.
        switches: int64[m], the switches.
        table: written for these switches.
    """
    _, classes, most_links, next_links_in_transit = table.transit_links.shape
    # Buffers for `next_links`: the next links of a packet, and its tag on each.
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    for s in switches:
        for ingress in range(most_links):
            if p.far[s, ingress] < 0:
                continue
            table.is_up[s, ingress] = is_up(p, s, ingress, failed)
            for c in range(classes):
                n = next_links(p, s, ingress, PLAIN, c, failed, link, tags)
                for i in range(next_links_in_transit):
                    table.transit_links[s, c, ingress, i] = link[i] if i < n else -1
            if len(table.spread_share) > 0:
                n = next_links(p, s, ingress, MARKED, ANY_CLASS, failed, link, tags)
                table.spread_share[s, ingress] = 1.0 / n if n > 0 else 0.0
        if has_hosts[s]:
            write_host_shares(p, weight, failed, s, table, link, tags)


@loop
def write_host_shares(
    p: Program,
    weight: Array,
    failed: Array,
    s: int,
    table: NextHopTable,
    link: Array,
    tags: Array,
) -> None:
    """Write the shares of hosts' packets that leave switch s by each link that is up, by weight.

    Where no link with a weight is up, all packets leave by one link of fast reroute.

    Args:
        p: the program.
        weight: uint16[S, C, 1 + A], of `Classes`.
        failed: int64[n], the failed elements.
        s: the switch.
        table: its `host_share` and `marked_share` are written for this switch.
        link: a buffer of `next_links`, int64[K + 1].
        tags: a buffer of `next_links`, int64[K + 1].
    """
    table.host_share[s] = 0
    if len(table.marked_share) > 0:
        table.marked_share[s] = 0
    for c in range(table.host_share.shape[1]):
        n, total = next_links(p, s, HOST, PLAIN, c, failed, link, tags), 0.0
        for i in range(n):
            total += weight_of(p, weight, s, c, link[i])
        for i in range(n):
            if link[i] >= 0:
                share = weight_of(p, weight, s, c, link[i]) / total if total > 0 else 1.0 / n
                table.host_share[s, c, link[i]] += share
                if tags[i] == MARKED:
                    table.marked_share[s, c, link[i]] += share


@loop
def weight_of(p: Program, weight: Array, s: int, c: int, link: int) -> float:
    """The weight of a link in a class; 0 where it has no share."""
    for i in range(p.shares.shape[2]):
        if p.shares[s, c, i] == link:
            return float(weight[s, c, i])
    return 0.0
