"""PolarStar has no marked packets: what they would carry there, beside what Valiant does.

The rule of other families, with one random link more or two, by plain arrays: any link, then any
but back, then minimal paths, which bounce where they would go back. For every link the worst
permutation is an assignment (docs/concepts/how-it-works.md, "Spread").
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix

from compilers.evaluation.saturation import throughput
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from tests.compilers.routed import routed

pytestmark = pytest.mark.long


def peak(build: Build, random_links: int) -> float:
    """The most that a link carries under any permutation, in units of what a switch sends."""
    far, order = build.wiring.far, build.tables.switches
    after = Fib.of(build.tables, build.wiring.cables()).next_switch(np.arange(order))
    tail, place = np.nonzero(far >= 0)
    head = far[tail, place]
    arc = np.full((order, order), -1)
    arc[tail, head] = np.arange(len(tail))
    onward = spread(tail, head)
    load = np.zeros((len(tail), order, order), np.float32)
    degree = np.bincount(tail)
    for d in range(order):
        minimal = transit(arc, tail, head, after[:, d], d)
        ends, beside = head == d, arc[head, d] >= 0
        going = np.zeros((len(tail), order))
        going[np.arange(len(tail)), tail] = 1 / degree[tail]
        going[:, d] = 0
        unmarked = np.zeros_like(going)
        for links in range(12):
            load[:, :, d] += going + unmarked
            marked = np.where((ends | beside)[:, None] | (links >= random_links), 0, going)
            unmarked, going = minimal @ (unmarked + going - marked), onward @ marked
        assert not unmarked.any()
    peaks = []
    for each in load:
        chosen = linear_sum_assignment(each, maximize=True)
        peaks.append(each[chosen].sum())
    return float(max(peaks))


def spread(tail: NDArray[np.int64], head: NDArray[np.int32]) -> csr_matrix:
    """[n, n]: what comes in by an arc leaves by all links but back."""
    into, out = np.nonzero(head[:, None] == tail)
    keep = head[out] != tail[into]
    into, out = into[keep], out[keep]
    return csr_matrix((1 / np.bincount(into)[into], (out, into)), (len(tail), len(tail)))


def transit(
    arc: NDArray[np.int64],
    tail: NDArray[np.int64],
    head: NDArray[np.int32],
    after: NDArray[np.int32],
    d: int,
) -> csr_matrix:
    """[n, n]: what comes in by an arc goes minimally, or by the first link that does not return."""
    going = np.flatnonzero(head != d)
    to = after[head[going]]
    for n in np.flatnonzero(to == tail[going]).tolist():
        here, back = int(head[going[n]]), int(tail[going[n]])
        others = (w for w in np.flatnonzero(arc[here] >= 0) if w != back and after[w] != here)
        to[n] = next(others, back)
    return csr_matrix((np.ones(len(going)), (arc[head[going], to], going)), (len(tail), len(tail)))


@pytest.mark.parametrize(
    ("q", "once", "twice", "valiant"), [(3, 2.22, 1.61, 0.93), (4, 2.40, 1.54, 0.77)]
)
def test_an_intermediate_carries_more_than_marks(
    q: int, once: float, twice: float, valiant: float
) -> None:
    build = routed("polarstar", q=q, supernode="inductive-quad", degree=3)
    assert peak(build, 1) == pytest.approx(once, abs=0.01)
    assert peak(build, 2) == pytest.approx(twice, abs=0.01)
    uniform = throughput(build, "uniform", 1).minimal.peak
    order = build.tables.switches
    assert 2 * uniform * (order - 1) / order == pytest.approx(valiant, abs=0.01)


def test_the_arrays_know_polarfly() -> None:
    """Whose rule leaves the apex out: so it carries 44.5 % of what three hosts send."""
    assert peak(routed(q=5), 1) == pytest.approx(0.75, abs=0.03)
