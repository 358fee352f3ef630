"""eBGP whose best paths are the compiled minimal paths, and that finds others when these fail.

Every switch is an autonomous system of its own and announces its own prefix to all neighbours, so
the length of an AS path is the number of links and the shortest one is a minimal path. In PolarFly
it is the only one. Where there are several, the compiled one is preferred by its metric, which BGP
compares after the length (RFC 4271, section 9.1.2.2): what is preferred is always among the
shortest, so it cannot make routes oscillate, and after a failure the shortest paths left decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.walk import Walker
from compilers.targets.routed.static_routes import RoutedFabric
from inventory.problems import InputError, Problem, few

FIRST_AS = 4_200_000_000
"""Of the private range (RFC 6996), for vertex 0."""
SESSIONS_AT_ONCE = 256
"""Destinations that are walked to at once."""


@dataclass(frozen=True, slots=True)
class Session:
    """A neighbour; preferred: prefixes, by family, for which it is one next hop of several."""

    interface: str
    number: int
    preferred: tuple[tuple[str, ...], ...]

    @property
    def policy(self) -> str:
        """The name of the route map for what it announces; no port has the name of another."""
        return f"via-{self.interface}" if any(self.preferred) else "fabric"


@dataclass(frozen=True, slots=True)
class Speaker:
    """What a switch says in BGP.

    number: its AS. own: its prefixes, "" where nobody has a route to it. longest: the most links
    that a path may have. lengths: of a prefix, by family.
    """

    number: int
    router_id: str
    own: tuple[str, ...]
    longest: int
    lengths: tuple[int, ...]
    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class BgpSessions:
    """All speakers of a build; hops: int8[S, S], links of the compiled paths."""

    routed: RoutedFabric
    hops: NDArray[np.int8]
    egress: NDArray[np.integer]

    @classmethod
    def of(cls, routed: RoutedFabric) -> BgpSessions:
        """The speakers of a build.

        Raises:
            InputError: compiled paths that are longer than need be, which BGP would not take.
        """
        build = routed.build
        walker = Walker.of(build.tables, build.wiring.cables())
        order = build.tables.switches
        blocks = np.array_split(np.arange(order), -(-order // SESSIONS_AT_ONCE))
        hops = np.concatenate([walker.hops(block) for block in blocks], axis=1)
        egress = np.concatenate([walker.egress(block) for block in blocks], axis=1)
        sessions = cls(routed, hops, egress)
        sessions._require_minimal()
        return sessions

    def _require_minimal(self) -> None:
        w = self.routed.build.wiring
        problems = []
        for vertex in np.flatnonzero(self.routed.build.topology.present).tolist():
            nearest = self.hops[w.far[vertex][w.far[vertex] >= 0]].min(axis=0)
            longer = np.flatnonzero(self.hops[vertex] > nearest + 1)
            problems += [
                Problem(
                    key="--set routing",
                    required="static: BGP takes the shortest path and the compiled one is longer",
                    given=f"bgp, and {w.names[vertex]} to {w.names[there]}",
                )
                for there in longer.tolist()
            ]
        if problems:
            raise InputError(few(problems))

    def at(self, vertex: int) -> Speaker:
        """The speaker of a switch."""
        a = self.routed.build.addressing
        prefixes = self.routed.prefixes
        announces = bool(self.routed.build.topology.endpoints[vertex])
        return Speaker(
            number=FIRST_AS + vertex,
            router_id=self.routed.gateways[vertex],
            own=tuple(texts[vertex] if announces else "" for texts in prefixes),
            longest=2 * self.routed.build.topology.diameter + 2,
            lengths=(a.ipv4_length, 64)[: len(prefixes)],
            sessions=tuple(self._sessions(vertex)),
        )

    def _sessions(self, vertex: int) -> list[Session]:
        w, classes = self.routed.build.wiring, self.routed.build.tables.classes
        far = w.far[vertex][w.far[vertex] >= 0]
        tied = np.flatnonzero((self.hops[far] == self.hops[vertex] - 1).sum(axis=0) > 1)
        port = classes.port[vertex][self.egress[vertex, tied]]
        return [
            Session(
                interface=link.interface,
                number=FIRST_AS + there,
                preferred=tuple(
                    tuple(texts[d] for d in tied[port == link.port].tolist())
                    for texts in self.routed.prefixes
                ),
            )
            for link, there in zip(self.routed.switch(vertex).links, far.tolist(), strict=True)
        ]
