"""Reads the folder of one router that speaks BGP, on systems with a grammar (EOS, NX-OS, …).

What comes in is a folder with configuration files, one of which states BGP. What goes out is a
`BgpSwitch`: the statements about BGP as a `Speaker`, and the forwarding of all other statements,
read as with static routes (`router_files`). `bgp_reader` calls `read_speaker` for each switch, and
computes the routes that BGP finds between them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from compilers.readers.bgp.bgp_dialects import dialect
from compilers.readers.bgp.bgp_speaker import (
    BgpNeighbour,
    BgpSwitch,
    Speaker,
    SpeakerOptions,
    with_described_sessions,
)
from compilers.readers.emitted_forwarding import NextHop, prefix_text
from compilers.readers.routers.router_files import ReadFile, RouterFolder, read_files
from compilers.readers.routers.router_forwarding import far_ends, forwarding
from compilers.readers.routers.router_text import DISCARD, RouterText
from compilers.readers.statements import Statements


class _SpeakerFile(NamedTuple):
    """The file of a switch with its statements about BGP."""

    text: RouterText
    """The contents of the file."""
    speaker: Speaker
    """The speaker that its statements configure."""


def read_speaker(
    system: RouterFolder, folder: Path, options: SpeakerOptions, definitions: Collection[str] = ()
) -> BgpSwitch:
    """Read the folder of a switch that speaks BGP.

    Args:
        system: the files of its system.
        folder: of the switch.
        options: what the files were rendered with.
        definitions: see `router_files.read_router`.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = read_files(system, folder, definitions)
    # The first file states the ports. It also states BGP, but on SONiC `frr.conf` does that.
    ports_file = files[0].text
    (bgp_file,) = _speaker_files(files, options)
    speaker = bgp_file.speaker
    # On Cumulus only sessions say that a port has no addresses. On SONiC the first file does, too.
    if not options.numbered and bgp_file.text is ports_file:
        _mark_unnumbered(ports_file, speaker)
    port_of = _port_of_session(ports_file)
    if system.announces_discarded:  # Junos and SR Linux
        _announce_discarded(ports_file, speaker)
    _check_speaker(system, ports_file, speaker, options, port_of)
    without_bgp = forwarding(*(file.text for file in files), recursive=True)
    switch = speaker.switch(bgp_file.text.file, without_bgp)
    switch = with_ports(switch, port_of, bgp_file.text.file, options.numbered)
    descriptions = (fact.value for fact in ports_file.facts if fact.kind == "description")
    return with_described_sessions(switch, {str(port): str(text) for port, text in descriptions})


def _speaker_files(files: Sequence[ReadFile], options: SpeakerOptions) -> Iterator[_SpeakerFile]:
    """Yield the files of a switch that configure a speaker; in each system that is one file."""
    for text, engine in files:
        file_dialect = dialect(Path(text.file).name)
        if file_dialect.switch:
            if engine.grammar.tree_format:
                statements = Statements.of_tree(engine.statement_lines)
            else:
                statements = Statements.without_command(engine.statement_lines, "set ")
            yield _SpeakerFile(text, Speaker.read(statements, file_dialect, options))


def _check_speaker(
    system: RouterFolder,
    ports_file: RouterText,
    speaker: Speaker,
    options: SpeakerOptions,
    port_of: dict[str, str],
) -> None:
    """Note what a speaker lacks beside its sessions, and policies that do something else.

    Args:
        system: the files of its system.
        ports_file: the file that states its ports, which gets notes.
        speaker: the speaker. `need` notes statements that are missing, and the others as read.
        options: what the files were rendered with.
        port_of: the port of each session, by its `peer`.
    """
    need = speaker.statements.need
    # On Cumulus and SR Linux a session is for both families, unless it is told to leave one out.
    has_both_families = len(speaker.families) > 1
    if has_both_families and options.numbered:  # then each family has sessions of its own
        need(speaker.dialect.dual_stack, {})
    if options.bfd:  # SR Linux has statements for each link that BFD watches
        for session in _sessions(speaker):
            need(speaker.dialect.bfd_link, {"port": port_of.get(session.peer, "")})
    if system.policy_part:  # Junos and SR Linux
        _check_policy_order(ports_file, speaker, system.policy_part)
    _require_discards(ports_file, speaker)


