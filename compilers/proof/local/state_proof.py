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
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DELIVER, DROP, HOST, OTHER, Array, Program, spreads, transit

MOST = 64
CASES, FAILS, END = 4, -1, -2
"""Pairs that a class has at most; in place of a link: there is none; after the last."""
NONE, SEVERAL = -1, -2
TURNED = 1 << 12
"""Added to the link taken where packets came in by the minimal one: from no neighbour that is d."""
SHARES, CLEAR, DETOURS = (1 << 13) - 1, 1 << 13, 1 << 14
LINKS, BACK, NEXT = (1 << 13) - 1, 15, 28
"""Of words that say all that is looked up of a class for each destination."""
LINK, NODE = 0, 1
UNREACHED = 127


@loop
def cases_of_classes(
    p: Program,
    counts: Array,
    only: Array,
    kinds: Array,
    cases: Array,
    turn: Array,
    words: Array,
) -> None:
    """Ask the rule about all egress classes.

    Args:
        p: what switches hold, without shares.
        counts: int16[S, C], how many shares hosts' packets have.
        only: int16[S, C], the link that has all of them, NONE if none has; or SEVERAL have.
        kinds: bool[2], whether links and switches may be down.
        cases: int16[S, C, CASES, 2], written: the link that is down, NONE while all are up, and the
            link taken then.
        turn: int16[S, C], written: the link of packets that came in by the minimal one.
        words: int64[S, C], written, in bits: SHARES, how many have one; CLEAR, whether there
            is always a link to take, and the switches behind that and behind the one that is down
            are not joined; DETOURS, whether hosts may take another link than the minimal one; from
            BACK on, the number that this has at its other end; from NEXT on, the switch there.
    """
    switches, classes, named = p.order.shape
    dead = np.empty(1, np.int64)
    failing = kinds[LINK] or kinds[NODE]
    place_at = np.full(switches, NONE, np.int16)
    joined = np.empty((p.far.shape[1], p.far.shape[1]), np.bool_)
    for s in range(switches):
        joined[:] = False
        for k in range(p.far.shape[1]):
            if p.far[s, k] >= 0:
                place_at[p.far[s, k]] = k
        for k in range(p.far.shape[1] if kinds[NODE] else 0):
            for t in p.far[p.far[s, k]]:
                if p.far[s, k] >= 0 and t >= 0 and place_at[t] >= 0:
                    joined[k, place_at[t]] = True
        for k in range(p.far.shape[1]):
            if p.far[s, k] >= 0:
                place_at[p.far[s, k]] = NONE
        for c in range(classes):
            minimal = p.order[s, c, 0]
            found = cases[s, c]
            n = 0
            turn[s, c] = transit(p, s, minimal, c, dead[:0]) if minimal >= 0 else NONE
            for place in range(named + 2):
                came = HOST
                if place == 1:
                    came = OTHER
                elif place > 1:
                    came = p.order[s, c, place - 2]
                    if came < 0:
                        continue
                elif only[s, c] == SEVERAL:  # another is up, and leads to a state that is proved
                    continue
                k = transit(p, s, came, c, dead[:0])
                if place == 0 and only[s, c] >= 0:
                    k = only[s, c]
                more = TURNED if came == minimal else 0
                if k != minimal or k < 0:
                    n = enter(found, n, NONE, k, more)
                if failing and k >= 0 and k != came:
                    dead[0] = p.cable[s, k]
                    n = enter(found, n, k, transit(p, s, came, c, dead), more)
            if n > CASES:  # they are always followed
                found[0, 0], found[0, 1] = NONE, FAILS
                n = 1
            if n < CASES:
                found[n, 1] = END
            clear = minimal >= 0
            for i in range(n):
                then = found[i, 1] & (TURNED - 1)
                if found[i, 1] < 0 or (found[i, 0] >= 0 and joined[found[i, 0], then]):
                    clear = False
            word = (
                int(counts[s, c]) | (CLEAR if clear else 0) | (NONE << NEXT if minimal < 0 else 0)
            )
            if only[s, c] != NONE and only[s, c] != minimal:
                word |= DETOURS
            if minimal >= 0:
                word |= int(p.far[s, minimal]) << NEXT | int(p.far_link[s, minimal]) << BACK
            words[s, c] = word


