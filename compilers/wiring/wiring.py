"""Wiring: the node of each vertex, the port at both ends of each link, and the ports of hosts.

Link k of a switch leads to its k-th neighbour, in ascending order; `compilers.tables` numbers
classes by it. On a node without modules the k-th link takes the k-th fabric port; where there are
racks, links to one rack take consecutive ports; over several modules links are spread
(`port_assignment`). Disabled ports are avoided while spare ones are left. The same topology and
inventory give the same wiring on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import Installed
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import is_whole
from compilers.wiring.fixed_cables import pins_of, pins_of_hosts, unequal_ports, with_installed
from compilers.wiring.port_assignment import (
    FixedPorts,
    Pins,
    PortDemand,
    PortGroups,
    alike_rows,
    moved_to_spares,
    ports_of_links,
)
from compilers.wiring.type_ports import TypePorts
from compilers.wiring.wiring_checks import PlacedNodes, Shortage
from inventory.asn_range import PRIVATE_AS
from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType

CABLE_ROWS_AT_ONCE = 1 << 14
"""The most switches whose cables are looked up together."""
GENERATED = "generated"
"""The node type of fabrics without an inventory."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wiring:
    """The cables of S switches with at most K links and P hosts each."""

    names: Annotated[tuple[str, ...], "S", "name"]
    """The name of each switch."""
    management: Annotated[tuple[str, ...], "S"]
    """The management address of each switch; "" without one."""
    host_names: Annotated[tuple[str, ...], "hosts", "name"]
    """The names of all hosts, S·P texts, vertex by vertex."""
    datapath_id: Annotated[NDArray[np.uint64], "S"]
    """uint64[S]: the OpenFlow datapath id of each switch."""
    port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port of the k-th link, 0 beyond the last."""
    far: Annotated[NDArray[np.int32], "S K", "-1..S"]
    """int32[S, K]: the vertex at the other end, -1 beyond the last."""
    far_port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port at the other end, 0 beyond the last."""
    host_port: Annotated[NDArray[np.int32], "S P", "0..ports+1"]
    """int32[S, P]: the port of each host, 0 where there is no host."""
    node_type: Annotated[NDArray[np.uint16], "S", "0..types"]
    """uint16[S]: the type of each switch, an index into type_names and port_names."""
    type_names: Annotated[tuple[str, ...], "types"]
    """The names of node types."""
    port_names: Annotated[tuple[tuple[str, ...], ...], "types"]
    """port_names[t][n - 1] names port n of type t."""

    def __repr__(self) -> str:
        """`<Wiring: 57 switches, 224 cables, 57 hosts>`."""
        cables, hosts = (self.port > 0).sum() // 2, (self.host_port > 0).sum()
        return f"<Wiring: {len(self.names):,} switches, {cables:,} cables, {hosts:,} hosts>"

    def port_name(self, vertex: int, port: int) -> str:
        """Return the name that the operating system of the vertex's node gives the port."""
        return self.port_names[int(self.node_type[vertex])][port - 1]

    def port_name_numbers(self, number_of: dict[str, int]) -> NDArray[np.int64]:
        """Return a number for the name of each port, int64[types, ports + 1].

        Args:
            number_of: the number of each name, to which new names are added.
        """
        widest = max(len(names) for names in self.port_names)
        numbers = np.zeros((len(self.port_names), widest + 1), np.int64)
        for node_type, names in enumerate(self.port_names):
            of_type = [number_of.setdefault(name, len(number_of)) for name in names]
            numbers[node_type, 1 : len(names) + 1] = of_type
        return numbers

    def same_ports(self, other: Wiring) -> bool:
        """Whether every link uses the same ports as in another wiring."""
        fields = ("port", "far", "far_port")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in fields)

    def link_ports(self) -> dict[tuple[int, int], str]:
        """Return the name of each link's port at the first of the two vertices that it joins."""
        return {
            (u, int(self.far[u, k])): self.port_name(u, int(self.port[u, k]))
            for u, k in np.argwhere((self.far >= 0) & (self.port > 0)).tolist()
        }

    def host_ports(self) -> dict[tuple[int, int], str]:
        """Return the name of each host's port, by its vertex and its number there."""
        hosts = np.argwhere(self.host_port > 0).tolist()
        return {(v, h): self.port_name(v, int(self.host_port[v, h])) for v, h in hosts}

    def host_numbers(self) -> dict[tuple[int, str], int]:
        """Return the number of each host at its switch, from 0, by its vertex and its name."""
        width = self.host_port.shape[1]
        return {(i // width, name): i % width for i, name in enumerate(self.host_names)}

    def ends(self, vertex: int) -> list[tuple[int, int, int]]:
        """Return the links of a vertex: its port, the vertex at the far end, and the port there."""
        cabled = self.far[vertex] >= 0
        columns = (x[vertex][cabled].tolist() for x in (self.port, self.far, self.far_port))
        return list(zip(*columns, strict=True))

    def each_cable(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each cable once: a switch, its port, the larger switch at the far end, its port."""
        switch, link = self.links()
        ends = (x[switch, link].tolist() for x in (self.port, self.far, self.far_port))
        return zip(switch.tolist(), *ends, strict=True)

    def links(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all links in order: the smaller switch, and its number there, int64[E] each."""
        switch, link = np.nonzero(self.far > np.arange(len(self.far))[:, None])
        return switch, link

    def link_ends(self) -> NDArray[np.int64]:
        """Return the switches that each link joins, int64[E, 2], the smaller first."""
        switch, link = self.links()
        return np.stack((switch, self.far[switch, link]), axis=1).astype(np.int64)

    def cables(self) -> NDArray[np.int32]:
        """Return the vertex at the other end of each port, int32[S, ports + 1], -1 for none.

        Columns are port numbers, which begin with 1.
        """
        widest = max(len(names) for names in self.port_names)
        table = np.full((len(self.names), widest + 1), -1, np.int32)
        for first in range(0, len(table), CABLE_ROWS_AT_ONCE):
            block = slice(first, first + CABLE_ROWS_AT_ONCE)
            switch, link = np.nonzero(self.far[block] >= 0)
            table[block][switch, self.port[block][switch, link]] = self.far[block][switch, link]
        return table


def links_by_port(far: NDArray[np.int32], port: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the link at each port, int16[S, ports + 1], -1 for a port without a cable.

    Args:
        far: `Wiring.far`.
        port: `Wiring.port`.
    """
    table = np.full((len(far), int(port.max(initial=0)) + 1), -1, np.int16)
    switch, link = np.nonzero(far >= 0)
    table[switch, port[switch, link]] = link
    return table


def generated_inventory(
    topology: Topology, hosts_per_node: int, plane: int = 0, names: Sequence[str] = ()
) -> Inventory:
    """Return an inventory that just fits a topology: one node type, and a node for each vertex.

    Fabric ports come first and are as many as the largest degree, so the host ports have the same
    numbers on every switch.

    Args:
        topology: the fabric.
        hosts_per_node: the host ports of a node.
        plane: from 1, where there are several; the names of nodes begin with it.
        names: the names that a graph's file gives the vertices, () to number nodes.
    """
    from inventory.model import Inventory, Node

    template = Node.model_construct(name="", type=GENERATED)
    return Inventory.model_construct(
        node_types={GENERATED: generated_type(int(topology.graph.degrees.max()), hosts_per_node)},
        nodes=tuple(
            template.model_copy(update={"name": f"{of_plane(plane)}{name}", "vertex": v})
            for v, name in enumerate(names or range(topology.graph.order))
        ),
    )


def generated_type(links: int, hosts: int, more: int = 0) -> NodeType:
    """Return the node type `generated`: ports for links, then for hosts, then for more links."""
    from inventory.model import NodeType, PortBlock, PortRole

    counts: tuple[tuple[PortRole, int], ...] = (
        ("fabric", links),
        ("host", hosts),
        ("fabric", more),
    )
    firsts = (1, links + 1, links + hosts + 1)
    return NodeType.model_construct(
        ports=tuple(
            PortBlock.model_construct(name="eth{}", first=first, count=count, role=role)
            for first, (role, count) in zip(firsts, counts, strict=True)
            if count
        )
    )


def of_plane(plane: int) -> str:
    """Return the beginning of names of a plane, "" for 0, the plane of a fabric with one.

    >>> of_plane(2)
    'p2-'
    """
    return f"p{plane}-" if plane else ""


def first_id(plane: int) -> int:
    """Return the datapath id of vertex 0.

    The plane is above the lower 48 bits, which Open vSwitch takes as a MAC address.
    """
    return (max(plane, 1) - 1 << 48) + 1


def wire(
    topology: Topology,
    inventory: Inventory,
    hosts_per_node: int,
    position: NDArray[np.int32] | None = None,
    plane: int = 0,
    first_asn: int = PRIVATE_AS,
    installed: Installed | None = None,
) -> Wiring:
    """Give every vertex its node, and every link and host its ports.

    Args:
        topology: the fabric graph.
        inventory: nodes and their types.
        hosts_per_node: P; vertices that are not endpoints get no hosts.
        position: int32[S], the order of links to one rack; None for the order of vertices.
        plane: from 1, where there are several; datapath ids that the inventory does not give begin
            with it.
        first_asn: the AS number of vertex 0, if the inventory does not give one.
        installed: links and hosts that keep their ports, if these work.

    Raises:
        Refused: nodes have too few ports, names or numbers of the inventory are also given to
            other nodes or hosts, cables are no links, or links join ports of different speeds or
            lanes.
    """
    site = PlacedNodes.of(inventory, place(topology.graph.order, inventory))
    nodes, first = site.nodes, first_id(plane)
    type_names = tuple(inventory.node_types)
    type_index = {name: t for t, name in enumerate(type_names)}
    node_type = np.array([type_index[node.type] for node in nodes], np.uint16)
    types = [TypePorts.of(inventory.node_types[name]) for name in type_names]
    counts = [inventory.host_count(node, hosts_per_node) for node in nodes]
    hosts = np.where(topology.endpoints, counts, 0)
    places = [node.host_places(int(hosts[v])) for v, node in enumerate(nodes)]
    groups = _groups(topology, nodes, inventory, position)
    ports = _ports(topology, inventory, site, node_type, types, groups, hosts, places, installed)
    host_port = np.pad(ports.hosts, ((0, 0), (0, hosts_per_node - ports.hosts.shape[1])))
    _put_hosts(host_port, ports.links, places, ports.fixed.hosts, node_type, types)
    disabled = _disabled(nodes, node_type, types)
    port, host_port = moved_to_spares(
        ports.links, host_port, disabled, node_type, types, ports.fixed.links
    )
    host_names = _host_names(inventory.host_names, site, places, hosts_per_node)
    far = topology.graph.padded()
    far_port = np.zeros_like(port)
    far_port[far >= 0] = topology.graph.mirrored(port[far >= 0])
    findings = [
        *ports.findings,
        *site.unusable_names(host_names, hosts_per_node, inventory.host_names),
        *site.short_of_ports(ports.short, installed is not None),
        *site.hosts_beyond(hosts),
        *site.clashing_names(host_names, hosts_per_node, _host_rows(inventory)),
        *site.clashing_numbers("datapath_id", "a datapath id", first),
        *site.clashing_numbers("asn", "an AS number", first_asn),
    ]
    if not findings:
        findings += unequal_ports(port, far, far_port, site, node_type, types)
    if findings:
        raise Refused(findings)
    return Wiring(
        names=tuple(node.name for node in nodes),
        management=tuple(str(node.management or "") for node in nodes),
        host_names=host_names,
        datapath_id=np.array(
            [node.datapath_id or first + v for v, node in enumerate(nodes)], np.uint64
        ),
        port=port,
        far=far,
        far_port=far_port,
        host_port=host_port,
        node_type=node_type,
        type_names=type_names,
        port_names=tuple(t.names for t in types),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _PortPlan:
    """The ports of links and hosts, before links leave disabled ports for spare ones."""

    links: NDArray[np.int32]
    """int32[S, K]: the port of each link."""
    hosts: NDArray[np.int32]
    """int32[S, P]: the port of each host."""
    fixed: FixedPorts
    """Those of them that are fixed."""
    short: dict[int, Shortage]
    """The switches that have too few ports."""
    findings: list[Finding]
    """What is wrong with fixed ports."""


def _ports(
    topology: Topology,
    inventory: Inventory,
    site: PlacedNodes,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    hosts: NDArray[np.int64],
    places: Sequence[Sequence[int]],
    installed: Installed | None,
) -> _PortPlan:
    """Choose the ports of links and hosts, those by hand or installed before all others.

    Args:
        topology: the fabric graph.
        inventory: nodes, their types, and cables by hand.
        site: the node of each vertex.
        node_type: uint16[S] into types.
        types: the ports of each type.
        groups: the order in which links take ports.
        hosts: int64[S], the number of hosts of each switch.
        places: the places of the hosts of each switch.
        installed: links and hosts that keep their ports, None for none.
    """
    disabled = _disabled(site.nodes, node_type, types)
    link_pins, findings = pins_of(inventory.cables, topology, site, node_type, types)
    rows = _host_rows(inventory)
    host_pins, host_findings = pins_of_hosts(site, node_type, types, disabled, link_pins, rows)
    findings += host_findings
    by_hand = fixed = FixedPorts(link_pins, host_pins)
    if installed and not findings:
        fixed = with_installed(
            by_hand, installed, places, site, topology, node_type, types, disabled
        )
    far = topology.graph.padded()
    plan = _assigned(fixed, by_hand, far, groups, hosts, node_type, types)
    return replace(plan, findings=findings)


def _host_rows(inventory: Inventory) -> dict[str | None, tuple[str, int]]:
    """Return the file of hosts and the line of each host in it, by name; {} without a file."""
    return {row.host.name: (row.file, row.line) for row in inventory.hosts}


def _put_hosts(
    host_port: NDArray[np.int32],
    port: NDArray[np.int32],
    places: Sequence[Sequence[int]],
    pins: Pins,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> None:
    """Change the ports of hosts at nodes with fixed ports, or with places without a host.

    Args:
        host_port: int32[S, P], the ports of hosts, which are changed.
        port: int32[S, K], the ports of links.
        places: the places of the hosts of each switch.
        pins: the ports that are fixed, by switch and host.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    for v, numbers in enumerate(places):
        fixed = pins.get(v, {})
        if not fixed and numbers == [*range(len(numbers))]:
            continue
        taken = [*port[v].tolist(), *fixed.values()]
        free_ports = iter(types[node_type[v]].hosts(taken, len(numbers)))
        host_port[v] = 0
        host_port[v, numbers] = [fixed[h] if h in fixed else next(free_ports, 0) for h in numbers]


def _host_names(
    pattern: str | None, site: PlacedNodes, places: Sequence[Sequence[int]], hosts_per_node: int
) -> tuple[str, ...]:
    """Return the name of each host, vertex by vertex.

    The inventory's name, else one by the pattern of the inventory, else the default one.
    """
    by_pattern = _by_pattern(pattern, site, places)
    return tuple(
        name
        for v, node in enumerate(site.nodes)
        for name in host_names_at(v, _named(node, by_pattern[v]), hosts_per_node)
    )


def _disabled(
    nodes: Sequence[Node], node_type: NDArray[np.uint16], types: Sequence[TypePorts]
) -> dict[int, list[int]]:
    """Return the numbers of disabled ports, in the inventory's order, by vertices that have any."""
    listed = {v: node.disabled_ports for v, node in enumerate(nodes) if node.disabled_ports}
    return {
        v: [types[node_type[v]].names.index(name) + 1 for name in names]
        for v, names in listed.items()
    }


def _groups(
    topology: Topology,
    nodes: Sequence[Node],
    inventory: Inventory,
    position: NDArray[np.int32] | None,
) -> PortGroups:
    """Return links grouped by the rack at their other end; one group without racks.

    With cassettes, links are in the order of their headings, so that racks of one kind use the
    lanes of ribbons in the same way.
    """
    far = topology.graph.padded()
    spread = inventory.placement.modules == "spread" and not _is_generated(inventory)
    needs_headings = inventory.panels or (spread and is_whole(topology))
    headings = family_of(topology.family).headings(topology) if needs_headings else None
    module_heading = None
    if spread:
        numbers = np.broadcast_to(np.arange(far.shape[1], dtype=np.int32), far.shape)
        module_heading = headings if is_whole(topology) else numbers
    if inventory.panels and headings is not None:
        single = PortGroups.single(far)
        return replace(single, order=np.argsort(headings, axis=1), heading=module_heading)
    if not inventory.racks:
        return replace(PortGroups.single(far), heading=module_heading)
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    rack = np.array([index.get(node.rack or "", 0) for node in nodes], np.int32)
    place_in_rack = np.arange(len(nodes)) if position is None else position
    groups = PortGroups.of(far, rack, place_in_rack.astype(np.int64))
    return replace(groups, heading=module_heading)


def _is_generated(inventory: Inventory) -> bool:
    """Whether the node type is the generated one, whose port blocks are no modules."""
    return GENERATED in inventory.node_types


def _assigned(
    fixed: FixedPorts,
    by_hand: FixedPorts,
    far: NDArray[np.int32],
    groups: PortGroups,
    hosts: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> _PortPlan:
    """Choose the ports of all links and hosts.

    If installed ports leave a switch too few, its hosts move, and if that is not enough, its links.

    Args:
        fixed: the ports of links and of hosts that are fixed by hand or installed.
        by_hand: those that are fixed by hand.
        far: int32[S, K], the neighbour at each link.
        groups: the order in which links take ports.
        hosts: int64[S], the number of hosts of each switch.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    degrees = np.count_nonzero(far >= 0, axis=1)
    for moving in ("hosts", "links", ""):
        ports_of_hosts = {v: list(ports.values()) for v, ports in fixed.hosts.items()}
        demand = PortDemand(far, node_type, types, groups, fixed.links, hosts, ports_of_hosts)
        port = ports_of_links(demand)
        host_port, short = _host_ports(port, degrees, hosts, node_type, types)
        if not short or fixed == by_hand:
            break
        if moving == "hosts":
            fixed = fixed._replace(hosts=_only_by_hand(fixed.hosts, by_hand.hosts, short))
        elif moving == "links":
            fixed = fixed._replace(links=_only_by_hand(fixed.links, by_hand.links, short))
    return _PortPlan(port, host_port, fixed, short, findings=[])


def _only_by_hand(fixed: Pins, by_hand: Pins, switches: Collection[int]) -> Pins:
    """Return the fixed ports, of these switches only those by hand."""
    others = {v: ports for v, ports in fixed.items() if v not in switches}
    return others | {v: by_hand[v] for v in switches if v in by_hand}


def _host_ports(
    port: NDArray[np.int32],
    degrees: NDArray[np.int64],
    hosts: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> tuple[NDArray[np.int32], dict[int, Shortage]]:
    """Return the ports of hosts, int32[S, P], and the switches with too few ports.

    Switches of one type whose links and hosts take the same ports are looked at together.

    Args:
        port: int32[S, K], the ports of links.
        degrees: int64[S], the number of links of each switch.
        hosts: int64[S], the number of hosts of each switch.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    host_port = np.zeros((len(port), int(hosts.max(initial=0))), np.int32)
    shape: NDArray[np.int64] = np.column_stack((node_type, degrees, hosts, np.sort(port, axis=1)))
    short: dict[int, Shortage] = {}
    for (t, degree, count, *port_numbers), switches in alike_rows(shape):
        link_ports = [number for number in port_numbers if number]
        host_ports = types[t].hosts(link_ports, count)
        host_port[switches, : len(host_ports)] = host_ports
        if len(link_ports) < degree or len(host_ports) < count:
            host_only = sorted({*types[t].host} - {*types[t].fabric})
            names = tuple(types[t].names[n - 1] for n in host_only)
            shortage = Shortage(
                len(types[t].names), names, len(link_ports), degree, len(host_ports), count
            )
            short |= dict.fromkeys(switches.tolist(), shortage)
    return host_port, short


def place(order: int, inventory: Inventory) -> list[int]:
    """Return the node of each vertex, by its place in the inventory's list of nodes.

    Nodes that name a vertex are there; others get the vertices that are left, in order. There are
    enough nodes, and they name existing vertices (`compilers.spec.cross_checks`).
    """
    fixed = {node.vertex: i for i, node in enumerate(inventory.nodes) if node.vertex is not None}
    free = iter(waiting_nodes(order, inventory))
    return [fixed[v] if v in fixed else next(free) for v in range(order)]


def waiting_nodes(order: int, inventory: Inventory) -> list[int]:
    """Return the nodes without a vertex that can get one, by their places in the list of nodes.

    If there are more nodes than vertices, planned nodes stay spares, the last first.
    """
    free = [i for i, node in enumerate(inventory.nodes) if node.vertex is None]
    planned = [i for i in free if inventory.nodes[i].state == "planned"]
    surplus = max(len(inventory.nodes) - order, 0)
    spares = {*planned[max(len(planned) - surplus, 0) :]} if surplus else set()
    return [i for i in free if i not in spares]


def _by_pattern(
    pattern: str | None, site: PlacedNodes, places: Sequence[Sequence[int]]
) -> list[list[str | None]]:
    """Return the names that a pattern gives the hosts of each vertex, by their places.

    The number in a name counts all hosts from 1, in the order in which the inventory lists nodes;
    the host in a name counts the hosts of its node from 1.
    """
    if pattern is None:
        return [[] for _ in site.nodes]
    in_listed_order = sorted(range(len(places)), key=lambda v: site.placed[v])
    before = accumulate((len(places[v]) for v in in_listed_order), initial=0)
    firsts = dict(zip(in_listed_order, before, strict=False))
    names: list[list[str | None]] = []
    for v, node in enumerate(site.nodes):
        of_node: list[str | None] = [None] * (max(places[v], default=-1) + 1)
        for number, h in enumerate(places[v], firsts[v] + 1):
            of_node[h] = pattern.format(
                node=node.name, rack=node.rack or "", vertex=v, host=h + 1, number=number
            )
        names.append(of_node)
    return names


def _named(node: Node, by_pattern: Sequence[str | None]) -> list[str | None]:
    """Return the names of a node's hosts: those of the inventory, else those by the pattern."""
    in_inventory = [host.name for host in node.hosts]
    return [name or other for name, other in zip_longest(in_inventory, by_pattern)]


def host_names_at(vertex: int, names: Sequence[str | None], hosts: int) -> list[str]:
    """Return the names of a switch's hosts, with a default name where there is no other.

    >>> host_names_at(7, ["web"], 2)
    ['web', 'h7-1']
    """
    names = [*names, *[None] * hosts]
    defaults = [f"h{vertex}"] if hosts == 1 else [f"h{vertex}-{i}" for i in range(hosts)]
    return [name or default for name, default in zip(names, defaults, strict=False)]
