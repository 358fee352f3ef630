"""The effect of each single failed link, before a controller acts: pairs lost, longest path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import BlockWalk, Numbers, Progress, Walks
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS


@dataclass(frozen=True, slots=True, eq=False)
class LinkLosses:
    """One entry for each of the E links.

    ends: int64[E, 2], its switches. lost: int64[E], ordered pairs of switches that lose packets on
    some way that their source may choose. longest: int64[E], links on the longest path of a packet
    that met the failure and was delivered, 0 where none was.
    """

    ends: NDArray[np.int64]
    lost: NDArray[np.int64]
    longest: NDArray[np.int64]

    @classmethod
    def of(cls, build: Build, progress: Progress | None = None) -> LinkLosses:
        """Walk every packet that meets a failed link.

        Args:
            build: its tables and wiring are walked.
            progress: called with destinations done and all.
        """
        walks = Walks.of(build)
        lost, longest = np.zeros(walks.links, np.int64), np.zeros(walks.links, np.int64)
        for of_block, pairs in BlockWalk(_losses, walks).over(build, THIS_PROCESS, progress):
            np.maximum(longest, of_block, out=longest)
            lost += pairs
        return cls(walks.link_ends, lost, longest)


def _losses(walks: Walks, block: Numbers) -> tuple[Numbers, Numbers]:
    """The longest path under the failure of each link, and the pairs that lose packets."""
    links = np.arange(walks.links)
    longest = np.zeros(walks.links, np.int64)
    _, _, lost = walks.cases(block, links[:, None], longest)
    return longest, np.bincount(lost[:, 0], minlength=walks.links)
