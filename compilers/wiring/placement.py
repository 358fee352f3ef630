"""Placement: which node of the inventory each vertex is, and in which rack and unit it is.

A *cluster* is what the papers put into one rack: a fan of PolarFly, a supernode of PolarStar. It
goes whole into the first rack with room; if there is none, over the racks with room in their order.
The vertex, rack and unit that the inventory gives a node are kept. Nothing is cabled yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.installed import Installed
from compilers.topology.adjacency import Graph
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layouts, links_between, places_in
from compilers.topology.partition import partition
from compilers.wiring.wiring import of_plane, place, waiting_nodes
from inventory.problems import (
    Finding,
    InputError,
    KeyPath,
    Refused,
    install_extra,
)

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Generate, GeneratedPart, Rack
    from inventory.hosts import Host
    from inventory.model import Inventory, Node

PARTITION = "partition"
"""The layout of any graph: a part for each rack."""
MOST_CLUSTERS = 1500
"""The most clusters whose shortest order is searched."""


def clusters(topology: Topology, name: str = "") -> Layout:
    """Return a layout of a topology; one cluster of everything for families without layouts.

    Args:
        topology: the fabric.
        name: of the layout; "" for the family's default.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if name or layouts(topology):
        return layout(topology, name)
    order = np.arange(topology.graph.order, dtype=np.int32)
    return Layout.of_one_kind("whole", np.zeros_like(order), order, "whole", ("all",))


