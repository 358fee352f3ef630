"""The order of hosts for NCCL, whose rings go from node to node by rank, and its settings.

NCCL reads no fabric: NCCL_TOPO_FILE is about the inside of a host, which polarfab does not know.
What counts in a flat fabric is which host comes after which in a ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from extensions.clusters.host_groups import HostGroups

PLANES = """\
# {0} planes that no link joins: what leaves by the NIC of one plane arrives at that plane's NIC.
NCCL_CROSS_NIC=0
"""


def files(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
    """`hostfile`, all hosts in the order of a ring, and with several planes `nccl.conf`.

    Raises:
        InputError: the fabric has no hosts.
    """
    groups = HostGroups.of(builds)
    by_vertex = {switch.vertex: switch for switch in groups.switches}
    order = ring_order(builds[0].topology.graph, [*by_vertex])
    hosts = (host for v in order for host in by_vertex[v].hosts)
    yield "hostfile", "".join(f"{host}\n" for host in hosts)
    if len(builds) > 1:
        yield "nccl.conf", PLANES.format(len(builds))


def ring_order(graph: Graph, vertices: Sequence[int]) -> list[int]:
    """The vertices in an order in which most are neighbours of the one before.

    From each to the neighbour that has the fewest neighbours left (Warnsdorff's rule), or where
    none is left to the first vertex that is.
    """
    left = dict.fromkeys(vertices)
    near = {v: [n for n in graph.neighbours(v).tolist() if n in left] for v in vertices}
    free = {v: len(some) for v, some in near.items()}
    order: list[int] = []
    while left:
        ahead = [n for n in near[order[-1]] if n in left] if order else []
        chosen = min(ahead, key=lambda v: (free[v], v)) if ahead else next(iter(left))
        del left[chosen]
        order.append(chosen)
        for n in near[chosen]:
            free[n] -= 1
    return order
