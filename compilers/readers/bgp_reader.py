"""Reader of a whole fabric of eBGP speakers: the best path of every switch to every prefix.

Each switch is a system of its own, so a path is as long as it has links, and the shortest one that
a switch's policies let in is taken (RFC 4271, section 9.1.2.2): of those of one length the one of
the least metric, and of these the one of the neighbour with the lowest router id. After a failure
BGP finds the shortest paths that are left; no table says so, and nothing is compared for that.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import numpy as np

from compilers.readers.bgp_speaker import BgpSwitch, read_speaker
from compilers.readers.emitted_forwarding import EmittedRows, EmittedSwitch, Lookup
from compilers.readers.frr_reader import NAME
from compilers.readers.route_tables import Integers

NO_PATH = 1 << 14


class BgpReader:
    """Reads the folder of a switch; the first time those of all others beside it, too."""

    def __init__(self) -> None:
        self._fabric: _Fabric | None = None

    def __call__(self, folder: Path) -> EmittedSwitch:
        """A switch, from its folder.

        Raises:
            OSError: a file is not there.
        """
        if self._fabric is None:
            there = sorted(folder.parent.glob(f"*/{NAME}"))
            self._fabric = _Fabric({file.parent.name: read_speaker(file.parent) for file in there})
        if folder.name not in self._fabric.speakers:
            raise FileNotFoundError(2, "No such file or directory", str(folder / NAME))
        return self._fabric.switch(folder)


class _Fabric:
    """All speakers, and how far each is from every prefix."""

    def __init__(self, speakers: dict[str, BgpSwitch]) -> None:
        self.speakers = speakers
        self.all = list(speakers.values())
        number = {speaker.number: at for at, speaker in enumerate(self.all)}
        self.prefixes = list(dict.fromkeys(p for speaker in self.all for p in speaker.own))
        self.place = {prefix: at for at, prefix in enumerate(self.prefixes)}
        self.ends = [
            [
                (port, far)
                for port, session in speaker.sessions.items()
                if (far := number.get(session.number, -1)) >= 0
                and any(back.number == speaker.number for back in self.all[far].sessions.values())
            ]
            for speaker in self.all
        ]
        self.away = self._away()
        ids = sorted({speaker.router_id for speaker in self.all}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in self.all], np.int64)

    def _away(self) -> Integers:
        """int64[S, P]: the links to every prefix, by paths that every switch on them takes."""
        order, count = len(self.all), len(self.prefixes)
        joined = np.zeros((order, order), np.float32)
        for at, ends in enumerate(self.ends):
            joined[at, [far for _, far in ends]] = 1
        taken = np.array([self._taken(speaker) for speaker in self.all]).reshape(order, count)
        most = np.array([speaker.most for speaker in self.all])[:, None]
        away = np.full((order, count), NO_PATH, np.int64)
        for at, speaker in enumerate(self.all):
            away[at, [self.place[prefix] for prefix in speaker.own]] = 0
        for links in range(1, NO_PATH):
            # What is not announced goes no further.
            last = (away == links - 1) & taken
            further = (joined @ last.astype(np.float32) > 0) & (away == NO_PATH)
            further &= taken & (links <= most)
            if not further.any():
                break
            away[further] = links
        return away

    def _taken(self, speaker: BgpSwitch) -> list[bool]:
        """Which prefixes the speaker's list lets in and out."""
        key = frozenset(speaker.taken)
        known = self.__dict__.setdefault("_known", {})
        if key not in known:
            known[key] = [
                any(_inside(prefix, *entry) for entry in speaker.taken) for prefix in self.prefixes
            ]
        found: list[bool] = known[key]
        return found

    def switch(self, folder: Path) -> EmittedSwitch:
        """The best paths of a switch as its table."""
        at, speaker = list(self.speakers).index(folder.name), self.speakers[folder.name]
        file, ends = str(folder / NAME), self.ends[at]
        if not ends:
            return speaker.rest
        far = np.array([end for _, end in ends])
        usual = np.array([*speaker.metric, 0, 0])
        metric = np.tile(usual[[int(":" in prefix) for prefix in self.prefixes]], (len(ends), 1))
        for row, (port, _) in enumerate(ends):
            for prefix, value in speaker.sessions[port].preferred.items():
                if prefix in self.place:
                    metric[row, self.place[prefix]] = value
        length = np.where(self.away[far] < self.away[at], self.away[far], NO_PATH)
        order = (length * (int(metric.max()) + 1) + metric) * len(self.all) + self.rank[far][
            :, None
        ]
        best = order.argmin(axis=0)
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH))
        lines = np.array([speaker.sessions[port].line for port, _ in ends], np.int64)
        names = [self.prefixes[place] for place in there.tolist()]
        rows = EmittedRows(file, names, best[there], lines[best[there]])
        chains = [(((port, 1),),) for port, _ in ends]
        return replace(speaker.rest, anywhere=(Lookup(rows, chains, np.arange(len(chains))),))


def _inside(prefix: str, pool: str, shortest: int, longest: int) -> bool:
    network, whole = ip_network(prefix), ip_network(pool)
    if network.version != whole.version or not shortest <= network.prefixlen <= longest:
        return False
    return network.network_address in whole


def _router_id(text: str) -> int:
    try:
        return int(ip_address(text))
    except ValueError:
        return 0
