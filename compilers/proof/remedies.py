"""Remedies: what to write where the tables do not repair all that the policy promises."""

from __future__ import annotations

from compilers.proof.walks.delivery import Report
from compilers.tables.build import Build
from compilers.topology.families import family_of


def remedy(build: Build, report: Report) -> str:
    """What may be written in the fabric's spec instead; "" where no protection fails."""
    broken = {case.kind for case in report.broken}
    if not broken:
        return ""
    choices = []
    if broken == {"node"}:
        choices.append("write `protect: link`, which holds")
    if broken == {"module"}:
        choices.append("write `protect: node`, which holds")
    if not build.every_hop and not family_of(build.topology.family).single:
        choices.append("try `balance: ecmp` with `transit: ecmp`, which protects more graphs")
    if family_of(build.topology.family).any_links and (fewest := _fewest_links(build)):
        choices.append(f"add links ({fewest})")
    if broken not in ({"node"}, {"module"}):
        choices.append("write `protect: none` and leave repairs to the controller")
    return f"routing: {', '.join(choices[:-1])}{' or ' * (len(choices) > 1)}{choices[-1]}"


def _fewest_links(build: Build) -> str:
    """The switches that have fewest links, where that is three or less."""
    degrees = build.topology.graph.degrees
    fewest = int(degrees[build.topology.present].min())
    least = [int(v) for v in (degrees == fewest).nonzero()[0]]
    more = f" and {len(least) - 1:,} more" if len(least) > 1 else ""
    return f"{build.wiring.names[least[0]]}{more} have {fewest}" if 0 < fewest <= 3 else ""
