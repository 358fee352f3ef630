"""The edges of the channel dependency graph of a lossless fabric (Dally and Seitz, 1987).

In a lossless fabric a packet in transit holds a buffer of its ingress link while it *waits* for a
buffer of its next link. Each link has several virtual channels, and each channel has buffers of its
own. At some turns packets go up a channel, so that waits form no cycle.

`link_waits` takes a program and these turns. It computes which links wait for which other links,
and the highest virtual channel that any packet needs: without failures, and under each failure of
one link or one switch. `compilers.proof.lossless.channels` searches these waits for cycles, which
would be deadlocks.

A *state* is the switch that a packet is in, its ingress link there, and its tag, as a number
(`packet_states`). An *element* is what can fail: a cable, or a switch s, as
`Program.cable_count` + s.

Letters in the loops: p the program, s and t switches, k a link, d a destination, c an egress class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import (
    EACH_LINK,
    count_states,
    packet_in,
    state_of,
    write_host_states,
)
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Array, Program, next_links, transit
from compilers.tables.fib import MOST_HOPS

NO_SINGLE_LINK = -3
"""In place of a link: a packet has several next links, or a host's packet has none. The rule has
DELIVER and DROP in place of a link, which are -1 and -2."""


class ChannelScratch(NamedTuple):
    """Arrays for a walk that raises virtual channels, made once for all destinations."""

    channels: Array
    """int16 by state, the highest channel of a packet in the state; -1 if there is none.
    Between two walks all are -1."""
    reached: Array
    """int32, the states that occur."""
    is_queued: Array
    """bool by state, whether packets go on from the state in the next round. Between two walks all
    are False, so several scratches can have the same array."""


class ChannelOutcome(NamedTuple):
    """The outcome for the channels of packets that are followed."""

    highest: int
    """The highest channel of any packet after a link, from 0; 0 if no packet crosses a link."""
    is_endless: bool
    """Whether packets are still forwarded after `MOST_HOPS` links, so they go round for ever."""


class RaisedChannels(NamedTuple):
    """The result of `raise_channels`."""

    state_count: int
    """How many states occur."""
    highest: int
    """The highest channel of any packet, from 0."""
    is_endless: bool
    """Whether channels still rise after `MOST_HOPS` links, so packets go round for ever."""


@loop
def only_next_link(
    p: Program, s: int, ingress: int, c: int, no_failures: Array, link: Array, tags: Array
) -> int:
    """The next link of a packet without failures, if it has just one.

    Only such packets meet a failure of one element. If a packet has several next links, one of them
    is still up.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link.
        c: its egress class.
        no_failures: int64[0], no failed elements.
        link: int64[K + 1], overwritten.
        tags: int64[K + 1], overwritten.

    Returns:
        The link; a negative number if there is none: NO_SINGLE_LINK, or what the rule has in place
        of a link (DELIVER or DROP).
    """
    if ingress == HOST:
        share_count, only_share = 0, NO_SINGLE_LINK
        for i in range(p.shares.shape[2] if c >= 0 else 0):
            if p.shares[s, c, i] >= 0:
                share_count += 1
                only_share = p.shares[s, c, i]
        return only_share if share_count == 1 else NO_SINGLE_LINK
    if next_links(p, s, ingress, PLAIN, c, no_failures, link, tags) > 1:
        return NO_SINGLE_LINK
    return int(link[0])


@loop
def raise_channels(
    p: Program,
    egress: Array,
    failed: Array,
    changes: Array,
    waits: Array,
    scratch: ChannelScratch,
    count: int,
) -> RaisedChannels:
    """Follow packets over all their paths, with the highest channel that they can have in a state.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for a destination.
        failed: int64[n], the failed elements.
        changes: int8[S, K, K], how many channels a packet goes up, by ingress link and next link.
        waits: bool[S, K, K], set where packets come in by the one link and leave by the other.
        scratch: its `reached` has the states to begin with, and its `channels` their channels;
            the walk adds further states to both.
        count: how many states to begin with.
    """
    channels, reached, is_queued = scratch.channels, scratch.reached, scratch.is_queued
    most_links, highest = p.far.shape[1], 0
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    current = reached[:count].copy()
    for _ in range(MOST_HOPS + 2):
        later = np.empty(min(len(current) * most_links, len(channels)), np.int32)
        count_later = 0
        for state in current:
            is_queued[state] = False
            s, ingress, tag = packet_in(p, state)
            for i in range(next_links(p, s, ingress, tag, egress[s], failed, link, tags)):
                k, channel = link[i], channels[state]
                if k < 0:
                    continue
                if ingress >= 0:
                    waits[s, ingress, k] = True
                    channel += changes[s, ingress, k]
                highest, t = max(highest, channel), p.far[s, k]
                next_state = state_of(p, t, p.far_link[s, k], tags[i], egress[t], EACH_LINK)
                if channels[next_state] < 0:
                    reached[count] = next_state
                    count += 1
                if channels[next_state] < channel:
                    channels[next_state] = channel
                    if not is_queued[next_state]:
                        is_queued[next_state], later[count_later] = True, next_state
                        count_later += 1
        current = later[:count_later]
        if count_later == 0:
            break
    for state in current:
        is_queued[state] = False
    return RaisedChannels(count, highest, len(current) > 0)


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
) -> ChannelOutcome:
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
    """
    highest, links = 0, 0
    while links <= MOST_HOPS:
        k = transit(p, s, ingress, egress[s], failed)
        if k < 0:
            break
        if ingress >= 0:
            waits[s, ingress, k] = True
            channel += changes[s, ingress, k]
        highest, links = max(highest, channel), links + 1
        s, ingress = p.far[s, k], p.far_link[s, k]
    return ChannelOutcome(highest, links > MOST_HOPS)


