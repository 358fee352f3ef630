"""All paths of hosts' packets between pairs of switches, with the part of the traffic on each.

What comes in are pairs of switches and the failed *elements* (cables by their numbers, then
switches). What goes out are `HostPaths`. Rehearsals use them to predict what hosts measure while
some links and switches are down.

A next hop depends on the switch, the ingress link, the mark and the egress class, not on the
packet. So `TabulatedHops.of` evaluates the rule once for each of these (`state_hops`).
`TabulatedHops.paths` then moves all packets at once, a link a round; a packet with several next
hops becomes several paths. An *arc* is link k of switch s, by the number s·K + k.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compilers.forwarding.intermediate_bounds import add_packet_bounds
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.rule import DELIVER, DROP, Program, gives_up, marks
from compilers.forwarding.state_hops import StateHops, joined, states_of_a_switch
from compilers.forwarding.walks import Numbers, Walks
from compilers.routing.intermediates import intermediates
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, MOST_HOPS


@dataclass(frozen=True, slots=True, eq=False)
class HostPaths:
    """The paths that packets of hosts may take, m in all, those of a pair of switches together."""

    pair: Numbers
    """int64[m], the number of the pair of switches, ascending."""
    part: NDArray[np.float64]
    """float64[m], the part of the pair's packets that takes this path."""
    length: NDArray[np.int16]
    """int16[m], how many links the path has; or a fault, which is negative: a key of `FAULTS`."""
    end: Numbers
    """int64[m], the last switch."""
    arcs: NDArray[np.int32]
    """int32[H, m], the links of the path, s·K + k for link k of switch s; -1 after the last."""
    marked: NDArray[np.bool_]
    """bool[H, m], whether packets leave by that link with a mark."""


class TwoLegs(NamedTuple):
    """The paths that make up the paths over intermediates."""

    first: HostPaths
    """From every switch to every intermediate, in this order."""
    second: HostPaths
    """From every switch to every switch, in this order."""


