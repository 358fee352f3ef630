"""Decides which links are dead and which switches are drained, so that traffic avoids them.

The keeper (`controller.upkeep.repair_keeper`) reports here the states of ports and connections, and
whether a switch was read to hold its program. Discovery (`controller.upkeep.discovery`) reports
which cables carry its frames. The keeper then repairs the tables around `Links.dead` and
`Links.drained`.

A link is *broken* while a port at either end is down or set to drop packets, or while it carries
nothing or leads elsewhere, as discovery finds. It is *dead* while it is broken, or suppressed as it
flaps (`controller.upkeep.flap_damping`), or drained by request. But a link that only flaps or is
drained stays in use if something else has failed, and switches have no path without it. A switch is
*drained* when it

- stays disconnected for longer than the patience, or has not connected so long after the start,
- was read not to hold its program,
- flaps, that is, disconnects again and again, or
- is drained by an operator (`drain`), who may drain links, too.

A drained switch may still forward. So traffic to its own hosts still goes to it, but no transit. It
returns when it was read to hold its program. Switches that disconnect within a fifth of the
patience are drained together: that is one failure, and one repair.

No more switches are drained for a cause that most switches have at once (disconnected, without
their program, flapping): the fault is then taken to be the controller's own. A switch is not
drained either if others have no path without it. It may forward all the same, and an event says so.

Another process can take the state over (`as_record`, `take_over`). No I/O; the caller passes the
time, and closes the connection of a switch whose messages are malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.audit.port_finder import PortFinder
from compilers.audit.wiring_audit import WiringAudit
from compilers.targets.openflow.protocol import (
    PORT,
    PORT_BLOCKED,
    PORT_DELETED,
    PORT_DOWN,
    PORT_NO_FORWARD,
    PORT_NO_RECEIVE,
)
from compilers.topology.distance import components, table_of
from compilers.wiring.hardware import Hardware
from compilers.wiring.shared_risk import RiskGroup, find, of_groups
from compilers.wiring.wiring import Wiring
from controller.openflow.messages import port_status
from controller.openflow.multipart import records
from controller.settings import Duties
from controller.switches import events
from controller.switches.events import Event
from controller.upkeep.discovery import Discovery, LinkEnds
from controller.upkeep.flap_damping import Penalties
from inventory.problems import InputError

BATCH_SHARE = 0.2
"""By this part of the patience a switch may be drained early, with one that left before it."""
DOWN = "port down"
"""The reason why a link is dead whose port is down."""
EVALUATION_PERIOD = 1.0
"""Seconds between two evaluations of discovery."""
LONGEST_NAME = 1000
"""Most characters of a name in a record: the look-up of an unknown name compares it with all names.
"""
MOST_NAMED = 3
"""Links that an alarm names."""


class Links:
    """The state of all links and switches of a fabric, and what is drained by request.

    There are S switches, with at most K links each, and E links.

    Attributes:
        dead: bool[S, K], whether a link is dead, as of the last `update`.
        drained: bool[S], whether a switch is drained, as of the last `update`.
        links_changed: whether links have come or gone since.
        requested: the groups that share a risk, links and nodes that are drained by request, by
            name.
    """

    def __init__(
        self, wiring: Wiring, duties: Duties | None = None, hardware: Hardware | None = None
    ) -> None:
        duties, order = duties or Duties(), len(wiring.far)
        self.wiring, self.hardware = wiring, hardware
        self.requested: dict[str, RiskGroup] = {}
        self.cables = LinkEnds.of(wiring)
        self.patience, self._arrival = duties.patience, duties.arrival
        self.discovery = Discovery(wiring, duties.rate) if duties.discover else None
        self.penalties = Penalties(len(self.cables.ends), duties.damping)
        self.flaps = Penalties(order, duties.damping)
        self.dead = np.zeros(wiring.far.shape, np.bool_)
        self.drained = np.zeros(order, np.bool_)
        size = len(self.cables.ends)
        self._cabled = np.zeros(order, np.bool_)
        """bool[S], the switches that have shown a port of their links."""
        self._port_down = np.zeros((*self.dead.shape,), np.bool_)
        """bool[S, K], the links whose port at this switch is down."""
        self._unseen = np.zeros(size, np.bool_)
        """bool[E], the links that carry nothing or lead elsewhere, as discovery finds."""
        self._doubtful = np.zeros(size, np.bool_)
        """bool[E], the links that discovery doubts, and that stay in use."""
        self._broken = np.zeros(size, np.bool_)
        """bool[E], the links with a port that is down, and those unseen."""
        self._spared = np.zeros(size, np.bool_)
        """bool[E], the links that flap or are drained by request and stay in use, as switches have
        no path without them."""
        self._requested_links = np.zeros(size, np.bool_)
        """bool[E], the links that an operator drains."""
        self._requested_switches = np.zeros(order, np.bool_)
        """bool[S], the switches that an operator drains."""
        self._expected = np.zeros(order, np.bool_)
        """bool[S], the switches that take part."""
        self._connected = np.zeros(order, np.bool_)
        """bool[S], the switches with a session."""
        self._without_program = np.zeros(order, np.bool_)
        """bool[S], the switches that are disconnected, or were read not to hold their program."""
        self._drain_at = np.full(order, np.inf)
        """float[S], when each switch is drained; inf if it is not to be."""
        self._drain_reason = [""] * order
        """Why each switch is drained then, in words, by vertex."""
        self._programmed: set[int] = set()
        """The switches that were read to hold their program since the last `return_switches`."""
        self._events: list[Event] = []
        """The events to report at the next `update`."""
        self._withheld = np.zeros(order, np.bool_)
        """bool[S], the switches that are not drained, as pairs would have no path."""
        self._withhold_inputs: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        """The last inputs of `_withhold`, as bytes; with the same ones `_withheld` still holds."""
        self.links_changed = False
        self._ports = PortFinder(wiring)
        """The names of ports."""
        self._last_evaluation = -np.inf
        """When discovery was evaluated last."""
        self._reported_miswires: tuple[str, ...] = ()
        """The miswires that were reported, in sentences."""
        self._latest_miswires: tuple[str, ...] = ()
        """The miswires of the last evaluation, in sentences."""
        self._miswires_since = 0.0
        """Since when every evaluation finds these miswires."""

    # Reports of switches

    def described(self, vertex: int, body: bytes, now: float) -> None:
        """Take a switch's description of all its ports; it counts as connected."""
        ports = records(body, PORT)
        numbers = ports["port"].astype(np.int64)
        faults = map(_fault, ports["config"].tolist(), ports["state"].tolist())
        self.connected(vertex, now)
        self.ports(vertex, dict(zip(numbers.tolist(), faults, strict=True)), now)
        if self.discovery:
            self.discovery.present(vertex, numbers, now)

    def port_status(self, vertex: int, message: bytes, now: float) -> None:
        """Take a switch's message that a port has been added, removed or changed."""
        status = port_status(message)
        exists = status.reason != PORT_DELETED
        fault = _fault(status.config, status.state) if exists else DOWN
        self.port(vertex, status.port, fault, now)
        if self.discovery:
            self.discovery.port(vertex, status.port, exists)

    def ports(self, vertex: int, faults: dict[int, str], now: float) -> None:
        """Set all ports of a switch, by number: what is wrong, or ""; a missing port is down.

        A switch that never had any of its links' ports is not cabled yet, and its links are
        unknown.
        """
        place = self.cables.place[vertex]
        planned = np.flatnonzero(place >= 0)
        self._cabled[vertex] |= not faults.keys().isdisjoint(planned.tolist())
        if not self._cabled[vertex]:
            return
        down = np.array([bool(faults.get(port, DOWN)) for port in planned.tolist()], np.bool_)
        for port in planned[self._port_down[vertex, place[planned]] != down].tolist():
            self.port(vertex, port, faults.get(port, DOWN), now)

    def port(self, vertex: int, port: int, fault: str, now: float) -> None:
        """Set the fault of a port, "" if it works; ports without a link are ignored."""
        link = self._link(vertex, port)
        if link >= 0 and self._port_down[vertex, link] != bool(fault):
            self._port_down[vertex, link] = bool(fault)
            self._update_links([int(self.cables.number[vertex, link])], now, fault)

    def update_seen(self, unseen: NDArray[np.bool_], seen: NDArray[np.bool_], now: float) -> None:
        """Take the result of discovery. For links in neither array the last result holds.

        Args:
            unseen: bool[E], the links that it should see as planned and does not.
            seen: bool[E], the links that it sees.
            now: the time.
        """
        before, self._unseen = self._unseen, (self._unseen | unseen) & ~seen
        changed = np.flatnonzero(self._unseen != before)
        self._update_links(changed.tolist(), now)

    # Coming, going, holding a program

    def expect(self, now: float) -> None:
        """Expect all switches to connect; those that have not after a while are drained."""
        self._expected[:] = True
        missing = np.flatnonzero(~self._connected & ~np.isfinite(self._drain_at))
        self._drain_at[missing] = now + self._arrival
        for vertex in missing.tolist():
            self._drain_reason[vertex] = "has not connected"

    def connected(self, vertex: int, now: float) -> None:
        """Note that a switch has connected.

        If it was disconnected before, it gets transit only when it holds its program
        (`program_held`).
        """
        self._expected[vertex] = self._connected[vertex] = True
        if self._without_program[vertex] and not self.drained[vertex]:
            if not self.flaps.suppressed[vertex]:
                self._drain_reason[vertex] = "was not read to hold its program since it returned"
            self._drain_at[vertex] = max(self._drain_at[vertex], now + self.patience)
        elif not self.drained[vertex]:
            self._drain_at[vertex] = np.inf

    def left(self, vertex: int, now: float) -> None:
        """Note that a switch has disconnected: it is drained after the patience, or as it flaps."""
        self._programmed.discard(vertex)
        if self.discovery:
            self.discovery.present(vertex, None, now)
        self._connected[vertex] = False
        if not self._expected[vertex]:
            return
        self._schedule_drain(
            vertex, now + self.patience, f"has been disconnected for {self.patience:g} s"
        )
        if self.flaps.flap(vertex, now):
            self._drain_reason[vertex] = (
                f"flaps and is not used for {self.flaps.wait(vertex, now):.0f} s"
            )

    def program_held(self, vertex: int) -> None:
        """Note that a switch was read to hold its program.

        It counts from the next `return_switches` on: one repair for all switches that return.
        """
        self._programmed.add(vertex)

    def program_lost(self, vertex: int, now: float) -> None:
        """Note that a switch does not hold its program: it is drained."""
        self._programmed.discard(vertex)
        self._schedule_drain(vertex, now, "does not hold its program")

    def drain(self, requested: dict[str, RiskGroup]) -> None:
        """Drain these groups by request, and end the drain of all other groups."""
        link_ends, switches = of_groups(self.wiring.far, requested.values())
        switch, link = self.cables.ends[:, 0].T
        links = link_ends[switch, link]
        for number in np.flatnonzero((links != self._requested_links) & ~self._broken).tolist():
            self._report_link(number, "drained" if links[number] else "")
        for vertex in np.flatnonzero(switches).tolist():
            self._drain_reason[vertex] = "was drained by request"
        self.requested, self.links_changed = requested, True
        self._requested_links, self._requested_switches = links, switches

    # Evaluation

    def evaluate(self, now: float) -> None:
        """Evaluate what was reported: programs of switches, and discovery's links and miswires."""
        self.return_switches()
        if self.discovery is None or now - self._last_evaluation < EVALUATION_PERIOD:
            return
        self._last_evaluation = now
        self._report_miswires(self.discovery.miswired(now), self.discovery.interval, now)
        sight = self.discovery.unseen(self._links_down(), now)
        self.update_seen(sight.unseen, sight.seen, now)
        self._report_doubtful(sight.doubtful & ~self._unseen)  # unseen links stay out of use

    def return_switches(self) -> None:
        """End the drain of switches that were read to hold their program since the last call."""
        programmed = [*self._programmed]
        self._drain_at[programmed] = np.inf
        self._without_program[programmed] = False
        self._programmed.clear()

    def _report_doubtful(self, doubtful: NDArray[np.bool_]) -> None:
        """Report links that have become doubtful, and when none is doubtful any more."""
        if (doubtful & ~self._doubtful).any():
            names = self._named(doubtful)
            self._events.append(events.LinksDoubtful(len(names), _first_of(names)))
        elif self._doubtful.any() and not doubtful.any():
            self._events.append(events.LinksCertain())
        self._doubtful = doubtful

    def _report_miswires(self, miswired: WiringAudit | None, turn: float, now: float) -> None:
        """Report miswires that discovery has found for a turn of all switches.

        Before that, it may have seen only some of several moved cables.

        Args:
            miswired: the misplaced cables; None if there are none.
            turn: the seconds in which every switch has sent its frames.
            now: the time.
        """
        moves = miswired.moves if miswired else ()
        miswires = tuple(move.sentence(self._ports) for move in moves)
        if miswires != self._latest_miswires:
            self._latest_miswires, self._miswires_since = miswires, now
        if miswires == self._reported_miswires or now - self._miswires_since < turn:
            return
        if miswired:
            count, name = len(miswired.misplaced), self._ports.name
            for move, text in zip(moves, miswires, strict=True):
                ends = (self._ports.node(move.a), name(move.a), self._ports.node(move.b))
                event = events.CableMisplaced(count, text, move.kind, *ends, name(move.b))
                self._events.append(event)
        if not miswires:
            self._events.append(events.CablesRight())
        self._reported_miswires = miswires

    def update(self, now: float) -> tuple[bool, list[Event]]:
        """Update `dead` and `drained`; return whether they changed, and the events to report."""
        released = self.penalties.release(now).tolist()
        for number in released:
            self._events.append(events.LinkReused(*self._ends(number)))
        self.flaps.release(now)
        dead = self.dead
        if self.links_changed or released:  # else `update`, which is called often, is cheap
            dead, self.links_changed = self._find_dead_links(now), False
        drained = self._switches_to_drain(now, dead) | self._requested_switches
        for vertex in np.flatnonzero(drained != self.drained).tolist():
            name = self.wiring.names[vertex]
            if drained[vertex]:
                self._events.append(events.SwitchDrained(name, self._drain_reason[vertex]))
            else:
                self._events.append(events.SwitchReturned(name))
        has_changed = dead is not self.dead and bool((dead != self.dead).any())
        if (drained != self.drained).any():
            has_changed = self.links_changed = True  # other links may be needed now
        self.dead, self.drained = dead, drained
        to_report, self._events = self._events, []
        return has_changed, to_report

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool[S, K]: the links that are broken, now."""
        return np.append(self._broken, False)[self.cables.number]

    def status(self) -> dict[str, Any]:
        """Dead links, drained switches and miswires, for the status file."""
        return {
            "down": self._named(self._broken),
            "doubtful": self._named(self._doubtful),
            "suppressed": self._named(self.penalties.suppressed & ~self._spared),
            "drained": [self.wiring.names[vertex] for vertex in np.flatnonzero(self.drained)],
            "asked": [*self.requested],  # the drains by request
            "miswired": list(self._reported_miswires),
        }

    # The state for another process

    def as_record(self, now: float, wall: float) -> dict[str, Any]:
        """The state for another process, as JSON, by names of nodes and numbers of ports.

        It has the drained switches and the drains by request, the ports that are down, the links
        that discovery does not see, and until when links and switches are suppressed, in seconds
        since the epoch. It is empty where nothing is dead or drained.

        Args:
            now: the time.
            wall: the same in seconds since the epoch.
        """
        names, port, ends = self.wiring.names, self.wiring.port, self.cables.ends

        def end(vertex: int, link: int) -> list[Any]:
            """The end of a link: the switch's name, and the port's number."""
            return [names[vertex], int(port[vertex, link])]

        def until(penalties: Penalties, number: int) -> float:
            """Until when a link or a switch is suppressed."""
            return round(wall + penalties.wait(number, now), -1)

        suppressed = np.flatnonzero(self.penalties.suppressed).tolist()
        record = {
            "drained": [[names[vertex]] for vertex in np.flatnonzero(self.drained)],
            "down": [end(vertex, link) for vertex, link in np.argwhere(self._port_down).tolist()],
            "unseen": [end(vertex, link) for vertex, link in ends[self._unseen, 0].tolist()],
            "links": [
                [*end(*ends[number, 0].tolist()), until(self.penalties, number)]
                for number in suppressed
            ],
            "switches": [
                [names[vertex], until(self.flaps, vertex)]
                for vertex in np.flatnonzero(self.flaps.suppressed).tolist()
            ],
            "asked": [[name] for name in self.requested],  # the drains by request
        }
        return {member: entries for member, entries in record.items() if entries}

    def take_over(self, record: dict[str, Any], now: float, wall: float) -> None:
        """Begin with the state of another process, perhaps of another version of polarfab.

        Nodes, ports and groups that are not in this fabric are ignored. Drained switches return
        when they were read to hold their program.

        Args:
            record: as `as_record` returns it.
            now: the time.
            wall: the same in seconds since the epoch.
        """
        requested = dict(self.requested)
        for (name,) in _entries(record.get("asked"), str):
            with suppress(InputError):
                requested[name] = find(self.wiring, self.hardware, name)
        self.drain(requested)
        vertex_of = {name: vertex for vertex, name in enumerate(self.wiring.names)}

        def switches(what: str, *time: Any) -> Iterator[tuple[int, float]]:
            """The switches in a list of the record, each with a time if it has one."""
            for name, *until in _entries(record.get(what), str, *time):
                if name in vertex_of:
                    yield vertex_of[name], until[0] if until else inf

        def ends(what: str, *time: Any) -> Iterator[tuple[int, int, float]]:
            """The ends of links in a list of the record, each with a time if it has one."""
            for name, port, *until in _entries(record.get(what), str, int, *time):
                link = self._link(vertex_of[name], port) if name in vertex_of else -1
                if link >= 0:
                    yield vertex_of[name], link, until[0] if until else inf

        for vertex, _ in switches("drained"):
            self._expected[vertex] = self._without_program[vertex] = self.drained[vertex] = True
            self._drain_at[vertex], self._drain_reason[vertex] = now, "is drained since before"
        for vertex, link, _ in ends("down"):
            self._port_down[vertex, link] = True
        for vertex, link, _ in ends("unseen"):  # without discovery nothing tells that it is seen
            self._unseen[self.cables.number[vertex, link]] = self.discovery is not None
        for vertex, link, until in ends("links", (int, float)):
            self.penalties.hold(int(self.cables.number[vertex, link]), until - wall, now)
        for vertex, until in switches("switches", (int, float)):
            self.flaps.hold(vertex, until - wall, now)
            self._drain_reason[vertex] = "flaps"
        self._broken = self._links_down() | self._unseen
        self.dead = self._find_dead_links(now)

    # Computation

    def _links_down(self) -> NDArray[np.bool_]:
        """bool[E]: the links with a port that is down at either end."""
        down = np.zeros(len(self._broken) + 1, np.bool_)
        # `number` is E beyond the last link of a switch: that entry is cut off.
        down[self.cables.number[self._port_down]] = True
        return down[:-1]

    def _find_dead_links(self, now: float) -> NDArray[np.bool_]:
        """bool[S, K]: the links that are broken, suppressed or drained by request.

        Also updates `_spared`, and reports links that have come to it.
        """
        requested = self._requested_links
        avoided = (self.penalties.suppressed | requested) & ~self._broken
        before, self._spared = self._spared, self._needed_links(avoided, self._broken, now)
        if (self._spared & requested).any():
            # A switch without hosts may be drained with all its links, although nothing has failed.
            self._spared &= ~(
                requested & self._needed_links(requested, np.zeros_like(requested), now)
            )
        if (self._spared & ~before).any():
            names = self._named(self._spared)
            self._events.append(events.LinksKept(len(names), _first_of(names)))
        return np.append(self._broken | avoided & ~self._spared, False)[self.cables.number]

    def _needed_links(
        self, avoided: NDArray[np.bool_], broken: NDArray[np.bool_], now: float
    ) -> NDArray[np.bool_]:
        """bool[E]: avoided links that have to stay in use, else the fabric would fall apart.

        These are as few as possible. Links with smaller penalties are chosen first, and last those
        that are drained by request.

        Args:
            avoided: bool[E], links that are up, and flap or are drained by request.
            broken: bool[E], links that cannot be used.
            now: the time.
        """
        needed: NDArray[np.bool_] = np.zeros(len(avoided), np.bool_)
        numbers = np.flatnonzero(avoided)
        if not len(numbers):
            return needed
        far, passes = self.wiring.far, ~self.drained
        unused = np.append(avoided | broken, False)
        live = (far >= 0) & ~unused[self.cables.number] & passes[far]
        component = components(table_of(np.where(live & passes[:, None], far, -1)))
        for vertex in np.flatnonzero(self.drained & live.any(axis=1)).tolist():
            # A drained switch has no transit: it joins the component of one neighbour.
            component[vertex] = component[far[vertex, live[vertex]][0]]
        penalty = self.penalties.penalty(now, numbers)
        order = np.lexsort((penalty, self._requested_links[numbers]))
        for number in numbers[order]:
            near_end, far_end = self.cables.ends[number, :, 0].tolist()
            if component[near_end] == component[far_end]:
                continue
            needed[number] = True
            if passes[near_end] and passes[far_end]:
                component[component == component[far_end]] = component[near_end]
            elif passes[near_end]:
                component[far_end] = component[near_end]
            else:
                component[near_end] = component[far_end]
        return needed

    def _named(self, links: NDArray[np.bool_]) -> list[str]:
        """The names of these links: `n3 eth2 to n7 eth1`."""
        names = []
        for number in np.flatnonzero(links).tolist():
            switch, port, far_switch, far_port = self._ends(number)
            names.append(f"{switch} {port} to {far_switch} {far_port}")
        return names

    def _ends(self, number: int) -> tuple[str, str, str, str]:
        """The node and port names at both ends of a link."""
        wiring, (switch, link) = self.wiring, self.cables.ends[number, 0].tolist()
        far = int(wiring.far[switch, link])
        port = wiring.port_name(switch, int(wiring.port[switch, link]))
        far_port = wiring.port_name(far, int(wiring.far_port[switch, link]))
        return wiring.names[switch], port, wiring.names[far], far_port

    def _link(self, vertex: int, port: int) -> int:
        """The index of the link at a port of a switch, or -1."""
        place = self.cables.place[vertex]
        return int(place[port]) if 0 <= port < len(place) else -1

    def _schedule_drain(self, vertex: int, drain_at: float, reason: str) -> None:
        """Drain a switch at this time, unless it is read to hold its program before."""
        self._without_program[vertex] = True
        if drain_at < self._drain_at[vertex]:
            self._drain_at[vertex] = drain_at
        if not self.drained[vertex]:
            self._drain_reason[vertex] = reason

    def _switches_to_drain(self, now: float, dead: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[S]: the switches that get no transit, without those drained by request.

        Args:
            now: the time.
            dead: bool[S, K], the dead links.
        """
        is_due: NDArray[np.bool_] = self._drain_at <= now
        if (is_due & ~self.drained).any():
            is_due = self._drain_at <= now + BATCH_SHARE * self.patience
        flaps, connected = self.flaps.suppressed, self._connected
        unprogrammed = is_due | self._without_program
        drained: NDArray[np.bool_] = self.drained & (is_due | flaps | np.isfinite(self._drain_at))
        # Of each cause, the switches that it affects, and those that are drained for it now.
        causes = (
            (unprogrammed & ~connected, is_due & ~connected),
            (unprogrammed & connected, is_due & connected),
            (flaps, flaps),
        )
        for affected, newly_drained in causes:
            # More than half of all at once: the fault is taken to be the controller's own.
            if 2 * np.count_nonzero(affected) <= np.count_nonzero(self._expected):
                drained |= newly_drained
        return drained & ~self._withhold(drained & ~self.drained, dead)

    def _withhold(
        self, newly_drained: NDArray[np.bool_], dead: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[S]: the switches that are not drained, as others would have no path without them.

        Args:
            newly_drained: bool[S], the switches that are to be drained now.
            dead: bool[S, K], the dead links.
        """
        inputs = newly_drained.tobytes(), dead.tobytes(), self.drained.tobytes()
        if inputs == self._withhold_inputs:
            return self._withheld
        self._withhold_inputs, before = inputs, self._withheld
        self._withheld = np.zeros(len(newly_drained), np.bool_)
        drained, count = self.drained.copy(), self._component_count(self.drained, dead)
        if (
            newly_drained.any()
            and self._component_count(self.drained | newly_drained, dead) > count
        ):
            for vertex in np.flatnonzero(newly_drained).tolist():
                drained[vertex] = True
                if self._component_count(drained, dead) > count:
                    drained[vertex], self._withheld[vertex] = False, True
        if (self._withheld & ~before).any():
            withheld = np.flatnonzero(self._withheld).tolist()
            names = [self.wiring.names[vertex] for vertex in withheld]
            self._events.append(events.SwitchesKept(len(names), _first_of(names)))
        return self._withheld

    def _component_count(self, drained: NDArray[np.bool_], dead: NDArray[np.bool_]) -> int:
        """The number of components that have a switch with hosts and a live link.

        Args:
            drained: bool[S], the switches that forward no transit.
            dead: bool[S, K], the dead links.
        """
        far = self.wiring.far
        live = (far >= 0) & ~dead
        has_hosts = (self.wiring.host_port > 0).any(axis=1) & live.any(axis=1)
        to_transit = live & ~drained[far]
        stranded = int(np.count_nonzero(has_hosts & drained & ~to_transit.any(axis=1)))
        component = components(table_of(np.where(to_transit & ~drained[:, None], far, -1)))
        return stranded + len(np.unique(component[has_hosts & ~drained]))

    def _update_links(self, numbers: Iterable[int], now: float, fault: str = DOWN) -> None:
        """Update the state of these links.

        Args:
            numbers: of the links.
            now: the time.
            fault: what is wrong with the port that has changed.
        """
        for number in numbers:
            is_down = any(
                bool(self._port_down[vertex, link])
                for vertex, link in self.cables.ends[number].tolist()
            )
            is_broken = is_down or bool(self._unseen[number])
            if is_broken == self._broken[number]:
                continue
            self._broken[number], self.links_changed = is_broken, True
            if is_broken:
                why = fault if is_down else "not seen"
            else:
                why = "drained" if self._requested_links[number] else ""
            self._report_link(number, why)
            if is_broken and self.penalties.flap(number, now):
                wait = self.penalties.wait(number, now)
                self._events.append(events.LinkSuppressed(*self._ends(number), wait))

    def _report_link(self, number: int, why: str) -> None:
        """Report that a link is down for a reason, or up if the reason is ""."""
        ends = self._ends(number)
        self._events.append(events.LinkDown(*ends, why) if why else events.LinkUp(*ends))


def _first_of(names: list[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _entries(entries: Any, *form: Any) -> Iterator[list[Any]]:
    """The entries of this form of a list that another process has written."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list) and len(entry) == len(form) and all(map(_has_type, entry, form)):
            yield entry


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a value has a type; a truth value has none, nor has a text too long for a name."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > LONGEST_NAME):
        return False
    return isinstance(value, kind)


def _fault(config: int, state: int) -> str:
    """Why a port carries nothing, or "": its state and the flags that were set on it."""
    if (config | state) & PORT_DOWN:
        return DOWN
    flags = (
        (config & PORT_NO_RECEIVE, "no-receive"),
        (config & PORT_NO_FORWARD, "no-forward"),
        (state & PORT_BLOCKED, "blocked"),
    )
    names = [name for is_set, name in flags if is_set]
    return f"port set to {', '.join(names)}" if names else ""
