"""How long Mininet takes to start a fabric: as it comes, and as the Mininet engine does it.

`python -m benchmarks.emulate KIND BUILD` in fresh namespaces prints the seconds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from benchmarks.timing import compiled, q_option
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.inner_child import OPEN_FILES, RUN, prepare
from mininet_scenarios.machine.preflight import namespaces, require
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import EngineError, HostSample
from polarfab.output.verb_output import json_option, print_json, print_table, say


@click.command("emulate")
@q_option(7)
@json_option
def command(q: int, as_json: bool) -> None:
    """Start PolarFly, a host per switch, in Mininet as it comes and by our engines.

    Stock Mininet takes minutes from q=11. Needs root, or user namespaces, Open vSwitch and Mininet.
    """
    require("mininet")
    with compiled(q) as build:
        measured = list(starts(build, say))
    if as_json:
        print_json([asdict(start) for start in measured])
        return
    print_table(
        f"PolarFly q={q}: starting",
        ["what", "s", "times ours"],
        [(start.what, round(start.seconds, 1), round(start.ratio, 2)) for start in measured],
    )


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a fabric."""

    what: str
    """What was started, and how."""
    seconds: float
    """The time that it took."""
    ratio: float
    """The time as a multiple of ours."""


def starts(build: Path, tell: Callable[[str], None]) -> Iterator[Start]:
    """Start a build each way, one after the other; ours first.

    Raises:
        EngineError: one did not start.
    """
    ours = 0.0
    for kind, what in START_KINDS.items():
        tell(f"starting {what}")
        seconds = _seconds(kind, build)
        ours = ours or seconds
        yield Start(what, seconds, seconds / ours)


def _seconds(kind: str, build: Path) -> float:
    """The seconds of one start, in a process of its own."""
    command = [*namespaces(), sys.executable, "-P", "-m", "benchmarks.emulate"]
    process = subprocess.run(
        [*command, kind, str(build)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise EngineError(f"{START_KINDS[kind]} did not start: {process.stderr.strip()[-600:]}")
    return float(process.stdout.split()[-1])


def _engine(build: Build, ovs: PrivateOvs) -> None:
    """As `mininet_scenarios.engines.mininet_child` does."""
    from mininet_scenarios.engines.network import FabricNetwork

    network = FabricNetwork(build, HostSample.of(build), ovs)
    with ThreadPoolExecutor(1) as meanwhile:
        running = meanwhile.submit(ovs.start)
        network.add_hosts(lambda *_: None)
        running.result()
    network.start()


def _stock(build: Build, ovs: PrivateOvs) -> None:
    """Mininet's own way: `Mininet(topo)` and `start`, with the user datapath."""
    from mininet.link import Link
    from mininet.net import Mininet
    from mininet.node import OVSSwitch

    ovs.start()
    Mininet.inited = True  # init() would raise kernel limits of the whole machine
    net = Mininet(controller=None, link=Link, autoStaticArp=False)
    vertices = np.flatnonzero(build.topology.present).tolist()
    for vertex in vertices:
        dpid = f"{int(build.wiring.datapath_id[vertex]):016x}"
        name = bridge_name(vertex)
        net.addSwitch(name, cls=OVSSwitch, datapath="user", failMode="secure", dpid=dpid)
    for number, vertex in enumerate(HostSample.of(build).switch.tolist()):
        net.addLink(net.addHost(f"h{number}"), bridge_name(vertex))
    once = build.wiring.far > np.array(vertices)[:, None]
    for vertex, link in np.argwhere(once).tolist():
        net.addLink(bridge_name(vertex), bridge_name(int(build.wiring.far[vertex, link])))
    net.start()


def _fabric(build: Build, ovs: PrivateOvs) -> None:
    """No hosts: the engine ovs-fabric."""
    ovs.start()
    OvsFabric(build, ovs).start()


START_KINDS = {
    "engine": "engine mininet: switches, hosts and links",
    "stock": "stock Mininet: the same",
    "fabric": "engine ovs-fabric: switches and links",
}
"""The ways to start a fabric, in words."""


def main() -> None:
    """Start one, and print the seconds; the kernel clears up."""
    kind, build = sys.argv[1], load(Path(sys.argv[2]))
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    prepare()
    ovs = PrivateOvs(RUN / "ovs")
    os.environ.update(ovs.env)
    begun = perf_counter()
    {"engine": _engine, "stock": _stock, "fabric": _fabric}[kind](build, ovs)
    print(perf_counter() - begun, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
