"""The cables from nodes to hosts: where a host stands is not known, only its name and address."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.build import Build
from compilers.cable_rows import Row
from compilers.hardware import Hardware
from compilers.phases import Phases

HOST_COLUMNS = (
    *("label", "phase", "rack", "unit", "node", "module", "port", "port_label"),
    *("host", "mac"),
)


def host_rows(build: Build, known: Hardware, phases: Phases) -> Iterator[Row]:
    """Rows of `HOST_COLUMNS`, rack by rack in the order of the phases.

    A label is H, the vertex and the host's number at it from 0.
    """
    wiring, addressing = build.wiring, build.addressing
    vertex, number = np.nonzero(wiring.host_port)
    rack = known.rack[vertex]
    order = np.lexsort((number, known.unit[vertex], rack, phases.vertex[vertex]))
    per_node = wiring.host_port.shape[1]
    for v, h in zip(vertex[order].tolist(), number[order].tolist(), strict=True):
        port = int(wiring.host_port[v, h])
        facts = known.types[int(wiring.node_type[v])]
        yield (
            f"H{v:05d}-{h}",
            int(phases.vertex[v]),
            known.rack_names[int(known.rack[v])],
            int(known.unit[v]),
            wiring.names[v],
            facts.module[port - 1],
            wiring.port_name(v, port),
            facts.label[port - 1],
            wiring.host_names[v * per_node + h],
            addressing.mac(v, h),
        )
