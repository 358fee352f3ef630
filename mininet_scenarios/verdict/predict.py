"""Predictions from the tables: hops of every pair, the load of every link, and rates of flows.

With alternates, intermediates or equal-cost paths, a switch chooses among several paths by a hash
that no one predicts, so hops and loads are known between bounds; without, the bounds meet. The same
under an outage, where no controller acts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compilers.evaluation.max_min import max_min
from compilers.forwarding.host_paths import HostPaths, TabulatedHops
from compilers.forwarding.walks import Numbers, Walks
from compilers.routing.link_repair import Intact, repaired
from compilers.tables.build import Build
from compilers.tables.fib import LOST
from compilers.wiring.wiring import Wiring
from mininet_scenarios.scenario.engine import LINK_DOWN, FlowRates, Flows, HostSample, Outage

Loads = NDArray[np.int64]
N = TypeVar("N", np.int64, np.float64)
PATHS_AT_ONCE = 1 << 17
NOTHING = Outage()


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The paths of packets by the tables, in a fabric of S switches with K links, under an outage.

    A link of a switch is an *arc*, s·K + k.
    """

    build: Build
    """The build."""
    walks: Walks
    """The walks of its tables."""
    outage: Outage
    """What is out of order."""
    tabulated: TabulatedHops
    """The hops of every pair by the tables."""
    first: NDArray[np.int16]
    """int16[S, S], the links from each switch to each other by the first of its paths that is up;
    negative where packets don't arrive (`FAULTS`).
    """
    fewest: NDArray[np.int16]
    """int16[S, S], the fewest links over all paths; negative where one of them fails."""
    most: NDArray[np.int16]
    """int16[S, S], the most links over all paths; negative where all of them fail."""

    @classmethod
    def of(cls, build: Build, outage: Outage | None = None) -> Prediction:
        """Follow a packet of every pair over each of its paths."""
        return _predict(_tabulated(Walks.of(build), outage or Outage()), outage or Outage())

    def under(self, outage: Outage, avoided: Outage = NOTHING) -> Prediction:
        """The prediction of the same tables under another outage.

        avoided: the failures that a controller has routed around.
        """
        return _predict(_tabulated(_walks_around(self.walks, avoided), outage), outage)

    def with_port(self, switch: int, egress: int, port: int) -> Prediction:
        """The prediction where a class of a switch has another port; one to a host is always up."""
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
        return _predict(tabulated, self.outage, self, self.egress[switch] == egress)

    @property
    def egress(self) -> NDArray[np.int16]:
        """int16[S, S], the class of each switch for each destination; negative for none."""
        return self.walks.all_egress.T

    @property
    def arcs(self) -> int:
        """S times K."""
        return int(self.tabulated.program.far.size)

    @property
    def varies(self) -> bool:
        """Whether packets have several paths, so that bounds are all there is."""
        return self.tabulated.program.shares.shape[2] > 1 or self.build.forwarding.intermediates

    def paths(self, source: Numbers, destination: Numbers, first: bool = False) -> HostPaths:
        """All paths from switches to others, int64[n] each; none from or to one without power.

        first: only the first of each pair that is up.
        """
        up, hops = self.outage.up(self.build.wiring.names), self.tabulated
        lit = np.flatnonzero(up[source] & up[destination] & (source != destination))
        paths = (hops.first_paths if first else hops.paths)(source[lit], destination[lit])
        return replace(paths, pair=lit[paths.pair])

    def loads(self, packets: Loads) -> Loads:
        """int64[S, ports + 1]: packets out of each port when packets[s, d] go from s to d.

        Each by the first of its paths that is up.
        """
        arcs = np.zeros(self.arcs, np.int64)
        source, destination = np.nonzero(packets)
        paths = self.paths(source, destination, first=True)
        amount = packets[source, destination][paths.pair]
        for crossed in paths.arcs:
            np.add.at(arcs, crossed[crossed >= 0], amount[crossed >= 0])
        return self.by_port(arcs)

    def load_bounds(self, packets: Loads) -> tuple[Loads, Loads]:
        """int64[S, ports + 1] twice: the fewest and the most packets out of each port."""
        if not self.varies:
            loads = self.loads(packets)
            return loads, loads
        if self.build.forwarding.intermediates:
            up = self.outage.up(self.build.wiring.names)
            able = np.where(up[:, None] & up & ~np.eye(len(up), dtype=np.bool_), packets, 0)
            least, most = self.tabulated.bounds_over(able)
            return self.by_port(least), self.by_port(most)
        bounds = np.zeros((2, self.arcs), np.int64)
        for source, destination, paths in self._blocks(packets):
            hop, path = np.nonzero(paths.arcs >= 0)
            crossed = path * self.arcs + paths.arcs[hop, path]
            places, times = np.unique(crossed, return_counts=True)
            path, arc = np.divmod(places, self.arcs)
            order = np.argsort(paths.pair[path] * self.arcs + arc, kind="stable")
            key = (paths.pair[path] * self.arcs + arc)[order]
            places, begin, count = np.unique(key, return_index=True, return_counts=True)
            pair, arc = np.divmod(places, self.arcs)
            every = count == np.bincount(paths.pair, minlength=len(source))[pair]
            amount = packets[source, destination][pair]
            fewest = np.where(every, np.minimum.reduceat(times[order], begin), 0)
            np.add.at(bounds[0], arc, amount * fewest)
            np.add.at(bounds[1], arc, amount * np.maximum.reduceat(times[order], begin))
        return self.by_port(bounds[0]), self.by_port(bounds[1])

    def visits(self, packets: Loads) -> Iterator[tuple[NDArray[Any], ...]]:
        """How packets pass switches, over every path that the tables allow for them.

        Yields source, destination and switch, int[n], the ports that they come in by, 0 from a
        host, and go out by, and whether they come marked.
        """
        p, links = self.tabulated.program, self.tabulated.program.far.shape[1]
        port = self.build.wiring.port
        for source, destination, paths in self._blocks(packets):
            came, marked = np.zeros(len(paths.pair), np.int64), np.zeros(len(paths.pair), np.bool_)
            for arcs, leaves_marked in zip(paths.arcs, paths.marked, strict=True):
                on = np.flatnonzero(arcs >= 0)
                at, link = np.divmod(arcs[on].astype(np.int64), links)
                ends = source[paths.pair[on]], destination[paths.pair[on]]
                yield *ends, at, came[on], port[at, link], marked[on]
                came[on] = port[p.far[at, link], p.far_link[at, link]]
                marked[on] = leaves_marked[on]

    def by_port(self, arcs: NDArray[N]) -> NDArray[N]:
        """[S, ports + 1] of a value for each arc."""
        return by_port(self.build.wiring, arcs.reshape(self.build.wiring.port.shape))

    def on_the_way(self, other: Prediction) -> Prediction:
        """While the fabric moves to another build: what is promised of every mixture of both.

        A pair that both deliver arrives, over no more links than the longest paths of both together
        (docs/how-to/move.md); of others nothing is known. Switches are the same by name.
        """
        number = {name: v for v, name in enumerate(other.build.wiring.names)}
        vertex = np.array([number.get(name, LOST) for name in self.build.wiring.names])
        in_both = (vertex[:, None] >= 0) & (vertex >= 0)
        later = np.where(in_both, other.fewest[vertex[:, None], vertex], LOST)
        sure = (self.fewest >= 0) & (later >= 0)
        fewest = np.where(sure, np.minimum(self.fewest, 1), LOST).astype(np.int16)
        bound = max(0, int(self.most.max())) + max(0, int(other.most.max()))
        most = np.where(np.eye(len(sure), dtype=np.bool_), 0, bound).astype(np.int16)
        return replace(self, fewest=fewest, most=most)

    def path(self, source: int, destination: int) -> tuple[int, ...]:
        """The switches that a packet passes by the first of its paths, to where it ends."""
        paths = self.paths(np.array([source]), np.array([destination]), first=True)
        if not len(paths.pair):
            return (source,)
        arcs = paths.arcs[paths.arcs[:, 0] >= 0, 0].tolist()
        return source, *(int(self.tabulated.program.far.ravel()[arc]) for arc in arcs)

    def _blocks(self, packets: Loads) -> Iterator[tuple[Numbers, Numbers, HostPaths]]:
        """Pairs of switches that send, in blocks: source and destination of each, and its paths."""
        source, destination = np.nonzero(packets)
        step = max(1, PATHS_AT_ONCE // self.tabulated.width)
        for begin in range(0, len(source), step):
            ends = source[begin : begin + step], destination[begin : begin + step]
            yield *ends, self.paths(*ends)


def _walks_around(walks: Walks, avoided: Outage) -> Walks:
    """The walks of the tables that a controller computes around failures."""
    names, program = walks.build.wiring.names, walks.program
    dead = (program.far >= 0) & ~avoided.cabling(program, names).works
    if not dead.any():
        return walks
    tables = repaired(_intact(walks.build), dead).tables
    return Walks.of(replace(walks.build, tables=tables))


@lru_cache(maxsize=2)
def _intact(build: Build) -> Intact:
    """A build prepared for repairs."""
    return Intact.of(build)


def _tabulated(walks: Walks, outage: Outage) -> TabulatedHops:
    """The hops of every pair under an outage."""
    program = outage.program(walks.program, walks.build.wiring.names)
    return TabulatedHops.of(walks, program, LINK_DOWN)


def _predict(
    tabulated: TabulatedHops,
    outage: Outage,
    usual: Prediction | None = None,
    led: ArrayLike = True,
) -> Prediction:
    """Follow packets of every pair, or, where the rest is as usual, those to led destinations."""
    walks = tabulated.walks
    up = outage.up(walks.build.wiring.names)
    able = up[:, None] & up
    nothing = np.where(able & np.eye(len(up), dtype=np.bool_), 0, LOST).astype(np.int16)
    able &= ~np.eye(len(up), dtype=np.bool_)
    if walks.build.forwarding.intermediates:
        first = tabulated.legs.second.hops.reshape(able.shape)
        tables = (np.where(able, hops, nothing) for hops in (first, *tabulated.hops_over()))
        return Prediction(walks.build, walks, outage, tabulated, *tables)
    begun = (usual.first, usual.fewest, usual.most) if usual else (nothing,) * 3
    prediction = Prediction(
        walks.build, walks, outage, tabulated, *(table.copy() for table in begun)
    )
    for source, destination, paths in prediction._blocks((able & np.asarray(led)).astype(np.int64)):
        begin = np.unique(paths.pair, return_index=True)[1]
        prediction.first[source, destination] = paths.hops[begin]
        prediction.fewest[source, destination] = np.minimum.reduceat(paths.hops, begin)
        prediction.most[source, destination] = np.maximum.reduceat(paths.hops, begin)
    return prediction


HOST_LINKS = 10_000.0
"""Mb/s that a host takes and gives where links have no rate: flows are bounded by something."""


def carry(walked: Prediction, hosts: HostSample, flows: Flows, rate: float | None) -> FlowRates:
    """Max-min fair rates when every flow divides itself over its paths by their weights.

    The shares are fixed: the fullest of its paths limits a flow, as it would one that must arrive
    whole. Links between switches carry `rate` each way, hosts' links any amount. What a path loses
    counts as sent, and not as arrived.
    """
    spread = FlowSpread.of(walked, hosts, flows)
    capacity = np.full(walked.arcs, np.inf if rate is None else rate)
    demand = np.minimum(flows.rate, HOST_LINKS if rate is None else np.inf)
    demand = np.where(spread.arrives > 0, demand, 0)
    fair = max_min(spread.arc, spread.flow, spread.share, capacity, demand)
    loads = np.zeros(walked.arcs)
    np.add.at(loads, spread.arc, spread.share * fair[spread.flow])
    return FlowRates(fair * spread.arrives, walked.by_port(loads))


@dataclass(frozen=True, slots=True, eq=False)
class FlowSpread:
    """The arcs that n flows cross, by the paths of the tables and their weights: m rows."""

    arc: NDArray[np.int64]
    """int64[m], an arc."""
    flow: NDArray[np.int64]
    """int64[m], a flow over it."""
    share: NDArray[np.float64]
    """float64[m], the share of the flow that crosses the arc on one path."""
    arrives: NDArray[np.float64]
    """float64[n], the part of each flow that arrives."""

    @classmethod
    def of(cls, walked: Prediction, hosts: HostSample, flows: Flows) -> FlowSpread:
        """Follow the flows of these hosts."""
        source, destination = hosts.switch[flows.source], hosts.switch[flows.destination]
        paths = walked.paths(source, destination)
        hop, path = np.nonzero(paths.arcs >= 0)
        home = np.where(paths.hops >= 0, paths.part, 0)
        arrives = np.bincount(paths.pair, home, len(source)).astype(np.float64)
        # Hosts of one switch reach each other over no link.
        arrives[(source == destination) & walked.outage.up(walked.build.wiring.names)[source]] = 1
        arcs = paths.arcs[hop, path].astype(np.int64)
        return cls(arcs, paths.pair[path], paths.part[path], arrives)


def by_port(wiring: Wiring, of_links: NDArray[N]) -> NDArray[N]:
    """[S, ports + 1], from values of the links of each switch, [S, K]."""
    switch, link = np.nonzero(wiring.port)
    table = np.zeros(wiring.cables().shape, of_links.dtype)
    table[switch, wiring.port[switch, link]] = of_links[switch, link]
    return table
