"""The speed of the simulator, and of BookSim and SimGrid on the same fabric."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import click
import numpy as np

from benchmarks.timing import compiled, q_option
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.topology.files.graph_formats import pieces
from extensions.simulation.load_point import LEVELS, LoadPoint, SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError
from polarfab.output.verb_output import counted, json_option, print_json, print_table, say
from tests.extensions.simulation.simgrid.platform import platform_files

LOAD = 0.5
"""Of uniform traffic, at which simulators are timed."""
CYCLES = re.compile(r"Time taken is (\d+) cycles")
SECONDS = re.compile(r"Total run time ([\d.e+-]+)")
"""What BookSim prints at its end."""
CONFIG = """topology = anynet;
network_file = {network};
routing_function = min;
traffic = uniform;
injection_rate = {load};
injection_rate_uses_flits = 1;
packet_size = {packet};
num_vcs = {vcs};
vc_buf_size = {buffer};
vc_allocator = separable_input_first;
sw_allocator = separable_input_first;
internal_speedup = 2.0;
credit_delay = 2;
sample_period = {period};
warmup_periods = 3;
latency_thres = 1000.0;
"""
"""A configuration of BookSim."""


@click.command("simulate")
@q_option(7)
@click.option(
    "--booksim",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The program of BookSim 2, compiled with -O3. Timed by the clock: leave the machine idle.",
)
@json_option
def command(q: int, booksim: Path | None, as_json: bool) -> None:
    """Flits over links in a second of one core, (q + 1)/2 hosts a switch; and BookSim.

    And SimGrid, where it is installed: a host a switch, a packet to each other one in turn.
    """
    hosts = (q + 1) // 2
    with compiled(q) as folder:
        build = load(folder)
        speeds = list(simulator_speeds(build, hosts, LOAD, booksim))
        flows = simgrid_speed(build)
    if flows:
        ratio = flows / speeds[0].flit_hops
        speeds.append(SimulatorSpeed("SimGrid, flow by flow", flows, ratio))
    else:
        say("SimGrid is left out: it needs cc and libsimgrid (Debian: libsimgrid-dev gcc)")
    if as_json:
        print_json([asdict(speed) for speed in speeds])
        return
    print_table(
        f"PolarFly q={q}, {counted(hosts, 'host')} per node, load {LOAD:g}",
        ["what", "million flit hops a second", "times the first"],
        [(s.what, float(f"{s.flit_hops / 1e6:.3g}"), round(s.ratio, 1)) for s in speeds],
    )


@dataclass(frozen=True, slots=True)
class SimulatorSpeed:
    """The speed of a simulator."""

    what: str
    """The simulator."""
    flit_hops: float
    """Flits over links between switches, in a second of one core."""
    ratio: float
    """This as a multiple of the first row's."""


def simulator_speeds(
    build: Build, hosts: int, load: float, booksim: Path | None = None
) -> Iterator[SimulatorSpeed]:
    """Uniform traffic on minimal routes: BookSim where its program is given, then ours.

    Seconds are those of the simulation: compiling ours, and BookSim's set-up, are left out. Ours
    are the processor's, BookSim's by the clock, as it prints them: its set-up cannot be told apart
    in what the system counts of a process. So a busy machine makes the ratio too large.

    Raises:
        InputError: the program is not BookSim, or does not end well.
    """
    network = SimulatedNetwork.of(build, hosts)
    traffic = HostTraffic.of_pattern("uniform", build.topology, hosts, 0)
    settings = SimulationSettings(routing="minimal", scheme="single")
    theirs = _booksim(build, hosts, load, settings, booksim) if booksim else None
    ours: list[tuple[str, float]] = []
    for level in reversed(LEVELS):
        at_level = replace(settings, level=level)
        Measurement.of(network, traffic, at_level, load).compile()
        before = process_time()
        point = Measurement.of(network, traffic, at_level, load).point()
        rate = _flit_hops(build, hosts, load, point, point.cycles) / (process_time() - before)
        ours.append((f"polarfab, {level} by {level}", rate))
    if theirs:
        cycles, seconds = theirs
        ours.insert(0, ("BookSim", _flit_hops(build, hosts, load, point, cycles) / seconds))
    for what, rate in ours:
        yield SimulatorSpeed(what, rate, rate / ours[0][1])


def _flit_hops(build: Build, hosts: int, load: float, point: LoadPoint, cycles: int) -> float:
    """Flits over links between switches in so many cycles, by the mean hops of a measured point."""
    senders = int(build.topology.endpoints.sum()) * hosts
    return senders * load * (point.mean_hops or 0.0) * cycles


def _booksim(
    build: Build, hosts: int, load: float, settings: SimulationSettings, program: Path
) -> tuple[int, float]:
    """The cycles that BookSim simulated, and its seconds."""
    with TemporaryDirectory(prefix="polarfab-") as name:
        network, config = Path(name, "network"), Path(name, "config")
        with network.open("w") as stream:
            stream.writelines(pieces(build.topology, "anynet", hosts))
        values = {
            "network": network,
            "load": load,
            "packet": settings.packet,
            "vcs": settings.vcs,
            "buffer": settings.buffer // settings.vcs,
            "period": settings.period,
        }
        config.write_text(CONFIG.format(**values))
        try:
            run = subprocess.run(
                [program.resolve(), config], capture_output=True, text=True, check=False, cwd=name
            )
        except OSError as error:
            raise InputError.of("the program of BookSim 2", str(error), key="booksim") from error
    cycles, seconds = CYCLES.search(run.stdout), SECONDS.search(run.stdout)
    if not cycles or not seconds:
        last = (run.stdout + run.stderr).strip().splitlines()[-1:] or ["nothing"]
        todo = "build it from github.com/booksim/booksim2 with -O3"
        raise InputError.of("what BookSim 2 prints at its end", last[0], todo, key="booksim")
    return int(cycles[1]), float(seconds[1])


PROGRAM = Path(__file__).with_name("packets.c")
"""A program for SimGrid."""
MOST_PACKETS = 100_000
"""SimGrid simulates some tens of thousands a second."""
FLIT_BYTES = 64
"""The size of a flit."""


def simgrid_speed(build: Build) -> float | None:
    """Flits over links between switches in a second of one core; None without SimGrid.

    The host of each switch sends a packet to each other one in turn, 100,000 in all at most.
    SimGrid has no switches with buffers: packets share links as flows.

    Args:
        build: minimally routed, a host a switch.

    Raises:
        InputError: the fabric has more than 4,096 switches.
    """
    order, packet = build.topology.graph.order, SimulationSettings().packet
    rounds = max(1, min(order - 1, MOST_PACKETS // order))
    with TemporaryDirectory(prefix="polarfab-") as name:
        folder = Path(name)
        if _printed(["cc", "-O2", PROGRAM, "-o", folder / "packets", "-lsimgrid"]) is None:
            return None
        for file, text in platform_files(build).items():
            (folder / file).write_text(text)
        size = str(packet * FLIT_BYTES)
        words = [folder / "packets", folder / "platform.xml", folder / "hostfile"]
        printed = _printed([*words, str(rounds), size, "--log=root.thres:error"])
    if printed is None:
        return None
    hops = SimulatedNetwork.of(build, 1).hops
    source = np.arange(order)[:, None]
    crossed = int(hops[source, (source + np.arange(1, rounds + 1)) % order].sum())
    return crossed * packet / float(printed)


def _printed(words: list[str | Path]) -> str | None:
    """What a program prints; None where it is not there, or fails."""
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if run.returncode else run.stdout
