"""The forwarding rule of `Classes` in plain Python, a packet at a time.

It reads ports and cables only, follows every choice of every host, and shares no code with
`compilers.proof.walks.forwarding`; it is slow, and for small fabrics.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.walk import MOST_HOPS

Link = frozenset[int]
ARRIVED, LOST, LOOPED = "arrived", "lost", "looped"


class Oracle:
    """A fabric some of whose links (pairs of switches) and switches are down."""

    def __init__(self, build: Build, links: set[Link], switches: set[int]) -> None:
        classes, routes, wiring = build.tables.classes, build.tables.routes, build.wiring
        self.egress = routes.egress.tolist()
        self.here, self.nothing = local(routes.egress), no_route(routes.egress)
        self.rows = [
            {int(p): r for r, p in enumerate(routes.prefixes(s))} for s in range(len(self.egress))
        ]
        self.aggregate = routes.aggregate.tolist()
        self.port = classes.port.tolist()
        self.weighted = [
            [
                [p for p, w in zip([port, *more], weight, strict=True) if p and w]
                for port, more, weight in zip(*of_switch, strict=True)
            ]
            for of_switch in zip(
                self.port, classes.alternate.tolist(), classes.weight.tolist(), strict=True
            )
        ]
        self.protection = classes.protection.tolist()
        self.bounce = classes.bounce.tolist()
        self.cable = {
            (s, int(wiring.port[s, k])): (int(far), int(wiring.far_port[s, k]))
            for s, row in enumerate(wiring.far)
            for k, far in enumerate(row)
            if far >= 0
        }
        self.down = switches
        self.up = {
            end: far not in switches
            and end[0] not in switches
            and frozenset((end[0], far)) not in links
            for end, (far, _) in self.cable.items()
        }
        self.ends = [int(v) for v, has in enumerate(build.topology.endpoints) if has]

    def number(self, switch: int, destination: int) -> int:
        """The egress value by the longest prefix."""
        row = self.rows[switch].get(destination)
        if row is not None and self.egress[switch][row] != self.nothing:
            return int(self.egress[switch][row])
        return int(self.egress[switch][self.rows[switch][self.aggregate[destination]]])

    def transit(self, switch: int, came: int, destination: int) -> int | None:
        """The port that a packet leaves by, None where it is dropped."""
        number = self.number(switch, destination)
        port, protection = self.port[switch][number], self.protection[switch][number]
        order = self.bounce[switch][number] if came == port else [port, *protection]
        for p in order:
            if p and p != came and self.up[switch, p]:
                return int(p)
        return came if came and came in (port, *protection) else None

    def paths(self, source: int, destination: int) -> Iterator[tuple[list[int], str]]:
        """Every path that a host's packets may take, and how it ends."""
        number = self.number(source, destination)
        live = [p for p in self.weighted[source][number] if self.up[source, p]]
        for first in live or [self.transit(source, 0, destination)]:
            at, out, path = source, first, [source]
            while out is not None and len(path) <= MOST_HOPS:
                at, came = self.cable[at, out]
                path.append(at)
                if self.number(at, destination) == self.here:
                    break
                out = self.transit(at, came, destination)
            if at == destination:
                yield path, ARRIVED
            else:
                yield path, LOST if out is None else LOOPED

    def outcomes(self) -> Iterator[tuple[int, int, list[tuple[list[int], str]]]]:
        """The paths of every pair of switches that are up."""
        for s in self.ends:
            for d in self.ends:
                if s != d and not {s, d} & self.down:
                    yield s, d, list(self.paths(s, d))
