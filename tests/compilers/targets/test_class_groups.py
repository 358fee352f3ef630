"""The groups of a class beside those that its docstring tells, one class after the other."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.class_groups import (
    FROM_HOSTS,
    HASH_VALUES,
    NOT_LED,
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
    own = classes.port[0].tolist()
    for groups in class_groups(classes, np.zeros(COUNT, np.int64), number):
        assert (groups.classes == number).all()
        for k in np.flatnonzero(groups.there).tolist():
            port, output = groups.port[k], groups.output[k]
            buckets = port[port > 0].tolist()
            if groups.role == GroupRole.ENTER:
                buckets = list(dict.fromkeys(buckets))
            found[k][groups.role] = buckets, int(groups.entry[k])
            elsewhere = (port > 0) & (port != classes.port[0, k])
            halving = groups.role != GroupRole.ENTER and own[:k].count(own[k]) == 1
            assert (groups.kind[k] == elsewhere * halving).all()
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


def test_finer_weights_share_alike_and_fill_the_hash_values() -> None:
    for total in range(2, HASH_VALUES + 1):
        used = np.array([[0, 3, 5]])
        ports, weights = _finely(used, np.array([[7, total - 1, 1]]))
        share = {p: int(weights[ports == p].sum()) for p in (3, 5)}
        assert share[3] == share[5] * (total - 1)
        fills = HASH_VALUES % total == 0 or HASH_VALUES // 2 < sum(share.values()) <= HASH_VALUES
        assert fills, total
        assert (np.count_nonzero(weights * (ports > 0)) > 2) == (share[5] > 1)


def dealt(weights: list[int]) -> list[int]:
    """Hash values of buckets as Open vSwitch deals them out; none where it has too few."""
    count = max(16, 1 << (-(-sum(weights) // min(weights)) - 1).bit_length())
    got = [0] * len(weights)
    for _ in range(count if count <= HASH_VALUES else 0):
        most = [w / (2 * g + 1) for w, g in zip(weights, got, strict=True)]
        got[most.index(max(most))] += 1
    return got


@pytest.mark.parametrize(
    "weights",
    [(8, 12, 22, 22), (20, 44), (3, 29), (5, 23, 36), (7, 20, 33), (9, 50, 69), (40, 90, 125)],
)
def test_hash_values_are_in_proportion_to_weights(weights: tuple[int, ...]) -> None:
    """Those of fitted shares, too, of which none is small: these got 16 or 32 hash values."""
    used = np.arange(1, 1 + len(weights))[None]
    ports, finer = (part[0].tolist() for part in _finely(used, np.array([weights])))
    some = [w for w in finer if w]
    got = dealt(some)
    shares = dict.fromkeys(used[0].tolist(), 0)
    for port, count in zip([p for p, w in zip(ports, finer, strict=True) if w], got, strict=True):
        shares[port] += count
    of = sum(got)
    assert of
    most = 0 if of % sum(weights) == 0 else 1 / HASH_VALUES
    for port, weight in zip(shares, weights, strict=True):
        assert abs(shares[port] / of - weight / sum(weights)) <= most
