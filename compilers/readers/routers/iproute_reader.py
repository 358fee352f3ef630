"""The files of a Linux router for `ip -batch` and `sysctl`, and the routing tables that they make.

The readers of targets linux, frr and bird, which share these files, have `kernel_actor` read them
into a `RouterFiles`. When all files are read, `RouterFiles.finish` makes the `EmittedSwitch`.

The kernel looks a packet up in the tables of the policy rules for the interface where it came in,
then in table main. In a table it takes the route of the least metric whose next hop is up
(ip-rule(8), ip-route(8)).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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
    interface_network,
)
from compilers.readers.exact_text import (
    exact_address,
    exact_lines,
    exact_number,
    is_number,
    read_exact,
)
from compilers.readers.grammar.text_engine import TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import MARK_CLAIM_KINDS, MarkedDevices, is_marked
from compilers.readers.script_text import differing_lines_of_file

KERNEL_MAIN = 254
"""The number of table main."""
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
LINK_LENGTH = {"ipv4": "31", "ipv6": "127"}
"""The prefix length of the two addresses of a link."""
LOOPBACK_LENGTH = {"ipv4": "32", "ipv6": "128"}
"""The prefix length of a loopback address."""
LINK_LOCAL_LENGTH = "64"
"""The prefix length of a link-local address."""
THROWN = -1
"""In the place of the metric: a `throw` route, which ends the lookup in its table."""
CLAIM_KINDS = MARK_CLAIM_KINDS | {"hosts", "loopback", "far end", "setting", "mtu"}
"""The kinds of claims that the files have to make in full. A *claim* is a fact besides forwarding
that a line states."""


class GatewayAddress(NamedTuple):
    """The address of the router as the gateway of its hosts."""

    interface: str
    """The interface of the hosts."""
    address: str
    """The address, with the length of the hosts' network."""
    file: str
    """The file that states it."""
    line: int
    """The line that states it."""


