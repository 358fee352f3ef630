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

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, enough: float = 0.0) -> LinkBounds:
        """A load that no traffic exceeds on each arc, and what arrives.

        Args:
            arcs: these.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what they can take.
            enough: a bound that need not be lower.
        """


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

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, enough: float = 0.0) -> LinkBounds:
        """As in `Crossings`."""
        return LinkBounds.of(self.crossings, arcs, sends, takes, enough)


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

    def bounds(
        self,
        arcs: Arcs,
        sends: Reals,
        takes: Reals,
        enough: float = 0.0,  # noqa: ARG002 (the bound costs no more)
    ) -> LinkBounds:
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
    """The paths from S switches to T others, of which each pair has one."""

    arcs: NDArray[np.int32]
    """int32[H, S·T], the links of each path, s·K + k for link k of switch s; -1 after the last, and
    on paths where packets are lost."""
    end: NDArray[np.int64]
    """int64[S, T]: the switch where it ends; -1 where packets are lost."""

    @classmethod
    def of(cls, paths: HostPaths, arrive: NDArray[np.bool_], switches: int) -> Legs:
        """Sort paths, those of each of S switches one after the other.

        Args:
            paths: one for each pair.
            arrive: bool[m], the paths on which packets are not lost.
            switches: S.
        """
        end = np.where(arrive, paths.end, -1)
        return cls(np.where(arrive, paths.arcs, -1), end.reshape(switches, -1))

    def towards(self, ends: NDArray[np.int64]) -> Legs:
        """The paths to some of these switches."""
        arcs = self.arcs.reshape(len(self.arcs), *self.end.shape)[..., ends]
        return Legs(arcs.reshape(len(arcs), -1), self.end[:, ends])

    def sums(self, amount: Reals, places: int) -> Reals:
        """float64[places]: what crosses each link, of float64[S·T], what each pair sends."""
        crossing = self.arcs >= 0
        amounts = np.broadcast_to(amount, self.arcs.shape)[crossing]
        return np.asarray(np.bincount(self.arcs[crossing], amounts, places), np.float64)

    def crossed(self, numbers: NDArray[np.int64], places: int) -> Reals:
        """float64[n, S, T]: whether the path of a pair crosses some links, by their places."""
        slot = np.full(places + 1, -1)
        slot[numbers] = np.arange(len(numbers))
        crossed = np.zeros((len(numbers), self.end.size))
        for place in slot[self.arcs]:
            pair = np.flatnonzero(place >= 0)
            crossed[place[pair], pair] = 1
        return crossed.reshape(-1, *self.end.shape)


@dataclass(frozen=True, eq=False)
class OverDamagedLegs:
    """The same while elements are down: some packets give up their intermediate on the way."""

    arcs: Arcs
    """As in `Crossings`."""
    size: tuple[int, int]
    """As in `Crossings`."""
    place: NDArray[np.int64]
    """int64[S, K], the place of each arc, s·K + k."""
    to: Legs
    """The first legs, to the D intermediates."""
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
        ends = intermediates(build)
        no_route = walks.all_egress[np.tile(ends, switches), first.end] == DROP
        legs = Legs.of(first, (first.hops >= 0) | no_route, switches)
        over = np.zeros((switches, switches + 1))
        sources = np.repeat(np.arange(switches), len(ends))
        np.add.at(over, (sources, legs.end.ravel()), 1 / len(ends))
        return cls(
            arcs=np.argwhere(program.far >= 0),
            size=(switches, len(ends)),
            place=np.arange(program.far.size).reshape(switches, links),
            to=legs,
            over=over[:, :switches],
            ends=ends,
            onward=Legs.of(then, then.hops >= 0, switches).towards(ends),
        )

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        number = self.place[tuple(arcs.T)]
        to, onward = (legs.crossed(number, self.place.size) for legs in (self.to, self.onward))
        load = to.sum(axis=2)[:, :, None] / len(self.ends) + self.over @ onward
        load[:, self.ends, np.arange(self.size[1])] = 0
        return np.asarray(load, np.float64)

    def bounds(
        self,
        arcs: Arcs,
        sends: Reals,
        takes: Reals,
        enough: float = 0.0,  # noqa: ARG002 (the bound costs no more)
    ) -> LinkBounds:
        """As in `Crossings`: where a second leg begins, as much may begin as of any source."""
        first = np.repeat(sends / len(self.ends), len(self.ends))
        second = (self.over[sends > 0].max(axis=0)[:, None] * takes).ravel()
        most = self.to.sums(first, self.place.size) + self.onward.sums(second, self.place.size)
        home = self.onward.end == self.ends
        return LinkBounds(most[self.place[tuple(arcs.T)]], self.over @ home)
