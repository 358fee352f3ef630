"""Packets followed by asking the rule itself: any sets of failures, and exactly what they lose.

It is slower than `single_failures`, and does what that cannot: paths that are shared at every hop,
several elements that are down at once, and which pairs of switches lose packets.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import (
    DELIVER,
    DROP,
    HOST,
    MARKED,
    OTHER,
    PLAIN,
    Array,
    Program,
    contains,
    is_up,
    next_links,
    spreads,
    transit,
)
from compilers.forwarding.single_failures import (
    FIGURES,
    LONGEST,
    LOOPED,
    PATHS,
    SUSPECT,
    minimal_hops,
)
from compilers.tables.fib import MOST_HOPS

STRAYS = SUSPECT
"""In its place these loops count the states in which packets are lost without a failure."""


@loop
def state_of(p: Program, s: int, came: int, tag: int, c: int, every: bool) -> int:
    """The number of a packet's state, without its destination: (2K + 2)·s + a place.

    Ingress links that the class does not name are one, OTHER, unless `every` one is its own.
    """
    links: int = p.far.shape[1]
    first: int = s * (2 * links + 2)
    if came == HOST:
        return first + links
    if tag == MARKED and spreads(p, c):
        return first + links + 2 + came
    if every:
        return int(first + came)
    named = c >= 0 and contains(p.order[s, c], came)
    if named or (c >= 0 and p.every_hop and contains(p.shares[s, c], came)):
        return first + came
    return first + links + 1


@loop
def packet_in(p: Program, state: int) -> tuple[int, int, int]:
    """The switch, ingress link and tag of a state."""
    links = p.far.shape[1]
    s, at = state // (2 * links + 2), state % (2 * links + 2)
    if at < links:
        return s, at, PLAIN
    if at == links:
        return s, HOST, PLAIN
    if at == links + 1:
        return s, OTHER, PLAIN
    return s, at - links - 2, MARKED


@loop
def flood(
    p: Program,
    egress: Array,
    d: int,
    dead: Array,
    every: bool,
    depth: Array,
    found: Array,
    n: int,
) -> tuple[int, int, bool, int]:
    """Follow packets over all paths to their ends, a link at a time.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        dead: the elements that are down.
        every: see `state_of`.
        depth: int8, by state the most links that a packet can have taken; -1: none came.
        found: the states that occur, of which the first n are those to begin with.
        n: how many these are.

    Returns:
        How many states occur, in how many packets are lost, whether some go on for ever, and the
        links of the longest path.
    """
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    now = found[:n].copy()
    links, strays, most = 0, 0, 0
    while len(now) and links < MOST_HOPS:
        later, m = np.empty(min(len(now) * links_of, len(depth)), np.int32), 0
        links += 1
        for state in now:
            s, came, tag = packet_in(p, state)
            several = next_links(p, s, came, tag, egress[s], dead, link, tags)
            strays += several == 0
            for i in range(several):
                k = link[i]
                if k < 0 or s == d:
                    strays += k != DELIVER or s != d
                    most = max(most, links - 1)
                    continue
                t = p.far[s, k]
                into = state_of(p, t, p.far_link[s, k], tags[i], egress[t], every)
                if depth[into] < 0:
                    found[n] = into
                    n += 1
                if depth[into] < links:
                    depth[into], later[m] = links, into
                    m += 1
        now = later[:m]
    return n, strays + len(now), len(now) > 0, most


@loop
def follow(
    p: Program,
    egress: Array,
    s: int,
    came: int,
    d: int,
    dead: Array,
    every: bool,
    depth: Array,
    found: Array,
) -> int:
    """The most links that a packet takes to d from where it met a failure, so in transit or with
    no link of a host's up; DROP or LOOPED if any path ends so.
    """
    if not p.every_hop:
        for links in range(MOST_HOPS):
            k = transit(p, s, came, egress[s], dead)
            if k < 0:
                return links if k == DELIVER and s == d else DROP
            s, came = p.far[s, k], p.far_link[s, k]
        return LOOPED
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    for links in range(MOST_HOPS):
        several = next_links(p, s, came, PLAIN, egress[s], dead, link, tags)
        if several > 1:
            found[0] = state_of(p, s, came, PLAIN, egress[s], every)
            depth[found[0]] = 0
            n, strays, looped, most = flood(p, egress, d, dead, every, depth, found, 1)
            for state in found[:n]:
                depth[state] = -1
            if looped:
                return LOOPED
            return DROP if strays else links + most
        k = link[0]
        if k < 0:
            return links if k == DELIVER and s == d else DROP
        s, came = p.far[s, k], p.far_link[s, k]
    return LOOPED


@loop
def needs(p: Program, s: int, came: int, c: int, most: int, none: Array, needed: Array) -> int:
    """Write the elements that a packet needs for its next hop, failures aside; how many they are.

    Of hosts' packets those of all their links, none of them if these are more than `most`: so many
    failures leave one that is up. needed: int64[2·most].
    """
    n = 0
    if came == HOST and c >= 0:
        for k in p.shares[s, c]:
            if k >= 0:
                if n == 2 * most:
                    return 0
                needed[n], needed[n + 1] = p.cable[s, k], p.cables + p.far[s, k]
                n += 2
        if n:
            return n
    k = transit(p, s, came, c, none)
    if k < 0:
        return 0
    needed[0], needed[1] = p.cable[s, k], p.cables + p.far[s, k]
    return 2


@loop
def meets(p: Program, s: int, came: int, c: int, d: int, dead: Array) -> bool:
    """Whether a packet meets these failures here: its switch, its destination and its ingress link
    are up, and none of a host's links is.
    """
    for element in dead:
        if element == p.cables + d or element == p.cables + s:
            return False
    if came >= 0 and not is_up(p, s, came, dead):
        return False
    if came == HOST:  # which needs a link, so it has a class
        for k in p.shares[s, c]:
            if k >= 0 and is_up(p, s, k, dead):
                return False
    return True


@loop
def start(
    p: Program, ends: Array, egress: Array, d: int, depth: Array, found: Array
) -> tuple[int, int]:
    """The states of all packets that hosts send to d; how many these are, and their paths."""
    links_of = p.far.shape[1]
    n, paths = 0, 0
    for s in range(len(ends)):
        if ends[s] and s != d:
            found[n] = s * (2 * links_of + 2) + links_of
            depth[found[n]] = 0
            n += 1
            if egress[s] >= 0:
                for k in p.shares[s, egress[s]]:
                    paths += k >= 0
    return n, paths


@loop
def distinguished(p: Program, egress: Array, depth: Array, found: Array, failures: int) -> Array:
    """The states that so many failures can distinguish, and of the others those after most links.

    A switch distinguishes the ingress links that its class names. Of all others as many are kept as
    elements fail: the next link is down, so one of them is up, and what came by it does what those
    of all others do.
    """
    kept, count = np.empty(len(found), np.int32), 0
    others = np.zeros(len(p.far), np.int32)
    order = np.argsort(-depth[found])
    for i in order:
        s, came, tag = packet_in(p, found[i])
        c = egress[s]
        transits = came >= 0 and c >= 0 and tag == PLAIN
        if transits and not contains(p.order[s, c], came) and not contains(p.bounce[s, c], came):
            others[s] += 1
            if others[s] > failures:
                continue
        kept[count] = found[i]
        count += 1
    return kept[:count]


@loop
def grown(rows: Array, count: int) -> Array:
    """The rows, or twice as many where `count` have no room for one more."""
    if count < len(rows):
        return rows
    more = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more


@loop
def edges_into(p: Program, egress: Array, d: int, every: bool, found: Array) -> tuple[Array, Array]:
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
        for state in found:
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
    found: Array,
    done: int,
    n: int,
    stamp: int,
) -> int:
    """Add the states from which packets come to those in `found` while elements are down.

    Those from `done` to n are looked at, and what is added. seen: int8 by state, `stamp` is written
    for each; those that have one are passed over. Returns how many `found` has.
    """
    width = 2 * p.far.shape[1] + 2
    while done < n:
        state = found[done]
        done += 1
        for x in range(begins[state], begins[state + 1]):
            before, k = edges[x, 0], edges[x, 1]
            s = before // width
            if seen[before] >= 0 or contains(dead, p.cables + s) or not is_up(p, s, k, dead):
                continue
            seen[before], found[n] = stamp, before
            n += 1
    return n


@loop
def walk_cases(
    p: Program,
    ends: Array,
    egresses: Array,
    destinations: Array,
    table: Array,
    cases: Array,
    first: Array,
    of_element: Array,
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
        cases: int64[n, F], the elements that are down in each case, E + S beyond the last.
        first: int64[E + S + 1]: the cases of element e are `of_element[first[e] : first[e + 1]]`.
        of_element: see there.
        every: see `state_of`; needed where two elements or more fail at once.
        figures: int64[D, FIGURES + 2], written: the paths that hosts may choose, the longest, the
            states in which packets are lost without failures, the longest path of a packet that
            met a failure, and the most links that a repair adds.
        longest: int64[n], raised to the longest path of a packet that met a case's failures.

    Returns:
        int64[m, 4]: case, source and column of each pair that loses packets, and whether some of
        these go on for ever.
    """
    switches, links_of = p.far.shape
    cells, at_once = switches * (2 * links_of + 2), cases.shape[1]
    none = np.empty(0, np.int64)
    depth, other = np.full(cells, -1, np.int8), np.full(cells, -1, np.int8)
    found, more = np.empty(cells, np.int32), np.empty(cells, np.int32)
    hops, after = np.empty(switches, np.int8), np.empty(switches, np.int32)
    needed = np.empty(2 * at_once + 2, np.int64)
    tried, newest = np.full(len(cases), -1, np.int64), np.full(len(cases), -1, np.int64)
    losing_cases, thin = np.empty(len(cases), np.int64), every and not p.every_hop
    begins, edges = np.zeros(0, np.int64), np.zeros((0, 2), np.int32)
    losing, lost, count = np.empty((64, 3), np.int64), np.empty((64, 4), np.int64), 0
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(switches):
            after[s] = table[s, egress[s]]
        minimal_hops(d, after, hops)
        n, figures[j, PATHS] = start(p, ends, egress, d, depth, found)
        n, figures[j, STRAYS], _, figures[j, LONGEST] = flood(
            p, egress, d, none, every, depth, found, n
        )
        losses, touched = 0, 0
        for turn in range(0 if thin else 1, 2 if len(cases) else 0):
            states = found[:n]
            if turn == 0 and thin:
                states = distinguished(p, egress, depth, states, at_once)
            elif turn == 1 and thin and not losses:
                break  # only where packets are lost does it matter by which links they came
            for x in range(touched):
                newest[losing_cases[x]] = -1
            losses, touched = 0, 0
            for i in range(len(states)):
                s, came, tag = packet_in(p, states[i])
                if tag == MARKED:
                    continue
                for at in range(needs(p, s, came, egress[s], at_once, none, needed)):
                    for x in range(first[needed[at]], first[needed[at] + 1]):
                        case = of_element[x]
                        if tried[case] == (2 * j + turn) * cells + i:
                            continue
                        tried[case] = (2 * j + turn) * cells + i
                        if not meets(p, s, came, egress[s], d, cases[case]):
                            continue
                        taken = follow(p, egress, s, came, d, cases[case], every, other, more)
                        if taken >= 0:
                            links = depth[states[i]] + taken
                            longest[case] = max(longest[case], links)
                            figures[j, FIGURES] = max(figures[j, FIGURES], links)
                            figures[j, FIGURES + 1] = max(figures[j, FIGURES + 1], taken - hops[s])
                            continue
                        if newest[case] < 0:
                            losing_cases[touched] = case
                            touched += 1
                        losing = grown(losing, losses)
                        losing[losses, 0], losing[losses, 1] = states[i], newest[case]
                        losing[losses, 2] = int(taken == LOOPED)
                        newest[case] = losses
                        losses += 1
        if losses:
            begins, edges = edges_into(p, egress, d, every, found[:n])
        for x in range(touched):
            case = losing_cases[x]
            m = 0
            for looped in range(1, -1, -1):  # first those that some packets go on from for ever
                at = newest[case]
                marked = m
                while at >= 0:
                    state = losing[at, 0]
                    if other[state] < 0 and losing[at, 2] >= looped:
                        other[state], more[m] = looped, state
                        m += 1
                    at = losing[at, 1]
                m = came_from(p, cases[case], begins, edges, other, more, marked, m, looped)
                for state in more[marked:m]:
                    s, came, _ = packet_in(p, state)
                    if came == HOST:
                        lost = grown(lost, count)
                        lost[count, 0], lost[count, 1], lost[count, 2] = case, s, j
                        lost[count, 3] = looped
                        count += 1
            for state in more[:m]:
                other[state] = -1
            newest[case] = -1
        for state in found[:n]:
            depth[state] = -1
    return lost[:count]


