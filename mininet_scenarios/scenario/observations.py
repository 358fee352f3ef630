"""The observations that an engine returns: of packets, flows, rules and repairs.

`mininet_scenarios.verdict` compares them with predictions and expectations. Arrays of pairs of
hosts are [H, H], from each host to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import MOST_HOPS
from mininet_scenarios.scenario.check import Check


@dataclass(frozen=True, slots=True)
class Exercise:
    """The result of sending packets to every rule."""

    rules: int
    """The number of flows and group buckets of the program."""
    due: int
    """How many of the rules packets can reach, and must have reached."""
    missed: tuple[str, ...]
    """The due rules that no packet has reached, in words."""
    waiting: tuple[str, ...]
    """The rules that no packet reaches as long as every port is up, in words."""
    checks: tuple[Check, ...]
    """Checks of packets, compared whole where they arrive, and of the shares of ports (or of links
    in a fabric that marks packets).
    """

    @property
    def exercised(self) -> int:
        """How many rules packets have reached."""
        return self.rules - len(self.missed) - len(self.waiting)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: counts, and the rules that no packet has reached."""
        counts = {"all": self.rules, "due": self.due, "exercised": self.exercised}
        return counts | {"missed": list(self.missed), "waiting": list(self.waiting)}


Counts = NDArray[np.int64]
"""int64[H, H]: packets from each host to each other host."""


SILENT = -1
"""The number of hops if no packet arrived."""


class PacketExchange(NamedTuple):
    """The results of a round of packets between all H hosts of an engine, and of its S switches."""

    arrived: Counts
    """int64[H, H], how many packets arrived from host to host."""
    shortest: Counts
    """int64[H, H], the fewest links that a packet crossed, by its time to live; SILENT where no
    packet arrived.
    """
    longest: Counts
    """int64[H, H], the most links that a packet crossed; SILENT where no packet arrived."""
    loads: NDArray[np.int64]
    """int64[S, ports + 1], the packets that left each switch by each port meanwhile."""

    @classmethod
    def of(
        cls,
        pairs: NDArray[np.int64],
        hops: NDArray[np.int16],
        hosts: int,
        loads: NDArray[np.int64],
    ) -> PacketExchange:
        """The results of packets that were followed one by one.

        Args:
            pairs: int64[n, 2], the sending and the receiving host of each packet.
            hops: int16[n], the links that each packet has crossed; SILENT if it was lost.
            hosts: how many hosts there are.
            loads: int64[S, ports + 1], the packets that left each switch by each port.
        """
        has_arrived = hops != SILENT
        ends = tuple(pairs[has_arrived].T)
        arrived = np.zeros((hosts, hosts), np.int64)
        longest = np.full((hosts, hosts), SILENT, np.int64)
        shortest = np.full((hosts, hosts), np.iinfo(np.int64).max)
        np.add.at(arrived, ends, 1)
        np.maximum.at(longest, ends, hops[has_arrived])
        np.minimum.at(shortest, ends, hops[has_arrived])
        return cls(arrived, np.where(arrived > 0, shortest, SILENT), longest, loads)


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of a round of packets between H hosts that were named."""

    arrived: Counts
    """int64[H, H], how many packets arrived from host to host."""
    shortest: NDArray[np.int64]
    """int64[H, H], the fewest links that a packet crossed, by its time to live; SILENT where no
    packet arrived.
    """
    longest: NDArray[np.int64]
    """int64[H, H], the most links that a packet crossed; SILENT where no packet arrived."""
    loads: Mapping[str, NDArray[np.int64]]
    """For each switch int64[ports + 1], the packets that left it by each port meanwhile."""


@dataclass(frozen=True, slots=True)
class ControllerRepair:
    """The controller's repair of the last event, as the controller reports it."""

    seconds: float | None = None
    """Seconds from the detection of the failure until all switches hold the tables around it; None
    if nothing was repaired.
    """
    suppressed: frozenset[tuple[str, str]] = frozenset()
    """The links that flap, by their two switches with ascending names. Traffic is routed around
    such a link although it is up.
    """


@dataclass(frozen=True, slots=True)
class ProbePackets:
    """The packets of a probe, one row each, in the order of sending."""

    pair: NDArray[np.int64]
    """int64[n], the number of the pair that the packet belongs to."""
    sent: NDArray[np.float64]
    """float64[n], `Engine.now` when the packet left its host."""
    received: NDArray[np.float64]
    """float64[n], `Engine.now` when the packet reached the other host; NaN if it was lost."""
    hops: NDArray[np.int16]
    """int16[n], the links that the packet has crossed; SILENT if it was lost."""

    @classmethod
    def of(
        cls,
        pairs: int,
        sent: Sequence[float] | NDArray[np.float64],
        received: NDArray[np.float64],
        hops: Counts,
    ) -> ProbePackets:
        """The packets of a probe that sends over one pair after the other, again and again.

        Args:
            pairs: how many pairs there are.
            sent: when each packet left its host.
            received: when each packet arrived; NaN if it was lost.
            hops: the links that each packet has crossed; SILENT if it was lost.
        """
        pair = np.arange(len(sent)) % max(1, pairs)
        return cls(pair, np.array(sent), received, hops.astype(np.int16))


@dataclass(frozen=True, slots=True)
class Flows:
    """n flows between some hosts."""

    source: NDArray[np.int64]
    """int64[n], the number of the sending host."""
    destination: NDArray[np.int64]
    """int64[n], the number of the receiving host."""
    rate: NDArray[np.float64]
    """float64[n], the rate that each flow offers in Mb/s; the most that a TCP flow takes."""
    protocol: Literal["udp", "tcp"] = "udp"
    """The transport protocol."""
    parallel: int = 1
    """The connections of a flow."""


Rates = NDArray[np.float64]
"""Rates in Mb/s."""


class FlowRates(NamedTuple):
    """The rates of n flows, and meanwhile of the ports of S switches."""

    flows: Rates
    """float64[n], the rate at which each flow arrived."""
    ports: Rates
    """float64[S, ports + 1], the rate at which traffic left each switch by each port."""


class CarriedFlows(NamedTuple):
    """`FlowRates` with the switches by name."""

    flows: Rates
    """float64[n], the rate at which each flow arrived."""
    ports: Mapping[str, Rates]
    """By switch float64[ports + 1], the rate at which traffic left it by each port."""


def hops_of(time_to_live: int) -> int:
    """The links that a packet has crossed, by its TTL: each switch, also the last, takes 1."""
    return MOST_HOPS - 1 - time_to_live
