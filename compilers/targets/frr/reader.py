"""Reader of frr.conf, and of the files for `ip -batch` next to it, as target frr renders them.

The check of emitted files asks for an `EmittedSwitch`, or a `BgpSwitch` with eBGP: how the switch
forwards, as its files say it, and what is wrong with them. Of the static routes to a prefix FRR
installs those with the smallest distance whose interface is up; several of one distance share
packets by weight.

With static routes and BFD, FRR 8.4 has *tracked* next hops (`routed.bgp.tracked`): each link has an
address that BGP announces to the neighbour on that link only. When BFD takes the session down, the
address disappears, and with it the static routes that use it. `TrackedLinks` reads this part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from compilers.readers.bgp.bgp_dialects import dialect, statement_templates
from compilers.readers.bgp.bgp_files import with_ports
from compilers.readers.bgp.bgp_speaker import (
    FAMILIES,
    BgpSwitch,
    Speaker,
    SpeakerOptions,
    is_router_id,
    with_described_sessions,
)
from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    NextHop,
    OwnAddress,
    Port,
    address_text,
    port_via,
    with_mark,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import KERNEL_MAIN, KernelActor, RouterFiles
from compilers.readers.statements import Fields, Statements

NAME = "frr.conf"
"""The name of the file."""
LARGEST_DISTANCE = 254
"""The largest distance of a route that FRR uses."""


@dataclass(slots=True)
class FrrActor(KernelActor):
    """What the verbs of the grammar of frr.conf do, one method for each verb."""

    watched: bool = False
    """Whether BFD watches every link."""
    tracked: bool = False
    """Whether static routes have tracked next hops."""

    def static(self, statement: Statement) -> RouteHop | None:
        """A static route; None where FRR would not install it, or BFD does not watch it."""
        fields = statement.fields
        table = exact_number(fields.get("table", str(KERNEL_MAIN)))
        if "gateway" not in fields:
            # A route that discards. In table main its line names no table.
            if "table" in fields and table == KERNEL_MAIN:
                return None
            return RouteHop(table, LARGEST_DISTANCE, ())
        try:
            distance = exact_number(fields.get("distance", "1"))
            gateway = address_text(fields["gateway"])
        except ValueError:
            return None
        if not 0 < distance <= LARGEST_DISTANCE:
            return None
        if "interface" not in fields:
            resolved_by_bgp = self.tracked or (table != KERNEL_MAIN and "distance" not in fields)
            next_hop = ((port_via(gateway), 1),)
            return RouteHop(table, distance, next_hop) if resolved_by_bgp else None
        if self.tracked or ("bfd" in fields) is not self.watched:
            return None
        if "." in gateway and "onlink" not in fields:
            return None  # links have no IPv4 network in which FRR could look the gateway up
        port = port_to(fields["interface"], gateway)
        return RouteHop(table, distance, ((port, exact_number(fields.get("weight", "1"))),))


class FrrFiles(NamedTuple):
    """The files of a switch, read by their grammars."""

    files: RouterFiles
    """All files of the folder."""
    actor: FrrActor
    """What the verbs of frr.conf's grammar have read."""
    engine: TextEngine
    """The engine that read frr.conf, with the statements that no verb took."""


