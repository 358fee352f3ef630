"""The report of a push: the state, the changes and the error of every switch.

`controller.devices.device_push` fills it in, and `polarfab push` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from compilers.readers.devices.held_routes import RouteKey
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.devices.router_device import MOST_NAMED, DevicePlan, RouterDevice
from compilers.targets.system_names import hostname

ADDRESS = re.compile(r"\b\d+(\.\d+){3}\b")
"""An IPv4 address in a message."""
State = Literal["as built", "to do", "pushed", "failed", "not tried"]
"""The state of a switch: not read yet ("not tried"), read ("as built" or "to do"), or done."""


@dataclass(slots=True)
class PushedSwitch:
    """A switch of a push, and its state."""

    node: str
    """The switch's node."""
    vertex: int
    """The switch's vertex."""
    device: RouterDevice
    """The session with the switch."""
    state: State = "not tried"
    """The state of the switch."""
    plan: DevicePlan = field(default_factory=DevicePlan)
    """The lines that are added, removed and saved."""
    correct_routes: frozenset[RouteKey] = frozenset()
    """The build's routes that the switch's tables had when it was read."""
    round_at_start: int = 0
    """The number of the round whose routes the switch had when it was read."""
    notes: tuple[str, ...] = ()
    """Sentences about what the push leaves different from the build."""
    differences: tuple[RouteDifference, ...] = ()
    """The routes in which the switch's own tables still differ from the build."""
    error: str = ""
    """Why the push to this switch failed; "" if it did not."""
    lock: Lock = field(default_factory=Lock)
    """Held while a task runs on the switch."""

    @property
    def add(self) -> tuple[str, ...]:
        """For the report: the lines that are added, those of interfaces first."""
        return (*self.plan.links, *self.plan.add)

    @property
    def kept(self) -> tuple[str, ...]:
        """For the report: changes by others that stay as they are, in words, and the notes."""
        shut = (f"port {port} is shut" for port in sorted(self.plan.shut))
        return (*shut, *self.plan.kept, *self.notes)

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        record = {word: getattr(self, word) for word in ("node", "state", "add", "kept", "error")}
        record |= {"remove": self.plan.remove, "save": self.plan.save}
        record["differences"] = [difference.as_dict() for difference in self.differences]
        return record


@dataclass(frozen=True, slots=True)
class PushReport:
    """The outcome of a push."""

    target: str
    """The target of the switches."""
    switches: tuple[PushedSwitch, ...]
    """The switches."""
    interrupted: bool = False
    """Whether Ctrl-C ended the push."""

    @property
    def good(self) -> bool:
        """Whether every switch is as built; in a dry run, whether it was read."""
        return all(switch.state in ("as built", "pushed", "to do") for switch in self.switches)

    @property
    def causes(self) -> dict[str, tuple[str, ...]]:
        """The switches of each error; names and addresses in the error are replaced."""
        switches_by_cause: dict[str, tuple[str, ...]] = {}
        for switch in self.switches:
            if switch.error:
                cause = _without_names(switch.error, switch.node)
                switches_by_cause[cause] = (*switches_by_cause.get(cause, ()), switch.node)
        return switches_by_cause

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return {"target": self.target, "switches": [switch.as_dict() for switch in self.switches]}


def _without_names(error: str, node: str) -> str:
    """An error with SWITCH in place of a switch's names, and ADDRESS in place of addresses.

    So the same error of several switches is one text.
    """
    names = [hostname(node)]
    if not node.isdigit():  # else numbers of something else would be replaced, too
        names.append(node)
    name = rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])"
    return ADDRESS.sub("ADDRESS", re.sub(name, "SWITCH", error))


def first_prefixes(differences: Sequence[RouteDifference]) -> str:
    """The first prefixes, as a message names them."""
    names = [f"{route.prefix} in table {route.table}" for route in differences[:MOST_NAMED]]
    return ", ".join([*names, "…"] if len(differences) > MOST_NAMED else names)
