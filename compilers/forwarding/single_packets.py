"""Follow the packets between one pair of switches, for `explain` and for messages.

`SinglePackets` asks the rule at one switch after the other. It lowers only the switches that the
packets come to, and looks up only the routes that they hit. So it is quick in a fabric of any size,
while the walks of `walks.py` prepare all switches first.
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

DELIVERED, DROPPED = -11, -12
"""Outcomes at a switch, in place of a link. They are negative, so no link has these numbers.

The rule's own numbers for them, DELIVER and DROP, cannot be used here: the same numbers stand for
faults such as LOST (`fib`), which `minimal_link` returns as well."""
WHOLE = Fraction(1)
"""All packets."""


class _UnfinishedPath(NamedTuple):
    """A path to go on with."""

    path: Path
    """The path so far."""
    passed_switches: list[tuple[int, int]]
    """The switches that it has passed, each with the ingress link."""
    tag: int
    """The tag of its packets: PLAIN or MARKED."""


class MinimalPath(NamedTuple):
    """The path by minimal ports, as far as it goes."""

    switches: list[int]
    """The switches on the path, in order."""
    links_or_fault: int
    """Its number of links; or its fault, which is negative: LOST, UNCABLED, LOOPED or MISDELIVERED
    of `fib`."""


class Path(NamedTuple):
    """A path that packets may take."""

    switches: tuple[int, ...]
    """The switches on the path, in order."""
    outcome: int
    """DELIVERED, DROPPED or LOOPED: what becomes of the packets at the last switch."""
    first_link: int = DROPPED
    """The first link of the path; DROPPED if it has none."""
    share: Fraction = WHOLE
    """The part of the packets with this first link that takes the path; where paths are shared at
    every hop, the part of all packets."""


@dataclass(frozen=True, slots=True)
class SinglePackets:
    """Packets to one destination while some links and switches are down.

    A link of a switch is its place in `Wiring.port`.
    """

    build: Build
    """The build whose tables are asked."""
    destination: int
    """The switch that packets are for."""
    failed_links: frozenset[tuple[int, int]] = frozenset()
    """Links that are down, as pairs of switches, the smaller number first."""
    failed_switches: frozenset[int] = frozenset()
    """Switches that are down."""
    programs: dict[int, Program] = field(default_factory=dict, compare=False, repr=False)
    """The programs of the switches that packets have come to so far."""

    @classmethod
    def with_failures(
        cls, build: Build, destination: int, failed: tuple[int, ...]
    ) -> SinglePackets:
        """The packets to a destination while some elements, as in `Program`, are down."""
        ends = build.wiring.link_ends() if failed else np.zeros((0, 2), np.int64)
        links = (tuple(ends[element].tolist()) for element in failed if element < len(ends))
        switches = (element - len(ends) for element in failed if element >= len(ends))
        return cls(build, destination, frozenset(links), frozenset(switches))

    def program(self, switch: int) -> Program:
        """What one switch holds, lowered to links when it is asked for first."""
        if switch not in self.programs:
            self.programs[switch] = program_of(self.build, switch)
        return self.programs[switch]

    def egress(self, switch: int) -> int:
        """The value of `Routes.egress` at a switch for the destination, by longest-prefix match."""
        routes = self.build.tables.routes
        egress, prefixes = routes.egress[switch], routes.prefixes(switch)
        nothing = no_route(routes.egress)
        for prefix in (self.destination, int(routes.aggregate[self.destination])):
            row = int(np.searchsorted(prefixes, prefix))
            has_row = prefix >= 0 and row < len(prefixes) and prefixes[row] == prefix
            if has_row and egress[row] != nothing:
                return int(egress[row])
        return nothing

    def minimal_path(self, source: int) -> MinimalPath:
        """The path by minimal ports from a switch."""
        path = [source]
        while len(path) <= MOST_HOPS:
            link = self.minimal_link(path[-1])
            if link == DELIVERED:
                arrived = path[-1] == self.destination
                return MinimalPath(path, len(path) - 1 if arrived else MISDELIVERED)
            if link in (LOST, UNCABLED):
                return MinimalPath(path, link)
            path.append(int(self.build.wiring.far[path[-1], link]))
        return MinimalPath(path, LOOPED)

    def minimal_link(self, switch: int) -> int:
        """The link of the minimal port at a switch, up or down; DELIVERED, LOST or UNCABLED."""
        egress_value, egress = self.egress(switch), self.build.tables.routes.egress
        if egress_value in (local(egress), no_route(egress)):
            return DELIVERED if egress_value == local(egress) else LOST
        if egress_value >= self.build.tables.classes.port.shape[1]:
            return UNCABLED
        link = int(self.program(switch).order[0, egress_value, 0])
        return link if link >= 0 else UNCABLED

    def weights_of(self, switch: int) -> dict[int, int]:
        """The weights with which a switch shares packets of its hosts, by link."""
        classes, egress_value = self.build.tables.classes, self.egress(switch)
        if egress_value >= classes.port.shape[1]:
            return {}
        # The link of each weight; -1 where a weight has no link.
        links = self.program(switch).shares[0, egress_value].tolist()
        weights = classes.weight[switch, egress_value].tolist()
        return {link: weight for link, weight in zip(links, weights, strict=True) if link >= 0}

    def next_hops(self, switch: int, ingress: int, tag: int = PLAIN) -> list[tuple[int, int]]:
        """The links that a packet may leave by, and its tag on each; DELIVERED or DROPPED alone."""
        program = self.program(switch)
        link = np.zeros(program.far.shape[1] + 1, np.int64)
        tags = np.zeros_like(link)
        egress_class = self._class(switch)
        count = next_links(program, 0, ingress, tag, egress_class, self._failed(switch), link, tags)
        hops = zip(link[:count].tolist(), tags[:count].tolist(), strict=True)
        outcomes = {DELIVER: DELIVERED, DROP: DROPPED}
        return [(outcomes.get(k, k), next_tag) for k, next_tag in hops] or [(DROPPED, PLAIN)]

    def paths(self, source: int, ingress: int = HOST) -> Iterator[Path]:
        """Yield every path of packets of hosts at a switch, or of packets that came by a link.

        Where paths are shared at every hop, a path that comes to a switch by the same link again
        has no end. It is cut there, as LOOPED.

        Args:
            source: the switch.
            ingress: the ingress link there; HOST.
        """
        shared = self.build.forwarding.every_hop
        # Depth first.
        unfinished = [_UnfinishedPath(Path((source,), DELIVERED), [(source, ingress)], PLAIN)]
        while unfinished:
            path, passed, tag = unfinished.pop()
            switch, switch_ingress = passed[-1]
            next_hops = self.next_hops(switch, switch_ingress, tag)
            for link, next_tag in reversed(next_hops):
                if link < 0:
                    yield path._replace(outcome=link)
                    continue
                arrival = self.far_end(switch, link)
                is_first = len(passed) == 1
                longer = Path(
                    switches=(*path.switches, arrival[0]),
                    outcome=LOOPED,  # unless the path goes on from here and gets another outcome
                    first_link=link if is_first else path.first_link,
                    share=path.share if is_first and not shared else path.share / len(next_hops),
                )
                if len(longer.switches) > MOST_HOPS or (shared and arrival in passed):
                    yield longer
                else:
                    unfinished.append(_UnfinishedPath(longer, [*passed, arrival], next_tag))

    def intermediate_paths(self, source: int) -> Iterator[tuple[int, Path]]:
        """Yield each intermediate, ascending, with the path over it to the destination."""
        for intermediate in intermediates(self.build).tolist():
            path = replace(self, destination=intermediate)._to_intermediate(source)
            if path.outcome == DELIVERED:
                second_leg = next(self.paths(path.switches[-1]))
                path = Path(path.switches + second_leg.switches[1:], second_leg.outcome)
            yield intermediate, path

    def _to_intermediate(self, source: int) -> Path:
        """The path to the intermediate, or to its neighbour that gives it up.

        The destination of these packets is the intermediate. In both cases the outcome is
        DELIVERED.
        """
        switch, ingress, path = source, HOST, [source]
        while len(path) <= MOST_HOPS:
            program, failed = self.program(switch), self._failed(switch)
            arrived = switch == self.destination
            if arrived or gives_up(program, 0, self.destination, self._class(switch), failed):
                return Path(tuple(path), DELIVERED)
            (link, _), *_ = self.next_hops(switch, ingress)
            if link < 0:
                return Path(tuple(path), link)
            switch, ingress = self.far_end(switch, link)
            path.append(switch)
        return Path(tuple(path), LOOPED)

    def far_end(self, switch: int, link: int) -> tuple[int, int]:
        """The switch at the far end of a link, and the link by which a packet comes in there.

        Raises:
            InputError: it has no such link, as in an edited build.
        """
        wiring = self.build.wiring
        far = int(wiring.far[switch, link])
        far_links = np.flatnonzero(wiring.port[far] == wiring.far_port[switch, link])
        if not len(far_links):
            raise one_sided(wiring, switch, far)
        return far, int(far_links[0])

    def _class(self, switch: int) -> int:
        """The egress class of a switch; DELIVER or DROP."""
        egress_value, tables = self.egress(switch), self.build.tables
        if egress_value < tables.classes.port.shape[1]:
            return egress_value
        return DELIVER if egress_value == local(tables.routes.egress) else DROP

    def _failed(self, switch: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """int64[n], the failed elements, as `program_of` numbers them for this one switch."""
        far = self.build.wiring.far[switch]
        elements = [len(far) + failed_switch for failed_switch in self.failed_switches]
        for a, b in self.failed_links:
            if switch in (a, b):
                neighbour = b if switch == a else a
                elements += np.flatnonzero(far == neighbour).tolist()
        return np.array(elements, np.int64)
