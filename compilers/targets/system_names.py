"""The names that a system has for nodes and ports, in configurations and in outputs of devices.

`render` and `explain --target` write these names; `check wiring`, `check routes` and `push`
recognise them in what devices print. `Target.names` makes the `SystemNames` of a build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compilers.tables.build import Build
from compilers.targets.routed.interfaces import (
    NOT_ABBREVIATED,
    Abbreviation,
    Interfaces,
    PhysicalPort,
)
from compilers.wiring.wiring import Wiring

LONGEST_HOSTNAME = 63
"""The most characters of a host name (RFC 1123, section 2.1)."""
PORT_DESCRIPTION = "{node} {port}"
"""The description of a port on most systems, by the node and the port at the other end."""


def hostname(node: str) -> str:
    """A host name that every system takes: two or more letters, digits and -, a letter first.

    >>> hostname("7_leaf")
    'sw-7-leaf'
    """
    text = re.sub(r"[^A-Za-z0-9-]", "-", node).rstrip("-")
    if len(text) == 1 or not text[:1].isalpha():
        text = f"sw-{text}"
    return text[:LONGEST_HOSTNAME].rstrip("-")


@dataclass(frozen=True)
class SystemNames:
    """The names that a system has for the nodes and the ports of a build."""

    wiring: Wiring
    """The wiring, with ports named as the system names them."""
    nodes: tuple[str, ...]
    """The host name of each vertex."""
    physical_ports: tuple[tuple[PhysicalPort, ...], ...] = ()
    """The ports of each node type, by number; () where ports are named as in the build."""
    abbreviation: Abbreviation = NOT_ABBREVIATED
    """How outputs of devices abbreviate names of ports."""
    description_format: str = PORT_DESCRIPTION
    """The description of a port, with the fields `node` and `port` for the other end."""
    wiring_by_own_systems: Wiring | None = None
    """The wiring with the ports of each node named by its own system, for the ports at far ends;
    None where all nodes have one system."""

    @classmethod
    def of(
        cls,
        build: Build,
        host: Callable[[str], str] = str,
        interfaces: Interfaces | None = None,
        description_format: str = PORT_DESCRIPTION,
        target: str = "",
    ) -> SystemNames:
        """The names for a build.

        Args:
            build: the build.
            host: makes the host name of a node from its name.
            interfaces: how the system names its ports; None: as the build does.
            description_format: the description of a port, with the fields `node` and `port` for
                the other end.
            target: a target whose names in node types are preferred to the system's.
        """
        nodes = tuple(map(host, build.wiring.names))
        if interfaces is None:
            return cls(build.wiring, nodes, description_format=description_format)
        return cls(
            wiring=interfaces.named(build, target).wiring,
            nodes=nodes,
            physical_ports=tuple(map(tuple, interfaces.ports(build, target))),
            abbreviation=interfaces.abbreviation,
            description_format=description_format,
        )

    def names_of_ports(self, node_type: int) -> list[tuple[str, ...]]:
        """For each port of a node type, by number, all its names, that in configurations first."""
        beginning, short_beginning = self.abbreviation
        ports = self.physical_ports[node_type] if self.physical_ports else ()
        all_names = []
        for number, name in enumerate(self.wiring.port_names[node_type]):
            names = [name]
            if beginning and name.startswith(beginning):
                names.append(name.replace(beginning, short_beginning, 1))
            if number < len(ports):
                names.append(ports[number].alias)
            all_names.append(tuple(dict.fromkeys(filter(None, names))))
        return all_names

    def description(self, far: int, far_port: int) -> str:
        """The description of a port whose cable leads to port `far_port` of vertex `far`."""
        port = (self.wiring_by_own_systems or self.wiring).port_name(far, far_port)
        return self.description_format.format(node=self.nodes[far], port=port)

    def descriptions(self, vertex: int) -> Iterator[tuple[str, int]]:
        """The descriptions of a switch's ports to other switches, with the ports' numbers."""
        wiring = self.wiring
        columns = (column[vertex].tolist() for column in (wiring.port, wiring.far, wiring.far_port))
        for port, far, far_port in zip(*columns, strict=True):
            if far >= 0:
                yield self.description(far, far_port), port

    @cached_property
    def _vertices(self) -> dict[str, int]:
        """The vertex of each host name, in lower case."""
        return {hostname(name).lower(): vertex for vertex, name in enumerate(self.wiring.names)}

    def vertex(self, name: str) -> int | None:
        """The vertex of a device by its own host name; None: no node has that name.

        The name may be in upper or lower case, with or without a domain.
        """
        without_domain = name.partition(".")[0]
        for host_name in (hostname(name).lower(), hostname(without_domain).lower()):
            if host_name in self._vertices:
                return self._vertices[host_name]
        return None
