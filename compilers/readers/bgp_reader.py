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
from ipaddress import ip_address, ip_network
from pathlib import Path

import numpy as np

from compilers.readers.bgp_speaker import BgpSwitch
from compilers.readers.emitted_forwarding import Claim, EmittedRows, EmittedSwitch, Lookup
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
            claimed=switch.rest.claimed | {"discard", "AS number"},
            claims=[
                *switch.rest.claims,
                Claim("AS number", (switch.number,), switch.file, 0),
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
        self._all = list(_with_sessions(self._all))
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


def _with_sessions(speakers: Sequence[BgpSwitch]) -> Iterator[BgpSwitch]:
    """Speakers, and the sessions that cannot come up: the other end is not told of this system.

    Those with a system that no switch has are told once, as are those of a switch without answer.
    """
    files = {speaker.number: speaker.file for speaker in speakers}
    told = {(speaker.number, far) for speaker in speakers for far in _neighbours(speaker)}
    unknown = Counter(far for _, far in told if far not in files)
    for speaker in speakers:
        lines = _neighbours(speaker)
        silent = [far for far in lines if far in files and (far, speaker.number) not in told]
        wrong = [(lines[far], _strange(far, unknown.pop(far))) for far in lines if far in unknown]
        if silent:
            wrong.append((lines[silent[0]], _unanswered(speaker.number, silent, files)))
        texts = [(speaker.file, line, text) for line, text in wrong]
        yield replace(speaker, rest=replace(speaker.rest, wrong=[*texts, *speaker.rest.wrong]))


def _neighbours(speaker: BgpSwitch) -> dict[int, int]:
    """The systems that a switch has sessions with, and the line of each."""
    sessions = (session for family in speaker.families for session in family.sessions)
    return {session.number: session.line for session in sessions}


def _strange(far: int, times: int) -> str:
    count = "a session is" if times == 1 else f"sessions of {times} switches are"
    return f"{count} with AS {far}, which no switch has"


def _unanswered(own: int, silent: Sequence[int], files: Mapping[int, str]) -> str:
    others = f" and {len(silent) - 1} others have" if silent[1:] else " has"
    count = f"{len(silent)} sessions" if silent[1:] else "a session"
    return f"{count} cannot come up: {files[silent[0]]}{others} none with AS {own}"


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
