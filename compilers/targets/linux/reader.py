"""Reader of a switch's folder of target linux: files for `ip -batch` and settings.

The check of emitted files compares the result with the tables of the build.
"""

from __future__ import annotations

from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.routers.iproute_reader import KernelActor, RouterFiles


def read_linux(folder: Path) -> EmittedSwitch:
    """Read the folder of a switch.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files, name = RouterFiles(folder), "routes.batch"
    routes = KernelActor(files, name)
    for batch in ("links.batch", "addresses.batch", "rules.batch"):
        files.read("linux", batch)
    files.read_settings("linux")
    engine = files.read("linux", name, routes)
    tables = files.tables(name, engine, routes.next_hops)
    return files.switch(str(folder / name), tables, routes.hops.values())