@loop
def enter(cases: Array, n: int, down: int, then: int, more: int) -> int:
    """Add a case unless it is there, or the same link is with more to avoid; how many there are."""
    for i in range(min(n, CASES)):
        same = cases[i, 1] == then or cases[i, 1] == then + more
        if then >= 0 and same and (cases[i, 0] == down or down == NONE):
            return n
    if n < CASES:
        cases[n, 0], cases[n, 1] = down, then + more if then >= 0 else FAILS
    return n + 1


@loop
def class_of(egress: Array, base: Array, row: Array, s: int, j: int) -> int:
    """The class of a switch for a destination: by its own row, or the one for all of them."""
    return int(egress[row[s], j]) if row[s] >= 0 else int(base[s])


@loop
def next_of(one: Array, after: Array, s: int, j: int) -> int:
    """The next switch on the minimal path; `after` has ~place for a switch with its own row."""
    to = after[s]
    return int(one[~to, j] >> 1) if to < 0 else int(to)


@loop
def followed(
    p: Program,
    egress: Array,
    base: Array,
    row: Array,
    j: int,
    d: int,
    s: int,
    came: int,
    first: int,
    dead: Array,
) -> int:
    """The links that a packet takes to d, by `first` if that is a link; DROP if it is lost."""
    for links in range(MOST):
        c = class_of(egress, base, row, s, j)
        if c < 0:
            return links if c == DELIVER and s == d else DROP
        k = transit(p, s, came, c, dead) if links or first < 0 else first
        if k < 0:
            return DROP
        came = p.far_link[s, k]
        s = p.far[s, k]
    return DROP


@loop
def holds(
    p: Program,
    first: int,
    egress: Array,
    base: Array,
    row: Array,
    j: int,
    d: int,
    s: int,
    usual: int,
    kinds: Array,
    repaired: Array,
    stretch: Array,
    dead: Array,
) -> bool:
    """Follow all states of a switch for a destination; whether all arrive while all is up.

    first: the one link of hosts' packets, or none. usual: links to d. dead:
    int64[1], any.
    """
    c = class_of(egress, base, row, s, j)
    for place in range(p.order.shape[2] + 2):
        came, k = HOST, NONE
        if place == 0:
            k = first
        elif place == 1:
            came = OTHER
        else:
            came = p.order[s, c, place - 2]
            if came < 0 or p.far[s, came] == d:
                continue
        if followed(p, egress, base, row, j, d, s, came, k, dead[:0]) < 0:
            return False
        if k < 0:
            k = transit(p, s, came, c, dead[:0])
        for kind in range(2):
            if kinds[kind] and k != came and not (kind == NODE and p.far[s, k] == d):
                dead[0] = p.cable[s, k] if kind == LINK else p.cables + p.far[s, k]
                links = followed(p, egress, base, row, j, d, s, came, NONE, dead)
                if links < 0:
                    repaired[j, kind] = False
                elif links - usual > stretch[j, kind]:
                    stretch[j, kind] = links - usual
    return True


@loop
def avoids(
    p: Program,
    cases: Array,
    turn: Array,
    egress: Array,
    base: Array,
    row: Array,
    one: Array,
    after: Array,
    hops: Array,
    j: int,
    d: int,
    s: int,
    c: int,
    clear: bool,
    usual: int,
    kinds: Array,
    stretch: Array,
) -> bool:
    """Whether the minimal paths that packets of a switch come to avoid all that they have to.

    Of a class that is clear, a path that is no longer than the usual one does: s would have to be
    farther from its end than the path's first switch is, and v, which is next to s, to be that one
    or the next.
    """
    most, more = 0, 0
    for i in range(CASES):
        down, then = cases[s, c, i, 0], cases[s, c, i, 1]
        if then == END:
            break
        if then == FAILS:
            return False
        if then >= TURNED:
            if p.far[s, p.order[s, c, 0]] == d:
                continue
            then -= TURNED
        u, at, links = NONE, p.far[s, then], 1
        fails = down >= 0 and kinds[NODE] and p.far[s, down] != d
        to = after[at]
        if clear and to < 0 and hops[~to, j] <= usual:
            links += hops[~to, j]
        else:
            v = p.far[s, down] if fails else NONE
            if next_of(one, after, at, j) == s:
                u = at
                k = turn[u, class_of(egress, base, row, u, j)]
                at, links = p.far[u, k] if k >= 0 else s, 2
            while at != d and at != s and at != u and at != v:
                at = next_of(one, after, at, j)
                links += 1
            if at != d:
                return False
        if down >= 0 and links - usual > most:
            most = links - usual
        if fails and links - usual > more:
            more = links - usual
    if most > stretch[j, LINK]:
        stretch[j, LINK] = most
    if more > stretch[j, NODE]:
        stretch[j, NODE] = more
    return True


