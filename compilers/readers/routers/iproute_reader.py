"""Reader of files for `ip -batch` and `sysctl`, and of the routing tables that they make.

A packet is looked up in the tables of the rules for the interface where it came in, then in main.
In a table the route of the least metric whose next hop is up is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    Lookup,
    NextHop,
    OwnAddress,
    Port,
    Stage,
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
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import CLAIMED as MARKS_CLAIMED
from compilers.readers.routers.iproute_marks import MarkedDevices, is_marked, port_to
from compilers.readers.script_text import unlike_file
from compilers.readers.text_lines import TextLines

MAIN = 254
MAIN_RULE = 32766
"""The preference of the rule that leads to table main."""
LARGEST_WEIGHT = 256
STEERING = ("routes.batch", "rules.batch")
"""Files of which every line steers packets."""
LAST = 4_000_000_000
"""The metric of routes that discard."""
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
"""What forwarding depends on."""
THROWN = -1
"""In the place of the metric of a route that throws on."""
CLAIMED = MARKS_CLAIMED | {"hosts", "loopback", "far end", "setting", "mtu"}


@dataclass(slots=True)
class RouterFiles:
    """What the files of one router say, while they are read."""

    folder: Path
    claims: list[Claim] = field(default_factory=list)
    addresses: list[OwnAddress] = field(default_factory=list)
    unread: list[tuple[str, int, str]] = field(default_factory=list)
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    up: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)
    discards: list[tuple[str, str, int]] = field(default_factory=list)
    blocks: list[tuple[str, str, str, int]] = field(default_factory=list)
    marks: MarkedDevices = field(init=False)

    def __post_init__(self) -> None:
        self.marks = MarkedDevices(self.folder)

    def read(self, target: str, name: str, actor: KernelActor | None = None) -> TextEngine:
        """Read a file by the grammar next to its template.

        Args:
            target: whose file it is.
            name: of the file.
            actor: what its statements do.

        Raises:
            OSError: there is no such file.
            UnicodeDecodeError: it is no text in UTF-8.
        """
        engine = TextEngine(grammar(target, name), actor or KernelActor(self, name))
        engine.read(TextLines.read(self.folder / name))
        return engine

    def unknown(self, name: str, line: int, text: str) -> None:
        """A line that is not understood."""
        self.unread.append((str(self.folder / name), line, text))

    def wrong(self, name: str, line: int, text: str) -> None:
        """A line that is missing, or understood and wrong."""
        self.faults.append((str(self.folder / name), line, text))

    def address(self, name: str, line: int, interface: str, text: str, scope: str = "") -> None:
        """An address with its length, on an interface."""
        file = str(self.folder / name)
        try:
            own, _ = interface_network(text)
            if interface in self.marks.over:
                if not self.marks.address(file, line, interface, text, scope):
                    self.wrong(name, line, text)
                return None
        except ValueError:
            return self.wrong(name, line, text)
        if scope or is_marked(own):
            return self.wrong(name, line, text)
        six = ":" in own
        for other in self.addresses:
            if (other.port, ":" in other.address) == (interface, six) and other.address != own:
                self.wrong(name, line, f"{text} on {interface}, which has {other.address}")
        self.addresses.append(OwnAddress(interface, own, file, line))
        if interface == "lo":
            self.claims.append(Claim("loopback", (own,), file, line))
            if not text.endswith(("/32", "/128")[":" in own]):
                self.wrong(name, line, text)  # else all of the block would be the switch's own
        elif not exact_address(own).is_link_local:
            self.blocks.append((interface, f"{own}/{text.rpartition('/')[2]}", file, line))
        elif not text.endswith("/64"):
            self.wrong(name, line, text)
        return None

    def led(self, interface: str, preference: int, table: int) -> bool:
        """Note a rule; False where there is one already."""
        if interface not in self.marks.over:
            new = interface not in self.rules
            self.rules.setdefault(interface, table)
            return new
        of_device = self.marks.rules.setdefault(interface, {})
        new = preference not in of_device
        of_device.setdefault(preference, table)
        return new

    def read_settings(self, target: str) -> None:
        """sysctl.conf, and the script and the unit of a target: their text is known."""
        links = [{"interface": str(c.value[0])} for c in self.claims if c.kind == "far end"]
        hosts = next((interface for interface, *_ in self.blocks), "")
        ports = self.members.get(hosts, ())
        fixed = [own.address for own in self.addresses if own.address.startswith("fe80")]
        known = {"node": self.folder.name, "links": links, "hosts": hosts, "host_ports": ports}
        known["link_local"] = "".join(fixed[:1])
        seed, name = 0, "sysctl.conf"
        for line, text in enumerate(exact_lines(read_exact(self.folder / name)), 1):
            key, _, value = text.partition(" = ")
            if key in SETTINGS and is_number(value):
                file = str(self.folder / name)
                self.claims.append(Claim("setting", (key, exact_number(value)), file, line))
                seed = exact_number(value) if key.endswith("seed") else seed
        all_known = {"switch": known, "marks": self.marks.known(), "seed": seed}
        for name in ("sysctl.conf", "load.sh", "polarfab.service"):
            for line, said in unlike_file(self.folder / name, f"{target}/{name}.j2", **all_known):
                self.unknown(name, line, said)

    def tables(
        self, name: str, engine: TextEngine, next_hops: Mapping[str, RouteHop]
    ) -> dict[int, Lookup]:
        """The tables of routes; those that discard or throw on are noted.

        Args:
            name: of the file where they are.
            engine: that read it.
            next_hops: what the text of each says, without ports if it discards.
        """
        file, routes = str(self.folder / name), engine.routes.get("", RouteLines())
        last = {text for text, next_hop in next_hops.items() if _ends(next_hop)}
        for prefix, text, line in routes.rows(*last):
            if next_hops[text].metric == THROWN:
                self.marks.thrown.setdefault(next_hops[text].table, []).append(prefix)
            else:
                self.discards.append((prefix, file, line))
        for prefix in routes.uncovered({prefix for prefix, *_ in self.discards}):
            self.wrong(name, 0, f"no route that discards what is near {prefix}")
        return routes.tables(
            file, {text: next_hop for text, next_hop in next_hops.items() if text not in last}
        )

    def switch(
        self, file: str, tables: Mapping[int, Lookup], hops: Collection[NextHop]
    ) -> EmittedSwitch:
        """All of it, once every file was read.

        Args:
            file: where the routes are.
            tables: made of them.
            hops: the addresses to which they lead.
        """
        for line, what in self.marks.faults(self.up, self.rules):
            self.wrong("links.batch" if line else "rules.batch", line, what)
        self.claims += self.marks.claims(tables)
        for own in self.addresses:
            if own.port not in self.up:
                what = f"{own.address} on {own.port}, which is not set up"
                self.faults.append((own.file, own.line, what))
        known = {"lo", *self.members, *self.marks.over, *(own.port for own in self.addresses)}
        known |= {port for ports in self.members.values() for port in ports}
        known |= {claim.value[0] for claim in self.claims if claim.kind == "far end"}
        for interface in self.up.keys() - known:
            self.wrong("links.batch", self.up[interface], f"{interface}, which is not there")
        for claim in self.claims:
            if claim.kind == "far end" and claim.value[0] not in self.up:
                what = f"far end of {claim.value[0]}, which is not set up"
                self.faults.append((claim.file, claim.line, what))
        for interface, block, place, line in self.blocks:
            for port in self.members.get(interface, [interface]):
                self.claims.append(Claim("hosts", (block, Interface(port)), place, line))
        main = (tables[MAIN],) if MAIN in tables else ()
        by_ingress: dict[Port, tuple[Lookup, ...]] = {
            port: (tables[table], *main)
            for interface, table in self.rules.items()
            for port in self.members.get(interface, [interface])
            if table in tables
        }
        led = {MAIN, *self.rules.values(), *self.marks.tables()}
        unused = [
            (file, int(tables[table].rows.lines.min()), f"table {table}")
            for table in tables.keys() - led
        ]
        rules = str(self.folder / "rules.batch")
        for table in sorted(led - tables.keys() - {MAIN}):
            self.faults.append((rules, 0, f"table {table}, in which nothing is"))
        return EmittedSwitch(
            main,
            by_ingress,
            CLAIMED,
            self.claims,
            list(hops),
            [*self.addresses, *(own for own, _ in self.marks.addresses)],
            self.discards,
            self.unread,
            unused,
            self.faults,
        )


@dataclass(slots=True)
class KernelActor:
    """What the statements of a file do: the verbs of the grammars of routers on a kernel.

    next_hops: of each text behind a prefix, what such a route does. hops: by number of a nexthop
    object.
    """

    files: RouterFiles
    name: str
    next_hops: dict[str, RouteHop] = field(default_factory=dict)
    hops: dict[int, NextHop] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The whole name of the file."""
        return str(self.files.folder / self.name)

    def wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.wrong`."""
        self.files.wrong(self.name, line, text)

    def unknown(self, line: int, text: str) -> None:
        """See `GrammarActor.unknown`: any rule or route changes where packets go."""
        (self.files.wrong if self.name in STEERING else self.files.unknown)(self.name, line, text)

    def refuse(self, place: Place) -> None:
        """A statement that is known, and never right."""
        self.wrong(place.line, place.text)

    def up(self, place: Place, interface: str) -> None:
        """An interface that is set up."""
        self.files.up.setdefault(interface, place.line)

    def mtu(self, place: Place, port: str, size: int) -> None:
        """The MTU of a port."""
        self.files.claims.append(Claim("mtu", (port, size), self.file, place.line))

    def bridge(self, place: Place, bridge: str) -> None:  # noqa: ARG002
        """A bridge that is made."""
        self.files.members.setdefault(bridge, [])

    def member(self, place: Place, bridge: str, port: str) -> None:
        """A port of a bridge, and of no other."""
        if any(port in ports for other, ports in self.files.members.items() if other != bridge):
            self.wrong(place.line, place.text)
        self.files.members.setdefault(bridge, []).append(port)

    def device(self, place: Place, device: str, port: str, mac: str) -> None:
        """A device for marked packets over a port."""
        self.files.marks.over[device] = port, mac, place.line

    def address(self, place: Place, interface: str, address: str, scope: str) -> None:
        """An address of an interface."""
        self.files.address(self.name, place.line, interface, address, scope)

    def far_end(self, place: Place, interface: str, node: str, port: str) -> None:
        """What is at the other end of a link."""
        value = Interface(interface), node, port
        self.files.claims.append(Claim("far end", value, self.file, place.line))

    def node(self, place: Place, name: str) -> None:
        """The name of the router."""
        self.files.claims.append(Claim("node", (name,), self.file, place.line))

    def rule(self, place: Place, interface: str, table: int, preference: int) -> None:
        """The table of what comes in on an interface."""
        right = interface in self.files.up and 0 < preference < MAIN_RULE
        if not right or not self.files.led(interface, preference, table):
            self.wrong(place.line, place.text)

    def nexthop(self, place: Place, number: int, address: str, port: str) -> None:
        """A nexthop object: an address behind a port."""
        try:
            self.hops[number] = NextHop(port, address_text(address), self.file, place.line)
        except ValueError:
            return self.wrong(place.line, place.text)
        self.stages[number] = ((port_to(port, self.hops[number].address), 1),)
        return None

    def group(self, place: Place, number: int, members: str) -> None:
        """A nexthop object that shares packets among others."""
        parts = [member.partition(",") for member in members.split("/")]
        numbers = [
            (exact_number(to), exact_number(weight))
            for to, _, weight in parts
            if is_number(to) and is_number(weight)
        ]
        known = [(to, w) for to, w in numbers if to in self.hops and 0 < w <= LARGEST_WEIGHT]
        if len(known) < len(parts):
            self.wrong(place.line, f"{place.text}, not of nexthops above with weights up to 256")
        self.stages[number] = tuple((self.stages[to][0][0], w) for to, w in known)

    def throw(self, place: Place, table: int, network: str) -> None:  # noqa: ARG002
        """A prefix that a table throws on."""
        self.files.marks.thrown.setdefault(table, []).append(network)

    def next_hop(self, place: Place, kind: str, *words: str) -> tuple[str, str] | None:
        """A route: `discard [TABLE]`, `throw TABLE`, `hop TABLE METRIC NUMBER`, or one of FRR."""
        next_hop: RouteHop | None
        if kind == "discard":
            next_hop = RouteHop(exact_number(words[0]) if words else MAIN, LAST, ())
            next_hop = None if words and next_hop.table == MAIN else next_hop
        elif kind == "throw":
            next_hop = RouteHop(exact_number(words[0]), THROWN, ())
        elif kind == "hop":
            table, metric, number = map(exact_number, words)
            next_hop = RouteHop(table, metric, self.stages.get(number, ((f"nexthop {number}", 1),)))
        else:
            next_hop = self.static(place)
        if next_hop is None:
            return None
        text = f"{kind} {place.text}"
        self.next_hops[text] = next_hop
        return "", text

    def static(self, place: Place) -> RouteHop | None:  # noqa: ARG002
        """A route of FRR."""
        return None


def _ends(next_hop: RouteHop) -> bool:
    """Whether a route throws on, or discards behind all tables."""
    return not next_hop.stage and (next_hop.metric == THROWN or next_hop.table == MAIN)
