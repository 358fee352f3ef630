"""A fabric.yaml and an inventory.yaml that fit each other, for a user to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isqrt

from compilers.topology.families import build_topology, check_topology, parameters
from inventory.problems import InputError
from templates import environment

RACK_UNITS = 42
PORT_COUNTS = (16, 32, 64, 128, 256, 512, 1024, 2048)
"""How many ports switches have."""
SPARE_PORTS = 2
"""What a switch needs beside its links and hosts for one more cluster."""


@dataclass(frozen=True, slots=True)
class StarterRack:
    """A rack of the starter inventory: A1, A2, … in its row and column, from 0."""

    name: str
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class StarterFiles:
    """The values of both files.

    topology: the family and its parameters as YAML, within braces. ports: of a switch. racks: all,
    the last `free` of them empty. inventory: the file's name, "" for none.
    """

    name: str
    title: str
    topology: str
    nodes: int
    links: int
    diameter: int
    radix: int
    hosts: int
    ports: int
    racks: tuple[StarterRack, ...]
    free: int
    inventory: str

    @classmethod
    def of(
        cls,
        name: str,
        family: str,
        given: Mapping[str, int | str | None],
        hosts: int = 1,
        inventory: str = "",
    ) -> StarterFiles:
        """The values for a fabric of this name, family, parameters and hosts per node.

        Raises:
            InputError: there is no such family, or its parameters have no construction.
        """
        if problems := check_topology(family, given):
            raise InputError(problems)
        values = parameters(family, given)
        topology = build_topology(family, values)
        nodes, radix = topology.graph.order, int(topology.graph.degrees.max())
        wanted = radix + hosts + SPARE_PORTS
        racks = ceil(nodes / RACK_UNITS)
        free = max(1, ceil((radix + 1) / RACK_UNITS))
        return cls(
            name=name,
            title=topology.title(),
            topology=", ".join(f"{k}: {v}" for k, v in {"family": family, **values}.items()),
            nodes=nodes,
            links=topology.graph.size,
            diameter=topology.diameter,
            radix=radix,
            hosts=hosts,
            ports=next((count for count in PORT_COUNTS if count >= wanted), wanted),
            racks=_racks(racks + free),
            free=free,
            inventory=inventory,
        )

    def fabric(self) -> str:
        """The text of fabric.yaml."""
        return environment().get_template("starter/fabric.yaml.j2").render(s=self)

    def hardware(self) -> str:
        """The text of inventory.yaml."""
        return environment().get_template("starter/inventory.yaml.j2").render(s=self)


def _racks(count: int) -> tuple[StarterRack, ...]:
    """So many racks, about a square of them: rows A, B, …, columns from 1."""
    columns = isqrt(count - 1) + 1
    places = (divmod(i, columns) for i in range(count))
    return tuple(StarterRack(f"{_letters(row)}{c + 1}", row, c) for row, c in places)


def _letters(number: int) -> str:
    """A, B, … Z, AA, AB, … for 0, 1, …"""
    more, last = divmod(number, 26)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
