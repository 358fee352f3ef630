"""Simulates flits through input-queued switches, with the stages of BookSim's router.

It is slower than `packet_kernel` and checks it: `polarfab simulate level flit`. `measurement` runs
`advance`. Everything that changes is in the arrays of a `FlitState`.

A cycle has as many steps as the `FlitRouter` says. In each step a switch does three things:

- Route computation: it routes packets whose head has come to the front of their buffer.
- Virtual channel allocation: it gives routed packets a virtual channel at the next switch, which is
  theirs until their tail has left.
- Switch allocation: it lets flits pass to buffers with room, at most one from each input and one to
  each output.

Links take a flit before the last step of a cycle.

A buffer belongs to a virtual channel of an input. It holds flits, and has a slot for each packet
whose first flit is in it or on its way to it. The *next buffer* of a packet is that of its channel
at the next switch; for a packet to a host it is a number after those of all buffers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop, loop
from extensions.simulation.flit_router import stage
from extensions.simulation.hop_choice import ADAPTIVE, BACKLOG, drawn
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
from extensions.simulation.path_choice import DIRECT, SHORTEST, without_tables
from extensions.simulation.simulated_network import HOME, HostTraffic, SimulatedNetwork
from extensions.simulation.table_hops import by_tables

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
"""States of a buffer.

- ABSENT: it is not in the list `busy` of its switch.
- IDLE: it is in the list, but has no packet.
- WAITS: its first packet waits for a route or a channel.
- MOVES: its first packet has a channel, so its flits can pass.
"""
DESTINATION, MADE, HOPS, VIA = range(4)
"""Columns of `slot`.

