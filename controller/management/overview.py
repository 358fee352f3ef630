"""Overview of a fabric as plain data, for the API and the status page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import time
from typing import Any

import numpy as np

from compilers.tables.build import Build
from compilers.wiring.placement import clusters
from controller.management.action_log import ActionTaken
from controller.pulse import Pulse
from controller.switches.events import (
    BuildLoaded,
    DriftFound,
    Event,
    LinkDown,
    LinkReused,
    LinkSuppressed,
    LinkUp,
    ProgramForgotten,
    ProgramRefused,
    SwitchConnected,
    SwitchLeft,
    SwitchProgrammed,
)
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.repair_keeper import Keeper

Switched = (
    SwitchConnected | SwitchProgrammed | DriftFound | ProgramForgotten | ProgramRefused | SwitchLeft
)
"""Events that tell the state of a switch."""
KEPT = 1000
"""The number of events kept."""
BUSIEST = 12
"""The number of ports listed by their load; the metrics have all."""


@dataclass(slots=True)
class Overview:
    """A fabric and its latest events. wall: the time of day, as events have it."""

    fabric: LiveFabric
    ports: Keeper | None = None
    pulse: Pulse | None = None
    counts: dict[str, int] = field(default_factory=dict)
    wall: Callable[[], float] = time
    _began: float = field(init=False)
    _loaded: float = field(init=False)
    _since: dict[tuple[str, str], Event] = field(default_factory=dict)
    _events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _number: int = 0

    def __post_init__(self) -> None:
        self._began = self._loaded = self.wall()

    @property
    def build(self) -> Build:
        """The current build.

        Raises:
            ValueError: the fabric has no build.
        """
        if self.fabric.current.build is None:
            raise ValueError("a fabric without a build")
        return self.fabric.current.build

    def happened(self, event: Event) -> None:
        """Keep an event."""
        self._number += 1
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        if isinstance(event, BuildLoaded):
            self._loaded = event.at
        for place in _places(event):
            # Switches are read again and again; what counts is since when they are as they are.
            before = self._since.get(place)
            if before is None or before.kind != event.kind:
                self._since[place] = event
        if not isinstance(event, ActionTaken):  # who did what is for tokens that may read it
            line = str(event)
            self._events.append({"number": self._number, **event.record(), "line": line})

    def events(self, after: int) -> list[dict[str, Any]]:
        """The kept events after this number."""
        return [event for event in self._events if event["number"] > after]

    def health(self) -> dict[str, Any]:
        """The fabric in a few numbers."""
        fabric, ages = self.fabric, self.fabric.ages
        return {
            "build": fabric.identity,
            **fabric.proved(),
            "name": self.build.name,
            "complete": fabric.complete,
            "switches": fabric.expected,
            "connected": len(fabric.present),
            "in_sync": len(fabric.in_sync),
            "errors": len(fabric.errors) + len(fabric.duplicates),
            "shadowed": len(fabric.shadowed),
            "oldest_audit": max((ages[v] for v in fabric.in_sync), default=None),
            "dead_links": self._dead_links(),
            "trial_until": (fabric.parts.get("rollout", dict)() or {}).get("until"),
            "age": self._age(self._began),
            "build_age": self._age(self._loaded),
            "alive": self.pulse is None or self.pulse.beats,
            "bugs": self.pulse.bugs if self.pulse else 0,
            "rejected_peers": fabric.rejected.total,
            **self.leading(),
        }

    def leading(self) -> dict[str, str]:
        """The controller's role among several, and the leader's name."""
        part = self.fabric.parts.get("leading")
        found = part() if part else {"role": "leader", "leader": ""}
        return {word: str(found[word]) for word in ("role", "leader")}

    def state(self) -> dict[str, Any]:
        """Each switch, each dead link once, and the busiest ports."""
        status = self.fabric.status()
        return self.health() | {
            "now": round(self.wall(), 3),
            "switches": self._switches(status),
            "links": self._links(),
            "busiest": self._busiest(),
            "unknown": status["unknown"],
            "differences": status["differences"],
            "last_event": self._number,
        }

    def drift(self) -> dict[str, Any]:
        """Foreign rows found in switches, and the number of corrected rows."""
        status = self.fabric.status()
        return {word: status[word] for word in ("differences", "foreign", "shadowed", "errors")}

    def floor(self) -> dict[str, Any]:
        """Racks, switches, and links by pairs of switches and names of ports: what stays."""
        wiring, hardware = self.build.wiring, self.build.hardware
        racks = clusters(self.build.topology)
        real = hardware is not None and hardware.rack_names != hardware.cluster_names
        return {
            "build": self.fabric.identity,
            "title": self.build.topology.title(),
            "noun": "rack" if real else "cluster",
            "racks": hardware.rack_names if hardware else racks.names,
            "rack": (hardware.rack if hardware else racks.rack).tolist(),
            "kind": [self.build.topology.kinds[k] for k in self.build.topology.kind.tolist()],
            "names": list(wiring.names),
            "links": [
                [v, wiring.port_name(v, port), far, wiring.port_name(far, far_port)]
                for v, port, far, far_port in wiring.each_cable()
            ],
        }

    def _switches(self, status: dict[str, Any]) -> list[dict[str, Any]]:
        fabric, drained = self.fabric, self.ports.drained if self.ports else np.zeros(0, np.bool_)
        ages = fabric.ages
        return [
            {
                "name": name,
                "datapath_id": f"{datapath:016x}",
                "peer": fabric.present[vertex].peer if vertex in fabric.present else "",
                "state": _state(fabric.state(vertex)),
                # In a move there are switches that only the new build has.
                "drained": bool(drained[vertex : vertex + 1].any()),
                "error": status["errors"].get(name, ""),
                "foreign": status["foreign"].get(name, 0),
                "shadowed": status["shadowed"].get(name, 0),
                "audited": ages.get(vertex),
                "age": self._age_of(name),
            }
            for datapath, vertex in sorted(
                fabric.current.programs.by_datapath_id.items(), key=lambda item: item[1]
            )
            for name in [fabric.names[vertex]]
        ]

    def _links(self) -> list[dict[str, Any]]:
        """The dead links, each from its end at the switch of the smaller number."""
        if self.ports is None:
            return []
        once = self.ports.dead & (self.build.wiring.far > np.arange(len(self.ports.dead))[:, None])
        links = [self._ends(v, k) for v, k in np.argwhere(once).tolist()]
        return [link | self._died(link["node"], link["port"]) for link in links]

    def _busiest(self) -> list[dict[str, Any]]:
        """The ports that send most, the busiest first; none where loads are not measured."""
        load = self.ports.utilisation if self.ports else None
        if load is None:
            return []
        order = np.argsort(-load, axis=None, kind="stable")[:BUSIEST]
        found = zip(*(x.tolist() for x in np.unravel_index(order, load.shape)), strict=True)
        ports = [(v, k, round(float(load[v, k]), 3)) for v, k in found]
        return [self._ends(v, k) | {"utilisation": share} for v, k, share in ports if share > 0]

    def _ends(self, vertex: int, link: int) -> dict[str, Any]:
        """A link by the node and the name of the port at both ends."""
        wiring = self.build.wiring
        far = int(wiring.far[vertex, link])
        return {
            "node": wiring.names[vertex],
            "port": wiring.port_name(vertex, int(wiring.port[vertex, link])),
            "far_node": wiring.names[far],
            "far_port": wiring.port_name(far, int(wiring.far_port[vertex, link])),
        }

    def _died(self, switch: str, port: str) -> dict[str, Any]:
        """Why a link is dead, as far as events told, and for how many seconds."""
        event = self._since.get((switch, port))
        return {"reason": event.text if event else "", "age": self._age_of(switch, port)}

    def _age(self, since: float) -> float:
        return round(max(self.wall() - since, 0.0), 1)

    def _age_of(self, switch: str, port: str = "") -> float:
        """Seconds since a switch, or a link, is as it is."""
        event = self._since.get((switch, port))
        return self._age(event.at if event else self._began)

    def _dead_links(self) -> int:
        return int(np.count_nonzero(self.ports.dead)) // 2 if self.ports else 0


def _places(event: Event) -> list[tuple[str, str]]:
    """The switch, or the ends of the link, whose state an event tells; port "" is the switch."""
    if isinstance(event, Switched):
        return [(event.switch, "")]
    if isinstance(event, LinkDown | LinkUp | LinkSuppressed | LinkReused):
        return [(event.switch, event.port), (event.far_switch, event.far_port)]
    return []


def _state(state: str) -> str:
    """The state of a switch in words: those of its conversation are one."""
    return state if state in ("absent", "in sync", *AMISS) else "being programmed"
