"""The rates of hosts and links: the hose model of a fabric (Duffield et al., 1999).

In the hose model any traffic is possible in which no host sends or takes more than the rate of its
link. The guaranteed throughput (`guarantee`, `failure_guarantees`) and the estimates by patterns
(`saturation`) take their rates from here. An *endpoint* is a switch to which the tables lead,
whether it has hosts or not. In shapes, H is the number of switches with hosts, D of endpoints, S of
all switches, and K of the links of a switch.
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
    endpoint_index: Numbers
    """int64[H], the index of each of these switches among the endpoints."""
    host_rate_sum: Reals
    """float64[H], the sum of the rates of each switch's hosts, which they can send and take."""
    link_rate: Reals
    """float64[S, K], the rate of each link, in each direction. Where no link is, it is 1 if every
    link counts 1, else 0."""
    hosts_per_switch: Numbers
    """int64[H], how many hosts each switch has."""

    @classmethod
    def of(cls, build: Build, hosts_per_node: int = 0) -> HostRates:
        """The rates of a build.

        Args:
            build: its ports, and their speeds.
            hosts_per_node: the number of hosts to assume at every endpoint, all links then having
                rate 1; 0: the hosts as built, or one at every endpoint of a fabric without hosts.
        """
        wiring, endpoints = build.wiring, np.flatnonzero(build.topology.endpoints)
        hosts_at_endpoint = np.count_nonzero(wiring.host_port > 0, axis=1)[endpoints]
        assumes_hosts = bool(hosts_per_node) or not hosts_at_endpoint.any()
        if assumes_hosts:
            hosts_at_endpoint = np.full(len(endpoints), hosts_per_node or 1)
        endpoint_index = np.flatnonzero(hosts_at_endpoint)
        switches = endpoints[endpoint_index]
        hosts_per_switch = hosts_at_endpoint[endpoint_index]
        # Every link counts 1, unless the speeds of all ports in use are known.
        link_rate, host_rate_sum = np.ones(wiring.far.shape), hosts_per_switch / 1.0
        if not assumes_hosts:
            link_speed, host_speed = _speeds(build, wiring.port), _speeds(build, wiring.host_port)
            if link_speed[wiring.far >= 0].all() and host_speed[wiring.host_port > 0].all():
                link_rate, host_rate_sum = link_speed, host_speed.sum(axis=1)[switches]
        return cls(switches, endpoint_index, host_rate_sum, link_rate, hosts_per_switch)

    @property
    def largest_host_rate_sum(self) -> float:
        """The most that all hosts of one switch can send; the unit of patterns of traffic."""
        return float(self.host_rate_sum.max())

    @cached_property
    def are_equal(self) -> bool:
        """Whether all switches have the same rate, and all links have the same rate."""
        host_rate_sum, link_rate = self.host_rate_sum, self.link_rate[self.link_rate > 0]
        return bool(
            (host_rate_sum == host_rate_sum[:1]).all() and (link_rate == link_rate[:1]).all()
        )

    @cached_property
    def whole_units(self) -> Numbers | None:
        """int64[H], the rate of each switch's hosts in whole units; None without such a unit.

        The unit is the largest rate that divides the rates of all switches. There is none where
        rates are no whole numbers.
        """
        whole_rates = np.rint(self.host_rate_sum).astype(np.int64)
        if not len(whole_rates) or (whole_rates <= 0).any():
            return None
        if (whole_rates != self.host_rate_sum).any():
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
        sends[self.switches] = self.host_rate_sum
        takes[self.endpoint_index] = self.host_rate_sum
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
            endpoint_index=self.endpoint_index[remain],
            host_rate_sum=self.host_rate_sum[remain],
            hosts_per_switch=self.hosts_per_switch[remain],
        )

    def between_hosts(self, load: Reals) -> Reals:
        """The loads between switches with hosts, float64[…, H, H].

        Args:
            load: float64[…, S, D], by switch that sends and endpoint that receives.
        """
        if (len(self.switches), len(self.endpoint_index)) == load.shape[-2:]:
            return load
        return load[..., self.switches[:, None], self.endpoint_index]


def port_without_speed(build: Build) -> str:
    """The first port in use whose speed is unknown, if the speed of another is known; else "".

    In such a fabric every link counts 1, whatever the known speeds are.
    """
    wiring = build.wiring
    ports_in_use = wiring.port, wiring.host_port  # 0 where there is no link or host
    speeds = [_speeds(build, port) for port in ports_in_use]
    if not any(speed.any() for speed in speeds):
        return ""
    for port, speed in zip(ports_in_use, speeds, strict=True):
        for switch, column in np.argwhere((port > 0) & (speed == 0))[:1].tolist():
            name = wiring.port_name(switch, int(port[switch, column]))
            return f"{name} of {wiring.names[switch]}"
    return ""


def _speeds(build: Build, port: NDArray[np.int32]) -> Reals:
    """The rate of all parallel cables of each port, float64[S, n], from ports int32[S, n].

    It is 0 where the speed is unknown, and where there is no port.
    """
    wiring = build.wiring
    most_ports = max(len(names) for names in wiring.port_names)
    # By node type and port number. Ports are numbered from 1; number 0 stands for no port.
    speed_of_port = np.zeros((len(wiring.port_names), most_ports + 1))
    for number, node_type in enumerate(build.hardware.types if build.hardware else ()):
        speeds_of_type = np.multiply(node_type.speed, node_type.parallel)
        speed_of_port[number, 1 : len(speeds_of_type) + 1] = speeds_of_type
    speeds: Reals = speed_of_port[wiring.node_type[:, None], port]
    return speeds
