"""Write the cables of a fabric as CSV for NetBox's bulk import, through cassettes if there are any.

A cable of NetBox's form (`CableImportForm` in netbox/dcim/forms/bulk_import.py, 4.6.8) has one
termination at each side. So a ribbon becomes a cable for each lane, all with the ribbon's label,
and a trunk becomes a cable between two rear ports with as many positions as the trunk has. NetBox
has no cable profile with reversed ends. If any trunk is reversed, each position of a trunk is a
rear port and a cable of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, starmap

import numpy as np

from compilers.cabling.cable_formats import AT, as_table
from compilers.cabling.cords import Cord, ribbons, trunks
from compilers.cabling.panel_plan import PanelPlan
from compilers.cabling.schedule_columns import Row, Rows
from inventory.netbox.panel_ports import lane_port, trunk_ports

NETBOX = (
    *(f"side_{end}_{word}" for end in "ab" for word in ("device", "type", "name")),
    *("type", "status", "label", "color", "length", "length_unit", "description"),
)
"""The columns of the form."""
INTERFACE, FRONT, REAR = "dcim.interface", "dcim.frontport", "dcim.rearport"
"""The types of terminations."""


def as_netbox(
    parts: Iterable[tuple[Rows, PanelPlan | None]], dead: Collection[frozenset[str]] = ()
) -> Iterator[str]:
    """CSV with the cables of the selected links.

    Args:
        parts: for each plane its selected links, and how they run through panels, if they do.
        dead: links that do not work, as pairs of names of nodes.
    """

    def entries(rows: Rows, plan: PanelPlan | None) -> Iterator[Row]:
        """The cables of a plane."""
        if plan is None:
            return _direct(rows, dead)
        return chain(_lanes(rows, plan, dead), _trunks(rows, plan))

    return as_table(NETBOX, chain.from_iterable(starmap(entries, parts)))


def _direct(rows: Rows, dead: Collection[frozenset[str]]) -> Iterator[Row]:
    """Yield the cables from switch to switch."""
    media = {kind["name"]: kind["media"] for kind in rows.cables.kinds()}
    for row in rows:
        a, b, bundle = row[AT["a_node"]], row[AT["b_node"]], row[AT["bundle"]]
        yield (
            *(a, INTERFACE, row[AT["a_port"]]),
            *(b, INTERFACE, row[AT["b_port"]]),
            media[row[AT["type"]]],
            _status(row, dead),
            *(row[AT["label"]], row[AT["colour"]], row[AT["length_m"]], "m"),
            f"bundle {bundle}" if bundle else "",
        )


def _lanes(rows: Rows, plan: PanelPlan, dead: Collection[frozenset[str]]) -> Iterator[Row]:
    """Yield a cable for each lane of a ribbon, from the switch to the cassette."""
    ways, cords = plan.shuffle, list(ribbons(plan))
    for link, row in zip(rows.which.tolist(), rows, strict=True):
        lanes = list(zip(ways.front[link].tolist(), ways.lane[link].tolist(), strict=True))
        inside = ways.trunk[link] < 0
        for end, word in enumerate("ab"):
            port, rear = lane_port(lanes[end], lanes[1 - end] if inside else None)
            cord = cords[ways.ribbon[link, end]]
            media, colour = _stock(rows, cord)
            yield (
                *(row[AT[f"{word}_node"]], INTERFACE, row[AT[f"{word}_port"]]),
                *(plan.names[ways.panel[link, end]], REAR if rear else FRONT, port),
                media,
                _status(row, dead),
                *(cord.label, colour, cord.length_m, "m"),
                f"lane of link {row[AT['label']]}",
            )


def _trunks(rows: Rows, plan: PanelPlan) -> Iterator[Row]:
    """Yield a cable for each trunk of the selected links, or for each position of such a trunk."""
    ways, cords = plan.shuffle, list(trunks(plan))
    single = bool(ways.turned.any())
    chosen = np.unique(ways.trunk[rows.which])
    for number in chosen[chosen >= 0].tolist():
        cord = cords[number]
        media, colour = _stock(rows, cord)
        a_ports, b_ports = (
            trunk_ports(socket, cord.links, single) for socket in ways.sockets[number].tolist()
        )
        if ways.turned[number]:
            b_ports.reverse()
        for position, (a_port, b_port) in enumerate(zip(a_ports, b_ports, strict=True), 1):
            yield (
                *(cord.a, REAR, a_port),
                *(cord.b, REAR, b_port),
                *(media, "planned", cord.label, colour, cord.length_m, "m"),
                f"position {position}" if single else "",
            )


def _status(row: Row, dead: Collection[frozenset[str]]) -> str:
    """NetBox's word for the state of a cable."""
    ends = frozenset((str(row[AT["a_node"]]), str(row[AT["b_node"]])))
    return "decommissioning" if ends in dead else "planned"


def _stock(rows: Rows, cord: Cord) -> tuple[str, str]:
    """The media and the colour of a ribbon or trunk; "" if no cable in stock is long enough."""
    for kind in rows.cables.kinds():
        if kind["name"] == cord.type:
            return kind["media"], kind["colour"] or ""
    return "", ""
