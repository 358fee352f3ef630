"""Simulates flits through input-queued switches, with the stages of BookSim's router.

It is slower than `packet_kernel` and checks it: `polarfab simulate --level flit`. `measurement`
runs `advance`. Everything that changes is in the arrays of a `FlitState`.

A cycle has as many steps as the `FlitRouter` says. In each step a switch does three things:

- Route computation: it routes packets whose head has come to the front of their buffer.
- Virtual channel allocation: it gives routed packets a virtual channel at the next switch, which is
  theirs until their tail has left.
- Switch allocation: it lets flits pass to buffers with room, at most one from each input and one to
  each output.

Links take a flit before the last step of a cycle.

Each virtual channel of an input has a buffer, which has the same number in the whole fabric:
`buffer_index`, while `vcs` counts the channels of one port. A buffer holds flits, and has a slot
for each packet whose first flit is in it or on its way to it. The *next buffer* of a packet is that
of its channel at the next switch; for a packet to a host it is a number after those of all buffers.

Ports of a switch and virtual channels of a port take turns (*round robin*): a pointer says where
the next search begins.

A buffer goes through these states (column STATE):

| state | meaning | next |
|---|---|---|
| ABSENT | empty, and not in the list `busy` of its switch | WAITS when a head comes |
| WAITS | its first packet waits for a route or a channel | MOVES when it gets the channel |
| MOVES | its flits can pass | WAITS or IDLE when the tail has passed |
| IDLE | empty, but still in the list | WAITS when a head comes, else ABSENT in the next step |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop, loop
from extensions.simulation.flit_router import last_step_of_stage
from extensions.simulation.hop_choice import ADAPTIVE, BACKLOG, draw_number
from extensions.simulation.packet_kernel import (
    ACCEPTED,
    COUNTS,
    DELIVERED,
    HELD,
    INJECTED,
    INSIDE,
    LAST,
    LATENCY,
    LONGEST,
    MEASURED_IN,
    MEASURED_OUT,
    WIRE,
    WORST,
    PacketState,
    SwitchRules,
    choices,
    drawn_destination,
    next_packet_cycle,
    ring_place,
)
from extensions.simulation.path_choice import DIRECT, SHORTEST, choose_without_tables
from extensions.simulation.simulated_network import HOME, HostTraffic, SimulatedNetwork
from extensions.simulation.table_hops import choose_by_tables

FRONT, STORED, FLITS, SENT, STATE, SINCE, OUT, NEXT = range(8)
"""Columns of `buffer`.

- FRONT: the slot of its first packet, counted from the buffer's first slot.
- STORED, FLITS: how many packets and flits it holds.
- SENT: how many flits of the first packet have left.
- STATE, SINCE: its state, and the step from which it has this state.
- OUT: the egress arc of the first packet.
- NEXT: the next buffer of the first packet.
"""
ABSENT, IDLE, WAITS, MOVES = range(4)
"""The states of a buffer. The head of this file has their table."""
DESTINATION, MADE, HOPS, DETOUR = range(4)
"""Columns of `slot`.

- DESTINATION: the arc of the host that the packet goes to.
- MADE: the cycle in which it was made.
- HOPS: the links that it has taken.
- DETOUR: the switch that it goes by, or its mark.
"""
SENDING_BUFFER, FLITS_LEFT = range(2)
"""Columns of `sending`: the buffer that the packet of a host goes to, and how many of its flits the
host has not sent yet."""
FIRST_FLIT, QUEUED_FLITS = range(2)
"""Columns of `queued`: the place of the first flit in the ring, and how many flits there are."""
UNROUTED = -9
"""In place of an egress arc: the packet is not routed yet."""
SPARE_CYCLES = 5
"""Cycles ahead for which arrivals and credits are scheduled, besides those of the longest link and
of the router. T is the next power of two."""
CREDIT_CYCLES = 1
"""Cycles from when a flit leaves until its credit comes, besides those of the link."""
SPARE_SLOTS = 2
"""Slots of a buffer besides one for each packet that it can hold whole: the first packet may have
left in part, and the last one may have come in part."""
NEXT_CHANNEL, NEXT_INPUT, NEXT_OUTPUT = range(3)
"""Columns of `pointer`, by arc.

