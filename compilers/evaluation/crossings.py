"""Who crosses the links of a fabric, whatever its balance: by tables, or over intermediates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.forwarding.host_paths import HostPaths, TabulatedHops
from compilers.forwarding.link_bounds import LinkBounds
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.program import program_of
from compilers.forwarding.rule import DROP
from compilers.forwarding.walks import Walks
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build

Arcs = NDArray[np.int64]
"""int64[n, 2]: directions of links, each as a switch and the number of its link."""
Reals = NDArray[np.float64]
CELLS = 1 << 22
"""Pairs of switches, times links, that are in memory together."""


class Crossings(Protocol):
    """Who can be asked who crosses a link."""

    @property
    def arcs(self) -> Arcs:
        """Each direction of each link."""

    @property
    def size(self) -> tuple[int, int]:
        """S switches, D of which have hosts and are destinations."""

    def loads(self, arcs: Arcs) -> Reals:
        """float64[n, S, D]: the share of what each switch sends to each destination on each arc."""

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals) -> LinkBounds:
        """A load that no traffic exceeds on each arc, and what arrives."""


@dataclass(frozen=True, eq=False)
class OverTables:
    """Who crosses a link by the shares of classes, with or without marks."""

    crossings: LinkCrossings

    @property
    def arcs(self) -> Arcs:
        """As in `Crossings`."""
        return self.crossings.arcs

    @property
    def size(self) -> tuple[int, int]:
        """As in `Crossings`."""
        return self.crossings.size

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        return self.crossings.loads(arcs)

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals) -> LinkBounds:
        """As in `Crossings`."""
        return LinkBounds.of(self.crossings, arcs, sends, takes)


@dataclass(frozen=True, eq=False)
class OverIntermediates:
    """Who crosses a link on the way to an intermediate or from there, with `balance: valiant`.

    A pair crosses a link by the mean of the legs from the source to all intermediates, and of the
    legs from these to the destination. So its share is a part that the source has with every
    destination and one that the destination has with every source, and the sum of these parts
    bounds the load. It is for a fabric in which nothing is down, where all packets arrive.
    """

    build: Build

    @cached_property
    def _legs(self) -> LinkCrossings:
        return LinkCrossings.of(self.build)

    @property
    def arcs(self) -> Arcs:
        """As in `Crossings`."""
        return self._legs.arcs

    @property
    def size(self) -> tuple[int, int]:
        """As in `Crossings`."""
        return self._legs.size

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        ends = intermediates(self.build)
        legs = self._legs.loads(arcs)
        first, second = legs.sum(axis=2) / len(ends), legs.sum(axis=1) / len(ends)
        load = first[:, :, None] + second[:, None, :]
        load[:, ends, np.arange(len(ends))] = 0
        return np.asarray(load, np.float64)

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals) -> LinkBounds:
        """As in `Crossings`."""
        fluid, ends = Fluid.of(self.build), intermediates(self.build)
        legs = (sends[ends][:, None] + takes) / len(ends)
        np.fill_diagonal(legs, 0)
        source, destination = np.nonzero(legs)
        flows = Traffic.of(ends[source], ends[destination], legs[source, destination])
        load = fluid.loads(flows, fluid.minimal())
        most = load[arcs[:, 0] * fluid.hops.slots + arcs[:, 1]]
        return LinkBounds(most, np.ones(self.size))


class Legs(NamedTuple):
    """The paths from switches to others, of which each pair has one."""

    crossed: Reals
    """float64[arcs, S, T]: whether the path of a pair crosses an arc."""
    end: NDArray[np.int64]
    """int64[S, T]: the switch where it ends; -1 where packets are lost."""

    @classmethod
    def of(cls, paths: HostPaths, arrive: NDArray[np.bool_], switches: int, arcs: int) -> Legs:
        """Sort paths, those of each of S switches one after the other.

        Args:
            paths: one for each pair.
            arrive: bool[m], the paths on which packets are not lost.
            switches: S.
            arcs: places for links, S·K.
        """
        crossed = np.zeros((arcs, len(arrive)))
        for arc in paths.arcs:
            pair = np.flatnonzero((arc >= 0) & arrive)
            crossed[arc[pair], pair] = 1
        end = np.where(arrive, paths.end, -1)
        return cls(crossed.reshape(arcs, switches, -1), end.reshape(switches, -1))


@dataclass(frozen=True, eq=False)
class OverDamagedLegs:
    """The same while elements are down: some packets give up their intermediate on the way."""

    arcs: Arcs
    """As in `Crossings`."""
    size: tuple[int, int]
    """As in `Crossings`."""
    place: NDArray[np.int64]
    """int64[S, K], the number of each arc among the places of `to`."""
    to: Reals
    """float64[places, S]: the share of what a switch sends that crosses an arc on the first leg."""
    over: Reals
    """float64[S, S]: the share of what a switch sends whose second leg begins at each."""
    ends: NDArray[np.int64]
    """int64[D], the destinations."""
    onward: Legs
    """The second legs, to the D destinations."""

    @classmethod
    def of(cls, build: Build, dead: NDArray[np.int64], times: int = 1) -> OverDamagedLegs:
        """Follow both legs of all packets.

        Where no route leads to an intermediate, a packet goes on as one of a host's, too: a
        controller takes away the routes to a switch that is down.

        Args:
            build: its tables and cables.
            dead: int64[n], the elements that are down, as `Program` numbers them.
            times: how often this is done, with other elements down: for machine code.
        """
        program = program_of(build)
        switches, links = program.far.shape
        walks = Walks.of(build)
        first, then = TabulatedHops.of(walks, program, dead, times).legs
        ends, places = intermediates(build), switches * links
        no_route = walks.all_egress[np.tile(ends, switches), first.end] == DROP
        legs = Legs.of(first, (first.hops >= 0) | no_route, switches, places)
        onward = Legs.of(then, then.hops >= 0, switches, places)
        over = np.zeros((switches, switches + 1))
        sources = np.repeat(np.arange(switches), len(ends))
        np.add.at(over, (sources, legs.end.ravel()), 1 / len(ends))
        return cls(
            arcs=np.argwhere(program.far >= 0),
            size=(switches, len(ends)),
            place=np.arange(places).reshape(switches, links),
            to=legs.crossed.sum(axis=2) / len(ends),
            over=over[:, :switches],
            ends=ends,
            onward=Legs(onward.crossed[:, :, ends], onward.end[:, ends]),
        )

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        number = self.place[tuple(arcs.T)]
        load = self.to[number][:, :, None] + self.over @ self.onward.crossed[number]
        load[:, self.ends, np.arange(self.size[1])] = 0
        return np.asarray(load, np.float64)

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals) -> LinkBounds:
        """As in `Crossings`."""
        most = np.zeros(len(arcs))
        step = max(1, CELLS // (self.size[0] * self.size[1]))
        for begin in range(0, len(arcs), step):
            number = self.place[tuple(arcs[begin : begin + step].T)]
            second = self.over @ self.onward.crossed[number]
            by_source, by_destination = second.max(axis=2) @ sends, second.max(axis=1) @ takes
            some = self.to[number] @ sends + np.minimum(by_source, by_destination)
            most[begin : begin + step] = some
        home = self.onward.end == self.ends
        return LinkBounds(most, self.over @ home)
