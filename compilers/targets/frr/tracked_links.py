"""Reader of the part of frr.conf about tracked next hops (`routed.bgp.tracked`).

A switch announces an address of its own to its neighbours, and another one for marked packets. It
accepts those of each neighbour on that neighbour's link only, and announces them to nobody. Static
routes have these addresses as next hops.

`reader` calls `TrackedLinks.read` with the statements of frr.conf that no verb of its grammar took,
and `TrackedLinks.finish` with the forwarding that all other statements make.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compilers.readers.bgp.bgp_dialects import dialect, statement_templates
from compilers.readers.bgp.bgp_speaker import FAMILIES, is_router_id
from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    NextHop,
    OwnAddress,
    address_text,
    with_mark,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.statements import Fields, Statements

CLAIM_KINDS = frozenset({"AS number", "session"})
"""The kinds of claims (facts besides forwarding) that these statements make."""
PORT_OF_OWN_ADDRESS = {"5": "lo", "10": with_mark("lo")}
"""By the number of an entry in the prefix list of a switch's own addresses: the port that stands
for packets to the switch without a mark, and for those with one."""


class _Templates(NamedTuple):
    """The statements about tracked next hops, from `templates/frr/frr.conf.tracked`.

    Fields that several of them have: `number` (the AS of the switch), `peer` (the port to a
    neighbour), `prefix` (an address with its length), and those of `bgp_speaker.FAMILIES`.
    """

    switch: tuple[str, ...]
    """For the whole switch. Field: `id`, its router id."""
    gtsm: tuple[str, ...]
    """For the whole switch, where sessions have TTL security."""
    session: tuple[str, ...]
    """For each neighbour. Fields: `far`, its AS; `host` and `plug`, its name and its port."""
    family: tuple[str, ...]
    """For each address family."""
    own_address: tuple[str, ...]
    """For each address that the switch announces. Field: `row`, the number of its entry in the
    prefix list."""
    unmarked_hop: tuple[str, ...]
    """For each neighbour and address family: the next hop of packets without a mark."""
    marked_hop: tuple[str, ...]
    """For each neighbour and address family: the next hop of marked packets. Field: `hop`, the
    link-local address on the neighbour's device for them."""
    created_first: tuple[str, ...]
    """The statements that create a neighbour, which come before all others about it."""


