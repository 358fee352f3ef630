"""The interval at which a probe loses nothing by itself while nothing happens.

An event may be judged by a probe only if the probe itself is not what loses packets: a busy machine
drops or delays them. So before a move, and before any event if many packets are sent, control
windows are run, with longer and longer intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mininet_scenarios.scenario.engine import Engine, EngineError, HostPair, Step

CALIBRATION_RATE = 2000.0
"""Packets a second of all pairs together. A machine sends many times as many while nothing happens;
while the fabric moves, the controller and Open vSwitch need it, too."""
FASTEST_RATE = 5000.0
"""A probe of failures of up to so many packets a second of all pairs together is as it is written.
Two busy cores lost packets of such a one once a switch of q = 7 was down."""
LEAST_SECONDS, LEAST_PACKETS = 1.0, 5
"""A control window lasts so many seconds, and so many packets of a pair, at least."""
SLOWER = 2.0
"""The factor by which the interval of the next control window is longer."""
LONGEST_INTERVAL = 4.0
"""The longest interval that is tried, in seconds."""


class CleanInterval(NamedTuple):
    """An interval at which a probe loses nothing by itself."""

    interval: float
    """Seconds between two packets of a pair."""
    faults: list[str]
    """What was wrong with the shorter intervals, in words."""


def clean_interval(
    engine: Engine, pairs: Sequence[HostPair], interval: float, step: Step
) -> CleanInterval:
    """The shortest interval, from `interval` on, at which the probe loses nothing by itself.

    Args:
        engine: with a probe.
        pairs: hosts that reach each other.
        interval: seconds between two packets of a pair, to begin with; more for many pairs.
        step: is notified of each control window.

    Raises:
        EngineError: there is none up to `LONGEST_INTERVAL`.
    """
    faults: list[str] = []
    if (rate := len(pairs) / interval) > CALIBRATION_RATE:
        faults.append(
            f"every {interval:g} s: {rate:,.0f} packets a second, where {CALIBRATION_RATE:,.0f} go"
        )
        interval = len(pairs) / CALIBRATION_RATE
    while True:
        what = f"send over {len(pairs):,} pairs every {interval:.3g} s while nothing happens"
        with step("control", what):
            fault = _control_window(engine, pairs, interval)
        if not fault:
            return CleanInterval(interval, faults)
        faults.append(f"every {interval:.3g} s: {fault}")
        if interval * SLOWER > LONGEST_INTERVAL:
            raise EngineError(
                "this machine is too busy: the probe itself loses packets while nothing happens "
                f"({'; '.join(faults)}), so it cannot tell what an event loses; run it again on "
                "a quieter one, or with fewer pairs"
            )
        interval *= SLOWER


def _control_window(engine: Engine, pairs: Sequence[HostPair], interval: float) -> str:
    """Run the probe while nothing happens: what was wrong, in words; "" for nothing."""
    seconds = max(LEAST_SECONDS, LEAST_PACKETS * interval)
    engine.probe_start(pairs, interval)
    begin = engine.now()
    engine.wait(seconds)
    end = engine.now()
    probed = engine.probe_stop()
    if lost := int(np.isnan(probed.received).sum()):
        return f"{lost:,} of {len(probed.sent):,} packets lost"
    sent_pairs = probed.pair[(probed.sent >= begin) & (probed.sent < end)]
    due = int((end - begin) / interval / 2)
    if (least := int(np.bincount(sent_pairs, minlength=len(pairs)).min())) < due:
        return f"{least} packets of a pair sent where {2 * due} were due"
    return ""
