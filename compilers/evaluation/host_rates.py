"""The rates of hosts and links: the hose model of a fabric (Duffield et al., 1999).

In the hose model any traffic is possible in which no host sends or takes more than the rate of its
link. The guaranteed throughput (`guarantee`, `failure_guarantees`) and the estimates by patterns
(`saturation`) take their rates from here. An *endpoint* is a switch to which the tables lead,
whether it has hosts or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HostRates:
    """The hose model of a fabric: no host sends or takes more than its link's rate.

    Rates are in Gb/s where the inventory says the speed of every port that is in use; else every
    link counts 1.
    """

    switches: Numbers
    """int64[H], the switches with hosts, ascending."""
    columns: Numbers
    """int64[H], the index of each of these switches among the endpoints. An endpoint may have no
    hosts."""
    hosts: Reals
    """float64[H], the sum of the rates of each switch's hosts, which they can send and take."""
    links: Reals
    """float64[S, K], the rate of each link, in each direction; any value where no link is."""
    counts: Numbers
    """int64[H], how many hosts each switch has."""

    @classmethod
    def of(cls, build: Build, hosts_per_node: int = 0) -> HostRates:
        """The rates of a build.

        Args:
            build: its ports, and their speeds.
            hosts_per_node: hosts of every endpoint, with a link of rate 1 as every link has; 0: the
                hosts that are there, or one at every endpoint of a fabric without hosts.
        """
        wiring, endpoints = build.wiring, np.flatnonzero(build.topology.endpoints)
        hosts_at = np.count_nonzero(wiring.host_port > 0, axis=1)[endpoints]
        equal_links = np.ones(wiring.far.shape)
        if hosts_per_node or not hosts_at.any():
            counts = np.full(len(endpoints), hosts_per_node or 1)
            return cls(endpoints, np.arange(len(endpoints)), counts / 1.0, equal_links, counts)
        columns = np.flatnonzero(hosts_at)
        switches, counts = endpoints[columns], hosts_at[columns]
        links, speeds = (_speeds(build, port) for port in (wiring.port, wiring.host_port))
        if not (links[wiring.far >= 0].all() and speeds[wiring.host_port > 0].all()):
            return cls(switches, columns, counts / 1.0, equal_links, counts)
        return cls(switches, columns, speeds.sum(axis=1)[switches], links, counts)

    @property
    def unit(self) -> float:
        """The most that all hosts of one switch can send."""
        return float(self.hosts.max())

    @cached_property
    def are_equal(self) -> bool:
        """Whether all switches have the same rate, and all links have the same rate."""
        links = self.links[self.links > 0]
        return bool((self.hosts == self.hosts[:1]).all() and (links == links[:1]).all())

    @cached_property
    def whole_units(self) -> Numbers | None:
        """int64[H], the rate of each switch's hosts in whole units; None without such a unit.

        The unit is the largest rate that divides the rates of all switches. There is none where
        rates are no whole numbers.
        """
        whole_rates = np.rint(self.hosts).astype(np.int64)
        if not len(whole_rates) or (whole_rates != self.hosts).any() or (whole_rates <= 0).any():
            return None
        return np.asarray(whole_rates // np.gcd.reduce(whole_rates))

    def by_switch(self, switches: int, destinations: int) -> tuple[Reals, Reals]:
        """The rates of hosts by switch, for sending, and by endpoint, for receiving.

        Args:
            switches: S.
            destinations: D, the number of endpoints.

        Returns:
            float64[S], what the hosts of each switch can send; and float64[D], what the hosts of
            each endpoint can take.
        """
        sends, takes = np.zeros(switches), np.zeros(destinations)
        sends[self.switches] = takes[self.columns] = self.hosts
        return sends, takes

    def without(self, switches: Numbers) -> HostRates:
        """The rates without the hosts of some switches.

        Args:
            switches: int64[n].
        """
        remain = ~np.isin(self.switches, switches)
        return replace(
            self,
            switches=self.switches[remain],
            columns=self.columns[remain],
            hosts=self.hosts[remain],
            counts=self.counts[remain],
        )

    def pairs(self, load: Reals) -> Reals:
        """The rows and columns of switches with hosts, float64[…, H, H], of float64[…, S, D]."""
        if (len(self.switches), len(self.columns)) == load.shape[-2:]:
            return load
        return load[..., self.switches[:, None], self.columns]


def port_without_speed(build: Build) -> str:
    """The first port in use whose speed is unknown, if the speed of another is known; else "".

    In such a fabric every link counts 1, whatever the known speeds are.
    """
    wiring = build.wiring
    used = ((wiring.port, wiring.far >= 0), (wiring.host_port, wiring.host_port > 0))
    speeds = [(port, in_use, _speeds(build, port)) for port, in_use in used]
    if not any(speed[in_use].any() for _, in_use, speed in speeds):
        return ""
    for port, in_use, speed in speeds:
        for switch, place in np.argwhere(in_use & (speed == 0))[:1].tolist():
            name = wiring.port_name(switch, int(port[switch, place]))
            return f"{name} of {wiring.names[switch]}"
    return ""


def _speeds(build: Build, port: NDArray[np.int32]) -> Reals:
    """The rate of all parallel cables of each port, float64[S, n], from ports int32[S, n].

    It is 0 where the speed is unknown, and where there is no port.
    """
    wiring = build.wiring
    widest = max(len(names) for names in wiring.port_names)
    table = np.zeros((len(wiring.port_names), widest + 1))
    for number, facts in enumerate(build.hardware.types if build.hardware else ()):
        table[number, 1 : len(facts.speed) + 1] = np.multiply(facts.speed, facts.parallel)
    speeds: Reals = table[wiring.node_type[:, None], port]
    return speeds
