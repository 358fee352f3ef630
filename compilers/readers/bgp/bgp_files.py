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
    router = files[0].text
    main, *other_files = _speaker_files(files, options)
    speaker = main.speaker
    has_both_families = len(speaker.families) > 1
    if has_both_families and options.numbered:  # each family has sessions of its own
        speaker.statements.need(speaker.dialect.dual_stack, {})
    for file in other_files:
        _compare(main, file)
    # A session without addresses names its port. On SONiC another file states BGP, and the first
    # file states which ports have no address.
    bgp_is_in_first_file = main.text is router
    if not options.numbered and bgp_is_in_first_file:
        _mark_unnumbered(router, speaker)
    port_of = _port_of_session(router)
    if options.bfd:
        for session in _sessions(speaker):
            port = port_of.get(session.peer, "")
            speaker.statements.need(speaker.dialect.bfd_link, {"port": port})
    if system.announces_discarded:
        _announce_discarded(router, speaker, system.policy_part)
    _require_discards(router, speaker)
    without_bgp = forwarding(*(file.text for file in files), recursive=True)
    switch = speaker.switch(main.text.file, without_bgp)
    switch = with_ports(switch, port_of, main.text.file, options.numbered)
    descriptions = (fact.value for fact in router.facts if fact.kind == "description")
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


def _mark_unnumbered(router: RouterText, speaker: Speaker) -> None:
    """Mark the ports that sessions name as routed, though they have no addresses."""
    for session in _sessions(speaker):
        if session.peer in router.interfaces:
            router.interfaces[session.peer].unnumbered = True


def _compare(main: _SpeakerFile, other: _SpeakerFile) -> None:
    """Note in a further file of a switch where its BGP differs from that of the main file."""
    text, statements = other.text, other.speaker.statements
    text.unread += statements.unread()
    text.wrong += ((0, missing) for missing in statements.missing_texts())
    expected, facts = _facts(main.speaker), _facts(other.speaker)
    if expected.keys() != facts.keys():
        line = max((facts[fact] for fact in facts.keys() - expected.keys()), default=0)
        text.add_wrong(line, f"BGP is not as in {main.text.file}")


def _facts(speaker: Speaker) -> dict[object, int]:
    """The facts that a file states about BGP, with their lines; 0 where several state one.

    Facts are tuples that two files of a switch have in common if they state the same: a field of
    the whole switch; the prefixes of a family; a session with its metrics.
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


def _port_of_session(router: RouterText) -> dict[str, str]:
    """The port of each session by its `peer`, an address, or the port itself."""
    unnumbered = {name: name for name, port in router.interfaces.items() if port.unnumbered}
    return dict(far_ends(router)) | unnumbered


def _announce_discarded(router: RouterText, speaker: Speaker, part: re.Pattern[str] | None) -> None:
    """Have a speaker announce the discarded prefixes that its policy accepts.

    The system tries the parts of a policy in the order of the text. So this has to be the order of
    their names.

    Args:
        router: the contents of the file.
        speaker: the speaker, whose families are changed.
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
            router.add_wrong(line, f"{first} of policy {policy} is tried before the others")
    discarded = [prefix for prefix, _, _ in router.transit.rows(DISCARD)]
    speaker.families = [
        replace(family, announced=tuple(filter(family.accepted.holds, discarded)))
        for family in speaker.families
    ]


def _require_discards(router: RouterText, speaker: Speaker) -> None:
    """Note the families without a route that discards packets for the whole pool.

    Longer prefixes go before it, so it takes packets for addresses that no switch has.
    """
    discarded = {prefix_text(prefix) for prefix, _, _ in router.transit.rows(DISCARD)}
    for pool in (family.accepted.pool for family in speaker.families):
        if prefix_text(pool) not in discarded:
            router.add_wrong(0, f"no route that discards what is left of {pool}")


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
