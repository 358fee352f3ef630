"""One path for each pair of hosts, for simulators that know one route from a place to another.

Where the tables have one path from switch to switch, the hosts of a switch are a group and share
the paths. Where they have several, each host is a group of its own, and every pair of hosts takes
one of these by a hash of the two, as often as its weights say: at its own switch, over an
intermediate, and at each switch that shares or spreads packets in transit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.host_paths import TabulatedHops
from compilers.forwarding.rule import Program
from compilers.forwarding.walks import Walks
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from extensions.clusters.simulators.rated_links import RatedLinks
from inventory.problems import InputError

MOST_PAIRS = 2_000_000
PACKETS_AT_ONCE = 1 << 17
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HostPairPaths:
    """The paths of G groups of hosts to each other.

    group: int64[H], of each host. switch: int64[G], ascending. arcs: int32[G, G, M], the links of
    the path from one group to another, s·K + k for link k of switch s, -1 beyond the last.
    """

    program: Program
    group: Numbers
    switch: Numbers
    arcs: NDArray[np.int32]

    @classmethod
    def of(cls, fabric: RatedLinks) -> HostPairPaths:
        """Follow the tables of a plane.

        Raises:
            InputError: there are more than MOST_PAIRS pairs of groups, or packets do not arrive.
        """
        build, walks = fabric.build, Walks.of(fabric.build)
        several = build.carries or bool(((walks.program.shares >= 0).sum(axis=2) > 1).any())
        if several:
            switch, group = fabric.vertex, np.arange(len(fabric.vertex))
        else:
            switch, group = np.unique(fabric.vertex, return_inverse=True)
        if len(switch) ** 2 > MOST_PAIRS:
            what = "hosts, as each pair has a path of its own" if several else "switches with hosts"
            most = f"at most {int(MOST_PAIRS**0.5):,} {what}"
            whole = "simulate it" if build.marks else "export it for ns3"
            raise InputError.of(most, f"{len(switch):,}", f"{whole}, which takes whole tables")
        hops = TabulatedHops.of(walks, walks.program, np.zeros(0, np.int64))
        step = max(1, PACKETS_AT_ONCE // len(switch))
        blocks = [
            _drawn(build, hops, switch, slice(first, first + step))
            for first in range(0, len(switch), step)
        ]
        longest = max(block.shape[2] for block in blocks)
        arcs = np.full((len(switch), len(switch), longest), -1, np.int32)
        for first, block in zip(range(0, len(switch), step), blocks, strict=True):
            arcs[:, first : first + step, : block.shape[2]] = block
        return cls(walks.program, group.astype(np.int64), switch, arcs)

    def returning(self) -> NDArray[np.bool_]:
        """bool[G, G]: whether the path back is the same path in the other direction."""
        p = self.program
        length = (self.arcs >= 0).sum(axis=2)[..., None]
        place = length - 1 - np.arange(self.arcs.shape[2])
        last_first = np.take_along_axis(self.arcs, np.maximum(place, 0), axis=2)
        other_end = (p.far * p.far.shape[1] + p.far_link).ravel()
        back = np.where(place >= 0, other_end[last_first], -1)
        same: NDArray[np.bool_] = (back.transpose(1, 0, 2) == self.arcs).all(axis=2)
        return same


def _drawn(build: Build, hops: TabulatedHops, switch: Numbers, some: slice) -> NDArray[np.int32]:
    """int32[G, D, M]: the arcs of the paths of all groups to some of them."""
    groups = np.arange(len(switch))
    source, target = (each.ravel() for each in np.meshgrid(groups, groups[some], indexing="ij"))

    def chance(turn: int) -> NDArray[np.float64]:
        return _hashed(source, target, turn)

    ends = switch[source], switch[target]
    if build.carries:
        vias = intermediates(build)
        over = vias[(chance(0) * len(vias)).astype(np.int64)]
        over = np.where(ends[0] == ends[1], ends[0], over)
        legs = [hops.drawn(ends[0], over, chance, carried=True)]
        legs.append(hops.drawn(legs[0].end, ends[1], chance))
    else:
        legs = [hops.drawn(*ends, chance)]
    if any((leg.hops < 0).any() for leg in legs):
        todo = "run polarfab verify, which names them"
        raise InputError.of("tables by which every packet arrives", "some do not", todo)
    arcs = np.concatenate([leg.arcs for leg in legs])
    arcs = np.take_along_axis(arcs, np.argsort(arcs < 0, axis=0, kind="stable"), axis=0)
    arcs = arcs[: max(1, int((arcs >= 0).sum(axis=0).max(initial=0)))]
    arcs = np.pad(arcs, ((0, max(0, 1 - len(arcs))), (0, 0)), constant_values=-1)
    return arcs.T.reshape(len(switch), -1, len(arcs))


def _hashed(source: Numbers, target: Numbers, turn: int) -> NDArray[np.float64]:
    """float64[n], 0 to 1: the number of each pair for a draw, by splitmix64."""
    word = source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)
    word = word + np.uint64((turn + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return (word >> np.uint64(11)).astype(np.float64) / (1 << 53)
