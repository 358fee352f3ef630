"""The check of emitted rows and groups against the tables, by the profile of each switch.

A *profile* says what an OpenFlow switch can do. Target ovs checks its rendered files with
`profiled_check`, and `emitted_messages` the messages of the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compilers.readers.emitted_check import EmittedCheck
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.expected_forwarding import Ability
from compilers.readers.openflow.ovs_reader import OptionalFeatures, read_ovs
from compilers.readers.openflow.program_text import ProgramText
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
        build: what was emitted.
        folder: the folder with a folder for each switch.
        profiles: what each switch can do, by vertex.
        accept: beginnings of statements that the user has added, see `DifferenceList`.
        text: reads the rows and groups of a switch from its folder, which has the switch's name.
    """
    profile_of = dict(zip(build.wiring.names, profiles, strict=True))

    def read(folder: Path) -> EmittedSwitch:
        profile, program = profile_of[folder.name], text(folder)
        if profile.single:
            return read_single_table(program)
        return read_ovs(program, OptionalFeatures(profile.answers_by_moves, profile.masks))

    abilities = [Ability(profile.repairs, profile.buckets) for profile in profiles]
    return EmittedCheck(build, folder, read, accept, abilities)