@loop
def has_other(p: Program, s: int, came: int, d: int, used: Array) -> bool:
    """Whether an element can fail that a packet at s does not need; in a small ring none can."""
    for element in range(p.cables + len(p.far)):
        at = element - p.cables
        if at in (s, d) or (at >= 0 and p.far[at, 0] < 0) or contains(used, element):
            continue
        if came < 0 or (element != p.cable[s, came] and at != p.far[s, came]):
            return True
    return False


@loop
def walk_two(
    p: Program, ends: Array, egresses: Array, destinations: Array, table: Array, figures: Array
) -> None:
    """Follow all packets that meet two failures, of all pairs of links and switches.

    A packet that meets one failure goes on under it. What it needs then may be the second failure.
    So pairs that no packet meets cost nothing.

    Args:
        p: what switches hold; not `every_hop`.
        ends: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        table: of `minimal_next`.
        figures: int64[D, 3], written: the longest path of a packet that met two failures, the most
            links that these add, and whether a packet is lost.
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    none, one, dead = np.empty(0, np.int64), np.empty(1, np.int64), np.empty(2, np.int64)
    depth, other = np.full(cells, -1, np.int8), np.full(cells, -1, np.int8)
    found, more = np.empty(cells, np.int32), np.empty(cells, np.int32)
    hops, after = np.empty(switches, np.int8), np.empty(switches, np.int32)
    needed, again = np.empty(6, np.int64), np.empty(6, np.int64)
    used = np.empty(2 * MOST_HOPS + 8, np.int64)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(switches):
            after[s] = table[s, egress[s]]
        minimal_hops(d, after, hops)
        n, _ = start(p, ends, egress, d, depth, found)
        n, _, _, _ = flood(p, egress, d, none, True, depth, found, n)
        for state in distinguished(p, egress, depth, found[:n], 2):
            s, came, tag = packet_in(p, state)
            c = egress[s]
            if tag == MARKED:
                continue
            count = needs(p, s, came, c, 2, none, needed)
            for x in range(count):
                one[0] = needed[x]
                at, entry, m, k = s, came, 0, DROP
                while m < 2 * MOST_HOPS:  # what it needs while one is down
                    k = transit(p, at, entry, egress[at], one)
                    if k < 0:
                        break
                    used[m], used[m + 1] = p.cable[at, k], p.cables + p.far[at, k]
                    m += 2
                    at, entry = p.far[at, k], p.far_link[at, k]
                home = k == DELIVER and at == d
                if came == HOST:
                    for y in range(needs(p, s, came, c, 2, none, again)):
                        used[m] = again[y]
                        m += 1
                if not home and meets(p, s, came, c, d, one):
                    figures[j, 2] = True
                used[m] = one[0]
                m += 1
                other_fails = has_other(p, s, came, d, used[:m])
                for second in used[:m]:
                    if second == one[0] and not other_fails:
                        continue
                    dead[0], dead[1] = one[0], second
                    if not meets(p, s, came, c, d, dead):
                        continue
                    taken = follow(p, egress, s, came, d, dead, True, other, more)
                    if taken >= 0:
                        figures[j, 0] = max(figures[j, 0], depth[state] + taken)
                        figures[j, 1] = max(figures[j, 1], taken - hops[s])
                    else:
                        figures[j, 2] = True
        for state in found[:n]:
            depth[state] = -1


@loop
def come_by(
    p: Program, egress: Array, d: int, s: int, k: int, into: int, seen: Array, found: Array, n: int
) -> int:
    """Add the states of a switch in which packets may leave by a link, into a state; -1: into any.

    Those that `seen`, int8 by state, has are passed over. Returns how many `found` has.
    """
    links_of, none = p.far.shape[1], np.empty(0, np.int64)
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    t, came_in, width = p.far[s, k], p.far_link[s, k], 2 * links_of + 2
    for state in range(s * width, s * width + (width if len(p.onward) else links_of + 2)):
        _, came, tag = packet_in(p, state)
        if s == d or seen[state] >= 0 or state_of(p, s, came, tag, egress[s], False) != state:
            continue
        for i in range(next_links(p, s, came, tag, egress[s], none, link, tags)):
            if link[i] == k and (
                into < 0 or state_of(p, t, came_in, tags[i], egress[t], False) == into
            ):
                seen[state], found[n] = 0, state
                n += 1
                break
    return n


@loop
def crossing(p: Program, egresses: Array, destinations: Array, chosen: Array) -> Array:
    """From which switches some path of hosts' packets takes one of these cables, without failures.

    Packets are followed back from the cables, if these are few.

    Args:
        p: what switches hold.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        chosen: bool[E], the cables.

    Returns:
        bool[D, S].
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    seen, found = np.full(cells, -1, np.int8), np.empty(cells, np.int32)
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    none = np.empty(0, np.int64)
    crosses = np.zeros((len(destinations), switches), np.bool_)
    begin = np.empty((2 * len(chosen), 2), np.int64)
    ends = 0
    for s in range(switches):
        for k in range(links_of):
            if p.cable[s, k] >= 0 and chosen[p.cable[s, k]]:
                begin[ends] = s, k
                ends += 1
    # Where they are many, following packets from their hosts is sooner done.
    ahead = ends > 4 * links_of and not p.every_hop and not len(p.onward)
    for j in range(len(destinations)):
        d, egress, n, done, left = destinations[j], egresses[j], 0, 0, 0
        for s in range(switches):  # most cross at once where many cables are chosen
            if s != d and egress[s] >= 0:
                for i in range(next_links(p, s, HOST, PLAIN, egress[s], none, link, tags)):
                    if crosses[j, s] or link[i] < 0:
                        break
                    crosses[j, s] = chosen[p.cable[s, link[i]]]
                    t, came = p.far[s, link[i]], p.far_link[s, link[i]]
                    for _ in range(0 if crosses[j, s] or not ahead else MOST_HOPS):
                        k = transit(p, t, came, egress[t], none)
                        if k < 0 or t == d or crosses[j, s]:
                            break
                        crosses[j, s] = chosen[p.cable[t, k]]
                        t, came = p.far[t, k], p.far_link[t, k]
                left += not crosses[j, s]
        for s, k in begin[: ends if left and not ahead else 0]:
            n = come_by(p, egress, d, s, k, -1, seen, found, n)
        while done < n:
            state = found[done]
            s, came, tag = packet_in(p, state)
            crosses[j, s] |= came == HOST
            done += 1
            for k in range(links_of):
                t = p.far[s, k]
                if t >= 0 and state_of(p, s, k, tag, egress[s], False) == state:
                    n = come_by(p, egress, d, t, p.far_link[s, k], state, seen, found, n)
        for state in found[:n]:
            seen[state] = -1
    return crosses
