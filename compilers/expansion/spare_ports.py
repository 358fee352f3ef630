"""Ports for the links that an expansion adds: unused ones, so that no plug is moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.graph import Graph
from compilers.topology.replication import Expansion
from compilers.wiring.hardware import PortFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class Spare:
    """Ports for links: those of each type, and those of each switch that nothing uses, in order."""

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
        """int64[S]: how many each switch has."""
        return np.array([len(ports) for ports in self.free], np.int64)


def needed(expansion: Expansion) -> NDArray[np.int64]:
    """int64[N']: how many new links each vertex gets."""
    return np.bincount(expansion.added.ravel(), minlength=len(expansion.origin))


def room(spare: Spare, expansion: Expansion, wiring: Wiring) -> NDArray[np.int64]:
    """int64[N']: how many ports each vertex has for them."""
    copies = [len(ports) for ports in _of_copies(spare, expansion, wiring)]
    return np.concatenate((spare.counts(), np.array(copies, np.int64)))


def require_room(spare: Spare, expansion: Expansion, wiring: Wiring, fits: int) -> None:
    """Refuse an expansion for which ports run out.

    Args:
        spare: of the fabric that there is.
        expansion: the larger fabric.
        wiring: names the nodes.
        fits: how many racks of this kind would have ports.

    Raises:
        InputError: nodes that lack ports, and how many.
    """
    links, have = needed(expansion), room(spare, expansion, wiring)
    copies = expansion.origin[len(wiring.names) :].tolist()
    names = [*wiring.names, *(f"the copy of {wiring.names[o]}" for o in copies)]
    most = "none fits" if not fits else f"at most {fits} of this kind fit"
    short = np.flatnonzero(links > have).tolist()
    if short:
        v = max(short, key=lambda v: (links[v] - have[v], -v))
        others = f", and too few at {len(short) - 1:,} nodes more" if len(short) > 1 else ""
        raise InputError(
            Problem(
                key="racks",
                required=f"{links[v]} unused ports for links at {names[v]}",
                given=f"{have[v]}{others}",
                todo=f"{most}; node types with more ports take more",
            )
        )


def _of_copies(spare: Spare, expansion: Expansion, wiring: Wiring) -> list[tuple[int, ...]]:
    """The ports for links of each new node, which is of its origin's type."""
    origin = expansion.origin[len(wiring.names) :]
    return [spare.of_type[t] for t in wiring.node_type[origin].tolist()]


def grown_ports(spare: Spare, expansion: Expansion, wiring: Wiring) -> NDArray[np.int32]:
    """int32[N', K']: the port of each link; old links keep theirs, new ones take spare ports."""
    graph = expansion.topology.graph
    port = np.zeros(graph.padded().shape, np.int32)
    old, links = wiring.port.shape
    # New vertices have higher numbers: the neighbours that were there keep their places.
    port[:old, :links] = wiring.port
    free = (*spare.free, *_of_copies(spare, expansion, wiring))
    for vertex, degree in enumerate(graph.degrees.tolist()):
        taken = _degree(wiring, vertex)
        port[vertex, taken:degree] = free[vertex][: degree - taken]
    return port


def _degree(wiring: Wiring, vertex: int) -> int:
    return int(np.count_nonzero(wiring.port[vertex])) if vertex < len(wiring.names) else 0


def far_ports(port: NDArray[np.int32], graph: Graph) -> NDArray[np.int32]:
    """int32[N, K]: the port at the other end of each link."""
    far = np.zeros_like(port)
    present = graph.padded() >= 0
    far[present] = port[present][graph.reverse()]
    return far
