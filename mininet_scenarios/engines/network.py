"""A build as a Mininet network: real Mininet hosts, Open vSwitch bridges, veth links.

What Mininet does one shell command at a time, for each interface, is done here in one `ip -batch`
and one database transaction for all bridges and ports. It must run in namespaces of its own
(`mininet_child`); the kernel clears up.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, Switch
from mininet.util import quietRun

from compilers.tables.build import Build
from mininet_scenarios.engines.inner_child import DISABLE_IPV6, HostAddresses
from mininet_scenarios.machine.netns import widen
from mininet_scenarios.ovs import openvswitch as ovsdb
from mininet_scenarios.ovs.controller_process import CONTROLLER_ADDRESS
from mininet_scenarios.ovs.openvswitch import Database, Port, PrivateOvs
from mininet_scenarios.ovs.ovsfabric import bridge_name, port_interface
from mininet_scenarios.scenario.engine import (
    EngineError,
    HostSample,
    Miswire,
    Outage,
    PhysicalChange,
    Progress,
)

QUEUE = 30
"""Packets that wait at a link of limited rate; more are dropped."""
WAITING_PACKET = 4096
"""Bytes that the kernel counts for one of them, at most."""
NETWORK_CALLS_AT_ONCE = 8
"""Hosts whose shells are started at the same time."""


class FabricBridge(Switch):  # type: ignore[misc]
    """An Open vSwitch bridge in the userspace datapath. It needs no shell of its own."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: ARG002
        """No shell: the process that runs Mininet acts for the switch."""
        self.shell, self.waiting, self.pid = None, False, os.getpid()

    def cmd(self, *args: Any, **_: Any) -> str:
        """The output of a command, without a shell."""
        return str(quietRun(list(map(str, args)) if len(args) > 1 else args[0]))

    def row(self) -> ovsdb.BridgeRow:
        """The bridge and its ports as the database takes them."""
        ports = [ovsdb.Port(interface.name, port) for interface, port in self.ports.items() if port]
        return ovsdb.BridgeRow(self.name, int(self.dpid, 16), ports, CONTROLLER_ADDRESS)


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that the batch brings up and configures."""

    def config(self, **_: Any) -> dict[str, Any]:
        """Nothing left to do."""
        return {}


class VethCable(Link):  # type: ignore[misc]
    """A veth pair that the batch makes."""

    @classmethod
    def makeIntfPair(cls, *_: Any, **__: Any) -> None:
        """Nothing to do now."""


class FabricHost(Host):  # type: ignore[misc]
    """A Mininet host whose addresses are set in one command."""

    def config(self, *, setup: str, **_: Any) -> dict[str, Any]:
        """Let its shell run the setup's command, and not wait: all hosts do so at once."""
        self.sendCmd(setup)
        return {}

    def configured(self) -> None:
        """Wait for that.

        Raises:
            EngineError: it failed.
        """
        if answer := self.waitOutput().strip():
            raise EngineError(f"host {self.name}: {answer}")


