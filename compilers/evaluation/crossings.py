"""The share of each pair's packets that crosses each link: by tables, or over intermediates.

The guaranteed throughput (`guarantee`, `failure_guarantees`) computes the worst traffic of a link
from these shares. There is a class for each kind of forwarding, all with the methods of
`Crossings`: `OverTables`, `OverIntermediates` (Valiant's routing), and `OverDamagedLegs` (Valiant's
routing while *elements*, links or switches, are down).

An *arc* is one direction of a link: the switch that it leaves, and the number of the link there.
Its *arc number* is s·K + k for link k of switch s. The *destinations* are the switches with hosts.
The intermediates are the same switches, in the same order, so the load from a switch to itself is
set to 0 by their numbers.
"""

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
CELLS_AT_ONCE = 1 << 22
"""The most pairs of switches, times links, that are in memory together."""


class Crossings(Protocol):
    """The shares of pairs of switches on each link of a fabric.

    S is the number of switches, and D the number of destinations: switches with hosts.
    """

    @property
    def arcs(self) -> Arcs:
        """Each direction of each link."""

    @property
    def size(self) -> tuple[int, int]:
        """S and D."""

    def loads(self, arcs: Arcs) -> Reals:
        """float64[n, S, D]: the share of what each switch sends to each destination on each arc."""

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, low_enough: float = 0.0) -> LinkBounds:
        """A load that no traffic exceeds on each arc, and what arrives.

        Args:
            arcs: int64[n, 2], the arcs.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what the hosts of each destination can take.
            low_enough: a load; a bound below it need not be made tighter.
        """


@dataclass(frozen=True, eq=False)
class OverTables:
    """The shares on links of packets that follow egress classes, with or without marks."""

    link_crossings: LinkCrossings
    """The program of the switches, ready to be followed."""

    @property
    def arcs(self) -> Arcs:
        """As in `Crossings`."""
        return self.link_crossings.arcs

    @property
    def size(self) -> tuple[int, int]:
        """As in `Crossings`."""
        return self.link_crossings.size

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        return self.link_crossings.loads(arcs)

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, low_enough: float = 0.0) -> LinkBounds:
        """As in `Crossings`."""
        return LinkBounds.of(self.link_crossings, arcs, sends, takes, low_enough)


@dataclass(frozen=True, eq=False)
class OverIntermediates:
    """The shares on links of packets that go over an intermediate, with `balance: valiant`.

    The share of a pair on a link is the mean over all intermediates of the leg from the source,
    plus that of the leg to the destination. The first part depends on the source only, and the
    second part on the destination only, so the sum of these parts over all switches bounds the
    load. This class is for a fabric in which nothing is down, where all packets arrive.
    """

    build: Build
    """The tables and cables."""

    @cached_property
    def _legs(self) -> LinkCrossings:
        """The shares of one leg on links: minimal paths."""
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
        low_enough: float = 0.0,  # noqa: ARG002 (the bound costs no more)
    ) -> LinkBounds:
        """As in `Crossings`."""
        fluid, ends = Fluid.of(self.build), intermediates(self.build)
        legs = (sends[ends][:, None] + takes) / len(ends)
        np.fill_diagonal(legs, 0)
        source, destination = np.nonzero(legs)
        flows = Traffic.of(ends[source], ends[destination], legs[source, destination])
        load = fluid.loads(flows, fluid.minimal())
        upper = load[arcs[:, 0] * fluid.forwarding.arcs_a_switch + arcs[:, 1]]
        return LinkBounds(upper, np.ones(self.size))


