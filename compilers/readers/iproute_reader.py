"""Reader of files for `ip -batch` and `sysctl`, and of the routing tables that they make.

A packet is looked up in the tables of the rules for the interface where it came in, then in main.
In a table the route of the least metric whose next hop is up is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path

from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedRows,
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

MAIN = 254
OURS = ["protocol", "80"]
SETTINGS = (
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/fib_multipath_hash_policy",
    "net/ipv6/fib_multipath_hash_policy",
)
"""What forwarding depends on."""
CLAIMED = frozenset({"hosts", "loopback", "far end", "setting"})
Row = tuple[int, int]
"""The metric of a route, and what it leads to: a number of the reader's own."""


@dataclass(slots=True)
class RoutingTables:
    """The routes of a switch by table and prefix, while they are read.

    lines: that of the first row of each prefix.
    """

    file: str
    rows: dict[int, dict[str, list[Row]]] = field(default_factory=dict)
    lines: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, table: int, prefix: str, row: Row, line: int) -> None:
        """One route more."""
        if table not in self.rows:
            self.rows[table], self.lines[table] = {}, {}
        rows = self.rows[table].get(prefix)
        if rows is None:
            self.rows[table][prefix] = [row]
            self.lines[table][prefix] = line
        else:
            rows.append(row)

    def lookups(self, stages: Mapping[int, Stage]) -> dict[int, Lookup]:
        """Every table; rows of one metric are one stage.

        Args:
            stages: what a route leads to, by the number of the reader's own.
        """
        return {table: self._lookup(table, stages) for table in self.rows}

    def _lookup(self, table: int, stages: Mapping[int, Stage]) -> Lookup:
        number: dict[tuple[Row, ...], int] = {}
        rows = self.rows[table]
        entries = [number.setdefault(tuple(sorted(r)), len(number)) for r in rows.values()]
        chains = [tuple(_stages(key, stages)) for key in number]
        lines = list(self.lines[table].values())
        return Lookup(
            EmittedRows(self.file, list(rows), entries, lines), lambda entry, _: chains[entry]
        )


def _stages(rows: tuple[Row, ...], stages: Mapping[int, Stage]) -> Iterator[Stage]:
    by_metric: dict[int, list[tuple[Port, int]]] = {}
    for metric, to in rows:
        by_metric.setdefault(metric, []).extend(stages.get(to, ((f"nexthop {to}", 1),)))
    yield from (tuple(stage) for _, stage in sorted(by_metric.items()))


