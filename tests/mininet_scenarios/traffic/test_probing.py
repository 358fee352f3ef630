"""The loop of rounds and probes, over ends that lose some; a probe that ends by itself."""

from __future__ import annotations

import time
from multiprocessing import Pipe

import numpy as np

from mininet_scenarios.scenario.observations import SILENT
from mininet_scenarios.traffic.probing import (
    AT_ONCE,
    LONGEST_TURN,
    Prober,
)


class Ends(Prober):
    """Every packet of some pairs is lost; others have come when they are asked for."""

    late = 0.05

    def __init__(self, pairs, lost, over=None, most=0):
        super().__init__(pairs)
        self.lost, self.over, self.most, self.at_once = lost, over, most, []

    def close(self):
        assert len(self.sent) - len(self.arrivals) == sum(
            n % self.pairs in self.lost for n in range(len(self.sent))
        )

    def send(self, count):
        self.at_once.append(count)
        self.sent += [time.monotonic()] * count
        if self.over and len(self.sent) >= self.most:
            self.over.send(None)

    def hear(self, patience):
        for place in range(len(self.sent)):
            if place % self.pairs not in self.lost:
                self.arrivals.setdefault(place, (time.monotonic(), 2))
        if len(self.arrivals) < len(self.sent):
            time.sleep(min(patience, 0.01))


def test_a_round_goes_on_where_packets_are_lost() -> None:
    lost = {*range(0, 3 * AT_ONCE, 2)}
    ends = Ends(3 * AT_ONCE, lost)
    hops = ends.run_round(lambda *_: None)
    assert {n for n, links in enumerate(hops.tolist()) if links == SILENT} == lost
    assert set(hops.tolist()) == {SILENT, 2}
    assert max(ends.at_once) == AT_ONCE
    assert min(ends.at_once[:-1]) > AT_ONCE / 2


def test_a_probe_is_evenly_spread() -> None:
    """In time, over all pairs in turn; what is lost is not there, and the end is waited for."""
    over, here = Pipe()
    ends = Ends(10, {3}, here, 60)
    probed = ends.run_probe(0.1, over)
    assert set(probed.pair[np.isnan(probed.received)].tolist()) == {3}
    assert np.ptp(np.bincount(probed.pair)) <= 1
    due = probed.sent[0] + np.arange(len(probed.sent)) * 0.01
    assert (probed.sent > due - LONGEST_TURN / 10).all()
