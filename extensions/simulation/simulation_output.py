"""What `polarfab simulate` prints: curves of latency over load, and times of completion.

The verb makes a `MeasuredBuild` for each fabric and routing, or a `CompletedBuild` for a collective
or a trace. `report_curves` and `report_completion` print them, as tables or as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from polarfab.output.plane_output import merged_reports
from polarfab.output.verb_output import counted, print_json, print_table, warn

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from extensions.simulation.collective_completion import CompletionTime
    from extensions.simulation.latency_curve import LatencyCurve
    from extensions.simulation.load_point import LoadPoint
    from extensions.simulation.packet_trace import TraceTimes
    from polarfab.fabric import Fabric

COLUMNS = ("offered", "accepted", "mean", "median", "p99", "worst", "hops", "links", "buffers")
"""The columns of the table of a curve; latencies are in cycles."""
INCIDENT_COLUMN = 2
"""The index of the columns of `_incidents`: so far left that narrow terminals show them."""


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
        """The heading of its table and its plot: topology, hosts, pattern and settings."""
        topology = self.fabric.builds[0].topology.title()
        router = self.curves[0].router
        unusual = {"routing": self.routing, "router": router and router.text()}
        settings = "".join(f", {name} {value}" for name, value in unusual.items() if value)
        hosts = counted(self.hosts_per_node, "host")
        return f"{topology}, {hosts} per node, {self.pattern}{settings}"

    def report(self) -> dict[str, Any]:
        """The curves for JSON, of several planes as `merged_reports` joins them.

        The keys of a plane are `name`, `pattern`, `hosts_per_node`, `routing` if one was chosen,
        and those of `LatencyCurve.report`.
        """
        names = [build.name for build in self.fabric.builds]
        routing = {"routing": self.routing} if self.routing else {}
        what_was_simulated = {
            "pattern": self.pattern,
            "hosts_per_node": self.hosts_per_node,
            **routing,
        }
        reports = [
            {"name": name, **what_was_simulated, **curve.report()}
            for name, curve in zip(names, self.curves, strict=True)
        ]
        return merged_reports(names, reports, {"name": self.fabric.name})


@dataclass(frozen=True, slots=True)
class CompletedBuild:
    """When all packets of a collective or of a trace had arrived, in each plane of a fabric."""

    fabric: Fabric
    """The fabric that was simulated."""
    routing: str | None
    """How packets were routed; None: by the tables."""
    traffic: str
    """The name of the collective, or the file of the trace."""
    times: tuple[CompletionTime | TraceTimes, ...]
    """The time of each plane."""

    def report(self) -> dict[str, Any]:
        """The times for JSON, of several planes as `merged_reports` joins them.

        The keys of a plane are `name`, `routing` if one was chosen, and the fields of its time.
        """
        names = [build.name for build in self.fabric.builds]
        routing = {"routing": self.routing} if self.routing else {}
        reports = [
            {"name": name, **routing, **asdict(time)}
            for name, time in zip(names, self.times, strict=True)
        ]
        return merged_reports(names, reports, {"name": self.fabric.name})


def report_curves(
    measured: Sequence[MeasuredBuild], scheme: str, warmup: int, as_json: bool
) -> None:
    """Print the curves; a deadlock ends with exit code 1.

    Args:
        measured: the curves of all fabrics and routings.
        scheme: the scheme of the virtual channels.
        warmup: cycles before the measurement.
        as_json: whether to print JSON.
    """
    if as_json:
        _print_reports([measured_build.report() for measured_build in measured])
    else:
        for measured_build in measured:
            builds = measured_build.fabric.builds
            for build, curve in zip(builds, measured_build.curves, strict=True):
                _print_curve(build, curve, measured_build.title, scheme, warmup)
    if any(curve.deadlock for measured_build in measured for curve in measured_build.curves):
        raise SystemExit(1)


def report_completion(completed: Iterable[CompletedBuild], as_json: bool) -> None:
    """Print each fabric's times as soon as it is simulated; exit code 1 if packets never arrive."""
    reports, all_arrived = list[dict[str, Any]](), True
    for completed_build in completed:
        reports.append(completed_build.report())
        if not as_json:
            fabric, times = completed_build.fabric, completed_build.times
            for build, time in zip(fabric.builds, times, strict=True):
                _print_time(build, time, completed_build)
        all_arrived &= all(time.cycles is not None for time in completed_build.times)
    if as_json:
        _print_reports(reports)
    if not all_arrived:
        raise SystemExit(1)


