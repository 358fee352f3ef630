"""`polarfab bench`: our speed and that of peers, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import counted, json_option, print_json, print_table, say
from polarfab.shared_options import Words, shared

if TYPE_CHECKING:
    from extensions.bench.peer_timings import Timing

USUAL_LARGEST = 4_000
LOAD = 0.5
"""Of uniform traffic, at which simulators are timed."""
balance_option = click.option(
    "--balance",
    metavar="NAME",
    default="",
    show_default=False,
    help="With this balance and protect: link.  [default: minimal paths, unprotected]",
)
RIGS = Path(__file__).parents[2] / "tests" / "bench"
"""The switches and servers that are measured against; only a checkout has them."""


@click.group("bench", cls=Words)
def command() -> None:
    """Measure polarfab and its peers on this machine, in one run.

    Ratios against the peers travel between machines; seconds do not.
    """


@command.command("tables")
@shared("--q", usual=31)
@click.option("--no-peers", is_flag=True, help="Leave out peers: networkx, which is slow.")
@json_option
def tables(q: int, no_peers: bool, as_json: bool) -> None:
    """Minimal routes for all pairs of PolarFly, and the walk through them."""
    from extensions.bench import peer_timings

    _check_order(q)
    timings = list(peer_timings.tables(q, peers=not no_peers))
    _print(as_json, f"PolarFly q={q}", "times ours", timings)


@command.command("scale")
@click.option(
    "--largest",
    metavar="SWITCHES",
    type=click.IntRange(993),
    default=USUAL_LARGEST,
    help="Leave out larger fabrics; there are 993, 3,783, 16,257, 79,506 and 627,570 switches.",
)
@click.option("--no-peers", is_flag=True, help="Leave out peers: scipy, networkx and the like.")
@json_option
def scale(largest: int, no_peers: bool, as_json: bool) -> None:
    """Compile, prove and explain from size to size, each in a process of its own; and peers.

    Seconds are of processors, user and system. Peers find distances only: no tables, no ports, no
    proof. What does not end in time, or in memory, says so. The largest fabrics take minutes, and
    gigabytes: a process ends after 10 seconds, with --largest above 4,000 after 600.
    """
    import sys

    from compilers.memory import available
    from extensions.bench.scale_timings import scale_timings

    ours = sys.executable, "-m", "polarfab"
    found, time_limit = [], 10 if largest <= USUAL_LARGEST else 600
    for timing in scale_timings(ours, largest, not no_peers, time_limit, available()):
        found.append(timing)
        if not as_json:
            say(f"{timing.fabric}: {timing.what}{timing.why and f': {timing.why}'}")
    if as_json:
        print_json([asdict(timing) for timing in found])
        return
    print_table(
        "From size to size",
        ["fabric", "switches", "what", "s", "aim, s", "MB", "times ours", "grows as"],
        [
            (
                timing.fabric,
                timing.switches,
                timing.what,
                timing.why or _digits(timing.seconds),
                timing.budget or "",
                "" if timing.megabytes is None else round(timing.megabytes),
                "" if timing.ratio is None else float(f"{timing.ratio:.2g}"),
                "" if timing.growth is None else f"N^{timing.growth:.1f}",
            )
            for timing in found
        ],
    )


@command.command("simulate")
@shared("--q", usual=7)
@click.option(
    "--booksim",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The program of BookSim 2, compiled with -O3. Timed by the clock: leave the machine idle.",
)
@json_option
def simulate(q: int, booksim: Path | None, as_json: bool) -> None:
    """Flits over links in a second of one core, (q + 1)/2 hosts a switch; and BookSim.

    And SimGrid, where it is installed: a host a switch, a packet to each other one in turn.
    """
    from compilers.tables.folders.build_folder import load as read
    from extensions.bench.simulation_timings import SimulatorSpeed, simgrid_speed, simulator_speeds

    hosts = (q + 1) // 2
    with _compiled(q) as folder:
        build = read(folder)
        found = list(simulator_speeds(build, hosts, LOAD, booksim))
        flows = simgrid_speed(build)
    if flows:
        ratio = flows / found[0].flit_hops
        found.append(SimulatorSpeed("SimGrid, flow by flow", flows, ratio))
    else:
        say("SimGrid is left out: it needs cc and libsimgrid (Debian: libsimgrid-dev gcc)")
    if as_json:
        print_json([asdict(speed) for speed in found])
        return
    print_table(
        f"PolarFly q={q}, {counted(hosts, 'host')} per node, load {LOAD:g}",
        ["what", "million flit hops a second", "times the first"],
        [(s.what, float(f"{s.flit_hops / 1e6:.3g}"), round(s.ratio, 1)) for s in found],
    )


@command.command("controller")
@shared("--q", usual=31)
@shared("--framework", "else both")
@click.option(
    "--repeat", type=click.IntRange(1), default=3, help="Repetitions, of which the best counts."
)
@json_option
def controller(q: int, framework: str | None, repeat: int, as_json: bool) -> None:
    """Program all switches of PolarFly in one Open vSwitch, and by a bare socket server.

    The clock starts when the first switch names itself, not when the server listens: all switches
    try to connect every second, at once. It stops at the last answer: the bare server's to the
    commit of a bundle, the controller's to reading the switch back. What else runs here makes wall
    time longer; processor time is that of the server since it listened.

    Needs root, or user namespaces, and Open vSwitch. The machine's own Open vSwitch is not touched.
    """
    _require_rigs("controller")
    from tests.bench.push_times import pushes

    with _compiled(q) as build:
        frameworks = (framework,) if framework else ("ryu", "os-ken")
        found = list(pushes(build, build.parent, frameworks, repeat, say))
    if as_json:
        print_json([asdict(push) for push in found])
        return
    print_table(
        f"PolarFly q={q}: programming all switches (both: the server and Open vSwitch)",
        [
            *("server", "rows and groups sent", "wall time, s", "wall time / bare"),
            *("processor, s", "processor of both / bare", "memory, MB", "slowest echo, ms"),
        ],
        [
            (
                push.what,
                push.sent,
                round(push.seconds, 3),
                round(push.ratio, 2),
                round(push.processor, 3),
                round(push.work, 2),
                "" if push.megabytes is None else round(push.megabytes),
                "" if push.echo is None else round(push.echo * 1e3),
            )
            for push in found
        ],
    )


@command.command("repair")
@shared("--q", usual=31)
@balance_option
@json_option
def repair(q: int, balance: str, as_json: bool) -> None:
    """Time a dead link in PolarFly, from the port-status message to the last byte queued.

    Over switches that confirm at once: it is the controller alone that is timed, by processor time.
    """
    from compilers.tables.folders.build_folder import load
    from extensions.bench.repair_benchmark import repair_timings

    with _compiled(q, balance) as build:
        timings = repair_timings(load(build))
    _print(as_json, f"PolarFly q={q}: a dead link", "times the tables", timings)


@command.command("receipt")
@shared("--q", usual=31)
@balance_option
@json_option
def receipt(q: int, balance: str, as_json: bool) -> None:
    """Time the proof of a build that a controller receives, and of reading it without one."""
    from extensions.bench.repair_benchmark import receipt_timings

    with _compiled(q, balance) as build:
        timings = receipt_timings(build)
    _print(as_json, f"PolarFly q={q}: a build from elsewhere", "times reading", timings)


@command.command("emulate")
@shared("--q", usual=7)
@json_option
def emulate(q: int, as_json: bool) -> None:
    """Start PolarFly, a host per switch, in Mininet as it comes and by our engines.

    Stock Mininet takes minutes from q=11. Needs root, or user namespaces, Open vSwitch and Mininet.
    """
    from mininet_scenarios.machine.preflight import require

    _require_rigs("emulate")
    from tests.bench.mininet_start import starts

    require("mininet")
    with _compiled(q) as build:
        found = list(starts(build, say))
    if as_json:
        print_json([asdict(start) for start in found])
        return
    print_table(
        f"PolarFly q={q}: starting",
        ["what", "s", "times ours"],
        [(start.what, round(start.seconds, 1), round(start.ratio, 2)) for start in found],
    )


def _digits(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _print(as_json: bool, title: str, ratio: str, timings: list[Timing]) -> None:
    if as_json:
        print_json([asdict(timing) for timing in timings])
        return
    rows = [(t.what, round(t.seconds * 1e3, 2), round(t.ratio, 2)) for t in timings]
    print_table(title, ["what", "ms", ratio], rows)


def _check_order(q: int) -> None:
    from compilers.topology.families import check_topology
    from inventory.problems import InputError

    if problems := check_topology("polarfly", {"q": q}):
        raise InputError(problems)


def _require_rigs(name: str) -> None:
    import os
    import sys

    from inventory.problems import InputError

    if not RIGS.is_dir():
        raise InputError.of(
            key=f"bench {name}",
            required="a checkout of polarfab",
            given="an installed package",
            todo="what it measures against is in the repository's tests/bench;"
            " clone the repository and run it there after `make test`",
        )
    # A library of Ryu's installs a package "tests": ours comes first, here and in what is started.
    checkout = str(RIGS.parent.parent)
    sys.path.insert(0, checkout)
    os.environ["PYTHONPATH"] = os.pathsep.join([checkout, *filter(None, [os.getenv("PYTHONPATH")])])


@contextmanager
def _compiled(q: int, balance: str = "") -> Iterator[Path]:
    """A build of PolarFly in a folder that goes at the end."""
    from tempfile import TemporaryDirectory

    from compilers.pipeline import compile_fabric
    from compilers.spec.fabric_file import load_fabric
    from compilers.tables.folders.build_folder import save

    _check_order(q)
    with TemporaryDirectory(prefix="polarfab-") as folder:
        spec, build = Path(folder, "fabric.yaml"), Path(folder, "build")
        routing = f"routing: {{balance: {balance}, protect: link}}\n" if balance else ""
        spec.write_text(f"name: bench\ntopology: {{family: polarfly, q: {q}}}\n{routing}")
        save(compile_fabric(load_fabric(spec)), build)
        yield build
