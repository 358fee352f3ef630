"""Predictions from the tables: the hops of every pair, and the load of every link.

A rehearsal makes a `Prediction` of each build that the fabric holds, and compares with it what an
engine observes; the model engine looks its packets up in it. With alternates, intermediates
(Valiant's routing) or equal-cost paths, a switch chooses among several paths by a hash that cannot
be predicted. Then hops and loads are known between bounds; otherwise the bounds are equal. A
prediction is for an outage, and for the repairs of a controller (`Prediction.under`).

A `Prediction` is made in three steps: the walks of the tables (`Walks`), the hops of every pair
under an outage (`_tabulated`), and the prediction with them (`_predict`). Further predictions reuse
steps of an earlier one:

| made by | begins with | for |
|---|---|---|
| `Prediction.of` | a build | a build under an outage |
| `Prediction.under` | the walks of another prediction | another outage, or repaired tables |
| `Prediction.with_port` | the hops of another prediction | a class with a wrong port |
| `Prediction.during_move` | two predictions | the time of a move between two builds |

The last two predictions by `of`, and the last two by `under`, are cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.host_paths import HostPaths, TabulatedHops
from compilers.forwarding.walks import Numbers, Walks
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.tables.build import Build
from compilers.tables.fib import LOST
from compilers.wiring.wiring import Wiring
from mininet_scenarios.scenario.outage import LINK_DOWN, Outage

Packets = NDArray[np.int64]
"""int64[S, S], the packets from each switch to each other."""
Loads = NDArray[np.int64]
"""int64[S, ports + 1], the packets out of each port of each switch."""
Value = TypeVar("Value", np.int64, np.float64)
"""The type of a count or a rate."""
PATHS_AT_ONCE = 1 << 17
"""About how many paths are followed at once, which bounds memory."""
NO_OUTAGE = Outage()
"""The outage of an undamaged fabric."""
NO_VERTEX = -1
"""In place of a vertex: the other build of a move lacks the switch."""


class LoadBounds(NamedTuple):
    """The packets out of each port, between the bounds that the tables allow."""

    fewest: Loads
    """The fewest packets."""
    most: Loads
    """The most packets."""


class Visits(NamedTuple):
    """The passages of n packets through switches."""

    source: Numbers
    """int64[n], the first switch of the packet's path."""
    destination: Numbers
    """int64[n], the last switch of the packet's path."""
    switch: Numbers
    """int64[n], the switch that the packet passes."""
    in_port: Numbers
    """int64[n], the port by which the packet comes in; 0 from a host."""
    out_port: NDArray[np.int32]
    """int32[n], the port by which the packet goes out."""
    marked: NDArray[np.bool_]
    """bool[n], whether the packet is marked when it comes in."""


