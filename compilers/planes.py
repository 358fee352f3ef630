"""Compile a fabric of several planes: identical fabrics, to each of which a host has a port.

A plane is a fabric by itself, with its own nodes, datapath ids, addresses and cables. Values that
are the same in all planes, above all the tables, are computed once. `pipeline` compiles each plane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import CabledFabric
from compilers.pipeline import compile_placed, require_memory, with_cables
from compilers.policy_support import system_findings
from compilers.spec.fabric_file import LoadedFabric
from compilers.tables.build import Build
from compilers.wiring.fabric_planes import each_plane
from compilers.wiring.plane_pools import block_findings
from inventory.problems import Finding


def compile_planes(loaded: LoadedFabric) -> tuple[Build, ...]:
    """Compile every plane; planes with the same ports share their tables.

    Raises:
        InputError: the inventory cannot hold a plane, or planes share a datapath id or a MAC
            address.
    """
    builds: list[Build] = []
    require_memory(loaded)
    with loaded.stage() as findings:
        findings += system_findings(loaded.spec, loaded.inventory)
        findings += block_findings(loaded)
        for placed in each_plane(loaded):
            builds.append(compile_placed(placed, builds[0] if builds else None))
    with loaded.stage() as findings:
        findings += _plane_number_findings(builds)
    return tuple(builds)


def cabled_planes(loaded: LoadedFabric) -> tuple[CabledFabric, ...]:
    """Return every plane with its cables, without tables.

    Raises:
        InputError: the inventory cannot hold a plane.
    """
    require_memory(loaded)
    with loaded.stage() as findings:
        findings += system_findings(loaded.spec, loaded.inventory)
        findings += block_findings(loaded)
        return tuple(map(with_cables, each_plane(loaded)))


def _plane_number_findings(builds: Sequence[Build]) -> Iterator[Finding]:
    """Yield a finding for each datapath id and MAC address that two planes have."""
    yield from _shared_number_findings(
        "a datapath id", {b.name: b.wiring.datapath_id for b in builds}
    )
    yield from _shared_number_findings(
        "a MAC address", {b.name: b.addressing.host_mac for b in builds}
    )


def _shared_number_findings(
    noun: str, numbers: Mapping[str, NDArray[np.uint64]]
) -> Iterator[Finding]:
    """Yield a finding for each number that two planes have.

    Args:
        noun: what the numbers are.
        numbers: uint64[…] by the name of a plane.
    """
    planes_with: dict[int, list[str]] = defaultdict(list)
    for name, plane_numbers in numbers.items():
        for number in np.unique(plane_numbers).tolist():
            planes_with[number].append(name)
    for number, names in planes_with.items():
        if len(names) > 1:
            given = f"{number:#x} in {' and '.join(names)}"
            yield Finding(("nodes",), f"{noun} of one plane only", given, "change one")
