"""Traffic between switches as their rows have counted it, and the paths that it may take.

A row counts what enters at its switch and what passes through. What passes through came in at other
switches, by paths that tables and weights say. So x, what enters, solves x + T·x = r, where r is
what rows counted, and T what of each flow passes through each row. It is solved by damped steps
(Richardson's) that keep x at 0 or above: what was dropped on the way is missing in r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths
from compilers.routing.split_classes import deciding_rows
from compilers.spec.policy import EVERY_HOP
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Routes
from inventory.problems import InputError

LEAST_FLOW = 1 / 128
"""The least flow that is followed, as a part of the fastest port's rate."""
MOST_FLOWS = 1 << 13
STEPS = 60
Numbers = NDArray[Any]
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FabricPaths:
    """All paths of a fabric's tables, those without a weight included.

    fluid: of tables in which every port of a class has the same weight. port: int32[S·L], of arcs;
    arcs that have no cable have 0.
    """

    build: Build
    fluid: Fluid
    port: NDArray[np.int32]

    @classmethod
    def of(cls, build: Build) -> FabricPaths:
        """The paths of a build's tables as they are now.

        Raises:
            InputError: see `_require_followed`.
        """
        _require_followed(build)
        classes = build.tables.classes
        every = replace(build.tables, classes=replace(classes, weight=_one_each(classes)))
        far, port = build.wiring.far, build.wiring.port
        arcs = np.zeros((len(far), far.shape[1] + 1), np.int32)
        arcs[:, :-1] = np.where(far >= 0, port, 0)
        return cls(build, Fluid.of(replace(build, tables=every)), arcs.ravel())

    def at_arcs(self, of_ports: Numbers) -> Reals:
        """float64[S·L]: what is known of ports, [S, ports + 1], by arc; NaN where nothing is."""
        slots = self.fluid.hops.slots
        switch = np.arange(len(self.port)) // slots
        found = of_ports[switch, np.minimum(self.port, of_ports.shape[1] - 1)]
        return np.where(self.port > 0, found, np.nan)


def _require_followed(build: Build) -> None:
    """Pass when packets have no mark, no intermediate and in transit one next hop.

    Raises:
        InputError: they do otherwise.
    """
    cannot = "a controller that shifts weights cannot follow"
    if build.every_hop:
        required = f"minimal, as {cannot} packets that are shared at every hop"
        todo = "compile without `transit` for that"
        raise InputError.of(required, EVERY_HOP, todo, key="routing.transit")
    if build.marks or build.carries:
        packets = "marked packets" if build.marks else "packets over intermediates"
        todo = "compile with balance: compact-valiant for that"
        required = f"another balance, as {cannot} {packets}"
        raise InputError.of(required, build.balance, todo, key="routing.balance")


def _one_each(classes: Classes) -> NDArray[np.uint16]:
    """uint16[S, C, 1 + A]: a weight of 1 for each port that there is."""
    ports = classes.port[..., None], np.asarray(classes.alternate)
    return np.concatenate([port > 0 for port in ports], axis=2).astype(np.uint16)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTraffic:
    """Flows that enter at switches, and what they load on each of their paths.

    paths: in parts of each arc's rate. switch, number: int64[G], the class of each choice.
    """

    paths: FlowPaths
    switch: NDArray[np.int64]
    number: NDArray[np.int64]

    @classmethod
    def of(
        cls, fabric_paths: FabricPaths, rate: NDArray[np.float32], capacity: Reals, weight: Numbers
    ) -> MeasuredTraffic | None:
        """What enters, by what rows carry; None where all flows are small.

        Args:
            fabric_paths: those of the tables while rows were counted.
            rate: [S, P], bit/s that the row of each prefix carries.
            capacity: float64[S·L], bit/s of each arc, infinite where it is unknown.
            weight: [S, C, 1 + A], of the classes at that time.
        """
        known = capacity[np.isfinite(capacity)]
        least = LEAST_FLOW * float(known.max(initial=0))
        counted = _pairs(fabric_paths.build, rate, least)
        if not len(counted.source):
            return None
        every = cls._along(fabric_paths, replace(counted, amount=np.ones(len(counted.source))))
        enters = _entering(fabric_paths.fluid, counted, every.paths, every.shares(weight))
        some = enters >= least
        source, destination = counted.source[some], counted.destination[some]
        if not len(source):
            return None
        result = cls._along(fabric_paths, Traffic(source, destination, enters[some]))
        paths = result.paths
        return replace(result, paths=replace(paths, amount=paths.amount / capacity[paths.arc]))

    @classmethod
    def _along(cls, fabric_paths: FabricPaths, traffic: Traffic) -> MeasuredTraffic:
        """Flows on all their paths."""
        paths = fabric_paths.fluid.paths(traffic)
        switch, number = np.divmod(paths.row, fabric_paths.fluid.hops.classes + 2)
        return cls(paths, switch, number)

    def shares(self, weight: Numbers) -> Reals:
        """float64[G, W]: the shares of the paths by weights, [S, C, 1 + A]."""
        some = np.where(self.paths.options, weight[self.switch, self.number], 0).astype(np.float64)
        # A class without a weight, as none can be followed, has its minimal port.
        some[:, 0] += some.sum(axis=1) == 0
        return np.asarray(some / some.sum(axis=1, keepdims=True))


def _pairs(build: Build, rate: NDArray[np.float32], least: float) -> Traffic:
    """The rates of rows by source and destination; an aggregate's in equal parts."""
    routes = build.tables.routes
    switch, prefix = np.nonzero(rate >= max(least, 1.0))
    amount = rate[switch, prefix].astype(np.float64)
    single = prefix < len(rate)
    found = [(switch[single], prefix[single], amount[single])]
    for s, p, r in zip(switch[~single], prefix[~single], amount[~single], strict=True):
        ends = _behind(routes, build, int(s), int(p))
        found.append((np.full(len(ends), s), ends, np.full(len(ends), r / max(1, len(ends)))))
    source, destination, each = (np.concatenate(part) for part in zip(*found, strict=True))
    away = (source != destination) & build.topology.endpoints[destination]
    source, destination, each = source[away], destination[away], each[away]
    if len(each) > MOST_FLOWS:
        largest = np.argpartition(-each, MOST_FLOWS)[:MOST_FLOWS]
        source, destination, each = source[largest], destination[largest], each[largest]
    return Traffic.of(source, destination, each)


def _behind(routes: Routes, build: Build, switch: int, aggregate: int) -> NDArray[np.int64]:
    """int64[n]: the switches with hosts that this row of a switch decides about."""
    ends = np.flatnonzero((routes.aggregate == aggregate) & build.topology.endpoints)
    row, known = deciding_rows(routes, switch, ends)
    decides = known & (routes.prefixes(switch)[row] == aggregate)
    return np.asarray(ends[decides], np.int64)


def _entering(fluid: Fluid, counted: Traffic, paths: FlowPaths, shares: Reals) -> Reals:
    """float64[n]: what enters at each flow's source, of what the row there counted."""
    order, slots = fluid.hops.switches, fluid.hops.slots
    there = fluid.hops.end[paths.arc] // slots
    end = counted.destination[paths.flow]
    keys = counted.destination * order + counted.source  # ascending
    wanted = end * order + there
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    passes = (keys[place] == wanted) & (there != end)
    place, flow = place[passes], paths.flow[passes]
    part = shares[paths.options][paths.share[passes]]
    x = counted.amount
    for _ in range(STEPS):
        through = np.bincount(place, part * x[flow], minlength=len(x))
        x = (x + np.maximum(counted.amount - through, 0.0)) / 2
    return np.asarray(x)
