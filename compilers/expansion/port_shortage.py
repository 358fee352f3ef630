"""Refuse an expansion for whose links or hosts there are too few ports.

`grow` calls both checks. Each message names the clusters of this kind that do fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compilers.expansion.host_needs import HostNeed
from compilers.expansion.link_ports import LinkPorts, links_to_add, ports_for_links
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


def require_room(
    link_ports: LinkPorts, expansion: Expansion, wiring: Wiring, clusters_that_fit: int
) -> None:
    """Pass if there are ports for all links of an expansion.

    Args:
        link_ports: the ports of the installed fabric that links may take.
        expansion: the larger fabric.
        wiring: the names of nodes.
        clusters_that_fit: the number of clusters of this kind that the ports allow.

    Raises:
        InputError: nodes lack ports.
    """
    links, ports = links_to_add(expansion), ports_for_links(link_ports, expansion, wiring)
    copies = expansion.origin[len(wiring.names) :].tolist()
    names = [*wiring.names, *(f"the copy of {wiring.names[o]}" for o in copies)]
    lacking = np.flatnonzero(links > ports).tolist()
    if lacking:
        worst = max(lacking, key=lambda vertex: (links[vertex] - ports[vertex], -vertex))
        others = f", and too few at {len(lacking) - 1:,} more nodes" if len(lacking) > 1 else ""
        raise InputError.of(
            key="clusters",
            required=f"{_ports_in_words(int(links[worst]), 'unused ')} for links at {names[worst]}",
            given=f"{ports[worst]}{others}",
            todo=_remedy(clusters_that_fit),
        )


def require_room_for_hosts(
    needs: Sequence[HostNeed], types: Sequence[NodeTypeFacts], clusters_that_fit: int
) -> None:
    """Pass if new nodes have ports for their hosts.

    Args:
        needs: the hosts of new nodes.
        types: the node types.
        clusters_that_fit: the number of clusters of this kind that the ports allow.

    Raises:
        InputError: new nodes lack ports.
    """
    for need in needs:
        if need.lacks_ports:
            type_name = types[need.node_type].name
            raise InputError.of(
                key="clusters",
                required=f"{_ports_in_words(need.hosts)} for hosts at a new {type_name}",
                given=f"{len(need.ports)} besides its links",
                todo=_remedy(clusters_that_fit),
            )


def _ports_in_words(number: int, adjective: str = "") -> str:
    """Return a number of ports in words."""
    return f"{number} {adjective}port{'' if number == 1 else 's'}"


def _remedy(clusters_that_fit: int) -> str:
    """Return in words how many clusters fit, and what to do to add more."""
    few = {0: "no cluster of this kind fits", 1: "one cluster of this kind fits"}
    most = few.get(clusters_that_fit, f"at most {clusters_that_fit} clusters of this kind fit")
    return f"{most}; use node types with more ports for more"
