"""All paths of hosts' packets between pairs of switches, with the part of the traffic on each.

What comes in are pairs of switches and the failed *elements* (cables by their numbers, then
switches). What goes out are `HostPaths`. Rehearsals use them to predict what hosts measure while
some links and switches are down.

A next hop depends on the switch, the ingress link, the mark and the egress class, not on the
packet. So `TabulatedHops.of` evaluates the rule once for each of these (`state_hops`).
`TabulatedHops.paths` then moves all packets at once, a link a round; a packet with several next
hops becomes several paths. An *arc* is link k of switch s, by the number s·K + k.

Where packets go over intermediates, both legs are followed alone, and each pair of legs is joined
(`TwoLegs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compilers.forwarding.intermediate_bounds import LOST_ON_LEG, add_packet_bounds
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.rule import DELIVER, DROP, Program, gives_up, marks
from compilers.forwarding.state_hops import (
    StateHops,
    joined,
    place_of_hosts,
    places_of_links,
    state_numbers,
    states_of_a_switch,
)
from compilers.forwarding.walks import Numbers, Walks
from compilers.routing.intermediates import intermediates
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, MOST_HOPS

NO_CHOICE = -1
"""In place of the index of a next hop: the path has ended, or its packets have no next hop."""


@dataclass(frozen=True, slots=True, eq=False)
class HostPaths:
    """The paths that packets of hosts may take, m in all, those of a pair of switches together."""

    pair: Numbers
    """int64[m], the number of the pair of switches, ascending."""
    share: NDArray[np.float64]
    """float64[m], the part of the pair's packets that takes this path."""
    links_or_fault: NDArray[np.int16]
    """int16[m], how many links the path has; or a fault, which is negative: a key of `FAULTS`."""
    last_switch: Numbers
    """int64[m], the last switch."""
    arcs: NDArray[np.int32]
    """int32[H, m], the links of the path, s·K + k for link k of switch s; -1 after the last."""
    is_marked: NDArray[np.bool_]
    """bool[H, m], whether packets leave by that link with a mark."""


class TwoLegs(NamedTuple):
    """The two legs of the paths over intermediates, each followed alone."""

    to_intermediates: HostPaths
    """From every switch to every intermediate: by source, then by intermediate."""
    from_intermediates: HostPaths
    """From every switch to every switch: by source, then by destination."""


