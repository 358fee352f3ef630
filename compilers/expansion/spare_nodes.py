"""Spare nodes of the inventory, which an expansion takes before it makes nodes up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, SpareHost, SpareNode
from compilers.wiring.wiring import Wiring

SpareNodes = Mapping[int, SpareNode]
"""The spare node that each new vertex takes; new vertices beyond have none."""


def spares_taken(known: Hardware, wiring: Wiring, expansion: Expansion) -> SpareNodes:
    """A spare of the type that it copies for each new vertex, in the inventory's order.

    Spares with disabled ports are left.
    """
    old = len(wiring.names)
    whole = [spare for spare in known.spares if not spare.disabled_ports]
    waiting = {name: iter([s for s in whole if s.type == name]) for name in wiring.type_names}
    kinds = wiring.node_type[expansion.origin[old:]].tolist()
    found = {v: next(waiting[wiring.type_names[t]], None) for v, t in enumerate(kinds, old)}
    return {v: spare for v, spare in found.items() if spare}


def hosts_of_spares(
    taken: SpareNodes, per_node: int
) -> Iterator[tuple[tuple[int, int], SpareHost]]:
    """The hosts of spares that are taken, each with its vertex and number."""
    for v, spare in taken.items():
        for h, host in enumerate(spare.hosts[:per_node]):
            yield (v, h), host
