"""The verbs of the grammars of routers (EOS, NX-OS, Junos, SR Linux, SONiC, NVUE).

A rule of a grammar, such as `ip address <address> => address <name> ipv4 <address>`, names a verb
behind `=>`. The engine calls the method of `RouterActor` with that name, so the methods have the
words of the grammars. Each method notes one statement in the `RouterText` of the file; `finish`
adds what only the whole text says. `router_files` makes an actor for each file.
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

TRANSIT, ENTERING, STAGE = "transit", "entering", "stage "
"""Tables in grammars: of the default VRF, of packets from hosts, and, before the name of a VRF, of
packets that a link brings marked."""
GROUP, DISCARDS_HERE, LAST = "group ", "discard", "last"
"""Next hops in grammars. `group NAME` is a group. A route that discards, behind all others of its
prefix, takes two lines on some systems: `discard` and `last`."""
INSIDE = " default"
"""Behind a next hop: a route of the VRF of hosts looks it up in the default VRF."""
ETHERNET_HEADER = 14
"""Bytes that some systems count in the MTU of a port, which that of IP does not count."""
TWO_TAGS = 8
"""Bytes of two VLAN tags."""
SEGMENT_BLOCK = 4
"""Bytes of an address that tell the SRv6 uSID block."""


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
    """The verbs of routers, and the facts that can be judged only at the end of the text.

    A field whose name would be that of a verb ends in an underscore.
    """

    router: RouterText
    """The contents of the file, to which verbs add."""
    cages: dict[str, dict[str, NumberAndLine]] = field(default_factory=dict)
    """The numbers that lines state of each cage: by the name of the cage, and by `speed` or
    `parts`."""
    destinations: dict[str, int] = field(default_factory=dict)
    """The line of each prefix that a filter looks for."""
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The gateway (`DISCARD`: none) and the line of each next-hop group, by its name."""
    frames: dict[str, int] = field(default_factory=dict)
    """The MTU of IP that the MTU of a port's frames leaves, by port."""
    ip_mtus: dict[str, NumberAndLine] = field(default_factory=dict)
    """The MTU of IP that the interface in a port states, by port."""
    commands_: list[tuple[int, str]] = field(default_factory=list)
    """Texts of commands in a file of data, each behind its line."""
    staged_: list[MarkedRoute] = field(default_factory=list)
    """The routes for marked packets."""
    tagged_: set[str] = field(default_factory=set)
    """The ports whose frames have VLAN tags."""

    def add_wrong(self, line: int, text: str) -> None:
        """Note a line that is missing or wrong (`GrammarActor`)."""
        self.router.add_wrong(line, text)

    def add_unread(self, line: int, text: str) -> None:
        """Note a statement without a rule (`GrammarActor`)."""
        self.router.add_unread(line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str] | None:  # noqa: ARG002
        """A route: its table, and the next hop; without one it discards."""
        return kind, " ".join(words)

    def refuse(self, statement: Statement) -> None:
        """A statement that is known, and never right."""
        self.router.add_wrong(statement.line, statement.text)

    def fact(self, statement: Statement, kind: str, *value: str | int) -> None:
        """A plain fact."""
        self.router.fact(statement.line, kind, *value)

    def management(self, statement: Statement, port: str, address: str) -> None:
        """The address of the port of management."""
        self.router.fact(statement.line, "management", port_text(port), address)

    def interface(self, statement: Statement, name: str) -> None:
        """An interface."""
        self.router.interface(name, statement.line)
        if name.startswith("Vlan"):
            self.router.vlan_interfaces[name.removeprefix("Vlan")] = name

    def described(self, statement: Statement, name: str, text: str) -> None:
        """The description of an interface."""
        self.router.described(statement.line, name, text)

    def sized(self, statement: Statement, name: str, mtu: int) -> None:
        """The MTU of an interface."""
        self.router.sized(statement.line, name, mtu)

    def frame(self, statement: Statement, name: str, size: int) -> None:
        """The MTU of a port, or of the interface of hosts, with the Ethernet header."""
        port = (Interface(name),) if name else ()
        size -= ETHERNET_HEADER
        if name in self.tagged_:
            size -= TWO_TAGS
        self.frames[name] = size
        kind = "mtu" if name else "mtu of the hosts"
        self.router.fact(statement.line, kind, *port, size)

    def tagged(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """A port whose frames may have two tags of VLANs, which the MTU of its frames counts."""
        self.tagged_.add(name)

    def fits(self, statement: Statement, name: str, size: int | str) -> None:
        """The MTU of the interface in a port, which has to fit the frames of the port; 0: none."""
        number = size if isinstance(size, int) else exact_number(size)
        stated = self.ip_mtus.get(name, NumberAndLine())
        self.ip_mtus[name] = max(stated, NumberAndLine(number, statement.line))

    def cage(self, statement: Statement, name: str, word: str, number: int) -> None:
        """The `speed` of the parts of a cage, or the number of its `parts`."""
        self.cages.setdefault(name, {})[word] = NumberAndLine(number, statement.line)

    def address(self, statement: Statement, name: str, family: str, address: str) -> None:
        """An address of an interface, of a family or of either."""
        if family and (":" in address) != (family == "ipv6"):
            self.router.add_wrong(statement.line, statement.text)
        self.router.interface(name, statement.line).addresses.append((address, statement.line))

    def unit(self, statement: Statement, name: str, unit: str, address: str) -> None:
        """An address of a logical interface."""
        self.address(statement, _unit(name, unit), "", address)

    def unnumbered(self, statement: Statement, name: str) -> None:
        """A routed interface without addresses, or with that of the link alone."""
        self.router.interface(name, statement.line).unnumbered = True

    def access(self, statement: Statement, name: str, vlan: str) -> None:
        """The VLAN of a port."""
        self.router.interface(name, statement.line).vlan = vlan

    def member(self, statement: Statement, name: str, vrf: str) -> None:
        """The VRF of an interface."""
        self.router.interface(name, statement.line).vrf = vrf

    def vlan(self, statement: Statement, vlan: str) -> None:  # noqa: ARG002
        """A statement that makes a VLAN."""
        self.router.vlans.add(vlan)

    def shared(self, statement: Statement, vlan: str, name: str) -> None:  # noqa: ARG002
        """The interface for the ports of a VLAN."""
        self.router.vlan_interfaces[vlan] = name

    def vrf(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """A statement that makes the VRF of hosts."""
        self.router.vrf = name

    def stage(self, statement: Statement, name: str) -> None:  # noqa: ARG002
        """A statement that makes the VRF of packets that a link brings marked."""
        self.router.marked_routes.setdefault(name, RouteLines())

    def staged(self, statement: Statement, vrf: str, prefix: str, *words: str) -> None:
        """A route of the VRF of packets that a link brings marked."""
        self.staged_.append(MarkedRoute(vrf, prefix, " ".join(words), statement.line))

    def within(self, statement: Statement, name: str, port: str, tag: str) -> None:
        """A subinterface: its port, and its VLAN, "" where another statement says it."""
        interface = self.router.interface(name, statement.line)
        interface.port, interface.tag = port, tag or interface.tag

    def ingress(self, statement: Statement, family: str, name: str, unit: str) -> None:  # noqa: ARG002
        """The interface whose packets a filter looks at."""
        self.router.ingress[family] = _unit(name, unit)

    def looked(self, statement: Statement, family: str, name: str, instance: str) -> None:
        """The instance where packets of a family that come in at an interface are looked up."""
        self.router.interface(name, statement.line).lookup_instance[family] = instance

    def wanted(self, statement: Statement, family: str, instance: str, network: str) -> None:  # noqa: ARG002
        """The destinations of the packets that a filter sends to an instance."""
        self.router.filtered[family, instance] = network

    def direct(self, statement: Statement, family: str, instance: str) -> None:  # noqa: ARG002
        """An instance that has the connected routes of all interfaces."""
        self.router.direct.add((family, instance))

    def destination(self, statement: Statement, prefix: str) -> None:
        """What a filter looks for."""
        self.destinations[prefix] = statement.line

    def group(self, statement: Statement, name: str, gateway: str) -> None:
        """A group of one next hop, or of none."""
        if name in self.groups:
            self.router.add_wrong(statement.line, f"{statement.text}, again")
        self.groups[name] = gateway, statement.line

    def segments(self, statement: Statement, network: str) -> None:  # noqa: ARG002
        """The block of SRv6 uSIDs, whose routes another reader reads."""
        self.router.segments = inet_pton(AF_INET6, network)[:SEGMENT_BLOCK]

    def commands(self, statement: Statement, text: str) -> None:
        """Commands in a text of a file of data."""
        self.commands_.append((statement.line, json.loads(f'"{text}"')))

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
            frame = self.frames.get(name, 0)
            if size.value != frame:
                self.router.add_wrong(size.line, f"{name} of {size.value} bytes, not {frame}")

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
        for vrf, prefix, hop, line in self.staged_:
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
        if router.ingress or self.destinations:
            discarded = {prefix: line for prefix, _, line in router.entering.rows(DISCARD)}
            for prefix in discarded.keys() ^ self.destinations.keys():
                line = discarded.get(prefix) or self.destinations[prefix]
                router.add_wrong(line, f"{prefix}, which is discarded or looked for, and not both")

    def _resolved(self, routes: RouteLines, table: str) -> RouteLines:
        """Routes whose next hops are gateways: a row for each gateway of a group or a list."""
        self._check_discards(routes)
        vrf = "" if table == TRANSIT else INSIDE
        gateways = {next_hop: self._gateways(next_hop, vrf) for next_hop in routes.next_hops}
        invalid = [
            next_hop for next_hop, gateways_of_hop in gateways.items() if gateways_of_hop is None
        ]
        for prefix, next_hop, line in routes.rows(*invalid):
            self.router.add_wrong(line, f"{prefix} by {next_hop}")
        by_group = [next_hop for next_hop in routes.next_hops if next_hop.startswith(GROUP)]
        for prefix, next_hop, line in routes.rows(*by_group):
            gateway = (gateways[next_hop] or (DISCARD,))[0]
            if gateway != DISCARD and (":" in gateway) != (":" in prefix):
                self.router.add_wrong(line, f"{prefix} by {gateway} of {next_hop}")
        # First the rows of the first gateway of each next hop, then those of the second, and so on.
        resolved = RouteLines()
        most = max((len(of_hop or ()) for of_hop in gateways.values()), default=0)
        for index in range(most):
            gateway_with_index = {
                next_hop: of_hop[index]
                for next_hop, of_hop in gateways.items()
                if of_hop and index < len(of_hop)
            }
            resolved.absorb(routes.reworded(gateway_with_index))
        return resolved

    def _check_discards(self, routes: RouteLines) -> None:
        """Note routes that discard in one of the two lines that some systems need for it."""
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


def _unit(name: str, unit: str) -> str:
    """The name of a logical interface of Junos; unit 0 stands for the port."""
    return name if unit == "0" else f"{name}.{unit}"
