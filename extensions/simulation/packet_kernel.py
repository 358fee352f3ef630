"""Packets through input-queued switches, one cycle after the other, a packet at a time.

A switch takes a packet from its input buffers into its crossbar, twice as fast as links, when input
and output of the crossbar are free and the buffer behind the link has room. The times are those of
BookSim's input-queued router with `internal_speedup = 2`: a packet is ready a cycle after its head
came, and over a link of one cycle its head arrives two cycles after it left; the room it had is
known at the other end four cycles after. A buffer of a virtual channel is a ring of slots. A slot
holds when its packet is ready or, empty, from when it can be filled: so credits need no messages.
First packets that are not ready wait in a wheel of lists, one a cycle; the others in a list of
their switch, the one that has waited longest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import compiled, inlined_loop, loop
from extensions.simulation.flit_router import FlitRouter
from extensions.simulation.hop_choice import ADAPTIVE, drawn
from extensions.simulation.host_messages import HostMessages, due, packet_came, packet_sent
from extensions.simulation.path_choice import DIRECT, SHORTEST, without_tables
from extensions.simulation.simulated_network import (
    ANY_HOST,
    HOME,
    SAME_PLACE,
    HostTraffic,
    SimulatedNetwork,
)
from extensions.simulation.table_hops import by_tables

NEVER = 2**31 - 1
WIRE = 1
"""Cycles from the crossbar to the buffer behind a link, besides those of the link."""
PIPELINE = 1
"""Cycles from there until the crossbar can take a packet."""
CREDIT = 3
"""Cycles from when a packet leaves until its room can be taken, besides those of the link."""
RELOAD = 2
"""Half cycles from when the last flit leaves a buffer, in as many as flits, until the next one can
be routed, be given a channel and leave."""
SINGLE, HOP, VALLEY = range(3)
MOST_HOPS = 64
LONGEST = 1 << 14
"""Latencies from here on are counted as one."""
(
    INJECTED, DELIVERED, MEASURED_IN, MEASURED_OUT, ACCEPTED, LATENCY, WORST, LOST, LAST, HELD,
    INSIDE,
) = range(11)  # fmt: skip
"""Columns of `counts`. HELD: flits in buffers, cycle by cycle; INSIDE: flits in buffers now."""
COUNTS = 11


class SwitchRules(NamedTuple):
    """The settings as the loops take them."""

    length: int
    """Flits of a packet."""
    depth: int
    """Packets that a virtual channel's buffer holds."""
    vcs: int
    """Virtual channels of a port."""
    policy: int
    """How packets choose their path: a policy of `hop_choice` or `path_choice`."""
    threshold: float
    """Flits that wait for the minimal path when an adaptive packet looks for another one."""
    scheme: int
    """How packets change channels."""
    channels: int
    """How many channels there are."""
    group: int
    """Virtual channels of each channel."""
    begin: int
    """The cycle from which packets are measured."""
    end: int
    """The cycle until which packets are measured."""
    flows: int
    """Flows from a host to another one; 0: each packet chooses its path by itself."""
    samples: int
    """Switches that UGAL draws."""
    router: FlitRouter
    """The router, where flits move."""


