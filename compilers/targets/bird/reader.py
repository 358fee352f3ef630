"""Reader of bird.conf, and of the files for `ip -batch` next to it.

BIRD reads a statement up to its `;`. Ours has one a line, so that it is read like other texts: by
the grammar next to its template, and what a speaker says by `bird.conf.speaker`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    EmittedSwitch,
    NextHop,
    Port,
    address_text,
    covering,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import LARGEST_WEIGHT, MAIN, KernelActor, RouterFiles
from compilers.readers.statements import BETWEEN, Statements

TARGET, NAME = "bird", "bird.conf"
STATIC = "bird.conf.static"
"""What the configuration says besides static routes, where there is no BGP."""
NEXT_HOP = re.compile(r"via ([0-9a-f:]+)%'([^']+)'(?: weight (0|[1-9][0-9]{0,8}))?( bfd)?")
FILTER = re.compile(r"filter '([^']+)' \{ / (.+)")
NEIGHBOUR = re.compile(r".* / neighbor (\S+?)(?:%| dev )['\"]([^'\"]+)['\"].*")


@dataclass(slots=True)
class BirdActor(KernelActor):
    """What the statements of bird.conf do."""

    watched: bool = False
    """Whether BFD is to watch every link."""

    def static(self, place: Place) -> RouteHop | None:
        """A static route; None: it has next hops that BIRD would not take, or without BFD."""
        members = list(NEXT_HOP.finditer(place.fields["hops"]))
        if " ".join(member[0] for member in members) != place.fields["hops"]:
            return None
        ends: list[tuple[Port, int]] = []
        for gateway, port, weight, watch in (member.groups() for member in members):
            share = exact_number(weight or "1")
            if bool(watch) is not self.watched or not 0 < share <= LARGEST_WEIGHT:
                return None
            try:
                ends.append((port_to(port, address_text(gateway)), share))
            except ValueError:
                return None
        return RouteHop(MAIN, 1, tuple(ends)) if ends else None


@dataclass(frozen=True, slots=True)
class BirdFolder:
    """What the files of a switch say."""

    files: RouterFiles
    actor: BirdActor
    engine: TextEngine
    said: Statements
    """The statements of bird.conf but for its routes."""

    @classmethod
    def read(cls, folder: Path, bfd: bool) -> BirdFolder:
        """Read them.

        Raises:
            OSError: a file is not there.
            ValueError: an address makes no sense.
        """
        files = RouterFiles(folder)
        actor = BirdActor(files, NAME, watched=bfd)
        engine = files.read(TARGET, NAME, actor)
        for name in ("links.batch", "addresses.batch"):
            files.read(TARGET, name)
        files.read_settings(TARGET)
        said = {text.rstrip(",;"): line for text, line in engine.said.items()}
        return cls(files, actor, engine, Statements(_leaves(said)))

    @property
    def file(self) -> str:
        """The whole name of bird.conf."""
        return str(self.files.folder / NAME)

    def switch(self) -> EmittedSwitch:
        """The switch but for what BGP says."""
        neighbours = [
            (match[2], match[1], line)
            for statement, line in self.said.said.items()
            if (match := NEIGHBOUR.fullmatch(statement))
        ]
        malformed = [
            (self.file, line, f"neighbor {gateway}, which is no address")
            for _, gateway, line in neighbours
            if not covering(gateway)
        ]
        hops = {
            (port, gateway): NextHop(port, address_text(gateway), self.file, line)
            for port, gateway, line in neighbours
            if covering(gateway)
        }
        tables = self.files.tables(NAME, self.engine, self.actor.next_hops)
        routes = next(iter(self.engine.routes.values()), RouteLines())
        for text, first in routes.first_lines().items():
            for gateway, port, _, _ in NEXT_HOP.findall(text):
                hop = NextHop(port, address_text(gateway), self.file, first)
                hops.setdefault((port, gateway), hop)
        switch = self.files.switch(self.file, tables, list(hops.values()))
        return replace(switch, wrong=[*switch.wrong, *malformed])

    def links(self) -> Iterator[dict[str, str]]:
        """The ports that lead to other switches, as fields of statements."""
        for claim in self.files.claims:
            if claim.kind == "far end":
                yield {"port": str(claim.value[0])}


def _leaves(said: dict[str, int]) -> dict[str, int]:
    """The statements below which there are no others: those that say something by themselves."""
    texts = list(said)
    above = {text.rpartition(BETWEEN)[0] for text in texts}
    return {text: said[text] for text in texts if text not in above}


def read_bird(folder: Path, bfd: bool) -> EmittedSwitch:
    """A switch with static routes, from its folder.

    Args:
        folder: of the switch.
        bfd: whether BFD is to watch every link.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    read = BirdFolder.read(folder, bfd)
    said, words = read.said, said_in(STATIC)
    known = said.need(words["once"], {})
    if not is_router_id(known["id"]):
        said.missing.append(f"a router id, not {known['id']}")
    for family in FAMILIES:
        if family["family"] == "ipv4" or any(said.find(words["family"][0], family)):
            said.need(words["family"], family)
    for link in read.links() if bfd else ():
        said.need(words["links"], link)
    if bfd:
        said.need(words["bfd"], {})
    rest = read.switch()
    wrong = [(read.file, 0, text) for text in said.lacking()]
    unread = [(read.file, *each) for each in said.unknown()]
    return replace(rest, wrong=[*rest.wrong, *wrong], unread=[*rest.unread, *unread])


def read_bird_speaker(folder: Path, asked: SpeakerOptions) -> BgpSwitch:
    """A switch that speaks BGP over links without addresses, from its folder.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    read = BirdFolder.read(folder, asked.bfd)
    speaker = Speaker.read(read.said, dialect(NAME), replace(asked, numbered=False))
    for link in read.links() if asked.bfd else ():
        read.said.need(speaker.dialect.links, link)
    rest = read.switch()
    wrong = [(read.file, line, text) for line, text in _out_of_order(read.said)]
    return speaker.switch(read.file, replace(rest, wrong=[*rest.wrong, *wrong]))


def _out_of_order(said: Statements) -> Iterator[tuple[int, str]]:
    """Statements of filters in another order than the one that decides as it is read here.

    The first statement that accepts or rejects a route decides: first too long a path, then what
    the filter prefers, then everything else of the fabric.
    """
    before = "", 0
    for statement, line in said.said.items():
        if match := FILTER.fullmatch(statement):
            name, text = match.groups()
            ranks = {f"'{name}.prefixes'": 2, "'fabric-": 3, "bgp_path": 1, "reject": 4}
            rank = next(rank for words, rank in ranks.items() if words in f"{text} reject")
            if text.startswith("if bgp_path"):
                rank = 1
            if name == before[0] and rank < before[1]:
                yield line, f"{text}, which is tried too late"
            before = name, rank
