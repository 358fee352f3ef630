"""Reader of a whole fabric of eBGP speakers: the best path of every switch to every prefix.

What they converge to is computed (`bgp_outcome`) and compared with the tables. After a failure BGP
finds the shortest paths that are left; no table says so, but shares whose next hops BGP finds are
followed then, too (`bgp_failures`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from compilers.readers.bgp.bgp_failures import ShareFailures, share_failures
from compilers.readers.bgp.bgp_outcome import SpeakerFamily, is_via
from compilers.readers.bgp.bgp_speaker import FAMILIES, BgpSwitch
from compilers.readers.emitted_forwarding import (
    VIA,
    Claim,
    EmittedSwitch,
    Interface,
    Lookup,
)


class BgpReader:
    """Reads the folder of a switch; the first time those of all others next to it, too.

    Args:
        speaker: reads one folder.
    """

    def __init__(self, speaker: Callable[[Path], BgpSwitch]) -> None:
        self._speaker = speaker
        self._places: dict[str, int] = {}
        self._all: list[BgpSwitch] = []
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
            self._speaker(folder)  # says what is wrong with it
        at = self._places[folder.name]
        switch = self._all[at]
        tables = tuple(table for f in self._families if (table := f.table(at, switch.file)))
        ports_of = {a: port for f in self._families for a, port in f.ports_of(at).items()}
        entering = {
            port: (*(_found(each, ports_of) for each in lookups), *tables * switch.falls_through)
            for port, lookups in switch.rest.by_ingress.items()
        }
        own = {prefix for family in switch.families for prefix in family.own}
        discards = [each for each in switch.rest.discards if each[0] not in own]
        once = {prefix: (file, line) for prefix, file, line in reversed(discards)}
        return replace(
            switch.rest,
            anywhere=tables,
            by_ingress=entering,
            discards=discards,
            converged=True,
            wrong=[*_static(switch.rest), *switch.rest.wrong],
            claimed=switch.rest.claimed | {"discard", "AS number", "session"},
            claims=[
                *switch.rest.claims,
                Claim("AS number", (switch.number,), switch.file, switch.line),
                *_sessions(switch),
                *(Claim("discard", (p,), *place) for p, place in once.items()),
            ],
        )

    def failures(self, folder: Path) -> ShareFailures | None:
        """What becomes of shares under failures; None: there are none.

        Args:
            folder: that of all switches.
        """
        if not self._places:
            self._read_all(folder)
        shares = any(family.vias.any() for family in self._families)
        return share_failures(self._all, self._families) if shares else None

    def ports_left(
        self, folder: Path, closed: Collection[tuple[str, str]]
    ) -> dict[str, dict[str, frozenset[str]]]:
        """{switch: {prefix: ports}} of BGP's outcome with ports closed; see `SpeakerFamily`.

        Args:
            folder: that of all switches.
            closed: (switch, port).
        """
        if not self._places:
            self._read_all(folder)
        places = {(self._places[node], port) for node, port in closed if node in self._places}
        families = [family.ports_left(places) for family in self._families]
        return {
            node: {prefix: ports for found in families for prefix, ports in found[at].items()}
            for node, at in self._places.items()
        }

    def _read_all(self, folder: Path) -> None:
        for each in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                switch = self._speaker(each)
            except (OSError, ValueError):
                continue  # reported when it is asked for
            self._places[each.name] = len(self._all)
            self._all.append(switch)
        self._all = list(_that_agree(self._all))
        widest = max((len(switch.families) for switch in self._all), default=0)
        self._families = [SpeakerFamily(self._all, number) for number in range(widest)]


def _that_agree(speakers: Sequence[BgpSwitch]) -> Iterator[BgpSwitch]:
    """Speakers, and what is wrong: a router id that another has, a path of another length."""
    first = {speaker.router_id: speaker.file for speaker in reversed(speakers)}
    announced: dict[str, str] = {}
    usual, _ = next(iter(Counter(speaker.most for speaker in speakers).most_common(1)), (0, 0))
    for speaker in speakers:
        wrong = list(speaker.rest.wrong)
        wrong += [
            (speaker.file, 0, f"next hop {via} is announced by {other}, too")
            for via in _vias(speaker)
            if (other := announced.setdefault(via, speaker.file)) != speaker.file
        ]
        if (other := first[speaker.router_id]) != speaker.file:
            wrong.append((speaker.file, 0, f"router id {speaker.router_id} is that of {other}"))
        if speaker.most != usual:
            text = f"paths of {speaker.most} systems at most, elsewhere of {usual}"
            wrong.append((speaker.file, 0, text))
        yield replace(speaker, rest=replace(speaker.rest, wrong=wrong))


def _vias(switch: BgpSwitch) -> Iterator[str]:
    """The addresses that it announces for next hops."""
    for family in switch.families:
        yield from (prefix for prefix in family.own if is_via(prefix, family.via))


def _sessions(switch: BgpSwitch) -> Iterator[Claim]:
    """With whom a switch speaks, behind which port; what is behind none counts as a next hop."""
    for words, family in zip(FAMILIES, switch.families, strict=False):
        for session in filter(lambda each: each.port, family.sessions):
            value = (Interface(session.port), words["family"], f"AS {session.number}")
            yield Claim("session", value, switch.file, session.line)


def _static(rest: EmittedSwitch) -> Iterator[tuple[str, int, str]]:
    """Static routes: they go before those that BGP finds, and stay when a neighbour dies.

    Those of entering packets do not, where BGP finds their next hops.
    """
    for lookup in dict.fromkeys((*rest.anywhere, *chain(*rest.by_ingress.values()))):
        rows = lookup.rows
        moving = [
            lookup not in rest.anywhere
            and all(str(port).startswith(VIA) for stage in found for port, _ in stage)
            for found in lookup.chains
        ]
        for row, line in enumerate(rows.lines.tolist()):
            if not moving[int(lookup.number[rows.entries[row]])]:
                yield rows.file, line, f"a static route to {rows.name(row)}, which goes before BGP"


def _found(lookup: Lookup, ports_of: Mapping[str, str]) -> Lookup:
    """A table with the ports that are found by addresses; those that none has stay as they are."""
    chains = [
        tuple(
            tuple(
                (ports_of.get(str(port).removeprefix(VIA), port), weight) for port, weight in stage
            )
            for stage in found
        )
        for found in lookup.chains
    ]
    return replace(lookup, chains=chains)
