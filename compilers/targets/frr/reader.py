"""Reader of frr.conf with static routes, and of the files for `ip -batch` next to it.

Of the static routes of a prefix in a table those of the least distance whose interface is up are
installed; several of one distance share by weight.

Where BGP keeps next hops for one link each, a switch announces an address of its own, and another
for marked packets; it accepts those of each neighbour from that one alone, and announces none of
these. So an address leads to a link, or nowhere while that is dead. Every statement has to be
there, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from compilers.readers.bgp.bgp_dialects import dialect, said_in
from compilers.readers.bgp.bgp_speaker import (
    FAMILIES,
    BgpSwitch,
    Speaker,
    SpeakerOptions,
    is_router_id,
)
from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedSwitch,
    Interface,
    NextHop,
    OwnAddress,
    Port,
    address_text,
    found_by,
    with_mark,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import MAIN, KernelActor, RouterFiles
from compilers.readers.statements import Found, Statements

NAME = "frr.conf"
LARGEST_DISTANCE = 254
"""A route of distance 255 is never used."""


@dataclass(slots=True)
class FrrActor(KernelActor):
    """What the statements of frr.conf do.

    watched: whether BFD is to watch every link. tracked: whether BGP keeps all next hops for it.
    """

    watched: bool = False
    tracked: bool = False

    def static(self, place: Place) -> RouteHop | None:
        """A static route; None: it could not be installed, as its gateway
        is no address or no interface has it, or is not watched as it should be.
        """
        said = place.fields
        table = exact_number(said.get("table", str(MAIN)))
        if "gateway" not in said:
            return None if "table" in said and table == MAIN else RouteHop(table, 254, ())
        try:
            distance = exact_number(said.get("distance", "1"))
            gateway = address_text(said["gateway"])
        except ValueError:
            return None
        if "interface" not in said:
            found = self.tracked or (table != MAIN and "distance" not in said)
            port = found_by(gateway)
            in_use = 0 < distance <= LARGEST_DISTANCE
            return RouteHop(table, distance, ((port, 1),)) if found and in_use else None
        if self.tracked:
            return None
        if ("bfd" in said) is not self.watched or not 0 < distance <= LARGEST_DISTANCE:
            return None
        if "." in gateway and "onlink" not in said:
            return None  # no interface has a network in which it could be found
        port = port_to(said["interface"], gateway)
        return RouteHop(table, distance, ((port, exact_number(said.get("weight", "1"))),))


def read_frr(folder: Path, bfd: bool = False, tracked: bool = False) -> EmittedSwitch:
    """A switch of target frr with static routes, from its folder.

    Args:
        folder: of the switch.
        bfd: whether BFD is to watch every link.
        tracked: whether BGP keeps the next hops for that.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files, actor, engine = read_frr_text(folder, bfd, tracked)
    file = str(folder / NAME)
    if tracked:
        links = TrackedLinks.read(file, engine.said)
        known: dict[Port, Port] = {found_by(a): port for a, port in links.ports.items()}
        next_hops = {
            text: next_hop._replace(
                stage=tuple((known.get(port, port), w) for port, w in next_hop.stage)
            )
            for text, next_hop in actor.next_hops.items()
        }
        return links.switch(files.switch(file, files.tables(NAME, engine, next_hops), ()))
    for text, line in engine.said.items():
        files.unknown(NAME, line, text)
    hops: dict[tuple[str, str], NextHop] = {}
    for text, first in engine.routes.get("", RouteLines()).first_lines().items():
        if actor.next_hops[text].stage:
            _, gateway, port = text.split(" ", 3)[:3]
            hop = NextHop(port, address_text(gateway), file, first)
            hops.setdefault((gateway, port), hop)
    return files.switch(file, files.tables(NAME, engine, actor.next_hops), hops.values())


def read_frr_text(
    folder: Path, bfd: bool, tracked: bool = False
) -> tuple[RouterFiles, FrrActor, TextEngine]:
    """Read frr.conf and the files next to it.

    Raises:
        OSError: a file is not there.
    """
    files = RouterFiles(folder)
    actor = FrrActor(files, NAME, watched=bfd, tracked=tracked)
    engine = files.read("frr", NAME, actor)
    for each in ("links.batch", "rules.batch"):
        files.read("frr", each)
    files.read_settings("frr")
    return files, actor, engine


def read_frr_speaker(folder: Path, asked: SpeakerOptions) -> BgpSwitch:
    """A folder of target frr, whose sessions are with whoever is at the other end of a link.

    Raises:
        OSError: a file is not there.
    """
    files, actor, engine = read_frr_text(folder, asked.bfd)
    file = str(folder / NAME)
    speaker = Speaker.read(Statements(engine.said), dialect(NAME), replace(asked, numbered=False))
    rest = files.switch(file, files.tables(NAME, engine, actor.next_hops), ())
    return replace(speaker.switch(file, rest), falls_through=True)


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
        found.claims.append(Claim("AS number", (exact_number(known["number"]),), file, line))
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
