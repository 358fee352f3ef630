"""The check of the messages that the controller sends, against the tables of the build.

The rows and groups are read from the bytes and written as ovs-ofctl writes them. That text is read
and compared like the files of target ovs. `verify --emitted` calls `check_messages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import EmittedReport
from compilers.readers.openflow.program_text import ProgramFiles, ProgramText
from compilers.readers.openflow.row_text import group_text, row_line
from compilers.readers.openflow.rows import Malformed, read_group, rows_and_groups_added
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiled_check import profiled_check
from compilers.targets.openflow.profiles import Profile
from compilers.targets.target import Progress
from compilers.workers.local_processes import on_all_cores

MESSAGES = Path("messages to switches")
"""What reports name in the place of a folder, as messages are in none. The check of files asks for
the text of `MESSAGES / NAME`, where NAME is the name of a switch."""


def check_messages(
    build: Build, progress: Progress = None, profiles: Sequence[Profile] | None = None
) -> EmittedReport:
    """Compare the messages of every switch with the tables.

    Args:
        build: one plane.
        progress: called with (switches done, all switches).
        profiles: what each switch can do, by vertex; None: what its node type says.

    Raises:
        InputError: the build asks for something that target openflow cannot do.
    """
    encoder = Encoder(build, profiles)
    vertex_of = {name: vertex for vertex, name in enumerate(build.wiring.names)}

    def program_text(folder: Path) -> ProgramText:
        """The text of a switch's program, for the folder that stands for the switch."""
        switch_name = folder.name
        program = encoder.program(vertex_of[switch_name])
        try:
            return message_text(b"".join(program.parts), str(folder))
        except Malformed as error:
            raise ValueError(str(folder), 0, str(error)) from error

    switches = np.flatnonzero(build.topology.present).tolist()
    check = profiled_check(build, MESSAGES, encoder.profiles, text=program_text)
    return check.report("openflow", on_all_cores(check.switch, switches, progress))


def message_text(data: bytes, folder: str = "") -> ProgramText:
    """The rows and groups that messages in a bundle add.

    Args:
        data: the messages.
        folder: the folder that differences name.

    Raises:
        Malformed: a message adds no row or group, or has a field or action that polarfab never
            writes.
    """
    flows, groups = rows_and_groups_added(data)
    return ProgramText(
        [row_line(row) for row in flows],
        [group_text(read_group(*group)) for group in groups],
        ProgramFiles(f"{folder}/rows", f"{folder}/groups"),
    )
