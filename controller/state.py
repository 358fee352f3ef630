"""The state of a fabric, which the status file, the API, the status page and the metrics print."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from time import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.profiles import OVS
from compilers.wiring.placement import clusters
from controller.cluster.cluster_member import ClusterMember
from controller.rollout.mover import Mover
from controller.switches.current import Current
from controller.switches.events import (
    EVENTS_KEPT,
    OF_A_LINK,
    OF_A_SWITCH,
    ActionTaken,
    BuildLoaded,
    Event,
    TokenRefused,
)
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.repair_keeper import Keeper
from controller.watchdog import Watchdog

NO_LINKS = np.zeros((0, 0), np.bool_)
"""The dead links of a fabric that nobody repairs."""
SWITCHES_AT_ONCE = 250
"""Switches whose state is told before other work goes on."""


class SwitchState(NamedTuple):
    """A switch of the build; of an absent one only the first fields are known."""

    name: str
    """The switch's node."""
    datapath_id: int
    """The switch's OpenFlow datapath id."""
    peer: str = ""
    """The address that it connects from."""
    state: str = "absent"
    """Whether it is in sync, read, changed, or absent."""
    drained: bool = False
    """Whether traffic is routed around it."""
    error: str = ""
    """What it refuses or reports, or who else has its datapath id."""
    foreign: int = 0
    """How many rows and groups of others it holds."""
    shadowed: int = 0
    """How many rows of others are over ours."""
    audited: float | None = None
    """Seconds since it was read in full."""
    holds: tuple[int, int] | None = None
    """How many rows and groups it held then."""
    profile: str = ""
    """The name of its profile, if that is a lesser one than Open vSwitch's."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The state of a fabric and its controller."""

    current: Current
    """The build that switches are programmed with."""
    switches: tuple[SwitchState, ...]
    """The switches by vertex."""
    unknown: tuple[str, ...]
    """The datapath ids that are not in the build."""
    differences: dict[str, int]
    """How many rows and groups were added, changed and removed, and how often nothing differed."""
    rejected: Counter[str]
    """How many peers were turned away, by kind of event."""
    links: dict[str, Any] = field(default_factory=dict)
    """The state of the links, from the keeper."""
    dead: NDArray[np.bool_] = field(default_factory=lambda: NO_LINKS)
    """bool[S, K], whether a link is down at its port (`controller.upkeep.repair_keeper`)."""
    rollout: dict[str, Any] | None = None
    """The state of the update, from the mover; None without one."""
    leading: dict[str, Any] | None = None
    """Who leads, from the member of the cluster; None with one controller."""
    loop_runs: bool = True
    """Whether the controller's loop runs."""
    bugs: int = 0
    """The number of internal errors, exceptions in the controller's own code."""

    @classmethod
    def of(
        cls,
        fabric: LiveFabric,
        keeper: Keeper | None = None,
        mover: Mover | None = None,
        member: ClusterMember | None = None,
        watchdog: Watchdog | None = None,
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
            keeper.dead if keeper else NO_LINKS,
            mover.status() if mover else None,
            member.status() if member else None,
            watchdog is None or watchdog.healthy,
            watchdog.internal_errors if watchdog else 0,
        )

    @property
    def build(self) -> Build:
        """The current build."""
        if self.current.build is None:
            raise ValueError("a fabric without a build")
        return self.current.build

    @property
    def in_sync(self) -> list[str]:
        """The switches that were read to hold their program."""
        return [switch.name for switch in self.switches if switch.state == "in sync"]

    @property
    def complete(self) -> bool:
        """Whether every switch holds its program."""
        return all(switch.state == "in sync" for switch in self.switches)

    @property
    def proved(self) -> dict[str, str]:
        """What was proved of the current build, and what its policy promises beyond that."""
        return {"proved": str(self.current.proved), "caveat": self.current.proved.caveat}

    @property
    def role(self) -> dict[str, str]:
        """The controller's role among several, and the leader's name."""
        leading = self.leading or {"role": "leader", "leader": ""}
        return {word: str(leading[word]) for word in ("role", "leader")}

    @property
    def status(self) -> dict[str, Any]:
        """The state for the status file."""
        return {
            "build": self.current.identity,
            **self.proved,
            "expected": len(self.switches),
            "programmed": self.in_sync,
            "complete": self.complete,
            "amiss": {s.name: s.state for s in self.switches if s.state in AMISS},
            "unknown": list(self.unknown),
            "profiles": self._by_name("profile"),
            "differences": self.differences,
            **{word: self._by_name(word) for word in ("foreign", "shadowed")},
            "errors": self._by_name("error"),
            "links": self.links,
            "rollout": self.rollout,
            **({"leading": self.leading} if self.leading else {}),
        }

    def _by_name(self, member: str) -> dict[str, Any]:
        """The values of a field that are not empty, by the switch's name."""
        values = {switch.name: getattr(switch, member) for switch in self.switches}
        return {name: value for name, value in values.items() if value}


