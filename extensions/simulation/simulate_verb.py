"""`polarfab simulate`: latency over load, packet by packet through the tables of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from extensions.simulation.flit_router import USUAL_ROUTER
from extensions.simulation.simulation_output import (
    CompletedBuild,
    MeasuredBuild,
    named_curves,
    report_completion,
    report_curves,
)
from inventory.problems import InputError, at_key
from polarfab.output.plane_output import of_each_plane
from polarfab.output.verb_output import file_form, json_option, progress, say, write_file
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from extensions.simulation.collective_completion import CompletionTime
    from extensions.simulation.packet_trace import TraceTimes
    from polarfab.fabric import Fabric

Failures = tuple[tuple[str, int], ...]
"""What goes down: each node or link by its name, and the cycle before which it does."""
TABLE_ROUTINGS = ("minimal", "emitted", "adaptive")
"""Routings by the tables of the build with its balance."""
SHORTEST_PATH_ROUTINGS = ("shortest", "ugal", "valiant", "ugal-pf")
"""Routings without a balance, on any shortest path."""
MINIMAL_TABLE_SUFFIX = "-table"
"""Behind one of `SHORTEST_PATH_ROUTINGS`: the same, on the paths of the minimal table only."""
ROUTINGS = (
    *TABLE_ROUTINGS,
    *SHORTEST_PATH_ROUTINGS,
    *(name + MINIMAL_TABLE_SUFFIX for name in SHORTEST_PATH_ROUTINGS),
)
"""The values of `--routing`."""


def _read_failures(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> Failures:
    """Read the option --fail: what goes down, and from which cycle on, as in 3-8@2000.

    Raises:
        InputError: a word has no cycle.
    """
    failures = []
    for word in words:
        name, at_sign, cycle = word.rpartition("@")
        if not (at_sign and cycle.isascii() and cycle.isdigit()):
            raise InputError.of("A-B, NODE or GROUP, and @CYCLE", word, key="--fail")
        failures.append((name, int(cycle)))
    return tuple(failures)


@click.command("simulate")
@click.argument(
    "folders", metavar="BUILD…", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@shared(
    "--pattern", meaning="those of throughput, or a file of rates between switches; else uniform"
)
@click.option(
    "--collective",
    metavar="NAME",
    help="Time a collective over all hosts: ring-allreduce, tree-allreduce, all-to-all, sweep3d.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Send the packets of a file until all have arrived: cycle, source, destination, flits.",
)
@click.option(
    "--size",
    type=click.IntRange(1),
    default=1 << 16,
    help="Bytes of a collective's vector, or of each of its messages.",
)
@click.option(
    "--load",
    "loads_text",
    metavar="L,…",
    default="",
    show_default=False,
    help="Offered loads.  [default: .1,.2,…,1]",
)
@shared("--hosts-per-node", meaning="by default as in the build, or 1 if it has no hosts")
@click.option(
    "--routing",
    type=click.Choice(ROUTINGS),
    metavar="NAME",
    multiple=True,
    help="How packets choose paths: minimal, emitted or adaptive (UGAL_PF) by the build's tables; "
    "shortest, ugal, valiant or ugal-pf by any shortest path; shortest-table and so on by those of "
    "the tables; again for more.  [default: as built]",
)
@click.option(
    "--scheme",
    type=click.Choice(["single", "hop", "valley"]),
    default="single",
    help="Virtual channels: any free one, as in the papers, or those that verify proves.",
)
@click.option(
    "--level",
    type=click.Choice(["packet", "flit"]),
    default="packet",
    help="What crosses a switch as one; flits are slower, and nearer to BookSim.",
)
@click.option(
    "--router",
    metavar="KEY=N,…",
    default="",
    show_default=False,
    help="The router that flits go through: cycles of routing, crossbar and credit, the crossbar's "
    f"speedup, iterations of islip.  [default: {USUAL_ROUTER.text(whole=True)}]",
)
@click.option("--vcs", type=click.IntRange(1, 16), default=4, help="Virtual channels of a port.")
@click.option("--packet", type=click.IntRange(1, 64), default=4, help="Flits of a packet.")
@click.option(
    "--buffer",
    type=click.IntRange(1, 1 << 16),
    default=128,
    help="Flits that a port buffers, for all its virtual channels.",
)
@click.option(
    "--link",
    type=click.IntRange(1, 10_000),
    default=1,
    help="Cycles that a link between switches takes.",
)
@click.option(
    "--metres",
    type=click.FloatRange(0, min_open=True),
    help="Metres of cable that a flit passes in a cycle (.256 at 400 Gbit/s); links are as long as "
    "in the cable plan.",
)
@click.option(
    "--flows",
    type=click.IntRange(0, 1 << 16),
    default=0,
    help="Flows between two hosts, each on one path by a hash; 0: each packet by itself.",
)
@click.option(
    "--warmup", type=click.IntRange(0, 10**6), default=1_500, help="Cycles before the measurement."
)
@shared(
    "--fail",
    meaning="from a cycle on, which has to be named, as in 3-8@2000",
    parameter="failures",
    callback=_read_failures,
)
@shared("--seed")
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=1,
    help="Runs of each load, with the next seeds; figures get 95 % intervals.",
)
@output_option("a plot, FILE.svg or FILE.png")
@shared("--scheduler")
@json_option
def command(
    folders: tuple[Path, ...],
    pattern: str | None,
    collective: str | None,
    trace: Path | None,
    size: int,
    loads_text: str,
    hosts_per_node: int | None,
    routing: tuple[str, ...],
    failures: Failures,
    seed: int,
    output: Path | None,
    scheduler: str,
    as_json: bool,
    # The fields of `SimulationSettings` scheme, level, router, vcs, packet, buffer, link, metres,
    # flows, warmup and runs.
    **settings: Any,
) -> None:
    """Simulate packets through the emitted tables: latency and accepted load over offered load.

    Switches have input queues with virtual channels and credits, as in BookSim. The defaults are
    those of the papers' BookSim runs: packets of 4 flits, any of 4 channels, 128 flits a port.
    Latencies are in cycles; in a cycle a flit goes over a link. Loads are fractions of what the
    hosts' links carry. Several builds, and several --routing, are measured one after the other, and
    plotted together. Exit code 1: a deadlock.

    \b
        polarfab simulate build --pattern tornado --load 0.05,0.1,0.15
        polarfab simulate build --load 0.5 --fail 3-8@2000
        polarfab simulate polarfly slimfly --routing minimal -o latency.svg
        polarfab simulate build --collective ring-allreduce --size 1048576
    """
    _require_at_most_one({"--pattern": pattern, "--collective": collective, "--trace": trace})
    if settings["metres"] and settings["link"] != 1:
        raise InputError.of("links of one length or of the cable plan", "both", key="--metres")
    settings["metres"] = settings["metres"] or 0.0
    hosts = hosts_per_node or 0
    offered = OfferedTraffic.of(
        pattern or "uniform", _read_loads(loads_text), hosts, seed, failures
    )
    form = file_form(output, "svg", "png") if output else ""
    fabrics = _fabrics_with(folders, failures)
    runs = [(fabric, name) for fabric in fabrics for name in routing or (None,)]
    if collective or trace:
        _require_no_options(
            "--collective" if collective else "--trace",
            {
                "--load": loads_text,
                "-o": output,
                "--scheduler": scheduler,
                "--runs": settings["runs"] > 1,
            },
        )
        workload = Workload(
            collective, trace=trace, size=size, hosts=hosts, seed=seed, failures=failures
        )
        report_completion(_completed(runs, workload, settings), as_json)
        return
    measured = [
        offered.measure(fabric, name, scheduler, _library_settings(settings, name))
        for fabric, name in runs
    ]
    if output:
        _plot(measured, offered.pattern, output, form)
    report_curves(measured, settings["scheme"], settings["warmup"], as_json)


def _fabrics_with(folders: Sequence[Path], failures: Failures) -> list[Fabric]:
    """Load the fabrics of some builds, and check that each has what goes down.

    Raises:
        InputError: there is no such build, or one lacks such a link or node.
    """
    from compilers.proof.name_lookup import find_failures
    from polarfab.fabric import Fabric

    fabrics = [Fabric.load(folder) for folder in folders]
    for fabric in fabrics:
        with at_key("fail"):
            for word, _ in failures:
                find_failures(fabric.builds[0], word)
    return fabrics


def _plot(measured: Sequence[MeasuredBuild], pattern: str, output: Path, form: str) -> None:
    """Plot the curves of all builds in a file of a form, `svg` or `png`."""
    from compilers.drawing.plots import plot
    from extensions.simulation.latency_curve import latency_panels

    title = measured[0].title if len(measured) == 1 else pattern
    write_file(output, plot(latency_panels(named_curves(measured), title), form))
    say(f"plotted in {output}")


def _require_at_most_one(traffic: Mapping[str, object]) -> None:
    """Refuse more than one of the options that name what is sent.

    Args:
        traffic: the options with their values, which are None if they are not given.

    Raises:
        InputError: several are given.
    """
    given = [name for name, value in traffic.items() if value]
    if len(given) > 1:
        raise InputError.of("a pattern, a collective or a trace", " and ".join(given), key=given[1])


def _require_no_options(workload_option: str, options: Mapping[str, object]) -> None:
    """Refuse options that make no sense with a collective or a trace.

    Args:
        workload_option: the option that asks for it, `--collective` or `--trace`.
        options: the other options with their values, which are false if they are not given.

    Raises:
        InputError: one of them is given.
    """
    if given := [name for name, value in options.items() if value]:
        required = f"{workload_option} without {', '.join(options)}"
        raise InputError.of(required, " and ".join(given))


@dataclass(frozen=True, slots=True)
class OfferedTraffic:
    """Traffic that is offered at several loads, and measured at each."""

    pattern: str
    """The name of a pattern, or of a file of rates between switches."""
    demand: Path | None
    """That file; None for a pattern."""
    loads: tuple[float, ...]
    """The offered loads; () for the usual ones."""
    hosts: int
    """Hosts at each switch; 0: as built."""
    seed: int
    """The seed of the traffic and of the paths that packets take."""
    failures: Failures
    """What goes down, and from which cycle on."""

    @classmethod
    def of(
        cls, pattern: str, loads: tuple[float, ...], hosts: int, seed: int, failures: Failures
    ) -> OfferedTraffic:
        """Traffic of a pattern, or of a file where there is one of that name."""
        from compilers.evaluation.traffic import PATTERNS

        is_file = pattern not in PATTERNS and Path(pattern).is_file()
        return cls(
            pattern,
            demand=Path(pattern) if is_file else None,
            loads=loads,
            hosts=hosts,
            seed=seed,
            failures=failures,
        )

    def measure(
        self, fabric: Fabric, routing: str | None, scheduler: str, settings: Mapping[str, Any]
    ) -> MeasuredBuild:
        """Simulate it in a fabric.

        Args:
            fabric: the fabric.
            routing: the value of `--routing`; None: as built.
            scheduler: where the points are computed.
            settings: fields of `SimulationSettings`.
        """
        from extensions.simulation import simulate

        with progress("simulating") as bar:
            curves = of_each_plane(
                fabric,
                lambda plane: simulate(
                    plane,
                    pattern=self.pattern,
                    loads=self.loads,
                    hosts=self.hosts,
                    seed=self.seed,
                    fail=self.failures,
                    progress=bar,
                    scheduler=scheduler,
                    demand=self.demand,
                    **settings,
                ),
            )
        return MeasuredBuild(fabric, routing, self.hosts, self.pattern, tuple(curves))


@dataclass(frozen=True, slots=True)
class Workload:
    """What is simulated until all packets have arrived: a collective operation, or a trace.

    Either `collective` or `trace` is set.
    """

    collective: str | None
    """The name of the collective."""
    trace: Path | None
    """The file of the packets of the trace."""
    size: int
    """Bytes of a collective's vector, or of each of its messages."""
    hosts: int
    """Hosts at each switch; 0: as built."""
    seed: int
    """The seed of the paths that packets take."""
    failures: Failures
    """What goes down, and from which cycle on."""

    def time(self, plane: Fabric, settings: Mapping[str, Any]) -> CompletionTime | TraceTimes:
        """Simulate it in a plane, with these fields of `SimulationSettings`."""
        from extensions.simulation import completion_time, trace_times

        all_settings = {
            "hosts": self.hosts,
            "seed": self.seed,
            "fail": self.failures,
            **settings,
        }
        if self.collective:
            return completion_time(plane, self.collective, self.size, **all_settings)
        return trace_times(plane, str(self.trace), **all_settings)