def _mark_unnumbered(ports_file: RouterText, speaker: Speaker) -> None:
    """Mark the ports that sessions name as routed, though they have no addresses."""
    for session in _sessions(speaker):
        if session.peer in ports_file.interfaces:
            ports_file.interfaces[session.peer].unnumbered = True


def _sessions(speaker: Speaker) -> Iterator[BgpNeighbour]:
    """The sessions of all families."""
    for family in speaker.families:
        yield from family.sessions


def _port_of_session(ports_file: RouterText) -> dict[str, str]:
    """The port of each session by its `peer`, an address, or the port itself."""
    unnumbered = {name: name for name, port in ports_file.interfaces.items() if port.unnumbered}
    return dict(far_ends(ports_file)) | unnumbered


def _check_policy_order(file: RouterText, speaker: Speaker, part: re.Pattern[str]) -> None:
    """Note the policies whose parts do not stand in the order of their names.

    The system tries the parts of a policy in the order of the text, whatever their names.

    Args:
        file: the file with the policies, which gets the notes.
        speaker: the speaker.
        part: how a statement about a part of a policy begins (`RouterFolder.policy_part`).
    """
    first_lines: dict[str, dict[str, int]] = {}  # by the names of policy and part
    for statement, line in speaker.statements.lines.items():
        if match := part.match(statement):
            policy, name = match.groups()
            first_lines.setdefault(policy, {}).setdefault(name, line)
    for policy, line_of_part in first_lines.items():
        if list(line_of_part) != sorted(line_of_part):
            first, line = next(iter(line_of_part.items()))
            file.add_wrong(line, f"{first} of policy {policy} is tried before the others")


def _announce_discarded(file: RouterText, speaker: Speaker) -> None:
    """Have a speaker announce the prefixes that the file discards and its policy accepts."""
    discarded = [prefix for prefix, _, _ in file.transit.rows(DISCARD)]
    speaker.families = [
        replace(family, announced=tuple(filter(family.accepted.holds, discarded)))
        for family in speaker.families
    ]


def _require_discards(file: RouterText, speaker: Speaker) -> None:
    """Note the families without a route that discards packets for the whole pool.

    The routes to switches have longer prefixes and are preferred, so this one discards only packets
    for addresses that no switch has.
    """
    discarded = {prefix_text(prefix) for prefix, _, _ in file.transit.rows(DISCARD)}
    for pool in (family.accepted.pool for family in speaker.families):
        if prefix_text(pool) not in discarded:
            file.add_wrong(0, f"no route that discards what is left of {pool}")


def with_ports(switch: BgpSwitch, port_of: dict[str, str], file: str, numbered: bool) -> BgpSwitch:
    """Give the sessions of a switch their ports.

    Args:
        switch: the switch.
        port_of: the port of each session, by its `peer`.
        file: the file with the sessions.
        numbered: whether links have addresses. Then the neighbours' addresses become next hops,
            which are checked.
    """
    families = tuple(
        replace(family, sessions=tuple(_sessions_at_ports(family.sessions, port_of)))
        for family in switch.families
    )
    hops = [
        NextHop(port_of.get(session.peer, ""), session.peer, file, session.line)
        for family in (switch.families if numbered else ())
        for session in family.sessions
    ]
    emitted = replace(switch.without_bgp, next_hops=hops)
    return replace(switch, families=families, without_bgp=emitted)


def _sessions_at_ports(
    sessions: Iterable[BgpNeighbour], port_of: dict[str, str]
) -> Iterator[BgpNeighbour]:
    """Yield sessions with the ports behind which their neighbours are."""
    for session in sessions:
        yield replace(session, port=port_of.get(session.peer, ""))
