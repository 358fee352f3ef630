"""The links and hosts that are lost by disabled ports and dead links, and what the loss costs.

`polarfab compile` prints these as warnings: a sentence for each link and host, and how much longer
paths get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.wiring.damage import damage_of, remaining
from compilers.wiring.placed_fabric import Placed

MOST_SWITCHES = 8192
"""The most switches of a fabric whose distances are compared; twice as many take a minute."""
SOURCES_AT_ONCE = 256
"""The switches from which distances are searched together."""


@dataclass(frozen=True, slots=True)
class LostLinks:
    """The links between installed nodes that carry nothing, and the hosts without a port."""

    links: tuple[str, ...] = ()
    """A sentence for each link, with both ports and the reason."""
    hops: tuple[int, int] | None = None
    """The most links of a shortest path, as designed and without the lost links.

    None in fabrics that are too large to compare, or where nothing is lost.
    """
    longer: int = 0
    """The number of ordered pairs of nodes whose shortest path gets longer."""
    pairs: int = 0
    """The number of all ordered pairs."""
    worst: tuple[str, str] = ("", "")
    """The two nodes whose path gets longer by most."""
    hosts: tuple[str, ...] = ()
    """A sentence for each host, or for all hosts of a node that has no vertex."""
    moves: tuple[str, ...] = ()
    """A sentence for each node with disabled ports that would lose no link in another's place."""

    @classmethod
    def of(cls, placed: Placed) -> LostLinks:
        """Find the lost links and hosts of one plane.

        Raises:
            Refused: a dead link is no link of the fabric.
        """
        inventory = placed.inventory
        damaged = inventory.dead_links or any(node.disabled_ports for node in inventory.nodes)
        links = tuple(_sentences(placed)) if damaged else ()
        hosts = (*_hosts_of_spares(placed), *(_lost_hosts(placed) if damaged else ()))
        order = placed.topology.graph.order
        if not links or order > MOST_SWITCHES:
            return cls(links, hosts=hosts)
        return replace(_compared(placed, links), hosts=hosts, moves=tuple(_moves(placed)))

    def cost(self) -> str:
        """Return in words what the loss costs; "" if nothing is lost, or it was not computed."""
        if self.hops is None:
            return ""
        most = f"at most {self.hops[1]} hops, not {self.hops[0]}"
        if self.hops[0] == self.hops[1]:
            most = f"still at most {self.hops[0]} hops"
        share = f"{self.longer:,} of {self.pairs:,} pairs are farther apart"
        return f"{most}; {share}, most of all {' and '.join(self.worst)}" if self.longer else most


def _hosts_of_spares(placed: Placed) -> Iterator[str]:
    """Yield a sentence for each installed node with hosts that is no vertex."""
    inventory, used = placed.inventory, {*placed.wiring.names}
    for node in inventory.nodes:
        count = max(inventory.host_count(node, 0), len(node.hosts))
        if count and node.name not in used and node.state != "planned":
            hosts = "host" if count == 1 else "hosts"
            yield (
                f"{count:,} {hosts} of {node.name}, which is a spare: "
                f"{len(inventory.nodes):,} nodes are listed, and the topology has {len(used):,}"
            )


def _lost_hosts(placed: Placed) -> Iterator[str]:
    """Yield a sentence for each host at a disabled port."""
    wiring = placed.wiring
    damage = damage_of(placed.inventory, wiring)
    width = wiring.host_port.shape[1]
    for v, h in np.argwhere(damage.hosts & ~damage.absent[:, None]).tolist():
        node, port = wiring.names[v], wiring.port_name(v, int(wiring.host_port[v, h]))
        host = wiring.host_names[v * width + h]
        yield f"{host}: {port} of {node} is disabled, and no spare port is like it"


def _sentences(placed: Placed) -> Iterator[str]:
    """Yield a sentence for each lost link between installed nodes, with the reason."""
    wiring, inventory = placed.wiring, placed.inventory
    damage = damage_of(inventory, wiring)
    disabled = {node.name: node.disabled_ports for node in inventory.nodes}
    by_hand = {(cable.a, cable.a_port) for cable in inventory.cables}
    by_hand |= {(cable.b, cable.b_port) for cable in inventory.cables}

    def reason(node: str, port: str) -> str:
        """Why a link at a disabled port has not moved to another port."""
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


