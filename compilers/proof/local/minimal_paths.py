"""Follow the minimal paths of all switches to the destinations of a block (`destination_blocks`).

The local proof begins with these paths. It needs the next switch of every switch, the links of its
path, and a proof that all packets arrive over shortest paths. In a block with an aggregate, most
switches have one class for all destinations, their *default*. Their paths are followed once, up to
the first *listed* switch. A listed switch has a class for each destination, and its paths are
followed for each destination. The *row* of a listed switch is its index in `DestinationRows.listed`
and in all arrays of listed switches.

For example, a block has the destinations 8 and 9, the switches 3, 8 and 9 are listed, and the
defaults of 1 and 2 lead from 1 to 2 and from 2 to 3. So packets from 1 come to a listed switch
first at 3, after two links, whether they are for 8 or 9: `entry` of 1 is the row of 3, and
`entry_hops` is 2. If `hops` of 3 are 1 to 8 and 2 to 9, the paths from 1 have 3 and 4 links.

A packet *bounces* at s, in a U-turn, if it comes in by the link over which s would send it. For
example, the minimal path of s is s-v-d, and a host of v sends a packet for d over another link than
the minimal one of v, to s. Switch s does not send it back to v, but over its link for such packets,
to u: the packet goes v-s-u-…-d.

What switches do with each egress class comes in as `ClassStates`, of which two arrays are used
most. `summary` has five values of a class in one number: `far_switch` reads the switch behind the
minimal link, and `has_detours` whether packets of hosts may take other links. `balanced_links` has
all links that packets of hosts may take, as one bit each.

`state_proof.prove_states` calls the functions in the order of this file.

Letters in the loops: s and u switches, v the next switch of s, k a link, c an egress class, i the
row of a listed switch, j the index of a destination in the block, d the destination itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import DELIVER, Array
from compilers.proof.local.class_cases import (
    NONE,
    ClassStates,
    choice_count,
    far_switch,
    has_detours,
    link_at_far_end,
)

LINKS_LIMIT = 64
"""No path has as many links as this."""
UNREACHED = 127
"""In place of the links of a path that does not arrive."""


class DestinationRows(NamedTuple):
    """The egress classes of S switches for the k destinations of a block."""

    destinations: Array
    """int64[k], switches with hosts."""
    listed: Array
    """int32[n], the listed switches."""
    row: Array
    """int32[S], the row of each listed switch; NONE for all other switches."""
    egress: Array
    """int16[n, k], the class of each listed switch for each destination."""
    default: Array
    """int16[S], the class of each switch that is not listed, for all destinations."""


class MinimalPaths(NamedTuple):
    """The next switch on all minimal paths to k destinations, and their links."""

    next_hop: Array
    """int32[n, k], of listed switches: the next switch, and whether hosts may take others, too.

    Both are in one number, as they are looked up together (`packed_hop`, `hop_switch`,
    `hop_has_detours`).
    """
    hops: Array
    """int8[n, k], the links from each listed switch to each destination, or UNREACHED."""
    default_next: Array
    """int32[S], the next switch of a switch that is not listed. For a listed switch ~row, which is
    negative, as the next switch depends on the destination (`leads_to_row`)."""
    entry: Array
    """int32[S], the row of the first listed switch on the path. A listed switch is its own."""
    entry_hops: Array
    """int8[S], the links to that switch."""


class LocalFindings(NamedTuple):
    """What is proved of k destinations. All bits are True at first, all numbers 0."""

    delivers: Array
    """bool[k], whether every packet arrives while all is up; made False where it is not proved."""
    repaired: Array
    """bool[k, 2], by kind of failure whether every packet arrives; made False where it is not
    proved."""
    stretch: Array
    """int64[k, 2], by kind of failure the most links that a repair adds."""
    longest: Array
    """int64[k], the most links of a path of a host's packet while all is up, or a bound on them."""
    choices: Array
    """int64[k], how many choices packets of hosts have (`choice_count`), over all switches."""
    hop_counts: Array
    """int64[k, LINKS_LIMIT], the pairs of switches by the links of their minimal path."""


@inlined_loop
def packed_hop(switch: int, has_detours: bool) -> int:
    """A value of `MinimalPaths.next_hop`: twice the next switch, plus 1 if there are detours."""
    return 2 * switch + has_detours


@inlined_loop
def hop_switch(hop: int) -> int:
    """The next switch in a value of `MinimalPaths.next_hop`, or NONE."""
    return hop >> 1


@inlined_loop
def hop_has_detours(hop: int) -> bool:
    """Whether hosts may take other links, too, in a value of `MinimalPaths.next_hop`."""
    return hop & 1 > 0


@inlined_loop
def leads_to_row(default_next: int) -> int:
    """The row of a listed switch, from its value of `MinimalPaths.default_next`; else negative."""
    return ~default_next


@loop
def class_of(rows: DestinationRows, s: int, j: int) -> int:
    """The class of a switch for a destination: of its row, or of its default."""
    row = rows.row[s]
    return int(rows.egress[row, j]) if row >= 0 else int(rows.default[s])