@loop
def meet_failure(
    p: Program,
    egress: Array,
    failed: Array,
    state: int,
    channel: int,
    changes: Array,
    waits: Array,
    scratch: ChannelScratch,
) -> ChannelOutcome:
    """Follow the packets of a state on from where they meet a failed element.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for their destination.
        failed: int64[1], the failed element.
        state: their state.
        channel: the highest channel that they can have there.
        changes: as in `raise_channels`.
        waits: as in `raise_channels`.
        scratch: its `channels` are -1 for all states.
    """
    s, ingress, _ = packet_in(p, state)
    if not p.every_hop:
        return follow_channel(p, egress, failed, changes, waits, s, ingress, channel)
    scratch.reached[0], scratch.channels[state] = state, channel
    raised = raise_channels(p, egress, failed, changes, waits, scratch, 1)
    scratch.channels[scratch.reached[: raised.state_count]] = -1
    return ChannelOutcome(raised.highest, raised.is_endless)


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
) -> ChannelOutcome:
    """Follow all packets of hosts to some destinations, and on from where they meet one failure.

    Up to the failed element a packet travels as without failures. So the states without failures
    are followed first. Then, for each of these states, the next link fails, or the switch behind
    it, and packets are followed from there.

    Args:
        p: what switches hold.
        has_hosts: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        link_fails: whether links fail, one at a time.
        node_fails: whether switches fail, one at a time.
        changes: int8[S, K, K], how many channels a packet goes up, by ingress link and next link.
        waits: bool[S, K, K], set where packets come in by the one link and leave by the other.
    """
    most_links, states = p.far.shape[1], count_states(p)
    no_failures, failed = np.empty(0, np.int64), np.empty(1, np.int64)
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    is_queued = np.zeros(states, np.bool_)
    without_failure = ChannelScratch(
        channels=np.full(states, -1, np.int16),
        reached=np.empty(states, np.int32),
        is_queued=is_queued,
    )
    under_failure = ChannelScratch(
        channels=np.full(states, -1, np.int16),
        reached=np.empty(states, np.int32),
        is_queued=is_queued,
    )
    depth = np.empty(states, np.int8)
    highest, endless = 0, False
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        count, _ = write_host_states(p, has_hosts, egress, d, depth, without_failure.reached)
        without_failure.channels[without_failure.reached[:count]] = 0
        raised = raise_channels(p, egress, no_failures, changes, waits, without_failure, count)
        highest, endless = max(highest, raised.highest), endless or raised.is_endless
        for is_node_failure in (False, True):
            fails = node_fails if is_node_failure else link_fails
            for i in range(raised.state_count if fails else 0):
                state = without_failure.reached[i]
                s, ingress, tag = packet_in(p, state)
                if tag == MARKED:
                    continue  # a switch has two or more links for a marked packet (`onward`)
                k = only_next_link(p, s, ingress, egress[s], no_failures, link, tags)
                if k < 0 or (is_node_failure and p.far[s, k] == d):
                    continue
                failed[0] = p.cable_count + p.far[s, k] if is_node_failure else p.cable[s, k]
                channel_at_failure = without_failure.channels[state]
                outcome = meet_failure(
                    p, egress, failed, state, channel_at_failure, changes, waits, under_failure
                )
                highest, endless = max(highest, outcome.highest), endless or outcome.is_endless
        without_failure.channels[without_failure.reached[: raised.state_count]] = -1
    return ChannelOutcome(highest, endless)
