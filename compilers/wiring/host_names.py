"""The names of hosts: those that the inventory lists, those by its pattern, or default ones.

`compilers.wiring.wire` names all hosts of a fabric, and `compilers.expansion.grow` those of new
switches. The *place* of a host is its index among the host ports of its node. A pattern is a text
such as `{node}-{host}` (`host_names` of the inventory).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from compilers.wiring.wiring_checks import PlacedNodes

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Node


def all_host_names(
    pattern: str | None, site: PlacedNodes, places: Sequence[Sequence[int]], hosts_per_node: int
) -> tuple[str, ...]:
    """Return the name of each host, vertex by vertex.

    It is the name that the inventory lists, else the name by its pattern, else the default name.

    Args:
        pattern: `host_names` of the inventory; None without one.
        site: the node of each vertex.
        places: the places of the hosts of each switch.
        hosts_per_node: how many names each switch gets.
    """
    by_pattern = _names_by_pattern(pattern, site, places)
    return tuple(
        name
        for v, node in enumerate(site.nodes)
        for name in host_names_at(v, _listed_names(node, by_pattern[v]), hosts_per_node)
    )


def _names_by_pattern(
    pattern: str | None, site: PlacedNodes, places: Sequence[Sequence[int]]
) -> list[list[str | None]]:
    """Return the names that a pattern gives the hosts of each vertex, by their places.

    The number in a name counts all hosts from 1, in the order in which the inventory lists nodes;
    the host in a name counts the hosts of its node from 1.
    """
    if pattern is None:
        return [[] for _ in site.nodes]
    in_listed_order = sorted(range(len(places)), key=lambda v: site.indexes[v])
    # How many hosts come before those of each vertex.
    counts = accumulate((len(places[v]) for v in in_listed_order), initial=0)
    hosts_before = dict(zip(in_listed_order, counts, strict=False))
    names: list[list[str | None]] = []
    for v, node in enumerate(site.nodes):
        names_of_node: list[str | None] = [None] * (max(places[v], default=-1) + 1)
        for number, h in enumerate(places[v], hosts_before[v] + 1):
            names_of_node[h] = pattern.format(
                node=node.name, rack=node.rack or "", vertex=v, host=h + 1, number=number
            )
        names.append(names_of_node)
    return names


def _listed_names(node: Node, by_pattern: Sequence[str | None]) -> list[str | None]:
    """Return the names of a node's hosts: those of the inventory, else those by the pattern."""
    listed = [host.name for host in node.hosts]
    return [name or pattern_name for name, pattern_name in zip_longest(listed, by_pattern)]


def host_names_at(vertex: int, names: Sequence[str | None], hosts: int) -> list[str]:
    """Return the names of a switch's hosts, with a default name where there is no other.

    >>> host_names_at(7, ["web"], 2)
    ['web', 'h7-1']
    """
    names = [*names, *[None] * hosts]
    defaults = [f"h{vertex}"] if hosts == 1 else [f"h{vertex}-{i}" for i in range(hosts)]
    return [name or default for name, default in zip(names, defaults, strict=False)]
