"""Whether an event loses packets, on a machine that may lose some by itself."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tests.controller.conftest import POLARFAB

WARM = 0.5
FLIGHT = 0.2
"""Seconds before an event in which a packet may leave and still meet it."""
AFTER = 1.0


@dataclass(frozen=True, slots=True)
class Windows:
    """Packets of a probe between all hosts: int64[pairs], lost without the event and with it.

    kept: whether every pair had half of its packets at least, in both.
    """

    pairs: np.ndarray
    calm: np.ndarray
    event: np.ndarray
    after: np.ndarray
    kept: bool


def probed(engine, interval, event):
    """Send over all pairs of hosts every so many seconds: a while without the event, then with it.

    In the first window another command of polarfab works, as some do in the second: what the
    machine loses for want of time it loses there, too.
    """
    hosts = len(engine.build.wiring.names)
    pairs = np.array(list(permutations(range(hosts), 2)))
    after = max(AFTER, 3 * interval)
    engine.probe_start(pairs, interval)
    engine.wait(WARM + interval)
    times = [engine.now()]
    subprocess.run([POLARFAB, "verify", engine.setup.folder], check=True, capture_output=True)
    engine.wait(after)
    times.append(engine.now())
    engine.wait(FLIGHT)
    event(engine)
    times.append(engine.now())
    engine.wait(after)
    found = engine.probe_stop()
    times.append(engine.now())
    missed = np.isnan(found.received)

    def count(begin, end, which=True):
        chosen = (found.sent >= begin) & (found.sent < end) & which
        return np.bincount(found.pair[chosen], minlength=len(pairs))

    spans = [(times[0], times[1]), (times[1], times[3])]
    kept = all(count(begin, end).min() >= (end - begin) / interval / 2 for begin, end in spans)
    calm, hit = (count(*span, missed) for span in spans)
    return Windows(pairs, calm, hit, count(times[2] + FLIGHT, times[3], missed), kept)


def loses_nothing(engine, intervals, event):
    """Fails when the event loses packets at a rate at which the machine by itself loses none.

    Tries the next interval only where the machine could not carry the one before: packets were lost
    with nothing happening to the fabric, or could not be sent in time.
    """
    for interval in intervals:
        found = probed(engine, interval, event)
        if found.kept and not found.calm.any():
            lost = {
                tuple(found.pairs[n].tolist()): int(found.event[n])
                for n in found.event.nonzero()[0]
            }
            assert not lost, f"lost with a packet every {interval} s a pair, none before: {lost}"
            return
    raise AssertionError(f"this machine does not carry a packet every {intervals[-1]} s a pair")