def clusters_of(topology: Topology, inventory: Inventory) -> Layout:
    """Return the clusters of a fabric after `place_nodes`; with the layout `partition`, its racks.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if inventory.placement.layout != PARTITION:
        return clusters(topology, _layout_name(topology, inventory))
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    rack_of = {node.vertex: index[node.rack] for node in inventory.nodes if node.rack is not None}
    return _parts([rack_of[v] for v in range(topology.graph.order)], tuple(index))


def _layout_name(topology: Topology, inventory: Inventory) -> str:
    """Return the layout that the inventory names, else one for cassettes, else ""."""
    if inventory.placement.layout is None and inventory.panels:
        return next(iter(family_of(topology.family).cassette_layouts(topology)), "")
    return inventory.placement.layout or ""


def _parts(rack: Sequence[int] | NDArray[np.int32], names: tuple[str, ...]) -> Layout:
    """Return the layout `partition` with this rack for each vertex."""
    racks = np.asarray(rack, np.int32)
    return Layout.of_one_kind(PARTITION, racks, places_in(racks), PARTITION, names)


def place_nodes(
    topology: Topology,
    inventory: Inventory,
    plane: int = 0,
    others: Sequence[Node] = (),
) -> Inventory:
    """Give every vertex a node, and every such node a rack and a unit.

    An inventory with `generate` gets the nodes that it describes, and racks if it lists none.
    Without racks, nodes get no units. The order of nodes and racks stays, so that messages can name
    the place of an entry in the file.

    Args:
        topology: the fabric.
        inventory: nodes, racks, and what is known of their places.
        plane: from 1, where there are several.
        others: nodes of other planes, whose units are taken.

    Returns:
        The inventory with the vertex, rack and unit of every node that the fabric needs.

    Raises:
        Refused: there is no such layout, or not enough room in the racks.
    """
    is_partition = inventory.placement.layout == PARTITION
    grouping = clusters(topology) if is_partition else _clusters(topology, inventory)
    if inventory.generate:
        inventory = _generated(topology, inventory, inventory.generate, grouping, plane)
    inventory = _with_hosts(inventory)
    if not inventory.racks:
        if is_partition:
            path = ("placement", "layout")
            raise Refused(Finding(path, "racks, one for each part", "none", "list `racks`"))
        _require_switches_of_hosts(inventory, topology.graph.order)
        return inventory
    if is_partition:
        grouping = _partition(topology, inventory, others)
    sizes = np.bincount(grouping.rack, minlength=len(grouping.names))
    sequence = np.arange(len(sizes))
    if inventory.placement.order == "shortest":
        room = _Floor.of(inventory, others, topology.graph.order).room()
        racks = [int(racks[0]) for racks in _fill(sizes, room)[0] if len(racks)]
        with _problems_at(("placement", "order")):
            sequence = shortest_order(topology.graph, grouping, racks, rack_places(inventory))
    inventory = _in_racks(topology, inventory, grouping, sequence, others)
    _require_switches_of_hosts(inventory, topology.graph.order)
    return inventory


def _partition(topology: Topology, inventory: Inventory, others: Sequence[Node]) -> Layout:
    """Return a layout with as many vertices for each rack as it takes; the last may stay empty.

    Raises:
        Refused: there is not enough room in the racks.
    """
    names = tuple(rack.name for rack in inventory.racks)
    index = {name: r for r, name in enumerate(names)}
    fixed = np.full(topology.graph.order, -1)
    for node in inventory.nodes:
        if node.vertex is not None and node.rack is not None:
            fixed[node.vertex] = index[node.rack]
    waiting = int((fixed < 0).sum())
    room = _Floor.of(inventory, others, topology.graph.order).room()
    if room.sum() < waiting:
        raise Refused(_no_room(inventory, waiting, waiting - int(room.sum())))
    before = np.cumsum(room) - room
    sizes = np.clip(waiting - before, 0, room)
    return _parts(partition(topology.graph, sizes.tolist(), fixed), names)


def at_vertices(inventory: Inventory, names: Sequence[str]) -> Inventory:
    """Put nodes that have the name of a vertex at that vertex.

    Args:
        inventory: nodes without a vertex may be in it.
        names: the names that a graph's file gives its vertices.
    """
    vertex = {name: v for v, name in enumerate(names)}
    nodes = tuple(
        node.model_copy(update={"vertex": vertex[node.name]})
        if node.vertex is None and node.name in vertex
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes}) if vertex else inventory


def at_same_vertices(inventory: Inventory, vertex: Mapping[str, int], order: int) -> Inventory:
    """Put nodes at the vertices that they had before, unless another node is there now.

    Planned nodes give their vertices up, the last first, if other nodes would get none.

    Args:
        inventory: nodes without a vertex may be in it.
        vertex: the vertex that each node had, by its name.
        order: the number of vertices.
    """
    taken = {node.vertex for node in inventory.nodes if node.vertex is not None}
    free = {name: v for name, v in vertex.items() if v < order and v not in taken}
    without = [node for node in inventory.nodes if node.vertex is None]
    planned = [n.name for n in without if n.state == "planned" and n.name in free]
    returning = sum(node.name in free for node in without)
    new = sum(node.name not in free and node.state != "planned" for node in without)
    vertices_left = order - len(taken) - returning
    for name in planned[::-1][: max(new - vertices_left, 0)]:
        del free[name]
    nodes = tuple(
        node.model_copy(update={"vertex": free[node.name]})
        if node.vertex is None and node.name in free
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes})


def hosts_in_place(inventory: Inventory, installed: Installed, most: int, order: int) -> Inventory:
    """Put hosts at the places of their nodes that they had before, by name.

    Other hosts take the first places that are left, those that no host has had before all others. A
    place below the last one that no host takes gets a `NoHost`.

    Args:
        inventory: lists hosts at nodes.
        installed: the places before.
        most: the number of places of a node.
        order: the number of vertices.
    """
    from inventory.hosts import Host, NoHost

    reserved = installed.reserved_hosts()

    def with_places(vertex: int, node: Node) -> Node:
        host_at, new = dict[int, Host](), []
        for host in node.hosts:
            place_before = installed.number.get((vertex, host.name or ""), most)
            if place_before < most and place_before not in host_at:
                host_at[place_before] = host
            else:
                new.append(host)
        if not host_at and not reserved.get(vertex):
            return node
        unnamed = inventory.host_count(node, most) - len(node.hosts)
        new += [Host.model_construct() for _ in range(unnamed)]
        had = [h for h in reserved.get(vertex, ()) if h < most]
        free = [h for h in (*(h for h in range(most) if h not in had), *had) if h not in host_at]
        host_at |= dict(zip(free, new, strict=False))
        places = range(max(host_at, default=-1) + 1)
        hosts = tuple(host_at.get(h) or NoHost.model_construct() for h in places)
        return node.model_copy(update={"hosts": hosts})

    nodes = list(inventory.nodes)
    for vertex, i in enumerate(place(order, inventory)):
        nodes[i] = with_places(vertex, nodes[i])
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def rack_places(inventory: Inventory) -> NDArray[np.float64]:
    """Return the place of each rack in metres, along rows and across them, float64[R, 2]."""
    cabling = inventory.cabling
    grid = [
        (rack.row or 0, i if rack.column is None else rack.column)
        for i, rack in enumerate(inventory.racks)
    ]
    return np.array(grid, np.float64).reshape(-1, 2) * [cabling.row_pitch, cabling.column_pitch]


def _clusters(topology: Topology, inventory: Inventory) -> Layout:
    """Return the clusters that the inventory asks for.

    Raises:
        Refused: the topology has no such layout.
    """
    with _problems_at(("placement", "layout")):
        return clusters(topology, _layout_name(topology, inventory))


@contextmanager
def _problems_at(path: KeyPath) -> Iterator[None]:
    """Turn errors in the block into findings about the inventory's value at `path`.

    Raises:
        Refused: something in the block raised an InputError.
    """
    try:
        yield
    except InputError as error:
        findings = [Finding(path, p.required, p.given, p.todo) for p in error.problems]
        raise Refused(findings) from None


def _generated(
    topology: Topology, inventory: Inventory, generate: Generate, grouping: Layout, plane: int
) -> Inventory:
    """Add the nodes that `generate` describes, and racks for them if the inventory lists none."""
    from inventory.model import Node

    prefix = of_plane(plane)
    nodes = tuple(
        Node.model_construct(
            name=prefix + (part.name or generate.name).replace("{}", str(v)),
            type=part.type,
            vertex=v,
            group=part.group,
        )
        for v, part in enumerate(_part_of_vertex(generate, topology.graph.order))
    )
    racks = inventory.racks or _generated_racks(inventory, generate, grouping, plane)
    return inventory.model_copy(update={"nodes": nodes, "racks": racks})


def _generated_racks(
    inventory: Inventory, generate: Generate, grouping: Layout, plane: int
) -> tuple[Rack, ...]:
    """Return as many racks as the clusters fill, on a grid; planes are behind each other."""
    from inventory.floor import Rack

    units = generate.racks.units
    nodes_per_rack = units // max(inventory.node_types[part.type].units for part in generate.parts)
    sizes = np.bincount(grouping.rack)
    most = int((-(-sizes // nodes_per_rack)).sum())
    racks_of_members = _fill(sizes, np.full(most, nodes_per_rack))[0]
    count = int(np.concatenate(racks_of_members).max()) + 1
    columns = generate.racks.columns or round(count**0.5)
    first_row = max(plane - 1, 0) * -(-count // columns)
    return tuple(
        Rack.model_construct(
            name=of_plane(plane) + generate.racks.name.replace("{}", str(r)),
            row=first_row + r // columns,
            column=r % columns,
            units=units,
        )
        for r in range(count)
    )


def _part_of_vertex(generate: Generate, order: int) -> list[GeneratedPart]:
    """Return the entry of `generate` that makes the node of each vertex.

    Raises:
        Refused: the entries make more or fewer nodes than there are vertices.
    """
    parts: list[GeneratedPart] = []
    for i, part in enumerate(generate.parts):
        left = order - len(parts)
        count = left if part.count is None else part.count
        if count > left or not count:
            path: KeyPath = ("generate", "types", i)
            wanted = "all that are left" if part.count is None else f"{count:,}"
            given = f"{wanted}, where {left:,} of {order:,} are left"
            raise Refused(Finding(path, "a part of the fabric's nodes", given, "lower the counts"))
        parts += [part] * count
    if len(parts) < order:
        todo = "leave out the count of the last type, which then takes all others"
        given = f"{len(parts):,}"
        raise Refused(Finding(("generate", "types"), f"{order:,} nodes in all", given, todo))
    return parts


def _with_hosts(inventory: Inventory) -> Inventory:
    """Put the hosts of the inventory's file at their nodes, and count those of each node."""
    if not inventory.hosts:
        return inventory
    hosts_of: dict[str, list[Host]] = defaultdict(list)
    for _, _, switch, host in inventory.hosts:
        hosts_of[switch].append(host)
    nodes = []
    for node in inventory.nodes:
        hosts = tuple(hosts_of[node.name])
        nodes.append(node.model_copy(update={"hosts": hosts, "host_count": len(hosts)}))
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def _require_switches_of_hosts(inventory: Inventory, order: int) -> None:
    """Pass when the file of hosts names only nodes that are in use or planned.

    Raises:
        Refused: a host is at another node, or has the name of a node.
    """
    from inventory.hosts import switch_mistakes

    if not inventory.hosts:
        return
    used = {inventory.nodes[i].name for i in place(order, inventory)}
    used |= {node.name for node in inventory.nodes if node.state == "planned"}
    node_names = [node.name for node in inventory.nodes]
    findings = [
        Finding(("hosts",), mistake.required, mistake.given, mistake.todo, row=(row.file, row.line))
        for row, mistake in switch_mistakes(inventory.hosts, used, node_names)
    ]
    if findings:
        raise Refused(findings)


