"""NetBox's bulk import of cables, through cassettes where links run through them.

A cable of NetBox's form (`CableImportForm` in netbox/dcim/forms/bulk_import.py, 4.6.8) has one
termination at each side, so a ribbon is one a lane, with its label, and a trunk one between rear
ports of as many positions as it has. Its cable profiles have none with reversed ends: where there
are such trunks each position is a rear port and a cable of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_formats import AT, as_table
from compilers.cabling.panel_plan import CORD_COLUMNS, PanelPlan
from compilers.cabling.schedule_columns import Row, Rows
from inventory.netbox.panel_ports import lane_port, trunk_ports

NETBOX = (
    *(f"side_{end}_{word}" for end in "ab" for word in ("device", "type", "name")),
    *("type", "status", "label", "color", "length", "length_unit", "description"),
)
ENDS = tuple(AT[word] for word in ("a_node", "a_port", "b_node", "b_port"))
CORD = {word: i for i, word in enumerate(CORD_COLUMNS)}
INTERFACE = "dcim.interface"


def as_netbox(
    parts: Iterable[tuple[Rows, PanelPlan | None]], dead: Collection[frozenset[str]] = ()
) -> Iterator[str]:
    """The cables of the selected links of each plane; dead: nodes whose link does not work."""
    return as_table(NETBOX, (row for rows, plan in parts for row in _entries(rows, plan, dead)))


def _entries(rows: Rows, plan: PanelPlan | None, dead: Collection[frozenset[str]]) -> Iterator[Row]:
    kinds = {kind["name"]: kind for kind in rows.cables.kinds()}
    cords = list(plan.cords()) if plan else []

    def facts(cord: Row) -> tuple[Row, Row]:
        """Medium, and label, colour and length of a ribbon or trunk."""
        kind = kinds.get(str(cord[CORD["type"]]), {"media": "", "colour": ""})
        label, length = cord[CORD["label"]], cord[CORD["length_m"]]
        return (kind["media"],), (label, kind["colour"] or "", length, "m")

    for e, row in zip(rows.which.tolist(), rows, strict=True):
        a, a_port, b, b_port = (row[i] for i in ENDS)
        status = "decommissioning" if frozenset((a, b)) in dead else "planned"
        if plan is None or plan.panel[e, 0] < 0:
            bundle = row[AT["bundle"]]
            yield (
                *(a, INTERFACE, a_port, b, INTERFACE, b_port),
                *(kinds[str(row[AT["type"]])]["media"], status, row[AT["label"]]),
                *(row[AT["colour"]], row[AT["length_m"]], "m", f"bundle {bundle}" * bool(bundle)),
            )
            continue
        lanes = tuple(zip(plan.front[e].tolist(), plan.lane[e].tolist(), strict=True))
        inside = plan.trunk[e] < 0
        for s, (node, port) in enumerate(((a, a_port), (b, b_port))):
            name, rear = lane_port(lanes[s], lanes[1 - s] if inside else None)
            media, rest = facts(cords[plan.cord[e, s]])
            kind = "dcim.rearport" if rear else "dcim.frontport"
            panel = plan.names[plan.panel[e, s]]
            text = f"lane of link {row[AT['label']]}"
            yield (node, INTERFACE, port, panel, kind, name, *media, status, *rest, text)
    if plan:
        chosen = np.unique(plan.trunk[rows.which])
        yield from _trunks(plan, chosen[chosen >= 0], [facts(cord) for cord in cords[plan.at[1]]])


def _trunks(
    plan: PanelPlan, chosen: NDArray[np.int64], facts: list[tuple[Row, Row]]
) -> Iterator[Row]:
    single = bool(plan.turned.any())
    between = plan.trunk >= 0
    last = np.zeros(len(plan.ends), np.int64)
    np.maximum.at(last, plan.trunk[between], plan.position[between].max(axis=1) + 1)
    for t in chosen.tolist():
        names = [plan.names[p] for p in plan.ends[t]]
        media, rest = facts[t]
        ports = (trunk_ports(socket, int(last[t]), single) for socket in plan.sockets[t].tolist())
        here, there = ports
        for n, (one, other) in enumerate(
            zip(here, there[::-1] if plan.turned[t] else there, strict=True), 1
        ):
            ends = (names[0], "dcim.rearport", one, names[1], "dcim.rearport", other)
            yield (*ends, *media, "planned", *rest, f"position {n}" * single)
