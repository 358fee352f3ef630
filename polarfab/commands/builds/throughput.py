"""`polarfab throughput`: computes how much hosts can send, by the tables of a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from polarfab.output.guarantee_output import (
    failures_json,
    guarantee_json,
    link_name,
    print_after_failures,
    print_guarantees,
    print_tradeoff,
    traffic_csv,
)
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
from polarfab.shared_options import failure_kinds, output_option, shared

if TYPE_CHECKING:
    from compilers.evaluation.failure_guarantees import FailureGuarantee
    from compilers.evaluation.guarantee import Guarantee
    from compilers.evaluation.saturation import PatternThroughput, Saturation
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric

OPTIMUM_COLUMNS = ("optimum", "of it")
"""The columns of the most that any routing can carry, and of the part that the build carries."""
NO_VALUE = "–"
"""A cell without a value."""


@click.command("throughput")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@shared("--pattern", meaning="or a CSV file of rates; by default all patterns")
@click.option(
    "--guarantee",
    is_flag=True,
    help="Compute the rate that every host gets under any traffic. -o writes a worst traffic, "
    "which gets only this rate.",
)
@click.option(
    "--failures",
    metavar="KIND",
    multiple=True,
    callback=failure_kinds,
    help="Try every failure of one link, node, module, rack and so on: compute --guarantee with "
    "each of them, too.",
)
@click.option(
    "--cases",
    "sample",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --failures: try so many failures of each kind, drawn by --seed. By default all, or "
    "as many as take a few minutes.",
)
@click.option(
    "--tradeoff",
    is_flag=True,
    help="Compute the rates under uniform and under any traffic for each `minimal_share`.",
)
@shared("--hosts-per-node", meaning="by default as in the build, or 1 if it has no hosts")
@shared("--seed")
@output_option("a plot as FILE.svg or FILE.png; with --guarantee FILE.csv")
@shared("--scheduler")
@json_option
def command(
    folder: Path,
    pattern: str | None,
    guarantee: bool,
    failures: tuple[str, ...],
    sample: int | None,
    tradeoff: bool,
    hosts_per_node: int | None,
    seed: int,
    output: Path | None,
    scheduler: str,
    as_json: bool,
) -> None:
    """Compute how much hosts can send under traffic patterns, as a share of their links' rates.

    Traffic follows the tables as a fluid. The limit is reached when the first link is full. The
    columns are: minimal ports only; the weights of the build; weights that each switch fits to the
    pattern; for comparison, Valiant's paths over any switch; the most that any routing can carry;
    and how much of this the build carries. A fabric of several planes has a row for each plane, and
    one for all planes together.

    --guarantee computes the rate that every host gets in the worst case, whichever hosts send to
    each other, as long as no host sends or receives more than its link carries. This figure is
    computed exactly from the tables.

    --tradeoff computes the rates under uniform traffic and under any traffic, as if the build had
    other values of `minimal_share`, from 0 to 1.

    \b
        polarfab throughput build --hosts-per-node 16
        polarfab throughput build --pattern tornado --json
        polarfab throughput build --guarantee -o worst.csv
        polarfab throughput build --pattern worst.csv
        polarfab throughput build --guarantee --failures link,node
        polarfab throughput build --tradeoff
    """
    from polarfab.fabric import Fabric

    if (guarantee or tradeoff) and pattern:
        option = "--guarantee" if guarantee else "--tradeoff"
        raise click.UsageError(f"{option} is for any traffic, and --pattern names one")
    if tradeoff and (guarantee or failures or sample or output):
        raise click.UsageError("--tradeoff goes alone: it has no failures, and writes no file")
    if (failures or sample) and not guarantee:
        option = "--failures" if failures else "--cases"
        raise click.UsageError(f"{option} goes with --guarantee")
    fabric = Fabric.load(folder)
    if not hosts_per_node:
        _warn_of_speeds(fabric.builds)
    if tradeoff:
        _print_tradeoffs(fabric, hosts_per_node or 0, as_json)
    elif guarantee:
        selection = FailureSelection(failures, sample or 0, seed)
        _print_guarantee_of_planes(fabric, selection, hosts_per_node or 0, output, as_json)
    else:
        names = (pattern,) if pattern else ()
        _print_throughput(
            fabric,
            names=names,
            hosts_per_node=hosts_per_node or 0,
            seed=seed,
            output=output,
            scheduler=scheduler,
            as_json=as_json,
        )


def _print_throughput(
    fabric: Fabric,
    names: Sequence[str],
    hosts_per_node: int,
    seed: int,
    output: Path | None,
    scheduler: str,
    as_json: bool,
) -> None:
    """Print how much hosts can send under traffic patterns, and plot it.

    Args:
        fabric: the fabric.
        names: the names of the patterns; () for all.
        hosts_per_node: how many hosts each switch has; 0 for as built.
        seed: the seed of random patterns.
        output: the file of the plot; None for no plot.
        scheduler: the address of a Dask scheduler; "" for none.
        as_json: whether to print JSON instead of tables.
    """
    from compilers.evaluation.pattern_traffic import most_hosts_of_switch
    from polarfab.measures import throughput

    form = file_form(output, "svg", "png") if output else ""
    builds = fabric.builds
    hosts = hosts_per_node or most_hosts_of_switch(builds[0])
    with progress("following traffic") as bar:
        planes = of_each_plane(
            fabric, lambda plane: throughput(plane, names, hosts_per_node, seed, bar, scheduler)
        )
    words = counted(hosts, "host")
    counts = {count for build in builds for count in _host_counts(build)}
    if not hosts_per_node and len(counts) > 1:
        words = f"{min(counts)} to {max(counts)} hosts"
    title = f"{builds[0].topology.title()}, {words} per node"
    if output:
        _plot(planes[0], title, output, form)
    if as_json:
        print_json(_patterns_json(fabric, hosts, planes))
    else:
        _print_patterns(builds, title, planes)


def _host_counts(build: Build) -> list[int]:
    """The number of hosts of each installed switch that may have hosts."""
    counts = (build.wiring.host_port > 0).sum(axis=1)
    return [int(n) for n in counts[build.topology.endpoints & build.topology.present]]


def _warn_of_speeds(builds: Sequence[Build]) -> None:
    """Warn that speeds of ports are ignored if the inventory lacks the speed of a port."""
    from compilers.evaluation.host_rates import port_without_speed

    for build in builds:
        port = port_without_speed(build)
        if port:
            warn(
                f"no speed counts, and all links are alike: the inventory has none of {port}; "
                "write `speed` for all ports"
            )


def _patterns_json(
    fabric: Fabric, hosts: int, planes: Sequence[Sequence[PatternThroughput]]
) -> dict[str, Any]:
    """The patterns of each plane, and of all planes together, for JSON."""
    from compilers.drawing.plots import ROUTINGS

    names = [build.name for build in fabric.builds]
    reports = [
        {"name": name, "hosts_per_node": hosts, "patterns": [*map(asdict, patterns)]}
        for name, patterns in zip(names, planes, strict=True)
    ]
    totals = []
    for pattern in zip(*planes, strict=True):
        means = {routing: _mean(pattern, routing) for routing in ROUTINGS}
        totals.append({"pattern": pattern[0].pattern, **means} | _of_optimum(pattern))
    all_planes = {"name": fabric.name, "ports": len(names), "patterns": totals}
    return merged_reports(names, reports, all_planes)


def _print_patterns(
    builds: Sequence[Build], title: str, planes: Sequence[Sequence[PatternThroughput]]
) -> None:
    """Print a table of each plane, and of all planes together."""
    from compilers.drawing.plots import ROUTINGS
    from compilers.spec.balances import own_balances_with

    valiant = own_balances_with(lambda forwarding: forwarding.intermediates)[0]
    for build, patterns in zip(builds, planes, strict=True):
        print_table(
            f"{build.name}: {title}; saturation",
            [
                "pattern",
                "flows",
                *ROUTINGS.values(),
                valiant,
                *OPTIMUM_COLUMNS,
                "hottest minimal link",
            ],
            [_row(build, pattern, tuple(ROUTINGS)) for pattern in patterns],
        )
    if len(builds) > 1:
        rows = []
        for pattern in zip(*planes, strict=True):
            cells = [NO_VALUE] * len(ROUTINGS)
            if any(plane.flows for plane in pattern):
                cells = [_percent_cell(_mean(pattern, routing)) for routing in ROUTINGS]
            rows.append([pattern[0].pattern, *cells])
        heading = f"all {len(builds)} planes: of what a host's {len(builds)} ports carry together"
        print_table(heading, ["pattern", *ROUTINGS.values()], rows)
    if all(pattern.as_emitted is None for patterns in planes for pattern in patterns):
        say("the build has no alternates: routing: {balance: compact-valiant} compares with them")


class FailureSelection(NamedTuple):
    """The failures with which a guarantee is computed again."""

    kinds: tuple[str, ...]
    """The kinds of failures: link, node, or another kind that `verify` tries."""
    sample: int
    """How many cases of each kind; 0 for all, or for as many as take minutes."""
    seed: int
    """The seed by which the cases are drawn."""


def _print_guarantee_of_planes(
    fabric: Fabric, failures: FailureSelection, hosts: int, output: Path | None, as_json: bool
) -> None:
    """Print the guarantee of each plane, and write the traffic of the plane with the least."""
    from polarfab.measures import guarantee, guarantees_after

    if output:
        file_form(output, "csv")
    builds = fabric.builds
    with progress("looking at links") as bar:
        guarantees = of_each_plane(fabric, lambda plane: guarantee(plane, hosts, bar))
    with progress("looking at failures") as bar:
        # Each plane is computed by itself: planes that forward alike may have different racks.
        after = [
            {
                kind: guarantees_after(
                    plane,
                    kind=kind,
                    hosts=hosts,
                    progress=bar,
                    sample=failures.sample,
                    seed=failures.seed,
                )
                for kind in failures.kinds
            }
            for plane in builds
        ]
    if output:
        worst_plane = min(range(len(guarantees)), key=lambda number: guarantees[number].share)
        build, worst_guarantee = builds[worst_plane], guarantees[worst_plane]
        write_file(output, traffic_csv(build, worst_guarantee))
        say(f"{output}: a traffic that fills {link_name(build, worst_guarantee)}")
    if as_json:
        print_json(_guarantees_json(fabric, guarantees, after))
        return
    title = f"{builds[0].topology.title()}: what every host gets under any traffic"
    print_guarantees(title, builds, guarantees)
    for plane, by_kind in zip(builds, after, strict=True):
        for kind, guarantees_of_kind in by_kind.items():
            print_after_failures(plane, kind, guarantees_of_kind)


def _guarantees_json(
    fabric: Fabric,
    guarantees: Sequence[Guarantee],
    after: Sequence[Mapping[str, Sequence[FailureGuarantee]]],
) -> dict[str, Any]:
    """The guarantee of each plane, and of all planes together, for JSON.

    Args:
        fabric: the fabric.
        guarantees: the guarantee of each plane.
        after: for each plane, by the kind of failure, the guarantees after these failures.
    """
    reports = []
    for plane, guarantee, by_kind in zip(fabric.builds, guarantees, after, strict=True):
        report = {"name": plane.name, "guarantee": guarantee_json(guarantee)}
        if by_kind:
            report |= failures_json(plane, tuple(by_kind), list(by_kind.values()))
        reports.append(report)
    share = sum(guarantee.share for guarantee in guarantees) / len(guarantees)
    names = [build.name for build in fabric.builds]
    return merged_reports(names, reports, {"name": fabric.name, "share": share})


def _print_tradeoffs(fabric: Fabric, hosts: int, as_json: bool) -> None:
    """Print the rates of uniform and of any traffic in each plane, by `minimal_share`."""
    from polarfab.measures import tradeoff

    with progress("looking at shares") as bar:
        planes = of_each_plane(fabric, lambda plane: tradeoff(plane, hosts, bar))
    if as_json:
        reports = [
            {"name": plane.name, "tradeoff": [asdict(point) for point in points]}
            for plane, points in zip(fabric.builds, planes, strict=True)
        ]
        print_json(merged_reports([build.name for build in fabric.builds], reports, {}))
        return
    for plane, points in zip(fabric.builds, planes, strict=True):
        print_tradeoff(plane, points)


def _mean(planes: Sequence[PatternThroughput], routing: str) -> float | None:
    """The share of their ports' rates that hosts can send over all planes.

    Args:
        planes: the same pattern in each plane.
        routing: a field of `PatternThroughput`.

    Returns:
        The share; None if the routing does not exist in a plane.
    """
    saturations = [getattr(plane, routing) for plane in planes]
    if None in saturations:
        return None
    return float(sum(saturation.share for saturation in saturations) / len(saturations))


def _of_optimum(planes: Sequence[PatternThroughput]) -> dict[str, float | bool | None]:
    """For JSON: the mean of the planes' optima, and the part of it that the builds carry."""
    optima = [plane.optimum for plane in planes if plane.optimum]
    if not optima:
        return {"optimum": None, "optimum_exact": False, "share_of_optimum": None}
    emitted = [plane.emitted.share for plane in planes]
    optimum = sum(optima) / len(optima)
    return {
        "optimum": optimum,
        "optimum_exact": all(plane.optimum_exact for plane in planes),
        "share_of_optimum": sum(emitted) / len(emitted) / optimum,
    }


