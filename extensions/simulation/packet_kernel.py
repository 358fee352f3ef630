"""Simulates packets through input-queued switches, cycle by cycle, a packet at a time.

These are the compiled loops of `polarfab simulate`. `measurement` runs `advance` and the others;
`flit_kernel` does the same flit by flit, to check them. Everything that changes is in the arrays of
a `PacketState`.

*The switch.* Packets wait in input buffers, one for each virtual channel of each port. A switch
takes a packet into its crossbar, which is twice as fast as links, when input and output of the
crossbar are free and a buffer behind the link has room. The times are those of BookSim's
input-queued router with `internal_speedup = 2`. A packet is ready a cycle after its head came. Over
a link of one cycle its head arrives two cycles after it left. Its room is known to be free at the
other end of the link four cycles after it left.

*The data.* A buffer of a virtual channel is a ring of slots, and a slot holds a packet. A slot says
when its packet is ready or, if it is empty, from when it can be filled; so credits need no
messages. A virtual channel whose first packet is not ready waits in a wheel: an array of lists, one
for each coming cycle. Virtual channels with a ready first packet are in a list of their switch, the
one that has waited longest first.

*Names in the code.* A virtual channel's number is `vc`. The arc of a port is `arc` where packets
come in by it, and `out` where they leave by it. `into` is the slot that a packet is written to,
`front` that of the first packet of a virtual channel. t is the cycle; where times are in half
cycles, the name says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import compiled, inlined_loop, loop
from extensions.simulation.flit_router import FlitRouter
from extensions.simulation.hop_choice import ADAPTIVE, BACKLOG, draw_number
from extensions.simulation.host_messages import HostMessages, due, packet_received, packet_sent
from extensions.simulation.path_choice import DIRECT, SHORTEST, choose_without_tables
from extensions.simulation.simulated_network import (
    ANY_HOST,
    HOME,
    SAME_NUMBER,
    HostTraffic,
    SimulatedNetwork,
)
from extensions.simulation.table_hops import choose_by_tables

NEVER = 2**31 - 1
"""A cycle that never comes."""
WIRE = 1
"""Cycles from the crossbar to the buffer behind a link, besides those of the link."""
PIPELINE = 1
"""Cycles from when a head comes to a buffer until the crossbar can take it."""
CREDIT = 3
"""Cycles from when a packet leaves a buffer until its room can be taken, besides those of the link.
"""
RELOAD = 2
"""Half cycles from when the last flit of a packet leaves a buffer until the next packet can leave:
it has to be routed and given a channel."""
SPARE_CYCLES = 64
"""Cycles of the wheel besides those in which all flits of a port's buffers pass, and those of the
longest link: WIRE, PIPELINE, CREDIT and the like, with room to spare."""
SINGLE, HOP, VALLEY = range(3)
"""Schemes by which packets change channels (`compilers.proof.lossless.channels`)."""
MOST_HOPS = 64
"""A packet that has taken so many links is dropped, as IP drops one whose hop limit has run out."""
LONGEST = 1 << 14
"""Latencies from here on are counted as one."""
DESTINATION, MADE, READY, HOPS = range(4)
"""Columns of `slot`.

- DESTINATION: the arc of the host that the packet goes to.
- MADE: the cycle in which it was made; if hosts send messages (`HostMessages`), the number of its
  message instead.
- READY: the cycle in which it is ready, or from which the empty slot can be filled.
- HOPS: the links that it has taken.
"""
FRONT, STORED, EGRESS, NEXT = range(4)
"""Columns of `queue`, by virtual channel.

- FRONT: the slot of its first packet, counted from its first slot.
- STORED: how many packets it has.
- EGRESS: the egress arc of the first packet.
- NEXT: the next virtual channel in the same list of the wheel.
"""
IN_UNTIL, OUT_UNTIL, FREE_FROM = range(3)
"""Columns of `port`, besides BACKLOG.

- IN_UNTIL, OUT_UNTIL: the half cycles until which the input and the output of the crossbar are
  taken.