@dataclass(slots=True)
class RouterFiles:
    """What the files of one router say, while they are read."""

    folder: Path
    claims: list[Claim] = field(default_factory=list)
    addresses: list[OwnAddress] = field(default_factory=list)
    unread: list[tuple[str, int, str]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    up: set[str] = field(default_factory=set)
    rules: dict[str, int] = field(default_factory=dict)
    discards: list[tuple[str, str, int]] = field(default_factory=list)
    blocks: list[tuple[str, str, str, int]] = field(default_factory=list)

    def lines(self, name: str, comment: str = "#") -> Iterator[tuple[int, str]]:
        """The lines of a file that say something, with their numbers.

        Raises:
            OSError: there is no such file.
        """
        text = (self.folder / name).read_text()
        for line, words in enumerate(text.splitlines(), 1):
            if words and words[0] != comment:
                yield line, words

    def unknown(self, name: str, line: int, text: str) -> None:
        """A line that nobody understands."""
        self.unread.append((str(self.folder / name), line, text))

    def address(self, name: str, line: int, interface: str, text: str) -> None:
        """An address with its length, on an interface."""
        try:
            own, _ = interface_network(text)
        except ValueError:
            return self.unknown(name, line, text)
        file = str(self.folder / name)
        self.addresses.append(OwnAddress(interface, own, file, line))
        if interface == "lo":
            self.claims.append(Claim("loopback", (own,), file, line))
        elif not ip_address(own).is_link_local:
            self.blocks.append((interface, f"{own}/{text.rpartition('/')[2]}", file, line))
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
                case ["link", "set", port, "master", bridge, "up"]:
                    self.members.setdefault(bridge, []).append(port)
                case ["link", "add", bridge, "type", "bridge"]:
                    self.members.setdefault(bridge, [])
                case ["link", "set", interface, "alias", far] if ":" in far:
                    node, _, port = far.partition(":")
                    self.far_end(name, line, interface, node, port)
                case _:
                    self.unknown(name, line, text)

    def read_rules(self) -> None:
        """rules.batch: the table of what comes in on an interface."""
        name = "rules.batch"
        for line, text in self.lines(name):
            match text.split():
                case ["rule", "add", "iif", interface, "lookup", table, "pref", pref, *ours] if (
                    ours == OURS
                    and interface not in self.rules
                    and table.isdecimal()
                    and pref.isdecimal()
                    and 0 < int(pref) < 32766
                ):
                    self.rules[interface] = int(table)
                case _:
                    self.unknown(name, line, text)

    def read_settings(self) -> None:
        """sysctl.conf: what forwarding depends on."""
        name = "sysctl.conf"
        for line, text in self.lines(name):
            key, equals, value = text.partition(" = ")
            if not equals or not value.lstrip("-").isdecimal():
                self.unknown(name, line, text)
            elif key in SETTINGS:
                file = str(self.folder / name)
                self.claims.append(Claim("setting", (key, int(value)), file, line))

    def switch(
        self, tables: RoutingTables, stages: Mapping[int, Stage], hops: Mapping[int, NextHop]
    ) -> EmittedSwitch:
        """All of it, once every file was read.

        Args:
            tables: the routes.
            stages: what they lead to, by the number of the reader's own.
            hops: the addresses behind these.
        """
        for own in self.addresses:
            if own.port not in self.up:
                what = f"{own.address} on {own.port}, which is not set up"
                self.unread.append((own.file, own.line, what))
        for interface, block, file, line in self.blocks:
            for port in self.members.get(interface, [interface]):
                self.claims.append(Claim("hosts", (block, Interface(port)), file, line))
        lookups = tables.lookups(stages)
        empty = Lookup(EmittedRows(tables.file, (), (), ()), lambda _entry, _port: ())
        main = lookups.get(MAIN, empty)
        by_ingress: dict[Port, tuple[Lookup, ...]] = {
            port: (lookups[table], main)
            for interface, table in self.rules.items()
            for port in self.members.get(interface, [interface])
            if table in lookups
        }
        led = {MAIN, *self.rules.values()}
        unused = [
            (tables.file, min(tables.lines[table].values()), f"table {table}")
            for table in lookups.keys() - led
        ]
        rules = str(self.folder / "rules.batch")
        for table in sorted(led - lookups.keys() - {MAIN}):
            self.unread.append((rules, 0, f"table {table}, in which nothing is"))
        return EmittedSwitch(
            (main,),
            by_ingress,
            CLAIMED,
            self.claims,
            list(hops.values()),
            self.addresses,
            self.discards,
            self.unread,
            unused,
        )


def read_linux(folder: Path) -> EmittedSwitch:
    """A switch of target linux, from its folder.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files = RouterFiles(folder)
    for name in ("load.sh", "polarfab.service"):
        (folder / name).stat()
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
    files.read_links()
    files.read_rules()
    files.read_settings()
    return _read_routes(files)


def _read_routes(files: RouterFiles) -> EmittedSwitch:
    name = "routes.batch"
    tables = RoutingTables(str(files.folder / name))
    hops: dict[int, NextHop] = {}
    groups: dict[int, list[tuple[int, int]]] = {}
    for line, text in files.lines(name):
        if text.startswith("route replace "):
            prefix, _, rest = text[14:].partition(" ")
            route = _route(rest)
            if route:
                tables.add(route[0], prefix, route[1:], line)
                continue
        match text.split():
            case ["nexthop", "replace", "id", number, "via", address, "dev", port, *ours] if (
                ours == OURS and number.isdecimal() and int(number) not in hops
            ):
                hops[int(number)] = NextHop(port, address_text(address), tables.file, line)
            case ["nexthop", "replace", "id", number, "group", members, *ours] if (
                ours == OURS and number.isdecimal() and (shared := _group(members))
            ):
                groups[int(number)] = shared
            case ["route", "replace", "unreachable", prefix, "metric", metric, *ours] if (
                ours == OURS and metric == "4000000000"
            ):
                files.discards.append((prefix, tables.file, line))
            case _:
                files.unknown(name, line, text)
    stages: dict[int, Stage] = {number: ((hop.port, 1),) for number, hop in hops.items()}
    for index, group in groups.items():
        stages[index] = tuple(
            (hops[to].port if to in hops else f"nexthop {to}", weight) for to, weight in group
        )
    return files.switch(tables, stages, hops)


@lru_cache(1 << 16)
def _route(rest: str) -> tuple[int, int, int] | None:
    """The table, the metric and the nexthop object of `nhid N metric M table T protocol 80`."""
    match rest.split():
        case ["nhid", nexthop, "metric", metric, "table", table, *ours] if (
            ours == OURS and nexthop.isdecimal() and metric.isdecimal() and table.isdecimal()
        ):
            return int(table), int(metric), int(nexthop)
    return None


def _group(members: str) -> list[tuple[int, int]] | None:
    """The nexthop objects of `ID,WEIGHT/ID,WEIGHT` and their weights."""
    found = []
    for member in members.split("/"):
        number, _, weight = member.partition(",")
        if not number.isdecimal() or not weight.isdecimal() or not 0 < int(weight) <= 256:
            return None
        found.append((int(number), int(weight)))
    return found
