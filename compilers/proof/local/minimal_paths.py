"""Minimal paths to a few destinations, followed once for all switches.

Most switches have one class for all of these destinations, by an aggregate. They are followed once,
up to the first switch that has a row for each destination, and such a *listed* switch is followed
for each of them.

Letters in the loops: s and u switches, k a link, c an egress class, i a row of a listed switch, j
the place of a destination, d the destination itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DELIVER, Array
from compilers.proof.local.class_cases import (
    BACK,
    DETOURS,
    LINKS,
    NEXT,
    NONE,
    SHARES,
    ClassStates,
)

MOST = 64
"""No path has as many links."""
UNREACHED = 127
"""In place of the links of a path that does not arrive."""


class DestinationRows(NamedTuple):
    """The egress classes of S switches for k destinations that are proved together."""

    destinations: Array
    """int64[k], switches with hosts."""
    listed: Array
    """int32[n], the switches with a row for each destination."""
    row: Array
    """int32[S], the place of each switch in `listed`, NONE of the others."""
    egress: Array
    """int16[n, k], the class of each listed switch for each destination."""
    default: Array
    """int16[S], the class of each other switch for all destinations."""


class MinimalPaths(NamedTuple):
    """The next switch on all minimal paths to k destinations, and their links."""

    next_hop: Array
    """int32[n, k], of listed switches, twice the next switch; one more where hosts may take other
    links, too."""
    hops: Array
    """int8[n, k], the links from each listed switch to each destination, or UNREACHED."""
    onward: Array
    """int32[S], the next switch of a switch that is not listed; ~row of one that is."""
    entry: Array
    """int32[S], the row of the first listed switch on the path."""
    entry_hops: Array
    """int8[S], the links to that switch."""


class Findings(NamedTuple):
    """What is proved of k destinations."""

    delivers: Array
    """bool[k], True at first; made False where it is not proved."""
    repaired: Array
    """bool[k, 2], the same for each kind of failure."""
    stretch: Array
    """int64[k, 2], 0 at first; the most links that a repair adds, for each kind of failure."""
    longest: Array
    """int64[k], 0 at first; no path of a host's packet has more links while all is up."""
    choices: Array
    """int64[k], 0 at first; the links that hosts may choose, over all switches."""
    hop_counts: Array
    """int64[k, MOST], 0 at first; the pairs of switches by links of their minimal path."""


@loop
def class_of(rows: DestinationRows, s: int, j: int) -> int:
    """The class of a switch for a destination: by its own row, or the one for all of them."""
    row = rows.row[s]
    return int(rows.egress[row, j]) if row >= 0 else int(rows.default[s])


@loop
def next_switch(paths: MinimalPaths, s: int, j: int) -> int:
    """The next switch on the minimal path."""
    onward = paths.onward[s]
    return int(paths.next_hop[~onward, j] >> 1) if onward < 0 else int(onward)


@loop
def has_link(links: Array, k: int) -> bool:
    """Whether a set of links, uint8[B], has one."""
    return bool(links[k >> 3] >> (7 - (k & 7)) & 1)


@loop
def links_after_u_turn(
    states: ClassStates, paths: MinimalPaths, s: int, c: int, j: int, d: int
) -> int:
    """The links of a packet that a host sends to s from behind the minimal link of c; 0 if none."""
    k, links = states.u_turn[s, c], 2
    if k < 0:
        return 0
    u = states.program.far[s, k]
    while u >= 0 and u != d and links < MOST:
        u = next_switch(paths, u, j)
        links += 1
    return links


@loop
def follow_defaults(states: ClassStates, rows: DestinationRows, paths: MinimalPaths) -> bool:
    """Write `onward`, `entry` and `entry_hops`; whether switches in use come to a listed one."""
    default, onward = rows.default, paths.onward
    for s in range(len(default)):
        if rows.row[s] >= 0:
            onward[s] = ~rows.row[s]
        elif default[s] >= 0:
            onward[s] = states.summary[s, default[s]] >> NEXT
            if onward[s] < 0:
                return False
        elif states.in_use[s]:
            return False
        else:
            onward[s] = s
    for s in range(len(default)):
        u, links = onward[s], 0
        while u >= 0 and links < MOST:
            u = onward[u]
            links += 1
        if u >= 0 and states.in_use[s]:
            return False
        paths.entry[s], paths.entry_hops[s] = ~u if u < 0 else 0, links
    return True


@loop
def write_next_hops(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: Findings
) -> None:
    """Write `next_hop`, and see that each destination alone delivers its packets."""
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        for j in range(len(rows.destinations)):
            c = rows.egress[i, j]
            paths.next_hop[i, j] = 2 * NONE
            if c >= 0 and states.program.order[s, c, 0] >= 0:
                summary = states.summary[s, c]
                paths.next_hop[i, j] = 2 * (summary >> NEXT) + (summary & DETOURS > 0)
            if states.in_use[s] and (c == DELIVER) != (s == rows.destinations[j]):
                findings.delivers[j] = False


