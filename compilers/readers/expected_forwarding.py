"""The forwarding that the tables of a build give one switch, in the form of `emitted_forwarding`.

What comes in is a build and a switch; what goes out is an `ExpectedSwitch`, with which
`switch_check` compares what the switch's files say. The rule of `Classes` is stated here once more,
and shares no code with what renders files, so that both have to be wrong for a fault to pass.

A *chain* is the sequence of *port sets* that a switch tries until one has a port that is up. The
ports of a set share packets by weight. For packets that get a mark, a port has another number
(`marked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import Chain, marked
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route


@dataclass(frozen=True, slots=True)
class Ability:
    """What a switch can do of what its tables ask for."""

    repairs: bool = True
    """Whether it tries several ports in order; if not, it has the first port only."""
    most_ports: int | None = None
    """How many ports can share the packets of a class: the minimal port, and the alternates with
    the greatest weights. None: any number."""

    def weight_of_port(self, ports: list[int], weights: list[int]) -> dict[int, int]:
        """The weights that the switch can have of those in the tables.

        Args:
            ports: the minimal port of a class and its alternates; 0: none.
            weights: the weights of these ports.

        >>> Ability(most_ports=2).weight_of_port([1, 2, 3, 0], [4, 1, 2, 0])
        {1: 4, 3: 2}
        """
        weight_of = {
            port: weight for port, weight in zip(ports, weights, strict=True) if port and weight
        }
        if self.most_ports is None or len(weight_of) <= self.most_ports:
            return weight_of
        alternates = [port for port in weight_of if port != ports[0]]
        heaviest = sorted(alternates, key=lambda port: -weight_of[port])[: self.most_ports - 1]
        chosen = {ports[0], *heaviest}
        return {port: weight for port, weight in weight_of.items() if port in chosen}


FULL_ABILITY = Ability()
"""The ability of a switch that can do everything."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedSwitch:
    """The forwarding of one switch by the tables.

    S is the number of destinations, C of egress classes, M the most ports that a class tries in
    order, A the most alternates. Port 0 is none. Arrays by class have a row more than there are
    classes, without ports: index -1, the class of destinations without a route, leads to it.
    """

    egress: NDArray[np.int64]
    """int64[S]: the egress class for each destination, -1: none."""
    order: NDArray[np.int64]
    """int64[C + 1, M]: the ports that each class tries for packets in transit: the minimal port,
    then those of fast reroute."""
    bounce: NDArray[np.int64]
    """int64[C + 1, M]: the ports that each class tries for packets that came in on its minimal
    port."""
    host_weights: list[dict[int, int]]
    """For each class, the weight of each port that shares packets from hosts. The number of a port
    is that of `marked` if packets to it get a mark."""
    only_minimal: bool
    """Whether classes have a minimal port only: neither alternates nor repair ports."""
    repairs: bool = True
    """Whether the switch tries several ports in order."""
    transit_ecmp: NDArray[np.int64] | None = None
    """int64[C + 1, 1 + A]: the ports that share packets in transit (ECMP at every hop), in classes
    with several such ports; zeros in the others. None: packets in transit are not shared."""

    @classmethod
    def of(cls, build: Build, vertex: int, ability: Ability = FULL_ABILITY) -> ExpectedSwitch:
        """The forwarding of a switch.

        Args:
            build: the build with the tables.
            vertex: the vertex of the switch.
            ability: what the switch can do of the tables.
        """
        classes = build.tables.classes
        # [C, 1 + A]: the minimal port of each class and its alternates, and their weights.
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        weights = classes.weight[vertex]
        order = np.column_stack((classes.port[vertex], classes.protection[vertex]))
        if not ability.repairs:
            order = order[:, :1]
        width = max(order.shape[1], classes.bounce.shape[2])
        beside_minimal = (classes.alternate, classes.protection, classes.bounce)
        return cls(
            egress=_egress(build, vertex),
            order=_zeros_last(_rows_of_width(order, width)),
            bounce=_rows_of_width(classes.bounce[vertex], width),
            host_weights=[
                _with_marks(
                    build, ports_of_class[0], ability.weight_of_port(ports_of_class, class_weights)
                )
                for ports_of_class, class_weights in zip(
                    ports.tolist(), weights.tolist(), strict=True
                )
            ],
            only_minimal=not any(array.shape[2] for array in beside_minimal),
            repairs=ability.repairs,
            transit_ecmp=_ecmp_ports(ports, weights) if build.forwarding.every_hop else None,
        )

    def from_hosts(self, egress: int) -> Chain:
        """The chain by which a class forwards packets from hosts."""
        order = tuple(((port, 1),) for port in self.order[egress].tolist() if port)
        weighted_ports = tuple(self.host_weights[egress].items())
        chain = (weighted_ports, *order) if weighted_ports else order
        return chain if self.repairs else chain[:1]

    def transit(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ports that n packets in transit try, one after the other.

        Args:
            egress: int64[n], the classes.
            in_port: int64[n], the ports where the packets came in.

        Returns:
            int64[n, L], 0: none. L is 1 without repairs, else M + 1, or M + 2 with ECMP at every
            hop.
        """
        ingress = in_port[:, None]
        order = self.order[egress]
        # Packets that came in on the minimal port try the bounce ports.
        ports = np.where(order[:, :1] == ingress, self.bounce[egress], order)
        # A packet that came in on a port of the class goes back there when nothing else is up.
        way_back = np.where((order == ingress).any(axis=1), in_port, 0)
        if self.transit_ecmp is not None:
            # Packets that came in on an ECMP port try the bounce ports, then the minimal port.
            bounce = np.column_stack((self.bounce[egress], order[:, 0]))
            came_by_ecmp = (self.transit_ecmp[egress] == ingress).any(axis=1, keepdims=True)
            ports = np.where(came_by_ecmp, bounce, np.pad(ports, ((0, 0), (0, 1))))
        # The ingress port is tried last only.
        tried = np.column_stack((np.where(ports == ingress, 0, ports), way_back))
        return tried if self.repairs else _zeros_last(tried)[:, :1]

    def transit_chain(self, egress: int, in_port: int) -> Chain:
        """The chain by which a class forwards packets in transit from a port."""
        classes, ports = np.array([egress]), np.array([in_port])
        if self.is_shared(classes, ports)[0]:
            return self.from_hosts(egress)
        tried = self.transit(classes, ports)[0].tolist()
        return tuple(((port, 1),) for port in tried if port)

    def is_shared(self, egress: NDArray[np.int64], in_port: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[n]: whether packets in transit are shared by weight, as packets from hosts are.

        They are with ECMP at every hop, unless a packet came in on one of the ECMP ports.
        """
        if self.transit_ecmp is None:
            return np.zeros(len(egress), np.bool_)
        ecmp = self.transit_ecmp[egress]
        came_elsewhere = (ecmp != in_port[:, None]).all(axis=1)
        shared: NDArray[np.bool_] = (ecmp > 0).any(axis=1) & came_elsewhere
        return shared

    def cannot_occur(
        self, egress: NDArray[np.int64], in_port: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """bool[n]: whether no packets of a class come in by a port.

        Packets come in by a port to which their class sends them only if a repair has sent them
        back, and in some builds no switch repairs. Then files may do anything with such packets.

        Args:
            egress: int64[n], their classes.
            in_port: int64[n], the ports where they would come in.
        """
        if self.only_minimal:
            from_minimal: NDArray[np.bool_] = self.order[egress, 0] == in_port
            return from_minimal
        if self.transit_ecmp is None or self.bounce.any():
            return np.zeros(len(egress), np.bool_)
        ecmp = self.transit_ecmp[egress]
        from_ecmp: NDArray[np.bool_] = (ecmp == in_port[:, None]).any(axis=1)
        return from_ecmp


def _ecmp_ports(ports: NDArray[np.int64], weight: NDArray[Any]) -> NDArray[np.int64]:
    """The ports with a weight, in classes with several of these.

    Args:
        ports: int64[C, 1 + A], the minimal port of each class and its alternates.
        weight: [C, 1 + A], their weights.

    Returns:
        int64[C + 1, 1 + A]; 0 in all other places.
    """
    with_weight = np.where(weight > 0, ports, 0)
    has_several = np.count_nonzero(with_weight, axis=1) > 1
    return _rows_of_width(np.where(has_several[:, None], with_weight, 0), with_weight.shape[1])


def _with_marks(build: Build, minimal: int, weight_of: dict[int, int]) -> dict[int, int]:
    """The weights of ports for packets from hosts; all ports but the minimal one mark packets."""
    if not build.forwarding.marks:
        return weight_of
    return {port if port == minimal else marked(port): weight for port, weight in weight_of.items()}


def _rows_of_width(ports: NDArray[np.integer[Any]], width: int) -> NDArray[np.int64]:
    """The rows in a wider array, with a row of zeros behind them."""
    wide = np.zeros((len(ports) + 1, width), np.int64)
    wide[:-1, : ports.shape[1]] = ports
    return wide


def _zeros_last(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in which zeros stand behind all ports."""
    return np.take_along_axis(ports, np.argsort(ports == 0, axis=1, kind="stable"), axis=1)


def _egress(build: Build, vertex: int) -> NDArray[np.int64]:
    """int64[S]: the egress class for each destination, by the longest prefix with a route."""
    routes = build.tables.routes
    switches = len(routes.egress)
    prefix_count = max(switches, int(routes.prefix.max(initial=0)) + 1)
    by_prefix = np.full(prefix_count, -1, np.int64)
    egress = routes.egress[vertex].astype(np.int64)
    has_route = egress < no_route(routes.egress)
    by_prefix[routes.prefixes(vertex)] = np.where(has_route, egress, -1)
    egress_by_destination = by_destination(by_prefix, routes.aggregate)
    # The switch's own prefix is connected, whatever aggregate covers it.
    egress_by_destination[vertex] = by_prefix[vertex]
    return egress_by_destination


def by_destination(by_prefix: NDArray[np.int64], aggregate: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[S]: for each destination the value of its longest prefix that has one, else -1.

    Args:
        by_prefix: int64[P], a value for each prefix, -1: none. The first S are of destinations.
        aggregate: int32[S], the shorter prefix that covers each destination, -1: none.
    """
    exact = by_prefix[: len(aggregate)]
    covering = np.where(aggregate >= 0, by_prefix[aggregate.clip(0)], -1)
    return np.where(exact >= 0, exact, covering)
