"""A move to another build on the model: its states, each a mixture of both tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.update.move_plan import plan
from compilers.update.update_proof import hops_between
from mininet_scenarios.verdict.predict import Prediction

Carried = NDArray[np.uint8]
SEED = 1


class Moving:
    """One move; vertex: int64[S], the new numbers of the old build's switches, -1 for none.

    broken: whether its controller has died, so that nobody goes on with its rounds.
    """

    def __init__(self, old: Build, new: Build) -> None:
        self.update, self.new, self.broken = plan(old, new), new, False
        nodes = self.update.nodes
        self.node = nodes.node_before
        self.vertex = np.where(self.node >= 0, nodes.after[np.maximum(self.node, 0)], -1)
        self._random, self._done = np.random.default_rng(SEED), 0

    @property
    def rounds(self) -> int:
        """How many there are."""
        return self.update.rounds

    def states(self, last: int) -> Iterator[Carried]:
        """uint8[M], the last round that each switch has carried out, for one state after another.

        Each round has a mixture by chance, in which some switches are ahead, and its end; the
        `last`-th (from 1) only the mixture, where others follow it.
        """
        count = len(self.update.nodes.datapath_id)
        for round in range(self._done, last):
            behind = self._random.integers(2, size=count) if round else np.zeros(count, np.int64)
            yield (round - behind).astype(np.uint8)
            if round + 1 < last or last == self.rounds:
                yield np.full(count, round, np.uint8)
        self._done = last

    def walked(self, before: Prediction, carried_out: Carried) -> Prediction:
        """Where packets go in a state, in the numbers of the old build; only `first` is of it."""
        table = hops_between(self.update, carried_out)
        first = table[np.maximum(self.node, 0)[:, None], np.maximum(self.node, 0)]
        there = self.node >= 0
        return replace(before, first=np.where(there[:, None] & there, first, before.first))
