"""The link monitor: port states and LLDP frames in, link state and its changes out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import time
from typing import Any

import numpy as np

from compilers.audit.resolve import PortFinder
from compilers.audit.wiring_audit import WiringAudit
from compilers.targets.openflow.protocol import (
    PORT,
    PORT_BLOCKED,
    PORT_DELETED,
    PORT_DOWN,
    PORT_NO_FORWARD,
    PORT_NO_RECEIVE,
)
from compilers.wiring.hardware import Hardware
from compilers.wiring.shared_risk import RiskGroup, find, of_groups
from compilers.wiring.wiring import Wiring
from controller.openflow.messages import port_status
from controller.openflow.multipart import records
from controller.settings import Duties
from controller.switches.events import (
    CableMisplaced,
    CablesRight,
    Event,
    LinkDown,
    LinkReused,
    LinkSuppressed,
    LinkUp,
    SwitchDrained,
    SwitchReturned,
)
from controller.upkeep.discovery import Discovery
from controller.upkeep.link_state import DOWN, Links, News
from inventory.problems import InputError

LOOK = 1.0
"""Seconds between two evaluations of discovery."""
BY_LINK, BY_SWITCH = frozenset({"down", "unseen", "links"}), frozenset({"drained", "switches"})
"""What is known of links, and of switches."""
TIMED = frozenset({"links", "switches"})
"""What is known until a time."""


class Watching:
    """The observed state of a wiring's links, and what is drained of them by request.

    asked: the groups that share a risk, links and nodes that are drained by request, by name.
    """

    def __init__(
        self,
        wiring: Wiring,
        duties: Duties,
        clock: Callable[[], float],
        wall: Callable[[], float] = time,
        hardware: Hardware | None = None,
    ) -> None:
        self.hardware, self.asked = hardware, dict[str, RiskGroup]()
        self.wiring, self._clock, self._wall = wiring, clock, wall
        self.links = Links(wiring, duties.damping, duties.patience)
        self._arrival = duties.arrival
        self.discovery = Discovery(wiring, duties.rate) if duties.discover else None
        self._ports, self._looked = PortFinder(wiring), -np.inf
        self._miswired: WiringAudit | None = None
        self._told: tuple[str, ...] = ()
        self._found: tuple[str, ...] = ()
        self._since = 0.0
        self._events: list[Event] = []
        self._fit: set[int] = set()

    def described(self, vertex: int, body: bytes) -> None:
        """A switch has described its ports.

        Raises:
            Malformed: it cannot be read.
        """
        known, now = records(body, PORT), self._clock()
        numbers = known["port"].astype(np.int64)
        faults = map(_fault, known["config"].tolist(), known["state"].tolist())
        self.links.connected(vertex, now)
        self.links.ports(vertex, dict(zip(numbers.tolist(), faults, strict=True)), now)
        if self.discovery:
            self.discovery.present(vertex, numbers, now)

    def arrived(self, vertex: int) -> None:
        """A switch has connected: it is not gone, though its turn to be programmed may be far."""
        self.links.connected(vertex, self._clock())

    def expect(self) -> None:
        """Switches may connect from now on; those that have not after a while are gone."""
        self.links.expect(self._clock() + self._arrival)

    def fit(self, vertex: int, fit: bool) -> None:
        """A switch was read to hold its program, which counts from the next look on, with that of
        others: one repair for all that return. Or it is known not to hold it.
        """
        if fit:
            self._fit.add(vertex)
        else:
            self._fit.discard(vertex)
            self.links.unfit(vertex, self._clock())

    def left(self, vertex: int) -> None:
        """A switch has left."""
        self._fit.discard(vertex)
        self.links.left(vertex, self._clock())
        if self.discovery:
            self.discovery.present(vertex, None, self._clock())

    def port_status(self, vertex: int, message: bytes) -> None:
        """A port has been added, removed or changed.

        Raises:
            Malformed: it cannot be read.
        """
        said = port_status(message)
        there = said.reason != PORT_DELETED
        fault = _fault(said.config, said.state) if there else DOWN
        self.links.port(vertex, said.port, fault, self._clock())
        if self.discovery:
            self.discovery.port(vertex, said.port, there)

    def packet_in(self, vertex: int, message: bytes) -> None:
        """A packet-in has arrived.

        Raises:
            Malformed: it cannot be read.
        """
        if self.discovery:
            self.discovery.received(vertex, message, self._clock())

    def frames(self) -> list[tuple[int, bytes]]:
        """Packet-outs to send now, by vertex."""
        return self.discovery.due(self._clock()) if self.discovery else []

    def look(self) -> None:
        """Update switches by what was read, links by discovery, and look for miswires."""
        now = self._clock()
        for vertex in self._fit:
            self.links.fit(vertex)
        self._fit.clear()
        if self.discovery is None or now - self._looked < LOOK:
            return
        self._looked = now
        self.links.unseen(*self.discovery.unseen(now), now)
        self._miswired = self.discovery.miswired(now)
        moves = self._miswired.moves if self._miswired else ()
        told = tuple(move.sentence(self._ports) for move in moves)
        if told != self._found:
            self._found, self._since = told, now
        # One turn of all switches: before that, some of several moved cables may not be seen.
        if told == self._told or now - self._since < self.discovery.interval:
            return
        if self._miswired:
            count, name = len(self._miswired.misplaced), self._ports.name
            for move, text in zip(moves, told, strict=True):
                ends = (self._ports.node(move.a), name(move.a), self._ports.node(move.b))
                event = CableMisplaced(count, text, move.kind, *ends, name(move.b))
                self._events.append(event)
        if not told:
            self._events.append(CablesRight())
        self._told = told

    def ask(self, asked: dict[str, RiskGroup]) -> None:
        """Drain these groups, and no others any more."""
        self.asked = asked
        self.links.ask(*of_groups(self.wiring.far, asked.values()))

    def settle(self) -> tuple[bool, list[Event]]:
        """Whether dead links or drained switches have changed, and the events to report."""
        changed, news = self.links.settle(self._clock())
        events, self._events = self._events, []
        return changed, events + [self._event(item) for item in news]

    def status(self) -> dict[str, Any]:
        """Dead links, drained switches and miswires, for the status file."""
        cables, names = self.links.cables, self.wiring.names
        broken = self.links.broken
        suppressed = self.links.penalties.suppressed
        return {
            "down": [self._name(*cables.ends[n, 0]) for n in np.flatnonzero(broken)],
            "suppressed": [self._name(*cables.ends[n, 0]) for n in np.flatnonzero(suppressed)],
            "drained": [names[v] for v in np.flatnonzero(self.links.drained)],
            "asked": [*self.asked],
            "miswired": list(self._told),
        }

    def known(self) -> dict[str, Any]:
        """What another process has to know of links and switches (`Links.known`), by names of nodes
        and numbers of ports.
        """
        names, port = self.wiring.names, self.wiring.port

        def named(what: str, one: list[Any]) -> list[Any]:
            vertex, *rest = one
            if what in BY_LINK:
                rest[0] = int(port[vertex, rest[0]])
            return [names[vertex], *rest]

        found = self.links.known(self._clock(), self._wall())
        known = {what: [named(what, one) for one in some] for what, some in found.items()}
        return known | ({"asked": [[name] for name in self.asked]} if self.asked else {})

    def take_over(self, known: dict[str, Any]) -> None:
        """Begin with what another process has known, perhaps one of another version of polarfab; of
        nodes, ports and groups that are here.
        """
        asked, names = dict(self.asked), known.get("asked", ())
        for one in names if isinstance(names, list) else ():
            with suppress(InputError, TypeError, ValueError, AttributeError):
                (name,) = one
                asked[name] = find(self.wiring, self.hardware, name)
        self.ask(asked)
        vertex_of = {name: vertex for vertex, name in enumerate(self.wiring.names)}
        place, found = self.links.cables.place, dict[str, list[list[Any]]]()
        for what in known.keys() & (BY_LINK | BY_SWITCH):
            if what == "unseen" and not self.discovery:
                continue  # nothing would tell that they are seen again
            form: list[Any] = [str, *[int] * (what in BY_LINK), *[(int, float)] * (what in TIMED)]
            for one in known[what] if isinstance(known[what], list) else ():
                if not isinstance(one, list) or len(one) != len(form):
                    continue
                fits = all(isinstance(word, kind) for word, kind in zip(one, form, strict=True))
                if not fits or one[0] not in vertex_of:
                    continue
                vertex, *rest = vertex_of[one[0]], *one[1:]
                if what in BY_LINK:
                    in_range = 0 <= rest[0] < place.shape[1]
                    rest[0] = int(place[vertex, rest[0]]) if in_range else -1
                    if rest[0] < 0:
                        continue
                found.setdefault(what, []).append([vertex, *rest])
        self.links.take_over(found, self._clock(), self._wall())

    def _event(self, news: News) -> Event:
        if news.what == "drained":
            return SwitchDrained(self.wiring.names[news.switch], news.why)
        if news.what == "back":
            return SwitchReturned(self.wiring.names[news.switch])
        ends = self._ends(news.switch, news.link)
        if news.what == "down":
            return LinkDown(*ends, reason=news.why)
        if news.what == "suppressed":
            return LinkSuppressed(*ends, seconds=news.seconds)
        return (LinkUp if news.what == "up" else LinkReused)(*ends)

    def _name(self, switch: int, link: int) -> str:
        """A link's name: `n3 eth2 to n7 eth1`."""
        return LinkUp(*self._ends(switch, link)).node

    def _ends(self, switch: int, link: int) -> tuple[str, str, str, str]:
        """The node and port names at both ends of a link."""
        w, far = self.wiring, int(self.wiring.far[switch, link])
        here = w.port_name(switch, int(w.port[switch, link]))
        return w.names[switch], here, w.names[far], w.port_name(far, int(w.far_port[switch, link]))


def _fault(config: int, state: int) -> str:
    """Why a port carries nothing, or "": its state and the flags that were set on it."""
    if (config | state) & PORT_DOWN:
        return DOWN
    flags = (
        (config & PORT_NO_RECEIVE, "no-receive"),
        (config & PORT_NO_FORWARD, "no-forward"),
        (state & PORT_BLOCKED, "blocked"),
    )
    found = [name for is_set, name in flags if is_set]
    return f"port set to {', '.join(found)}" if found else ""
