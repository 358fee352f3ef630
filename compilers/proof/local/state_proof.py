"""Prove that packets in every state arrive, without following them: by a look at the neighbours.

A state of a packet is what decides its next hop: a switch, an ingress link and a destination. A
walk follows packets through all states and under all failures. This proof looks at each state once,
and needs a few look-ups for it. `local_proof` calls `prove_states` for a block of destinations at a
time, with what each egress class does (`class_cases`); the results are written into
`LocalFindings`.

*The argument.* Let d be a destination, and let the minimal paths of all switches to d arrive, which
is proved first (`minimal_paths`). While all is up, a packet in transit leaves by the minimal link
of its egress class, unless it came in by that link. So only the other packets need a proof. Such a
packet is in a switch s, which sends it to a neighbour u because of its ingress link, or because the
minimal link to v, or v itself, is down.

1. If the minimal path from u meets neither s nor v, the packet arrives over it.
2. If the minimal path from u begins with s, then u sends the packet over its first link of `bounce`
   to w. If the minimal path from w meets neither s, u nor v, the packet arrives over it.

The cases of a class (`class_cases`) say to which u packets go, for all ingress links. So a few
look-ups prove all states of a switch and a destination. Where neither 1 nor 2 holds, these states
are followed exactly, by the rule itself. If a packet is lost there, the destination is not proved,
and is left to a walk.

*Why this is enough.* Every packet of a host comes into such a state at the first switch after its
own, whatever link the host chose. A failure changes nothing before a packet comes to a switch whose
link is down, and its state there is proved under that failure. States that never occur are proved
as well: that costs little, but may leave a destination to the walk without need.

*Where it holds.* One link or one switch is down; no two links join the same switches; packets in
transit have one next hop. The family of the topology does not matter.

A *listed* switch has an egress class for each destination of the block. Any other switch has one
class, its *default*, for all of them (`minimal_paths`).

Letters in the loops: p the forwarding program, s a switch, u the neighbour that it sends a packet
to, k a link, c an egress class, i the row of a listed switch, j the index of a destination in the
block, d the destination itself.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DELIVER, DROP, HOST, Array, spreads, transit
from compilers.proof.local.class_cases import (
    CASES,
    DOWN,
    END,
    LINK,
    LOST,
    NEXT_LINK,
    NODE,
    NONE,
    ClassStates,
    came_by_minimal,
    ingress_at,
    is_clear,
    link_taken,
)
from compilers.proof.local.minimal_paths import (
    LINKS_LIMIT,
    DestinationRows,
    LocalFindings,
    MinimalPaths,
    class_of,
    count_choices,
    count_pairs,
    follow_defaults,
    follow_listed,
    hop_switch,
    links_after_bounce,
    next_switch,
    require_shortest,
    unite_balanced_links,
    unlisted_may_bounce,
    write_next_hops,
)


@loop
def prove_states(
    states: ClassStates, rows: DestinationRows, may_fail: Array, findings: LocalFindings
) -> None:
    """Prove all states of packets to k destinations with hosts.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches for these destinations.
        may_fail: bool[2], whether links and whether switches may be down.
        findings: written; destinations whose paths do not all arrive are not looked at further.
    """
    switches = len(rows.default)
    paths = MinimalPaths(
        next_hop=np.empty(rows.egress.shape, np.int32),
        hops=np.empty(rows.egress.shape, np.int8),
        default_next=np.empty(switches, np.int32),
        entry=np.empty(switches, np.int32),
        entry_hops=np.zeros(switches, np.int8),
    )
    failed = np.empty(1, np.int64)  # scratch for all calls
    all_listed = len(rows.listed) == switches
    # While all is up: the minimal paths arrive, and are shortest paths.
    if not follow_defaults(states, rows, paths):
        findings.delivers[:] = False
        return
    write_next_hops(states, rows, paths, findings)
    follow_listed(states, rows, paths, findings)
    if not all_listed and not findings.delivers.all():
        # Packets of a switch that is not listed take one path for all destinations of the block.
        findings.delivers[:] = False
        return
    most_hops = count_pairs(states, rows, paths, findings)
    if count_choices(states, rows, findings):
        # A detour has one link, or two with a mark, before a minimal path begins.
        raise_longest(findings, most_hops + 1 + states.marks)
    require_shortest(states, rows, paths, findings, most_hops)
    # All other packets, and all failures: state by state.
    prove_listed(states, rows, paths, may_fail, findings, most_hops, failed)
    if not all_listed:
        united = np.empty((len(rows.listed), states.balanced_links.shape[2]), np.uint8)
        unite_balanced_links(states, rows, united)
        prove_defaults(states, rows, paths, may_fail, findings, most_hops, failed)
        if states.marks or unlisted_may_bounce(states, rows, paths, united):
            raise_longest(findings, most_hops + 2 + states.marks)


@loop
def raise_longest(findings: LocalFindings, links: int) -> None:
    """Raise the bound `longest` of all destinations to a number of links."""
    for j in range(len(findings.longest)):
        findings.longest[j] = max(findings.longest[j], links)


@loop
def add_one_link(findings: LocalFindings, j: int) -> None:
    """Raise the stretch of a destination to at least one link, for both kinds of failures."""
    findings.stretch[j, LINK] = max(findings.stretch[j, LINK], 1)
    findings.stretch[j, NODE] = max(findings.stretch[j, NODE], 1)


@loop
def prove_listed(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    may_fail: Array,
    findings: LocalFindings,
    most_hops: int,
    failed: Array,
) -> None:
    """Prove all states of the listed switches.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches.
        paths: the minimal paths.
        may_fail: bool[2], whether links and whether switches may be down.
        findings: written.
        most_hops: the links of the longest minimal path.
        failed: int64[1], scratch.
    """
    for i in range(len(rows.listed)):
        s = rows.listed[i]
        if not states.in_use[s]:
            continue
        for j in range(len(rows.destinations)):
            c = rows.egress[i, j]
            if c < 0 or not findings.delivers[j]:
                continue
            next_hop = hop_switch(paths.next_hop[i, j])
            if states.marks and spreads(states.program, class_of(rows, next_hop, j)):
                links = 1 + links_after_bounce(states, paths, s, c, j, rows.destinations[j])
                findings.longest[j] = max(findings.longest[j], links)
            if is_clear(states.summary[s, c]) and paths.hops[i, j] == most_hops:
                # No minimal path is longer than this one, so that of a neighbour meets neither s
                # nor the switch behind the link that is down.
                add_one_link(findings, j)
            else:
                prove_class(states, rows, paths, may_fail, findings, s, j, paths.hops[i, j], failed)


@loop
def prove_defaults(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    may_fail: Array,
    findings: LocalFindings,
    most_hops: int,
    failed: Array,
) -> None:
    """Prove all states of the switches that are not listed, with one class for all destinations.

    The arguments are those of `prove_listed`.
    """
    count = len(rows.destinations)
    # For each listed switch: the destinations by distance, and how many are nearer than a number
    # of links.
    by_hops = np.empty((len(rows.listed), count), np.int16)
    nearer = np.zeros((len(rows.listed), LINKS_LIMIT), np.int16)
    sort_by_hops(paths, most_hops, by_hops, nearer)
    for s in range(len(rows.default)):
        if rows.row[s] >= 0 or not states.in_use[s]:
            continue
        entry = paths.entry[s]  # the row of the first listed switch on the path from s
        unproved = count
        if is_clear(states.summary[s, rows.default[s]]):
            # The farthest destinations are proved as in `prove_listed`: no minimal path is longer.
            unproved = nearer[entry, most_hops - paths.entry_hops[s]]
            if unproved < count:
                # Only the largest stretch of all destinations is reported: any of them may get it.
                add_one_link(findings, 0)
        for rank in range(unproved):
            j = by_hops[entry, rank]
            minimal_hops = paths.entry_hops[s] + paths.hops[entry, j]
            if findings.delivers[j]:
                prove_class(states, rows, paths, may_fail, findings, s, j, minimal_hops, failed)


@loop
def sort_by_hops(paths: MinimalPaths, most_hops: int, by_hops: Array, nearer: Array) -> None:
    """Sort the destinations by their distance from each listed switch.

    Args:
        paths: the minimal paths.
        most_hops: the links of the longest minimal path.
        by_hops: int16[n, k], written: the indexes of the destinations, the nearest first.
        nearer: int16[n, LINKS_LIMIT], written: nearer[i, h] destinations are less than h links
            away.
    """
    listed, destinations = paths.hops.shape
    for i in range(listed):
        count = 0
        for links in range(most_hops + 1):
            nearer[i, links] = count
            for j in range(destinations):
                if paths.hops[i, j] == links:
                    by_hops[i, count] = j
                    count += 1
        for links in range(most_hops + 1, LINKS_LIMIT):
            nearer[i, links] = count


@loop
def prove_class(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    may_fail: Array,
    findings: LocalFindings,
    s: int,
    j: int,
    minimal_hops: int,
    failed: Array,
) -> None:
    """Prove all states of a switch for a destination by the cases of its class, or follow them.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches.
        paths: the minimal paths.
        may_fail: bool[2], whether links and whether switches may be down.
        findings: written.
        s: the switch.
        j: the index of the destination.
        minimal_hops: the links of the minimal path.
        failed: int64[1], scratch.
    """
    if not cases_avoid(states, rows, paths, may_fail, findings, s, j, minimal_hops):
        findings.delivers[j] = follow_states(
            states, rows, may_fail, findings, s, j, minimal_hops, failed
        )


@loop
def cases_avoid(
    states: ClassStates,
    rows: DestinationRows,
    paths: MinimalPaths,
    may_fail: Array,
    findings: LocalFindings,
    s: int,
    j: int,
    minimal_hops: int,
) -> bool:
    """Whether in every case of a class the packets arrive, by points 1 and 2 of the argument.

    If the class is clear, the minimal path from u need not be looked at if it is not longer than
    the minimal path from s. It meets neither s nor the switch v behind the link that is down: a
    path from u over s would be longer than the path from s. And as v is at most one link nearer
    than s, v could only come right after u, but in a clear class no cable joins u and v.

    The arguments are those of `prove_class`; `stretch` is raised if the answer is yes.
    """
    p, d, c = states.program, rows.destinations[j], class_of(rows, s, j)
    clear = is_clear(states.summary[s, c])
    most_by_link, most_by_node = 0, 0
    for i in range(CASES):
        down, next_link = states.cases[s, c, i, DOWN], states.cases[s, c, i, NEXT_LINK]
        if next_link == END:
            break
        if next_link == LOST:
            return False
        if came_by_minimal(next_link) and p.far[s, p.order[s, c, 0]] == d:
            continue  # no packet comes back from its destination
        next_link = link_taken(next_link)
        node_fails = down >= 0 and may_fail[NODE] and p.far[s, down] != d
        row = rows.row[p.far[s, next_link]]
        if clear and row >= 0 and paths.hops[row, j] <= minimal_hops:
            links = 1 + paths.hops[row, j]
        else:
            dead_switch = p.far[s, down] if node_fails else NONE
            links = links_avoiding(states, rows, paths, s, j, next_link, dead_switch)
            if links == NONE:
                return False
        if down >= 0:
            most_by_link = max(most_by_link, links - minimal_hops)
        if node_fails:
            most_by_node = max(most_by_node, links - minimal_hops)
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
    next_link: int,
    dead_switch: int,
) -> int:
    """How many links a packet takes that s sends over a link, by points 1 and 2 of the argument.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches.
        paths: the minimal paths.
        s: the switch.
        j: the index of the destination.
        next_link: the link.
        dead_switch: a switch that is down, or NONE.

    Returns:
        How many links it takes to d; NONE if the path meets s, the dead switch, or (in point 2) the
        neighbour u.
    """
    p, d = states.program, rows.destinations[j]
    u, switch, links = NONE, p.far[s, next_link], 1
    if next_switch(paths, switch, j) == s:
        u = switch
        k = states.bounce_link[u, class_of(rows, u, j)]
        switch, links = p.far[u, k] if k >= 0 else s, 2
    while switch != d and switch != s and switch != u and switch != dead_switch:
        switch = next_switch(paths, switch, j)
        links += 1
    return links if switch == d else NONE


@loop
def follow_states(
    states: ClassStates,
    rows: DestinationRows,
    may_fail: Array,
    findings: LocalFindings,
    s: int,
    j: int,
    minimal_hops: int,
    failed: Array,
) -> bool:
    """Follow the packets of all states of a switch for a destination, by the rule itself.

    Args:
        states: what switches do with packets of each class.
        rows: the classes of all switches.
        may_fail: bool[2], whether links and whether switches may be down.
        findings: `repaired` and `stretch` are written.
        s: the switch.
        j: the index of the destination.
        minimal_hops: the links of the minimal path.
        failed: int64[1], scratch.

    Returns:
        Whether all packets arrive while all is up.
    """
    p, d, c = states.program, rows.destinations[j], class_of(rows, s, j)
    for index in range(p.order.shape[2] + 2):
        ingress = ingress_at(p, s, c, index)
        if ingress == NONE or (ingress >= 0 and p.far[s, ingress] == d):
            continue
        sole_link = states.sole_link[s, c] if ingress == HOST else NONE
        if links_followed(states, rows, j, s, ingress, sole_link, failed[:0]) < 0:
            return False
        link = sole_link if sole_link >= 0 else transit(p, s, ingress, c, failed[:0])
        for kind in (LINK, NODE):
            is_destination = kind == NODE and p.far[s, link] == d
            if not may_fail[kind] or link == ingress or is_destination:
                continue
            failed[0] = p.cable[s, link] if kind == LINK else p.cable_count + p.far[s, link]
            links = links_followed(states, rows, j, s, ingress, NONE, failed)
            if links < 0:
                findings.repaired[j, kind] = False
            elif links - minimal_hops > findings.stretch[j, kind]:
                findings.stretch[j, kind] = links - minimal_hops
    return True


@loop
def links_followed(
    states: ClassStates,
    rows: DestinationRows,
    j: int,
    s: int,
    ingress: int,
    first_link: int,
    failed: Array,
) -> int:
    """How many links a packet takes from switch s on; DROP, which is negative, if it is lost.

    Args:
        states: with the program.
        rows: the classes of all switches.
        j: the index of the destination.
        s: the switch that the packet is in.
        ingress: its ingress link.
        first_link: the first link that it takes; NONE: the link that the rule says.
        failed: int64[n], the failed elements.
    """
    p, d = states.program, rows.destinations[j]
    for links in range(LINKS_LIMIT):
        c = class_of(rows, s, j)
        if c < 0:
            return links if c == DELIVER and s == d else DROP
        link = transit(p, s, ingress, c, failed) if links or first_link < 0 else first_link
        if link < 0:
            return DROP
        ingress = p.far_link[s, link]
        s = p.far[s, link]
    return DROP
