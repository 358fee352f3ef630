"""Link state: port states, discovery and lost switches in, dead links and drained switches out.

A link is broken while a port at either end is down, or while discovery does not see it as planned.
It is dead while it is broken or suppressed (`damping`). A switch that stays disconnected is
*drained*: it may still forward, as only its management may have failed, so it keeps the traffic to
itself and gets no transit. Switches that leave within a fifth of that time are drained together:
that is one failure, and one repair. If most switches disconnect at once, the fault is taken to be
the controller's own and nothing is drained. No I/O; the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring
from controller.settings import DISCOVERY_PATIENCE, Damping
from controller.upkeep.damping import Penalties

TOGETHER = 0.2
"""The part of the patience by which a switch may be drained early, with one that left before it."""
What = Literal["down", "up", "suppressed", "reused", "drained", "back"]


@dataclass(frozen=True, slots=True)
class News:
    """A change of the `link`-th link of `switch`, or of the switch itself (-1).

    why: the reason that a link is down. seconds: the time for which it is suppressed.
    """

    what: What
    switch: int
    link: int = -1
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnds:
    """The links of a wiring by number.

    number: int64[S, K], E beyond the last. ends: int64[E, 2, 2], the switch and the link's index
    there, for both ends. place: int64[S, ports + 1], the link's index by port, or -1.
    """

    number: NDArray[np.int64]
    ends: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def of(cls, wiring: Wiring) -> LinkEnds:
        """Number the links of a wiring by their first end."""
        far, port = wiring.far, wiring.port
        place = np.full((len(far), int(max(port.max(), wiring.far_port.max())) + 1), -1)
        switch, link = np.nonzero(far >= 0)
        place[switch, port[switch, link]] = link
        other = far[switch, link].astype(np.int64)
        back = place[other, wiring.far_port[switch, link]]
        first = switch < other
        ends = np.stack((np.column_stack((switch, link)), np.column_stack((other, back))), axis=1)
        ends = ends[first]
        number = np.full(far.shape, len(ends), np.int64)
        for side in (0, 1):
            number[ends[:, side, 0], ends[:, side, 1]] = np.arange(len(ends))
        return cls(number, ends, place)


class Links:
    """The state of all links of a fabric.

    dead: bool[S, K] and drained: bool[S], both as of the last `settle`.
    """

    def __init__(
        self, wiring: Wiring, damping: Damping | None = None, patience: float = DISCOVERY_PATIENCE
    ) -> None:
        self.cables = LinkEnds.of(wiring)
        self.patience = patience
        self.penalties = Penalties(len(self.cables.ends), damping or Damping())
        self.dead = np.zeros(wiring.far.shape, np.bool_)
        self.drained = np.zeros(len(wiring.far), np.bool_)
        self._port_down = np.zeros((*self.dead.shape,), np.bool_)
        self._unseen = np.zeros(len(self.cables.ends), np.bool_)
        self._broken = np.zeros(len(self.cables.ends), np.bool_)
        self._known = np.zeros(len(wiring.far), np.bool_)
        self._gone = np.full(len(wiring.far), np.inf)
        self._news: list[News] = []
        self._judged = False

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool[E]: the dead links."""
        return self._broken.copy()

    def ports(self, vertex: int, up: dict[int, bool], now: float) -> None:
        """Set all ports of a switch, by number; a missing port is down.

        A switch with none of its links' ports is not cabled yet, and its links are unknown.
        """
        place = self.cables.place[vertex]
        planned = np.flatnonzero(place >= 0)
        if up.keys().isdisjoint(planned.tolist()):
            return
        working = np.array([up.get(port, False) for port in planned.tolist()], np.bool_)
        changed = self._port_down[vertex, place[planned]] == working
        for port, works in zip(planned[changed].tolist(), working[changed].tolist(), strict=True):
            self.port(vertex, port, works, now)

    def port(self, vertex: int, port: int, up: bool, now: float) -> None:
        """A port is up or down; ports without a link are ignored."""
        place = self.cables.place[vertex]
        link = int(place[port]) if 0 <= port < len(place) else -1
        if link >= 0 and self._port_down[vertex, link] == up:
            self._port_down[vertex, link] = not up
            self._judge([int(self.cables.number[vertex, link])], now)

    def unseen(self, unseen: NDArray[np.bool_], now: float) -> None:
        """bool[E]: the links that discovery does not see as planned."""
        changed = np.flatnonzero(unseen != self._unseen)
        self._unseen = unseen.copy()
        self._judge(changed.tolist(), now)

    def present(self, vertex: int, up: bool, now: float) -> None:
        """A switch has connected, or has left."""
        if up:
            self._known[vertex] = True
            self._gone[vertex] = np.inf
        elif self._known[vertex]:
            self._gone[vertex] = min(self._gone[vertex], now)

    def settle(self, now: float) -> tuple[bool, list[News]]:
        """Update `dead` and `drained`; returns whether they have changed, and the news."""
        released = self.penalties.release(now).tolist()
        for number in released:
            self._tell("reused", number)
        dead = self.dead
        if self._judged or released:  # this is asked of every switch that describes its ports
            lost = self.penalties.suppressed | self._broken
            dead, self._judged = np.append(lost, False)[self.cables.number], False
        away = self._away(now)
        if 2 * np.count_nonzero(np.isfinite(self._gone)) > np.count_nonzero(self._known):
            away &= self.drained
        for vertex in np.flatnonzero(away != self.drained).tolist():
            self._news.append(News("drained" if away[vertex] else "back", vertex))
        changed = dead is not self.dead and bool((dead != self.dead).any())
        changed |= bool((away != self.drained).any())
        self.dead, self.drained = dead, away
        news, self._news = self._news, []
        return changed, news

    def _away(self, now: float) -> NDArray[np.bool_]:
        """bool[S]: switches that have been disconnected for long, and those that left with them."""
        gone = now - self._gone
        away = gone >= self.patience
        if (away & ~self.drained).any():
            away = gone >= (1 - TOGETHER) * self.patience
        return away | (self.drained & (gone > 0))

    def _judge(self, numbers: Iterable[int], now: float) -> None:
        """Update the state of these links."""
        for number in numbers:
            down = [bool(self._port_down[s, k]) for s, k in self.cables.ends[number].tolist()]
            broken = any(down) or bool(self._unseen[number])
            if broken == self._broken[number]:
                continue
            self._broken[number], self._judged = broken, True
            why = "port down" if any(down) else "not seen"
            self._tell("down" if broken else "up", number, why if broken else "")
            if broken and self.penalties.flap(number, now):
                self._tell("suppressed", number, seconds=self.penalties.wait(number, now))

    def _tell(self, what: What, number: int, why: str = "", seconds: float = 0.0) -> None:
        switch, link = self.cables.ends[number, 0].tolist()
        self._news.append(News(what, switch, link, why, seconds))
