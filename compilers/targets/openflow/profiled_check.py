"""The check of rows and groups, by what each switch can hold and do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compilers.readers.emitted_check import EmittedCheck
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.expected_forwarding import Ability
from compilers.readers.openflow.ovs_reader import PipelineParts, ProgramText, read_ovs
from compilers.readers.openflow.single_table_reader import read_single_table
from compilers.tables.build import Build
from compilers.targets.openflow.profiles import Profile


def profiled_check(
    build: Build,
    folder: Path,
    profiles: Sequence[Profile],
    accept: tuple[str, ...] = (),
    text: Callable[[Path], ProgramText] = ProgramText.read,
) -> EmittedCheck:
    """The check of the rows and groups of each switch.

    Args:
        build: that was emitted.
        folder: of all switches.
        profiles: of each vertex.
        accept: see `DifferenceList`.
        text: what is emitted for a switch, by its folder.
    """
    by_name = dict(zip(build.wiring.names, profiles, strict=True))

    def read(folder: Path) -> EmittedSwitch:
        profile, program = by_name[folder.name], text(folder)
        if profile.single:
            return read_single_table(program)
        return read_ovs(program, PipelineParts(profile.answers_by_moves, profile.masks))

    able = [Ability(profile.repairs, profile.buckets) for profile in profiles]
    return EmittedCheck(build, folder, read, accept, able)
