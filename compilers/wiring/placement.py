"""Placement: clusters to racks, nodes to vertices and units, before anything is cabled.

A cluster is what the papers put in a rack: a rack of PolarFly, a supernode of PolarStar. It goes
whole into the first rack with room, else over the racks with room in their order. What the
inventory says of a node's vertex, rack and unit is kept.
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
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layouts, places_in
from compilers.topology.partition import partition
from compilers.wiring.wiring import of_plane, place, waiting_nodes
from inventory.problems import Finding, InputError, KeyPath, Refused, did_you_mean, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Generate, GeneratedPart, Rack
    from inventory.hosts import Host
    from inventory.model import Inventory, Node


from compilers.topology.adjacency import Graph
from compilers.topology.layout import links_between
from inventory.problems import install_extra

PARTITION = "partition"
"""The layout of any graph: a part for each rack."""


def clusters(topology: Topology, name: str = "") -> Layout:
    """The topology's layout; one cluster of everything for families that have none.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if name or layouts(topology):
        return layout(topology, name)
    order = np.arange(topology.graph.order, dtype=np.int32)
    return Layout.of_one_kind("whole", np.zeros_like(order), order, "whole", ("all",))


def clusters_of(topology: Topology, inventory: Inventory) -> Layout:
    """The clusters of a fabric after `place_nodes`; with the layout `partition`, its racks.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if inventory.placement.layout != PARTITION:
        return clusters(topology, _layout_name(topology, inventory))
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    at = {node.vertex: index[node.rack] for node in inventory.nodes if node.rack is not None}
    return _parts([at[v] for v in range(topology.graph.order)], tuple(index))


def _layout_name(topology: Topology, inventory: Inventory) -> str:
    """What the inventory names, else a layout for cassettes, else "" for the family's usual one."""
    if inventory.placement.layout is None and inventory.panels:
        return next(iter(family_of(topology.family).cassette_layouts(topology)), "")
    return inventory.placement.layout or ""


def _parts(rack: Sequence[int] | NDArray[np.int32], names: tuple[str, ...]) -> Layout:
    racks = np.asarray(rack, np.int32)
    return Layout.of_one_kind(PARTITION, racks, places_in(racks), PARTITION, names)


def place_nodes(
    topology: Topology,
    inventory: Inventory,
    plane: int = 0,
    others: Sequence[Node] = (),
) -> Inventory:
    """The inventory with the vertex, rack and unit of every node that the fabric needs.

    With `generate` its nodes are listed, and its racks where none are. Without racks nothing is
    changed. The order of nodes and racks stays, so that places in the file stay true.

    Args:
        topology: the fabric.
        inventory: what there is.
        plane: from 1, where there are several.
        others: nodes of other planes, whose units are taken.

    Raises:
        Refused: no such layout, or no room in the racks.
    """
    parted = inventory.placement.layout == PARTITION
    grouping = clusters(topology) if parted else _clusters(topology, inventory)
    if inventory.generate:
        inventory = _generated(topology, inventory, inventory.generate, grouping, plane)
    inventory = _with_hosts(inventory)
    if not inventory.racks:
        if parted:
            path = ("placement", "layout")
            raise Refused(Finding(path, "racks, one for each part", "none", "list `racks`"))
        return _with_switches(inventory, topology.graph.order)
    if parted:
        grouping = _partition(topology, inventory, others)
    sizes = np.bincount(grouping.rack, minlength=len(grouping.names))
    sequence = np.arange(len(sizes))
    if inventory.placement.order == "shortest":
        room = _Floor.of(inventory, others, topology.graph.order).room()
        homes = [int(home[0]) for home in _fill(sizes, room)[0] if len(home)]
        with _said_of(("placement", "order")):
            sequence = shortest_order(topology.graph, grouping, homes, rack_places(inventory))
    seated = _seated(topology, inventory, grouping, sequence, others)
    return _with_switches(seated, topology.graph.order)