@dataclass(frozen=True, eq=False)
class TabulatedHops:
    """The next hops of packets in every state, with some elements down."""

    walks: Walks
    """The build as a program."""
    program: Program
    """What switches hold, as they are cabled now."""
    next_hops: StateHops
    """The next hops of every state of every switch."""
    given_up_intermediate: NDArray[np.int32]
    """int32[S, C], the intermediate that a switch gives up (`rule.gives_up`), as the link to it is
    down, by the class of the intermediate; -1 where there is none. The first leg ends there."""

    @classmethod
    def of(cls, walks: Walks, program: Program, failed: Numbers, times: int = 1) -> TabulatedHops:
        """Ask the rule for every state.

        Args:
            walks: of the build.
            program: what its switches hold, as they are cabled now.
            failed: int64[n], the failed elements.
            times: for how many sets of failed elements this is done; for many, loops run as
                machine code.
        """
        next_hops = StateHops.of(walks, program, failed, times)
        return cls(walks, program, next_hops, _given_up_intermediates(walks, program, failed))

    def with_switch(
        self, switch: int, walks: Walks, program: Program, failed: Numbers
    ) -> TabulatedHops:
        """The next hops if one switch holds the tables of another build.

        Args:
            switch: the switch.
            walks: of the other build.
            program: as in `of`, of the other build.
            failed: the same failed elements as here.
        """
        states = states_of_a_switch(program)
        first, last = switch * states, (switch + 1) * states
        before = self.next_hops.of_states(slice(0, first))
        changed = StateHops.of_switch(walks, program, failed, switch)
        after = self.next_hops.of_states(slice(last, len(self.next_hops.count)))
        next_hops = joined([before, changed, after])
        given_up = _given_up_intermediates(walks, program, failed)
        return TabulatedHops(walks, program, next_hops, given_up)

    @property
    def paths_a_pair(self) -> int:
        """About how many paths a pair of switches has."""
        p = self.program
        if self.walks.build.forwarding.intermediates:
            return len(p.far)
        shares, most_links = int(p.shares.shape[2]), int(p.far.shape[1])
        return shares * most_links if marks(p) or p.every_hop else shares

    @cached_property
    def _begins(self) -> Numbers:
        """int64[states + 1], where the next hops of each state begin."""
        return self.next_hops.begins()

    def first_paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """For each pair of switches the path of the first next hops, over no intermediate.

        Args:
            source: int64[n], the first switch of each pair.
            destination: int64[n], its last switch.
        """
        return self._followed(source, destination, only_first=True)

    def paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """All paths of some pairs of switches; the first of each pair is that of `first_paths`.

        Args:
            source: int64[n], the first switch of each pair.
            destination: int64[n], its last switch.
        """
        if not self.walks.build.forwarding.intermediates:
            return self._followed(source, destination)
        candidates = intermediates(self.walks.build)
        # int64[n, V], by pair the order of intermediates: the source itself comes first.
        intermediate_order = np.argsort(candidates != source[:, None], axis=1, kind="stable")
        pair = np.repeat(np.arange(len(source)), len(candidates))
        first_legs, second_legs = self.legs
        # int64[m], the number of the first leg of each path, and that of its second leg, which
        # begins where the first one ends; in the order in which `TwoLegs` has them.
        first = (source[:, None] * len(candidates) + intermediate_order).ravel()
        second = first_legs.last_switch[first] * len(self.program.far) + destination[pair]
        is_lost = first_legs.links_or_fault[first] < 0
        second_arcs = np.where(is_lost, -1, second_legs.arcs[:, second]).astype(np.int32)
        arcs = np.concatenate((first_legs.arcs[:, first], second_arcs))
        return HostPaths(
            pair=pair,
            share=np.full(len(pair), 1 / len(candidates)),
            links_or_fault=_total_length(
                first_legs.links_or_fault[first], second_legs.links_or_fault[second]
            ),
            last_switch=np.where(
                is_lost, first_legs.last_switch[first], second_legs.last_switch[second]
            ),
            arcs=arcs,
            is_marked=np.zeros_like(arcs, np.bool_),
        )

    @cached_property
    def legs(self) -> TwoLegs:
        """The two legs of packets over intermediates."""
        switches, candidates = np.arange(len(self.program.far)), intermediates(self.walks.build)
        return TwoLegs(
            to_intermediates=self._followed(
                np.repeat(switches, len(candidates)),
                np.tile(candidates, len(switches)),
                to_intermediates=True,
            ),
            from_intermediates=self._followed(
                np.repeat(switches, len(switches)), np.tile(switches, len(switches))
            ),
        )

    def lengths_over_intermediates(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """The fewest and the most links between switches, over any of the intermediates.

        Returns:
            int16[S, S] twice, by source and destination. A fault is negative, so it counts as
            fewer than any number of links.
        """
        switches = len(self.program.far)
        first_legs, second_legs = self.legs
        # [S, V], by source and intermediate the length of the first leg, and its last switch.
        first_length = first_legs.links_or_fault.reshape(switches, -1)
        last_switch = first_legs.last_switch.reshape(switches, -1)
        # [S, S], by first switch and destination the length of the second leg.
        second_length = second_legs.links_or_fault.reshape(switches, -1)
        # Begin with more than any path has, and with the lowest of all faults.
        fewest = np.full_like(second_length, 2 * MOST_HOPS)
        most = np.full_like(second_length, MISDELIVERED)
        for v in range(first_length.shape[1]):
            total = _total_length(first_length[:, v, None], second_length[last_switch[:, v]])
            np.minimum(fewest, total, out=fewest)
            np.maximum(most, total, out=most)
        return fewest, most

    def packet_bounds(self, packets: Numbers) -> tuple[Numbers, Numbers]:
        """The fewest and the most packets on each arc, over any of the intermediates.

        Args:
            packets: int64[S, S], the number of packets by source and destination.

        Returns:
            int64[S·K], the fewest packets on each arc; and int64[S·K], the most.
        """
        first_legs, second_legs = self.legs
        switches = len(packets)
        leg_ends = np.where(first_legs.links_or_fault < 0, LOST_ON_LEG, first_legs.last_switch)
        leg_ends = leg_ends.reshape(switches, -1).astype(np.int32)
        first_arcs = _by_source(first_legs, switches)
        second_arcs = _by_source(second_legs, switches)
        fewest, most = np.zeros((2, self.program.far.size), np.int64)
        add = for_packets(int(np.count_nonzero(packets)) * leg_ends.shape[1], add_packet_bounds)
        add(first_arcs, leg_ends, second_arcs, packets, fewest, most)
        return fewest, most

    def _followed(
        self,
        source: Numbers,
        destination: Numbers,
        *,
        to_intermediates: bool = False,
        only_first: bool = False,
    ) -> HostPaths:
        """Move packets of hosts along all their paths, a link a round, until all have ended.

        Where paths are shared at every hop, a path is cut where it comes over a link again: it has
        no end, and counts as LOOPED.

        Args:
            source: int64[n], the switch where the packets of each pair begin.
            destination: int64[n], the switch that they are for.
            to_intermediates: whether the destinations are intermediates, which switches before them
                may give up.
            only_first: whether only the first next hop of each state is taken.
        """
        paths = _GrowingPaths.from_hosts(source, place_of_hosts(self.program))
        for links in range(MOST_HOPS + 1):
            destination_of_path = destination[paths.pair]
            egress = self.walks.all_egress[destination_of_path, paths.switch]
            delivered = np.where(paths.switch == destination_of_path, links, MISDELIVERED)
            paths.end(egress < 0, np.where(egress == DELIVER, delivered, LOST))
            if to_intermediates:
                given_up = self.given_up_intermediate[paths.switch, egress]
                paths.end(given_up == destination_of_path, links)
            if links == MOST_HOPS or not paths.is_unfinished.any():
                break
            path, choice = self._choices(paths, egress, only_first)
            paths = paths.selected(path)
            self._cross_link(paths, choice)
        return HostPaths(
            paths.pair,
            share=paths.share,
            links_or_fault=paths.links_or_fault,
            last_switch=paths.switch,
            arcs=paths.arcs,
            is_marked=paths.is_marked,
        )

    def _choices(
        self, paths: _GrowingPaths, egress: NDArray[np.int16], only_first: bool
    ) -> tuple[Numbers, Numbers]:
        """The next hops of n paths: a path with several becomes as many copies, one for each.

        A path that has ended, or has no next hop, keeps a single copy.

        Args:
            paths: the paths.
            egress: int16[n], the egress class of each.
            only_first: whether only the first next hop is taken.

        Returns:
            int64[m] twice, by copy: the path that it continues, ascending; and its choice, the
            index of a next hop in the arrays of `next_hops`; NO_CHOICE where there is none.
        """
        # By path: its state (any, if it has ended), and the first and the number of its next hops.
        state = state_numbers(self.program, paths.switch, paths.ingress_place, egress)
        state = np.where(paths.is_unfinished, state, 0)
        begin, count = self._begins[state], self.next_hops.count[state]
        # By copy: the path that it continues, and which copy of this path it is.
        copies = np.where(paths.is_unfinished & (not only_first), np.maximum(count, 1), 1)
        path = np.repeat(np.arange(len(state)), copies)
        first_copy = np.cumsum(copies) - copies
        nth_copy = np.arange(len(path)) - first_copy[path]
        has_choice = paths.is_unfinished & (count > 0)
        return path, np.where(has_choice[path], begin[path] + nth_copy, NO_CHOICE)

    def _cross_link(self, paths: _GrowingPaths, choice: Numbers) -> None:
        """Add a link to the paths that go on.

        Args:
            paths: n paths, which are changed.
            choice: int64[n], the next hop of each, of `_choices`.
        """
        p, most_links = self.program, self.program.far.shape[1]
        # NO_CHOICE as an index gives the values of the last next hop. They are left out by `where`
        # here, and by `is_unfinished` below.
        link = np.where(choice != NO_CHOICE, self.next_hops.link[choice], DROP)
        paths.share *= np.where(link >= 0, self.next_hops.share[choice], 1)
        paths.end(link < 0, LOST)
        arc = np.where(paths.is_unfinished, paths.switch * most_links + link, -1).astype(np.int32)
        if p.every_hop:  # a path that crosses a link again has no end
            is_repeated = (paths.arcs == arc).any(axis=0)
            paths.cut(is_repeated)
            arc[is_repeated] = -1
        marked = paths.is_unfinished & self.next_hops.is_marked[choice]
        paths.arcs = np.concatenate((paths.arcs, arc[None]))
        paths.is_marked = np.concatenate((paths.is_marked, marked[None]))
        far_link = np.where(paths.is_unfinished, p.far_link[paths.switch, link], 0)
        paths.ingress_place = places_of_links(p, far_link, marked)
        paths.switch = np.where(paths.is_unfinished, p.far[paths.switch, link], paths.switch)


@dataclass(slots=True, eq=False)
class _GrowingPaths:
    """Paths of packets that are followed a link a round, m so far."""

    pair: Numbers
    """int64[m], the number of the pair of switches."""
    switch: Numbers
    """int64[m], the switch where the packets are."""
    ingress_place: Numbers
    """int64[m], their ingress place there, as in `compilers.forwarding.state_hops`."""
    share: NDArray[np.float64]
    """float64[m], the part of the pair's packets."""
    links_or_fault: NDArray[np.int16]
    """int16[m], as in `HostPaths`; LOOPED until `end` sets it, and for good if the path is cut."""
    arcs: NDArray[np.int32]
    """int32[H, m], as in `HostPaths`."""
    is_marked: NDArray[np.bool_]
    """bool[H, m], as in `HostPaths`."""
    is_unfinished: NDArray[np.bool_]
    """bool[m], whether the path goes on."""

    @classmethod
    def from_hosts(cls, source: Numbers, host_place: int) -> _GrowingPaths:
        """A path without links for each pair of switches, at the hosts of its source.

        Args:
            source: int64[n], the first switch of each pair.
            host_place: the ingress place of hosts.
        """
        n = len(source)
        return cls(
            pair=np.arange(n),
            switch=source,
            ingress_place=np.full(n, host_place),
            share=np.ones(n),
            links_or_fault=np.full(n, LOOPED, np.int16),
            arcs=np.zeros((0, n), np.int32),
            is_marked=np.zeros((0, n), np.bool_),
            is_unfinished=np.ones(n, np.bool_),
        )

    def end(self, where: NDArray[np.bool_], length: ArrayLike) -> None:
        """End paths that go on.

        Args:
            where: bool[m], which paths end, if they still go on.
            length: int, or int[m]: how many links they have, or a fault.
        """
        ended = self.is_unfinished & where
        self.links_or_fault = np.where(ended, length, self.links_or_fault).astype(np.int16)
        self.is_unfinished = self.is_unfinished & ~ended

    def cut(self, where: NDArray[np.bool_]) -> None:
        """End paths that would go round for ever; their length stays LOOPED.

        Args:
            where: bool[m], which paths are cut.
        """
        self.is_unfinished = self.is_unfinished & ~where

    def selected(self, path: Numbers) -> _GrowingPaths:
        """Copies of these paths, by their numbers, int64[n]."""
        return _GrowingPaths(
            pair=self.pair[path],
            switch=self.switch[path],
            ingress_place=self.ingress_place[path],
            share=self.share[path],
            links_or_fault=self.links_or_fault[path],
            arcs=self.arcs[:, path],
            is_marked=self.is_marked[:, path],
            is_unfinished=self.is_unfinished[path],
        )


def _total_length(first: NDArray[np.int16], second: NDArray[np.int16]) -> NDArray[np.int16]:
    """The links of two legs together, int16[…]; the fault of the first leg that has a fault."""
    total = np.where(second < 0, second, first + second)
    return np.where(first < 0, first, total).astype(np.int16)


def _by_source(paths: HostPaths, switches: int) -> NDArray[np.int32]:
    """The arcs of the paths of a leg by source and end, int32[S, ends, H]."""
    arcs = paths.arcs.T.reshape(switches, -1, len(paths.arcs))
    return np.ascontiguousarray(arcs, np.int32)


def _given_up_intermediates(walks: Walks, p: Program, failed: Numbers) -> NDArray[np.int32]:
    """int32[S, C], of `TabulatedHops.given_up_intermediate`, while some elements are down."""
    switches, classes, _ = p.order.shape
    given_up = np.full((switches, classes), -1, np.int32)
    if not walks.build.forwarding.intermediates or not len(failed):
        return given_up
    far_is_down = np.isin(p.far, failed - p.cable_count) & (p.far >= 0)
    link_is_down = np.isin(p.cable, failed) | far_is_down
    for switch in np.flatnonzero(link_is_down.any(axis=1)).tolist():
        for c in np.flatnonzero(p.order[switch, :, 0] >= 0).tolist():
            intermediate = int(p.far[switch, p.order[switch, c, 0]])
            if intermediate >= 0 and gives_up(p, switch, intermediate, c, failed):
                given_up[switch, c] = intermediate
    return given_up
