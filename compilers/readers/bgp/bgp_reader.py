"""Reader of a whole fabric of eBGP speakers: the best path of every switch to every prefix.

Each switch is a system of its own, so a path is as long as it has links, and the shortest one that
a switch's policies let in is taken (RFC 4271, section 9.1.2.2): of those of one length the one of
the least metric, and of these the one of the neighbour with the lowest router id. After a failure
BGP finds the shortest paths that are left; no table says so, and nothing is compared for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address, ip_network
from itertools import chain
from pathlib import Path

import numpy as np

from compilers.readers.bgp.bgp_speaker import FAMILIES, BgpSwitch
from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedRows,
    EmittedSwitch,
    Interface,
    Lookup,
)
from compilers.readers.route_tables import Integers

NO_PATH = 1 << 14


class BgpReader:
    """Reads the folder of a switch; the first time those of all others beside it, too.

    Args:
        speaker: reads one folder.
    """

    def __init__(self, speaker: Callable[[Path], BgpSwitch]) -> None:
        self._speaker = speaker
        self._places: dict[str, int] = {}
        self._all: list[BgpSwitch] = []
        self._families: list[_Family] = []

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
        own = {prefix for family in switch.families for prefix in family.own}
        discards = [each for each in switch.rest.discards if each[0] not in own]
        return replace(
            switch.rest,
            anywhere=tables,
            discards=discards,
            converged=True,
            wrong=[*_static(switch.rest), *switch.rest.wrong],
            claimed=switch.rest.claimed | {"discard", "AS number", "session"},
            claims=[
                *switch.rest.claims,
                Claim("AS number", (switch.number,), switch.file, switch.line),
                *_sessions(switch),
                *(Claim("discard", (p,), file, line) for p, file, line in discards),
            ],
        )

    def _read_all(self, folder: Path) -> None:
        for each in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                switch = self._speaker(each)
            except (OSError, ValueError):
                continue  # told when it is asked for
            self._places[each.name] = len(self._all)
            self._all.append(switch)
        self._all = list(_that_agree(self._all))
        widest = max((len(switch.families) for switch in self._all), default=0)
        self._families = [_Family(self._all, number) for number in range(widest)]


class _Family:
    """An address family of all speakers, and how far each is from every prefix."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: int) -> None:
        spoken = [s.families[family] if family < len(s.families) else None for s in speakers]
        self.sessions = [each.sessions if each else () for each in spoken]
        self.taken = [each.taken if each else ("", 0, -1) for each in spoken]
        self.own = [each.own if each else () for each in spoken]
        self.most = np.array([speaker.most for speaker in speakers])[:, None]
        number = {speaker.number: at for at, speaker in enumerate(speakers)}
        self.prefixes = list(dict.fromkeys(prefix for own in self.own for prefix in own))
        self.place = {prefix: at for at, prefix in enumerate(self.prefixes)}
        self.ends = [
            [
                (session, far)
                for session in self.sessions[at]
                if (far := number.get(session.number, -1)) >= 0
                and any(back.number == speaker.number for back in self.sessions[far])
            ]
            for at, speaker in enumerate(speakers)
        ]
        self.away = self._away()
        ids = sorted({speaker.router_id for speaker in speakers}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in speakers], np.int64)

    def _away(self) -> Integers:
        """int64[S, P]: the links to every prefix, by paths that every switch on them takes."""
        order, count = len(self.own), len(self.prefixes)
        joined = np.zeros((order, order), np.float32)
        for at, ends in enumerate(self.ends):
            joined[at, [far for _, far in ends]] = 1
        lists = {taken: self._let_in(taken) for taken in set(self.taken)}
        taken = np.array([lists[each] for each in self.taken], bool).reshape(order, count)
        away = np.full((order, count), NO_PATH, np.int64)
        for at, own in enumerate(self.own):
            away[at, [self.place[prefix] for prefix in own]] = 0
        for links in range(1, NO_PATH):
            # What is not announced goes no further.
            last = (away == links - 1) & taken
            further = (joined @ last.astype(np.float32) > 0) & (away == NO_PATH)
            further &= taken & (links <= self.most)
            if not further.any():
                break
            away[further] = links
        return away

    def _let_in(self, taken: tuple[str, int, int]) -> list[bool]:
        """Which prefixes a list lets in and out."""
        return [is_taken(prefix, *taken) for prefix in self.prefixes]

    def table(self, at: int, file: str) -> Lookup | None:
        """The best paths of a switch; None where it has no neighbour."""
        ends = self.ends[at]
        if not ends:
            return None
        far = np.array([end for _, end in ends])
        usual = np.array([session.usual for session, _ in ends], np.int64)
        metric = np.tile(usual[:, None], (1, len(self.prefixes)))
        for row, (session, _) in enumerate(ends):
            for prefix, value in session.preferred.items():
                if prefix in self.place:
                    metric[row, self.place[prefix]] = value
        length = np.where(self.away[far] < self.away[at], self.away[far], NO_PATH)
        order = (length * (int(metric.max(initial=0)) + 1) + metric) * len(self.own) + self.rank[
            far
        ][:, None]
        best = order.argmin(axis=0)
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH))
        lines = np.array([session.line for session, _ in ends], np.int64)
        names = [self.prefixes[place] for place in there.tolist()]
        rows = EmittedRows(file, names, best[there], lines[best[there]])
        chains = [(((session.port, 1),),) for session, _ in ends]
        return Lookup(rows, chains, np.arange(len(chains)))


def _that_agree(speakers: Sequence[BgpSwitch]) -> Iterator[BgpSwitch]:
    """Speakers, and what is wrong: a router id that another has, a path of another length."""
    first = {speaker.router_id: speaker.file for speaker in reversed(speakers)}
    usual, _ = next(iter(Counter(speaker.most for speaker in speakers).most_common(1)), (0, 0))
    for speaker in speakers:
        wrong = list(speaker.rest.wrong)
        if (other := first[speaker.router_id]) != speaker.file:
            wrong.append((speaker.file, 0, f"router id {speaker.router_id} is that of {other}"))
        if speaker.most != usual:
            text = f"paths of {speaker.most} systems at most, elsewhere of {usual}"
            wrong.append((speaker.file, 0, text))
        yield replace(speaker, rest=replace(speaker.rest, wrong=wrong))


def _sessions(switch: BgpSwitch) -> Iterator[Claim]:
    """With whom a switch speaks, behind which port; what is behind none is told as a next hop."""
    for words, family in zip(FAMILIES, switch.families, strict=False):
        for session in filter(lambda each: each.port, family.sessions):
            value = (Interface(session.port), words["family"], f"AS {session.number}")
            yield Claim("session", value, switch.file, session.line)


def _static(rest: EmittedSwitch) -> Iterator[tuple[str, int, str]]:
    """Static routes: they go before those that BGP finds, and stay when a neighbour dies."""
    for lookup in dict.fromkeys((*rest.anywhere, *chain(*rest.by_ingress.values()))):
        rows = lookup.rows
        for row, line in enumerate(rows.lines.tolist()):
            yield rows.file, line, f"a static route to {rows.name(row)}, which goes before BGP"


def is_taken(prefix: str, pool: str, shortest: int, longest: int) -> bool:
    """Whether a prefix is part of a pool and of one of the lengths."""
    try:
        network, whole = ip_network(prefix), ip_network(pool)
    except ValueError:
        return False
    if network.version != whole.version or not shortest <= network.prefixlen <= longest:
        return False
    return network.network_address in whole


def _router_id(text: str) -> int:
    try:
        return int(ip_address(text))
    except ValueError:
        return 0
