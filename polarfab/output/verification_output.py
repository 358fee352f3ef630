"""The output of a verification: what was walked, and every fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import warn

if TYPE_CHECKING:
    from compilers.proof.walks.delivery_report import Report
    from compilers.readers.emitted_report import EmittedReport
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric


def counts(report: Report) -> list[tuple[str, object]]:
    """What a newcomer asks of a proof: who is reached, in how many hops, what is proved."""
    from compilers.proof.proved import Proved

    most, mean = report.max_hops, report.mean_hops
    facts: list[tuple[str, object]] = [
        ("pairs delivered", f"{report.delivered:,} of {report.pairs:,}"),
        ("hops", f"at most {most}, {mean:.2f} on average" if mean else most),
    ]
    if report.passed:
        facts.append(("proved", Proved.of(report.proved, report.promised)))
    return facts


def walks(builds: Sequence[Build], quick: bool) -> str:
    """What verification of these builds is about to do, for the progress bar."""
    from compilers.proof.failures.risk_cases import kind_words
    from compilers.proof.walks.delivery import usual

    kinds = () if quick else usual(builds[0])
    return " and ".join(["walking every pair", *(kind_words(kind) for kind in kinds)])


def say_caveats(fabric: Fabric) -> None:
    """Warn of what the policy of a fabric promises without a proof."""
    for proved in dict.fromkeys(fabric.proved):
        if proved.caveat:
            warn(f"warning: {proved.caveat}; polarfab verify {fabric.folder} walks them")


def stop_if_wrong(build: Build, report: Report) -> None:
    """Stop with exit code 1 if a report has not passed, and say which pairs went wrong."""
    from compilers.proof.verification import remedy

    if report.passed:
        return
    names = build.wiring.names
    for text in report.unsound.texts():
        warn(f"wrong value: {text}")
    if more := report.unsound.count - len(report.unsound.findings):
        warn(f"wrong value: {more:,} more")
    for fault in report.faults:
        warn(f"wrong: {names[fault.source]} to {names[fault.destination]}: {fault.fault}")
    if wrong := report.pairs - report.minimal:
        warn(f"{wrong:,} of {report.pairs:,} pairs do not take a minimal path")
    if report.alternates and report.alternates.strays:
        warn(f"{report.alternates.strays:,} paths over alternates are not delivered")
    for case in report.broken:
        lost = case.lost_pairs - case.cut_off
        warn(f"protection fails: {lost:,} pairs are lost, kind of failure: {case.kind}")
        for loss in case.losses[:1]:
            pair = f"{names[loss.source]} and {names[loss.destination]}"
            warn(f"with {loss.failed} down, packets between {pair} are lost, among others")
    warn("the build is not usable")
    if todo := remedy(build, report):
        warn(todo)
    raise click.exceptions.Exit(1)


def say_emitted(report: EmittedReport) -> None:
    """Name the places where files say something else than the tables, and what was not proved."""
    from compilers.readers.emitted_report import UNEXPECTED

    for example in report.examples:
        warn(f"wrong: {example}")
    if (more := report.differences - len(report.examples)) > 0:
        warn(f"{more:,} more differences")
    if any(example.says.startswith(UNEXPECTED) for example in report.examples):
        warn("statements of your own templates: accept them by how they begin, with --accept TEXT")
    if report.unproved:
        warn(f"not proved: {report.unproved}")
    if lost := report.pairs - report.delivered:
        warn(f"{lost:,} of {report.pairs:,} pairs do not go as by the tables")
