"""Reader of files for `ip -batch` and `sysctl`, and of the routing tables that they make.

A packet is looked up in the tables of the rules for the interface where it came in, then in main.
In a table the route of the least metric whose next hop is up is taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
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
from compilers.readers.route_tables import RouteLines, RouteWay
from compilers.readers.routers.iproute_marks import CLAIMED as MARKS_CLAIMED
from compilers.readers.routers.iproute_marks import MarkedDevices, is_marked, way_to
from compilers.readers.script_text import unlike_file
from compilers.readers.text_lines import TextLines

MAIN = 254
PARTS = ("addresses", "links", "routes", "rules")
"""Files for `ip -batch`."""
OURS = ["protocol", "80"]
LAST = "4000000000"
"""The metric of routes that discard."""
MACVLAN = ["type", "macvlan", "mode", "private"]
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
ROUTES = dict.fromkeys(("route replace unreachable ", "route replace throw ", "route replace "))
"""How routes begin: those that discard, those that throw on, and those to a nexthop object."""
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
    up: set[str] = field(default_factory=set)
    rules: dict[str, int] = field(default_factory=dict)
    discards: list[tuple[str, str, int]] = field(default_factory=list)
    blocks: list[tuple[str, str, str, int]] = field(default_factory=list)
    marks: MarkedDevices = field(init=False)

    def __post_init__(self) -> None:
        self.marks = MarkedDevices(self.folder)

    def lines(self, name: str) -> list[tuple[int, str]]:
        """The lines of a file that say something, with their numbers.

        Raises:
            OSError: there is no such file.
        """
        return self.but_routes(name, RouteLines(), {})

    def but_routes(
        self,
        name: str,
        routes: RouteLines,
        heads: Mapping[str, bool | None],
        comment: str = "#",
    ) -> list[tuple[int, str]]:
        """The lines of a file that say something, but for its routes, which are added to others.

        Args:
            name: of the file.
            routes: takes them.
            heads: see `RouteLines.take`.
            comment: how lines begin that say nothing.

        Raises:
            OSError: there is no such file.
        """
        others = routes.take(TextLines.read(self.folder / name), heads)
        return [(line, text) for line, text in others if text and text[0] != comment]

    def unknown(self, name: str, line: int, text: str) -> None:
        """A line that nobody understands."""
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
        self.addresses.append(OwnAddress(interface, own, file, line))
        if interface == "lo":
            self.claims.append(Claim("loopback", (own,), file, line))
            if int(text.rpartition("/")[2]) != ip_address(own).max_prefixlen:
                self.wrong(name, line, text)  # else all of the block would be the switch's own
        elif not ip_address(own).is_link_local:
            self.blocks.append((interface, f"{own}/{text.rpartition('/')[2]}", file, line))
        elif not text.endswith("/64"):
            self.wrong(name, line, text)
        return None

    def far_end(self, name: str, line: int, interface: str, node: str, port: str) -> None:
        """What a description says of the other end of a link."""
        file = str(self.folder / name)
        self.claims.append(Claim("far end", (Interface(interface), node, port), file, line))

    def read_links(self) -> None:
        """links.batch: interfaces that are up, members of bridges, far ends."""
        name = "links.batch"
        for line, text in self.lines(name):
            match text.split():
                case ["link", "set", interface, "up"]:
                    self.up.add(interface)
                case ["link", "set", port, "mtu", size] if size.isdecimal():
                    file = str(self.folder / name)
                    self.claims.append(Claim("mtu", (Interface(port), int(size)), file, line))
                case ["link", "set", port, "master", bridge, "up"]:
                    self.members.setdefault(bridge, []).append(port)
                case ["link", "add", device, "link", port, "address", mac, *words] if (
                    words == MACVLAN and device not in self.marks.over
                ):
                    self.marks.over[device] = port, mac, line
                case ["address", "replace", address, "dev", device, *words] if (
                    device in self.marks.over and words in (["nodad"], ["scope", "host"])
                ):
                    self.address(name, line, device, address, " ".join(words[1:]))
                case ["route", "replace", "throw", prefix, *way] if _thrown(way):
                    self.marks.thrown.setdefault(_thrown(way), []).append(prefix)
                case ["link", "add", bridge, "type", "bridge"]:
                    self.members.setdefault(bridge, [])
                case ["link", "set", interface, "alias", far] if ":" in far:
                    node, _, port = far.partition(":")
                    self.far_end(name, line, interface, node, port)
                case ["link", "set", _, "down"]:
                    self.wrong(name, line, text)
                case _:
                    self.unknown(name, line, text)

    def read_rules(self) -> None:
        """rules.batch: the table of what comes in on an interface."""
        name = "rules.batch"
        for line, text in self.lines(name):
            match text.split():
                case ["rule", "add", "iif", interface, "lookup", table, "pref", pref, *ours] if (
                    ours == OURS
                    and table.isdecimal()
                    and pref.isdecimal()
                    and 0 < int(pref) < 32766
                    and self._led(interface, int(pref), int(table))
                ):
                    pass
                case _:
                    self.wrong(name, line, text)

    def _led(self, interface: str, preference: int, table: int) -> bool:
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
        for line, text in self.lines(name):
            key, _, value = text.partition(" = ")
            if key in SETTINGS and value.isdecimal():
                file = str(self.folder / name)
                self.claims.append(Claim("setting", (key, int(value)), file, line))
                seed = int(value) if key.endswith("seed") else seed
        all_known = {"switch": known, "marks": self.marks.known(), "seed": seed}
        for name in ("sysctl.conf", "load.sh", "polarfab.service"):
            for line, said in unlike_file(self.folder / name, f"{target}/{name}.j2", **all_known):
                self.unknown(name, line, said)

    def tables(
        self, name: str, routes: RouteLines, said: Mapping[str, RouteWay | None]
    ) -> dict[int, Lookup]:
        """The tables of routes; those that discard, and those that make no sense, are noted.

        Args:
            name: of the file where they stand.
            routes: all of them.
            said: what the text of each way says, without ports if it discards; None: nothing.
        """
        file = str(self.folder / name)
        last = [text for text, way in said.items() if not way or _ends(way)]
        for prefix, text, line in routes.rows(*last):
            way = said[text]
            if way and way.metric == THROWN:
                self.marks.thrown.setdefault(way.table, []).append(prefix)
            elif way:
                self.discards.append((prefix, file, line))
            else:
                self.wrong(name, line, f"{prefix} {text}")
        for prefix in routes.uncovered({prefix for prefix, *_ in self.discards}):
            self.wrong(name, 0, f"no route that discards what is near {prefix}")
        return routes.tables(
            file, {text: way for text, way in said.items() if not (way is None or _ends(way))}
        )

    def switch(
        self, file: str, tables: Mapping[int, Lookup], hops: Collection[NextHop]
    ) -> EmittedSwitch:
        """All of it, once every file was read.

        Args:
            file: where the routes stand.
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


