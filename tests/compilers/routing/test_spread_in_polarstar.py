"""What `spread` carries in PolarStar of the worst permutation, by plain arrays, and valiant."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.saturation import throughput
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from tests.compilers.routing.makers import compiled

pytestmark = pytest.mark.long

Loads = NDArray[np.float32]
MOST_MINIMAL = 4
"""Links that a packet takes at most once its mark has ended."""


def spread_in(q: int) -> Build:
    topology = {"family": "polarstar", "q": q, "supernode": "inductive-quad", "degree": 3}
    return compiled(topology, balance="spread", transit="minimal")


def loads(build: Build) -> Loads:
    """float32[arcs, S, S]: the part of what s sends to d that crosses each arc, by its tail.

    By the rule of docs/concepts/how-it-works.md: any link of s; from r, two links or more from d,
    any link but those to s and to neighbours of s; then minimal paths.
    """
    far, order = build.wiring.far, build.tables.switches
    after = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(order))
    tail, place = np.nonzero(far >= 0)
    head, count = far[tail, place], len(tail)
    arc = np.full((order, order), -1)
    arc[tail, head] = np.arange(count)
    into, out = np.nonzero(head[:, None] == tail)
    onward = (head[out] != tail[into]) & (arc[tail[into], head[out]] < 0)
    into, out = into[onward], out[onward]
    share = 1 / np.bincount(into, minlength=count)[into]
    spread = csr_matrix((share, (out, into)), (count, count))
    load = np.zeros((count, order, order), np.float32)
    for d in range(order):
        going = np.flatnonzero(head != d)
        next_arc = arc[head[going], after[head[going], d]]
        minimal = csr_matrix((np.ones(len(going)), (next_arc, going)), (count, count))
        first = np.zeros((count, order))
        first[np.arange(count), tail] = 1 / np.bincount(tail)[tail]
        first[:, d] = 0
        marked = (after[tail, d] != head) & (head != d) & (arc[head, d] < 0)
        now = minimal @ (first * ~marked[:, None]) + spread @ (first * marked[:, None])
        load[:, :, d] = first
        for _ in range(MOST_MINIMAL):
            load[:, :, d] += now
            now = minimal @ now
        assert not now.any()
    return load


@pytest.mark.parametrize(("q", "hosts", "spread", "valiant"), [(3, 2, 28, 54), (4, 2, 29, 66)])
def test_what_the_worst_permutation_gets(q: int, hosts: int, spread: int, valiant: int) -> None:
    """The worst for a link is an assignment of destinations to sources."""
    build = spread_in(q)
    peak = 0.0
    for each in loads(build):
        chosen = linear_sum_assignment(each, maximize=True)
        peak = max(peak, float(each[chosen].sum()))
    assert round(100 / (peak * hosts)) == spread
    uniform, order = throughput(build, "uniform", 1).minimal.peak, build.tables.switches
    assert round(100 / (2 * uniform * (order - 1) / order * hosts)) == valiant


def test_the_arrays_are_the_tables() -> None:
    build = spread_in(3)
    order, far = build.tables.switches, build.wiring.far
    there = np.roll(np.arange(order), 7)
    fluid = Fluid.of(build)
    found = fluid.loads_by_weights(Traffic(np.arange(order), there, np.ones(order)))
    tail, place = np.nonzero(far >= 0)
    expected = loads(build)[:, np.arange(order), there].sum(axis=1)
    assert found[tail * fluid.forwarding.arcs_a_switch + place] == pytest.approx(expected, abs=1e-5)