@loop
def next_switch(paths: MinimalPaths, s: int, j: int) -> int:
    """The next switch on the minimal path from s to the destination j."""
    default_next = paths.default_next[s]
    row = leads_to_row(default_next)
    return int(hop_switch(paths.next_hop[row, j])) if row >= 0 else int(default_next)


@loop
def has_link(links: Array, k: int) -> bool:
    """Whether link k is in a set of links, uint8[B], with the highest bit for the first link."""
    return bool(links[k >> 3] >> (7 - (k & 7)) & 1)


@loop
def links_after_bounce(
    states: ClassStates, paths: MinimalPaths, s: int, c: int, j: int, d: int
) -> int:
    """The links of a packet for d that bounces at s.

    It comes from v, the switch behind the minimal link of class c of s. It goes from s to u, over
    the link of s for such packets, and on by the minimal path of u.

    Returns:
        The links from v to d, over s and u; 0 if s has no link for such packets.
    """
    k, links = states.bounce_link[s, c], 2  # v to s, and s to u
    if k < 0:
        return 0
    u = states.program.far[s, k]
    while u >= 0 and u != d and links < LINKS_LIMIT:
        u = next_switch(paths, u, j)
        links += 1
    return links


@loop
def follow_defaults(states: ClassStates, rows: DestinationRows, paths: MinimalPaths) -> bool:
    """Write `default_next`, `entry` and `entry_hops` of all switches.

    Returns:
        Whether the packets of all switches in use come to a listed switch.
    """
    default, default_next = rows.default, paths.default_next
    for s in range(len(default)):
        if rows.row[s] >= 0:
            default_next[s] = ~rows.row[s]
        elif default[s] >= 0:
            default_next[s] = far_switch(states.summary[s, default[s]])
            if default_next[s] < 0:
                return False
        elif states.in_use[s]:
            return False
        else:
            default_next[s] = s
    # Follow `default_next` from each switch until it is negative, which is at a listed switch.
    for s in range(len(default)):
        u, links = default_next[s], 0
        while u >= 0 and links < LINKS_LIMIT:
            u = default_next[u]
            links += 1
        if u >= 0 and states.in_use[s]:
            return False
        paths.entry[s], paths.entry_hops[s] = max(leads_to_row(u), 0), links
    return True


@loop
def write_next_hops(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: LocalFindings
) -> None:
    """Write `next_hop`, and prove that each destination delivers its packets and no other does."""
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        for j in range(len(rows.destinations)):
            c = rows.egress[i, j]
            paths.next_hop[i, j] = packed_hop(NONE, False)
            if c >= 0 and states.program.order[s, c, 0] >= 0:
                summary = states.summary[s, c]
                paths.next_hop[i, j] = packed_hop(far_switch(summary), has_detours(summary))
            if states.in_use[s] and (c == DELIVER) != (s == rows.destinations[j]):
                findings.delivers[j] = False


@loop
def links_of_returned_packet(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, i: int, j: int
) -> int:
    """The links of a packet that v sends from its host to s, where the packet bounces.

    Here s has row i, and v is its next switch to the destination j, listed as well.

    Returns:
        The links from v; 0 if v sends no packets of its hosts to s.
    """
    s, v = rows.listed[i], hop_switch(paths.next_hop[i, j])
    c, class_of_v = rows.egress[i, j], rows.egress[rows.row[v], j]
    link_to_v = states.program.order[s, c, 0]
    link_to_s = states.program.far_link[s, link_to_v]
    if not has_link(states.balanced_links[v, class_of_v], link_to_s):
        return 0
    return links_after_bounce(states, paths, s, c, j, rows.destinations[j])


@loop
def follow_listed(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: LocalFindings
) -> None:
    """Write `hops` of the listed switches, and prove that their packets arrive.

    A path that leaves the listed switches is not proved. If the next switch may send a packet of
    its own host back to s, `longest` is raised to the links of that packet.
    """
    row, next_hop = rows.row, paths.next_hop
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        for j in range(len(rows.destinations)):
            d, v = rows.destinations[j], hop_switch(next_hop[i, j])
            if s == d:
                paths.hops[i, j] = 0
                continue
            paths.hops[i, j] = UNREACHED
            if v < 0 or row[v] < 0:
                if states.in_use[s]:
                    findings.delivers[j] = False
                continue
            # Follow the packet while it is in listed switches, up to d.
            u, links = v, 1
            while u >= 0 and row[u] >= 0 and u != d and links < LINKS_LIMIT:
                u = hop_switch(next_hop[row[u], j])
                links += 1
            if u == d:
                paths.hops[i, j] = links
            elif states.in_use[s]:
                findings.delivers[j] = False
            if v != d and states.in_use[s] and hop_has_detours(next_hop[row[v], j]):
                links = links_of_returned_packet(states, rows, paths, i, j)
                findings.longest[j] = max(findings.longest[j], links)


