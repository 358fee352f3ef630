"""The packets of a probe in the window of each event, and the checks that they pass.

The window of an event lasts until the next event. A packet that was sent in it and is lost although
the tables deliver it counts as a loss of that event. `timeline` opens the windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.observations import ProbePackets
from mininet_scenarios.scenario.outage import BuildChange
from mininet_scenarios.scenario.scenario_file import ExpectInMoment
from mininet_scenarios.scenario.timeline_events import TimelineCase
from mininet_scenarios.verdict.result import ProbeHistory

WindowKind = Literal["before", "event", "undo"]
"""The values of `Window.kind`."""
FLIGHT_TIME = 0.05
"""Seconds that a packet may be on its way: one that left so long before an event may meet it."""
CONVERGED_WITHIN = 1.0
"""Seconds after an event from which nothing may be lost, if a scenario does not set them."""
MOST_STRETCHES = 240
"""Most stretches of time in which the packets of a whole run are counted."""
SHORTEST_STRETCH = 0.05
"""Seconds of the shortest stretch."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The time from an event to the next."""

    kind: WindowKind
    """What begins the window: an `event` of the scenario; `undo` of one, which has no checks; or
    nothing, `before` the first event."""
    what: str
    """The event in words, for reports."""
    begin: float
    """When the event happened, on the engine's clock."""
    fewest_hops: NDArray[np.int16]
    """int16[n], the fewest links over which the tables lead the packets of the probe's pairs
    (`Prediction`). Negative if packets may be lost, also if a host is missing.
    """
    most_hops: NDArray[np.int16]
    """int16[n], the most links of these packets."""
    case: TimelineCase | None
    """The event; None for other kinds than `event`."""
    row: int | None
    """The event's row in `Result.events`; None for other kinds than `event`."""

    @property
    def begins_move(self) -> bool:
        """Whether the event moves the fabric to another build."""
        return self.case is not None and isinstance(self.case.event, BuildChange)

    def packets(self, probed: ProbePackets, names: list[str], end: float) -> WindowPackets:
        """The packets of this window.

        Args:
            probed: the packets of the whole run.
            names: the names of the probe's pairs.
            end: when the window ended, on the engine's clock.
        """
        inside = (probed.sent >= self.begin - FLIGHT_TIME) & (probed.sent < end - FLIGHT_TIME)
        received, pair = probed.received[inside], probed.pair[inside]
        arrived = ~np.isnan(received)
        return WindowPackets(
            names=names,
            pair=pair,
            seconds_after=probed.sent[inside] - self.begin,
            arrived=arrived,
            in_time=received < end,
            lost=~arrived & (self.fewest_hops >= 0)[pair],
        )


@dataclass(frozen=True, slots=True, eq=False)
class WindowPackets:
    """The n packets of one window."""

    names: list[str]
    """The names of the pairs."""
    pair: NDArray[np.int64]
    """int64[n], the pair of each packet."""
    seconds_after: NDArray[np.float64]
    """float64[n], seconds from the event until the packet was sent."""
    arrived: NDArray[np.bool_]
    """bool[n], whether the packet arrived."""
    in_time: NDArray[np.bool_]
    """bool[n], whether it arrived before the next event."""
    lost: NDArray[np.bool_]
    """bool[n], whether it did not arrive although the tables deliver it."""

    @property
    def converged(self) -> float:
        """Seconds from the event until the last lost packet was sent; 0 if none was lost."""
        return float(np.maximum(0, self.seconds_after[self.lost]).max(initial=0))

    def count(self, packets: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of these packets each pair has."""
        return np.bincount(self.pair[packets], minlength=len(self.names))

    def check(self, name: str, wrong: NDArray[np.int64], expected: str, seen: str) -> Check:
        """A check of all pairs, of which those with a count are wrong.

        Args:
            name: the name of the check.
            wrong: int64[pairs], the count of each pair; 0 for a pair that passes.
            expected: the expectation in words.
            seen: the observation in words, with `{}` in the place of the count.
        """
        mismatches = tuple(
            Mismatch(self.names[pair], expected, seen.format(wrong[pair]))
            for pair in np.flatnonzero(wrong).tolist()
        )
        return Check.of(name, len(self.names), mismatches)


def window_checks(window: Window, packets: WindowPackets) -> list[Check]:
    """The checks of one window: losses in time, losses of each pair, and pairs that are cut off."""
    expect = window.case.expect if window.case else None
    limit = convergence_limit(expect)
    title, is_late = f"probe, {window.what}", packets.seconds_after >= limit
    after = f" after {limit:g} s" if window.case else ""
    late_losses = packets.count(packets.lost & is_late)
    checks = [
        packets.check(f"{title}: nothing lost{after}", late_losses, "no packet lost", "{} lost")
    ]
    if expect is not None and expect.lost is not None:
        losses, allowed = packets.count(packets.lost), f"at most {expect.lost} lost"
        excess = np.where(losses > expect.lost, losses, 0)
        checks.append(packets.check(f"{title}: {allowed} a pair", excess, allowed, "{} lost"))
    is_cut_off = window.most_hops < 0
    if is_cut_off.any():
        # Packets that arrive after the next event do not count: a host may have kept them until it
        # had a link again.
        strays = packets.count(packets.in_time & is_cut_off[packets.pair] & is_late)
        name = f"{title}: cut off as predicted"
        checks.append(packets.check(name, strays, "nothing delivered", "{} packets"))
    return checks


def rate_check(window: Window, packets: WindowPackets, due: int) -> Check:
    """The check that each pair sent at least `due` packets: a silent probe would see no loss."""
    sent = np.bincount(packets.pair, minlength=len(packets.names))
    # The count is one more than the packets sent, so that a pair that sent none does not pass.
    counts = np.where(sent < due, sent + 1, 0)
    name = f"probe, {window.what}: it kept its rate"
    return packets.check(name, counts, f"{due} packets or more", "fewer than {}")


def convergence_limit(expect: ExpectInMoment | None) -> float:
    """Seconds after an event from which nothing may be lost; 0 if `expect` is None: no event."""
    if expect is None:
        return 0.0
    return CONVERGED_WITHIN if expect.converged_within is None else expect.converged_within


def probe_history(probed: ProbePackets, begin: float) -> ProbeHistory:
    """The packets of a whole run, sent and arrived, by stretches of time since its beginning."""
    seconds = np.maximum(0, probed.sent - begin)
    stretch = max(SHORTEST_STRETCH, round(float(seconds.max(initial=0)) / MOST_STRETCHES, 2))
    number = (seconds / stretch).astype(np.int64)
    arrived = np.bincount(number, ~np.isnan(probed.received)).astype(np.int64)
    return ProbeHistory(stretch, np.bincount(number), arrived)
