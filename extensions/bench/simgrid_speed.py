"""The speed of SimGrid on an exported fabric, in the measure of our simulator."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from compilers.tables.build import Build
from extensions.clusters.simulators.simgrid_platform import files
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import SimulatedNetwork
from templates import TEMPLATES

PROGRAM = TEMPLATES / "simgrid" / "packets.c"
MOST_PACKETS = 100_000
"""SimGrid simulates some tens of thousands a second."""
FLIT_BYTES = 64


def simgrid_speed(build: Build) -> float | None:
    """Flits over links between switches in a second of one core; None without SimGrid.

    The host of each switch sends a packet to each other one in turn, 100,000 in all at most.
    SimGrid has no switches with buffers: packets share links as flows.

    Args:
        build: minimally routed, a host a switch.

    Raises:
        InputError: the fabric is too large for a platform.
    """
    order, packet = build.topology.graph.order, SimulationSettings().packet
    rounds = max(1, min(order - 1, MOST_PACKETS // order))
    with TemporaryDirectory(prefix="polarfab-") as name:
        folder = Path(name)
        compiled = _done(["cc", "-O2", PROGRAM, "-o", folder / "packets", "-lsimgrid"])
        if compiled is None:
            return None
        for file, text in files(build):
            (folder / file).write_text(text)
        size = str(packet * FLIT_BYTES)
        words = [folder / "packets", folder / "platform.xml", folder / "hostfile"]
        printed = _done([*words, str(rounds), size, "--log=root.thres:error"])
    if printed is None:
        return None
    hops = SimulatedNetwork.of(build, 1).hops
    source = np.arange(order)[:, None]
    crossed = int(hops[source, (source + np.arange(1, rounds + 1)) % order].sum())
    return crossed * packet / float(printed)


def _done(words: list[str | Path]) -> str | None:
    """What a program prints; None where it is not there, or fails."""
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if run.returncode else run.stdout
