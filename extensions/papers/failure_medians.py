"""Whether one network survives more failed links than another, by the medians of simulated runs."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from compilers.evaluation.analysis.resilience import Resilience
from extensions.papers.exhibit import PaperClaim, not_told


def disconnects_later(says: str, first: Resilience, second: Resilience) -> PaperClaim:
    """A claim that runs end later: not computed if chance may be the cause.

    The standard error of the median of n runs is about √(π/2)·s/√n, s their standard deviation.

    Args:
        says: what the paper says.
        first: runs that end sooner.
        second: runs that end later.
    """
    claim = PaperClaim(says, first.median, second.median, ">")
    error = sqrt(pi / 2 * sum(np.var(each.ratios) / len(each.ratios) for each in (first, second)))
    near = abs(second.median - first.median) <= 2 * error
    return not_told(claim, f"The medians have an error of {error:.2g}.") if near else claim