def _fill(sizes: NDArray[np.int64], room: NDArray[np.int64]) -> tuple[list[NDArray[np.int64]], int]:
    """Put clusters into racks.

    Args:
        sizes: int64[C], the members of each cluster, in the order of placement.
        room: int64[R], how many vertices each rack takes.

    Returns:
        The rack of each member of each cluster, and how many members find no room.
    """
    left = room.copy()
    racks_of_clusters, missing = [], 0
    for size in sizes.tolist():
        chosen = np.flatnonzero(left >= size)[:1]
        if not len(chosen):
            open_racks = np.flatnonzero(left)
            enough = np.searchsorted(np.cumsum(left[open_racks]), size) + 1
            chosen = open_racks[:enough]
        rack = np.repeat(chosen, left[chosen])[:size]
        np.subtract.at(left, rack, 1)
        racks_of_clusters.append(rack)
        missing += size - len(rack)
    return racks_of_clusters, missing


@dataclass(slots=True)
class _Floor:
    """The free nodes and free units of each rack."""

    racks: tuple[Rack, ...]
    """The racks of the inventory."""
    free_nodes: list[list[int]]
    """By rack, its nodes without a vertex, by their places in the list of nodes; lowest first."""
    filled: list[set[int]]
    """By rack, the units that are taken."""
    height: int
    """The height of the highest node without a rack."""
    heights: dict[str, int]
    """The height of each node type."""
    without_rack: int
    """How many nodes have no rack."""

    @classmethod
    def of(cls, inventory: Inventory, others: Sequence[Node] = (), order: int = 0) -> _Floor:
        """Look at the racks of an inventory.

        Args:
            inventory: racks and nodes.
            others: nodes of other planes.
            order: the number of vertices; 0 where no node shall get one.
        """
        heights = {name: t.units for name, t in inventory.node_types.items()}
        index = {rack.name: r for r, rack in enumerate(inventory.racks)}
        free_nodes: list[list[int]] = [[] for _ in index]
        filled: list[set[int]] = [set() for _ in index]
        waiting = {*waiting_nodes(order or len(inventory.nodes), inventory)}
        without_rack = [
            node
            for i, node in enumerate(inventory.nodes)
            if node.rack is None and (i in waiting or node.vertex is not None)
        ]
        for i, node in enumerate(inventory.nodes):
            if node.rack is None:
                continue
            r = index[node.rack]
            if i in waiting:
                free_nodes[r].append(i)
            if node.unit is not None:
                filled[r] |= set(range(node.unit, node.unit + heights[node.type]))
        for r, nodes in enumerate(free_nodes):
            nodes.sort(key=lambda i: (inventory.nodes[i].unit or inventory.racks[r].units, i))
        height = max((heights[node.type] for node in without_rack), default=1)
        floor = cls(inventory.racks, free_nodes, filled, height, heights, len(without_rack))
        floor.keep_off(inventory.nodes, others)
        # Nodes with a rack and without a unit take theirs before all others.
        for node in inventory.nodes:
            if node.rack is not None and node.unit is None:
                floor.take_unit(index[node.rack], heights[node.type])
        return floor

    def keep_off(self, nodes: Sequence[Node], others: Sequence[Node]) -> None:
        """Mark the units as taken that hosts of nodes fill, and nodes of other planes."""
        index = {rack.name: r for r, rack in enumerate(self.racks)}
        for host in (host for node in (*nodes, *others) for host in node.hosts):
            if host.rack is not None and host.unit is not None:
                self.filled[index[host.rack]].add(host.unit)
        for node in others:
            if node.rack in index and node.unit is not None:
                fills = range(node.unit, node.unit + self.heights[node.type])
                self.filled[index[node.rack]].update(fills)

    def spaces(self, rack: int) -> int:
        """Return how many nodes of `height` find units in a rack."""
        spaces, run = 0, 0
        for unit in range(1, self.racks[rack].units + 1):
            run = 0 if unit in self.filled[rack] else run + 1
            if run == self.height:
                spaces, run = spaces + 1, 0
        return spaces

    def room(self) -> NDArray[np.int64]:
        """Return how many more vertices each rack can take with the nodes of the inventory, [R]."""
        nodes = np.array([len(nodes) for nodes in self.free_nodes], np.int64)
        spaces = np.array([self.spaces(r) for r in range(len(self.racks))], np.int64)
        if nodes.any():
            # Only as many spaces count as there are nodes without a rack.
            spaces = np.clip(self.without_rack - (np.cumsum(spaces) - spaces), 0, spaces)
        return nodes + spaces

    def take_node(self, rack: int, without_rack: Iterator[int]) -> tuple[int, int]:
        """Return a node for a vertex in a rack, and the rack that it gets.

        A free node of the rack, else one without a rack. If both have run out, as nodes with a
        vertex went there, a free node of another rack.
        """
        if not self.free_nodes[rack]:
            if (node := next(without_rack, None)) is not None:
                return node, rack
            rack = next(r for r, nodes in enumerate(self.free_nodes) if nodes)
        return self.free_nodes[rack].pop(0), rack

    def take_unit(self, rack: int, height: int) -> int | None:
        """Return the lowest free unit for a node, and mark it as taken; None if there is none."""
        units, filled = self.racks[rack].units, self.filled[rack]
        for unit in range(1, units - height + 2):
            wanted = range(unit, unit + height)
            if not filled.intersection(wanted):
                filled.update(wanted)
                return unit
        return None


