"""Assignment of a node's ports to its links and hosts.

By default links are spread evenly over all modules of a node, so that the failure of one module
costs as little as possible (`compilers.wiring.module_spread`); within a module they are ordered by
the rack at their other end. With `modules: filled` in the inventory, links to one rack leave from
as few modules as possible: groups of links, the largest first, go whole into the first module with
room. Without modules links take the ports in that order. Ports that are fixed by hand (*pins*) are
kept, and other links take the ports that are left.

A link or a host whose port is disabled moves to a spare port, in the order in which the inventory
lists disabled ports, and all others stay. So a port that breaks later moves one cable only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.topology.triangles import apex_links
from compilers.wiring.module_spread import dealt, half_turn, parted, runs, shares

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import NodeType


@dataclass(frozen=True, slots=True)
class TypePorts:
    """The ports of a node type; entry n - 1 of each list is that of port n."""

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
    def plugs(self) -> dict[str, tuple[int, int | None]]:
        """The port and the socket, from 0, by each name; None for all sockets of the port."""
        plugs: dict[str, tuple[int, int | None]] = {}
        for n, (name, sockets) in enumerate(zip(self.names, self.sockets, strict=True), 1):
            plugs[name] = (n, None)
            if len(sockets) > 1:
                plugs |= {socket: (n, k) for k, socket in enumerate(sockets)}
        return plugs

    @classmethod
    def of(cls, node_type: NodeType) -> TypePorts:
        """List the ports of a type, block after block."""
        names: list[str] = []
        module: list[int] = []
        fabric: list[int] = []
        either: list[int] = []
        host: list[int] = []
        sockets: list[tuple[str, ...]] = []
        for block in node_type.ports:
            numbers = range(len(names) + 1, len(names) + block.total + 1)
            first = module[-1] + 1 if module else 0
            module += (first + i // (block.count * block.breakout) for i in range(block.total))
            names += block.port_names()
            sockets += block.sockets()
            if block.role in ("fabric", "any"):
                fabric += numbers
            if block.role in ("host", "any"):
                (host if block.role == "host" else either).extend(numbers)
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
            host=(*host, *either),
            sockets=tuple(sockets),
        )

    def hosts(self, taken: Sequence[int], count: int) -> list[int]:
        """Return at most `count` ports for hosts that are not taken by links."""
        link_ports = set(taken)
        return [n for n in self.host if n not in link_ports][:count]

    def spare(self, broken: int, taken: Collection[int], host: bool = False) -> int:
        """Return a port that can replace a broken one, 0 if there is none.

        It has the same speed, lanes, MTU and number of cables. A port for this use only goes before
        one for links and hosts, and one of the same module before one of another.

        Args:
            broken: the number of the broken port.
            taken: the ports that are not free.
            host: whether a host uses the port, not a link.
        """
        usable, for_other_use = (self.host, self.fabric) if host else (self.fabric, self.host)
        wanted = self._kind(broken)
        fitting = [n for n in usable if n not in taken and self._kind(n) == wanted]
        module = self.module[broken - 1]
        return min(
            fitting,
            key=lambda n: (n in for_other_use, self.module[n - 1] != module),
            default=0,
        )

    def _kind(self, port: int) -> tuple[int | None, ...]:
        """Return the speed, lanes, MTU and number of cables of a port."""
        columns = (self.speed, self.lanes, self.mtu, self.parallel)
        return tuple(values[port - 1] for values in columns)

    def modular(self, links: int, hosts: int) -> dict[int, list[int]]:
        """Return the ports for links by module.

        These are ports of the same kind and role as the first one. If they are for links and hosts,
        as many as the hosts need are left out, from the fullest modules.

        Args:
            links: the number of links.
            hosts: the number of hosts.

        Returns:
            {} if all ports are on one module, or too few for the links.
        """
        for_both = {*self.fabric} & {*self.host}
        needed_by_hosts = max(0, hosts - len(self.host) + len(for_both))
        kind = {n: (n in for_both, *self._kind(n)) for n in self.fabric}
        ports: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            if kind[port] == kind[self.fabric[0]]:
                ports[self.module[port - 1]].append(port)
        if not self.fabric or self.fabric[0] not in for_both:
            needed_by_hosts = 0
        for _ in range(needed_by_hosts):
            max(ports.values(), key=len).pop()
            ports = {module: numbers for module, numbers in ports.items() if numbers}
            if not ports:
                return {}
        return ports if len(ports) > 1 and sum(map(len, ports.values())) >= links else {}

    def pack(self, sizes: Sequence[int], whole: bool, pinned: Sequence[int] = ()) -> list[int]:
        """Return a port for each link of groups of links, group by group.

        A group goes whole into the first module with room for it, else into the modules with most
        room. If ports run out, there are fewer ports than links.

        Args:
            sizes: the number of links of each group.
            whole: whether the node counts as one module.
            pinned: ports that are not free.
        """
        free: dict[int, list[int]] = defaultdict(list)
        for port in self.fabric:
            if port not in pinned:
                free[0 if whole else self.module[port - 1]].append(port)
        ports: list[int] = []
        for size in sizes:
            left = size
            while left and (open_modules := [m for m in free if free[m]]):
                fitting = [m for m in open_modules if len(free[m]) >= left]
                chosen = fitting[0] if fitting else max(open_modules, key=lambda m: len(free[m]))
                taken, free[chosen] = free[chosen][:left], free[chosen][left:]
                ports += taken
                left -= len(taken)
        return ports


@dataclass(frozen=True, slots=True, eq=False)
class PortGroups:
    """The order in which the links of S switches take ports."""

    order: NDArray[np.int64]
    """int64[S, K]: the links of each switch, group by group, the largest first."""
    sizes: NDArray[np.int32]
    """int32[S, G]: the links in each group, 0 beyond the last."""
    whole: bool
    """Whether modules do not matter to where groups go."""
    heading: NDArray[np.int32] | None = None
    """int32[S, K]: the numbers by which links are spread over modules, whatever their group.

    (`compilers.wiring.module_spread`.) None to fill module after module.
    """

    @classmethod
    def single(cls, far: NDArray[np.int32]) -> PortGroups:
        """Return all links of a switch as one group, in their order."""
        links = np.broadcast_to(np.arange(far.shape[1]), far.shape)
        return cls(links, np.count_nonzero(far >= 0, axis=1)[:, None].astype(np.int32), whole=True)

    @classmethod
    def of(
        cls, far: NDArray[np.int32], group: NDArray[np.int32], place: NDArray[np.int64]
    ) -> PortGroups:
        """Group the links of each switch by the vertex at the other end.

        Args:
            far: int32[S, K], the neighbour at each link, -1 beyond the last.
            group: int32[S], the group of each vertex.
            place: int64[S], the order of vertices within a group.
        """
        present = far >= 0
        no_group = np.int32(np.iinfo(np.int32).max)
        group_of_link = np.where(present, group[far], no_group)
        # The links sorted by group, the number of each group in that order, and its size.
        ordered = np.sort(group_of_link, axis=1)
        starts = np.ones(far.shape, bool)
        starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        number = np.cumsum(starts, axis=1) - 1
        row = np.arange(len(far))[:, None]
        sizes = np.zeros(far.shape, np.int32)
        np.add.at(sizes, (np.broadcast_to(row, far.shape), number), ordered != no_group)
        rank = np.argsort(np.argsort(group_of_link, axis=1, kind="stable"), axis=1, kind="stable")
        size_of_group = sizes[row, number[row, rank]]
        place_of_link = np.where(present, place[far], 0)
        order = np.lexsort((place_of_link, group_of_link, -size_of_group, ~present), axis=1)
        return cls(order, np.sort(sizes, axis=1)[:, ::-1], whole=False)


def alike_rows(rows: NDArray[np.integer]) -> list[tuple[list[int], NDArray[np.int64]]]:
    """Return the different rows of a table, int[N, M], and the places where each one is.

    They are in the order in which they first appear. A dictionary is used, as sorting wide rows
    takes longer than everything else in the wiring.

    >>> [(row, places.tolist()) for row, places in alike_rows(np.array([[1, 2], [3, 4], [1, 2]]))]
    [([1, 2], [0, 2]), ([3, 4], [1])]
    """
    number: dict[bytes, int] = {}
    which = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows], np.int64)
    places = [np.flatnonzero(which == n) for n in range(len(number))]
    return [(rows[place[0]].tolist(), place) for place in places]


Pins = Mapping[int, Mapping[int, int]]
"""Fixed ports, by switch and by the number of its link or host."""


def ports_of_links(
    far: NDArray[np.int32],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    pins: Pins,
    hosts: NDArray[np.int64],
    kept: Mapping[int, Collection[int]] = MappingProxyType({}),
) -> NDArray[np.int32]:
    """Return the port of each link, int32[S, K], 0 beyond the last and where ports have run out.

    Args:
        far: int32[S, K], the vertex at the other end of each link, -1 beyond the last.
        node_type: uint16[S] into types.
        types: the ports of each type.
        groups: the order in which links take ports.
        pins: the ports of links that are fixed.
        hosts: int64[S], how many hosts each switch has.
        kept: the ports that links leave to hosts, by switch.
    """
    port = np.zeros(far.shape, np.int32)
    # Switches of one type with groups of the same sizes are looked at together.
    shape = np.concatenate((node_type[:, None].astype(np.int32), groups.sizes), axis=1)
    for (t, *sizes), switches in alike_rows(shape):
        ports = np.array(types[t].pack([n for n in sizes if n], groups.whole), np.int32)
        port[switches[:, None], groups.order[switches, : len(ports)]] = ports
    is_spread = np.zeros(len(far), np.bool_)
    if groups.heading is not None:
        turn = half_turn(apex_links(far), far >= 0, groups.heading)
        is_spread = _spread(port, far, turn, node_type, types, groups, pins, hosts, kept)
    for switch in {**pins, **kept}:
        if is_spread[switch]:
            continue
        pinned, of_hosts = pins.get(switch, {}), kept.get(switch, ())
        free = [k for k in groups.order[switch].tolist() if far[switch, k] >= 0 and k not in pinned]
        sizes = _sizes_without(groups, switch, pinned)
        not_free = (*pinned.values(), *of_hosts)
        ports_left = types[node_type[switch]].pack(sizes, groups.whole, not_free)
        port[switch] = 0
        port[switch, free[: len(ports_left)]] = ports_left
        port[switch, list(pinned)] = list(pinned.values())
    return port


def _spread(
    port: NDArray[np.int32],
    far: NDArray[np.int32],
    turn: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    pins: Pins,
    hosts: NDArray[np.int64],
    kept: Mapping[int, Collection[int]],
) -> NDArray[np.bool_]:
    """Change the ports of switches whose links can be spread over several modules.

    Args:
        port: int32[S, K], the ports of links, which are changed.
        far: int32[S, K], the vertex at the other end of each link, -1 beyond the last.
        turn: int64[S, K], the links in the half turn (`module_spread.half_turn`).
        node_type: uint16[S] into types.
        types: the ports of each type.
        groups: the order in which links take ports.
        pins: the ports of links that are fixed.
        hosts: int64[S], how many hosts each switch has.
        kept: the ports that links leave to hosts, by switch.

    Returns:
        The switches whose links are spread, bool[S].
    """
    apex = apex_links(far)
    in_triangles = (apex >= 0).any(axis=1)
    degree = np.count_nonzero(far >= 0, axis=1)
    shape = np.column_stack((node_type, degree, hosts, in_triangles)).astype(np.int64)
    rank = np.argsort(groups.order, axis=1)
    is_spread = np.zeros(len(far), np.bool_)
    for (t, links, host_count, has_triangles), switches in alike_rows(shape):
        ports = types[t].modular(links, host_count)
        if not ports:
            continue
        is_spread[switches] = True
        room = [len(numbers) for numbers in ports.values()]
        share = shares(room, links, [0] * len(room))
        # A module for each link; in a graph without triangles links to one rack are separated.
        in_order = (turn if in_triangles.any() else groups.order)[switches, :links]
        module_of_place = np.array((runs if has_triangles else dealt)(share), np.int64)
        module = np.full((len(switches), far.shape[1]), len(room))
        np.put_along_axis(module, in_order, module_of_place[None], axis=1)
        for row in _with_triangle_on_module(module, apex[switches]).tolist():
            module[row] = parted(module[row].tolist(), apex[switches[row]].tolist(), set())
        by_module = np.lexsort((rank[switches], module), axis=1)[:, :links]
        used = [
            port_number
            for numbers, count in zip(ports.values(), share, strict=True)
            for port_number in numbers[:count]
        ]
        port[switches[:, None], by_module] = np.array(used, np.int32)
    for switch in {**pins, **kept}:
        if is_spread[switch]:
            pinned, of_hosts = pins.get(switch, {}), kept.get(switch, ())
            ports = types[node_type[switch]].modular(int(degree[switch]), int(hosts[switch]))
            ports = {m: [p for p in numbers if p not in of_hosts] for m, numbers in ports.items()}
            free = [k for k in turn[switch, : degree[switch]].tolist() if k not in pinned]
            room_left = sum(p not in pinned.values() for numbers in ports.values() for p in numbers)
            is_spread[switch] = room_left >= len(free)
            if is_spread[switch]:
                port[switch] = _around_pins(ports, free, pinned, apex[switch], rank[switch])
    return is_spread


def _with_triangle_on_module(
    module: NDArray[np.int64], apex: NDArray[np.int16]
) -> NDArray[np.int64]:
    """Return the switches, int64[m], with both links of a triangle on one module.

    Args:
        module: int64[n, K], the module of each link.
        apex: int16[n, K], the link to the apex of each link's triangle.
    """
    other = np.take_along_axis(module, np.maximum(apex, 0).astype(np.intp), axis=1)
    return np.flatnonzero(((apex >= 0) & (other == module)).any(axis=1))


def _around_pins(
    ports: Mapping[int, Sequence[int]],
    links: Sequence[int],
    pinned: Mapping[int, int],
    apex: NDArray[np.int16],
    rank: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the ports of a switch's links, int32[K], some of which are fixed.

    Args:
        ports: the ports for links by module.
        links: the links whose ports are not fixed, in the half turn.
        pinned: the fixed ports by link.
        apex: int16[K], the link to the apex of each link's triangle.
        rank: int64[K], the order of links within a module.
    """
    fixed = {*pinned.values()}
    free = [[p for p in numbers if p not in fixed] for numbers in ports.values()]
    module_of_port = {p: m for m, numbers in enumerate(ports.values()) for p in numbers}
    taken = [sum(module_of_port.get(p) == m for p in fixed) for m in range(len(free))]
    share = shares([len(numbers) for numbers in free], len(links), taken)
    # A link without a module has a number that no other link has.
    module = [-1 - k for k in range(len(apex))]
    for k, m in zip(links, runs(share), strict=True):
        module[k] = m
    for k, p in pinned.items():
        module[k] = module_of_port.get(p, module[k])
    immovable = {k for k in range(len(apex)) if k not in links}
    module = parted(module, apex.tolist(), immovable)
    port = np.zeros(len(apex), np.int32)
    for m, numbers in enumerate(free):
        on_module = sorted((k for k in links if module[k] == m), key=lambda k: rank[k])
        port[on_module] = numbers[: len(on_module)]
    port[list(pinned)] = list(pinned.values())
    return port