@dataclass(slots=True)
class RouterFiles:
    """The contents of one router's files, while they are read.

    `KernelActor` notes the statements of each file here. Then `read_tables` turns routes into
    routing tables, and `finish` checks what only all files together show.
    """

    folder: Path
    """The folder of the router."""

    # Interfaces

    up: dict[str, int] = field(default_factory=dict)
    """The interfaces that are set up, with the line of each."""
    members: dict[str, list[str]] = field(default_factory=dict)
    """The ports of each bridge."""
    addresses: list[OwnAddress] = field(default_factory=list)
    """The addresses of interfaces, except those of devices for marked packets."""
    gateways: list[GatewayAddress] = field(default_factory=list)
    """Those of `addresses` that are gateways of hosts."""
    link_ends: dict[str, str] = field(default_factory=dict)
    """The interface by the address at the far end of its link, where links have addresses."""

    # Routing

    rules: dict[str, int] = field(default_factory=dict)
    """The table of each interface's policy rule."""
    discards: list[Discard] = field(default_factory=list)
    """The discarded prefixes."""
    marks: MarkedDevices = field(init=False)
    """The devices for marked packets, with their addresses, rules and `throw` routes."""

    # Everything else that the files state

    claims: list[Claim] = field(default_factory=list)
    """The facts that lines state besides forwarding."""
    unread: list[LineText] = field(default_factory=list)
    """The statements that no rule reads."""
    wrong: list[LineText] = field(default_factory=list)
    """The faults: statements that are wrong or missing."""

    def __post_init__(self) -> None:
        self.marks = MarkedDevices(self.folder)

    def far_ends(self) -> dict[str, str]:
        """The node and the port at the far end of each port."""
        values = (claim.value for claim in self.claims if claim.kind == "far end")
        return {str(port): f"{node} {far_port}" for port, node, far_port in values}

    def add_unread(self, name: str, line: int, text: str) -> None:
        """Note a line that no rule reads, in the file of a name."""
        self.unread.append((str(self.folder / name), line, text))

    def add_wrong(self, name: str, line: int, text: str) -> None:
        """Note a fault: a line that is wrong, or with line 0 one that is missing."""
        self.wrong.append((str(self.folder / name), line, text))

    def add_address(self, name: str, line: int, interface: str, text: str, scope: str = "") -> None:
        """Note an address of an interface, or a fault if such an interface cannot have it.

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
                is_valid = self.marks.add_address(file, line, interface, text, scope)
            else:
                is_valid = not scope and not is_marked(address)
        except ValueError:
            is_valid = False
        if not is_valid:
            self.add_wrong(name, line, text)
        elif interface not in self.marks.devices:
            self._require_one_address(name, line, interface, text)
            self.addresses.append(OwnAddress(interface, address, file, line))
            self._note_network(name, line, interface, text)

    def _require_one_address(self, name: str, line: int, interface: str, text: str) -> None:
        """Note a second address of one family on an interface (arguments as in `add_address`)."""
        address, _ = interface_network(text)
        for earlier in self.addresses:
            same_family = (":" in earlier.address) == (":" in address)
            if earlier.port == interface and same_family and earlier.address != address:
                self.add_wrong(name, line, f"{text} on {interface}, which has {earlier.address}")

    def _note_network(self, name: str, line: int, interface: str, text: str) -> None:
        """Note the network of an address: of a loopback, a link or hosts.

        The arguments are as in `add_address`.
        """
        file = str(self.folder / name)
        address, _ = interface_network(text)
        family = "ipv6" if ":" in address else "ipv4"
        length = text.rpartition("/")[2]
        if interface == "lo":
            self.claims.append(Claim("loopback", (address,), file, line))
            # With a shorter length the whole network of the hosts would be the switch's own.
            if length != LOOPBACK_LENGTH[family]:
                self.add_wrong(name, line, text)
        elif length == LINK_LENGTH[family]:
            self.link_ends[_other_end(address)] = interface
        elif not exact_address(address).is_link_local:
            self.gateways.append(GatewayAddress(interface, f"{address}/{length}", file, line))
        elif length != LINK_LOCAL_LENGTH:
            self.add_wrong(name, line, text)

    def add_rule(self, interface: str, preference: int, table: int) -> bool:
        """Note a policy rule; False: there is one for the same packets already.

        The preference gives the order of rules for the same packets. Only devices for marked
        packets have several rules, one behind the other.
        """
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
        links = [{"interface": interface} for interface, _ in self._far_ends()]
        hosts = self.gateways[0].interface if self.gateways else ""
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
                self.add_unread(name, line, text)

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

    def read_tables(
        self, name: str, engine: TextEngine, next_hops: Mapping[str, RouteHop]
    ) -> dict[int, Lookup]:
        """Make the routing tables of a file, and note its `throw` routes and discards.

        Args:
            name: the name of the file.
            engine: the engine that read it.
            next_hops: by the text behind a route's prefix, the next hop; one without ports
                discards.

        Returns:
            The tables, by number.
        """
        file, routes = str(self.folder / name), engine.routes.get("", RouteLines())
        lookup_ends = {text for text, next_hop in next_hops.items() if _ends_lookup(next_hop)}
        for prefix, text, line in routes.rows(*lookup_ends):
            if next_hops[text].metric == THROWN:
                self.marks.thrown.setdefault(next_hops[text].table, []).append(prefix)
            else:
                self.discards.append((prefix, file, line))
        for prefix in routes.uncovered({prefix for prefix, *_ in self.discards}):
            self.add_wrong(name, 0, f"no route that discards what is near {prefix}")
        other_hops = {
            text: next_hop for text, next_hop in next_hops.items() if text not in lookup_ends
        }
        return routes.tables(file, other_hops)

    def finish(
        self, file: str, tables: Mapping[int, Lookup], next_hops: Collection[NextHop]
    ) -> EmittedSwitch:
        """Check what only all files together show, and return the forwarding of the router.

        Args:
            file: the file with the routes.
            tables: the routing tables, by number.
            next_hops: the next hops in them.
        """
        for line, text in self.marks.faults(self.up, self.rules):
            self.add_wrong("links.batch" if line else "rules.batch", line, text)
        self.claims += self.marks.claims(tables)
        self._check_interfaces()
        self._claim_gateways()
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
            self.add_wrong("rules.batch", 0, f"table {table}, in which nothing is")
        return EmittedSwitch(
            anywhere=main,
            by_ingress=by_ingress,
            claimed_kinds=CLAIM_KINDS,
            claims=self.claims,
            next_hops=list(next_hops),
            addresses=[*self.addresses, *self.marks.addresses],
            discards=self.discards,
            unread=self.unread,
            unused=unused,
            wrong=self.wrong,
        )

    def _claim_gateways(self) -> None:
        """Claim the gateways of hosts at each port, those of a bridge at all of its ports."""
        for interface, address, file, line in self.gateways:
            for port in self.members.get(interface, [interface]):
                self.claims.append(Claim("hosts", (address, Interface(port)), file, line))

    def _check_interfaces(self) -> None:
        """Note interfaces that are used and not set up, and interfaces that do not exist."""
        for stated in self.addresses:
            if stated.port not in self.up:
                text = f"{stated.address} on {stated.port}, which is not set up"
                self.wrong.append((stated.file, stated.line, text))
        far_ends = list(self._far_ends())
        existing = {"lo", *self.members, *self.marks.devices}
        existing |= {str(stated.port) for stated in self.addresses}
        existing |= {port for ports in self.members.values() for port in ports}
        existing |= {interface for interface, _ in far_ends}
        for interface in self.up.keys() - existing:
            self.add_wrong("links.batch", self.up[interface], f"{interface}, which is not there")
        for interface, claim in far_ends:
            if interface not in self.up:
                text = f"far end of {interface}, which is not set up"
                self.wrong.append((claim.file, claim.line, text))

    def _far_ends(self) -> Iterator[tuple[str, Claim]]:
        """Yield the interface of each link whose far end is stated, and the claim."""
        for claim in self.claims:
            if claim.kind == "far end":
                interface, *_ = claim.value
                yield str(interface), claim


def _other_end(address: str) -> str:
    """The other of the two addresses in the network of a link."""
    near = exact_address(address)
    # The two addresses of a /31 or /127 differ in the last bit.
    return str(type(near)(int(near) ^ 1))


def _ends_lookup(next_hop: RouteHop) -> bool:
    """Whether a route ends a lookup: a `throw` route, or one of table main that discards."""
    return not next_hop.ports and (next_hop.metric == THROWN or next_hop.table == KERNEL_MAIN)
