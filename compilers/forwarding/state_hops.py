"""The next hops of every state of some switches, by asking the rule once for each.

A *state* is here all that a next hop depends on, besides the failed elements: a switch, an ingress
place and an egress class. (In `packet_states` the destination is known, and so the class is no part
of a state.) The *ingress places* of a switch are its K links, then one place for hosts. Where
packets are marked, K places follow, for marked packets by their ingress link.

States are numbered by switch, then by ingress place, then by class. With K = 3 links and C = 2
classes a switch has 4 places and 8 states: its state 7 is that of hosts' packets (place 3) of class
1, and state 8 is the first of the next switch. `state_numbers` has the formula.

`host_paths` follows the packets of hosts with the `StateHops` of a build.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.many_packets import (
    CLASS,
    INGRESS,
    LINK,
    NEXT_TAG,
    SWITCH,
    next_links_of_packets,
)
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Program, marks
from compilers.forwarding.walks import Numbers, Walks

STATES_A_PACKET = 4
"""How many states are tabulated in the time in which one packet is followed. `for_packets` counts
work in packets, so the number of states is divided by this."""
STATES_AT_ONCE = 1 << 18
"""The most states that are tabulated at once."""
NextOfPackets = Callable[[Program, Numbers, Numbers], tuple[Numbers, Numbers]]
"""`next_links_of_packets`, or its machine code."""


@dataclass(frozen=True, slots=True, eq=False)
class StateHops:
    """The next hops of consecutive states, m in all, those of a state together."""

    count: Numbers
    """int64[states], how many next hops each state has; 0 for an ingress link that is not there."""
    link: NDArray[np.int16]
    """int16[m], the link of a next hop, or DROP."""
    is_marked: NDArray[np.bool_]
    """bool[m], whether packets leave with a mark."""
    share: NDArray[np.float64]
    """float64[m], the part of the state's packets that takes the next hop."""

    @classmethod
    def of(cls, walks: Walks, program: Program, failed: Numbers, times: int = 1) -> StateHops:
        """Ask the rule for the states of all switches.

        Args:
            walks: of the build.
            program: what its switches hold, as they are cabled now.
            failed: int64[n], the failed elements.
            times: for how many sets of failed elements this is done; for many, the loop runs as
                machine code.
        """
        switches, states = len(program.far), states_of_a_switch(program)
        next_of = for_packets(times * switches * states // STATES_A_PACKET, next_links_of_packets)
        step = max(1, STATES_AT_ONCE // states)
        return joined(
            [
                _hops_of_switches(walks, program, failed, next_of, slice(first, first + step))
                for first in range(0, switches, step)
            ]
        )

    @classmethod
    def of_switch(cls, walks: Walks, program: Program, failed: Numbers, switch: int) -> StateHops:
        """Ask the rule for the states of one switch.

        Args:
            walks: of the build.
            program: what its switches hold.
            failed: int64[n], the failed elements.
            switch: the switch.
        """
        only_switch = slice(switch, switch + 1)
        return _hops_of_switches(walks, program, failed, next_links_of_packets, only_switch)

    def begins(self) -> Numbers:
        """int64[states + 1], where the next hops of each state begin, and m."""
        return np.append(0, np.cumsum(self.count))

    def of_states(self, states: slice) -> StateHops:
        """The next hops of a range of these states.

        Args:
            states: a range with a first and a last.
        """
        begins = self.begins()
        hops = slice(begins[states.start], begins[states.stop])
        return StateHops(
            self.count[states], self.link[hops], self.is_marked[hops], self.share[hops]
        )


def joined(blocks: Sequence[StateHops]) -> StateHops:
    """The next hops of the states of all blocks, one block after the other."""
    columns = {
        field.name: np.concatenate([getattr(block, field.name) for block in blocks])
        for field in fields(StateHops)
    }
    return StateHops(**columns)


def places_of_a_switch(p: Program) -> int:
    """How many ingress places a switch has."""
    most_links = int(p.far.shape[1])
    return 1 + 2 * most_links if marks(p) else 1 + most_links


def states_of_a_switch(p: Program) -> int:
    """How many states a switch has: an ingress place and an egress class each."""
    return places_of_a_switch(p) * int(p.order.shape[1])


def place_of_hosts(p: Program) -> int:
    """The ingress place of packets of hosts."""
    return int(p.far.shape[1])


def places_of_links(p: Program, link: Numbers, is_marked: NDArray[np.bool_]) -> Numbers:
    """The ingress places of packets from other switches, int64[n].

    Args:
        p: what switches hold.
        link: int64[n], the ingress link of each packet.
        is_marked: bool[n], whether it came with a mark.
    """
    first_place_of_marked = place_of_hosts(p) + 1
    return link + np.where(is_marked, first_place_of_marked, 0)


def state_numbers(
    p: Program, switch: Numbers, place: Numbers, egress: NDArray[np.int16]
) -> Numbers:
    """The numbers of states, int64[n].

    Args:
        p: what switches hold.
        switch: int64[n], the switch of each state.
        place: int64[n], its ingress place.
        egress: int16[n], its egress class.
    """
    classes = p.order.shape[1]
    number: Numbers = (switch * places_of_a_switch(p) + place) * classes + egress
    return number


def _hops_of_switches(
    walks: Walks, p: Program, failed: Numbers, next_of: NextOfPackets, switches: slice
) -> StateHops:
    """Ask the rule for the states of a range of n switches.

    Args:
        walks: of the build.
        p: what its switches hold.
        failed: int64[n], the failed elements.
        next_of: answers for the states.
        switches: the range.
    """
    classes, host_place = p.order.shape[1], place_of_hosts(p)
    place = np.arange(places_of_a_switch(p))
    is_host, is_marked = place == host_place, place > host_place
    link_of_place = np.where(is_marked, place - 1 - host_place, place)
    ingress = np.where(is_host, HOST, link_of_place)
    tag = np.where(is_marked, MARKED, PLAIN)
    # bool[n, places], whether there is such an ingress place.
    exists = (p.far[switches][:, np.maximum(ingress, 0)] >= 0) | is_host
    # One packet for each state: its switch, ingress place and class.
    state = np.nonzero(np.repeat(exists[..., None], classes, axis=2))
    s, place_of_state, c = state[0] + switches.start, state[1], state[2]
    packets = np.stack((s, ingress[place_of_state], tag[place_of_state], c), axis=1)
    failed_of_packet = np.ascontiguousarray(np.broadcast_to(failed, (len(s), len(failed))))
    hop_count, hops = next_of(p, packets, failed_of_packet)
    count = np.zeros((*exists.shape, classes), np.int64)
    count[state] = hop_count
    return StateHops(
        count=count.ravel(),
        link=hops[:, LINK].astype(np.int16),
        is_marked=hops[:, NEXT_TAG] == MARKED,
        share=_parts(walks, p, packets, hop_count, hops),
    )


def _parts(
    walks: Walks, p: Program, packets: Numbers, hop_count: Numbers, hops: Numbers
) -> NDArray[np.float64]:
    """The part of a state's packets that takes each of its next hops, float64[m].

    Packets of hosts are divided by the weights of their class. In transit, and everywhere where
    paths are shared at every hop, all next hops have equal parts.

    Args:
        walks: of the build, which has the weights.
        p: what switches hold.
        packets: int64[n, 4], a packet of each state, as `next_links_of_packets` takes it.
        hop_count: int64[n], how many next hops each state has.
        hops: int64[m, 2], the next hops, as `next_links_of_packets` returns them.
    """
    state = np.repeat(np.arange(len(packets)), hop_count)
    weight = np.ones(len(hops))
    if not p.every_hop:
        from_host = packets[state, INGRESS] == HOST
        s, c = packets[state[from_host], SWITCH], packets[state[from_host], CLASS]
        weight[from_host] = _host_weights(walks, p, s, c, hops[from_host])
    total = np.bincount(state, weight, len(packets))[state]
    equal: NDArray[np.float64] = 1 / hop_count[state]
    return np.divide(weight, total, out=equal, where=total > 0)


def _host_weights(
    walks: Walks, p: Program, s: Numbers, c: Numbers, hops: Numbers
) -> NDArray[np.float64]:
    """The weight of the share by which packets of hosts take each next hop, float64[h]; 0: none.

    Args:
        walks: of the build, which has the weights.
        p: what switches hold.
        s: int64[h], the switch of each next hop.
        c: int64[h], the egress class.
        hops: int64[h, 2], the next hops, as `next_links_of_packets` returns them.
    """
    link, marked = hops[:, LINK], hops[:, NEXT_TAG] == MARKED
    # bool[h, 1 + A]: a link may be the minimal share and, with a mark, an alternate.
    is_share = p.shares[s, c] == link[:, None]
    is_alternate = np.arange(is_share.shape[1]) > 0
    gets_mark = is_alternate & marks(p)
    is_share &= gets_mark == marked[:, None]
    weights = np.asarray(walks.build.tables.classes.weight)[s, c]
    by_share = np.arange(len(hops)), is_share.argmax(axis=1)
    weight: NDArray[np.float64] = weights[by_share].astype(np.float64)
    weight[~is_share.any(axis=1)] = 0
    return weight
