"""The state of a fabric at one time, which the status file, the API and the metrics print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.profiles import OVS
from controller.cluster.cluster_member import ClusterMember
from controller.pulse import Pulse
from controller.rollout.mover import Mover
from controller.switches.current import Current
from controller.switches.events import TokenRefused
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.repair_keeper import Keeper

NONE = np.zeros((0, 0), np.bool_)


class SwitchState(NamedTuple):
    """A switch of the build; of one that is absent little is known.

    error: what it refuses or reports, or who else has its datapath id. foreign: rows and groups of
    others in it; shadowed: rows of others over ours. audited: seconds since it was read in full.
    holds: rows and groups that it had then. profile: if it is a lesser one than Open vSwitch's.
    """

    name: str
    datapath_id: int
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
    rejected: Counter[str]
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
        # In a move there are switches that only the new build has: no mask has them.
        drained = {*np.flatnonzero(keeper.drained).tolist()} if keeper else set[int]()
        return cls(
            fabric.current,
            tuple(_switches(fabric, drained)),
            tuple(f"{number:016x}" for number in sorted(fabric.unknown)),
            dict(fabric.differences),
            fabric.rejected.counts,
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
            "differences": self.differences,
            **{word: self._by_name(word) for word in ("foreign", "shadowed")},
            "errors": self._by_name("error"),
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
            "alive": self.beats,
            "bugs": self.bugs,
            "rejected_peers": self.rejected.total() - self.rejected[TokenRefused.name],
            **self.role,
        }

    def _by_name(self, member: str) -> dict[str, Any]:
        """What there is of this in switches."""
        get = attrgetter(member)
        return {one.name: value for one in self.switches if (value := get(one))}


def _switches(fabric: LiveFabric, drained: set[int]) -> Iterator[SwitchState]:
    """The switches of the build, by vertex."""
    names, present, now = fabric.names, fabric.present, fabric.clock()
    errors, duplicates, programs = fabric.errors, fabric.duplicates, fabric.current.programs
    for number, vertex in sorted(programs.by_datapath_id.items(), key=itemgetter(1)):
        name, there = names[vertex], present.get(vertex)
        error = duplicates.get(vertex) or errors.get(name, "")
        out = vertex in drained
        if there is None:
            yield SwitchState(name, number, drained=out, error=error)
            continue
        profile = programs.profile(vertex).name
        yield SwitchState(
            name,
            number,
            there.peer,
            fabric.state(vertex),
            out,
            error,
            there.foreign,
            there.shadowing,
            None if there.compared is None else round(now - there.compared, 1),
            there.holds,
            profile if profile != OVS.name else "",
        )
