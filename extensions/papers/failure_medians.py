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

    It is not computed if chance may be the cause of the difference.

    The standard error of the median of n runs is about √(π/2)·s/√n, s their standard deviation.

    Args:
        says: what the paper says.
        sooner: runs of the network that disconnects sooner.
        later: runs of the one that disconnects later.
    """
    # Both medians are computed: the sooner one stands where other claims have a printed value.
    claim = PaperClaim(says, sooner.median, later.median, ">")
    # The standard error of the difference of both medians.
    error = sqrt(pi / 2 * sum(np.var(runs.ratios) / len(runs.ratios) for runs in (sooner, later)))
    if abs(later.median - sooner.median) <= 2 * error:
        return as_not_computed(claim, f"The medians have an error of {error:.2g}.")
    return claim