def named_curves(measured: Sequence[MeasuredBuild]) -> list[tuple[str, LatencyCurve]]:
    """The curves of first planes, by names that distinguish them.

    A curve is named after its build, or after the folder if two builds have the same name.
    """
    fabrics = {id(curves.fabric): curves.fabric for curves in measured}.values()
    has_equal_names = len({fabric.builds[0].name for fabric in fabrics}) < len(fabrics)
    named = []
    for curves in measured:
        name = str(curves.fabric.folder) if has_equal_names else curves.fabric.builds[0].name
        named.append((f"{name}, {curves.routing}" if curves.routing else name, curves.curves[0]))
    return named


def _print_reports(reports: Sequence[dict[str, Any]]) -> None:
    """Print JSON: one report alone, several as a list."""
    print_json(reports[0] if len(reports) == 1 else {"simulated": reports})


def _print_time(build: Build, time: CompletionTime | TraceTimes, completed: CompletedBuild) -> None:
    """Print when all packets of a plane had arrived, or warn that some never do."""
    if time.cycles is None:
        warn(f"{build.name}: {completed.traffic} does not end: {time.lost:,} packets are lost")
        _warn_deadlock(build, time.deadlock)
    else:
        routing = f", routing {completed.routing}" if completed.routing else ""
        print(f"{build.name}: {completed.traffic} {time.text(routing)}")


def _warn_deadlock(build: Build, switches: Iterable[int]) -> None:
    """Warn of a deadlock along these switches, if there are any."""
    path = " → ".join(build.wiring.names[switch] for switch in switches)
    if path:
        warn(f"deadlock: full buffers wait for each other along {path}")


def _print_curve(build: Build, curve: LatencyCurve, title: str, scheme: str, warmup: int) -> None:
    """Print the curve of a plane as a table, and what is remarkable in it."""
    columns, rows = [*COLUMNS], [_row(point) for point in curve.points]
    for name, values in _incidents(curve.points).items():
        columns.insert(INCIDENT_COLUMN, name)
        for row, value in zip(rows, values, strict=True):
            row.insert(INCIDENT_COLUMN, value)
    print_table(f"{build.name}: {title}; latencies in cycles", columns, rows)
    if curve.saturation is None:
        click.echo("no load was sustained")
    else:
        click.echo(f"sustained up to a load of {curve.saturation:g}")
    late = [point for point in curve.points if point.sustained and point.settled > warmup]
    if late:
        loads = ", ".join(f"{point.offered:g}" for point in late)
        enough = max(point.settled for point in late)
        click.echo(f"settled after the warm-up only, at {loads}: --warmup {enough}")
    _warn_deadlock(build, curve.deadlock)
    if scheme == "single":
        # Packets for a dead switch circle on the links that protect against its failure.
        condition = " while all switches work" if build.forwarding.protect != "none" else ""
        click.echo(
            "packets take any channel; "
            f"--scheme valley needs {curve.valley_channels}, and has no deadlock{condition}"
        )


def _incidents(points: Sequence[LoadPoint]) -> dict[str, list[object]]:
    """Columns about losses and loads that were not sustained, if there are any."""
    columns: dict[str, list[object]] = {
        "lost": [point.lost for point in points],
        "state": [_state(point) for point in points],
    }
    return {name: values for name, values in columns.items() if any(values)}


def _state(point: LoadPoint) -> str:
    """Why a load was not sustained, as far as that is known; "" if it was.

    Where packets were lost, the load is not called saturated: the losses alone keep it from being
    sustained.
    """
    if point.deadlock:
        return "deadlock"
    if point.sustained:
        return ""
    if not point.generated:
        return "no packets"
    return "losses" if point.lost else "saturated"


def _row(point: LoadPoint) -> list[object]:
    """The row of a load, with the `COLUMNS`."""
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
