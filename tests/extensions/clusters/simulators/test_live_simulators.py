"""SimGrid and ns-3 take as long over the exported fabric as `throughput` says.

A unit is the time that a host's link takes for what one host sends to another. A pattern that
saturates at a share s of the hosts' links takes 1/s units.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.bench.simulation_timings import simgrid_speed
from extensions.clusters.simulators.host_pair_paths import HostPairPaths
from extensions.clusters.simulators.rated_links import LATENCY, RatedLinks
from extensions.simulation.build_simulation import settings_for
from extensions.simulation.collective_completion import COLLECTIVES, FLIT, completion_time
from tests.extensions.clusters.exported import exported

pytestmark = pytest.mark.live
Q7 = {"family": "polarfly", "q": 7}
STAR = {"family": "polarstar", "q": 3, "supernode": "paley", "degree": 2}
GBIT_S = 400
NS3 = ["-lns3-internet", "-lns3-point-to-point", "-lns3-network", "-lns3-core"]
Flows = Iterable[tuple[str, str]]


def made(**more: object) -> Build:
    return compile_fabric(load_fabric({"name": "lab", "topology": Q7} | more))


def export(form: str, build: Build, folder: Path) -> None:
    """Write the files, with links that take no time."""
    for name, text in exported(form, [build]).items():
        timeless = text.replace(f'latency="{LATENCY}s"', 'latency="0s"')
        (folder / name).write_text(timeless.replace(f" {GBIT_S} {LATENCY}\n", f" {GBIT_S} 0\n"))


def tornado(of: Callable[[int], str], order: int = 57) -> Flows:
    return ((of(s), of((s + order // 2) % order)) for s in range(order))


def uniform(of: Callable[[int], str], order: int = 57) -> Flows:
    return ((of(s), of((s + k) % order)) for s in range(order) for k in range(1, order))


def run(*words: str | Path, folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(flows: Flows, size: int, folder: Path) -> None:
    lines = [f"{source} {destination} {size}\n" for source, destination in flows]
    (folder / "flows.txt").write_text("".join(lines))


@pytest.fixture(scope="module")
def flows_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("simgrid") / "flows"
    source = Path(__file__).with_name("flows.c")
    run("gcc", source, "-o", program, "-lsimgrid", folder=program.parent)
    return program


def units(program: Path, flows: Flows, folder: Path) -> float:
    write(flows, GBIT_S * 10**9 // 8, folder)
    return float(run(program, "platform.xml", "flows.txt", folder=folder))


@pytest.mark.parametrize(("topology", "expected"), [(Q7, (2, 56)), (STAR, (2, 64))])
def test_simgrid_agrees_with_throughput(
    topology: dict[str, object], expected: object, flows_program: Path, tmp_path: Path
) -> None:
    build = made(topology=topology)
    order = build.topology.graph.order
    export("simgrid", build, tmp_path)
    took = tuple(
        units(flows_program, flows("h{}".format, order), tmp_path) for flows in (tornado, uniform)
    )
    assert took == pytest.approx(expected, rel=1e-6)
    told = [throughput(build, name, hosts=1).minimal.share for name in ("tornado", "uniform")]
    assert took == pytest.approx((1 / told[0], (order - 1) / told[1]), rel=1e-6)


def test_simgrid_agrees_where_traffic_is_spread(flows_program: Path, tmp_path: Path) -> None:
    """Every host of a switch takes one way each, so the shares are those of the weights roughly."""
    build = made(hosts_per_node=4, routing={"balance": "compact-valiant"})
    export("simgrid", build, tmp_path)
    flows = [flow for h in range(4) for flow in tornado(f"h{{}}-{h}".format)]
    took = units(flows_program, flows, tmp_path)
    told = throughput(build, "tornado", hosts=4)
    assert told.as_emitted is not None
    assert took == pytest.approx(1 / told.as_emitted.share, rel=0.25)
    assert took < 0.8 / told.minimal.share


@pytest.fixture(scope="module")
def collectives_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("collectives") / "collectives"
    source = Path(__file__).with_name("collectives.cpp")
    run("g++", "-std=c++17", source, "-o", program, "-lsimgrid", folder=program.parent)
    return program


@pytest.mark.parametrize(
    ("collective", "q", "hosts", "buffer", "tolerance"),
    [
        ("ring-allreduce", 3, 4, 128, 0.005),
        ("tree-allreduce", 3, 4, 32, 0.02),
        ("sweep3d", 3, 4, 128, 0.05),
        ("all-to-all", 5, 1, 4096, 0.04),
    ],
)
def test_collectives_take_as_long_as_in_simgrid(
    collective: str,
    q: int,
    hosts: int,
    buffer: int,
    tolerance: float,
    collectives_program: Path,
    tmp_path: Path,
) -> None:
    """Messages of 256 packets, so that hops, which SimGrid is told to leave out, hardly count.

    A ring's messages share no link; a tree's and a sweep's do, and SimGrid shares links fairly
    where packets queue first come, first served: the more alike, the smaller the buffers. In an
    all-to-all SimGrid starts all messages at once, as deep buffers let us do: the rest is one
    message of 30.
    """
    build = made(topology={"family": "polarfly", "q": q}, hosts_per_node=hosts)
    export("simgrid", build, tmp_path)
    settings = replace(settings_for(build), buffer=buffer)
    message = 256 * settings.packet * FLIT
    size = round(message / COLLECTIVES[collective](build.topology.graph.order * hosts).part)
    found = completion_time(build, collective, size, hosts, settings)
    words = (collectives_program, "platform.xml", "hostfile", collective, str(message))
    took, messages = run(*words, folder=tmp_path).split()
    assert (found.messages, found.packets) == (int(messages), 256 * int(messages))
    assert found.seconds == pytest.approx(float(took), rel=tolerance)


def test_the_speed_of_simgrid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    speed = simgrid_speed(made())
    assert speed is not None
    assert 1e4 < speed < 1e8
    monkeypatch.setenv("PATH", str(tmp_path))
    assert simgrid_speed(made()) is None


@pytest.fixture(scope="module")
def ns3_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ns3")
    export("ns3", made(), folder)
    run("g++", "-std=c++17", "fabric.cc", "-o", "fabric", *NS3, folder=folder)
    return folder / "fabric"


def test_ns3_agrees_with_throughput(ns3_program: Path, tmp_path: Path) -> None:
    """By packets of 1,472 bytes and 30 of headers; the last ones have the way ahead of them."""
    export("ns3", made(), tmp_path)
    for flows, packets, expected in ((tornado, 100, 2), (uniform, 3, 56)):
        write(flows("h{}".format), packets * 1472, tmp_path)
        word, seconds, *rest = run(ns3_program, folder=tmp_path).split()
        assert [word, *rest[2:]] == ["seconds", "lost", "0"]
        took = float(seconds) * GBIT_S * 1e9 / (packets * 1502 * 8)
        assert took == pytest.approx(expected, rel=0.03)


DRAWN: list[tuple[dict[str, object], dict[str, str]]] = [
    ({"family": "polarfly", "q": 5}, {"balance": "valiant"}),
    ({"family": "polarfly", "q": 5}, {"balance": "spread"}),
    ({"family": "pn", "q": 3}, {"balance": "spread"}),
    ({"family": "fat-tree", "k": 4}, {"balance": "ecmp", "transit": "ecmp"}),
    ({"family": "hyperx", "sides": "3x3x3"}, {"balance": "ecmp", "transit": "ecmp"}),
]


@pytest.mark.parametrize(("topology", "routing"), DRAWN)
def test_packets_go_over_intermediates_marked_and_shared(
    topology: dict[str, object],
    routing: dict[str, str],
    ns3_program: Path,
    flows_program: Path,
    tmp_path: Path,
) -> None:
    """In ns-3 every flow draws, in SimGrid every pair of hosts: the fullest link sets the pace."""
    build = made(topology=topology, routing=routing, hosts_per_node=4)
    fabric = RatedLinks.of(build)
    ends, count = fabric.names, len(fabric.names)
    there = (np.arange(count) + count // 8 * 4) % count
    flows = [(one, ends[n]) for one, n in zip(ends, there.tolist(), strict=True)]
    told = throughput(build, "tornado", hosts=4)
    assert told.as_emitted is not None
    export("ns3", build, tmp_path)
    write([flow for flow in flows for _ in range(100)], 1472, tmp_path)
    word, seconds, *rest = run(ns3_program, folder=tmp_path).split()
    assert [word, *rest[2:]] == ["seconds", "lost", "0"]
    share = 100 * 1502 * 8 / (float(seconds) * GBIT_S * 1e9)
    assert 0.7 * told.as_emitted.share < share < 1.05 * told.as_emitted.share
    assert share > 1.3 * told.minimal.share
    export("simgrid", build, tmp_path)
    arcs = HostPairPaths.of(fabric).arcs[np.arange(count), there]
    fullest = np.bincount(arcs[arcs >= 0]).max()
    assert units(flows_program, flows, tmp_path) == pytest.approx(fullest, rel=1e-6)