@dataclass(slots=True)
class TrackedLinks:
    """The statements about tracked next hops, and what they state."""

    file: str
    """The path of frr.conf."""
    statements: Statements
    """Its statements that no verb of the grammar took."""
    far_ends: dict[str, str]
    """The node and the port at the far end of each port."""
    gtsm: bool
    """Whether BGP sessions have TTL security."""
    templates: _Templates
    """The statements that there have to be."""
    ports: dict[str, str] = field(default_factory=dict)
    """The port to each address of a neighbour, with a mark if it is for marked packets."""
    next_hops: list[NextHop] = field(default_factory=list)
    """The addresses of neighbours as next hops."""
    own_addresses: list[OwnAddress] = field(default_factory=list)
    """The addresses that the switch announces."""
    claims: list[Claim] = field(default_factory=list)
    """The AS number and the sessions that the statements state."""
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """The faults in statements that are there: line and text."""

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
        templates = _Templates(**statement_templates("frr.conf.tracked"))
        links = cls(file, Statements(statements), far_ends, gtsm, templates)
        switch_fields = links._read_switch()
        links._read_families(switch_fields)
        return links

    def _read_switch(self) -> Fields:
        """Read the statements for the whole switch, and return their fields."""
        templates, statements, speaker = self.templates, self.statements, dialect("frr.conf")
        gtsm = templates.gtsm if self.gtsm else ()
        needed = (*templates.switch, *gtsm, *speaker.bfd_switch, *speaker.next_hop_entry)
        fields = statements.need(needed, {})
        line = next((line for _, line in statements.find(templates.switch[0], fields)), 0)
        self.claims.append(Claim("AS number", (exact_number(fields["number"]),), self.file, line))
        if not is_router_id(fields["id"]):
            self.wrong.append((line, f"router id {fields['id']}, which is no IPv4 address"))
        return fields

    def _read_families(self, switch_fields: Fields) -> None:
        """Read, for each address family, the switch's own addresses and those of each neighbour."""
        templates, statements = self.templates, self.statements
        sessions = list(statements.find(templates.session[0], switch_fields))
        for family in FAMILIES:
            fields = switch_fields | family
            if any(statements.find(templates.family[0], fields)):
                fields = statements.need(templates.family, fields)
                self.own_addresses += self._read_own_addresses(fields)
                for session, line in sessions:
                    session_fields = statements.need(templates.session, session)
                    self._read_link(session_fields | fields, line)

    def _read_own_addresses(self, family_fields: Fields) -> Iterator[OwnAddress]:
        """Read the addresses of one family that the switch announces."""
        first, *others = self.templates.own_address
        for fields, line in list(self.statements.find(first, family_fields)):
            self.statements.need(others, fields)
            port = PORT_OF_OWN_ADDRESS.get(fields["row"], "")
            yield OwnAddress(port, self._single_address(fields, line), self.file, line)

    def _read_link(self, fields: Fields, line: int) -> None:
        """Read the session with a neighbour, and the neighbour's addresses in one family.

        Args:
            fields: those of the session and of the family.
            line: the line of the session.
        """
        templates, statements = self.templates, self.statements
        port = fields["peer"]
        description, far_end = f"{fields['host']} {fields['plug']}", self.far_ends.get(port, "")
        if description != far_end:
            self.wrong.append((line, f"a neighbor at {port} described {description}"))
        session = Interface(port), fields["family"], f"AS {fields['far']}"
        self.claims.append(Claim("session", session, self.file, line))
        unmarked = statements.need(templates.unmarked_hop, fields)
        self._add_next_hop(unmarked, port, line)
        if any(statements.find(templates.marked_hop[0], fields)):
            marked = statements.need(templates.marked_hop, fields)
            self._add_next_hop(marked, with_mark(port), line)
            link_local = address_text(marked["hop"])
            self.next_hops.append(NextHop(port, link_local, self.file, line))

    def _add_next_hop(self, fields: Fields, port: str, line: int) -> None:
        """Note an address of a neighbour, which has to lead to one port only."""
        address = self._single_address(fields, line)
        if address in self.ports:
            self.wrong.append((line, f"{address} behind {port}, and behind {self.ports[address]}"))
        self.ports[address] = port
        self.next_hops.append(NextHop(port, address, self.file, line))

    def _single_address(self, fields: Fields, line: int) -> str:
        """The address of the field `prefix`, which has to have the full length."""
        address, _, length = fields["prefix"].partition("/")
        if length != fields["full"]:
            self.wrong.append((line, f"{fields['prefix']}, which is no single address"))
        return address_text(address)

    def finish(self, without_bgp: EmittedSwitch) -> EmittedSwitch:
        """The switch with what these statements state, and with what is wrong in them.

        Args:
            without_bgp: the switch as its other statements and files state it.
        """
        statements = self.statements
        # Line 0: a statement that is missing has no line.
        wrong = [(self.file, 0, text) for text in statements.missing_texts()]
        used_too_early = statements.used_before_created(self.templates.created_first)
        wrong += [(self.file, line, text) for line, text in (*self.wrong, *used_too_early)]
        unread = [(self.file, line, text) for line, text in statements.unread()]
        return replace(
            without_bgp,
            claimed_kinds=without_bgp.claimed_kinds | CLAIM_KINDS,
            claims=[*without_bgp.claims, *self.claims],
            next_hops=self.next_hops,
            addresses=[*without_bgp.addresses, *self.own_addresses],
            unread=[*without_bgp.unread, *unread],
            wrong=[*without_bgp.wrong, *wrong],
        )
