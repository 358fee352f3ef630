"""Reader of bird.conf, and of the files for `ip -batch` next to it, as target bird renders them.

The check of emitted files asks for an `EmittedSwitch` (`read_bird`), or with eBGP for a `BgpSwitch`
(`read_bird_speaker`): how the switch forwards by its files, and what is wrong with them.

BIRD reads a statement up to its `;`. The template has one statement a line, so that a line-based
grammar can read it, as for other systems. The statements about BGP are compared with those of
`templates/bird/bird.conf.speaker`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
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
    EmittedSwitch,
    NextHop,
    Port,
    address_text,
    covering,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import KERNEL_MAIN, RouterFiles
from compilers.readers.routers.kernel_actor import (
    LARGEST_WEIGHT,
    ONE_TABLE,
    KernelActor,
    read_file,
)
from compilers.readers.statements import BETWEEN, Statements

TARGET = "bird"
"""The target whose files are read."""
BIRD_CONF = "bird.conf"
"""The name of BIRD's configuration, and of the statements in it about BGP
(`templates/bird/bird.conf.speaker`)."""
NUMBERED_DIALECT = "bird.links"
"""The name of these statements where links have addresses."""
NEXT_HOP = re.compile(r"via ([0-9a-f:]+)%'([^']+)'(?: weight (0|[1-9][0-9]{0,8}))?( bfd)?")
"""A next hop of a static route: gateway, interface, weight, and whether BFD watches it."""
FILTER = re.compile(r"filter '([^']+)' \{ / (.+)")
"""`filter 'to-n1' { / reject`: the name of a filter, and a statement in it."""
NEIGHBOUR = re.compile(r".* / neighbor (\S+?)(?:%| dev )['\"]([^'\"]+)['\"].*")
"""`… / neighbor fe80::2%'eth1' …`: the address of a BGP neighbour, and the interface to it."""


class FilterStep(IntEnum):
    """What a statement of a filter decides; statements have to be in the order of these numbers."""

    PATH_LENGTH = 1
    """Paths that are too long: `if bgp_path.len > 4 then reject`."""
    PREFERRED = 2
    """Prefixes that the filter prefers, here the filter `to-n1`:
    `if net ~ 'to-n1.prefixes' then { bgp_med = 0; accept; }`."""
    FABRIC = 3
    """Other prefixes of the fabric:
    `if net ~ 'fabric-ipv4.prefixes' then { bgp_med = 1; accept; }`."""
    REST = 4
    """Everything else: `reject`."""


STEP_PATTERNS = (
    (FilterStep.PATH_LENGTH, re.compile(r"filter '[^']+' \{ / if bgp_path")),
    (FilterStep.PREFERRED, re.compile(r"filter '([^']+)' \{ / .*'\1\.prefixes'")),
    (FilterStep.FABRIC, re.compile(r"filter '[^']+' \{ / .*'fabric-")),
    # A limit of the length of paths that is not written as polarfab writes it.
    (FilterStep.PATH_LENGTH, re.compile(r"filter '[^']+' \{ / .*bgp_path")),
    (FilterStep.REST, re.compile(r"filter '[^']+' \{ / ")),
)
"""The step of a statement is that of the first pattern that it matches."""


class _StaticTemplates(NamedTuple):
    """The statements of a configuration without BGP, except its routes.

    They are in `templates/bird/bird.conf.static`.
    """

    switch: tuple[str, ...]
    """For the whole switch. Field: `id`, its router id."""
    family: tuple[str, ...]
    """For each address family. Field: `family`, its name."""
    bfd_switch: tuple[str, ...]
    """For the whole switch, where BFD watches links."""
    bfd_link: tuple[str, ...]
    """For each link that BFD watches. Fields: `port`, and `gateway`, the neighbour's address."""


@dataclass(slots=True)
class BirdActor(KernelActor):
    """What the verbs of the grammar of bird.conf do, one method for each verb."""

    bfd: bool = False
    """Whether BFD watches every link."""

    def static(self, statement: Statement) -> RouteHop | None:
        """The next hops of a static route; None where BIRD would refuse one.

        None also stands for a route that BFD does not watch as the option says.
        """
        matches = list(NEXT_HOP.finditer(statement.fields["hops"]))
        if " ".join(match[0] for match in matches) != statement.fields["hops"]:
            return None
        next_hops: list[tuple[Port, int]] = []
        for match in matches:
            gateway, interface, weight_text, bfd = match.groups()
            weight = exact_number(weight_text or "1")
            if bool(bfd) is not self.bfd or not 0 < weight <= LARGEST_WEIGHT:
                return None
            try:
                next_hops.append((port_to(interface, address_text(gateway)), weight))
            except ValueError:
                return None
        # Routes of bird.conf state no metric, so all have the same one.
        return RouteHop(KERNEL_MAIN, metric=1, ports=tuple(next_hops)) if next_hops else None