@dataclass(frozen=True, eq=False)
class TabulatedHops:
    """The next hops of packets in every state, with some elements down."""

    walks: Walks
    """The build as a program."""
    program: Program
    """What switches hold, as they are cabled now."""
    next_hops: StateHops
    """The next hops of every state of every switch."""
    released: NDArray[np.int32]
    """int32[S, C], the intermediate whose packets end their first leg here, as the link to it is
    down; -1 where there is none."""

    @classmethod
    def of(cls, walks: Walks, program: Program, dead: Numbers, times: int = 1) -> TabulatedHops:
        """Ask the rule for every state.

        Args:
            walks: of the build.
            program: what its switches hold, as they are cabled now.
            dead: int64[n], the failed elements.
            times: how often this is done, with other elements down: for machine code.
        """
        next_hops = StateHops.of(walks, program, dead, times)
        return cls(walks, program, next_hops, _released_intermediates(walks, program, dead))

    def with_switch(
        self, switch: int, walks: Walks, program: Program, dead: Numbers
    ) -> TabulatedHops:
        """The next hops if one switch holds the tables of another build.

        Args:
            switch: the switch.
            walks: of the other build.
            program: as in `of`, of the other build.
            dead: the same failed elements as here.
        """
        states = states_of_a_switch(program)
        first, last = switch * states, (switch + 1) * states
        before = self.next_hops.of_states(slice(0, first))
        changed = StateHops.of_switch(walks, program, dead, switch)
        after = self.next_hops.of_states(slice(last, len(self.next_hops.count)))
        next_hops = joined([before, changed, after])
        released = _released_intermediates(walks, program, dead)
        return TabulatedHops(walks, program, next_hops, released)

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
        vias = intermediates(self.walks.build)
        # int64[n, V], by pair the order of intermediates: the source itself comes first.
        via_order = np.argsort(vias != source[:, None], axis=1, kind="stable")
        pair = np.repeat(np.arange(len(source)), len(vias))
        legs = self.legs
        # The numbers of both legs of each path, in the order in which `legs` has them.
        to_via = (source[:, None] * len(vias) + via_order).ravel()
        from_via = legs.first.end[to_via] * len(self.program.far) + destination[pair]
        length, length_on = legs.first.length[to_via], legs.second.length[from_via]
        lost = length < 0
        arcs_on = np.where(lost, -1, legs.second.arcs[:, from_via]).astype(np.int32)
        arcs = np.concatenate((legs.first.arcs[:, to_via], arcs_on))
        return HostPaths(
            pair=pair,
            part=np.full(len(pair), 1 / len(vias)),
            length=_total(length, length_on),
            end=np.where(lost, legs.first.end[to_via], legs.second.end[from_via]),
            arcs=arcs,
            marked=np.zeros_like(arcs, np.bool_),
        )

    @cached_property
    def legs(self) -> TwoLegs:
        """The two legs of packets over intermediates."""
        switches, vias = np.arange(len(self.program.far)), intermediates(self.walks.build)
        first = self._followed(
            np.repeat(switches, len(vias)), np.tile(vias, len(switches)), to_intermediates=True
        )
        second = self._followed(
            np.repeat(switches, len(switches)), np.tile(switches, len(switches))
        )
        return TwoLegs(first, second)

    def hops_over_intermediates(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """The fewest and the most links between switches, over any of the intermediates.

        Returns:
            int16[S, S] twice, by source and destination. A fault is negative, so it counts as
            fewer than any number of links.
        """
        switches = len(self.program.far)
        to_via = self.legs.first.length.reshape(switches, -1)
        end = self.legs.first.end.reshape(switches, -1)
        onward = self.legs.second.length.reshape(switches, -1)
        fewest, most = np.full_like(onward, 2 * MOST_HOPS), np.full_like(onward, MISDELIVERED)
        for via in range(to_via.shape[1]):
            total = _total(to_via[:, via, None], onward[end[:, via]])
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
        first, second = self.legs
        switches = len(packets)
        ends = np.where(first.length < 0, -1, first.end).reshape(switches, -1).astype(np.int32)
        first_arcs, second_arcs = _by_source(first, switches), _by_source(second, switches)
        fewest, most = np.zeros((2, self.program.far.size), np.int64)
        add = for_packets(int(np.count_nonzero(packets)) * ends.shape[1], add_packet_bounds)
        add(first_arcs, ends, second_arcs, packets, fewest, most)
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
            to_intermediates: whether the destinations are intermediates, before which packets may
                be released.
            only_first: whether only the first next hop of each state is taken.
        """
        paths = _GrowingPaths.at_hosts(source, self.program.far.shape[1])
        for links in range(MOST_HOPS + 1):
            to = destination[paths.pair]
            egress = self.walks.all_egress[to, paths.at]
            delivered = np.where(paths.at == to, links, MISDELIVERED)
            paths.end(egress < 0, np.where(egress == DELIVER, delivered, LOST))
            if to_intermediates:
                paths.end(self.released[paths.at, egress] == to, links)
            if links == MOST_HOPS or not paths.going.any():
                break
            path, choice = self._choices(paths, egress, only_first)
            paths = paths.copied(path)
            self._cross_link(paths, choice)
        return HostPaths(paths.pair, paths.part, paths.length, paths.at, paths.arcs, paths.marked)

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
            index of a next hop in the arrays of `next_hops`; -1 where there is none.
        """
        classes = self.program.order.shape[1]
        places = states_of_a_switch(self.program) // classes
        state = (paths.at * places + paths.place) * classes + egress
        state = np.where(paths.going, state, 0)
        begin, count = self._begins[state], self.next_hops.count[state]
        copies = np.where(paths.going & (not only_first), np.maximum(count, 1), 1)
        path = np.repeat(np.arange(len(state)), copies)
        first_copy = np.cumsum(copies) - copies
        number_of_copy = np.arange(len(path)) - first_copy[path]
        has_choice = paths.going & (count > 0)
        return path, np.where(has_choice[path], begin[path] + number_of_copy, -1)

    def _cross_link(self, paths: _GrowingPaths, choice: Numbers) -> None:
        """Add a link to the paths that go on.

        Args:
            paths: n paths, which are changed.
            choice: int64[n], the next hop of each, of `_choices`.
        """
        p, most_links = self.program, self.program.far.shape[1]
        # Without a choice the arrays give values of another next hop, which no path takes over.
        link = np.where(choice >= 0, self.next_hops.link[choice], DROP)
        paths.part *= np.where(link >= 0, self.next_hops.part[choice], 1)
        paths.end(link < 0, LOST)
        arc = np.where(paths.going, paths.at * most_links + link, -1).astype(np.int32)
        if p.every_hop:
            is_repeated = (paths.arcs == arc).any(axis=0)
            paths.cut(is_repeated)
            arc[is_repeated] = -1
        marked = paths.going & self.next_hops.marked[choice]
        paths.arcs = np.concatenate((paths.arcs, arc[None]))
        paths.marked = np.concatenate((paths.marked, marked[None]))
        # Places of marked packets follow those of links and of hosts.
        far_link = np.where(paths.going, p.far_link[paths.at, link], 0)
        paths.place = far_link + np.where(marked, most_links + 1, 0)
        paths.at = np.where(paths.going, p.far[paths.at, link], paths.at)


@dataclass(slots=True, eq=False)
class _GrowingPaths:
    """Paths of packets that are followed a link a round, m so far."""

    pair: Numbers
    """int64[m], the number of the pair of switches."""
    at: Numbers
    """int64[m], the switch where the packets are."""
    place: Numbers
    """int64[m], their ingress place there, as in `compilers.forwarding.state_hops`."""
    part: NDArray[np.float64]
    """float64[m], the part of the pair's packets."""
    length: NDArray[np.int16]
    """int16[m], as in `HostPaths`; LOOPED until `end` sets it, and for good if the path is cut."""
    arcs: NDArray[np.int32]
    """int32[H, m], as in `HostPaths`."""
    marked: NDArray[np.bool_]
    """bool[H, m], as in `HostPaths`."""
    going: NDArray[np.bool_]
    """bool[m], whether the path goes on."""

    @classmethod
    def at_hosts(cls, source: Numbers, most_links: int) -> _GrowingPaths:
        """A path without links for each pair of switches, at the hosts of its source.

        Args:
            source: int64[n], the first switch of each pair.
            most_links: K, which is the ingress place of hosts.
        """
        n = len(source)
        return cls(
            pair=np.arange(n),
            at=source,
            place=np.full(n, most_links),
            part=np.ones(n),
            length=np.full(n, LOOPED, np.int16),
            arcs=np.zeros((0, n), np.int32),
            marked=np.zeros((0, n), np.bool_),
            going=np.ones(n, np.bool_),
        )

    def end(self, where: NDArray[np.bool_], length: ArrayLike) -> None:
        """End paths that go on.

        Args:
            where: bool[m], which paths end, if they still go on.
            length: int, or int[m]: how many links they have, or a fault.
        """
        ended = self.going & where
        self.length = np.where(ended, length, self.length).astype(np.int16)
        self.going = self.going & ~ended

    def cut(self, where: NDArray[np.bool_]) -> None:
        """End paths that have no end of their own; their length stays LOOPED.

        Args:
            where: bool[m], which paths are cut.
        """
        self.going = self.going & ~where

    def copied(self, path: Numbers) -> _GrowingPaths:
        """Copies of these paths, by their numbers, int64[n]."""
        return _GrowingPaths(
            pair=self.pair[path],
            at=self.at[path],
            place=self.place[path],
            part=self.part[path],
            length=self.length[path],
            arcs=self.arcs[:, path],
            marked=self.marked[:, path],
            going=self.going[path],
        )


def _total(first: NDArray[np.int16], second: NDArray[np.int16]) -> NDArray[np.int16]:
    """The links of two legs together, int16[…]; the fault of the first leg that has a fault."""
    total = np.where(second < 0, second, first + second)
    return np.where(first < 0, first, total).astype(np.int16)


def _by_source(paths: HostPaths, switches: int) -> NDArray[np.int32]:
    """The arcs of the paths of a leg by source and end, int32[S, ends, H]."""
    arcs = paths.arcs.T.reshape(switches, -1, len(paths.arcs))
    return np.ascontiguousarray(arcs, np.int32)


def _released_intermediates(walks: Walks, p: Program, dead: Numbers) -> NDArray[np.int32]:
    """int32[S, C], of `TabulatedHops.released`, while some elements are down."""
    switches, classes, _ = p.order.shape
    released = np.full((switches, classes), -1, np.int32)
    if not walks.build.forwarding.intermediates or not len(dead):
        return released
    far_is_down = np.isin(p.far, dead - p.cable_count) & (p.far >= 0)
    link_is_down = np.isin(p.cable, dead) | far_is_down
    for switch in np.flatnonzero(link_is_down.any(axis=1)).tolist():
        for c in np.flatnonzero(p.order[switch, :, 0] >= 0).tolist():
            via = int(p.far[switch, p.order[switch, c, 0]])
            if via >= 0 and gives_up(p, switch, via, c, dead):
                released[switch, c] = via
    return released
