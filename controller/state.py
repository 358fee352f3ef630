"""The state of a fabric and its controller at one moment, and its latest events.

`State.of` collects the state from the controller's parts. The status file has `State.status`; the
API, the status page and the metrics have what `Overview` makes of the state and of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from time import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.openflow.profiles import OVS
from compilers.wiring.placement import layout_or_whole
from controller.cluster.cluster_member import ClusterMember
from controller.rollout.mover import Mover
from controller.switches.current import Current
from controller.switches.events import (
    OF_A_LINK,
    OF_A_SWITCH,
    ActionTaken,
    BuildLoaded,
    Event,
    KeptEvents,
    LinkDown,
    TokenRefused,
)
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.discovery_alarms import MOST_NAMED
from controller.upkeep.repair_keeper import Keeper
from controller.watchdog import Watchdog
from inventory.problems import first_names

NO_LINKS = np.zeros((0, 0), np.bool_)
"""The mask of dead links (`State.dead`) where no keeper repairs the fabric: empty."""
SWITCHES_AT_ONCE = 250
"""Switches whose state is made for the status page before other work goes on."""


class SwitchState(NamedTuple):
    """A switch of the build; an absent one has only its name, number, drain and error."""

    name: str
    """The switch's node."""
    datapath_id: int
    """The switch's OpenFlow datapath id."""
    peer: str = ""
    """The address that it connects from."""
    state: str = "absent"
    """As `LiveFabric.state` names it: "in sync", "absent" …"""
    drained: bool = False
    """Whether traffic is routed around it."""
    error: str = ""
    """Its last error, or the peer that has the same datapath id; "" if there is neither."""
    foreign: int = 0
    """How many rows and groups it holds that are not this controller's."""
    shadowed: int = 0
    """How many foreign rows have precedence over overlapping rows of this controller."""
    audited: float | None = None
    """Seconds since its tables were last read in full; None if they never were."""
    holds: tuple[int, int] | None = None
    """How many rows and groups it held when its tables were last read."""
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
    """How many peers were rejected, by the name of the kind of event."""
    links: dict[str, Any] = field(default_factory=dict)
    """The state of the links, from the keeper."""
    dead: NDArray[np.bool_] = field(default_factory=lambda: NO_LINKS)
    """bool[S, K], whether link k of switch s is dead (`controller.upkeep.repair_keeper`)."""
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
        # A set and not the mask: during a move `_switches` also asks for vertices of the new build,
        # for which the mask has no entry.
        drained = {*np.flatnonzero(keeper.drained).tolist()} if keeper else set[int]()
        return cls(
            current=fabric.current,
            switches=tuple(_switches(fabric, drained)),
            unknown=tuple(f"{number:016x}" for number in sorted(fabric.unknown)),
            differences=dict(fabric.differences),
            rejected=fabric.rejected.counts,
            links=keeper.status() if keeper else {},
            dead=keeper.dead if keeper else NO_LINKS,
            rollout=mover.status() if mover else None,
            leading=member.status() if member else None,
            loop_runs=watchdog is None or watchdog.healthy,
            bugs=watchdog.internal_errors if watchdog else 0,
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
        return {key: str(leading[key]) for key in ("role", "leader")}

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
            "foreign": self._by_name("foreign"),
            "shadowed": self._by_name("shadowed"),
            "errors": self._by_name("error"),
            "links": self.links,
            "rollout": self.rollout,
            **({"leading": self.leading} if self.leading else {}),
        }

    def _by_name(self, field_name: str) -> dict[str, Any]:
        """The values of a field of `SwitchState` that are not empty or 0, by the switch's name."""
        values = {switch.name: getattr(switch, field_name) for switch in self.switches}
        return {name: value for name, value in values.items() if value}


