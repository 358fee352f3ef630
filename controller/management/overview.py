"""A fabric and its latest events as plain data, for the API and the status page."""

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
from controller.state import State
from controller.switches.events import OF_A_LINK, OF_A_SWITCH, BuildLoaded, Event
from controller.switches.switch import AMISS

KEPT = 1000
"""The number of events kept."""
BUSIEST = 12
"""The number of ports listed by their load; the metrics have all."""


@dataclass(slots=True)
class Overview:
    """A fabric and its latest events, and their counts by kind.

    look: returns the fabric's state now. wall: the time of day, as events have it.
    """

    look: Callable[[], State]
    counts: dict[str, int] = field(default_factory=dict)
    wall: Callable[[], float] = time
    _began: float = field(init=False)
    _loaded: float = field(init=False)
    _since: dict[tuple[str, str], Event] = field(default_factory=dict)
    _events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _number: int = 0

    def __post_init__(self) -> None:
        self._began = self._loaded = self.wall()

    def happened(self, event: Event) -> None:
        """Keep an event."""
        self._number += 1
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        if event.of is BuildLoaded:
            self._loaded = event.at
        for place in _places(event):
            # Switches are read again and again; what counts is since when they are as they are.
            before = self._since.get(place)
            if before is None or before.kind != event.kind:
                self._since[place] = event
        if event.of is not ActionTaken:  # who did what is for tokens that may read it
            line = str(event)
            self._events.append({"number": self._number, **event.record(), "line": line})

    def events(self, after: int) -> list[dict[str, Any]]:
        """The kept events after this number."""
        return [event for event in self._events if event["number"] > after]

    def health(self, state: State | None = None) -> dict[str, Any]:
        """The fabric in a few numbers."""
        ages = {"age": self._age(self._began), "build_age": self._age(self._loaded)}
        return (state or self.look()).health | ages

    def state(self) -> dict[str, Any]:
        """Each switch, each dead link once, and the busiest ports."""
        state = self.look()
        return self.health(state) | {
            "now": round(self.wall(), 3),
            "switches": [
                one._asdict()
                | {"datapath_id": f"{one.datapath_id:016x}", "state": in_words(one.state)}
                | {"age": self._age_of(one.name)}
                for one in state.switches
            ],
            "links": [link | self._died(link["node"], link["port"]) for link in dead_links(state)],
            "busiest": _busiest(state),
            "unknown": list(state.unknown),
            "differences": state.differences,
            "last_event": self._number,
        }

    def floor(self) -> dict[str, Any]:
        """Racks, switches, and links by pairs of switches and names of ports: what stays."""
        build = self.look().build
        wiring, hardware, topology = build.wiring, build.hardware, build.topology
        racks = clusters(topology)
        real = hardware is not None and hardware.rack_names != hardware.cluster_names
        return {
            "build": build.identity,
            "title": topology.title(),
            "noun": "rack" if real else "cluster",
            "racks": hardware.rack_names if hardware else racks.names,
            "rack": (hardware.rack if hardware else racks.rack).tolist(),
            "kind": [topology.kinds[k] for k in topology.kind.tolist()],
            "names": list(wiring.names),
            "links": [
                [v, wiring.port_name(v, port), far, wiring.port_name(far, far_port)]
                for v, port, far, far_port in wiring.each_cable()
            ],
        }

    def _died(self, switch: str, port: str) -> dict[str, Any]:
        """Why a link is dead, as far as events say, and for how many seconds."""
        event = self._since.get((switch, port))
        return {"reason": event.text if event else "", "age": self._age_of(switch, port)}

    def _age(self, since: float) -> float:
        return round(max(self.wall() - since, 0.0), 1)

    def _age_of(self, switch: str, port: str = "") -> float:
        """Seconds since a switch, or a link, is as it is."""
        event = self._since.get((switch, port))
        return self._age(event.at if event else self._began)


def _places(event: Event) -> list[tuple[str, str]]:
    """The switch, or the ends of the link, whose state an event tells; port "" is the switch."""
    if event.of in OF_A_SWITCH:
        return [(event.switch, "")]
    if event.of in OF_A_LINK:
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
    return [_ends(build, v, k) for v, k in np.argwhere(once).tolist()]


def _busiest(state: State) -> list[dict[str, Any]]:
    """The ports that send most, the busiest first; none where loads are not measured."""
    if (load := state.load) is None:
        return []
    order = np.argsort(-load, axis=None, kind="stable")[:BUSIEST]
    found = zip(*(x.tolist() for x in np.unravel_index(order, load.shape)), strict=True)
    ports = [(v, k, round(float(load[v, k]), 3)) for v, k in found]
    build = state.build
    return [_ends(build, v, k) | {"utilisation": share} for v, k, share in ports if share > 0]


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
