"""Frames that a slow machine drops or holds back arrive all the same; those of a fault do not."""

from pathlib import Path

import numpy as np

from mininet_scenarios.ovs.frames import HASHED, FrameWriter
from mininet_scenarios.scenario.engine import SILENT, HostSample
from mininet_scenarios.traffic import frame_exchange, probing
from mininet_scenarios.traffic.frame_exchange import (
    FIRST_PORT,
    PATIENCE,
    STILL,
    CollectorProber,
    exchanged,
)
from polarfab.fabric import Fabric

FRAMES = [(0, b"one"), (1, b"two"), (0, b"three"), (1, b"silent")]
DUE = [b"one", b"two", b"three", None]


class SlowEnds:
    """Echoes frames to host 9: those of `drops` not before they were sent so often."""

    def __init__(self, drops, strays=()):
        self.drops, self.got, self.sent, self.quiet = dict(drops), list(strays), [], []

    def send(self, frames):
        self.sent.append([data for _, data in frames])
        for _, data in frames:
            self.drops[data] = self.drops.get(data, 0) - 1
            if self.drops[data] < 0:
                self.got.append((9, data))

    def hear(self, patience):
        got, self.got = self.got, []
        if not got:
            self.quiet.append(patience)
        return got


def answer(frame):
    return frame[1]


def test_all_is_sent_once_where_nothing_is_missing():
    ends = SlowEnds({b"silent": 9})
    heard, times = exchanged(ends, FRAMES, DUE, answer)
    assert [data for _, data in heard] == DUE[:3]
    assert (times, ends.quiet) == ([1, 1, 1, 1], [])


def test_only_what_is_missing_goes_again_until_it_arrives():
    ends = SlowEnds({b"two": 2, b"three": 1, b"silent": 9})
    heard, times = exchanged(ends, FRAMES, DUE, answer)
    assert {data for _, data in heard} == {b"one", b"two", b"three"}
    assert ends.sent[1:] == [[b"two", b"three"], [b"two"]]
    assert times == [1, 3, 2, 1]


def test_what_never_arrives_is_lost_after_the_last_time():
    heard, times = exchanged(SlowEnds({b"two": 9}), FRAMES, DUE, answer)
    assert b"two" not in {data for _, data in heard}
    assert times == [1, len(PATIENCE), 1, 1]


def test_other_frames_do_not_pass_for_those_that_are_awaited():
    ends = SlowEnds({b"two": 1}, strays=[(9, b"late"), (9, b"ours")])
    heard, _ = exchanged(ends, FRAMES, DUE, answer)
    assert ends.quiet == [PATIENCE[0]]
    assert (9, b"two") in heard


def test_a_frame_that_comes_twice_does_not_stand_for_another(monkeypatch):
    """As when the first of two that were sent again came late."""
    ends, late = SlowEnds({}), iter([[(1, b"one"), (1, b"one")], [(1, b"two")]])
    monkeypatch.setattr(ends, "hear", lambda _: next(late))
    heard, _ = exchanged(ends, [(0, b"one"), (0, b"two")], [b"one", b"two"], answer)
    assert {data for _, data in heard} == {b"one", b"two"}


def test_what_is_lost_is_waited_for_once_and_at_the_end(monkeypatch):
    """Not after each of the waves that follow."""
    monkeypatch.setattr(frame_exchange, "WAVE", 1)
    ends = SlowEnds({b"lost": 9})
    due = [b"lost", b"one", b"two"]
    heard, _ = exchanged(ends, [(0, data) for data in due], due, answer)
    assert heard == [(9, b"one"), (9, b"two")]
    assert ends.quiet == [STILL, *PATIENCE]


def test_frames_of_others_do_not_keep_it_waiting(monkeypatch):
    """As a controller's LLDP, which comes for ever."""
    monkeypatch.setattr(frame_exchange, "PATIENCE", PATIENCE[:1])
    ends = SlowEnds({})
    monkeypatch.setattr(ends, "hear", lambda _: [(9, b"LLDP")])
    heard, _ = exchanged(ends, [(0, b"lost")], [b"lost"], answer)
    assert set(heard) == {(9, b"LLDP")}


class Clock:
    """For which waiting costs nothing."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class HoldingCollectors:
    """Hands over a frame every .09 s, the last one first, and a second time over more links.

    Those to the first host come to the second, and one of the round before comes late.
    """

    def __init__(self, clock, hosts, address):
        self.clock, self.hosts, self.connections = clock, hosts, [None]
        self.names = {row.tobytes(): name for row, name in zip(address, hosts, strict=True)}
        self.held = []

    def close(self):
        pass

    def send(self, frames):
        self.held += [data for _, data in frames]

    def hear(self, patience):
        self.clock.now += min(patience, 0.09)
        if patience < 0.09 or not self.held:
            return []
        data = self.held.pop()
        name = self.names[data[30:34]]
        host = self.hosts[1] if name == self.hosts[0] else name
        return [(host, data[:22] + bytes([ttl]) + data[23:]) for ttl in (61, 60)]


def test_frames_held_back_doubled_and_led_astray(monkeypatch):
    """Those that are late count as long as some come; once, and at the host they are for."""
    clock = Clock()
    monkeypatch.setattr(probing, "time", clock)
    monkeypatch.setattr(frame_exchange, "time", clock)
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    build = Fabric.from_spec(spec).compile().build
    hosts = HostSample.of(build, 1)
    writer = FrameWriter(build, hosts, 4)
    ends = HoldingCollectors(clock, hosts.names, writer.address)
    monkeypatch.setattr(frame_exchange, "CollectorFrames", lambda *_: ends)
    pairs = np.argwhere(hosts.every_pair())
    prober = CollectorProber(Path(), writer, pairs, 7)
    late = writer.of_kind(HASHED, pairs[5:6, 0], pairs[5:6, 1], FIRST_PORT, 6)
    ends.send(late.by_host(hosts.names))
    hops = prober.once(lambda *_: None)
    assert np.array_equal(hops, np.where(pairs[:, 1] == 0, SILENT, 2))
