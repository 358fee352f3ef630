"""The verbs of the grammars of routers (EOS, NX-OS, Junos, SR Linux, SONiC, NVUE).

A rule of a grammar, such as `ip address <address> => address <name> ipv4 <address>`, names a verb
behind `=>`. The engine calls the method of `RouterActor` with that name, so the methods have the
words of the grammars. Each method notes one statement in the `RouterText` of the file. Some
statements can be judged only at the end of the text: they wait in the actor until `finish` is
called. `router_files` makes an actor for each file.

A *marked* packet is sent over a random link of several. Each link has a VRF for the marked packets
that it brings, which grammars call a *stage*.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from socket import AF_INET6, inet_pton
from typing import NamedTuple

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import exact_number, exact_words
from compilers.readers.expected_facts import port_text
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_forwarding import far_ends
from compilers.readers.routers.router_text import DISCARD, RouterText

TRANSIT = "transit"
"""The table of the default VRF, in grammars."""
ENTERING = "entering"
"""The table for packets from hosts, in grammars."""
STAGE = "stage "
"""Before the name of a VRF for marked packets: the name of its table in grammars."""
GROUP = "group "
"""Before the name of a next-hop group: a next hop in grammars."""
DISCARDS_HERE, LAST = "discard", "last"
"""Next hops in grammars of systems that need two lines for a route that discards and is behind all
other routes of its prefix."""
IN_DEFAULT_VRF = " default"
"""Behind a next hop: a route of the VRF of hosts looks it up in the default VRF."""
ETHERNET_HEADER = 14
"""Bytes that some systems count in the MTU of a port, which that of IP does not count."""
TWO_TAGS = 8
"""Bytes of two VLAN tags."""
SEGMENT_BLOCK = 4
"""How many first bytes of an address are the SRv6 uSID block."""


class MarkedRoute(NamedTuple):
    """A route of a VRF for marked packets that is a statement of its own."""

    vrf: str
    """The VRF."""
    prefix: str
    """The destination."""
    next_hop: str
    """The next hop, as `RouterText` writes it."""
    line: int
    """The line that states the route."""


class NumberAndLine(NamedTuple):
    """A number that a line states."""

    value: int = 0
    """The number."""
    line: int = 0
    """The line; 0: no line states a number."""


@dataclass(frozen=True, slots=True)
class RouterActor:
    """The verbs of routers, and the statements that wait for the end of the text."""

    router: RouterText
    """The contents of the file, to which verbs add."""
    cages: dict[str, dict[str, NumberAndLine]] = field(default_factory=dict)
    """The numbers that lines state of each cage: by the name of the cage, and by `speed` or
    `parts`."""
    filtered_prefixes: dict[str, int] = field(default_factory=dict)
    """The line of each prefix that a filter looks for."""
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The gateway (`DISCARD`: none) and the line of each next-hop group, by its name."""
    frame_mtus: dict[str, int] = field(default_factory=dict)
    """The MTU of IP that the MTU of a port's frames leaves, by port."""
    ip_mtus: dict[str, NumberAndLine] = field(default_factory=dict)
    """The MTU of IP that the interface in a port states, by port."""
    command_texts: list[tuple[int, str]] = field(default_factory=list)
    """Commands that stand as a text in a file of data: the line, and the text."""
    marked_routes: list[MarkedRoute] = field(default_factory=list)
    """The routes for marked packets that are statements of their own."""
    tagged_ports: set[str] = field(default_factory=set)
    """The ports whose frames have VLAN tags."""

    def add_wrong(self, line: int, text: str) -> None:
        """Note a line that is wrong or missing (`GrammarActor`)."""
        self.router.add_wrong(line, text)

    def add_unread(self, line: int, text: str) -> None:
        """Note a statement without a rule (`GrammarActor`)."""
        self.router.add_unread(line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str] | None:  # noqa: ARG002
        """The table of a route, and its next hop (`GrammarActor`); without words it discards."""
        return kind, " ".join(words)

    def refuse(self, statement: Statement) -> None:
        """Note a statement that is known, and never right."""
        self.router.add_wrong(statement.line, statement.text)

    def fact(self, statement: Statement, kind: str, *value: str | int) -> None:
        """Note a plain fact."""
        self.router.fact(statement.line, kind, *value)

    def management(self, statement: Statement, port: str, address: str) -> None:
        """Note the address of the port of management."""
        self.router.fact(statement.line, "management", port_text(port), address)

    def interface(self, statement: Statement, name: str) -> None:
        """Note an interface. Those of VLANs are named by them, as `Vlan10`."""
        self.router.interface(name, statement.line)
        if name.startswith("Vlan"):
            self.router.vlan_interfaces[name.removeprefix("Vlan")] = name

    def described(self, statement: Statement, name: str, text: str) -> None:
        """Note the description of an interface."""
        self.router.described(statement.line, name, text)

    def sized(self, statement: Statement, name: str, mtu: int) -> None:
        """Note the MTU of an interface, in bytes of an IP packet."""
        self.router.sized(statement.line, name, mtu)

    def frame(self, statement: Statement, name: str, size: int) -> None:
        """Note the MTU of a port's frames, with the Ethernet header.

        The name "" stands for the interface of hosts.
        """
        size -= ETHERNET_HEADER
        if name in self.tagged_ports:
            size -= TWO_TAGS
        self.frame_mtus[name] = size
        if name:
            self.router.fact(statement.line, "mtu", Interface(name), size)
        else:
            self.router.fact(statement.line, "mtu of the hosts", size)

    def tagged(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """Note a port whose frames may have two VLAN tags, which the MTU of its frames counts."""
        self.tagged_ports.add(name)

    def fits(self, statement: Statement, name: str, size: int | str) -> None:
        """Note the MTU of an interface in a port, which has to fit the port's frames; 0: none."""
        number = size if isinstance(size, int) else exact_number(size)
        stated = self.ip_mtus.get(name, NumberAndLine())
        self.ip_mtus[name] = max(stated, NumberAndLine(number, statement.line))

    def cage(self, statement: Statement, name: str, word: str, number: int) -> None:
        """Note the `speed` of the parts of a cage, or the number of its `parts`, by that word."""
        self.cages.setdefault(name, {})[word] = NumberAndLine(number, statement.line)

    def address(self, statement: Statement, name: str, family: str, address: str) -> None:
        """Note an address of an interface; the family is ipv4, ipv6 or "" for either."""
        if family and (":" in address) != (family == "ipv6"):
            self.router.add_wrong(statement.line, statement.text)
        self.router.interface(name, statement.line).addresses.append((address, statement.line))

    def unit(self, statement: Statement, name: str, unit: str, address: str) -> None:
        """Note an address of a logical interface."""
        self.address(statement, _logical_interface(name, unit), "", address)

    def unnumbered(self, statement: Statement, name: str) -> None:
        """Note a routed interface without addresses, or with a link-local one alone."""
        self.router.interface(name, statement.line).unnumbered = True

    def access(self, statement: Statement, name: str, vlan: str) -> None:
        """Note the VLAN that a port is an access port of."""
        self.router.interface(name, statement.line).vlan = vlan

    def member(self, statement: Statement, name: str, vrf: str) -> None:
        """Note the VRF of an interface."""
        self.router.interface(name, statement.line).vrf = vrf

    def vlan(self, statement: Statement, vlan: str) -> None:  # noqa: ARG002
        """Note a VLAN that a statement makes."""
        self.router.vlans.add(vlan)

    def shared(self, statement: Statement, vlan: str, name: str) -> None:  # noqa: ARG002
        """Note the routed interface of the ports of a VLAN."""
        self.router.vlan_interfaces[vlan] = name

    def vrf(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """Note the VRF of hosts, which a statement makes."""
        self.router.vrf = name

    def stage(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """Note a VRF for marked packets, which a statement makes."""
        self.router.marked_routes.setdefault(name, RouteLines())

    def staged(self, statement: Statement, vrf: str, prefix: str, *words: str) -> None:
        """Note a route of a VRF for marked packets."""
        self.marked_routes.append(MarkedRoute(vrf, prefix, " ".join(words), statement.line))

    def within(self, statement: Statement, name: str, port: str, tag: str) -> None:
        """Note a subinterface: its port, and its VLAN, "" where another statement says it."""
        interface = self.router.interface(name, statement.line)
        interface.port, interface.tag = port, tag or interface.tag

    def ingress(self, statement: Statement, family: str, name: str, unit: str) -> None:  # noqa: ARG002
        """Note the interface whose packets a filter looks at."""
        self.router.ingress[family] = _logical_interface(name, unit)

    def looked(self, statement: Statement, family: str, name: str, instance: str) -> None:
        """Note the routing instance that looks up packets of a family from an interface."""
        self.router.interface(name, statement.line).lookup_instance[family] = instance

    def wanted(self, statement: Statement, family: str, instance: str, network: str) -> None:  # noqa: ARG002
        """Note the destinations of the packets that a filter sends to a routing instance."""
        self.router.filter_networks[family, instance] = network

    def direct(self, statement: Statement, family: str, instance: str) -> None:  # noqa: ARG002
        """Note a routing instance that has the connected routes of all interfaces."""
        self.router.with_connected_routes.add((family, instance))

    def destination(self, statement: Statement, prefix: str) -> None:
        """Note a prefix that a filter looks for."""
        self.filtered_prefixes[prefix] = statement.line

    def group(self, statement: Statement, name: str, gateway: str) -> None:
        """Note a next-hop group, which has one gateway, or none (`DISCARD`)."""
        if name in self.groups:
            self.router.add_wrong(statement.line, f"{statement.text}, again")
        self.groups[name] = gateway, statement.line

    def segments(self, statement: Statement, network: str) -> None:  # noqa: ARG002
        """Note the block of SRv6 uSIDs, whose routes another reader reads."""
        self.router.segments = inet_pton(AF_INET6, network)[:SEGMENT_BLOCK]

    def commands(self, statement: Statement, text: str) -> None:
        """Note commands that stand as a text of JSON in a file of data."""
        self.command_texts.append((statement.line, json.loads(f'"{text}"')))

    def finish(self, engine: TextEngine) -> None:
        """Give the router its routes, and the faults that only the whole text shows."""
        self._finish_ports()
        self._finish_groups()
        self._finish_routes(engine)
        self._finish_filters()
        self.router.unread.sort()

    def _finish_ports(self) -> None:
        """State the cages, and compare the MTU of each port with that of the interface in it."""
        for name, numbers in self.cages.items():
            speed = numbers.get("speed", NumberAndLine())
            parts = numbers.get("parts", NumberAndLine())
            line = max(speed.line, parts.line)
            self.router.fact(line, "cage", name, parts.value, speed.value)
        for name, size in self.ip_mtus.items():
            frame_mtu = self.frame_mtus.get(name, 0)
            if size.value != frame_mtu:
                text = f"{name} of {size.value} bytes, not {frame_mtu}"
                self.router.add_wrong(size.line, text)

    def _finish_groups(self) -> None:
        """Note the next-hop groups whose gateway is no neighbour."""
        ends = dict(far_ends(self.router))
        for group, (gateway, line) in self.groups.items():
            if gateway not in ends and gateway != DISCARD:
                self.router.add_wrong(line, f"{gateway} of group {group} is at the end of no link")

    def _finish_routes(self, engine: TextEngine) -> None:
        """Give the router the routes that the engine took, by their tables."""
        router = self.router
        for table, routes in ((TRANSIT, router.transit), (ENTERING, router.entering)):
            routes.absorb(self._resolved(engine.routes.get(table, RouteLines()), table))
        for vrf, prefix, hop, line in self.marked_routes:
            engine.routes.setdefault(f"{STAGE}{vrf}", RouteLines()).extend([prefix], [hop], [line])
        for vrf, routes in router.marked_routes.items():
            table = f"{STAGE}{vrf}"
            routes.absorb(self._resolved(engine.routes.get(table, RouteLines()), table))
        router.separate_leaked()

    def _finish_filters(self) -> None:
        """Note filters at several interfaces, and prefixes that only a filter or a route names."""
        router = self.router
        if len({*router.ingress.values()}) > 1:
            router.add_wrong(1, f"filters at {' and '.join(sorted(router.ingress.values()))}")
        # A filter sends packets for the pools to the table for hosts, which discards what is left.
        if router.ingress or self.filtered_prefixes:
            discarded = {prefix: line for prefix, _, line in router.entering.rows(DISCARD)}
            for prefix in discarded.keys() ^ self.filtered_prefixes.keys():
                line = discarded.get(prefix) or self.filtered_prefixes[prefix]
                router.add_wrong(line, f"{prefix}, which is discarded or looked for, and not both")

    def _resolved(self, routes: RouteLines, table: str) -> RouteLines:
        """Routes whose next hops are gateways: a row for each gateway of a group or a list."""
        self._check_discards(routes)
        vrf = "" if table == TRANSIT else IN_DEFAULT_VRF
        gateways: dict[str, tuple[str, ...]] = {}
        invalid: list[str] = []
        for next_hop in routes.next_hops:
            gateways_of_hop = self._gateways(next_hop, vrf)
            if gateways_of_hop is None:
                invalid.append(next_hop)
            else:
                gateways[next_hop] = gateways_of_hop
        for prefix, next_hop, line in routes.rows(*invalid):
            self.router.add_wrong(line, f"{prefix} by {next_hop}")
        by_group = [next_hop for next_hop in gateways if next_hop.startswith(GROUP)]
        for prefix, next_hop, line in routes.rows(*by_group):
            (gateway,) = gateways[next_hop]
            if gateway != DISCARD and (":" in gateway) != (":" in prefix):
                self.router.add_wrong(line, f"{prefix} by {gateway} of {next_hop}")
        # First the rows of the first gateway of each next hop, then those of the second, and so on.
        resolved = RouteLines()
        for index in range(max(map(len, gateways.values()), default=0)):
            gateway_with_index = {
                next_hop: gateways_of_hop[index]
                for next_hop, gateways_of_hop in gateways.items()
                if index < len(gateways_of_hop)
            }
            resolved.absorb(routes.with_next_hops(gateway_with_index))
        return resolved

    def _check_discards(self, routes: RouteLines) -> None:
        """Note prefixes that have one of the two lines of a route that discards, and not both."""
        if DISCARDS_HERE not in routes.next_hops and LAST not in routes.next_hops:
            return
        discard_lines = {prefix: line for prefix, _, line in routes.rows(DISCARDS_HERE)}
        last_lines = {prefix: line for prefix, _, line in routes.rows(LAST)}
        for prefix in discard_lines.keys() ^ last_lines.keys():
            line = discard_lines.get(prefix) or last_lines[prefix]
            self.router.add_wrong(line, f"{prefix}, which is discarded, or behind others, alone")

    def _gateways(self, next_hop: str, vrf: str) -> tuple[str, ...] | None:
        """The gateways of a next hop, without the VRF behind them; None: it is invalid.

        Its forms are:

        - `discard`: `DISCARD` takes the place of a gateway.
        - `last`: no gateway, as another line of the prefix has `discard`.
        - `group NAME`, and `group NAME last` for a group that discards: the gateway of that group.
        - one gateway or several, as `_listed_gateways` reads them.
        """
        if next_hop == LAST:
            return ()
        if next_hop == DISCARDS_HERE:
            return (DISCARD,)
        if next_hop.startswith(GROUP):
            return self._gateway_of_group(next_hop)
        return _listed_gateways(next_hop, vrf)

    def _gateway_of_group(self, next_hop: str) -> tuple[str] | None:
        """The gateway of a group; None without the group, or if `last` is wrong behind it."""
        _, group, *last = exact_words(next_hop)
        if group not in self.groups:
            return None
        gateway, _ = self.groups[group]
        discards = gateway == DISCARD
        return (gateway,) if bool(last) == discards else None


def _listed_gateways(next_hop: str, vrf: str) -> tuple[str, ...] | None:
    """The gateways of a next hop whose words have commas, without the VRF behind each of them.

    `fe80::1,fe80::2 Ethernet1,Ethernet2` is `fe80::1 Ethernet1` and `fe80::2 Ethernet2`. None where
    one word has more parts than another.
    """
    columns = [column.split(",") for column in next_hop.split(" ")]
    if len(set(map(len, columns))) > 1:
        return None
    return tuple(" ".join(words).removesuffix(vrf) for words in zip(*columns, strict=True))


def _logical_interface(name: str, unit: str) -> str:
    """The name of a logical interface of Junos; unit 0 stands for the port."""
    return name if unit == "0" else f"{name}.{unit}"
