"""The cables of a fabric as arrays: ends, lengths, types, bundles.

Cables are numbered from 1, in the order of rack pair, cluster pair and place of the first end. So
the cables of a bundle have consecutive numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.placement import clusters
from compilers.wiring.wiring import Wiring, generated_inventory
from inventory.problems import Finding, InputError, Refused, shown

MOST_PARALLEL = 16
UNIT_METRES = 0.04445  # IEC 60297: a rack unit is 1.75 inches


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Cabled:
    """What cables need of a fabric that has no tables yet, in the words of a `Build`."""

    name: str
    topology: Topology
    wiring: Wiring
    hardware: Hardware | None
    addressing: Addressing


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """The B bundles: all cables between two clusters that run from one rack to another."""

    clusters: NDArray[np.int32]
    """int32[B, 2]: those of the first end first."""
    racks: NDArray[np.int32]
    """int32[B, 2]: those of the first end first."""
    cables: NDArray[np.int64]
    """int64[B]: how many cables each has."""
    number: NDArray[np.int64]
    """int64[B]: from 1, in the whole fabric."""


@dataclass(frozen=True, slots=True, eq=False)
class Cables:
    """The E cables between nodes, in the order of their numbers."""

    hardware: Hardware
    """The places of nodes and the cables in stock."""
    ends: NDArray[np.int32]
    """int32[E, 2]: the vertex at both ends."""
    ports: NDArray[np.int32]
    """int32[E, 2]: the port at both ends."""
    needed: NDArray[np.float64]
    """float64[E]: metres of the run."""
    length: NDArray[np.float64]
    """float64[E]: metres of the cable in stock."""
    kind: NDArray[np.int32]
    """int32[E]: an index into the types of the cabling."""
    bundle: NDArray[np.int32]
    """int32[E]: -1 for cables within a cluster and rack."""
    bundles: Bundles
    """The bundles of all cables."""
    hand: NDArray[np.int32]
    """int32[E]: the cable of the inventory that fixes the ports, -1 for none."""
    number: NDArray[np.int64]
    """int64[E]: from 1, in the whole fabric; missing cables leave gaps."""
    socket: NDArray[np.int32]
    """int32[E]: from 0 among the parallel cables of a link."""

    def __len__(self) -> int:
        """E, the number of cables."""
        return len(self.ends)

    def kinds(self) -> list[dict[str, Any]]:
        """The types of the cabling, as plain data."""
        types: list[dict[str, Any]] = self.hardware.cabling["types"]
        return types

    def lanes(self, wiring: Wiring) -> NDArray[np.int64]:
        """int64[E]: the lanes of each cable by the port at its first end, 0 where unknown."""
        here = wiring.node_type[self.ends[:, 0]], self.ports[:, 0]
        lanes, parallel = (by_port(self.hardware, wiring, w)[here] for w in ("lanes", "parallel"))
        each: NDArray[np.int64] = -(-lanes // parallel)
        return each

    def keys(self) -> NDArray[np.int64]:
        """int64[E]: a key for each link and socket, the same in every build of a fabric."""
        u, v = np.sort(self.ends.astype(np.int64), axis=1).T
        keys: NDArray[np.int64] = (u * len(self.hardware.rack) + v) * MOST_PARALLEL + self.socket
        return keys


def by_port(hardware: Hardware, wiring: Wiring, word: str) -> NDArray[np.int64]:
    """int64[T, ports + 1]: the attribute `word` of each port of each type."""
    table = np.zeros((len(hardware.types), max(map(len, wiring.port_names)) + 1), np.int64)
    for t, facts in enumerate(hardware.types):
        values = getattr(facts, word)
        table[t, 1 : len(values) + 1] = values
    return table


def hardware_of(build: Build | Cabled) -> Hardware:
    """The build's hardware; generated, if it was compiled without inventory.

    Raises:
        InputError: its node types are others, as in an edited build.
    """
    if build.hardware is not None:
        return build.hardware
    hosts = build.wiring.host_port.shape[1]
    inventory = generated_inventory(build.topology, hosts, names=build.wiring.names)
    known, given = list(inventory.node_types), list(build.wiring.type_names)
    if given != known:
        required, todo = f"{known[0]} in a build without inventory", "compile the build again"
        raise InputError.of(required, ", ".join(map(shown, given)), todo, key="node_types")
    return hardware_of_inventory(inventory, build.wiring, clusters(build.topology))


def cables_of(wiring: Wiring, hardware: Hardware) -> Cables:
    """Every cable between nodes.

    Args:
        wiring: the ports of every link.
        hardware: the places of nodes and the cables in stock.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    tail, link = wiring.links()
    ends = np.stack((tail, wiring.far[tail, link]), axis=1).astype(np.int32)
    ports = np.stack((wiring.port[tail, link], wiring.far_port[tail, link]), axis=1)
    many = by_port(hardware, wiring, "parallel")[wiring.node_type[ends[:, 0]], ports[:, 0]]
    ends, ports = np.repeat(ends, many, axis=0), np.repeat(ports, many, axis=0)
    socket = (np.arange(len(ends)) - np.repeat(np.cumsum(many) - many, many)).astype(np.int32)
    turned = _before(hardware, ends[:, 1], ends[:, 0])
    ends[turned], ports[turned] = ends[turned, ::-1], ports[turned, ::-1]
    racks, cluster = hardware.rack[ends], hardware.cluster[ends]
    order = np.lexsort(
        (
            socket,
            ports[:, 0],
            hardware.unit[ends[:, 0]],
            cluster[:, 1],
            cluster[:, 0],
            racks[:, 1],
            racks[:, 0],
        )
    )
    ends, ports, racks, cluster = ends[order], ports[order], racks[order], cluster[order]
    socket = socket[order]
    bundle, bundles = _bundled(racks, cluster, hardware)
    hand = _by_hand(wiring, hardware, ends, socket)
    needed = run_length(hardware, ends)
    kind, length = _from_stock(hardware, needed, hand)
    number = _numbers(hardware.cable_number, len(ends))
    return Cables(
        hardware=hardware,
        ends=ends,
        ports=ports,
        needed=needed,
        length=length,
        kind=kind,
        bundle=bundle,
        bundles=bundles,
        hand=hand,
        number=number,
        socket=socket,
    )


