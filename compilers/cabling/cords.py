"""The ribbons and trunks of a fabric with cassettes: what is plugged by hand instead of cables.

A ribbon leads from a switch to the front of a cassette, and a trunk from the back of a cassette to
another one (`panel_plan`). This module lists them with their places, types and lengths, prints
labels for them, and counts them for the bill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.bill import BillItem
from compilers.cabling.cable_stock import distance, first_long_enough
from compilers.cabling.connectors import Numbers
from compilers.cabling.panel_plan import PanelPlan, plug_name
from inventory.panels import SINGLE


@dataclass(frozen=True, slots=True)
class Cord:
    """A ribbon, from a switch to a cassette, or a trunk, from a cassette to another."""

    label: str
    """The text on its label, such as `R0012`."""
    kind: str
    """`ribbon` or `trunk`."""
    a_rack: str
    """The rack of its first end."""
    a: str
    """The switch, or the first cassette of a trunk."""
    a_port: str
    """The ports of the switch, from the first to the last; of a trunk the rear port."""
    b_rack: str
    """The rack of its second end."""
    b: str
    """The cassette, of a trunk the second one."""
    b_port: str
    """The front port of the cassette, of a trunk the rear port."""
    a_type: str
    """The type of the switch, or of the first cassette."""
    b_type: str
    """The type of the cassette at the second end."""
    links: int
    """How many links it carries."""
    turned: str
    """Of a trunk `straight`, if position k leads to position k of the other end, or `reversed`, if
    it leads to the k-th position from the end; of a ribbon empty."""
    type: str
    """The type of cable in stock; empty if none is long enough."""
    length_m: float
    """Its length in metres."""


CORD_COLUMNS = tuple(field.name for field in fields(Cord))
"""The columns of a list of cords."""


def cords(plan: PanelPlan) -> Iterator[Cord]:
    """Yield the ribbons and then the trunks, in the order of their numbers."""
    yield from ribbons(plan)
    yield from trunks(plan)


def ribbons(plan: PanelPlan) -> Iterator[Cord]:
    """Yield the ribbon of each switch; a switch to which an expansion added links has several."""
    hardware, wiring, shuffle = plan.cables.hardware, plan.wiring, plan.shuffle
    halves = _ribbon_halves(shuffle.ribbon, shuffle.lane)
    cable, end = np.divmod(halves.first, 2)
    last_cable, last_end = np.divmod(halves.last, 2)
    switch, cassette = plan.cables.ends[cable, end], shuffle.cassette[cable, end]
    front = shuffle.front_port[cable, end]
    racks = np.stack((hardware.rack[switch].astype(np.int64), plan.rack[cassette]), axis=1)
    stock = _stock_for_cords(plan, racks, hardware.unit[switch])
    for ribbon, (a, b) in enumerate(zip(switch.tolist(), cassette.tolist(), strict=True)):
        first_plug = plug_name(wiring, plan.cables, int(cable[ribbon]), int(end[ribbon]))
        last_plug = plug_name(wiring, plan.cables, int(last_cable[ribbon]), int(last_end[ribbon]))
        yield Cord(
            label=plan.ribbon_label(ribbon),
            kind="ribbon",
            a_rack=hardware.rack_names[racks[ribbon, 0]],
            a=wiring.names[a],
            a_port=first_plug if first_plug == last_plug else f"{first_plug} to {last_plug}",
            b_rack=hardware.rack_names[racks[ribbon, 1]],
            b=plan.names[b],
            b_port=f"F{front[ribbon] + 1}",
            a_type=wiring.type_names[wiring.node_type[a]],
            b_type=shuffle.types[shuffle.cassette_type[b]].name,
            links=int(halves.links[ribbon]),
            turned="",
            type=stock.type[ribbon],
            length_m=stock.length[ribbon],
        )


def trunks(plan: PanelPlan) -> Iterator[Cord]:
    """Yield the trunks between cassettes."""
    hardware, shuffle = plan.cables.hardware, plan.shuffle
    racks = plan.rack[shuffle.ends]
    links = np.bincount(shuffle.trunk[shuffle.trunk >= 0])
    stock = _stock_for_cords(plan, racks)
    for trunk, ((a, b), (a_rear_port, b_rear_port)) in enumerate(
        zip(shuffle.ends.tolist(), shuffle.rear_ports.tolist(), strict=True)
    ):
        yield Cord(
            label=plan.trunk_label(trunk),
            kind="trunk",
            a_rack=hardware.rack_names[racks[trunk, 0]],
            a=plan.names[a],
            a_port=f"T{a_rear_port + 1}",
            b_rack=hardware.rack_names[racks[trunk, 1]],
            b=plan.names[b],
            b_port=f"T{b_rear_port + 1}",
            a_type=shuffle.types[shuffle.cassette_type[a]].name,
            b_type=shuffle.types[shuffle.cassette_type[b]].name,
            links=int(links[trunk]),
            turned="reversed" if shuffle.is_reversed[trunk] else "straight",
            type=stock.type[trunk],
            length_m=stock.length[trunk],
        )


def trunk_lengths(plan: PanelPlan) -> NDArray[np.float64]:
    """The length of each trunk in metres, float64[T]."""
    return np.array(_stock_for_cords(plan, plan.rack[plan.shuffle.ends]).length, np.float64)


def labels_of_cords(rows: Iterable[Cord]) -> Iterator[dict[str, Any]]:
    """Yield two labels for each cord, as `cable_formats.as_labels` takes them."""
    for cord in rows:
        a = f"{cord.a_rack} {cord.a} {cord.a_port}"
        b = f"{cord.b_rack} {cord.b} {cord.b_port}"
        for near, far in ((a, b), (b, a)):
            yield {
                "label": cord.label,
                "near": near,
                "far": far,
                "bundle": cord.turned,
                "length": f"{cord.length_m:g}",
                "colour": "",
            }


def bill_items(plan: PanelPlan) -> Iterator[BillItem]:
    """Yield the lines of the bill: cassettes by type, ribbons and trunks by length.

    A ribbon with more links than a trunk holds is bought as several.
    """
    for number, (name, fronts) in enumerate(plan.shuffle.types):
        # Where each lane leads (`CassetteType.fronts`): T1.2 is position 2 of the first trunk.
        lanes = (word for text in fronts for word in text.split())
        trunks_behind = {word.split(".")[0] for word in lanes if word.startswith("T")}
        count = "1 trunk" if len(trunks_behind) == 1 else f"{len(trunks_behind)} trunks"
        detail = f"{len(fronts)} ports in front, {count} behind"
        yield BillItem("cassette", name, detail, int((plan.shuffle.cassette_type == number).sum()))
    total = Counter[tuple[str, str, str]]()
    for cord in cords(plan):
        name = cord.type if plan.trunk_name == SINGLE else plan.trunk_name
        detail = f"{cord.turned} {cord.length_m:g} m".strip()
        total[cord.kind, name, detail] += -(-cord.links // plan.room)  # rounded up
    for (kind, name, detail), quantity in sorted(total.items()):
        yield BillItem(kind, name, detail, quantity)


class _RibbonHalves(NamedTuple):
    """The outermost halves of R ribbons. A half is an end of a link: link e has 2e and 2e + 1."""

    first: Numbers
    """int64[R], the half at the first lane."""
    last: Numbers
    """int64[R], the half at the last lane."""
    links: Numbers
    """int64[R], how many links the ribbon has."""


def _ribbon_halves(ribbon: Numbers, lane: Numbers) -> _RibbonHalves:
    """The halves at the first and the last lane of each ribbon.

    Args:
        ribbon: int64[E, 2], of `Shuffle`.
        lane: int64[E, 2], of `Shuffle`.
    """
    by_lane = np.lexsort((lane.ravel(), ribbon.ravel()))
    links = np.bincount(ribbon.ravel())
    ends = np.cumsum(links)
    return _RibbonHalves(by_lane[ends - links], by_lane[ends - 1], links)


class _Stock(NamedTuple):
    """The cables in stock for n cords."""

    type: list[str]
    """The type of each cord's cable; "" if none is long enough."""
    length: list[float]
    """The length of each cord in metres."""


def _stock_for_cords(
    plan: PanelPlan, racks: NDArray[np.integer], unit: NDArray[np.integer] | None = None
) -> _Stock:
    """The cables in stock for n cords; cassettes are at the top of their racks.

    Args:
        plan: with the cables in stock.
        racks: int[n, 2], the racks of both ends.
        unit: int[n], the rack units of the first ends if these are switches; None: cassettes.
    """
    hardware = plan.cables.hardware
    units = hardware.rack_units[racks].astype(np.int64)
    if unit is not None:
        units[:, 0] = unit
    kind, length = first_long_enough(hardware, distance(hardware, racks, units))
    names = [entry["name"] for entry in plan.cables.kinds()]
    types = [names[index] if index >= 0 else "" for index in kind.tolist()]
    return _Stock(types, length.tolist())