- NEXT_CHANNEL: as an input, its virtual channel whose turn it is.
- NEXT_INPUT: as an output, the port whose turn it is to get a grant.
- NEXT_OUTPUT: as an input, the port whose grant it accepts first.
"""
REQUESTED_BUFFER, REQUESTED_INPUT, REQUESTED_OUTPUT = range(3)
"""Columns of `requests`: the buffer that has a flit to pass, its port, and the port of its egress.
"""
REQUEST_OF_INPUT, BUFFER_OF_OUTPUT, GRANT_OF_OUTPUT, ACCEPTED_BY_INPUT, MATCHED_OUTPUTS = range(5)
"""Rows of `matching`. All but the last are by port.

- REQUEST_OF_INPUT: the request of an input.
- BUFFER_OF_OUTPUT: the buffer that an output is matched with.
- GRANT_OF_OUTPUT: the request that an output grants.
- ACCEPTED_BY_INPUT: the output whose grant an input accepts.
- MATCHED_OUTPUTS: a list of the outputs that are matched, then of those that grant.
"""


class FlitState(NamedTuple):
    """Everything that moves, for S switches with L ports and V virtual channels each."""

    slot: NDArray[np.int32]
    """int32[S·L·V·B, 4], the packets of each buffer, with the columns DESTINATION to DETOUR."""
    buffer: NDArray[np.int32]
    """int32[S·L·V, 8], the buffers, with the columns FRONT to NEXT."""
    owner: NDArray[np.int32]
    """int32[2·S·L·V], by next buffer the buffer whose packet has that channel; -1: none. Channels
    to hosts come after those to switches."""
    room: NDArray[np.int32]
    """int32[2·S·L·V], for how many flits the next buffer has room."""
    busy_buffers: NDArray[np.int32]
    """int32[S, L·V], the buffers of each switch that are not ABSENT."""
    busy_count: NDArray[np.int32]
    """int32[S], how many entries of `busy_buffers` each switch has."""
    queue: NDArray[np.uint8]
    """uint8[S·L, Q], the flits behind the crossbar that wait for each link: the virtual channel of
    each, in a ring."""
    queued: NDArray[np.int32]
    """int32[S·L, 2], the rings of `queue`, with the columns FIRST_FLIT and QUEUED_FLITS."""
    arriving_flits: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit comes to; the last column says how many.
    """
    credits: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit has left; the last column says how many.
    """
    pointer: NDArray[np.int32]
    """int32[S·L, 3], the round-robin pointers, with the columns NEXT_CHANNEL to NEXT_OUTPUT."""
    port: NDArray[np.int32]
    """int32[S·L, 4], as in `PacketState`. Only BACKLOG is used: the flits that wait for an egress.
    """
    host: NDArray[np.int32]
    """int32[H], the arc of each host."""
    sending: NDArray[np.int32]
    """int32[H, 2], the packet that each host is sending, with the columns SENDING_BUFFER and
    FLITS_LEFT."""
    requests: NDArray[np.int32]
    """int32[L·V, 3], the requests of a switch's inputs to its outputs (`_match`), with the columns
    REQUESTED_BUFFER to REQUESTED_OUTPUT."""
    matching: NDArray[np.int32]
    """int32[5, L], memory of `_match`, with the rows REQUEST_OF_INPUT to MATCHED_OUTPUTS. Between
    its calls all but the last row are -1."""
    made_cycle: NDArray[np.int32]
    """int32[H], the cycle in which the next packet of each host is made."""
    chance: NDArray[np.float64]
    """float64[H], log(1 - p) for hosts that make a packet in a cycle with probability p."""
    streams: NDArray[np.uint64]
    """uint64[2·H + 1], the states of the random number generators."""
    counts: NDArray[np.int64]
    """int64[COUNTS], what was counted, by the names of `packet_kernel`."""
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

    @classmethod
    def of(
        cls, net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, load: float, seed: int
    ) -> FlitState:
        """The state before the first cycle; the arguments are those of `PacketState.of`."""
        packet_state = PacketState.of(net, traffic, rules, load, seed)
        buffers, ports = len(packet_state.queue), len(packet_state.port)
        flits = rules.buffer_packets * rules.packet_flits  # of a buffer
        router = rules.router
        # A credit from a host comes over its link twice (`_send_over_links`).
        longest_link = int(net.delay.max() + net.delay[net.far_arc < 0].max())
        longest_notice = SPARE_CYCLES + longest_link + router.crossbar + router.credit
        cycles = 1 << (longest_notice - 1).bit_length()
        return cls(
            slot=np.zeros((buffers * (rules.buffer_packets + SPARE_SLOTS), 4), np.int32),
            buffer=np.zeros((buffers, 8), np.int32),
            owner=np.full(2 * buffers, -1, np.int32),
            room=np.full(2 * buffers, flits, np.int32),
            busy_buffers=np.zeros_like(packet_state.ready_channels),
            busy_count=np.zeros(net.switches, np.int32),
            queue=np.zeros((ports, flits * rules.virtual_channels), np.uint8),
            queued=np.zeros((ports, 2), np.int32),
            arriving_flits=np.zeros((cycles, ports + 1), np.int32),
            credits=np.zeros((cycles, (2 + router.speedup) * ports + 1), np.int32),
            pointer=np.zeros((ports, 3), np.int32),
            port=packet_state.port,
            host=packet_state.host,
            sending=np.zeros((len(packet_state.host), 2), np.int32),
            requests=np.zeros((net.ports * rules.virtual_channels, 3), np.int32),
            matching=np.full((5, net.ports), -1, np.int32),
            made_cycle=packet_state.made_cycle,
            chance=packet_state.chance,
            streams=packet_state.streams,
            counts=np.zeros(COUNTS, np.int64),
            latency=packet_state.latency,
            hops=packet_state.hops,
            carried_flits=packet_state.carried_flits,
            failed_elements=packet_state.failed_elements,
            offered_links=packet_state.offered_links,
        )


@loop
def advance(
    net: SimulatedNetwork,
    traffic: HostTraffic,
    rules: SwitchRules,
    state: FlitState,
    start: int,
    end: int,
) -> None:
    """Let the cycles from start to end pass."""
    speedup = rules.router.speedup
    for t in range(start, end):
        _receive(net, rules, state, t)
        if rules.measured_from <= t < rules.measured_until:
            state.counts[HELD] += state.counts[INSIDE]
        _send_from_hosts(net, traffic, rules, state, t)
        for step in range(speedup * t, speedup * (t + 1)):
            is_last_step = step == speedup * (t + 1) - 1
            if is_last_step:
                _send_over_links(net, rules, state, t)
            _step(net, rules, state, t, step, is_last_step)


@inlined_loop
def _receive(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Take in the flits and the credits that come in cycle t."""
    ports = net.links_a_switch + net.hosts_a_switch
    coming, buffer = state.arriving_flits[t & (len(state.arriving_flits) - 1)], state.buffer
    for i in range(coming[-1]):
        buffer_index = coming[i]
        buffer[buffer_index, FLITS] += 1
        if buffer[buffer_index, STATE] <= IDLE:
            _start_packet(
                rules, state, buffer_index, buffer_index // rules.virtual_channels // ports, t
            )
    state.counts[INSIDE] += coming[-1]
    coming[-1] = 0
    credit, adaptive = state.credits[t & (len(state.credits) - 1)], rules.policy >= ADAPTIVE
    for i in range(credit[-1]):
        next_buffer = credit[i]
        state.room[next_buffer] += 1
        if not adaptive:
            continue
        # Fewer flits wait for the egress that leads to this buffer.
        arc = next_buffer // rules.virtual_channels
        if arc >= len(net.far_arc):
            state.port[arc - len(net.far_arc), BACKLOG] -= 1
        elif net.far_arc[arc] >= 0:
            state.port[net.far_arc[arc], BACKLOG] -= 1
    credit[-1] = 0


