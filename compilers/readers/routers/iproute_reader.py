"""Reader of a Linux router: files for `ip -batch` and `sysctl`, and the routing tables they make.

The readers of targets linux, frr and bird, which share these files, read them into a `RouterFiles`,
and get the `EmittedSwitch` of the router from it.

The kernel looks a packet up in the tables of the policy rules for the interface where it came in,
then in table main. In a table it takes the route of the least metric whose next hop is up
(ip-rule(8), ip-route(8)).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_forwarding import (
    Claim,
    Discard,
    EmittedSwitch,
    Interface,
    LineText,
    Lookup,
    NextHop,
    OwnAddress,
    Port,
    PortSet,
    address_text,
    interface_network,
)
from compilers.readers.exact_text import (
    exact_address,
    exact_lines,
    exact_number,
    is_number,
    read_exact,
)
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import (
    MARK_CLAIM_KINDS,
    MarkedDevice,
    MarkedDevices,
    is_marked,
    port_to,
)
from compilers.readers.script_text import differing_lines_of_file
from compilers.readers.text_lines import TextLines

KERNEL_MAIN = 254
"""The number of table main."""
MAIN_RULE = 32766
"""The preference of the rule that leads to table main."""
LARGEST_WEIGHT = 256
"""The largest weight of a member of a nexthop group."""
STEERING_FILES = ("routes.batch", "rules.batch")
"""The files in which every line changes where packets go."""
DISCARD_METRIC = 4_000_000_000
"""The metric of routes that discard, behind all others."""
SETTINGS = (
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv4/fib_multipath_hash_fields",
    "net/ipv6/fib_multipath_hash_fields",
    "net/ipv4/fib_multipath_hash_seed",
    "net/ipv6/fib_multipath_hash_policy",
    "net/ipv4/conf/all/ignore_routes_with_linkdown",
    "net/ipv6/conf/all/ignore_routes_with_linkdown",
)
"""The settings of the kernel on which forwarding depends."""
LINK_LENGTHS = "31", "127"
"""The lengths of the two addresses of a link, of IPv4 and IPv6."""
LOOPBACK_LENGTHS = "32", "128"
"""The lengths of a loopback address, of IPv4 and IPv6."""
LINK_LOCAL_LENGTH = "64"
"""The length of a link-local address."""
THROWN = -1
"""In the place of the metric: a `throw` route, which ends the lookup in its table."""
CLAIM_KINDS = MARK_CLAIM_KINDS | {"hosts", "loopback", "far end", "setting", "mtu"}
"""The kinds of claims that the files have to make in full. A *claim* is a fact besides forwarding
that a line states."""


class HostNetwork(NamedTuple):
    """The address of a gateway of hosts, with the length of their network."""

    interface: str
    """The interface of the hosts."""
    address: str
    """The address, with the length of the network."""
    file: str
    """The file that states it."""
    line: int
    """The line that states it."""


@dataclass(slots=True)
class RouterFiles:
    """The contents of one router's files, while they are read."""

    folder: Path
    """The folder of the router."""
    claims: list[Claim] = field(default_factory=list)
    """The facts that lines state besides forwarding."""
    addresses: list[OwnAddress] = field(default_factory=list)
    """The addresses of interfaces."""
    unread: list[LineText] = field(default_factory=list)
    """The statements that no rule reads."""
    faults: list[LineText] = field(default_factory=list)
    """The statements that are missing or wrong."""
    members: dict[str, list[str]] = field(default_factory=dict)
    """The ports of each bridge."""
    up: dict[str, int] = field(default_factory=dict)
    """The interfaces that are set up, with the line of each."""
    rules: dict[str, int] = field(default_factory=dict)
    """The table of each interface's policy rule."""
    discards: list[Discard] = field(default_factory=list)
    """The discarded prefixes."""
    host_networks: list[HostNetwork] = field(default_factory=list)
    """The addresses of the gateway towards hosts."""
    link_ends: dict[str, str] = field(default_factory=dict)
    """The interface by the address at the far end of its link, where links have addresses."""
    marks: MarkedDevices = field(init=False)
    """The devices for marked packets."""

    def __post_init__(self) -> None:
        self.marks = MarkedDevices(self.folder)

    def read(self, target: str, name: str, actor: KernelActor | None = None) -> TextEngine:
        """Read a file by the grammar next to its template.

        Args:
            target: the system that the file is for.
            name: of the file.
            actor: carries out the verbs of its grammar; None: those of a kernel.

        Raises:
            OSError: there is no such file.
        """
        engine = TextEngine(grammar(target, name), actor or KernelActor(self, name))
        engine.read(TextLines.read(self.folder / name))
        return engine

    def far_ends(self) -> dict[str, str]:
        """The node and the port at the far end of each port."""
        values = (claim.value for claim in self.claims if claim.kind == "far end")
        return {str(port): f"{node} {far_port}" for port, node, far_port in values}

    def unknown(self, name: str, line: int, text: str) -> None:
        """Note a line that is not understood."""
        self.unread.append((str(self.folder / name), line, text))

    def wrong(self, name: str, line: int, text: str) -> None:
        """Note a line that is missing, or understood and wrong."""
        self.faults.append((str(self.folder / name), line, text))

    def address(self, name: str, line: int, interface: str, text: str, scope: str = "") -> None:
        """Note an address of an interface.

        Args:
            name: of the file.
            line: the line there.
            interface: a port, a bridge, `lo`, or a device for marked packets.
            text: the address with its length.
            scope: the scope that the line states, "" for none.
        """
        file = str(self.folder / name)
        try:
            address, _ = interface_network(text)
            if interface in self.marks.devices:
                is_valid = self.marks.address(file, line, interface, text, scope)
            else:
                is_valid = not scope and not is_marked(address)
        except ValueError:
            is_valid = False
        if not is_valid:
            self.wrong(name, line, text)
        elif interface not in self.marks.devices:
            self._require_one_address(name, line, interface, text)
            self.addresses.append(OwnAddress(interface, address, file, line))
            self._note_network(name, line, interface, text)

    def _require_one_address(self, name: str, line: int, interface: str, text: str) -> None:
        """Note a second address of one family on an interface (arguments as in `address`)."""
        address, _ = interface_network(text)
        for earlier in self.addresses:
            same_family = (":" in earlier.address) == (":" in address)
            if earlier.port == interface and same_family and earlier.address != address:
                self.wrong(name, line, f"{text} on {interface}, which has {earlier.address}")

    def _note_network(self, name: str, line: int, interface: str, text: str) -> None:
        """Note the network of an address: of a loopback, a link or hosts.

        The arguments are as in `address`.
        """
        file, (address, _) = str(self.folder / name), interface_network(text)
        is_ipv6, length = ":" in address, text.rpartition("/")[2]
        if interface == "lo":
            self.claims.append(Claim("loopback", (address,), file, line))
            # With a shorter length the whole network of the hosts would be the switch's own.
            if length != (LOOPBACK_LENGTHS[1] if is_ipv6 else LOOPBACK_LENGTHS[0]):
                self.wrong(name, line, text)
        elif length == (LINK_LENGTHS[1] if is_ipv6 else LINK_LENGTHS[0]):
            self.link_ends[_other_end(address)] = interface
        elif not exact_address(address).is_link_local:
            self.host_networks.append(HostNetwork(interface, f"{address}/{length}", file, line))
        elif length != LINK_LOCAL_LENGTH:
            self.wrong(name, line, text)

    def add_rule(self, interface: str, preference: int, table: int) -> bool:
        """Note a policy rule; False: there is one for the same packets already."""
        if interface not in self.marks.devices:
            is_new = interface not in self.rules
            self.rules.setdefault(interface, table)
            return is_new
        rules_of_device = self.marks.rules.setdefault(interface, {})
        is_new = preference not in rules_of_device
        rules_of_device.setdefault(preference, table)
        return is_new

    def read_settings(self, target: str) -> None:
        """Read sysctl.conf, the script that loads all files, and its systemd unit.

        Their texts have to be those that the templates of the target make of what was read before.
        """
        links = [{"interface": str(c.value[0])} for c in self.claims if c.kind == "far end"]
        hosts = self.host_networks[0].interface if self.host_networks else ""
        addresses = (stated.address for stated in self.addresses)
        link_local = [address for address in addresses if address.startswith("fe80")]
        switch = {
            "node": self.folder.name,
            "links": links,
            "hosts": hosts,
            "host_ports": self.members.get(hosts, ()),
            "link_local": link_local[0] if link_local else "",
        }
        seed = self._read_sysctl()
        variables = {"switch": switch, "marks": self.marks.template_variables(), "seed": seed}
        for name in ("sysctl.conf", "load.sh", "polarfab.service"):
            template = f"{target}/{name}.j2"
            for line, text in differing_lines_of_file(self.folder / name, template, **variables):
                self.unknown(name, line, text)

    def _read_sysctl(self) -> int:
        """Note the settings of sysctl.conf, and return the seed of the kernel's hash; 0: none."""
        file, seed = self.folder / "sysctl.conf", 0
        for line, text in enumerate(exact_lines(read_exact(file)), 1):
            key, _, value = text.partition(" = ")
            if key in SETTINGS and is_number(value):
                number = exact_number(value)
                self.claims.append(Claim("setting", (key, number), str(file), line))
                if key.endswith("seed"):
                    seed = number
        return seed

    def tables(
        self, name: str, engine: TextEngine, next_hops: Mapping[str, RouteHop]
    ) -> dict[int, Lookup]:
        """The routing tables of a file, by number; also notes `throw` routes and discards.

        Args:
            name: the name of the file.
            engine: the engine that read it.
            next_hops: the meaning of each next hop's text; one without ports discards.
        """
        file, routes = str(self.folder / name), engine.routes.get("", RouteLines())
        # The texts of next hops with which a lookup ends.
        final_hops = {text for text, next_hop in next_hops.items() if _ends_lookup(next_hop)}
        for prefix, text, line in routes.rows(*final_hops):
            if next_hops[text].metric == THROWN:
                self.marks.thrown.setdefault(next_hops[text].table, []).append(prefix)
            else:
                self.discards.append((prefix, file, line))
        for prefix in routes.uncovered({prefix for prefix, *_ in self.discards}):
            self.wrong(name, 0, f"no route that discards what is near {prefix}")
        other_hops = {
            text: next_hop for text, next_hop in next_hops.items() if text not in final_hops
        }
        return routes.tables(file, other_hops)

    def switch(
        self, file: str, tables: Mapping[int, Lookup], hops: Collection[NextHop]
    ) -> EmittedSwitch:
        """The forwarding of the router, once every file was read.

        Args:
            file: the file with the routes.
            tables: the routing tables, by number.
            hops: the next hops in them.
        """
        for line, text in self.marks.faults(self.up, self.rules):
            self.wrong("links.batch" if line else "rules.batch", line, text)
        self.claims += self.marks.claims(tables)
        self._check_interfaces()
        self._claim_host_networks()
        main = (tables[KERNEL_MAIN],) if KERNEL_MAIN in tables else ()
        by_ingress: dict[Port, tuple[Lookup, ...]] = {
            port: (tables[table], *main)
            for interface, table in self.rules.items()
            for port in self.members.get(interface, [interface])
            if table in tables
        }
        looked_up = {KERNEL_MAIN, *self.rules.values(), *self.marks.tables()}
        unused = [
            (file, int(tables[table].rows.lines.min()), f"table {table}")
            for table in tables.keys() - looked_up
        ]
        for table in sorted(looked_up - tables.keys() - {KERNEL_MAIN}):
            self.wrong("rules.batch", 0, f"table {table}, in which nothing is")
        return EmittedSwitch(
            anywhere=main,
            by_ingress=by_ingress,
            claimed_kinds=CLAIM_KINDS,
            claims=self.claims,
            next_hops=list(hops),
            addresses=[*self.addresses, *(address for address, _ in self.marks.addresses)],
            discards=self.discards,
            unread=self.unread,
            unused=unused,
            wrong=self.faults,
        )

    def _claim_host_networks(self) -> None:
        """Claim the gateways of hosts at each port, those of a bridge at all of its ports."""
        for interface, address, file, line in self.host_networks:
            for port in self.members.get(interface, [interface]):
                self.claims.append(Claim("hosts", (address, Interface(port)), file, line))

    def _check_interfaces(self) -> None:
        """Note interfaces that are used and not set up, and interfaces that do not exist."""
        for stated in self.addresses:
            if stated.port not in self.up:
                text = f"{stated.address} on {stated.port}, which is not set up"
                self.faults.append((stated.file, stated.line, text))
        far_ends = [claim for claim in self.claims if claim.kind == "far end"]
        existing = {"lo", *self.members, *self.marks.devices}
        existing |= {str(stated.port) for stated in self.addresses}
        existing |= {port for ports in self.members.values() for port in ports}
        existing |= {str(claim.value[0]) for claim in far_ends}
        for interface in self.up.keys() - existing:
            self.wrong("links.batch", self.up[interface], f"{interface}, which is not there")
        for claim in far_ends:
            if claim.value[0] not in self.up:
                text = f"far end of {claim.value[0]}, which is not set up"
                self.faults.append((claim.file, claim.line, text))


