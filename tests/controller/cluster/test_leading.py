"""Elections with a store that can be cut off, and a clock that goes where the test wants it."""

import ssl
from itertools import count

import numpy as np
import pytest

from controller.cluster import store
from controller.cluster.election import (
    LEADER_PERIOD,
    LEASE_MARGIN,
    LEASE_SECONDS,
    Election,
)
from controller.cluster.store import LeaderClaim, Unavailable


class Etcd:
    """One leader's key with a lease; seconds of its own clock, which may run away from ours."""

    def __init__(self):
        self.now, self.revision, self.key, self.leases = 0.0, 1, None, {}
        self.numbers = count(1)

    def pass_time(self, seconds):
        self.now += seconds
        for lease in [lease for lease, end in self.leases.items() if end <= self.now]:
            self.end(lease)

    def end(self, lease):
        del self.leases[lease]
        if self.key and self.key[0] == lease:
            self.key = None


class Wire:
    """What an instance has of the store; after a cut the answers, or the requests too, are lost."""

    def __init__(self, etcd):
        self.etcd, self.cut = etcd, ""

    def _call(self, answer):
        if self.cut == "both":
            raise Unavailable("cut")
        result = answer()
        if self.cut == "answers":
            raise Unavailable("cut")
        return result

    def grant(self, ttl):
        def answer():
            lease = next(self.etcd.numbers)
            self.etcd.leases[lease] = self.etcd.now + ttl
            return lease, float(ttl)

        return self._call(answer)

    def renew(self, lease):
        def answer():
            if lease not in self.etcd.leases:
                return 0.0
            self.etcd.leases[lease] = self.etcd.now + LEASE_SECONDS
            return float(LEASE_SECONDS)

        return self._call(answer)

    def claim(self, lease, name):
        def answer():
            if self.etcd.key is None:
                if lease not in self.etcd.leases:
                    raise Unavailable("lease not found")
                self.etcd.revision += 1
                self.etcd.key = (lease, name, self.etcd.revision)
            there, leader, term = self.etcd.key
            return LeaderClaim(leader, term, there == lease)

        return self._call(answer)

    def revoke(self, lease):
        self._call(lambda: self.etcd.end(lease))


class World:
    def __init__(self, size=2):
        self.etcd, self.now = Etcd(), 100.0
        self.wires = [Wire(self.etcd) for _ in range(size)]
        self.instances = [
            Election(wire, f"c{number}", lambda: self.now) for number, wire in enumerate(self.wires)
        ]

    def step(self, *numbers, seconds=LEADER_PERIOD):
        """Time passes; these instances run, the others stand still."""
        self.now += seconds
        self.etcd.pass_time(seconds)
        for number in numbers:
            self.instances[number].step()
        leaders = [one.name for one in self.instances if one.term]
        assert len(leaders) < 2, f"split brain: {leaders}"
        return leaders

    def until(self, leader, *numbers, most=40):
        for steps in range(most):
            if self.step(*numbers) == [leader]:
                return steps * LEADER_PERIOD
        raise AssertionError(f"{leader} does not come to lead")


def test_one_of_two_claimers_leads():
    world = World()
    assert world.step(0, 1) == ["c0"]
    assert world.instances[1].view.leader == "c0"
    assert world.instances[1].view.term == world.instances[0].term
    for _ in range(100):
        assert world.step(1, 0) == ["c0"]


def test_a_dead_leader_is_followed_within_its_lease_by_a_higher_term():
    world = World()
    world.step(0, 1)
    before = world.instances[0].term
    assert world.until("c1", 1) <= LEASE_SECONDS + LEADER_PERIOD
    assert world.instances[1].term > before


@pytest.mark.parametrize("cut", ["both", "answers"])
def test_a_cut_off_leader_stops_before_another_begins(cut):
    world = World()
    world.step(0, 1)
    world.wires[0].cut = cut
    gap = 0
    while world.instances[0].term:
        world.step(0, 1)
        gap += LEADER_PERIOD
        assert gap < LEASE_SECONDS
    assert gap > LEASE_SECONDS - LEASE_MARGIN - 2 * LEADER_PERIOD
    assert world.instances[0].view.trouble == "cut"
    if cut == "both":
        world.until("c1", 0, 1)
        world.wires[0].cut = ""
        assert world.step(0, 1) == ["c1"]
        assert world.instances[0].view.leader == "c1"
        assert not world.instances[0].view.trouble