def read_frr(
    folder: Path, bfd: bool = False, tracked: bool = False, gtsm: bool = False
) -> EmittedSwitch:
    """Read the folder of a switch with static routes.

    Args:
        folder: the folder of the switch.
        bfd: whether BFD watches every link.
        tracked: whether static routes have tracked next hops.
        gtsm: whether BGP sessions have TTL security (RFC 5082).

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files, actor, engine = read_frr_files(folder, bfd, tracked)
    file = str(folder / NAME)
    if tracked:
        links = TrackedLinks.read(file, engine.statements, files.far_ends(), gtsm)
        port_of: dict[Port, Port] = {
            port_via(address): port for address, port in links.ports.items()
        }
        next_hops = {
            text: next_hop._replace(
                ports=tuple((port_of.get(port, port), weight) for port, weight in next_hop.ports)
            )
            for text, next_hop in actor.next_hops.items()
        }
        return links.switch(files.switch(file, files.tables(NAME, engine, next_hops), ()))
    for text, line in engine.statements.items():
        files.unknown(NAME, line, text)
    hops: dict[tuple[str, str], NextHop] = {}
    for text, line in engine.routes.get("", RouteLines()).first_lines().items():
        if actor.next_hops[text].ports:  # () for a route that discards
            _, gateway, port = text.split(" ", 3)[:3]
            hop = NextHop(port, address_text(gateway), file, line)
            hops.setdefault((gateway, port), hop)
    return files.switch(file, files.tables(NAME, engine, actor.next_hops), hops.values())


def read_frr_files(folder: Path, bfd: bool, tracked: bool = False) -> FrrFiles:
    """Read frr.conf and the files next to it.

    Raises:
        OSError: a file is not there.
    """
    files = RouterFiles(folder)
    actor = FrrActor(files, NAME, watched=bfd, tracked=tracked)
    engine = files.read("frr", NAME, actor)
    for name in ("links.batch", "rules.batch"):
        files.read("frr", name)
    files.read_settings("frr")
    return FrrFiles(files, actor, engine)


def read_frr_speaker(folder: Path, options: SpeakerOptions) -> BgpSwitch:
    """Read the folder of a switch that speaks BGP.

    Raises:
        OSError: a file is not there.
    """
    files, actor, engine = read_frr_files(folder, options.bfd)
    file = str(folder / NAME)
    speaker = Speaker.read(Statements(engine.statements), dialect(NAME), options)
    without_bgp = files.switch(file, files.tables(NAME, engine, actor.next_hops), ())
    switch = replace(speaker.switch(file, without_bgp), falls_through=True)
    if options.numbered:
        switch = with_ports(switch, files.link_ends, file, numbered=True)
    return with_described_sessions(switch, files.far_ends())


TRACKED = "frr.conf.tracked"
"""The statements about tracked next hops, `templates/frr/frr.conf.tracked`."""
CLAIM_KINDS = frozenset({"AS number", "session"})
"""The kinds of claims (facts besides forwarding) that these statements make."""
OWN_PORT_BY_ENTRY = {"5": "lo", "10": with_mark("lo")}
"""For the entries of the prefix list of a switch's own addresses, by their numbers: the port that
stands for packets to the switch without a mark, and for those with one."""


@dataclass(slots=True)
class TrackedLinks:
    """The part of frr.conf about tracked next hops.

    A switch announces an address of its own, and another one for marked packets. It accepts those
    of each neighbour on that neighbour's link only, and announces them to nobody.
    """

    file: str
    """The path of frr.conf."""
    statements: Statements
    """Its statements that no verb of the grammar took."""
    far_ends: dict[str, str]
    """The node and the port at the far end of each port."""
    gtsm: bool
    """Whether BGP sessions have TTL security."""
    ports: dict[str, str] = field(default_factory=dict)
    """The port to each address of a neighbour, with a mark if it is for marked packets."""
    hops: list[NextHop] = field(default_factory=list)
    """The addresses of neighbours as next hops."""
    own: list[OwnAddress] = field(default_factory=list)
    """The addresses that the switch announces."""
    claims: list[Claim] = field(default_factory=list)
    """What the statements say besides routes: the AS number, and the sessions."""

    @classmethod
    def read(
        cls, file: str, statements: dict[str, int], far_ends: dict[str, str], gtsm: bool
    ) -> TrackedLinks:
        """Read the statements about BGP and BFD.

        Args:
            file: the path of frr.conf.
            statements: its statements that no verb of the grammar took, with their lines.
            far_ends: the node and the port at the far end of each port.
            gtsm: whether BGP sessions have TTL security.
        """
        links = cls(file, Statements(statements), far_ends, gtsm)
        links._read()
        return links

    def _read(self) -> None:
        """Read the statements about the switch, then family by family those about each link."""
        templates, statements = statement_templates(TRACKED), self.statements
        speaker = dialect("frr.conf")
        secured = templates["secured"] if self.gtsm else ()
        single = (*templates["once"], *secured, *speaker.bfd_switch, *speaker.next_hop_entry)
        fields = statements.need(single, {})
        line = next((line for _, line in statements.find(templates["once"][0], fields)), 0)
        self.claims.append(Claim("AS number", (exact_number(fields["number"]),), self.file, line))
        if not is_router_id(fields["id"]):
            statements.missing.append(f"a router id, not {fields['id']}")
        sessions = list(statements.find(templates["session"][0], fields))
        for words in FAMILIES:
            if any(statements.find(templates["family"][0], fields | words)):
                family_fields = statements.need(templates["family"], fields | words)
                self.own += self._own_addresses(templates["own"], family_fields)
                for session, line in sessions:
                    session_fields = statements.need(templates["session"], session)
                    self._read_link(session_fields | family_fields, line, templates)

    def _own_addresses(self, templates: tuple[str, ...], fields: Fields) -> Iterator[OwnAddress]:
        """The addresses of one family that the switch announces."""
        first, *others = templates
        for own, line in list(self.statements.find(first, fields)):
            self.statements.need(others, own)
            port = OWN_PORT_BY_ENTRY.get(own["row"], "")
            yield OwnAddress(port, self._single_address(own), self.file, line)

    def _read_link(self, fields: Fields, line: int, templates: dict[str, tuple[str, ...]]) -> None:
        """Add the session with a neighbour, and its addresses in one family."""
        port = fields["peer"]
        description = f"{fields['host']} {fields['plug']}"
        if description != self.far_ends.get(port, ""):
            self.statements.missing.append(f"the far end of {port} but {description}")
        session = Interface(port), fields["family"], f"AS {fields['far']}"
        self.claims.append(Claim("session", session, self.file, line))
        plain = self.statements.need(templates["plain"], fields)
        self._add_hop(plain, port, line)
        if any(self.statements.find(templates["marked"][0], fields)):
            marked = self.statements.need(templates["marked"], fields)
            self._add_hop(marked, with_mark(port), line)
            self.hops.append(NextHop(port, address_text(marked["hop"]), self.file, line))

    def _add_hop(self, fields: Fields, port: str, line: int) -> None:
        """Add an address of a neighbour, which has to lead to one port only."""
        address = self._single_address(fields)
        if address in self.ports:
            self.statements.missing.append(f"an address of {port} alone, not {address}")
        self.ports[address] = port
        self.hops.append(NextHop(port, address, self.file, line))

    def _single_address(self, fields: Fields) -> str:
        """The address of the field `prefix`, which has to have the full length."""
        address, _, length = fields["prefix"].partition("/")
        if length != fields["full"]:
            self.statements.missing.append(f"a single address, not {fields['prefix']}")
        return address_text(address)

    def switch(self, without_bgp: EmittedSwitch) -> EmittedSwitch:
        """The switch with what these statements say.

        Args:
            without_bgp: the switch as its other statements and files say.
        """
        used_before_made = self.statements.used_before_created(statement_templates(TRACKED)["made"])
        wrong = [(self.file, 0, text) for text in self.statements.missing_texts()]  # 0: no line
        wrong += [(self.file, line, text) for line, text in used_before_made]
        unread = [(self.file, line, text) for line, text in self.statements.unknown()]
        return replace(
            without_bgp,
            claimed_kinds=without_bgp.claimed_kinds | CLAIM_KINDS,
            claims=[*without_bgp.claims, *self.claims],
            next_hops=self.hops,
            addresses=[*without_bgp.addresses, *self.own],
            unread=[*without_bgp.unread, *unread],
            wrong=[*without_bgp.wrong, *wrong],
        )
