"""The check of the messages that a controller sends.

Their rows and groups are read from the bytes, printed as ovs-ofctl writes them, and read as the
text of target ovs is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import EmittedReport
from compilers.readers.openflow.ovs_reader import ProgramText
from compilers.readers.openflow.row_text import group_text, row_line
from compilers.readers.openflow.rows import Malformed, added, read_group
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiled_check import profiled_check
from compilers.targets.openflow.profiles import Profile
from compilers.targets.target import Progress
from compilers.workers.local_processes import on_all_cores

MESSAGES = Path("messages to switches")
"""What is written in the place of a folder: messages are in none."""


def check_messages(
    build: Build, progress: Progress = None, profiles: Sequence[Profile] | None = None
) -> EmittedReport:
    """Compare the messages of every switch with the tables.

    Args:
        build: one plane.
        progress: called with (switches done, all switches).
        profiles: of each vertex, where they are not those of the node types.

    Raises:
        InputError: the build asks for something that target openflow cannot do.
    """
    encoder = Encoder(build, profiles)
    vertex = {name: v for v, name in enumerate(build.wiring.names)}

    def text(folder: Path) -> ProgramText:
        program = encoder.program(vertex[folder.name])
        try:
            return message_text(b"".join(program.parts), str(folder))
        except Malformed as error:
            raise ValueError(str(folder), 0, str(error)) from error

    switches = np.flatnonzero(build.topology.present).tolist()
    check = profiled_check(build, MESSAGES, encoder.profiles, text=text)
    return check.report("openflow", on_all_cores(check.switch, switches, progress))


def message_text(data: bytes, folder: str = "") -> ProgramText:
    """The rows and groups that messages in a bundle add.

    Args:
        data: the messages.
        folder: what is written before the names of the files.

    Raises:
        Malformed: a message is another, or has what no row or group here has.
    """
    flows, groups = added(data)
    return ProgramText(
        [row_line(form) for form in flows],
        [group_text(read_group(*group)) for group in groups],
        (f"{folder}/rows", f"{folder}/groups"),
    )
