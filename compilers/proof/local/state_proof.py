"""Every state of every packet, proved by a look at its neighbours.

A state is a switch, an ingress link and a destination.

A packet in transit that did not come in by the minimal link of its egress class leaves by it while
all is up. So let the minimal paths of all switches to d arrive, which is looked at, and let s send
a packet elsewhere, to u, because of its ingress, or because the link to v is down, or v. If the
minimal path from u meets neither s nor v, the packet is home by it. If it begins with s, then u
sends what comes from there over its own first link of bounce, to w; if the minimal path from w
meets neither s, u nor v, the packet is home, too. A class knows the few pairs (link that is down,
link taken then) of all ingress links, so a few look-ups prove all states of a switch and a
destination. Where the answer is no, these states are followed exactly, by the rule itself. Where
that fails, the destination is not proved, and is left to a walk.

*Why this is enough.* Every packet that hosts can send comes into such a state at a neighbour of
theirs, whatever they choose. A failure changes nothing before a packet comes to a switch whose link
is down, and its state there is proved under that failure. States that never occur are proved as
well: that costs nothing, but may leave a destination to the walk without need.

It holds of one link or switch that is down, of links of which no two join the same switches, and
of packets in transit with one next hop. Nothing about planes or stars is used.

Letters in the loops: s a switch, u the neighbour that it sends a packet to, k a link, c an egress
class, j the place of a destination, d the destination itself.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DELIVER, DROP, HOST, Array, spreads, transit
from compilers.proof.local.class_cases import (
    CASES,
    CLEAR,
    END,
    FAILS,
    LINK,
    NODE,
    NONE,
    TURNED,
    ClassStates,
    ingress_at,
)
from compilers.proof.local.minimal_paths import (
    MOST,
    DestinationRows,
    Findings,
    MinimalPaths,
    class_of,
    count_choices,
    count_pairs,
    follow_defaults,
    follow_listed,
    hosts_are_turned,
    links_after_u_turn,
    next_switch,
    require_shortest,
    unite_shared_links,
    write_next_hops,
)


@loop
def prove_states(
    states: ClassStates, rows: DestinationRows, kinds: Array, findings: Findings
) -> None:
    """Prove all states of packets to k destinations with hosts.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches for these destinations.
        kinds: bool[2], whether links and switches may be down.
        findings: written.
    """
    switches = len(rows.default)
    paths = MinimalPaths(
        np.empty(rows.egress.shape, np.int32),
        np.empty(rows.egress.shape, np.int8),
        np.empty(switches, np.int32),
        np.empty(switches, np.int32),
        np.zeros(switches, np.int8),
    )
    dead = np.empty(1, np.int64)
    all_listed = len(rows.listed) == switches
    if not follow_defaults(states, rows, paths):
        findings.delivers[:] = False
        return
    write_next_hops(states, rows, paths, findings)
    follow_listed(states, rows, paths, findings)
    if not all_listed and not findings.delivers.all():
        findings.delivers[:] = False
        return
    most = count_pairs(states, rows, paths, findings)
    if count_choices(states, rows, findings):
        lengthen(findings, most + 1 + states.marks)
    require_shortest(states, rows, paths, findings, most)
    prove_listed(states, rows, paths, kinds, findings, most, dead)
    if not all_listed:
        united = np.empty((len(rows.listed), states.shared_links.shape[2]), np.uint8)
        unite_shared_links(states, rows, united)
        prove_defaults(states, rows, paths, kinds, findings, most, dead)
        if states.marks or hosts_are_turned(states, rows, paths, united):
            lengthen(findings, most + 2 + states.marks)


@loop
def lengthen(findings: Findings, links: int) -> None:
    """Let paths of hosts' packets have so many links."""
    for j in range(len(findings.longest)):
        findings.longest[j] = max(findings.longest[j], links)


