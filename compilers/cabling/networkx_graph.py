"""A fabric as a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.tables.build import Build

if TYPE_CHECKING:
    from networkx import Graph


def to_networkx(build: Build) -> Graph[int]:
    """The nodes and cables of a build as an undirected graph over its vertices.

    A node has `name`, `kind`, `coordinates` (a tuple of integers), `rack` and `hosts`; vertices
    that a damaged fabric lacks are left out. An edge has `ports` (vertex to the port's name at it),
    `length` (metres; of parallel cables the longest) and `cables` (how many are parallel).
    """
    import networkx

    topology, wiring, known = build.topology, build.wiring, hardware_of(build)
    graph: Graph[int] = networkx.Graph(name=build.name, build=build.identity)
    hosts = (wiring.host_port > 0).sum(axis=1).tolist()
    for v in topology.present.nonzero()[0].tolist():
        graph.add_node(
            v,
            name=wiring.names[v],
            kind=topology.kinds[topology.kind[v]],
            coordinates=tuple(topology.coordinates[v].tolist()),
            rack=known.rack_names[known.rack[v]],
            hosts=hosts[v],
        )
    cables = cables_of(wiring, known)
    rows = (cables.ends.tolist(), cables.ports.tolist(), cables.length.tolist())
    for (u, v), (here, there), length in zip(*rows, strict=True):
        before = graph.get_edge_data(u, v, {"length": 0.0, "cables": 0})
        graph.add_edge(
            u,
            v,
            ports={u: wiring.port_name(u, here), v: wiring.port_name(v, there)},
            length=max(length, before["length"]),
            cables=before["cables"] + 1,
        )
    return graph