def read_linux(folder: Path) -> EmittedSwitch:
    """A switch of target linux, from its folder.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files = RouterFiles(folder)
    loaded = (folder / "load.sh").read_text()
    for name in ("sysctl.conf", *(f"{part}.batch" for part in PARTS)):
        if not re.search(rf"^[^#\n]* {re.escape(name)}\b", loaded, re.MULTILINE):
            files.wrong("load.sh", 0, f"no line that loads {name}")
    files.read_links()
    name = "addresses.batch"
    for line, text in files.lines(name):
        match text.split():
            case ["address", "replace", address, "dev", interface, *rest] if rest in (
                [],
                ["nodad"],
            ):
                files.address(name, line, interface, address)
            case _:
                files.unknown(name, line, text)
    files.read_rules()
    files.read_settings("linux")
    return _read_routes(files)


def _read_routes(files: RouterFiles) -> EmittedSwitch:
    name = "routes.batch"
    file, routes = str(files.folder / name), RouteLines()
    hops: dict[int, NextHop] = {}
    groups: dict[int, list[tuple[int, int]]] = {}
    for line, text in files.but_routes(name, routes, ROUTES):
        match text.split():
            case ["nexthop", "replace", "id", number, "via", address, "dev", port, *ours] if (
                ours == OURS and number.isdecimal() and int(number) not in hops
            ):
                hops[int(number)] = NextHop(port, address_text(address), file, line)
            case ["nexthop", "replace", "id", number, "group", members, *ours] if (
                ours == OURS and number.isdecimal() and (shared := _group(members))
            ):
                groups[int(number)] = shared
            case _:
                files.wrong(name, line, text)
    stages: dict[int, Stage] = {
        number: ((way_to(str(hop.port), hop.address), 1),) for number, hop in hops.items()
    }
    for index, group in groups.items():
        stages[index] = tuple(
            (stages[to][0][0] if to in hops else f"nexthop {to}", weight) for to, weight in group
        )
    tables = files.tables(name, routes, {way: _route(way, stages) for way in routes.ways})
    return files.switch(file, tables, hops.values())


def _route(way: str, stages: Mapping[int, Stage]) -> RouteWay | None:
    """What `nhid N metric M table T protocol 80` says, or what discards behind all others."""
    match way.split():
        case ["unreachable", "metric", last, *ours] if last == LAST and ours == OURS:
            return RouteWay(MAIN, int(LAST), ())
        case ["unreachable", "metric", last, "table", table, *ours] if (
            last == LAST and ours == OURS and table.isdecimal() and int(table) != MAIN
        ):
            return RouteWay(int(table), int(LAST), ())
        case ["throw", *rest] if number := _thrown(rest):
            return RouteWay(number, THROWN, ())
        case ["nhid", nexthop, "metric", metric, "table", table, *ours] if (
            ours == OURS and nexthop.isdecimal() and metric.isdecimal() and table.isdecimal()
        ):
            stage = stages.get(int(nexthop), ((f"nexthop {nexthop}", 1),))
            return RouteWay(int(table), int(metric), stage)
    return None


def _ends(way: RouteWay) -> bool:
    """Whether a route throws on, or discards behind all tables."""
    return not way.stage and (way.metric == THROWN or way.table == MAIN)


def _thrown(way: list[str]) -> int:
    """The table that throws on by `metric 1 table T protocol 80`, 0: it is no such route."""
    match way:
        case ["metric", "1", "table", table, *ours] if ours == OURS and table.isdecimal():
            return int(table)
    return 0


def _group(members: str) -> list[tuple[int, int]] | None:
    """The nexthop objects of `ID,WEIGHT/ID,WEIGHT` and their weights."""
    found = []
    for member in members.split("/"):
        number, _, weight = member.partition(",")
        if not number.isdecimal() or not weight.isdecimal() or not 0 < int(weight) <= 256:
            return None
        found.append((int(number), int(weight)))
    return found
