"""Wiring: vertex to node, edge to a port at each end, hosts to the ports left over.

Egress class k of a switch is its k-th neighbour (ascending). On a node without modules the k-th
link takes the k-th fabric port, or where there are racks, links to one rack take ports in a row;
over several modules links are spread (`port_assignment`). Disabled ports are avoided while spare
ones are left. Deterministic: the same topology and inventory give the same wiring everywhere.
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
    Pins,
    PortGroups,
    TypePorts,
    alike_rows,
    moved_to_spares,
    ports_of_links,
)
from compilers.wiring.wiring_checks import Shortage, Site
from inventory.asn_range import PRIVATE_AS
from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType

CABLE_ROWS_AT_ONCE = 1 << 14
GENERATED = "generated"
"""The node type of hardware that is made up."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wiring:
    """Who is cabled to whom, S switches with at most K links and P hosts each."""

    names: Annotated[tuple[str, ...], "S", "name"]
    """The name of each switch."""
    management: Annotated[tuple[str, ...], "S"]
    """The management address of each switch; "" without one."""
    host_names: Annotated[tuple[str, ...], "hosts", "name"]
    """S·P texts, vertex by vertex."""
    datapath_id: Annotated[NDArray[np.uint64], "S"]
    """uint64[S]."""
    port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port of the k-th link, 0 beyond the last."""
    far: Annotated[NDArray[np.int32], "S K", "-1..S"]
    """int32[S, K]: the vertex at the other end, -1 beyond the last."""
    far_port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port at the other end, 0 beyond the last."""
    host_port: Annotated[NDArray[np.int32], "S P", "0..ports+1"]
    """int32[S, P]: the port of each host, 0 where there is no host."""
    node_type: Annotated[NDArray[np.uint16], "S", "0..types"]
    """uint16[S] into type_names and port_names."""
    type_names: Annotated[tuple[str, ...], "types"]
    """The names of node types."""
    port_names: Annotated[tuple[tuple[str, ...], ...], "types"]
    """port_names[t][n - 1] names port n of type t."""

    def __repr__(self) -> str:
        """`<Wiring: 57 switches, 224 cables, 57 hosts>`."""
        cables, hosts = (self.port > 0).sum() // 2, (self.host_port > 0).sum()
        return f"<Wiring: {len(self.names):,} switches, {cables:,} cables, {hosts:,} hosts>"

    def port_name(self, vertex: int, port: int) -> str:
        """The name that the operating system of the vertex's node gives the port."""
        return self.port_names[int(self.node_type[vertex])][port - 1]

    def same_ports(self, other: Wiring) -> bool:
        """Whether every link takes the same ports as in another, so that tables are alike."""
        words = ("port", "far", "far_port")
        return all(np.array_equal(getattr(self, word), getattr(other, word)) for word in words)

    def installed(self) -> Installed:
        """The ports of all links and hosts, by names."""
        host, width = np.argwhere(self.host_port > 0), self.host_port.shape[1]
        return Installed(
            vertex={name: v for v, name in enumerate(self.names)},
            link={
                (self.names[u], self.names[self.far[u, k]]): self.port_name(u, int(self.port[u, k]))
                for u, k in np.argwhere((self.far >= 0) & (self.port > 0)).tolist()
            },
            host={
                (self.names[v], h): self.port_name(v, int(self.host_port[v, h]))
                for v, h in host.tolist()
            },
            place={
                (self.names[i // width], name): i % width for i, name in enumerate(self.host_names)
            },
        )

    def ends(self, vertex: int) -> list[tuple[int, int, int]]:
        """The links of a vertex: its port, who is at the other end, and the port there."""
        cabled = self.far[vertex] >= 0
        columns = (x[vertex][cabled].tolist() for x in (self.port, self.far, self.far_port))
        return list(zip(*columns, strict=True))

    def each_cable(self) -> Iterator[tuple[int, int, int, int]]:
        """A switch, its port, the switch of a larger number at the other end, the port there."""
        switch, link = self.links()
        ends = (x[switch, link].tolist() for x in (self.port, self.far, self.far_port))
        return zip(switch.tolist(), *ends, strict=True)

    def links(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[E] twice: of each link, by its number, the smaller switch and its place there."""
        switch, link = np.nonzero(self.far > np.arange(len(self.far))[:, None])
        return switch, link

    def link_ends(self) -> NDArray[np.int64]:
        """int64[E, 2]: the switches that each link joins, the smaller first."""
        switch, link = self.links()
        return np.stack((switch, self.far[switch, link]), axis=1).astype(np.int64)

    def cables(self) -> NDArray[np.int32]:
        """int32[S, ports + 1]: the vertex that a port is cabled to, by its number; -1: none."""
        widest = max(len(names) for names in self.port_names)
        table = np.full((len(self.names), widest + 1), -1, np.int32)
        for first in range(0, len(table), CABLE_ROWS_AT_ONCE):
            some = slice(first, first + CABLE_ROWS_AT_ONCE)
            switch, link = np.nonzero(self.far[some] >= 0)
            table[some][switch, self.port[some][switch, link]] = self.far[some][switch, link]
        return table


def links_by_port(far: NDArray[np.int32], port: NDArray[np.int32]) -> NDArray[np.int16]:
    """int16[S, ports + 1]: the link at each port number, -1 without a cable; of `Wiring`."""
    table = np.full((len(far), int(port.max(initial=0)) + 1), -1, np.int16)
    switch, link = np.nonzero(far >= 0)
    table[switch, port[switch, link]] = link
    return table


def generated_inventory(
    topology: Topology, hosts_per_node: int, plane: int = 0, names: Sequence[str] = ()
) -> Inventory:
    """An inventory that just fits: one node type, a node per vertex, named by its vertex.

    names: what a graph's file calls the vertices. Names begin with the `plane`, where there are
    several. Fabric ports come first and are as many as the largest degree, so the host ports have
    the same numbers on every switch; a quadric leaves one free.
    """
    from inventory.model import Inventory, Node

    first = Node.model_construct(name="", type=GENERATED)
    return Inventory.model_construct(
        node_types={GENERATED: generated_type(int(topology.graph.degrees.max()), hosts_per_node)},
        nodes=tuple(
            first.model_copy(update={"name": f"{of_plane(plane)}{name}", "vertex": v})
            for v, name in enumerate(names or range(topology.graph.order))
        ),
    )


def generated_type(links: int, hosts: int, more: int = 0) -> NodeType:
    """The node type that is made up: ports for links, then for hosts, then for more links."""
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
    """What names of a plane begin with; nothing where there is one only (0)."""
    return f"p{plane}-" if plane else ""


def first_id(plane: int) -> int:
    """The datapath id of vertex 0, the plane above the 48 bits that are a MAC address in OVS."""
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
    """Place the topology on the inventory's nodes and ports.

    Args:
        topology: the fabric graph.
        inventory: nodes and their types.
        hosts_per_node: P; vertices that are not endpoints get none.
        position: int32[S], the order of links to one rack; by vertex without it.
        plane: from 1, where there are several; datapath ids that are not given begin with it.
        first_asn: the AS number of vertex 0, if its node has none of its own.
        installed: links and hosts that keep their ports, where these work.

    Raises:
        Refused: nodes short of ports, names and numbers that clash with those that nodes and
            hosts get where the inventory gives none, cables that are no links, or links between
            ports of different speeds or lanes.
    """
    site = Site.of(inventory, place(topology.graph.order, inventory))
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
    _put_hosts(host_port, ports.links, places, ports.host_pins, node_type, types)
    disabled = _disabled(nodes, node_type, types)
    port, host_port = moved_to_spares(
        ports.links, host_port, disabled, node_type, types, ports.link_pins
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
        *site.clashing_names(host_names, hosts_per_node, _host_lines(inventory)),
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
    """The ports of links and hosts before disabled ones are left for spare ones."""

    links: NDArray[np.int32]
    """int32[S, K]: the port of each link."""
    hosts: NDArray[np.int32]
    """int32[S, P]: the port of each host."""
    link_pins: Pins
    """By switch and link, the port that is fixed."""
    host_pins: Pins
    """By switch and host, the port that is fixed."""
    short: dict[int, Shortage]
    """The switches that are short of ports."""
    findings: list[Finding]
    """What is wrong with fixed ports."""


def _ports(
    topology: Topology,
    inventory: Inventory,
    site: Site,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
    groups: PortGroups,
    hosts: NDArray[np.int64],
    places: Sequence[Sequence[int]],
    installed: Installed | None,
) -> _PortPlan:
    """The ports of links and hosts, those fixed by hand or installed before the others."""
    disabled = _disabled(site.nodes, node_type, types)
    link_pins, findings = pins_of(inventory.cables, topology, site, node_type, types)
    lines = _host_lines(inventory)
    host_pins, wrong = pins_of_hosts(site, node_type, types, disabled, link_pins, lines)
    findings += wrong
    by_hand = fixed = link_pins, host_pins
    if installed and not findings:
        fixed = with_installed(
            by_hand, installed, places, site, topology, node_type, types, disabled
        )
    far = topology.graph.padded()
    fixed, links, of_hosts, short = _assigned(fixed, by_hand, far, groups, hosts, node_type, types)
    return _PortPlan(links, of_hosts, *fixed, short, findings)


def _host_lines(inventory: Inventory) -> dict[str | None, int]:
    """The lines of the file of hosts, by their names; none where hosts are listed at nodes."""
    return {row.host.name: row.line for row in inventory.hosts}


def _put_hosts(
    host_port: NDArray[np.int32],
    port: NDArray[np.int32],
    places: Sequence[Sequence[int]],
    pins: Pins,
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> None:
    """Write the ports of hosts at nodes that fix some of them, or leave places out.

    Args:
        host_port: int32[S, P], the ports of hosts, which is written to.
        port: int32[S, K], the ports of links.
        places: of each switch, the numbers of its hosts.
        pins: by switch and host, the port that is fixed.
        node_type: uint16[S] into types.
        types: the ports of each type.
    """
    for v, numbers in enumerate(places):
        fixed = pins.get(v, {})
        if not fixed and numbers == [*range(len(numbers))]:
            continue
        taken = [*port[v].tolist(), *fixed.values()]
        others = iter(types[node_type[v]].hosts(taken, len(numbers)))
        host_port[v] = 0
        host_port[v, numbers] = [fixed[h] if h in fixed else next(others, 0) for h in numbers]


def _host_names(
    pattern: str | None, site: Site, places: Sequence[Sequence[int]], hosts_per_node: int
) -> tuple[str, ...]:
    """The name of each host, vertex by vertex: one of its own, else by the pattern, else usual."""
    by_pattern = _by_pattern(pattern, site, places)
    return tuple(
        name
        for v, node in enumerate(site.nodes)
        for name in host_names_at(v, _named(node, by_pattern[v]), hosts_per_node)
    )


def _disabled(
    nodes: Sequence[Node], node_type: NDArray[np.uint16], types: Sequence[TypePorts]
) -> dict[int, list[int]]:
    """The numbers of disabled ports by vertex, where there are any, as the inventory lists them."""
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
    """Links by the rack at their other end; all in one group where the inventory has no racks."""
    far = topology.graph.padded()
    spread = inventory.placement.modules == "spread" and not _made_up(inventory)
    alike = inventory.panels or (spread and is_whole(topology))
    numbered = family_of(topology.family).headings(topology) if alike else None
    heading = None
    if spread:
        places = np.broadcast_to(np.arange(far.shape[1], dtype=np.int32), far.shape)
        heading = numbered if is_whole(topology) else places
    if inventory.panels and numbered is not None:  # lanes of ribbons are alike in alike racks
        single = PortGroups.single(far)
        return replace(single, order=np.argsort(numbered, axis=1), heading=heading)
    if not inventory.racks:
        return replace(PortGroups.single(far), heading=heading)
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    rack = np.array([index.get(node.rack or "", 0) for node in nodes], np.int32)
    listed = np.arange(len(nodes)) if position is None else position
    return replace(PortGroups.of(far, rack, listed.astype(np.int64)), heading=heading)


def _made_up(inventory: Inventory) -> bool:
    """Whether the node type is one that was made up, whose port blocks are no modules."""
    return GENERATED in inventory.node_types


def _assigned(
    fixed: tuple[Pins, Pins],
    by_hand: tuple[Pins, Pins],
    far: NDArray[np.int32],
    groups: PortGroups,
    hosts: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> tuple[tuple[Pins, Pins], NDArray[np.int32], NDArray[np.int32], dict[int, Shortage]]:
    """The fixed ports of links and hosts, the ports of all, and the switches short of ports.

    Where what is installed leaves a switch too few, its hosts move, and if need be its links.
    """
    pins, host_pins = fixed
    degrees = np.count_nonzero(far >= 0, axis=1)
    for moving in ("hosts", "links", ""):
        kept = {v: list(ports.values()) for v, ports in host_pins.items()}
        port = ports_of_links(far, node_type, types, groups, pins, hosts, kept)
        host_port, short = _host_ports(port, degrees, hosts, node_type, types)
        if not short or (pins, host_pins) == by_hand:
            break
        if moving == "hosts":
            host_pins = _freed(host_pins, by_hand[1], short)
        elif moving == "links":
            pins = _freed(pins, by_hand[0], short)
    return (pins, host_pins), port, host_port, short


def _freed(fixed: Pins, by_hand: Pins, switches: Collection[int]) -> Pins:
    """Of these switches only the ports by hand."""
    others = {v: ports for v, ports in fixed.items() if v not in switches}
    return others | {v: by_hand[v] for v in switches if v in by_hand}


def _host_ports(
    port: NDArray[np.int32],
    degrees: NDArray[np.int64],
    hosts: NDArray[np.int64],
    node_type: NDArray[np.uint16],
    types: Sequence[TypePorts],
) -> tuple[NDArray[np.int32], dict[int, Shortage]]:
    """int32[S, P], the ports of hosts, and the switches that are short of ports of either use."""
    host_port = np.zeros((len(port), int(hosts.max(initial=0))), np.int32)
    shape: NDArray[np.int64] = np.column_stack((node_type, degrees, hosts, np.sort(port, axis=1)))
    short: dict[int, Shortage] = {}
    for (t, degree, count, *taken), alike in alike_rows(shape):
        links = [number for number in taken if number]
        ends = types[t].hosts(links, count)
        host_port[alike, : len(ends)] = ends
        if len(links) < degree or len(ends) < count:
            own = tuple(
                types[t].names[n - 1] for n in sorted({*types[t].host} - {*types[t].fabric})
            )
            lack = Shortage(len(types[t].names), own, len(links), degree, len(ends), count)
            short |= dict.fromkeys(alike.tolist(), lack)
    return host_port, short


def place(order: int, inventory: Inventory) -> list[int]:
    """Which of the inventory's nodes each vertex is: those that name one first, others in order.

    There are enough of them, at vertices that are there (`compilers.spec.cross_checks`).
    """
    fixed = {node.vertex: i for i, node in enumerate(inventory.nodes) if node.vertex is not None}
    free = iter(waiting_nodes(order, inventory))
    return [fixed[v] if v in fixed else next(free) for v in range(order)]


def waiting_nodes(order: int, inventory: Inventory) -> list[int]:
    """The nodes without a vertex that can get one, in their order.

    Where there are more nodes than vertices, planned ones stay spares, the last first.
    """
    free = [i for i, node in enumerate(inventory.nodes) if node.vertex is None]
    planned = [i for i in free if inventory.nodes[i].state == "planned"]
    surplus = max(len(inventory.nodes) - order, 0)
    left = {*planned[max(len(planned) - surplus, 0) :]} if surplus else set()
    return [i for i in free if i not in left]


def _by_pattern(
    pattern: str | None, site: Site, places: Sequence[Sequence[int]]
) -> list[list[str | None]]:
    """The names that a pattern gives the hosts of each vertex, by their places.

    Numbers count from 1 in the order in which the inventory lists nodes, hosts of a node from 1.
    """
    if pattern is None:
        return [[] for _ in site.nodes]
    listed = sorted(range(len(places)), key=lambda v: site.placed[v])
    before = accumulate((len(places[v]) for v in listed), initial=0)
    firsts = dict(zip(listed, before, strict=False))
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
    """The names of a node's hosts: those of the inventory, else those by the pattern."""
    listed = [host.name for host in node.hosts]
    return [name or other for name, other in zip_longest(listed, by_pattern)]


def host_names_at(vertex: int, names: Sequence[str | None], hosts: int) -> list[str]:
    """These names, else h<vertex>, with the host's number where there are several."""
    names = [*names, *[None] * hosts]
    usual = [f"h{vertex}"] if hosts == 1 else [f"h{vertex}-{i}" for i in range(hosts)]
    return [name or default for name, default in zip(names, usual, strict=False)]
