"""Reports of what a switch refuses, in words."""

from __future__ import annotations

from controller.openflow.messages import Names
from controller.switches.current import ProgramSource
from controller.switches.events import FaultReport
from controller.switches.transaction import Outcome


def fault_report(
    kind: type[FaultReport],
    name: str,
    outcome: Outcome | None,
    programs: ProgramSource,
    error_names: Names,
) -> FaultReport:
    """The first error of a switch: its names, its program entry, and the number of errors.

    outcome: None if the switch does not say what it holds.
    """
    if outcome is None:
        return kind(name, "does not answer requests for its flows and groups")
    if outcome.text:
        return kind(name, outcome.text)
    if outcome.error is None:
        return kind(name, "did not confirm the commit of its bundle")
    error, more = outcome.error, outcome.errors - 1
    entry = programs.describe(error.xid)
    rest = f", and {more} more error{'s' * (more > 1)}" if more else ""
    reason = f"{error.words(error_names)} ({entry}){rest}"
    return kind(name, reason, error.type, error.code, entry, outcome.errors)
