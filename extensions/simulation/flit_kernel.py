"""Flits through input-queued switches: the check of `packet_kernel`, with the stages of BookSim.

A cycle has as many steps as the `FlitRouter` says. In each, a switch routes packets whose head has
come to the front of its buffer, gives those that were routed a virtual channel of the next buffer,
which is theirs until their tail has left, and lets at most one flit of an input and one to an
output pass, if the next buffer has room. Links take a flit before the last step. Buffers hold
numbers of flits, and packets by their first flit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop, loop
from extensions.simulation import packet_kernel as packets
from extensions.simulation.flit_router import stage
from extensions.simulation.hop_choice import ADAPTIVE, drawn
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
    SwitchRules,
    choices,
    destination,
    made_next,
    turned,
)
from extensions.simulation.path_choice import DIRECT, SHORTEST, without_tables
from extensions.simulation.simulated_network import HOME, HostTraffic, SimulatedNetwork
from extensions.simulation.table_hops import by_tables

FRONT, STORED, FLITS, SENT, STATE, SINCE, OUT, NEXT = range(8)
"""Columns of a buffer: the first packet's place, packets, flits, flits of the first that have left,
its state, from which step on, the egress, the next buffer."""
ABSENT, IDLE, WAITS, MOVES = range(4)
"""Of a buffer: not in its switch's list, without a packet, waits for a channel, moves."""
UNROUTED = -9
TURNS = 5
"""Cycles that arrivals and credits are kept by, besides those of the longest link and the router; T
is a power of two."""
NOTICE = 1
"""Cycles from when a flit leaves until its credit comes, besides those of the link."""