def _moves(placed: Placed) -> Iterator[str]:
    """Nodes with fewer links, to exchange with those that lose links by their disabled ports.

    In a PolarFly these are at the quadrics. A node is named once, and none that has disabled ports,
    too, or whose vertex the inventory gives.
    """
    wiring, read = placed.wiring, placed.loaded.inventory
    degree = (wiring.far >= 0).sum(axis=1)
    broken = {node.name: node.disabled_ports for node in placed.inventory.nodes}
    fixed = {node.name for node in read.nodes if node.vertex is not None} if read else set()
    free = [v for v, name in enumerate(wiring.names) if not broken.get(name) and name not in fixed]
    for v, name in enumerate(wiring.names):
        ports = wiring.port[v][wiring.far[v] >= 0].tolist() if broken.get(name) else ()
        lost = sum(wiring.port_name(v, port) in broken[name] for port in ports)
        usable = int(degree[v]) - lost
        home = next((u for u in free if degree[u] <= usable), None) if lost else None
        if home is not None:
            free.remove(home)
            yield (
                f"{name} has {usable} ports left for links. It loses no link in the place of "
                f"{wiring.names[home]}, which has {degree[home]} links. To exchange them, write "
                f"`vertex: {home}` at {name} and `vertex: {v}` at {wiring.names[home]} "
                "(in a running fabric their cables change, and their hosts get other addresses)"
            )


def _compared(placed: Placed, links: tuple[str, ...]) -> LostLinks:
    """Compare the distances between installed nodes with and without the lost links."""
    whole, wiring = placed.topology, placed.wiring
    damage = damage_of(placed.inventory, wiring)
    # Planned nodes are no loss: both graphs are without them.
    absent = damage.absent
    planned = absent[:, None] | absent[wiring.far]
    designed = Graph.from_padded(np.where(planned, np.int32(-1), wiring.far))
    installed, _ = remaining(whole, wiring, damage)
    ends = np.flatnonzero(whole.endpoints & ~absent)
    growth = _path_growth(designed, installed.graph, ends)
    source, destination = growth.worst
    return LostLinks(
        links=links,
        hops=(growth.most_before, growth.most_after),
        longer=growth.longer,
        pairs=len(ends) * (len(ends) - 1),
        worst=(wiring.names[source], wiring.names[destination]),
    )


class _PathGrowth(NamedTuple):
    """How much longer shortest paths are in a graph than in another."""

    most_before: int
    """The links of the longest path in the whole graph."""
    most_after: int
    """The links of the longest path in the graph that is left."""
    longer: int
    """How many ordered pairs have a longer path."""
    worst: tuple[int, int]
    """The first pair of vertices whose path grows most; (0, 0) if none grows."""


def _path_growth(before: Graph, after: Graph, ends: NDArray[np.int64]) -> _PathGrowth:
    """Compare the shortest paths between vertices in two graphs.

    Args:
        before: the whole graph.
        after: the graph that is left.
        ends: int64[n], the vertices.
    """
    table_before, table_after = neighbour_table(before), neighbour_table(after)
    most_before = most_after = longer = largest_growth = 0
    worst = 0, 0
    for first in range(0, len(ends), SOURCES_AT_ONCE):
        sources = ends[first : first + SOURCES_AT_ONCE]
        hops_before = distances(table_before, sources)[:, ends].astype(np.int64)
        hops_after = distances(table_after, sources)[:, ends].astype(np.int64)
        most_before = max(most_before, _largest(hops_before))
        most_after = max(most_after, _largest(hops_after))
        growth = hops_after - hops_before
        longer += int(np.count_nonzero(growth > 0))
        if int(growth.max()) > largest_growth:
            largest_growth = int(growth.max())
            i, j = np.unravel_index(int(growth.argmax()), growth.shape)
            worst = int(sources[i]), int(ends[j])
    return _PathGrowth(most_before, most_after, longer, worst)


def _largest(distance: NDArray[np.int64]) -> int:
    """Return the largest distance of vertices that are reached."""
    return int(np.max(distance, where=distance < BEYOND, initial=0))
