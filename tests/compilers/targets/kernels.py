"""Brings up a fabric of kernels in namespaces of its own, and returns what was seen there."""

import json
import os
import subprocess
import sys
from pathlib import Path

from compilers.tables.folders.build_folder import save
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.readers.emitted import write


def on_kernels(build, name, folder, pairs, flows):
    """The build, its files, and what live_kernels.py saw of so many flows of each pair."""
    build = save(build, folder / "b")
    write(name, build, folder / "out")
    script = Path(__file__).with_name("live_kernels.py")
    places = [str(folder / "b"), str(folder / "out"), name, json.dumps([pairs, flows])]
    done = subprocess.run(
        [*NAMESPACES, sys.executable, str(script), *places],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return build, folder / "out", json.loads(done.stdout)
