"""The report of a push: how far every switch has come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from compilers.audit.route_differences import RouteDifference
from compilers.audit.route_lines import TYPED, typed
from compilers.audit.route_report import RouteReport
from compilers.targets.target_lookup import target
from inventory.problems import InputError

MOST_NAMED = 3
"""Routes that a message names."""
ADDRESS = re.compile(r"\b\d+(\.\d+){3}\b")
State = Literal["as built", "to do", "pushed", "failed", "not tried"]


@dataclass(slots=True)
class PushedSwitch:
    """A switch, and how far it has come.

    add, remove: what is typed. kept: what others did, and what stays so. differences: what its own
    tables still have other than the build.
    """

    node: str
    state: State = "not tried"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    differences: tuple[RouteDifference, ...] = ()
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"differences": [one.as_dict() for one in self.differences]}


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did.

    unread: in a dry run from tables, switches without a file. interrupted: whether Ctrl-C ended it.
    """

    target: str
    switches: tuple[PushedSwitch, ...]
    unread: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def good(self) -> bool:
        """Whether every switch is as built; in a dry run, whether it was read."""
        return all(one.state in ("as built", "pushed", "to do") for one in self.switches)

    @property
    def causes(self) -> dict[str, tuple[str, ...]]:
        """What went wrong, to the switches where it did; names and addresses are replaced."""
        found: dict[str, tuple[str, ...]] = {}
        for one in self.switches:
            if one.error:
                name = rf"(?<![\w-]){re.escape(one.node)}(?![\w-])"
                cause = ADDRESS.sub("ADDRESS", re.sub(name, "SWITCH", one.error))
                found[cause] = (*found.get(cause, ()), one.node)
        return found

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        switches = [one.as_dict() for one in self.switches]
        return {"target": self.target, "switches": switches, "unread": list(self.unread)}


def typed_push(report: RouteReport) -> PushReport:
    """A dry run from routing tables: what a person types on each switch.

    Raises:
        InputError: the target is none that people type on.
    """
    if report.target not in TYPED:
        required = f"one of {', '.join(TYPED)}"
        raise InputError.of(required, report.target, "leave `tables` out", key="target")
    by_switch: dict[str, list[RouteDifference]] = {}
    for one in report.differences:
        by_switch.setdefault(one.switch, []).append(one)
    found = []
    hosts = getattr(target(report.target), "vrf", "")
    if marked := [one for one in report.differences if _marked(one)][:1]:
        required = "routes of packets without marks: those of a VRF for each link are not typed"
        todo = "load the rendered file of the switch"
        given = f"{marked[0].prefix} in table {marked[0].table} at {marked[0].switch}"
        raise InputError.of(required, given, todo, key="tables")
    for node, differences in by_switch.items():
        lines = typed(report.target, differences, hosts)
        found.append(PushedSwitch(node, "to do", lines.add, lines.remove, (), tuple(differences)))
    return PushReport(report.target, tuple(found), report.unread)


def _marked(one: RouteDifference) -> bool:
    """Whether a next hop is over a subinterface, or it is a route of what came in over one."""
    over = (port for choices in (one.wanted, one.found) for hops in choices for _, port, _ in hops)
    return "marked" in one.table or any("." in port for port in over)


def named(differences: Sequence[RouteDifference]) -> str:
    """The first prefixes, as a message names them."""
    names = [f"{one.prefix} in table {one.table}" for one in differences[:MOST_NAMED]]
    return ", ".join(names) + ", …" * (len(differences) > MOST_NAMED)