def _in_racks(
    topology: Topology,
    inventory: Inventory,
    grouping: Layout,
    sequence: NDArray[np.int64],
    others: Sequence[Node],
) -> Inventory:
    """Give every vertex a node, and every such node a rack and a unit.

    Args:
        topology: the fabric.
        inventory: with racks.
        grouping: the clusters.
        sequence: int64[C], the order in which clusters are placed.
        others: nodes of other planes.

    Raises:
        Refused: there is not enough room in the racks.
    """
    nodes = list(inventory.nodes)
    order = topology.graph.order
    floor = _Floor.of(inventory, others, order)
    node_of = {node.vertex: i for i, node in enumerate(nodes) if node.vertex is not None}
    without_rack = (i for i in waiting_nodes(order, inventory) if nodes[i].rack is None)
    if not any(floor.free_nodes):
        node_of |= {v: next(without_rack) for v in range(order) if v not in node_of}
    rank = np.empty(len(sequence), np.int64)
    rank[sequence] = np.arange(len(sequence))
    has_rack = {v for v, i in node_of.items() if nodes[i].rack is not None}
    vertices = np.lexsort((grouping.position, rank[grouping.rack]))
    waiting = np.array([v for v in vertices.tolist() if v not in has_rack], np.int64)
    sizes = np.bincount(rank[grouping.rack[waiting]], minlength=len(sequence))
    racks_of_clusters, missing = _fill(sizes, floor.room())
    if missing:
        raise Refused(_no_room(inventory, len(waiting), missing))
    racks = np.concatenate(racks_of_clusters).tolist()
    for v, r in zip(waiting.tolist(), racks, strict=True):
        i, r = (node_of[v], r) if v in node_of else floor.take_node(r, without_rack)
        nodes[i] = nodes[i].model_copy(update={"vertex": v, "rack": inventory.racks[r].name})
    placed = _with_units(nodes, inventory, others, grouping.position)
    return inventory.model_copy(update={"nodes": placed})