class PacketState(NamedTuple):
    """Everything that moves."""

    slot: NDArray[np.int32]
    """int32[S·L·V·B, 4], the host's arc that a packet goes to, when it was made, when it is ready
    (an empty slot: can be filled), its links so far."""
    queue: NDArray[np.int32]
    """int32[S·L·V, 4], the first slot of a virtual channel, its packets, the egress of the first,
    the next channel in the wheel's list."""
    port: NDArray[np.int32]
    """int32[S·L, 4], the half cycles until which the crossbar's input and output are taken, the
    cycle from which the link is free, flits that wait for it."""
    ready: NDArray[np.int32]
    """int32[S, L·V], the channels of each switch whose first packet can leave."""
    waiting: NDArray[np.int32]
    """int32[S], how many such channels each switch has."""
    wheel: NDArray[np.int32]
    """int32[W]."""
    host: NDArray[np.int32]
    """int32[H], the arc of each host."""
    made: NDArray[np.int32]
    """int32[H], the cycle in which the next packet of each host is made."""
    due: NDArray[np.int32]
    """int32[H], the cycle in which that packet can leave."""
    chance: NDArray[np.float64]
    """float64[H], the logarithm of the chance that a host makes no packet in a cycle."""
    streams: NDArray[np.uint64]
    """uint64[2·H + 1], the states of the random number generators."""
    counts: NDArray[np.int64]
    """int64[COUNTS], what was counted, by the names above."""
    latency: NDArray[np.int64]
    """int64[LONGEST], how many measured packets had each latency; the last counts all longer ones.
    """
    hops: NDArray[np.int64]
    """int64[n], how many measured packets took so many links."""
    carried: NDArray[np.int64]
    """int64[S·L], flits over each arc while it was measured."""
    dead: NDArray[np.int64]
    """int64[n], the elements that are down (`rule.Program`)."""
    offered: NDArray[np.int64]
    """int64[2, K + 1], the links that the rule offers a packet, and its tag on each."""
    messages: HostMessages
    """The messages between hosts. Where there are any, the second column of `slot` has the packet's
    message, and no packet is made by chance."""
    via: NDArray[np.int32]
    """int32, the switch that the packet of each slot goes by, or its mark; empty where there is
    neither."""
    change: NDArray[np.int32]
    """int32[F, S·L], by cycles, by how much the flits that wait for an egress will be more, as a
    switch knows from credits; empty where no packet asks."""

    @classmethod
    def of(
        cls, net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, load: float, seed: int
    ) -> PacketState:
        """Nothing is under way; each host knows when its first packet is made."""
        ports, order = net.ports, net.switches
        buffers = order * ports * rules.vcs
        longest = rules.depth * rules.vcs * rules.length + 64 + int(net.delay.max())
        turns = CREDIT + int(net.delay.max()) + rules.length
        told = rules.policy >= SHORTEST or len(net.program.onward) > 0 or net.carries
        sends = np.flatnonzero(traffic.volume > 0)
        host = sends // net.hosts * ports + net.links + sends % net.hosts
        chance = load * traffic.volume[sends] / rules.length
        streams = np.random.default_rng(seed).integers(0, 2**64, 2 * len(host) + 1, np.uint64)
        state = cls(
            slot=np.zeros((buffers * rules.depth, 4), np.int32),
            queue=np.zeros((buffers, 4), np.int32),
            port=np.zeros((order * ports, 4), np.int32),
            ready=np.zeros((order, ports * rules.vcs), np.int32),
            waiting=np.zeros(order, np.int32),
            wheel=np.full(1 << (longest - 1).bit_length(), -1, np.int32),
            host=host.astype(np.int32),
            made=np.full(len(host), -1, np.int32),
            due=np.zeros(len(host), np.int32),
            chance=np.log1p(-np.minimum(chance, 1 - 1e-12)),
            streams=streams,
            counts=np.zeros(COUNTS, np.int64),
            latency=np.zeros(LONGEST, np.int64),
            hops=np.zeros(MOST_HOPS + 1, np.int64),
            carried=np.zeros(order * ports, np.int64),
            dead=np.zeros(0, np.int64),
            offered=np.zeros((2, net.links + 1), np.int64),
            messages=HostMessages.none(),
            via=np.full(buffers * rules.depth * told, DIRECT, np.int32),
            change=np.zeros((turns, order * ports * (rules.policy >= ADAPTIVE)), np.int32),
        )
        compiled(make_first)(state.streams, state.made, state.chance)
        state.due[:] = state.made
        return state


@loop
def made_next(streams: NDArray[np.uint64], host: int, made_at: int, chance: float) -> int:
    """When the packet after one that was made then is made_at: Bernoulli trials, one a cycle.

    chance: log(1 - p).
    """
    gap = np.log(1.0 - drawn(streams, host)) / chance
    return int(min(made_at + 1 + gap, NEVER - 1))


@loop
def make_first(
    streams: NDArray[np.uint64], made_at: NDArray[np.int32], chance: NDArray[np.float64]
) -> None:
    """Draw when each host makes its first packet: fields of the state, `made_at` is written."""
    for h in range(len(made_at)):
        made_at[h] = made_next(streams, h, -1, chance[h])


@loop
def still_to_come(
    streams: NDArray[np.uint64],
    made_at: NDArray[np.int32],
    chance: NDArray[np.float64],
    begin: int,
    end: int,
) -> int:
    """Packets that are made between two cycles, and wait in their hosts: fields of the state.

    streams: a copy, as chance goes on.
    """
    total = 0
    for h in range(len(made_at)):
        when = made_at[h]
        while when < end:
            total += when >= begin
            when = made_next(streams, h, when, chance[h])
    return int(total)


