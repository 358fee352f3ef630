"""The share of each pair's packets that crosses each link: by tables, or over intermediates.

The guaranteed throughput (`guarantee`, `failure_guarantees`) computes the worst traffic of a link
from these shares. There is a class for each kind of forwarding, all with the methods of
`Crossings`:

- `TableCrossings`: packets follow the egress classes of the tables;
- `IntermediateCrossings`: packets take two *legs*, minimal paths to a random intermediate and from
  there to the destination (Valiant's routing);
- `DamagedLegCrossings`: the same while *elements*, links or switches, are down.

An *arc* is one direction of a link: the switch that it leaves, and the number of the link there.
Its *arc number* is s·K + k for link k of switch s. The *destinations* are the switches with hosts.
The intermediates are the same switches, in the same order. In shapes, S is the number of switches,
K of the links of a switch, and D of the destinations.
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
SHARES_AT_ONCE = 1 << 22
"""The most shares that are in memory together: pairs of switches, times arcs."""


class Crossings(Protocol):
    """The share of the packets of each pair of switches that crosses each link of a fabric."""

    @property
    def arcs(self) -> Arcs:
        """Each direction of each link."""

    @property
    def size(self) -> tuple[int, int]:
        """S and D."""

    def shares(self, arcs: Arcs) -> Reals:
        """float64[n, S, D]: on each arc, the share of what switches send to each destination."""

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, low_enough: float = 0.0) -> LinkBounds:
        """A load that no traffic exceeds on each arc, and what arrives.

        Args:
            arcs: int64[n, 2], the arcs.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what the hosts of each destination can take.
            low_enough: a load; a bound below it need not be made tighter.
        """


@dataclass(frozen=True, eq=False)
class TableCrossings:
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

    def shares(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        return self.link_crossings.loads(arcs)

    def bounds(self, arcs: Arcs, sends: Reals, takes: Reals, low_enough: float = 0.0) -> LinkBounds:
        """As in `Crossings`."""
        return LinkBounds.of(self.link_crossings, arcs, sends, takes, low_enough)


@dataclass(frozen=True, eq=False)
class IntermediateCrossings:
    """The shares on links of packets that go over an intermediate, with `balance: valiant`.

    The share of a pair on a link is a sum of two: of all intermediates, the part to which the leg
    from the source crosses the link, and the part from which the leg to the destination does. The
    first depends on the source only, and the second on the destination only. So the load of a link
    is at most the sum of what all sources and all destinations add to it. This class is for a
    fabric in which nothing is down, where all packets arrive.
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

    def shares(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        ends = intermediates(self.build)
        legs = self._legs.loads(arcs)
        # float64[n, S], by source, and float64[n, D], by destination.
        first_leg, second_leg = legs.sum(axis=2) / len(ends), legs.sum(axis=1) / len(ends)
        shares = first_leg[:, :, None] + second_leg[:, None, :]
        _clear_within_switches(shares, ends)
        return np.asarray(shares, np.float64)

    def bounds(
        self,
        arcs: Arcs,
        sends: Reals,
        takes: Reals,
        low_enough: float = 0.0,  # noqa: ARG002 (the tight bound costs no more)
    ) -> LinkBounds:
        """As in `Crossings`: each leg at what its source sends, or its destination takes."""
        fluid, ends = Fluid.of(self.build), intermediates(self.build)
        legs = (sends[ends][:, None] + takes) / len(ends)
        np.fill_diagonal(legs, 0)
        source, destination = np.nonzero(legs)
        flows = Traffic.of(ends[source], ends[destination], legs[source, destination])
        load = fluid.loads(flows, fluid.minimal_shares())
        upper = load[arcs[:, 0] * fluid.forwarding.arcs_a_switch + arcs[:, 1]]
        return LinkBounds(upper, np.ones(self.size))


def _clear_within_switches(shares: Reals, ends: NDArray[np.int64]) -> None:
    """Set the shares of packets within a switch to 0, as they cross no link.

    Args:
        shares: float64[n, S, D], which is changed.
        ends: int64[D], the switch of each destination.
    """
    shares[:, ends, np.arange(len(ends))] = 0


LOST = -1
"""In place of the switch where a path ends: its packets are lost."""
NO_ARC = -1
"""In place of an arc number: the path has ended before, or loses packets."""


class Legs(NamedTuple):
    """The path from each of S switches to each of T switches, as arcs in at most H hops."""

    arcs: NDArray[np.int32]
    """int32[H, S·T], the arc numbers of each path, hop by hop, then NO_ARC."""
    end: NDArray[np.int64]
    """int64[S, T]: the switch where each path ends, or LOST."""

    @classmethod
    def of(cls, paths: HostPaths, arrive: NDArray[np.bool_], switches: int) -> Legs:
        """The legs of pairs, without the arcs of paths on which packets are lost.

        Args:
            paths: the path of each pair, all those of the first source first.
            arrive: bool[S·T], the paths on which packets are not lost.
            switches: S.
        """
        end = np.where(arrive, paths.last_switch, LOST)
        return cls(np.where(arrive, paths.arcs, NO_ARC), end.reshape(switches, -1))

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
        exists = self.arcs != NO_ARC
        amounts = np.broadcast_to(amount, self.arcs.shape)[exists]
        return np.asarray(np.bincount(self.arcs[exists], amounts, number_count), np.float64)

    def crosses(self, arc_numbers: NDArray[np.int64], number_count: int) -> Reals:
        """float64[n, S, T]: 1 where the path of a pair crosses an arc, else 0.

        Args:
            arc_numbers: int64[n], the arcs.
            number_count: S·K, how many arc numbers there are; some may stand for no link.
        """
        # The row of each arc in the result, -1 for none. NO_ARC reads the last entry.
        row_of_arc = np.full(number_count + 1, -1)
        row_of_arc[arc_numbers] = np.arange(len(arc_numbers))
        crosses = np.zeros((len(arc_numbers), self.end.size))
        for row_of_pair in row_of_arc[self.arcs]:  # int64[S·T], hop by hop
            pair = np.flatnonzero(row_of_pair >= 0)
            crosses[row_of_pair[pair], pair] = 1
        return crosses.reshape(-1, *self.end.shape)


@dataclass(frozen=True, eq=False)
class DamagedLegCrossings:
    """The shares on links of packets that go over an intermediate while elements are down.

    Some packets give up their intermediate on the way: their second leg begins where they do so.
    The share of a pair s, d on a link is the part of the D intermediates to which the first leg
    from s crosses the link, plus a sum over switches v: the share of what s sends whose second leg
    begins at v (`second_leg_share`), if the second leg from v to d crosses the link.
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
    ) -> DamagedLegCrossings:
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
        no_route = walks.all_egress[np.tile(ends, switches), first_paths.last_switch] == DROP
        first = Legs.of(first_paths, (first_paths.links_or_fault >= 0) | no_route, switches)
        # The end of packets that are lost is LOST, -1: the last column, which is left out below.
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
            second=Legs.of(second_paths, second_paths.links_or_fault >= 0, switches).towards(ends),
        )

    def shares(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        numbers, number_count = self.arc_number[tuple(arcs.T)], self.arc_number.size
        first_crosses = self.first.crosses(numbers, number_count)
        second_crosses = self.second.crosses(numbers, number_count)
        first_leg = first_crosses.sum(axis=2)[:, :, None] / len(self.ends)
        shares = first_leg + self.second_leg_share @ second_crosses
        _clear_within_switches(shares, self.ends)
        return np.asarray(shares, np.float64)

    def bounds(
        self,
        arcs: Arcs,
        sends: Reals,
        takes: Reals,
        low_enough: float = 0.0,  # noqa: ARG002 (the tight bound costs no more)
    ) -> LinkBounds:
        """As in `Crossings`.

        What a destination takes from a switch where second legs begin is bounded by the largest
        `second_leg_share` that any source has at this switch.
        """
        number_count = self.arc_number.size
        # float64[S·D], what first legs and second legs carry at most.
        first_amount = np.repeat(sends / len(self.ends), len(self.ends))
        largest_share = self.second_leg_share[sends > 0].max(axis=0)
        second_amount = (largest_share[:, None] * takes).ravel()
        upper = self.first.arc_loads(first_amount, number_count)
        upper += self.second.arc_loads(second_amount, number_count)
        arrives = self.second.end == self.ends
        return LinkBounds(upper[self.arc_number[tuple(arcs.T)]], self.second_leg_share @ arrives)
