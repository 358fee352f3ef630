"""Runs rendered configurations on Linux kernels: a network namespace for each switch and host.

A switch is a Linux router, with FRR's daemons where the target is frr; links are veth pairs. The
child process of a scenario's engine (`routed_child`) makes a `Routers`, starts it, and takes links
down and up while packets are sent. It runs in network and process namespaces of its own
(`inner_child`); when it ends, the kernel removes all that it has made.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from mininet_scenarios.engines.frr_router import FrrRouter
from mininet_scenarios.engines.inner_child import HostAddresses
from mininet_scenarios.engines.router_processes import LinuxRouter, RouterProcesses
from mininet_scenarios.machine.netns import batch, entered, until
from mininet_scenarios.machine.network_namespace import NetworkNamespace
from mininet_scenarios.scenario.engine import EngineError, HostSample

ROUTER_KINDS: dict[str, type[RouterProcesses]] = {"linux": LinuxRouter, "frr": FrrRouter}
"""The kind of router of each target."""
ROUTES_TIMEOUT = 60.0
"""Seconds in which all routers must have their routes."""
SILENCE = 1.0
"""Seconds without any packet, after which links count as quiet."""
SENT_PACKETS = 10
"""The number of the word in a line of /proc/net/dev that counts the packets that were sent."""
IFA_F_TENTATIVE = 0x40
"""The flag of an address that the kernel still checks for duplicates (linux/if_addr.h)."""
NAMESPACES_AT_ONCE = 4
"""How many namespaces are made at the same time."""
NEIGHBOUR_SETTINGS = {"base_reachable_time_ms": 36_000_000, "delay_first_probe_time": 0}
"""The kernel's settings for its neighbour tables (ARP and neighbour discovery): it asks for an
address at once, and remembers it for hours, as its requests would count as packets over links."""


class SwitchLink(NamedTuple):
    """A switch's end of a link."""

    vertex: int
    """The switch."""
    link: int
    """The number of the link at this switch."""


@dataclass(frozen=True, slots=True)
class InterfaceAddresses:
    """The Ethernet addresses by which neighbours reach an interface."""

    mac: str
    """The interface's own."""
    by_address: dict[str, str]
    """The Ethernet address of each IP address. An address of the macvlan above the interface, which
    takes marked packets, has the macvlan's Ethernet address."""


