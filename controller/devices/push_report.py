"""The report of a push: how far every switch has come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from compilers.readers.devices.held_routes import Place
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.devices.router_device import MOST_NAMED, DevicePlan, RouterDevice
from compilers.targets.system_names import hostname

ADDRESS = re.compile(r"\b\d+(\.\d+){3}\b")
State = Literal["as built", "to do", "pushed", "failed", "not tried"]


@dataclass(slots=True)
class PushedSwitch:
    """A switch, and how far it has come.

    plan: what is typed. right: the build's routes that its tables had when it was read. after: the
    number of the round after which it had them. notes: what is kept besides. differences: what its
    own tables still have other than the build. busy: held while something is done on it.
    """

    node: str
    vertex: int
    device: RouterDevice
    state: State = "not tried"
    plan: DevicePlan = field(default_factory=DevicePlan)
    right: frozenset[Place] = frozenset()
    after: int = 0
    notes: tuple[str, ...] = ()
    differences: tuple[RouteDifference, ...] = ()
    error: str = ""
    busy: Lock = field(default_factory=Lock)

    @property
    def add(self) -> tuple[str, ...]:
        """What comes."""
        return (*self.plan.links, *self.plan.add)

    @property
    def kept(self) -> tuple[str, ...]:
        """What others did, and what stays so."""
        shut = (f"port {port} is shut" for port in sorted(self.plan.shut))
        return (*shut, *self.plan.kept, *self.notes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {word: getattr(self, word) for word in ("node", "state", "add", "kept", "error")}
        found |= {"remove": self.plan.remove, "save": self.plan.save}
        return found | {"differences": [one.as_dict() for one in self.differences]}


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did. interrupted: whether Ctrl-C ended it."""

    target: str
    switches: tuple[PushedSwitch, ...]
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
                words = [hostname(one.node), *[one.node] * (not one.node.isdigit())]
                name = rf"(?<![\w-])({'|'.join(map(re.escape, words))})(?![\w-])"
                cause = ADDRESS.sub("ADDRESS", re.sub(name, "SWITCH", one.error))
                found[cause] = (*found.get(cause, ()), one.node)
        return found

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"target": self.target, "switches": [one.as_dict() for one in self.switches]}


def named(differences: Sequence[RouteDifference]) -> str:
    """The first prefixes, as a message names them."""
    names = [f"{one.prefix} in table {one.table}" for one in differences[:MOST_NAMED]]
    return ", ".join(names) + ", …" * (len(differences) > MOST_NAMED)
