"""The check of the messages that a controller sends, by the parser of Ryu or os-ken.

Each switch's messages are written as text in ovs-ofctl's words, in their order, and read as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from compilers.readers.emitted_report import EmittedReport
from compilers.readers.openflow.openflow_messages import MessageReader
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.ovs import profiled_check
from compilers.targets.openflow.profiles import Profile
from compilers.targets.target import Progress
from compilers.workers.local_processes import on_all_cores


def check_messages(
    build: Build,
    package: str,
    progress: Progress = None,
    profiles: Sequence[Profile] | None = None,
) -> EmittedReport:
    """Compare the messages of every switch with the tables.

    Args:
        build: one plane.
        package: whose parser reads them, "ryu" or "os_ken".
        progress: called with (switches done, all switches).
        profiles: of each vertex, where they are not those of the node types.

    Raises:
        ImportError: the package is not installed.
        InputError: the build asks for something that target openflow cannot do.
    """
    encoder, messages = Encoder(build, profiles), MessageReader(package)
    vertex = {name: v for v, name in enumerate(build.wiring.names)}

    def write(folder: Path) -> None:
        program = encoder.program(vertex[folder.name])
        try:
            flows, groups = messages.texts(b"".join(program.parts))
        except (LookupError, ValueError) as error:
            raise ValueError(str(folder), 0, str(error)) from error
        folder.mkdir()
        for name, lines in (("flows.txt", flows), ("groups.txt", groups)):
            (folder / name).write_text("\n".join(lines))

    there = np.flatnonzero(build.topology.present).tolist()
    with TemporaryDirectory(prefix="openflow-") as folder:
        check = profiled_check(build, Path(folder), encoder.profiles, write=write)
        return check.report("openflow", on_all_cores(check.switch, there, progress))
