"""The state of a fabric at one time, which the status file, the API and the metrics print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.profiles import OVS
from controller.cluster.cluster_member import ClusterMember
from controller.pulse import Pulse
from controller.rollout.mover import Mover
from controller.switches.current import Current
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.repair_keeper import Keeper

NONE = np.zeros((0, 0), np.bool_)


@dataclass(frozen=True, slots=True)
class SwitchState:
    """A switch of the build; of one that is absent little is known.

    error: what it refuses or reports, or who else has its datapath id. foreign: rows and groups of
    others in it; shadowed: rows of others over ours. audited: seconds since it was read in full.
    holds: rows and groups that it had then. profile: if it is a lesser one than Open vSwitch's.
    """

    name: str
    datapath_id: str
    peer: str = ""
    state: str = "absent"
    drained: bool = False
    error: str = ""
    foreign: int = 0
    shadowed: int = 0
    audited: float | None = None
    holds: tuple[int, int] | None = None
    profile: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A fabric and its controller.

    switches: by vertex. links, rollout, leading: what the keeper, the mover and the member of a
    cluster say of themselves; leading is None where there is one controller. dead: bool[S, K], and
    load: float64[S, K] or None, of ports (`controller.upkeep.repair_keeper`). beats: whether the
    loop runs.
    """

    current: Current
    switches: tuple[SwitchState, ...]
    unknown: tuple[str, ...]
    differences: dict[str, int]
    rejected: int
    links: dict[str, Any] = field(default_factory=dict)
    dead: NDArray[np.bool_] = field(default_factory=lambda: NONE)
    load: NDArray[np.float64] | None = None
    rollout: dict[str, Any] | None = None
    leading: dict[str, Any] | None = None
    beats: bool = True
    bugs: int = 0

    @classmethod
    def of(
        cls,
        fabric: LiveFabric,
        keeper: Keeper | None = None,
        mover: Mover | None = None,
        member: ClusterMember | None = None,
        pulse: Pulse | None = None,
    ) -> State:
        """The state now."""
        ids = sorted((v, number) for number, v in fabric.current.programs.by_datapath_id.items())
        return cls(
            fabric.current,
            tuple(_switch(fabric, keeper, vertex, number) for vertex, number in ids),
            tuple(f"{number:016x}" for number in sorted(fabric.unknown)),
            dict(fabric.differences),
            fabric.rejected.total,
            keeper.status() if keeper else {},
            keeper.dead if keeper else NONE,
            keeper.utilisation if keeper else None,
            mover.status() if mover else None,
            member.status() if member else None,
            pulse is None or pulse.beats,
            pulse.bugs if pulse else 0,
        )

    @property
    def build(self) -> Build:
        """The current build.

        Raises:
            ValueError: the fabric has none.
        """
        if self.current.build is None:
            raise ValueError("a fabric without a build")
        return self.current.build

    @property
    def in_sync(self) -> list[str]:
        """The switches that were read to hold their program."""
        return [one.name for one in self.switches if one.state == "in sync"]

    @property
    def complete(self) -> bool:
        """Whether every switch was."""
        return all(one.state == "in sync" for one in self.switches)

    @property
    def proved(self) -> dict[str, str]:
        """What was proved of the current build, and what its policy promises beyond that."""
        return {"proved": str(self.current.proved), "caveat": self.current.proved.caveat}

    @property
    def role(self) -> dict[str, str]:
        """The controller's role among several, and the leader's name."""
        found = self.leading or {"role": "leader", "leader": ""}
        return {word: str(found[word]) for word in ("role", "leader")}

    @property
    def drift(self) -> dict[str, Any]:
        """Foreign rows found in switches, and the number of corrected rows."""
        return {
            "differences": self.differences,
            **{word: self._by_name(word) for word in ("foreign", "shadowed")},
            "errors": self._by_name("error"),
        }

    @property
    def status(self) -> dict[str, Any]:
        """As the status file has it."""
        return {
            "build": self.current.identity,
            **self.proved,
            "expected": len(self.switches),
            "programmed": self.in_sync,
            "complete": self.complete,
            "amiss": {one.name: one.state for one in self.switches if one.state in AMISS},
            "unknown": list(self.unknown),
            "profiles": self._by_name("profile"),
            **self.drift,
            "links": self.links,
            "rollout": self.rollout,
            **({"leading": self.leading} if self.leading else {}),
        }

    @property
    def health(self) -> dict[str, Any]:
        """In a few numbers, as the API and the metrics have them."""
        audited = [one.audited for one in self.switches if one.state == "in sync"]
        return {
            "build": self.current.identity,
            **self.proved,
            "name": self.current.build.name if self.current.build else "",
            "complete": self.complete,
            "switches": len(self.switches),
            "connected": sum(one.state != "absent" for one in self.switches),
            "in_sync": len(self.in_sync),
            "errors": len(self._by_name("error")),
            "shadowed": len(self._by_name("shadowed")),
            "oldest_audit": max((age for age in audited if age is not None), default=None),
            "dead_links": int(np.count_nonzero(self.dead)) // 2,
            "trial_until": (self.rollout or {}).get("until"),
            "alive": self.beats,
            "bugs": self.bugs,
            "rejected_peers": self.rejected,
            **self.role,
        }

    def _by_name(self, member: str) -> dict[str, Any]:
        """What there is of this in switches."""
        found = {one.name: getattr(one, member) for one in self.switches}
        return {name: value for name, value in found.items() if value}


def _switch(fabric: LiveFabric, keeper: Keeper | None, vertex: int, number: int) -> SwitchState:
    name, there = fabric.names[vertex], fabric.present.get(vertex)
    error = fabric.duplicates.get(vertex) or fabric.errors.get(name, "")
    # In a move there are switches that only the new build has.
    drained = keeper is not None and bool(keeper.drained[vertex : vertex + 1].any())
    if there is None:
        return SwitchState(name, f"{number:016x}", drained=drained, error=error)
    profile = fabric.current.programs.profile(vertex).name
    audited = None if there.compared is None else round(fabric.clock() - there.compared, 1)
    return SwitchState(
        name,
        f"{number:016x}",
        there.peer,
        fabric.state(vertex),
        drained,
        error,
        there.foreign,
        there.shadowing,
        audited,
        there.holds,
        profile if profile != OVS.name else "",
    )