@dataclass(slots=True)
class KernelActor:
    """The verbs of the grammars of routers on a Linux kernel, for one file."""

    files: RouterFiles
    """The files of the router, which get what the lines state."""
    name: str
    """The name of the file."""
    next_hops: dict[str, RouteHop] = field(default_factory=dict)
    """The meaning of what follows the prefix of a route, by its text."""
    hops: dict[int, NextHop] = field(default_factory=dict)
    """The address of each nexthop object, by its number."""
    port_sets: dict[int, PortSet] = field(default_factory=dict)
    """The ports and weights of each nexthop object, by its number."""

    @property
    def file(self) -> str:
        """The path of the file."""
        return str(self.files.folder / self.name)

    def wrong(self, line: int, text: str) -> None:
        """Note a line that is missing or wrong (`GrammarActor`)."""
        self.files.wrong(self.name, line, text)

    def unknown(self, line: int, text: str) -> None:
        """Note a line without a rule (`GrammarActor`): wrong where it changes where packets go."""
        if self.name in STEERING_FILES:
            self.files.wrong(self.name, line, text)
        else:
            self.files.unknown(self.name, line, text)

    def refuse(self, statement: Statement) -> None:
        """A statement that is known, and never right."""
        self.wrong(statement.line, statement.text)

    def up(self, statement: Statement, interface: str) -> None:
        """An interface that is set up."""
        self.files.up.setdefault(interface, statement.line)

    def mtu(self, statement: Statement, port: str, size: int) -> None:
        """The MTU of a port."""
        self.files.claims.append(Claim("mtu", (port, size), self.file, statement.line))

    def bridge(self, statement: Statement, bridge: str) -> None:  # noqa: ARG002
        """A bridge that is made."""
        self.files.members.setdefault(bridge, [])

    def member(self, statement: Statement, bridge: str, port: str) -> None:
        """A port of a bridge, and of no other."""
        other_bridges = self.files.members.keys() - {bridge}
        if any(port in self.files.members[name] for name in other_bridges):
            self.wrong(statement.line, statement.text)
        self.files.members.setdefault(bridge, []).append(port)

    def device(self, statement: Statement, device: str, port: str, mac: str) -> None:
        """A device for marked packets over a port."""
        self.files.marks.devices[device] = MarkedDevice(port, mac, statement.line)

    def address(self, statement: Statement, interface: str, address: str, scope: str) -> None:
        """An address of an interface."""
        self.files.address(self.name, statement.line, interface, address, scope)

    def far_end(self, statement: Statement, interface: str, node: str, port: str) -> None:
        """What is at the other end of a link."""
        value = Interface(interface), node, port
        self.files.claims.append(Claim("far end", value, self.file, statement.line))

    def node(self, statement: Statement, name: str) -> None:
        """The name of the router."""
        self.files.claims.append(Claim("node", (name,), self.file, statement.line))

    def rule(self, statement: Statement, interface: str, table: int, preference: int) -> None:
        """The table of what comes in on an interface."""
        is_valid = interface in self.files.up and 0 < preference < MAIN_RULE
        if not is_valid or not self.files.add_rule(interface, preference, table):
            self.wrong(statement.line, statement.text)

    def nexthop(self, statement: Statement, number: int, address: str, port: str) -> None:
        """A nexthop object: an address behind a port."""
        try:
            self.hops[number] = NextHop(port, address_text(address), self.file, statement.line)
        except ValueError:
            self.wrong(statement.line, statement.text)
        else:
            self.port_sets[number] = ((port_to(port, self.hops[number].address), 1),)

    def group(self, statement: Statement, number: int, members: str) -> None:
        """A nexthop object that shares packets among others."""
        parts = [member.partition(",") for member in members.split("/")]
        numbers = [
            (exact_number(nexthop), exact_number(weight))
            for nexthop, _, weight in parts
            if is_number(nexthop) and is_number(weight)
        ]
        valid_members = [
            (n, weight) for n, weight in numbers if n in self.hops and 0 < weight <= LARGEST_WEIGHT
        ]
        if len(valid_members) < len(parts):
            self.wrong(
                statement.line, f"{statement.text}, not of nexthops above with weights up to 256"
            )
        # The port set of a nexthop object that is no group has one port.
        port_of = {n: self.port_sets[n][0][0] for n, _ in valid_members}
        self.port_sets[number] = tuple((port_of[n], weight) for n, weight in valid_members)

    def throw(self, statement: Statement, table: int, network: str) -> None:  # noqa: ARG002
        """A prefix that a table throws on."""
        self.files.marks.thrown.setdefault(table, []).append(network)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str] | None:
        """Note the next hop of a route (`GrammarActor`)."""
        next_hop = self._route_hop(statement, kind, words)
        if next_hop is None:
            return None
        text = f"{kind} {statement.text}"
        self.next_hops[text] = next_hop
        one_table = ""  # `RouteHop` says the table of the kernel
        return one_table, text

    def _route_hop(self, statement: Statement, kind: str, words: Sequence[str]) -> RouteHop | None:
        """The meaning of a next hop; None: it makes no sense.

        Its kinds are `discard [TABLE]`, `throw TABLE`, `hop TABLE METRIC NUMBER` with the number of
        a nexthop object, and static routes of a daemon.
        """
        if kind == "discard":
            table = exact_number(words[0]) if words else KERNEL_MAIN
            return None if words and table == KERNEL_MAIN else RouteHop(table, DISCARD_METRIC, ())
        if kind == "throw":
            return RouteHop(exact_number(words[0]), THROWN, ())
        if kind == "hop":
            table, metric, number = map(exact_number, words)
            return RouteHop(table, metric, self.port_sets.get(number, ((f"nexthop {number}", 1),)))
        return self.static(statement)

    def static(self, statement: Statement) -> RouteHop | None:  # noqa: ARG002
        """A static route of a daemon, in its own words; None: it would not be installed."""
        return None


def _other_end(address: str) -> str:
    """The other of the two addresses in the network of a link."""
    near = exact_address(address)
    # The two addresses of a /31 or /127 differ in the last bit.
    return str(type(near)(int(near) ^ 1))


def _ends_lookup(next_hop: RouteHop) -> bool:
    """Whether a route ends a lookup: a `throw` route, or one of table main that discards."""
    return not next_hop.ports and (next_hop.metric == THROWN or next_hop.table == KERNEL_MAIN)