def _row(build: Build, measured: PatternThroughput, routings: tuple[str, ...]) -> list[object]:
    """The row of a pattern in the table of a plane.

    Args:
        build: has the names of switches.
        measured: the throughput of the pattern.
        routings: the fields of `PatternThroughput` that have a column each.
    """
    names = build.wiring.names
    if not measured.flows:
        return [measured.pattern, 0, *[NO_VALUE] * (len(routings) + len(OPTIMUM_COLUMNS) + 2)]
    u, v = measured.minimal.hottest
    sign = "" if measured.optimum_exact else "≤ "
    return [
        measured.pattern,
        measured.flows,
        *(_share_cell(getattr(measured, routing)) for routing in routings),
        _share_cell(measured.valiant),
        f"{sign}{_percent_cell(measured.optimum)}",
        _percent_cell(measured.share_of_optimum),
        f"{names[u]} – {names[v]}",
    ]


def _share_cell(saturation: Saturation | None) -> str:
    """The cell of a saturation."""
    return _percent_cell(saturation.share if saturation else None)


def _percent_cell(share: float | None) -> str:
    """The cell of a share of hosts' rates."""
    return NO_VALUE if share is None else f"{share:.1%}"


def _plot(patterns: Sequence[PatternThroughput], title: str, file: Path, form: str) -> None:
    """Write a plot of patterns, as `svg` or `png`."""
    from compilers.drawing.plots import acceptance, plot

    write_file(file, plot(acceptance(patterns, title), form))
    say(f"plotted in {file}")
