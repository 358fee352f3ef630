"""Readers of one switch's folder where its sessions are told by the grammar of a router.

EOS, NX-OS, Junos and others have one file, or several that say the same. What they say about BGP
becomes a `Speaker`; everything else is read as with static routes (`router_files`). `bgp_reader`
puts the switches of a fabric together.
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
    """A file that says something about BGP."""

    text: RouterText
    speaker: Speaker


def read_speaker(
    form: RouterFolder, folder: Path, options: SpeakerOptions, defined: Collection[str] = ()
) -> BgpSwitch:
    """Read the folder of a switch that speaks BGP.

    Args:
        form: the files of its system.
        folder: of the switch.
        options: what the files were rendered with.
        defined: see `router_files.read_router`.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = read_files(form, folder, defined)
    router = files[0].text
    first, *others = _speaker_files(files, options)
    speaker = first.speaker
    if speaker.families[1:] and options.numbered:
        speaker.statements.need(speaker.dialect.both, {})
    for other in others:
        _compare(first, other)
    if not options.numbered and first.text is router:  # a session makes its port a routed one
        for session in _sessions(speaker):
            if session.port in router.interfaces:
                router.interfaces[session.port].unnumbered = True
    port_of = _port_of_session(router)
    for session in _sessions(speaker) if options.bfd else ():
        speaker.statements.need(speaker.dialect.links, {"port": port_of.get(session.port, "")})
    if form.announces_discarded:
        _announce_discarded(router, speaker, form.policy_part)
    _require_discards(router, speaker)
    rest = forwarding(*(file.text for file in files), recursive=True)
    switch = speaker.switch(first.text.file, rest)
    switch = with_ports(switch, port_of, first.text.file, options.numbered)
    far_ends = {str(f.value[0]): str(f.value[1]) for f in router.facts if f.kind == "description"}
    return with_described_sessions(switch, far_ends)


def _speaker_files(files: Sequence[ReadFile], options: SpeakerOptions) -> Iterator[_SpeakerFile]:
    """The speaker of each file in which there is one: some systems have it in two forms."""
    for text, engine in files:
        if (words := dialect(Path(text.file).name)).once:
            tree = bool(engine.grammar.tree)
            statements = Statements.below(engine.statements, "set ", tree=tree)
            yield _SpeakerFile(text, Speaker.read(statements, words, options))


def _compare(first: _SpeakerFile, other: _SpeakerFile) -> None:
    """Note in another file of the switch what it says of BGP otherwise than the first."""
    other.text.strange += other.speaker.statements.unknown()
    other.text.faults += ((0, text) for text in other.speaker.statements.lacking())
    expected, facts = _facts(first.speaker), _facts(other.speaker)
    if expected.keys() != facts.keys():
        line = max((facts[fact] for fact in facts.keys() - expected.keys()), default=0)
        other.text.fault(line, f"BGP is not as in {first.text.file}")


def _facts(speaker: Speaker) -> dict[object, int]:
    """What a file says of BGP, each fact with its line, 0 where it is spread over several."""
    facts: dict[object, int] = {fact: speaker.line(fact[0]) for fact in speaker.fields.items()}
    for number, family in enumerate(speaker.families):
        facts[number, family.own, family.accepted] = 0
        for s in family.sessions:
            preferred = frozenset(s.preferred.items())
            facts[number, s.port, s.as_number, s.metric, preferred] = s.line
    return facts


def _sessions(speaker: Speaker) -> Iterator[BgpNeighbour]:
    """The sessions of all families."""
    for family in speaker.families:
        yield from family.sessions


def _port_of_session(router: RouterText) -> dict[str, str]:
    """The port of each session, by what names the session: the neighbour's address, or the port."""
    unnumbered = {name: name for name, port in router.interfaces.items() if port.unnumbered}
    return dict(far_ends(router)) | unnumbered


def _announce_discarded(router: RouterText, speaker: Speaker, part: re.Pattern[str] | None) -> None:
    """Have a speaker announce the discarded prefixes that its policy lets out.

    The parts of a policy are tried in the order of the text, which has to be 10, 20, others.
    """
    parts: dict[str, dict[str, int]] = {}
    for statement, line in speaker.statements.lines.items():
        if part and (match := part.match(statement)):
            parts.setdefault(match[1], {}).setdefault(match[2], line)
    for policy, lines in parts.items():
        if list(lines) != sorted(lines):
            first = next(iter(lines))
            router.fault(lines[first], f"{first} of policy {policy} is tried before the others")
    discarded = [prefix for prefix, _, _ in router.transit.rows(DISCARD)]
    speaker.families = [
        replace(family, own=tuple(p for p in discarded if family.accepted.holds(p)))
        for family in speaker.families
    ]


def _require_discards(router: RouterText, speaker: Speaker) -> None:
    """Note the families without a route that discards what no other route of the fabric is for."""
    discarded = {prefix_text(prefix) for prefix, _, _ in router.transit.rows(DISCARD)}
    for pool in (family.accepted.pool for family in speaker.families):
        if prefix_text(pool) not in discarded:
            router.fault(0, f"no route that discards what is left of {pool}")


def with_ports(switch: BgpSwitch, port_of: dict[str, str], file: str, numbered: bool) -> BgpSwitch:
    """A switch whose sessions name their ports; their addresses become next hops to check."""
    hops: list[NextHop] = []

    def behind_ports(sessions: Iterable[BgpNeighbour]) -> Iterator[BgpNeighbour]:
        for session in sessions:
            port = port_of.get(session.port, "")
            if numbered:
                hops.append(NextHop(port, session.port, file, session.line))
            yield replace(session, port=port)

    families = tuple(
        replace(family, sessions=tuple(behind_ports(family.sessions))) for family in switch.families
    )
    return replace(switch, families=families, rest=replace(switch.rest, next_hops=hops))
