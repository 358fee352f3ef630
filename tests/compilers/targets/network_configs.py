"""What the readers of network systems' configs find, and what is common to all systems.

The readers know their system's words only, and nothing of polarfab.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network


@dataclass
class Config:
    """A router's config: texts by interface, addresses, and static routes.

    routes: [(gateway, interface or "", weight)] by prefix. discards: preference by prefix.
    members: the ports of an interface that stands for several. entering, entering_discards: the
    same for what comes in on the interfaces of `ingress`, which are by address family. back: the
    interface of each address that packets in transit find in the VRF of `ingress`.
    """

    hostname: str = ""
    descriptions: dict = field(default_factory=dict)
    addresses: dict = field(default_factory=lambda: defaultdict(list))
    routes: dict = field(default_factory=lambda: defaultdict(list))
    discards: dict = field(default_factory=dict)
    members: dict = field(default_factory=lambda: defaultdict(list))
    entering: dict = field(default_factory=lambda: defaultdict(list))
    entering_discards: dict = field(default_factory=dict)
    ingress: dict = field(default_factory=dict)
    back: dict = field(default_factory=dict)

    def add_address(self, interface, text):
        self.addresses[interface].append(ip_interface(text))

    def add_route(self, prefix, gateway, interface="", weight=1):
        network, address = ip_network(prefix), ip_address(gateway)
        assert network.version == address.version
        self.routes[network].append((address, interface, weight))

    def add_entering(self, prefix, gateway, interface=""):
        self.entering[ip_network(prefix)].append((ip_address(gateway), interface, 1))

    def add_back(self, prefix, gateway, interface):
        assert ip_network(prefix) == ip_network(gateway)
        self.back[ip_address(gateway)] = interface

    def discard(self, prefix, preference, entering=False):
        discards = self.entering_discards if entering else self.discards
        assert ip_network(prefix) not in discards
        discards[ip_network(prefix)] = int(preference)

    def enters(self, interface):
        """An interface is in the VRF of the hosts, with the addresses that it has."""
        for own in self.addresses[interface]:
            self.ingress[{4: "inet", 6: "inet6"}[own.version]] = interface

    def interface_of(self, gateway):
        """The one interface in whose network the gateway is, not as the router's own address."""
        (found,) = [
            (interface, own)
            for interface, addresses in self.addresses.items()
            for own in addresses
            if gateway in own.network
        ]
        assert gateway != found[1].ip
        return found[0]

    def table(self, entering=False):
        """{prefix text: {interface: weight}}, next hops found by the router's own addresses."""
        table = {}
        for prefix, hops in (self.entering if entering else self.routes).items():
            weights = {}
            for gateway, interface, weight in hops:
                found = self.interface_of(gateway)
                assert interface in ("", found)
                assert found not in weights
                weights[found] = weight
            table[str(prefix)] = weights
        return table


def owners(configs):
    """{address: (node, interface)} of all routers; no address is on two."""
    found = {}
    for node, config in configs.items():
        for interface, addresses in config.addresses.items():
            for own in addresses:
                assert own.ip not in found, (own, node, found[own.ip])
                found[own.ip] = (node, interface)
    return found


def deliver(configs, owned, source, destination, most):
    """The nodes on a packet's way to an address, by longest prefix, until that is connected.

    most: the links that it may take.
    """
    address, way = ip_address(destination), [source]
    while len(way) <= most + 1:
        config = configs[way[-1]]
        connected = [own for found in config.addresses.values() for own in found]
        if any(address in own.network for own in connected):
            return way
        length, hops = max(
            (prefix.prefixlen, hops) for prefix, hops in config.routes.items() if address in prefix
        )
        assert length >= max((p.prefixlen for p in config.discards if address in p), default=0), (
            "discarded"
        )
        ((gateway, _, _),) = hops
        way.append(owned[gateway][0])
    raise AssertionError(f"no end: {way}")
