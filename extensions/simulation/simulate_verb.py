"""`polarfab simulate`: latency over load, packet by packet through the tables of a build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from extensions.simulation.flit_router import USUAL_ROUTER
from inventory.problems import InputError, at_key
from polarfab.output.plane_output import merged_reports, of_each_plane
from polarfab.output.verb_output import (
    counted,
    file_form,
    json_option,
    print_json,
    print_table,
    progress,
    say,
    warn,
    write_file,
)
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from extensions.simulation.collective_completion import CompletionTime
    from extensions.simulation.latency_curve import LatencyCurve
    from extensions.simulation.load_point import LoadPoint
    from extensions.simulation.packet_trace import TraceTimes
    from polarfab.fabric import Fabric

Failures = tuple[tuple[str, int], ...]
COLUMNS = ("offered", "accepted", "mean", "median", "p99", "worst", "hops", "links", "buffers")
BY_TABLE = "-table"
BESIDE_TABLES = ("shortest", "ugal", "valiant", "ugal-pf")
INCIDENTS = 2
"""Where columns come that not all tables have: narrow terminals show the first ones."""


def _failures(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> Failures:
    """What goes down, and from which cycle on.

    Raises:
        InputError: a word has no cycle.
    """
    parts = [word.rpartition("@") for word in words]
    for word, (_what, sign, cycle) in zip(words, parts, strict=True):
        if not (sign and cycle.isascii() and cycle.isdigit()):
            raise InputError.of("A-B, NODE or GROUP, and @CYCLE", word, key="--fail")
    return tuple((what, int(cycle)) for what, _sign, cycle in parts)


@click.command("simulate")
@click.argument(
    "folders", metavar="BUILD…", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@shared("--pattern", "those of throughput, or a file of rates between switches; else uniform")
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
    "words",
    metavar="L,…",
    default="",
    show_default=False,
    help="Offered loads.  [default: .1,.2,…,1]",
)
@shared("--hosts-per-node")
@click.option(
    "--routing",
    type=click.Choice(
        ["minimal", "emitted", "adaptive"]
        + [each + end for end in ("", BY_TABLE) for each in BESIDE_TABLES]
    ),
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
@shared("--fail", "from a cycle on, as in 3-8@2000", "failures", callback=_failures)
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
    words: str,
    hosts_per_node: int | None,
    routing: tuple[str, ...],
    failures: Failures,
    seed: int,
    output: Path | None,
    scheduler: str,
    as_json: bool,
    **switches: Any,
) -> None:
    """Simulate packets through the emitted tables: latency and accepted load over offered load.

    Input-queued switches with virtual channels and credits, as in BookSim, whose defaults of the
    papers these are: packets of 4 flits, any of 4 channels, 128 flits a port. Latencies are in
    cycles, a flit over a link; loads are parts of what the hosts' links carry. Several builds, and
    several --routing, are measured one after the other, and plotted together. Exit code 1: a
    deadlock.

    \b
        polarfab simulate build --pattern tornado --load 0.05,0.1,0.15
        polarfab simulate build --load 0.5 --fail 3-8@2000
        polarfab simulate polarfly slimfly --routing minimal -o latency.svg
        polarfab simulate build --collective ring-allreduce --size 1048576
    """
    from compilers.evaluation.traffic import PATTERNS
    from compilers.proof.explanation import find_failures
    from polarfab.fabric import Fabric

    _require_one({"--pattern": pattern, "--collective": collective, "--trace": trace})
    if switches["metres"] and switches["link"] != 1:
        raise InputError.of("links of one length or of the cable plan", "both", key="--metres")
    switches["metres"] = switches["metres"] or 0.0
    hosts = hosts_per_node or 0
    pattern = pattern or "uniform"
    demand = Path(pattern) if pattern not in PATTERNS and Path(pattern).is_file() else None
    loads = _loads(words)
    form = file_form(output, "svg", "png") if output else ""
    fabrics = [Fabric.load(folder) for folder in folders]
    for fabric in fabrics:
        with at_key("fail"):
            for word, _ in failures:
                find_failures(fabric.builds[0], word)
    runs = [
        (fabric, {**switches, "routing": one}) for fabric in fabrics for one in routing or (None,)
    ]
    if collective or trace:
        several = switches["runs"] > 1
        options = {
            "--load": words, "-o": output, "--scheduler": scheduler, "--runs": several,
        }  # fmt: skip
        _require_none("--collective" if collective else "--trace", options)
        sizes = (trace, hosts) if trace else (collective, size, hosts)
        _to_the_end(runs, (*sizes, seed, failures), as_json)
        return
    from extensions.simulation import simulate

    measured = list[MeasuredBuild]()
    for fabric, settings in runs:
        with progress("simulating") as bar:
            arguments = pattern, loads, hosts, seed, failures, bar, scheduler, demand
            meant = _meant(settings)
            curves = of_each_plane(fabric, lambda plane: simulate(plane, *arguments, **meant))  # noqa: B023
        measured.append(MeasuredBuild(fabric, settings["routing"], hosts, pattern, tuple(curves)))
    if output:
        from compilers.drawing.plots import plot
        from extensions.simulation.latency_curve import latencies

        title = measured[0].title if len(measured) == 1 else pattern
        write_file(output, plot(latencies(_named(measured), title), form))
        say(f"plotted in {output}")
    _report(measured, switches["scheme"], switches["warmup"], as_json)


def _require_one(traffic: Mapping[str, object]) -> None:
    """Refuse options that both name what is sent."""
    named = [name for name, value in traffic.items() if value]
    if len(named) > 1:
        raise InputError.of("a pattern, a collective or a trace", " and ".join(named), key=named[1])


def _require_none(what: str, options: Mapping[str, object]) -> None:
    """Refuse options that a collective or a trace does not have."""
    if named := [name for name, value in options.items() if value]:
        raise InputError.of(f"{what} without {', '.join(options)}", " and ".join(named))


def _report(measured: Sequence[MeasuredBuild], scheme: str, warmup: int, as_json: bool) -> None:
    """Print the curves; a deadlock ends with exit code 1."""
    if as_json:
        reports = [build.report() for build in measured]
        print_json(reports[0] if len(reports) == 1 else {"simulated": reports})
    else:
        for fabric in measured:
            for build, curve in zip(fabric.fabric.builds, fabric.curves, strict=True):
                _print(build, curve, fabric.title, scheme, warmup)
    if any(curve.deadlock for fabric in measured for curve in fabric.curves):
        raise SystemExit(1)


def _meant(settings: dict[str, Any]) -> dict[str, Any]:
    """The same for the library: `ugal-table` is ugal by paths of the tables."""
    routing, by_table, _ = (settings["routing"] or "").partition(BY_TABLE)
    return {**settings, "routing": routing or None, "paths": "table" if by_table else "shortest"}


@dataclass(frozen=True, slots=True)
class MeasuredBuild:
    """The curves of a fabric, one for each plane."""

    fabric: Fabric
    """The fabric that was simulated."""
    routing: str | None
    """How packets were routed; None: by the tables."""
    hosts: int
    """Hosts at each switch; 0: as built."""
    pattern: str
    """The traffic pattern."""
    curves: tuple[LatencyCurve, ...]
    """The curve of each plane."""

    @property
    def hosts_per_node(self) -> int:
        """Hosts at each switch, as they were measured."""
        return self.hosts or max(1, self.fabric.builds[0].wiring.host_port.shape[1])

    @property
    def title(self) -> str:
        """Of its table and its plot."""
        topology = self.fabric.builds[0].topology.title()
        router = self.curves[0].router
        words = {"routing": self.routing, "router": router and router.text()}
        settings = "".join(f", {name} {value}" for name, value in words.items() if value)
        hosts = counted(self.hosts_per_node, "host")
        return f"{topology}, {hosts} per node, {self.pattern}{settings}"

    def report(self) -> dict[str, Any]:
        """For JSON."""
        names = [build.name for build in self.fabric.builds]
        routing = {"routing": self.routing} if self.routing else {}
        more = {"pattern": self.pattern, "hosts_per_node": self.hosts_per_node, **routing}
        reports = [
            {"name": name, **more, **curve.report()}
            for name, curve in zip(names, self.curves, strict=True)
        ]
        return merged_reports(names, reports, {"name": self.fabric.name})


def _named(measured: Sequence[MeasuredBuild]) -> list[tuple[str, LatencyCurve]]:
    """The curves of first planes, by names that tell them apart."""
    fabrics = {id(build.fabric): build.fabric for build in measured}.values()
    alike = len({fabric.builds[0].name for fabric in fabrics}) < len(fabrics)
    named = []
    for build in measured:
        name = str(build.fabric.folder) if alike else build.fabric.builds[0].name
        named.append((f"{name}, {build.routing}" if build.routing else name, build.curves[0]))
    return named


def _to_the_end(
    runs: Sequence[tuple[Fabric, dict[str, Any]]], arguments: tuple[Any, ...], as_json: bool
) -> None:
    """Simulate collectives, or the packets of a file, until all have come.

    Args:
        runs: each fabric with its settings.
        arguments: of `completion_time` or `trace_times`, after the fabric.
        as_json: whether to print JSON.
    """
    from extensions.simulation import completion_time, trace_times

    simulated = trace_times if isinstance(arguments[0], Path) else completion_time
    what = str(arguments[0])
    reports, ended = list[dict[str, Any]](), True
    for fabric, settings in runs:
        builds, routing = fabric.builds, settings["routing"]
        meant = _meant(settings)
        times = of_each_plane(fabric, lambda plane: simulated(plane, *arguments, **meant))  # noqa: B023
        more = {"routing": routing} if routing else {}
        rows = [{"name": b.name, **more, **asdict(e)} for b, e in zip(builds, times, strict=True)]
        reports.append(merged_reports([b.name for b in builds], rows, {"name": fabric.name}))
        if not as_json:
            for build, time in zip(builds, times, strict=True):
                _print_times(build, time, what, f", routing {routing}" if routing else "")
        ended &= all(time.cycles is not None for time in times)
    if as_json:
        print_json(reports[0] if len(reports) == 1 else {"simulated": reports})
    if not ended:
        raise SystemExit(1)


def _print_times(build: Build, time: CompletionTime | TraceTimes, what: str, routing: str) -> None:
    if time.cycles is None:
        warn(f"{build.name}: {what} does not end: {time.lost:,} packets are lost")
        _warn_deadlock(build, time.deadlock)
    else:
        print(f"{build.name}: {what} {time.text(routing)}")


def _warn_deadlock(build: Build, switches: Iterable[int]) -> None:
    path = " → ".join(build.wiring.names[switch] for switch in switches)
    if path:
        warn(f"deadlock: full buffers wait for each other along {path}")


def _loads(words: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in words.split(",") if word)
    except ValueError as error:
        required = "loads with commas between them, such as 0.1,0.2"
        raise InputError.of(required, words, key="--load") from error


def _print(build: Build, curve: LatencyCurve, title: str, scheme: str, warmup: int) -> None:
    columns, rows = [*COLUMNS], [_row(point) for point in curve.points]
    for name, values in _incidents(curve.points).items():
        columns.insert(INCIDENTS, name)
        for row, value in zip(rows, values, strict=True):
            row.insert(INCIDENTS, value)
    print_table(f"{build.name}: {title}; latencies in cycles", columns, rows)
    if curve.saturation is None:
        click.echo("no load was sustained")
    else:
        click.echo(f"sustained up to a load of {curve.saturation:g}")
    late = [point for point in curve.points if point.sustained and point.settled > warmup]
    if late:
        loads = ", ".join(f"{point.offered:g}" for point in late)
        click.echo(
            f"settled after the warm-up only, at {loads}: --warmup {max(p.settled for p in late)}"
        )
    _warn_deadlock(build, curve.deadlock)
    if scheme == "single":
        valley = f"--scheme valley needs {curve.channels}, and has no deadlock"
        click.echo(f"packets take any channel; {valley}")


def _incidents(points: Sequence[LoadPoint]) -> dict[str, list[object]]:
    """Columns for loads at which packets were lost, or that were not sustained, if there are."""
    columns: dict[str, list[object]] = {
        "lost": [p.lost for p in points],
        "state": [_state(p) for p in points],
    }
    return {name: values for name, values in columns.items() if any(values)}


def _state(point: LoadPoint) -> str:
    """Why a load was not sustained, as far as that is known; packets that are lost do not come."""
    if point.sustained or point.deadlock:
        return "deadlock" if point.deadlock else ""
    if not point.generated:
        return "no packets"
    return "losses" if point.lost else "saturated"


def _row(point: LoadPoint) -> list[object]:
    mean = None if point.mean_latency is None else f"{point.mean_latency:.1f}"
    if point.latency_error is not None:
        mean = f"{mean} ± {point.latency_error:.1f}"
    latencies = (mean, point.median_latency, point.p99_latency, point.worst_latency)
    hops = None if point.mean_hops is None else round(point.mean_hops, 2)
    uses = (f"{use:.0%}" for use in (point.link_use, point.buffer_use))
    accepted = f"{point.accepted:.3f}"
    if point.accepted_error is not None:
        accepted += f" ± {point.accepted_error:.3f}"
    return [f"{point.offered:g}", accepted, *latencies, hops, *uses]
