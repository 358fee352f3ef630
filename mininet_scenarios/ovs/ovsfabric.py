"""A whole fabric in one Open vSwitch: one bridge per switch, patch ports for cables, no hosts.

Everything is made in one transaction, and so is what an outage takes away and gives back. Host
ports are cabled to our own bridges, the *collectors*: what one sends out of a port enters the
fabric as if that host had sent it, and what the fabric delivers to the host arrives there.

Run it in a network namespace of its own (`openvswitch`): each bridge brings one
network interface along, its local port, which stays down.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.program import program_of
from compilers.tables.build import Build
from mininet_scenarios.ovs.openvswitch import BridgeRow, Database, Port, PrivateOvs
from mininet_scenarios.scenario.engine import HostSample, Outage

COLLECTED = 16
"""Hosts a collector: host i is at collector i // 16, behind port i % 16 + 1."""
COLLECTOR_ID = 0x5046_0000_0000_0000
"""The first collector's datapath id; no controller knows it."""


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
        self.whole = program_of(build)
        self.outage = Outage()

    def start(self, controller: str = "") -> None:
        """Make all bridges and cables; returns when they are there.

        Args:
            controller: HOST:PORT of the controller that every switch connects to, "" for none.

        Raises:
            OpenVSwitchError: Open vSwitch refused them.
        """
        self.controller = controller
        self.database.add_bridges(self._bridges(self.outage))
        for number in range(-(-len(self.hosts) // COLLECTED)):
            self.ovs.ofctl("add-flow", collector_name(number), "actions=controller:65535")

    def suffer(self, outage: Outage) -> None:
        """Make this, and nothing else, be wrong: ports go and come at both ends, bridges too.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        self.database.change(self._bridges(self.outage), self._bridges(outage))
        self.outage = outage

    def port(self, switch: int, number: int) -> Port:
        """The row of a switch's port to another, with nothing wrong."""
        wiring = self.build.wiring
        link = int(np.flatnonzero(wiring.port[switch] == number)[0])
        far = int(wiring.far[switch, link]), int(wiring.far_port[switch, link])
        return Port(port_interface(switch, number), number, port_interface(*far))

    def _bridges(self, outage: Outage) -> list[BridgeRow]:
        return [*self._switches(outage), *self._collectors(set(self.powered(outage)))]

    def _switches(self, outage: Outage) -> list[BridgeRow]:
        """The bridges that have power, with the ports whose cables work."""
        wiring = self.build.wiring
        ends, links, works = outage.cabling(self.whole, wiring.names)
        switch, link = np.nonzero(works)
        far, far_port = ends[works], wiring.port[ends[works], links[works]]
        port = wiring.port[switch, link]
        ports: dict[int, list[Port]] = {v: [] for v in self.powered(outage)}
        for v, p, u, n in zip(*(x.tolist() for x in (switch, port, far, far_port)), strict=True):
            ports[v].append(Port(port_interface(v, p), p, port_interface(u, n)))
        for host, (v, p) in enumerate(self._host_ports()):
            if v in ports:
                ports[v].append(Port(port_interface(v, p), p, _collecting(host)))
        ids = wiring.datapath_id.tolist()
        return [BridgeRow(bridge_name(v), ids[v], at, self.controller) for v, at in ports.items()]

    def powered(self, outage: Outage) -> list[int]:
        """The switches of the build that have power under an outage."""
        up = self.build.topology.present & outage.up(self.build.wiring.names)
        powered: list[int] = np.flatnonzero(up).tolist()
        return powered

    def _host_ports(self) -> list[tuple[int, int]]:
        """Each host's switch and port."""
        hosts = self.hosts
        port = self.build.wiring.host_port[hosts.switch, hosts.number]
        return list(zip(hosts.switch.tolist(), port.tolist(), strict=True))

    def _collectors(self, powered: set[int]) -> list[BridgeRow]:
        """All collectors, with the ports of hosts whose switches have power."""
        at = self._host_ports()
        return [
            BridgeRow(
                collector_name(first // COLLECTED),
                COLLECTOR_ID + first // COLLECTED,
                [
                    Port(_collecting(host), host % COLLECTED + 1, port_interface(*at[host]))
                    for host in range(first, min(first + COLLECTED, len(at)))
                    if at[host][0] in powered
                ],
            )
            for first in range(0, len(at), COLLECTED)
        ]


def _collecting(host: int) -> str:
    """The collector's port for a host."""
    return f"{collector_name(host // COLLECTED)}-{host % COLLECTED}"
