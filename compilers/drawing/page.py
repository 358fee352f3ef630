"""Data of the interactive page with its picture: ports, and where packets go.

The page has the look-up tables of the switches, so it follows packets as they would and computes no
routes.
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

MOST_PAGE_NODES = 3_000


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

    `next` is base64 of uint8[S, S], uint16 if `wide`: the link by which a switch sends packets for
    another, or the largest number for none. `alternates` is base64 of uint8[S, C, K/8]: bit k of a
    class is set if link k shares its traffic. `egress` is base64 of uint16[S, S], the classes. The
    latter two are empty if the tables have no alternates.

    Raises:
        InputError: the fabric is too large for a page.
    """
    if topology.graph.order > MOST_PAGE_NODES:
        raise InputError.of(
            required=f"at most {MOST_PAGE_NODES:,} nodes in a page",
            given=f"{topology.graph.order:,}",
            todo="draw a picture instead: -o FILE.svg",
        )
    egress = Fib.of(tables, wiring.cables()).egress(np.arange(topology.graph.order))
    following = _links(wiring, tables, egress)
    names = sorted({name for names in wiring.port_names for name in names})
    data: dict[str, Any] = {
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
        "portNames": names,
        "ports": _port_numbers(wiring, names),
        "hosts": _hosts(wiring),
        "next": _base64(following),
        "wide": following.dtype != np.uint8,
        "alternates": "",
        "egress": "",
    }
    if tables.classes.alternate.shape[2]:
        data["alternates"] = _base64(_shared(wiring, tables))
        data["egress"] = _base64(egress.astype(np.uint16))
        data["classes"] = int(tables.classes.port.shape[1])
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _base64(array: NDArray[Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()


def _links(wiring: Wiring, tables: Tables, egress: NDArray[np.integer]) -> Links:
    """[S, S]: the number of the link that each egress value leaves by, or the largest number."""
    by_class = _link_of(wiring, tables.classes.port)
    none = np.full((len(by_class), 1), np.iinfo(by_class.dtype).max, by_class.dtype)
    link: Links = np.concatenate((by_class, none), axis=1)
    # `local` and `no_route` are larger than every class.
    number = np.minimum(egress, by_class.shape[1]).astype(np.int64)
    return np.take_along_axis(link, number, axis=1)


def _link_of(wiring: Wiring, port: NDArray[np.integer]) -> Links:
    """Shaped as `port`, int[S, …]: the number of the link at each port, or the largest number."""
    narrow = wiring.port.shape[1] <= np.iinfo(np.uint8).max
    number = np.iinfo(np.uint8 if narrow else np.uint16)
    shape = (len(port), int(max(wiring.port.max(), port.max())) + 1)
    table: Links = np.full(shape, number.max, number.dtype)
    switch, link = np.nonzero(wiring.far >= 0)
    table[switch, wiring.port[switch, link]] = link
    flat = port.reshape(len(port), -1).astype(np.int64)
    links: Links = np.take_along_axis(table, flat, axis=1).reshape(port.shape)
    return links


def _shared(wiring: Wiring, tables: Tables) -> NDArray[np.uint8]:
    """uint8[S, C, K/8]: the links among which a class shares traffic, a bit each, lowest first."""
    link = _link_of(wiring, tables.classes.alternate)
    used = (tables.classes.weight[..., 1:] > 0) & (link < np.iinfo(link.dtype).max)
    mask = np.zeros((*link.shape[:2], wiring.port.shape[1]), np.bool_)
    switch, row, column = np.nonzero(used)
    mask[switch, row, link[switch, row, column]] = True
    return np.packbits(mask, axis=2, bitorder="little")


def _port_numbers(wiring: Wiring, names: list[str]) -> list[list[int]]:
    """The name of each link's port, as a place in `names`."""
    number = {name: i for i, name in enumerate(names)}
    by_type = [[number[name] for name in type_names] for type_names in wiring.port_names]
    return [
        [by_type[kind][port - 1] for port in ports if port]
        for kind, ports in zip(wiring.node_type.tolist(), wiring.port.tolist(), strict=True)
    ]


def _hosts(wiring: Wiring) -> list[list[str]]:
    """`name (port)` of each host of a vertex."""
    per_node = wiring.host_port.shape[1]
    return [
        [
            f"{wiring.host_names[vertex * per_node + host]} ({wiring.port_name(vertex, port)})"
            for host, port in enumerate(ports)
            if port
        ]
        for vertex, ports in enumerate(wiring.host_port.tolist())
    ]