def _partition(topology: Topology, inventory: Inventory, others: Sequence[Node]) -> Layout:
    """A part for each rack, of as many vertices as it takes; the last racks may stay empty."""
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
    """The inventory with the nodes called as vertices of a graph's file at these vertices."""
    vertex = {name: v for v, name in enumerate(names)}
    nodes = tuple(
        node.model_copy(update={"vertex": vertex[node.name]})
        if node.vertex is None and node.name in vertex
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes}) if vertex else inventory


def at_same_vertices(inventory: Inventory, vertex: Mapping[str, int], order: int) -> Inventory:
    """The inventory with nodes at the vertices that they had, where no other node has those.

    Planned nodes give theirs up, the last first, where nodes that are there lack one.
    """
    taken = {node.vertex for node in inventory.nodes if node.vertex is not None}
    free = {name: v for name, v in vertex.items() if v < order and v not in taken}
    waiting = [node for node in inventory.nodes if node.vertex is None]
    planned = [n.name for n in waiting if n.state == "planned" and n.name in free]
    kept = sum(node.name in free for node in waiting)
    new = sum(node.name not in free and node.state != "planned" for node in waiting)
    for name in planned[::-1][: max(new - (order - len(taken) - kept), 0)]:
        del free[name]
    nodes = tuple(
        node.model_copy(update={"vertex": free[node.name]})
        if node.vertex is None and node.name in free
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes})


def hosts_in_place(inventory: Inventory, installed: Installed, most: int) -> Inventory:
    """The inventory with hosts at the places that they had, by name; others at the first left.

    A place below `most` that no host takes is a `NoHost`.
    """
    from inventory.hosts import Host, NoHost

    def seated(node: Node) -> Node:
        kept, new = dict[int, Host](), []
        for host in node.hosts:
            h = installed.place.get((node.name, host.name or ""), most)
            if h < most:
                kept[h] = host
            else:
                new.append(host)
        if not kept:
            return node
        unnamed = inventory.host_count(node, most) - len(node.hosts)
        new += [Host.model_construct() for _ in range(unnamed)]
        free = (h for h in range(most) if h not in kept)
        kept |= dict(zip(free, new, strict=False))
        last = max(kept) + 1
        hosts = tuple(kept.get(h) or NoHost.model_construct() for h in range(last))
        return node.model_copy(update={"hosts": hosts})

    return inventory.model_copy(update={"nodes": tuple(map(seated, inventory.nodes))})


def rack_places(inventory: Inventory) -> NDArray[np.float64]:
    """float64[R, 2]: metres along rows and across them of each rack."""
    cabling = inventory.cabling
    grid = [
        (rack.row or 0, i if rack.column is None else rack.column)
        for i, rack in enumerate(inventory.racks)
    ]
    return np.array(grid, np.float64).reshape(-1, 2) * [cabling.row_pitch, cabling.column_pitch]


def _clusters(topology: Topology, inventory: Inventory) -> Layout:
    with _said_of(("placement", "layout")):
        return clusters(topology, _layout_name(topology, inventory))


@contextmanager
def _said_of(path: KeyPath) -> Iterator[None]:
    """Problems within are with the value at `path`."""
    try:
        yield
    except InputError as error:
        findings = [Finding(path, p.required, p.given, p.todo) for p in error.problems]
        raise Refused(findings) from None


