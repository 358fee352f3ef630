"""Numbering of a build's switches and hosts among those of the cabled build.

A fabric that moves from build to build keeps its switches and hosts, but builds number them each in
their own way. An engine counts by the build that it has cabled; `Numbering` translates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.update.loss import cables_apart
from compilers.update.matching import NO_VERTEX, Matching, kept_hosts
from compilers.update.matching import HostTable as Addressed
from inventory.problems import InputError
from mininet_scenarios.scenario.engine import LinkChange, Miswire, NodeChange

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """A build's S switches and H participating hosts among the S' and H' of the cabled build.

    vertex: int64[S], hosts: int64[H]; NONE where it is not there. vertex_of: int64[S'], host_of:
    int64[H'], the other way round.
    """

    vertex: Numbers
    hosts: Numbers
    vertex_of: Numbers
    host_of: Numbers

    @classmethod
    def same(cls, switches: int, hosts: int) -> Numbering:
        """The numbering of the cabled build itself."""
        vertex, host = np.arange(switches), np.arange(hosts)
        return cls(vertex, host, vertex, host)

    @classmethod
    def of(cls, build: Build, ground: Build, most: int | None) -> Numbering:
        """`most` is how many of each switch's hosts take part, None for all."""
        nodes = Matching.of(build, ground)
        vertex = _through(nodes.node_before, nodes.after)
        here, there = Addressed.of(build), Addressed.of(ground)
        kept = kept_hosts(here, there)
        part, ground_part = (
            np.ones(len(hosts.host), np.bool_) if most is None else hosts.host < most
            for hosts in (here, there)
        )
        place = np.where(ground_part, np.cumsum(ground_part) - 1, NO_VERTEX)
        hosts = _through(kept, place)[part]
        return cls(
            vertex,
            hosts,
            _inverse(vertex, ground.tables.switches),
            _inverse(hosts, int(ground_part.sum())),
        )

    def spread(self, table: NDArray[Any], fill: int) -> NDArray[Any]:
        """[H', H'] of a value for each pair of the build's hosts; `fill` for all others."""
        if self.hosts is self.host_of:
            return table
        result = np.full((len(self.host_of),) * 2, fill, table.dtype)
        there = np.flatnonzero(self.hosts >= 0)
        result[np.ix_(self.hosts[there], self.hosts[there])] = table[np.ix_(there, there)]
        return result

    def gather(self, table: NDArray[Any]) -> NDArray[Any]:
        """[H, H] of a value for each pair of hosts that are cabled."""
        if self.hosts is self.host_of:
            return table
        chosen: NDArray[Any] = table[np.ix_(self.hosts, self.hosts)]
        return chosen

    def rows(self, table: NDArray[Any]) -> NDArray[Any]:
        """[S, …] of a row for each switch that is cabled; zeros for those that are not."""
        result = np.zeros((len(self.vertex), *table.shape[1:]), table.dtype)
        there = self.vertex >= 0
        result[there] = table[self.vertex[there]]
        return result

    def spread_rows(self, table: NDArray[Any]) -> NDArray[Any]:
        """[S', …] of a row for each switch of the build; zeros for all others."""
        result = np.zeros((len(self.vertex_of), *table.shape[1:]), table.dtype)
        there = self.vertex_of >= 0
        result[there] = table[self.vertex_of[there]]
        return result


Change = LinkChange | NodeChange | Miswire


def renumbered(event: Change, vertex: Numbers) -> Change:
    """The event where switch v has number vertex[v]; what names a switch that has none goes."""

    def links(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        found = [(int(vertex[u]), int(vertex[v])) for u, v in pairs]
        return tuple(pair for pair in found if min(pair) >= 0)

    match event:
        case LinkChange(cut, up):
            return LinkChange(links(cut), up)
        case NodeChange(switches, up):
            numbers = [int(vertex[v]) for v in switches]
            return NodeChange(tuple(v for v in numbers if v >= 0), up)
        case Miswire(one, other, repaired):
            (one,), (other,) = links([one]), links([other])
            return Miswire(one, other, repaired)


def ground_of(builds: Sequence[Build]) -> Build:
    """The one of them that has all switches, cables and hosts of the others, the first if several.

    Raises:
        InputError: none has.
    """
    for candidate in builds:
        if not any(lacking(build, candidate) for build in builds if build is not candidate):
            return candidate
    first, last = builds[0], builds[-1]
    raise InputError.of(
        required="builds of which one has all switches, cables and hosts of the others",
        given=f"one without {lacking(first, last)}, the other without {lacking(last, first)}",
        todo="go by way of a build in between, which has all",
    )


def lacking(build: Build, ground: Build) -> str:
    """A description of what one build has and another lacks; "" if it lacks nothing."""
    nodes = Matching.of(build, ground)
    gone = np.flatnonzero((nodes.before >= 0) & (nodes.after < 0))
    if len(gone):
        return f"switch {build.wiring.names[nodes.before[gone[0]]]} ({len(gone):,} in all)"
    if cables := cables_apart(build, ground, nodes.node_before, nodes.node_after):
        return f"the cable from {cables[0][0]} to {cables[0][1]} ({len(cables):,} in all)"
    here = Addressed.of(build)
    lost = np.flatnonzero(kept_hosts(here, Addressed.of(ground)) < 0)
    if len(lost):
        number = int(here.vertex[lost[0]]) * build.wiring.host_port.shape[1]
        name = build.wiring.host_names[number + int(here.host[lost[0]])]
        return f"host {name} at its place with its address ({len(lost):,} in all)"
    return ""


def _through(first: Numbers, then: Numbers) -> Numbers:
    """int64[n]: then[first], NONE where there is none."""
    return np.where(first >= 0, then[np.maximum(first, 0)], NO_VERTEX)


def _inverse(numbers: Numbers, count: int) -> Numbers:
    result = np.full(count, NO_VERTEX, np.int64)
    there = np.flatnonzero(numbers >= 0)
    result[numbers[there]] = there
    return result
