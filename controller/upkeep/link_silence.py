"""Links that carry nothing: whether frames were lost on a cable, or on their way to us. No I/O.

After its frames of a turn a switch gets an echo request. Its answer says two things: the frames
have left, and what it received before the request has been reported. So a frame counts as *missed*
only if its sender answered the echo of that turn, and the receiver answered an echo that was sent
later. While either has no connection, nothing counts.

A link is *silent* once it has missed three frames in one direction. It is out of use only if
nothing but the link explains the silence:

- each end sees another of its links,
- few links turned silent at the same time (`WAVE`), as they do where one cause is behind all,
- the counter of received packets at the far port stands still. It grows where frames arrive and
  are not reported.

A silent link that does not meet these conditions is *doubtful*: it stays in use, with an alarm.

Links of a wave do not stay doubtful for ever. Where all the other conditions have held for
`SETTLED` seconds, they go out of use a few at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSED = 3
"""Frames in a row without which a direction of a link is silent."""
COUNTED_FROM = 2
"""Missed frames from which on the far port's counter is read, once for each further frame."""
STILL = 2
"""Readings in a row with the same count after which a counter stands still."""
TOGETHER = 10.0
"""Seconds within which links turn silent together, or the time of a turn where that is longer."""
FEWEST, WAVE = 2, 0.05
"""Links that may turn silent together and be out of use: so many, or this part of all."""
SETTLED = 60.0
"""Seconds for which only the wave has to speak against it until its links go out of use."""
NEVER = -np.inf
"""The time of what has not happened."""


class Judgement(NamedTuple):
    """What the silence of links says."""

    out: NDArray[np.bool_]
    """bool[E], the links that are out of use."""
    doubtful: NDArray[np.bool_]
    """bool[E], the links that stay in use, with an alarm."""


