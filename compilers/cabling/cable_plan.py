"""Plan the cables of a fabric: the ends, length, type and bundle of each, as arrays.

The cable schedule, panels, reports and exports begin with `cables_of`. It makes a cable for each
link, or several where a port has parallel connectors. The length follows from the places of racks
and units, and the type is the first in stock that is long enough, unless the inventory says
otherwise.

The cables of a new fabric are numbered from 1, in the order of rack pair, cluster pair and place of
the first end. So the cables of a bundle have consecutive numbers. When the fabric changes, cables
keep their numbers (`cable_labels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_stock import cables_from_stock, run_length
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.placement import layout_or_whole
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, InputError, Refused, shown

MOST_PARALLEL = 16
"""A bound on the parallel cables of a link: `Cables.keys` counts a link's cables up to it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class CabledFabric:
    """A fabric without tables: the fields of a `Build` that cables need."""

    name: str
    """The name of the fabric."""
    topology: Topology
    """The graph."""
    wiring: Wiring
    """The ports of links and hosts."""
    hardware: Hardware | None
    """The places of nodes and the cables in stock; None without an inventory."""
    addressing: Addressing
    """The addresses of hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """B bundles. A bundle is all cables between two clusters that run from one rack to another."""

    clusters: NDArray[np.int32]
    """int32[B, 2], the clusters at its first and second ends."""
    racks: NDArray[np.int32]
    """int32[B, 2], the racks at its first and second ends."""
    cables: NDArray[np.int64]
    """int64[B], how many cables it has."""
    number: NDArray[np.int64]
    """int64[B], the number on its label, from 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Cables:
    """The E cables between nodes, in the order of the floor plan."""

    hardware: Hardware
    """The places of nodes and the cables in stock."""
    ends: NDArray[np.int32]
    """int32[E, 2], the vertices at both ends."""
    ports: NDArray[np.int32]
    """int32[E, 2], the ports at both ends."""
    needed: NDArray[np.float64]
    """float64[E], the length of its way from port to port, in metres."""
    length: NDArray[np.float64]
    """float64[E], the length of the cable in stock, in metres."""
    kind: NDArray[np.int32]
    """int32[E], its type, an index into `kinds`."""
    bundle: NDArray[np.int32]
    """int32[E], its bundle; -1 for a cable within a cluster and a rack."""
    bundles: Bundles
    """The bundles of all cables."""
    hand: NDArray[np.int32]
    """int32[E], its entry in `Hardware.hand`, the cables that the inventory lists; -1: none."""
    number: NDArray[np.int64]
    """int64[E], the number on its label, from 1."""
    socket: NDArray[np.int32]
    """int32[E], its number among the parallel cables of a link, from 0."""

    def __len__(self) -> int:
        """E, the number of cables."""
        return len(self.ends)

    def kinds(self) -> list[dict[str, Any]]:
        """The types of cable in stock, as the inventory describes them."""
        types: list[dict[str, Any]] = self.hardware.cabling["types"]
        return types

    def lanes(self, wiring: Wiring) -> NDArray[np.int64]:
        """The lanes of each cable, int64[E], by the port at its first end; 0 where unknown."""
        first_port = wiring.node_type[self.ends[:, 0]], self.ports[:, 0]
        lanes_of_port = by_port(self.hardware, wiring, "lanes")[first_port]
        cables_of_port = by_port(self.hardware, wiring, "parallel")[first_port]
        lanes: NDArray[np.int64] = -(-lanes_of_port // cables_of_port)  # rounded up
        return lanes

    def keys(self) -> NDArray[np.int64]:
        """A key for each cable, int64[E], by link and socket: the same in every build of a
        fabric.
        """
        links = _link_numbers(self.ends, len(self.hardware.rack))
        keys: NDArray[np.int64] = links * MOST_PARALLEL + self.socket
        return keys


def _link_numbers(ends: NDArray[np.integer], vertices: int) -> NDArray[np.int64]:
    """A number for each link, int64[n]: its lower vertex times all vertices, plus the upper one.

    Args:
        ends: int[n, 2], the vertices at both ends, in any order.
        vertices: how many vertices there are.

    >>> _link_numbers(np.array([[2, 7], [7, 2]]), 10).tolist()
    [27, 27]
    """
    lower, upper = np.sort(ends.astype(np.int64), axis=1).T
    return np.asarray(lower * vertices + upper)


def by_port(hardware: Hardware, wiring: Wiring, attribute: str) -> NDArray[np.int64]:
    """An attribute of each port of each node type.

    Args:
        hardware: the node types.
        wiring: the ports of each type.
        attribute: its name in `NodeTypeFacts`, such as `lanes`.

    Returns:
        int64[types, ports + 1], by port number.
    """
    table = np.zeros((len(hardware.types), max(map(len, wiring.port_names)) + 1), np.int64)
    for node_type, facts in enumerate(hardware.types):
        values = getattr(facts, attribute)
        table[node_type, 1 : len(values) + 1] = values
    return table


def hardware_of(build: Build | CabledFabric) -> Hardware:
    """The hardware of a build; generated if it was compiled without an inventory.

    Raises:
        InputError: the build has no inventory, and other node types than a generated one has, as an
            edited build may.
    """
    if build.hardware is not None:
        return build.hardware
    hosts = build.wiring.host_port.shape[1]
    inventory = generated_inventory(build.topology, hosts, names=build.wiring.names)
    generated, types = list(inventory.node_types), list(build.wiring.type_names)
    if types != generated:
        required, todo = f"{generated[0]} in a build without inventory", "compile the build again"
        raise InputError.of(required, ", ".join(map(shown, types)), todo, key="node_types")
    return hardware_of_inventory(inventory, build.wiring, layout_or_whole(build.topology))


def cables_of(wiring: Wiring, hardware: Hardware) -> Cables:
    """Plan every cable between nodes.

    Args:
        wiring: the ports of every link.
        hardware: the places of nodes and the cables in stock.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    plugs = _in_floor_order(hardware, _plugs(wiring, hardware))
    bundle, bundles = _group_into_bundles(
        hardware.rack[plugs.ends], hardware.cluster[plugs.ends], hardware
    )
    hand = _inventory_entries(wiring, hardware, plugs.ends, plugs.socket)
    needed = run_length(hardware, plugs.ends)
    kind, length = cables_from_stock(hardware, needed, hand)
    return Cables(
        hardware=hardware,
        ends=plugs.ends,
        ports=plugs.ports,
        needed=needed,
        length=length,
        kind=kind,
        bundle=bundle,
        bundles=bundles,
        hand=hand,
        number=_numbers_on_labels(hardware.cable_number, len(plugs.ends)),
        socket=plugs.socket,
    )


class _Plugs(NamedTuple):
    """Where E cables are plugged."""

    ends: NDArray[np.int32]
    """int32[E, 2], the vertices at both ends."""
    ports: NDArray[np.int32]
    """int32[E, 2], the ports at both ends."""
    socket: NDArray[np.int32]
    """int32[E], the number among the parallel cables of a link."""


def _plugs(wiring: Wiring, hardware: Hardware) -> _Plugs:
    """The ends of all cables, in the order of links."""
    switch, link = wiring.links()
    ends = np.stack((switch, wiring.far[switch, link]), axis=1).astype(np.int32)
    ports = np.stack((wiring.port[switch, link], wiring.far_port[switch, link]), axis=1)
    parallel = by_port(hardware, wiring, "parallel")[wiring.node_type[ends[:, 0]], ports[:, 0]]
    ends, ports = np.repeat(ends, parallel, axis=0), np.repeat(ports, parallel, axis=0)
    # For each cable the first cable of its link.
    first = np.repeat(np.cumsum(parallel) - parallel, parallel)
    return _Plugs(ends, ports, (np.arange(len(ends)) - first).astype(np.int32))


def _in_floor_order(hardware: Hardware, plugs: _Plugs) -> _Plugs:
    """The cables in the order of the floor plan; the end that comes first there is first."""
    ends, ports = plugs.ends, plugs.ports
    swapped = _comes_before(hardware, ends[:, 1], ends[:, 0])
    ends[swapped], ports[swapped] = ends[swapped, ::-1], ports[swapped, ::-1]
    first_rack, second_rack = hardware.rack[ends].T
    first_cluster, second_cluster = hardware.cluster[ends].T
    order = np.lexsort(  # the last key is the most important one
        (
            plugs.socket,
            ports[:, 0],
            hardware.unit[ends[:, 0]],
            second_cluster,
            first_cluster,
            second_rack,
            first_rack,
        )
    )
    return _Plugs(ends[order], ports[order], plugs.socket[order])


def _numbers_on_labels(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The numbers of the hardware if it has `count` of them, else 1, 2, …."""
    return numbers if len(numbers) == count else np.arange(1, count + 1)


def too_long_findings(wiring: Wiring, hardware: Hardware) -> Iterator[Finding]:
    """Yield findings for racks that are too far apart for the cables in stock."""
    switch, link = wiring.links()
    needed = run_length(hardware, np.stack((switch, wiring.far[switch, link]), axis=1))
    if needed.max(initial=0) > max(kind["lengths"][-1] for kind in hardware.cabling["types"]):
        try:
            # This passes if the inventory lists the long cables with their lengths.
            cables_of(wiring, hardware)
        except Refused as refused:
            yield from refused.findings


def _comes_before(
    hardware: Hardware, vertex: NDArray[np.int32], other: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether each vertex comes before the other one, by rack, cluster and unit: bool[n]."""
    vertices = np.arange(len(hardware.rack))
    order = np.lexsort((vertices, hardware.unit, hardware.cluster, hardware.rack))
    rank = np.empty(len(order), np.int64)
    rank[order] = vertices
    earlier: NDArray[np.bool_] = rank[vertex] < rank[other]
    return earlier


def _group_into_bundles(
    racks: NDArray[np.int32], cluster: NDArray[np.int32], hardware: Hardware
) -> tuple[NDArray[np.int32], Bundles]:
    """The bundle of each cable, int32[E], -1 for none, and the bundles.

    Args:
        racks: int32[E, 2], the racks at both ends; sorted.
        cluster: int32[E, 2], the clusters at both ends; sorted within equal racks.
        hardware: the numbers of bundles, if it has any.
    """
    # A cable within a cluster and a rack is in no bundle.
    is_loose = (racks[:, 0] == racks[:, 1]) & (cluster[:, 0] == cluster[:, 1])
    # int32[n, 4] of the other cables; equal rows follow each other, and are one bundle.
    racks_and_clusters = np.concatenate((racks, cluster), axis=1)[~is_loose]
    is_first = np.ones(len(racks_and_clusters), bool)
    is_first[1:] = (racks_and_clusters[1:] != racks_and_clusters[:-1]).any(axis=1)
    number = np.cumsum(is_first) - 1
    bundle = np.full(len(racks), -1, np.int32)
    bundle[~is_loose] = number
    count = np.bincount(number, minlength=int(is_first.sum()))
    first_racks, first_clusters = np.split(racks_and_clusters[is_first], 2, axis=1)
    bundles = Bundles(
        clusters=first_clusters,
        racks=first_racks,
        cables=count,
        number=_numbers_on_labels(hardware.bundle_number, len(count)),
    )
    return bundle, bundles


def _inventory_entries(
    wiring: Wiring, hardware: Hardware, ends: NDArray[np.int32], socket: NDArray[np.int32]
) -> NDArray[np.int32]:
    """The inventory's entry for each cable, int32[E]; -1: none.

    An entry that names ports stands for all parallel cables of a link, and an entry that names
    sockets for a single cable.

    Args:
        wiring: the names of nodes.
        hardware: the entries.
        ends: int32[E, 2], the vertices at both ends of each cable.
        socket: int32[E], the number of each cable among the parallel cables of its link.
    """
    entry_of_cable = np.full(len(ends), -1, np.int32)
    if not hardware.hand:
        return entry_of_cable
    vertex_of = {name: vertex for vertex, name in enumerate(wiring.names)}
    listed_ends = np.array([(vertex_of[row["a"]], vertex_of[row["b"]]) for row in hardware.hand])
    # The cables by link, then by socket; and where in this order those of each listed link begin
    # and end. For a link that is missing both are the same.
    link_of_cable = _link_numbers(ends, len(vertex_of))
    by_link = np.lexsort((socket, link_of_cable))
    listed_link = _link_numbers(listed_ends, len(vertex_of))
    begin = np.searchsorted(link_of_cable, listed_link, side="left", sorter=by_link)
    end = np.searchsorted(link_of_cable, listed_link, side="right", sorter=by_link)
    socket_numbers = [_socket_numbers(facts) for facts in hardware.types]
    for entry, row in enumerate(hardware.hand):
        parallel_cables = by_link[begin[entry] : end[entry]]
        node_type = wiring.node_type[listed_ends[entry, 0]]
        named_socket = socket_numbers[node_type].get(row["a_port"])
        if named_socket is not None:
            parallel_cables = parallel_cables[named_socket : named_socket + 1]
        entry_of_cable[parallel_cables] = entry
    return entry_of_cable


def _socket_numbers(facts: NodeTypeFacts) -> dict[str, int]:
    """The number of each socket among the sockets of its port, by its name.

    Ports with a single socket are left out.
    """
    return {
        name: number
        for names in facts.sockets
        if len(names) > 1
        for number, name in enumerate(names)
    }
