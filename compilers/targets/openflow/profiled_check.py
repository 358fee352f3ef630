"""The check of OpenFlow text against the tables, of each switch as its profile allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compilers.readers.emitted_check import EmittedCheck
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.expected_forwarding import Ability
from compilers.readers.openflow.ovs_reader import PipelineParts, read_ovs
from compilers.readers.openflow.single_table_reader import read_single_table
from compilers.tables.build import Build
from compilers.targets.openflow.profiles import Profile


def profiled_check(
    build: Build,
    folder: Path,
    profiles: Sequence[Profile],
    accept: tuple[str, ...] = (),
    write: Callable[[Path], None] = lambda _: None,
) -> EmittedCheck:
    """The check of a folder of flows.txt and groups.txt for each switch.

    Args:
        build: that was emitted.
        folder: of all switches.
        profiles: of each vertex.
        accept: see `DifferenceList`.
        write: called with the folder of a switch before that is read.
    """
    by_name = dict(zip(build.wiring.names, profiles, strict=True))

    def read(folder: Path) -> EmittedSwitch:
        write(folder)
        profile = by_name[folder.name]
        if profile.single:
            return read_single_table(folder)
        return read_ovs(folder, PipelineParts(profile.answers_by_moves, profile.masks))

    able = [
        Ability(profile.repairs, profile.buckets, profile.experimenters) for profile in profiles
    ]
    return EmittedCheck(build, folder, read, accept, able)
