"""Missing parts of a fabric: nodes not installed yet, links known dead, disabled ports.

`damage_of` lists them from the inventory, and `remaining_fabric` takes them out of the graph and
the wiring. A compile calls both.

Vertices, ports and addresses are those of the whole fabric, so that they stay the same when the
rest is installed. Routing and everything after it sees only what is there: the graph and the wiring
without the links that carry nothing. A vertex without links has no tables.
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
"""The most pairs of nodes without a path that a message names."""
NEIGHBOURS_NAMED = 4
"""The most neighbours of a node that a message names."""
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
    """Return the missing parts of a fabric, as its inventory lists them.

    Args:
        inventory: has `state` and `disabled_ports` of nodes, and `dead_links`.
        wiring: of the whole fabric.

    Raises:
        Refused: a dead link is no link of the fabric.
    """
    vertex = {name: v for v, name in enumerate(wiring.names)}
    if findings := [*_unknown_links(inventory, wiring, vertex)]:
        raise Refused(findings)
    absent, disabled = _missing_nodes_and_ports(inventory, wiring, vertex)
    cabled = wiring.far >= 0
    # Beyond the last link of a switch the port is 0, whose column in `disabled` is False.
    dead = np.take_along_axis(disabled, wiring.port, axis=1)
    dead |= absent[:, None]
    for link in inventory.dead_links:
        u, v = vertex[link.a], vertex[link.b]
        dead[u] |= wiring.far[u] == v
    # A link that is dead at one end is dead at the other, where it has another number.
    switch, link_number = np.nonzero(dead & cabled)
    far, far_port = wiring.far[switch, link_number], wiring.far_port[switch, link_number]
    # The number at the far end is that of the link at port `far_port` there, which only it has.
    number_at_far = (wiring.port[far] == far_port[:, None]).argmax(axis=1)
    dead[far, number_at_far] = True
    hosts = np.take_along_axis(disabled, wiring.host_port, axis=1) | absent[:, None]
    return Damage(absent=absent, links=dead & cabled, hosts=hosts & (wiring.host_port > 0))


def _missing_nodes_and_ports(
    inventory: Inventory, wiring: Wiring, vertex: dict[str, int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the nodes that are not installed, bool[S], and disabled ports, bool[S, ports + 1].

    Columns of the second array are port numbers, which begin with 1.
    """
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


def _unknown_links(
    inventory: Inventory, wiring: Wiring, vertex: dict[str, int]
) -> Iterator[Finding]:
    """Yield a finding for each dead link that is no link of the fabric."""
    for i, link in enumerate(inventory.dead_links):
        for end, name in (("a", link.a), ("b", link.b)):
            if name not in vertex:
                todo = did_you_mean(name, vertex) or "spare nodes have no links"
                yield Finding(("dead_links", i, end), "a node of the fabric", shown(name), todo)
        if link.a not in vertex or link.b not in vertex:
            continue
        far = wiring.far[vertex[link.a]]
        neighbours = [wiring.names[v] for v in far[far >= 0].tolist()]
        if link.b not in neighbours:
            given = f"{shown(link.a)} and {shown(link.b)}, which are not joined"
            more = ", …" if len(neighbours) > NEIGHBOURS_NAMED else ""
            todo = f"{link.a} is joined to {', '.join(neighbours[:NEIGHBOURS_NAMED])}{more}"
            yield Finding(("dead_links", i), "a link of the fabric", given, todo)


def remaining_fabric(topology: Topology, wiring: Wiring, damage: Damage) -> tuple[Topology, Wiring]:
    """Return the topology and the wiring without what is missing.

    Links keep their order at each switch.

    Args:
        topology: the whole fabric.
        wiring: the whole fabric.
        damage: what is missing.
    """
    live = (wiring.far >= 0) & ~damage.links
    far = without_gaps(wiring.far, live, -1)
    endpoints = topology.endpoints & ~damage.absent
    return (
        replace(topology, graph=Graph.from_padded(far), endpoints=endpoints),
        replace(
            wiring,
            port=without_gaps(wiring.port, live, 0),
            far=far,
            far_port=without_gaps(wiring.far_port, live, 0),
            host_port=np.where(damage.hosts, 0, wiring.host_port),
        ),
    )


def without_gaps(values: NDArray[Integer], live: NDArray[np.bool_], none: int) -> NDArray[Integer]:
    """Return the values of the links that are left, [S, K'], without gaps between them.

    Args:
        values: [S, K], a value for each link.
        live: bool[S, K], the links that are left; K' is the most that a switch has.
        none: the value beyond the last link.

    >>> without_gaps(np.array([[5, 6, 7]]), np.array([[True, False, True]]), -1)
    array([[5, 7]])
    """
    closed = np.where(live, values, values.dtype.type(none))
    # At a gap a live link follows one that is not. Few switches have gaps, and only these are
    # sorted: stably, so that live links come first and keep their order.
    switches = np.flatnonzero((live[:, 1:] & ~live[:, :-1]).any(axis=1))
    order = np.argsort(~live[switches], axis=1, kind="stable")
    closed[switches] = np.take_along_axis(closed[switches], order, axis=1)
    return closed[:, : int(np.count_nonzero(live, axis=1).max())]


def require_connected(topology: Topology, names: tuple[str, ...], inventory: Inventory) -> None:
    """Pass when a path joins any two endpoints.

    Args:
        topology: what is left of the fabric.
        names: the name of each vertex's node.
        inventory: says whether dead links or missing nodes are to blame.

    Raises:
        Refused: names the first ten pairs without a path, and how many more there are.
    """
    endpoints = np.flatnonzero(topology.endpoints)
    key: KeyPath = ("dead_links",) if inventory.dead_links else ("nodes",)
    if not topology.present[endpoints].any():
        todo = "install more nodes or mend links"
        required = "two or more installed nodes that are joined"
        raise Refused(Finding(key, required, "none", todo))
    component = components(neighbour_table(topology.graph))[endpoints]
    sizes = np.unique(component, return_counts=True)[1]
    # Unordered pairs of endpoints in different components.
    count = (len(endpoints) ** 2 - int((sizes**2).sum())) // 2
    if not count:
        return
    required = "a path between any two installed nodes"
    todo = "install nodes or mend links between them, or set state: planned"
    pairs = _unjoined_pairs(component)
    findings = [
        Finding(
            key, required, f"none between {names[endpoints[i]]} and {names[endpoints[j]]}", todo
        )
        for i, j in pairs
    ]
    if more := count - len(pairs):
        findings.append(Finding(key, required, f"{more:,} more pairs without one"))
    raise Refused(findings)


def _unjoined_pairs(component: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first pairs i < j in different components, `DAMAGE_EXAMPLES` at most.

    Args:
        component: int64[n], the number of the component of each endpoint.
    """
    pairs: list[tuple[int, int]] = []
    for i, component_of_i in enumerate(component.tolist()):
        others = np.flatnonzero(component[i + 1 :] != component_of_i)[
            : DAMAGE_EXAMPLES - len(pairs)
        ]
        pairs += [(i, i + 1 + j) for j in others.tolist()]
        if len(pairs) == DAMAGE_EXAMPLES:
            break
    return pairs