def _library_settings(settings: Mapping[str, Any], routing: str | None) -> dict[str, Any]:
    """The settings for the library, with the routing and the paths that a value of --routing means.

    To the library `ugal-table` is the routing `ugal` on the paths `table`.

    Args:
        settings: the other fields of `SimulationSettings`.
        routing: a value of `ROUTINGS`; None: as built.
    """
    if routing is None:
        return {**settings, "routing": None, "paths": "shortest"}
    paths = "table" if routing.endswith(MINIMAL_TABLE_SUFFIX) else "shortest"
    return {**settings, "routing": routing.removesuffix(MINIMAL_TABLE_SUFFIX), "paths": paths}


def _completed(
    runs: Sequence[tuple[Fabric, str | None]], workload: Workload, settings: Mapping[str, Any]
) -> Iterator[CompletedBuild]:
    """Simulate a workload in each fabric with its routing.

    Args:
        runs: the fabrics, each with a value of `ROUTINGS`; None: as built.
        workload: the collective or the trace.
        settings: the other fields of `SimulationSettings`.
    """
    traffic = workload.collective or str(workload.trace)
    for fabric, routing in runs:
        time = partial(workload.time, settings=_library_settings(settings, routing))
        yield CompletedBuild(fabric, routing, traffic, tuple(of_each_plane(fabric, time)))


def _read_loads(text: str) -> tuple[float, ...]:
    """Read the option --load: offered loads such as 0.1,0.2.

    Raises:
        InputError: it has a word that is no number.
    """
    try:
        return tuple(float(load) for load in text.split(",") if load)
    except ValueError as error:
        required = "loads with commas between them, such as 0.1,0.2"
        raise InputError.of(required, text, key="--load") from error
