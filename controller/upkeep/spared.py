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
        # Pairs get a path without the switches that do not hold their program, if they can.
        for useless in (self.switches & self.without_program, no_switches):
            drained = self.switches & ~spared.switches
            spared.switches[self._needed_switches(drained, useless)] = True
            drained = self.switches & ~spared.switches
            spared.links[self._needed_links(self.links & ~spared.links, drained)] = True
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
        self, avoided: NDArray[np.bool_], useless: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[S]: avoided switches that have to pass packets on, if all links that are up are
        used, else pairs would have no path.

        Switches are given up one by one, where no pair needs them: first those without their
        program, then those drained by request, then those that are disconnected. Many that nobody
        needs are given up together.

        Args:
            avoided: bool[S], avoided switches.
            useless: bool[S], those of them that give no pair a path.
        """
        needed, drained = np.zeros_like(avoided), useless.copy()
        no_links = np.zeros_like(self.broken)
        joined = self._joined(no_links, useless)
        vertices = np.flatnonzero(avoided & ~useless)
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
        """bool[E]: avoided links that have to be used, else the fabric would fall apart.

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
        # The components that each drained switch reaches: it joins none of them to another.
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
                if passes[one]:
                    from_other |= from_one
                elif passes[other]:
                    from_one |= from_other
        return needed
