"""Missing parts of a fabric: nodes not installed yet, links known dead, disabled ports.

Vertices, ports and addresses are those of the whole fabric, so that they stay when the rest comes.
Everything behind routing sees what is there alone: the graph and the wiring without the links that
carry nothing. A vertex without links has no program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import components, neighbour_table
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, KeyPath, Refused, did_you_mean, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory

DAMAGE_EXAMPLES = 10
Integer = TypeVar("Integer", bound=np.integer)


@dataclass(frozen=True, slots=True, eq=False)
class Damage:
    """Missing parts of a fabric of S switches with at most K links and P hosts each."""

    absent: NDArray[np.bool_]
    """bool[S]: nodes that are not installed."""
    links: NDArray[np.bool_]
    """bool[S, K]: links that carry nothing, marked at both ends."""
    hosts: NDArray[np.bool_]
    """bool[S, P]: hosts without a port that works."""

    def __bool__(self) -> bool:
        """Whether anything is missing."""
        return bool(self.absent.any() or self.links.any() or self.hosts.any())


def damage_of(inventory: Inventory, wiring: Wiring) -> Damage:
    """The missing parts, by the inventory.

    Args:
        inventory: `state` and `disabled_ports` of its nodes, and its `dead_links`.
        wiring: of the whole fabric.

    Raises:
        Refused: dead links that are no links of the fabric.
    """
    vertex = {name: v for v, name in enumerate(wiring.names)}
    if findings := [*_no_links(inventory, wiring, vertex)]:
        raise Refused(findings)
    absent, disabled = _of_nodes(inventory, wiring, vertex)
    cabled = wiring.far >= 0
    dead = np.take_along_axis(disabled, wiring.port, axis=1)
    dead |= absent[:, None]
    for link in inventory.dead_links:
        u, v = vertex[link.a], vertex[link.b]
        dead[u] |= wiring.far[u] == v
    switch, k = np.nonzero(dead & cabled)
    far, at = wiring.far[switch, k], wiring.far_port[switch, k]
    dead[far, (wiring.port[far] == at[:, None]).argmax(axis=1)] = True
    hosts = np.take_along_axis(disabled, wiring.host_port, axis=1) | absent[:, None]
    return Damage(absent=absent, links=dead & cabled, hosts=hosts & (wiring.host_port > 0))


def _of_nodes(
    inventory: Inventory, wiring: Wiring, vertex: dict[str, int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[S], planned nodes, and bool[S, ports + 1], disabled ports by their number."""
    absent = np.zeros(len(vertex), np.bool_)
    widest = max(len(names) for names in wiring.port_names)
    disabled = np.zeros((len(vertex), widest + 1), np.bool_)
    for node in inventory.nodes:
        v = vertex.get(node.name)
        if v is None:
            continue
        absent[v] = node.state == "planned"
        if node.disabled_ports:
            names = wiring.port_names[wiring.node_type[v]]
            disabled[v, 1 : len(names) + 1] = np.isin(names, node.disabled_ports)
    return absent, disabled


def _no_links(inventory: Inventory, wiring: Wiring, vertex: dict[str, int]) -> Iterator[Finding]:
    """Dead links that are no links of the fabric."""
    for i, link in enumerate(inventory.dead_links):
        unknown = [
            (end, name) for end, name in (("a", link.a), ("b", link.b)) if name not in vertex
        ]
        for end, name in unknown:
            todo = did_you_mean(name, vertex) or "spare nodes have no links"
            yield Finding(("dead_links", i, end), "a node of the fabric", shown(name), todo)
        if unknown:
            continue
        far = wiring.far[vertex[link.a]]
        near = [wiring.names[v] for v in far[far >= 0].tolist()]
        if link.b not in near:
            given = f"{shown(link.a)} and {shown(link.b)}, which are not joined"
            todo = f"{link.a} is joined to {', '.join(near[:4])}{', …' if len(near) > 4 else ''}"
            yield Finding(("dead_links", i), "a link of the fabric", given, todo)


def remaining(topology: Topology, wiring: Wiring, damage: Damage) -> tuple[Topology, Wiring]:
    """The topology and the wiring of what is there; links keep their order at each switch."""
    live = (wiring.far >= 0) & ~damage.links
    far = closed_up(wiring.far, live, -1)
    endpoints = topology.endpoints & ~damage.absent
    return (
        replace(topology, graph=Graph.from_padded(far), endpoints=endpoints),
        replace(
            wiring,
            port=closed_up(wiring.port, live, 0),
            far=far,
            far_port=closed_up(wiring.far_port, live, 0),
            host_port=np.where(damage.hosts, 0, wiring.host_port),
        ),
    )


def closed_up(values: NDArray[Integer], live: NDArray[np.bool_], none: int) -> NDArray[Integer]:
    """[S, K']: values of the links that are left, in their order, and `none` behind the last.

    Args:
        values: [S, K], one of each link.
        live: bool[S, K], the links that are left; K' is the most that a switch has.
        none: the value of no link.
    """
    left = np.where(live, values, values.dtype.type(none))
    gaps = np.flatnonzero((live[:, 1:] & ~live[:, :-1]).any(axis=1))  # mostly few switches
    order = np.argsort(~live[gaps], axis=1, kind="stable")
    left[gaps] = np.take_along_axis(left[gaps], order, axis=1)
    return left[:, : int(np.count_nonzero(live, axis=1).max())]


def require_connected(topology: Topology, names: tuple[str, ...], inventory: Inventory) -> None:
    """Pass where every endpoint reaches every other.

    Raises:
        Refused: the first ten pairs that do not, by name, and how many more there are.
    """
    ends = np.flatnonzero(topology.endpoints)
    path: KeyPath = ("dead_links",) if inventory.dead_links else ("nodes",)
    if not topology.present[ends].any():
        todo = "install more nodes or mend links"
        required = "two or more installed nodes that are joined"
        raise Refused(Finding(path, required, "none", todo))
    part = components(neighbour_table(topology.graph))[ends]
    sizes = np.unique(part, return_counts=True)[1]
    count = (len(ends) ** 2 - int((sizes**2).sum())) // 2
    if not count:
        return
    required = "a path between any two installed nodes"
    todo = "install nodes or mend links between them, or set state: planned"
    pairs = _apart(part)
    findings = [
        Finding(path, required, f"none between {names[ends[i]]} and {names[ends[j]]}", todo)
        for i, j in pairs
    ]
    if more := count - len(pairs):
        findings.append(Finding(path, required, f"{more:,} more pairs without one"))
    raise Refused(findings)


def _apart(part: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The first few i < j in different parts."""
    pairs: list[tuple[int, int]] = []
    for i, part_of_i in enumerate(part.tolist()):
        others = np.flatnonzero(part[i + 1 :] != part_of_i)[: DAMAGE_EXAMPLES - len(pairs)] + i + 1
        pairs += [(i, j) for j in others.tolist()]
        if len(pairs) == DAMAGE_EXAMPLES:
            break
    return pairs
