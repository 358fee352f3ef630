"""The cables from switches to hosts, as CSV.

`cable_schedule` prints them. They are no part of the cable plan, as the inventory need not say in
which rack a host is. Then the length of its cable is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from compilers.cabling.cable_formats import as_table
from compilers.cabling.cable_names import host_cable_name
from compilers.cabling.cable_plan import CabledFabric
from compilers.cabling.cable_stock import distance, first_long_enough
from compilers.cabling.schedule_columns import Row, ScheduleRows
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware

HOST_COLUMNS = (
    "label",
    "rack",
    "unit",
    "node",
    "module",
    "port",
    "port_label",
    "host",
    "mac",
    "host_rack",
    "host_unit",
    "type",
    "length_m",
    "run_m",
)
"""The columns of `host_rows`."""


def as_host_csv(
    planes: Iterable[tuple[Build | CabledFabric, ScheduleRows]], rack: str = ""
) -> Iterator[str]:
    """CSV of the cables to the hosts of each plane.

    Args:
        planes: the build and the cables of each plane.
        rack: only the cables with an end in the rack of this name; "" for all.
    """
    of_planes = (host_rows(build, rows.cables.hardware) for build, rows in planes)
    rows: Iterator[Row] = chain.from_iterable(of_planes)
    if rack:
        switch_rack, host_rack = HOST_COLUMNS.index("rack"), HOST_COLUMNS.index("host_rack")
        rows = (row for row in rows if rack in (row[switch_rack], row[host_rack]))
    return as_table(HOST_COLUMNS, rows)


def host_rows(build: Build | CabledFabric, hardware: Hardware) -> Iterator[Row]:
    """Yield a row of `HOST_COLUMNS` for each cable to a host, rack by rack.

    Type and length are empty if no cable in stock is long enough. All columns from `host_rack` on
    are empty if the rack of the host is unknown.

    Args:
        build: its hosts and their addresses.
        hardware: the places of nodes and hosts, and the cables in stock.
    """
    wiring, addressing = build.wiring, build.addressing
    vertex, number = np.nonzero(wiring.host_port)
    order = np.lexsort((number, hardware.unit[vertex], hardware.rack[vertex]))
    vertex, number = vertex[order], number[order]
    # int[n, 2], the rack and the unit of the switch and of the host.
    rack = np.stack((hardware.rack[vertex], hardware.host_rack[vertex, number]), axis=1)
    unit = np.stack((hardware.unit[vertex], hardware.host_unit[vertex, number]), axis=1)
    needed = distance(hardware, rack, unit)
    kind, length = first_long_enough(hardware, needed)
    hosts_per_node = wiring.host_port.shape[1]
    names = [*(entry["name"] for entry in hardware.cabling["types"]), ""]
    for cable, (switch, host) in enumerate(zip(vertex.tolist(), number.tolist(), strict=True)):
        port = int(wiring.host_port[switch, host])
        facts = hardware.types[int(wiring.node_type[switch])]
        host_columns: Row = ("", "", "", "", "")
        host_rack, host_unit = int(rack[cable, 1]), int(unit[cable, 1])
        if host_rack >= 0:
            host_columns = (
                hardware.rack_names[host_rack],
                host_unit,
                names[int(kind[cable])],  # -1, none in stock, is the last name, ""
                float(length[cable]) if kind[cable] >= 0 else "",
                round(float(needed[cable]), 2),
            )
        yield (
            host_cable_name(switch, host, hardware.plane),
            hardware.rack_names[int(hardware.rack[switch])],
            int(hardware.unit[switch]),
            wiring.names[switch],
            facts.module[port - 1],
            wiring.port_name(switch, port),
            facts.label[port - 1],
            wiring.host_names[switch * hosts_per_node + host],
            addressing.mac(switch, host),
            *host_columns,
        )
