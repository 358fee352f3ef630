"""Readers of the folders of eBGP speakers; `bgp_reader` puts the fabric together.

What is not about BGP is read as with static routes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from compilers.readers.bgp.bgp_dialects import dialect
from compilers.readers.bgp.bgp_outcome import is_taken, is_via
from compilers.readers.bgp.bgp_speaker import BgpNeighbour, BgpSwitch, Speaker, SpeakerOptions
from compilers.readers.emitted_forwarding import NextHop, prefix_text
from compilers.readers.routers.router_files import RouterFolder, read_files
from compilers.readers.routers.router_forwarding import far_ends, forwarding
from compilers.readers.routers.router_text import DISCARD, RouterText
from compilers.readers.statements import Statements


def read_speaker(
    form: RouterFolder, folder: Path, asked: SpeakerOptions, defined: Collection[str] = ()
) -> BgpSwitch:
    """A folder of a switch whose sessions are with addresses, or over links without any.

    Args:
        form: the files of its system.
        folder: of the switch.
        asked: what it was rendered for.
        defined: see `router_files.read_router`.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    found = read_files(form, folder, defined)
    routers = [router for router, _ in found]
    router, spoken = routers[0], list[tuple[RouterText, Speaker]]()
    addressed = asked.numbered
    for text, engine in found:
        if (known := dialect(Path(text.file).name)).once:
            said = Statements.below(engine.said, "set ", tree=bool(engine.grammar.tree))
            spoken.append((text, Speaker.read(said, known, asked)))
    (where, speaker), *more = spoken
    if speaker.families[1:] and addressed:
        speaker.said.need(speaker.dialect.both, {})
    for other, same in more:
        other.strange += same.said.unknown()
        other.faults += ((0, text) for text in same.said.lacking())
        facts, others = _facts(speaker), _facts(same)
        if facts.keys() != others.keys():
            line = max((others[fact] for fact in others.keys() - facts.keys()), default=0)
            other.fault(line, f"BGP is not as in {where.file}")
    if not addressed and where is router:  # a session makes its port a routed one
        for session in (each for family in speaker.families for each in family.sessions):
            if session.port in router.interfaces:
                router.interfaces[session.port].unnumbered = True
    ends = _behind_ports(router)
    for session in (each for family in speaker.families for each in family.sessions if asked.bfd):
        speaker.said.need(speaker.dialect.links, {"port": ends.get(session.port, "")})
    if form.announces_discarded:
        _announce(router, speaker, form.policy_part)
    discarded = {prefix_text(prefix) for prefix, _, _ in router.transit.rows(DISCARD)}
    for pool in (family.taken[0] for family in speaker.families):
        if prefix_text(pool) not in discarded:
            router.fault(0, f"no route that discards what is left of {pool}")
    switch = speaker.switch(where.file, forwarding(*routers, recursive=True))
    hops: list[NextHop] = []

    def behind_ports(sessions: Iterable[BgpNeighbour]) -> Iterable[BgpNeighbour]:
        for session in sessions:
            port = ends.get(session.port, "")
            hops.extend([NextHop(port, session.port, where.file, session.line)] * addressed)
            yield replace(session, port=port)

    families = tuple(
        replace(family, sessions=tuple(behind_ports(family.sessions))) for family in switch.families
    )
    return replace(switch, families=families, rest=replace(switch.rest, next_hops=hops))


def _behind_ports(router: RouterText) -> dict[str, str]:
    """The ports of sessions, by what these are called by: an address, or the port itself."""
    alone = {name: name for name, found in router.interfaces.items() if found.unnumbered}
    return dict(far_ends(router)) | alone


def _facts(speaker: Speaker) -> dict[object, int]:
    """What a file says of BGP, each with its line, 0 where it has several."""
    facts: dict[object, int] = {known: speaker.line(known[0]) for known in speaker.known.items()}
    for number, family in enumerate(speaker.families):
        facts[number, family.own, family.taken, family.via] = 0
        for s in family.sessions:
            facts[number, s.port, s.number, s.usual, frozenset(s.preferred.items())] = s.line
    return facts


def _announce(router: RouterText, speaker: Speaker, part: re.Pattern[str] | None) -> None:
    """Have a speaker announce those of its routes that its policy lets out.

    The parts of its policies are tried in the order of the text: 10, 20, others.
    """
    parts: dict[str, dict[str, int]] = {}
    for statement, line in speaker.said.said.items():
        if part and (found := part.match(statement)):
            parts.setdefault(found[1], {}).setdefault(found[2], line)
    for policy, places in parts.items():
        if list(places) != sorted(places):
            first = next(iter(places))
            router.fault(places[first], f"{first} of policy {policy} is tried before the others")
    discarded = [prefix for prefix, _, _ in router.transit.rows(DISCARD)]
    speaker.families = [
        replace(f, own=tuple(p for p in discarded if is_taken(p, *f.taken) or is_via(p, f.via)))
        for f in speaker.families
    ]
