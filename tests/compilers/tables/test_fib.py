"""All packets at once against one after the other, through tables of any numbers."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.forwarding.walks import minimal_hops
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, UNCABLED, Fib
from compilers.tables.intermediate_form import (
    Classes,
    Routes,
    Tables,
    empty_egress,
    local,
    no_route,
)

ORDER, PORTS = 12, 4
FAULTS = {LOST, UNCABLED, LOOPED, MISDELIVERED}


def some(
    seed: int, classes: int, sets: int, rows: int, order: int = ORDER
) -> tuple[Tables, np.ndarray]:
    """Tables most of whose values mean something, and cables to any switch."""
    chance = np.random.default_rng(seed)
    cables = chance.integers(-1, order, (order, PORTS + 1), np.int32)
    cables[:, 0] = -1
    port = np.zeros((order, classes), np.int32)
    used = chance.integers(classes, size=6)
    port[:, used] = chance.integers(0, PORTS + 2, (order, 6))
    egress = empty_egress(order, rows, classes)
    values = [*used, *used, *used, *used, no_route(egress), local(egress), no_route(egress) - 1]
    egress[...] = chance.choice(values, egress.shape)
    prefix = np.arange(order, dtype=np.int32)[None]
    if sets > 1:
        numbers = [np.sort(chance.choice(order + 3, rows, replace=False)) for _ in range(sets)]
        prefix = np.array(numbers, np.int32)
    own = np.argwhere(np.arange(order)[:, None] == np.repeat(prefix, order // len(prefix), axis=0))
    egress[own[:, 0], own[:, 1]] = local(egress)
    aggregate = chance.integers(-1, order + 4, order).astype(np.int32)
    aggregate[aggregate < order] = -1
    return Tables(Routes(prefix, egress, aggregate), Classes.minimal(port)), cables


def followed(tables: Tables, cables: np.ndarray, source: int, d: int) -> tuple[list[int], int]:
    routes, path = tables.routes, [source]
    while len(path) < 50:
        s, value = path[-1], no_route(routes.egress)
        for prefix in (routes.aggregate[d], d):
            for row in np.flatnonzero(routes.prefixes(s) == prefix):
                given = int(routes.egress[s, row])
                value = value if given == no_route(routes.egress) else given
        if value == local(routes.egress):
            return path, len(path) - 1 if s == d else MISDELIVERED
        if value == no_route(routes.egress):
            return path, LOST
        port = tables.classes.port[s, value] if value < tables.classes.port.shape[1] else 0
        far = int(cables[s, port]) if 0 < port <= PORTS else -1
        if far < 0:
            return path, UNCABLED
        if far == s:
            return path, len(path) - 1 if s == d else MISDELIVERED
        path.append(far)
    return path, LOOPED


@pytest.mark.parametrize(("classes", "sets", "rows"), [(8, 1, ORDER), (254, 3, 9), (300, 1, ORDER)])
def test_all_packets_at_once_go_where_each_goes(classes: int, sets: int, rows: int) -> None:
    seen = set()
    for seed in range(5):
        tables, cables = some(seed, classes, sets, rows)
        fib = Fib.of(tables, cables)
        for destinations in (np.arange(ORDER), np.arange(3, 8), np.array([2, 5, 11])):
            hops = minimal_hops(fib, destinations)
            for s, column in np.ndindex(hops.shape):
                _, result = followed(tables, cables, s, int(destinations[column]))
                assert hops[s, column] == result
                seen.add(result)
    assert seen >= {*FAULTS, 0, 1, 2}


@pytest.mark.parametrize(("sets", "rows"), [(1, 270), (3, 200)])
def test_more_switches_than_a_byte_has(sets: int, rows: int) -> None:
    tables, cables = some(1, 8, sets, rows, 270)
    fib = Fib.of(tables, cables)
    for destinations in (np.arange(270), np.array([0, 257]), np.array([3, 261])):
        hops = minimal_hops(fib, destinations)
        for s in (0, 1, 255, 256, 257, 269):
            for column, d in enumerate(destinations.tolist()):
                assert hops[s, column] == followed(tables, cables, s, d)[1]
