"""The links and hosts that are lost by disabled ports and dead links, and what the loss costs.

A link of the topology is *lost* if it carries nothing although both of its nodes are installed:
because a port at one end is disabled and no spare port can replace it, or because the inventory
lists it in `dead_links`. `polarfab compile` prints what `LostLinks` has as warnings: a sentence for
each link and host, how much longer shortest paths get, and which nodes to exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.wiring.damage import damage_of, remaining_fabric
from compilers.wiring.placed_fabric import PlacedFabric

MOST_SWITCHES = 8192
"""The most switches of a fabric whose distances are compared; twice as many take a minute."""
SOURCES_AT_ONCE = 256
"""The switches from which distances are searched together."""


@dataclass(frozen=True, slots=True)
class PathGrowth:
    """How much longer shortest paths are in a graph without some links than in the whole one."""

    diameter_before: int
    """The most links of a shortest path in the whole graph."""
    diameter_after: int
    """The most links of a shortest path in the graph that is left."""
    longer: int
    """How many ordered pairs of nodes have a longer path."""
    pairs: int
    """How many ordered pairs of nodes there are."""
    worst: tuple[str, str]
    """The first pair of nodes whose path grows most; any pair if none grows."""

    def in_words(self) -> str:
        """Return the diameters and the pairs that are farther apart, in words."""
        diameter = f"at most {self.diameter_after} hops, not {self.diameter_before}"
        if self.diameter_before == self.diameter_after:
            diameter = f"still at most {self.diameter_before} hops"
        if not self.longer:
            return diameter
        share = f"{self.longer:,} of {self.pairs:,} pairs are farther apart"
        return f"{diameter}; {share}, most of all {' and '.join(self.worst)}"


@dataclass(frozen=True, slots=True)
class LostLinks:
    """The links between installed nodes that carry nothing, and the hosts without a port."""

    links: tuple[str, ...] = ()
    """A sentence for each link, with both ports and the reason."""
    path_growth: PathGrowth | None = None
    """How much longer shortest paths between installed nodes get.

    None in fabrics that are too large to compare, or where no link is lost.
    """
    hosts: tuple[str, ...] = ()
    """A sentence for each host, or for all hosts of a node that has no vertex."""
    exchanges: tuple[str, ...] = ()
    """The exchanges of nodes that save links: a sentence for each node with disabled ports that
    would lose no link at another vertex, with the node to exchange it with."""

    @classmethod
    def of(cls, placed: PlacedFabric) -> LostLinks:
        """Find the lost links and hosts of one plane.

        Raises:
            Refused: a dead link is no link of the fabric.
        """
        inventory = placed.inventory
        is_damaged = inventory.dead_links or any(node.disabled_ports for node in inventory.nodes)
        links = tuple(_lost_links(placed)) if is_damaged else ()
        hosts = (*_hosts_of_spares(placed), *(_lost_hosts(placed) if is_damaged else ()))
        if not links or placed.topology.graph.order > MOST_SWITCHES:
            return cls(links, hosts=hosts)
        return cls(links, _growth_by_loss(placed), hosts, tuple(_vertex_exchanges(placed)))

    def cost(self) -> str:
        """Return in words what the loss costs; "" if nothing is lost, or it was not computed."""
        return self.path_growth.in_words() if self.path_growth else ""


def _hosts_of_spares(placed: PlacedFabric) -> Iterator[str]:
    """Yield a sentence for each installed node with hosts that is a spare (no vertex)."""
    inventory, used = placed.inventory, {*placed.wiring.names}
    for node in inventory.nodes:
        count = max(inventory.host_count(node, 0), len(node.hosts))
        if count and node.name not in used and node.state != "planned":
            hosts = "host" if count == 1 else "hosts"
            yield (
                f"{count:,} {hosts} of {node.name}, which is a spare: "
                f"{len(inventory.nodes):,} nodes are listed, and the topology has {len(used):,}"
            )


def _lost_hosts(placed: PlacedFabric) -> Iterator[str]:
    """Yield a sentence for each host at a disabled port."""
    wiring = placed.wiring
    damage = damage_of(placed.inventory, wiring)
    # `host_names` has a name for each of these at every switch.
    most_hosts = wiring.host_port.shape[1]
    for v, place in np.argwhere(damage.hosts & ~damage.absent[:, None]).tolist():
        node, port = wiring.names[v], wiring.port_name(v, int(wiring.host_port[v, place]))
        host = wiring.host_names[v * most_hosts + place]
        yield f"{host}: {port} of {node} is disabled, and no spare port is like it"


def _lost_links(placed: PlacedFabric) -> Iterator[str]:
    """Yield a sentence for each lost link between installed nodes, with the reason."""
    wiring, inventory = placed.wiring, placed.inventory
    damage = damage_of(inventory, wiring)
    disabled = {node.name: node.disabled_ports for node in inventory.nodes}
    by_hand = {(cable.a, cable.a_port) for cable in inventory.cables}
    by_hand |= {(cable.b, cable.b_port) for cable in inventory.cables}

    def reason(node: str, port: str) -> str:
        """Why the link at a disabled port does not get another port."""
        cause = "chosen by cables" if (node, port) in by_hand else "no spare port is like it"
        return f"{port} of {node} is disabled, and {cause}"

    lost = damage.links & ~damage.absent[:, None]
    smaller_end = wiring.far > np.arange(len(wiring.far))[:, None]
    for u, k in np.argwhere(lost & smaller_end).tolist():
        v = int(wiring.far[u, k])
        if damage.absent[v]:
            continue
        a, a_port = wiring.names[u], wiring.port_name(u, int(wiring.port[u, k]))
        b, b_port = wiring.names[v], wiring.port_name(v, int(wiring.far_port[u, k]))
        reasons = [
            reason(node, port)
            for node, port in ((a, a_port), (b, b_port))
            if port in disabled.get(node, ())
        ]
        yield f"{a} {a_port} to {b} {b_port}: {'; '.join(reasons) or 'listed in dead_links'}"


def _vertex_exchanges(placed: PlacedFabric) -> Iterator[str]:
    """Yield a sentence for each node that loses no link if it changes places with another node.

    The other node is at a vertex with fewer links, in a PolarFly at a quadric. It is proposed once
    only, has no disabled ports itself, and the inventory does not fix its vertex.
    """
    wiring, listed = placed.wiring, placed.loaded.inventory
    degree = (wiring.far >= 0).sum(axis=1)
    disabled = {node.name: node.disabled_ports for node in placed.inventory.nodes}
    fixed = {node.name for node in listed.nodes if node.vertex is not None} if listed else set()
    candidates = [
        v for v, name in enumerate(wiring.names) if not disabled.get(name) and name not in fixed
    ]
    for v, name in enumerate(wiring.names):
        if not disabled.get(name):
            continue
        ports = wiring.port[v][wiring.far[v] >= 0].tolist()
        lost = sum(wiring.port_name(v, port) in disabled[name] for port in ports)
        usable = int(degree[v]) - lost
        other = next((u for u in candidates if degree[u] <= usable), None) if lost else None
        if other is not None:
            candidates.remove(other)
            yield (
                f"{name} has {usable} ports left for links. It loses no link in the place of "
                f"{wiring.names[other]}, which has {degree[other]} links. To exchange them, write "
                f"`vertex: {other}` at {name} and `vertex: {v}` at {wiring.names[other]} "
                "(in a running fabric their cables change, and their hosts get other addresses)"
            )


def _growth_by_loss(placed: PlacedFabric) -> PathGrowth:
    """Return how much longer shortest paths between installed nodes get by the lost links."""
    topology, wiring = placed.topology, placed.wiring
    damage = damage_of(placed.inventory, wiring)
    # Nodes that are planned or absent are no loss: both graphs are without them.
    absent = damage.absent
    has_absent_end = absent[:, None] | absent[wiring.far]
    designed = Graph.from_padded(np.where(has_absent_end, np.int32(-1), wiring.far))
    remaining_topology, _ = remaining_fabric(topology, wiring, damage)
    vertices = np.flatnonzero(topology.endpoints & ~absent)
    return _path_growth(designed, remaining_topology.graph, vertices, wiring.names)


def _path_growth(
    before: Graph, after: Graph, vertices: NDArray[np.int64], names: Sequence[str]
) -> PathGrowth:
    """Compare the shortest paths between n vertices in two graphs.

    Args:
        before: the whole graph.
        after: the graph that is left.
        vertices: int64[n], the vertices that are compared.
        names: the name of each vertex's node.
    """
    table_before, table_after = neighbour_table(before), neighbour_table(after)
    most_before = most_after = longer = largest_growth = 0
    worst = 0, 0
    for first in range(0, len(vertices), SOURCES_AT_ONCE):
        sources = vertices[first : first + SOURCES_AT_ONCE]
        hops_before = distances(table_before, sources)[:, vertices].astype(np.int64)
        hops_after = distances(table_after, sources)[:, vertices].astype(np.int64)
        most_before = max(most_before, largest_distance(hops_before))
        most_after = max(most_after, largest_distance(hops_after))
        growth = hops_after - hops_before
        longer += int(np.count_nonzero(growth > 0))
        if int(growth.max()) > largest_growth:
            largest_growth = int(growth.max())
            source, destination = np.unravel_index(int(growth.argmax()), growth.shape)
            worst = int(sources[source]), int(vertices[destination])
    return PathGrowth(
        diameter_before=most_before,
        diameter_after=most_after,
        longer=longer,
        pairs=len(vertices) * (len(vertices) - 1),
        worst=(names[worst[0]], names[worst[1]]),
    )


def largest_distance(distance: NDArray[np.integer]) -> int:
    """Return the largest distance between vertices that a path joins."""
    return int(np.max(distance, where=distance < BEYOND, initial=0))