@loop
def cut(net: SimulatedNetwork, rules: SwitchRules, state: PacketState, out: int, t: int) -> None:
    """An arc goes down before cycle t; packets on the link are lost, those before it go elsewhere.

    That is so at once: the switch sees its port go down.
    """
    slot, queue, counts, mask = state.slot, state.queue, state.counts, len(state.wheel) - 1
    depth, vcs = rules.depth, rules.vcs
    for vc in range(net.end[out] * vcs, (net.end[out] + 1) * vcs):
        while queue[vc, 1]:
            last = vc * depth + (queue[vc, 0] + queue[vc, 1] - 1) % depth
            if slot[last, 2] - PIPELINE <= t:
                break
            queue[vc, 1] -= 1
            counts[LOST] += 1
            counts[MEASURED_OUT] += rules.begin <= slot[last, 1] < rules.end
    switch = out // (net.links + net.hosts)
    kept = 0
    for i in range(state.waiting[switch]):
        vc = state.ready[switch, i]
        if queue[vc, 2] == out:
            queue[vc, 3] = state.wheel[t & mask]
            state.wheel[t & mask] = vc
        else:
            state.ready[switch, kept] = vc
            kept += 1
    state.waiting[switch] = kept


@inlined_loop
def destination(net: SimulatedNetwork, traffic: HostTraffic, arc: int, u: float) -> int:
    """The arc of the host that a packet goes to: u of [0, 1) draws the switch, then the host."""
    ports = net.links + net.hosts
    mine = arc % ports - net.links
    row = traffic.row[arc // ports * net.hosts + mine]
    low, last = traffic.first[row], traffic.first[row + 1] - 1
    begin, guess = low, min(low + int(u * (last - low + 1)), last)  # right if all are alike
    if guess == last or traffic.below[guess] > u:
        last = guess
        if guess > low and traffic.below[guess - 1] <= u:
            low = guess
    else:
        low = guess + 1
    while low < last:
        middle = (low + last) // 2
        if traffic.below[middle] > u:
            last = middle
        else:
            low = middle + 1
    place = traffic.place[low]
    if place == SAME_PLACE:
        place = mine
    elif place == ANY_HOST:
        base = traffic.below[low - 1] if low > begin else 0.0
        inner = (u - base) / (traffic.below[low] - base)
        place = min(int(inner * net.hosts), net.hosts - 1)
    return int(traffic.destination[low] * ports + net.links + place)


@loop
def advance(
    net: SimulatedNetwork,
    traffic: HostTraffic,
    rules: SwitchRules,
    state: PacketState,
    start: int,
    end: int,
) -> None:
    """Let the cycles from start to end pass."""
    slot, queue, port, counts = state.slot, state.queue, state.port, state.counts
    ports, depth, vcs, length = net.links + net.hosts, rules.depth, rules.vcs, rules.length
    mask = len(state.wheel) - 1
    room = depth * vcs * length
    senders = len(state.host)
    dead, messages = state.dead, state.messages
    collective, marks = len(messages.goal) > 0, len(net.program.onward) > 0
    told, adaptive = len(state.via) > 0, rules.policy >= ADAPTIVE
    for t in range(start, end):
        if adaptive:
            change = state.change[t % len(state.change)]
            for out in range(len(change)):
                port[out, 3] += change[out]
                change[out] = 0
        # First packets that are ready now are routed.
        vc = state.wheel[t & mask]
        state.wheel[t & mask] = -1
        while vc >= 0:
            after = queue[vc, 3]
            if queue[vc, 1]:
                here = vc * depth + queue[vc, 0]
                arc = vc // vcs
                switch, goal = arc // ports, slot[here, 0]
                entered = arc - switch * ports >= net.links
                if rules.policy >= SHORTEST:
                    out, state.via[here] = without_tables(
                        net, rules.policy, rules.samples, rules.threshold, switch, goal // ports,
                        state.via[here], entered, port, state.streams, 2 * senders,
                    )  # fmt: skip
                else:
                    out, via = by_tables(
                        net, rules.policy, rules.threshold, rules.flows, goal, arc,
                        state.via[here] if told else DIRECT, dead, state.offered,
                        port, state.streams, 2 * senders,
                    )  # fmt: skip
                    if told:
                        state.via[here] = via
                if out == HOME:
                    out = goal
                if out < 0 or slot[here, 3] >= MOST_HOPS:
                    counts[LOST] += 1
                    counts[MEASURED_OUT] += rules.begin <= slot[here, 1] < rules.end
                    _leave(slot, queue, state.wheel, vc, rules, 2 * t, net.delay[arc], mask)
                else:
                    queue[vc, 2] = out
                    state.ready[switch, state.waiting[switch]] = vc
                    state.waiting[switch] += 1
            vc = after
        # Hosts send.
        first = t // length % vcs
        for h in range(senders):
            if state.due[h] <= t:
                arc = state.host[h]
                for i in range(vcs):
                    vc = arc * vcs + turned(first + i, vcs)
                    if queue[vc, 1] < depth:
                        into = vc * depth + turned(queue[vc, 0] + queue[vc, 1], depth)
                        if slot[into, 2] <= t:
                            if collective:
                                made_at = packet_sent(messages, h, t + length)
                                goal = messages.goal[made_at]
                                state.due[h] = due(messages, h)
                            else:
                                u = drawn(state.streams, senders + h)
                                goal = destination(net, traffic, arc, u)
                                made_at = state.made[h]
                                after = made_next(state.streams, h, made_at, state.chance[h])
                                state.made[h] = after
                                state.due[h] = max(after, t + length)
                            slot[into, 0], slot[into, 1], slot[into, 3] = goal, made_at, 0
                            when = t + WIRE + net.delay[arc] + PIPELINE
                            _arrive(slot, queue, state.wheel, vc, into, when, mask)
                            counts[INJECTED] += 1
                            counts[LAST] = t
                            counts[MEASURED_IN] += rules.begin <= made_at < rules.end
                            break
        # Switches match inputs with outputs: packets of odd length also in the middle of a cycle.
        for turn in range(net.switches * (1 + length % 2)):
            later = turn >= net.switches
            switch, half = turn - later * net.switches, 2 * t + later
            count = state.waiting[switch]
            if not count:
                continue
            ready = state.ready[switch]
            kept = 0
            for i in range(count):
                vc = ready[i]
                arc, out = vc // vcs, queue[vc, 2]
                ready[kept] = vc
                if port[arc, 0] > half or port[out, 1] > half:
                    kept += 1
                    continue
                begin = max(t + later, port[out, 2])
                here = vc * depth + queue[vc, 0]
                if out - switch * ports >= net.links:
                    if begin - t > room:
                        kept += 1
                        continue
                    done = begin + WIRE + net.delay[out] + length - 1
                    made_at = slot[here, 1]
                    counts[DELIVERED] += 1
                    counts[ACCEPTED] += rules.begin <= done < rules.end
                    if collective:
                        counts[WORST] = max(counts[WORST], done)
                        host = packet_came(messages, made_at, done)
                        if host >= 0:
                            state.due[host] = due(messages, host)
                    elif rules.begin <= made_at < rules.end:
                        took = done - made_at
                        counts[MEASURED_OUT] += 1
                        counts[LATENCY] += took
                        counts[WORST] = max(counts[WORST], took)
                        state.latency[min(took, LONGEST - 1)] += 1
                        state.hops[slot[here, 3]] += 1
                else:
                    into = _room(net, rules, slot, queue, vc, arc, out, t, begin)
                    if into < 0:
                        kept += 1
                        continue
                    slot[into, 0], slot[into, 1] = slot[here, 0], slot[here, 1]
                    slot[into, 3] = slot[here, 3] + 1
                    if rules.policy >= SHORTEST or net.carries:
                        state.via[into] = state.via[here]
                    elif marks:  # only over the first link
                        entered = arc - switch * ports >= net.links
                        state.via[into] = state.via[here] if entered else DIRECT
                    when = begin + WIRE + net.delay[out] + PIPELINE
                    _arrive(slot, queue, state.wheel, into // depth, into, when, mask)
                if rules.begin <= begin < rules.end:
                    state.carried[out] += length
                    counts[HELD] += length * (t - slot[here, 2] + PIPELINE)
                port[arc, 0] = port[out, 1] = half + length
                port[out, 2] = begin + length
                counts[LAST] = t
                if adaptive:
                    _waits(net, state.change, port, arc, out, t, slot[here, 2], length)
                _leave(slot, queue, state.wheel, vc, rules, half, net.delay[arc], mask)
            state.waiting[switch] = kept


@inlined_loop
def turned(place: int, size: int) -> int:
    """A place of a ring, at most once around, without a division."""
    return place if place < size else place - size


@inlined_loop
def _waits(
    net: SimulatedNetwork,
    change: NDArray[np.int32],
    port: NDArray[np.int32],
    arc: int,
    out: int,
    t: int,
    ready: int,
    length: int,
) -> None:
    """A packet passes from an arc to an egress: what waits for both changes, flit by flit.

    Two a cycle pass, but none before it came: the first one was ready then, one a cycle follows.
    """
    for flit in range(length):
        cycle = max(t + flit // 2, ready + flit)
        if cycle == t:
            port[out, 3] += 1
        else:
            change[cycle % len(change), out] += 1
        if net.end[arc] >= 0:
            change[(cycle + CREDIT + net.delay[arc]) % len(change), net.end[arc]] -= 1


@inlined_loop
def _room(
    net: SimulatedNetwork,
    rules: SwitchRules,
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    vc: int,
    arc: int,
    out: int,
    t: int,
    begin: int,
) -> int:
    """A slot behind an egress that can be filled, of the channel that a packet moves to; or -1.

    begin: when the link takes it; packets behind each other take channels in turn.
    """
    depth = rules.depth
    first, count = choices(net, rules, vc, arc, out)
    turn = begin // rules.length % count
    for i in range(count):
        other = first + turned(turn + i, count)
        held = queue[other, 1]
        if held < depth:
            into = other * depth + turned(queue[other, 0] + held, depth)
            if slot[into, 2] <= t:
                return int(into)
    return -1


@inlined_loop
def choices(
    net: SimulatedNetwork, rules: SwitchRules, vc: int, arc: int, out: int
) -> tuple[int, int]:
    """The first virtual channel behind an egress that a packet may take, and how many there are."""
    channel = 0
    if net.end[arc] >= 0 and rules.scheme != SINGLE:
        step = 1 if rules.scheme == HOP else net.up[arc] & net.up[out]
        channel = min((vc - arc * rules.vcs) // rules.group + step, rules.channels - 1)
    first = channel * rules.group
    count = rules.group if channel < rules.channels - 1 else rules.vcs - first
    return net.end[out] * rules.vcs + first, count


@loop
def blocked(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: PacketState,
    waits: NDArray[np.bool_],
    wanted: NDArray[np.int32],
) -> None:
    """Fill in bool[S·L·V], whether all that a virtual channel waits for are full, and which."""
    queue, ports = state.queue, net.links + net.hosts
    for switch in range(net.switches):
        for i in range(state.waiting[switch]):
            vc = state.ready[switch, i]
            out = queue[vc, 2]
            if out - switch * ports < net.links:
                first, count = choices(net, rules, vc, vc // rules.vcs, out)
                waits[vc] = True
                for other in range(first, first + count):
                    waits[vc] &= queue[other, 1] == rules.depth
                    wanted[vc, other - first] = other


@inlined_loop
def _arrive(
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    wheel: NDArray[np.int32],
    vc: int,
    into: int,
    when: int,
    mask: int,
) -> None:
    """A packet takes a slot of a virtual channel, and is ready then."""
    slot[into, 2] = when
    if not queue[vc, 1]:
        queue[vc, 3] = wheel[when & mask]
        wheel[when & mask] = vc
    queue[vc, 1] += 1


@inlined_loop
def _leave(
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    wheel: NDArray[np.int32],
    vc: int,
    rules: SwitchRules,
    half: int,
    delay: int,
    mask: int,
) -> None:
    """The first packet of a virtual channel leaves it; the next one is ready in a while."""
    here, depth = queue[vc, 0], rules.depth
    slot[vc * depth + here, 2] = half // 2 + CREDIT + delay
    here = here + 1 if here + 1 < depth else 0
    queue[vc, 0] = here
    queue[vc, 1] -= 1
    if queue[vc, 1]:
        when = max(slot[vc * depth + here, 2], (half + rules.length + RELOAD + 1) // 2)
        queue[vc, 3] = wheel[when & mask]
        wheel[when & mask] = vc
