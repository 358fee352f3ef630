"""Readers of the folders of eBGP speakers, one a system; `bgp_reader` puts the fabric together.

What is not about BGP is read as with static routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from compilers.readers.bgp.bgp_dialects import (
    AVD,
    EOS,
    FRR,
    FRR_UNDER_SONIC,
    JUNOS,
    NXOS,
    SRL_OTHERS,
    SRL_WATCHED,
    SRLINUX,
    BgpDialect,
)
from compilers.readers.bgp.bgp_reader import is_taken
from compilers.readers.bgp.bgp_speaker import BgpNeighbour, BgpSwitch, Speaker
from compilers.readers.emitted_forwarding import EmittedSwitch, NextHop
from compilers.readers.routers.avd_config import read_avd
from compilers.readers.routers.cli_sections import (
    CliReader,
    read_eos,
    read_frr_under_sonic,
    read_nxos,
)
from compilers.readers.routers.frr_reader import NAME, read_frr_text
from compilers.readers.routers.junos_set import read_junos
from compilers.readers.routers.router_files import read_router
from compilers.readers.routers.router_forwarding import (
    agree,
    agree_on_facts,
    agree_on_interfaces,
    far_ends,
    forwarding,
)
from compilers.readers.routers.router_text import DISCARD, RouterText
from compilers.readers.routers.sonic_config import read_sonic
from compilers.readers.routers.srlinux_config import SRL, SRL_INSTANCES, read_srlinux
from compilers.readers.statements import Statements, in_tree
from compilers.readers.strict_json import parse

AVD_KEYS = ("router_bgp", "router_bfd", "route_maps", "prefix_lists", "ipv6_prefix_lists")
SRL_KEYS = (f"{SRL}routing-policy:routing-policy", f"{SRL}bfd:bfd", "protocols")
"""Keys that are about BGP."""
PART_OF_POLICY = re.compile(
    r"(?:policy-options policy-statement|routing-policy / policy) (\S+) (?:term|/ statement) (\S+) "
)
"""How statements begin about the parts of a policy, which are tried in the order of the text."""


def frr(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target frr, whose sessions are with whoever is at the other end of a link.

    Raises:
        OSError: a file is not there.
    """
    files, actor, engine = read_frr_text(folder, bfd)
    file = str(folder / NAME)
    speaker = Speaker.read(Statements(engine.said), FRR, bfd)
    return speaker.switch(file, files.switch(file, files.tables(NAME, engine, actor.ways), ()))


