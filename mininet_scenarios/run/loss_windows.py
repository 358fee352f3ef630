"""Loss windows: the probe packets lost after each event, their pairs, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.scenario.engine import SILENT, BuildChange, HostPair, Probed
from mininet_scenarios.scenario.scenario_format import Expect
from mininet_scenarios.scenario.timeline_events import Case
from mininet_scenarios.verdict.checks import Check, Mismatch
from mininet_scenarios.verdict.predict import Prediction
from mininet_scenarios.verdict.result import Result, Watched

GUARD = 0.05
"""Seconds before an event in which a packet may have left and yet meet it."""
CONVERGED_WITHIN = 1.0
"""Seconds, where a scenario does not say."""
STRETCHES = 240


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """From an event, at `begin` on the engine's clock, to the next; case is None for an undo.

    ends: int64[n, 2], the switches of the probe's pairs as the prediction numbers them; negative
    for hosts that it has not.
    """

    what: str
    begin: float
    prediction: Prediction
    ends: NDArray[np.int64]
    case: Case | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The packets of one window: pair (int[n]), seconds since the event, whether they came."""

    pair: NDArray[np.int32]
    since: NDArray[np.float64]
    came: NDArray[np.bool_]


def watch(
    windows: list[Window],
    end: float,
    begin: float,
    pairs: Sequence[HostPair],
    probed: Probed,
    interval: float,
    result: Result,
) -> None:
    """Judge every window, and add what was seen to the result.

    Args:
        windows: in their order.
        end: when the last one ends.
        begin: when the timeline began.
        pairs: of the probe.
        probed: its packets.
        interval: seconds between two of a pair.
        result: gets checks, and of each event what was lost.
    """
    came = ~np.isnan(probed.received)
    result.watched = _overall(probed, came, begin)
    rows = iter(range(len(result.happened)))
    ends = [*(after.begin for _, after in pairwise(windows)), end]
    for window, until in zip(windows, ends, strict=True):
        inside = (probed.sent >= window.begin - GUARD) & (probed.sent < until - GUARD)
        seen = _Seen(probed.pair[inside], probed.sent[inside] - window.begin, came[inside])
        known = (window.ends >= 0).all(axis=1)
        fewest = np.where(known, window.prediction.fewest[tuple(window.ends.T)], SILENT)
        most = np.where(known, window.prediction.most[tuple(window.ends.T)], 0)
        first = window is windows[0]
        if window.case is None and not first:
            continue
        lost = ~seen.came & (fewest >= 0)[seen.pair]
        count = np.bincount(seen.pair[lost], minlength=len(pairs))
        last = float(np.maximum(0, seen.since[lost]).max(initial=0))
        names = [f"{one} → {other}" for one, other in pairs]
        result.checks += _judge(window, names, seen, lost, count, most < 0)
        if window.case and isinstance(window.case.event, BuildChange):
            due = int((until - window.begin) / interval / 2)
            result.checks.append(_rate(window.what, names, seen, due))
        if not first:
            row = next(rows)
            result.happened[row] = replace(
                result.happened[row],
                lost=int(count.sum()),
                worst=int(count.max(initial=0)),
                converged=round(last, 3),
            )


def _judge(
    window: Window,
    names: list[str],
    seen: _Seen,
    lost: NDArray[np.bool_],
    count: NDArray[np.int64],
    never: NDArray[np.bool_],
) -> list[Check]:
    expect = window.case.expect if window.case else None
    limit = within(expect)
    title = f"probe, {window.what}"
    late = np.bincount(seen.pair[lost & (seen.since >= limit)], minlength=len(names))
    what = f"{title}: nothing lost" + (f" after {limit:g} s" if window.case else "")
    checks = [_pairs(what, names, late, "no packet lost", "{} lost")]
    if expect is not None and expect.lost is not None:
        over = np.where(count > expect.lost, count, 0)
        allowed = f"at most {expect.lost} lost"
        checks.append(_pairs(f"{title}: {allowed} a pair", names, over, allowed, "{} lost"))
    strays = seen.came & never[seen.pair] & (seen.since >= limit)
    if never.any():
        came = np.bincount(seen.pair[strays], minlength=len(names))
        checks.append(
            _pairs(f"{title}: cut off as predicted", names, came, "nothing delivered", "{} packets")
        )
    return checks


def _rate(what: str, names: list[str], seen: _Seen, due: int) -> Check:
    """A probe that is silent sees no loss: at least half of what was due has been sent."""
    sent = np.bincount(seen.pair, minlength=len(names))
    silent = np.where(sent < due, sent, 0) + (sent < due)
    title = f"probe, {what}: it kept its rate"
    return _pairs(title, names, silent, f"{due} packets or more", "fewer than {}")


def within(expect: Expect | None) -> float:
    """Seconds from which nothing may be lost; at once before anything happens."""
    if expect is None:
        return 0.0
    return CONVERGED_WITHIN if expect.converged_within is None else expect.converged_within


def _pairs(
    what: str, names: list[str], wrong: NDArray[np.int64], expected: str, seen: str
) -> Check:
    """A check of all pairs, of which those with a count are wrong."""
    mismatches = tuple(
        Mismatch(names[n], expected, seen.format(wrong[n])) for n in np.flatnonzero(wrong).tolist()
    )
    return Check.of(what, len(names), mismatches)


def _overall(probed: Probed, came: NDArray[np.bool_], begin: float) -> Watched:
    """Counts by stretches of time."""
    since = np.maximum(0, probed.sent - begin)
    length = float(since.max(initial=0))
    stretch = max(0.05, round(length / STRETCHES, 2))
    where = (since / stretch).astype(np.int64)
    latency = np.sort((probed.received - probed.sent)[came])
    return Watched(
        stretch=stretch,
        sent=np.bincount(where),
        received=np.bincount(where, came).astype(np.int64),
        latency=latency[latency > 0],
    )