def _sizes_without(groups: PortGroups, switch: int, pinned: Mapping[int, int]) -> list[int]:
    """Return the sizes of a switch's groups of links, without links whose ports are fixed."""
    ends = np.cumsum(groups.sizes[switch])
    position = {k: i for i, k in enumerate(groups.order[switch].tolist())}
    sizes = groups.sizes[switch].copy()
    for k in pinned:
        sizes[np.searchsorted(ends, position[k], side="right")] -= 1
    return [int(size) for size in sizes if size]


def moved_to_spares(
    port: NDArray[np.int32],
    host_port: NDArray[np.int32],
    disabled: Mapping[int, Sequence[int]],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    pins: Pins,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Move links and hosts from disabled ports to spare ones, as far as there are any.

    Args:
        port: int32[S, K], the port of each link.
        host_port: int32[S, P], the port of each host.
        disabled: the numbers of disabled ports by switch, in the inventory's order.
        node_type: uint16[S] into types.
        types: the ports of each type.
        pins: the ports of links that are fixed, which stay. No host is fixed at a disabled port:
            `pins_of_hosts` refuses that.

    Returns:
        The ports of links and of hosts, shaped as before.
    """
    if not disabled:
        return port, host_port
    links, hosts = port.copy(), host_port.copy()
    for switch, broken in disabled.items():
        type_ports = types[node_type[switch]]
        for row, fixed, is_host in (
            (links[switch], pins.get(switch, {}), False),
            (hosts[switch], (), True),
        ):
            for number in broken:
                place = np.flatnonzero(row == number)
                if not place.size or int(place[0]) in fixed:
                    continue
                taken = {*links[switch].tolist(), *hosts[switch].tolist(), *broken}
                if spare := type_ports.spare(number, taken, is_host):
                    row[place[0]] = spare
    return links, hosts