@loop
def add_one_link(findings: Findings, j: int) -> None:
    """Let repairs of either kind of failure add a link."""
    findings.stretch[j, LINK] = max(findings.stretch[j, LINK], 1)
    findings.stretch[j, NODE] = max(findings.stretch[j, NODE], 1)


@loop
def prove_listed(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    kinds: Array,
    findings: Findings,
    most: int,
    dead: Array,
) -> None:
    """Prove all states of switches with a row for each destination.

    most: links of the longest minimal path. dead: int64[1], any.
    """
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        if not states.in_use[s]:
            continue
        for j in range(len(rows.destinations)):
            c = rows.egress[i, j]
            if c < 0 or not findings.delivers[j]:
                continue
            if states.marks and spreads(
                states.program, class_of(rows, paths.next_hop[i, j] >> 1, j)
            ):
                links = 1 + links_after_u_turn(states, paths, s, c, j, rows.destinations[j])
                findings.longest[j] = max(findings.longest[j], links)
            if states.summary[s, c] & CLEAR and paths.hops[i, j] == most:
                # No other path is longer, so it meets neither s nor the switch behind a dead link.
                add_one_link(findings, j)
            else:
                prove_class(states, rows, paths, kinds, findings, s, j, paths.hops[i, j], dead)


@loop
def prove_defaults(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    kinds: Array,
    findings: Findings,
    most: int,
    dead: Array,
) -> None:
    """Prove all states of switches with one class for all destinations.

    most: links of the longest minimal path. dead: int64[1], any.
    """
    count = len(rows.destinations)
    by_hops = np.empty((len(rows.listed), count), np.int16)
    nearer = np.zeros((len(rows.listed), MOST), np.int16)
    sort_by_hops(paths, most, by_hops, nearer)
    for s in range(len(rows.default)):
        if rows.row[s] >= 0 or not states.in_use[s]:
            continue
        entry = paths.entry[s]
        still_open = count
        if states.summary[s, rows.default[s]] & CLEAR:
            # Towards the farthest destinations no other path is longer.
            still_open = nearer[entry, most - paths.entry_hops[s]]
            if still_open < count:
                add_one_link(findings, 0)
        for place in range(still_open):
            j = by_hops[entry, place]
            usual = paths.entry_hops[s] + paths.hops[entry, j]
            if findings.delivers[j]:
                prove_class(states, rows, paths, kinds, findings, s, j, usual, dead)


@loop
def sort_by_hops(paths: MinimalPaths, most: int, by_hops: Array, nearer: Array) -> None:
    """Sort the destinations by their links from each listed switch.

    most: links of the longest minimal path. by_hops: int16[n, k], written, places of destinations.
    nearer: int16[n, MOST], written, how many destinations have fewer links.
    """
    listed, count = paths.hops.shape
    for i in range(listed):
        sorted_ = 0
        for links in range(most + 1):
            nearer[i, links] = sorted_
            for j in range(count):
                if paths.hops[i, j] == links:
                    by_hops[i, sorted_] = j
                    sorted_ += 1
        for links in range(most + 1, MOST):
            nearer[i, links] = sorted_


@loop
def prove_class(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    kinds: Array,
    findings: Findings,
    s: int,
    j: int,
    usual: int,
    dead: Array,
) -> None:
    """Prove all states of a switch for a destination, or follow those of which the cases say no.

    usual: links of the minimal path. dead: int64[1], any.
    """
    if not cases_avoid(states, rows, paths, kinds, findings, s, j, usual):
        findings.delivers[j] = follow_states(states, rows, kinds, findings, s, j, usual, dead)


