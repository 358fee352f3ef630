"""The effect of each single failed link, before a controller acts: pairs lost, longest path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.failures.failure_walks import FailureCases
from compilers.proof.walks.forwarding import Forwarding
from compilers.proof.walks.packet_states import ARRIVED, Progress, losers, reachable
from compilers.tables.build import Build


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
        f = Forwarding.of(build)
        cases = FailureCases.of(f, "link", 0)
        lost, longest = np.zeros(f.links, np.int64), np.zeros(f.links, np.int64)
        for reached in reachable(build, f, progress):
            width = f.switches * len(reached.towards.destinations)
            for walked in cases.walked(reached):
                arrived = walked.outcome == ARRIVED
                np.maximum.at(longest, walked.starts.case[arrived], walked.hops[arrived])
                gone = walked.starts.take(~arrived)
                pairs = np.unique(losers(reached, build.topology.endpoints, gone))
                lost += np.bincount(pairs // width, minlength=f.links)
        arcs = np.flatnonzero(f.end >= 0)
        first = arcs[np.unique(f.element[0][arcs], return_index=True)[1]]
        ends = np.stack((first, f.end[first]), axis=1) // f.slots
        return cls(ends.astype(np.int64), lost, longest)