def _switches(fabric: LiveFabric, drained: set[int]) -> Iterator[SwitchState]:
    """The switches of the build, by vertex."""
    now, duplicates, programs = fabric.clock(), fabric.duplicates, fabric.current.programs
    for datapath_id, vertex in sorted(programs.by_datapath_id.items(), key=itemgetter(1)):
        name, switch = fabric.names[vertex], fabric.present.get(vertex)
        error = duplicates.get(vertex) or fabric.errors.get(name, "")
        is_drained = vertex in drained
        if switch is None:
            yield SwitchState(name, datapath_id, drained=is_drained, error=error)
            continue
        profile = programs.profile(vertex).name
        yield SwitchState(
            name=name,
            datapath_id=datapath_id,
            peer=switch.peer,
            state=fabric.state(vertex),
            drained=is_drained,
            error=error,
            foreign=switch.foreign.count,
            shadowed=switch.foreign.shadowing_rows,
            audited=None if switch.last_read_at is None else round(now - switch.last_read_at, 1),
            holds=switch.holds,
            profile=profile if profile != OVS.name else "",
        )


@dataclass(slots=True)
class Overview:
    """A fabric's state, its latest events, and their counts."""

    look: Callable[[], State]
    """Returns the fabric's state now."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of events by kind."""
    wall: Callable[[], float] = time
    """The time of day, as events have it."""
    _began: float = field(init=False)
    """When the controller began."""
    _loaded: float = field(init=False)
    """When the current build was loaded."""
    _since: dict[tuple[str, str], Event] = field(default_factory=dict)
    """The event since which a switch or a link is as it is (`_places`)."""
    _events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    """The latest events."""
    _number: int = 0
    """The number of the last event."""

    def __post_init__(self) -> None:
        self._began = self._loaded = self.wall()

    def happened(self, event: Event) -> None:
        """Keep an event."""
        self._number += 1
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        if event.type is BuildLoaded:
            self._loaded = event.at
        for place in _places(event):
            # Switches are read again and again; what counts is since when they are as they are.
            before = self._since.get(place)
            if before is None or before.kind != event.kind:
                self._since[place] = event
        if event.type is not ActionTaken:  # who did what is for who may read the file
            line = str(event)
            self._events.append({"number": self._number, **event.record(), "line": line})

    def events(self, after: int) -> list[dict[str, Any]]:
        """The kept events after this number."""
        return [event for event in self._events if event["number"] > after]

    def health(self, state: State | None = None) -> dict[str, Any]:
        """The fabric in a few numbers."""
        state = state or self.look()
        switches, build = state.switches, state.current.build
        audited = [switch.audited for switch in switches if switch.state == "in sync"]
        return {
            "build": state.current.identity,
            **state.proved,
            "name": build.name if build else "",
            "complete": state.complete,
            "switches": len(switches),
            "connected": sum(switch.state != "absent" for switch in switches),
            "in_sync": len(state.in_sync),
            "errors": sum(bool(switch.error) for switch in switches),
            "shadowed": sum(bool(switch.shadowed) for switch in switches),
            "oldest_audit": max((age for age in audited if age is not None), default=None),
            "dead_links": int(np.count_nonzero(state.dead)) // 2,
            "doubtful_links": len(state.links.get("doubtful", ())),
            "trial_until": (state.rollout or {}).get("until"),
            "move_waits_for": (state.rollout or {}).get("waits_for", ""),
            "alive": state.loop_runs,
            "bugs": state.bugs,
            "rejected_peers": state.rejected.total() - state.rejected[TokenRefused.name],
            **state.role,
            "age": self._age(self._began),
            "build_age": self._age(self._loaded),
        }

    def state(
        self, state: State | None = None, breathe: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """The state of each switch and of each dead link, for the status page.

        Args:
            state: the fabric's state; None to look.
            breathe: called now and then, so that other work goes on.
        """
        state = state or self.look()
        switches: list[dict[str, Any]] = []
        for first in range(0, len(state.switches), SWITCHES_AT_ONCE):
            switches += map(self._switch, state.switches[first : first + SWITCHES_AT_ONCE])
            breathe()
        return self.health(state) | {
            "now": round(self.wall(), 3),
            "switches": switches,
            "links": [link | self._died(link["node"], link["port"]) for link in dead_links(state)],
            "unknown": list(state.unknown),
            "differences": state.differences,
            "last_event": self._number,
        }

    def _switch(self, switch: SwitchState) -> dict[str, Any]:
        """A switch for the status page."""
        in_text = {"datapath_id": f"{switch.datapath_id:016x}", "state": in_words(switch.state)}
        return switch._asdict() | in_text | {"age": self._age_of(switch.name)}

    def floor(self, build: Build | None = None) -> dict[str, Any]:
        """Racks, switches, and links by pairs of switches and names of ports: what stays."""
        build = build or self.look().build
        wiring, hardware, topology = build.wiring, build.hardware, build.topology
        racks = clusters(topology)
        has_racks = hardware is not None and hardware.rack_names != hardware.cluster_names
        return {
            "build": build.identity,
            "title": topology.title(),
            "noun": "rack" if has_racks else "cluster",
            "racks": hardware.rack_names if hardware else racks.names,
            "rack": (hardware.rack if hardware else racks.rack).tolist(),
            "kind": [topology.kinds[kind] for kind in topology.kind.tolist()],
            "names": list(wiring.names),
            "links": [
                [vertex, wiring.port_name(vertex, port), far, wiring.port_name(far, far_port)]
                for vertex, port, far, far_port in wiring.each_cable()
            ],
        }

    def _died(self, switch: str, port: str) -> dict[str, Any]:
        """Why a link is dead, as far as events say, and for how many seconds."""
        event = self._since.get((switch, port))
        return {"reason": event.text if event else "", "age": self._age_of(switch, port)}

    def _age(self, since: float) -> float:
        """Seconds since this time."""
        return round(max(self.wall() - since, 0.0), 1)

    def _age_of(self, switch: str, port: str = "") -> float:
        """Seconds since a switch, or a link, is as it is."""
        event = self._since.get((switch, port))
        return self._age(event.at if event else self._began)


def _places(event: Event) -> list[tuple[str, str]]:
    """The switch, or the ends of the link, whose state an event tells; port "" is the switch."""
    if event.type in OF_A_SWITCH:
        return [(event.switch, "")]
    if event.type in OF_A_LINK:
        return [(event.switch, event.port), (event.far_switch, event.far_port)]
    return []


def in_words(state: str) -> str:
    """The state of a switch in words: those of its conversation are one."""
    return state if state in ("absent", "in sync", *AMISS) else "being programmed"


def dead_links(state: State) -> list[dict[str, Any]]:
    """The dead links, each from its end at the switch of the smaller number."""
    if not state.dead.any():
        return []
    build = state.build
    once = state.dead & (build.wiring.far > np.arange(len(state.dead))[:, None])
    return [_ends(build, vertex, link) for vertex, link in np.argwhere(once).tolist()]


def _ends(build: Build, vertex: int, link: int) -> dict[str, Any]:
    """A link by the node and the name of the port at both ends."""
    wiring = build.wiring
    far = int(wiring.far[vertex, link])
    return {
        "node": wiring.names[vertex],
        "port": wiring.port_name(vertex, int(wiring.port[vertex, link])),
        "far_node": wiring.names[far],
        "far_port": wiring.port_name(far, int(wiring.far_port[vertex, link])),
    }
