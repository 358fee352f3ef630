"""A build as a Mininet network: real Mininet hosts, Open vSwitch bridges, veth links.

`mininet_child` makes a `FabricNetwork` and starts it. A `VethFabric` joins the bridges. Mininet
runs a shell command for each interface. Here one `ip -batch` makes all interfaces, and one database
transaction makes all bridges and ports. The network must run in namespaces of its own; the kernel
clears up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, Switch
from mininet.util import quietRun

from compilers.tables.build import Build
from compilers.wiring.mac_addresses import format_mac
from mininet_scenarios.engines.inner_child import DISABLE_IPV6, RUN, HostAddresses
from mininet_scenarios.machine.netns import batch, widen_send_buffers
from mininet_scenarios.ovs.configuration_database import BridgeRow, Port
from mininet_scenarios.ovs.controller_process import CONTROLLER_ADDRESS
from mininet_scenarios.ovs.counters import live_ports
from mininet_scenarios.ovs.openvswitch import (
    DAEMON_PATIENCE,
    DAEMON_POLL,
    OpenVSwitchError,
    PrivateOvs,
)
from mininet_scenarios.ovs.ovsfabric import OvsFabric, SwitchPort, bridge_name, port_interface
from mininet_scenarios.scenario.engine import EngineError, HostSample, Progress
from mininet_scenarios.scenario.outage import Outage

QUEUE = 30
"""Packets that wait at a link of limited rate; more are dropped."""
WAITING_PACKET = 4096
"""The most bytes that the kernel counts for a packet that waits."""
HOSTS_AT_ONCE = 8
"""Hosts whose shells are started at the same time."""


class FabricBridge(Switch):  # type: ignore[misc]
    """An Open vSwitch bridge in the userspace datapath.

    Mininet starts a shell for each node, in a namespace for hosts. A bridge is in the namespace of
    the process that runs Mininet, so this process acts for it and it needs no shell.
    """

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: ARG002
        """No shell: the process that runs Mininet acts for the switch."""
        self.shell, self.waiting, self.pid = None, False, os.getpid()

    def cmd(self, *args: Any, **_: Any) -> str:
        """The output of a command, without a shell."""
        return str(quietRun(list(map(str, args)) if len(args) > 1 else args[0]))

    def dpctl(self, command: str, *args: str) -> str:
        """The output of `ovs-ofctl` for this bridge."""
        return self.cmd("ovs-ofctl", "-O", "OpenFlow13", command, self.name, *args)


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that `ip -batch` brings up and configures."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Do nothing: the batch has configured the interface."""
        return {}


class VethCable(Link):  # type: ignore[misc]
    """A veth pair that `ip -batch` makes."""

    @classmethod
    def makeIntfPair(cls, *_: Any, **__: Any) -> None:
        """Do nothing: the batch makes the pair."""


class FabricHost(Host):  # type: ignore[misc]
    """A Mininet host whose addresses are set in one command."""

    def config(self, *, setup: str, **_: Any) -> dict[str, Any]:
        """Let its shell run the setup's command, and not wait: all hosts do so at once."""
        self.sendCmd(setup)
        return {}

    def wait_until_configured(self) -> None:
        """Wait until the setup's command has ended.

        Raises:
            EngineError: it failed.
        """
        if answer := self.waitOutput().strip():
            raise EngineError(f"host {self.name}: {answer}")


