"""The cables from nodes to hosts, with lengths for hosts whose rack is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.cabling.cable_plan import distance, shelved
from compilers.cabling.phases import Phases
from compilers.cabling.schedule_columns import Row, host_name
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware

HOST_COLUMNS = (
    *("label", "phase", "rack", "unit", "node", "module", "port", "port_label"),
    *("host", "mac", "host_rack", "host_unit", "type", "length_m", "way_m"),
)


def host_rows(build: Build, known: Hardware, phases: Phases) -> Iterator[Row]:
    """Rows of `HOST_COLUMNS`, rack by rack in the order of the phases.

    The type and length are empty if no cable in stock is long enough; if the host's rack is
    unknown, every column from `host_rack` on is.
    """
    wiring, addressing = build.wiring, build.addressing
    vertex, number = np.nonzero(wiring.host_port)
    order = np.lexsort((number, known.unit[vertex], known.rack[vertex], phases.vertex[vertex]))
    vertex, number = vertex[order], number[order]
    rack = np.stack((known.rack[vertex], known.host_rack[vertex, number]), axis=1)
    unit = np.stack((known.unit[vertex], known.host_unit[vertex, number]), axis=1)
    needed = distance(known, rack, unit)
    kind, length = shelved(known, needed)
    per_node = wiring.host_port.shape[1]
    names = [*(entry["name"] for entry in known.cabling["types"]), ""]
    for i, (v, h) in enumerate(zip(vertex.tolist(), number.tolist(), strict=True)):
        port = int(wiring.host_port[v, h])
        facts = known.types[int(wiring.node_type[v])]
        placed: Row = ("", "", "", "", "")
        if rack[i, 1] >= 0:
            metres = float(length[i]) if kind[i] >= 0 else ""
            where = known.rack_names[int(rack[i, 1])], int(unit[i, 1])
            placed = (*where, names[int(kind[i])], metres, round(float(needed[i]), 2))
        yield (
            host_name(v, h, known.plane),
            int(phases.vertex[v]),
            known.rack_names[int(known.rack[v])],
            int(known.unit[v]),
            wiring.names[v],
            facts.module[port - 1],
            wiring.port_name(v, port),
            facts.label[port - 1],
            wiring.host_names[v * per_node + h],
            addressing.mac(v, h),
            *placed,
        )
