"""Reader of a whole fabric of eBGP speakers: the best path of every switch to every prefix.

Each switch is a system of its own, so a path is as long as it has links, and the shortest one that
a switch's policies let in is taken (RFC 4271, section 9.1.2.2): of those of one length the one of
the least metric, and of these the one of the neighbour with the lowest router id. After a failure
BGP finds the shortest paths that are left; no table says so, and nothing is compared for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from ipaddress import ip_address, ip_network
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_failures import MOST_SWITCHES, FailureCases, failure_cases
from compilers.readers.bgp.bgp_speaker import FAMILIES, BgpSwitch
from compilers.readers.emitted_forwarding import (
    VIA,
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
        ways = {a: port for f in self._families for a, port in f.ways(at).items()}
        entering = {
            port: (*(_found(each, ways) for each in lookups), *tables * switch.falls_through)
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

    def failures(self, folder: Path) -> FailureCases | None:
        """What becomes of shares under failures; None: there are none, or too many switches.

        Args:
            folder: that of all switches.
        """
        if not self._places:
            self._read_all(folder)
        shares = any(family.vias.any() for family in self._families)
        if not shares or len(self._all) > MOST_SWITCHES:
            return None
        return failure_cases(self._all, self._families)

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
        self._families = [SpeakerFamily(self._all, number) for number in range(widest)]


class SpeakerFamily:
    """An address family of all speakers, and how far each is from every prefix."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: int) -> None:
        spoken = [s.families[family] if family < len(s.families) else None for s in speakers]
        self.sessions = [each.sessions if each else () for each in spoken]
        self.taken = [(*each.taken, each.via) if each else ("", 0, -1, "") for each in spoken]
        self.own = [each.own if each else () for each in spoken]
        self.most = np.array([speaker.most for speaker in speakers])[:, None]
        number = {speaker.number: at for at, speaker in enumerate(speakers)}
        self.prefixes = list(dict.fromkeys(prefix for own in self.own for prefix in own))
        vias = {via for *_, via in self.taken if via}
        full = [any(_is_via(prefix, via) for via in vias) for prefix in self.prefixes]
        self.vias = np.array(full, np.bool_)
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
        lists = {taken: self._let_in(*taken) for taken in set(self.taken)}
        let_in = np.array([lists[each] for each in self.taken], np.bool_)
        self._taken = let_in.reshape(len(self.own), len(self.prefixes))
        self.away = self._away(np.ones(len(speakers), np.bool_), self._joined())
        ids = sorted({speaker.router_id for speaker in speakers}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in speakers], np.int64)
        self.no_path = NO_PATH

    def _joined(self) -> NDArray[np.float32]:
        """float32[S, S]: 1 where there is a session."""
        joined = np.zeros((len(self.own), len(self.own)), np.float32)
        for at, ends in enumerate(self.ends):
            joined[at, [far for _, far in ends]] = 1
        return joined

    @cached_property
    def columns(self) -> tuple[Integers, Integers, Integers]:
        """int64[E], int64[E], int64[E, P]: of each session both ends, and metrics of prefixes."""
        source = [at for at, ends in enumerate(self.ends) for _ in ends]
        far = [end for ends in self.ends for _, end in ends]
        metrics = [self._metrics(at) for at, ends in enumerate(self.ends) if ends]
        none = [np.zeros((0, len(self.prefixes)), np.int64)]
        return np.array(source), np.array(far), np.concatenate(none + metrics)

    def converged(
        self, alive: NDArray[np.bool_], sessions: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], Integers, Integers]:
        """Whether there are cables to every prefix, the links to it, the session of the best path.

        bool[S, P], and int64[S, P] twice: `no_path` and -1 where BGP finds none.

        Args:
            alive: bool[S], the switches that are.
            sessions: bool[E], those of `columns` that are up.
        """
        source, far, metric = self.columns
        joined = np.zeros((len(self.own), len(self.own)), np.float32)
        joined[source[sessions], far[sessions]] = 1
        cabled = self._away(alive, joined, bounded=False) < NO_PATH
        away = self._away(alive, joined)
        best = np.full(away.shape, -1, np.int64)
        up = np.flatnonzero(sessions)
        if not len(up):
            return cabled, away, best
        length = np.where(away[far[up]] < away[source[up]], away[far[up]], NO_PATH)
        key = (length * (int(metric.max(initial=0)) + 1) + metric[up]) * len(self.own)
        key = (key + self.rank[far[up], None]) * len(source) + up[:, None]
        first = np.flatnonzero(np.diff(source[up], prepend=-1))
        best[source[up][first]] = np.minimum.reduceat(key, first, axis=0) % len(source)
        best[(away == 0) | (away >= NO_PATH)] = -1
        return cabled, away, best

    def _away(
        self, alive: NDArray[np.bool_], joined: NDArray[np.float32], *, bounded: bool = True
    ) -> Integers:
        """int64[S, P]: the links to every prefix, by paths that every switch on them takes.

        Args:
            alive: bool[S], the switches that announce their own.
            joined: see `_joined`.
            bounded: whether switches take what their policies let in; else everything.
        """
        order, count = len(self.own), len(self.prefixes)
        taken = self._taken | (not bounded)
        away = np.full((order, count), NO_PATH, np.int64)
        for at in np.flatnonzero(alive).tolist():
            away[at, [self.place[prefix] for prefix in self.own[at]]] = 0
        for links in range(1, NO_PATH):
            # What is not announced goes no further.
            last = (away == links - 1) & taken
            further = (joined @ last.astype(np.float32) > 0) & (away == NO_PATH)
            further &= taken & ((links <= self.most) | (not bounded))
            if not further.any():
                break
            away[further] = links
        return away

    def _let_in(self, pool: str, least: int, longest: int, via: str) -> list[bool]:
        """Which prefixes a list lets in and out."""
        return [
            is_taken(prefix, pool, least, longest) or _is_via(prefix, via)
            for prefix in self.prefixes
        ]

    def ways(self, at: int) -> dict[str, str]:
        """The ports by which a switch finds the addresses that are next hops."""
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & self.vias)
        best = self._best(at)[there].tolist() if len(there) else []
        return {
            self.prefixes[place].partition("/")[0]: self.ends[at][end][0].port
            for place, end in zip(there.tolist(), best, strict=True)
        }

    def _best(self, at: int) -> Integers:
        """int64[P]: which of its sessions a switch takes to every prefix."""
        ends = self.ends[at]
        far, metric = np.array([end for _, end in ends]), self._metrics(at)
        length = np.where(self.away[far] < self.away[at], self.away[far], NO_PATH)
        order = (length * (int(metric.max(initial=0)) + 1) + metric) * len(self.own) + self.rank[
            far
        ][:, None]
        best: Integers = order.argmin(axis=0)
        return best

    def _metrics(self, at: int) -> Integers:
        """int64[E, P]: those that the sessions of a switch give prefixes."""
        usual = np.array([session.usual for session, _ in self.ends[at]], np.int64)
        metric = np.tile(usual[:, None], (1, len(self.prefixes)))
        for row, (session, _) in enumerate(self.ends[at]):
            for prefix, value in session.preferred.items():
                if prefix in self.place:
                    metric[row, self.place[prefix]] = value
        return metric

    def table(self, at: int, file: str) -> Lookup | None:
        """The best paths of a switch; None where it has no neighbour."""
        ends = self.ends[at]
        if not ends:
            return None
        best = self._best(at)
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & ~self.vias)
        lines = np.array([session.line for session, _ in ends], np.int64)
        names = [self.prefixes[place] for place in there.tolist()]
        rows = EmittedRows(file, names, best[there], lines[best[there]])
        chains = [(((session.port, 1),),) for session, _ in ends]
        return Lookup(rows, chains, np.arange(len(chains)))


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
        yield from (prefix for prefix in family.own if _is_via(prefix, family.via))


def _sessions(switch: BgpSwitch) -> Iterator[Claim]:
    """With whom a switch speaks, behind which port; what is behind none is told as a next hop."""
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


def _found(lookup: Lookup, ways: Mapping[str, str]) -> Lookup:
    """A table with the ports that are found by addresses; those that none has stay as they are."""
    chains = [
        tuple(
            tuple((ways.get(str(port).removeprefix(VIA), port), weight) for port, weight in stage)
            for stage in found
        )
        for found in lookup.chains
    ]
    return replace(lookup, chains=chains)


def _is_via(prefix: str, via: str) -> bool:
    """Whether a prefix is a single address of a pool of next hops."""
    full = 128 if ":" in prefix else 32
    return bool(via) and is_taken(prefix, via, full, full)


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
