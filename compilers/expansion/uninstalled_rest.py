"""The nodes and cables that a partly installed fabric lacks.

`uninstalled_rest` compares the build of what is installed with a build of the same fabric in which
more is installed. `growth_report` prints the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.expansion.grown_wiring import moved_cables
from compilers.tables.build import Build
from compilers.update.compare import SwitchChange, compare
from inventory.problems import InputError


@dataclass(frozen=True, slots=True, eq=False)
class UninstalledRest:
    """The nodes and cables that a partly installed fabric lacks."""

    nodes: NDArray[np.int64]
    """int64[n], the vertices to install."""
    cables: Cables
    """The cables of the larger fabric."""
    added: NDArray[np.int64]
    """int64[A], the indexes of the new cables in `cables`."""
    moved: int
    """The number of installed cables with a different end or port in the larger fabric."""
    relabelled: int
    """The number of installed cables with a different label."""
    renamed: int
    """The number of installed nodes with a different name, number or address."""
    switches: tuple[SwitchChange, ...]
    """The table changes of the switches that are installed."""


def uninstalled_rest(before: Build, after: Build) -> UninstalledRest:
    """What has to be added to get from one build of a fabric to a larger one.

    Raises:
        InputError: the builds are not of one fabric.
    """
    _require_one_fabric(before, after)
    cables = cables_of(after.wiring, hardware_of(after))
    old_cables = cables_of(before.wiring, hardware_of(before))
    keys, old_keys = cables.keys(), old_cables.keys()
    # The indexes in the old and in the new build of the cables that both have.
    _, old_index, new_index = np.intersect1d(old_keys, keys, return_indices=True)
    return UninstalledRest(
        nodes=np.flatnonzero(after.topology.present & ~before.topology.present),
        cables=cables,
        added=np.flatnonzero(~np.isin(keys, old_keys)),
        moved=moved_cables(before.wiring, after.wiring),
        relabelled=int((old_cables.number[old_index] != cables.number[new_index]).sum()),
        renamed=_renamed_count(before, after),
        switches=compare(before, after).switches,
    )


def _require_one_fabric(before: Build, after: Build) -> None:
    """Pass if two builds are of one fabric.

    Raises:
        InputError: their topologies differ.
    """
    same_topology = (
        before.topology.family == after.topology.family
        and dict(before.topology.parameters) == dict(after.topology.parameters)
        and len(before.wiring.names) == len(after.wiring.names)
    )
    if not same_topology:
        todo = "use `clusters` to grow to another topology"
        given = f"{after.topology.title()} and {before.topology.title()}"
        raise InputError.of("two builds of one fabric", given, todo, key="whole")


def _renamed_count(before: Build, after: Build) -> int:
    """The number of installed nodes whose name, number or first address differs."""
    differ = np.array(before.wiring.names) != np.array(after.wiring.names)
    differ |= before.wiring.datapath_id != after.wiring.datapath_id
    differ |= before.addressing.ipv4_blocks() != after.addressing.ipv4_blocks()
    differ |= before.addressing.ipv6 != after.addressing.ipv6
    return int((differ & before.topology.present).sum())