class FabricNetwork(HostAddresses):
    """The network of a build with the hosts that take part; `hosts[i]` is the i-th of them."""

    def __init__(self, build: Build, hosts: HostSample, ovs: PrivateOvs) -> None:
        super().__init__(build, hosts)
        self.ovs = ovs
        setLogLevel("error")
        Mininet.inited = True  # init() would raise kernel limits of the whole machine
        self.net = Mininet(controller=None, link=VethCable, intf=FabricInterface, host=FabricHost)
        self.hosts: list[Node] = []

    def add_hosts(self, progress: Progress) -> None:
        """Start the hosts' shells, several at a time; Open vSwitch need not be there yet."""

        def add(host: int) -> Node:
            return self.net.addHost(f"h{host}", setup=self._command(host))

        with ThreadPoolExecutor(NETWORK_CALLS_AT_ONCE) as several:
            for host in several.map(add, range(len(self.who))):
                self.hosts.append(host)
                progress(len(self.hosts), len(self.who) + 1)

    def start(self) -> None:
        """Bring up everything else, without programs.

        Raises:
            EngineError: the kernel refused an interface.
            OpenVSwitchError: Open vSwitch refused a bridge.
        """
        wiring = self.build.wiring
        for vertex in np.flatnonzero(self.build.topology.present).tolist():
            dpid = f"{int(wiring.datapath_id[vertex]):016x}"
            self.net.addSwitch(bridge_name(vertex), cls=FabricBridge, dpid=dpid)
        self.batch([*self._fabric_links(), *self._host_links()])
        self.net.build()
        # Before the bridges: one waits for the other's changes in the kernel.
        for host in self.hosts:
            host.configured()
        ovsdb.Database(self.ovs.socket).add_bridges(bridge.row() for bridge in self.net.switches)

    @property
    def interfaces(self) -> set[str]:
        """The names of all interfaces at switches."""
        return {
            interface.name
            for bridge in self.net.switches
            for interface, port in bridge.ports.items()
            if port
        }

    def limit(self, rate: float) -> None:
        """Give every link between switches so many Mb/s in each direction (HTB).

        Raises:
            EngineError: the kernel refused it.
        """
        wiring, lines = self.build.wiring, []
        for switch, link in zip(*np.nonzero(wiring.far >= 0), strict=True):
            device = f"dev {port_interface(switch, int(wiring.port[switch, link]))}"
            lines.append(f"qdisc add {device} root handle 1: htb default 1")
            lines.append(f"class add {device} parent 1: classid 1:1 htb rate {rate}mbit burst 4k")
            lines.append(f"qdisc add {device} parent 1:1 pfifo limit {QUEUE}")
        self._run(["tc", "-batch", "-"], lines)

    def widen(self) -> None:
        """Let Open vSwitch, once it has sent something, fill the queues of all links."""
        waiting = 2 * self.build.topology.graph.size * QUEUE * WAITING_PACKET
        widen(int((self.ovs.folder / "ovs-vswitchd.pid").read_text()), waiting)

    def _command(self, host: int) -> str:
        """The shell command that configures a host: one `ip -batch`."""
        off = 0 if self.build.addressing.ipv6 else 1
        batch = "".join(f"{line}\\n" for line in self.setup(host))
        return f"echo {off} > {DISABLE_IPV6}; printf '{batch}' | ip -batch -"

    def _fabric_links(self) -> list[str]:
        """Link up switches; returns the lines for `ip -batch`."""
        lines = []
        for u, here, v, there in self.build.wiring.each_cable():
            ends = port_interface(u, here), port_interface(v, there)
            self.net.addLink(
                bridge_name(u), bridge_name(v), here, there, intfName1=ends[0], intfName2=ends[1]
            )
            lines.append(f"link add name {ends[0]} up type veth peer name {ends[1]}")
            lines.append(f"link set {ends[1]} up")
        return lines

    def _host_links(self) -> list[str]:
        """Link hosts to their switches; returns the lines for `ip -batch`."""
        wiring, lines = self.build.wiring, []
        for i, (vertex, number) in enumerate(zip(self.who.switch, self.who.number, strict=True)):
            port = int(wiring.host_port[vertex, number])
            end, host = port_interface(vertex, port), self.hosts[i]
            self.net.addLink(bridge_name(vertex), host, port, 0, intfName1=end, intfName2="eth0")
            mac = self.build.addressing.mac(vertex, number)
            peer = f"peer name eth0 address {mac} netns {host.pid}"
            lines.append(f"link add name {end} up type veth {peer}")
        return lines

    def batch(self, lines: list[str]) -> None:
        """Let `ip -batch` do these lines.

        Raises:
            EngineError: the kernel refused one.
        """
        self._run(["ip", "-batch", "-"], lines)

    def _run(self, command: list[str], lines: list[str]) -> None:
        done = subprocess.run(
            command, input="\n".join(lines), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise EngineError(f"{' '.join(command)}: {done.stderr.strip()}")


End = tuple[int, int]
"""A switch and the number of one of its ports."""


class Faults:
    """What is wrong with a network, and how to make it so.

    A cable is a veth pair, and keeps its name: after a swap the interface `s4-eth2` may be cabled
    into another switch's port.
    """

    def __init__(self, network: FabricNetwork) -> None:
        self.network, self.build = network, network.build
        self.outage = Outage()
        self.plugged: dict[End, str] = {}
        self.down: set[str] = set()
        names = self.build.wiring.names
        self.vertex = {name: v for v, name in enumerate(names)}
        self.cables: dict[frozenset[str], tuple[End, End]] = {
            frozenset((names[u], names[v])): ((u, here), (v, there))
            for u, here, v, there in self.build.wiring.each_cable()
        }

    def interface(self, switch: int, port: int) -> str:
        """The interface that a switch has at a port now."""
        return self.plugged.get((switch, port), port_interface(switch, port))

    def suffer(self, event: PhysicalChange | Miswire) -> None:
        """Cut or mend cables, swap two, take power from switches: back again they know nothing."""
        self.outage = self.outage.after(event)
        if isinstance(event, Miswire):
            self._swap(event.one, event.other)
            return
        self._set_interfaces()
        if event.switches:
            self._power([self.vertex[name] for name in event.switches], event.up)

    def _power(self, switches: Iterable[int], up: bool) -> None:
        ovs, words = self.network.ovs, []
        for switch in switches:
            name = bridge_name(switch)
            if up:
                words += ["--", "set-controller", name, f"tcp:{CONTROLLER_ADDRESS}"]
                words += ["--", "set", "controller", name, "max_backoff=1000"]
                words += ["connection_mode=out-of-band"]
            else:
                words += ["--", "del-controller", name]
        ovs.vsctl(*words[1:])
        for switch in () if up else switches:
            ovs.ofctl("del-flows", bridge_name(switch))
            ovs.ofctl("del-groups", bridge_name(switch))

    def _swap(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """Two cables change places at the second switch of each; twice is as before."""
        ends = [self._end(*one), self._end(*other)]
        names = [self.interface(*end) for end in ends]
        database = Database(self.network.ovs.socket)
        database.remove_ports(
            (bridge_name(end[0]), name) for end, name in zip(ends, names, strict=True)
        )
        names.reverse()
        database.add_ports(
            (bridge_name(switch), Port(name, port))
            for (switch, port), name in zip(ends, names, strict=True)
        )
        self.plugged |= dict(zip(ends, names, strict=True))

    def _end(self, near: str, far: str) -> End:
        """The port of a cable at its far switch."""
        ends = self.cables[frozenset((near, far))]
        return ends[0] if ends[0][0] == self.vertex[far] else ends[1]

    def _set_interfaces(self) -> None:
        """Bring every interface into the state that the outage says."""
        dark, wanted = self.outage.switches, set()
        cut = set(map(frozenset, self.outage.links))
        for link, ends in self.cables.items():
            if link in cut or dark & link:
                wanted |= {port_interface(*end) for end in ends}
        host_port = self.build.wiring.host_port
        for switch in map(self.vertex.__getitem__, dark):
            ports = host_port[switch][host_port[switch] > 0].tolist()
            wanted |= {port_interface(switch, port) for port in ports}
        wanted &= self.network.interfaces
        changes = [f"link set {name} down" for name in sorted(wanted - self.down)]
        changes += [f"link set {name} up" for name in sorted(self.down - wanted)]
        self.down = wanted
        if changes:
            self.network.batch(changes)