def _numbers(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """These numbers where there are so many, else 1, 2, …"""
    return numbers if len(numbers) == count else np.arange(1, count + 1)


def numbered(hardware: Hardware, whole: Wiring, left: Wiring) -> Hardware:
    """The hardware of a damaged fabric: its broken ports of hosts, and the cable and bundle
    numbers of the whole one.
    """
    before, after = cables_of(whole, hardware), cables_of(left, hardware)
    keys, kept = before.keys(), after.keys()
    by = np.argsort(keys)
    place = by[np.searchsorted(keys, kept, sorter=by)]
    bundle = np.zeros(len(after.bundles.cables), np.int64)
    inside = after.bundle >= 0
    bundle[after.bundle[inside]] = before.bundle[place[inside]] + 1
    broken = hardware.host_broken | (whole.host_port != left.host_port)
    return replace(hardware, host_broken=broken, cable_number=place + 1, bundle_number=bundle)


def too_long(wiring: Wiring, hardware: Hardware) -> Iterator[Finding]:
    """Findings for racks that are too far apart for the cables in stock."""
    tail, link = wiring.links()
    needed = run_length(hardware, np.stack((tail, wiring.far[tail, link]), axis=1))
    if needed.max(initial=0) > max(kind["lengths"][-1] for kind in hardware.cabling["types"]):
        try:
            # passes if the inventory gives the lengths of the long cables
            cables_of(wiring, hardware)
        except Refused as refused:
            yield from refused.findings


def _before(hardware: Hardware, u: NDArray[np.int32], v: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether u is before v: by rack, cluster, unit."""
    by = np.lexsort((np.arange(len(hardware.rack)), hardware.unit, hardware.cluster, hardware.rack))
    rank = np.empty(len(by), np.int64)
    rank[by] = np.arange(len(by))
    earlier: NDArray[np.bool_] = rank[u] < rank[v]
    return earlier


def run_length(hardware: Hardware, ends: NDArray[np.integer]) -> NDArray[np.float64]:
    """float64[E]: metres from port to port, slack included (`inventory.floor.Cabling`)."""
    return distance(hardware, hardware.rack[ends], hardware.unit[ends])


def distance(
    hardware: Hardware, rack: NDArray[np.integer], unit: NDArray[np.integer]
) -> NDArray[np.float64]:
    """float64[E]: metres between places, slack included; rack and unit are int[E, 2]."""
    cabling = hardware.cabling
    steps = np.abs(hardware.rack_place[rack[:, 0]] - hardware.rack_place[rack[:, 1]])
    across = steps @ [cabling["row_pitch"], cabling["column_pitch"]]
    rises = (hardware.rack_units[rack] - unit + 1) * UNIT_METRES + cabling["tray"]
    inside = np.abs(unit[:, 0] - unit[:, 1]) * UNIT_METRES
    between = rack[:, 0] != rack[:, 1]
    metres: NDArray[np.float64] = np.where(between, across + rises.sum(axis=1), inside)
    metres += cabling["slack"]
    return metres


def _bundled(
    racks: NDArray[np.int32], cluster: NDArray[np.int32], hardware: Hardware
) -> tuple[NDArray[np.int32], Bundles]:
    """The bundle of each cable, and the bundles; cables come sorted by both pairs."""
    loose = (racks[:, 0] == racks[:, 1]) & (cluster[:, 0] == cluster[:, 1])
    pairs = np.concatenate((racks, cluster), axis=1)[~loose]
    first = np.ones(len(pairs), bool)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    number = np.cumsum(first) - 1
    bundle = np.full(len(racks), -1, np.int32)
    bundle[~loose] = number
    count = np.bincount(number, minlength=int(first.sum()))
    numbers = _numbers(hardware.bundle_number, len(count))
    return bundle, Bundles(pairs[first, 2:], pairs[first, :2], count, numbers)


def _by_hand(
    wiring: Wiring, hardware: Hardware, ends: NDArray[np.int32], socket: NDArray[np.int32]
) -> NDArray[np.int32]:
    """int32[E]: the cable of the inventory between the same nodes, -1 for none.

    An entry that names ports fixes all parallel cables, one that names sockets a single cable.
    """
    hand = np.full(len(ends), -1, np.int32)
    if hardware.hand:
        vertex = {name: v for v, name in enumerate(wiring.names)}
        order = len(vertex)
        keys = np.sort(ends.astype(np.int64), axis=1) @ [order, 1]
        by = np.lexsort((socket, keys))
        number = [
            {name: k for names in facts.sockets if len(names) > 1 for k, name in enumerate(names)}
            for facts in hardware.types
        ]
        for i, cable in enumerate(hardware.hand):
            u, v = sorted((vertex[cable["a"]], vertex[cable["b"]]))
            first, last = np.searchsorted(keys, [u * order + v, u * order + v + 1], sorter=by)
            here = by[first:last]  # none where the link is missing
            one = number[wiring.node_type[vertex[cable["a"]]]].get(cable["a_port"])
            hand[here if one is None else here[one : one + 1]] = i
    return hand


def _from_stock(
    hardware: Hardware, needed: NDArray[np.float64], hand: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The type and length of each cable: the first type in stock that is long enough."""
    types = hardware.cabling["types"]
    kind, length = shelved(hardware, needed)
    names = [cable_type["name"] for cable_type in types]
    for e in np.flatnonzero(hand >= 0).tolist():
        given = hardware.hand[hand[e]]
        if given["type"] is not None:
            kind[e] = names.index(given["type"])
            stock = np.array(types[kind[e]]["lengths"])
            length[e] = next(iter(stock[stock >= needed[e]].tolist()), needed[e])
        if given["length"] is not None:
            kind[e], length[e] = max(kind[e], 0), given["length"]
    if (kind < 0).any():
        raise Refused(_too_long(float(needed[kind < 0].max()), types))
    return kind, length


def shelved(
    hardware: Hardware, needed: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """int32[E], float64[E]: the first type in stock that is long enough, and its length.

    -1 and the metres needed, if none is.
    """
    kind = np.full(len(needed), -1, np.int32)
    length = needed.copy()
    for t, cable_type in enumerate(hardware.cabling["types"]):
        stock = np.array(cable_type["lengths"])
        fits = (kind < 0) & (needed <= stock[-1])
        kind[fits] = t
        length[fits] = stock[np.searchsorted(stock, needed[fits])]
    return kind, length


def _too_long(longest: float, types: list[dict[str, Any]]) -> Finding:
    return Finding(
        ("cabling", "types"),
        f"a cable of {longest:.1f} m or longer",
        f"lengths to {max(t['lengths'][-1] for t in types):g} m",
        "add a longer cable, or move the racks closer together",
    )
