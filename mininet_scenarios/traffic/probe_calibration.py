"""The probe's own loss: it runs first while nothing happens, and must lose nothing.

A machine that is too busy loses packets of a probe, or does not send them in time. Then loss would
say nothing about the fabric, and its absence nothing either. So the rate is lowered until a control
window without any event is clean; where none is, there is no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mininet_scenarios.scenario.engine import Engine, EngineError, HostPair, Step

CALIBRATION_RATE = 2000.0
"""Packets a second of all pairs together. A machine does many times as many while nothing happens;
while the fabric moves, the controller and Open vSwitch need it, too."""
LEAST, PACKETS = 1.0, 5
"""A control window is so many seconds, and so many packets of a pair, at least."""
SLOWER, MOST = 2.0, 4.0
"""The factor by which the next try is slower, and the longest interval in seconds."""


def clean_interval(
    engine: Engine, pairs: Sequence[HostPair], interval: float, step: Step
) -> tuple[float, list[str]]:
    """The shortest interval, from `interval` on, at which the probe loses nothing by itself.

    Args:
        engine: with a probe.
        pairs: hosts that reach each other.
        interval: seconds between two packets of a pair, to begin with; more for many pairs.
        step: is told of each control window.

    Returns:
        The interval, and what was seen at shorter ones.

    Raises:
        EngineError: there is none up to 4 seconds.
    """
    seen: list[str] = []
    if (wanted := len(pairs) / interval) > CALIBRATION_RATE:
        seen.append(
            f"every {interval:g} s: {wanted:,.0f} packets a second, "
            f"where {CALIBRATION_RATE:,.0f} go"
        )
        interval = len(pairs) / CALIBRATION_RATE
    while True:
        what = f"send over {len(pairs):,} pairs every {interval:.3g} s while nothing happens"
        with step("control", what):
            fault = _window(engine, pairs, interval)
        if not fault:
            return interval, seen
        seen.append(f"every {interval:.3g} s: {fault}")
        if interval * SLOWER > MOST:
            tried = "; ".join(seen)
            raise EngineError(
                "this machine is too busy: the probe itself loses packets while nothing happens "
                f"({tried}), so it cannot tell whether a move does; run it again on a quieter one"
            )
        interval *= SLOWER


def _window(engine: Engine, pairs: Sequence[HostPair], interval: float) -> str:
    """What was wrong with one control window; "" for nothing."""
    seconds = max(LEAST, PACKETS * interval)
    engine.probe_start(pairs, interval)
    begin = engine.now()
    engine.wait(seconds)
    end = engine.now()
    probed = engine.probe_stop()
    if lost := int(np.isnan(probed.received).sum()):
        return f"{lost:,} of {len(probed.sent):,} packets lost"
    inside = probed.pair[(probed.sent >= begin) & (probed.sent < end)]
    due = int((end - begin) / interval / 2)
    if (least := int(np.bincount(inside, minlength=len(pairs)).min())) < due:
        return f"{least} packets of a pair sent where {2 * due} were due"
    return ""
