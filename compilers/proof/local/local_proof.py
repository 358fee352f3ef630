"""Builds proved state by state: what holds towards each destination (`state_proof`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isqrt
from os import sched_getaffinity

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.walks import Progress, packets
from compilers.proof.local.class_states import class_states
from compilers.proof.local.destination_blocks import destination_blocks
from compilers.proof.local.minimal_paths import MOST, Findings
from compilers.proof.local.state_proof import prove_states
from compilers.routing.marked_spread import fewest_onward
from compilers.tables.build import Build

PROVED = ("link", "node")
"""The kinds of failures that are proved, in the order of `Findings.repaired`."""
Bits = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LocalProof:
    """What is proved of D destinations, all switches with hosts.

    Of all destinations at once (`of_all`) less is known of each: there the first destination has
    the paths and pairs of all.
    """

    destinations: Numbers
    """int64[D], vertices."""
    delivers: Bits
    """bool[D], every packet of hosts arrives while all is up, over a minimal path if it takes no
    alternate."""
    repaired: dict[str, Bits]
    """bool[D] by kind of failure, delivered while all is up, and after any such failure."""
    stretch: dict[str, Numbers]
    """int64[D] by kind of failure, no repair adds more links to a path."""
    hops: dict[str, Numbers]
    """int64[D] by kind of failure, no packet that meets one takes more links."""
    longest: Numbers
    """int64[D], no path has more links while all is up."""
    paths: Numbers
    """int64[D], the ports that hosts may choose, over all switches."""
    hop_counts: Numbers
    """int64[D, MOST], the pairs of switches by links of their minimal path."""

    @classmethod
    def of_all(
        cls, paths: int, hop_counts: tuple[int, ...], longest: int, stretch: dict[str, Numbers]
    ) -> LocalProof:
        """What is proved of all switches at once, each with hosts.

        Args:
            paths: ports that hosts may choose, over all pairs.
            hop_counts: of the S(S - 1) pairs, by links.
            longest: no path has more links.
            stretch: int64[S] by kind of failure.
        """
        switches = len(next(iter(stretch.values()))) if stretch else isqrt(sum(hop_counts)) + 1
        paths_of_first = np.zeros(switches, np.int64)
        paths_of_first[0] = paths
        pairs_of_first = np.zeros((switches, MOST), np.int64)
        pairs_of_first[0, : len(hop_counts)] = hop_counts
        holds, longest_of_each = np.ones(switches, np.bool_), np.full(switches, longest)
        return cls(
            np.arange(switches),
            holds,
            dict.fromkeys(stretch, holds),
            stretch,
            {kind: longest + links for kind, links in stretch.items()},
            longest_of_each,
            paths_of_first,
            pairs_of_first,
        )

    @property
    def open(self) -> Numbers:
        """The destinations of which something is not proved, which may yet hold."""
        holds: Bits = np.logical_and.reduce([self.delivers, *self.repaired.values()])
        return self.destinations[~holds]


def provable(build: Build) -> bool:
    """Whether states can be proved by themselves; else all is to be walked."""
    far = np.sort(build.wiring.far, axis=1)
    has_parallel_links = ((far[:, 1:] == far[:, :-1]) & (far[:, 1:] >= 0)).any()
    if build.forwarding.every_hop or has_parallel_links:
        return False
    return not build.forwarding.marks or fewest_onward(build.wiring) > 1


def local_proof(
    build: Build, kinds: tuple[str, ...], progress: Progress | None = None
) -> LocalProof:
    """Prove what holds towards all destinations.

    Args:
        build: sound cables and prefixes (`build_soundness.walkable`), and `provable`.
        kinds: of failures, of `link` and `node`.
        progress: called with destinations done and all.
    """
    may_fail = np.array([kind in kinds for kind in PROVED])
    states = class_states(build, may_fail)
    prove: Callable[..., None] = for_packets(packets(build), prove_states)
    destinations, blocks = np.flatnonzero(build.topology.endpoints), destination_blocks(build)
    count = len(destinations)
    findings = Findings(
        delivers=np.ones(count, np.bool_),
        repaired=np.ones((count, len(PROVED)), np.bool_),
        stretch=np.zeros((count, len(PROVED)), np.int64),
        longest=np.zeros(count, np.int64),
        choices=np.zeros(count, np.int64),
        hop_counts=np.zeros((count, MOST), np.int64),
    )

    def prove_block(number: int) -> int:
        block = blocks.block(number)
        prove(
            states, block.rows, may_fail, Findings(*(column[block.places] for column in findings))
        )
        return int(block.places.stop)

    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        for done in pool.map(prove_block, range(blocks.count)):
            if progress:
                progress(min(done, count), count)
    places = {kind: place for place, kind in enumerate(PROVED) if kind in kinds}
    delivers, stretch, longest = findings.delivers, findings.stretch, findings.longest
    return LocalProof(
        destinations,
        delivers,
        {kind: findings.repaired[:, place] & delivers for kind, place in places.items()},
        {kind: stretch[:, place] for kind, place in places.items()},
        {kind: longest + stretch[:, place] for kind, place in places.items()},
        longest,
        findings.choices,
        findings.hop_counts,
    )