- FREE_FROM: the cycle from which the link is free.
"""
(
    INJECTED, DELIVERED, MEASURED_IN, MEASURED_OUT, ACCEPTED, LATENCY, WORST, LOST, LAST, HELD,
    INSIDE,
) = range(11)  # fmt: skip
"""What is counted in `counts`.

- INJECTED, DELIVERED, LOST: packets that hosts sent, that arrived, and that were dropped.
- MEASURED_IN: packets made in the measured cycles.
- MEASURED_OUT: packets made in the measured cycles that have arrived or were dropped.
- ACCEPTED: packets that arrived in the measured cycles.
- LATENCY, WORST: the sum and the largest of the latencies of measured packets.
- LAST: the last cycle in which anything moved.
- HELD: flits in buffers, summed over cycles.
- INSIDE: flits in buffers now. Only `flit_kernel` counts it; `packet_kernel` knows how long each
  packet was in its buffer when it leaves.
"""
COUNTS = 11
"""The length of `counts`."""


class SwitchRules(NamedTuple):
    """The settings of a simulation, as the loops take them."""

    packet_flits: int
    """Flits of a packet."""
    buffer_packets: int
    """Packets that a virtual channel's buffer holds."""
    virtual_channels: int
    """Virtual channels of a port."""
    policy: int
    """How packets choose their path: a policy of `hop_choice` or `path_choice`."""
    threshold: float
    """An adaptive packet looks for another path if so many flits wait for the minimal one."""
    scheme: int
    """How packets change channels: SINGLE, HOP or VALLEY."""
    channels: int
    """How many channels there are, against deadlock."""
    channel_size: int
    """How many virtual channels form a channel."""
    measured_from: int
    """The cycle from which packets are measured."""
    measured_until: int
    """The cycle until which packets are measured."""
    flows: int
    """How many flows a host has to each other one; 0: each packet chooses its path by itself."""
    samples: int
    """How many switches UGAL draws to compare paths over them."""
    router: FlitRouter
    """The router of `flit_kernel`."""


