"""Link state: port states, discovery and lost switches in, dead links and drained switches out.

A link is broken while a port at either end is down or set to drop packets, or while discovery does
not see it as planned. It is dead while it is broken or suppressed (`damping`). A switch is
*drained* when it

- stays disconnected for longer than the patience, or has not connected so long after the start,
- was read not to hold its program, or
- flaps (`damping`), that is, leaves again and again.

- an operator asked for it (`ask`), who may ask for links, too: these are dead while asked for.

It may still forward, so it keeps the traffic to itself and gets no transit. It is back when it was
read to hold its program. Switches that leave within a fifth of the patience are drained together:
that is one failure, and one repair. If most switches are gone at once, or most do not hold their
program, or most flap, the fault is taken to be the controller's own, and no more are drained for
that. What is known of links and switches can be taken over by another process. No I/O; the caller
passes the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring
from controller.settings import DISCOVERY_PATIENCE, PENALTY_STEP, Damping


class Penalties:
    """The penalties of n links, or of n switches."""

    def __init__(self, count: int, damping: Damping) -> None:
        self.damping = damping
        self.suppressed = np.zeros(count, np.bool_)
        self._penalty = np.zeros(count)
        self._since = np.zeros(count)

    def flap(self, link: int, now: float) -> bool:
        """A link has gone down; returns whether this suppresses it."""
        most = max(self.damping.ceiling, self.damping.suppress)
        self._penalty[link] = min(float(self.penalty(now, link)) + PENALTY_STEP, most)
        self._since[link] = now
        before = bool(self.suppressed[link])
        self.suppressed[link] |= self._penalty[link] > self.damping.suppress
        return bool(self.suppressed[link]) and not before

    def hold(self, number: int, seconds: float, now: float) -> None:
        """Suppress one for so long, as another controller knew it, whose clock may be wrong."""
        longest = log2(max(self.damping.ceiling / self.damping.reuse, 1))
        halves = min(max(seconds / self.damping.half_life, 0), longest)
        self.suppressed[number], self._since[number] = True, now
        self._penalty[number] = self.damping.reuse * 2**halves

    def release(self, now: float) -> NDArray[np.int64]:
        """int64[n]: the links that became usable since the last call."""
        suppressed = np.flatnonzero(self.suppressed)
        calm = suppressed[self.penalty(now, suppressed) <= self.damping.reuse]
        self.suppressed[calm] = False
        return calm

    def penalty(self, now: float, link: int | NDArray[np.int64]) -> NDArray[np.float64]:
        """The penalties of these links at this time: float64[n], or of one."""
        halves = (now - self._since[link]) / self.damping.half_life
        faded: NDArray[np.float64] = self._penalty[link] * 0.5**halves
        return faded

    def wait(self, link: int, now: float) -> float:
        """Seconds until a suppressed link is used, if it does not flap again."""
        penalty = float(self.penalty(now, link))
        return max(0.0, self.damping.half_life * log2(max(penalty, 1e-9) / self.damping.reuse))


TOGETHER = 0.2
"""The part of the patience by which a switch may be drained early, with one that left before it."""
DOWN = "port down"
What = Literal["down", "up", "suppressed", "reused", "drained", "back"]


@dataclass(frozen=True, slots=True)
class News:
    """A change of the `link`-th link of `switch`, or of the switch itself (-1).

    why: the reason that a link is down, or a switch drained. seconds: the time for which a link is
    suppressed.
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
    """The state of all links and switches of a fabric.

    dead: bool[S, K] and drained: bool[S], both as of the last `settle`. judged: whether links have
    come or gone since.
    """

    def __init__(
        self, wiring: Wiring, damping: Damping | None = None, patience: float = DISCOVERY_PATIENCE
    ) -> None:
        order = len(wiring.far)
        self.cables = LinkEnds.of(wiring)
        self.patience = patience
        self.penalties = Penalties(len(self.cables.ends), damping or Damping())
        self.flaps = Penalties(order, damping or Damping())
        self.dead = np.zeros(wiring.far.shape, np.bool_)
        self.drained = np.zeros(order, np.bool_)
        self._port_down = np.zeros((*self.dead.shape,), np.bool_)
        self._unseen = np.zeros(len(self.cables.ends), np.bool_)
        self._broken = np.zeros(len(self.cables.ends), np.bool_)
        self._asked = np.zeros(len(self.cables.ends), np.bool_)
        self._asked_switches = np.zeros(order, np.bool_)
        self._known = np.zeros(order, np.bool_)
        self._here = np.zeros(order, np.bool_)
        self._lost = np.zeros(order, np.bool_)
        self._due = np.full(order, np.inf)
        self._why = [""] * order
        self._news: list[News] = []
        self.judged = False

    @property
    def broken(self) -> NDArray[np.bool_]:
        """bool[E]: the dead links."""
        return self._broken.copy()

    def ports(self, vertex: int, faults: dict[int, str], now: float) -> None:
        """Set all ports of a switch, by number: what is wrong, or ""; a missing port is down.

        A switch with none of its links' ports is not cabled yet, and its links are unknown.
        """
        place = self.cables.place[vertex]
        planned = np.flatnonzero(place >= 0)
        if faults.keys().isdisjoint(planned.tolist()):
            return
        down = np.array([bool(faults.get(port, DOWN)) for port in planned.tolist()], np.bool_)
        for port in planned[self._port_down[vertex, place[planned]] != down].tolist():
            self.port(vertex, port, faults.get(port, DOWN), now)

    def port(self, vertex: int, port: int, fault: str, now: float) -> None:
        """What is wrong with a port, or "" if it works; ports without a link are ignored."""
        link = self._link(vertex, port)
        if link >= 0 and self._port_down[vertex, link] != bool(fault):
            self._port_down[vertex, link] = bool(fault)
            self._judge([int(self.cables.number[vertex, link])], now, fault)

    def unseen(self, unseen: NDArray[np.bool_], seen: NDArray[np.bool_], now: float) -> None:
        """bool[E] each: links that discovery should see as planned and does not, and those that it
        sees. Of the others it cannot tell, and what was known of them holds.
        """
        found = (self._unseen | unseen) & ~seen
        changed = np.flatnonzero(found != self._unseen)
        self._unseen = found
        self._judge(changed.tolist(), now)

    def expect(self, by: float) -> None:
        """Switches that have not connected by this time count as gone."""
        self._known[:] = True
        missing = np.flatnonzero(~self._here & ~np.isfinite(self._due))
        self._due[missing] = by
        for vertex in missing.tolist():
            self._why[vertex] = "has not connected"

    def connected(self, vertex: int, now: float) -> None:
        """A switch has connected; one that was away has to show what it holds (`fit`)."""
        self._known[vertex] = self._here[vertex] = True
        if self._lost[vertex] and not self.drained[vertex]:
            if not self.flaps.suppressed[vertex]:
                self._why[vertex] = "was not read to hold its program since it returned"
            self._due[vertex] = max(self._due[vertex], now + self.patience)
        elif not self.drained[vertex]:
            self._due[vertex] = np.inf

    def left(self, vertex: int, now: float) -> None:
        """A switch has left."""
        self._here[vertex] = False
        if not self._known[vertex]:
            return
        self._amiss(vertex, now + self.patience, f"has been disconnected for {self.patience:g} s")
        if self.flaps.flap(vertex, now):
            self._why[vertex] = f"flaps and is not used for {self.flaps.wait(vertex, now):.0f} s"

    def fit(self, vertex: int) -> None:
        """A switch was read to hold its program."""
        self._due[vertex], self._lost[vertex] = np.inf, False

    def unfit(self, vertex: int, now: float) -> None:
        """A switch was read not to hold its program."""
        self._amiss(vertex, now, "does not hold its program")

    def ask(self, links: NDArray[np.bool_], switches: NDArray[np.bool_]) -> None:
        """What an operator wants drained, in all: links, bool[S, K], and switches, bool[S]."""
        switch, link = self.cables.ends[:, 0].T
        asked, away = links[switch, link], switches
        for number in np.flatnonzero((asked != self._asked) & ~self._broken).tolist():
            self._tell("down" if asked[number] else "up", number, "drained")
        for vertex in np.flatnonzero(away).tolist():
            self._why[vertex] = "was drained by request"
        self._asked, self._asked_switches, self.judged = asked, away, True

    def settle(self, now: float) -> tuple[bool, list[News]]:
        """Update `dead` and `drained`; returns whether they have changed, and the news."""
        released = self.penalties.release(now).tolist()
        for number in released:
            self._tell("reused", number)
        self.flaps.release(now)
        dead = self.dead
        if self.judged or released:  # this is asked of every switch that describes its ports
            lost = self.penalties.suppressed | self._broken | self._asked
            dead, self.judged = np.append(lost, False)[self.cables.number], False
        away = self._away(now) | self._asked_switches
        for vertex in np.flatnonzero(away != self.drained).tolist():
            drained = bool(away[vertex])
            why = self._why[vertex] if drained else ""
            self._news.append(News("drained" if drained else "back", vertex, why=why))
        changed = dead is not self.dead and bool((dead != self.dead).any())
        changed |= bool((away != self.drained).any())
        self.dead, self.drained = dead, away
        news, self._news = self._news, []
        return changed, news

    def known(self, now: float, wall: float) -> dict[str, Any]:
        """What another process has to know, as JSON: drained switches, ports that are down, links
        that discovery misses, and until when (seconds since the epoch, wall is now) which links and
        switches are suppressed. Nothing where all is well.
        """
        ends = self.cables.ends
        found = {
            "drained": np.argwhere(self.drained).tolist(),
            "down": np.argwhere(self._port_down).tolist(),
            "unseen": ends[self._unseen, 0].tolist(),
            "links": [
                [*ends[n, 0].tolist(), round(wall + self.penalties.wait(n, now), -1)]
                for n in np.flatnonzero(self.penalties.suppressed).tolist()
            ],
            "switches": [
                [v, round(wall + self.flaps.wait(v, now), -1)]
                for v in np.flatnonzero(self.flaps.suppressed).tolist()
            ],
        }
        return {what: some for what, some in found.items() if some}

    def take_over(self, known: dict[str, Any], now: float, wall: float) -> None:
        """Begin with what another process has known (`known`); switches that are drained come back
        when they were read to hold their program.
        """
        for (vertex,) in known.get("drained", ()):
            self._known[vertex] = self._lost[vertex] = self.drained[vertex] = True
            self._due[vertex], self._why[vertex] = now, "is drained since before"
        for vertex, link in known.get("down", ()):
            self._port_down[vertex, link] = True
        for vertex, link in known.get("unseen", ()):
            self._unseen[self.cables.number[vertex, link]] = True
        for vertex, link, until in known.get("links", ()):
            self.penalties.hold(int(self.cables.number[vertex, link]), until - wall, now)
        for vertex, until in known.get("switches", ()):
            self.flaps.hold(vertex, until - wall, now)
            self._why[vertex] = "flaps"
        down = np.zeros(len(self._broken) + 1, np.bool_)
        down[self.cables.number[self._port_down]] = True
        self._broken = down[:-1] | self._unseen
        lost = self.penalties.suppressed | self._broken | self._asked
        self.dead = np.append(lost, False)[self.cables.number]

    def _link(self, vertex: int, port: int) -> int:
        place = self.cables.place[vertex]
        return int(place[port]) if 0 <= port < len(place) else -1

    def _amiss(self, vertex: int, due: float, why: str) -> None:
        """Without news that it is fit, a switch is away from this time on."""
        self._lost[vertex] = True
        if due < self._due[vertex]:
            self._due[vertex] = due
        if not self.drained[vertex]:
            self._why[vertex] = why

    def _away(self, now: float) -> NDArray[np.bool_]:
        """bool[S]: switches that get no transit, and those that left with them."""
        away: NDArray[np.bool_] = self._due <= now
        if (away & ~self.drained).any():
            away = self._due <= now + TOGETHER * self.patience
        flaps, lost, here = self.flaps.suppressed, away | self._lost, self._here
        found: NDArray[np.bool_] = self.drained & (away | flaps | np.isfinite(self._due))
        for cause, more in ((lost & ~here, away & ~here), (lost & here, away & here), (flaps,) * 2):
            if 2 * np.count_nonzero(cause) <= np.count_nonzero(self._known):
                found |= more
        return found

    def _judge(self, numbers: Iterable[int], now: float, fault: str = DOWN) -> None:
        """Update the state of these links; fault: of the port that has changed."""
        for number in numbers:
            down = [bool(self._port_down[s, k]) for s, k in self.cables.ends[number].tolist()]
            broken = any(down) or bool(self._unseen[number])
            if broken == self._broken[number]:
                continue
            self._broken[number], self.judged = broken, True
            asked = "drained" if self._asked[number] else ""
            why = (fault if any(down) else "not seen") if broken else asked
            self._tell("down" if why else "up", number, why)
            if broken and self.penalties.flap(number, now):
                self._tell("suppressed", number, seconds=self.penalties.wait(number, now))

    def _tell(self, what: What, number: int, why: str = "", seconds: float = 0.0) -> None:
        switch, link = self.cables.ends[number, 0].tolist()
        self._news.append(News(what, switch, link, why, seconds))
