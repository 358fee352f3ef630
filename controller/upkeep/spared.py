"""Finds the avoided links and switches that stay in use, because pairs have no path without them.

`controller.upkeep.link_state` avoids links that flap, switches that do not hold their program, and
what is drained by request: no packet is sent over an avoided link, and an avoided switch is not in
transit (it passes on no packets between others, but its own hosts keep their paths). An avoided
link or switch is *spared*, that is, used all the same, if pairs of switches with hosts have no path
without it.

`AvoidedParts` has the state of all links and switches at one moment; `spared` returns those to
spare. It spares as little as possible. Links are spared before switches. Of each, what is drained
by request is spared last. A switch whose tables were read, and are not its program, is spared only
for pairs that have no other path at all. No state, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.cut_off_pairs import count_joined_pairs
from compilers.topology.distance import components, table_of
from controller.upkeep.discovery import LinkEnds


class Spared(NamedTuple):
    """The avoided links and switches that stay in use."""

    links: NDArray[np.bool_]
    """bool[E], links that carry packets."""
    switches: NDArray[np.bool_]
    """bool[S], switches in transit."""


@dataclass(frozen=True, slots=True, eq=False)
class AvoidedParts:
    """A fabric of S switches and E links at one moment: what is avoided, and what to decide by."""

    links: NDArray[np.bool_]
    """bool[E], the avoided links, which are up, as far as switches have told."""
    switches: NDArray[np.bool_]
    """bool[S], the avoided switches."""
    broken: NDArray[np.bool_]
    """bool[E], the links that cannot be used."""
    far: NDArray[np.int32]
    """int32[S, K], the neighbour at each link of a switch; -1 where there is none."""
    cables: LinkEnds
    """The links by number."""
    hosts: NDArray[np.bool_]
    """bool[S], the switches with hosts."""
    requested_links: NDArray[np.bool_]
    """bool[E], the links that are drained by request."""
    requested_switches: NDArray[np.bool_]
    """bool[S], the switches that are drained by request."""
    connected: NDArray[np.bool_]
    """bool[S], the switches with a session."""
    without_program: NDArray[np.bool_]
    """bool[S], the switches that were read not to hold their program."""
    penalty: Callable[[NDArray[np.intp]], NDArray[np.float64]]
    """How much links have flapped, by their numbers."""

    def spared(self) -> Spared:
        """The avoided links and switches that have to stay in use.

        A link that is up carries packets, as far as is known, and if it fails that is noticed. An
        avoided switch may not forward. So switches are spared only where all links that are up do
        not suffice.
        """
        spared = Spared(np.zeros_like(self.links), np.zeros_like(self.switches))
        if not (self.links.any() or self.switches.any()):
            return spared
        no_links, no_switches = np.zeros_like(self.links), np.zeros_like(self.switches)
        if self._joined_pairs(self.links, self.switches) == self._joined_pairs(
            no_links, no_switches
        ):
            return spared
        # First pairs that can have a path without the switches that do not hold their program get
        # one. Then those switches are tried for the other pairs.
        for excluded in (self.switches & self.without_program, no_switches):
            still_avoided = self.switches & ~spared.switches
            spared.switches[self._needed_switches(still_avoided, excluded)] = True
            still_avoided = self.switches & ~spared.switches
            links = self._needed_links(self.links & ~spared.links, still_avoided)
            spared.links[links] = True
        return spared

    def _joined_pairs(self, unused: NDArray[np.bool_], out_of_transit: NDArray[np.bool_]) -> int:
        """How many pairs of switches with hosts have a path.

        Args:
            unused: bool[E], links that are not used, besides those that are broken.
            out_of_transit: bool[S], the switches that pass no packets on.
        """
        dead = self.cables.at_both_ends(self.broken | unused)
        return count_joined_pairs(self.far, self.hosts, self.hosts, dead, out_of_transit)

    def _needed_switches(
        self, avoided: NDArray[np.bool_], excluded: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[S]: the avoided switches without which some pair has no path even if all links that
        are up are used.

        Switches are taken out of transit as long as no pair loses its path: first those without
        their program, then those drained by request, then those that are disconnected. Many are
        taken out at once; where some pair needs one of them, each half is tried by itself.

        Args:
            avoided: bool[S], avoided switches.
            excluded: bool[S], those of them that stay out of transit in any case.
        """
        needed, out_of_transit = np.zeros_like(avoided), excluded.copy()
        no_links = np.zeros_like(self.broken)
        most_joined = self._joined_pairs(no_links, excluded)
        vertices = np.flatnonzero(avoided & ~excluded)
        # `lexsort` sorts by the last key first, and False before True.
        keys = self.connected, ~self.requested_switches, ~self.without_program
        untried = [vertices[np.lexsort([key[vertices] for key in keys])]]
        while untried:
            group = untried.pop()
            out_of_transit[group] = True
            if self._joined_pairs(no_links, out_of_transit) == most_joined:
                continue
            out_of_transit[group] = False
            if len(group) == 1:
                needed[group] = True
            else:
                half = len(group) // 2
                untried += [group[half:], group[:half]]  # the first half is tried next
        return needed

    def _needed_links(
        self, avoided: NDArray[np.bool_], out_of_transit: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[E]: avoided links without which some pair has no path.

        These are as few as possible. As in Kruskal's algorithm for a spanning tree, links are tried
        in ascending order of cost, and one is needed if it joins what was not joined before.

        Args:
            avoided: bool[E], avoided links.
            out_of_transit: bool[S], the switches that pass no packets on.
        """
        needed = np.zeros_like(avoided)
        if self._joined_pairs(avoided, out_of_transit) == self._joined_pairs(
            needed, out_of_transit
        ):
            return needed
        far, transit, ends = self.far, ~out_of_transit, self.cables.ends[:, :, 0]
        # bool[S, K]: the links in use that lead to a switch in transit.
        live = (far >= 0) & ~self.cables.at_both_ends(self.broken | avoided) & transit[far]
        # int[S]: the number of the component of each switch in transit.
        component = components(table_of(np.where(live & transit[:, None], far, -1)))
        cheapest_first = self._cheapest_first(avoided, transit)
        joins_components = transit[ends[cheapest_first]].all(axis=1)
        for number in cheapest_first[joins_components].tolist():
            one, other = component[ends[number]].tolist()
            if one != other:
                needed[number] = True
                component[component == other] = one
        # The components that each switch out of transit reaches by its own links. It passes no
        # packets on, so it joins none of them to another.
        reached = {
            vertex: {*component[far[vertex, live[vertex]]].tolist()}
            for vertex in np.flatnonzero(out_of_transit).tolist()
        }
        for number in cheapest_first[~joins_components].tolist():
            one, other = ends[number].tolist()
            from_one = reached.get(one, {int(component[one])})
            from_other = reached.get(other, {int(component[other])})
            if from_one.isdisjoint(from_other):
                needed[number] = True
                # The end out of transit now reaches what the other end reaches. If both ends are
                # out of transit, the link serves these two alone.
                if transit[one]:
                    reached[other] |= from_one
                elif transit[other]:
                    reached[one] |= from_other
        return needed

    def _cheapest_first(
        self, avoided: NDArray[np.bool_], transit: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """The numbers of the avoided links that may be needed, in ascending order of their cost.

        First come links between switches in transit, and last links between two that are not. Among
        these links, those drained by request come last; then smaller penalties come first.
        """
        ends = self.cables.ends[:, :, 0]
        # A switch that is neither in transit nor has hosts needs no link.
        numbers = np.flatnonzero(avoided & (transit | self.hosts)[ends].all(axis=1))
        keys = (
            self.penalty(numbers),
            self.requested_links[numbers],
            np.count_nonzero(~transit[ends[numbers]], axis=1),
        )
        return numbers[np.lexsort(keys)]
