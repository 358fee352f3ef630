"""How commands tell what verification found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from polarfab.output import say

if TYPE_CHECKING:
    from compilers.proof.delivery import Report
    from compilers.tables.build import Build


def stop_if_wrong(build: Build, report: Report) -> None:
    """Where a report has not passed, say which pairs went wrong and stop with exit code 1."""
    if report.passed:
        return
    names = build.wiring.names
    for fault in report.faults:
        say(f"wrong: {names[fault.source]} to {names[fault.destination]}: {fault.fault}")
    if wrong := report.pairs - report.minimal:
        say(f"{wrong:,} of {report.pairs:,} pairs do not take a minimal path")
    if report.ways and report.ways.strays:
        say(f"{report.ways.strays:,} ways of the alternates lead nowhere")
    for case in report.broken:
        say(f"protection fails: {case.lost_pairs:,} pairs are lost, kind of failure: {case.kind}")
    say("the build is not usable")
    raise click.exceptions.Exit(1)
