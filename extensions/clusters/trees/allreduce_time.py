"""How long an allreduce takes over trees, a ring, and ForestColl's schedules, by a flow model.

Every switch adds a vector of M bytes; links carry B bytes a second each way, and a hop takes α
seconds. Hosts' links and the time to add are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from extensions.clusters.trees.tree_set import TreeSet

HOP = 1e-6
"""Seconds from switch to switch."""
SPEED = 400
"""Gbit/s of a link."""
SIZES = tuple(1 << power for power in (16, 20, 26, 30))
"""Bytes: 64 KiB, 1 MiB, 64 MiB, 1 GiB."""


@dataclass(frozen=True, slots=True)
class AllreduceTime:
    """Seconds for a vector of so many bytes: over the trees, a ring of all switches, ForestColl."""

    size: int
    trees: float
    ring: float
    forestcoll: float

    @classmethod
    def of(cls, trees: TreeSet, size: int, speed: float = SPEED) -> AllreduceTime:
        """The times over trees that reach every switch.

        Trees: each adds its part of the vector up and sends it down, in chunks of the best length,
        (√((2d - 1)·α) + √(c·M / (t·B)))² for t trees of depth d, c on the busiest link. Ring:
        2(N - 1)·(α + M/(N·B)). ForestColl (arXiv 2402.06787): reduce-scatter and allgather, each as
        long as its worst cut takes; (N - 1)/N of M into the switch that has fewest links, twice.

        Args:
            trees: see above.
            size: M.
            speed: of a link, Gbit/s.
        """
        rate, n = speed * 1e9 / 8, trees.switches
        depth = max(tree.depth for tree in trees.trees)
        flow = size / (trees.bandwidth * rate)
        share = size * (n - 1) / n / rate
        return cls(
            size,
            (sqrt((2 * depth - 1) * HOP) + sqrt(flow)) ** 2,
            2 * (n - 1) * HOP + 2 * share,
            2 * share / trees.fewest_links,
        )

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Over trees, a ring, and ForestColl's."""
        return self.trees, self.ring, self.forestcoll

    def as_dict(self) -> dict[str, Any]:
        """`bytes`, and seconds by their names."""
        return {
            "bytes": self.size,
            **dict(zip(("trees", "ring", "forestcoll"), self.seconds, strict=True)),
        }