def _with_units(
    nodes: list[Node],
    inventory: Inventory,
    others: Sequence[Node],
    position: NDArray[np.int32],
) -> tuple[Node, ...]:
    """Give every node in a rack a unit: the lowest free ones, in the order of positions.

    So racks whose clusters have the same links look the same. Nodes without a vertex come last.

    Args:
        nodes: the nodes, with their racks.
        inventory: the racks, and what fills their units already.
        others: nodes of other planes.
        position: int32[N], the place of each vertex in its cluster.

    Raises:
        Refused: a rack has no free units left.
    """
    floor = _Floor.of(inventory.model_copy(update={"nodes": [n for n in nodes if n.unit]}))
    floor.keep_off(nodes, others)
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    without_unit = [
        i for i, node in enumerate(nodes) if node.rack is not None and node.unit is None
    ]
    findings = []

    def by_position(i: int) -> tuple[bool, int, int]:
        vertex = nodes[i].vertex
        return vertex is None, 0 if vertex is None else int(position[vertex]), i

    for i in sorted(without_unit, key=by_position):
        node, rack = nodes[i], nodes[i].rack or ""
        unit = floor.take_unit(index[rack], floor.heights[node.type])
        if unit is None:
            given = f"{rack}, whose units are taken, for {node.name}"
            required = "a rack with free units"
            findings.append(Finding(("nodes", i, "rack"), required, given, "move nodes"))
        nodes[i] = node.model_copy(update={"unit": unit})
    if findings:
        raise Refused(findings)
    return tuple(nodes)


