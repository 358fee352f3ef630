"""Packets followed by asking the rule itself: any sets of failures, and exactly what they lose.

It is slower than `single_failures`, and does what that cannot: paths that are shared at every hop,
several elements that are down at once, and which pairs of switches lose packets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.met_failures import distinguished, follow, meets, needs
from compilers.forwarding.packet_states import flood, packet_in, start, state_of
from compilers.forwarding.rule import (
    HOST,
    MARKED,
    Array,
    Program,
    contains,
    is_up,
    next_links,
)
from compilers.forwarding.single_failures import LOOPED, minimal_hops

PATHS, LONGEST, STRAYS, LONGEST_MET, ADDED = range(5)
"""Columns of what `walk_cases` counts for a destination: the paths that hosts may choose, the
longest, the states in which packets are lost without failures, the longest path of a packet that
met a failure, and the most links that a repair adds.
"""
CASE, STATE, BEFORE, FOR_EVER = range(4)
"""Columns of lost packets: the case, their state, the row before of the same case (-1: none), and
whether some of them go on for ever.
"""
LOST_COLUMNS = 4
"""Columns of what `walk_cases` returns."""


class Cases(NamedTuple):
    """Sets of failures.

    down: int64[n, F], the elements that are down in each case; E + S beyond the last. first:
    int64[E + S + 1], where the cases of each element begin in `of_element`, int64[m].
    """

    down: Array
    first: Array
    of_element: Array


class Room(NamedTuple):
    """Arrays that the walk of a destination writes, made once for all destinations.

    depth: int8 by state, the most links that a packet can have taken to it; -1: none came. states:
    int32, the states that occur. seen, others: the same under a set of failures. hops: int8[S], the
    links of minimal paths. after: int32[S], the next switches on these. needed: int64, the elements
    that a packet needs. tried: int64 by case, the number of the last state that met it. newest:
    int64 by case, the row of the last packets that it lost; -1: none.
    """

    depth: Array
    states: Array
    seen: Array
    others: Array
    hops: Array
    after: Array
    needed: Array
    tried: Array
    newest: Array


def room_for(p: Program, cases: Cases) -> Room:
    """Room for the walks of a program under these sets of failures."""
    switches, links = p.far.shape
    cells, (count, at_once) = switches * (2 * links + 2), cases.down.shape
    return Room(
        depth=np.full(cells, -1, np.int8),
        states=np.empty(cells, np.int32),
        seen=np.full(cells, -1, np.int8),
        others=np.empty(cells, np.int32),
        hops=np.empty(switches, np.int8),
        after=np.empty(switches, np.int32),
        needed=np.empty(2 * at_once + 2, np.int64),
        tried=np.full(count, -1, np.int64),
        newest=np.full(count, -1, np.int64),
    )


@loop
def grown(rows: Array, count: int) -> Array:
    """The rows, or twice as many where `count` have no room for one more."""
    if count < len(rows):
        return rows
    more = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@loop
def edges_into(
    p: Program, egress: Array, d: int, every: bool, states: Array
) -> tuple[Array, Array]:
    """By which states packets come to each, without failures.

    Returns:
        int64[cells + 2], where the edges into a state begin, and int32[m, 2]: the state before and
        the link of each edge.
    """
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    none = np.empty(0, np.int64)
    begins = np.zeros(len(p.far) * (2 * links_of + 2) + 2, np.int64)
    edges = np.empty((0, 2), np.int32)
    for turn in range(2):
        for state in states:
            s, came, tag = packet_in(p, state)
            for i in range(next_links(p, s, came, tag, egress[s], none, link, tags)):
                k = link[i]
                if k < 0 or s == d:
                    continue
                t = p.far[s, k]
                into = state_of(p, t, p.far_link[s, k], tags[i], egress[t], every)
                if turn:
                    edges[begins[into + 1], 0], edges[begins[into + 1], 1] = state, k
                    begins[into + 1] += 1
                else:
                    begins[into + 2] += 1
        if not turn:
            begins = np.cumsum(begins)
            edges = np.empty((begins[-1], 2), np.int32)
    return begins, edges


@loop
def came_from(
    p: Program,
    dead: Array,
    begins: Array,
    edges: Array,
    seen: Array,
    states: Array,
    done: int,
    n: int,
    stamp: int,
) -> int:
    """Add the states from which packets come to those in `states` while elements are down.

    Those from `done` to n are looked at, and what is added. seen: int8 by state, `stamp` is written
    for each; those that have one are passed over. Returns how many `states` has.
    """
    width = 2 * p.far.shape[1] + 2
    while done < n:
        state = states[done]
        done += 1
        for x in range(begins[state], begins[state + 1]):
            before, k = edges[x, 0], edges[x, 1]
            s = before // width
            if seen[before] >= 0 or contains(dead, p.cables + s) or not is_up(p, s, k, dead):
                continue
            seen[before], states[n] = stamp, before
            n += 1
    return n


@loop
def usual_paths(
    p: Program,
    ends: Array,
    egress: Array,
    d: int,
    table: Array,
    every: bool,
    room: Room,
    figures: Array,
) -> int:
    """Follow the packets of hosts to d without failures, into `room`; how many states occur.

    Args:
        p: what switches hold.
        ends: bool[S], the switches with hosts.
        egress: int16[S], the class of each for d.
        d: the destination.
        table: of `minimal_next`.
        every: see `state_of`.
        room: its `depth` is -1 for all states.
        figures: int64, written: PATHS, LONGEST, STRAYS.
    """
    none = np.empty(0, np.int64)
    for s in range(len(p.far)):
        room.after[s] = table[s, egress[s]]
    minimal_hops(d, room.after, room.hops)
    n, figures[PATHS] = start(p, ends, egress, d, room.depth, room.states)
    n, figures[STRAYS], _, figures[LONGEST] = flood(
        p, egress, d, none, every, room.depth, room.states, n
    )
    return n


@loop
def packets_lost(
    p: Program,
    egress: Array,
    d: int,
    cases: Cases,
    every: bool,
    states: Array,
    number: int,
    room: Room,
    figures: Array,
    longest: Array,
) -> Array:
    """Follow the packets of some states under all sets of failures that they meet there.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        cases: the sets.
        every: see `state_of`.
        states: int32[n], where packets may meet failures.
        number: of the first state, other than those of earlier calls and below theirs.
        room: with the usual paths; its `newest` is -1 for all cases that it had none lost.
        figures: int64, raised: LONGEST_MET, ADDED.
        longest: int64 by case, raised to the longest path of a packet that met its failures.

    Returns:
        int64[m, 4], the states whose packets are lost, with the columns CASE to FOR_EVER. The
        newest row of each case is in `room`.
    """
    none, at_once = np.empty(0, np.int64), cases.down.shape[1]
    lost, count = np.empty((64, 4), np.int64), 0
    for i in range(len(states)):
        s, came, tag = packet_in(p, states[i])
        if tag == MARKED:
            continue
        for at in range(needs(p, s, came, egress[s], at_once, none, room.needed)):
            element = room.needed[at]
            for x in range(cases.first[element], cases.first[element + 1]):
                case = cases.of_element[x]
                if room.tried[case] == number + i:
                    continue
                room.tried[case] = number + i
                dead = cases.down[case]
                if not meets(p, s, came, egress[s], d, dead):
                    continue
                taken = follow(p, egress, s, came, d, dead, every, room.seen, room.others)
                if taken >= 0:
                    links = room.depth[states[i]] + taken
                    longest[case] = max(longest[case], links)
                    figures[LONGEST_MET] = max(figures[LONGEST_MET], links)
                    figures[ADDED] = max(figures[ADDED], taken - room.hops[s])
                    continue
                lost = grown(lost, count)
                lost[count, CASE], lost[count, STATE] = case, states[i]
                lost[count, BEFORE] = room.newest[case]
                lost[count, FOR_EVER] = int(taken == LOOPED)
                room.newest[case] = count
                count += 1
    return lost[:count]


@loop
def pairs_lost(
    p: Program, egress: Array, d: int, cases: Cases, every: bool, n: int, lost: Array, room: Room
) -> Array:
    """From which switches hosts send packets that are lost.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        cases: the sets of failures.
        every: see `state_of`.
        n: how many states occur without failures.
        lost: of `packets_lost`.
        room: with its states.

    Returns:
        int64[m, 3]: the case, the switch, and whether some of its packets go on for ever.
    """
    begins, edges = edges_into(p, egress, d, every, room.states[:n])
    pairs, count = np.empty((64, 3), np.int64), 0
    for row in lost:
        if row[BEFORE] >= 0:  # each case once, by the first packets that it loses
            continue
        case, m = row[CASE], 0
        for for_ever in range(1, -1, -1):  # first those that some packets go on from for ever
            at, begun = room.newest[case], m
            while at >= 0:
                state = lost[at, STATE]
                if room.seen[state] < 0 and lost[at, FOR_EVER] >= for_ever:
                    room.seen[state], room.others[m] = for_ever, state
                    m += 1
                at = lost[at, BEFORE]
            m = came_from(
                p, cases.down[case], begins, edges, room.seen, room.others, begun, m, for_ever
            )
            for state in room.others[begun:m]:
                s, came, _ = packet_in(p, state)
                if came == HOST:
                    pairs = grown(pairs, count)
                    pairs[count] = case, s, for_ever
                    count += 1
        for state in room.others[:m]:
            room.seen[state] = -1
    return pairs[:count]


@loop
def walk_cases(
    p: Program,
    ends: Array,
    egresses: Array,
    destinations: Array,
    table: Array,
    cases: Cases,
    room: Room,
    every: bool,
    figures: Array,
    longest: Array,
) -> Array:
    """Follow all packets of hosts to some destinations, without failures and under sets of them.

    Args:
        p: what switches hold.
        ends: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        table: of `minimal_next`.
        cases: the sets of failures.
        room: for these.
        every: see `state_of`; needed where two elements or more fail at once.
        figures: int64[D, 5], written, with the columns PATHS to ADDED.
        longest: int64 by case, raised to the longest path of a packet that met its failures.

    Returns:
        int64[m, 4]: case, source and column of each pair that loses packets, and whether some of
        these go on for ever.
    """
    lost, count = np.empty((64, LOST_COLUMNS), np.int64), 0
    cells, thin = len(room.depth), every and not p.every_hop
    for j in range(len(destinations)):
        d, egress, of_all = destinations[j], egresses[j], figures[j]
        n = usual_paths(p, ends, egress, d, table, every, room, of_all)
        states, loses = room.states[:n], len(cases.down) > 0
        if loses and thin:  # only where packets are lost does it matter by which links they came
            few = distinguished(p, egress, room.depth, states, cases.down.shape[1])
            packets = packets_lost(
                p, egress, d, cases, every, few, 2 * j * cells, room, of_all, longest
            )
            loses = len(packets) > 0
            room.newest[packets[:, CASE]] = -1
        if loses:
            number = (2 * j + 1) * cells
            packets = packets_lost(
                p, egress, d, cases, every, states, number, room, of_all, longest
            )
            if len(packets):
                for case, s, for_ever in pairs_lost(p, egress, d, cases, every, n, packets, room):
                    lost = grown(lost, count)
                    lost[count] = case, s, j, for_ever
                    count += 1
                room.newest[packets[:, CASE]] = -1
        room.depth[states] = -1
    return lost[:count]
