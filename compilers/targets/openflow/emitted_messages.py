"""The check of the messages that a controller sends, by the parser of Ryu or os-ken.

Each switch's messages are written as text in ovs-ofctl's words, in their order, and read as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from compilers.readers.emitted_check import EmittedCheck
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.emitted_report import EmittedReport
from compilers.readers.openflow_messages import MessageReader
from compilers.readers.ovs_reader import read_ovs
from compilers.readers.single_table_reader import read_single_table
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiles import Profile, ability, pipeline_parts
from compilers.targets.parallel import on_all_cores
from compilers.targets.target import Progress


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

    def read(folder: Path) -> EmittedSwitch:
        program = encoder.program(vertex[folder.name])
        try:
            flows, groups = messages.texts(b"".join(program.parts))
        except (LookupError, ValueError) as error:
            raise ValueError(str(folder), 0, str(error)) from error
        folder.mkdir()
        for name, lines in (("flows.txt", flows), ("groups.txt", groups)):
            (folder / name).write_text("\n".join(lines))
        profile = encoder.profiles[vertex[folder.name]]
        return (read_single_table if profile.single else read_ovs)(folder, pipeline_parts(profile))

    there = np.flatnonzero(build.topology.present).tolist()
    checked = []
    with TemporaryDirectory(prefix="openflow-") as folder:
        able = [ability(profile) for profile in encoder.profiles]
        check = EmittedCheck(build, Path(folder), read, able=able)
        for done, switch in enumerate(on_all_cores(check.switch, there), 1):
            checked.append(switch)
            if progress:
                progress(done, len(there))
        return check.report("openflow", checked)
