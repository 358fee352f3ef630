"""Links and hosts that are lost by what the inventory says, and what the loss of links costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.wiring.damage import damage_of, remaining
from compilers.wiring.placed_fabric import Placed

MOST_SWITCHES = 8192
"""Of the largest fabric whose distances are all compared: one of twice as many takes a minute."""
SOURCES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class LostLinks:
    """The links between installed nodes that carry nothing, and the hosts without a port."""

    links: tuple[str, ...] = ()
    """A sentence for each link, with both ports and the reason."""
    hops: tuple[int, int] | None = None
    """The longest of all shortest paths, as designed and without these links; None in fabrics that
    are too large to compare, or where nothing is lost.
    """
    longer: int = 0
    """Ordered pairs of nodes whose shortest path is longer."""
    pairs: int = 0
    """All ordered pairs."""
    worst: tuple[str, str] = ("", "")
    """The two nodes whose path grows most."""
    hosts: tuple[str, ...] = ()
    """A sentence for each host, or for all hosts of a node that has no vertex."""
    moves: tuple[str, ...] = ()
    """A sentence for each node with disabled ports that would lose no link at another vertex."""

    @classmethod
    def of(cls, placed: Placed) -> LostLinks:
        """Those of one plane.

        Raises:
            Refused: dead links that are no links of the fabric.
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
        """What the loss costs, in a sentence; "" where nothing is lost or it was not computed."""
        if self.hops is None:
            return ""
        most = f"at most {self.hops[1]} hops, not {self.hops[0]}"
        if self.hops[0] == self.hops[1]:
            most = f"still at most {self.hops[0]} hops"
        share = f"{self.longer:,} of {self.pairs:,} pairs are farther apart"
        return f"{most}; {share}, most of all {' and '.join(self.worst)}" if self.longer else most


def _hosts_of_spares(placed: Placed) -> Iterator[str]:
    """Of nodes that are there and have hosts of their own, but no vertex."""
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
    """Of hosts at ports that are disabled."""
    wiring = placed.wiring
    damage = damage_of(placed.inventory, wiring)
    width = wiring.host_port.shape[1]
    for v, h in np.argwhere(damage.hosts & ~damage.absent[:, None]).tolist():
        node, port = wiring.names[v], wiring.port_name(v, int(wiring.host_port[v, h]))
        host = wiring.host_names[v * width + h]
        yield f"{host}: {port} of {node} is disabled, and no spare port is like it"


def _sentences(placed: Placed) -> Iterator[str]:
    wiring, inventory = placed.wiring, placed.inventory
    damage = damage_of(inventory, wiring)
    disabled = {node.name: node.disabled_ports for node in inventory.nodes}
    by_hand = {(c.a, c.a_port) for c in inventory.cables} | {
        (c.b, c.b_port) for c in inventory.cables
    }
    there = damage.links & ~damage.absent[:, None]
    for u, k in np.argwhere(there & (wiring.far > np.arange(len(wiring.far))[:, None])).tolist():
        v = int(wiring.far[u, k])
        if damage.absent[v]:
            continue
        ends = [
            (wiring.names[s], wiring.port_name(s, p))
            for s, p in ((u, int(wiring.port[u, k])), (v, int(wiring.far_port[u, k])))
        ]
        why = [
            f"{port} of {name} is disabled, "
            + (
                "and chosen by cables"
                if (name, port) in by_hand
                else "and no spare port is like it"
            )
            for name, port in ends
            if port in disabled.get(name, ())
        ]
        (a, a_port), (b, b_port) = ends
        yield f"{a} {a_port} to {b} {b_port}: {'; '.join(why) or 'listed in dead_links'}"


def _moves(placed: Placed) -> Iterator[str]:
    """Vertices with fewer links for nodes that lose links by disabled ports.

    In a PolarFly these are the quadrics. A vertex is named once, and none whose node has lost a
    port, too, or that the inventory gives to its node.
    """
    wiring, inventory = placed.wiring, placed.inventory
    damage = damage_of(inventory, wiring)
    degree = (wiring.far >= 0).sum(axis=1)
    broken = {node.name for node in inventory.nodes if node.disabled_ports}
    hurt = [v for v, name in enumerate(wiring.names) if name in broken and damage.links[v].any()]
    free = [v for v, name in enumerate(wiring.names) if name not in broken]
    for v in hurt:
        usable = int(degree[v] - damage.links[v].sum())
        home = next((u for u in free if degree[u] <= usable), None)
        if home is not None:
            free.remove(home)
            name = wiring.names[v]
            yield (
                f"{name} has {usable} ports left for links. With `vertex: {home}` it loses "
                f"no link: that vertex has {degree[home]}"
            )


def _compared(placed: Placed, links: tuple[str, ...]) -> LostLinks:
    whole = placed.topology
    damage = damage_of(placed.inventory, placed.wiring)
    # Planned nodes are no loss: both sides are without them.
    absent = damage.absent
    planned = absent[:, None] | absent[placed.wiring.far]
    kept = np.where(planned, np.int32(-1), placed.wiring.far)
    designed = Graph.from_padded(kept)
    left, _ = remaining(whole, placed.wiring, damage)
    ends = np.flatnonzero(whole.endpoints & ~absent)
    tables = neighbour_table(designed), neighbour_table(left.graph)
    most, longer, worst, growth = np.zeros(2, np.int64), 0, (0, 0), 0
    for first in range(0, len(ends), SOURCES_AT_ONCE):
        some = ends[first : first + SOURCES_AT_ONCE]
        before, after = (distances(table, some)[:, ends].astype(np.int64) for table in tables)
        more = after - before
        most = np.maximum(most, [_largest(before), _largest(after)])
        longer += int(np.count_nonzero(more > 0))
        if (found := int(more.max())) > growth:
            growth = found
            i, j = np.unravel_index(int(more.argmax()), more.shape)
            worst = int(some[i]), int(ends[j])
    names = placed.wiring.names
    hops = int(most[0]), int(most[1])
    pairs = len(ends) * (len(ends) - 1)
    return LostLinks(links, hops, longer, pairs, (names[worst[0]], names[worst[1]]))


def _largest(found: NDArray[np.int64]) -> int:
    """The largest distance of those that are reached."""
    return int(np.max(found, where=found < BEYOND, initial=0))
