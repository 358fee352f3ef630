"""Detects links that lose their LLDP frames although both ports are up. No I/O.

`controller.upkeep.discovery` has switches send the frames and reports here what arrives. Each
switch sends its frames in *turns*, numbered from 1. After its frames of a turn it gets an echo
request. Its answer says two things: the frames have left, and the frames that it received before
the request have been reported to the controller. So a frame counts as *missed* only if its sender
answered the echo of that turn, and the receiver answered an echo that was sent later. While either
has no connection, nothing counts.

A link is *silent* once it has missed three frames in one direction. It is then *suspect* while both
of these hold:

- Each end sees another of its links.
- The counter of received packets at the far port stands still. It grows where frames arrive and
  are not reported.

A suspect link goes out of use, unless it is of a *wave*: many links that turned silent at the same
time, which points to one other cause. Links of a wave go out of use, too, once they have been
suspect for `WAVE_SECONDS`, but only a few at a time.

A silent link that stays in use is *doubtful*: an alarm names it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SILENT_FROM = 3
"""Frames missed in a row from which on a direction of a link is silent."""
COUNTED_FROM = 2
"""Frames missed in a row from which on the far port's counter is read, once for each further one.
"""
STILL = 2
"""Equal readings in a row after which a counter stands still."""
WAVE_SPAN = 10.0
"""Seconds within which links of a wave turn silent, or the time of a turn where that is longer."""
WAVE_LINKS, WAVE_PART = 2, 0.05
"""More links than these that turn silent together are a wave. The first is a number of links, the
second a part of all links; the larger of both counts."""
WAVE_SECONDS = 60.0
"""Seconds after which a suspect link of a wave goes out of use all the same."""
NEVER = -np.inf
"""The time of what has not happened."""


class LinkJudgement(NamedTuple):
    """The links that carry nothing, and those that may carry nothing."""

    out: NDArray[np.bool_]
    """bool[E], the links that are out of use."""
    doubtful: NDArray[np.bool_]
    """bool[E], the links that stay in use, with an alarm."""


class LinkSilence:
    """The frames missed on each of E links, in both directions.

    Direction 2e leads to the first end of link e, direction 2e + 1 to its second end. So d ^ 1 is
    the opposite direction of d. There are D directions and S switches.

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
        self._ends, self._wave_span = ends, max(WAVE_SPAN, interval)
        self._receiver, self._sender = ends.ravel(), ends[:, ::-1].ravel()
        """int64[D] each, the switch that each direction leads to, and the one it comes from."""
        by_receiver = np.argsort(self._receiver, kind="stable")
        bounds = np.searchsorted(self._receiver[by_receiver], np.arange(1, switches))
        self._directions_to = np.split(by_receiver, bounds)
        """The directions that lead to each switch."""
        self._sent_turn = np.zeros(switches, np.int64)
        """int64[S], the latest turn whose frames have left each switch; 0 while there is none."""
        size = 2 * len(ends)
        self._due_turn = np.zeros(size, np.int64)
        """int64[D], the sender's latest turn that had left when the receiver got its latest echo
        request: its frame is missed if it is not reported before the answer."""
        self._arrived_turn = np.zeros(size, np.int64)
        """int64[D], the sender's latest turn whose frame has arrived."""
        self._judged_turn = np.zeros(size, np.int64)
        """int64[D], the sender's latest turn whose frame has counted as arrived or missed."""
        self.missed = np.zeros(size, np.int64)
        self._packets = np.zeros(size, np.uint64)
        """uint64[D], the packets that the far port had counted at its last reading."""
        self._equal_readings = np.zeros(size, np.int64)
        """int64[D], how many readings in a row have had this number."""
        self._read_at_missed = np.zeros(size, np.int64)
        """int64[D], the number of missed frames at the last reading."""
        self._silent_from = np.full(len(ends), NEVER)
        """float64[E], when each link turned silent; NEVER while it is not."""
        self._suspect_from = np.full(len(ends), np.inf)
        """float64[E], since when each link is suspect; infinite while it is not."""
        self._out_from = np.full(len(ends), NEVER)
        """float64[E], when each link of a wave went out of use; NEVER while it is in use."""
        self._sees_others: NDArray[np.bool_] = np.zeros(len(ends), np.bool_)
        """bool[E], whether both ends saw some link when it was last judged."""

    def restarts(self, vertex: int) -> None:
        """Discard what was missed at a switch that has a new connection, or has lost its own."""
        self._sent_turn[vertex] = 0
        incoming = self._directions_to[vertex]
        outgoing = incoming ^ 1  # the opposite directions
        touching = np.concatenate((incoming, outgoing))
        self._due_turn[touching] = 0
        self.forget(touching)

    def sent(self, vertices: NDArray[np.int64]) -> None:
        """Note that these switches are now sent an echo request after the frames of a turn."""
        incoming = np.isin(self._receiver, vertices)
        self._due_turn[incoming] = self._sent_turn[self._sender[incoming]]

    def arrived(self, direction: int, turn: int) -> None:
        """Note that the frame of this turn of the sender has arrived."""
        self._arrived_turn[direction] = max(self._arrived_turn[direction], turn)
        self.missed[direction] = 0

    def answered(self, vertex: int, turn: int) -> None:
        """Note that a switch has answered the echo request of its latest turn; count misses."""
        incoming = self._directions_to[vertex]
        # Frames that had left when the echo was sent would have been reported before its answer.
        due = incoming[self._due_turn[incoming] > self._judged_turn[incoming]]
        turns = self._due_turn[due]
        is_missed = self._arrived_turn[due] < turns
        self.missed[due] = np.where(is_missed, self.missed[due] + 1, 0)
        self._judged_turn[due] = turns
        self._sent_turn[vertex] = turn

    def forget(self, directions: NDArray[np.int64]) -> None:
        """Set the number of missed frames of these directions to 0."""
        self.missed[directions] = 0

    def next_readings(self) -> list[int]:
        """The directions whose far port's counter is to be read now, each once.

        It is not read where it decides nothing: where an end sees no other link, as with switches
        that do not pass LLDP frames on.
        """
        self._equal_readings[self.missed == 0] = 0
        self._read_at_missed[self.missed == 0] = 0
        counts = (self.missed >= COUNTED_FROM) & np.repeat(self._sees_others, 2)
        due = np.flatnonzero(counts & (self._read_at_missed != self.missed))
        self._read_at_missed[due] = self.missed[due]
        return due.tolist()

    def counted(self, direction: int, packets: int) -> None:
        """Take a reading of a far port's counter of received packets.

        A port that does not count them gives 2^64 - 1 (OpenFlow 1.3.5, §7.3.5.6): that stands
        still, too.
        """
        readings = self._equal_readings[direction]
        is_equal = readings > 0 and self._packets[direction] == packets
        self._equal_readings[direction] = readings + 1 if is_equal else 1
        self._packets[direction] = packets

    def judge(self, seen: NDArray[np.bool_], now: float) -> LinkJudgement:
        """Judge all links.

        Args:
            seen: bool[E], the links whose frames have arrived in both directions.
            now: the time.
        """
        # bool[E, 2]: both directions of each link.
        silent = self.missed.reshape(-1, 2) >= SILENT_FROM
        still = self._equal_readings.reshape(-1, 2) >= STILL
        any_silent = silent[:, 0] | silent[:, 1]
        self._silent_from[~any_silent] = NEVER
        self._silent_from[any_silent & (self._silent_from == NEVER)] = now
        switch_sees_link = np.bincount(self._ends[seen].ravel(), minlength=len(self._sent_turn)) > 0
        sees_others = switch_sees_link[self._ends[:, 0]] & switch_sees_link[self._ends[:, 1]]
        self._sees_others = sees_others
        suspect = any_silent & sees_others & (still | ~silent).all(axis=1)
        out = suspect & (~self._in_wave() | self._out_despite_wave(suspect, any_silent, now))
        was_seen = (self._arrived_turn.reshape(-1, 2) > 0).all(axis=1)
        # Some switches pass no LLDP frames on. Their links, which were never seen, are not
        # doubtful.
        return LinkJudgement(out, any_silent & ~out & (sees_others | was_seen))

    def _out_despite_wave(
        self, suspect: NDArray[np.bool_], silent: NDArray[np.bool_], now: float
    ) -> NDArray[np.bool_]:
        """bool[E]: the links that are out of use although they turned silent in a wave.

        In a `WAVE_SPAN`, no more of them go out of use than may turn silent together without being
        a wave.

        Args:
            suspect: bool[E], the suspect links.
            silent: bool[E], the silent links. A link that is out of use comes back when it is not
                silent any more.
            now: the time.
        """
        self._suspect_from[~suspect] = np.inf
        self._suspect_from[suspect] = np.minimum(self._suspect_from[suspect], now)
        self._out_from[~silent] = NEVER
        span_start = now - self._wave_span
        recent = (self._out_from > span_start) | (self._silent_from > span_start)
        room = int(self._most_together) - int(np.count_nonzero(recent))
        is_due = (self._suspect_from <= now - WAVE_SECONDS) & (self._out_from == NEVER)
        due = np.flatnonzero(is_due)
        oldest_first = due[np.argsort(self._suspect_from[due], kind="stable")]
        self._out_from[oldest_first[: max(room, 0)]] = now
        out_despite_wave: NDArray[np.bool_] = self._out_from > NEVER
        return out_despite_wave

    @property
    def _most_together(self) -> float:
        """The most links that may turn silent together and are no wave."""
        return max(WAVE_LINKS, WAVE_PART * len(self._silent_from))

    def _in_wave(self) -> NDArray[np.bool_]:
        """bool[E]: the links that turned silent together with too many others."""
        times = np.sort(self._silent_from[self._silent_from > NEVER])
        first = np.searchsorted(times, self._silent_from - self._wave_span, side="left")
        last = np.searchsorted(times, self._silent_from + self._wave_span, side="right")
        in_wave: NDArray[np.bool_] = last - first > self._most_together
        return in_wave
