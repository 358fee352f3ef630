"""Prints verifications: what was proved, the faults of tables, and those of emitted files.

The reports come from `Fabric.verify` and from the check of rendered files. Verbs that verify
before they write, push or move stop here if tables are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import counted, warn

if TYPE_CHECKING:
    from compilers.proof.walks.delivery_report import Report
    from compilers.readers.emitted_report import EmittedReport
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric


def main_facts(report: Report) -> list[tuple[str, object]]:
    """The main facts of a report: the pairs delivered, the hops, and what is proved."""
    from compilers.proof.proved import Proved

    most, mean = report.max_hops, report.mean_hops
    hops = f"at most {most}, {mean:.2f} on average" if mean else most
    facts: list[tuple[str, object]] = [
        ("pairs delivered", f"{report.delivered:,} of {report.pairs:,}"),
        ("hops of each part" if report.counts_legs else "hops", hops),
    ]
    if report.counts_legs and report.alternates:
        facts.append(("hops of both parts", f"at most {report.alternates.max_hops}"))
    if report.passed:
        facts.append(("proved", Proved.of(report.proved, report.promised)))
    return facts


def walks_in_words(builds: Sequence[Build], quick: bool) -> str:
    """The walks that a verification of these builds makes, in words for the progress bar."""
    from compilers.proof.failures.risk_cases import kind_words
    from compilers.proof.walks.delivery import default_failures

    kinds = () if quick else default_failures(builds[0])
    return " and ".join(["walking every pair", *(kind_words(kind) for kind in kinds)])


def say_caveats(fabric: Fabric) -> None:
    """Warn of failures that the policy of a fabric promises to survive without a proof."""
    for proved in dict.fromkeys(fabric.proved):
        if proved.caveat:
            warn(f"warning: {proved.caveat}; polarfab verify {fabric.folder} walks them")


def stop_if_wrong(build: Build, report: Report, is_new: bool = False) -> None:
    """End the verb if a report has not passed, and name the pairs with faults.

    Args:
        build: the build.
        report: of the build.
        is_new: whether the build was compiled just now, so that nothing in it is damaged.

    Raises:
        Exit: with code 1.
    """
    from compilers.proof.remedies import orders_for_modules_fail, remedy

    if report.passed:
        return
    names = build.wiring.names
    # Values are compared with the orders for nodes. In a new build others are not a mistake.
    if not (is_new and orders_for_modules_fail(report)):
        _say_wrong_values(report)
    for fault in report.faults:
        warn(f"wrong: {names[fault.source]} to {names[fault.destination]}: {fault.fault}")
    longer = report.pairs - report.minimal
    if longer:
        warn(f"{longer:,} of {report.pairs:,} pairs do not take a minimal path")
    if report.alternates and report.alternates.strays:
        warn(f"{report.alternates.strays:,} paths over alternates are not delivered")
    for case in report.broken:
        lost = report.unrepaired(case)
        warn(f"protection fails: {lost:,} pairs are lost, kind of failure: {case.kind}")
        if report.counts_legs and lost == case.cut_off:
            warn(
                "it cuts the fabric into parts: packets by an intermediate of another part are lost"
            )
        for loss in case.losses[:1]:
            pair = f"{names[loss.source]} and {names[loss.destination]}"
            warn(f"with {loss.failed} down, packets between {pair} are lost, among others")
    warn("the build is not usable")
    todo = remedy(build, report)
    if todo:
        warn(todo)
    raise click.exceptions.Exit(1)


def _say_wrong_values(report: Report) -> None:
    """Name the first values that are wrong, and how many more there are."""
    for text in report.unsound.texts():
        warn(f"wrong value: {text}")
    if report.unsound.count > len(report.unsound.findings):
        warn(f"wrong value: {report.unsound.count - len(report.unsound.findings):,} more")


def say_emitted(report: EmittedReport) -> None:
    """Name the places where files differ from the tables, and what was not proved."""
    from compilers.readers.emitted_report import UNEXPECTED

    for example in report.examples:
        warn(f"wrong: {example}")
    if report.differences > len(report.examples):
        warn(counted(report.differences - len(report.examples), "more difference"))
    if any(example.says.startswith(UNEXPECTED) for example in report.examples):
        warn("statements of your own templates: accept them by how they begin, with --accept TEXT")
    if report.unproved:
        warn(f"not proved: {report.unproved}")
    lost = report.pairs - report.delivered
    if lost:
        warn(f"{lost:,} of {report.pairs:,} pairs are forwarded differently from the tables")