def eos(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target eos: the device's configuration, and AVD's, which says the same."""
    router, speaker = _sections(read_eos, folder / "eos.cfg", EOS, bfd)
    avd, same = _tree(read_avd, folder / "avd.json", AVD, AVD_KEYS, bfd)
    agree_on_interfaces(router, avd)
    agree_on_facts(router, avd)
    agree(router, avd)
    avd.strange += same.said.unknown()
    avd.faults += ((0, text) for text in same.said.lacking())
    if not _say_the_same(speaker, same):
        avd.fault(0, f"BGP is not as in {router.file}")
    return numbered(router, speaker, forwarding(router, avd))


def nxos(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target nxos."""
    router, speaker = _sections(read_nxos, folder / "nxos.cfg", NXOS, bfd)
    return numbered(router, speaker, forwarding(router))


def junos(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target junos; its policy announces every route that it matches."""
    return _announcing(*_sections(read_junos, folder / "junos.set", JUNOS, bfd))


def srlinux(folder: Path, bfd: bool) -> BgpSwitch:
    """A folder of target srlinux; its policy announces every route that it matches."""
    router, speaker = _tree(read_srlinux, folder / "srlinux.json", SRLINUX, SRL_KEYS, bfd)
    ends = dict(far_ends(router))
    for family in speaker.families:
        for session in family.sessions if bfd else ():
            speaker.said.need(SRL_WATCHED, {"port": ends.get(session.port, "")})
    if speaker.families[1:]:
        speaker.said.need(SRL_OTHERS, {})
    return _announcing(router, speaker)


def sonic(folder: Path, bfd: bool, hwsku: str = "") -> BgpSwitch:
    """A folder of target sonic: CONFIG_DB, and the sessions of frr.conf."""
    router = read_router(partial(read_sonic, hwsku=hwsku), folder / "config_db.json")
    text, speaker = _sections(read_frr_under_sonic, folder / "frr.conf", FRR_UNDER_SONIC, bfd)
    agree(router, text)
    agree_on_facts(router, text)
    return numbered(router, speaker, forwarding(router, text), text.file)


def _sections(
    read: CliReader, file: Path, dialect: BgpDialect, bfd: bool
) -> tuple[RouterText, Speaker]:
    """What a configuration in sections says, and what it says of BGP."""
    said: list[Statements] = []

    def routed(text: str, name: str) -> RouterText:
        router, engine = read(text, name)
        said.append(Statements({t.removeprefix("set "): n for t, n in engine.said.items()}))
        return router

    router = read_router(routed, file)
    return router, Speaker.read(said[0], dialect, bfd)


def _tree(
    read: Callable[[str, str, Collection[str]], RouterText],
    file: Path,
    dialect: BgpDialect,
    keys: Collection[str],
    bfd: bool,
) -> tuple[RouterText, Speaker]:
    """The same of JSON; what is about BGP stands under some keys, at the top or of an instance."""
    said: dict[str, int] = {}

    def apart(text: str, name: str) -> RouterText:
        tree = parse(text)
        instances = [
            {"name": each["name"], "protocols": each["protocols"]}
            for each in tree.get(SRL_INSTANCES, [])
            if "protocols" in each
        ]
        about = {key: tree[key] for key in keys if key in tree}
        if "prefix_lists" in about:
            about["ip_prefix_lists"] = about.pop("prefix_lists")
        said.update(in_tree(about | {SRL_INSTANCES: instances}))
        return read(text, name, keys)

    router = read_router(apart, file)
    return router, Speaker.read(Statements(said), dialect, bfd)


def _say_the_same(first: Speaker, second: Speaker) -> bool:
    """Whether two files say the same of BGP."""
    told = [
        [
            (f.own, f.taken, {s.port: (s.number, s.usual, s.preferred) for s in f.sessions})
            for f in each.families
        ]
        for each in (first, second)
    ]
    return first.known == second.known and told[0] == told[1]


def _announcing(router: RouterText, speaker: Speaker) -> BgpSwitch:
    """A speaker that announces those of its routes that its policy lets out.

    The parts of its policies are tried in the order of the text: 10, 20, others.
    """
    parts: dict[str, dict[str, int]] = {}
    for statement, line in speaker.said.said.items():
        if found := PART_OF_POLICY.match(statement):
            parts.setdefault(found[1], {}).setdefault(found[2], line)
    for policy, places in parts.items():
        if list(places) != sorted(places):
            first = next(iter(places))
            router.fault(places[first], f"{first} of policy {policy} is tried before the others")
    discarded = [prefix for prefix, _, _ in router.transit.rows(DISCARD)]
    speaker.families = [
        replace(f, own=tuple(p for p in discarded if is_taken(p, *f.taken)))
        for f in speaker.families
    ]
    return numbered(router, speaker, forwarding(router))


def numbered(
    router: RouterText, speaker: Speaker, rest: EmittedSwitch, file: str = ""
) -> BgpSwitch:
    """A speaker whose neighbours have addresses, which are behind the ports of their networks."""
    file = file or router.file
    ends = dict(far_ends(router))
    hops: list[NextHop] = []

    def behind_ports(sessions: Iterable[BgpNeighbour]) -> Iterable[BgpNeighbour]:
        for session in sessions:
            port = ends.get(session.port, "")
            hops.append(NextHop(port, session.port, file, session.line))
            yield replace(session, port=port)

    switch = speaker.switch(file, rest)
    families = tuple(
        replace(family, sessions=tuple(behind_ports(family.sessions))) for family in switch.families
    )
    return replace(switch, families=families, rest=replace(switch.rest, next_hops=hops))
