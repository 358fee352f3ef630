"""By which links packets come into and leave switches: the waits of a lossless fabric.

In a lossless fabric a packet that came in by one link and leaves by another waits for a buffer
behind that link. Buffers are divided into channels, and packets go up a channel at some turns, so
that waits make no circle. From a program and these turns this module computes all pairs of links
that some packet waits for, and the highest channel that any packet needs: without failures, and
under each failure of one link or one switch. `compilers.proof.lossless.channels` looks for circles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import packet_in, start, state_of
from compilers.forwarding.rule import DROP, HOST, MARKED, PLAIN, Array, Program, next_links, transit
from compilers.tables.fib import MOST_HOPS


class Raised(NamedTuple):
    """What `raise_channels` saw."""

    reached: int
    """How many states occur."""
    highest: int
    """The highest channel of any packet, from 0."""
    endless: bool
    """Whether channels still rise after `MOST_HOPS` links, so packets go round for ever."""


@loop
def only_link(
    p: Program, s: int, ingress: int, c: int, none: Array, link: Array, tags: Array
) -> int:
    """The next link of a packet if there is just one; DROP where there are several, or none.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link.
        c: its egress class.
        none: int64[0], no failed elements.
        link: int64[K + 1], overwritten.
        tags: int64[K + 1], overwritten.
    """
    if ingress == HOST:
        count, only = 0, DROP
        for i in range(p.shares.shape[2] if c >= 0 else 0):
            if p.shares[s, c, i] >= 0:
                count += 1
                only = p.shares[s, c, i]
        return only if count == 1 else DROP
    if next_links(p, s, ingress, PLAIN, c, none, link, tags) > 1:
        return DROP
    return int(link[0])


@loop
def raise_channels(
    p: Program,
    egress: Array,
    failed: Array,
    changes: Array,
    waits: Array,
    channels: Array,
    waiting: Array,
    reached: Array,
    count: int,
) -> Raised:
    """Follow packets over all their paths, with the highest channel that they can have in a state.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for a destination.
        failed: int64[n], the failed elements.
        changes: int8[S, K, K], by ingress link and next link how many channels a packet goes up.
        waits: bool[S, K, K], set where packets come in by one link and leave by another.
        channels: int16 by state, raised to the highest channel of a packet there; -1: none came.
        waiting: bool by state, whether it is in the next round; False for each, and so it is left.
        reached: int32, the states that occur: those to begin with; others are appended.
        count: how many states to begin with.
    """
    links_of, highest = p.far.shape[1], 0
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    current = reached[:count].copy()
    for _ in range(MOST_HOPS + 2):
        later, m = np.empty(min(len(current) * links_of, len(channels)), np.int32), 0
        for state in current:
            waiting[state] = False
            s, ingress, tag = packet_in(p, state)
            for i in range(next_links(p, s, ingress, tag, egress[s], failed, link, tags)):
                k, channel = link[i], channels[state]
                if k < 0:
                    continue
                if ingress >= 0:
                    waits[s, ingress, k] = True
                    channel += changes[s, ingress, k]
                highest, t = max(highest, channel), p.far[s, k]
                after = state_of(p, t, p.far_link[s, k], tags[i], egress[t], True)
                if channels[after] < 0:
                    reached[count] = after
                    count += 1
                if channels[after] < channel:
                    channels[after] = channel
                    if not waiting[after]:
                        waiting[after], later[m] = True, after
                        m += 1
        current = later[:m]
        if m == 0:
            break
    for state in current:
        waiting[state] = False
    return Raised(count, highest, len(current) > 0)


@loop
def follow_channel(
    p: Program,
    egress: Array,
    failed: Array,
    changes: Array,
    waits: Array,
    s: int,
    ingress: int,
    channel: int,
) -> tuple[int, bool]:
    """Follow a packet over the one path that it has where paths are not shared at every hop.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for its destination.
        failed: int64[n], the failed elements.
        changes: as in `raise_channels`.
        waits: as in `raise_channels`.
        s: the switch that it is in.
        ingress: its ingress link.
        channel: its channel.

    Returns:
        The highest channel that it has after another link, 0 without one; and whether it is still
        forwarded after `MOST_HOPS` links.
    """
    highest, hops = 0, 0
    while hops <= MOST_HOPS:
        k = transit(p, s, ingress, egress[s], failed)
        if k < 0:
            break
        if ingress >= 0:
            waits[s, ingress, k] = True
            channel += changes[s, ingress, k]
        highest, hops = max(highest, channel), hops + 1
        s, ingress = p.far[s, k], p.far_link[s, k]
    return highest, hops > MOST_HOPS


@loop
def link_waits(
    p: Program,
    has_hosts: Array,
    egresses: Array,
    destinations: Array,
    link_fails: bool,
    node_fails: bool,
    changes: Array,
    waits: Array,
) -> tuple[int, bool]:
    """Follow all packets of hosts to some destinations, and on from where they meet one failure.

    A packet that meets a failed element travelled up to there as without failures. So the next link
    of every state without failures, and the switch behind it, are the cases.

    Args:
        p: what switches hold.
        has_hosts: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        link_fails: whether links fail, one at a time.
        node_fails: whether switches fail, one at a time.
        changes: int8[S, K, K], by ingress link and next link how many channels a packet goes up.
        waits: bool[S, K, K], set where packets come in by one link and leave by another.

    Returns:
        The highest channel, from 0, and whether packets are forwarded for ever.
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    none, failed = np.empty(0, np.int64), np.empty(1, np.int64)
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    waiting = np.zeros(cells, np.bool_)
    # By state the highest channel, and the states that occur: without failures, and under one.
    channels, reached = np.full(cells, -1, np.int16), np.empty(cells, np.int32)
    channels_then, reached_then = np.full(cells, -1, np.int16), np.empty(cells, np.int32)
    depth = np.empty(cells, np.int8)
    highest, endless = 0, False
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        count, _ = start(p, has_hosts, egress, d, depth, reached)
        channels[reached[:count]] = 0
        usual = raise_channels(p, egress, none, changes, waits, channels, waiting, reached, count)
        highest, endless = max(highest, usual.highest), endless or usual.endless
        for node in range(2):
            for i in range(usual.reached if (node_fails if node else link_fails) else 0):
                state = reached[i]
                s, ingress, tag = packet_in(p, state)
                if tag == MARKED:
                    continue
                k = only_link(p, s, ingress, egress[s], none, link, tags)
                if k < 0 or (node and p.far[s, k] == d):
                    continue
                failed[0] = p.cables + p.far[s, k] if node else p.cable[s, k]
                if not p.every_hop:
                    channel, for_ever = follow_channel(
                        p, egress, failed, changes, waits, s, ingress, channels[state]
                    )
                    highest, endless = max(highest, channel), endless or for_ever
                    continue
                reached_then[0], channels_then[state] = state, channels[state]
                then = raise_channels(
                    p, egress, failed, changes, waits, channels_then, waiting, reached_then, 1
                )
                channels_then[reached_then[: then.reached]] = -1
                highest, endless = max(highest, then.highest), endless or then.endless
        channels[reached[: usual.reached]] = -1
    return highest, endless
