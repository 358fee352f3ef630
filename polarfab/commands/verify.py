"""`polarfab verify`: walk every ordered pair through a build's tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, progress, say

if TYPE_CHECKING:
    from compilers.build import Build
    from compilers.verify import Report


def check(build: Build, folder: Path, report_progress: Callable[[int, int], None] | None) -> Report:
    """Verify the build in `folder`, and leave or take away its mark."""
    from compilers.build import mark_verified
    from compilers.verify import verify

    report = verify(build, report_progress)
    mark_verified(folder, build.identity, as_dict(report) if report.passed else None)
    return report


def as_dict(report: Report) -> dict[str, Any]:
    """The report in the words of design.md."""
    return {
        "pairs": report.pairs,
        "delivered": report.delivered,
        "max_hops": report.max_hops,
        "mean_hops": report.mean_hops,
        "minimal": report.minimal,
        "loops": report.loops,
        "failures": [asdict(case) for case in report.failures],
    }


def failed(build: Build, report: Report) -> None:
    """Say which pairs went wrong and stop with exit code 1."""
    names = build.wiring.names
    for fault in report.faults:
        say(f"wrong: {names[fault.source]} to {names[fault.destination]}: {fault.what}")
    wrong = report.pairs - report.minimal
    say(f"{wrong:,} of {report.pairs:,} pairs do not take a minimal path; the build is not usable")
    raise click.exceptions.Exit(1)


@click.command("verify")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Walk every ordered pair of BUILD through the tables that are emitted.

    Delivered, hops, minimal or not, loops, and that every next hop is a cabled port. The graph is
    consulted only to know how short each path could be. A build that passes is marked; render,
    controller and emulate use marked builds.
    """
    from compilers.build import damaged, load

    build = load(folder)
    if changed := damaged(folder):
        for problem in changed:
            say(f"changed since it was compiled: {problem}")
    with progress("walking every pair") as report_progress:
        report = check(build, folder, report_progress)
    if as_json:
        print_json(as_dict(report))
    else:
        facts = [(key, value) for key, value in as_dict(report).items() if key != "failures"]
        hops = [(f"pairs over {h} links", n) for h, n in enumerate(report.hop_counts) if n]
        print_facts(f"{build.name}: {build.topology.title()}, build {build.identity}", facts + hops)
    if not report.passed:
        failed(build, report)
    if changed:
        raise click.exceptions.Exit(1)