def _generated(
    topology: Topology, inventory: Inventory, generate: Generate, grouping: Layout, plane: int
) -> Inventory:
    """The inventory with the nodes and racks that `generate` describes."""
    from inventory.floor import Rack
    from inventory.model import Node

    front = of_plane(plane)
    of_vertex = _part_of_vertex(generate, topology.graph.order)
    nodes = tuple(
        Node.model_construct(
            name=front + (part.name or generate.name).replace("{}", str(v)),
            type=part.type,
            vertex=v,
            group=part.group,
        )
        for v, part in enumerate(of_vertex)
    )
    racks = inventory.racks
    if not racks:
        units, columns = generate.racks.units, generate.racks.columns
        seats = units // max(inventory.node_types[part.type].units for part in generate.parts)
        sizes = np.bincount(grouping.rack)
        most = int((-(-sizes // seats)).sum())
        used = int(np.concatenate(_fill(sizes, np.full(most, seats))[0]).max()) + 1
        columns = columns or round(used**0.5)
        behind = max(plane - 1, 0) * -(-used // columns)
        racks = tuple(
            Rack.model_construct(
                name=front + generate.racks.name.replace("{}", str(r)),
                row=behind + r // columns,
                column=r % columns,
                units=units,
            )
            for r in range(used)
        )
    return inventory.model_copy(update={"nodes": nodes, "racks": racks})


def _part_of_vertex(generate: Generate, order: int) -> list[GeneratedPart]:
    """What each vertex is generated by.

    Raises:
        Refused: the types make more or fewer nodes than there are vertices.
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
    """The inventory with the hosts of its file at their nodes, and how many each node has."""
    if not inventory.hosts:
        return inventory
    at: dict[str, list[Host]] = defaultdict(list)
    for _, _, switch, host in inventory.hosts:
        at[switch].append(host)
    nodes = tuple(
        node.model_copy(update={"hosts": tuple(at[node.name]), "host_count": len(at[node.name])})
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes})


def _with_switches(inventory: Inventory, order: int) -> Inventory:
    """The same inventory.

    Raises:
        Refused: its file has hosts at nodes that are unknown, or not in use and not planned.
    """
    if not inventory.hosts:
        return inventory
    used = {inventory.nodes[i].name for i in place(order, inventory)}
    used |= {node.name for node in inventory.nodes if node.state == "planned"}
    names = {node.name.lower() for node in inventory.nodes}
    wrong = []
    for file, line, switch, host in inventory.hosts:
        row = file, line
        if switch not in used:
            required, todo = "a node with a vertex as switch", did_you_mean(switch, used)
            wrong.append(Finding(("hosts",), required, shown(switch), todo, row=row))
        if (name := str(host.name)).lower() in names:
            required = "a name that no node has"
            wrong.append(Finding(("hosts",), required, name, "change one", row=row))
    if wrong:
        raise Refused(wrong)
    return inventory


def _fill(sizes: NDArray[np.int64], room: NDArray[np.int64]) -> tuple[list[NDArray[np.int64]], int]:
    """The rack of each member of each cluster, and how many members find no room."""
    left = room.copy()
    homes, missing = [], 0
    for size in sizes.tolist():
        whole = np.flatnonzero(left >= size)[:1]
        if not len(whole):
            open_racks = np.flatnonzero(left)
            enough = np.searchsorted(np.cumsum(left[open_racks]), size) + 1
            whole = open_racks[:enough]
        home = np.repeat(whole, left[whole])[:size]
        np.subtract.at(left, home, 1)
        homes.append(home)
        missing += size - len(home)
    return homes, missing


@dataclass(slots=True)
class _Floor:
    """Free nodes and units of each rack."""

    racks: tuple[Rack, ...]
    """The racks of the inventory."""
    seats: list[list[int]]
    """Of each rack, the places of its free nodes in the list of nodes, in the order of their units.
    """
    filled: list[set[int]]
    """Of each rack, the units that are taken."""
    height: int
    """The height of the highest node without a rack."""
    heights: dict[str, int]
    """The height of each node type."""
    loose: int
    """How many nodes have no rack."""

    @classmethod
    def of(cls, inventory: Inventory, others: Sequence[Node] = (), order: int = 0) -> _Floor:
        """`order`: the number of vertices; 0 where no node is to get one."""
        heights = {name: t.units for name, t in inventory.node_types.items()}
        index = {rack.name: r for r, rack in enumerate(inventory.racks)}
        seats: list[list[int]] = [[] for _ in index]
        filled: list[set[int]] = [set() for _ in index]
        waiting = {*waiting_nodes(order or len(inventory.nodes), inventory)}
        loose = [
            node
            for i, node in enumerate(inventory.nodes)
            if node.rack is None and (i in waiting or node.vertex is not None)
        ]
        for i, node in enumerate(inventory.nodes):
            if node.rack is None:
                continue
            r = index[node.rack]
            if i in waiting:
                seats[r].append(i)
            if node.unit is not None:
                filled[r] |= set(range(node.unit, node.unit + heights[node.type]))
        for r, places in enumerate(seats):
            places.sort(key=lambda i: (inventory.nodes[i].unit or inventory.racks[r].units, i))
        height = max((heights[node.type] for node in loose), default=1)
        floor = cls(inventory.racks, seats, filled, height, heights, len(loose))
        floor.keep_off(inventory.nodes, others)
        for node in inventory.nodes:  # those of a rack without a unit take theirs first
            if node.rack is not None and node.unit is None:
                floor.unit(index[node.rack], heights[node.type])
        return floor

    def keep_off(self, nodes: Sequence[Node], others: Sequence[Node]) -> None:
        """Leave the units at which hosts of nodes are, and nodes of other planes."""
        index = {rack.name: r for r, rack in enumerate(self.racks)}
        for host in (host for node in (*nodes, *others) for host in node.hosts):
            if host.rack is not None and host.unit is not None:
                self.filled[index[host.rack]].add(host.unit)
        for node in others:
            if node.rack in index and node.unit is not None:
                fills = range(node.unit, node.unit + self.heights[node.type])
                self.filled[index[node.rack]].update(fills)

    def free(self, rack: int) -> int:
        """How many nodes of `height` find units in a rack."""
        units, free, run = self.racks[rack].units, 0, 0
        for unit in range(1, units + 1):
            run = 0 if unit in self.filled[rack] else run + 1
            if run == self.height:
                free, run = free + 1, 0
        return free

    def room(self) -> NDArray[np.int64]:
        """int64[R]: how many more vertices each rack can take, with the nodes that there are."""
        seats = np.array([len(places) for places in self.seats], np.int64)
        free = np.array([self.free(r) for r in range(len(self.racks))], np.int64)
        if seats.any():
            free = np.clip(self.loose - (np.cumsum(free) - free), 0, free)
        return seats + free

    def node(self, rack: int, loose: Iterator[int]) -> tuple[int, int]:
        """A node for a vertex, and its rack: one that is there, else a loose one.

        Where both have run out, as nodes with a vertex went there: one that is elsewhere.
        """
        if not self.seats[rack]:
            if (chosen := next(loose, None)) is not None:
                return chosen, rack
            rack = next(r for r, places in enumerate(self.seats) if places)
        return self.seats[rack].pop(0), rack

    def unit(self, rack: int, height: int) -> int | None:
        """The lowest free unit for a node, which it then fills; None where there is none."""
        units, filled = self.racks[rack].units, self.filled[rack]
        for unit in range(1, units - height + 2):
            wanted = range(unit, unit + height)
            if not filled.intersection(wanted):
                filled.update(wanted)
                return unit
        return None


def _seated(
    topology: Topology,
    inventory: Inventory,
    grouping: Layout,
    sequence: NDArray[np.int64],
    others: Sequence[Node],
) -> Inventory:
    """The inventory with every vertex at a node, and every such node in a rack."""
    nodes = list(inventory.nodes)
    order = topology.graph.order
    floor = _Floor.of(inventory, others, order)
    at = {node.vertex: i for i, node in enumerate(nodes) if node.vertex is not None}
    loose = (i for i in waiting_nodes(order, inventory) if nodes[i].rack is None)
    if not any(floor.seats):
        at |= {v: next(loose) for v in range(order) if v not in at}
    rank = np.empty(len(sequence), np.int64)
    rank[sequence] = np.arange(len(sequence))
    racked = {v for v, i in at.items() if nodes[i].rack is not None}
    vertices = np.lexsort((grouping.position, rank[grouping.rack]))
    waiting = np.array([v for v in vertices.tolist() if v not in racked], np.int64)
    sizes = np.bincount(rank[grouping.rack[waiting]], minlength=len(sequence))
    homes, missing = _fill(sizes, floor.room())
    if missing:
        raise Refused(_no_room(inventory, len(waiting), missing))
    for v, r in zip(waiting.tolist(), np.concatenate(homes).tolist(), strict=True):
        i, r = (at[v], r) if v in at else floor.node(r, loose)
        nodes[i] = _put(nodes[i], v, inventory.racks[r].name)
    seated = _with_units(nodes, inventory, others, grouping.position)
    return inventory.model_copy(update={"nodes": seated})


def _put(node: Node, vertex: int, rack: str) -> Node:
    return node.model_copy(update={"vertex": vertex, "rack": rack})


def _with_units(
    nodes: list[Node],
    inventory: Inventory,
    others: Sequence[Node],
    position: NDArray[np.int32],
) -> tuple[Node, ...]:
    """The nodes with a unit for each that is in a rack, the lowest free ones by position.

    So racks whose clusters are wired alike look alike; those without a vertex come last.
    """
    floor = _Floor.of(inventory.model_copy(update={"nodes": [n for n in nodes if n.unit]}))
    floor.keep_off(nodes, others)
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    lacking = [i for i, node in enumerate(nodes) if node.rack is not None and node.unit is None]
    findings = []

    def turn(i: int) -> tuple[bool, int, int]:
        vertex = nodes[i].vertex
        return vertex is None, 0 if vertex is None else int(position[vertex]), i

    for i in sorted(lacking, key=turn):
        node, rack = nodes[i], nodes[i].rack or ""
        unit = floor.unit(index[rack], floor.heights[node.type])
        if unit is None:
            given = f"{rack}, whose units are taken, for {node.name}"
            required = "a rack with free units"
            findings.append(Finding(("nodes", i, "rack"), required, given, "move nodes"))
        nodes[i] = node.model_copy(update={"unit": unit})
    if findings:
        raise Refused(findings)
    return tuple(nodes)


def _no_room(inventory: Inventory, needed: int, missing: int) -> Finding:
    return Finding(
        ("racks",),
        f"room for {needed:,} nodes more",
        f"{len(inventory.racks):,} racks with room for {needed - missing:,}",
        "add racks or units",
    )


MOST_CLUSTERS = 1500


def shortest_order(
    graph: Graph, grouping: Layout, homes: Sequence[int], places: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The order in which clusters are placed, int64[C]: the listed one, or a shorter one.

    A quadratic assignment (scipy's FAQ) of clusters to the places that clusters get in the listed
    order; what it finds is taken only where it is shorter.

    Args:
        graph: the fabric.
        grouping: its clusters.
        homes: the rack of the i-th cluster that is placed.
        places: float64[R, 2], where the racks are, in metres.

    Raises:
        InputError: scipy is not installed, or there are too many clusters.
    """
    try:
        from scipy.optimize import quadratic_assignment
    except ImportError:
        raise _refusal(
            "scipy for placement.order: shortest", "none", install_extra("placement")
        ) from None
    count = len(homes)
    if count > MOST_CLUSTERS:
        required = f"at most {MOST_CLUSTERS:,} clusters for placement.order: shortest"
        raise _refusal(required, f"{count:,}", "write order: listed")
    flow = links_between(graph, grouping).astype(np.float64)
    np.fill_diagonal(flow, 0)
    spots = places[list(homes)]
    distance = np.abs(spots[:, None] - spots[None]).sum(axis=2)
    listed = np.arange(count)
    # Slots are permuted over clusters: slot i holds cluster solution[i].
    solution = quadratic_assignment(
        distance, flow, method="faq", options={"rng": np.random.default_rng(0)}
    ).col_ind
    before = (distance * flow).sum()
    after = (distance * flow[np.ix_(solution, solution)]).sum()
    return np.asarray(solution if after < before else listed, np.int64)


def _refusal(required: str, given: str, todo: str) -> InputError:
    return InputError.of(key="placement.order", required=required, given=given, todo=todo)
