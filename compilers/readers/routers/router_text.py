"""A router's configuration as values, in the words that all routers share.

The verbs of grammars (`router_actor`) fill it line by line and know nothing of polarfab: what is
here was read from text alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from socket import AF_INET6, inet_pton

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import bare
from compilers.readers.route_tables import RouteLines

DISCARD = ""
"""In the place of a next hop: packets for this prefix end here. Others are `GATEWAY`, `GATEWAY
INTERFACE`, `GATEWAY INTERFACE VRF` where that is said, or `INTERFACE` behind a blank."""


@dataclass(slots=True)
class InterfaceText:
    """An interface: the line where it begins, and its addresses with their lines.

    vlan: the network that it is a port of, "" where it is none. vrf: the one that it is in, "" for
    the default one. unnumbered: whether it is routed without any. port, tag: of a subinterface the
    port that it is in, and its VLAN on the link. looked: by family the instance where a filter has
    packets looked up.
    """

    line: int
    addresses: list[tuple[str, int]] = field(default_factory=list)
    vlan: str = ""
    vrf: str = ""
    unnumbered: bool = False
    port: str = ""
    tag: str = ""
    looked: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RouterText:
    """What a file says of a router.

    segments: the first bytes of the addresses of SRv6 uSIDs, whose routes are others'. shared: the
    interface for the ports of a network, by that network. vlans: those that are there,
    where the system is given. transit: the
    routes of packets that come in anywhere; entering: of those that come in on `ingress`, an
    interface by address family, and are in its prefixes, or that come in on an interface of `vrf`,
    the one besides the default one. back: routes of the default VRF with next hops in that one.
    stages: the routes of VRFs for what comes in marked by a link, by the name of each. wanted: by
    family and instance the destinations that filters send there; direct: those with the routes of
    all interfaces.
    facts: plain facts by kind, with their lines (`expected_facts`); stated: the kinds that this
    file has to state in full. faults: what is wrong or missing; strange: unknown statements.
    """

    file: str
    interfaces: dict[str, InterfaceText] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    vlans: set[str] = field(default_factory=set)
    transit: RouteLines = field(default_factory=RouteLines)
    entering: RouteLines = field(default_factory=RouteLines)
    ingress: dict[str, str] = field(default_factory=dict)
    vrf: str = ""
    back: RouteLines = field(default_factory=RouteLines)
    stages: dict[str, RouteLines] = field(default_factory=dict)
    wanted: dict[tuple[str, str], str] = field(default_factory=dict)
    direct: set[tuple[str, str]] = field(default_factory=set)
    segments: bytes = b""
    facts: list[tuple[str, tuple[str | int, ...], int]] = field(default_factory=list)
    stated: frozenset[str] = frozenset()
    faults: list[tuple[int, str]] = field(default_factory=list)
    strange: list[tuple[int, str]] = field(default_factory=list)

    def interface(self, name: str, line: int) -> InterfaceText:
        """The interface of a name, new where it was not seen before."""
        if name not in self.interfaces:
            self.interfaces[name] = InterfaceText(line)
        return self.interfaces[name]

    def fault(self, line: int, text: str) -> None:
        """Note that a line is wrong."""
        self.faults.append((line, bare(text)))

    def unknown(self, line: int, text: str) -> None:
        """Note a statement that is unknown."""
        self.strange.append((line, bare(text)))

    def fact(self, line: int, kind: str, *value: str | int) -> None:
        """Note a plain fact; a port in it is an `Interface`."""
        known = (part if isinstance(part, str | int) else repr(part) for part in value)
        self.facts.append((kind, tuple(known), line))

    def described(self, line: int, name: str, text: str) -> None:
        """The description of an interface: of one that is no port it says what that is for."""
        if name in self.shared.values():
            if text != "hosts":
                self.fault(line, f"description {text}")
        else:
            self.fact(line, "description", Interface(name), text)

    def sized(self, line: int, name: str, mtu: int) -> None:
        """The MTU of an interface, bytes of an IP packet."""
        if name in self.shared.values():
            self.fact(line, "mtu of the hosts", mtu)
        else:
            self.fact(line, "mtu", Interface(name), mtu)

    def part_back(self) -> None:
        """Separate the routes of the default VRF that name another one for their next hops."""
        separate = {next_hop for next_hop in self.transit.next_hops if next_hop.count(" ") > 1}
        self.back = self.transit.reworded({next_hop: next_hop for next_hop in separate})
        self.transit = self.transit.reworded(
            {w: w for w in self.transit.next_hops if w not in separate}
        )

    def ports(self, name: str) -> list[str]:
        """The ports of a switched network behind an interface, or the interface."""
        networks = {network for network, shared in self.shared.items() if shared == name}
        if not networks:
            return [name]
        return [port for port, found in self.interfaces.items() if found.vlan in networks]


def in_block(prefix: str, block: bytes) -> bool:
    """Whether an IPv6 prefix is in a block, by the first bytes of an address."""
    if ":" not in prefix:
        return False
    return inet_pton(AF_INET6, prefix.partition("/")[0]).startswith(block)


def lines_of(text: str, needles: Iterable[str]) -> Iterator[int]:
    """The line of each needle, 0 where it is not there: JSON does not tell the lines of its values.

    Needles in the order of the text take one pass over it.
    """
    at, line = 0, 1
    for needle in needles:
        if (found := text.find(needle, at)) >= 0:
            line += text.count("\n", at, found)
            at = found
            yield line
        else:
            found = text.find(needle)
            yield text.count("\n", 0, found) + 1 if found >= 0 else 0
