"""The rows of each switch for packets that carry an *intermediate* as their MAC address.

A balance with intermediates sends each packet to a switch chosen by a hash, and from there to its
destination. The first switch writes the MAC address of the intermediate into the packet, in the
place of the gateway's. In the table of routes each of these addresses has a row, with the egress
class of the route to that switch. The intermediate itself writes the gateway's address back, and
looks the packet up once more. `Encoder` makes messages of these rows (`carried_row_bytes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.wiring.mac_addresses import CARRIED_BITS, carried_mac
from inventory.problems import InputError

PRIORITY = 200
"""The priority of rows by the address of an intermediate: above those of all prefixes."""


@dataclass(frozen=True, slots=True, eq=False)
class CarriedRows:
    """The rows of one switch. The M intermediates are numbered from 0 in the order of vertices."""

    own_number: int
    """The number of the switch itself among the intermediates; -1: it is none."""
    egress: NDArray[np.int64]
    """int64[M]: the egress class of the route to each intermediate; -1: there is no route, or it is
    a drained neighbour (`Tables.avoided`), and packets go on to their destination."""
    port: NDArray[np.int64]
    """int64[M]: the port to each intermediate that is a neighbour, if switches repair; else 0.

    A packet is sent to such a neighbour only while the port is up."""

    @classmethod
    def of(cls, build: Build, vertex: int) -> CarriedRows:
        """The rows of a switch."""
        vertices = intermediates(build)
        # int[S]: the number of each switch among the intermediates; -1: it is none.
        number = np.full(build.tables.switches, -1)
        number[vertices] = np.arange(len(vertices))

        # The links of the switch to neighbours that are intermediates.
        far = build.wiring.far[vertex]
        links = np.flatnonzero(far >= 0)
        links = links[number[far[links]] >= 0]
        neighbours = far[links]

        egress = _egress(build, vertex)[vertices]
        if avoided := build.tables.avoided:
            drained = neighbours[avoided.switches[neighbours]]
            egress[number[drained]] = -1
        port = np.zeros(len(vertices), np.int64)
        if build.forwarding.repairs:
            port[number[neighbours]] = build.wiring.port[vertex, links]
        return cls(own_number=int(number[vertex]), egress=egress, port=port)

    @property
    def others(self) -> NDArray[np.int64]:
        """int64[n]: the numbers of intermediates other than the switch itself."""
        numbers = np.arange(len(self.egress))
        others: NDArray[np.int64] = numbers[numbers != self.own_number]
        return others


def require_numbers(build: Build) -> None:
    """Check that there is a MAC address for every intermediate.

    Raises:
        InputError: there are too many intermediates.
    """
    if build.forwarding.intermediates and (count := len(intermediates(build))) > 1 << CARRIED_BITS:
        raise InputError.of(
            key="routing.balance",
            required=f"at most {1 << CARRIED_BITS:,} switches with hosts, as each has a MAC "
            "address",
            given=f"{build.balance} in a fabric with {count:,}",
            todo="write compact-valiant",
        )


def carried_addresses(build: Build) -> range:
    """The MAC address of each intermediate, by its number."""
    first = carried_mac(build.addressing.gateway_mac)
    return range(first, first + len(intermediates(build)))


def _egress(build: Build, vertex: int) -> NDArray[np.int64]:
    """int64[S]: the egress class of a switch's packets to each destination switch, -1 for none.

    The prefix of the destination goes before the aggregate that covers this prefix.
    """
    routes = build.tables.routes
    switches = len(routes.aggregate)
    # The routes of the switch, with the class of each.
    prefix, egress = routes.prefixes(vertex), routes.egress[vertex]
    has_next_hop = (egress != no_route(egress)) & (egress != local(egress))
    # Numbers below S are the prefixes of the switches themselves, others are aggregates.
    last_prefix = max(int(prefix.max(initial=0)), int(routes.aggregate.max(initial=0)))
    class_of_prefix = np.full(max(switches, last_prefix + 1), -1, np.int64)
    class_of_prefix[prefix[has_next_hop]] = egress[has_next_hop]
    own_class = class_of_prefix[:switches]
    class_of_aggregate = np.where(routes.aggregate >= 0, class_of_prefix[routes.aggregate], -1)
    return np.where(own_class >= 0, own_class, class_of_aggregate)