- DESTINATION: the arc of the host that the packet goes to.
- MADE: the cycle in which it was made.
- HOPS: the links that it has taken.
- VIA: the switch that it goes by, or its mark.
"""
UNROUTED = -9
"""The egress arc of a packet that is not routed yet."""
TURNS = 5
"""Cycles ahead for which arrivals and credits are scheduled, besides those of the longest link and
of the router. T is the next power of two."""
NOTICE = 1
"""Cycles from when a flit leaves until its credit comes, besides those of the link."""


class FlitState(NamedTuple):
    """Everything that moves, for S switches with L ports and V virtual channels each."""

    slot: NDArray[np.int32]
    """int32[S·L·V·B, 4], the packets of each buffer, with the columns DESTINATION to VIA."""
    buffer: NDArray[np.int32]
    """int32[S·L·V, 8], the buffers, with the columns FRONT to NEXT."""
    owner: NDArray[np.int32]
    """int32[2·S·L·V], by next buffer the buffer whose packet has that channel; -1: none. Channels
    to hosts come after those to switches."""
    room: NDArray[np.int32]
    """int32[2·S·L·V], for how many flits the next buffer has room."""
    busy: NDArray[np.int32]
    """int32[S, L·V], the buffers of each switch that are not ABSENT."""
    active: NDArray[np.int32]
    """int32[S], how many entries of `busy` each switch has."""
    queue: NDArray[np.uint8]
    """uint8[S·L, Q], the flits behind the crossbar that wait for each link: the virtual channel of
    each, in a ring."""
    queued: NDArray[np.int32]
    """int32[S·L, 2], the first flit of each queue, and how many there are."""
    coming: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit comes to; the last column says how many.
    """
    credit: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit has left; the last column says how many.
    """
    turn: NDArray[np.int32]
    """int32[S·L, 3], the round-robin pointers: the next channel of each input, the next input of
    each output, and the next output of each input."""
    port: NDArray[np.int32]
    """int32[S·L, 4], as in `PacketState`. Only BACKLOG is used: the flits that wait for
    an egress."""
    host: NDArray[np.int32]
    """int32[H], the arc of each host."""
    sending: NDArray[np.int32]
    """int32[H, 2], for the packet that each host is sending: its virtual channel, and how many of
    its flits are left."""
    requests: NDArray[np.int32]
    """int32[L·V, 3], buffers that have a flit to pass (`_match`)."""
    chosen: NDArray[np.int32]
    """int32[5, L], memory of `_match`, -1 between its calls."""
    made: NDArray[np.int32]
    """int32[H], the cycle in which the next packet of each host is made."""
    chance: NDArray[np.float64]
    """float64[H], the logarithm of the chance that a host makes no packet in a cycle."""
    streams: NDArray[np.uint64]
    """uint64[2·H + 1], the states of the random number generators."""
    counts: NDArray[np.int64]
    """int64[COUNTS], what was counted, by the names of `packet_kernel`."""
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

    @classmethod
    def of(
        cls, net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, load: float, seed: int
    ) -> FlitState:
        """The state before the first cycle; the arguments are those of `PacketState.of`."""
        like = PacketState.of(net, traffic, rules, load, seed)
        buffers, ports = len(like.queue), len(like.port)
        flits = rules.depth * rules.length
        router = rules.router
        longest_link = int(net.delay.max() + net.delay[net.end < 0].max())
        longest = TURNS + longest_link + router.crossbar + router.credit
        turns = 1 << (longest - 1).bit_length()
        return cls(
            slot=np.zeros((buffers * (rules.depth + 2), 4), np.int32),
            buffer=np.zeros((buffers, 8), np.int32),
            owner=np.full(2 * buffers, -1, np.int32),
            room=np.full(2 * buffers, flits, np.int32),
            busy=np.zeros_like(like.ready),
            active=np.zeros(net.switches, np.int32),
            queue=np.zeros((ports, flits * rules.vcs), np.uint8),
            queued=np.zeros((ports, 2), np.int32),
            coming=np.zeros((turns, ports + 1), np.int32),
            credit=np.zeros((turns, (2 + router.speedup) * ports + 1), np.int32),
            turn=np.zeros((ports, 3), np.int32),
            port=like.port,
            host=like.host,
            sending=np.zeros((len(like.host), 2), np.int32),
            requests=np.zeros((net.ports * rules.vcs, 3), np.int32),
            chosen=np.full((5, net.ports), -1, np.int32),
            made=like.made,
            chance=like.chance,
            streams=like.streams,
            counts=np.zeros(COUNTS, np.int64),
            latency=like.latency,
            hops=like.hops,
            carried=like.carried,
            dead=like.dead,
            offered=like.offered,
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
        if rules.begin <= t < rules.end:
            state.counts[HELD] += state.counts[INSIDE]
        _inject(net, traffic, rules, state, t)
        for step in range(speedup * t, speedup * (t + 1)):
            last = step == speedup * (t + 1) - 1
            if last:
                _send_over_links(net, rules, state, t)
            _step(net, rules, state, t, step, last)


@inlined_loop
def _receive(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Take in the flits and the credits that come in cycle t."""
    ports = net.links + net.hosts
    coming, buffer = state.coming[t & (len(state.coming) - 1)], state.buffer
    for i in range(coming[-1]):
        vc = coming[i]
        buffer[vc, FLITS] += 1
        if buffer[vc, STATE] <= IDLE:
            _start_packet(rules, state, vc, vc // rules.vcs // ports, t)
    state.counts[INSIDE] += coming[-1]
    coming[-1] = 0
    credit, adaptive = state.credit[t & (len(state.credit) - 1)], rules.policy >= ADAPTIVE
    for i in range(credit[-1]):
        next_buffer = credit[i]
        state.room[next_buffer] += 1
        if not adaptive:
            continue
        arc = next_buffer // rules.vcs
        if arc >= len(net.end):
            state.port[arc - len(net.end), BACKLOG] -= 1
        elif net.end[arc] >= 0:
            state.port[net.end[arc], BACKLOG] -= 1
    credit[-1] = 0


@inlined_loop
def _start_packet(rules: SwitchRules, state: FlitState, vc: int, switch: int, t: int) -> None:
    """Begin with a packet whose head has come to an empty buffer in cycle t."""
    is_busy = state.buffer[vc, STATE] != ABSENT
    state.buffer[vc, STATE] = WAITS
    speedup = rules.router.speedup
    state.buffer[vc, SINCE] = stage(t * speedup, rules.router.routing, speedup)
    state.buffer[vc, OUT] = UNROUTED
    if not is_busy:
        state.busy[switch, state.active[switch]] = vc
        state.active[switch] += 1


@inlined_loop
def _schedule(events: NDArray[np.int32], when: int, what: int) -> None:
    """Schedule an arrival (`coming`) or a credit (`credit`) at buffer `what` for cycle `when`."""
    row = when & (len(events) - 1)
    events[row, events[row, -1]] = what
    events[row, -1] += 1


@inlined_loop
def _add_packet(
    rules: SwitchRules,
    state: FlitState,
    vc: int,
    destination: int,
    made_at: int,
    hops: int,
    via: int,
) -> None:
    """Write a packet into a slot of the buffer that its first flit goes to."""
    depth = rules.depth + 2
    into = vc * depth + ring_place(state.buffer[vc, FRONT] + state.buffer[vc, STORED], depth)
    state.slot[into, DESTINATION], state.slot[into, MADE] = destination, made_at
    state.slot[into, HOPS], state.slot[into, VIA] = hops, via
    state.buffer[vc, STORED] += 1


@inlined_loop
def _inject(
    net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, state: FlitState, t: int
) -> None:
    """Let every host send a flit, if it has one and the buffer has room."""
    senders, vcs, counts = len(state.host), rules.vcs, state.counts
    for h in range(senders):
        arc, left = state.host[h], state.sending[h, 1]
        if not left:
            made_at = state.made[h]
            if made_at > t:
                continue
            turn = (state.sending[h, 0] + 1) % vcs
            for i in range(vcs):
                vc = arc * vcs + ring_place(turn + i, vcs)
                if state.owner[vc] < 0 and state.room[vc] > 0:
                    destination = drawn_destination(
                        net, traffic, arc, drawn(state.streams, senders + h)
                    )
                    _add_packet(rules, state, vc, destination, made_at, 0, DIRECT)
                    state.owner[vc] = vc
                    state.sending[h, 0] = vc
                    left = rules.length
                    counts[INJECTED] += 1
                    counts[MEASURED_IN] += rules.begin <= made_at < rules.end
                    state.made[h] = next_packet_cycle(state.streams, h, made_at, state.chance[h])
                    break
        vc = state.sending[h, 0]
        if left and state.room[vc] > 0:
            state.room[vc] -= 1
            _schedule(state.coming, t + WIRE + net.delay[arc], vc)
            left -= 1
            if not left:
                state.owner[vc] = -1
        state.sending[h, 1] = left


@inlined_loop
def _send_over_links(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Let every link take a flit from behind the crossbar; a host sends a credit when it comes."""
    width, buffers = state.queue.shape[1], len(state.buffer)
    behind = t + rules.router.crossbar - 1
    for arc in range(len(state.queued)):
        if state.queued[arc, 1]:
            first = state.queued[arc, 0]
            v = state.queue[arc, first]
            state.queued[arc, 0] = ring_place(first + 1, width)
            state.queued[arc, 1] -= 1
            if net.end[arc] >= 0:
                when = behind + WIRE + net.delay[arc]
                _schedule(state.coming, when, net.end[arc] * rules.vcs + v)
            else:
                when = behind + WIRE + NOTICE + rules.router.credit + 2 * net.delay[arc]
                _schedule(state.credit, when, buffers + arc * rules.vcs + v)
            state.carried[arc] += rules.begin <= t < rules.end


@inlined_loop
def _step(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int, step: int, last: bool
) -> None:
    """Let each switch route packets, give them channels, and pass flits, in one step of cycle t.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        t: the cycle.
        step: the step.
        last: whether it is the last step of the cycle.
    """
    ports, vcs, islip = net.links + net.hosts, rules.vcs, rules.router.islip
    by_output, outputs, requests = state.chosen[1], state.chosen[4], state.requests
    marks = len(net.program.onward) > 0 and rules.policy < SHORTEST
    for switch in range(net.switches):
        count = state.active[switch]
        if not count:
            continue
        busy, base = state.busy[switch], switch * ports
        first = step % count  # buffers take turns to be given channels
        for i in range(count):
            vc = busy[ring_place(first + i, count)]
            if state.buffer[vc, STATE] == WAITS and state.buffer[vc, SINCE] <= step:
                _give_channel(net, rules, state, vc, switch, step)
        requested = _request_outputs(rules, state, switch, base, step)
        matched = _match(max(1, islip), vcs, base, requests[:requested], state.turn, state.chosen)
        for i in range(matched):
            vc = by_output[outputs[i]]
            arc = vc // vcs
            state.turn[arc, 0] = ring_place(vc - arc * vcs + 1, vcs)
            unmark = marks and arc - base < net.links
            _pass_flit(net, rules, state, vc, arc, t, step, last, unmark)
            by_output[outputs[i]] = -1


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
        base: its first arc.
        step: the step.

    Returns:
        How many requests there are.
    """
    vcs, islip = rules.vcs, rules.router.islip
    buffer, busy, by_input, requests = (
        state.buffer,
        state.busy[switch],
        state.chosen[0],
        state.requests,
    )
    still_busy, requested = 0, 0
    for i in range(state.active[switch]):
        vc = busy[i]
        if buffer[vc, STATE] == IDLE:
            buffer[vc, STATE] = ABSENT
            continue
        busy[still_busy] = vc
        still_busy += 1
        if buffer[vc, STATE] != MOVES or buffer[vc, SINCE] > step or not buffer[vc, FLITS]:
            continue
        if state.room[buffer[vc, NEXT]] > 0:
            place = vc // vcs - base
            at = requested if islip or by_input[place] < 0 else by_input[place]
            if at < requested:
                begin, low = state.turn[base + place, 0], (base + place) * vcs
                if _after(requests[at, 0] - low, begin, vcs) < _after(vc - low, begin, vcs):
                    continue
            requested = max(requested, at + 1)
            by_input[place] = at
            requests[at, 0], requests[at, 1] = vc, place
            requests[at, 2] = buffer[vc, OUT] - base
    state.active[switch] = still_busy
    return requested


@loop
def _match(
    iterations: int,
    vcs: int,
    first: int,
    requests: NDArray[np.int32],
    turn: NDArray[np.int32],
    chosen: NDArray[np.int32],
) -> int:
    """Match the inputs of a switch with its outputs, by iSLIP (McKeown, 1999).

    In an iteration each free output grants one of the free inputs that ask for it, and then each
    input accepts one grant, in turn. Turns move on where the first iteration matches. If each input
    asks once, one iteration is the second half of a separable match.

    Args:
        iterations: how many there are at most.
        vcs: virtual channels of a port.
        first: the first arc of the switch.
        requests: int32[n, 3], of buffers that have a flit to pass: buffer, input and output.
        turn: of the state.
        chosen: of the state. Its second row is written, the buffer of each matched output, and its
            last row, these outputs.

    Returns:
        How many outputs are matched.
    """
    by_input, by_output, grants, accepted, outputs = chosen
    ports, matched = chosen.shape[1], 0
    for iteration in range(iterations):
        begun = granted = matched
        # Each free output grants one input.
        for i in range(len(requests)):
            place, out = requests[i, 1], requests[i, 2]
            if by_input[place] < 0 or by_output[out] >= 0:
                continue
            if grants[out] < 0:
                outputs[granted] = out
                granted += 1
                grants[out] = i
            elif _sooner(turn, vcs, first, ports, requests[i], requests[grants[out]]):
                grants[out] = i
        # Each input accepts one of its grants.
        for out in outputs[begun:granted]:
            place = requests[grants[out], 1]
            begin, best = turn[first + place, 2], accepted[place]
            if best < 0 or _after(out, begin, ports) < _after(best, begin, ports):
                accepted[place] = out
        # What was accepted is matched.
        for out in outputs[begun:granted]:
            vc, place = requests[grants[out], 0], requests[grants[out], 1]
            grants[out] = -1
            if accepted[place] == out:
                by_input[place] = accepted[place] = -1
                by_output[out] = vc
                outputs[matched] = out
                matched += 1
                if not iteration:
                    turn[first + out, 1] = ring_place(place + 1, ports)
                    turn[first + place, 2] = ring_place(out + 1, ports)
        if matched == begun:
            break
    for i in range(len(requests)):
        by_input[requests[i, 1]] = -1
    return matched


@inlined_loop
def _sooner(
    turn: NDArray[np.int32],
    vcs: int,
    first: int,
    ports: int,
    request: NDArray[np.int32],
    rival: NDArray[np.int32],
) -> bool:
    """Whether a request comes before another one for its output, by the round-robin pointers."""
    place, out = request[1], request[2]
    if place != rival[1]:
        begin = turn[first + out, 1]
        return _after(place, begin, ports) < _after(rival[1], begin, ports)
    begin, low = turn[first + place, 0], (first + place) * vcs
    return _after(request[0] - low, begin, vcs) < _after(rival[0] - low, begin, vcs)


@inlined_loop
def _after(place: int, turn: int, size: int) -> int:
    """How many places a place comes after the one of the round-robin pointer."""
    return place - turn if place >= turn else place - turn + size


@inlined_loop
def _give_channel(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, vc: int, switch: int, step: int
) -> None:
    """Route the packet at the front of a buffer, or give it a channel of the next one."""
    buffer, vcs = state.buffer, rules.vcs
    arc, out = vc // vcs, buffer[vc, OUT]
    if out == UNROUTED:
        out = _route(net, rules, state, vc, switch)
        buffer[vc, OUT] = out
        buffer[vc, SINCE] = step + (rules.router.routing > 0)
        if buffer[vc, SINCE] > step:
            return
    if net.end[out] >= 0:
        first, count = choices(net, rules, vc, arc, out)
    else:
        first, count = len(buffer) + out * vcs, vcs
    turn = step % count
    for i in range(count):
        channel = first + ring_place(turn + i, count)
        if state.owner[channel] < 0:
            state.owner[channel] = vc
            buffer[vc, STATE], buffer[vc, SINCE], buffer[vc, NEXT] = MOVES, step + 1, channel
            return


@inlined_loop
def _route(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, vc: int, switch: int
) -> int:
    """The egress arc of the first packet of a buffer."""
    ports = net.links + net.hosts
    front = vc * (rules.depth + 2) + state.buffer[vc, FRONT]
    destination, arc = state.slot[front, DESTINATION], vc // rules.vcs
    from_host = arc - switch * ports >= net.links
    if rules.policy >= SHORTEST:
        out, state.slot[front, VIA] = without_tables(
            net, rules.policy, rules.samples, rules.threshold, switch, destination // ports,
            state.slot[front, VIA], from_host, state.port, state.streams, 2 * len(state.host),
        )  # fmt: skip
    else:
        out, state.slot[front, VIA] = by_tables(
            net, rules.policy, rules.threshold, rules.flows, destination, arc,
            state.slot[front, VIA], state.dead, state.offered, state.port, state.streams,
            2 * len(state.host),
        )  # fmt: skip
    return int(destination) if out == HOME else out


@inlined_loop
def _pass_flit(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    vc: int,
    arc: int,
    t: int,
    step: int,
    last: bool,
    unmark: bool,
) -> None:
    """Move a flit from its buffer to the queue of a link, and end its packet with the last flit.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        vc: the buffer.
        arc: the arc of the buffer.
        t: the cycle.
        step: the step.
        last: whether it is the last step of the cycle.
        unmark: whether the packet loses its mark.
    """
    buffer, counts, length = state.buffer, state.counts, rules.length
    out, next_buffer = buffer[vc, OUT], buffer[vc, NEXT]
    front = vc * (rules.depth + 2) + buffer[vc, FRONT]
    destination, made_at, hops = (
        state.slot[front, DESTINATION],
        state.slot[front, MADE],
        state.slot[front, HOPS],
    )
    local = next_buffer >= len(buffer)  # to a host of this switch
    if not buffer[vc, SENT] and not local:
        via = DIRECT if unmark else state.slot[front, VIA]
        _add_packet(rules, state, next_buffer, destination, made_at, hops + 1, via)
    buffer[vc, SENT] += 1
    buffer[vc, FLITS] -= 1
    state.room[next_buffer] -= 1
    state.port[out, BACKLOG] += 1
    behind = ring_place(state.queued[out, 0] + state.queued[out, 1], state.queue.shape[1])
    next_arc = len(net.end) + out if local else net.end[out]
    state.queue[out, behind] = next_buffer - next_arc * rules.vcs
    state.queued[out, 1] += 1
    credit_delay = rules.router.credit if net.end[arc] >= 0 else 0
    _schedule(state.credit, t + NOTICE + credit_delay + net.delay[arc], vc)
    counts[LAST] = t
    counts[INSIDE] -= 1
    if buffer[vc, SENT] < length:
        return
    state.owner[next_buffer] = -1
    buffer[vc, SENT] = 0
    buffer[vc, FRONT] = ring_place(buffer[vc, FRONT] + 1, rules.depth + 2)
    buffer[vc, STORED] -= 1
    if buffer[vc, FLITS]:
        when = stage(step + 1, rules.router.routing, rules.router.speedup)
        buffer[vc, STATE], buffer[vc, SINCE], buffer[vc, OUT] = WAITS, when, UNROUTED
    else:
        buffer[vc, STATE] = IDLE
    if local:
        wait = state.queued[out, 1] - 1 + last + rules.router.crossbar - 1
        done = t + wait + WIRE + net.delay[out]
        counts[DELIVERED] += 1
        counts[ACCEPTED] += rules.begin <= done < rules.end
        if rules.begin <= made_at < rules.end:
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
    """Write which buffers cannot move, and the next buffers of which each waits for any one.

    Args:
        net: the network.
        rules: the settings.
        state: everything that moves.
        waits: bool[S·L·V], written.
        next_buffers: int32[S·L·V, V], written: next buffers; -1 for none.
    """
    buffer, buffers = state.buffer, len(state.buffer)
    for vc in range(buffers):
        out, next_buffer = buffer[vc, OUT], buffer[vc, NEXT]
        if buffer[vc, STATE] == MOVES and buffer[vc, FLITS] and next_buffer < buffers:
            waits[vc] = not state.room[next_buffer]
            next_buffers[vc, 0] = next_buffer
        elif buffer[vc, STATE] == WAITS and out >= 0 and net.end[out] >= 0:
            first, count = choices(net, rules, vc, vc // rules.vcs, out)
            waits[vc] = True
            for i in range(count):
                waits[vc] &= state.owner[first + i] >= 0
                next_buffers[vc, i] = state.owner[first + i]
