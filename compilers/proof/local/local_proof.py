"""Prove a build state by state: what holds towards each destination, without walks.

A *state* of a packet is what decides its next hop: a switch, an ingress link and a destination. A
walk follows packets from state to state; this proof looks at each state once.

`local_proof` makes the class states of a build: what each switch does with the packets of each
egress class. Then `state_proof.prove_states` looks at one block of destinations after the other, in
threads. A `LocalProof` says for each destination whether delivery and repairs are proved, and how
long paths are at most. `proof_results` completes it by walks of the destinations that are left
open.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.walks import Progress, packet_count
from compilers.proof.local.class_states import class_states
from compilers.proof.local.destination_blocks import destination_blocks
from compilers.proof.local.minimal_paths import LINKS_LIMIT, LocalFindings
from compilers.proof.local.state_proof import prove_states
from compilers.routing.marked_spread import fewest_onward
from compilers.tables.build import Build

PROVABLE_KINDS = ("link", "node")
"""The kinds of failures that can be proved, at the indexes `LINK` and `NODE` of `LocalFindings`."""

Bits = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LocalProof:
    """What is proved of D destinations: all switches with hosts.

    A reader of `choices` and `hop_counts` may only add them up over the destinations with proved
    delivery. For a proof that treats all destinations at once (`of_all`) knows no more than these
    sums. It enters them at the first destination, and 0 at all others.
    """

    destinations: Numbers
    """int64[D], vertices."""
    delivers: Bits
    """bool[D], whether it is proved that every packet of hosts arrives while all is up, over a
    shortest path unless it takes an alternate."""
    repaired: dict[str, Bits]
    """By kind of failure bool[D], whether it is proved that every packet also arrives under any one
    failure of this kind."""
    stretch: dict[str, Numbers]
    """By kind of failure int64[D], the most links that a repair adds to a path, or a bound."""
    hops: dict[str, Numbers]
    """By kind of failure int64[D], the most links of a packet that meets a failure, or a bound."""
    longest: Numbers
    """int64[D], the most links of a path while all is up, or a bound."""
    choices: Numbers
    """int64[D], how many choices packets of hosts have at their first switch, over all switches."""
    hop_counts: Numbers
    """int64[D, LINKS_LIMIT], the pairs of switches by the links of their minimal path."""

    @classmethod
    def of_all(
        cls,
        switches: int,
        choices: int,
        hop_counts: tuple[int, ...],
        longest: int,
        stretch: dict[str, Numbers],
    ) -> LocalProof:
        """The proof of a fabric that is proved as a whole.

        Args:
            switches: how many switches there are, all of them with hosts.
            choices: how many choices packets of hosts have at their first switch, over all pairs.
            hop_counts: how many pairs have a minimal path of 0, 1, … links.
            longest: the most links of a path while all is up.
            stretch: by kind of failure int64[switches], the most links that a repair adds.
        """
        choices_at_first = np.zeros(switches, np.int64)
        choices_at_first[0] = choices
        pairs_at_first = np.zeros((switches, LINKS_LIMIT), np.int64)
        pairs_at_first[0, : len(hop_counts)] = hop_counts
        holds = np.ones(switches, np.bool_)
        return cls(
            destinations=np.arange(switches),
            delivers=holds,
            repaired=dict.fromkeys(stretch, holds),
            stretch=stretch,
            hops={kind: longest + added for kind, added in stretch.items()},
            longest=np.full(switches, longest),
            choices=choices_at_first,
            hop_counts=pairs_at_first,
        )

    @property
    def unproved_destinations(self) -> Numbers:
        """int64[n], the open destinations: those to which delivery or a repair is not proved."""
        holds: Bits = np.logical_and.reduce([self.delivers, *self.repaired.values()])
        return self.destinations[~holds]


def provable(build: Build) -> bool:
    """Whether a local proof holds for a build; else all its packets have to be walked.

    It needs one next hop in transit, at most one link between two switches, and for marked packets
    a second link to leave by.
    """
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
        build: its cables and prefixes are sound (`build_soundness.unwalkable_values`), and it is
            `provable`.
        kinds: the kinds of failures, of `link` and `node`.
        progress: called with destinations done and all.
    """
    may_fail = np.array([kind in kinds for kind in PROVABLE_KINDS])
    states = class_states(build, may_fail)
    prove: Callable[..., None] = for_packets(packet_count(build), prove_states)
    destinations, blocks = np.flatnonzero(build.topology.endpoints), destination_blocks(build)
    count = len(destinations)
    findings = LocalFindings(
        delivers=np.ones(count, np.bool_),
        repaired=np.ones((count, len(PROVABLE_KINDS)), np.bool_),
        stretch=np.zeros((count, len(PROVABLE_KINDS)), np.int64),
        longest=np.zeros(count, np.int64),
        choices=np.zeros(count, np.int64),
        hop_counts=np.zeros((count, LINKS_LIMIT), np.int64),
    )

    def prove_block(number: int) -> int:
        """Prove a block; returns how many destinations there are up to its end."""
        block = blocks.block(number)
        of_block = LocalFindings(*(column[block.indexes] for column in findings))
        prove(states, block.rows, may_fail, of_block)
        return int(block.indexes.stop)

    # Machine code holds no lock of Python, so threads use all cores.
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        for done in pool.map(prove_block, range(blocks.count)):
            if progress:
                progress(min(done, count), count)
    return _proof_of(destinations, findings, kinds)


def _proof_of(destinations: Numbers, findings: LocalFindings, kinds: tuple[str, ...]) -> LocalProof:
    """The findings as a proof, for the kinds of failures that were asked for."""
    columns = {kind: column for column, kind in enumerate(PROVABLE_KINDS) if kind in kinds}
    delivers, stretch, longest = findings.delivers, findings.stretch, findings.longest
    return LocalProof(
        destinations=destinations,
        delivers=delivers,
        repaired={kind: findings.repaired[:, i] & delivers for kind, i in columns.items()},
        stretch={kind: stretch[:, i] for kind, i in columns.items()},
        hops={kind: longest + stretch[:, i] for kind, i in columns.items()},
        longest=longest,
        choices=findings.choices,
        hop_counts=findings.hop_counts,
    )
