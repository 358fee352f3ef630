"""Spare ports for the links that an expansion adds, so that no plug is moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, PortFacts, SpareHost, SpareNode
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class Spare:
    """The ports for links of each node type, and the unused ones of each switch, in order."""

    of_type: tuple[tuple[int, ...], ...]
    free: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, wiring: Wiring, types: Sequence[PortFacts]) -> Spare:
        """The spare ports of a fabric whose ports have roles."""
        of_type = tuple(
            tuple(n for n, role in enumerate(facts.role, 1) if role != "host") for facts in types
        )
        used = np.concatenate((wiring.port, wiring.host_port), axis=1).tolist()
        kinds = wiring.node_type.tolist()
        free = tuple(
            tuple(n for n in of_type[t] if n not in taken)
            for t, taken in zip(kinds, map(set, used), strict=True)
        )
        return cls(of_type, free)

    def counts(self) -> NDArray[np.int64]:
        """int64[S]: the number of unused ports of each switch."""
        return np.array([len(ports) for ports in self.free], np.int64)


def needed(expansion: Expansion) -> NDArray[np.int64]:
    """int64[N']: by how many links each vertex has more."""
    more = np.bincount(expansion.added.ravel(), minlength=len(expansion.origin))
    return np.asarray(more, np.int64)


def room(spare: Spare, expansion: Expansion, wiring: Wiring) -> NDArray[np.int64]:
    """int64[N']: the number of ports for new links at each vertex."""
    copies = [len(ports) for ports in _of_copies(spare, expansion, wiring)]
    return np.concatenate((spare.counts(), np.array(copies, np.int64)))


def require_room(spare: Spare, expansion: Expansion, wiring: Wiring, fits: int) -> None:
    """Refuse an expansion that needs more ports than there are.

    Args:
        spare: of the installed fabric.
        expansion: the larger fabric.
        wiring: for the names of nodes.
        fits: the number of clusters of this kind that the ports allow.

    Raises:
        InputError: nodes that lack ports, and how many.
    """
    links, have = needed(expansion), room(spare, expansion, wiring)
    copies = expansion.origin[len(wiring.names) :].tolist()
    names = [*wiring.names, *(f"the copy of {wiring.names[o]}" for o in copies)]
    most = f"at most {fits} clusters of this kind fit" if fits else "no cluster of this kind fits"
    short = np.flatnonzero(links > have).tolist()
    if short:
        v = max(short, key=lambda v: (links[v] - have[v], -v))
        others = f", and too few at {len(short) - 1:,} more nodes" if len(short) > 1 else ""
        raise InputError.of(
            key="clusters",
            required=f"{links[v]} unused ports for links at {names[v]}",
            given=f"{have[v]}{others}",
            todo=f"{most}; use node types with more ports for more",
        )


def _of_copies(spare: Spare, expansion: Expansion, wiring: Wiring) -> list[tuple[int, ...]]:
    """The ports for links of each new node, which has the type of its origin."""
    origin = expansion.origin[len(wiring.names) :]
    return [spare.of_type[t] for t in wiring.node_type[origin].tolist()]


def grown_ports(spare: Spare, expansion: Expansion, wiring: Wiring) -> NDArray[np.int32]:
    """int32[N', K']: the port of each link.

    Old links keep theirs; new ones take spare ones.
    """
    graph = expansion.topology.graph
    port = np.zeros(graph.padded().shape, np.int32)
    linked = wiring.far >= 0
    free = (*spare.free, *_of_copies(spare, expansion, wiring))
    for vertex, degree in enumerate(graph.degrees.tolist()):
        # New vertices have higher numbers, so old neighbours keep their order, and come first.
        inside = vertex < len(wiring.names)
        kept = wiring.port[vertex, linked[vertex]].tolist() if inside else []
        port[vertex, :degree] = [*kept, *free[vertex]][:degree]
    return port


def far_ports(port: NDArray[np.int32], graph: Graph) -> NDArray[np.int32]:
    """int32[N, K]: the port at the other end of each link."""
    far = np.zeros_like(port)
    present = graph.padded() >= 0
    far[present] = graph.mirrored(port[present])
    return far


SpareNodes = Mapping[int, SpareNode]
"""The spare node that each new vertex takes; new vertices beyond have none."""


def spares_taken(hardware: Hardware, wiring: Wiring, expansion: Expansion) -> SpareNodes:
    """A spare of the type that it copies for each new vertex, in the inventory's order.

    Spares with disabled ports are left.
    """
    old = len(wiring.names)
    whole = [spare for spare in hardware.spares if not spare.disabled_ports]
    waiting = {name: iter([s for s in whole if s.type == name]) for name in wiring.type_names}
    kinds = wiring.node_type[expansion.origin[old:]].tolist()
    taken = {v: next(waiting[wiring.type_names[t]], None) for v, t in enumerate(kinds, old)}
    return {v: spare for v, spare in taken.items() if spare}


def hosts_of_spares(
    taken: SpareNodes, per_node: int
) -> Iterator[tuple[tuple[int, int], SpareHost]]:
    """The hosts of spares that are taken, each with its vertex and number."""
    for v, spare in taken.items():
        for h, host in enumerate(spare.hosts[:per_node]):
            yield (v, h), host
