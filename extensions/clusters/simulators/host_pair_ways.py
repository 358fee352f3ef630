"""One way for each pair of hosts, for simulators that know one route from a place to another.

Where the tables have one way from switch to switch, the hosts of a switch are a group and share
the ways. Where switches spread traffic over several, each host is a group of its own, and every
pair of hosts takes a way by a hash of the two, as often as its weight says; where packets are
marked, the next switch's links by another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import HOME, Forwarding, Towards
from compilers.routing.intermediates import require_direct
from compilers.routing.marked_spread import require_short_marks
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from extensions.clusters.simulators.rated_links import RatedLinks
from inventory.problems import InputError

MOST_PAIRS = 2_000_000
PACKETS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class HostPairWays:
    """The ways of G groups of hosts to each other.

    group: int64[H], of each host. switch: int64[G], ascending. arcs: int32[G, G, M], the way from
    one group to another as arcs of `Forwarding` that packets leave by, -1 beyond the last.
    """

    forwarding: Forwarding
    group: NDArray[np.int64]
    switch: NDArray[np.int64]
    arcs: NDArray[np.int32]

    @classmethod
    def of(cls, fabric: RatedLinks) -> HostPairWays:
        """Follow the tables of a plane.

        Raises:
            InputError: there are more than MOST_PAIRS pairs of groups, or packets do not arrive.
        """
        require_short_marks(fabric.build, "an export for a simulator")
        require_direct(fabric.build, "an export for a simulator")
        forwarding = Forwarding.of(fabric.build)
        spread = bool(((forwarding.weighted >= 0).sum(axis=0) > 1).any())
        if spread:
            switch, group = fabric.vertex, np.arange(len(fabric.vertex))
        else:
            switch, group = np.unique(fabric.vertex, return_inverse=True)
        if len(switch) ** 2 > MOST_PAIRS:
            what = "hosts, as each pair has a way of its own" if spread else "switches with hosts"
            most = f"at most {int(MOST_PAIRS**0.5):,} {what}"
            whole = "simulate it" if forwarding.marks else "export it for ns3"
            todo = f"{whole}, which takes whole tables"
            raise InputError.of(most, f"{len(switch):,}", todo)
        share = _shares(fabric.build, forwarding)
        step = max(1, PACKETS_AT_ONCE // len(switch))
        blocks = [
            _followed(forwarding, share, switch, slice(first, first + step))
            for first in range(0, len(switch), step)
        ]
        longest = max(block.shape[2] for block in blocks)
        arcs = np.full((len(switch), len(switch), longest), -1, np.int32)
        for first, block in zip(range(0, len(switch), step), blocks, strict=True):
            arcs[:, first : first + step, : block.shape[2]] = block
        return cls(forwarding, group.astype(np.int64), switch, arcs)

    def returning(self) -> NDArray[np.bool_]:
        """bool[G, G]: whether the way back is the same way in the other direction."""
        length = (self.arcs >= 0).sum(axis=2)[..., None]
        place = length - 1 - np.arange(self.arcs.shape[2])
        last_first = np.take_along_axis(self.arcs, np.maximum(place, 0), axis=2)
        back = np.where(place >= 0, self.forwarding.end[last_first], -1)
        same: NDArray[np.bool_] = (back.transpose(1, 0, 2) == self.arcs).all(axis=2)
        return same


def _shares(build: Build, f: Forwarding) -> NDArray[np.int64]:
    """int64[1 + A, S·(C + 2)]: the weights of the ways of each class, added up."""
    weight = np.moveaxis(np.asarray(build.tables.classes.weight), 2, 0)
    weight = np.pad(weight, ((0, 0), (0, 0), (0, 2))).reshape(f.weighted.shape)
    return np.where(f.weighted >= 0, weight, 0).cumsum(axis=0, dtype=np.int64)


def _followed(
    f: Forwarding, share: NDArray[np.int64], switch: NDArray[np.int64], some: slice
) -> NDArray[np.int32]:
    """int32[G, D, hops]: the arcs of packets of all groups to some of them."""
    home = switch[some]
    destinations, place = np.unique(home, return_inverse=True)
    towards = Towards.of(f, destinations)
    source = np.arange(len(switch)).repeat(len(home))
    target = np.tile(np.arange(len(switch))[some], len(switch))
    column = np.tile(place, len(switch))
    row = towards.row(switch[source], column)
    drawn = (_hashed(source, target) * share[-1, row]).astype(np.int64)
    way = (share[:, row] <= drawn).sum(axis=0)
    ports = np.concatenate((f.weighted, f.order[:1]))  # the last where no port has a weight
    out = np.where(switch[source] == switch[target], HOME, ports[way, row])
    found, going, hops = np.full((len(row), 1), -1, np.int32), np.flatnonzero(out != HOME), 0
    while len(going):
        if (out[going] < 0).any() or hops == MOST_HOPS:
            todo = "run polarfab verify, which names them"
            raise InputError.of("tables by which every packet arrives", "some do not", todo)
        if hops == found.shape[1]:
            found = np.pad(found, ((0, 0), (0, 1)), constant_values=-1)
        found[going, hops] = out[going]
        arc = f.end[out[going]]
        out[going] = towards.way_out(arc, column[going])
        if hops == 0 and f.marks:
            marked = going[way[going] > 0]
            again = _hashed(target[marked], source[marked])
            onward = _spread_to(towards, f.end[found[marked, 0]], column[marked], again)
            out[marked] = np.where(onward >= 0, onward, out[marked])
        going, hops = going[out[going] != HOME], hops + 1
    return found.reshape(len(switch), len(home), -1)


def _spread_to(
    towards: Towards, arc: NDArray[np.int32], column: NDArray[np.int64], chance: NDArray[np.float64]
) -> NDArray[np.int32]:
    """int32[n]: where marked packets are spread to that came in by arcs; -1 where tables say."""
    which, ways = towards.onward(arc, column)
    count = np.bincount(which, minlength=len(arc))
    first = np.cumsum(count) - count
    place = first + (chance * count).astype(np.int64)
    return np.where(count > 0, np.append(ways, -1)[np.minimum(place, len(ways))], -1)


def _hashed(source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[n], 0 to 1: a hash of each pair, by the finaliser of splitmix64."""
    word = source.astype(np.uint64) << np.uint64(32) | target.astype(np.uint64)
    word = word + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return (word >> np.uint64(11)).astype(np.float64) / (1 << 53)