@loop
def returning(
    p: Program,
    turn: Array,
    c: int,
    one: Array,
    after: Array,
    s: int,
    j: int,
    d: int,
) -> int:
    """The links of a host's packet to s, of class c, by the minimal link of which it comes in."""
    k, links = turn[s, c], 2
    if k < 0:
        return 0
    u = p.far[s, k]
    while u >= 0 and u != d and links < MOST:
        u = next_of(one, after, u, j)
        links += 1
    return links


@loop
def shares_with(sharing: Array, s: int, c: int, k: int) -> bool:
    """Whether hosts' packets of a class may leave by a link."""
    return bool(sharing[s, c, k >> 3] >> (7 - (k & 7)) & 1)


@loop
def minimal_rows(
    p: Program,
    words: Array,
    sharing: Array,
    turn: Array,
    used: Array,
    near: Array,
    row: Array,
    destinations: Array,
    egress: Array,
    after: Array,
    delivers: Array,
    longest: Array,
    one: Array,
    hops: Array,
) -> None:
    """Follow the minimal paths of switches with rows of their own, and mark the longest of hosts'.

    one: int32[n, k], written: twice the next switch, one more where hosts take other links, too.
    hops: int8[n, k], written: links of the minimal path; these stay among such switches.
    """
    count = egress.shape[1]
    for i in range(len(near)):
        s = near[i]
        for j in range(count):
            c = egress[i, j]
            one[i, j] = -2
            if c >= 0 and p.order[s, c, 0] >= 0:
                one[i, j] = 2 * (words[s, c] >> NEXT) + (words[s, c] & DETOURS > 0)
            if used[s] and (c == DELIVER) != (s == destinations[j]):
                delivers[j] = False
    for i in range(len(near)):
        s = near[i]
        for j in range(count):
            d, r, links = destinations[j], one[i, j] >> 1, 1
            if s == d or r < 0 or row[r] < 0:
                hops[i, j] = 0 if s == d else UNREACHED
                delivers[j] &= s == d or not used[s]
                continue
            word = one[row[r], j]
            u = r
            if r != d:
                u, links = word >> 1, 2
                while u >= 0 and row[u] >= 0 and u != d and links < MOST:
                    u = one[row[u], j] >> 1
                    links += 1
            hops[i, j] = links if u == d else UNREACHED
            delivers[j] &= u == d or not used[s]
            if word & 1 and r != d and used[s]:
                c = egress[i, j]
                if shares_with(sharing, r, egress[row[r], j], p.far_link[s, p.order[s, c, 0]]):
                    links = returning(p, turn, c, one, after, s, j, d)
                    longest[j] = max(longest[j], links)


@loop
def other_rows(
    row: Array,
    base: Array,
    used: Array,
    words: Array,
    after: Array,
    entry: Array,
    hop: Array,
) -> bool:
    """Follow the minimal paths of all others until they come to a switch with rows of its own.

    after: int32[S], written: the next switch; ~row of those with rows of their own. entry, hop:
    int32[S], int8[S], written: the row where they come to, and over how many links.
    """
    for s in range(len(base)):
        if row[s] >= 0:
            after[s] = ~row[s]
        elif base[s] >= 0:
            after[s] = words[s, base[s]] >> NEXT
            if after[s] < 0:
                return False
        elif used[s]:
            return False
        else:
            after[s] = s
    for s in range(len(base)):
        to, links = after[s], 0
        while to >= 0 and links < MOST:
            to = after[to]
            links += 1
        if to >= 0 and used[s]:
            return False
        entry[s], hop[s] = ~to if to < 0 else 0, links
    return True