class Legs(NamedTuple):
    """The path from each of S switches to each of T switches."""

    arcs: NDArray[np.int32]
    """int32[H, S·T], the arc numbers of each path; -1 after the last, and on paths that lose
    packets."""
    end: NDArray[np.int64]
    """int64[S, T]: the switch where each path ends; -1 where packets are lost."""

    @classmethod
    def of(cls, paths: HostPaths, arrive: NDArray[np.bool_], switches: int) -> Legs:
        """Make an array of paths, and mark the paths on which packets are lost.

        Args:
            paths: the path of each pair, all those of the first source first.
            arrive: bool[m], the paths on which packets are not lost.
            switches: S.
        """
        end = np.where(arrive, paths.end, -1)
        return cls(np.where(arrive, paths.arcs, -1), end.reshape(switches, -1))

    def towards(self, ends: NDArray[np.int64]) -> Legs:
        """The paths to some of the T switches.

        Args:
            ends: int64[n], their numbers among the T.
        """
        arcs = self.arcs.reshape(len(self.arcs), *self.end.shape)[..., ends]
        return Legs(arcs.reshape(len(arcs), -1), self.end[:, ends])

    def arc_loads(self, amount: Reals, number_count: int) -> Reals:
        """float64[S·K]: the load of each arc, by its number.

        Args:
            amount: float64[S·T], what each pair sends.
            number_count: S·K, how many arc numbers there are; some may stand for no link.
        """
        exists = self.arcs >= 0
        amounts = np.broadcast_to(amount, self.arcs.shape)[exists]
        return np.asarray(np.bincount(self.arcs[exists], amounts, number_count), np.float64)

    def crossing(self, arc_numbers: NDArray[np.int64], number_count: int) -> Reals:
        """float64[n, S, T]: 1 where the path of a pair crosses an arc, else 0.

        Args:
            arc_numbers: int64[n], the arcs.
            number_count: S·K, how many arc numbers there are; some may stand for no link.
        """
        # One entry more, which -1 in `arcs` reads.
        row_of_arc = np.full(number_count + 1, -1)
        row_of_arc[arc_numbers] = np.arange(len(arc_numbers))
        crossing = np.zeros((len(arc_numbers), self.end.size))
        for row_of_pair in row_of_arc[self.arcs]:
            pair = np.flatnonzero(row_of_pair >= 0)
            crossing[row_of_pair[pair], pair] = 1
        return crossing.reshape(-1, *self.end.shape)


@dataclass(frozen=True, eq=False)
class OverDamagedLegs:
    """The shares on links of packets that go over an intermediate while elements are down.

    Some packets give up their intermediate on the way: their second leg begins where they do so.
    """

    arcs: Arcs
    """As in `Crossings`."""
    size: tuple[int, int]
    """As in `Crossings`."""
    arc_number: NDArray[np.int64]
    """int64[S, K], the arc number of each link: s·K + k."""
    first: Legs
    """The first legs, to the D intermediates."""
    second_leg_share: Reals
    """float64[S, S], the share of what each switch sends whose second leg begins at each switch."""
    ends: NDArray[np.int64]
    """int64[D], the destinations."""
    second: Legs
    """The second legs, to the D destinations."""

    @classmethod
    def of(
        cls, build: Build, elements: NDArray[np.int64], failure_count: int = 1
    ) -> OverDamagedLegs:
        """Follow both legs of all packets.

        Where no route leads to the intermediate, a packet begins its second leg at once: a
        controller takes away the routes to a switch that is down.

        Args:
            build: its tables and cables.
            elements: int64[n], the elements that are down, numbered as in `Program`: links, then
                switches.
            failure_count: how many failures the caller computes; for many, the walk is compiled to
                machine code.
        """
        program = program_of(build)
        switches, most_links = program.far.shape
        walks = Walks.of(build)
        first_paths, second_paths = TabulatedHops.of(walks, program, elements, failure_count).legs
        ends = intermediates(build)  # which are the destinations, too
        no_route = walks.all_egress[np.tile(ends, switches), first_paths.end] == DROP
        first = Legs.of(first_paths, (first_paths.length >= 0) | no_route, switches)
        # The last column takes the packets that are lost, whose end is -1.
        second_leg_share = np.zeros((switches, switches + 1))
        sources = np.repeat(np.arange(switches), len(ends))
        np.add.at(second_leg_share, (sources, first.end.ravel()), 1 / len(ends))
        return cls(
            arcs=np.argwhere(program.far >= 0),
            size=(switches, len(ends)),
            arc_number=np.arange(program.far.size).reshape(switches, most_links),
            first=first,
            second_leg_share=second_leg_share[:, :switches],
            ends=ends,
            second=Legs.of(second_paths, second_paths.length >= 0, switches).towards(ends),
        )

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        numbers, number_count = self.arc_number[tuple(arcs.T)], self.arc_number.size
        first = self.first.crossing(numbers, number_count)
        second = self.second.crossing(numbers, number_count)
        load = first.sum(axis=2)[:, :, None] / len(self.ends) + self.second_leg_share @ second
        load[:, self.ends, np.arange(self.size[1])] = 0
        return np.asarray(load, np.float64)

    def bounds(
        self,
        arcs: Arcs,
        sends: Reals,
        takes: Reals,
        low_enough: float = 0.0,  # noqa: ARG002 (the bound costs no more)
    ) -> LinkBounds:
        """As in `Crossings`.

        The bound takes the second legs that begin at a switch at the largest share of any source.
        """
        number_count = self.arc_number.size
        first = np.repeat(sends / len(self.ends), len(self.ends))
        second = (self.second_leg_share[sends > 0].max(axis=0)[:, None] * takes).ravel()
        upper = self.first.arc_loads(first, number_count)
        upper += self.second.arc_loads(second, number_count)
        arrives = self.second.end == self.ends
        return LinkBounds(upper[self.arc_number[tuple(arcs.T)]], self.second_leg_share @ arrives)