class PacketState(NamedTuple):
    """Everything that moves, for S switches with L ports, V virtual channels and B slots each."""

    slot: NDArray[np.int32]
    """int32[S·L·V·B, 4], the packets in buffers, with the columns DESTINATION to HOPS."""
    queue: NDArray[np.int32]
    """int32[S·L·V, 4], the virtual channels, with the columns FRONT to NEXT."""
    port: NDArray[np.int32]
    """int32[S·L, 4], the ports, with the columns IN_UNTIL to FREE_FROM and BACKLOG."""
    ready_channels: NDArray[np.int32]
    """int32[S, L·V], the virtual channels of each switch whose first packet can leave."""
    ready_count: NDArray[np.int32]
    """int32[S], how many of these each switch has."""
    wheel: NDArray[np.int32]
    """int32[W], by cycle modulo W the first virtual channel whose first packet is ready then; -1:
    none."""
    host: NDArray[np.int32]
    """int32[H], the arc of each host."""
    made_cycle: NDArray[np.int32]
    """int32[H], the cycle in which the next packet of each host is made."""
    due_cycle: NDArray[np.int32]
    """int32[H], the cycle in which that packet can leave."""
    chance: NDArray[np.float64]
    """float64[H], log(1 - p) for hosts that make a packet in a cycle with probability p."""
    streams: NDArray[np.uint64]
    """uint64[2·H + 1], the states of the random number generators: H for when hosts make packets,
    H for where these go, and one for the choices of switches."""
    counts: NDArray[np.int64]
    """int64[COUNTS], what was counted, from INJECTED to INSIDE."""
    latency: NDArray[np.int64]
    """int64[LONGEST], how many measured packets had each latency; the last counts all longer ones.
    """
    hops: NDArray[np.int64]
    """int64[n], how many measured packets took so many links."""
    carried_flits: NDArray[np.int64]
    """int64[S·L], flits over each arc while it was measured."""
    failed_elements: NDArray[np.int64]
    """int64[n], the elements that are down (`rule.Program`)."""
    offered_links: NDArray[np.int64]
    """int64[2, K + 1], the links that the rule offers a packet, and its tag on each."""
    messages: HostMessages
    """The messages between hosts. If there are any, MADE has the message of a packet, and no packet
    is made by chance."""
    detour_tag: NDArray[np.int32]
    """int32, by slot the switch that the packet goes by, or its mark; empty if packets have
    neither."""
    backlog_change: NDArray[np.int32]
    """int32[F, S·L], by cycle modulo F the change of BACKLOG in that cycle, as a switch learns it
    from credits; empty if no packet asks for it."""

    @classmethod
    def of(
        cls, net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, load: float, seed: int
    ) -> PacketState:
        """The state before the first cycle: each host knows when its first packet is made.

        Args:
            net: the network.
            traffic: where the packets of each host go.
            rules: the settings.
            load: the offered load, a part of what the hosts' links carry.
            seed: the seed of the random numbers.
        """
        ports, switches = net.ports, net.switches
        buffers = switches * ports * rules.virtual_channels
        longest_wait = (
            rules.buffer_packets * rules.virtual_channels * rules.packet_flits
            + SPARE_CYCLES
            + int(net.delay.max())
        )
        longest_notice = CREDIT + int(net.delay.max()) + rules.packet_flits
        has_detour_tags = (
            rules.policy >= SHORTEST or len(net.program.onward) > 0 or net.uses_intermediates
        )
        adaptive = rules.policy >= ADAPTIVE
        sender = np.flatnonzero(traffic.volume > 0)
        host = (
            sender // net.hosts_a_switch * ports + net.links_a_switch + sender % net.hosts_a_switch
        )
        # At full load a host sends a flit in each cycle, and so a packet in `length` cycles.
        probability = load * traffic.volume[sender] / rules.packet_flits
        streams = np.random.default_rng(seed).integers(0, 2**64, 2 * len(host) + 1, np.uint64)
        state = cls(
            slot=np.zeros((buffers * rules.buffer_packets, 4), np.int32),
            queue=np.zeros((buffers, 4), np.int32),
            port=np.zeros((switches * ports, 4), np.int32),
            ready_channels=np.zeros((switches, ports * rules.virtual_channels), np.int32),
            ready_count=np.zeros(switches, np.int32),
            wheel=np.full(1 << (longest_wait - 1).bit_length(), -1, np.int32),
            host=host.astype(np.int32),
            made_cycle=np.full(len(host), -1, np.int32),
            due_cycle=np.zeros(len(host), np.int32),
            chance=np.log1p(-np.minimum(probability, 1 - 1e-12)),  # the logarithm of 0 is none
            streams=streams,
            counts=np.zeros(COUNTS, np.int64),
            latency=np.zeros(LONGEST, np.int64),
            hops=np.zeros(MOST_HOPS + 1, np.int64),
            carried_flits=np.zeros(switches * ports, np.int64),
            failed_elements=np.zeros(0, np.int64),
            offered_links=np.zeros((2, net.links_a_switch + 1), np.int64),
            messages=HostMessages.empty(),
            detour_tag=np.full(
                buffers * rules.buffer_packets if has_detour_tags else 0, DIRECT, np.int32
            ),
            backlog_change=np.zeros(
                (longest_notice, switches * ports if adaptive else 0), np.int32
            ),
        )
        compiled(draw_first_packets)(state.streams, state.made_cycle, state.chance)
        state.due_cycle[:] = state.made_cycle
        return state


@loop
def next_packet_cycle(streams: NDArray[np.uint64], host: int, made_at: int, chance: float) -> int:
    """The cycle in which a host makes the packet after the one that it made at `made_at`.

    A host makes a packet in each cycle with probability p. So the cycles without one between two
    packets have the geometric distribution, which is drawn at once.

    Args:
        streams: the random number generators.
        host: the number of the host.
        made_at: a cycle.
        chance: log(1 - p).
    """
    gap = np.log(1.0 - draw_number(streams, host)) / chance
    return int(min(made_at + 1 + gap, NEVER - 1))


