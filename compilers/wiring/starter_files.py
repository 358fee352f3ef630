"""A fabric.yaml and an inventory.yaml that fit each other, for a user to begin with.

`polarfab init` writes them. `StarterFiles` has the values that the templates print.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isqrt
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from compilers.spec.balance_words import FIGURES_FABRIC
from compilers.spec.balances import HostThroughput, balance_for, measured_balances
from compilers.topology.families import build_topology, check_topology, parameters
from compilers.topology.replicated_clusters import METHODS, growth_problems
from inventory.problems import InputError
from templates import environment

RACK_UNITS = 42
"""The height of a rack."""
PORT_COUNTS = (16, 32, 64, 128, 256, 512, 1024, 2048)
"""The numbers of ports that switches are sold with."""
SPARE_PORTS = 2
"""The ports that a switch needs besides its links and hosts to grow by one more cluster."""


@dataclass(frozen=True, slots=True)
class StarterRack:
    """A rack of the starter inventory."""

    name: str
    """The name: A1, A2, …."""
    row: int
    """The row, from 0."""
    column: int
    """The column, from 0."""


@dataclass(frozen=True, slots=True)
class StarterFiles:
    """The values of both files."""

    name: str
    """The name of the fabric."""
    title: str
    """The family and its parameters in words."""
    topology: str
    """The family and its parameters as YAML, within braces."""
    nodes: int
    """How many switches there are."""
    links: int
    """How many links there are."""
    diameter: int
    """The most links of a shortest path."""
    radix: int
    """The most links of a switch."""
    hosts: int
    """The hosts of most switches."""
    ports: int
    """The ports of a switch."""
    racks: tuple[StarterRack, ...]
    """All racks."""
    empty_racks: int
    """How many racks stay empty: the last ones."""
    fuller: tuple[int, ...]
    """The vertices with one host more than `hosts`."""
    traffic: str
    """The traffic that the user named; "" for none."""
    routing: str
    """The policy for this traffic as YAML, within braces; "" for none."""
    grows: bool
    """Whether `polarfab expand` can add switches."""
    figures: ClassVar[Mapping[str, HostThroughput]] = MappingProxyType(measured_balances())
    """What hosts could send with each balance, by measurements."""
    figures_of: ClassVar[str] = FIGURES_FABRIC
    """The fabric in which `figures` were measured."""

    @classmethod
    def of(
        cls,
        name: str,
        family: str,
        chosen_parameters: Mapping[str, int | str | None],
        hosts: int = 1,
        *,
        more: int = 0,
        ports: int | None = None,
        traffic: str = "",
    ) -> StarterFiles:
        """Return the values for a fabric.

        Args:
            name: the name of the fabric.
            family: the family of its topology.
            chosen_parameters: the topology's parameters.
            hosts: the hosts of a switch.
            more: how many switches have one host more.
            ports: the ports of a switch; None for as many as are needed, and some to spare.
            traffic: the traffic that the balance shall suit, one of `TRAFFIC`; "" for any.

        Raises:
            InputError: there is no such family, or no member with these parameters.
        """
        if problems := check_topology(family, chosen_parameters):
            raise InputError(problems)
        values = parameters(family, chosen_parameters)
        topology = build_topology(family, values)
        nodes, radix = topology.graph.order, int(topology.graph.degrees.max())
        most_hosts = hosts + 1 if more else hosts
        needed_ports = radix + most_hosts + SPARE_PORTS
        racks = ceil(nodes / RACK_UNITS)
        # Room for one more cluster, which has at most radix + 1 switches.
        empty_racks = max(1, ceil((radix + 1) / RACK_UNITS))
        return cls(
            name=name,
            title=topology.title(),
            topology=", ".join(f"{k}: {v}" for k, v in {"family": family, **values}.items()),
            nodes=nodes,
            links=topology.graph.size,
            diameter=topology.diameter,
            radix=radix,
            hosts=hosts,
            ports=ports or _smallest_switch(needed_ports),
            racks=_racks(racks + empty_racks),
            empty_racks=empty_racks,
            fuller=tuple(_evenly_spaced(np.flatnonzero(topology.endpoints), more)),
            traffic=traffic,
            routing=balance_for(traffic, topology) if traffic else "",
            grows=any(not growth_problems(topology, method, 1) for method in METHODS),
        )

    @property
    def fuller_count(self) -> int:
        """How many switches have one host more than `hosts`."""
        return len(self.fuller)

    def texts(self) -> dict[str, str]:
        """Return the text of both files, by name."""
        names = "fabric.yaml", "inventory.yaml"
        return {
            # `s` is short for these starter files in the templates.
            name: environment().get_template(f"starter/{name}.j2").render(s=self)
            for name in names
        }


def _smallest_switch(needed_ports: int) -> int:
    """Return the ports of the smallest switch on sale with enough ports, or their number."""
    sold = (count for count in PORT_COUNTS if count >= needed_ports)
    return next(sold, needed_ports)


def _evenly_spaced(vertices: NDArray[np.int64], count: int) -> list[int]:
    """Return `count` of the vertices, evenly spaced."""
    chosen: list[int] = vertices[np.arange(count) * len(vertices) // max(count, 1)].tolist()
    return chosen


def _racks(count: int) -> tuple[StarterRack, ...]:
    """Return `count` racks in about a square, with rows A, B, … and columns from 1."""
    columns = isqrt(count - 1) + 1
    places = (divmod(i, columns) for i in range(count))
    return tuple(StarterRack(f"{_letters(row)}{c + 1}", row, c) for row, c in places)


def _letters(number: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1, …."""
    more, last = divmod(number, 26)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
