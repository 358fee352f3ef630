"""Single packets: the rule at one switch after the other, from the rows that they hit.

A packet asks for a few rows of a few switches, so nothing here reads more: the size is no matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from compilers.forwarding.program import one_sided, program_of
from compilers.forwarding.rule import DELIVER, DROP, HOST, PLAIN, Program, gives_up, next_links
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, MOST_HOPS, UNCABLED
from compilers.tables.intermediate_form import local, no_route

HOME, DROPPED = -11, -12
"""In the place of a link, and unlike any fault: delivered here, dropped."""
WHOLE = Fraction(1)


class Path(NamedTuple):
    """A path of packets: the switches that they pass, and HOME, DROPPED or LOOPED.

    first: the link that it begins with. part: of the packets that take this link, those that go on
    so; of all packets where paths are shared at every hop.
    """

    switches: tuple[int, ...]
    outcome: int
    first: int = DROPPED
    part: Fraction = WHOLE


@dataclass(frozen=True, slots=True)
class SinglePackets:
    """Packets to one destination while some links and switches are down.

    dead_links: as pairs of switches, the smaller number first. Links are places in `Wiring.port`.
    programs: of the switches that packets have come to.
    """

    build: Build
    destination: int
    dead_links: frozenset[tuple[int, int]] = frozenset()
    dead_switches: frozenset[int] = frozenset()
    programs: dict[int, Program] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def under(cls, build: Build, destination: int, dead: tuple[int, ...]) -> SinglePackets:
        """The packets to a destination while elements are down, numbered as in `Program`."""
        ends = build.wiring.link_ends() if dead else np.zeros((0, 2), np.int64)
        links = (tuple(ends[element].tolist()) for element in dead if element < len(ends))
        switches = (element - len(ends) for element in dead if element >= len(ends))
        return cls(build, destination, frozenset(links), frozenset(switches))

    def program(self, switch: int) -> Program:
        """What a switch holds, of `program_of`."""
        if switch not in self.programs:
            self.programs[switch] = program_of(self.build, switch)
        return self.programs[switch]

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
        known = number < self.build.tables.classes.port.shape[1]
        link = int(self.program(switch).order[0, number, 0]) if known else UNCABLED
        return link if link >= 0 else UNCABLED

    def weights_of(self, switch: int) -> dict[int, int]:
        """By link, the weights of the paths that the packets of hosts at a switch may take."""
        classes, number = self.build.tables.classes, self.egress(switch)
        if number >= classes.port.shape[1]:
            return {}
        shares = self.program(switch).shares[0, number].tolist()
        weights = classes.weight[switch, number].tolist()
        return {k: weight for k, weight in zip(shares, weights, strict=True) if k >= 0}

    def moves(self, switch: int, came: int, tag: int = PLAIN) -> list[tuple[int, int]]:
        """The links that a packet may leave by, and its tag on each; HOME or DROPPED alone."""
        program = self.program(switch)
        link = np.zeros(program.far.shape[1] + 1, np.int64)
        tags = np.zeros_like(link)
        number = self._class(switch)
        n = next_links(program, 0, came, tag, number, self._down(switch), link, tags)
        found = zip(link[:n].tolist(), tags[:n].tolist(), strict=True)
        ends = {DELIVER: HOME, DROP: DROPPED}
        return [(ends.get(k, k), mark) for k, mark in found] or [(DROPPED, PLAIN)]

    def paths(self, source: int, came: int = HOST) -> Iterator[Path]:
        """Every path of packets of hosts at a switch, or of packets that came by a link.

        Where paths are shared at every hop, one that comes to a switch by the same link again has
        no end, and stops there.
        """
        shared = self.build.forwarding.every_hop
        waiting = [(Path((source,), HOME), [(source, came)], PLAIN)]
        while waiting:
            path, seen, tag = waiting.pop()
            moves = self.moves(*seen[-1], tag)
            for link, mark in reversed(moves):
                if link < 0:
                    yield path._replace(outcome=link)
                    continue
                after = self.over(seen[-1][0], link)
                begins = len(seen) == 1
                longer = Path(
                    (*path.switches, after[0]),
                    LOOPED,
                    link if begins else path.first,
                    path.part if begins and not shared else path.part / len(moves),
                )
                if len(longer.switches) > MOST_HOPS or (shared and after in seen):
                    yield longer
                else:
                    waiting.append((longer, [*seen, after], mark))

    def over_intermediates(self, source: int) -> Iterator[tuple[int, Path]]:
        """Each intermediate, ascending, with the path over it to the destination."""
        for via in intermediates(self.build).tolist():
            first = replace(self, destination=via)._to_intermediate(source)
            if first.outcome == HOME:
                rest = next(self.paths(first.switches[-1]))
                first = Path(first.switches + rest.switches[1:], rest.outcome)
            yield via, first

    def _to_intermediate(self, source: int) -> Path:
        """The switches up to the intermediate, or to its neighbour that gives it up; HOME: there.

        The destination of these packets is the intermediate.
        """
        switch, came, path = source, HOST, [source]
        while len(path) <= MOST_HOPS:
            program, down = self.program(switch), self._down(switch)
            there = switch == self.destination
            if there or gives_up(program, 0, self.destination, self._class(switch), down):
                return Path(tuple(path), HOME)
            link = self.moves(switch, came)[0][0]
            if link < 0:
                return Path(tuple(path), link)
            switch, came = self.over(switch, link)
            path.append(switch)
        return Path(tuple(path), LOOPED)

    def over(self, switch: int, link: int) -> tuple[int, int]:
        """The switch behind a link, and the link by which a packet comes in there.

        Raises:
            InputError: it has no such link, as in an edited build.
        """
        wiring = self.build.wiring
        far = int(wiring.far[switch, link])
        found = np.flatnonzero(wiring.port[far] == wiring.far_port[switch, link])
        if not len(found):
            raise one_sided(wiring, switch, far)
        return far, int(found[0])

    def _class(self, switch: int) -> int:
        """The egress class of a switch; DELIVER or DROP."""
        number, tables = self.egress(switch), self.build.tables
        if number < tables.classes.port.shape[1]:
            return number
        return DELIVER if number == local(tables.routes.egress) else DROP

    def _down(self, switch: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """int64[n], the elements that are down, as `program_of` numbers those of a switch."""
        far = self.build.wiring.far[switch]
        links = [
            k
            for pair in self.dead_links
            if switch in pair
            for k in np.flatnonzero(far == sum(pair) - switch).tolist()
        ]
        return np.array([*links, *(len(far) + at for at in self.dead_switches)], np.int64)
