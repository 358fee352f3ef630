"""Decides which links are dead and which switches are drained, so that traffic avoids them.

The keeper (`controller.upkeep.repair_keeper`) reports here the states of ports and connections, and
whether a switch was read to hold its program. Discovery (`controller.upkeep.discovery`) reports
which cables carry its frames. The keeper then repairs the tables around `Links.dead` and
`Links.drained`.

A link is *broken* while a port at either end is down or set to drop packets, or while it carries
nothing or leads elsewhere, as discovery finds. It is *avoided* while it is up, but flaps
(`controller.upkeep.flap_damping`) or is drained by request. So is a link that may be up again: only
the record of another process says that its ports are down, and one of them is up again. A switch is
*avoided* when it

- stays disconnected for longer than the patience, or has not connected so long after the start,
- was read not to hold its program,
- flaps, that is, disconnects again and again, or
- is drained by an operator (`drain`), who may drain links, too.

What is avoided is nevertheless *spared*, that is, stays in use or is used again, if pairs of
switches with hosts have no path without it (`controller.upkeep.spared`). It is found anew whenever
something changes, and an event says so. So for the tables there is one state each, as of the last
`Links.update`:

- *dead*: a link that is broken, or avoided and not spared. No traffic takes it.
- *drained*: a switch that is avoided and not spared. It may still forward, so traffic to its own
  hosts goes to it, but no transit. The switch returns when it was read to hold its program.

An operator's own drain is one cause among others, and is called *requested* here. Switches that
disconnect within a fifth of the patience are drained together: that is one failure, and one repair.

No more switches are avoided for a cause that most switches have at once (disconnected, without
their program, flapping): the fault is then taken to be the controller's own. After most were
disconnected, the others have time to return (`controller.upkeep.management_outage`).

For each switch `Links` has a time from which it is avoided, other than by request:

| what happens | the time |
|---|---|
| `expect`: switches may connect from now on | after the time in which they have to |
| `left`: it disconnects | after the patience |
| `connected`, not yet avoided, and without its program | not before the patience from now |
| `connected`, not yet avoided, otherwise | never |
| `program_lost`: it was read not to hold its program | now |
| `take_over`: another process drained it | now |
| `return_switches`, after it was read to hold its program | never |

`expect`, `left` and `program_lost` only bring forward a time that is already there.

Another process can take the state over (`as_record`, `take_over`). No I/O; the caller passes the
time, and closes the connection of a switch whose messages are malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import (
    PORT,
    PORT_BLOCKED,
    PORT_DELETED,
    PORT_DOWN,
    PORT_NO_FORWARD,
    PORT_NO_RECEIVE,
)
from compilers.wiring.hardware import Hardware
from compilers.wiring.shared_risk import (
    RiskGroup,
    links_and_switches,
    name_in_other_build,
    names_in_other_build,
    resolve_name,
)
from compilers.wiring.wiring import Wiring
from controller.openflow.messages import port_status
from controller.openflow.multipart import records
from controller.settings import Duties
from controller.switches import events
from controller.switches.events import Event
from controller.upkeep.discovery import Discovery, LinkEnds
from controller.upkeep.discovery_alarms import MOST_NAMED, DiscoveryAlarms
from controller.upkeep.flap_damping import Penalties
from controller.upkeep.management_outage import ManagementOutage
from controller.upkeep.spared import AvoidedParts, Spared
from inventory.problems import InputError, first_names

BATCH_SHARE = 0.2
"""By this part of the patience a switch may be drained early, with one that left before it."""
DOWN = "port down"
"""The reason why a link is dead whose port is down."""
EVALUATION_PERIOD = 1.0
"""Seconds between two evaluations of discovery."""
LONGEST_NAME = 1000
"""Most characters of a name in a record: the look-up of an unknown name compares it with all names.
"""


class LinksUpdate(NamedTuple):
    """The result of `Links.update`."""

    has_changed: bool
    """Whether `Links.dead` or `Links.drained` has changed, or what has failed among these."""
    events: list[Event]
    """The events to report."""


class _LinkNames(NamedTuple):
    """The names at both ends of a link, as events have them."""

    node: str
    """The switch at one end."""
    port: str
    """The port at that end."""
    far_node: str
    """The switch at the other end."""
    far_port: str
    """The port at the other end."""


class _Cause(NamedTuple):
    """A reason for which switches are avoided."""

    affected: NDArray[np.bool_]
    """bool[S], the switches that it affects."""
    due: NDArray[np.bool_]
    """bool[S], those of them that are to be avoided for it now."""


class Links:
    """The state of all links and switches of a fabric, and what is drained by request.

    There are S switches, with at most K links each, and E links.

    Args:
        wiring: the wiring of the build.
        duties: what the controller does, and how long it waits.
        hardware: modules and panels, for groups that share a risk; None: the build has none.
    """

    def __init__(
        self, wiring: Wiring, duties: Duties | None = None, hardware: Hardware | None = None
    ) -> None:
        duties, switches = duties or Duties(), len(wiring.far)
        self.wiring, self.hardware = wiring, hardware
        self.requested: dict[str, RiskGroup] = {}
        """The groups that share a risk, links and nodes that are drained by request, by name. A
        group that this build lacks has no links and no switches."""
        self.cables = LinkEnds.of(wiring)
        """The ends of the E links."""
        links = len(self.cables.ends)
        self.patience, self._arrival = duties.patience, duties.arrival
        self.discovery = Discovery(wiring, duties.rate) if duties.discover else None
        """Finds which cables carry frames; None: it is switched off."""
        self.link_penalties = Penalties(links, duties.damping)
        """How much each link has flapped, and which are suppressed for it."""
        self.switch_penalties = Penalties(switches, duties.damping)
        """How much the connection of each switch has flapped, and which are suppressed for it."""
        self.dead = np.zeros(wiring.far.shape, np.bool_)
        """bool[S, K], whether a link is dead, as of the last `update`."""
        self.drained = np.zeros(switches, np.bool_)
        """bool[S], whether a switch is drained, as of the last `update`."""
        self.links_changed = False
        """Whether links have come or gone since the last `update`."""
        # Ports and links
        self._cabled = np.zeros(switches, np.bool_)
        """bool[S], the switches that have shown a port of their links, or have to have one."""
        self._shows_no_link = np.zeros(switches, np.bool_)
        """bool[S], the switches that have described their ports, none of them of a link."""
        self._port_down = np.zeros(self.dead.shape, np.bool_)
        """bool[S, K], the links whose port at this switch is down."""
        self._cabled_inputs = b"", b""
        """The last inputs of `_find_cabled`."""
        self._may_get_packets = np.zeros(switches, np.bool_)
        """bool[S], what `_find_cabled` last returned."""
        self._unseen = np.zeros(links, np.bool_)
        """bool[E], the links that carry nothing or lead elsewhere, as discovery finds."""
        self._alarms = DiscoveryAlarms(wiring, links, self._named)
        """The alarms of discovery."""
        self._broken = np.zeros(links, np.bool_)
        """bool[E], the links with a port that is down, and those unseen."""
        self._unconfirmed = np.zeros(links, np.bool_)
        """bool[E], the broken links of which only the record of another process says so: they may
        have come back since."""
        self._one_end_back = np.zeros(links, np.bool_)
        """bool[E], the links with a port that was down and works again, as its switch has told."""
        # Sparing
        self._spared_links = np.zeros(links, np.bool_)
        """bool[E], the avoided links that are used, as pairs have no path without them."""
        self._spared_switches = np.zeros(switches, np.bool_)
        """bool[S], the avoided switches that pass packets on, as pairs have no path without them.
        """
        self._last_failed = self._broken.tobytes(), bytes(switches)
        """The broken links, and the drained switches that were read not to hold their program, as
        of the last `update` that made new arrays."""
        self._last_inputs: tuple[bytes, ...] = ()
        """The last inputs of `_avoid`, which has nothing to do while they are the same."""
        self._hosts = np.count_nonzero(wiring.host_port, axis=1) > 0
        """bool[S], the switches with hosts."""
        # Drains by request
        self._requested_links = np.zeros(links, np.bool_)
        """bool[E], the links that an operator drains."""
        self._requested_switches = np.zeros(switches, np.bool_)
        """bool[S], the switches that an operator drains."""
        # Connections and programs of switches; the module's text says who sets `_drain_at`
        self._installed: NDArray[np.bool_] = np.count_nonzero(wiring.far >= 0, axis=1) > 0
        """bool[S], the switches that are installed: a planned node has no links yet, and never
        counts."""
        self._expected = np.zeros(switches, np.bool_)
        """bool[S], the switches that have connected, or are expected to (`expect`)."""
        self._connected = np.zeros(switches, np.bool_)
        """bool[S], the switches with a session."""
        self._without_program = np.zeros(switches, np.bool_)
        """bool[S], the switches that are disconnected, or were read not to hold their program."""
        self._read_without_program = np.zeros(switches, np.bool_)
        """bool[S], those of them that were read not to hold it, whether they are connected or not.
        """
        self._drain_at = np.full(switches, np.inf)
        """float[S], when each switch is avoided, other than by request; inf if it is not to be."""
        self._drain_reason = [""] * switches
        """Why each switch is avoided then, in words, by vertex."""
        self._outage = ManagementOutage(switches, self.patience)
        """Which switches have time to return after more than half of them were away at once."""
        self._programmed: set[int] = set()
        """The switches that were read to hold their program since the last `return_switches`."""
        # Reports
        self._events: list[Event] = []
        """The events to report at the next `update`."""
        self._last_evaluation = -np.inf
        """When discovery was evaluated last."""

    # Reports of switches

    def described(self, vertex: int, body: bytes, now: float) -> None:
        """Take a switch's description of all its ports; it counts as connected."""
        ports = records(body, PORT)
        numbers = ports["port"].astype(np.int64)
        faults = map(_fault, ports["config"].tolist(), ports["state"].tolist())
        self.connected(vertex, now)
        self.set_ports(vertex, dict(zip(numbers.tolist(), faults, strict=True)), now)
        if self.discovery:
            self.discovery.connected(vertex, numbers, now)

    def port_status(self, vertex: int, message: bytes, now: float) -> None:
        """Take a switch's message that a port has been added, removed or changed."""
        status = port_status(message)
        exists = status.reason != PORT_DELETED
        fault = _fault(status.config, status.state) if exists else DOWN
        self.set_port(vertex, status.port, fault, now)
        if self.discovery:
            self.discovery.set_port(vertex, status.port, exists)

    def set_ports(self, vertex: int, faults: dict[int, str], now: float) -> None:
        """Set all ports of a switch; the port of a link that it does not have is down.

        A switch that never had any of its links' ports is not cabled yet: nothing is known of its
        links. But if the port at the other end of one of them works, it has to have its own.

        Args:
            vertex: the switch.
            faults: by number of a port what is wrong with it, or "".
            now: the time.
        """
        link_at_port = self.cables.link_at_port[vertex]
        planned = np.flatnonzero(link_at_port >= 0)
        self._cabled[vertex] |= not faults.keys().isdisjoint(planned.tolist())
        self._shows_no_link[vertex] = not self._cabled[vertex]
        if self._cabled[vertex]:
            self._set_link_ports(vertex, planned, faults, now)
        for other in self._lacking_ports().tolist():
            self._cabled[other], self._shows_no_link[other] = True, False
            self._set_link_ports(
                other, np.flatnonzero(self.cables.link_at_port[other] >= 0), {}, now
            )

    def _lacking_ports(self) -> NDArray[np.intp]:
        """The switches that show no port of their links, though a port at a far end works."""
        if not self._shows_no_link.any():
            return np.zeros(0, np.intp)
        switch, link = self.cables.ends[..., 0], self.cables.ends[..., 1]  # int64[E, 2] each
        works = self._cabled[switch] & self._connected[switch] & ~self._port_down[switch, link]
        has_working_far_port = np.zeros(len(self._cabled), np.bool_)
        has_working_far_port[switch[:, ::-1][works]] = True
        return np.flatnonzero(self._shows_no_link & has_working_far_port)

    def _set_link_ports(
        self, vertex: int, planned: NDArray[np.intp], faults: dict[int, str], now: float
    ) -> None:
        """Set the ports of a switch's links.

        Args:
            vertex: the switch.
            planned: the numbers of these ports.
            faults: by number of a port that there is what is wrong with it, or "".
            now: the time.
        """
        link_at_port = self.cables.link_at_port[vertex]
        down = np.array([bool(faults.get(port, DOWN)) for port in planned.tolist()], np.bool_)
        for port in planned[self._port_down[vertex, link_at_port[planned]] != down].tolist():
            self.set_port(vertex, port, faults.get(port, DOWN), now)
        self._unconfirmed[self.cables.number[vertex, link_at_port[planned[down]]]] = False

    def set_port(self, vertex: int, port: int, fault: str, now: float) -> None:
        """Set the fault of a port, "" if it works; ports without a link are ignored."""
        link = self._link_at(vertex, port)
        if link < 0:
            return
        number = int(self.cables.number[vertex, link])
        if fault:
            self._unconfirmed[number] = False
        if self._port_down[vertex, link] != bool(fault):
            self._port_down[vertex, link] = bool(fault)
            self._one_end_back[number] = not fault
            self._update_links([number], now, fault)

    def update_seen(self, unseen: NDArray[np.bool_], seen: NDArray[np.bool_], now: float) -> None:
        """Take the result of discovery. A link in neither array stays as it was found last.

        Args:
            unseen: bool[E], the links that it should see as planned and does not.
            seen: bool[E], the links that it sees.
            now: the time.
        """
        before, self._unseen = self._unseen, (self._unseen | unseen) & ~seen
        self._unconfirmed &= ~unseen
        changed = np.flatnonzero(self._unseen != before)
        self._update_links(changed.tolist(), now)

    # Coming, going, holding a program

    def expect(self, now: float) -> None:
        """Expect all installed switches to connect; those that do not are drained after a while."""
        self._expected |= self._installed
        missing = np.flatnonzero(self._installed & ~self._connected & ~np.isfinite(self._drain_at))
        self._drain_at[missing] = now + self._arrival
        for vertex in missing.tolist():
            self._drain_reason[vertex] = "has not connected"

    def connected(self, vertex: int, now: float) -> None:
        """Note that a switch has connected.

        If it was disconnected before, it gets transit only when it holds its program
        (`program_held`).
        """
        self._expected[vertex] = self._connected[vertex] = True
        avoided = self.avoided[vertex]
        if self._without_program[vertex] and not avoided:
            if not self.switch_penalties.suppressed[vertex]:
                self._drain_reason[vertex] = "was not read to hold its program since it returned"
            self._drain_at[vertex] = max(self._drain_at[vertex], now + self.patience)
        elif not avoided:
            self._drain_at[vertex] = np.inf

    def left(self, vertex: int, now: float) -> None:
        """Note that a switch has disconnected: it is drained after the patience, or as it flaps.

        If more than half of the switches are away now, management has failed. So this was no flap
        of any of them, and earlier flaps of theirs are forgotten, too.
        """
        self._programmed.discard(vertex)
        if self.discovery:
            self.discovery.disconnected(vertex)
        self._connected[vertex] = False
        if not self._expected[vertex]:
            return
        self._schedule_drain(
            vertex, now + self.patience, f"has been disconnected for {self.patience:g} s"
        )
        is_away = self._without_program & ~self._connected
        if self._are_most(is_away):
            self._outage.begin(is_away)
            self.switch_penalties.forgive(is_away)
        elif self.switch_penalties.flap(vertex, now):
            self._drain_reason[vertex] = (
                f"flaps and is not used for {self.switch_penalties.wait(vertex, now):.0f} s"
            )

    def program_held(self, vertex: int) -> None:
        """Note that a switch was read to hold its program.

        It counts from the next `return_switches` on: one repair for all switches that return.
        """
        self._programmed.add(vertex)

    def program_lost(self, vertex: int, now: float) -> None:
        """Note that a switch does not hold its program: it is drained."""
        self._programmed.discard(vertex)
        self._read_without_program[vertex] = True
        self._schedule_drain(vertex, now, "does not hold its program")

    def drain(self, requested: dict[str, RiskGroup]) -> None:
        """Drain these groups by request, and end the drain of all other groups."""
        link_ends, switches = links_and_switches(self.wiring.far, requested.values())
        switches &= self._installed
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
        """Evaluate what discovery sees, once in each `EVALUATION_PERIOD`."""
        if self.discovery is None or now - self._last_evaluation < EVALUATION_PERIOD:
            return
        self._last_evaluation = now
        miswired, turn = self.discovery.miswired(now), self.discovery.interval
        self._events += self._alarms.miswire(miswired, turn, now)
        sight = self.discovery.sight(self._links_down(), now)
        self.update_seen(sight.unseen, sight.seen, now)
        # Unseen links stay out of use.
        self._events += self._alarms.doubt(sight.doubtful & ~self._unseen)

    def return_switches(self) -> None:
        """End the drain of switches that were read to hold their program since the last call."""
        programmed = [*self._programmed]
        self._drain_at[programmed] = np.inf
        self._without_program[programmed] = self._read_without_program[programmed] = False
        self._programmed.clear()

    def update(self, now: float) -> LinksUpdate:
        """Update `dead` and `drained`, and hand over the events since the last update."""
        released = self.link_penalties.release(now).tolist()
        for number in released:
            self._events.append(events.LinkReused(*self._end_names(number)))
        self.switch_penalties.release(now)
        dead, drained, avoided_before = self.dead, self.drained, self.avoided
        self._avoid(self._switches_to_avoid(now) | self._requested_switches, now)
        self.links_changed = False
        for vertex in np.flatnonzero(self.drained & ~drained).tolist():
            name, reason = self.wiring.names[vertex], self._drain_reason[vertex]
            self._events.append(events.SwitchDrained(name, reason))
        for vertex in np.flatnonzero(avoided_before & ~self.avoided).tolist():
            self._events.append(events.SwitchReturned(self.wiring.names[vertex]))
        # `_avoid` makes new arrays, if any of its inputs has changed.
        is_new = self.dead is not dead
        has_changed = is_new and bool((self.dead != dead).any() or (self.drained != drained).any())
        if is_new:  # what was avoided already may have failed now, while it was still in use
            lacking = self.drained & self._read_without_program
            failed = self._known_broken.tobytes(), lacking.tobytes()
            has_changed |= failed != self._last_failed
            self._last_failed = failed
        to_report, self._events = self._events, []
        return LinksUpdate(has_changed, to_report)

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool[S, K]: the links that are broken, now, as switches or discovery have told."""
        return self.cables.at_both_ends(self._known_broken)

    @property
    def broken_or_recorded(self) -> NDArray[np.bool_]:
        """bool[S, K]: these, and the links of which only a record says so."""
        return self.cables.at_both_ends(self._broken)

    @property
    def _known_broken(self) -> NDArray[np.bool_]:
        """bool[E]: the broken links, without those of which only a record says so."""
        return self._broken & ~self._unconfirmed

    @property
    def _perhaps_up(self) -> NDArray[np.bool_]:
        """bool[E]: the links of which only a record says that both ports are down, and one of the
        switches has told since that its port works.

        If the record has one port only, the other one works while the link is dead.
        """
        return self._one_end_back & self._broken & self._unconfirmed & ~self._unseen

    def least_avoided(
        self, dead: NDArray[np.bool_], drained: NDArray[np.bool_], now: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """What is avoided if these links and switches are, and all links that are `broken`.

        Args:
            dead: bool[S, K], links.
            drained: bool[S], switches.
            now: the time.

        Returns:
            bool[S, K] and bool[S]: these links and switches without those to spare.
        """
        links = self.cables.of_ends(dead)
        broken = self._known_broken | links & self._broken & ~self._perhaps_up
        spared = self._spared(links & ~broken, drained, broken, now)
        still_dead = self.cables.at_both_ends(broken | links & ~spared.links)
        return still_dead, drained & ~spared.switches

    @property
    def lacking_program(self) -> NDArray[np.bool_]:
        """bool[S]: the switches that were read not to hold their program."""
        return self._read_without_program

    def is_cabled(self, vertex: int) -> bool:
        """Whether a switch that is not in sync may forward: a port at a far end of a link is up.

        Only connected switches count, as what others have reported may be old. If the switch has no
        power, these ports are down. If no far end is connected, a neighbour that may forward itself
        may send it packets.
        """
        inputs = self._connected.tobytes(), self._port_down.tobytes()
        if inputs != self._cabled_inputs:  # asked for many switches at a time
            self._cabled_inputs, self._may_get_packets = inputs, self._find_cabled()
        return bool(self._may_get_packets[vertex])

    def _find_cabled(self) -> NDArray[np.bool_]:
        """bool[S], the switches for which `is_cabled` is true."""
        far, connected = self.wiring.far, self._connected
        if not connected.any():
            return self._installed
        linked = far >= 0
        sends = linked & connected[:, None]
        cabled = np.zeros_like(connected)
        cabled[far[sends & ~self._port_down]] = True
        is_seen = np.zeros_like(connected)
        is_seen[far[sends]] = True
        found = cabled.copy()
        while found.any():
            reached = np.zeros_like(connected)
            reached[far[linked & found[:, None]]] = True
            found = reached & ~is_seen & ~cabled
            cabled |= found
        return cabled

    def status(self) -> dict[str, Any]:
        """For the status file: links that are `down`, `doubtful` or `suppressed` and not used, and
        switches that are `drained`, by name; the drains by request (`asked`), and the misplaced
        cables (`miswired`).
        """
        return {
            "down": self._named(self._broken),
            "doubtful": self._named(self._alarms.doubtful),
            "suppressed": self._named(self.link_penalties.suppressed & ~self._spared_links),
            "drained": [self.wiring.names[vertex] for vertex in np.flatnonzero(self.drained)],
            "asked": [*self.requested],  # the drains by request
            "miswired": list(self._alarms.reported_miswires),
        }

    # The state for another process

    def as_record(self, now: float, wall: float, after: Wiring | None = None) -> dict[str, Any]:
        """The state for another process, for JSON. Each key has a list of entries:

        - `drained`: [node] of each drained switch. For another build, nodes that are only planned
          in this one count as drained: they hold no program yet, and perhaps never connect.
        - `asked`: [name] of each drain by request.
        - `down`, `unseen`: [node, port number] of each port that is down, and of an end of each
          link that discovery does not see.
        - `links`: [node, port number, until] of an end of each suppressed link; until when, in
          seconds since the epoch.
        - `switches`: [node, until] of each suppressed switch.

        A key without entries is left out.

        Args:
            now: the time.
            wall: the same in seconds since the epoch.
            after: the wiring of the build that the record is for; None for this one. Its names
                are used for the switches that it has.
        """
        before, port, ends = self.wiring, self.wiring.port, self.cables.ends
        names, asked = list(before.names), [*self.requested]
        if after is not None:
            other_names = names_in_other_build(before, after)
            names = [name or old for name, old in zip(other_names, names, strict=True)]
            asked = [
                name_in_other_build(group, before, other_names) for group in self.requested.values()
            ]

        def end_of(vertex: int, link: int) -> list[Any]:
            """The end of a link: the switch's name, and the port's number."""
            return [names[vertex], int(port[vertex, link])]

        def until(penalties: Penalties, number: int) -> float:
            """Until when a link or a switch is suppressed."""
            return round(wall + penalties.wait(number, now), -1)

        suppressed = np.flatnonzero(self.link_penalties.suppressed).tolist()
        drained = self.avoided if after is None else self.avoided | ~self._installed
        record = {
            "drained": [[names[vertex]] for vertex in np.flatnonzero(drained)],
            "down": [
                end_of(vertex, link) for vertex, link in np.argwhere(self._port_down).tolist()
            ],
            "unseen": [end_of(vertex, link) for vertex, link in ends[self._unseen, 0].tolist()],
            "links": [
                [*end_of(*ends[number, 0].tolist()), until(self.link_penalties, number)]
                for number in suppressed
            ],
            "switches": [
                [names[vertex], until(self.switch_penalties, vertex)]
                for vertex in np.flatnonzero(self.switch_penalties.suppressed).tolist()
            ],
            "asked": [[name] for name in asked],
        }
        return {member: entries for member, entries in record.items() if entries}

    def named_parts(
        self, links: NDArray[np.bool_], switches: NDArray[np.bool_]
    ) -> dict[str, list[list[Any]]]:
        """For a record: an end of each of these links, bool[S, K], and the switches, bool[S]."""
        names, ends = self.wiring.names, self.cables.ends[self.cables.of_ends(links), 0]
        return {
            "avoided_links": [[names[v], int(self.wiring.port[v, k])] for v, k in ends.tolist()],
            "avoided_switches": [[names[vertex]] for vertex in np.flatnonzero(switches)],
        }

    def parts_named(
        self, record: dict[str, Any]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
        """The links, bool[S, K], and switches, bool[S], of `named_parts`; None without them."""
        if not {"avoided_links", "avoided_switches"} <= record.keys():
            return None
        vertex_of = {name: vertex for vertex, name in enumerate(self.wiring.names)}
        links, switches = np.zeros_like(self._broken), np.zeros_like(self._connected)
        for name, port in _entries(record["avoided_links"], str, int):
            link = self._link_at(vertex_of[name], port) if name in vertex_of else -1
            if link >= 0:
                links[self.cables.number[vertex_of[name], link]] = True
        for (name,) in _entries(record["avoided_switches"], str):
            if name in vertex_of:
                switches[vertex_of[name]] = True
        return self.cables.at_both_ends(links), switches

    def take_over(self, record: dict[str, Any], now: float, wall: float) -> None:
        """Begin with the state of another process, perhaps of another version of polarfab.

        Nodes and ports that are not in this fabric are ignored, and nodes that are only planned.
        Drains by request of what is not in it are kept, for a build that has it again. Drained
        switches return when they were read to hold their program.

        Args:
            record: as `as_record` returns it.
            now: the time.
            wall: the same in seconds since the epoch.
        """
        asked = [name for (name,) in _entries(record.get("asked"), str)]
        self.drain(self.requested | requests_of(asked, self.wiring, self.hardware))
        installed = np.flatnonzero(self._installed).tolist()
        vertex_of = {self.wiring.names[vertex]: vertex for vertex in installed}

        def switches(member: str, *time: Any) -> Iterator[tuple[int, float]]:
            """The switches in a list of the record, each with a time, or inf without one."""
            for name, *until in _entries(record.get(member), str, *time):
                if name in vertex_of:
                    yield vertex_of[name], until[0] if until else inf

        def ends(member: str, *time: Any) -> Iterator[tuple[int, int, float]]:
            """The ends of links in a list of the record, each with a time, or inf without one."""
            for name, port, *until in _entries(record.get(member), str, int, *time):
                link = self._link_at(vertex_of[name], port) if name in vertex_of else -1
                if link >= 0:
                    yield vertex_of[name], link, until[0] if until else inf

        avoided = self.avoided
        for vertex, _ in switches("drained"):
            self._expected[vertex] = self._without_program[vertex] = avoided[vertex] = True
            self._drain_at[vertex], self._drain_reason[vertex] = now, "is drained since before"
        for vertex, link, _ in ends("down"):
            self._port_down[vertex, link] = True
        for vertex, link, _ in ends("unseen"):  # without discovery nothing tells that it is seen
            self._unseen[self.cables.number[vertex, link]] = self.discovery is not None
        for vertex, link, until in ends("links", (int, float)):
            self.link_penalties.hold(int(self.cables.number[vertex, link]), until - wall, now)
        for vertex, until in switches("switches", (int, float)):
            self.switch_penalties.hold(vertex, until - wall, now)
            self._drain_reason[vertex] = "flaps"
        broken_before, self._broken = self._broken, self._links_down() | self._unseen
        self._unconfirmed |= self._broken & ~broken_before
        self._avoid(avoided | self._requested_switches, now)

    # Computation

    def _links_down(self) -> NDArray[np.bool_]:
        """bool[E]: the links with a port that is down at either end."""
        down = np.zeros(len(self._broken) + 1, np.bool_)
        # `number` is E beyond the last link of a switch: that entry is cut off.
        down[self.cables.number[self._port_down]] = True
        return down[:-1]

    @property
    def avoided(self) -> NDArray[np.bool_]:
        """bool[S]: the switches that are avoided, as of the last `update`."""
        return self.drained | self._spared_switches

    def _avoid(self, switches: NDArray[np.bool_], now: float) -> None:
        """Update `dead` and `drained`, and report what has come to be spared.

        Args:
            switches: bool[S], the switches to avoid.
            now: the time.
        """
        perhaps_up = self._perhaps_up
        broken = self._broken & ~perhaps_up
        suppressed_or_requested = self.link_penalties.suppressed | self._requested_links
        links = suppressed_or_requested & ~broken | perhaps_up
        requested = self._requested_links, self._requested_switches
        inputs = tuple(
            array.tobytes()
            for array in (
                self._broken,
                self._unconfirmed,
                links,
                switches,
                self._read_without_program,
                *requested,
            )
        )
        if inputs == self._last_inputs:  # `update`, which is called often, is cheap
            return
        self._last_inputs = inputs
        links_before, switches_before = self._spared_links, self._spared_switches
        self._spared_links, self._spared_switches = self._spared(links, switches, broken, now)
        if (self._spared_links & ~links_before).any():
            names = self._named(self._spared_links)
            self._events.append(events.LinksKept(len(names), first_names(names, MOST_NAMED)))
        if (self._spared_switches & ~switches_before).any():
            spared = np.flatnonzero(self._spared_switches).tolist()
            names = [self.wiring.names[vertex] for vertex in spared]
            self._events.append(events.SwitchesKept(len(names), first_names(names, MOST_NAMED)))
        self.dead = self.cables.at_both_ends(broken | links & ~self._spared_links)
        self.drained = switches & ~self._spared_switches

    def _spared(
        self,
        links: NDArray[np.bool_],
        switches: NDArray[np.bool_],
        broken: NDArray[np.bool_],
        now: float,
    ) -> Spared:
        """What to spare of links and switches that are avoided.

        Args:
            links: bool[E], the links that are avoided.
            switches: bool[S], the switches that are avoided.
            broken: bool[E], the links that are broken besides.
            now: the time.
        """
        avoided = AvoidedParts(
            links=links,
            switches=switches,
            broken=broken,
            far=self.wiring.far,
            cables=self.cables,
            hosts=self._hosts,
            requested_links=self._requested_links,
            requested_switches=self._requested_switches,
            connected=self._connected,
            without_program=self._read_without_program,
            penalty=partial(self.link_penalties.penalty, now),
        )
        return avoided.spared()

    def _named(self, links: NDArray[np.bool_]) -> list[str]:
        """The names of these links: `n3 eth2 to n7 eth1`."""
        names = []
        for number in np.flatnonzero(links).tolist():
            switch, port, far_switch, far_port = self._end_names(number)
            names.append(f"{switch} {port} to {far_switch} {far_port}")
        return names

    def _end_names(self, number: int) -> _LinkNames:
        """The names at both ends of a link."""
        wiring, (switch, link) = self.wiring, self.cables.ends[number, 0].tolist()
        far = int(wiring.far[switch, link])
        port = wiring.port_name(switch, int(wiring.port[switch, link]))
        far_port = wiring.port_name(far, int(wiring.far_port[switch, link]))
        return _LinkNames(wiring.names[switch], port, wiring.names[far], far_port)

    def _link_at(self, vertex: int, port: int) -> int:
        """The index of the link at a port of a switch, or -1."""
        link_at_port = self.cables.link_at_port[vertex]
        return int(link_at_port[port]) if 0 <= port < len(link_at_port) else -1

    def _schedule_drain(self, vertex: int, drain_at: float, reason: str) -> None:
        """Drain a switch at this time, unless it is read to hold its program before."""
        self._without_program[vertex] = True
        if drain_at < self._drain_at[vertex]:
            self._drain_at[vertex] = drain_at
        if not self.avoided[vertex]:
            self._drain_reason[vertex] = reason

    def _switches_to_avoid(self, now: float) -> NDArray[np.bool_]:
        """bool[S]: the switches to avoid. Among those drained by request are only those that are
        avoided already.
        """
        before, connected = self.avoided, self._connected
        is_time_up: NDArray[np.bool_] = self._drain_at <= now
        if (is_time_up & ~before).any():
            is_time_up = self._drain_at <= now + BATCH_SHARE * self.patience
        unprogrammed = is_time_up | self._without_program
        is_programmed = np.zeros_like(connected)
        is_programmed[[*self._programmed]] = True  # it returns soon (`return_switches`)
        is_away = unprogrammed & ~connected
        if self._are_most(is_away):
            self._outage.begin(is_away)
        else:
            is_unread = self._without_program & ~self._read_without_program & ~is_programmed
            self._outage.update(connected, is_unread, now)
        is_due = is_time_up & ~is_programmed & ~self._outage.awaited
        flaps = self.switch_penalties.suppressed
        is_disconnected = _Cause(is_away, is_due & ~connected)
        lacks_program = _Cause(unprogrammed & connected, is_due & connected)
        avoided: NDArray[np.bool_] = before & (flaps | np.isfinite(self._drain_at))
        for cause in (is_disconnected, lacks_program, _Cause(flaps, flaps)):
            # More than half of all at once: the fault is taken to be the controller's own.
            if not self._are_most(cause.affected):
                avoided |= cause.due
        return avoided

    def _are_most(self, switches: NDArray[np.bool_]) -> bool:
        """Whether these switches, bool[S], are more than half of those that are expected."""
        return bool(2 * np.count_nonzero(switches) > np.count_nonzero(self._expected))

    def _update_links(self, numbers: Iterable[int], now: float, fault: str = DOWN) -> None:
        """Update the state of these links.

        Args:
            numbers: the numbers of the links.
            now: the time.
            fault: what is wrong with the port that has changed, if one of these links has it.
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
                reason = fault if is_down else "not seen"
            else:
                reason = "drained" if self._requested_links[number] else ""
            self._report_link(number, reason)
            if is_broken and self.link_penalties.flap(number, now):
                wait = self.link_penalties.wait(number, now)
                self._events.append(events.LinkSuppressed(*self._end_names(number), wait))

    def _report_link(self, number: int, reason: str) -> None:
        """Report that a link is down for a reason, or up if the reason is ""."""
        names = self._end_names(number)
        self._events.append(events.LinkDown(*names, reason) if reason else events.LinkUp(*names))


def requests_of(
    names: Iterable[str], wiring: Wiring, hardware: Hardware | None
) -> dict[str, RiskGroup]:
    """The groups of these names in a build, by name; one that it lacks has no links or switches."""
    requested = {}
    for name in names:
        requested[name] = RiskGroup(name)
        with suppress(InputError):
            requested[name] = resolve_name(wiring, hardware, name)
    return requested


def _entries(entries: Any, *types: Any) -> Iterator[list[Any]]:
    """The entries of a list that another process has written, those with values of these types."""
    for entry in entries if isinstance(entries, list) else ():
        has_length = isinstance(entry, list) and len(entry) == len(types)
        if has_length and all(map(_has_type, entry, types)):
            yield entry


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a value has this type. A bool has none, nor has a text too long for a name."""
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