def _no_room(inventory: Inventory, needed: int, missing: int) -> Finding:
    """Return the finding that racks have no room for `missing` of the nodes that are needed."""
    return Finding(
        ("racks",),
        f"room for {needed:,} nodes more",
        f"{len(inventory.racks):,} racks with room for {needed - missing:,}",
        "add racks or units",
    )


def shortest_order(
    graph: Graph, grouping: Layout, racks: Sequence[int], places: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return an order in which clusters are placed so that cables are short, int64[C].

    A quadratic assignment (SciPy's FAQ) of clusters to the places that clusters get in the listed
    order. The listed order is returned if the result is not shorter.

    Args:
        graph: the fabric.
        grouping: its clusters.
        racks: the rack of the i-th cluster that is placed.
        places: float64[R, 2], where the racks are, in metres.

    Raises:
        InputError: SciPy is not installed, or there are too many clusters.
    """
    try:
        from scipy.optimize import quadratic_assignment
    except ImportError:
        raise _refusal(
            "scipy for placement.order: shortest", "none", install_extra("placement")
        ) from None
    count = len(racks)
    if count > MOST_CLUSTERS:
        required = f"at most {MOST_CLUSTERS:,} clusters for placement.order: shortest"
        raise _refusal(required, f"{count:,}", "write order: listed")
    flow = links_between(graph, grouping).astype(np.float64)
    np.fill_diagonal(flow, 0)
    place_of_slot = places[list(racks)]
    distance = np.abs(place_of_slot[:, None] - place_of_slot[None]).sum(axis=2)
    listed = np.arange(count)
    # Slots are permuted over clusters: slot i holds cluster solution[i].
    solution = quadratic_assignment(
        distance, flow, method="faq", options={"rng": np.random.default_rng(0)}
    ).col_ind
    before = (distance * flow).sum()
    after = (distance * flow[np.ix_(solution, solution)]).sum()
    return np.asarray(solution if after < before else listed, np.int64)


def _refusal(required: str, given: str, todo: str) -> InputError:
    """Return the error that `placement.order: shortest` is not possible."""
    return InputError.of(key="placement.order", required=required, given=given, todo=todo)
