"""What a user may write in the spec instead of a protection that fails: `remedy`.

`verify` and `compile` print it below a report in which a promised repair fails.
"""

from __future__ import annotations

from compilers.proof.walks.delivery_report import Report
from compilers.tables.build import Build
from compilers.topology.families import family_of


def remedy(build: Build, report: Report) -> str:
    """What a user may write in the spec instead of a protection that fails; "" if none fails."""
    broken = {case.kind for case in report.broken}
    if not broken:
        return ""
    choices = []
    node_holds = orders_for_modules_fail(report)
    link_holds = broken == {"node"}
    if link_holds:
        choices.append("write `protect: link`, which holds")
    if node_holds:
        choices.append("write `protect: node`, which holds")
    if not build.forwarding.every_hop and not family_of(build.topology.family).single:
        choices.append("try `balance: ecmp` with `transit: ecmp`, which protects more graphs")
    if family_of(build.topology.family).any_links and (fewest := _fewest_links(build)):
        choices.append(f"add links ({fewest})")
    if not link_holds and not node_holds:
        choices.append("write `protect: none` and leave repairs to the controller")
    if len(choices) == 1:
        return f"routing: {choices[0]}"
    return f"routing: {', '.join(choices[:-1])}, or {choices[-1]}"


def orders_for_modules_fail(report: Report) -> bool:
    """Whether a promised repair fails only by the orders of `protect: module`.

    There repair ports are ordered so that they avoid the failed module, at the cost of some pairs
    of failures. The orders of `protect: node` do not pay this cost.
    """
    broken = {case.kind for case in report.broken}
    return bool(broken) and "module" in report.promised and broken <= {"module", "2"}


def _fewest_links(build: Build) -> str:
    """The switches with the fewest links, in words.

    "" if they have more than three links, so that few links are not the cause, or none at all.
    """
    degrees = build.topology.graph.degrees
    fewest = int(degrees[build.topology.present].min())
    if not 0 < fewest <= 3:
        return ""
    switches = [int(v) for v in (degrees == fewest).nonzero()[0]]
    more = f" and {len(switches) - 1:,} more" if len(switches) > 1 else ""
    return f"{build.wiring.names[switches[0]]}{more} have {fewest}"
