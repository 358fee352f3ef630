"""The length of the way between two places of the floor plan, and the cable in stock that spans it.

`cable_plan` asks for cables between nodes, `cords` for ribbons and trunks, `host_cables` for
cables to hosts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.hardware import Hardware
from inventory.problems import Finding, Refused

UNIT_METRES = 0.04445
"""The height of a rack unit, 1.75 inches (IEC 60297)."""


def run_length(hardware: Hardware, ends: NDArray[np.integer]) -> NDArray[np.float64]:
    """The metres from port to port of cables between vertices, slack included: float64[E].

    Args:
        hardware: the floor plan, and the slack.
        ends: int[E, 2], the vertices at both ends.
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
    first_rack, second_rack = rack.T
    # int[E, 2], how many rows and columns of the floor are between the racks.
    steps = np.abs(hardware.rack_place[first_rack] - hardware.rack_place[second_rack])
    # In metres: along the floor; from each unit up to the tray above its rack; and within a rack.
    across = steps @ [cabling["row_pitch"], cabling["column_pitch"]]
    rises = (hardware.rack_units[rack] - unit + 1) * UNIT_METRES + cabling["tray"]
    inside = np.abs(unit[:, 0] - unit[:, 1]) * UNIT_METRES
    is_between_racks = first_rack != second_rack
    metres: NDArray[np.float64] = np.where(is_between_racks, across + rises.sum(axis=1), inside)
    metres += cabling["slack"]
    return metres


def cables_from_stock(
    hardware: Hardware, needed: NDArray[np.float64], entry_of_cable: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The type, int32[E], and the length, float64[E], of each cable.

    A cable is of the first type in stock that is long enough, unless the inventory names its type
    or its length.

    Args:
        hardware: the cables in stock and the inventory's entries.
        needed: float64[E], the length of each cable's way in metres.
        entry_of_cable: int32[E], the inventory's entry for each cable, an index into
            `Hardware.hand`; -1: none.

    Raises:
        Refused: a way is longer than every cable in stock.
    """
    types = hardware.cabling["types"]
    type_number, length = first_long_enough(hardware, needed)
    names = [cable_type["name"] for cable_type in types]
    for cable in np.flatnonzero(entry_of_cable >= 0).tolist():
        entry = hardware.hand[entry_of_cable[cable]]
        if entry["type"] is not None:
            type_number[cable] = names.index(entry["type"])
            stock = types[type_number[cable]]["lengths"]
            long_enough = (metres for metres in stock if metres >= needed[cable])
            length[cable] = next(long_enough, needed[cable])
        if entry["length"] is not None:
            # A cable whose length the inventory names fits, whatever is in stock. If no type was
            # long enough, it counts as one of the first type.
            type_number[cable], length[cable] = max(type_number[cable], 0), entry["length"]
    if (type_number < 0).any():
        raise Refused(_too_long_finding(float(needed[type_number < 0].max()), types))
    return type_number, length


def first_long_enough(
    hardware: Hardware, needed: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The first type in stock that is long enough, int32[E], and its length, float64[E].

    If no type is long enough, the type is -1, and the length is that of the way.

    Args:
        hardware: the cables in stock.
        needed: float64[E], the length of each cable's way in metres.
    """
    type_number = np.full(len(needed), -1, np.int32)
    length = needed.copy()
    for number, cable_type in enumerate(hardware.cabling["types"]):
        stock = np.array(cable_type["lengths"])
        fits = (type_number < 0) & (needed <= stock[-1])
        type_number[fits] = number
        length[fits] = stock[np.searchsorted(stock, needed[fits])]
    return type_number, length


def _too_long_finding(longest: float, types: list[dict[str, Any]]) -> Finding:
    """The finding for a way of so many metres, longer than all cables in stock."""
    return Finding(
        ("cabling", "types"),
        f"a cable of {longest:.1f} m or longer",
        f"lengths to {max(cable_type['lengths'][-1] for cable_type in types):g} m",
        "add a longer cable, or move the racks closer together",
    )
