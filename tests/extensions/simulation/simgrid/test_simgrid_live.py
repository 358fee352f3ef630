"""SimGrid takes as long over a fabric as `throughput` and the simulation of collectives say.

A unit is the time that a host's link takes for what one host sends to another. A pattern that
saturates at a share s of the hosts' links takes 1/s units.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.collective_completion import COLLECTIVES, FLIT, completion_time
from tests.extensions.simulation.simgrid.platform import platform_files

pytestmark = pytest.mark.live
Q7 = {"family": "polarfly", "q": 7}
STAR = {"family": "polarstar", "q": 3, "supernode": "paley", "degree": 2}
GBIT_S = 400
Flows = Iterable[tuple[str, str]]


def made(**more: object) -> Build:
    return compile_fabric(load_fabric({"name": "lab", "topology": Q7} | more))


def write_platform(build: Build, folder: Path) -> None:
    """Write the files, with links that take no time."""
    for name, text in platform_files(build, latency=0).items():
        (folder / name).write_text(text)


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
    write_platform(build, tmp_path)
    took = tuple(
        units(flows_program, flows("h{}".format, order), tmp_path) for flows in (tornado, uniform)
    )
    assert took == pytest.approx(expected, rel=1e-6)
    told = [throughput(build, name, hosts=1).minimal.share for name in ("tornado", "uniform")]
    assert took == pytest.approx((1 / told[0], (order - 1) / told[1]), rel=1e-6)


@pytest.mark.parametrize(
    ("topology", "routing", "hosts", "tolerance"),
    [
        (Q7, {"balance": "compact-valiant"}, 4, 0.02),
        ({"family": "polarfly", "q": 5}, {"balance": "valiant"}, 6, 0.25),
        ({"family": "polarfly", "q": 5}, {"balance": "spread"}, 6, 0.08),
        ({"family": "fat-tree", "k": 4}, {"balance": "ecmp", "transit": "ecmp"}, 4, 1e-6),
        ({"family": "hyperx", "sides": "3x3x3"}, {"balance": "ecmp", "transit": "ecmp"}, 6, 1e-6),
    ],
)
def test_simgrid_agrees_where_traffic_is_spread(
    topology: dict[str, object],
    routing: dict[str, str],
    hosts: int,
    tolerance: float,
    flows_program: Path,
    tmp_path: Path,
) -> None:
    """Each host sends to all hosts of the switch half way round: hosts² flows for each pair.

    The more paths a pair has, the less evenly so many flows can use them: of the 31 paths of
    `valiant` five have twice as much as the others.
    """
    build = made(topology=topology, routing=routing, hosts_per_node=hosts)
    write_platform(build, tmp_path)
    names = (tmp_path / "hostfile").read_text().split()
    switches = len(names) // hosts
    flows = [
        (names[s * hosts + h], names[(s + switches // 2) % switches * hosts + other])
        for s in range(switches)
        for h in range(hosts)
        for other in range(hosts)
    ]
    took = units(flows_program, flows, tmp_path) / hosts
    told = throughput(build, "tornado", hosts=hosts)
    assert told.as_emitted is not None
    assert took == pytest.approx(1 / told.as_emitted.share, rel=tolerance)
    assert took < 0.7 / told.minimal.share


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
    write_platform(build, tmp_path)
    settings = replace(settings_for(build), buffer=buffer)
    message = 256 * settings.packet * FLIT
    size = round(message / COLLECTIVES[collective](build.topology.graph.order * hosts).vector_share)
    found = completion_time(build, collective, size, hosts, settings)
    words = (collectives_program, "platform.xml", "hostfile", collective, str(message))
    took, messages = run(*words, folder=tmp_path).split()
    assert (found.messages, found.packets) == (int(messages), 256 * int(messages))
    assert found.seconds == pytest.approx(float(took), rel=tolerance)