@loop
def shortest(
    p: Program,
    ends: Array,
    destinations: Array,
    entry: Array,
    hop: Array,
    delivers: Array,
    hops: Array,
    most: int,
) -> None:
    """Whether minimal paths from switches with hosts are shortest paths of the cables."""
    seen, found = np.zeros(len(ends), np.bool_), np.empty(len(ends), np.int32)
    for j in range(len(delivers)):
        if not delivers[j]:
            continue
        d, n, begin = destinations[j], 1, 0
        seen[d], found[0] = True, d
        for links in range(1, most):
            end = n
            for i in range(begin, end):
                for k in range(p.far.shape[1]):
                    u = p.far[found[i], k]
                    if u >= 0 and not seen[u]:
                        seen[u], found[n] = True, u
                        n += 1
                        if ends[u] and hop[u] + hops[entry[u], j] != links:
                            delivers[j] = False
            begin = end
        for i in range(n):
            seen[found[i]] = False


@loop
def shared_by_rows(sharing: Array, near: Array, egress: Array, links: Array) -> None:
    """The links that hosts may use for some destination, uint8[n, B], by switch."""
    links[:] = 0
    for i in range(len(near)):
        for j in range(egress.shape[1]):
            for b in range(links.shape[1] if egress[i, j] >= 0 else 0):
                links[i, b] |= sharing[near[i], egress[i, j], b]