@loop
def draw_first_packets(
    streams: NDArray[np.uint64], made_at: NDArray[np.int32], chance: NDArray[np.float64]
) -> None:
    """Draw when each host makes its first packet, and write it to `made_at`.

    The arguments are `streams`, `made_cycle` and `chance` of the state.
    """
    for h in range(len(made_at)):
        made_at[h] = next_packet_cycle(streams, h, -1, chance[h])


@loop
def unsent_packets(
    streams: NDArray[np.uint64],
    made_at: NDArray[np.int32],
    chance: NDArray[np.float64],
    begin: int,
    end: int,
) -> int:
    """How many packets are made between two cycles but still wait in their hosts.

    Args:
        streams: a copy of the random number generators, as numbers are drawn.
        made_at: `made_cycle` of the state.
        chance: `chance` of the state.
        begin: the first cycle.
        end: the cycle after the last.
    """
    total = 0
    for h in range(len(made_at)):
        when = made_at[h]
        while when < end:
            total += when >= begin
            when = next_packet_cycle(streams, h, when, chance[h])
    return int(total)


@loop
def take_arc_down(
    net: SimulatedNetwork, rules: SwitchRules, state: PacketState, out: int, t: int
) -> None:
    """Take an arc down before cycle t.

    Packets on the link are lost: they are the last ones of their buffer, and ready only after t.
    Packets that wait for the link are routed again in cycle t, as the switch sees its port go down
    at once.
    """
    slot, queue, counts, mask = state.slot, state.queue, state.counts, len(state.wheel) - 1
    depth, vcs = rules.buffer_packets, rules.virtual_channels
    for vc in range(net.far_arc[out] * vcs, (net.far_arc[out] + 1) * vcs):
        while queue[vc, STORED]:
            last = vc * depth + (queue[vc, FRONT] + queue[vc, STORED] - 1) % depth
            if slot[last, READY] - PIPELINE <= t:
                break
            queue[vc, STORED] -= 1
            counts[LOST] += 1
            counts[MEASURED_OUT] += rules.measured_from <= slot[last, MADE] < rules.measured_until
    switch = out // (net.links_a_switch + net.hosts_a_switch)
    still_ready = 0
    for i in range(state.ready_count[switch]):
        vc = state.ready_channels[switch, i]
        if queue[vc, EGRESS] == out:
            queue[vc, NEXT] = state.wheel[t & mask]
            state.wheel[t & mask] = vc
        else:
            state.ready_channels[switch, still_ready] = vc
            still_ready += 1
    state.ready_count[switch] = still_ready


