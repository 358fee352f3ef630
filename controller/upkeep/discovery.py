"""Discovers cables by signed LLDP frames that switches send out of all ports except hosts'.

The keeper (`controller.upkeep.repair_keeper`) sends the packet-outs of `due`, and passes packet-ins
to `received`. `controller.upkeep.link_state` evaluates the result (`sight`, `miswired`).

Connected switches send in turn, at most `rate` frames a second in all out of ports to other
switches, and besides a frame a turn out of each free port. A frame that arrives at
another switch shows a cable in one direction. A planned link counts as seen if frames have arrived
in both directions within three turns. `controller.upkeep.link_silence` decides which links carry
nothing. A port that receives frames from another port than planned is miswired; the as-wired check
(`compilers.audit`) finds the plugs to move. Foreign, forged and old frames and frames of hosts are
ignored. No I/O.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from secrets import token_bytes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.audit.resolve import ObservedCables, likeliest
from compilers.audit.socket_numbers import SocketNumbers
from compilers.audit.wiring_audit import WiringAudit, check
from compilers.wiring.wiring import Wiring, links_by_port
from controller.openflow.messages import packet_in, packets_out, turn_echo
from controller.settings import FRAME_RATE
from controller.upkeep.link_silence import SILENT_FROM, LinkSilence
from controller.upkeep.lldp_frames import frames, read_frame

LEAST_PERIOD = 2.0
"""Least seconds between two turns of a switch."""
NEVER_SEEN = -np.inf
"""The time of the last frame where none has come."""
NO_PORT, NO_DIRECTION = -1, -1
"""In place of the number of a port, or of a direction, where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnds:
    """The links of a wiring by number."""

    number: NDArray[np.int64]
    """int64[S, K], the number of each switch's k-th link; E beyond its last one."""
    ends: NDArray[np.int64]
    """int64[E, 2, 2], for both ends the switch and the link's index there."""
    link_at_port: NDArray[np.int64]
    """int64[S, ports + 1], the index of the link at each port of a switch, or -1."""

    @classmethod
    def of(cls, wiring: Wiring) -> LinkEnds:
        """Number the links of a wiring by their first end."""
        (switch, link), link_at_port = wiring.links(), links_by_port(wiring.far, wiring.port)
        far = wiring.far[switch, link]
        back = link_at_port[far, wiring.far_port[switch, link]]
        number = np.full(wiring.far.shape, len(far))
        number[switch, link] = number[far, back] = np.arange(len(far))
        ends = np.stack((switch, link, far, back), axis=1).reshape(-1, 2, 2)
        return cls(number, ends.astype(np.int64), link_at_port.astype(np.int64))

    def at_both_ends(self, links: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[S, K]: these links, bool[E], at both ends."""
        # `number` is E beyond the last link of a switch: the entry that is appended, False.
        return np.append(links, False)[self.number]

    def of_ends(self, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[E]: the links whose first ends are among these, bool[S, K]."""
        links: NDArray[np.bool_] = ends[*self.ends[:, 0].T]
        return links


@dataclass(frozen=True, slots=True, eq=False)
class LinkSightings:
    """The state of links by discovery. It knows nothing of a link that is in none of the arrays."""

    unseen: NDArray[np.bool_]
    """bool[E], whether a link carries nothing, or leads elsewhere."""
    seen: NDArray[np.bool_]
    """bool[E], whether frames arrive as planned in both directions."""
    doubtful: NDArray[np.bool_]
    """bool[E], whether frames are missed and the link may carry packets all the same."""


class ReceivingPort(NamedTuple):
    """A port at the end of a direction of a link."""

    direction: int
    """The direction, as in `Discovery`."""
    switch: int
    """The switch."""
    port: int
    """The number of the port."""


class Discovery:
    """The frames that switches send in turn, and what is seen by those that arrive.

    There are S switches and E links. Port p of vertex v has the number v·W + p, where W is above
    the largest port of a switch (`compilers.audit.socket_numbers`).

    A direction is a link from one end to the other: 2·e ends at the first end of link e, and
    2·e + 1 at its second end. So d ^ 1 is the opposite direction of d.

    Args:
        wiring: the planned cables.
        rate: the most frames a second out of ports to other switches.
        key: the key of the frames' signatures; None for a random one.

    Attributes:
        cables: the links by number.
        interval: the seconds between two turns of a switch.
        silence: decides which links carry nothing.
    """

    def __init__(self, wiring: Wiring, rate: float = FRAME_RATE, key: bytes | None = None) -> None:
        self.wiring, self.cables = wiring, LinkEnds.of(wiring)
        self.interval = max(LEAST_PERIOD, float(np.count_nonzero(wiring.far >= 0)) / rate)
        self._key = key or token_bytes(32)
        ports = SocketNumbers(wiring)
        self._width, self._planned = ports.width, ports.planned()
        self._vertex = {
            datapath_id: vertex for vertex, datapath_id in enumerate(wiring.datapath_id.tolist())
        }
        switches = len(wiring.far)
        end_switch, end_link = np.moveaxis(self.cables.ends, 2, 0)  # each int64[E, 2]
        self.silence = LinkSilence(end_switch, switches, self.interval)
        self._linked = int(np.count_nonzero((wiring.far >= 0).any(axis=1)))
        """How many switches have links; planned nodes have none."""
        self._last_due = 0.0
        """When `due` was called last."""
        self._turns_allowed = 0.0
        """How many turns the rate still allowed then."""
        self._ports = np.zeros((switches, ports.width), np.bool_)
        """bool[S, W], the ports of switches with a session."""
        self._host_ports = np.zeros((switches, ports.width), np.bool_)
        """bool[S, W], the ports of hosts, which get no frames."""
        vertex, host = np.nonzero(wiring.host_port > 0)
        self._host_ports[vertex, wiring.host_port[vertex, host]] = True
        self._turn = np.zeros(switches, np.int64)
        """int64[S], how many turns each switch has had; its frames carry this number."""
        self._next_turn = np.full(switches, np.inf)
        """float64[S], when each switch sends next; infinite without a session."""
        self._session_since = np.full(switches, np.inf)
        """float64[S], when the session of each switch began; infinite without one."""
        self._last_sender = np.full(switches * ports.width, NO_PORT)
        """int64[S·W], by receiving port: the port whose frame came last, or NO_PORT."""
        self._last_heard_at = np.full(switches * ports.width, NEVER_SEEN)
        """float64[S·W], by receiving port: when that frame came, or NEVER_SEEN."""
        self._last_receiver = np.full(switches * ports.width, NO_PORT)
        """int64[S·W], by sending port: the port where its frame came last, or NO_PORT."""
        end_port = wiring.port[end_switch, end_link]
        self._end_ports: NDArray[np.int64] = end_switch * ports.width + end_port
        """int64[E, 2], the ports at both ends of each link. Flattened, it is the port at which each
        direction ends."""
        self._direction_to = np.full(switches * ports.width, NO_DIRECTION)
        """int64[S·W], the direction that ends at each port, or NO_DIRECTION."""
        self._direction_to[self._end_ports.ravel()] = np.arange(self._end_ports.size)

    @property
    def age(self) -> float:
        """Seconds for which a received frame counts."""
        return SILENT_FROM * self.interval

    def connected(self, vertex: int, ports: NDArray[np.integer], now: float) -> None:
        """Note that a switch has connected, with these ports; its first turn is now."""
        self._restart_session(vertex, now)
        self._ports[vertex, ports[(ports > 0) & (ports < self._width)]] = True

    def disconnected(self, vertex: int) -> None:
        """Note that a switch has disconnected."""
        self._restart_session(vertex, np.inf)

    def _restart_session(self, vertex: int, since: float) -> None:
        """Forget a switch's ports and missed frames; its session begins now, or (infinite) never.

        Args:
            vertex: the switch.
            since: when the session begins.
        """
        self._ports[vertex] = False
        self._next_turn[vertex] = self._session_since[vertex] = since
        self.silence.restarts(vertex)

    def set_port(self, vertex: int, port: int, exists: bool) -> None:
        """Note that a port of a connected switch has been added or removed."""
        if np.isfinite(self._session_since[vertex]) and 0 < port < self._width:
            self._ports[vertex, port] = exists

    def due(self, now: float) -> list[tuple[int, bytes]]:
        """Begin the turns that are due; returns the switches, each with its packet-outs to send.

        An echo request follows the packet-outs. Its answer shows that the frames have left.
        """
        turns = np.flatnonzero(self._next_turn <= now)
        # A token bucket: all switches with links together have a turn each in each interval.
        elapsed = min(now - self._last_due, 1.0)
        self._turns_allowed += elapsed * self._linked / self.interval
        most = int(min(self._turns_allowed, len(turns)))
        self._last_due, self._turns_allowed = now, min(self._turns_allowed - most, 1.0)
        chosen = turns[np.argsort(self._next_turn[turns], kind="stable")[:most]]
        self._next_turn[chosen] = now + self.interval
        self.silence.sent(chosen)
        return [
            (vertex, self._frames(vertex) + turn_echo(int(self._turn[vertex])))
            for vertex in chosen.tolist()
        ]

    def answered(self, vertex: int, turn: int) -> None:
        """Take a switch's answer to the echo request of a turn; a late one is ignored."""
        if turn == self._turn[vertex]:
            self.silence.answered(vertex, turn)

    def received(self, vertex: int, message: bytes, now: float) -> bool:
        """Take a packet-in; returns whether it has a valid frame of this controller."""
        port, frame = packet_in(message)
        contents = read_frame(frame, self._key)
        if contents is None:
            return False
        origin = self._vertex.get(contents.datapath_id)
        if origin is None or not 0 < port < self._width or not 0 < contents.port < self._width:
            return False
        if not self._turn[origin] - SILENT_FROM < contents.turn <= self._turn[origin]:
            return False  # a replayed frame
        receiver = vertex * self._width + port
        sender = origin * self._width + contents.port
        previous_receiver = self._last_receiver[sender]
        has_moved = previous_receiver not in (receiver, NO_PORT)
        if has_moved and self._last_sender[previous_receiver] == sender:
            self._last_heard_at[previous_receiver] = NEVER_SEEN  # the cable is not there any more
        self._last_sender[receiver] = sender
        self._last_heard_at[receiver] = now
        self._last_receiver[sender] = receiver
        direction = self._direction_to[receiver]
        if direction != NO_DIRECTION and self._end_ports.ravel()[direction ^ 1] == sender:
            self.silence.arrived(direction, contents.turn)
        return True

    def next_readings(self) -> list[ReceivingPort]:
        """The ports whose counters of received packets are to be read now, each once."""
        ports = self._end_ports.ravel()
        return [
            ReceivingPort(direction, *divmod(int(ports[direction]), self._width))
            for direction in self.silence.next_readings()
        ]

    def sight(self, down: NDArray[np.bool_], now: float) -> LinkSightings:
        """The state of links now.

        Args:
            down: bool[E], the links with a port that is down: they are in none of the results.
            now: the time.
        """
        # `exists`, `seen`, `leads_elsewhere`, `silent` and `doubtful` are bool[E], by link. The
        # other arrays are [E, 2], by the port at each end of a link.
        exists = self._ports.take(self._end_ports).all(axis=1) & ~down
        self.silence.forget(np.repeat(~exists, 2).nonzero()[0])  # both directions of a link
        far_ends = self._end_ports[:, ::-1]
        fresh = self._fresh(now, self._end_ports)
        # Whether the last frame at a port came from the far end of its planned cable.
        planned = self._last_sender[self._end_ports] == far_ends
        hears_planned, hears_other = fresh & planned, fresh & ~planned
        seen = hears_planned.all(axis=1)
        # Whether the frames of the far end arrive at another port than this one.
        receiver = self._last_receiver[far_ends]
        arrives_elsewhere = (
            (receiver != NO_PORT) & (receiver != self._end_ports) & self._fresh(now, receiver)
        )
        leads_elsewhere = (hears_other | (arrives_elsewhere & ~hears_planned)).any(axis=1)
        silent, doubtful = self.silence.judge(seen, now)
        return LinkSightings(
            unseen=silent | (leads_elsewhere & exists),
            seen=seen,
            doubtful=doubtful & ~leads_elsewhere,
        )

    def wired(self, now: float) -> ObservedCables:
        """The cables seen now, at most one at each port."""
        heard = np.flatnonzero(self._last_heard_at >= now - self.age)
        seen = Counter(zip(heard.tolist(), self._last_sender[heard].tolist(), strict=True))
        cables, contested = likeliest(seen, self._planned)
        settled = now - self._session_since > self.age
        reporters = frozenset(np.flatnonzero(settled).tolist())
        return ObservedCables(cables, reporters, contested, (), ())

    def miswired(self, now: float) -> WiringAudit | None:
        """The as-wired check if a port receives from another end than planned; else None.

        A link that is not seen at all is broken, which is no sign of misplaced plugs.
        """
        heard = np.flatnonzero(self._last_heard_at >= now - self.age)
        planned = np.full(len(self._last_sender), NO_PORT)
        planned[self._end_ports] = self._end_ports[:, ::-1]
        # The ports that hear another port than planned, and the switches of their planned cables.
        misplaced = heard[planned[heard] != self._last_sender[heard]]
        far_ports = planned[misplaced]
        vertices = np.concatenate((misplaced, far_ports[far_ports != NO_PORT])) // self._width
        # Links are not missing while their switches have not had the time to report them.
        if not len(misplaced) or (now - self._session_since[vertices] <= self.age).any():
            return None
        return check(self.wiring, self.wired(now))

    def _fresh(self, now: float, ports: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a frame has come at each of these ports within `age`."""
        fresh: NDArray[np.bool_] = self._last_heard_at[ports] >= now - self.age
        return fresh

    def _frames(self, vertex: int) -> bytes:
        """The packet-outs of a switch's next turn."""
        self._turn[vertex] += 1
        ports = np.flatnonzero(self._ports[vertex] & ~self._host_ports[vertex])
        seconds = min(0xFFFF, round(self.age) + 1)
        datapath_id = int(self.wiring.datapath_id[vertex])
        lldp = frames(datapath_id, ports, int(self._turn[vertex]), seconds, self._key)
        return packets_out(ports, lldp)
