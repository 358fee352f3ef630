"""The verbs of the grammars of a Linux router's files for `ip -batch`, and the reading of one file.

A rule of a grammar, such as `link set <dev> up => up <dev>`, names a verb behind `=>`. The engine
calls the method of `KernelActor` with that name, which notes the statement in the `RouterFiles`.
The readers of targets linux, frr and bird call `read_file`; those of frr and bird add the static
routes of their daemons to the actor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compilers.readers.emitted_forwarding import (
    Claim,
    Interface,
    NextHop,
    Port,
    PortSet,
    address_text,
)
from compilers.readers.exact_text import exact_number, is_number
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteHop
from compilers.readers.routers.iproute_marks import MarkedDevice, port_to
from compilers.readers.routers.iproute_reader import KERNEL_MAIN, THROWN, RouterFiles
from compilers.readers.text_lines import TextLines

MAIN_RULE = 32766
"""The preference of the rule that leads to table main."""
LARGEST_WEIGHT = 256
"""The largest weight of a member of a nexthop group."""
STEERING_FILES = ("routes.batch", "rules.batch")
"""The files in which every line changes where packets go."""
DISCARD_METRIC = 4_000_000_000
"""The metric of routes that discard, behind all others."""
NO_NUMBER = -1
"""In place of a number: the text is none."""
ONE_TABLE = ""
"""The engine's name for the table of all routes: `RouteHop` has the number of the kernel's."""


def read_file(
    files: RouterFiles, target: str, name: str, actor: KernelActor | None = None
) -> TextEngine:
    """Read a file of a router by the grammar next to its template.

    Args:
        files: the files of the router, which get what the lines state.
        target: the system that the file is for.
        name: the name of the file.
        actor: carries out the verbs of its grammar; None: those of a kernel.

    Raises:
        OSError: there is no such file.
    """
    engine = TextEngine(grammar(target, name), actor or KernelActor(files, name))
    engine.read(TextLines.read(files.folder / name))
    return engine


@dataclass(slots=True)
class KernelActor:
    """The verbs of the grammars of routers on a Linux kernel, for one file."""

    files: RouterFiles
    """The files of the router, which get what the lines state."""
    name: str
    """The name of the file."""
    next_hops: dict[str, RouteHop] = field(default_factory=dict)
    """By the text behind a route's prefix, the next hop that it means."""
    nexthop_objects: dict[int, NextHop] = field(default_factory=dict)
    """The nexthop objects that are a single next hop each, not a group, by their numbers."""
    port_sets: dict[int, PortSet] = field(default_factory=dict)
    """The ports and weights of all nexthop objects, groups too, by their numbers."""

    @property
    def file(self) -> str:
        """The path of the file."""
        return str(self.files.folder / self.name)

    def add_wrong(self, line: int, text: str) -> None:
        """Note a line that is wrong or missing (`GrammarActor`)."""
        self.files.add_wrong(self.name, line, text)

    def add_unread(self, line: int, text: str) -> None:
        """Note a line without a rule (`GrammarActor`), as a fault where it moves packets."""
        if self.name in STEERING_FILES:
            self.files.add_wrong(self.name, line, text)
        else:
            self.files.add_unread(self.name, line, text)

    def refuse(self, statement: Statement) -> None:
        """Note a statement for which the grammar has a rule because it is always wrong."""
        self.add_wrong(statement.line, statement.text)

    def up(self, statement: Statement, interface: str) -> None:
        """Note an interface that is set up."""
        self.files.up.setdefault(interface, statement.line)

    def mtu(self, statement: Statement, port: str, size: int) -> None:
        """Claim the MTU of a port."""
        self.files.claims.append(Claim("mtu", (port, size), self.file, statement.line))

    def bridge(self, statement: Statement, bridge: str) -> None:  # noqa: ARG002
        """Note a bridge that is made."""
        self.files.members.setdefault(bridge, [])

    def member(self, statement: Statement, bridge: str, port: str) -> None:
        """Note a port of a bridge; it may be in one bridge only."""
        other_bridges = self.files.members.keys() - {bridge}
        if any(port in self.files.members[name] for name in other_bridges):
            self.add_wrong(statement.line, statement.text)
        self.files.members.setdefault(bridge, []).append(port)

    def device(self, statement: Statement, device: str, port: str, mac: str) -> None:
        """Note a device for marked packets over a port."""
        self.files.marks.devices[device] = MarkedDevice(port, mac, statement.line)

    def address(self, statement: Statement, interface: str, address: str, scope: str) -> None:
        """Note an address of an interface."""
        self.files.add_address(self.name, statement.line, interface, address, scope)

    def far_end(self, statement: Statement, interface: str, node: str, port: str) -> None:
        """Claim the node and the port at the far end of a link."""
        value = Interface(interface), node, port
        self.files.claims.append(Claim("far end", value, self.file, statement.line))

    def node(self, statement: Statement, name: str) -> None:
        """Claim the name of the router."""
        self.files.claims.append(Claim("node", (name,), self.file, statement.line))

    def rule(self, statement: Statement, interface: str, table: int, preference: int) -> None:
        """Note the policy rule for packets that come in on an interface."""
        is_valid = interface in self.files.up and 0 < preference < MAIN_RULE
        if not is_valid or not self.files.add_rule(interface, preference, table):
            self.add_wrong(statement.line, statement.text)

    def nexthop(self, statement: Statement, number: int, address: str, port: str) -> None:
        """Note a nexthop object: an address behind a port."""
        try:
            next_hop = NextHop(port, address_text(address), self.file, statement.line)
        except ValueError:
            self.add_wrong(statement.line, statement.text)
        else:
            self.nexthop_objects[number] = next_hop
            self.port_sets[number] = ((port_to(port, next_hop.address), 1),)

    def group(self, statement: Statement, number: int, members: str) -> None:
        """Note a nexthop object that shares packets among others: `1,3/2,1` for weights 3 and 1."""
        port_set: list[tuple[Port, int]] = []
        has_wrong_member = False
        for member in members.split("/"):
            id_text, _, weight_text = member.partition(",")
            object_id = exact_number(id_text) if is_number(id_text) else NO_NUMBER
            weight = exact_number(weight_text) if is_number(weight_text) else NO_NUMBER
            nexthop = self.nexthop_objects.get(object_id)
            if nexthop and 0 < weight <= LARGEST_WEIGHT:
                port_set.append((port_to(str(nexthop.port), nexthop.address), weight))
            else:
                has_wrong_member = True
        if has_wrong_member:
            text = f"{statement.text}, not of nexthops above with weights up to {LARGEST_WEIGHT}"
            self.add_wrong(statement.line, text)
        self.port_sets[number] = tuple(port_set)

    def throw(self, statement: Statement, table: int, network: str) -> None:  # noqa: ARG002
        """Note a `throw` route: packets for its network are looked up by the next rule."""
        self.files.marks.thrown.setdefault(table, []).append(network)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str] | None:
        """Note the next hop of a route (`GrammarActor`)."""
        next_hop = self._route_hop(statement, kind, words)
        if next_hop is None:
            return None
        text = f"{kind} {statement.text}"
        self.next_hops[text] = next_hop
        return ONE_TABLE, text

    def _route_hop(self, statement: Statement, kind: str, words: Sequence[str]) -> RouteHop | None:
        """The next hop of a route; None: it makes no sense.

        Its kinds are `discard [TABLE]`, `throw TABLE`, `hop TABLE METRIC NUMBER` with the number of
        a nexthop object, and static routes of a daemon.
        """
        if kind == "discard":
            table = exact_number(words[0]) if words else KERNEL_MAIN
            # Rendered files name no table in routes of table main.
            return None if words and table == KERNEL_MAIN else RouteHop(table, DISCARD_METRIC, ())
        if kind == "throw":
            return RouteHop(exact_number(words[0]), THROWN, ())
        if kind == "hop":
            table, metric, number = map(exact_number, words)
            return RouteHop(table, metric, self.port_sets.get(number, ((f"nexthop {number}", 1),)))
        return self.static(statement)

    def static(self, statement: Statement) -> RouteHop | None:  # noqa: ARG002
        """The next hop of a daemon's static route; None: the daemon would not install the route.

        A kernel has no such routes. Actors of daemons override this method.
        """
        return None
