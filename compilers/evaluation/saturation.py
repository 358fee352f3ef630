"""Estimated throughput: the rate at which the hottest link of the tables is full.

Traffic is a fluid that follows the tables: ingress traffic is split over the ports of its class by
their weights, then goes minimally. Every direction of a link carries 1, as does a host's link. If
the hottest link carries L times what a switch's hosts send, p hosts per switch can each send
1/(p·L) of their link's rate: the saturation. Queues are not modelled. `adaptive` is the estimate
with weights fitted to the traffic, one set per switch and class (`balance: ugal-pf`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.traffic import PATTERNS, Traffic
from compilers.proof.forwarding import Forwarding, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from inventory.problems import InputError, Problem, did_you_mean

PACKETS_AT_ONCE = 1 << 21
PATHS_TO_FIT = 300_000
ROUNDS = 400


@dataclass(frozen=True, slots=True)
class Saturation:
    """The rate at which hosts can send, as a share of their links' rate, and the limiting link.

    peak: the load of that link, in units of what all hosts of a switch send. mean: the mean load of
    all links. hottest: the two switches of the limiting link.
    """

    share: float
    peak: float
    mean: float
    hottest: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PatternThroughput:
    """A pattern's saturation by minimal routes, as emitted, and with weights fitted to it.

    The latter two are None if the build has no alternates; `adaptive` also if the pattern has more
    paths than PATHS_TO_FIT.
    """

    pattern: str
    flows: int
    minimal: Saturation
    as_emitted: Saturation | None = None
    adaptive: Saturation | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """The arcs that ingress traffic leaves by, and their shares: [1 + A, S·(C + 2)] each."""

    forwarding: Forwarding
    ways: NDArray[np.int32]
    emitted: NDArray[np.float64]

    @classmethod
    def of(cls, build: Build) -> Fluid:
        """Join the tables of a build with its cables."""
        forwarding = Forwarding.of(build)
        weight = np.moveaxis(build.tables.classes.weight, 2, 0)
        weight = np.pad(weight, ((0, 0), (0, 0), (0, 2))).reshape(len(weight), -1)
        ways = forwarding.weighted.copy()
        ways[0] = forwarding.order[0]
        return cls(forwarding, ways, weight / np.maximum(1, weight.sum(axis=0)))

    def minimal(self) -> NDArray[np.float64]:
        """The shares that send all traffic over the minimal ports."""
        shares = np.zeros_like(self.emitted)
        shares[0] = 1
        return shares

    def loads(self, traffic: Traffic, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[S·L]: the load of each arc, in units of what a switch's hosts send."""
        load = np.zeros(len(self.forwarding.end))
        for towards, part, column in self._parts(traffic):
            row = towards.row(part.source, column)
            for way, share in zip(self.ways, shares, strict=True):
                amount = part.amount * share[row]
                some = np.flatnonzero(amount > 0)
                for arcs, packet in self._follow(towards, way[row[some]], column[some]):
                    load += np.bincount(arcs, amount[some[packet]], minlength=len(load))
        return load

    def fitted(self, traffic: Traffic) -> NDArray[np.float64]:
        """float64[S·L]: the loads of the best weights found for this traffic.

        There is one weight per switch, class and way. In every round a way loses weight by the
        price of its links; prices rise more steeply towards the hottest link, and steps get
        smaller. The result is within a few per cent of the optimum of the linear program (tests).
        """
        arc, flow, way = self._paths(traffic)
        rows = np.concatenate([t.row(p.source, c) for t, p, c in self._parts(traffic)])
        used, group = np.unique(rows, return_inverse=True)
        variable = way * len(used) + group[flow]
        amount = traffic.amount[flow]
        shares = self.emitted[:, used]
        allowed, size = shares > 0, shares.size
        best = np.full(len(self.forwarding.end), np.inf)
        for round_ in range(ROUNDS):
            load = np.bincount(arc, amount * shares.ravel()[variable], minlength=len(best))
            if load.max() < best.max():
                best = load
            price = (load / load.max()) ** (4 + round_ / 10)
            cost = np.bincount(variable, amount * price[arc], minlength=size).reshape(shares.shape)
            cost = np.maximum(0, cost - np.where(allowed, cost, np.inf).min(axis=0))
            stride = 1 / (1 + round_ / 20) / max(cost.max(), 1e-12)
            shares = np.where(allowed, shares * np.exp(-cost * stride), 0)
            shares = np.where(allowed, np.maximum(shares / shares.sum(axis=0), 1e-9), 0)
        return best

    def _parts(self, traffic: Traffic) -> Iterator[tuple[Towards, Traffic, NDArray[np.int64]]]:
        """Traffic by blocks of destinations, and the column of each flow in its block."""
        order = self.forwarding.switches
        step = max(1, PACKETS_AT_ONCE // order)
        for first in range(0, order, step):
            part = traffic.between(first, first + step)
            if len(part.source):
                towards = Towards.of(self.forwarding, np.arange(first, min(first + step, order)))
                yield towards, part, part.destination - first

    def _paths(self, traffic: Traffic) -> tuple[NDArray[np.int64], ...]:
        """int64[n] three times: an arc, the flow that passes it, and the flow's way."""
        found, done = [], 0
        for towards, part, column in self._parts(traffic):
            row = towards.row(part.source, column)
            for number, way in enumerate(self.ways):
                some = np.flatnonzero(self.emitted[number, row] > 0)
                for arcs, packet in self._follow(towards, way[row[some]], column[some]):
                    flow = done + some[packet]
                    found.append((arcs.astype(np.int64), flow, np.full(len(flow), number)))
            done += len(row)
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    def _follow(
        self, towards: Towards, out: NDArray[np.int32], column: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """The arcs that packets leave by, one hop at a time, and the number of each packet."""
        packet = np.arange(len(out))
        for _ in range(MOST_HOPS):
            going = out >= 0
            out, packet = out[going], packet[going]
            if not len(out):
                return
            yield out, packet
            out = towards.way_out(self.forwarding.end[out], column[packet])


@dataclass(frozen=True, slots=True, eq=False)
class LinkLoads:
    """A pattern's load of each link, in units of what all hosts of a switch send: float64[S·L].

    hosts: p, hosts per switch. as_emitted and adaptive are None as in `PatternThroughput`.
    """

    fluid: Fluid
    pattern: str
    hosts: int
    flows: int
    minimal: NDArray[np.float64]
    as_emitted: NDArray[np.float64] | None
    adaptive: NDArray[np.float64] | None

    @classmethod
    def of(cls, build: Build, pattern: str, hosts: int, seed: int = 0) -> LinkLoads:
        """Follow a pattern of `compilers.evaluation.traffic.PATTERNS`.

        Args:
            build: its tables and cables.
            pattern: its name.
            hosts: p, hosts per switch, at least 1.
            seed: of random patterns.
        """
        fluid = Fluid.of(build)
        traffic = PATTERNS[pattern](build.topology, hosts, seed)
        minimal = fluid.loads(traffic, fluid.minimal())
        emitted = fitted = None
        if (fluid.emitted[1:] > 0).any():  # there are alternates
            emitted = fluid.loads(traffic, fluid.emitted)
            if 0 < len(traffic.source) * len(fluid.ways) <= PATHS_TO_FIT:
                fitted = min(fluid.fitted(traffic), minimal, emitted, key=lambda load: load.max())
        return cls(fluid, pattern, hosts, len(traffic.source), minimal, emitted, fitted)

    def saturation(self, load: NDArray[np.float64]) -> Saturation:
        """What one of the three loads lets hosts send."""
        f = self.fluid.forwarding
        hot = int(load.argmax())
        peak = float(load[hot])
        return Saturation(
            share=min(1.0, 1 / (self.hosts * peak)) if peak else 1.0,
            peak=peak,
            mean=float(load[f.end >= 0].mean()),
            hottest=(hot // f.slots, int(f.end[hot]) // f.slots),
        )


def throughput(build: Build, pattern: str, hosts: int, seed: int = 0) -> PatternThroughput:
    """The saturation of a pattern; the arguments are those of `LinkLoads.of`."""
    found = LinkLoads.of(build, pattern, hosts, seed)
    others = (found.as_emitted, found.adaptive)
    return PatternThroughput(
        pattern,
        found.flows,
        found.saturation(found.minimal),
        *(None if load is None else found.saturation(load) for load in others),
    )


def saturations(
    build: Build,
    patterns: Sequence[str] = (),
    hosts: int = 0,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[PatternThroughput, ...]:
    """The saturation of several patterns.

    Args:
        build: its tables and cables.
        patterns: their names, none for all.
        hosts: hosts per switch; 0 for as built.
        seed: of the patterns that chance has a part in.
        progress: called with (patterns done, all patterns).

    Raises:
        InputError: there is no such pattern.
    """
    if problems := [_unknown(name) for name in patterns if name not in PATTERNS]:
        raise InputError(problems)
    found, names = [], patterns or tuple(PATTERNS)
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    for done, name in enumerate(names, 1):
        found.append(throughput(build, name, hosts, seed))
        if progress:
            progress(done, len(names))
    return tuple(found)


def _unknown(name: str) -> Problem:
    todo = did_you_mean(name, PATTERNS, "choose one of these")
    return Problem(", ".join(PATTERNS), name, todo, key="--pattern")