@inlined_loop
def _start_packet(
    rules: SwitchRules, state: FlitState, buffer_index: int, switch: int, t: int
) -> None:
    """Begin with a packet whose head has come to an empty buffer in cycle t."""
    is_busy = state.buffer[buffer_index, STATE] != ABSENT
    state.buffer[buffer_index, STATE] = WAITS
    speedup = rules.router.speedup
    state.buffer[buffer_index, SINCE] = last_step_of_stage(
        t * speedup, rules.router.routing, speedup
    )
    state.buffer[buffer_index, OUT] = UNROUTED
    if not is_busy:
        state.busy_buffers[switch, state.busy_count[switch]] = buffer_index
        state.busy_count[switch] += 1


@inlined_loop
def _schedule(events: NDArray[np.int32], when: int, what: int) -> None:
    """Schedule an arrival (`arriving_flits`) or a credit (`credits`) at buffer `what`."""
    row = when & (len(events) - 1)
    events[row, events[row, -1]] = what
    events[row, -1] += 1


@inlined_loop
def _add_packet(
    rules: SwitchRules,
    state: FlitState,
    buffer_index: int,
    destination: int,
    made_at: int,
    hops: int,
    detour_tag: int,
) -> None:
    """Write a packet into a slot of the buffer that its first flit goes to."""
    slots = rules.buffer_packets + SPARE_SLOTS
    into = buffer_index * slots + ring_place(
        state.buffer[buffer_index, FRONT] + state.buffer[buffer_index, STORED], slots
    )
    state.slot[into, DESTINATION], state.slot[into, MADE] = destination, made_at
    state.slot[into, HOPS], state.slot[into, DETOUR] = hops, detour_tag
    state.buffer[buffer_index, STORED] += 1


