"""Prints guaranteed throughputs, or makes JSON and CSV of them, for `polarfab throughput`.

A guarantee is the share of their rate that hosts get under every traffic, and a traffic that gets
no more (`compilers.evaluation.guarantee`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from polarfab.output.verb_output import print_table

if TYPE_CHECKING:
    from compilers.evaluation.failure_guarantees import FailureGuarantee
    from compilers.evaluation.guarantee import Guarantee
    from compilers.evaluation.tradeoff import TradeoffPoint
    from compilers.tables.build import Build

SHOWN_CASES = 5
"""The most cases of a kind of failure that are printed."""


def guarantee_json(guarantee: Guarantee) -> dict[str, Any]:
    """For JSON: the guarantee, with switches as vertices."""
    return {
        "share": guarantee.share,
        "link": guarantee.link,
        "traffic": [(flow.source, flow.destination) for flow in guarantee.traffic],
        "rates": [flow.rate for flow in guarantee.traffic],
    }


def print_guarantees(title: str, builds: Sequence[Build], guarantees: Sequence[Guarantee]) -> None:
    """Print a row for each plane: the guaranteed share, and the link that is full first."""
    rows = [
        [build.name, f"{guarantee.share:.2%}", link_name(build, guarantee), len(guarantee.traffic)]
        for build, guarantee in zip(builds, guarantees, strict=True)
    ]
    print_table(title, ["fabric", "guaranteed", "full link", "flows that fill it"], rows)


def print_tradeoff(build: Build, points: Sequence[TradeoffPoint]) -> None:
    """Print a row for each share of the traffic on minimal paths."""
    rows = []
    for point in points:
        share = "equal-cost" if point.minimal_share is None else f"{point.minimal_share:g}"
        rows.append([share, f"{point.uniform:.1%}", f"{point.guaranteed:.1%}"])
    title = f"{build.name}: {build.topology.title()}, {build.balance}"
    print_table(title, ["minimal_share", "uniform", "guaranteed"], rows)


def print_after_failures(build: Build, kind: str, cases: Sequence[FailureGuarantee]) -> None:
    """Print the worst failures of one kind, with the guarantees after each.

    There are two: `share`, with the switches' own repairs, and `repaired`, with the tables of a
    controller.

    Args:
        build: the build.
        kind: the kind of failures, such as "link".
        cases: the failures that were tried, the worst first.
    """
    from compilers.evaluation.failure_guarantees import failure_count

    if not cases:
        return
    rows = [
        [case.element, f"{case.share:.2%}", f"{case.repaired:.2%}"] for case in cases[:SHOWN_CASES]
    ]
    total = failure_count(build, kind)
    sample = f" that were drawn of {total:,}" if total > len(cases) else ""
    title = f"{build.name}: one {kind} down, the worst of {len(cases):,}{sample}"
    print_table(title, [kind, "guaranteed", "by a controller's tables"], rows)


def failures_json(
    build: Build, kinds: Sequence[str], after: Sequence[Sequence[FailureGuarantee]]
) -> dict[str, Any]:
    """For JSON: the guarantees after failures, and how many cases each kind has.

    Args:
        build: the build.
        kinds: the kinds of failures.
        after: for each kind, the guarantees after the cases that were tried.
    """
    from compilers.evaluation.failure_guarantees import failure_count

    return {
        "failures": [asdict(case) for cases in after for case in cases],
        "failure_cases": {kind: failure_count(build, kind) for kind in kinds},
    }


def link_name(build: Build, guarantee: Guarantee) -> str:
    """The two switches of the link that limits a guarantee; `–` if no link does."""
    return " – ".join(build.wiring.names[end] for end in guarantee.link) if guarantee.link else "–"


def traffic_csv(build: Build, guarantee: Guarantee) -> str:
    """A traffic that fills the link, as CSV in the form of `--pattern` and of `routing.demand`."""
    names = build.wiring.names
    lines = [
        f"{names[flow.source]},{names[flow.destination]},{flow.rate:g}\n"
        for flow in guarantee.traffic
    ]
    return "source,destination,rate\n" + "".join(lines)
