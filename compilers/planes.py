"""Several identical planes: k copies of the fabric; each host has a port to every plane.

A plane is a fabric by itself, with its own nodes, datapath ids, addresses and cables. Values that
are the same in all planes, above all the tables, are computed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from compilers.cabling.cable_plan import Cabled
from compilers.pipeline import cabled, compile_placed, require_memory
from compilers.policy_support import beyond_targets
from compilers.spec.fabric_file import LoadedFabric
from compilers.tables.build import Build
from compilers.wiring.placed_fabric import each_plane
from inventory.problems import Finding


def compile_planes(loaded: LoadedFabric) -> tuple[Build, ...]:
    """The build of every plane; those with the same ports share their tables.

    Raises:
        InputError: the inventory cannot hold a plane, or planes share a datapath id or a MAC
            address.
    """
    builds: list[Build] = []
    require_memory(loaded)
    with loaded.stage() as findings:
        findings += beyond_targets(loaded.spec)
        for placed in each_plane(loaded):
            builds.append(compile_placed(placed, builds[0] if builds else None))
    with loaded.stage() as findings:
        findings += _shared_numbers(builds)
    return tuple(builds)


def cabled_planes(loaded: LoadedFabric) -> tuple[Cabled, ...]:
    """Every plane with its cables, without tables.

    Raises:
        InputError: the inventory cannot hold a plane.
    """
    require_memory(loaded)
    with loaded.stage() as findings:
        findings += beyond_targets(loaded.spec)
        return tuple(map(cabled, each_plane(loaded)))


def _shared_numbers(builds: Sequence[Build]) -> Iterator[Finding]:
    """Datapath ids and MAC addresses of two planes."""
    for word, required in (("datapath_id", "a datapath id"), ("host_mac", "a MAC address")):
        owners: dict[int, list[str]] = defaultdict(list)
        for build in builds:
            held = build.wiring if word == "datapath_id" else build.addressing
            for number in np.unique(getattr(held, word)).tolist():
                owners[number].append(build.name)
        for number, names in owners.items():
            if len(names) > 1:
                given = f"{number:#x} in {' and '.join(names)}"
                yield Finding(("nodes",), f"{required} of one plane only", given, "change one")