@inlined_loop
def _send_from_hosts(
    net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, state: FlitState, t: int
) -> None:
    """Let every host send a flit, if it has one and the buffer has room.

    A host whose packet is sent takes the next one, as soon as that is made and a channel of its
    port has no owner. An owner is the number of the buffer that sends to a channel. A host has no
    buffer, so while it sends to a channel, the number of that channel's own buffer is the owner.
    """
    senders, vcs, counts = len(state.host), rules.virtual_channels, state.counts
    for h in range(senders):
        arc, flits_left = state.host[h], state.sending[h, FLITS_LEFT]
        if not flits_left:
            made_at = state.made_cycle[h]
            if made_at > t:
                continue
            channel = (state.sending[h, SENDING_BUFFER] + 1) % vcs
            buffer_index = _free_buffer_of_host(state, vcs, arc * vcs, channel)
            if buffer_index < 0:
                continue
            u = draw_number(state.streams, senders + h)
            destination = drawn_destination(net, traffic, arc, u)
            _add_packet(rules, state, buffer_index, destination, made_at, 0, DIRECT)
            state.owner[buffer_index] = buffer_index
            state.sending[h, SENDING_BUFFER] = buffer_index
            flits_left = rules.packet_flits
            counts[INJECTED] += 1
            counts[MEASURED_IN] += rules.measured_from <= made_at < rules.measured_until
            state.made_cycle[h] = next_packet_cycle(state.streams, h, made_at, state.chance[h])
        buffer_index = state.sending[h, SENDING_BUFFER]
        if state.room[buffer_index] > 0:
            state.room[buffer_index] -= 1
            _schedule(state.arriving_flits, t + WIRE + net.delay[arc], buffer_index)
            flits_left -= 1
            if not flits_left:
                state.owner[buffer_index] = -1
        state.sending[h, FLITS_LEFT] = flits_left


@inlined_loop
def _free_buffer_of_host(state: FlitState, vcs: int, first: int, channel: int) -> int:
    """A buffer of a host's port that has no owner, and room for a flit; -1: none.

    Args:
        state: everything that moves.
        vcs: virtual channels of a port.
        first: the first buffer of the port.
        channel: the virtual channel that is tried first.
    """
    for i in range(vcs):
        buffer_index = first + ring_place(channel + i, vcs)
        if state.owner[buffer_index] < 0 and state.room[buffer_index] > 0:
            return buffer_index
    return -1


