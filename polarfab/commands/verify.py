"""`polarfab verify`: walk every ordered pair through a build's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, progress, say

CHANNELS_UP_TO = 1 << 26

if TYPE_CHECKING:
    from compilers.proof.delivery import Report
    from compilers.tables.build import Build


def check(
    build: Build,
    folder: Path,
    report_progress: Callable[[int, int], None] | None,
    failures: Sequence[str] = (),
    sample: int = 1000,
    seed: int = 1,
    with_channels: bool = False,
) -> Report:
    """Verify the build in `folder`, and leave or take away its mark where it can be written."""
    from compilers.proof.delivery import verify
    from compilers.tables.verified_mark import mark_verified

    report = verify(build, report_progress, failures, sample, seed, with_channels)
    try:
        mark_verified(folder, build.identity, as_dict(report) if report.passed else None)
    except OSError as error:
        say(f"cannot mark {folder} as verified or not: {error.strerror}")
    return report


def check_planes(
    builds: Sequence[Build],
    folder: Path,
    report_progress: Callable[[int, int], None] | None,
    failures: Sequence[str] = (),
    **options: Any,
) -> Iterator[Report]:
    """Verify the planes in `folder`; the verdict on one holds for those that forward alike."""
    from compilers.tables.plane_folders import alike, builds_in
    from compilers.tables.verified_mark import mark_verified

    done: list[tuple[Path, Report]] = []
    for build, path in zip(builds, builds_in(folder), strict=True):
        known = next((report for other, report in done if alike(other, path)), None)
        if known is None:
            known = check(build, path, report_progress, failures, **options)
            done.append((path, known))
        else:
            mark_verified(path, build.identity, as_dict(known) if known.passed else None)
        yield known


def as_dict(report: Report) -> dict[str, Any]:
    """The report in the words of design.md."""
    return {
        "pairs": report.pairs,
        "delivered": report.delivered,
        "max_hops": report.max_hops,
        "mean_hops": report.mean_hops,
        "minimal": report.minimal,
        "loops": report.loops,
        "ways": asdict(report.ways) if report.ways else None,
        "channels": asdict(report.channels) if report.channels else None,
        "failures": [asdict(case) for case in report.failures],
    }


def failed(build: Build, report: Report) -> None:
    """Say which pairs went wrong and stop with exit code 1."""
    names = build.wiring.names
    for fault in report.faults:
        say(f"wrong: {names[fault.source]} to {names[fault.destination]}: {fault.what}")
    if wrong := report.pairs - report.minimal:
        say(f"{wrong:,} of {report.pairs:,} pairs do not take a minimal path")
    if report.ways and report.ways.strays:
        say(f"{report.ways.strays:,} ways of the alternates lead nowhere")
    for case in report.broken:
        say(f"protection fails: {case.lost_pairs:,} pairs are lost, kind of failure: {case.kind}")
    say("the build is not usable")
    raise click.exceptions.Exit(1)


def say_losses(build: Build, report: Report) -> None:
    """Name the pairs that failures lose, the first of each kind."""
    names = build.wiring.names
    for case in report.failures:
        for loss in case.losses:
            pair = f"{names[loss.source]} to {names[loss.destination]}"
            say(f"lost: {pair} while {loss.failed} is down")
        if (more := case.lost_pairs - len(case.losses)) > 0:
            say(f"lost: {more:,} more pairs, kind of failure: {case.kind}")


def kinds(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of failures, from an option given several times or a list with commas."""
    from compilers.proof.failure_walks import FAILURE_KINDS

    chosen = [word for value in values for word in value.split(",")]
    for word in chosen:
        if word not in FAILURE_KINDS:
            raise click.BadParameter(f"{word!r} is not one of {', '.join(FAILURE_KINDS)}")
    return tuple(dict.fromkeys(chosen))


@click.command("verify")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--failures",
    metavar="link|node|2",
    multiple=True,
    callback=kinds,
    help="Also try every failure of one link, of one node, or two failures at once.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Try so many cases of two failures, where there are more.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the sample.")
@click.option(
    "--channels/--no-channels",
    "with_channels",
    default=None,
    help="Count the channels of a lossless fabric (docs/channels.md); by default if it is quick.",
)
@json_option
def command(
    folder: Path,
    failures: tuple[str, ...],
    sample: int,
    seed: int,
    with_channels: bool | None,
    as_json: bool,
) -> None:
    """Walk every ordered pair of BUILD through the tables that are emitted.

    Delivered, hops, minimal or not, loops, and that every next hop is a cabled port; the same for
    every alternate. The graph is consulted only to know how short each path could be. A build that
    passes is marked; render, controller and emulate use marked builds.

    With --failures: no controller acts, the switches repair what their tables let them. A build
    with `protect: link` (or `node`) does not pass if it loses a pair.
    """
    from compilers.proof.channels import packets
    from compilers.tables.build_folder import damaged, load
    from compilers.tables.plane_folders import builds_in

    folders = builds_in(folder)
    builds = [load(path) for path in folders]
    if with_channels is None:
        with_channels = packets(builds[0]) <= CHANNELS_UP_TO
    changed = [problem for path in folders for problem in damaged(path)]
    for problem in changed:
        say(f"changed since it was compiled: {problem}")
    with progress("walking every pair") as bar:
        options = {"sample": sample, "seed": seed, "with_channels": with_channels}
        reports = [*check_planes(builds, folder, bar, failures, **options)]
    if as_json and len(reports) == 1:
        print_json(as_dict(reports[0]))
    elif as_json:
        named = zip(builds, reports, strict=True)
        print_json({"planes": [{"fabric": b.name, **as_dict(report)} for b, report in named]})
    for build, report in zip(builds, reports, strict=True):
        if not as_json:
            _print(build, report)
            say_losses(build, report)
        if not report.passed:
            failed(build, report)
    if changed:
        raise click.exceptions.Exit(1)


def _print(build: Build, report: Report) -> None:
    """Tables for people."""
    apart = ("ways", "channels", "failures")
    facts = [(key, value) for key, value in as_dict(report).items() if key not in apart]
    facts += [(f"pairs over {h} links", n) for h, n in enumerate(report.hop_counts) if n]
    if report.ways:
        facts += [(f"ways with alternates: {k}", v) for k, v in asdict(report.ways).items()]
    if report.channels:
        free = "no deadlock" if report.channels.free else "deadlock"
        facts.append(("channels, by valley", f"{report.channels.count} ({free})"))
    print_facts(f"{build.name}: {build.topology.title()}, build {build.identity}", facts)
    if report.failures:
        columns = ["kind", "cases", "of", "lost pairs", "looped", "max hops", "stretch"]
        rows = [list(asdict(case).values())[: len(columns)] for case in report.failures]
        print_table("failures, without a controller", columns, rows)
