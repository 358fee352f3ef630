"""The bill of materials of a fabric: nodes, racks, cables, multi-core fibres and connectors.

`bill` counts what has to be bought for the links between nodes, from the wiring and the cables of
each plane. `cable_schedule` prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables
from compilers.wiring.wiring import Wiring

WITH_PLUGS = ("dac-passive", "dac-active", "aoc")
"""Media of cables whose ends are plugs: their ports need no transceiver."""
ITEM_KINDS = ("node", "rack", "cable", "fibre", "connector")
"""The kinds of items, in the order of the bill."""
CabledPlane = tuple[Wiring, Cables]
"""The wiring and the cables of a plane."""


@dataclass(frozen=True, slots=True)
class BillItem:
    """One line of the bill."""

    kind: str
    """`node`, `rack`, `cable`, `fibre` or `connector`; with panels also `cassette`, `ribbon` and
    `trunk`."""
    name: str
    """The type of node or cable, the height of a rack, and so on."""
    detail: str
    """What else a buyer needs: the model, the length."""
    quantity: int
    """How many are needed."""


def bill(*planes: CabledPlane) -> list[BillItem]:
    """The items to buy for the links between nodes, kind by kind.

    If the cabling has `fibre_cores`, the cables of a bundle are multi-core fibres with so many
    cores, as long as the longest cable of the bundle. Otherwise every cable is bought by itself.
    """
    items: list[BillItem] = []
    for wiring, cables in planes:
        items += _nodes(wiring, cables)
    items += _racks(planes)
    for wiring, cables in planes:
        items += _cabling_items(wiring, cables)
    total: dict[tuple[str, str, str], int] = {}
    for item in items:
        key = (item.kind, item.name, item.detail)
        total[key] = total.get(key, 0) + item.quantity
    summed = [
        BillItem(kind, name, detail, total[kind, name, detail]) for kind, name, detail in total
    ]
    return sorted(summed, key=lambda item: ITEM_KINDS.index(item.kind))


def _cabling_items(wiring: Wiring, cables: Cables) -> Iterator[BillItem]:
    """Yield the cables, fibres and connectors of a plane."""
    is_bought_alone = np.asarray(cables.bundle < 0)
    if not _has_fibres(cables):
        is_bought_alone[:] = True
    yield from _cables(cables, is_bought_alone)
    yield from _fibres(wiring, cables)
    yield from _connectors(wiring, cables)


def _has_fibres(cables: Cables) -> bool:
    """Whether the cables of a bundle are bought as multi-core fibres."""
    return cables.hardware.cabling["fibre_cores"] is not None


def _nodes(wiring: Wiring, cables: Cables) -> Iterator[BillItem]:
    """Yield the nodes that have a cable, by type."""
    has_links = (wiring.far >= 0).any(axis=1)
    count = np.bincount(wiring.node_type[has_links], minlength=len(wiring.type_names)).tolist()
    for facts, quantity in zip(cables.hardware.types, count, strict=True):
        if quantity:
            detail = " ".join(filter(None, (facts.manufacturer, facts.model, facts.part_number)))
            yield BillItem("node", facts.name, detail, quantity)


def _racks(planes: Iterable[CabledPlane]) -> Iterator[BillItem]:
    """Yield the racks that hold nodes, by height; racks that planes share count once."""
    height: dict[str, int] = {}
    for wiring, cables in planes:
        hardware = cables.hardware
        has_links = (wiring.far >= 0).any(axis=1)
        for rack in np.unique(hardware.rack[has_links]).tolist():
            height[hardware.rack_names[rack]] = int(hardware.rack_units[rack])
    for units, quantity in sorted(Counter(height.values()).items()):
        yield BillItem("rack", f"rack {units}U", "", quantity)


def _cables(cables: Cables, is_bought_alone: NDArray[np.bool_]) -> Iterator[BillItem]:
    """Yield the cables that are bought by themselves, by type and length.

    Args:
        cables: all cables of a plane.
        is_bought_alone: bool[E], which of them are bought by themselves.
    """
    for number, kind in enumerate(cables.kinds()):
        is_counted = is_bought_alone & (cables.kind == number)
        lengths, counts = np.unique(cables.length[is_counted], return_counts=True)
        for length, quantity in zip(lengths.tolist(), counts.tolist(), strict=True):
            yield BillItem("cable", kind["name"], f"{kind['media']}, {length:g} m", quantity)


def _fibres(wiring: Wiring, cables: Cables) -> Iterator[BillItem]:
    """Yield the multi-core fibres of the bundles, by length."""
    if not _has_fibres(cables) or not len(cables.bundles.cables):
        return
    cabling = cables.hardware.cabling
    is_bundled = cables.bundle >= 0
    bundle = cables.bundle[is_bundled]
    lanes = np.maximum(cables.lanes(wiring)[is_bundled], 1)
    # `cores` is the cores that a lane takes, and `fibre_cores` is the cores of a multi-core fibre.
    cores_of_bundle = np.bincount(bundle, lanes).astype(int) * cabling["cores"]
    longest_of_bundle = np.zeros(len(cores_of_bundle))
    np.maximum.at(longest_of_bundle, bundle, cables.length[is_bundled])
    fibres_of_bundle = -(-cores_of_bundle // cabling["fibre_cores"])  # rounded up
    for metres in np.unique(longest_of_bundle).tolist():
        quantity = int(fibres_of_bundle[longest_of_bundle == metres].sum())
        yield BillItem("fibre", f"{cabling['fibre_cores']} cores", f"{metres:g} m", quantity)


def _connectors(wiring: Wiring, cables: Cables) -> Iterator[BillItem]:
    """Yield the ends of links by connector and speed.

    The ends of a cable that has plugs need no transceiver, so they are items of their own.
    """
    vertex, port = cables.ends.ravel(), cables.ports.ravel()
    node_type = wiring.node_type[vertex].astype(np.int64)
    # bool[types + 1], by type of cable. Index -1, no type in stock, finds the last entry.
    type_has_plugs = np.array([kind["media"] in WITH_PLUGS for kind in cables.kinds()] + [False])
    has_plugs = np.repeat(type_has_plugs[cables.kind], 2)  # a cable has two ends
    ends = np.stack((node_type, port, has_plugs), axis=1)
    distinct_ends, counts = np.unique(ends, axis=0, return_counts=True)
    total: dict[tuple[str, str], int] = {}
    for (type_number, port_number, plugs), quantity in zip(
        distinct_ends.tolist(), counts.tolist(), strict=True
    ):
        facts = cables.hardware.types[type_number]
        speed = facts.speed[port_number - 1]
        words = (facts.connector[port_number - 1], f"{speed} Gb/s" if speed else "")
        name = " ".join(filter(None, words)) or "port"
        key = name, "plugs of cables" if plugs else "link ends"
        total[key] = total.get(key, 0) + quantity
    for (name, detail), quantity in sorted(total.items()):
        yield BillItem("connector", name, detail, quantity)
