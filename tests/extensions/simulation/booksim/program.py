"""BookSim 2 of the PolarFly authors, built from its source, with our traffic, networks and links.

The source is IntelLabs/PolarFly at `COMMIT`, patched (`traffic.patch`): hosts send to those that a
file names, `ugallinks` is their `ugallnew` with the links of its paths counted, and with
`stages_overlap` a stage of several cycles takes what comes meanwhile. Minimal next hops are those
of our tables, which it reads; the rest, routers, allocators, and how routes choose, is theirs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import ANY_HOST, HostTraffic, SimulatedNetwork

COMMIT = "015a80d881e7ed7b6eb03ad845c3dd5a70485efe"
SOURCE = "polarfly/booksim/src"
PATCH = Path(__file__).parent / "traffic.patch"
CONFIG = """topology = anynet;
network_file = network.anynet;
k = {hosts};
load_routing_file = yes;
routing_table_file = anynet.route;
use_size_power_of_two = no;
rr_permute = no;
adaptive_threshold = 4;
routing_function = {routes};
traffic = rows;
injection_rate = {load};
injection_rate_uses_flits = 1;
packet_size = {packet};
num_vcs = {vcs};
vc_buf_size = {buffer};
vc_allocator = separable_input_first;
sw_allocator = {allocator};
alloc_iters = {iterations};
wait_for_tail_credit = 0;
hold_switch_for_packet = 0;
credit_delay = {router.credit};
routing_delay = {router.routing};
vc_alloc_delay = 1;
sw_alloc_delay = 1;
st_final_delay = {router.crossbar};
stages_overlap = {overlap};
input_speedup = 1;
output_speedup = 1;
internal_speedup = {router.speedup}.0;
priority = none;
sim_count = 1;
sample_period = {period};
warmup_periods = 3;
max_samples = 8;
latency_thres = {limit};
seed = {seed};
"""


class Printed(NamedTuple):
    """What BookSim printed: the mean latency, and the part of the senders' links accepted.

    None for a run that it ended as unstable. deadlock: it warned of one, since for 256 cycles no
    packet of a full network had arrived.
    """

    latency: float | None
    accepted: float | None
    deadlock: bool


def build(checkout: Path, folder: Path) -> Path:
    """The program, from a checkout of IntelLabs/PolarFly; flex, bison, make and g++ are needed."""
    source = folder / "booksim"
    shutil.copytree(checkout / SOURCE, source)
    given = PATCH.read_bytes()
    subprocess.run(["patch", "-p1"], input=given, cwd=source, check=True, capture_output=True)
    subprocess.run(["make"], cwd=source, check=True, capture_output=True)
    return source / "booksim"


def network_text(net: SimulatedNetwork) -> str:
    """The file of `anynet`: routers with their hosts, and links with their cycles at both ends."""
    far = net.far
    delay = net.delay.reshape(net.switches, net.ports)[:, : net.links_a_switch]
    lines = []
    for s in range(net.switches):
        words = [
            f"router {s}",
            *(f"node {s * net.hosts_a_switch + p}" for p in range(net.hosts_a_switch)),
        ]
        words += [f"router {far[s, k]} {delay[s, k]}" for k in np.flatnonzero(far[s] >= 0)]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def routes_text(net: SimulatedNetwork) -> str:
    """The port of each router for each host: those of its hosts first, then routers by number."""
    far, width = net.far, len(net.transit_arcs) // net.switches
    lines = []
    for s in range(net.switches):
        port = {int(w): net.hosts_a_switch + at for at, w in enumerate(sorted(far[s][far[s] >= 0]))}
        out = net.transit_arcs[s * width + net.class_number[s].astype(int), 0]
        for d in range(net.switches):
            first = None if d == s else port[int(net.far_arc[out[d]]) // net.ports]
            nodes = ((p, d * net.hosts_a_switch + p) for p in range(net.hosts_a_switch))
            lines += [f"{s} {node} {p if first is None else first}" for p, node in nodes]
    return "\n".join(lines)


def rows_text(traffic: HostTraffic, hosts: int) -> str:
    """A line for each host: those that it sends to, as often as the shares say.

    Raises:
        AssertionError: shares are no multiples of a common one.
    """
    lines = []
    for host, row in enumerate(traffic.row_of_host):
        first, last = traffic.first_flow[row], traffic.first_flow[row + 1]
        share = np.diff(traffic.cumulative_share[first:last], prepend=0.0)
        times = np.rint(share / share.min()).astype(int) if len(share) else []
        assert np.allclose(share, np.array(times) / max(1, sum(times)), rtol=0.02)
        goals: list[int] = []
        for flow, count in zip(range(first, last), times, strict=True):
            base, place = traffic.destination[flow] * hosts, traffic.host_number[flow]
            some = range(hosts) if place == ANY_HOST else [place if place >= 0 else host % hosts]
            goals += [base + each for each in some] * count
        lines.append(" ".join(map(str, goals)) + "\n")
    return "".join(lines)


def run(
    program: Path,
    net: SimulatedNetwork,
    traffic: HostTraffic,
    settings: SimulationSettings,
    routes: str,
    load: float,
    overlap: bool = False,
    seed: int = 1,
    limit: float = 1000.0,
    period: int = 500,
) -> Printed:
    """One load.

    routes: `min`, `val`, `ugallnew`, `ugallinks` or `ugall4_pf`. overlap: of stages. limit: cycles
    of mean latency. period: cycles of each of eight samples.
    """
    with TemporaryDirectory(prefix="booksim-") as name:
        folder = Path(name)
        (folder / "network.anynet").write_text(network_text(net))
        (folder / "anynet.route").write_text(routes_text(net))
        (folder / "traffic.rows").write_text(rows_text(traffic, net.hosts_a_switch))
        words = {
            "hosts": net.hosts_a_switch,
            "routes": routes,
            "load": load * traffic.volume.max(),
            "packet": settings.packet,
            "vcs": settings.vcs,
            "buffer": settings.buffer // settings.vcs,
            "router": settings.router,
            "overlap": int(overlap),
            "allocator": "islip" if settings.router.islip else "separable_input_first",
            "iterations": max(1, settings.router.islip),
            "limit": limit,
            "period": period,
            "seed": seed,
        }
        (folder / "config").write_text(CONFIG.format(**words))
        found = subprocess.run(
            [program.resolve(), "config"], cwd=folder, capture_output=True, text=True, check=False
        )
    deadlock = "Possible network deadlock" in found.stdout
    if "unstable" in found.stdout:
        return Printed(None, None, deadlock)
    latency = re.search(r"Overall average packet latency = ([\d.e+-]+)", found.stdout)
    accepted = re.search(r"Overall average accepted flit rate = ([\d.e+-]+)", found.stdout)
    assert latency, found.stdout[-500:] + found.stderr[-500:]
    assert accepted
    senders = np.count_nonzero(traffic.volume) / len(traffic.volume)
    return Printed(float(latency[1]), float(accepted[1]) / senders, deadlock)
