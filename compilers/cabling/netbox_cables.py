"""Write the cables of a fabric as CSV for NetBox's bulk import, through cassettes if there are any.

`panel_plan` says how links run: from a switch by a *ribbon* of several lanes to a cassette, then by
a *trunk* to another cassette. A *cord* is a ribbon or a trunk. The *shuffle* has the ribbon,
cassette, front port, lane and trunk of each link.

A cable of NetBox's form (`CableImportForm` in netbox/dcim/forms/bulk_import.py, 4.6.8) has one
termination at each side. So a ribbon becomes a cable for each lane, all with the ribbon's label,
and a trunk becomes a cable between two rear ports with as many positions as the trunk has. NetBox
has no cable profile with reversed ends. If any trunk is reversed, each position of a trunk is a
rear port and a cable of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from compilers.cabling.cable_formats import as_table, by_column
from compilers.cabling.cords import Cord, ribbons, trunks
from compilers.cabling.panel_plan import PanelPlan
from compilers.cabling.schedule_columns import ScheduleRows
from inventory.netbox.panel_ports import lane_port, trunk_ports

INTERFACE, FRONT, REAR = "dcim.interface", "dcim.frontport", "dcim.rearport"
"""The types of terminations."""


class NetboxCable(NamedTuple):
    """A row of the form; the names of the fields are those of its columns."""

    side_a_device: str
    side_a_type: str
    """`INTERFACE`, `FRONT` or `REAR`."""
    side_a_name: str
    """The name of the interface or port."""
    side_b_device: str
    side_b_type: str
    """`INTERFACE`, `FRONT` or `REAR`."""
    side_b_name: str
    """The name of the interface or port."""
    type: str
    """The medium, such as `dac-passive`."""
    status: str
    label: str
    color: str
    length: float
    """In units of `length_unit`."""
    length_unit: str
    description: str


def as_netbox(
    planes: Iterable[tuple[ScheduleRows, PanelPlan | None]], dead: Collection[frozenset[str]] = ()
) -> Iterator[str]:
    """CSV with the cables of the selected links.

    Args:
        planes: for each plane its selected links, and how they run through panels, if they do.
        dead: links that do not work, as pairs of names of nodes.
    """
    cables = (cable for rows, plan in planes for cable in _plane_cables(rows, plan, dead))
    return as_table(NetboxCable._fields, cables)


def _plane_cables(
    rows: ScheduleRows, plan: PanelPlan | None, dead: Collection[frozenset[str]]
) -> Iterator[NetboxCable]:
    """Yield the cables of a plane.

    Args:
        rows: the selected links.
        plan: how they run through panels; None: they do not.
        dead: links that do not work, as pairs of names of nodes.
    """
    if plan is None:
        yield from _direct_cables(rows, dead)
    else:
        yield from _lane_cables(rows, plan, dead)
        yield from _trunk_cables(rows, plan)


def _direct_cables(rows: ScheduleRows, dead: Collection[frozenset[str]]) -> Iterator[NetboxCable]:
    """Yield the cables from switch to switch."""
    media = {kind["name"]: kind["media"] for kind in rows.cables.kinds()}
    for row in map(by_column, rows):
        yield NetboxCable(
            side_a_device=row["a_node"],
            side_a_type=INTERFACE,
            side_a_name=row["a_port"],
            side_b_device=row["b_node"],
            side_b_type=INTERFACE,
            side_b_name=row["b_port"],
            type=media[row["type"]],
            status=_status(row, dead),
            label=row["label"],
            color=row["colour"],
            length=row["length_m"],
            length_unit="m",
            description=f"bundle {row['bundle']}" if row["bundle"] else "",
        )


def _lane_cables(
    rows: ScheduleRows, plan: PanelPlan, dead: Collection[frozenset[str]]
) -> Iterator[NetboxCable]:
    """Yield a cable for each lane of a ribbon, from the switch to the cassette."""
    shuffle, cords = plan.shuffle, list(ribbons(plan))
    for link, row in zip(rows.selected.tolist(), map(by_column, rows), strict=True):
        front_ports, lane_numbers = shuffle.front_port[link].tolist(), shuffle.lane[link].tolist()
        lanes = list(zip(front_ports, lane_numbers, strict=True))  # at end a, at end b
        is_inside = shuffle.trunk[link] < 0  # a link between two lanes of one cassette
        for end, letter in enumerate("ab"):
            lane_of_other_end = lanes[1 - end] if is_inside else None
            port, is_rear = lane_port(lanes[end], lane_of_other_end)
            cord = cords[shuffle.ribbon[link, end]]
            media, colour = _media_and_colour(rows, cord)
            yield NetboxCable(
                side_a_device=row[f"{letter}_node"],
                side_a_type=INTERFACE,
                side_a_name=row[f"{letter}_port"],
                side_b_device=plan.names[shuffle.cassette[link, end]],
                side_b_type=REAR if is_rear else FRONT,
                side_b_name=port,
                type=media,
                status=_status(row, dead),
                label=cord.label,
                color=colour,
                length=cord.length_m,
                length_unit="m",
                description=f"lane of link {row['label']}",
            )


def _trunk_cables(rows: ScheduleRows, plan: PanelPlan) -> Iterator[NetboxCable]:
    """Yield a cable for each trunk of the selected links, or for each position of such a trunk."""
    shuffle, cords = plan.shuffle, list(trunks(plan))
    is_split = bool(shuffle.is_reversed.any())
    chosen = np.unique(shuffle.trunk[rows.selected])
    for number in chosen[chosen >= 0].tolist():
        cord = cords[number]
        media, colour = _media_and_colour(rows, cord)
        a_ports, b_ports = (
            trunk_ports(rear_port, cord.links, is_split)
            for rear_port in shuffle.rear_ports[number].tolist()
        )
        if shuffle.is_reversed[number]:
            b_ports.reverse()
        for position, (a_port, b_port) in enumerate(zip(a_ports, b_ports, strict=True), 1):
            yield NetboxCable(
                side_a_device=cord.a,
                side_a_type=REAR,
                side_a_name=a_port,
                side_b_device=cord.b,
                side_b_type=REAR,
                side_b_name=b_port,
                type=media,
                status="planned",
                label=cord.label,
                color=colour,
                length=cord.length_m,
                length_unit="m",
                description=f"position {position}" if is_split else "",
            )


def _status(row: Mapping[str, Any], dead: Collection[frozenset[str]]) -> str:
    """NetBox's word for the state of a cable, a row by column."""
    return "decommissioning" if frozenset((row["a_node"], row["b_node"])) in dead else "planned"


def _media_and_colour(rows: ScheduleRows, cord: Cord) -> tuple[str, str]:
    """The media and the colour of a ribbon or trunk; "" if no cable in stock is long enough."""
    for kind in rows.cables.kinds():
        if kind["name"] == cord.type:
            return kind["media"], kind["colour"] or ""
    return "", ""
