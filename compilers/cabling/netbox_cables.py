"""NetBox's bulk import of cables, through cassettes where links run through them.

A cable of NetBox's form (`CableImportForm` in netbox/dcim/forms/bulk_import.py, 4.6.8) has one
termination at each side, so a ribbon is one a lane, with its label, and a trunk one between rear
ports of as many positions as it has. Its cable profiles have none with reversed ends: where there
are such trunks each position is a rear port and a cable of its own.
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
INTERFACE, FRONT, REAR = "dcim.interface", "dcim.frontport", "dcim.rearport"


def as_netbox(
    parts: Iterable[tuple[Rows, PanelPlan | None]], dead: Collection[frozenset[str]] = ()
) -> Iterator[str]:
    """The cables of the selected links of each plane; dead: nodes whose link does not work."""

    def entries(rows: Rows, plan: PanelPlan | None) -> Iterator[Row]:
        if plan is None:
            return _direct(rows, dead)
        return chain(_lanes(rows, plan, dead), _trunks(rows, plan))

    return as_table(NETBOX, chain.from_iterable(starmap(entries, parts)))


def _direct(rows: Rows, dead: Collection[frozenset[str]]) -> Iterator[Row]:
    """Cables from switch to switch."""
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
    """A cable for each lane of a ribbon, from the switch to the cassette."""
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
    """A cable for each trunk that the selected links run through, or for each of its positions."""
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
    ends = frozenset((str(row[AT["a_node"]]), str(row[AT["b_node"]])))
    return "decommissioning" if ends in dead else "planned"


def _stock(rows: Rows, cord: Cord) -> tuple[str, str]:
    """The media and the colour of a ribbon or trunk; empty where none in stock is long enough."""
    for kind in rows.cables.kinds():
        if kind["name"] == cord.type:
            return kind["media"], kind["colour"] or ""
    return "", ""