@inlined_loop
def drawn_destination(net: SimulatedNetwork, traffic: HostTraffic, arc: int, u: float) -> int:
    """The arc of the host that a packet goes to.

    Args:
        net: the network.
        traffic: the flows of each host.
        arc: the arc of the sending host.
        u: a random number of [0, 1), which chooses the switch and then the host.
    """
    ports = net.links_a_switch + net.hosts_a_switch
    sender = arc % ports - net.links_a_switch  # the number of the host at its switch
    row = traffic.row_of_host[arc // ports * net.hosts_a_switch + sender]
    # A binary search for the flow with u, after a guess that is right if all flows are alike.
    low, last = traffic.first_flow[row], traffic.first_flow[row + 1] - 1
    begin, guess = low, min(low + int(u * (last - low + 1)), last)
    if guess == last or traffic.cumulative_share[guess] > u:
        last = guess
        if guess > low and traffic.cumulative_share[guess - 1] <= u:
            low = guess
    else:
        low = guess + 1
    while low < last:
        middle = (low + last) // 2
        if traffic.cumulative_share[middle] > u:
            last = middle
        else:
            low = middle + 1
    host_number = traffic.host_number[low]
    if host_number == SAME_NUMBER:
        host_number = sender
    elif host_number == ANY_HOST:
        # Where u is between the shares before and after the flow chooses the host.
        share_before = traffic.cumulative_share[low - 1] if low > begin else 0.0
        fraction = (u - share_before) / (traffic.cumulative_share[low] - share_before)
        host_number = min(int(fraction * net.hosts_a_switch), net.hosts_a_switch - 1)
    return int(traffic.destination[low] * ports + net.links_a_switch + host_number)


@loop
def advance(
    net: SimulatedNetwork,
    traffic: HostTraffic,
    rules: SwitchRules,
    state: PacketState,
    start: int,
    end: int,
) -> None:
    """Let the cycles from start to end pass.

    In each cycle first packets that are ready are routed, then hosts send, and then switches let
    packets pass. Packets with an odd number of flits may also pass in the middle of a cycle.
    """
    for t in range(start, end):
        if rules.policy >= ADAPTIVE:
            change = state.backlog_change[t % len(state.backlog_change)]
            for out in range(len(change)):
                state.port[out, BACKLOG] += change[out]
                change[out] = 0
        _route_ready(net, rules, state, t)
        _send_from_hosts(net, traffic, rules, state, t)
        for half in range(1 + rules.packet_flits % 2):
            for switch in range(net.switches):
                if state.ready_count[switch]:
                    _pass_packets(net, rules, state, switch, t, half)


@inlined_loop
def _route_ready(net: SimulatedNetwork, rules: SwitchRules, state: PacketState, t: int) -> None:
    """Give an egress to each first packet that is ready in cycle t, and drop those without one."""
    slot, queue, counts = state.slot, state.queue, state.counts
    ports, mask, senders = (
        net.links_a_switch + net.hosts_a_switch,
        len(state.wheel) - 1,
        len(state.host),
    )
    # The last random stream, after two of each host, is that of the switches: 2 * senders.
    has_detour_tags = len(state.detour_tag) > 0
    vc = state.wheel[t & mask]
    state.wheel[t & mask] = -1
    while vc >= 0:
        next_in_list = queue[vc, NEXT]  # read first, as NEXT changes where the packet is dropped
        if queue[vc, STORED]:  # it may have none, where the link that it came by has gone down
            front = vc * rules.buffer_packets + queue[vc, FRONT]
            arc = vc // rules.virtual_channels
            switch, destination = arc // ports, slot[front, DESTINATION]
            from_host = arc - switch * ports >= net.links_a_switch
            if rules.policy >= SHORTEST:
                out, state.detour_tag[front] = choose_without_tables(
                    net, rules.policy, rules.samples, rules.threshold, switch, destination // ports,
                    state.detour_tag[front], from_host, state.port, state.streams, 2 * senders,
                )  # fmt: skip
            else:
                out, detour_tag = choose_by_tables(
                    net, rules.policy, rules.threshold, rules.flows, destination, arc,
                    state.detour_tag[front] if has_detour_tags else DIRECT, state.failed_elements,
                    state.offered_links, state.port, state.streams, 2 * senders,
                )  # fmt: skip
                if has_detour_tags:
                    state.detour_tag[front] = detour_tag
            if out == HOME:
                out = destination
            if out < 0 or slot[front, HOPS] >= MOST_HOPS:
                counts[LOST] += 1
                counts[MEASURED_OUT] += (
                    rules.measured_from <= slot[front, MADE] < rules.measured_until
                )
                _remove_packet(slot, queue, state.wheel, vc, rules, 2 * t, net.delay[arc], mask)
            else:
                queue[vc, EGRESS] = out
                state.ready_channels[switch, state.ready_count[switch]] = vc
                state.ready_count[switch] += 1
        vc = next_in_list


@inlined_loop
def _send_from_hosts(
    net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, state: PacketState, t: int
) -> None:
    """Let each host send its next packet if that is due and a channel of its port has room."""
    slot, queue, counts, messages = state.slot, state.queue, state.counts, state.messages
    vcs, length = rules.virtual_channels, rules.packet_flits
    mask, senders = len(state.wheel) - 1, len(state.host)
    has_messages = len(messages.destination_arc) > 0
    turn = t // length % vcs  # channels take turns
    for h in range(senders):
        if state.due_cycle[h] > t:
            continue
        arc = state.host[h]
        into = _slot_to_fill(rules, slot, queue, arc * vcs, vcs, turn, t)
        if into < 0:
            continue
        if has_messages:
            message = packet_sent(messages, h, t + length)
            destination = messages.destination_arc[message]
            state.due_cycle[h] = due(messages, h)
            made_at = message  # so that `_count_delivery` finds the message
        else:
            u = draw_number(state.streams, senders + h)
            destination = drawn_destination(net, traffic, arc, u)
            made_at = state.made_cycle[h]
            next_made = next_packet_cycle(state.streams, h, made_at, state.chance[h])
            state.made_cycle[h] = next_made
            state.due_cycle[h] = max(next_made, t + length)
        slot[into, DESTINATION] = destination
        slot[into, MADE], slot[into, HOPS] = made_at, 0
        ready_at = t + WIRE + net.delay[arc] + PIPELINE
        vc = into // rules.buffer_packets
        _append_packet(slot, queue, state.wheel, vc, into, ready_at, mask)
        counts[INJECTED] += 1
        counts[LAST] = t
        counts[MEASURED_IN] += rules.measured_from <= made_at < rules.measured_until


@inlined_loop
def _pass_packets(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: PacketState,
    switch: int,
    t: int,
    half: int,
) -> None:
    """Let the first packets of a switch pass whose input, output and next buffer are free.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        switch: the switch.
        t: the cycle.
        half: 0 at the beginning of the cycle, 1 in the middle.
    """
    slot, queue, port, counts = state.slot, state.queue, state.port, state.counts
    ports, depth, vcs, length = (
        net.links_a_switch + net.hosts_a_switch,
        rules.buffer_packets,
        rules.virtual_channels,
        rules.packet_flits,
    )
    mask, marks = len(state.wheel) - 1, len(net.program.onward) > 0
    half_cycle, ready, remaining = 2 * t + half, state.ready_channels[switch], 0
    for i in range(state.ready_count[switch]):
        vc = ready[i]
        arc, out = vc // vcs, queue[vc, EGRESS]
        ready[remaining] = vc  # it stays in the list unless `remaining` stays what it is
        if port[arc, IN_UNTIL] > half_cycle or port[out, OUT_UNTIL] > half_cycle:
            remaining += 1
            continue
        begin = max(t + half, port[out, FREE_FROM])
        front = vc * depth + queue[vc, FRONT]
        if out - switch * ports >= net.links_a_switch:
            # To a host: the packet is delivered when its last flit comes there. Its port has no
            # buffers that could be full. In their place so many flits may wait for the link.
            if begin - t > depth * vcs * length:
                remaining += 1
                continue
            done = begin + WIRE + net.delay[out] + length - 1
            _count_delivery(rules, state, slot[front, MADE], slot[front, HOPS], done)
        else:
            # To another switch: the packet takes a slot of a buffer at the other end of the link.
            into = _free_slot(net, rules, slot, queue, vc, arc, out, t, begin)
            if into < 0:
                remaining += 1
                continue
            slot[into, DESTINATION], slot[into, MADE] = slot[front, DESTINATION], slot[front, MADE]
            slot[into, HOPS] = slot[front, HOPS] + 1
            if rules.policy >= SHORTEST or net.uses_intermediates:
                state.detour_tag[into] = state.detour_tag[front]
            elif marks:  # a mark lasts for the first link only
                from_host = arc - switch * ports >= net.links_a_switch
                state.detour_tag[into] = state.detour_tag[front] if from_host else DIRECT
            ready_at = begin + WIRE + net.delay[out] + PIPELINE
            _append_packet(slot, queue, state.wheel, into // depth, into, ready_at, mask)
        if rules.measured_from <= begin < rules.measured_until:
            state.carried_flits[out] += length
            counts[HELD] += length * (t - slot[front, READY] + PIPELINE)
        port[arc, IN_UNTIL] = port[out, OUT_UNTIL] = half_cycle + length
        port[out, FREE_FROM] = begin + length
        counts[LAST] = t
        if rules.policy >= ADAPTIVE:
            _update_backlog(
                net, state.backlog_change, port, arc, out, t, slot[front, READY], length
            )
        _remove_packet(slot, queue, state.wheel, vc, rules, half_cycle, net.delay[arc], mask)
    state.ready_count[switch] = remaining


@inlined_loop
def _count_delivery(
    rules: SwitchRules, state: PacketState, made_at: int, links: int, done: int
) -> None:
    """Count a packet that a host has received, and let the host send what waited for it.

    Args:
        rules: the settings.
        state: everything that moves.
        made_at: the column MADE: the cycle in which the packet was made, or its message.
        links: how many links it took.
        done: the cycle in which its last flit came.
    """
    counts, messages = state.counts, state.messages
    counts[DELIVERED] += 1
    counts[ACCEPTED] += rules.measured_from <= done < rules.measured_until
    if len(messages.destination_arc):
        counts[WORST] = max(counts[WORST], done)
        message = made_at
        host = packet_received(messages, message, done)
        if host >= 0:
            state.due_cycle[host] = due(messages, host)
    elif rules.measured_from <= made_at < rules.measured_until:
        latency = done - made_at
        counts[MEASURED_OUT] += 1
        counts[LATENCY] += latency
        counts[WORST] = max(counts[WORST], latency)
        state.latency[min(latency, LONGEST - 1)] += 1
        state.hops[links] += 1


@inlined_loop
def ring_place(place: int, size: int) -> int:
    """The place in a ring of a number below twice the size of the ring, without a division."""
    return place if place < size else place - size


@inlined_loop
def _update_backlog(
    net: SimulatedNetwork,
    change: NDArray[np.int32],
    port: NDArray[np.int32],
    arc: int,
    out: int,
    t: int,
    ready: int,
    length: int,
) -> None:
    """Change the backlogs of two arcs as a packet passes from one to the other.

    Two flits pass in a cycle, but no flit passes before it came: the first flit was ready in cycle
    `ready`, and one a cycle follows.

    Args:
        net: the network.
        change: the array of the state.
        port: the array of the state.
        arc: the arc by which the packet came in; fewer flits wait for its other end when the
            credit comes there.
        out: the egress of the packet, for which more flits wait.
        t: the cycle.
        ready: the cycle in which the packet was ready.
        length: the flits of the packet.
    """
    for flit in range(length):
        cycle = max(t + flit // 2, ready + flit)
        if cycle == t:
            port[out, BACKLOG] += 1
        else:
            change[cycle % len(change), out] += 1
        if net.far_arc[arc] >= 0:
            change[(cycle + CREDIT + net.delay[arc]) % len(change), net.far_arc[arc]] -= 1


@inlined_loop
def _free_slot(
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
    """A slot behind an egress that can be filled, of a channel that a packet may take; -1: none.

    Packets that follow each other on a link take virtual channels in turn.

    Args:
        net: the network.
        rules: the settings.
        slot: the array of the state.
        queue: the array of the state.
        vc: the virtual channel that the packet is in.
        arc: the arc of this channel.
        out: the egress of the packet.
        t: the cycle.
        begin: the cycle in which the link takes the packet.
    """
    first, count = choices(net, rules, vc, arc, out)
    turn = begin // rules.packet_flits % count
    return _slot_to_fill(rules, slot, queue, first, count, turn, t)


@inlined_loop
def _slot_to_fill(
    rules: SwitchRules,
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    first: int,
    count: int,
    turn: int,
    t: int,
) -> int:
    """A slot of one of some virtual channels that can be filled in cycle t; -1: none.

    Args:
        rules: the settings.
        slot: the array of the state.
        queue: the array of the state.
        first: the first of the channels.
        count: how many channels there are.
        turn: the place among them of the one that is tried first.
        t: the cycle.
    """
    depth = rules.buffer_packets
    for i in range(count):
        vc = first + ring_place(turn + i, count)
        stored = queue[vc, STORED]
        if stored < depth:
            into = vc * depth + ring_place(queue[vc, FRONT] + stored, depth)
            if slot[into, READY] <= t:
                return int(into)
    return -1


@inlined_loop
def choices(
    net: SimulatedNetwork, rules: SwitchRules, vc: int, arc: int, out: int
) -> tuple[int, int]:
    """The first virtual channel behind an egress that a packet may take, and how many there are.

    A packet from a host begins in the first channel. By HOP it goes to the next channel at each
    switch, by VALLEY where it turns from down to up: the ingress arc, which leads back, rises, and
    the egress arc rises. The last channel also has the virtual channels that no group takes.
    """
    channel = 0
    if net.far_arc[arc] >= 0 and rules.scheme != SINGLE:
        step = 1 if rules.scheme == HOP else net.is_rising[arc] & net.is_rising[out]
        channel = min(
            (vc - arc * rules.virtual_channels) // rules.channel_size + step, rules.channels - 1
        )
    first = channel * rules.channel_size
    count = rules.channel_size if channel < rules.channels - 1 else rules.virtual_channels - first
    return net.far_arc[out] * rules.virtual_channels + first, count


@loop
def blocked(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: PacketState,
    waits: NDArray[np.bool_],
    next_vcs: NDArray[np.int32],
) -> None:
    """Write which virtual channels cannot move, and the full ones for which each waits.

    `measurement` looks for deadlock with it.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        waits: bool[S·L·V], written: whether all next buffers of the first packet are full.
        next_vcs: int32[S·L·V, V], written: these buffers.
    """
    queue, ports = state.queue, net.links_a_switch + net.hosts_a_switch
    for switch in range(net.switches):
        for i in range(state.ready_count[switch]):
            vc = state.ready_channels[switch, i]
            out = queue[vc, EGRESS]
            if out - switch * ports < net.links_a_switch:
                first, count = choices(net, rules, vc, vc // rules.virtual_channels, out)
                waits[vc] = True
                for next_vc in range(first, first + count):
                    waits[vc] &= queue[next_vc, STORED] == rules.buffer_packets
                    next_vcs[vc, next_vc - first] = next_vc


@inlined_loop
def _append_packet(
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    wheel: NDArray[np.int32],
    vc: int,
    into: int,
    ready_at: int,
    mask: int,
) -> None:
    """Add the packet in slot `into` to a virtual channel; it is ready in cycle `ready_at`."""
    slot[into, READY] = ready_at
    if not queue[vc, STORED]:
        queue[vc, NEXT] = wheel[ready_at & mask]
        wheel[ready_at & mask] = vc
    queue[vc, STORED] += 1


@inlined_loop
def _remove_packet(
    slot: NDArray[np.int32],
    queue: NDArray[np.int32],
    wheel: NDArray[np.int32],
    vc: int,
    rules: SwitchRules,
    half_cycle: int,
    delay: int,
    mask: int,
) -> None:
    """Remove the first packet of a virtual channel, and put the next one into the wheel.

    Args:
        slot: the array of the state.
        queue: the array of the state.
        wheel: the array of the state.
        vc: the virtual channel.
        rules: the settings.
        half_cycle: the time in half cycles.
        delay: the cycles of the link that a credit goes back over.
        mask: W - 1, by which a cycle is taken modulo W.
    """
    front, depth = queue[vc, FRONT], rules.buffer_packets
    slot[vc * depth + front, READY] = half_cycle // 2 + CREDIT + delay
    front = front + 1 if front + 1 < depth else 0
    queue[vc, FRONT] = front
    queue[vc, STORED] -= 1
    if queue[vc, STORED]:
        first_free = (half_cycle + rules.packet_flits + RELOAD + 1) // 2
        ready_at = max(slot[vc * depth + front, READY], first_free)
        queue[vc, NEXT] = wheel[ready_at & mask]
        wheel[ready_at & mask] = vc
