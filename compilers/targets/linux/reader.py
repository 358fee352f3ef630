"""Reader of a switch's folder of target linux: files for `ip -batch` and settings.

The check of emitted files compares the result, an `EmittedSwitch`, with the tables of the build.
"""

from __future__ import annotations

from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.routers.iproute_reader import RouterFiles
from compilers.readers.routers.kernel_actor import KernelActor, read_file

ROUTES = "routes.batch"
"""The file with the routes."""


def read_linux(folder: Path) -> EmittedSwitch:
    """Read the folder of a switch.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files = RouterFiles(folder)
    actor = KernelActor(files, ROUTES)
    for batch in ("links.batch", "addresses.batch", "rules.batch"):
        read_file(files, "linux", batch)
    files.read_settings("linux")
    engine = read_file(files, "linux", ROUTES, actor)
    tables = files.read_tables(ROUTES, engine, actor.next_hops)
    return files.finish(str(folder / ROUTES), tables, actor.nexthop_objects.values())
