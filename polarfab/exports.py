"""The library's functions that give a fabric to other programs: networkx, NetBox and others.

They return a graph, or the texts of files by name; the verbs `export` and `inventory` write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inventory.problems import InputError, not_among

if TYPE_CHECKING:
    from networkx import Graph

    from polarfab.fabric import Fabric


def to_networkx(fabric: Fabric) -> Graph[int]:
    """The nodes and cables of a plane as an undirected graph over its vertices.

    A node has `name`, `kind`, `coordinates` (a tuple of integers), `rack` and `hosts`; vertices
    that a damaged fabric lacks are left out. An edge has `ports` (vertex to the port's name at it),
    `length` (metres; of parallel cables the longest) and `cables` (how many are parallel).

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> print(polarfab.to_networkx(fabric))
        Graph named 'lab' with 13 nodes and 24 edges
    """
    import networkx

    from compilers.cabling.cable_plan import cables_of, hardware_of

    build = fabric.build
    topology, wiring, hardware = build.topology, build.wiring, hardware_of(build)
    graph: Graph[int] = networkx.Graph(name=build.name, build=build.identity)
    hosts = (wiring.host_port > 0).sum(axis=1).tolist()
    for v in topology.present.nonzero()[0].tolist():
        graph.add_node(
            v,
            name=wiring.names[v],
            kind=topology.kinds[topology.kind[v]],
            coordinates=tuple(topology.coordinates[v].tolist()),
            rack=hardware.rack_names[hardware.rack[v]],
            hosts=hosts[v],
        )
    cables = cables_of(wiring, hardware)
    ports, lengths = cables.ports.tolist(), cables.length.tolist()
    for (u, v), (port, far_port), length in zip(cables.ends.tolist(), ports, lengths, strict=True):
        # A parallel cable changes the edge that the first one has added.
        edge = graph.get_edge_data(u, v, {"length": 0.0, "cables": 0})
        graph.add_edge(
            u,
            v,
            ports={u: wiring.port_name(u, port), v: wiring.port_name(v, far_port)},
            length=max(length, edge["length"]),
            cables=edge["cables"] + 1,
        )
    return graph


def export(fabric: Fabric, form: str) -> dict[str, str]:
    """Files for another program, their texts by name; extensions register the formats.

    Raises:
        InputError: there is no such format, there are no hosts, names do not fit, or there are
            more pairs of hosts than the format holds.
    """
    from compilers.entry_points import EXPORTS, load, registered

    if form not in registered(EXPORTS):
        raise InputError(not_among(form, registered(EXPORTS), "format"))
    return dict(load(registered(EXPORTS)[form][0])(fabric.builds))


def netbox(
    fabric: Fabric, site: str = "", role: str = "switch", target: str = ""
) -> dict[str, str]:
    """The hardware as files for NetBox's imports, their texts by name, in the order to import them.

    Args:
        fabric: a fabric from its spec. Its ports and units are planned anew, unless it is compiled,
            or `Fabric.keeping` has the ports and units of a build.
        site: the name of the site; "" for the fabric's name.
        role: the role of every switch; cassettes have the role `cassette`.
        target: the target whose names ports have; "" for the names of the inventory.

    Raises:
        InputError: the inventory cannot hold the fabric, or the fabric was loaded from a build.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> list(polarfab.netbox(fabric))[0]
        'device-types/generated.yaml'
    """
    from compilers.cabling.netbox_export import files
    from compilers.memory_bound import MemoryBound
    from polarfab.fabric import with_installed

    if fabric.loaded is None:
        raise InputError.of("a fabric from its spec", "a build")
    loaded = with_installed(fabric.loaded, None)
    topology = fabric.loaded.spec.topology
    MemoryBound.of_family(topology.family, topology.parameters()).measured().require()
    return dict(files(loaded, site or fabric.name, role, target))