@loop
def cases_avoid(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    kinds: Array,
    findings: Findings,
    s: int,
    j: int,
    usual: int,
) -> bool:
    """Whether the minimal paths that packets of a switch come to avoid all that they have to.

    Of a class that is clear, a path that is no longer than the usual one does: s would have to be
    farther from its end than the path's first switch is, and the switch behind the dead link, which
    is next to s, to be that one or the next.
    """
    p, d, c = states.program, rows.destinations[j], class_of(rows, s, j)
    clear = states.summary[s, c] & CLEAR > 0
    most_by_link, most_by_node = 0, 0
    for i in range(CASES):
        down, taken = states.cases[s, c, i, 0], states.cases[s, c, i, 1]
        if taken == END:
            break
        if taken == FAILS:
            return False
        if taken >= TURNED:
            if p.far[s, p.order[s, c, 0]] == d:
                continue
            taken -= TURNED
        node_fails = down >= 0 and kinds[NODE] and p.far[s, down] != d
        listed = paths.onward[p.far[s, taken]]
        if clear and listed < 0 and paths.hops[~listed, j] <= usual:
            links = 1 + paths.hops[~listed, j]
        else:
            dead_switch = p.far[s, down] if node_fails else NONE
            links = links_avoiding(states, rows, paths, s, j, taken, dead_switch)
            if links == NONE:
                return False
        if down >= 0:
            most_by_link = max(most_by_link, links - usual)
        if node_fails:
            most_by_node = max(most_by_node, links - usual)
    findings.stretch[j, LINK] = max(findings.stretch[j, LINK], most_by_link)
    findings.stretch[j, NODE] = max(findings.stretch[j, NODE], most_by_node)
    return True


@loop
def links_avoiding(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    s: int,
    j: int,
    taken: int,
    dead_switch: int,
) -> int:
    """The links of a packet that s sends over `taken`; NONE where it meets what it has to avoid.

    That is s and the dead switch; and the neighbour u, if the minimal path from u begins with s, so
    that u sends the packet over its link for such packets.
    """
    p, d = states.program, rows.destinations[j]
    u, at, links = NONE, p.far[s, taken], 1
    if next_switch(paths, at, j) == s:
        u = at
        k = states.u_turn[u, class_of(rows, u, j)]
        at, links = p.far[u, k] if k >= 0 else s, 2
    while at != d and at != s and at != u and at != dead_switch:
        at = next_switch(paths, at, j)
        links += 1
    return links if at == d else NONE


@loop
def follow_states(
    states: ClassStates,
    rows: DestinationRows,
    kinds: Array,
    findings: Findings,
    s: int,
    j: int,
    usual: int,
    dead: Array,
) -> bool:
    """Follow all states of a switch for a destination; whether all arrive while all is up.

    usual: links of the minimal path. dead: int64[1], any.
    """
    p, d, c = states.program, rows.destinations[j], class_of(rows, s, j)
    for place in range(p.order.shape[2] + 2):
        came = ingress_at(p, s, c, place)
        if came == NONE or (came >= 0 and p.far[s, came] == d):
            continue
        first = states.sole_link[s, c] if came == HOST else NONE
        if links_followed(states, rows, j, s, came, first, dead[:0]) < 0:
            return False
        link = first if first >= 0 else transit(p, s, came, c, dead[:0])
        for kind in range(2):
            spared = kind == NODE and p.far[s, link] == d
            if not kinds[kind] or link == came or spared:
                continue
            dead[0] = p.cable[s, link] if kind == LINK else p.cables + p.far[s, link]
            links = links_followed(states, rows, j, s, came, NONE, dead)
            if links < 0:
                findings.repaired[j, kind] = False
            elif links - usual > findings.stretch[j, kind]:
                findings.stretch[j, kind] = links - usual
    return True


@loop
def links_followed(
    states: ClassStates,
    rows: DestinationRows,
    j: int,
    s: int,
    came: int,
    first: int,
    dead: Array,
) -> int:
    """The links that a packet takes, by `first` if that is a link; DROP if it is lost."""
    p, d = states.program, rows.destinations[j]
    for links in range(MOST):
        c = class_of(rows, s, j)
        if c < 0:
            return links if c == DELIVER and s == d else DROP
        link = transit(p, s, came, c, dead) if links or first < 0 else first
        if link < 0:
            return DROP
        came = p.far_link[s, link]
        s = p.far[s, link]
    return DROP
