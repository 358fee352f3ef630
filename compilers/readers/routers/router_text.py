"""The contents of a router's configuration as values, the same for all systems.

The grammar of a system says by verbs what its lines mean, and `router_actor` carries the verbs out:
it fills a `RouterText` line by line, from the text alone. `router_forwarding` says what a router
with these contents does with packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from socket import AF_INET6, inet_pton
from typing import NamedTuple

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import bare
from compilers.readers.route_tables import RouteLines

# A next hop is a text in one of these forms, by what the line of the route states: `GATEWAY`,
# `GATEWAY INTERFACE`, `GATEWAY INTERFACE VRF`, ` INTERFACE` with a blank before it, or DISCARD.
DISCARD = ""
"""The next hop of a route that discards."""


def states_vrf(next_hop: str) -> bool:
    """Whether a next hop has the form `GATEWAY INTERFACE VRF`, the only one with two blanks."""
    return next_hop.count(" ") > 1


@dataclass(slots=True)
class InterfaceText:
    """An interface of a router."""

    line: int
    """The line where it begins."""
    addresses: list[tuple[str, int]] = field(default_factory=list)
    """Addresses with their lengths, each with its line."""
    vlan: str = ""
    """The VLAN that it is an access port of, "" for a routed interface."""
    vrf: str = ""
    """Its VRF, "" for the default one."""
    unnumbered: bool = False
    """Whether it is routed without an address of its own."""
    port: str = ""
    """The port that a subinterface is on; "" for any other interface."""
    tag: str = ""
    """The VLAN of a subinterface on its link; "" for any other interface."""
    lookup_instance: dict[str, str] = field(default_factory=dict)
    """By address family, the routing instance where a filter has its packets looked up."""

    @property
    def is_subinterface(self) -> bool:
        """Whether it is a subinterface: links have one each for marked packets."""
        return bool(self.port)


class RouterFact(NamedTuple):
    """A plain fact that a line states; its kind and value are those of `expected_facts`."""

    kind: str
    """The kind of the fact."""
    value: tuple[str | int, ...]
    """The values that the line states."""
    line: int
    """The line."""


@dataclass(slots=True)
class RouterText:
    """The contents of one file of a router.

    The routes of a prefix may be in three kinds of tables: those of the default VRF (`transit`,
    `leaked`), those for packets from hosts (`entering`), and those for marked packets
    (`marked_routes`).
    """

    file: str
    """The name of the file."""
    interfaces: dict[str, InterfaceText] = field(default_factory=dict)
    """The interfaces by name."""
    vlan_interfaces: dict[str, str] = field(default_factory=dict)
    """The routed interface of the ports of each VLAN, by the VLAN."""
    vlans: set[str] = field(default_factory=set)
    """The VLANs that the file makes."""
    transit: RouteLines = field(default_factory=RouteLines)
    """The routes of the default VRF."""
    entering: RouteLines = field(default_factory=RouteLines)
    """The routes for packets from hosts. A system has a VRF of hosts for these packets (`vrf`), or
    filters at the interface of hosts (`ingress`)."""
    ingress: dict[str, str] = field(default_factory=dict)
    """The interface of hosts at which filters are, by address family; {} with a VRF of hosts."""
    vrf: str = ""
    """The VRF of hosts; "" with filters."""
    leaked: RouteLines = field(default_factory=RouteLines)
    """The routes of the default VRF whose next hops are in the VRF of hosts."""
    marked_routes: dict[str, RouteLines] = field(default_factory=dict)
    """The routes for marked packets, by VRF. Each link has a VRF for the marked packets that it
    brings."""
    filter_networks: dict[tuple[str, str], str] = field(default_factory=dict)
    """The network whose packets a filter sends to an instance, by address family and instance."""
    with_connected_routes: set[tuple[str, str]] = field(default_factory=set)
    """The instances that have the connected routes of all interfaces: family and instance."""
    segments: bytes = b""
    """The SRv6 uSID block, as the first bytes of its addresses; b"" for none. Another reader reads
    the routes in it."""
    facts: list[RouterFact] = field(default_factory=list)
    """The plain facts, in the order of the lines."""
    complete_kinds: frozenset[str] = frozenset()
    """The kinds of facts that the file has to state in full."""
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """The faults, wrong or missing statements: a line (0: only the file is known), and a text."""
    unread: list[tuple[int, str]] = field(default_factory=list)
    """The statements that no rule reads: line and text."""

    def interface(self, name: str, line: int) -> InterfaceText:
        """The interface of a name, which begins at the first line that names it."""
        if name not in self.interfaces:
            self.interfaces[name] = InterfaceText(line)
        return self.interfaces[name]

    def add_wrong(self, line: int, text: str) -> None:
        """Note a fault in a line."""
        self.wrong.append((line, bare(text)))

    def add_unread(self, line: int, text: str) -> None:
        """Note a statement that no rule reads."""
        self.unread.append((line, bare(text)))

    def fact(self, line: int, kind: str, *value: str | int) -> None:
        """Note a plain fact; a port in it is an `Interface`."""
        self.facts.append(RouterFact(kind, value, line))

    def described(self, line: int, name: str, text: str) -> None:
        """Note the description of an interface.

        Interfaces of VLANs, which hosts share, are described as `hosts`, ports by their far end.
        """
        if name in self.vlan_interfaces.values():
            if text != "hosts":
                self.add_wrong(line, f"description {text}")
        else:
            self.fact(line, "description", Interface(name), text)

    def sized(self, line: int, name: str, mtu: int) -> None:
        """Note the MTU of an interface, in bytes of an IP packet."""
        if name in self.vlan_interfaces.values():
            self.fact(line, "mtu of the hosts", mtu)
        else:
            self.fact(line, "mtu", Interface(name), mtu)

    def separate_leaked(self) -> None:
        """Move the routes of the default VRF whose next hops name another VRF to `leaked`."""
        # `with_next_hops` keeps the routes whose next hops it is given.
        leaked = {next_hop for next_hop in self.transit.next_hops if states_vrf(next_hop)}
        self.leaked = self.transit.with_next_hops({next_hop: next_hop for next_hop in leaked})
        others = [next_hop for next_hop in self.transit.next_hops if next_hop not in leaked]
        self.transit = self.transit.with_next_hops({next_hop: next_hop for next_hop in others})

    def ports(self, name: str) -> list[str]:
        """The ports of the VLAN that an interface routes for; else the interface itself."""
        vlans = {vlan for vlan, interface in self.vlan_interfaces.items() if interface == name}
        if not vlans:
            return [name]
        return [port for port, interface in self.interfaces.items() if interface.vlan in vlans]


def in_block(prefix: str, block: bytes) -> bool:
    """Whether an IPv6 prefix is in a block, by the first bytes of an address."""
    if ":" not in prefix:
        return False
    return inet_pton(AF_INET6, prefix.partition("/")[0]).startswith(block)


def lines_of(text: str, needles: Iterable[str]) -> Iterator[int]:
    r"""Yield the line of each needle in a text; 0 where the text does not have it.

    Parsers of JSON do not tell the lines of values. If the needles are in the order of the text,
    one pass over it is enough.

    >>> list(lines_of('{"a": 1,\n "b": 2}', ['"a"', '"b"', '"c"']))
    [1, 2, 0]
    """
    last_place, line = 0, 1
    for needle in needles:
        if (place := text.find(needle, last_place)) >= 0:
            line += text.count("\n", last_place, place)
            last_place = place
            yield line
        else:
            place = text.find(needle)
            yield text.count("\n", 0, place) + 1 if place >= 0 else 0
