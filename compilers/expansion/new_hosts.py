"""The hosts of the new switches of an expansion, and the ports that these hosts can have.

When a fabric grows, a new switch gets as many hosts as most switches of its type have. It may be a
*spare*: a node that the inventory names already, and that has had no vertex so far. `grow` asks for
the needs before it gives hosts ports, and `base_fabric` to count the clusters that fit.
"""

from __future__ import annotations

from collections import Counter

from compilers.expansion.host_needs import HostNeed, host_needs
from compilers.expansion.link_ports import LinkPorts
from compilers.expansion.spare_nodes import SpareNodes, choose_spare_nodes
from compilers.spec.allocations import HOST
from compilers.tables.build import Build
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


def needs_of_new_hosts(
    build: Build, expansion: Expansion, link_ports: LinkPorts, hardware: Hardware
) -> list[HostNeed]:
    """The hosts of each new switch, and the ports that they can have."""
    spare_nodes = choose_spare_nodes(hardware, build.wiring, expansion)
    hosts = _host_counts(build, expansion, spare_nodes)
    return host_needs(link_ports, expansion, build.wiring, hardware.types, hosts)


def _host_counts(build: Build, expansion: Expansion, spare_nodes: SpareNodes) -> list[int]:
    """The number of hosts of each new switch: the most common number of its type.

    If the inventory names every host of the fabric, new switches have only the hosts that it names
    at spares.
    """
    wiring, most_hosts = build.wiring, build.wiring.host_port.shape[1]
    host_count = int((wiring.host_port > 0).sum())
    # Only hosts that the inventory names have allocated numbers.
    all_are_named = host_count <= len(build.allocations.of(HOST).used)
    count_of_type = _most_common_counts(wiring)
    counts = []
    for vertex in range(len(wiring.names), len(expansion.origin)):
        spare = spare_nodes.get(vertex)
        listed = min(len(spare.hosts), most_hosts) if spare else 0
        most_common = count_of_type[int(wiring.node_type[expansion.origin[vertex]])]
        counts.append(listed if all_are_named else max(listed, most_common))
    return counts


def _most_common_counts(wiring: Wiring) -> dict[int, int]:
    """The most common number of hosts by node type; of equally common ones the larger."""
    counts_of_type: dict[int, Counter[int]] = {}
    hosts = (wiring.host_port > 0).sum(axis=1).tolist()
    for node_type, count in zip(wiring.node_type.tolist(), hosts, strict=True):
        counts_of_type.setdefault(node_type, Counter())[count] += 1
    return {
        node_type: max(counts, key=lambda count: (counts[count], count))
        for node_type, counts in counts_of_type.items()
    }
