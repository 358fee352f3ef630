"""BookSim saturates under the stated traffic where the guarantee says."""

from __future__ import annotations

from itertools import product

import pytest

from compilers.evaluation.guarantee import guarantee
from tests.extensions.simulation.booksim.agreement import FULL
from tests.extensions.simulation.booksim.worst_traffic import ROUTES_OF, compiled, read

MEASURED = read()
WITHIN = 0.05


@pytest.mark.parametrize(("q", "balance"), sorted({case[:2] for case in MEASURED}))
def test_it_saturates_near_the_guarantee(q: int, balance: str) -> None:
    share = guarantee(compiled(q, balance)).share
    cycles = {case[2]: found for case, found in MEASURED.items() if case[:2] == (q, balance)}
    below, above = min(cycles), max(cycles)
    assert share - WITHIN < below < share < above < share + WITHIN
    assert cycles[below] < FULL < cycles[above]


def test_two_sizes_and_two_balances_are_kept() -> None:
    assert set(product((5, 7), ROUTES_OF)) == {case[:2] for case in MEASURED}
