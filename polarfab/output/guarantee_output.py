"""The guaranteed throughput of a build as tables, JSON and a file of traffic."""

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


def guarantee_json(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee with switches as numbers of vertices."""
    return {
        "share": guarantee.share,
        "link": guarantee.link,
        "traffic": [(flow.source, flow.destination) for flow in guarantee.traffic],
        "rates": [flow.rate for flow in guarantee.traffic],
    }


def print_guarantees(title: str, builds: Sequence[Build], guarantees: Sequence[Guarantee]) -> None:
    """A row a plane: what every host gets under any traffic, and the link that is full."""
    rows = [
        [build.name, f"{guarantee.share:.2%}", link_name(build, guarantee), len(guarantee.traffic)]
        for build, guarantee in zip(builds, guarantees, strict=True)
    ]
    print_table(title, ["fabric", "guaranteed", "full link", "flows that fill it"], rows)


def print_tradeoff(build: Build, points: Sequence[TradeoffPoint]) -> None:
    """A row for each part of the traffic on minimal paths."""
    rows = []
    for point in points:
        part = "equal-cost" if point.minimal_share is None else f"{point.minimal_share:g}"
        rows.append([part, f"{point.uniform:.1%}", f"{point.guaranteed:.1%}"])
    title = f"{build.name}: {build.topology.title()}, {build.balance}"
    print_table(title, ["minimal_share", "uniform", "guaranteed"], rows)


SHOWN = 5
"""The cases of a kind that are printed."""


def print_after(build: Build, kind: str, cases: Sequence[FailureGuarantee]) -> None:
    """The worst cases of one kind of failures, as switches repair and as a controller does."""
    from compilers.evaluation.failure_guarantees import failure_cases

    if not cases:
        return
    rows = [[case.element, f"{case.share:.2%}", f"{case.repaired:.2%}"] for case in cases[:SHOWN]]
    every = failure_cases(build, kind)
    drawn = f" that were drawn of {every:,}" if every > len(cases) else ""
    title = f"{build.name}: one {kind} down, the worst of {len(cases):,}{drawn}"
    print_table(title, [kind, "guaranteed", "by a controller's tables"], rows)


def failures_json(
    build: Build, kinds: Sequence[str], after: Sequence[Sequence[FailureGuarantee]]
) -> dict[str, Any]:
    """All cases, and how many of each kind there are."""
    from compilers.evaluation.failure_guarantees import failure_cases

    return {
        "failures": [asdict(case) for cases in after for case in cases],
        "failure_cases": {kind: failure_cases(build, kind) for kind in kinds},
    }


def link_name(build: Build, guarantee: Guarantee) -> str:
    """The two switches of the link that limits it."""
    return " – ".join(build.wiring.names[end] for end in guarantee.link) if guarantee.link else "–"


def traffic_csv(build: Build, guarantee: Guarantee) -> str:
    """The traffic that fills the link, in the form of `--pattern` and of `routing.demand`."""
    names = build.wiring.names
    lines = [
        f"{names[flow.source]},{names[flow.destination]},{flow.rate:g}\n"
        for flow in guarantee.traffic
    ]
    return "source,destination,rate\n" + "".join(lines)
