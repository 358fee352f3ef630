"""Whether one network survives more failed links than another, by the medians of simulated runs.

In a run links fail at random, one after another, until hosts are disconnected
(`compilers.evaluation.analysis.resilience`). The exhibits about failures call `disconnects_later`.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from compilers.evaluation.analysis.resilience import Resilience
from extensions.papers.exhibit import PaperClaim, as_not_computed


def disconnects_later(says: str, sooner: Resilience, later: Resilience) -> PaperClaim:
    """A claim that a network disconnects later than another.

    It is "not computed" if chance may be the cause of the difference: if the medians differ by two
    standard errors of their difference, or by less.

    Args:
        says: what the paper says.
        sooner: runs of the network that disconnects sooner, as the paper says.
        later: runs of the network that disconnects later.
    """
    claim = PaperClaim.of_order(says, first=later.median, relation=">", second=sooner.median)
    # The variance of a difference is the sum of both variances.
    error = sqrt(_variance_of_median(sooner) + _variance_of_median(later))
    if abs(later.median - sooner.median) <= 2 * error:
        return as_not_computed(claim, f"The medians have an error of {error:.2g}.")
    return claim


def _variance_of_median(runs: Resilience) -> float:
    """The variance of the median of n runs: about π/2·s²/n, with the variance s² of the runs."""
    return float(pi / 2 * np.var(runs.ratios) / len(runs.ratios))