class LinkSilence:
    """What was missed on each link, in both directions.

    Direction 2e leads to the first end of link e, direction 2e + 1 to its second end. There are D
    directions and S switches.

    Attributes:
        missed: int64[D], the frames missed in a row.
    """

    def __init__(self, ends: NDArray[np.int64], switches: int, interval: float) -> None:
        """Begin without silence.

        Args:
            ends: int64[E, 2], the switches at both ends of each link.
            switches: how many there are.
            interval: the seconds between two turns of a switch. One cause shows at all switches
                within a turn.
        """
        self._ends, self._together = ends, max(TOGETHER, interval)
        self._to, self._by = ends.ravel(), ends[:, ::-1].ravel()
        """int64[D] each, the switch that each direction leads to, and the one it comes from."""
        order = np.argsort(self._to, kind="stable")
        places = np.searchsorted(self._to[order], np.arange(1, switches))
        self._into = np.split(order, places)
        """The directions that lead to each switch."""
        self._left = np.zeros(switches, np.int64)
        """int64[S], the latest turn whose frames have left; 0 while there is none."""
        size = 2 * len(ends)
        self._asked = np.zeros(size, np.int64)
        """int64[D], the latest turn that had left when the receiver got its latest echo request."""
        self._heard = np.zeros(size, np.int64)
        """int64[D], the latest turn that was heard."""
        self._judged = np.zeros(size, np.int64)
        """int64[D], the latest turn that was judged."""
        self.missed = np.zeros(size, np.int64)
        self._packets = np.zeros(size, np.uint64)
        """uint64[D], the packets that the far port has counted."""
        self._agree = np.zeros(size, np.int64)
        """int64[D], how many readings in a row have found this number."""
        self._read_at = np.zeros(size, np.int64)
        """int64[D], at which missed frame it was read last."""
        self._turned = np.full(len(ends), NEVER)
        """float64[E], when each link turned silent."""
        self._explained = np.full(len(ends), np.inf)
        """float64[E], since when nothing but a wave speaks for each link."""
        self._went = np.full(len(ends), NEVER)
        """float64[E], when each link went out of use in spite of a wave."""
        self._sees_others: NDArray[np.bool_] = np.zeros(len(ends), np.bool_)
        """bool[E], whether both ends saw some link when it was last judged."""

    def restarts(self, vertex: int) -> None:
        """A switch has another connection, or none: what was missed so far says nothing."""
        self._left[vertex] = 0
        touching = np.concatenate((self._into[vertex], self._into[vertex] ^ 1))
        self._asked[touching] = 0
        self.forget(touching)

    def sent(self, vertices: NDArray[np.int64]) -> None:
        """The frames of a turn, and an echo request, are sent to these switches now."""
        into = np.isin(self._to, vertices)
        self._asked[into] = self._left[self._by[into]]

    def arrived(self, direction: int, turn: int) -> None:
        """A frame of this turn of the sender has arrived."""
        self._heard[direction] = max(self._heard[direction], turn)
        self.missed[direction] = 0

    def answered(self, vertex: int, turn: int) -> None:
        """A switch has answered the echo request of its latest turn."""
        into = self._into[vertex]
        # Those that had left when the echo was sent would have been reported before its answer.
        due = into[self._asked[into] > self._judged[into]]
        turns = self._asked[due]
        self.missed[due] = np.where(self._heard[due] < turns, self.missed[due] + 1, 0)
        self._judged[due] = turns
        self._left[vertex] = turn

    def forget(self, directions: NDArray[np.int64]) -> None:
        """Nothing was missed in these directions."""
        self.missed[directions] = 0

    def to_read(self) -> list[int]:
        """The directions whose far port's counter is to be read now: not where it decides nothing,
        as with switches that keep LLDP to themselves.
        """
        self._agree[self.missed == 0] = 0
        self._read_at[self.missed == 0] = 0
        counts = (self.missed >= COUNTED_FROM) & np.repeat(self._sees_others, 2)
        due = np.flatnonzero(counts & (self._read_at != self.missed))
        self._read_at[due] = self.missed[due]
        return due.tolist()

    def counted(self, direction: int, packets: int) -> None:
        """A far port has received so many packets: 2^64 - 1 if it does not count them (OpenFlow
        1.3.5, §7.3.5.6), which stands still, too.
        """
        same = self._agree[direction] > 0 and self._packets[direction] == packets
        self._agree[direction] = self._agree[direction] + 1 if same else 1
        self._packets[direction] = packets

    def judge(self, seen: NDArray[np.bool_], now: float) -> Judgement:
        """Judge all links.

        Args:
            seen: bool[E], the links whose frames have arrived in both directions.
            now: the time.
        """
        silent = self.missed.reshape(-1, 2) >= MISSED
        still = self._agree.reshape(-1, 2) >= STILL
        any_silent = silent[:, 0] | silent[:, 1]
        self._turned[~any_silent] = NEVER
        self._turned[any_silent & (self._turned == NEVER)] = now
        others = np.bincount(self._ends[seen].ravel(), minlength=len(self._left)) > 0
        sees_others = others[self._ends[:, 0]] & others[self._ends[:, 1]]
        self._sees_others = sees_others
        explained = any_silent & sees_others & (still | ~silent).all(axis=1)
        out = explained & (~self._in_wave() | self._settled(explained, any_silent, now))
        once = (self._heard.reshape(-1, 2) > 0).all(axis=1)
        # A switch that passes no LLDP on at all hides its links: no reason to doubt them.
        return Judgement(out, any_silent & ~out & (sees_others | once))

    def _settled(
        self, explained: NDArray[np.bool_], silent: NDArray[np.bool_], now: float
    ) -> NDArray[np.bool_]:
        """bool[E]: the links that go out of use in spite of a wave, few of them at a time.

        Args:
            explained: bool[E], the links for which nothing but a wave speaks.
            silent: bool[E], those that are silent. One that was let go stays so until it is heard.
            now: the time.
        """
        self._explained[~explained] = np.inf
        self._explained[explained] = np.minimum(self._explained[explained], now)
        self._went[~silent] = NEVER
        recent = (self._went > now - self._together) | (self._turned > now - self._together)
        room = int(self._most) - int(np.count_nonzero(recent))
        due = np.flatnonzero((self._explained <= now - SETTLED) & (self._went == NEVER))
        oldest = due[np.argsort(self._explained[due], kind="stable")]
        self._went[oldest[: max(room, 0)]] = now
        settled: NDArray[np.bool_] = self._went > NEVER
        return settled

    @property
    def _most(self) -> float:
        """The most links that may go out of use together."""
        return max(FEWEST, WAVE * len(self._turned))

    def _in_wave(self) -> NDArray[np.bool_]:
        """bool[E]: the links that turned silent together with too many."""
        times = np.sort(self._turned[self._turned > NEVER])
        first = np.searchsorted(times, self._turned - self._together, side="left")
        last = np.searchsorted(times, self._turned + self._together, side="right")
        wave: NDArray[np.bool_] = last - first > self._most
        return wave
