"""The data of the interactive page: names and ports of nodes, and the look-up tables of switches.

The script of the page follows packets by these tables, and computes no routes. `picture.draw` calls
`page_data`, which makes the JSON text that is put into the page beside its picture.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.positions import noun_of
from compilers.drawing.scene import Scene
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

Links = NDArray[np.unsignedinteger[Any]]
"""Numbers of links of a switch, as uint8 or uint16; the largest number stands for none."""

MOST_PAGE_NODES = 3_000
"""The most nodes of a page."""


def page_data(
    scene: Scene,
    topology: Topology,
    wiring: Wiring,
    tables: Tables,
    racks: Layout,
    marked: tuple[int, ...] = (),
    sites: tuple[str, ...] = (),
) -> str:
    """The data as JSON text that is safe in a <script> element.

    Arrays are base64 of their bytes, in little-endian order:

    - `next`: uint8[S, S], or uint16 if `wide`: the link by which a switch sends packets for another
      switch, or the largest number for none;
    - `alternates`: uint8[S, C, K/8]: bit k of a class is set if link k shares its traffic;
    - `egress`: uint16[S, S], the egress classes.

    The last two are empty if the tables have no alternates.

    Args:
        scene: the picture, for the positions of nodes.
        topology: the graph, and its coordinates.
        wiring: the names and ports of nodes.
        tables: the forwarding tables.
        racks: the layout of the picture; its parts may also be clusters.
        marked: the highlighted racks, by number.
        sites: the rack of each node in words; empty where unknown.

    Raises:
        InputError: the fabric is too large for a page.
    """
    if topology.graph.order > MOST_PAGE_NODES:
        raise InputError.of(
            required=f"at most {MOST_PAGE_NODES:,} nodes in a page",
            given=f"{topology.graph.order:,}",
            todo="draw a picture instead: name a file such as fabric.svg",
        )
    data = _node_data(
        scene, topology=topology, wiring=wiring, racks=racks, marked=marked, sites=sites
    ) | _table_data(wiring, tables)
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _node_data(
    scene: Scene,
    topology: Topology,
    wiring: Wiring,
    racks: Layout,
    marked: tuple[int, ...],
    sites: tuple[str, ...],
) -> dict[str, Any]:
    """The names, places, links and ports of nodes.

    Args:
        scene: the picture, for the positions of nodes.
        topology: the graph, and its coordinates.
        wiring: the names and ports of nodes.
        racks: the layout of the picture; its parts may also be clusters.
        marked: the highlighted racks, by number.
        sites: the rack of each node in words; empty where unknown.
    """
    port_names = sorted({name for names in wiring.port_names for name in names})
    return {
        "names": wiring.names,
        "kinds": topology.kinds,
        "kind": topology.kind.tolist(),
        "coordinates": topology.coordinates.tolist(),
        "noun": noun_of(racks),
        "racks": racks.names,
        "rack": racks.rack.tolist(),
        "marked": marked,
        "sites": sites,
        "x": [node.x for node in scene.nodes],
        "y": [node.y for node in scene.nodes],
        "links": [row[row >= 0].tolist() for row in wiring.far],
        "portNames": port_names,
        "ports": _port_numbers(wiring, port_names),
        "hosts": _hosts_in_words(wiring),
    }


def _table_data(wiring: Wiring, tables: Tables) -> dict[str, Any]:
    """The look-up tables of switches, as `page_data` describes them."""
    egress = Fib.of(tables, wiring.far_by_port()).egress(np.arange(len(wiring.names)))
    next_link = _next_links(wiring, tables, egress)
    data: dict[str, Any] = {
        "next": _base64(next_link),
        "wide": next_link.dtype != np.uint8,
        "alternates": "",
        "egress": "",
    }
    if tables.classes.alternate.shape[2]:
        data["alternates"] = _base64(_shared_link_bits(wiring, tables))
        data["egress"] = _base64(egress.astype(np.uint16))
        data["classes"] = int(tables.classes.port.shape[1])
    return data


def _base64(array: NDArray[Any]) -> str:
    """The bytes of an array, in little-endian order, as base64."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()


def _next_links(wiring: Wiring, tables: Tables, egress: NDArray[np.integer]) -> Links:
    """The link by which each value of `Routes.egress`, int[S, S], leaves its switch."""
    by_class = _link_at_ports(wiring, tables.classes.port)
    none = np.full((len(by_class), 1), np.iinfo(by_class.dtype).max, by_class.dtype)
    link: Links = np.concatenate((by_class, none), axis=1)
    # `local` and `no_route` are larger than every class.
    number = np.minimum(egress, by_class.shape[1]).astype(np.int64)
    return np.take_along_axis(link, number, axis=1)


def _link_at_ports(wiring: Wiring, port: NDArray[np.integer]) -> Links:
    """The link at each port, in the shape of `port`, int[S, …]."""
    fits_in_byte = wiring.port.shape[1] <= np.iinfo(np.uint8).max
    number = np.iinfo(np.uint8 if fits_in_byte else np.uint16)
    # [S, ports + 1], the link at each port; the largest number for none.
    shape = (len(port), int(max(wiring.port.max(), port.max())) + 1)
    table: Links = np.full(shape, number.max, number.dtype)
    switch, link = np.nonzero(wiring.far >= 0)
    table[switch, wiring.port[switch, link]] = link
    flat = port.reshape(len(port), -1).astype(np.int64)
    links: Links = np.take_along_axis(table, flat, axis=1).reshape(port.shape)
    return links


def _shared_link_bits(wiring: Wiring, tables: Tables) -> NDArray[np.uint8]:
    """The links among which a class shares traffic: uint8[S, C, K/8], a bit each, lowest first."""
    link = _link_at_ports(wiring, tables.classes.alternate)
    # The first weight of a class is that of its minimal port, the others are those of alternates.
    is_used = (tables.classes.weight[..., 1:] > 0) & (link < np.iinfo(link.dtype).max)
    mask = np.zeros((*link.shape[:2], wiring.port.shape[1]), np.bool_)
    switch, row, column = np.nonzero(is_used)
    mask[switch, row, link[switch, row, column]] = True
    return np.packbits(mask, axis=2, bitorder="little")


def _port_numbers(wiring: Wiring, names: list[str]) -> list[list[int]]:
    """For each switch and link the name of the port, as an index into `names`."""
    number = {name: i for i, name in enumerate(names)}
    by_type = [[number[name] for name in type_names] for type_names in wiring.port_names]
    return [
        [by_type[kind][port - 1] for port in ports if port]
        for kind, ports in zip(wiring.node_type.tolist(), wiring.port.tolist(), strict=True)
    ]


def _hosts_in_words(wiring: Wiring) -> list[list[str]]:
    """For each switch the hosts in words: `name (port)`."""
    per_node = wiring.host_port.shape[1]
    return [
        [
            f"{wiring.host_names[vertex * per_node + host]} ({wiring.port_name(vertex, port)})"
            for host, port in enumerate(ports)
            if port
        ]
        for vertex, ports in enumerate(wiring.host_port.tolist())
    ]
