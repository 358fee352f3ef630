"""The loop of rounds and probes, over ends that lose some; a probe that ends by itself."""

from __future__ import annotations

import subprocess
import time
from multiprocessing import Pipe
from types import SimpleNamespace

import numpy as np
import pytest

from mininet_scenarios.scenario.engine import SILENT, EngineError
from mininet_scenarios.traffic import probing
from mininet_scenarios.traffic.probing import (
    AT_ONCE,
    FRESH,
    PACKET,
    ProbeProcess,
    Prober,
    UdpProber,
)


def test_a_probe_that_was_killed_is_one_message() -> None:
    probe = ProbeProcess.__new__(ProbeProcess)
    probe.end, theirs = Pipe()
    probe.process = subprocess.Popen(["cat"], stdin=theirs.fileno())
    probe.process.kill()
    probe.process.wait()
    theirs.close()
    with pytest.raises(EngineError, match="the probe has ended"):
        probe.stop()
    assert probe.end.closed


class Ends(Prober):
    """Every packet of some pairs is lost; others have come when they are asked for."""

    late = 0.05

    def __init__(self, pairs, lost, over=None, most=0):
        super().__init__(pairs)
        self.lost, self.over, self.most, self.at_once = lost, over, most, []

    def close(self):
        assert len(self.sent) - len(self.heard) == sum(
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
                self.heard.setdefault(place, (time.monotonic(), 2))
        if len(self.heard) < len(self.sent):
            time.sleep(min(patience, 0.01))


def test_a_round_goes_on_where_packets_are_lost() -> None:
    lost = {*range(0, 3 * AT_ONCE, 2)}
    ends = Ends(3 * AT_ONCE, lost)
    hops = ends.once(lambda *_: None)
    assert {n for n, links in enumerate(hops.tolist()) if links == SILENT} == lost
    assert set(hops.tolist()) == {SILENT, 2}
    assert max(ends.at_once) == AT_ONCE
    assert min(ends.at_once[:-1]) > AT_ONCE / 2


def test_a_probe_is_evenly_spread(monkeypatch) -> None:
    """In time, over all pairs in turn; what is lost is not there, and the end is waited for."""
    monkeypatch.setattr(probing, "PROBE_LATE", 0.05)
    over, here = Pipe()
    ends = Ends(10, {3}, here, 60)
    probed = ends.run(0.1, over)
    assert set(probed.pair[np.isnan(probed.received)].tolist()) == {3}
    assert np.bincount(probed.pair).tolist() == [6] * 10
    due = probed.sent[0] + np.arange(60) * 0.01
    assert (probed.sent > due - FRESH / 10).all()


class Wire:
    """A host's socket whose packets come twice, the last first, the second time over more links.

    Those of the pair `lost` come only as of another round.
    """

    lost, waiting = 2, []

    def fileno(self):
        return id(self)

    def sendto(self, data, _):
        own, pair, number = PACKET.unpack(data)
        data = PACKET.pack(bytes(4) if pair == self.lost else own, pair, number)
        self.waiting[:] = [(data, 60), *self.waiting, (data, 61)]

    def recvmsg(self, *_):
        if not self.waiting:
            raise BlockingIOError
        data, ttl = self.waiting.pop()
        return data, [(0, 0, bytes([ttl, 0, 0, 0]))], 0, None

    def close(self):
        assert not self.waiting


def test_udp_that_comes_twice_or_is_of_another_round(monkeypatch) -> None:
    ready = SimpleNamespace(register=lambda *_: None, close=lambda: None)
    monkeypatch.setattr(probing, "select", SimpleNamespace(epoll=lambda: ready, EPOLLIN=1))
    monkeypatch.setattr(probing, "_socket", lambda *_: Wire())
    monkeypatch.setattr(UdpProber, "late", 0.05)
    prober = UdpProber([(0, "a"), (0, "b")], [(0, 1)] * 5)
    ready.poll = lambda _: [(file, 1) for file in prober.of_file]
    assert prober.once(lambda *_: None).tolist() == [2, 2, SILENT, 2, 2]
