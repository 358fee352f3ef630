"""The shares of traffic that the buckets of select groups give to ports."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from compilers.routing.alternate_weights import weight_pairs
from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.class_groups import GroupRole, class_groups
from compilers.targets.openflow.hash_shares import HASH_VALUES, LARGEST_ERROR


def dealt(weights: list[int]) -> list[int]:
    """Hash values of buckets as Open vSwitch 3.1 deals them out; none where it has too few."""
    count = max(16, 1 << (-(-sum(weights) // min(weights)) - 1).bit_length())
    got = [0] * len(weights)
    for _ in range(count if count <= 256 else 0):
        most = [w / (2 * g + 1) for w, g in zip(weights, got, strict=True)]
        got[most.index(max(most))] += 1
    return got


def buckets_of(weights: list[int]) -> list[tuple[int, int]]:
    """Port and weight of each bucket of a select group over the ports 1, 2, …"""
    ports = np.arange(1, 1 + len(weights))[None, None]
    classes = replace(
        Classes.minimal(ports[..., 0].astype(np.int32)),
        alternate=ports[..., 1:].astype(np.uint16),
        weight=np.array(weights, np.uint16)[None, None],
    )
    by_role = class_groups(classes, np.zeros(1, np.int64), np.zeros(1, np.int64))
    (enter,) = (groups for groups in by_role if groups.role == GroupRole.ENTER)
    pairs = zip(enter.port[0].tolist(), enter.weight[0].tolist(), strict=True)
    return [(port, weight) for port, weight in pairs if weight]


def shares(weights: list[int]) -> list[float]:
    """What each port gets of the traffic: hash values, or the highest random weight of equal ones.

    A bucket of weight w wins where its random number u is such that all others' are below u·w.
    """
    ports, finer = map(list, zip(*buckets_of(weights), strict=True))
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
    assert max(off([1] * count) for count in (*range(2, 40), 57, 62, 79)) <= LARGEST_ERROR
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
            assert off(weights) <= max(1.1 * LARGEST_ERROR, bound(weights)), weights
            if some.index(weights) >= 300:
                gets = zip(shares(weights), weights, strict=True)
                beyond.append(max(got * sum(weights) / weight - 1 for got, weight in gets))
    assert sum(one > LARGEST_ERROR for one in beyond) == 8
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


def test_a_packet_takes_no_group_that_leads_back_over_the_next_hop_that_brought_it() -> None:
    """The example of `_groups_at_every_hop`: next hops 1, 2 and 3, and the bounce 4, 2."""

    def row(*ports: int) -> NDArray[np.uint16]:
        return np.array([[ports]], np.uint16)

    classes = replace(
        Classes.minimal(np.ones((1, 1), np.int32)),
        alternate=row(2, 3),
        weight=row(1, 1, 1),
        protection=row(0, 0),
        bounce=row(4, 2),
    )
    by_ingress = {
        int(groups.in_port[0]): [port for port in groups.port[0].tolist() if port]
        for groups in class_groups(classes, 0, np.zeros(1, np.int64), every_hop=True)
        if groups.role >= GroupRole.BOUNCE and groups.has_row[0] and groups.port.any()
    }
    assert {ingress: ports for ingress, ports in by_ingress.items() if ingress} == {
        1: [4, 2, 1],
        2: [4, 1],
        3: [4, 2, 1],
    }
