"""A whole fabric in one Open vSwitch: one bridge per switch, all made in one transaction.

The Open vSwitch engines start an `OvsFabric`, and apply each outage of a scenario to it. Cables are
patch ports. Host ports are cabled to additional bridges, the *collectors*: a frame that a collector
sends out of a port enters the fabric as if that host had sent it, and a frame that the fabric
delivers to the host arrives at the collector.

Run it in a network namespace of its own (`openvswitch`): each bridge has a network interface, its
local port, which stays down.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import ceil

import numpy as np

from compilers.forwarding.program import program_of
from compilers.tables.build import Build
from mininet_scenarios.ovs.configuration_database import BridgeRow, Database, Port
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.outage import Outage

HOSTS_PER_COLLECTOR = 16
"""Host i is at collector i // 16, port i % 16 + 1."""
COLLECTOR_ID = 0x5046_0000_0000_0000
"""The first collector's datapath id; no controller knows it."""

SwitchPort = tuple[int, int]
"""A switch, and the number of one of its ports."""


def bridge_name(vertex: int) -> str:
    """The bridge of a switch, named by its vertex: the kernel does not take long node names."""
    return f"s{vertex}"


def port_interface(vertex: int, port: int) -> str:
    """The interface at a switch's port."""
    return f"s{vertex}-eth{port}"


def collector_name(number: int) -> str:
    """The bridge of a collector."""
    return f"collector{number}"


class OvsFabric:
    """The switches of a build as bridges of a running `PrivateOvs`."""

    def __init__(self, build: Build, ovs: PrivateOvs, hosts: HostSample | None = None) -> None:
        self.build, self.ovs, self.controller = build, ovs, ""
        self.hosts = HostSample.of(build) if hosts is None else hosts
        """The hosts that take part."""
        self.database = Database(ovs.socket)
        self.program = program_of(build)
        self.outage = Outage()
        """The switches and links that are out of order now."""
        self.rows: list[BridgeRow] = []
        """The bridges that Open vSwitch has."""
        port = build.wiring.host_port[self.hosts.switch, self.hosts.number]
        self.host_ends = list(zip(self.hosts.switch.tolist(), port.tolist(), strict=True))
        """Each host's switch and port."""

    def start(self, controller: str = "") -> None:
        """Make all bridges and cables; returns when they are there.

        Args:
            controller: HOST:PORT of the controller that every switch connects to, "" for none.

        Raises:
            OpenVSwitchError: Open vSwitch refused them.
        """
        self.controller = controller
        self.set_bridges()
        for collector in self._collectors():
            self.ovs.ofctl("add-flow", collector.name, "actions=controller:65535")

    def apply_outage(self, outage: Outage) -> None:
        """Make the fabric have just this outage: remove and add bridges, and ports of cables.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        self.outage = outage
        self.set_bridges()

    def set_bridges(self, without: Container[SwitchPort] = frozenset()) -> None:
        """Give Open vSwitch the bridges of switches with power, with the ports whose cables work.

        Args:
            without: ports to leave out, although the far ends of their links stay.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        ports: dict[int, list[Port]] = {vertex: [] for vertex in self.powered()}
        for vertex, port in self._ports():
            if vertex in ports and (vertex, port.number) not in without:
                ports[vertex].append(port)
        datapath_id = self.build.wiring.datapath_id.tolist()
        bridges = [
            BridgeRow(bridge_name(vertex), datapath_id[vertex], of_switch, self.controller)
            for vertex, of_switch in ports.items()
        ]
        rows = [*bridges, *self._collectors()]
        self.database.change(self.rows, rows, has_all_peers=not without)
        self.rows = rows

    def settle(self) -> None:
        """Wait until packets follow all changes of cables and of tables.

        Raises:
            OpenVSwitchError: Open vSwitch took longer than `DAEMON_PATIENCE`.
        """
        self.ovs.refresh_cached_flows()

    def powered(self) -> list[int]:
        """The switches of the build that have power."""
        up = self.build.topology.present & self.outage.up(self.build.wiring.names)
        powered: list[int] = np.flatnonzero(up).tolist()
        return powered

    def _ports(self) -> Iterator[tuple[int, Port]]:
        """Each switch with a port: the ports whose cables work, then the ports to hosts."""
        port = self.build.wiring.port
        cabling = self.outage.cabling(self.program, self.build.wiring.names)
        for vertex, link in np.argwhere(cabling.works).tolist():
            number = int(port[vertex, link])
            far = int(cabling.far[vertex, link])
            far_port = int(port[far, cabling.far_link[vertex, link]])
            peer = port_interface(far, far_port)
            yield vertex, Port(port_interface(vertex, number), number, peer)
        for host, (vertex, number) in enumerate(self.host_ends):
            yield vertex, Port(port_interface(vertex, number), number, _collector_port(host))

    def _collectors(self) -> list[BridgeRow]:
        """The bridges of collectors, with the ports of hosts whose switches have power."""
        powered = set(self.powered())
        count = ceil(len(self.host_ends) / HOSTS_PER_COLLECTOR)
        ports: list[list[Port]] = [[] for _ in range(count)]
        for host, (vertex, number) in enumerate(self.host_ends):
            if vertex in powered:
                peer = port_interface(vertex, number)
                port = Port(_collector_port(host), host % HOSTS_PER_COLLECTOR + 1, peer)
                ports[host // HOSTS_PER_COLLECTOR].append(port)
        return [
            BridgeRow(collector_name(number), COLLECTOR_ID + number, of_collector)
            for number, of_collector in enumerate(ports)
        ]


def _collector_port(host: int) -> str:
    """The name of the collector's port that is cabled to a host's port."""
    return f"{collector_name(host // HOSTS_PER_COLLECTOR)}-{host % HOSTS_PER_COLLECTOR}"
