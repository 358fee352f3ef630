"""The guaranteed throughput of a build as tables, JSON and a file of traffic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polarfab.output.verb_output import print_table

if TYPE_CHECKING:
    from compilers.evaluation.guarantee import Guarantee
    from compilers.tables.build import Build


def guarantee_json(found: Guarantee) -> dict[str, Any]:
    """The guarantee with switches as numbers of vertices."""
    return {
        "share": found.share,
        "link": found.link,
        "traffic": [(flow.source, flow.destination) for flow in found.traffic],
        "rates": [flow.rate for flow in found.traffic],
    }


def print_guarantees(title: str, builds: Sequence[Build], found: Sequence[Guarantee]) -> None:
    """A row a plane: what every host gets under any traffic, and the link that is full."""
    rows = [
        [build.name, f"{one.share:.2%}", link_name(build, one), len(one.traffic)]
        for build, one in zip(builds, found, strict=True)
    ]
    print_table(title, ["fabric", "guaranteed", "full link", "flows that fill it"], rows)


def link_name(build: Build, found: Guarantee) -> str:
    """The two switches of the link that limits it."""
    return " – ".join(build.wiring.names[end] for end in found.link) if found.link else "–"


def traffic_csv(build: Build, found: Guarantee) -> str:
    """The traffic that fills the link, in the form of `--pattern` and of `routing.demand`."""
    names = build.wiring.names
    lines = [
        f"{names[flow.source]},{names[flow.destination]},{flow.rate:g}\n" for flow in found.traffic
    ]
    return "source,destination,rate\n" + "".join(lines)
