"""`polarfab throughput`: how much hosts can send, by the tables of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inventory.problems import InputError
from polarfab.output import json_option, print_json, print_table, progress, say, write_file

if TYPE_CHECKING:
    from compilers.evaluation.saturation import PatternThroughput, Saturation
    from compilers.tables.build import Build


@click.command("throughput")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--pattern",
    "names",
    metavar="PATTERN",
    multiple=True,
    help="The traffic; again for more.  [default: every pattern]",
)
@click.option("--hosts", type=click.IntRange(1, 1024), help="Hosts per switch; else as built.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of chance.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Plot it, too: FILE.svg or FILE.png.",
)
@json_option
def command(
    folder: Path,
    names: tuple[str, ...],
    hosts: int | None,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Estimate the saturation of traffic patterns, as a share of what the hosts' links carry.

    Traffic follows the emitted tables as a fluid; the hottest link sets the limit. Three columns:
    minimal ports only; the weights as emitted; weights fitted to the pattern, switch by switch.

    \b
        polarfab throughput build --hosts 16
        polarfab throughput build --pattern perm2hop --pattern tornado --json
    """
    from compilers.drawing.plots import WAYS
    from polarfab.fabric import Fabric

    fabric = Fabric.load(folder)
    form = _form(output) if output else ""
    build = fabric.build
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    with progress("following traffic") as report:
        found = fabric.throughput(names, hosts, seed, report)
    if output:
        _plot(found, f"{build.topology.title()}, {hosts} hosts per node", output, form)
    if as_json:
        patterns = [asdict(each) for each in found]
        print_json({"name": build.name, "hosts_per_node": hosts, "patterns": patterns})
        return
    print_table(
        f"{build.name}: {build.topology.title()}, {hosts} hosts per node; saturation",
        ["pattern", "flows", *WAYS.values(), "hottest link (minimal)"],
        [_row(build, each, tuple(WAYS)) for each in found],
    )
    if all(each.as_emitted is None for each in found):
        say("the build has no alternates: routing: {balance: compact-valiant} compares with them")


def _row(build: Build, found: PatternThroughput, ways: tuple[str, ...]) -> list[object]:
    names = build.wiring.names
    if not found.flows:
        return [found.pattern, 0, *["–"] * (len(ways) + 1)]
    shares = [_share(getattr(found, way)) for way in ways]
    u, v = found.minimal.hottest
    return [found.pattern, found.flows, *shares, f"{names[u]} – {names[v]}"]


def _share(saturation: Saturation | None) -> str:
    return f"{saturation.share:.1%}" if saturation else "–"


def _form(plot: Path) -> str:
    form = plot.suffix.removeprefix(".")
    if form not in ("svg", "png"):
        required = "FILE.svg or FILE.png"
        raise InputError.of(key="-o", required=required, given=str(plot))
    return form


def _plot(found: Sequence[PatternThroughput], title: str, plot: Path, form: str) -> None:
    from compilers.drawing.plots import acceptance
    from compilers.drawing.plots import plot as drawn

    write_file(plot, drawn(acceptance(found, title), form))
    say(f"plotted in {plot}")