@dataclass(frozen=True, slots=True)
class BirdFiles:
    """The files of a switch, read by their grammars."""

    files: RouterFiles
    """All files of the folder."""
    actor: BirdActor
    """What the verbs of bird.conf's grammar have read."""
    engine: TextEngine
    """The statements of bird.conf in their order, and its routes."""
    statements: Statements
    """The statements of bird.conf except its routes."""

    @classmethod
    def read(cls, folder: Path, bfd: bool) -> BirdFiles:
        """Read the folder of a switch.

        Raises:
            OSError: a file is not there.
            ValueError: an address makes no sense.
        """
        files = RouterFiles(folder)
        actor = BirdActor(files, BIRD_CONF, bfd=bfd)
        engine = read_file(files, TARGET, BIRD_CONF, actor)
        for name in ("links.batch", "addresses.batch"):
            read_file(files, TARGET, name)
        files.read_settings(TARGET)
        # Templates of statements leave out the sign at the end.
        lines = {text.rstrip(",;"): line for text, line in engine.statement_lines.items()}
        return cls(files, actor, engine, Statements(_innermost(lines)))

    @property
    def file(self) -> str:
        """The path of bird.conf."""
        return str(self.files.folder / BIRD_CONF)

    def switch(self) -> EmittedSwitch:
        """The forwarding of the switch by its files, except for BGP."""
        next_hops: dict[tuple[str, str], NextHop] = {}
        malformed: list[tuple[str, int, str]] = []
        for statement, line in self.statements.lines.items():
            match = NEIGHBOUR.fullmatch(statement)
            if match is None:
                continue
            gateway, port = match.groups()
            if covering(gateway):
                next_hops[port, gateway] = NextHop(port, address_text(gateway), self.file, line)
            else:
                malformed.append((self.file, line, f"neighbor {gateway}, which is no address"))
        tables = self.files.read_tables(BIRD_CONF, self.engine, self.actor.next_hops)
        routes = self.engine.routes.get(ONE_TABLE, RouteLines())
        for text, line in routes.first_lines().items():
            for gateway, port, _weight, _bfd in NEXT_HOP.findall(text):
                next_hop = NextHop(port, address_text(gateway), self.file, line)
                next_hops.setdefault((port, gateway), next_hop)
        switch = self.files.finish(self.file, tables, list(next_hops.values()))
        return replace(switch, wrong=[*switch.wrong, *malformed])

    def need_for_each_link(self, templates: tuple[str, ...]) -> None:
        """Look for statements with the field `port`, which each link has to have."""
        for port in self.files.far_ends():
            self.statements.need(templates, {"port": port})


def _innermost(lines: dict[str, int]) -> dict[str, int]:
    """The statements that have no statements inside, with their lines.

    A statement is written behind those around it, as `filter 'to-n1' { / reject`.
    """
    heads = {statement.rpartition(BETWEEN)[0] for statement in lines}
    return {statement: line for statement, line in lines.items() if statement not in heads}


def read_bird(folder: Path, bfd: bool) -> EmittedSwitch:
    """Read the folder of a switch with static routes.

    Args:
        folder: the folder of the switch.
        bfd: whether BFD watches every link.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    config = BirdFiles.read(folder, bfd)
    statements = config.statements
    templates = _StaticTemplates(**statement_templates("bird.conf.static"))
    fields = statements.need(templates.switch, {})
    if not is_router_id(fields["id"]):
        statements.missing.append(f"a router id, not {fields['id']}")
    for family in FAMILIES:
        # Every fabric has IPv4. It has IPv6 if there is a statement about it.
        if family["family"] == "ipv4" or any(statements.find(templates.family[0], family)):
            statements.need(templates.family, family)
    if bfd:
        config.need_for_each_link(templates.bfd_link)
        statements.need(templates.bfd_switch, {})
    switch = config.switch()
    # Line 0: a statement that is missing has no line.
    wrong = [(config.file, 0, text) for text in statements.missing_texts()]
    unread = [(config.file, line, text) for line, text in statements.unread()]
    return replace(switch, wrong=[*switch.wrong, *wrong], unread=[*switch.unread, *unread])


def read_bird_speaker(folder: Path, options: SpeakerOptions) -> BgpSwitch:
    """Read the folder of a switch that speaks BGP.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    config = BirdFiles.read(folder, options.bfd)
    bgp_statements = dialect(NUMBERED_DIALECT if options.numbered else BIRD_CONF)
    speaker = Speaker.read(config.statements, bgp_statements, options)
    if options.bfd:
        config.need_for_each_link(bgp_statements.bfd_link)
    without_bgp = config.switch()
    wrong = [(config.file, line, text) for line, text in _late_statements(config.statements)]
    without_bgp = replace(without_bgp, wrong=[*without_bgp.wrong, *wrong])
    switch = speaker.switch(config.file, without_bgp)
    if options.numbered:
        switch = with_ports(switch, config.files.link_ends, config.file, numbered=True)
    return with_described_sessions(switch, config.files.far_ends())


def _late_statements(statements: Statements) -> Iterator[tuple[int, str]]:
    """The statements of filters that are behind a statement of a later step.

    The first statement of a filter that accepts or rejects a route decides. So the statements have
    to be in the order of `FilterStep`.

    Yields:
        The line of the statement, and what is wrong with it.
    """
    filter_above, step_above = "", FilterStep.PATH_LENGTH
    for statement, line in statements.lines.items():
        match = FILTER.fullmatch(statement)
        if match is None:
            continue
        filter_name, text = match.groups()
        step = next(step for step, pattern in STEP_PATTERNS if pattern.match(statement))
        if filter_name == filter_above and step < step_above:
            yield line, f"{text}, which is tried too late"
        filter_above, step_above = filter_name, step