class FabricNetwork(HostAddresses):
    """The network of a build with the hosts that take part; `hosts[i]` is the i-th of them."""

    def __init__(self, build: Build, hosts: HostSample, ovs: PrivateOvs) -> None:
        super().__init__(build, hosts)
        self.fabric = VethFabric(build, ovs, hosts)
        setLogLevel("error")
        Mininet.inited = True  # init() would raise kernel limits of the whole machine
        self.net = Mininet(controller=None, link=VethCable, intf=FabricInterface, host=FabricHost)
        self.hosts: list[Node] = []

    def add_hosts(self, progress: Progress) -> None:
        """Start the hosts' shells, several at a time; Open vSwitch need not run yet."""

        def add(host: int) -> Node:
            return self.net.addHost(f"h{host}", setup=self._command(host))

        with ThreadPoolExecutor(HOSTS_AT_ONCE) as several:
            for host in several.map(add, range(len(self.sample))):
                self.hosts.append(host)
                progress(len(self.hosts), len(self.sample) + 1)

    def start(self) -> None:
        """Bring up the bridges and links; the switches have no programs yet.

        Raises:
            EngineError: the kernel refused an interface.
            OpenVSwitchError: Open vSwitch refused a bridge.
        """
        wiring = self.build.wiring
        for vertex in np.flatnonzero(self.build.topology.present).tolist():
            dpid = f"{int(wiring.datapath_id[vertex]):016x}"
            self.net.addSwitch(bridge_name(vertex), cls=FabricBridge, dpid=dpid)
        batch([*self._add_fabric_links(), *self._add_host_links()])
        self.net.build()
        # Hosts first: their commands and Open vSwitch would wait for each other in the kernel.
        for host in self.hosts:
            host.wait_until_configured()
        self.fabric.start(CONTROLLER_ADDRESS)

    def limit(self, rate: float) -> None:
        """Give every link between switches so many Mb/s in each direction (HTB).

        Raises:
            EngineError: the kernel refused it.
        """
        wiring, lines = self.build.wiring, []
        # HTB gives the rate, and a queue below it (pfifo) holds the packets that wait.
        for switch, link in zip(*np.nonzero(wiring.far >= 0), strict=True):
            device = f"dev {port_interface(switch, int(wiring.port[switch, link]))}"
            lines.append(f"qdisc add {device} root handle 1: htb default 1")
            lines.append(f"class add {device} parent 1: classid 1:1 htb rate {rate}mbit burst 4k")
            lines.append(f"qdisc add {device} parent 1:1 pfifo limit {QUEUE}")
        batch(lines, "tc")

    def widen_send_buffers(self) -> None:
        """Let Open vSwitch fill the queues of all links; it must have sent something before."""
        directions = 2 * self.build.topology.graph.size
        pid = int((self.fabric.ovs.folder / "ovs-vswitchd.pid").read_text())
        widen_send_buffers(pid, directions * QUEUE * WAITING_PACKET)

    def neighbour_mac(self, host: int) -> str:  # noqa: ARG002
        """The gateway's Ethernet address: a switch answers ARP for its hosts with its own."""
        return format_mac(self.build.addressing.gateway_mac)

    def _command(self, host: int) -> str:
        """The shell command that configures a host: one `ip -batch` of a file.

        A terminal takes no line of more than 4,095 bytes, and a switch may have many hosts.
        """
        disable_ipv6 = 0 if self.build.addressing.ipv6 else 1
        file = RUN / f"h{host}.batch"
        file.write_text("".join(f"{line}\n" for line in self.ip_commands(host)))
        return f"echo {disable_ipv6} > {DISABLE_IPV6}; ip -batch {file}"

    def _add_fabric_links(self) -> list[str]:
        """Add all links between switches to Mininet's network.

        Returns:
            The lines for `ip -batch` that make these links.
        """
        lines = []
        for switch, port, far, far_port in self.build.wiring.each_cable():
            interface, far_interface = port_interface(switch, port), port_interface(far, far_port)
            self.net.addLink(
                bridge_name(switch),
                bridge_name(far),
                port,
                far_port,
                intfName1=interface,
                intfName2=far_interface,
            )
            lines.append(f"link add name {interface} up type veth peer name {far_interface}")
            lines.append(f"link set {far_interface} up")
        return lines

    def _add_host_links(self) -> list[str]:
        """Add all links to hosts to Mininet's network.

        Returns:
            The lines for `ip -batch` that make these links.
        """
        wiring, lines = self.build.wiring, []
        for i, (vertex, number) in enumerate(
            zip(self.sample.switch, self.sample.number, strict=True)
        ):
            port = int(wiring.host_port[vertex, number])
            interface, host = port_interface(vertex, port), self.hosts[i]
            bridge = bridge_name(vertex)
            self.net.addLink(bridge, host, port, 0, intfName1=interface, intfName2="eth0")
            peer = f"peer name eth0 address {self.mac(i)} netns {host.pid}"
            lines.append(f"link add name {interface} up type veth {peer}")
        return lines


