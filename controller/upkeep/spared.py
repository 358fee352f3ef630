"""Finds the avoided links and switches that stay in use, because pairs have no path without them.

`controller.upkeep.link_state` avoids links that flap, switches that do not hold their program, and
what is drained by request. An avoided link or switch is *spared*, that is, used all the same, if
pairs of switches with hosts have no path without it. `AvoidedParts.spared` finds as little as
possible: links rather than switches, drains by request last of each, and a switch that was read not
to hold its program only for pairs that have no other path at all. No state, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.cut_off_pairs import joined_pairs
from compilers.topology.distance import components, table_of
from controller.upkeep.discovery import LinkEnds


class Spared(NamedTuple):
    """The avoided links and switches that stay in use."""

    links: NDArray[np.bool_]
    """bool[E], links that carry packets."""
    switches: NDArray[np.bool_]
    """bool[S], switches that pass packets on."""


@dataclass(frozen=True, slots=True, eq=False)
class AvoidedParts:
    """The avoided links and switches of a fabric of S switches and E links, at one moment."""

    links: NDArray[np.bool_]
    """bool[E], the avoided links, which are up."""
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
        if self._joined(self.links, self.switches) == self._joined(no_links, no_switches):
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

    def _joined(self, unused: NDArray[np.bool_], drained: NDArray[np.bool_]) -> int:
        """How many pairs of switches with hosts have a path.

        Args:
            unused: bool[E], links that are not used, besides those that are broken.
            drained: bool[S], the switches that pass no packets on.
        """
        dead = self.cables.at_both_ends(self.broken | unused)
        return joined_pairs(self.far, self.hosts, self.hosts, dead, drained)

    def _needed_switches(
        self, avoided: NDArray[np.bool_], excluded: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[S]: the avoided switches without which some pair has no path even if all links that
        are up are used.

        A switch is given up if no pair needs it to pass packets on. First switches without their
        program are tried, then those drained by request, then those that are disconnected. A part
        of the switches is tried at once, and halved where pairs need one of them.

        Args:
            avoided: bool[S], avoided switches.
            excluded: bool[S], those of them that pass no packets on in any case.
        """
        needed, drained = np.zeros_like(avoided), excluded.copy()
        no_links = np.zeros_like(self.broken)
        joined = self._joined(no_links, excluded)
        vertices = np.flatnonzero(avoided & ~excluded)
        keys = self.connected, ~self.requested_switches, ~self.without_program
        parts = [vertices[np.lexsort([key[vertices] for key in keys])]]
        while parts:
            part = parts.pop()
            drained[part] = True
            if self._joined(no_links, drained) == joined:
                continue
            drained[part] = False
            if len(part) == 1:
                needed[part] = True
            else:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
        return needed

    def _needed_links(
        self, avoided: NDArray[np.bool_], drained: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[E]: avoided links without which some pair has no path.

        These are as few as possible. Links with smaller penalties are chosen first, and last those
        that are drained by request.

        Args:
            avoided: bool[E], avoided links.
            drained: bool[S], the switches that pass no packets on.
        """
        needed = np.zeros_like(avoided)
        if self._joined(avoided, drained) == self._joined(needed, drained):
            return needed
        far, passes, ends = self.far, ~drained, self.cables.ends[:, :, 0]
        live = (far >= 0) & ~self.cables.at_both_ends(self.broken | avoided) & passes[far]
        component = components(table_of(np.where(live & passes[:, None], far, -1)))
        # Links between drained switches, for these two alone, come last.
        numbers = np.flatnonzero(avoided & (passes | self.hosts)[ends].all(axis=1))
        keys = (
            self.penalty(numbers),
            self.requested_links[numbers],
            np.count_nonzero(drained[ends[numbers]], axis=1),
        )
        cheapest_first = numbers[np.lexsort(keys)]
        joins_components = passes[ends[cheapest_first]].all(axis=1)
        for number in cheapest_first[joins_components].tolist():
            one, other = component[ends[number]].tolist()
            if one != other:
                needed[number] = True
                component[component == other] = one
        # The components that each drained switch reaches by its links. It passes no packets on, so
        # it joins none of them to another.
        reached = {
            vertex: {*component[far[vertex, live[vertex]]].tolist()}
            for vertex in np.flatnonzero(drained).tolist()
        }
        for number in cheapest_first[~joins_components].tolist():
            one, other = ends[number].tolist()
            from_one = reached.get(one, {int(component[one])})
            from_other = reached.get(other, {int(component[other])})
            if from_one.isdisjoint(from_other):
                needed[number] = True
                # The drained end of the link now reaches what the other end reaches.
                if passes[one]:
                    reached[other] |= from_one
                elif passes[other]:
                    reached[one] |= from_other
        return needed