class FlitState(NamedTuple):
    """Everything that moves; names that `PacketState` has mean the same."""

    slot: NDArray[np.int32]
    """int32[S·L·V·B, 4], the goal, time and links of each packet, and the switch that it goes by,
    or its mark."""
    buffer: NDArray[np.int32]
    """int32[S·L·V, 8]."""
    owner: NDArray[np.int32]
    """int32[2·S·L·V], the buffer that owns each virtual channel, -1 for none; channels to hosts
    behind those to switches."""
    room: NDArray[np.int32]
    """int32[2·S·L·V], how many flits the buffer at the other end of each virtual channel has room
    for."""
    busy: NDArray[np.int32]
    """int32[S, L·V], the buffers of each switch that are not idle."""
    active: NDArray[np.int32]
    """int32[S], how many entries of `busy` each switch has."""
    queue: NDArray[np.uint8]
    """int32[S·L, Q], buffers that flits go to, behind the crossbar."""
    queued: NDArray[np.int32]
    """int32[S·L, 2], the first flit of each queue, and how many there are."""
    coming: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit comes to; the last column says how many.
    """
    credit: NDArray[np.int32]
    """int32[T, n + 1], by cycle, the buffers that a flit has left; the last column says how many.
    """
    turn: NDArray[np.int32]
    """int32[S·L, 3], which channel of an input, input of an output, and output of an input comes
    first."""
    port: NDArray[np.int32]
    """int32[S·L, 4], as in `PacketState`."""
    host: NDArray[np.int32]
    """int32[H], the arc of each host."""
    sending: NDArray[np.int32]
    """int32[H, 2], the virtual channel that the rest of each host's packet goes to, and the flits
    that are left of it."""
    asks: NDArray[np.int32]
    """int32[L·V, 3], scratch of `_match`."""
    chosen: NDArray[np.int32]
    """int32[5, L], scratch of `_match`, -1."""
    made: NDArray[np.int32]
    """int32[H], as in `PacketState`."""
    chance: NDArray[np.float64]
    """float64[H], the logarithm of the chance that a host makes no packet in a cycle."""
    streams: NDArray[np.uint64]
    """uint64[2·H + 1], the states of the random number generators."""
    counts: NDArray[np.int64]
    """int64[COUNTS], what was counted, by the names of `packet_kernel`."""
    latency: NDArray[np.int64]
    """int64[LONGEST], as in `PacketState`."""
    hops: NDArray[np.int64]
    """int64[n], as in `PacketState`."""
    carried: NDArray[np.int64]
    """int64[S·L], flits over each arc while it was measured."""
    dead: NDArray[np.int64]
    """int64[n], the elements that are down (`rule.Program`)."""
    offered: NDArray[np.int64]
    """int64[2, K + 1], as in `PacketState`."""

    @classmethod
    def of(
        cls, net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, load: float, seed: int
    ) -> FlitState:
        """Nothing is under way; each host knows when its first packet is made."""
        like = packets.PacketState.of(net, traffic, rules, load, seed)
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
            asks=np.zeros((net.ports * rules.vcs, 3), np.int32),
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
        _take_in(net, rules, state, t)
        if rules.begin <= t < rules.end:
            state.counts[HELD] += state.counts[INSIDE]
        _inject(net, traffic, rules, state, t)
        for step in range(speedup * t, speedup * (t + 1)):
            last = step == speedup * (t + 1) - 1
            if last:
                _drain(net, rules, state, t)
            _step(net, rules, state, t, step, last)


@inlined_loop
def _take_in(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Flits that have come, and credits."""
    ports = net.links + net.hosts
    coming, buffer = state.coming[t & (len(state.coming) - 1)], state.buffer
    for i in range(coming[-1]):
        vc = coming[i]
        buffer[vc, FLITS] += 1
        if buffer[vc, STATE] <= IDLE:
            _begin(rules, state, vc, vc // rules.vcs // ports, t)
    state.counts[INSIDE] += coming[-1]
    coming[-1] = 0
    credit, adaptive = state.credit[t & (len(state.credit) - 1)], rules.policy >= ADAPTIVE
    for i in range(credit[-1]):
        other = credit[i]
        state.room[other] += 1
        if not adaptive:
            continue
        arc = other // rules.vcs
        if arc >= len(net.end):
            state.port[arc - len(net.end), 3] -= 1
        elif net.end[arc] >= 0:
            state.port[net.end[arc], 3] -= 1
    credit[-1] = 0


@inlined_loop
def _begin(rules: SwitchRules, state: FlitState, vc: int, switch: int, t: int) -> None:
    """The head of a packet has come to an empty buffer."""
    listed = state.buffer[vc, STATE] != ABSENT
    state.buffer[vc, STATE] = WAITS
    speedup = rules.router.speedup
    state.buffer[vc, SINCE] = stage(t * speedup, rules.router.routing, speedup)
    state.buffer[vc, OUT] = UNROUTED
    if not listed:
        state.busy[switch, state.active[switch]] = vc
        state.active[switch] += 1


@inlined_loop
def _noted(events: NDArray[np.int32], when: int, what: int) -> None:
    """Note for a cycle."""
    row = when & (len(events) - 1)
    events[row, events[row, -1]] = what
    events[row, -1] += 1


@inlined_loop
def _stored(
    rules: SwitchRules, state: FlitState, vc: int, goal: int, made_at: int, hops: int, via: int
) -> None:
    """A packet is on its way to a buffer."""
    depth = rules.depth + 2
    into = vc * depth + turned(state.buffer[vc, FRONT] + state.buffer[vc, STORED], depth)
    state.slot[into, 0], state.slot[into, 1] = goal, made_at
    state.slot[into, 2], state.slot[into, 3] = hops, via
    state.buffer[vc, STORED] += 1


@inlined_loop
def _inject(
    net: SimulatedNetwork, traffic: HostTraffic, rules: SwitchRules, state: FlitState, t: int
) -> None:
    """Every host sends a flit, if it has one and there is room."""
    senders, vcs, counts = len(state.host), rules.vcs, state.counts
    for h in range(senders):
        arc, left = state.host[h], state.sending[h, 1]
        if not left:
            made_at = state.made[h]
            if made_at > t:
                continue
            turn = (state.sending[h, 0] + 1) % vcs
            for i in range(vcs):
                vc = arc * vcs + turned(turn + i, vcs)
                if state.owner[vc] < 0 and state.room[vc] > 0:
                    goal = destination(net, traffic, arc, drawn(state.streams, senders + h))
                    _stored(rules, state, vc, goal, made_at, 0, DIRECT)
                    state.owner[vc] = vc
                    state.sending[h, 0] = vc
                    left = rules.length
                    counts[INJECTED] += 1
                    counts[MEASURED_IN] += rules.begin <= made_at < rules.end
                    state.made[h] = made_next(state.streams, h, made_at, state.chance[h])
                    break
        vc = state.sending[h, 0]
        if left and state.room[vc] > 0:
            state.room[vc] -= 1
            _noted(state.coming, t + WIRE + net.delay[arc], vc)
            left -= 1
            if not left:
                state.owner[vc] = -1
        state.sending[h, 1] = left


@inlined_loop
def _drain(net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int) -> None:
    """Every link takes a flit from behind the crossbar; a host sends its credit when it comes."""
    width, buffers = state.queue.shape[1], len(state.buffer)
    behind = t + rules.router.crossbar - 1
    for arc in range(len(state.queued)):
        if state.queued[arc, 1]:
            first = state.queued[arc, 0]
            v = state.queue[arc, first]
            state.queued[arc, 0] = turned(first + 1, width)
            state.queued[arc, 1] -= 1
            if net.end[arc] >= 0:
                when = behind + WIRE + net.delay[arc]
                _noted(state.coming, when, net.end[arc] * rules.vcs + v)
            else:
                when = behind + WIRE + NOTICE + rules.router.credit + 2 * net.delay[arc]
                _noted(state.credit, when, buffers + arc * rules.vcs + v)
            state.carried[arc] += rules.begin <= t < rules.end


@inlined_loop
def _step(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, t: int, step: int, last: bool
) -> None:
    """Each switch routes, gives channels, and lets flits pass."""
    ports, vcs, islip = net.links + net.hosts, rules.vcs, rules.router.islip
    by_input, by_output, outputs = state.chosen[0], state.chosen[1], state.chosen[4]
    buffer, asks = state.buffer, state.asks
    marks = len(net.program.onward) > 0 and rules.policy < SHORTEST
    for switch in range(net.switches):
        count = state.active[switch]
        if not count:
            continue
        busy = state.busy[switch]
        base, kept, asking = switch * ports, 0, 0
        first = step % count
        for i in range(count):
            vc = busy[turned(first + i, count)]
            if buffer[vc, STATE] == WAITS and buffer[vc, SINCE] <= step:
                _give_channel(net, rules, state, vc, switch, step)
        for i in range(count):
            vc = busy[i]
            if buffer[vc, STATE] == IDLE:
                buffer[vc, STATE] = ABSENT
                continue
            busy[kept] = vc
            kept += 1
            if buffer[vc, STATE] != MOVES or buffer[vc, SINCE] > step or not buffer[vc, FLITS]:
                continue
            if state.room[buffer[vc, NEXT]] > 0:
                place = vc // vcs - base
                at = asking if islip or by_input[place] < 0 else by_input[place]
                if at < asking:
                    begin, low = state.turn[base + place, 0], (base + place) * vcs
                    if _after(asks[at, 0] - low, begin, vcs) < _after(vc - low, begin, vcs):
                        continue
                asking = max(asking, at + 1)
                by_input[place] = at
                asks[at, 0], asks[at, 1], asks[at, 2] = vc, place, buffer[vc, OUT] - base
        state.active[switch] = kept
        wanted = _match(max(1, islip), vcs, base, asks[:asking], state.turn, state.chosen)
        for i in range(wanted):
            vc = by_output[outputs[i]]
            arc = vc // vcs
            state.turn[arc, 0] = turned(vc - arc * vcs + 1, vcs)
            unmark = marks and arc - base < net.links
            _pass_flit(net, rules, state, vc, arc, t, step, last, unmark)
            by_output[outputs[i]] = -1


@loop
def _match(
    iterations: int,
    vcs: int,
    first: int,
    asks: NDArray[np.int32],
    turn: NDArray[np.int32],
    chosen: NDArray[np.int32],
) -> int:
    """Match inputs that ask with outputs of a switch, in `chosen`: how many.

    asks: int32[n, 3], the buffer, its input and the output, of those that have a flit to pass. Each
    free output grants one of the free inputs that ask for it, then each input accepts one grant, in
    turn; turns go on where the first iteration matches. So iSLIP does, where all buffers ask that
    can; one iteration is the second half of a separable match, where an input has one.
    """
    by_input, by_output, grants, accepted, outputs = chosen
    ports, wanted = chosen.shape[1], 0
    for iteration in range(iterations):
        begun = granted = wanted
        for i in range(len(asks)):
            place, out = asks[i, 1], asks[i, 2]
            if by_input[place] < 0 or by_output[out] >= 0:
                continue
            if grants[out] < 0:
                outputs[granted] = out
                granted += 1
                grants[out] = i
            elif _sooner(turn, vcs, first, ports, asks[i], asks[grants[out]]):
                grants[out] = i
        for out in outputs[begun:granted]:
            place = asks[grants[out], 1]
            begin, other = turn[first + place, 2], accepted[place]
            if other < 0 or _after(out, begin, ports) < _after(other, begin, ports):
                accepted[place] = out
        for out in outputs[begun:granted]:
            vc, place = asks[grants[out], 0], asks[grants[out], 1]
            grants[out] = -1
            if accepted[place] == out:
                by_input[place] = accepted[place] = -1
                by_output[out] = vc
                outputs[wanted] = out
                wanted += 1
                if not iteration:
                    turn[first + out, 1] = turned(place + 1, ports)
                    turn[first + place, 2] = turned(out + 1, ports)
        if wanted == begun:
            break
    for i in range(len(asks)):
        by_input[asks[i, 1]] = -1
    return wanted


@inlined_loop
def _sooner(
    turn: NDArray[np.int32],
    vcs: int,
    first: int,
    ports: int,
    one: NDArray[np.int32],
    other: NDArray[np.int32],
) -> bool:
    """Whether one comes before another one that asks for the same output."""
    place, out = one[1], one[2]
    if place != other[1]:
        begin = turn[first + out, 1]
        return _after(place, begin, ports) < _after(other[1], begin, ports)
    begin, low = turn[first + place, 0], (first + place) * vcs
    return _after(one[0] - low, begin, vcs) < _after(other[0] - low, begin, vcs)


@inlined_loop
def _after(place: int, turn: int, size: int) -> int:
    """How far a place is behind the one whose turn it is."""
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
        other = first + turned(turn + i, count)
        if state.owner[other] < 0:
            state.owner[other] = vc
            buffer[vc, STATE], buffer[vc, SINCE], buffer[vc, NEXT] = MOVES, step + 1, other
            return


@inlined_loop
def _route(
    net: SimulatedNetwork, rules: SwitchRules, state: FlitState, vc: int, switch: int
) -> int:
    ports = net.links + net.hosts
    here = vc * (rules.depth + 2) + state.buffer[vc, FRONT]
    goal, arc = state.slot[here, 0], vc // rules.vcs
    entered = arc - switch * ports >= net.links
    if rules.policy >= SHORTEST:
        out, state.slot[here, 3] = without_tables(
            net, rules.policy, rules.samples, rules.threshold, switch, goal // ports,
            state.slot[here, 3], entered, state.port, state.streams, 2 * len(state.host),
        )  # fmt: skip
    else:
        out, state.slot[here, 3] = by_tables(
            net, rules.policy, rules.threshold, rules.flows, goal, arc,
            state.slot[here, 3], state.dead, state.offered, state.port, state.streams,
            2 * len(state.host),
        )  # fmt: skip
    return int(goal) if out == HOME else out


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
    """A flit leaves its buffer, for the queue of a link; unmark: its packet loses its mark."""
    buffer, counts, length = state.buffer, state.counts, rules.length
    out, other = buffer[vc, OUT], buffer[vc, NEXT]
    here = vc * (rules.depth + 2) + buffer[vc, FRONT]
    goal, made_at, hops = state.slot[here, 0], state.slot[here, 1], state.slot[here, 2]
    local = other >= len(buffer)
    if not buffer[vc, SENT] and not local:
        via = DIRECT if unmark else state.slot[here, 3]
        _stored(rules, state, other, goal, made_at, hops + 1, via)
    buffer[vc, SENT] += 1
    buffer[vc, FLITS] -= 1
    state.room[other] -= 1
    state.port[out, 3] += 1
    behind = turned(state.queued[out, 0] + state.queued[out, 1], state.queue.shape[1])
    state.queue[out, behind] = other - (len(net.end) + out if local else net.end[out]) * rules.vcs
    state.queued[out, 1] += 1
    late = rules.router.credit if net.end[arc] >= 0 else 0
    _noted(state.credit, t + NOTICE + late + net.delay[arc], vc)
    counts[LAST] = t
    counts[INSIDE] -= 1
    if buffer[vc, SENT] < length:
        return
    state.owner[other] = -1
    buffer[vc, SENT] = 0
    buffer[vc, FRONT] = turned(buffer[vc, FRONT] + 1, rules.depth + 2)
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
            took = done - made_at
            counts[MEASURED_OUT] += 1
            counts[LATENCY] += took
            counts[WORST] = max(counts[WORST], took)
            state.latency[min(took, LONGEST - 1)] += 1
            state.hops[hops] += 1


@loop
def blocked(
    net: SimulatedNetwork,
    rules: SwitchRules,
    state: FlitState,
    waits: NDArray[np.bool_],
    wanted: NDArray[np.int32],
) -> None:
    """Fill in bool[S·L·V], whether a buffer cannot move now, and which it waits for, any of."""
    buffer, buffers = state.buffer, len(state.buffer)
    for vc in range(buffers):
        out, other = buffer[vc, OUT], buffer[vc, NEXT]
        if buffer[vc, STATE] == MOVES and buffer[vc, FLITS] and other < buffers:
            waits[vc] = not state.room[other]
            wanted[vc, 0] = other
        elif buffer[vc, STATE] == WAITS and out >= 0 and net.end[out] >= 0:
            first, count = choices(net, rules, vc, vc // rules.vcs, out)
            waits[vc] = True
            for i in range(count):
                waits[vc] &= state.owner[first + i] >= 0
                wanted[vc, i] = state.owner[first + i]
