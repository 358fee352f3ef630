"""Next hops that BGP keeps for one link each, as frr.conf says them.

A switch announces an address of its own, and another for marked packets; it accepts those of each
neighbour from that one alone, and announces none of these. So an address leads to a link, or
nowhere while that is dead. Every statement has to be there, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from compilers.readers.bgp.bgp_dialects import dialect, said_in
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
from compilers.readers.statements import Found, Statements

FILE = "frr.conf.tracked"
CLAIMED = frozenset({"AS number", "session"})
ROWS = {"5": "lo", "10": with_mark("lo")}
"""Of the list of the switch's own addresses: that for packets as they are, that for marked ones."""


@dataclass(slots=True)
class TrackedLinks:
    """What a file says of them; ports: by address the port, with a mark where it is for such."""

    file: str
    said: Statements
    ports: dict[str, str] = field(default_factory=dict)
    hops: list[NextHop] = field(default_factory=list)
    own: list[OwnAddress] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    @classmethod
    def read(cls, file: str, statements: dict[str, int]) -> TrackedLinks:
        """Those of a file, from the statements about BGP and BFD."""
        found = cls(file, Statements(statements))
        words, said = said_in(FILE), found.said
        speaker = dialect("frr.conf")
        known = said.need((*words["once"], *speaker.bfd, *speaker.foundby), {})
        line = next((at for _, at in said.find(words["once"][0], known)), 0)
        found.claims.append(Claim("AS number", (int(known["number"]),), file, line))
        if not is_router_id(known["id"]):
            said.missing.append(f"a router id, not {known['id']}")
        sessions = list(said.find(words["session"][0], known))
        for each in FAMILIES:
            if any(said.find(words["family"][0], known | each)):
                of_family = said.need(words["family"], known | each)
                found.own += found._own(words["own"], of_family)
                for session, at in sessions:
                    found._link(said.need(words["session"], session) | of_family, at, words)
        return found

    def _own(self, words: tuple[str, ...], known: Found) -> Iterator[OwnAddress]:
        first, *others = words
        for own, line in list(self.said.find(first, known)):
            self.said.need(others, own)
            port = ROWS.get(own["row"], "")
            yield OwnAddress(port, self._single(own), self.file, line)

    def _link(self, known: Found, line: int, words: dict[str, tuple[str, ...]]) -> None:
        """The addresses of a neighbour in a family."""
        port = known["peer"]
        session = Interface(port), known["family"], f"AS {known['far']}"
        self.claims.append(Claim("session", session, self.file, line))
        plain = self.said.need(words["plain"], known)
        self._leads(plain, port, line)
        if any(self.said.find(words["marked"][0], known)):
            marked = self.said.need(words["marked"], known)
            self._leads(marked, with_mark(port), line)
            self.hops.append(NextHop(port, address_text(marked["hop"]), self.file, line))

    def _leads(self, known: Found, port: str, line: int) -> None:
        address = self._single(known)
        if address in self.ports:
            self.said.missing.append(f"an address of {port} alone, not {address}")
        self.ports[address] = port
        self.hops.append(NextHop(port, address, self.file, line))

    def _single(self, known: Found) -> str:
        address, _, length = known["prefix"].partition("/")
        if length != known["full"]:
            self.said.missing.append(f"a single address, not {known['prefix']}")
        return address_text(address)

    def switch(self, rest: EmittedSwitch) -> EmittedSwitch:
        """The switch with everything else that its files say."""
        made = self.said.unmade(said_in(FILE)["made"])
        wrong = [(self.file, 0, text) for text in self.said.lacking()]
        wrong += [(self.file, line, text) for line, text in made]
        return replace(
            rest,
            claimed=rest.claimed | CLAIMED,
            claims=[*rest.claims, *self.claims],
            next_hops=self.hops,
            addresses=[*rest.addresses, *self.own],
            unread=[*rest.unread, *((self.file, *each) for each in self.said.unknown())],
            wrong=[*rest.wrong, *wrong],
        )
