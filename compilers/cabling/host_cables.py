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
"""The columns of `host_rows`. `length_m` is the length of the cable in stock, and `run_m` the
length that is needed from the switch to the host."""


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

    `type` and `length_m` are empty if no cable in stock is long enough. All columns from
    `host_rack` on are empty if the rack of the host is unknown.

    Args:
        build: its hosts and their addresses.
        hardware: the places of nodes and hosts, and the cables in stock.
    """
    wiring, addressing = build.wiring, build.addressing
    # int[n] each: the switch of each cable, and the number of the host at this switch.
    switches, hosts = np.nonzero(wiring.host_port)
    order = np.lexsort((hosts, hardware.unit[switches], hardware.rack[switches]))
    switches, hosts = switches[order], hosts[order]
    # int[n, 2], the rack and the unit of the switch and of the host.
    rack = np.stack((hardware.rack[switches], hardware.host_rack[switches, hosts]), axis=1)
    unit = np.stack((hardware.unit[switches], hardware.host_unit[switches, hosts]), axis=1)
    run = distance(hardware, rack, unit)
    stock_type, length = first_long_enough(hardware, run)
    hosts_per_node = wiring.host_port.shape[1]
    type_names = [*(entry["name"] for entry in hardware.cabling["types"]), ""]
    for cable, (switch, host) in enumerate(zip(switches.tolist(), hosts.tolist(), strict=True)):
        port = int(wiring.host_port[switch, host])
        facts = hardware.types[int(wiring.node_type[switch])]
        host_columns: Row = ("", "", "", "", "")
        host_rack, host_unit = int(rack[cable, 1]), int(unit[cable, 1])
        if host_rack >= 0:
            host_columns = (
                hardware.rack_names[host_rack],
                host_unit,
                type_names[int(stock_type[cable])],  # -1, none in stock, is the last name, ""
                float(length[cable]) if stock_type[cable] >= 0 else "",
                round(float(run[cable]), 2),
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
