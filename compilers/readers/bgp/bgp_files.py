"""Reads the folder of one router that speaks BGP, on systems with a grammar (EOS, NX-OS, …).

What comes in is a folder with one configuration file, or with several files that state the same
configuration. What goes out is a `BgpSwitch`: the statements about BGP as a `Speaker`, and the
forwarding of all other statements, read as with static routes (`router_files`). `bgp_reader` calls
`read_speaker` for each switch, and computes the routes that BGP finds between them.
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
    """A file with statements about BGP."""

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
    # The first file of a system states the ports. BGP is in the same file, or on SONiC in another.
    ports_file = files[0].text
    bgp_file, *further_bgp_files = _speaker_files(files, options)
    speaker = bgp_file.speaker
    has_both_families = len(speaker.families) > 1
    # `need` marks statements as read, and notes those that are not there as missing.
    if has_both_families and options.numbered:  # each family has sessions of its own
        speaker.statements.need(speaker.dialect.dual_stack, {})
    for file in further_bgp_files:
        _compare(bgp_file, file)
    # A session without addresses names its port. If another file states the ports, it also states
    # which of them have no address.
    bgp_is_in_ports_file = bgp_file.text is ports_file
    if not options.numbered and bgp_is_in_ports_file:
        _mark_unnumbered(ports_file, speaker)
    port_of = _port_of_session(ports_file)
    if options.bfd:
        for session in _sessions(speaker):
            port = port_of.get(session.peer, "")
            speaker.statements.need(speaker.dialect.bfd_link, {"port": port})
    if system.announces_discarded:
        _check_policy_order(ports_file, speaker, system.policy_part)
        _announce_discarded(ports_file, speaker)
    _require_discards(ports_file, speaker)
    without_bgp = forwarding(*(file.text for file in files), recursive=True)
    switch = speaker.switch(bgp_file.text.file, without_bgp)
    switch = with_ports(switch, port_of, bgp_file.text.file, options.numbered)
    descriptions = (fact.value for fact in ports_file.facts if fact.kind == "description")
    return with_described_sessions(switch, {str(port): str(text) for port, text in descriptions})


def _speaker_files(files: Sequence[ReadFile], options: SpeakerOptions) -> Iterator[_SpeakerFile]:
    """Yield the speaker of each file that configures one: some systems have two such files."""
    for text, engine in files:
        file_dialect = dialect(Path(text.file).name)
        if file_dialect.switch:
            if engine.grammar.tree_format:
                statements = Statements.of_tree(engine.statement_lines)
            else:
                statements = Statements.without_command(engine.statement_lines, "set ")
            yield _SpeakerFile(text, Speaker.read(statements, file_dialect, options))


def _mark_unnumbered(ports_file: RouterText, speaker: Speaker) -> None:
    """Mark the ports that sessions name as routed, though they have no addresses."""
    for session in _sessions(speaker):
        if session.peer in ports_file.interfaces:
            ports_file.interfaces[session.peer].unnumbered = True


def _compare(first: _SpeakerFile, other: _SpeakerFile) -> None:
    """Note in a further file of a switch where its BGP differs from that of the first one."""
    text, statements = other.text, other.speaker.statements
    text.unread += statements.unread()
    text.wrong += ((0, missing) for missing in statements.missing_texts())
    expected, facts = _facts(first.speaker), _facts(other.speaker)
    if expected.keys() != facts.keys():
        line = max((facts[fact] for fact in facts.keys() - expected.keys()), default=0)
        text.add_wrong(line, f"BGP is not as in {first.text.file}")


def _facts(speaker: Speaker) -> dict[object, int]:
    """The facts that a file states about BGP, with their lines; 0 for a fact of several lines.

    A fact is a tuple: a field of the whole switch, the prefixes of a family, or a session with its
    metrics. Two files that configure the same BGP have equal facts.
    """
    facts: dict[object, int] = {}
    for name, text in speaker.fields.items():
        facts["field", name, text] = speaker.line(name)
    for number, family in enumerate(speaker.families):
        facts["prefixes", number, family.announced, family.accepted] = 0
        for session in family.sessions:
            metrics = session.metric, frozenset(session.preferred.items())
            facts["session", number, session.peer, session.as_number, metrics] = session.line
    return facts


def _sessions(speaker: Speaker) -> Iterator[BgpNeighbour]:
    """The sessions of all families."""
    for family in speaker.families:
        yield from family.sessions


def _port_of_session(ports_file: RouterText) -> dict[str, str]:
    """The port of each session by its `peer`, an address, or the port itself."""
    unnumbered = {name: name for name, port in ports_file.interfaces.items() if port.unnumbered}
    return dict(far_ends(ports_file)) | unnumbered


def _check_policy_order(file: RouterText, speaker: Speaker, part: re.Pattern[str] | None) -> None:
    """Note the policies whose parts do not stand in the order of their names.

    The system tries the parts of a policy in the order of the text, whatever their names.

    Args:
        file: the file with the policies, which gets the notes.
        speaker: the speaker.
        part: how a statement about a part of a policy begins (`RouterFolder.policy_part`).
    """
    first_lines: dict[str, dict[str, int]] = {}  # by the names of policy and part
    for statement, line in speaker.statements.lines.items():
        if part and (match := part.match(statement)):
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
