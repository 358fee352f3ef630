"""The bisection of designs: METIS against a formula."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from compilers.evaluation.comparison import bisections
from compilers.evaluation.comparison.bisections import bisection_share, halved_pairs_share
from compilers.families.polarfly import PolarFly
from compilers.families.polarstar import PolarStar
from compilers.topology.families import build_topology


@pytest.mark.parametrize(("q", "degree"), [(3, 3), (5, 3), (4, 7)])
def test_halving_the_pairs_cuts_what_the_formula_says(q: int, degree: int) -> None:
    """Counted in the built graph; METIS finds this cut or a smaller one."""
    parameters = {"q": q, "supernode": "inductive-quad", "degree": degree}
    design, topology = PolarStar().member(parameters), build_topology("polarstar", parameters)
    pair = np.arange(topology.graph.order) % topology.hierarchy // 2
    ends = (pair % 2)[topology.graph.edges()]
    cut = (ends[:, 0] != ends[:, 1]).mean()
    formula = halved_pairs_share(design)
    assert formula == pytest.approx(cut, rel=1e-12)
    found = bisection_share(design)
    assert found
    assert found.basis == "metis"
    assert found.share <= formula + 1e-12


def test_what_is_too_large_has_a_formula_or_nothing() -> None:
    large = PolarStar().member({"q": 23, "supernode": "inductive-quad", "degree": 7})
    found = bisection_share(replace(large, nodes=10**5))
    assert found
    assert (found.share, found.basis) == (8 / (2 * 31), "formula")
    even = PolarStar().member({"q": 23, "supernode": "inductive-quad", "degree": 8})
    assert bisection_share(replace(even, nodes=10**5)) is None
    (fly,) = PolarFly().designs(128)
    assert bisection_share(fly) is None


def test_a_formula_that_is_less_than_what_metis_finds_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design = PolarStar().member({"q": 3, "supernode": "inductive-quad", "degree": 3})
    poor = SimpleNamespace(fraction=0.5)
    monkeypatch.setattr(bisections, "bisection", lambda _topology: poor)
    found = bisection_share(design)
    assert found
    assert (found.share, found.basis) == (4 / (2 * 7), "formula")