def _switches(fabric: LiveFabric, drained: set[int]) -> Iterator[SwitchState]:
    """The state of each switch of the build, by vertex."""
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

    current_state: Callable[[], State]
    """Returns the fabric's state now."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of events by kind."""
    time_of_day: Callable[[], float] = time
    """The time of day in seconds since the epoch, as events have it."""
    _start_time: float = field(init=False)
    """When the controller started, by `time_of_day`."""
    _build_time: float = field(init=False)
    """When the current build was loaded, by `time_of_day`."""
    _state_events: dict[tuple[str, str], Event] = field(default_factory=dict)
    """The event by which a switch or a link came into its state, by its key (`_subjects`)."""
    _events: KeptEvents[dict[str, Any]] = field(default_factory=KeptEvents)
    """The latest events."""
    _number: int = 0
    """The number of the last event."""

    def __post_init__(self) -> None:
        self._start_time = self._build_time = self.time_of_day()

    def happened(self, event: Event) -> None:
        """Record an event."""
        self._number += 1
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        if event.type is BuildLoaded:
            self._build_time = event.at
        for subject in _subjects(event):
            # The first of several alike, since a switch that stays in sync is read again and again.
            before = self._state_events.get(subject)
            is_other_reason = event.type in OF_A_LINK and before and before.text != event.text
            if before is None or before.kind != event.kind or is_other_reason:
                self._state_events[subject] = event
        if event.type is not ActionTaken:  # only who may read the action log learns of these
            line = str(event)
            record = {"number": self._number, **event.record(), "line": line}
            self._events.add(self._number, event.kind, record)

    def events(self, after: int) -> list[dict[str, Any]]:
        """The kept events after this number."""
        return self._events.after(after)

    def health(self, state: State | None = None) -> dict[str, Any]:
        """The fabric in a few numbers."""
        state = state or self.current_state()
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
            "dead_links": int(np.count_nonzero(state.dead)) // 2,  # each is dead at both ends
            "doubtful_links": len(state.links.get("doubtful", ())),
            "trial_until": (state.rollout or {}).get("until"),
            "move_waits_for": (state.rollout or {}).get("waits_for", ""),
            "repairing": state.links.get("repairing", False),
            "change_waits_for": first_names(state.links.get("waits_for", ()), MOST_NAMED),
            "alive": state.loop_runs,
            "bugs": state.bugs,
            "rejected_peers": state.rejected.total() - state.rejected[TokenRefused.name],
            **state.role,
            "age": self._age(self._start_time),
            "build_age": self._age(self._build_time),
        }

    def state_for_page(
        self, state: State | None = None, yield_to_others: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """The state of each switch and of each dead link, for the status page.

        Args:
            state: the fabric's state; None for that of now.
            yield_to_others: called after each `SWITCHES_AT_ONCE` switches: other work goes on.
        """
        state = state or self.current_state()
        switches: list[dict[str, Any]] = []
        for first in range(0, len(state.switches), SWITCHES_AT_ONCE):
            switches += map(self._switch, state.switches[first : first + SWITCHES_AT_ONCE])
            yield_to_others()
        return self.health(state) | {
            "now": round(self.time_of_day(), 3),
            "switches": switches,
            "links": [
                link
                | {
                    "reason": self._why_dead(link, state),
                    "age": self._age_of(link["node"], link["port"]),
                }
                for link in dead_links(state)
            ],
            "unknown": list(state.unknown),
            "differences": state.differences,
            "last_event": self._number,
        }

    def _switch(self, switch: SwitchState) -> dict[str, Any]:
        """A switch for the status page."""
        in_text = {"datapath_id": f"{switch.datapath_id:016x}", "state": in_words(switch.state)}
        return switch._asdict() | in_text | {"age": self._age_of(switch.name)}

    def topology_for_page(self, build: Build | None = None) -> dict[str, Any]:
        """The racks, switches and links of a build, which the status page draws.

        They change only with the build. A link is a list: switch, port, far switch, far port.
        """
        build = build or self.current_state().build
        wiring, hardware, topology = build.wiring, build.hardware, build.topology
        racks = layout_or_whole(topology)
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

    def _why_dead(self, link: dict[str, Any], state: State) -> str:
        """Why a link is dead: as its last event says, or because it flaps.

        A controller that was restarted has no event of a link that it knows to be down.

        Args:
            link: as `dead_links` has it.
            state: the fabric's state.
        """
        event = self._state_events.get((link["node"], link["port"]))
        if event and event.type is LinkDown:
            return event.text
        name = "{node} {port} to {far_node} {far_port}".format_map(link)
        is_up = name not in state.links.get("down", ())
        return (
            "flaps" if is_up and name in state.links.get("suppressed", ()) else "down since before"
        )

    def _age(self, since: float) -> float:
        """Seconds since this time of day."""
        return round(max(self.time_of_day() - since, 0.0), 1)

    def _age_of(self, switch: str, port: str = "") -> float:
        """For how many seconds a switch, or the link at its port, has been in its state."""
        event = self._state_events.get((switch, port))
        return self._age(event.at if event else self._start_time)


def _subjects(event: Event) -> list[tuple[str, str]]:
    """The switch, or the link, that an event puts into another state, as keys of `_state_events`.

    A switch has the key (switch, ""). A link has two keys, the (switch, port) of its ends.
    """
    if event.type in OF_A_SWITCH:
        return [(event.switch, "")]
    if event.type in OF_A_LINK:
        return [(event.switch, event.port), (event.far_switch, event.far_port)]
    return []


def in_words(state: str) -> str:
    """The state of a switch for the status page, which shows all steps of programming as one."""
    return state if state in ("absent", "in sync", *AMISS) else "being programmed"


def dead_links(state: State) -> list[dict[str, Any]]:
    """The dead links for the status page, each from its end at the vertex of the smaller number."""
    if not state.dead.any():
        return []
    build = state.build
    # bool[S, K]: each dead link at one of its ends only.
    dead_once = state.dead & (build.wiring.far > np.arange(len(state.dead))[:, None])
    return [_ends(build, vertex, link) for vertex, link in np.argwhere(dead_once).tolist()]


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
