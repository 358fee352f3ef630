"""What a certificate says of each destination: delivered, repaired, and over how many links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Numbers

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What holds of each of D destinations, all switches with hosts.

    delivers: bool[D], every way of every host leads there. repairs: by kind of failure, bool[D]:
    that, and nothing is lost. stretch, hops: by kind of failure, int64[D]; no repair adds more
    links, and no packet that meets a failure takes more. ways: the ports that hosts may choose,
    over all pairs. longest: the links of the longest way, towards destinations that are delivered.
    """

    destinations: NDArray[np.int64]
    delivers: Bits
    repairs: dict[str, Bits]
    stretch: dict[str, Numbers]
    hops: dict[str, Numbers]
    ways: int
    longest: int

    @property
    def flagged(self) -> NDArray[np.int64]:
        """The destinations of which something does not hold, or is not known to."""
        holds: Bits = np.logical_and.reduce([self.delivers, *self.repairs.values()])
        return self.destinations[~holds]
