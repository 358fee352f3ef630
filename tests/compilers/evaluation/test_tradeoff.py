"""What minimal paths give uniform traffic and take from any, against paths that are counted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from compilers.evaluation.guarantee import guarantee
from compilers.evaluation.tradeoff import TENTHS, TradeoffPoint, tradeoff, with_minimal_share
from compilers.tables.build import Build
from compilers.topology.families import build_topology
from inventory.problems import InputError
from tests.compilers.evaluation.test_guarantee import compiled

PAGE = Path(__file__).parents[3] / "docs/how-to/throughput.md"
BALANCES = {
    "`spread`": "spread",
    "`compact-valiant` with `adjacent: bounce`": "compact-valiant, adjacent: bounce",
}
Loads = NDArray[np.float64]
"""float64[L, S, S]: of each link, the part of what one switch sends to another that crosses it."""


@cache
def neighbours(q: int) -> tuple[frozenset[int], ...]:
    graph = build_topology("polarfly", {"q": q}).graph
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in graph.edges().tolist():
        near[a].add(b)
        near[b].add(a)
    return tuple(frozenset(near[v]) for v in range(graph.order))


@cache
def spread_loads(q: int) -> tuple[Loads, Loads]:
    """What packets of `spread` load that leave by the minimal link, and by each other link alike.

    From the neighbours of each switch alone: the tables have no part in it.
    """
    near = neighbours(q)
    order = len(near)
    place = {link: n for n, link in enumerate((a, b) for a in range(order) for b in near[a])}
    minimal, others = np.zeros((2, len(place), order, order))

    def to(w: int, d: int) -> tuple[int, ...]:
        if w == d or d in near[w]:
            return (w, d)[w == d :]
        (middle,) = near[w] & near[d]
        return w, middle, d

    def add(load: Loads, path: tuple[int, ...], share: float) -> None:
        for link in pairwise(path):
            load[place[link], path[0], path[-1]] += share

    for s, d in product(range(order), repeat=2):
        if s == d:
            continue
        first = to(s, d)[1]
        add(minimal, to(s, d), 1.0)
        for r in near[s] - {first}:
            share = 1 / (len(near[s]) - 1)
            if d in near[r]:
                add(others, (s, r, d), share)
                continue
            onward = near[r] - near[s] - {s}
            for w in onward:
                add(others, (s, r, *to(w, d)), share / len(onward))
    return minimal, others


def mixed(q: int, part: Callable[[int], float]) -> Loads:
    """The loads if a switch with so many links sends this part of its traffic minimally."""
    minimal, others = spread_loads(q)
    parts = np.array([part(len(near)) for near in neighbours(q)])[None, :, None]
    return np.asarray(minimal * parts + others * (1 - parts))


def worst_load(loads: Loads) -> float:
    """The most that a permutation of switches loads a link with."""
    matched = ((load, *linear_sum_assignment(load, maximize=True)) for load in loads)
    return max(float(load[row, column].sum()) for load, row, column in matched)


def percents(loads: Loads, hosts: int) -> tuple[float, float]:
    """Guaranteed, and uniform."""
    uniform = loads.sum(axis=(1, 2)).max() / (loads.shape[1] - 1)
    return 100 / (hosts * worst_load(loads)), min(100.0, 100 / (hosts * float(uniform)))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (0.0, (46.2, 51.7)),
        (0.5, (20.0, 68.1)),
        (1.0, (12.5, 100.0)),
    ],
)
def test_minimal_paths_mixed_into_spread_at_q_7(part: float, expected: tuple[float, float]) -> None:
    """The part goes minimally, and what is left over all links alike, the minimal one too."""
    found = percents(mixed(7, lambda links: part + (1 - part) / links), 4)
    assert found == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("share", ["0", ".2125", "1/q", "1"])
@pytest.mark.parametrize("q", [3])
def test_tables_with_a_minimal_share_carry_what_their_weights_say(q: int, share: str) -> None:
    build = compiled(f"polarfly q={q}", f"balance: spread, minimal_share: {share}")
    weight = build.tables.classes.weight[:, 0]

    def part(links: int) -> float:
        """By the weights of a switch with as many links."""
        switch = next(v for v, near in enumerate(neighbours(q)) if len(near) == links)
        return float(weight[switch, 0] / weight[switch].sum())

    found = tradeoff(build, (), 2)[0]
    assert found.minimal_share is None
    expected = percents(mixed(q, part), 2)
    assert 100 * guarantee(build, 2).share == pytest.approx(expected[0])
    named = Fraction(1, q) if share == "1/q" else Fraction(share)
    (_, point) = tradeoff(build, (named,), 2)
    assert (100 * point.guaranteed, 100 * point.uniform) == pytest.approx(expected)


@pytest.mark.parametrize("balance", BALANCES.values())
def test_weights_are_those_that_are_compiled(balance: str) -> None:
    equal = compiled("polarfly q=3", f"balance: {balance}")
    for share in ("0", "1/3", ".7", "1"):
        build = compiled("polarfly q=3", f"balance: {balance}, minimal_share: {share}")
        weighted = with_minimal_share(equal, Fraction(share))
        assert weighted.forwarding == build.forwarding
        expected, found = (
            np.where(one.tables.classes.port[..., None] > 0, one.tables.classes.weight, 0)
            for one in (build, weighted)
        )
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(with_minimal_share(build, None).tables.classes.weight,
                                      equal.tables.classes.weight)  # fmt: skip


def rows() -> dict[str, list[float]]:
    """The figures of the page, by what stands before them."""
    text = re.search(r"<!-- tradeoff -->\n(.*?)<!-- end -->", PAGE.read_text(), re.S)
    assert text
    lines = [line.strip("| ").split(" | ") for line in text[1].splitlines()]
    return {cells[0]: [float(cell) for cell in cells[1:]] for cells in lines[2:]}


def figures(points: tuple[TradeoffPoint, ...], word: str) -> list[float]:
    return [100 * getattr(point, word) for point in points]


@pytest.mark.parametrize("words", BALANCES)
def test_the_page_prints_what_comes_out(words: str) -> None:
    """Two of its columns, as every link of bounced paths is looked at."""
    parts = TENTHS[5:6] if "bounce" in words else TENTHS
    points = tradeoff(compiled("polarfly q=7", f"balance: {BALANCES[words]}"), parts, 4)
    page, columns = rows(), [0, *(1 + TENTHS.index(part) for part in parts)]
    guaranteed = f"{words}, guaranteed" if words == "`spread`" else "the same, guaranteed"
    for line, word in ((f"{words}, uniform", "uniform"), (guaranteed, "guaranteed")):
        printed = [page[line][column] for column in columns]
        assert printed == pytest.approx(figures(points, word), abs=0.06)


@pytest.mark.parametrize("balance", ["minimal", "valiant"])
def test_a_balance_without_alternates_is_refused(balance: str) -> None:
    build: Build = compiled("polarfly q=3", f"balance: {balance}")
    with pytest.raises(InputError, match="required compact-valiant or spread, whose minimal"):
        tradeoff(build)