@loop
def follow_listed(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: Findings
) -> None:
    """Write `hops` of listed switches, whose paths stay among such; see that all in use arrive.

    Where the next switch may send a host's packet back to s, `longest` counts what follows.
    """
    p, row, next_hop = states.program, rows.row, paths.next_hop
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        for j in range(len(rows.destinations)):
            d, first = rows.destinations[j], next_hop[i, j] >> 1
            if s == d:
                paths.hops[i, j] = 0
                continue
            paths.hops[i, j] = UNREACHED
            if first < 0 or row[first] < 0:
                if states.in_use[s]:
                    findings.delivers[j] = False
                continue
            u, links = first, 1
            while u >= 0 and row[u] >= 0 and u != d and links < MOST:
                u = next_hop[row[u], j] >> 1
                links += 1
            if u == d:
                paths.hops[i, j] = links
            elif states.in_use[s]:
                findings.delivers[j] = False
            if first != d and states.in_use[s] and next_hop[row[first], j] & 1:
                c = rows.egress[i, j]
                back = p.far_link[s, p.order[s, c, 0]]
                if has_link(states.shared_links[first, rows.egress[row[first], j]], back):
                    links = links_after_u_turn(states, paths, s, c, j, d)
                    findings.longest[j] = max(findings.longest[j], links)


@loop
def count_pairs(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: Findings
) -> int:
    """Write `hop_counts`, and `longest` of minimal paths; the links of the longest of them."""
    most = 0
    # Switches with hosts by the listed switch that they come to, and the links to it.
    by_entry = np.zeros((len(rows.listed), MOST + 1), np.int64)
    for s in range(len(rows.default)):
        if states.in_use[s]:
            by_entry[paths.entry[s], paths.entry_hops[s]] += states.has_hosts[s]
    for i in range(len(rows.listed)):
        for before in range(MOST):
            if not by_entry[i, before]:
                continue
            for j in range(len(rows.destinations)):
                if paths.hops[i, j] < UNREACHED and before + paths.hops[i, j] < MOST:
                    findings.hop_counts[j, before + paths.hops[i, j]] += by_entry[i, before]
        for j in range(len(rows.destinations)):
            if paths.hops[i, j] < UNREACHED and states.in_use[rows.listed[i]]:
                most = max(most, paths.hops[i, j])
    for j in range(len(rows.destinations)):
        findings.hop_counts[j, 0] = 0
        for links in range(MOST):
            if findings.hop_counts[j, links]:
                most = max(most, links)
                findings.longest[j] = max(findings.longest[j], links)
    return most


@loop
def count_choices(states: ClassStates, rows: DestinationRows, findings: Findings) -> bool:
    """Write `choices`; whether hosts may take other links than the minimal one."""
    shared, detours = 0, False
    for s in range(len(rows.default)):
        if rows.row[s] < 0 and states.has_hosts[s]:
            summary = states.summary[s, rows.default[s]]
            shared += summary & SHARES
            detours |= summary & DETOURS > 0
    for i in range(len(rows.listed)):
        for j in range(len(rows.destinations)):
            if rows.egress[i, j] >= 0 and states.has_hosts[rows.listed[i]]:
                summary = states.summary[rows.listed[i], rows.egress[i, j]]
                findings.choices[j] += summary & SHARES
                detours |= summary & DETOURS > 0
    for j in range(len(rows.destinations)):
        findings.choices[j] += shared
    return detours


@loop
def require_shortest(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, findings: Findings, most: int
) -> None:
    """See that minimal paths from switches with hosts are shortest paths of the cables.

    most: links of the longest minimal path.
    """
    p, delivers = states.program, findings.delivers
    seen, queue = np.zeros(len(rows.default), np.bool_), np.empty(len(rows.default), np.int32)
    for j in range(len(delivers)):
        if not delivers[j]:
            continue
        d, count, begin = rows.destinations[j], 1, 0
        seen[d], queue[0] = True, d
        for links in range(1, most):
            end = count
            for place in range(begin, end):
                for k in range(p.far.shape[1]):
                    u = p.far[queue[place], k]
                    if u >= 0 and not seen[u]:
                        seen[u], queue[count] = True, u
                        count += 1
                        hops = paths.entry_hops[u] + paths.hops[paths.entry[u], j]
                        if states.has_hosts[u] and hops != links:
                            delivers[j] = False
            begin = end
        for place in range(count):
            seen[queue[place]] = False


@loop
def unite_shared_links(states: ClassStates, rows: DestinationRows, united: Array) -> None:
    """Write the links that hosts may use for some destination, uint8[n, B], by listed switch."""
    united[:] = 0
    for i in range(len(rows.listed)):
        for j in range(len(rows.destinations)):
            if rows.egress[i, j] >= 0:
                shared = states.shared_links[rows.listed[i], rows.egress[i, j]]
                for byte in range(len(shared)):
                    united[i, byte] |= shared[byte]


@loop
def hosts_are_turned(
    states: ClassStates, rows: DestinationRows, paths: MinimalPaths, united: Array
) -> bool:
    """Whether a switch that is not listed may get back, from its next switch, a host's packet.

    united: of `unite_shared_links`.
    """
    for s in range(len(rows.default)):
        if rows.row[s] >= 0 or not states.in_use[s]:
            continue
        first = paths.onward[s]
        back = states.summary[s, rows.default[s]] >> BACK & LINKS
        if paths.onward[first] < 0:
            turned = has_link(united[~paths.onward[first]], back)
        else:
            c = rows.default[first]
            detours = states.summary[first, c] & DETOURS > 0
            turned = detours and has_link(states.shared_links[first, c], back)
        if turned:
            return True
    return False