def test_a_leader_that_was_stopped_does_not_lead_when_it_wakes():
    world = World()
    world.step(0, 1)
    term = world.instances[0].term
    world.until("c1", 1)
    assert not world.instances[0].leads(term), "before it has asked the store"
    world.step(0, 1)
    assert not world.instances[0].leads(term)
    assert world.instances[0].view.leader == "c1"


def test_a_leader_counts_from_before_it_asked():
    world = World(1)
    world.step(0)
    slow = world.wires[0].renew

    def renew(lease):
        left = slow(lease)
        world.now += 3.0  # the answer takes that long
        return left

    world.wires[0].renew = renew
    asked = world.now
    world.instances[0].step()
    assert world.instances[0].view.ends == asked + LEASE_SECONDS - LEASE_MARGIN


def test_a_lease_that_ended_and_is_had_again_is_another_term():
    world = World(1)
    world.step(0)
    term = world.instances[0].term
    world.step(seconds=2 * LEASE_SECONDS)
    world.until("c0", 0)
    assert world.instances[0].term > term
    assert not world.instances[0].leads(term)


def test_who_resigns_is_followed_at_once():
    world = World()
    world.step(0, 1)
    world.instances[0].resign()
    assert world.step(1) == ["c1"]


def test_a_store_that_answers_nonsense_is_one_that_does_not_answer():
    world = World()
    world.step(0, 1)
    world.wires[0].renew = lambda _: {}["result"]
    until = world.instances[0].view.ends
    world.step(0, 1)
    assert world.instances[0].view.ends == until
    assert "cannot be understood: KeyError('result')" in world.instances[0].view.trouble
    world.until("c1", 0, 1)


def test_a_key_taken_by_other_hands_ends_a_leadership():
    world = World()
    world.step(0, 1)
    world.etcd.key = None
    world.now += 0.1
    world.instances[0].step()
    assert world.instances[0].term == world.etcd.key[2]
    lease = max(world.etcd.leases) + 1
    world.etcd.leases[lease] = world.etcd.now + LEASE_SECONDS
    world.etcd.key = (lease, "other", 77)
    world.instances[0].step()
    assert world.instances[0].term == 0


@pytest.mark.parametrize("seed", range(30))
def test_there_are_never_two(seed):
    """Instances stop, wake, are cut off and come back at random; `World.step` looks each time."""
    chance, world = np.random.default_rng(seed), World(3)
    terms = []
    for _ in range(400):
        for wire in world.wires:
            if chance.random() < 0.05:
                wire.cut = chance.choice(["", "", "both", "answers"])
        running = [number for number in range(3) if chance.random() < 0.7]
        world.step(*running, seconds=chance.choice([0.1, LEADER_PERIOD, 1.0, 3.0]))
        terms += [one.term for one in world.instances if one.term]
    assert terms == sorted(terms)
    assert len(set(terms)) > 3


@pytest.mark.parametrize(
    ("context", "alert", "said"),
    [
        (ssl.create_default_context, "BAD_CERTIFICATE", "it refuses our certificate: it is bad"),
        (None, "BAD_CERTIFICATE", "it asks for a certificate, and tls_cert names none"),
        (None, "CERTIFICATE_REQUIRED", "it asks for a certificate, and tls_cert names none"),
    ],
)
def test_why_the_store_refuses_a_handshake_is_said(monkeypatch, context, alert, said):
    """The log had the name of OpenSSL's error, or said that the certificate that we lack is bad."""

    def refused(*_, **__):
        error = ssl.SSLError(1, f"[SSL: SSLV3_ALERT_{alert}] sslv3 alert")
        error.reason = f"SSLV3_ALERT_{alert}"
        raise error

    monkeypatch.setattr(store.HTTPSConnection, "connect", refused)
    with pytest.raises(Unavailable, match=f"https://one: {said}"):
        store.Etcd(["https://one"], "polarfab", context).keys("")
