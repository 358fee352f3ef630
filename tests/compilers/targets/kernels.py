"""Brings up a fabric of kernels in namespaces of its own, and returns what was seen there."""

import json
from pathlib import Path

from compilers.tables.folders.build_folder import save
from tests.compilers.readers.emitted import write
from tests.polarfab.forked import printed_apart


def on_kernels(build, name, folder, pairs, flows):
    """The build, its files, and what live_kernels.py saw of so many flows of each pair."""
    build = save(build, folder / "b")
    write(name, build, folder / "out")
    script = Path(__file__).with_name("live_kernels.py")
    places = [str(folder / "b"), str(folder / "out"), name, json.dumps([pairs, flows])]
    printed = printed_apart(script, *places, timeout=240)
    return build, folder / "out", json.loads(printed)
