"""Rows for packets that carry their intermediate: a MAC address for each intermediate.

A packet of a host gets the address of an intermediate in the place of the gateway's, by a hash. In
the table of routes each of these addresses has a row, which leads where the route to the switch
leads. That switch itself sets the gateway's address back, and looks the packet up once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.wiring.addressing import CARRIED_BITS, carried_mac
from inventory.problems import InputError

PRIORITY = 200
"""The priority of rows by the address of an intermediate: above those of all prefixes."""


@dataclass(frozen=True, slots=True, eq=False)
class CarriedRows:
    """The rows of one switch, by the numbers of the M intermediates."""

    own: int
    """The number of the switch itself; -1: it is no intermediate."""
    egress: NDArray[np.int64]
    """int64[M]: the class that leads to each intermediate, -1 where no route does."""
    port: NDArray[np.int64]
    """int64[M]: the port to each intermediate that is a neighbour, where switches repair; else 0.

    A packet is sent to such a neighbour only while the port is up."""

    @classmethod
    def of(cls, build: Build, vertex: int) -> CarriedRows:
        """The rows of a switch."""
        w, ends = build.wiring, intermediates(build)
        number = np.full(build.tables.switches, -1)
        number[ends] = np.arange(len(ends))
        port = np.zeros(len(ends), np.int64)
        near = np.flatnonzero(w.far[vertex] >= 0)
        near = near[number[w.far[vertex, near]] >= 0]
        if build.forwarding.repairs:
            port[number[w.far[vertex, near]]] = w.port[vertex, near]
        return cls(int(number[vertex]), _egress(build, vertex)[ends], port)

    @property
    def others(self) -> NDArray[np.int64]:
        """int64[n]: the numbers of intermediates other than the switch itself."""
        return np.delete(np.arange(len(self.egress)), [self.own] if self.own >= 0 else [])


def require_numbers(build: Build) -> None:
    """Pass when every intermediate has an address.

    Raises:
        InputError: there are too many.
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
    """int64[S]: the class of a switch's packets to each destination, longest prefix first."""
    routes = build.tables.routes
    number, egress = routes.prefixes(vertex), routes.egress[vertex]
    leads = (egress != no_route(egress)) & (egress != local(egress))
    most = max(part.max(initial=0) for part in (number, routes.aggregate))
    rows = np.full(max(len(routes.aggregate), int(most) + 1), -1, np.int64)
    rows[number[leads]] = egress[leads]
    own = rows[: len(routes.aggregate)]
    covering = np.where(routes.aggregate >= 0, rows[routes.aggregate], -1)
    return np.where(own >= 0, own, covering)