@loop
def prove_states(
    p: Program,
    only: Array,
    sharing: Array,
    marks: bool,
    cases: Array,
    turn: Array,
    words: Array,
    ends: Array,
    used: Array,
    destinations: Array,
    near: Array,
    row: Array,
    egress: Array,
    base: Array,
    kinds: Array,
    delivers: Array,
    repaired: Array,
    stretch: Array,
    longest: Array,
    choices: Array,
    hop_counts: Array,
) -> None:
    """Prove all states of packets to k destinations with hosts.

    Args:
        p: what switches hold, without shares.
        only: of `cases_of_classes`.
        cases: the same.
        turn: the same.
        words: the same.
        sharing: uint8[S, C, B], links with a share, the highest bit for the first.
        marks: whether packets of hosts are marked, and spread by the next switch.
        ends: bool[S], switches with hosts.
        used: bool[S], these and those that some class leads to.
        destinations: int64[k].
        near: int32[n], the switches with a row for each destination.
        row: int32[S], their places, NONE of the others.
        egress: int16[n, k], the class of each of them for each destination.
        base: int16[S], the class of each of the others for all of them.
        kinds: bool[2], whether links and switches may be down.
        delivers: bool[k], True; made False where it is not proved.
        repaired: bool[k, 2], the same of each kind of failure.
        stretch: int64[k, 2], 0; the most links that a repair adds.
        longest: int64[k], 0; no path of a host's packet has more links while all is up.
        choices: int64[k], 0; links that hosts may choose.
        hop_counts: int64[k, MOST], 0; pairs by links of their minimal path.
    """
    switches, count = len(base), egress.shape[1]
    one, hops = np.empty(egress.shape, np.int32), np.empty(egress.shape, np.int8)
    after, entry = np.empty(switches, np.int32), np.empty(switches, np.int32)
    hop, dead = np.zeros(switches, np.int8), np.empty(1, np.int64)
    others = len(near) < switches
    if not other_rows(row, base, used, words, after, entry, hop):
        delivers[:] = False
        return
    minimal_rows(
        p, words, sharing, turn, used, near, row, destinations, egress,
        after, delivers, longest, one, hops,
    )  # fmt: skip
    if others and not delivers.all():
        delivers[:] = False
        return

    # Pairs by links: of all others by where they come to.
    comes = np.zeros((len(near), MOST + 1), np.int64)
    most, chosen, around = 0, 0, False
    for s in range(switches):
        if used[s]:
            comes[entry[s], hop[s]] += ends[s]
            if row[s] < 0 and ends[s]:
                word = words[s, base[s]]
                chosen += word & SHARES
                around |= word & DETOURS > 0
    for i in range(len(near)):
        for h in range(MOST):
            if not comes[i, h]:
                continue
            for j in range(count):
                if hops[i, j] < UNREACHED and h + hops[i, j] < MOST:
                    hop_counts[j, h + hops[i, j]] += comes[i, h]
        for j in range(count):
            if hops[i, j] < UNREACHED and used[near[i]]:
                most = max(most, hops[i, j])
            if egress[i, j] >= 0 and ends[near[i]]:
                word = words[near[i], egress[i, j]]
                choices[j] += word & SHARES
                around |= word & DETOURS > 0
    for j in range(count):
        choices[j] += chosen
        hop_counts[j, 0] = 0
        for h in range(MOST):
            if hop_counts[j, h]:
                most = max(most, h)
                longest[j] = max(longest[j], h)
    for j in range(count if around else 0):
        longest[j] = max(longest[j], most + 1 + marks)
    shortest(p, ends, destinations, entry, hop, delivers, hops, most)

    # All states: of switches with rows of their own, then of the others.
    for i in range(len(near)):
        s = near[i]
        for j in range(count if used[s] else 0):
            c = egress[i, j]
            if c < 0 or not delivers[j]:
                continue
            if marks and spreads(p, class_of(egress, base, row, one[i, j] >> 1, j)):
                links = 1 + returning(p, turn, c, one, after, s, j, destinations[j])
                longest[j] = max(longest[j], links)
            if (
                words[s, c] & CLEAR and hops[i, j] == most
            ):  # no other path is longer: it meets neither
                stretch[j, LINK] = max(stretch[j, LINK], 1)
                stretch[j, NODE] = max(stretch[j, NODE], 1)
            elif not avoids(
                p, cases, turn, egress, base, row, one, after, hops,
                j, destinations[j], s, c, words[s, c] & CLEAR > 0, hops[i, j], kinds, stretch,
            ):  # fmt: skip
                k = only[s, c]
                delivers[j] = holds(
                    p, k, egress, base, row,
                    j, destinations[j], s, hops[i, j], kinds, repaired, stretch, dead,
                )  # fmt: skip
    if others:
        by_links, before = (
            np.empty((len(near), count), np.int16),
            np.zeros((len(near), MOST), np.int16),
        )
        shared = np.empty((len(near), sharing.shape[2]), np.uint8)
        shared_by_rows(sharing, near, egress, shared)
        returns = marks
        for i in range(len(near)):
            n = 0
            for h in range(most + 1):
                before[i, h] = n
                for j in range(count):
                    if hops[i, j] == h:
                        by_links[i, n] = j
                        n += 1
            for h in range(most + 1, MOST):
                before[i, h] = n
        for s in range(switches):
            if row[s] >= 0 or not used[s]:
                continue
            c, r, i = base[s], after[s], entry[s]
            word = words[s, c]
            b = word >> BACK & LINKS
            if after[r] < 0:
                returns |= (shared[~after[r], b >> 3] >> (7 - (b & 7)) & 1) > 0
            elif words[r, base[r]] & DETOURS:
                returns |= shares_with(sharing, r, base[r], b)
            open_ = before[i, most - hop[s]] if word & CLEAR else count
            if word & CLEAR and open_ < count:
                stretch[0, LINK] = max(stretch[0, LINK], 1)
                stretch[0, NODE] = max(stretch[0, NODE], 1)
            for n in range(open_):
                j = by_links[i, n]
                usual = hop[s] + hops[i, j]
                if delivers[j] and not avoids(
                    p, cases, turn, egress, base, row, one, after, hops,
                    j, destinations[j], s, c, word & CLEAR > 0, usual, kinds, stretch,
                ):  # fmt: skip
                    k = only[s, c]
                    delivers[j] = holds(
                        p, k, egress, base, row,
                        j, destinations[j], s, usual, kinds, repaired, stretch, dead,
                    )  # fmt: skip
        for j in range(count if returns else 0):
            longest[j] = max(longest[j], most + 2 + marks)
