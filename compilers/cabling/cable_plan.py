"""Plan the cables of a fabric: the ends, length, type and bundle of each, as arrays.

`cables_of` makes a cable for each link, or several where a port has parallel connectors. The length
follows from the places of racks and units, and the type is the first in stock that is long enough,
unless the inventory says otherwise.

The cables of a new fabric are numbered from 1, in the order of rack pair, cluster pair and place of
the first end. So the cables of a bundle have consecutive numbers. Later they keep the numbers that
they have (`labelled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import BUNDLE, CABLE, SIZES, Allocations, Numbers, allocated
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.link_numbers import link_key
from compilers.wiring.placement import clusters
from compilers.wiring.wiring import Wiring, generated_inventory
from inventory.problems import Finding, InputError, Refused, shown

MOST_PARALLEL = 16
"""More parallel cables than any link has."""
UNIT_METRES = 0.04445  # IEC 60297: a rack unit is 1.75 inches


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Cabled:
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
    """float64[E], the length of its way, in metres."""
    length: NDArray[np.float64]
    """float64[E], the length of the cable in stock, in metres."""
    kind: NDArray[np.int32]
    """int32[E], its type, a place in `kinds`."""
    bundle: NDArray[np.int32]
    """int32[E], its bundle; -1 for a cable within a cluster and a rack."""
    bundles: Bundles
    """The bundles of all cables."""
    hand: NDArray[np.int32]
    """int32[E], its entry among the inventory's cables (`Hardware.hand`); -1: none."""
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
        of_port = by_port(self.hardware, wiring, "lanes")[first_port]
        parallel = by_port(self.hardware, wiring, "parallel")[first_port]
        of_cable: NDArray[np.int64] = -(-of_port // parallel)
        return of_cable

    def keys(self) -> NDArray[np.int64]:
        """A key for each cable, int64[E], by link and socket: the same in every build of a
        fabric.
        """
        u, v = np.sort(self.ends.astype(np.int64), axis=1).T
        keys: NDArray[np.int64] = (u * len(self.hardware.rack) + v) * MOST_PARALLEL + self.socket
        return keys


def by_port(hardware: Hardware, wiring: Wiring, word: str) -> NDArray[np.int64]:
    """An attribute of each port of each node type.

    Args:
        hardware: the node types.
        wiring: the ports of each type.
        word: the attribute of `PortFacts`, such as `lanes`.

    Returns:
        int64[types, ports + 1], by port number.
    """
    table = np.zeros((len(hardware.types), max(map(len, wiring.port_names)) + 1), np.int64)
    for t, facts in enumerate(hardware.types):
        values = getattr(facts, word)
        table[t, 1 : len(values) + 1] = values
    return table


def hardware_of(build: Build | Cabled) -> Hardware:
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
    return hardware_of_inventory(inventory, build.wiring, clusters(build.topology))


def cables_of(wiring: Wiring, hardware: Hardware) -> Cables:
    """Plan every cable between nodes.

    Args:
        wiring: the ports of every link.
        hardware: the places of nodes and the cables in stock.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    plugs = _sorted(hardware, _plugs(wiring, hardware))
    bundle, bundles = _bundled(hardware.rack[plugs.ends], hardware.cluster[plugs.ends], hardware)
    hand = _by_hand(wiring, hardware, plugs.ends, plugs.socket)
    needed = run_length(hardware, plugs.ends)
    kind, length = _from_stock(hardware, needed, hand)
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
        number=_numbers(hardware.cable_number, len(plugs.ends)),
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
    tail, link = wiring.links()
    ends = np.stack((tail, wiring.far[tail, link]), axis=1).astype(np.int32)
    ports = np.stack((wiring.port[tail, link], wiring.far_port[tail, link]), axis=1)
    parallel = by_port(hardware, wiring, "parallel")[wiring.node_type[ends[:, 0]], ports[:, 0]]
    ends, ports = np.repeat(ends, parallel, axis=0), np.repeat(ports, parallel, axis=0)
    first = np.repeat(np.cumsum(parallel) - parallel, parallel)
    return _Plugs(ends, ports, (np.arange(len(ends)) - first).astype(np.int32))


def _sorted(hardware: Hardware, plugs: _Plugs) -> _Plugs:
    """The cables in the order of the floor plan; the end that comes first there is first."""
    ends, ports = plugs.ends, plugs.ports
    swapped = _before(hardware, ends[:, 1], ends[:, 0])
    ends[swapped], ports[swapped] = ends[swapped, ::-1], ports[swapped, ::-1]
    racks, cluster = hardware.rack[ends], hardware.cluster[ends]
    order = np.lexsort(  # the last key comes first
        (
            plugs.socket,
            ports[:, 0],
            hardware.unit[ends[:, 0]],
            cluster[:, 1],
            cluster[:, 0],
            racks[:, 1],
            racks[:, 0],
        )
    )
    return _Plugs(ends[order], ports[order], plugs.socket[order])


def _numbers(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The hardware's numbers if it has `count` of them, else 1, 2, …"""
    return numbers if len(numbers) == count else np.arange(1, count + 1)


def numbered(hardware: Hardware, whole: Wiring, left: Wiring) -> Hardware:
    """The hardware of a damaged fabric, with the cable and bundle numbers of the whole one.

    It also has the ports of hosts that are broken.

    Args:
        hardware: the hardware of the whole fabric.
        whole: the wiring of the whole fabric.
        left: the wiring without what is missing.
    """
    before, after = cables_of(whole, hardware), cables_of(left, hardware)
    keys, kept = before.keys(), after.keys()
    order = np.argsort(keys)
    place = order[np.searchsorted(keys, kept, sorter=order)]  # of each cable left among the whole
    bundle = np.zeros(len(after.bundles.cables), np.int64)
    inside = after.bundle >= 0
    bundle[after.bundle[inside]] = before.bundles.number[before.bundle[place[inside]]]
    broken = hardware.host_broken | (whole.host_port != left.host_port)
    return replace(
        hardware,
        host_broken=broken,
        cable_number=before.number[place],
        bundle_number=bundle,
    )


def labelled(
    hardware: Hardware, wiring: Wiring, before: Allocations
) -> tuple[Hardware, dict[str, Numbers]]:
    """The hardware of a whole fabric with the numbers on labels, and these numbers by kind.

    Cables and bundles keep the numbers that they had. Where links run through panels, cords and
    trunks have labels, and cables have none.

    Args:
        hardware: of the whole fabric.
        wiring: of the whole fabric.
        before: the numbers before.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    if hardware.panels:
        return hardware, {}
    cables = cables_of(wiring, hardware)
    labels = {}
    for kind, keys in ((CABLE, cable_keys(cables)), (BUNDLE, bundle_keys(cables))):
        if had := before.of(kind):
            order = _new_last(cables) if kind == CABLE else range(len(keys))
            now = allocated(had, (keys[place] for place in order), SIZES[kind], first=1)
            labels[kind] = Numbers({key: now.used[key] for key in keys}, now.freed)
        else:
            labels[kind] = Numbers({key: n for n, key in enumerate(keys, 1)})
    numbers = [np.array(list(labels[kind].used.values()), np.int64) for kind in (CABLE, BUNDLE)]
    if all(np.array_equal(array, np.arange(1, len(array) + 1)) for array in numbers):
        return hardware, labels
    return replace(hardware, cable_number=numbers[0], bundle_number=numbers[1]), labels


def _new_last(cables: Cables) -> list[int]:
    """The places of cables in the order in which new ones get numbers.

    That is the order of cluster and rack of their newer node. So a fabric that grows twice gets the
    numbers that it would have got at once.
    """
    hardware, newer = cables.hardware, cables.ends.max(axis=1)
    order: list[int] = np.lexsort((hardware.rack[newer], hardware.cluster[newer])).tolist()
    return order


def cable_keys(cables: Cables) -> list[str]:
    """The key of each cable in allocations."""
    lower, upper = np.sort(cables.ends, axis=1).T.tolist()
    return list(map(link_key, lower, upper, cables.socket.tolist()))


def bundle_keys(cables: Cables) -> list[str]:
    """The key of each bundle in allocations."""
    bundles = cables.bundles
    ends = zip(bundles.racks.tolist(), bundles.clusters.tolist(), strict=True)
    return [cables.hardware.bundle_key(*pair) for pair in ends]


def too_long(wiring: Wiring, hardware: Hardware) -> Iterator[Finding]:
    """Yield findings for racks that are too far apart for the cables in stock."""
    tail, link = wiring.links()
    needed = run_length(hardware, np.stack((tail, wiring.far[tail, link]), axis=1))
    if needed.max(initial=0) > max(kind["lengths"][-1] for kind in hardware.cabling["types"]):
        try:
            # This passes if the inventory lists the long cables with their lengths.
            cables_of(wiring, hardware)
        except Refused as refused:
            yield from refused.findings


def _before(hardware: Hardware, u: NDArray[np.int32], v: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether vertices u come before vertices v, by rack, cluster and unit: bool[n]."""
    vertices = np.arange(len(hardware.rack))
    order = np.lexsort((vertices, hardware.unit, hardware.cluster, hardware.rack))
    rank = np.empty(len(order), np.int64)
    rank[order] = vertices
    earlier: NDArray[np.bool_] = rank[u] < rank[v]
    return earlier


def run_length(hardware: Hardware, ends: NDArray[np.integer]) -> NDArray[np.float64]:
    """The metres from port to port of cables between vertices, int[E, 2]: float64[E].

    Slack is included (`inventory.floor.Cabling`).
    """
    return distance(hardware, hardware.rack[ends], hardware.unit[ends])


def distance(
    hardware: Hardware, rack: NDArray[np.integer], unit: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The metres between pairs of places, slack included: float64[E].

    Args:
        hardware: the floor plan.
        rack: int[E, 2], the racks.
        unit: int[E, 2], the units in these racks.
    """
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
    """The bundle of each cable, int32[E], and the bundles.

    Args:
        racks: int32[E, 2], the racks at both ends; sorted.
        cluster: int32[E, 2], the clusters at both ends; sorted within equal racks.
        hardware: the numbers of bundles, if it has any.
    """
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
    """The entry of the inventory for each cable, int32[E]; -1: none.

    An entry that names ports stands for all parallel cables of a link, and one that names sockets
    for a single cable.
    """
    hand = np.full(len(ends), -1, np.int32)
    if hardware.hand:
        vertex = {name: v for v, name in enumerate(wiring.names)}
        order = len(vertex)
        keys = np.sort(ends.astype(np.int64), axis=1) @ [order, 1]  # one for each link
        by_key = np.lexsort((socket, keys))
        # By node type and name of a socket, its number among the sockets of its port.
        sockets = [
            {name: k for names in facts.sockets if len(names) > 1 for k, name in enumerate(names)}
            for facts in hardware.types
        ]
        for i, cable in enumerate(hardware.hand):
            u, v = sorted((vertex[cable["a"]], vertex[cable["b"]]))
            key = u * order + v
            first, last = np.searchsorted(keys, [key, key + 1], sorter=by_key)
            parallel = by_key[first:last]  # none if the link is missing
            number = sockets[wiring.node_type[vertex[cable["a"]]]].get(cable["a_port"])
            hand[parallel if number is None else parallel[number : number + 1]] = i
    return hand


def _from_stock(
    hardware: Hardware, needed: NDArray[np.float64], hand: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The type, int32[E], and the length, float64[E], of each cable.

    It is the first type in stock that is long enough, unless the inventory names type or length.

    Args:
        hardware: the cables in stock and the inventory's entries.
        needed: float64[E], the metres of its way.
        hand: int32[E], of `_by_hand`.

    Raises:
        Refused: a way is longer than every cable in stock.
    """
    types = hardware.cabling["types"]
    kind, length = shelved(hardware, needed)
    names = [cable_type["name"] for cable_type in types]
    for e in np.flatnonzero(hand >= 0).tolist():
        entry = hardware.hand[hand[e]]
        if entry["type"] is not None:
            kind[e] = names.index(entry["type"])
            stock = np.array(types[kind[e]]["lengths"])
            length[e] = next(iter(stock[stock >= needed[e]].tolist()), needed[e])
        if entry["length"] is not None:
            kind[e], length[e] = max(kind[e], 0), entry["length"]
    if (kind < 0).any():
        raise Refused(_too_long(float(needed[kind < 0].max()), types))
    return kind, length


def shelved(
    hardware: Hardware, needed: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The first type in stock that is long enough, int32[E], and its length, float64[E].

    If none is, the type is -1, and the length is that of the way, `needed`.
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
    """The finding for a way of so many metres, longer than all cables in stock."""
    return Finding(
        ("cabling", "types"),
        f"a cable of {longest:.1f} m or longer",
        f"lengths to {max(t['lengths'][-1] for t in types):g} m",
        "add a longer cable, or move the racks closer together",
    )