@inlined_loop
def _send_over_links(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Let every link take a flit from behind the crossbar; a host sends a credit when it comes."""
    width, buffers = state.queue.shape[1], len(state.buffer)
    leaves_crossbar = t + rules.router.crossbar - 1
    for arc in range(len(state.queued)):
        if not state.queued[arc, QUEUED_FLITS]:
            continue
        first = state.queued[arc, FIRST_FLIT]
        channel = state.queue[arc, first]
        state.queued[arc, FIRST_FLIT] = ring_place(first + 1, width)
        state.queued[arc, QUEUED_FLITS] -= 1
        arrives = leaves_crossbar + WIRE + net.delay[arc]
        if net.far_arc[arc] >= 0:
            next_buffer = net.far_arc[arc] * rules.virtual_channels + channel
            _schedule(state.arriving_flits, arrives, next_buffer)
        else:
            next_buffer = buffers + arc * rules.virtual_channels + channel
            credit_counts = arrives + CREDIT_CYCLES + rules.router.credit + net.delay[arc]
            _schedule(state.credits, credit_counts, next_buffer)
        state.carried_flits[arc] += rules.measured_from <= t < rules.measured_until


@inlined_loop
def _step(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    t: int,
    step: int,
    is_last_step: bool,
) -> None:
    """Let each switch route packets, give them channels, and pass flits, in one step of cycle t.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        t: the cycle.
        step: the step.
        is_last_step: whether it is the last step of the cycle.
    """
    ports, vcs, islip = (
        net.links_a_switch + net.hosts_a_switch,
        rules.virtual_channels,
        rules.router.islip,
    )
    buffer_of_output, outputs = state.matching[BUFFER_OF_OUTPUT], state.matching[MATCHED_OUTPUTS]
    requests = state.requests
    marks = len(net.program.onward) > 0 and rules.policy < SHORTEST
    for switch in range(net.switches):
        count = state.busy_count[switch]
        if not count:
            continue
        busy, base = state.busy_buffers[switch], switch * ports
        first = step % count  # buffers take turns to be given channels
        for i in range(count):
            buffer_index = busy[ring_place(first + i, count)]
            if (
                state.buffer[buffer_index, STATE] == WAITS
                and state.buffer[buffer_index, SINCE] <= step
            ):
                _route_or_allocate_channel(net, rules, state, buffer_index, switch, step)
        requested = _request_outputs(rules, state, switch, base, step)
        matched = _match(
            max(1, islip), vcs, base, requests[:requested], state.pointer, state.matching
        )
        for i in range(matched):
            buffer_index = buffer_of_output[outputs[i]]
            arc = buffer_index // vcs
            state.pointer[arc, NEXT_CHANNEL] = ring_place(buffer_index - arc * vcs + 1, vcs)
            # A mark lasts for the first link only: a packet that came over a link loses it.
            unmark = marks and arc - base < net.links_a_switch
            _pass_flit(net, rules, state, buffer_index, arc, t, step, is_last_step, unmark)
            buffer_of_output[outputs[i]] = -1


@inlined_loop
def _request_outputs(
    rules: SwitchRules, state: FlitState, switch: int, base: int, step: int
) -> int:
    """List the requests of a switch's buffers for outputs in `requests`.

    With iSLIP all buffers with a flit to pass request their output, else one buffer of each input.
    Buffers without a packet leave the list of the switch.

    Args:
        rules: the settings.
        state: everything that moves.
        switch: the switch.
        base: the first arc of the switch.
        step: the step.

    Returns:
        How many requests there are.
    """
    vcs, islip = rules.virtual_channels, rules.router.islip
    buffer, busy, requests = state.buffer, state.busy_buffers[switch], state.requests
    request_of_input = state.matching[REQUEST_OF_INPUT]
    still_busy, requested = 0, 0
    for i in range(state.busy_count[switch]):
        buffer_index = busy[i]
        if buffer[buffer_index, STATE] == IDLE:
            buffer[buffer_index, STATE] = ABSENT
            continue
        busy[still_busy] = buffer_index
        still_busy += 1
        if (
            buffer[buffer_index, STATE] != MOVES
            or buffer[buffer_index, SINCE] > step
            or not buffer[buffer_index, FLITS]
        ):
            continue
        if state.room[buffer[buffer_index, NEXT]] > 0:
            in_port = buffer_index // vcs - base
            request = requested  # a new request, or the earlier one of this input
            if not islip and request_of_input[in_port] >= 0:
                request = request_of_input[in_port]
                pointer = state.pointer[base + in_port, NEXT_CHANNEL]
                first_index = (base + in_port) * vcs
                earlier = requests[request, REQUESTED_BUFFER]
                if _after(earlier - first_index, pointer, vcs) < _after(
                    buffer_index - first_index, pointer, vcs
                ):
                    continue
            requested = max(requested, request + 1)
            request_of_input[in_port] = request
            requests[request, REQUESTED_BUFFER] = buffer_index
            requests[request, REQUESTED_INPUT] = in_port
            requests[request, REQUESTED_OUTPUT] = buffer[buffer_index, OUT] - base
    state.busy_count[switch] = still_busy
    return requested


@loop
def _match(
    iterations: int,
    vcs: int,
    base: int,
    requests: NDArray[np.int32],
    pointer: NDArray[np.int32],
    matching: NDArray[np.int32],
) -> int:
    """Match the inputs of a switch with its outputs, by iSLIP (McKeown, 1999).

    In an iteration each free output grants one of the free inputs that ask for it, and then each
    input accepts one grant, both in the order of their pointers. Pointers move on where the first
    iteration matches. With one request of each input, one iteration is a separable, input-first
    allocator.

    Args:
        iterations: how many there are at most.
        vcs: virtual channels of a port.
        base: the first arc of the switch.
        requests: int32[n, 3], the requests, as in the state.
        pointer: the array of the state, changed.
        matching: the array of the state. BUFFER_OF_OUTPUT and MATCHED_OUTPUTS are written.

    Returns:
        How many outputs are matched.
    """
    request_of_input, buffer_of_output, grant_of_output, accepted_by_input, outputs = matching
    ports, matched = matching.shape[1], 0
    for iteration in range(iterations):
        matched_before = granted = matched
        # Each free output grants one input.
        for i in range(len(requests)):
            in_port, out_port = requests[i, REQUESTED_INPUT], requests[i, REQUESTED_OUTPUT]
            if request_of_input[in_port] < 0 or buffer_of_output[out_port] >= 0:
                continue
            rival = grant_of_output[out_port]
            if rival < 0:
                outputs[granted] = out_port
                granted += 1
                grant_of_output[out_port] = i
            elif _sooner(pointer, vcs, base, ports, requests[i], requests[rival]):
                grant_of_output[out_port] = i
        # Each input accepts one of its grants.
        for out_port in outputs[matched_before:granted]:
            in_port = requests[grant_of_output[out_port], REQUESTED_INPUT]
            first_output = pointer[base + in_port, NEXT_OUTPUT]
            best = accepted_by_input[in_port]
            if best < 0 or (
                _after(out_port, first_output, ports) < _after(best, first_output, ports)
            ):
                accepted_by_input[in_port] = out_port
        # An output is matched if its grant was accepted.
        for out_port in outputs[matched_before:granted]:
            request = requests[grant_of_output[out_port]]
            in_port = request[REQUESTED_INPUT]
            grant_of_output[out_port] = -1
            if accepted_by_input[in_port] == out_port:
                request_of_input[in_port] = accepted_by_input[in_port] = -1
                buffer_of_output[out_port] = request[REQUESTED_BUFFER]
                outputs[matched] = out_port
                matched += 1
                if not iteration:
                    pointer[base + out_port, NEXT_INPUT] = ring_place(in_port + 1, ports)
                    pointer[base + in_port, NEXT_OUTPUT] = ring_place(out_port + 1, ports)
        if matched == matched_before:
            break
    for i in range(len(requests)):
        request_of_input[requests[i, REQUESTED_INPUT]] = -1
    return matched


@inlined_loop
def _sooner(
    pointer: NDArray[np.int32],
    vcs: int,
    base: int,
    ports: int,
    request: NDArray[np.int32],
    rival: NDArray[np.int32],
) -> bool:
    """Whether a request comes before another one for its output, by the round-robin pointers."""
    in_port, out_port = request[REQUESTED_INPUT], request[REQUESTED_OUTPUT]
    if in_port != rival[REQUESTED_INPUT]:
        first_input = pointer[base + out_port, NEXT_INPUT]
        return _after(in_port, first_input, ports) < _after(
            rival[REQUESTED_INPUT], first_input, ports
        )
    first_channel, first_index = pointer[base + in_port, NEXT_CHANNEL], (base + in_port) * vcs
    return _after(request[REQUESTED_BUFFER] - first_index, first_channel, vcs) < _after(
        rival[REQUESTED_BUFFER] - first_index, first_channel, vcs
    )


@inlined_loop
def _after(place: int, pointer: int, size: int) -> int:
    """How many steps round a ring lead from the pointer to a place."""
    return place - pointer if place >= pointer else place - pointer + size


@inlined_loop
def _route_or_allocate_channel(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    buffer_index: int,
    switch: int,
    step: int,
) -> None:
    """Compute the route of the packet at the front of a buffer, or allocate its next channel.

    With a delay for route computation, both take a step each; else one call does both.
    """
    buffer, vcs = state.buffer, rules.virtual_channels
    arc, out = buffer_index // vcs, buffer[buffer_index, OUT]
    if out == UNROUTED:
        out = _route(net, rules, state, buffer_index, switch)
        buffer[buffer_index, OUT] = out
        buffer[buffer_index, SINCE] = step + (rules.router.routing > 0)
        if buffer[buffer_index, SINCE] > step:
            return
    if net.far_arc[out] >= 0:
        first, count = choices(net, rules, buffer_index, arc, out)
    else:
        first, count = len(buffer) + out * vcs, vcs
    offset = step % count  # the candidates take turns to be tried first
    for i in range(count):
        next_buffer = first + ring_place(offset + i, count)
        if state.owner[next_buffer] < 0:
            state.owner[next_buffer] = buffer_index
            buffer[buffer_index, STATE], buffer[buffer_index, SINCE], buffer[buffer_index, NEXT] = (
                MOVES,
                step + 1,
                next_buffer,
            )
            return


@inlined_loop
def _route(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, buffer_index: int, switch: int
) -> int:
    """The egress arc of the first packet of a buffer."""
    ports = net.links_a_switch + net.hosts_a_switch
    front = buffer_index * (rules.buffer_packets + SPARE_SLOTS) + state.buffer[buffer_index, FRONT]
    destination, arc = state.slot[front, DESTINATION], buffer_index // rules.virtual_channels
    from_host = arc - switch * ports >= net.links_a_switch
    if rules.policy >= SHORTEST:
        out, state.slot[front, DETOUR] = choose_without_tables(
            net, rules.policy, rules.samples, rules.threshold, switch, destination // ports,
            state.slot[front, DETOUR], from_host, state.port, state.streams, 2 * len(state.host),
        )  # fmt: skip
    else:
        out, state.slot[front, DETOUR] = choose_by_tables(
            net, rules.policy, rules.threshold, rules.flows, destination, arc,
            state.slot[front, DETOUR], state.failed_elements, state.offered_links, state.port,
            state.streams, 2 * len(state.host),
        )  # fmt: skip
    return int(destination) if out == HOME else out


@inlined_loop
def _pass_flit(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    buffer_index: int,
    arc: int,
    t: int,
    step: int,
    is_last_step: bool,
    unmark: bool,
) -> None:
    """Move a flit from its buffer to the queue of a link, and end its packet with the last flit.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        buffer_index: the buffer.
        arc: the arc of the buffer.
        t: the cycle.
        step: the step.
        is_last_step: whether it is the last step of the cycle.
        unmark: whether the packet loses its mark.
    """
    buffer, counts, length = state.buffer, state.counts, rules.packet_flits
    out, next_buffer = buffer[buffer_index, OUT], buffer[buffer_index, NEXT]
    front = buffer_index * (rules.buffer_packets + SPARE_SLOTS) + buffer[buffer_index, FRONT]
    destination, made_at, hops = (
        state.slot[front, DESTINATION],
        state.slot[front, MADE],
        state.slot[front, HOPS],
    )
    to_host = next_buffer >= len(buffer)  # to a host of this switch
    if not buffer[buffer_index, SENT] and not to_host:
        detour_tag = DIRECT if unmark else state.slot[front, DETOUR]
        _add_packet(rules, state, next_buffer, destination, made_at, hops + 1, detour_tag)
    buffer[buffer_index, SENT] += 1
    buffer[buffer_index, FLITS] -= 1
    state.room[next_buffer] -= 1
    state.port[out, BACKLOG] += 1
    # The flit comes behind those that wait for the link. The queue has its channel, not its buffer.
    last = state.queued[out, FIRST_FLIT] + state.queued[out, QUEUED_FLITS]
    next_arc = len(net.far_arc) + out if to_host else net.far_arc[out]
    channel = next_buffer - next_arc * rules.virtual_channels
    state.queue[out, ring_place(last, state.queue.shape[1])] = channel
    state.queued[out, QUEUED_FLITS] += 1
    credit_delay = rules.router.credit if net.far_arc[arc] >= 0 else 0
    _schedule(state.credits, t + CREDIT_CYCLES + credit_delay + net.delay[arc], buffer_index)
    counts[LAST] = t
    counts[INSIDE] -= 1
    if buffer[buffer_index, SENT] < length:
        return
    state.owner[next_buffer] = -1
    buffer[buffer_index, SENT] = 0
    buffer[buffer_index, FRONT] = ring_place(
        buffer[buffer_index, FRONT] + 1, rules.buffer_packets + SPARE_SLOTS
    )
    buffer[buffer_index, STORED] -= 1
    if buffer[buffer_index, FLITS]:
        when = last_step_of_stage(step + 1, rules.router.routing, rules.router.speedup)
        buffer[buffer_index, STATE], buffer[buffer_index, SINCE], buffer[buffer_index, OUT] = (
            WAITS,
            when,
            UNROUTED,
        )
    else:
        buffer[buffer_index, STATE] = IDLE
    if to_host:
        # The link takes one flit a cycle, before the last step. A flit that comes in that step
        # waits for the next cycle.
        flits_ahead = state.queued[out, QUEUED_FLITS] - 1
        wait = flits_ahead + is_last_step + rules.router.crossbar - 1
        done = t + wait + WIRE + net.delay[out]
        counts[DELIVERED] += 1
        counts[ACCEPTED] += rules.measured_from <= done < rules.measured_until
        if rules.measured_from <= made_at < rules.measured_until:
            latency = done - made_at
            counts[MEASURED_OUT] += 1
            counts[LATENCY] += latency
            counts[WORST] = max(counts[WORST], latency)
            state.latency[min(latency, LONGEST - 1)] += 1
            state.hops[hops] += 1


@loop
def blocked(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    waits: NDArray[np.bool_],
    next_buffers: NDArray[np.int32],
) -> None:
    """Write which buffers cannot move, and the buffers for any of which each waits.

    A packet with a channel waits for room in its next buffer. A packet without one waits for the
    buffers whose packets have the channels that it may take. `measurement` looks for deadlock so.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        waits: bool[S·L·V], written: whether each buffer cannot move.
        next_buffers: int32[S·L·V, V], written: the buffers that it waits for; -1 for none.
    """
    buffer, buffers = state.buffer, len(state.buffer)
    for buffer_index in range(buffers):
        out, next_buffer = buffer[buffer_index, OUT], buffer[buffer_index, NEXT]
        if (
            buffer[buffer_index, STATE] == MOVES
            and buffer[buffer_index, FLITS]
            and next_buffer < buffers
        ):
            waits[buffer_index] = not state.room[next_buffer]
            next_buffers[buffer_index, 0] = next_buffer
        elif buffer[buffer_index, STATE] == WAITS and out >= 0 and net.far_arc[out] >= 0:
            first, count = choices(
                net, rules, buffer_index, buffer_index // rules.virtual_channels, out
            )
            waits[buffer_index] = True
            for i in range(count):
                waits[buffer_index] &= state.owner[first + i] >= 0
                next_buffers[buffer_index, i] = state.owner[first + i]
