"""The ports of node types and of switches, and which of them links and hosts may take.

`port_assignment` and `port_plan` choose ports with the methods of `TypePorts`. The node types come
from the inventory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType


class NamedSockets(NamedTuple):
    """What a name at a node stands for: a port with all its sockets, or one of its sockets."""

    port: int
    """The number of the port, from 1."""
    socket: int | None
    """The number of the socket in the port, from 0; None for all sockets."""


@dataclass(frozen=True, slots=True)
class TypePorts:
    """The ports of a node type. Ports count from 1: entry n - 1 of each list is that of port n."""

    names: tuple[str, ...]
    """The name of each port."""
    labels: tuple[str, ...]
    """What is printed next to each port."""
    module: tuple[int, ...]
    """The module or port block of each port, from 0."""
    speed: tuple[int | None, ...]
    """The speed of each port in Gb/s, None where unknown."""
    lanes: tuple[int | None, ...]
    """The lanes of each port, None where unknown."""
    mtu: tuple[int | None, ...]
    """The largest IP packet of each port in bytes, None where unknown."""
    fabric: tuple[int, ...]
    """The numbers of the ports that links may take, in order."""
    host: tuple[int, ...]
    """The numbers of the ports that hosts may take, in order."""
    sockets: tuple[tuple[str, ...], ...]
    """The names of the sockets of each port: one for each cable that it takes."""

    @property
    def parallel(self) -> tuple[int, ...]:
        """How many cables each port takes."""
        return tuple(map(len, self.sockets))

    @property
    def sockets_by_name(self) -> dict[str, NamedSockets]:
        """What each name of a port, and each name of a socket, stands for."""
        by_name: dict[str, NamedSockets] = {}
        for port, (name, sockets) in enumerate(zip(self.names, self.sockets, strict=True), 1):
            by_name[name] = NamedSockets(port, None)
            if len(sockets) > 1:
                by_name |= {socket: NamedSockets(port, k) for k, socket in enumerate(sockets)}
        return by_name

    @classmethod
    def of(cls, node_type: NodeType) -> TypePorts:
        """List the ports of a type, block after block."""
        names: list[str] = []
        module: list[int] = []
        fabric: list[int] = []
        host: list[int] = []
        any_role: list[int] = []
        sockets: list[tuple[str, ...]] = []
        for block in node_type.ports:
            numbers = range(len(names) + 1, len(names) + block.total + 1)
            first_module = module[-1] + 1 if module else 0
            ports_of_module = block.count * block.breakout
            module += (first_module + i // ports_of_module for i in range(block.total))
            names += block.port_names()
            sockets += block.sockets()
            if block.role in ("fabric", "any"):
                fabric += numbers
            if block.role == "host":
                host += numbers
            elif block.role == "any":
                any_role += numbers
        block_of_port = [block for block in node_type.ports for _ in range(block.total)]
        return cls(
            names=tuple(names),
            labels=tuple(node_type.labels()),
            module=tuple(module),
            speed=tuple(block.speed for block in block_of_port),
            lanes=tuple(block.lanes for block in block_of_port),
            mtu=tuple(block.mtu for block in block_of_port),
            fabric=tuple(fabric),
            # Host-only ports first: ports of either use stay free for links as long as they can.
            host=(*host, *any_role),
            sockets=tuple(sockets),
        )

    def free_host_ports(self, used: Sequence[int], count: int) -> list[int]:
        """Return the first ports for hosts that are not used, at most `count`."""
        in_use = set(used)
        return [n for n in self.host if n not in in_use][:count]

    def replacement(self, broken: int, used: Collection[int], is_host: bool = False) -> int:
        """Return a port that can replace a broken one, 0 if there is none.

        It has the same speed, lanes, MTU and number of cables. A port for this use only goes before
        one for links and hosts, and one of the same module before one of another.

        Args:
            broken: the number of the broken port.
            used: the ports that are not free.
            is_host: whether a host uses the port, not a link.
        """
        usable, for_other_use = (self.host, self.fabric) if is_host else (self.fabric, self.host)
        kind = self._kind(broken)
        module = self.module[broken - 1]
        free_alike = [n for n in usable if n not in used and self._kind(n) == kind]

        def preference(port: int) -> tuple[bool, bool]:
            """The sorting key of a port: the smallest comes first."""
            return port in for_other_use, self.module[port - 1] != module

        return min(free_alike, key=preference, default=0)

    def _kind(self, port: int) -> tuple[int | None, ...]:
        """Return the speed, lanes, MTU and number of cables of a port."""
        columns = (self.speed, self.lanes, self.mtu, self.parallel)
        return tuple(values[port - 1] for values in columns)

    def ports_by_module(self, links: int, hosts: int) -> dict[int, list[int]]:
        """Return the ports for links by module.

        These are ports of the same kind and role as the first one. If they are for links and hosts,
        as many as the hosts need are left out, from the fullest modules.

        Args:
            links: the number of links.
            hosts: the number of hosts.

        Returns:
            {} if all ports are on one module, or too few for the links.
        """
        if not self.fabric:
            return {}
        for_both = {*self.fabric} & {*self.host}
        first = self.fabric[0]
        ports: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            same_role = (port in for_both) == (first in for_both)
            if same_role and self._kind(port) == self._kind(first):
                ports[self.module[port - 1]].append(port)
        # Hosts take host-only ports first, and so need only what these lack of the shared ones.
        needed_by_hosts = 0
        if first in for_both:
            needed_by_hosts = max(0, hosts - len(self.host) + len(for_both))
        for _ in range(needed_by_hosts):
            max(ports.values(), key=len).pop()
            ports = {module: numbers for module, numbers in ports.items() if numbers}
            if not ports:
                return {}
        has_room = sum(map(len, ports.values())) >= links
        return ports if len(ports) > 1 and has_room else {}

    def ports_for_groups(
        self, sizes: Sequence[int], is_one_module: bool, pinned: Sequence[int] = ()
    ) -> list[int]:
        """Return a port for each link of groups of links, group by group.

        A group goes whole into the first module with room for it, else into the modules with most
        room. If ports run out, there are fewer ports than links.

        Args:
            sizes: the number of links of each group.
            is_one_module: whether the node counts as one module.
            pinned: ports that are not free.
        """
        free: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            if port not in pinned:
                free[0 if is_one_module else self.module[port - 1]].append(port)
        ports: list[int] = []
        for size in sizes:
            unplaced = size
            while unplaced:
                open_modules = [module for module in free if free[module]]
                if not open_modules:
                    return ports
                with_room = [module for module in open_modules if len(free[module]) >= unplaced]
                most_room = max(open_modules, key=lambda module: len(free[module]))
                module = with_room[0] if with_room else most_room
                ports_of_group = free[module][:unplaced]
                free[module] = free[module][unplaced:]
                ports += ports_of_group
                unplaced -= len(ports_of_group)
        return ports


@dataclass(frozen=True, slots=True, eq=False)
class SwitchPorts:
    """The ports of S switches, by their node types."""

    node_type: NDArray[np.uint16]
    """uint16[S]: the type of each switch, an index into `types`."""
    types: Sequence[TypePorts]
    """The ports of each type."""
    disabled: Mapping[int, Sequence[int]]
    """The numbers of disabled ports, in the inventory's order, by the switches that have any."""

    @classmethod
    def of_nodes(cls, inventory: Inventory, nodes: Sequence[Node]) -> SwitchPorts:
        """List the ports of the nodes of an inventory, in vertex order."""
        number_of_type = {name: t for t, name in enumerate(inventory.node_types)}
        node_type = np.array([number_of_type[node.type] for node in nodes], np.uint16)
        types = [TypePorts.of(model) for model in inventory.node_types.values()]
        disabled = {
            v: [types[node_type[v]].names.index(name) + 1 for name in node.disabled_ports]
            for v, node in enumerate(nodes)
            if node.disabled_ports
        }
        return cls(node_type, types, disabled)

    def of_switch(self, switch: int) -> TypePorts:
        """Return the ports of a switch."""
        return self.types[int(self.node_type[switch])]
