"""Reader of frr.conf with eBGP: what one switch says of itself, its neighbours, and its policies.

Only one shape of configuration is understood: each line of it has to be there, and no other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.frr_reader import NAME, read_frr_lines
from compilers.readers.iproute_reader import RouterFiles

FAMILIES = {"ip": "ipv4", "ipv6": "ipv6"}
SESSION = re.compile(r"neighbor (\S+) interface v6only remote-as (\d+)")
NEAR = re.compile(
    r"bgp as-path access-list near seq 5 permit \^\[0-9\]\+\( \[0-9\]\+\)\{0,(\d+)\}\$"
)
LISTED = re.compile(r"(ip|ipv6) prefix-list (\S+) seq (\d+) permit (\S+)(?: ge (\d+) le (\d+))?")
HARMLESS = {"bgp log-neighbor-changes", "neighbor fabric timers connect 1", "neighbor fabric bfd"}
BEST_PATH = (
    "bgp always-compare-med",
    "bgp bestpath compare-routerid",
    "no bgp default ipv4-unicast",
    "no bgp network import-check",
    "neighbor fabric peer-group",
    "neighbor fabric capability extended-nexthop",
)
"""Lines without which the best path would be another one, or none."""
SECTIONS = ("router bgp ", "route-map ", " address-family ")
Statement = tuple[str, ...]
"""A line behind the lines of the sections that it stands in."""


@dataclass(slots=True)
class BgpNeighbour:
    """A neighbour: its system, the line, and the metric of prefixes that it announces.

    preferred: metrics of single prefixes; others have `metric`.
    """

    number: int
    line: int
    preferred: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class BgpSwitch:
    """A switch that speaks BGP: its system, its router id, the prefixes that it announces.

    sessions: by interface. taken: (prefix, shortest, longest) of what it accepts and announces.
    metric: of IPv4 and IPv6 prefixes for which a session has no other. most: the systems that a
    path may have. rest: everything but its routes.
    """

    rest: EmittedSwitch
    number: int = 0
    router_id: str = ""
    own: list[str] = field(default_factory=list)
    sessions: dict[str, BgpNeighbour] = field(default_factory=dict)
    taken: set[tuple[str, int, int]] = field(default_factory=set)
    metric: list[int] = field(default_factory=list)
    most: int = 0


def read_speaker(folder: Path) -> BgpSwitch:
    """A switch of target frr with eBGP, from its folder.

    Raises:
        OSError: a file is not there.
    """
    files = RouterFiles(folder)
    said = dict(_statements(read_frr_lines(files)))
    speaker = BgpSwitch(files.switch(str(folder / NAME), {}, ()))
    wanted = set(_wanted(speaker, said))
    for statement, line in said.items():
        if statement not in wanted and statement[-1] not in HARMLESS:
            files.unknown(NAME, line, " / ".join(statement))
    for statement in sorted(wanted - said.keys()):
        files.unknown(NAME, 0, f"no line {' / '.join(statement)}")
    return speaker


def _statements(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[Statement, int]]:
    """The lines with their sections; the same line a second time is of no use."""
    sections: list[str] = []
    for line, text in lines:
        words = text.strip()
        if words in ("exit", "exit-address-family"):
            sections = sections[:-1]
        elif words and words != "!":
            yield (*sections, words), line
            if text.startswith(SECTIONS):
                sections.append(words)


def _wanted(speaker: BgpSwitch, said: dict[Statement, int]) -> Iterator[Statement]:
    """The lines of a speaker; what it says is written down on the way."""
    router = next((s[0] for s in said if len(s) == 1 and s[0].startswith("router bgp ")), "")
    speaker.number = int(router.rpartition(" ")[2] or 0)
    yield (router,)
    yield from ((router, text) for text in BEST_PATH)
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (*sections, text), line in said.items():
        if sections == [router] and text.startswith("bgp router-id "):
            speaker.router_id = text.split()[2]
            yield router, text
        elif sections == [router] and (found := SESSION.fullmatch(text)):
            speaker.sessions[found[1]] = BgpNeighbour(int(found[2]), line)
            yield router, text
            yield router, f"neighbor {found[1]} peer-group fabric"
        elif not sections and (found := NEAR.fullmatch(text)):
            speaker.most = int(found[1]) + 1
            yield (text,)
        elif not sections and (found := LISTED.fullmatch(text)):
            word, name, _, prefix, shortest, longest = found.groups()
            if name == "fabric" and shortest:
                speaker.taken.add((prefix, int(shortest), int(longest)))
                yield (text,)
            elif name != "fabric" and not shortest:
                lists[word, name].append(prefix)
                yield (text,)
    for number, (word, family) in enumerate(FAMILIES.items()):
        if number and (router, f"address-family {family} unicast") not in said:
            break
        yield from _of_family(speaker, said, lists, router, word)


def _of_family(
    speaker: BgpSwitch,
    said: dict[Statement, int],
    lists: dict[tuple[str, str], list[str]],
    router: str,
    word: str,
) -> Iterator[Statement]:
    place = 10 if word == "ip" else 20
    section = router, f"address-family {FAMILIES[word]} unicast"
    yield section
    yield from ((*section, line) for line in ("neighbor fabric activate", "maximum-paths 1"))
    for name, way in (("fabric", "in"), ("announced", "out")):
        yield *section, f"neighbor fabric route-map {name} {way}"
    own = [s for s in said if s[:2] == section and s[-1].startswith("network ")]
    speaker.own += [statement[-1].split()[1] for statement in own]
    yield from own
    allowed = (f"route-map announced permit {place}",)
    yield allowed
    yield *allowed, f"match {word} address prefix-list fabric"
    metric, lines = _metric(said, "fabric", place, word)
    speaker.metric.append(metric)
    yield from lines
    for port, session in speaker.sessions.items():
        name = f"via-{port}"
        if (word, name) in lists or (*section, f"neighbor {port} route-map {name} in") in said:
            yield *section, f"neighbor {port} route-map {name} in"
            metric, lines = _metric(said, name, place, word)
            session.preferred |= dict.fromkeys(lists.get((word, name), ()), metric)
            yield from lines
            yield from (
                (f"route-map {name} permit 30",),
                (f"route-map {name} permit 30", "call fabric"),
            )


def _metric(
    said: dict[Statement, int], name: str, place: int, word: str
) -> tuple[int, list[Statement]]:
    """The metric that an entry of a route map sets, and the lines of that entry."""
    entry = f"route-map {name} permit {place}"
    found = [s for s in said if s[0] == entry and s[-1].startswith("set metric ")]
    metric = found[0][-1].split()[2] if found else "1"
    lines = [
        "match as-path near",
        f"match {word} address prefix-list {name}",
        f"set metric {metric}",
    ]
    return int(metric), [(entry,), *((entry, line) for line in lines)]
