"""Max-min fair rates: the definition itself, and cases one can do by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.evaluation.max_min import max_min


def fair(paths, capacity, demand=None):
    link = np.array([e for path in paths for e in path], int)
    flow = np.array([i for i, path in enumerate(paths) for _ in path], int)
    demand = np.full(len(paths), np.inf) if demand is None else np.array(demand, float)
    return max_min(link, flow, np.ones(len(link)), np.array(capacity, float), demand)


def test_the_textbook_line():
    """One flow over both links, one over each: the thin one is shared, the other has the rest."""
    assert fair([[0, 1], [0], [1]], [1, 3]).tolist() == pytest.approx([0.5, 0.5, 2.5])


def test_who_wants_less_leaves_the_rest():
    assert fair([[0], [0], [0]], [9], [1, 9, 9]).tolist() == pytest.approx([1, 4, 4])
    assert fair([[0], []], [9], [0, 5]).tolist() == [0, 5]


def test_shares_over_two_paths():
    """A flow that is half on each of two links, one of which another flow wants."""
    rates = max_min(
        np.array([0, 1, 0]),
        np.array([0, 0, 1]),
        np.array([0.5, 0.5, 1.0]),
        np.array([3.0, 3.0]),
        np.array([np.inf, np.inf]),
    )
    assert rates.tolist() == pytest.approx([2, 2])


@settings(max_examples=40)
@given(st.data())
def test_every_flow_has_what_it_wants_or_is_largest_on_a_full_link(data):
    links = data.draw(st.integers(1, 6))
    capacity = data.draw(st.lists(st.integers(1, 9), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True)
    paths = data.draw(st.lists(path, min_size=1, max_size=8))
    demand = [data.draw(st.one_of(st.integers(0, 12), st.just(float("inf")))) for _ in paths]
    rates = fair(paths, capacity, demand)
    used = [sum(r for r, p in zip(rates, paths, strict=True) if e in p) for e in range(links)]
    assert all(u <= c + 1e-6 for u, c in zip(used, capacity, strict=True))
    for rate, wants, crossed in zip(rates, demand, paths, strict=True):
        bottleneck = any(
            used[e] >= capacity[e] - 1e-6
            and rate >= max(r for r, p in zip(rates, paths, strict=True) if e in p) - 1e-6
            for e in crossed
        )
        assert rate == pytest.approx(wants) or bottleneck
