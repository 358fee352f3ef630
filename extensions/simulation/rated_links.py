"""The links and hosts of a plane with their rates, as other simulators take them.

Exports to other simulators call `RatedLinks.of` with a build, and write its `links` and `hosts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import by_port, hardware_of
from compilers.tables.build import Build
from inventory.problems import InputError

LINK_LATENCY = 1e-6
"""The latency of each link with the switch behind it, in seconds. Inventories have no latencies."""
DEFAULT_SPEED = 400
"""The rate of a link, in Gbit/s, if the inventory has no speed for its port."""
MOST_PAIRS = 1 << 24
"""The most pairs of switches of a fabric. The exports write a file with a line for each pair."""


class RatedLink(NamedTuple):
    """A link between two switches."""

    switch: int
    """The switch with the smaller number."""
    far_switch: int
    """The other switch."""
    rate: int
    """The rate in Gbit/s."""


class RatedHost(NamedTuple):
    """A host."""

    name: str
    """The name, as the inventory has it."""
    switch: int
    """Its switch."""
    rate: int
    """The rate of its link in Gbit/s."""
    address: str
    """Its IPv4 address."""


@dataclass(frozen=True, slots=True, eq=False)
class RatedLinks:
    """The E links and H hosts of a plane, with their rates in Gbit/s."""

    build: Build
    """The build of the plane."""
    ends: NDArray[np.int64]
    """int64[E, 2]: the two switches of each link, the smaller first, in the order of
    `Program.cable`."""
    rate: NDArray[np.int64]
    """int64[E]: the rate of each link."""
    host_switch: NDArray[np.int64]
    """int64[H]: the switch of each host."""
    host_number: NDArray[np.int64]
    """int64[H]: the number of each host at its switch."""
    host_rate: NDArray[np.int64]
    """int64[H]: the rate of each host's link."""
    names: tuple[str, ...]
    """The names of the hosts, as the inventory has them."""

    @classmethod
    def of(cls, build: Build) -> RatedLinks:
        """The links and hosts of a plane.

        Raises:
            InputError: it has no hosts, or too many switches for a file of all pairs.
        """
        wiring = build.wiring
        switches, per_node = wiring.host_port.shape
        if switches**2 > MOST_PAIRS:
            most = f"at most {int(MOST_PAIRS**0.5):,} switches, as files tell of each pair"
            raise InputError.of(most, f"{switches:,}")
        speed = by_port(hardware_of(build), wiring, "speed")
        switch, link = np.nonzero(wiring.far > np.arange(switches)[:, None])  # each link once
        host_switch, host_number = np.nonzero(wiring.host_port)
        if not len(host_switch):
            todo = "compile it with hosts_per_node: 1 or more"
            raise InputError.of("a fabric with hosts", "none", todo, key="hosts_per_node")

        def rates_of(switches: NDArray[Any], ports: NDArray[Any]) -> NDArray[np.int64]:
            """The rates of ports, each of one of the switches."""
            speeds = speed[wiring.node_type[switches], ports]
            return np.where(speeds > 0, speeds, DEFAULT_SPEED)

        return cls(
            build=build,
            ends=np.stack((switch, wiring.far[switch, link]), axis=1).astype(np.int64),
            rate=rates_of(switch, wiring.port[switch, link]),
            host_switch=host_switch,
            host_number=host_number,
            host_rate=rates_of(host_switch, wiring.host_port[host_switch, host_number]),
            names=tuple(
                wiring.host_names[number]
                for number in (host_switch * per_node + host_number).tolist()
            ),
        )

    def links(self) -> Iterator[RatedLink]:
        """Yield the links."""
        return map(RatedLink, *self.ends.T.tolist(), self.rate.tolist())

    def hosts(self) -> Iterator[RatedHost]:
        """Yield the hosts."""
        columns = self.host_switch.tolist(), self.host_number.tolist(), self.host_rate.tolist()
        for name, switch, slot, rate in zip(self.names, *columns, strict=True):
            yield RatedHost(name, switch, rate, str(self.build.addressing.host(switch, slot)))