@dataclass(frozen=True, slots=True, eq=False)
class PairBlock:
    """A block of n pairs of switches, with all of their paths."""

    source: Numbers
    """int64[n], the first switch of each pair."""
    destination: Numbers
    """int64[n], the last switch of each pair."""
    paths: HostPaths
    """All paths that the tables allow for these pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The paths of packets by the tables, in a fabric of S switches with K links, under an outage.

    A link of a switch is an *arc*, s·K + k.
    """

    build: Build
    """The build whose tables lead the packets."""
    walks: Walks
    """The walks of its tables."""
    outage: Outage
    """The cables and switches that are out of order."""
    tabulated: TabulatedHops
    """The hops of every pair by the tables."""
    first_path_hops: NDArray[np.int16]
    """int16[S, S], the number of links from each switch to each other over the first path that is
    up; negative where packets don't arrive (`FAULTS`).
    """
    fewest_hops: NDArray[np.int16]
    """int16[S, S], the number of links of the shortest path; negative where a path fails."""
    most_hops: NDArray[np.int16]
    """int16[S, S], the number of links of the longest path; negative where all paths fail."""

    @classmethod
    def of(cls, build: Build, outage: Outage | None = None) -> Prediction:
        """Follow a packet of every pair over each of its paths."""
        return _of_build(build, outage or NO_OUTAGE)

    def under(self, outage: Outage, avoided: Outage = NO_OUTAGE) -> Prediction:
        """The prediction of the same tables under another outage.

        Args:
            outage: the cables and switches that are out of order.
            avoided: the failures that a controller has routed around.
        """
        if outage == self.outage and avoided == NO_OUTAGE:
            return self
        return _under(self, outage, avoided)

    def with_port(self, switch: int, egress: int, port: int) -> Prediction:
        """The prediction for tables in which a class of a switch has another port.

        So a wrong rule can be predicted: a rehearsal puts one into a switch on purpose, and expects
        that its checks notice it.

        Args:
            switch: the switch.
            egress: the class.
            port: its only port. A port to a host is always up, so the class then loses its
                protection.
        """
        classes, wiring = self.build.tables.classes, self.build.wiring
        ports = classes.port.copy()
        ports[switch, egress] = port
        classes = replace(classes, port=ports)
        if port not in wiring.port[switch, wiring.far[switch] >= 0]:
            protection, bounce = classes.protection.copy(), classes.bounce.copy()
            protection[switch, egress] = bounce[switch, egress] = 0
            classes = replace(classes, protection=protection, bounce=bounce)
        tables = replace(self.build.tables, classes=classes)
        walks = Walks.of(replace(self.build, tables=tables))
        program = self.outage.program(walks.program, wiring.names)
        tabulated = self.tabulated.with_switch(switch, walks, program, LINK_DOWN)
        if self.build.forwarding.intermediates:
            return _predict(tabulated, self.outage)
        changed = replace(self, build=walks.build, walks=walks, tabulated=tabulated)
        # Only packets to destinations of this class may take other paths.
        return _with_hops(changed, self.egress[switch] == egress)

    @property
    def egress(self) -> NDArray[np.int16]:
        """int16[S, S], the class of each switch for each destination; negative for none."""
        return self.walks.all_egress.T

    @property
    def arcs(self) -> int:
        """The number of arcs, S·K."""
        return int(self.tabulated.program.far.size)

    @property
    def varies(self) -> bool:
        """Whether packets may have several paths, so that only bounds are known."""
        return self.tabulated.program.shares.shape[2] > 1 or self.build.forwarding.intermediates

    def paths(self, source: Numbers, destination: Numbers, first: bool = False) -> HostPaths:
        """All paths between pairs of switches; none from or to a switch without power.

        Args:
            source: int64[n], the first switch of each pair.
            destination: int64[n], the last switch of each pair.
            first: whether only the first path of each pair that is up is followed.
        """
        up = self.outage.up(self.build.wiring.names)
        powered = np.flatnonzero(up[source] & up[destination] & (source != destination))
        follow = self.tabulated.first_paths if first else self.tabulated.paths
        paths = follow(source[powered], destination[powered])
        return replace(paths, pair=powered[paths.pair])

    def loads(self, packets: Packets) -> Loads:
        """The packets out of each port, by the first path of each pair that is up.

        Args:
            packets: the packets from switch to switch.
        """
        arcs = np.zeros(self.arcs, np.int64)
        source, destination = np.nonzero(packets)
        paths = self.paths(source, destination, first=True)
        amount = packets[source, destination][paths.pair]
        for crossed in paths.arcs:
            np.add.at(arcs, crossed[crossed >= 0], amount[crossed >= 0])
        return self.by_port(arcs)

    def load_bounds(self, packets: Packets) -> LoadBounds:
        """The packets out of each port, over any of their paths.

        Args:
            packets: the packets from switch to switch.
        """
        if not self.varies:
            loads = self.loads(packets)
            return LoadBounds(loads, loads)
        if self.build.forwarding.intermediates:
            powered = _powered_pairs(self.outage.up(self.build.wiring.names))
            fewest, most = self.tabulated.packet_bounds(np.where(powered, packets, 0))
            return LoadBounds(self.by_port(fewest), self.by_port(most))
        fewest, most = np.zeros(self.arcs, np.int64), np.zeros(self.arcs, np.int64)
        for block in self._blocks(packets):
            crossings = _crossings(block.paths, len(block.source), self.arcs)
            amount = packets[block.source, block.destination][crossings.pair]
            np.add.at(fewest, crossings.arc, amount * crossings.fewest)
            np.add.at(most, crossings.arc, amount * crossings.most)
        return LoadBounds(self.by_port(fewest), self.by_port(most))

    def visits(self, packets: Packets) -> Iterator[Visits]:
        """The passages of packets through switches, over each of their paths, hop by hop.

        Args:
            packets: not 0 for the pairs of switches whose packets are followed.
        """
        program, port = self.tabulated.program, self.build.wiring.port
        links = program.far.shape[1]
        for block in self._blocks(packets):
            paths = block.paths
            in_port = np.zeros(len(paths.pair), np.int64)
            marked = np.zeros(len(paths.pair), np.bool_)
            for arcs, leaves_marked in zip(paths.arcs, paths.is_marked, strict=True):
                on_way = np.flatnonzero(arcs >= 0)  # the paths that have not ended
                switch, link = np.divmod(arcs[on_way].astype(np.int64), links)
                pair = paths.pair[on_way]
                yield Visits(
                    source=block.source[pair],
                    destination=block.destination[pair],
                    switch=switch,
                    in_port=in_port[on_way],
                    out_port=port[switch, link],
                    marked=marked[on_way],
                )
                in_port[on_way] = port[program.far[switch, link], program.far_link[switch, link]]
                marked[on_way] = leaves_marked[on_way]

    def by_port(self, arcs: NDArray[Value]) -> NDArray[Value]:
        """[S, ports + 1], the value of each port, from those of all arcs, [S·K]."""
        return by_port(self.build.wiring, arcs.reshape(self.build.wiring.port.shape))

    def during_move(self, other: Prediction) -> Prediction:
        """The prediction while the fabric moves to another build, for every mixture of both.

        The packets of a pair that both builds deliver arrive, over no more links than the longest
        paths of both together (docs/how-to/move.md). Of other pairs nothing is known. Switches of
        the same name in both builds are the same switch.

        Args:
            other: the prediction for the other build.
        """
        other_vertex = {name: vertex for vertex, name in enumerate(other.build.wiring.names)}
        # int64[S], the vertex of each switch in the other build, or NO_VERTEX.
        vertex = np.array([other_vertex.get(name, NO_VERTEX) for name in self.build.wiring.names])
        in_other = vertex != NO_VERTEX
        in_both = in_other[:, None] & in_other
        other_fewest = np.where(in_both, other.fewest_hops[vertex[:, None], vertex], LOST)
        always_arrives = (self.fewest_hops >= 0) & (other_fewest >= 0)
        # During the move, a path between two switches has at least one link, whatever it has in
        # either build. A path of a switch to itself has none.
        shortest = np.minimum(self.fewest_hops, 1)
        fewest = np.where(always_arrives, shortest, LOST).astype(np.int16)
        longest = max(0, int(self.most_hops.max())) + max(0, int(other.most_hops.max()))
        is_same_switch = np.eye(len(always_arrives), dtype=np.bool_)
        most = np.where(is_same_switch, 0, longest).astype(np.int16)
        return replace(self, fewest_hops=fewest, most_hops=most)

    def path(self, source: int, destination: int) -> tuple[int, ...]:
        """The switches that a packet passes on the first of its paths, also if it gets lost."""
        paths = self.paths(np.array([source]), np.array([destination]), first=True)
        if not len(paths.pair):
            return (source,)
        arcs = paths.arcs[paths.arcs[:, 0] >= 0, 0].tolist()
        return source, *(int(self.tabulated.program.far.ravel()[arc]) for arc in arcs)

    def _blocks(self, packets: Packets) -> Iterator[PairBlock]:
        """The pairs of switches that send, some at a time, with all of their paths."""
        source, destination = np.nonzero(packets)
        step = max(1, PATHS_AT_ONCE // self.tabulated.paths_a_pair)
        for begin in range(0, len(source), step):
            block = slice(begin, begin + step)
            paths = self.paths(source[block], destination[block])
            yield PairBlock(source[block], destination[block], paths)


@dataclass(frozen=True, slots=True, eq=False)
class _Crossings:
    """How often the packets of a pair cross an arc, in m rows of a pair and an arc each."""

    pair: Numbers
    """int64[m], the number of the pair."""
    arc: Numbers
    """int64[m], an arc that some path of the pair crosses."""
    fewest: Numbers
    """int64[m], how often a packet crosses the arc at least; 0 if a path of the pair does not."""
    most: Numbers
    """int64[m], how often a packet crosses the arc at most."""


def _crossings(paths: HostPaths, pairs: int, arcs: int) -> _Crossings:
    """How often the packets of pairs cross arcs.

    Args:
        paths: all paths of the pairs.
        pairs: how many pairs there are.
        arcs: how many arcs there are.
    """
    # How often each path crosses each of its arcs. A path and an arc make one number.
    hop, path = np.nonzero(paths.arcs >= 0)
    path_and_arc, times = np.unique(path * arcs + paths.arcs[hop, path], return_counts=True)
    path, arc = np.divmod(path_and_arc, arcs)
    # These counts, with those of one pair and one arc next to each other.
    pair_and_arc_of_path = paths.pair[path] * arcs + arc
    by_pair_and_arc = np.argsort(pair_and_arc_of_path, kind="stable")
    times = times[by_pair_and_arc]
    pair_and_arc, begin, path_count = np.unique(
        pair_and_arc_of_path[by_pair_and_arc], return_index=True, return_counts=True
    )
    pair, arc = np.divmod(pair_and_arc, arcs)
    on_every_path = path_count == np.bincount(paths.pair, minlength=pairs)[pair]
    return _Crossings(
        pair=pair,
        arc=arc,
        fewest=np.where(on_every_path, np.minimum.reduceat(times, begin), 0),
        most=np.maximum.reduceat(times, begin),
    )


# An engine that walks packets and the checker of a rehearsal ask for the same predictions.
@lru_cache(maxsize=2)
def _of_build(build: Build, outage: Outage) -> Prediction:
    """The prediction of a build (`Prediction.of`)."""
    return _predict(_tabulated(Walks.of(build), outage), outage)


@lru_cache(maxsize=2)
def _under(prediction: Prediction, outage: Outage, avoided: Outage) -> Prediction:
    """The prediction of the same tables under another outage (`Prediction.under`)."""
    walks = _walks_around(prediction.walks, avoided)
    return _predict(_tabulated(walks, outage), outage)


def _walks_around(walks: Walks, avoided: Outage) -> Walks:
    """The walks of the tables that a controller computes around failures."""
    names, program = walks.build.wiring.names, walks.program
    dead = (program.far >= 0) & ~avoided.cabling(program, names).works
    if not dead.any():
        return walks
    tables = repair_tables(_intact(walks.build), dead).tables
    return Walks.of(replace(walks.build, tables=tables))


@lru_cache(maxsize=2)
def _intact(build: Build) -> IntactBuild:
    """A build prepared for repairs."""
    return IntactBuild.of(build)


def _tabulated(walks: Walks, outage: Outage) -> TabulatedHops:
    """The hops of every pair under an outage."""
    program = outage.program(walks.program, walks.build.wiring.names)
    return TabulatedHops.of(walks, program, LINK_DOWN)


def _predict(tabulated: TabulatedHops, outage: Outage) -> Prediction:
    """The prediction of tables whose hops under an outage are tabulated."""
    walks = tabulated.walks
    up = outage.up(walks.build.wiring.names)
    is_same_switch = up[:, None] & up & np.eye(len(up), dtype=np.bool_)
    # Packets within a switch cross no link. All others are lost, until their hops are entered.
    undelivered = np.where(is_same_switch, 0, LOST).astype(np.int16)
    if walks.build.forwarding.intermediates:
        powered = _powered_pairs(up)
        # `legs.from_intermediates` are the paths from each switch as an intermediate to the
        # destination. The path of a packet that begins at this switch is the first path of the
        # switch: the minimal one.
        first = tabulated.legs.from_intermediates.links_or_fault.reshape(powered.shape)
        fewest, most = tabulated.lengths_over_intermediates()
        return Prediction(
            build=walks.build,
            walks=walks,
            outage=outage,
            tabulated=tabulated,
            first_path_hops=np.where(powered, first, undelivered),
            fewest_hops=np.where(powered, fewest, undelivered),
            most_hops=np.where(powered, most, undelivered),
        )
    prediction = Prediction(
        build=walks.build,
        walks=walks,
        outage=outage,
        tabulated=tabulated,
        first_path_hops=undelivered,
        fewest_hops=undelivered,
        most_hops=undelivered,
    )
    return _with_hops(prediction, np.ones(len(up), np.bool_))


def _with_hops(prediction: Prediction, destinations: NDArray[np.bool_]) -> Prediction:
    """The prediction with the hops to some destinations, which are followed anew.

    Args:
        prediction: its arrays have the hops to other destinations already. They stay as they are.
        destinations: bool[S], the destinations to which packets are followed.
    """
    first_path_hops = prediction.first_path_hops.copy()
    fewest_hops, most_hops = prediction.fewest_hops.copy(), prediction.most_hops.copy()
    up = prediction.outage.up(prediction.build.wiring.names)
    pairs = (_powered_pairs(up) & destinations).astype(np.int64)
    for block in prediction._blocks(pairs):
        hops, ends = block.paths.links_or_fault, (block.source, block.destination)
        # The paths of a pair follow each other, its first path first.
        _, first_path = np.unique(block.paths.pair, return_index=True)
        first_path_hops[ends] = hops[first_path]
        fewest_hops[ends] = np.minimum.reduceat(hops, first_path)
        most_hops[ends] = np.maximum.reduceat(hops, first_path)
    return replace(
        prediction, first_path_hops=first_path_hops, fewest_hops=fewest_hops, most_hops=most_hops
    )


def _powered_pairs(up: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[S, S]: the pairs of two different switches that have power.

    Args:
        up: bool[S], the switches that have power.
    """
    pairs: NDArray[np.bool_] = up[:, None] & up & ~np.eye(len(up), dtype=np.bool_)
    return pairs


def by_port(wiring: Wiring, of_links: NDArray[Value]) -> NDArray[Value]:
    """[S, ports + 1], the value of each port, from those of the links of each switch, [S, K].

    Ports without a link have 0.
    """
    switch, link = np.nonzero(wiring.port)
    of_ports = np.zeros(wiring.far_by_port().shape, of_links.dtype)
    of_ports[switch, wiring.port[switch, link]] = of_links[switch, link]
    return of_ports
