"""What eBGP converges to, by the text of all speakers: whatever of them is up.

Each switch is a system of its own, so a path is as long as it has links, and the shortest one that
a switch's policies let in is taken (RFC 4271, section 9.1.2.2): of those of one length the one of
the least metric, and of these as many as the switch takes at once, lowest router ids first. A path
over another neighbour may have a metric of its own; it is never among the shortest while that
neighbour is heard.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_speaker import BgpSwitch
from compilers.readers.emitted_forwarding import EmittedRows, Lookup
from compilers.readers.exact_text import exact_address, exact_network
from compilers.readers.route_tables import Integers

NO_PATH = 1 << 14
NO_ORDER = (1 << 63) - 1


class SpeakerFamily:
    """An address family of all speakers, and how far each is from every prefix."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: int) -> None:
        spoken = [s.families[family] if family < len(s.families) else None for s in speakers]
        self.sessions = [each.sessions if each else () for each in spoken]
        self.taken = [(*each.taken, each.via) if each else ("", 0, -1, "") for each in spoken]
        self.own = [each.own if each else () for each in spoken]
        self.paths = [each.paths if each else 1 for each in spoken]
        self.most = np.array([speaker.most for speaker in speakers])[:, None]
        number = {speaker.number: at for at, speaker in enumerate(speakers)}
        self.prefixes = list(dict.fromkeys(prefix for own in self.own for prefix in own))
        vias = {via for *_, via in self.taken if via}
        full = [any(is_via(prefix, via) for via in vias) for prefix in self.prefixes]
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
        joined = self._joined()
        self.away = self._away(np.ones(len(speakers), np.bool_), joined)
        again = [session.again for ends in self.ends for session, _ in ends]
        self.again = np.array(again, np.int64)[:, None]
        self.near = joined > 0
        ids = sorted({speaker.router_id for speaker in speakers}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in speakers], np.int64)

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

        bool[S, P], and int64[S, P] twice: NO_PATH and -1 where BGP finds none.

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
        first = np.flatnonzero(np.diff(source[up], prepend=-1))
        over = np.zeros(length.shape, np.bool_)
        while True:
            metrics = np.where(over, self.again[up], metric[up])
            key = (length * (int(metrics.max(initial=0)) + 1) + metrics) * len(self.own)
            key = (key + self.rank[far[up], None]) * len(source) + up[:, None]
            best[source[up][first]] = np.minimum.reduceat(key, first, axis=0) % len(source)
            best[(away == 0) | (away >= NO_PATH)] = -1
            if len(up) == len(sessions):
                break  # over another neighbour is longer
            before, over = over, self._over(best)[up] & (length < NO_PATH)
            if (before == over).all():
                break
        return cabled, away, best

    def _over(self, best: Integers) -> NDArray[np.bool_]:
        """bool[E, P]: which sessions announce a path over another neighbour, by all best paths."""
        source, far, _ = self.columns
        second = np.where(best >= 0, far[best], -1)[far]
        return self.near[source[:, None], second] & (second >= 0) & (self.again >= 0)

    def ports_left(self, closed: Collection[tuple[int, str]]) -> list[dict[str, frozenset[str]]]:
        """Of each switch the ports of BGP's best paths to every prefix.

        Args:
            closed: (switch, port) of sessions that are down; their other ends are down, too.
        """
        sessions = [(at, end, s.port) for at, ends in enumerate(self.ends) for s, end in ends]
        cut = {frozenset((at, end)) for at, end, port in sessions if (at, port) in closed}
        up = np.array([frozenset((at, end)) not in cut for at, end, _ in sessions], np.bool_)
        _, away, paths = self.converged(np.ones(len(self.own), np.bool_), up)
        over = self._over(paths)
        first = np.cumsum([0, *map(len, self.ends)]).tolist()
        found = []
        for at, ends in enumerate(self.ends):
            rows = slice(first[at], first[at + 1])
            best = self._best(at, away, up[rows], np.where(over[rows], self.again[rows], -1))
            reached = (best & (away[at] < NO_PATH)).T
            ports = [frozenset(ends[end][0].port for end in np.flatnonzero(row)) for row in reached]
            known = zip(self.prefixes, ports, away[at].tolist(), strict=True)
            found.append({prefix: by for prefix, by, links in known if links})
        return found

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
            is_taken(prefix, pool, least, longest) or is_via(prefix, via)
            for prefix in self.prefixes
        ]

    def ports_of(self, at: int) -> dict[str, str]:
        """The ports by which a switch finds the addresses that are next hops."""
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & self.vias)
        best = self._best(at)[:, there].argmax(axis=0).tolist() if len(there) else []
        return {
            self.prefixes[place].partition("/")[0]: self.ends[at][end][0].port
            for place, end in zip(there.tolist(), best, strict=True)
        }

    def _best(
        self,
        at: int,
        away: Integers | None = None,
        up: NDArray[np.bool_] | bool = True,
        again: Integers | int = -1,
    ) -> NDArray[np.bool_]:
        """bool[E, P]: which of its sessions a switch takes to every prefix that it reaches.

        Args:
            at: the switch.
            away: the links to every prefix, `away` of the class unless something is down.
            up: bool[E], its sessions that are up.
            again: int64[E, P], metrics of paths over another neighbour, -1 of others.
        """
        away = self.away if away is None else away
        ends = self.ends[at]
        far, metric = np.array([end for _, end in ends], np.int64), self._metrics(at)
        metric = np.where(np.greater_equal(again, 0), again, metric)
        there = np.broadcast_to(up, len(far))[:, None]
        length = np.where(there & (away[far] < away[at]), away[far], NO_PATH)
        order = length * (int(metric.max(initial=0)) + 1) + metric
        place = (order * len(self.own) + self.rank[far][:, None]).argsort(axis=0).argsort(axis=0)
        best: NDArray[np.bool_] = (order == order.min(axis=0, initial=NO_ORDER)) & (
            place < self.paths[at]
        )
        return best & (length < NO_PATH)

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
        there = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & ~self.vias)
        best = self._best(at)[:, there]
        lines = np.array([session.line for session, _ in ends], np.int64)
        names = [self.prefixes[place] for place in there.tolist()]
        sets, number = np.unique(best, axis=1, return_inverse=True)
        rows = EmittedRows(file, names, number.reshape(-1), lines[best.argmax(axis=0)])
        chains = [
            (tuple((ends[end][0].port, 1) for end in np.flatnonzero(column)),) for column in sets.T
        ]
        return Lookup(rows, chains, np.arange(len(chains)))


def is_taken(prefix: str, pool: str, shortest: int, longest: int) -> bool:
    """Whether a prefix is part of a pool and of one of the lengths."""
    try:
        network, whole = exact_network(prefix), exact_network(pool)
    except ValueError:
        return False
    if network.version != whole.version or not shortest <= network.prefixlen <= longest:
        return False
    return network.network_address in whole


def is_via(prefix: str, via: str) -> bool:
    """Whether a prefix is a single address of a pool of next hops."""
    full = 128 if ":" in prefix else 32
    return bool(via) and is_taken(prefix, via, full, full)


def _router_id(text: str) -> int:
    try:
        return int(exact_address(text))
    except ValueError:
        return 0