class VethFabric(OvsFabric):
    """Bridges whose cables, also those of hosts, are veth pairs.

    A cable keeps its names: after two cables change places, the interface `s4-eth2` may be at
    another switch's port.
    """

    down: frozenset[str] = frozenset()
    """The interfaces that are down because of the outage."""

    def interface(self, switch: int, port: int) -> str:
        """The interface that a switch has at a port now."""
        return self._exchanged_interfaces().get((switch, port)) or port_interface(switch, port)

    def apply_outage(self, outage: Outage) -> None:
        """Take interfaces down and up, power from bridges, and exchange interfaces of two ports.

        Raises:
            EngineError: the kernel refused it.
            OpenVSwitchError: Open vSwitch refused it.
        """
        before, self.outage = self.outage, outage
        down = self._dead_interfaces()
        changes = [f"link set {name} down" for name in sorted(down - self.down)]
        changes += [f"link set {name} up" for name in sorted(self.down - down)]
        self.down = down
        if changes:
            batch(changes)
        if (before.switches, before.miswires) != (outage.switches, outage.miswires):
            self.set_bridges()

    def settle(self) -> None:
        """Wait until packets follow all changes of cables and of tables.

        The kernel tells Open vSwitch some time after a change which interfaces are up, and fast
        reroute follows what Open vSwitch knows.

        Raises:
            OpenVSwitchError: Open vSwitch took longer than `DAEMON_PATIENCE`.
        """
        bridges = [bridge_name(vertex) for vertex in self.powered()]
        interfaces = {port.name for _, port in self._ports()}
        due = interfaces - self.down
        deadline = time.monotonic() + DAEMON_PATIENCE
        while (live := live_ports(self.ovs.folder, bridges) & interfaces) != due:
            if time.monotonic() > deadline:
                late = ", ".join(sorted(live ^ due))
                raise OpenVSwitchError(f"Open vSwitch does not notice the changes of {late}")
            time.sleep(DAEMON_POLL)
        super().settle()

    def _ports(self) -> Iterator[tuple[int, Port]]:
        """The ports of all switches with their numbers: those of cables, then those of hosts."""
        exchanged = self._exchanged_interfaces()
        switch_ports: list[SwitchPort] = []
        for near, near_port, far, far_port in self.build.wiring.each_cable():
            switch_ports += [(near, near_port), (far, far_port)]
        for switch, port in [*switch_ports, *self.host_ends]:
            interface = exchanged.get((switch, port)) or port_interface(switch, port)
            yield switch, Port(interface, port)

    def _collectors(self) -> list[BridgeRow]:
        """No bridges of collectors: Mininet's hosts send and receive."""
        return []

    def _exchanged_interfaces(self) -> dict[SwitchPort, str]:
        """The interfaces that are at other ports than their names say."""
        interfaces: dict[SwitchPort, str] = {}
        vertex_of = self.build.wiring.names.index
        for miswire in self.outage.miswires:
            ports = [
                self._port_towards(vertex_of(far), vertex_of(near))
                for near, far in (miswire.one, miswire.other)
            ]
            names = [interfaces.get(port) or port_interface(*port) for port in ports]
            interfaces |= dict(zip(ports, reversed(names), strict=True))
        return interfaces

    def _port_towards(self, switch: int, far: int) -> SwitchPort:
        """The port of a switch that is cabled to another one."""
        wiring = self.build.wiring
        return switch, int(wiring.port[switch, wiring.far[switch] == far][0])

    def _dead_interfaces(self) -> frozenset[str]:
        """The interfaces that carry nothing under the outage."""
        wiring, powered = self.build.wiring, set(self.powered())
        works = self.outage.cabling(self.program, wiring.names).works
        dead = np.argwhere((wiring.far >= 0) & ~works).tolist()
        of_cables = [self.interface(v, int(wiring.port[v, k])) for v, k in dead]
        of_hosts = [port_interface(v, port) for v, port in self.host_ends if v not in powered]
        return frozenset([*of_cables, *of_hosts])
