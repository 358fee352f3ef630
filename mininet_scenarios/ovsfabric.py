"""A whole fabric in one Open vSwitch: a bridge a switch, patch ports for cables, no hosts.

Everything is made in one transaction. Each host port is cabled to a port of one more bridge, the
*collector*: what that sends out of port i + 1 enters the fabric as if host i had sent it, and what
the fabric delivers to host i arrives there.

Run it in a network namespace of its own (`mininet_scenarios.openvswitch`): each bridge brings one
network interface along, its local port, which stays down.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.build import Build
from mininet_scenarios.engine import Hosts
from mininet_scenarios.openvswitch import PrivateOvs
from mininet_scenarios.ovsdb import Bridge, Database, Port

COLLECTOR = "collector"
COLLECTOR_ID = 0x5046_FFFF_FFFF_FFFF
"""The collector's datapath id; no switch has it, and no controller is told of it."""


def bridge_name(vertex: int) -> str:
    """A bridge is named by its vertex: node names may be longer than the kernel takes."""
    return f"s{vertex}"


def port_interface(vertex: int, port: int) -> str:
    """The interface at a switch's port."""
    return f"s{vertex}-eth{port}"


class OvsFabric:
    """The switches of a build as bridges of a running `PrivateOvs`.

    hosts are those that take part: host i is behind port i + 1 of the collector.
    """

    def __init__(self, build: Build, ovs: PrivateOvs, hosts: Hosts | None = None) -> None:
        self.build, self.ovs = build, ovs
        self.hosts = Hosts.of(build) if hosts is None else hosts
        self.database = Database(ovs.socket)

    def start(self, controller: str = "") -> None:
        """Make all bridges and cables; returns when they are there.

        Args:
            controller: HOST:PORT of the controller that every switch connects to, "" for none.

        Raises:
            OpenVSwitchError: Open vSwitch refused them.
        """
        self.database.add_bridges([*self._switches(controller), self._collector()])

    def set_link(self, vertex: int, link: int, up: bool) -> None:
        """Pull the cable of a switch's k-th link out, or put it back: both ports go or come."""
        wiring = self.build.wiring
        far = int(wiring.far[vertex, link])
        ends = (vertex, int(wiring.port[vertex, link])), (far, int(wiring.far_port[vertex, link]))
        if up:
            ports = [_patch(*ends[0], port_interface(*ends[1]))]
            ports += [_patch(*ends[1], port_interface(*ends[0]))]
            self.database.add_ports(
                [(bridge_name(v), port) for (v, _), port in zip(ends, ports, strict=True)]
            )
        else:
            self.database.remove_ports((bridge_name(end[0]), port_interface(*end)) for end in ends)

    def _switches(self, controller: str) -> Iterator[Bridge]:
        wiring = self.build.wiring
        hosts: dict[int, list[Port]] = {}
        for i, (v, n) in enumerate(zip(self.hosts.switch, self.hosts.number, strict=True)):
            port = int(wiring.host_port[v, n])
            hosts.setdefault(int(v), []).append(_patch(int(v), port, _collecting(i)))
        for v in np.flatnonzero(self.build.topology.present).tolist():
            links = np.flatnonzero(wiring.far[v] >= 0)
            ends = (
                column[v, links].tolist() for column in (wiring.port, wiring.far, wiring.far_port)
            )
            cables = [
                _patch(v, port, port_interface(far, far_port))
                for port, far, far_port in zip(*ends, strict=True)
            ]
            ports = [*cables, *hosts.get(v, [])]
            yield Bridge(bridge_name(v), int(wiring.datapath_id[v]), ports, controller)

    def _collector(self) -> Bridge:
        wiring = self.build.wiring
        ports = [
            Port(_collecting(i), i + 1, port_interface(v, int(wiring.host_port[v, n])))
            for i, (v, n) in enumerate(
                zip(self.hosts.switch.tolist(), self.hosts.number.tolist(), strict=True)
            )
        ]
        return Bridge(COLLECTOR, COLLECTOR_ID, ports)


def _patch(vertex: int, port: int, peer: str) -> Port:
    return Port(port_interface(vertex, port), port, peer)


def _collecting(host: int) -> str:
    """The collector's port for a host."""
    return f"{COLLECTOR}-{host}"