class Routers(HostAddresses):
    """The switches of a build as routers, with the hosts of a sample; `hosts[i]` is the i-th."""

    def __init__(
        self, build: Build, rendered: Path, target: str, sample: HostSample, daemons: Path
    ) -> None:
        """Make all namespaces.

        Args:
            build: with ports named as Linux names them (`targets.interfaces.LINUX.named`).
            rendered: the folder that `target` was rendered in.
            target: a key of `ROUTER_KINDS`.
            sample: the hosts that take part; other hosts have no namespace.
            daemons: a folder that daemons of any user can write to; each router has a folder in it.
        """
        super().__init__(build, sample)
        self.switches = [NetworkNamespace() for _ in build.wiring.names]
        self.hosts = [NetworkNamespace() for _ in range(len(sample))]
        self.routers: list[RouterProcesses] = [
            ROUTER_KINDS[target](namespace, build, vertex, rendered, daemons)
            for vertex, namespace in enumerate(self.switches)
        ]
        self.down: set[SwitchLink] = set()
        """The links that `set_link` has taken down."""
        self.changed_switches = set(range(len(self.switches)))
        """The switches whose links have changed since `settle` last waited for their routes."""
        self.missing_neighbours = {
            SwitchLink(v, k) for v, k in np.argwhere(build.wiring.far >= 0).tolist()
        }
        """The links without entries in the neighbour table; they get them once they are up."""

    def start(self) -> None:
        """Cable and configure everything; returns when every router has all its routes.

        Raises:
            EngineError: the kernel refused an interface, or a router does not get its routes.
        """
        batch(self._cables())
        for namespace in [*self.switches, *self.hosts]:
            with entered(namespace.pid):
                _lengthen_neighbour_timeouts()
        with ThreadPoolExecutor(NAMESPACES_AT_ONCE) as threads:
            list(threads.map(lambda router: router.begin(), self.routers))
        for i, host in enumerate(self.hosts):
            batch(self.ip_commands(i), *host.command_prefix, "ip")
        for namespace in [*self.switches, *self.hosts]:
            until(partial(_has_addresses, namespace), "addresses of its own", ROUTES_TIMEOUT)
        self.addresses = [_interface_addresses(namespace) for namespace in self.switches]
        self._write_neighbour_entries()
        self.settle()

    def settle(self, patience: float = ROUTES_TIMEOUT) -> None:
        """Wait until every router has the routes that it can have with the links that are up."""
        any_learns = any(router.learns for router in self.routers)
        switches = range(len(self.routers)) if any_learns else sorted(self.changed_switches)
        for vertex in switches:
            down_interfaces = {self.interface_name(v, link) for v, link in self.down if v == vertex}
            condition = f"routes of {self.build.wiring.names[vertex]}"
            until(partial(self.routers[vertex].ready, down_interfaces), condition, patience)
        self.changed_switches.clear()
        self._write_neighbour_entries()

    def sent(self) -> NDArray[np.int64]:
        """How many packets have left each switch by each link, int64[S, K]."""
        port = self.build.wiring.port
        loads = np.zeros(port.shape, np.int64)
        for vertex, namespace in enumerate(self.switches):
            # A line of /proc/net/dev, after two of headings: the interface, eight numbers of what
            # it received (bytes, packets, …), then those of what it sent.
            lines = namespace.read("dev")[2:]
            sent = {words[0].rstrip(":"): int(words[SENT_PACKETS]) for words in lines}
            for link in np.flatnonzero(port[vertex]).tolist():
                loads[vertex, link] = sent[self.interface_name(vertex, link)]
        return loads

    def quieten(self) -> None:
        """Wait until no link carries packets: at first, kernels and daemons send announcements.

        Raises:
            EngineError: some link still carries packets after ROUTES_TIMEOUT.
        """
        deadline, before = time.monotonic() + ROUTES_TIMEOUT, self.sent()
        while time.monotonic() < deadline:
            time.sleep(SILENCE)
            sent = self.sent()
            if (sent == before).all():
                return
            before = sent
        raise EngineError(f"the links are not quiet after {ROUTES_TIMEOUT:g} s")

    def set_link(self, vertex: int, link: int, up: bool) -> None:
        """Take a switch's end of its k-th link down, or up again."""
        self.routers[vertex].set_interface(self.interface_name(vertex, link), up)
        end = SwitchLink(vertex, link)
        if up:
            self.down.discard(end)
        else:
            self.down.add(end)
        self.missing_neighbours.add(end)
        self.changed_switches.add(vertex)

    def interface_name(self, vertex: int, link: int) -> str:
        """The name of the interface of a switch's k-th link."""
        return self.build.wiring.port_name(vertex, int(self.build.wiring.port[vertex, link]))

    def _cables(self) -> list[str]:
        """The lines for `ip -batch` that make all cables; a host that takes no part has no end."""
        wiring, lines = self.build.wiring, []
        for near, port, far, far_port in wiring.each_cable():
            interface, far_interface = wiring.port_name(near, port), wiring.port_name(far, far_port)
            lines.append(_veth(self.switches[near], interface, self.switches[far], far_interface))
        taking_part = zip(self.sample.switch.tolist(), self.sample.number.tolist(), strict=True)
        host_at = {end: host for host, end in enumerate(taking_part)}
        for vertex, number in np.argwhere(wiring.host_port > 0).tolist():
            switch, host = self.switches[vertex], host_at.get((vertex, number))
            interface = wiring.port_name(vertex, int(wiring.host_port[vertex, number]))
            if host is None:
                lines.append(_veth(switch, interface, switch, f"no-{interface}"))
            else:
                cable = _veth(switch, interface, self.hosts[host], "eth0")
                lines.append(f"{cable} address {self.mac(host)}")
        return lines

    def _write_neighbour_entries(self) -> None:
        """Write the far ends of links that are up into the kernel's neighbour tables.

        So no packet asks for their addresses. The entries are permanent, as these do not count
        towards the limit that all namespaces share (gc_thresh3).
        """
        up = self.missing_neighbours - self.down
        self.missing_neighbours &= self.down
        wiring = self.build.wiring
        lines: dict[int, list[str]] = {}
        for vertex, link in sorted(up):
            far = int(wiring.far[vertex, link])
            far_interface = wiring.port_name(far, int(wiring.far_port[vertex, link]))
            addresses = self.addresses[far][far_interface]
            macs = dict.fromkeys(self.routers[vertex].next_hops(far), addresses.mac)
            macs |= addresses.by_address
            interface = self.interface_name(vertex, link)
            lines.setdefault(vertex, []).extend(
                f"neigh replace {address} lladdr {mac} dev {interface} nud permanent"
                for address, mac in macs.items()
            )
        for vertex, commands in lines.items():
            batch(commands, *self.switches[vertex].command_prefix, "ip")


def _lengthen_neighbour_timeouts() -> None:
    """Have the kernel remember neighbours in this network namespace for hours."""
    for neighbours in Path("/proc/sys/net").glob("ipv[46]/neigh/*"):
        for setting, value in NEIGHBOUR_SETTINGS.items():
            (neighbours / setting).write_text(str(value))


def _interface_addresses(namespace: NetworkNamespace) -> dict[str, InterfaceAddresses]:
    """The addresses of each interface; those of a macvlan are listed at the interface below it."""
    links = json.loads(namespace.run("ip", "-json", "address"))
    interfaces = {link["ifname"]: InterfaceAddresses(str(link["address"]), {}) for link in links}
    for link in links:
        addresses = interfaces.get(str(link.get("link") or link["ifname"]))
        if addresses:
            for entry in link["addr_info"]:
                addresses.by_address[entry["local"]] = str(link["address"])
    return interfaces


def _has_addresses(namespace: NetworkNamespace) -> bool:
    """Whether the kernel has checked all IPv6 addresses of the namespace for duplicates."""
    # A line of if_inet6: address, index, prefix length, scope, flags, interface.
    flags = [int(words[4], 16) for words in namespace.read("if_inet6")]
    return not any(flag & IFA_F_TENTATIVE for flag in flags)


def _veth(near: NetworkNamespace, name: str, far: NetworkNamespace, far_name: str) -> str:
    """The line for `ip -batch` that makes a veth pair between two namespaces."""
    peer = f"peer name {far_name} netns {far.pid}"
    return f"link add name {name} netns {near.pid} type veth {peer}"
