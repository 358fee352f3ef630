"""Reader of a fabric whose routes BGP finds: the best paths of every switch, from all folders.

A switch's configuration does not state its routes. So the first switch that is read makes the
reader read all folders next to it and compute what BGP converges to (`bgp_outcome`). The routes of
each switch are then compared with the tables, as those of static configurations are.

After a failure BGP takes the shortest paths that are left, which no table states. Only static
routes whose next hops BGP resolves are followed under failures (`bgp_failures`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from compilers.readers.bgp.bgp_failures import ShareFailures, share_failures
from compilers.readers.bgp.bgp_outcome import SpeakerFamily
from compilers.readers.bgp.bgp_speaker import FAMILIES, BgpSwitch
from compilers.readers.emitted_forwarding import (
    VIA,
    Claim,
    EmittedSwitch,
    Interface,
    Lookup,
)


class BgpReader:
    """Reads folders of switches, of which each call gives one; the first call reads all.

    Args:
        speaker: reads one folder.
    """

    def __init__(self, speaker: Callable[[Path], BgpSwitch]) -> None:
        self.speaker = speaker
        self._places: dict[str, int] = {}
        """The places of switches in `_switches`, by the names of their folders."""
        self._switches: list[BgpSwitch] = []
        self._families: list[SpeakerFamily] = []

    def __call__(self, folder: Path) -> EmittedSwitch:
        """A switch, from its folder.

        Raises:
            OSError: a file is not there.
            ValueError: (file, line, text) it makes no sense.
        """
        if not self._places:
            self._read_all(folder.parent)
        if folder.name not in self._places:
            self.speaker(folder)  # says what is wrong with it
        at = self._places[folder.name]
        switch = self._switches[at]
        tables = tuple(table for f in self._families if (table := f.table(at, switch.file)))
        port_of = {a: port for f in self._families for a, port in f.ports_to_next_hops(at).items()}
        then = tables if switch.falls_through else ()
        entering = {
            port: (*(_resolved(lookup, port_of) for lookup in lookups), *then)
            for port, lookups in switch.rest.by_ingress.items()
        }
        own = {prefix for family in switch.families for prefix in family.own}
        discards = [discard for discard in switch.rest.discards if discard[0] not in own]
        first_lines = {prefix: (file, line) for prefix, file, line in reversed(discards)}
        return replace(
            switch.rest,
            anywhere=tables,
            by_ingress=entering,
            discards=discards,
            converged=True,
            wrong=[*_static_routes(switch.rest), *switch.rest.wrong],
            claimed=switch.rest.claimed | {"discard", "AS number", "session"},
            claims=[
                *switch.rest.claims,
                Claim("AS number", (switch.as_number,), switch.file, switch.line),
                *_sessions(switch),
                *(Claim("discard", (p,), *place) for p, place in first_lines.items()),
            ],
        )

    def failures(self, folder: Path) -> ShareFailures | None:
        """Follow static routes whose next hops BGP resolves, under failures; None: there are none.

        Args:
            folder: the folder in which the switches have theirs.
        """
        if not self._places:
            self._read_all(folder)
        if not any(family.is_next_hop.any() for family in self._families):
            return None
        return share_failures(self._switches, self._families)

    def ports_left(
        self, folder: Path, closed: Collection[tuple[str, str]]
    ) -> dict[str, dict[str, frozenset[str]]]:
        """{switch: {prefix: ports}}: the ports of BGP's best paths while some ports are closed.

        Args:
            folder: the folder in which the switches have theirs.
            closed: (switch, port); the far ends of their links are down too.
        """
        if not self._places:
            self._read_all(folder)
        places = {(self._places[node], port) for node, port in closed if node in self._places}
        families = [family.ports_left(places) for family in self._families]
        return {
            node: {prefix: ports for family in families for prefix, ports in family[at].items()}
            for node, at in self._places.items()
        }

    def _read_all(self, folder: Path) -> None:
        switches: list[BgpSwitch] = []
        for path in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                switch = self.speaker(path)
            except (OSError, ValueError):
                continue  # `__call__` reads it again, and reports what is wrong
            self._places[path.name] = len(switches)
            switches.append(switch)
        self._switches = list(_with_disagreements(switches))
        most_families = max((len(switch.families) for switch in switches), default=0)
        self._families = [SpeakerFamily(self._switches, number) for number in range(most_families)]


def _with_disagreements(speakers: Sequence[BgpSwitch]) -> Iterator[BgpSwitch]:
    """Each speaker, with its faults that only a comparison with the others shows.

    A router id or the address of a next hop belongs to one switch, and all accept paths of the same
    length.
    """
    owner = {speaker.router_id: speaker.file for speaker in reversed(speakers)}
    announced_by: dict[str, str] = {}
    lengths = Counter(speaker.longest_path for speaker in speakers)
    usual_length, _ = next(iter(lengths.most_common(1)), (0, 0))
    for speaker in speakers:
        wrong = list(speaker.rest.wrong)
        wrong += [
            (speaker.file, 0, f"next hop {via} is announced by {other}, too")
            for via in _announced_next_hops(speaker)
            if (other := announced_by.setdefault(via, speaker.file)) != speaker.file
        ]
        if (other := owner[speaker.router_id]) != speaker.file:
            wrong.append((speaker.file, 0, f"router id {speaker.router_id} is that of {other}"))
        if speaker.longest_path != usual_length:
            text = f"paths of {speaker.longest_path} systems at most, elsewhere of {usual_length}"
            wrong.append((speaker.file, 0, text))
        yield replace(speaker, rest=replace(speaker.rest, wrong=wrong))


def _announced_next_hops(switch: BgpSwitch) -> Iterator[str]:
    """The addresses that a switch announces as next hops of static routes."""
    for family in switch.families:
        yield from (prefix for prefix in family.own if family.accepted.is_via(prefix))


def _sessions(switch: BgpSwitch) -> Iterator[Claim]:
    """The sessions of a switch: port, family and the neighbour's AS.

    A session whose port is not known is left out: its address is checked as a next hop.
    """
    for words, family in zip(FAMILIES, switch.families, strict=False):
        for session in family.sessions:
            if session.port:
                value = (Interface(session.port), words["family"], f"AS {session.as_number}")
                yield Claim("session", value, switch.file, session.line)


def _static_routes(rest: EmittedSwitch) -> Iterator[tuple[str, int, str]]:
    """Faults: static routes, which a system prefers to BGP's even when the neighbour is dead.

    Static routes for packets from hosts are right where BGP resolves all their next hops: these go
    away with the neighbour.
    """
    for lookup in dict.fromkeys((*rest.anywhere, *chain(*rest.by_ingress.values()))):
        rows = lookup.rows
        resolved_by_bgp = [
            lookup not in rest.anywhere
            and all(str(port).startswith(VIA) for stage in stages for port, _ in stage)
            for stages in lookup.chains
        ]
        for row, line in enumerate(rows.lines.tolist()):
            if not resolved_by_bgp[int(lookup.number[rows.entries[row]])]:
                yield rows.file, line, f"a static route to {rows.name(row)}, which goes before BGP"


def _resolved(lookup: Lookup, port_of: Mapping[str, str]) -> Lookup:
    """A table whose next hops are the ports by which BGP reaches their addresses.

    An address that BGP does not reach stays in the place of a port.
    """
    chains = [
        tuple(
            tuple(
                (port_of.get(str(port).removeprefix(VIA), port), weight) for port, weight in stage
            )
            for stage in stages
        )
        for stages in lookup.chains
    ]
    return replace(lookup, chains=chains)
