"""Reports of what a switch refuses, and of what it cannot do, in words."""

from __future__ import annotations

from collections.abc import Iterable

from compilers.targets.openflow.profiles import OVS, Profile
from controller.openflow.messages import Names
from controller.switches.current import Current, ProgramSource
from controller.switches.events import FaultReport, ProfileLowered
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


ENOUGH = "it does all that this build asks for"


def profile_report(current: Current, vertex: int, profile: Profile) -> ProfileLowered:
    """A switch has this profile, and what it does otherwise than the build asks."""
    lacks = "; ".join(profile.lacks(current.build)) if current.build else ""
    return ProfileLowered(current.names[vertex], profile.name, lacks or ENOUGH)


def lesser_profiles(current: Current, vertices: Iterable[int]) -> dict[str, str]:
    """The profiles, by name, of those switches that cannot do all that Open vSwitch can."""
    found = {vertex: current.programs.profile(vertex).name for vertex in sorted(vertices)}
    return {current.names[v]: name for v, name in found.items() if name != OVS.name}
