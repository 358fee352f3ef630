"""Single packets: the rule of `Classes` at one switch after the other, from the rows that they hit.

`forwarding` follows all packets of a fabric at once, for which it joins all tables.
A packet asks for a few rows of a few switches, so nothing here reads more: the size is no matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from compilers.routing.marked_spread import ONE_SIDE, onward_ports, sides
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.walk import LOOPED, LOST, MISDELIVERED, MOST_HOPS, UNCABLED

HOME, DROPPED, FROM_HOST = -11, -12, -13
"""In the place of a link, and unlike any fault: delivered here, dropped, come from a host."""


WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class SinglePackets:
    """Packets to one destination while some links and switches are down.

    dead_links: as pairs of switches, the smaller number first. Links are places in `Wiring.port`.
    """

    build: Build
    destination: int
    dead_links: frozenset[tuple[int, int]] = frozenset()
    dead_switches: frozenset[int] = frozenset()

    @classmethod
    def under(cls, build: Build, destination: int, dead: tuple[int, ...]) -> SinglePackets:
        """The packets to a destination while elements are down, numbered as in `Forwarding`."""
        count = link_count(build)
        links = (link_ends(build, element) for element in dead if element < count)
        switches = (element - count for element in dead if element >= count)
        return cls(build, destination, frozenset(links), frozenset(switches))

    def egress(self, switch: int) -> int:
        """The egress value of the switch, longest prefix first."""
        routes = self.build.tables.routes
        own, prefixes = routes.egress[switch], routes.prefixes(switch)
        nothing = no_route(routes.egress)
        for prefix in (self.destination, int(routes.aggregate[self.destination])):
            row = int(np.searchsorted(prefixes, prefix))
            known = prefix >= 0 and row < len(prefixes) and prefixes[row] == prefix
            if known and own[row] != nothing:
                return int(own[row])
        return nothing

    def minimal(self, source: int) -> tuple[list[int], int]:
        """The switches from the source on by minimal ports, the number of links or the fault."""
        path = [source]
        while len(path) <= MOST_HOPS:
            link = self.minimal_link(path[-1])
            if link == HOME:
                there = path[-1] == self.destination
                return path, len(path) - 1 if there else MISDELIVERED
            if link in (LOST, UNCABLED):
                return path, link
            path.append(int(self.build.wiring.far[path[-1], link]))
        return path, LOOPED

    def minimal_link(self, switch: int) -> int:
        """The link by the minimal port, whatever is down; HOME, LOST or UNCABLED."""
        number, egress = self.egress(switch), self.build.tables.routes.egress
        if number in (local(egress), no_route(egress)):
            return HOME if number == local(egress) else LOST
        port = self.build.tables.classes.port[switch]
        links = self._links(switch, port[number : number + 1])
        return links[0] if links else UNCABLED

    def ways(self, switch: int) -> dict[int, int]:
        """By link, the weights of the ways that the packets of hosts at a switch may take."""
        classes, number = self.build.tables.classes, self.egress(switch)
        if number >= classes.port.shape[1]:
            return {}
        ports = np.append(classes.port[switch, number], classes.alternate[switch, number])
        shares = zip(ports.tolist(), classes.weight[switch, number].tolist(), strict=True)
        weighted = [(np.array([port]), weight) for port, weight in shares if weight]
        return {link: weight for port, weight in weighted for link in self._links(switch, port)}

    def way_out(self, switch: int, entry: int) -> int:
        """The link by the transit rule for a packet that came in over `entry`; HOME or DROPPED."""
        tables, number = self.build.tables, self.egress(switch)
        if number >= tables.classes.port.shape[1]:
            return HOME if number == local(tables.routes.egress) else DROPPED
        classes = tables.classes
        port = classes.port[switch, number : number + 1]
        order = self._links(switch, np.append(port, classes.protection[switch, number]))
        minimal = self._links(switch, port)
        back = minimal == [entry]
        tried = self._links(switch, classes.bounce[switch, number]) if back else order
        if self.build.every_hop and entry in self.ways(switch):
            tried = [*self._links(switch, classes.bounce[switch, number]), *minimal]
        live = (link for link in tried if link != entry and self.is_up(switch, link))
        return next(live, entry if entry in order else DROPPED)

    def links_out(self, switch: int, entry: int) -> list[int]:
        """The links that a packet which came in over `entry` may take; HOME or DROPPED alone."""
        ways = self.ways(switch) if self.build.every_hop else {}
        up = [link for link in ways if self.is_up(switch, link)] if entry not in ways else []
        return up or [self.way_out(switch, entry)]

    def paths(
        self, switch: int, entry: int = FROM_HOST, share: Fraction = WHOLE
    ) -> Iterator[tuple[list[int], int, Fraction]]:
        """Every path as `path` has it, and the part of the packets that take it.

        One that comes to a switch by the same link again has no end, and stops there.
        """
        waiting = [([switch], [(switch, entry)], share)]
        while waiting:
            path, seen, part = waiting.pop()
            links = self.links_out(*seen[-1])
            for link in reversed(links):
                if link < 0:
                    yield path, link, part
                    continue
                after = self.over(path[-1], link)
                longer = [*path, after[0]]
                if after in seen or len(longer) > MOST_HOPS:
                    yield longer, LOOPED, part / len(links)
                else:
                    waiting.append((longer, [*seen, after], part / len(links)))

    def onward(self, switch: int, entry: int) -> list[int]:
        """The links that marked packets are spread over which came in over `entry`.

        None where they go as in transit (`compilers.routing.marked_spread`).
        """
        number, links = self.egress(switch), self.build.wiring.far.shape[1]
        if number >= self.build.tables.classes.port.shape[1] or number // links == 1:
            return []  # delivered, or lost; or of a neighbour
        ports = onward_ports(self.build.wiring, switch)[entry]
        return [link for link in self._links(switch, ports) if self.is_up(switch, link)]

    def keeps(self, switch: int) -> bool:
        """Whether packets that a switch spreads stay marked."""
        side = sides(self.build.topology)
        return bool(side[switch] == side[self.destination] != ONE_SIDE)

    def path(self, switch: int, entry: int = FROM_HOST) -> tuple[list[int], int]:
        """The switches that a packet passes, and HOME, DROPPED or, after `MOST_HOPS`, LOOPED."""
        path = [switch]
        while len(path) <= MOST_HOPS:
            link = self.way_out(switch, entry)
            if link < 0:
                return path, link
            switch, entry = self.over(switch, link)
            path.append(switch)
        return path, LOOPED

    def over(self, switch: int, link: int) -> tuple[int, int]:
        """The switch behind a link, and the link by which a packet comes in there."""
        wiring = self.build.wiring
        far = int(wiring.far[switch, link])
        return far, int(np.flatnonzero(wiring.far[far] == switch)[0])

    def is_up(self, switch: int, link: int) -> bool:
        """Whether a link and the switch behind it are up."""
        far = int(self.build.wiring.far[switch, link])
        pair = min(switch, far), max(switch, far)
        return pair not in self.dead_links and far not in self.dead_switches

    def _links(self, switch: int, ports: NDArray[np.integer]) -> list[int]:
        """The links behind ports, in their order; those without a cable are left out."""
        wiring = self.build.wiring
        there = np.where(wiring.far[switch] >= 0, wiring.port[switch], 0)
        found = ((there == ports[:, None]) & (there > 0)).nonzero()
        links: list[int] = found[1].tolist()
        return links


def link_count(build: Build) -> int:
    """E, the number of links with a cable."""
    far = build.wiring.far
    return int(np.count_nonzero(far > np.arange(len(far))[:, None]))


def link_number(build: Build, one: int, other: int) -> int:
    """The number of a link, 0 to E - 1, in the order of the smaller and then the larger switch."""
    far, (low, high) = build.wiring.far, sorted((one, other))
    before = np.count_nonzero(far[:low] > np.arange(low)[:, None])
    return int(before + np.count_nonzero((far[low] > low) & (far[low] < high)))


def link_ends(build: Build, number: int) -> tuple[int, int]:
    """The switches that the link of a number joins, the smaller first."""
    far = build.wiring.far
    count = np.cumsum(np.count_nonzero(far > np.arange(len(far))[:, None], axis=1))
    low = int(np.searchsorted(count, number, side="right"))
    later = np.sort(far[low][far[low] > low])
    return low, int(later[number - int(count[low])])