@loop
def count_pairs(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: LocalFindings
) -> int:
    """Write `hop_counts`, and raise `longest` to the links of minimal paths.

    A path has the links up to the first listed switch and those from there. So switches are counted
    by their first listed switch and the links to it, and all of one count have equally long paths.

    Returns:
        The links of the longest minimal path.
    """
    most = 0
    # int64[n, LINKS_LIMIT + 1], by listed switch and links to it, how many switches with hosts come
    # to it first.
    by_entry = np.zeros((len(rows.listed), LINKS_LIMIT + 1), np.int64)
    for s in range(len(rows.default)):
        if states.in_use[s]:
            by_entry[paths.entry[s], paths.entry_hops[s]] += states.has_hosts[s]
    for i in range(len(rows.listed)):
        for before in range(LINKS_LIMIT):
            if not by_entry[i, before]:
                continue
            for j in range(len(rows.destinations)):
                if paths.hops[i, j] < UNREACHED and before + paths.hops[i, j] < LINKS_LIMIT:
                    findings.hop_counts[j, before + paths.hops[i, j]] += by_entry[i, before]
        for j in range(len(rows.destinations)):
            if paths.hops[i, j] < UNREACHED and states.in_use[rows.listed[i]]:
                most = max(most, paths.hops[i, j])
    for j in range(len(rows.destinations)):
        findings.hop_counts[j, 0] = 0  # the destination itself
        for links in range(LINKS_LIMIT):
            if findings.hop_counts[j, links]:
                most = max(most, links)
                findings.longest[j] = max(findings.longest[j], links)
    return most


@loop
def count_choices(states: ClassStates, rows: DestinationRows, findings: LocalFindings) -> bool:
    """Write `choices`; returns whether any hosts may take other links than the minimal one."""
    by_default, detours = 0, False
    for s in range(len(rows.default)):
        if rows.row[s] < 0 and states.has_hosts[s]:
            summary = states.summary[s, rows.default[s]]
            by_default += choice_count(summary)
            detours |= has_detours(summary)
    for i in range(len(rows.listed)):
        for j in range(len(rows.destinations)):
            if rows.egress[i, j] >= 0 and states.has_hosts[rows.listed[i]]:
                summary = states.summary[rows.listed[i], rows.egress[i, j]]
                findings.choices[j] += choice_count(summary)
                detours |= has_detours(summary)
    for j in range(len(rows.destinations)):
        findings.choices[j] += by_default
    return detours


@loop
def require_shortest(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    findings: LocalFindings,
    most: int,
) -> None:
    """Prove that minimal paths from switches with hosts are shortest paths over the cables.

    A breadth-first search over the cables begins at each destination.

    Args:
        states: with the cables.
        rows: the destinations.
        paths: the minimal paths.
        findings: `delivers` is made False where a path is longer.
        most: the links of the longest minimal path.
    """
    p, delivers = states.program, findings.delivers
    # Whether the search has come to a switch, and these switches in the order of their distance.
    visited, queue = np.zeros(len(rows.default), np.bool_), np.empty(len(rows.default), np.int32)
    for j in range(len(delivers)):
        if not delivers[j]:
            continue
        d, count, begin = rows.destinations[j], 1, 0
        visited[d], queue[0] = True, d
        # The search may stop before the distance `most`. Minimal paths from all switches that it
        # has not come to have at least `most` links. No minimal path has more than `most` links, so
        # these paths are shortest.
        for links in range(1, most):
            end = count
            for index in range(begin, end):
                for k in range(p.far.shape[1]):
                    u = p.far[queue[index], k]
                    if u >= 0 and not visited[u]:
                        visited[u], queue[count] = True, u
                        count += 1
                        hops = paths.entry_hops[u] + paths.hops[paths.entry[u], j]
                        if states.has_hosts[u] and hops != links:
                            delivers[j] = False
            begin = end
        for index in range(count):
            visited[queue[index]] = False


@loop
def unite_balanced_links(states: ClassStates, rows: DestinationRows, united: Array) -> None:
    """Write the links that hosts may use for any of the destinations.

    Args:
        states: the balanced links of each class.
        rows: the classes of the listed switches.
        united: uint8[n, B], written: a set of links for each listed switch.
    """
    united[:] = 0
    for i in range(len(rows.listed)):
        for j in range(len(rows.destinations)):
            if rows.egress[i, j] >= 0:
                links = states.balanced_links[rows.listed[i], rows.egress[i, j]]
                for byte in range(len(links)):
                    united[i, byte] |= links[byte]


@loop
def unlisted_may_bounce(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, united: Array
) -> bool:
    """Whether packets may bounce at some switch s that is not listed.

    They may if the next switch of s may send packets of its hosts over its link to s.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches.
        paths: the minimal paths.
        united: of `unite_balanced_links`.
    """
    for s in range(len(rows.default)):
        if rows.row[s] >= 0 or not states.in_use[s]:
            continue
        u = paths.default_next[s]  # the next switch
        back = link_at_far_end(states.summary[s, rows.default[s]])  # the link of u to s
        row = leads_to_row(paths.default_next[u])
        if row >= 0:
            may_bounce = has_link(united[row], back)
        else:
            c = rows.default[u]
            detours = has_detours(states.summary[u, c])
            may_bounce = detours and has_link(states.balanced_links[u, c], back)
        if may_bounce:
            return True
    return False
