"""The groups of a class beside those that its docstring tells, one class after the other."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from compilers.routing.choose import weight_pairs
from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.class_groups import (
    FROM_HOSTS,
    HASH_VALUES,
    NOT_LED,
    UNEVEN,
    GroupRole,
    _finely,
    class_groups,
)
from compilers.targets.openflow.protocol import IN_PORT

COUNT, PORTS = 400, 8


def some_classes() -> Classes:
    """One switch with classes of any ports: none twice, some absent, weights from 0 on."""
    chance = np.random.default_rng(1)
    ports = np.argsort(chance.random((COUNT, PORTS)), axis=1)[None].astype(np.uint16) + 1
    twice = np.argsort(chance.random((COUNT, PORTS)), axis=1)[None].astype(np.uint16) + 1

    def first(columns: np.ndarray, most: int) -> np.ndarray:
        there = np.arange(columns.shape[2]) < chance.integers(0, most + 1, (1, COUNT, 1))
        return (columns * there).astype(np.uint16)

    minimal = ports[..., :1]
    return Classes(
        port=minimal[..., 0].astype(np.int32),
        alternate=first(ports[..., 1:4], 3),
        weight=chance.integers(0, 3, (1, COUNT, 4)).astype(np.uint16),
        protection=first(np.where(twice == minimal, 0, twice)[..., :3], 3),
        bounce=first(twice[..., 3:5], 2),
    )


def expected(c: Classes, k: int) -> dict[int, tuple[list[int], int]]:
    """Ports of the groups by role, in their order, and where packets come that are led there."""
    minimal = int(c.port[0, k])
    order = [minimal, *(int(p) for p in c.protection[0, k] if p)]
    weights = zip([minimal, *c.alternate[0, k].tolist()], c.weight[0, k].tolist(), strict=True)
    used = [port for port, weight in weights if port and weight]
    bounce = [int(p) for p in c.bounce[0, k] if p and p != minimal]
    found = {GroupRole.TRANSIT: (order, 0), GroupRole.BOUNCE: ([*bounce, minimal], minimal)}
    if set(used) - {minimal}:
        falls = set(order) - set(used)
        found[GroupRole.ENTER] = used, NOT_LED if falls else FROM_HOSTS
        if falls:
            found[GroupRole.FALLBACK] = order, FROM_HOSTS
    for place, came in enumerate(c.protection[0, k].tolist()):
        if came:
            aside = [*(p for p in order if p != came), came]
            found[GroupRole.ASIDE + place] = aside, came
    return found


def test_every_role_has_the_ports_that_it_is_for() -> None:
    classes, number = some_classes(), np.arange(COUNT)
    found: list[dict[int, tuple[list[int], int]]] = [{} for _ in range(COUNT)]
    for groups in class_groups(classes, np.zeros(COUNT, np.int64), number):
        assert (groups.classes == number).all()
        for k in np.flatnonzero(groups.there).tolist():
            port, output = groups.port[k], groups.output[k]
            buckets = port[port > 0].tolist()
            if groups.role == GroupRole.ENTER:
                buckets = list(dict.fromkeys(buckets))
            found[k][groups.role] = buckets, int(groups.entry[k])
            back = (port == groups.in_port[k]) & (port > 0)
            assert (
                output[port > 0] == np.where(back, IN_PORT, port.astype(np.int64))[port > 0]
            ).all()
        assert (groups.entry[~groups.there] == NOT_LED).all()
    assert found == [expected(classes, k) for k in range(COUNT)]


def test_a_group_on_the_first_port_alone_is_there() -> None:
    classes = Classes.minimal(np.array([[1, 0]], np.int32))
    (transit,) = class_groups(classes, np.zeros(2, np.int64), np.arange(2))
    assert transit.there.tolist() == [True, False]
    assert transit.entry.tolist() == [0, NOT_LED]


def dealt(weights: list[int]) -> list[int]:
    """Hash values of buckets as Open vSwitch 3.1 deals them out; none where it has too few."""
    count = max(16, 1 << (-(-sum(weights) // min(weights)) - 1).bit_length())
    got = [0] * len(weights)
    for _ in range(count if count <= 256 else 0):
        most = [w / (2 * g + 1) for w, g in zip(weights, got, strict=True)]
        got[most.index(max(most))] += 1
    return got


def shares(weights: list[int]) -> list[float]:
    """What each port gets of the traffic: hash values, or the highest random weight of equal ones.

    A bucket of weight w wins where its random number u is such that all others' are below u·w.
    """
    used = np.arange(1, 1 + len(weights))[None]
    ports, finer = (part[0] for part in _finely(used, np.array([weights])))
    there = finer > 0
    ports, finer = ports[there].tolist(), finer[there].tolist()
    total = np.zeros(1 + len(weights), np.int64)
    np.add.at(total, ports, finer)
    assert (total[1:] * sum(weights) == total.sum() * np.array(weights)).all()
    assert max(finer) < 1 << 16
    found = np.zeros(1 + len(weights))
    got = dealt(finer)
    if not any(got):
        u = (np.arange(2_000) + 0.5) / 2_000
        got = [
            np.prod(
                [np.minimum(u * w / x, 1) for at, x in enumerate(finer) if at != one], axis=0
            ).mean()
            for one, w in enumerate(finer)
        ]
        assert sum(got) == pytest.approx(1, abs=1e-2)
    np.add.at(found, ports, got)
    return (found[1:] / found.sum()).tolist()


def off(weights: list[int]) -> float:
    """The largest part of its share that a port gets too much or too little."""
    of = sum(weights)
    pairs = zip(shares(weights), weights, strict=True)
    return max(abs(got * of / weight - 1) for got, weight in pairs)


def test_equal_ports_get_their_share_but_for_a_tenth() -> None:
    """31, as behind a link at q = 31, got +45 % of 64 values."""
    assert max(off([1] * count) for count in (*range(1, 40), 57, 62, 79)) <= UNEVEN
    assert off([1] * 31) == pytest.approx(9 / (256 / 31) - 1)


def bound(weights: list[int]) -> float:
    """The theorem of `docs/targets/openflow.md`, with one bucket more, of the heaviest port."""
    quota = 256 * np.array(weights) / sum(weights)
    return float((len(weights) + 1) / 512 + max(1 / (2 * quota.min()), 1 / quota.max()))


def test_other_weights_are_dealt_as_evenly_as_256_values_can() -> None:
    """Random ones, and those of builds: of `minimal_share`, of which few are a tenth off."""
    chance, some, beyond = np.random.default_rng(3), list[list[int]](), list[float]()
    for _ in range(300):
        most = int(chance.choice([3, 9, 60]))
        some.append(chance.integers(1, most + 1, int(chance.integers(2, 34))).tolist())
    for share, count in product((Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)), range(2, 33)):
        pair = np.zeros((1, 1), np.int64) + count
        one, each = weight_pairs(pair, share)[0, 0].tolist()
        some.append([one, *[each] * count])
    for weights in some:
        if len(set(weights)) > 1 and sum(weights) <= 256 * min(weights):
            assert off(weights) <= max(1.1 * UNEVEN, bound(weights)), weights
            if some.index(weights) >= 300:
                gets = zip(shares(weights), weights, strict=True)
                beyond.append(max(got * sum(weights) / weight - 1 for got, weight in gets))
    assert sum(one > UNEVEN for one in beyond) == 8
    assert max(beyond) == pytest.approx(2 / (25.6 / 17) - 1)


@pytest.mark.parametrize(
    "weights",
    [(8, 12, 22, 22), (20, 44), (3, 29), (5, 23, 36), (7, 20, 33), (9, 50, 69), (40, 90, 125)],
)
def test_hash_values_are_in_proportion_to_weights(weights: tuple[int, ...]) -> None:
    """Those of fitted shares, too, of which none is small: these got 16 or 32 hash values."""
    exact = HASH_VALUES % sum(weights) == 0
    for got, weight in zip(shares(list(weights)), weights, strict=True):
        assert abs(got - weight / sum(weights)) <= (0 if exact else 1 / HASH_VALUES)
