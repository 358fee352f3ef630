"""Names the ports of each node as its own system does, in a fabric of several systems.

A neighbour's port has the name that the neighbour's system gives it, also in the files of a node
with another system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from compilers.tables.build import Build
from compilers.targets.target_lookup import target
from inventory.problems import Finding


def named_by_systems(build: Build) -> Build:
    """The build with every node's ports named as its system names them.

    A node type whose nodes have several systems becomes several types.
    """
    wiring = build.wiring
    # A new node type is a pair of a node type and a system.
    new_type_of_node = list(zip(wiring.node_type.tolist(), build.systems, strict=True))
    new_types = sorted({*new_type_of_node})
    number_of = {new_type: number for number, new_type in enumerate(new_types)}
    port_names_of: dict[str, tuple[tuple[str, ...], ...]] = {}
    for system in sorted({*build.systems}):
        interfaces = target(system).interfaces
        named_build = interfaces.named(build, system) if interfaces else build
        port_names_of[system] = named_build.wiring.port_names
    new_numbers = [number_of[new_type] for new_type in new_type_of_node]
    wiring = replace(
        wiring,
        node_type=np.array(new_numbers, wiring.node_type.dtype),
        type_names=tuple(wiring.type_names[node_type] for node_type, _ in new_types),
        port_names=tuple(port_names_of[system][node_type] for node_type, system in new_types),
    )
    hardware = build.hardware
    if hardware:
        types = tuple(hardware.types[node_type] for node_type, _ in new_types)
        hardware = replace(hardware, types=types)
    return replace(build, wiring=wiring, hardware=hardware)


def port_name_findings(build: Build) -> Iterator[Finding]:
    """The findings about node types whose port names the system of their nodes cannot have."""
    named_build = named_by_systems(build)
    system_of_type = dict(zip(named_build.wiring.node_type.tolist(), build.systems, strict=True))
    for system in sorted({*build.systems}):
        if interfaces := target(system).interfaces:
            for type_number, finding in interfaces.port_name_findings(named_build):
                if system_of_type.get(type_number) == system:
                    yield finding
