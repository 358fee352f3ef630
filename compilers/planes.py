"""Several identical planes: the fabric k times, each host with a port to every plane.

A plane is a fabric by itself, with nodes, datapath ids, addresses and cables of its own. What does
not tell planes apart, the tables above all, is computed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compilers.cabling.phases import Stage
from compilers.pipeline import compile_placed
from compilers.spec.fabric_file import LoadedFabric
from compilers.tables.build import Build
from compilers.wiring.plane_split import each_plane, said_of
from inventory.problems import InputError, Problem, few

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    pass


def compile_planes(loaded: LoadedFabric, stage: Stage | None = None) -> tuple[Build, ...]:
    """The build of every plane; those with the same ports share their tables.

    Raises:
        InputError: the inventory cannot hold a plane, or planes share a datapath id or a MAC
            address.
    """
    builds: list[Build] = []
    for placed in each_plane(loaded):
        with said_of(placed.loaded):
            builds.append(compile_placed(placed, stage, builds[0] if builds else None))
    _require_apart(builds, loaded)
    return tuple(builds)


def _require_apart(builds: Sequence[Build], loaded: LoadedFabric) -> None:
    """No datapath id and no MAC address is of two planes.

    Raises:
        InputError: the first of each.
    """
    problems = []
    file, line = loaded.locate(("nodes",))
    for word, required in (("datapath_id", "a datapath id"), ("host_mac", "a MAC address")):
        owners: dict[int, list[str]] = defaultdict(list)
        for build in builds:
            held = build.wiring if word == "datapath_id" else build.addressing
            for number in np.unique(getattr(held, word)).tolist():
                owners[number].append(build.name)
        for number, names in owners.items():
            if len(names) > 1:
                given = f"{number:#x} in {' and '.join(names)}"
                required_here = f"{required} of one plane only"
                problems.append(Problem(required_here, given, "change one", file, line, "nodes"))
    if problems:
        raise InputError(few(problems))
