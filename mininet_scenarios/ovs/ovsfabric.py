"""A whole fabric in one Open vSwitch: one bridge per switch, all made in one transaction.

Cables are patch ports. Host ports are cabled to our own bridges, the *collectors*: what one sends
out of a port enters the fabric as if that host had sent it, and what the fabric delivers to the
host arrives there.

Run it in a network namespace of its own (`openvswitch`): each bridge brings one
network interface along, its local port, which stays down.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import numpy as np

from compilers.forwarding.program import program_of
from compilers.tables.build import Build
from mininet_scenarios.ovs.openvswitch import BridgeRow, Database, Port, PrivateOvs
from mininet_scenarios.scenario.engine import HostSample, Outage

COLLECTED = 16
"""Hosts a collector: host i is at collector i // 16, behind port i % 16 + 1."""
COLLECTOR_ID = 0x5046_0000_0000_0000
"""The first collector's datapath id; no controller knows it."""

SwitchPort = tuple[int, int]
"""A switch, and the number of one of its ports."""


def bridge_name(vertex: int) -> str:
    """A bridge is named by its vertex: node names may be longer than the kernel takes."""
    return f"s{vertex}"


def port_interface(vertex: int, port: int) -> str:
    """The interface at a switch's port."""
    return f"s{vertex}-eth{port}"


def collector_name(number: int) -> str:
    """The bridge of a collector."""
    return f"collector{number}"


class OvsFabric:
    """The switches of a build as bridges of a running `PrivateOvs`; hosts are those that take part.

    outage is what is wrong with it at the moment.
    """

    def __init__(self, build: Build, ovs: PrivateOvs, hosts: HostSample | None = None) -> None:
        self.build, self.ovs, self.controller = build, ovs, ""
        self.hosts = HostSample.of(build) if hosts is None else hosts
        self.database = Database(ovs.socket)
        self.program = program_of(build)
        self.outage = Outage()
        self.held: list[BridgeRow] = []
        at = self.hosts.switch, self.hosts.number
        port = build.wiring.host_port[at]
        self.host_ends = list(zip(at[0].tolist(), port.tolist(), strict=True))
        """Each host's switch and port."""

    def start(self, controller: str = "") -> None:
        """Make all bridges and cables; returns when they are there.

        Args:
            controller: HOST:PORT of the controller that every switch connects to, "" for none.

        Raises:
            OpenVSwitchError: Open vSwitch refused them.
        """
        self.controller = controller
        self.hold()
        for collector in self._collectors():
            self.ovs.ofctl("add-flow", collector.name, "actions=controller:65535")

    def suffer(self, outage: Outage) -> None:
        """Make this, and nothing else, be wrong: ports go and come at both ends, bridges too.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        self.outage = outage
        self.hold()

    def hold(self, away: Container[SwitchPort] = frozenset()) -> None:
        """Have the bridges that have power, but for ports that are `away`, at one end alone.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        ports: dict[int, list[Port]] = {v: [] for v in self.powered()}
        for v, port in self._ports():
            if v in ports and (v, port.number) not in away:
                ports[v].append(port)
        ids, to = self.build.wiring.datapath_id.tolist(), self.controller
        bridges = [BridgeRow(bridge_name(v), ids[v], at, to) for v, at in ports.items()]
        rows = [*bridges, *self._collectors()]
        self.database.change(self.held, rows, whole=not away)
        self.held = rows

    def powered(self) -> list[int]:
        """The switches of the build that have power."""
        up = self.build.topology.present & self.outage.up(self.build.wiring.names)
        powered: list[int] = np.flatnonzero(up).tolist()
        return powered

    def _ports(self) -> Iterator[tuple[int, Port]]:
        """Switches' ports whose cables work, and those of hosts."""
        port = self.build.wiring.port
        cabling = self.outage.cabling(self.program, self.build.wiring.names)
        near, far = np.nonzero(cabling.works)[0], cabling.far[cabling.works]
        near_port, far_port = port[cabling.works], port[far, cabling.far_link[cabling.works]]
        columns = near.tolist(), near_port.tolist(), far.tolist(), far_port.tolist()
        for v, p, far_v, far_p in zip(*columns, strict=True):
            yield v, Port(port_interface(v, p), p, port_interface(far_v, far_p))
        for host, (v, p) in enumerate(self.host_ends):
            yield v, Port(port_interface(v, p), p, _collecting(host))

    def _collectors(self) -> list[BridgeRow]:
        """The bridges of collectors, with the ports of hosts whose switches have power."""
        powered, count = set(self.powered()), len(self.host_ends)
        return [
            BridgeRow(
                collector_name(first // COLLECTED),
                COLLECTOR_ID + first // COLLECTED,
                [
                    Port(_collecting(host), host % COLLECTED + 1, port_interface(*at))
                    for host, at in enumerate(self.host_ends[first : first + COLLECTED], first)
                    if at[0] in powered
                ],
            )
            for first in range(0, count, COLLECTED)
        ]


def _collecting(host: int) -> str:
    """The collector's port for a host."""
    return f"{collector_name(host // COLLECTED)}-{host % COLLECTED}"
