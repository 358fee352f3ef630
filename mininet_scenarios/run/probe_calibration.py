"""Calibration of a probe: the interval at which it loses nothing by itself while nothing happens.

A probe can judge an event only if the probe itself loses no packets. A busy machine drops or delays
packets. So before a move, and before any event if many packets are sent, `timeline` runs control
windows with longer and longer intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mininet_scenarios.scenario.engine import Engine, EngineError, HostPair, Step

CALIBRATION_RATE = 2000.0
"""The most packets a second, over all pairs, of a probe that is calibrated. An idle machine sends
many times as many. During a move, the controller and Open vSwitch need the processor, too."""
UNCALIBRATED_RATE = 5000.0
"""The most packets a second, over all pairs, of a probe of failures that runs without control
windows. On two busy cores, such a probe lost packets when a switch of q = 7 was down."""
LEAST_SECONDS = 1.0
"""The least seconds of a control window."""
LEAST_PACKETS = 5
"""The least packets of each pair in a control window."""
SENT_SHARE = 0.5
"""The share of the packets due in a control window that each pair has to send: below that, the
machine is too slow for the interval."""
SLOWDOWN = 2.0
"""The factor by which the interval of the next control window is longer."""
LONGEST_INTERVAL = 4.0
"""The longest interval that is tried, in seconds."""


class CleanInterval(NamedTuple):
    """An interval at which a probe loses nothing by itself."""

    interval: float
    """Seconds between two packets of a pair."""
    faults: list[str]
    """In words, the fault of each shorter interval that was tried."""


def clean_interval(
    engine: Engine, pairs: Sequence[HostPair], interval: float, step: Step
) -> CleanInterval:
    """The shortest interval, from `interval` on, at which the probe loses nothing by itself.

    Args:
        engine: sends the packets.
        pairs: hosts that reach each other.
        interval: the first interval, in seconds between two packets of a pair. For many pairs the
            first interval is longer.
        step: is notified of each control window.

    Raises:
        EngineError: there is no such interval up to `LONGEST_INTERVAL`.
    """
    faults: list[str] = []
    rate = len(pairs) / interval
    if rate > CALIBRATION_RATE:
        faults.append(
            f"every {interval:g} s: {rate:,.0f} packets a second, where {CALIBRATION_RATE:,.0f} go"
        )
        interval = len(pairs) / CALIBRATION_RATE
    while True:
        words = f"send over {len(pairs):,} pairs every {interval:.3g} s while nothing happens"
        with step("control", words):
            fault = _control_window(engine, pairs, interval)
        if not fault:
            return CleanInterval(interval, faults)
        faults.append(f"every {interval:.3g} s: {fault}")
        if interval * SLOWDOWN > LONGEST_INTERVAL:
            raise EngineError(
                "this machine is too busy: the probe itself loses packets while nothing happens "
                f"({'; '.join(faults)}), so it cannot tell what an event loses; run it again on "
                "a quieter one, or with fewer pairs"
            )
        interval *= SLOWDOWN


def _control_window(engine: Engine, pairs: Sequence[HostPair], interval: float) -> str:
    """Run the probe while nothing happens.

    Returns:
        The fault of the window in words: packets were lost, or too few were sent; "" without one.
    """
    seconds = max(LEAST_SECONDS, LEAST_PACKETS * interval)
    engine.probe_start(pairs, interval)
    begin = engine.now()
    engine.wait(seconds)
    end = engine.now()
    probed = engine.probe_stop()
    lost = int(np.isnan(probed.received).sum())
    if lost:
        return f"{lost:,} of {len(probed.sent):,} packets lost"
    sent_pairs = probed.pair[(probed.sent >= begin) & (probed.sent < end)]
    required = int(SENT_SHARE * (end - begin) / interval)
    fewest = int(np.bincount(sent_pairs, minlength=len(pairs)).min())
    if fewest < required:
        return f"{fewest} packets of a pair sent where {round(required / SENT_SHARE)} were due"
    return ""
