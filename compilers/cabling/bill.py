"""The bill of materials of a fabric: nodes, racks, cables, multi-core fibres and connectors.

`bill` counts what has to be bought for the links between nodes, from the wiring and the cables of
each plane. `cable_schedule` prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from compilers.cabling.cable_plan import Cables
from compilers.wiring.wiring import Wiring

WITH_PLUGS = ("dac-passive", "dac-active", "aoc")
"""Media of cables whose ends are plugs: their ports need no transceiver."""


@dataclass(frozen=True, slots=True)
class Item:
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


def bill(*parts: tuple[Wiring, Cables]) -> list[Item]:
    """The items to buy for the links between nodes, kind by kind.

    If the cabling has `fibre_cores`, the cables of a bundle are multi-core fibres with so many
    cores, as long as the longest cable of the bundle. Otherwise every cable is bought by itself.

    Args:
        parts: the wiring and the cables of each plane.
    """
    items = [
        *(item for wiring, cables in parts for item in _nodes(wiring, cables)),
        *_racks(parts),
        *(item for wiring, cables in parts for item in _material(wiring, cables)),
    ]
    total: dict[tuple[str, str, str], int] = {}
    for item in items:
        key = (item.kind, item.name, item.detail)
        total[key] = total.get(key, 0) + item.quantity
    order = ("node", "rack", "cable", "fibre", "connector")
    summed = (Item(*key, quantity) for key, quantity in total.items())
    return sorted(summed, key=lambda item: order.index(item.kind))


def _material(wiring: Wiring, cables: Cables) -> Iterator[Item]:
    """Yield the cables, fibres and connectors of a plane."""
    yield from _cables(cables, np.asarray(cables.bundle < 0) | _single(cables))
    yield from _fibres(wiring, cables)
    yield from _connectors(wiring, cables)


def _single(cables: Cables) -> bool:
    """Whether every cable is bought by itself."""
    return cables.hardware.cabling["fibre_cores"] is None


def _nodes(wiring: Wiring, cables: Cables) -> Iterator[Item]:
    """Yield the nodes that have a cable, by type."""
    present = (wiring.far >= 0).any(axis=1)
    count = np.bincount(wiring.node_type[present], minlength=len(wiring.type_names)).tolist()
    for facts, quantity in zip(cables.hardware.types, count, strict=True):
        if quantity:
            detail = " ".join(filter(None, (facts.manufacturer, facts.model, facts.part_number)))
            yield Item("node", facts.name, detail, quantity)


def _racks(parts: Iterable[tuple[Wiring, Cables]]) -> Iterator[Item]:
    """Yield the racks that hold nodes, by height; racks that planes share count once."""
    height: dict[str, int] = {}
    for wiring, cables in parts:
        hardware = cables.hardware
        for r in np.unique(hardware.rack[(wiring.far >= 0).any(axis=1)]).tolist():
            height[hardware.rack_names[r]] = int(hardware.rack_units[r])
    for units, quantity in sorted(Counter(height.values()).items()):
        yield Item("rack", f"rack {units}U", "", quantity)


def _cables(cables: Cables, single: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Iterator[Item]:
    """Yield the cables that are bought by themselves, by type and length. single: bool[E],
    which.
    """
    kinds = cables.kinds()
    for t, kind in enumerate(kinds):
        lengths, count = np.unique(cables.length[single & (cables.kind == t)], return_counts=True)
        for length, quantity in zip(lengths.tolist(), count.tolist(), strict=True):
            yield Item("cable", kind["name"], f"{kind['media']}, {length:g} m", quantity)


def _fibres(wiring: Wiring, cables: Cables) -> Iterator[Item]:
    """Yield the multi-core fibres of the bundles, by length."""
    if _single(cables) or not len(cables.bundles.cables):
        return
    cabling = cables.hardware.cabling
    inside = cables.bundle >= 0
    bundle = cables.bundle[inside]
    lanes = np.maximum(cables.lanes(wiring)[inside], 1)
    cores = np.bincount(bundle, lanes).astype(int) * cabling["cores"]  # by bundle
    length = np.zeros(len(cores))  # by bundle, the longest cable
    np.maximum.at(length, bundle, cables.length[inside])
    fibres = -(-cores // cabling["fibre_cores"])
    for metres in np.unique(length).tolist():
        quantity = int(fibres[length == metres].sum())
        yield Item("fibre", f"{cabling['fibre_cores']} cores", f"{metres:g} m", quantity)


def _connectors(wiring: Wiring, cables: Cables) -> Iterator[Item]:
    """Yield the ends of links by connector and speed.

    The ends of a cable that has plugs need no transceiver, so they are items of their own.
    """
    vertex, port = cables.ends.ravel(), cables.ports.ravel()
    kind = wiring.node_type[vertex].astype(np.int64)
    with_plugs = np.array([item["media"] in WITH_PLUGS for item in cables.kinds()] + [False])
    plugs = np.repeat(with_plugs[cables.kind], 2)  # kind -1, none in stock, is the last
    keys, count = np.unique(np.stack((kind, port, plugs), axis=1), axis=0, return_counts=True)
    total: dict[tuple[str, str], int] = {}
    for (t, number, has_plugs), quantity in zip(keys.tolist(), count.tolist(), strict=True):
        facts = cables.hardware.types[t]
        speed = f"{facts.speed[number - 1]} Gb/s" if facts.speed[number - 1] else ""
        name = " ".join(filter(None, (facts.connector[number - 1], speed))) or "port"
        key = name, "plugs of cables" if has_plugs else "link ends"
        total[key] = total.get(key, 0) + quantity
    for (name, detail), quantity in sorted(total.items()):
        yield Item("connector", name, detail, quantity)
