"""Whether an event loses packets, on a machine that may lose some by itself."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from tests.controller.makers import POLARFAB

HEADROOM = 2
"""How much more the machine has to carry while nothing happens than while something does."""
WARM, FLIGHT, AFTER = 0.5, 0.2, 1.0
"""Seconds: of first packets, that a packet may be on its way, and that are watched afterwards."""


@dataclass(frozen=True, slots=True)
class Window:
    """Packets between all hosts, int64[pairs]: how many were sent, and lost.

    It begins a little before the event, so that packets that were on their way are in it.
    """

    pairs: np.ndarray
    sent: np.ndarray
    lost: np.ndarray
    seconds: float


def probed(engine, interval, event, hosts=None):
    """What a probe with a packet every so many seconds, between these hosts, sees of an event."""
    hosts = hosts or len(engine.build.wiring.names)
    pairs, after = np.array(list(permutations(range(hosts), 2))), max(AFTER, 3 * interval)
    engine.probe_start(engine.hosts.pairs(pairs), interval)
    engine.wait(WARM + interval)
    begin = engine.now()
    engine.wait(FLIGHT)
    event(engine)
    engine.wait(after)
    end = engine.now()
    found = engine.probe_stop()

    chosen = (found.sent >= begin) & (found.sent < end)
    sent, lost = (
        np.bincount(found.pair[which], minlength=len(pairs))
        for which in (chosen, chosen & np.isnan(found.received))
    )
    return Window(pairs, sent, lost, end - begin)


def verify(engine):
    """Work that leaves the fabric alone."""
    subprocess.run([POLARFAB, "verify", engine.setup.folders[0]], check=True, capture_output=True)


def loses_nothing(engine, intervals, event, hosts=None):
    """Fails when the event loses a packet, at the first interval that the machine carries easily.

    Just before it, and at `HEADROOM` times its rate, is a window in which nothing happens to the
    fabric, but another command of polarfab works, as some do for the event. Only where that window
    has lost packets, or the probe could not keep its rate, is the next interval taken instead: so a
    machine with too much to do does not fail the test, and an outage cannot hide, since no event is
    ever tried again.
    """
    for interval in intervals:
        calm = probed(engine, interval / HEADROOM, verify, hosts)
        kept = calm.sent.min() >= 0.8 * calm.seconds * HEADROOM / interval
        if kept and not calm.lost.any():
            break
    else:
        raise AssertionError(f"this machine does not carry a packet every {interval} s a pair")
    found = probed(engine, interval, event, hosts)
    assert found.sent.min() >= 0.5 * found.seconds / interval
    lost = [(*found.pairs[n].tolist(), int(found.lost[n])) for n in found.lost.nonzero()[0]]
    print(f"{found.sent.sum()} packets, one every {interval} s a pair")
    assert not lost, f"a packet every {interval} s a pair, lost from, to, how many: {lost}"
