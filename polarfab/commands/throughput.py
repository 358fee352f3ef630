"""`polarfab throughput`: how much hosts can send, by the tables of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import InputError, Problem, nearest
from polarfab.output import json_option, print_json, print_table, progress, say

if TYPE_CHECKING:
    from compilers.evaluation.saturation import PatternThroughput, Saturation
    from compilers.tables.build import Build

WAYS = {"minimal": "minimal", "as_emitted": "as emitted", "adaptive": "adaptive"}


@click.command("throughput")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option("--pattern", "names", metavar="NAME", multiple=True, help="Default: every pattern.")
@click.option("--hosts", type=click.IntRange(1, 1024), help="Hosts a switch, if not as built.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of chance.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw FILE.svg or FILE.png, too.")
@json_option
def command(
    folder: Path,
    names: tuple[str, ...],
    hosts: int | None,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Estimate the saturation of traffic patterns, as a share of what the hosts' links carry.

    Traffic follows the emitted tables as a fluid; the hottest link sets the limit. Three columns:
    minimal ports only; the weights as emitted; weights fitted to the pattern, switch by switch.

    \b
        polarfab throughput build --hosts 16
        polarfab throughput build --pattern perm2hop --pattern tornado --json
    """
    from compilers.evaluation.saturation import throughput
    from compilers.evaluation.traffic import PATTERNS
    from compilers.tables.build_folder import load

    build = load(folder)
    chosen = _known(names or tuple(PATTERNS), PATTERNS)
    form = _form(plot) if plot else ""
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    found = []
    with progress("following traffic") as report:
        for done, name in enumerate(chosen, 1):
            found.append(throughput(build, name, hosts, seed))
            if report:
                report(done, len(chosen))
    if plot:
        _plot(build, found, hosts, plot, form)
    if as_json:
        print_json({"name": build.name, "hosts_per_node": hosts, "patterns": _json(found)})
        return
    print_table(
        f"{build.name}: {build.topology.title()}, {hosts} hosts a node; saturation",
        ["pattern", "flows", *WAYS.values(), "hottest link (minimal)"],
        [_row(build, each) for each in found],
    )
    if all(each.as_emitted is None for each in found):
        say("the build has no alternates: routing: {balance: compact-valiant} compares with them")


def _known(names: Sequence[str], patterns: Sequence[str] | dict[str, Any]) -> Sequence[str]:
    problems = []
    for name in names:
        if name not in patterns:
            near = nearest(name, patterns)
            problems.append(
                Problem(
                    key="--pattern",
                    required=", ".join(patterns),
                    given=name,
                    todo=f"did you mean {near}?" if near else "choose one of these",
                )
            )
    if problems:
        raise InputError(problems)
    return names


def _json(found: Sequence[PatternThroughput]) -> list[dict[str, Any]]:
    return [asdict(each) for each in found]


def _row(build: Build, found: PatternThroughput) -> list[object]:
    names = build.wiring.names
    if not found.flows:
        return [found.pattern, 0, *["–"] * (len(WAYS) + 1)]
    shares = [_share(getattr(found, way)) for way in WAYS]
    u, v = found.minimal.hottest
    return [found.pattern, found.flows, *shares, f"{names[u]} – {names[v]}"]


def _share(saturation: Saturation | None) -> str:
    return f"{saturation.share:.1%}" if saturation else "–"


def _form(plot: Path) -> str:
    form = plot.suffix.removeprefix(".")
    if form not in ("svg", "png"):
        required = "FILE.svg or FILE.png"
        raise InputError(Problem(key="--plot", required=required, given=str(plot)))
    return form


def _plot(
    build: Build, found: Sequence[PatternThroughput], hosts: int, plot: Path, form: str
) -> None:
    """What is accepted over what is offered, a curve a pattern, side by side for each way."""
    from compilers.drawing.plots import Curve, Panel
    from compilers.drawing.plots import plot as drawn

    offered = tuple(range(101))
    panels = []
    for way, words in WAYS.items():
        limits = {
            each.pattern: 100 * getattr(each, way).share
            for each in found
            if each.flows and getattr(each, way)
        }
        curves = [
            Curve(name, offered, tuple(min(x, limit) for x in offered))
            for name, limit in limits.items()
        ]
        if curves:
            title = f"{build.topology.title()}, {hosts} hosts a node: {words}"
            panels.append(Panel(title, "offered, % of injection", "accepted, %", tuple(curves)))
    try:
        plot.write_bytes(drawn(panels, form))
    except OSError as error:
        raise InputError(
            Problem(
                file=str(plot),
                required="a file that can be written",
                given=error.strerror or str(error),
                todo="name another one with --plot",
            )
        ) from error
    say(f"plotted in {plot}")
