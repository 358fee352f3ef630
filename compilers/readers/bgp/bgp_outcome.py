"""What eBGP converges to, computed from the configurations of all switches.

Every switch is an autonomous system of its own, so the length of an AS path is its number of links.
Of the paths that its policies let in, a switch takes the shortest one (RFC 4271, section 9.1.2.2);
of those of one length the one of the least metric; of those of one metric as many as it uses at
once, lowest router ids first. A policy may give detours, paths over another neighbour of the
switch, a metric of their own: they are never the shortest while that neighbour is up.

In arrays S is the number of switches, P of prefixes, E of sessions (each from both its ends).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_speaker import AcceptedPrefixes, BgpNeighbour, BgpSwitch
from compilers.readers.emitted_forwarding import EmittedRows, Lookup
from compilers.readers.exact_text import exact_address
from compilers.readers.route_tables import Integers

NO_PATH = 1 << 14
"""The length of a path that BGP does not find."""
NO_ORDER = (1 << 63) - 1
"""More than the order of any path."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SessionColumns:
    """The sessions of all switches, in the order of the switches."""

    source: Integers
    """int64[E]: the switch that takes what the session announces."""
    far: Integers
    """int64[E]: the switch that announces it."""
    metric: Integers
    """int64[E, P]: the metric that the session gives each prefix."""


@dataclass(frozen=True, slots=True)
class BgpOutcome:
    """What BGP converges to while some switches and sessions are down."""

    cabled: Bools
    """bool[S, P]: whether links that are up lead to the prefix, whatever policies let in."""
    away: Integers
    """int64[S, P]: the links of the best path, `NO_PATH` where BGP finds none."""
    session: Integers
    """int64[S, P]: the session of the best path, -1 where there is none."""


class SpeakerFamily:
    """One address family of all switches: their sessions, and their distances to every prefix."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: int) -> None:
        spoken = [s.families[family] if family < len(s.families) else None for s in speakers]
        accepted = [each.accepted if each else AcceptedPrefixes("", 0, -1) for each in spoken]
        self.own = [each.own if each else () for each in spoken]
        """The prefixes that each switch announces as its own."""
        self.paths = [each.paths if each else 1 for each in spoken]
        self.longest_path = np.array([speaker.longest_path for speaker in speakers])[:, None]
        self.prefixes = list(dict.fromkeys(prefix for own in self.own for prefix in own))
        self.place = {prefix: at for at, prefix in enumerate(self.prefixes)}
        pools = {each for each in accepted if each.via_pool}
        self.vias = np.array(
            [any(pool.is_via(prefix) for pool in pools) for prefix in self.prefixes], np.bool_
        )
        """bool[P]: the prefixes that are next hops of static routes."""
        self.ends = _established(speakers, [each.sessions if each else () for each in spoken])
        """For each switch its sessions, each with the switch at the far end."""
        let_in = {each: [each.holds(prefix) for prefix in self.prefixes] for each in set(accepted)}
        self._let_in = np.array([let_in[each] for each in accepted], np.bool_).reshape(
            len(self.own), len(self.prefixes)
        )
        joined = self._joined()
        self.away = self._away(np.ones(len(speakers), np.bool_), joined)
        """int64[S, P]: the links of the best paths while nothing is down."""
        detours = [session.detour_metric for ends in self.ends for session, _ in ends]
        self.detour_metric = np.array(detours, np.int64)[:, None]
        self.adjacent = joined > 0
        ids = sorted({speaker.router_id for speaker in speakers}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in speakers], np.int64)
        """int64[S]: the place of each switch by router id, the lowest first."""

    def _joined(self) -> NDArray[np.float32]:
        """float32[S, S]: 1 where there is a session."""
        joined = np.zeros((len(self.own), len(self.own)), np.float32)
        for at, ends in enumerate(self.ends):
            joined[at, [far for _, far in ends]] = 1
        return joined

    @cached_property
    def columns(self) -> SessionColumns:
        """All sessions as columns."""
        source = [at for at, ends in enumerate(self.ends) for _ in ends]
        far = [end for ends in self.ends for _, end in ends]
        metrics = [self._metrics(at) for at, ends in enumerate(self.ends) if ends]
        none = [np.zeros((0, len(self.prefixes)), np.int64)]
        return SessionColumns(np.array(source), np.array(far), np.concatenate(none + metrics))

    def converged(self, alive: Bools, sessions: Bools) -> BgpOutcome:
        """The outcome while some switches and sessions are down.

        Args:
            alive: bool[S], the switches that are up.
            sessions: bool[E], the sessions of `columns` that are up.
        """
        source, far = self.columns.source, self.columns.far
        joined = np.zeros((len(self.own), len(self.own)), np.float32)
        joined[source[sessions], far[sessions]] = 1
        cabled = self._away(alive, joined, bounded=False) < NO_PATH
        away = self._away(alive, joined)
        best = np.full(away.shape, -1, np.int64)
        up = np.flatnonzero(sessions)
        if not len(up):
            return BgpOutcome(cabled, away, best)
        length = np.where(away[far[up]] < away[source[up]], away[far[up]], NO_PATH)
        detour = np.zeros(length.shape, np.bool_)
        while True:
            best = self._best_sessions(away, up, length, detour)
            if len(up) == len(sessions):
                break  # nothing is down, so that no shortest path is a detour
            # The best paths say which announcements are detours, and these change the best paths.
            before, detour = detour, self._detours(best)[up] & (length < NO_PATH)
            if (before == detour).all():
                break
        return BgpOutcome(cabled, away, best)

    def _best_sessions(
        self, away: Integers, up: Integers, length: Integers, detour: Bools
    ) -> Integers:
        """int64[S, P]: the session of the best path, -1 where there is none.

        Args:
            away: int64[S, P], the links of the best path.
            up: the sessions that are up.
            length: int64[len(up), P], the links of the path that each of these announces.
            detour: bool[len(up), P], whether that path is a detour.
        """
        source, far, metric = self.columns.source, self.columns.far, self.columns.metric
        metrics = np.where(detour, self.detour_metric[up], metric[up])
        # One number in the order of BGP's decision: length, metric, router id, session.
        key = (length * (int(metrics.max(initial=0)) + 1) + metrics) * len(self.own)
        key = (key + self.rank[far[up], None]) * len(source) + up[:, None]
        first = np.flatnonzero(np.diff(source[up], prepend=-1))
        best = np.full(away.shape, -1, np.int64)
        best[source[up][first]] = np.minimum.reduceat(key, first, axis=0) % len(source)
        best[(away == 0) | (away >= NO_PATH)] = -1
        return best

    def _detours(self, best: Integers) -> Bools:
        """bool[E, P]: the sessions that announce a path over another neighbour of the switch.

        Args:
            best: int64[S, P], the session of each switch's best path.
        """
        source, far = self.columns.source, self.columns.far
        second_switch = np.where(best >= 0, far[best], -1)[far]
        over_neighbour = self.adjacent[source[:, None], second_switch] & (second_switch >= 0)
        return over_neighbour & (self.detour_metric >= 0)

    def ports_left(self, closed: Collection[tuple[int, str]]) -> list[dict[str, frozenset[str]]]:
        """For each switch the ports of BGP's best paths to every prefix, with some ports closed.

        Args:
            closed: (switch, port); the far ends of their links are down too.
        """
        sessions = [(at, far, s.port) for at, ends in enumerate(self.ends) for s, far in ends]
        cut = {frozenset((at, far)) for at, far, port in sessions if (at, port) in closed}
        up = np.array([frozenset((at, far)) not in cut for at, far, _ in sessions], np.bool_)
        outcome = self.converged(np.ones(len(self.own), np.bool_), up)
        away, detour = outcome.away, self._detours(outcome.session)
        first = np.cumsum([0, *map(len, self.ends)]).tolist()
        result = []
        for at, ends in enumerate(self.ends):
            rows = slice(first[at], first[at + 1])
            detour_metric = np.where(detour[rows], self.detour_metric[rows], -1)
            best = self._best(at, away, up[rows], detour_metric)
            reached = (best & (away[at] < NO_PATH)).T
            ports = [frozenset(ends[end][0].port for end in np.flatnonzero(row)) for row in reached]
            by_prefix = zip(self.prefixes, ports, away[at].tolist(), strict=True)
            result.append({prefix: ports for prefix, ports, links in by_prefix if links})
        return result

    def _away(self, alive: Bools, joined: NDArray[np.float32], *, bounded: bool = True) -> Integers:
        """int64[S, P]: the links to every prefix, by paths that every switch on them accepts.

        Args:
            alive: bool[S], the switches that announce their own prefixes.
            joined: see `_joined`.
            bounded: whether policies bound what switches accept; else they accept everything.
        """
        switches, count = len(self.own), len(self.prefixes)
        let_in = self._let_in | (not bounded)
        away = np.full((switches, count), NO_PATH, np.int64)
        for at in np.flatnonzero(alive).tolist():
            away[at, [self.place[prefix] for prefix in self.own[at]]] = 0
        for links in range(1, NO_PATH):
            # What a switch does not let out goes no further.
            last = (away == links - 1) & let_in
            further = (joined @ last.astype(np.float32) > 0) & (away == NO_PATH)
            further &= let_in & ((links <= self.longest_path) | (not bounded))
            if not further.any():
                break
            away[further] = links
        return away

    def ports_of(self, at: int) -> dict[str, str]:
        """The ports by which a switch reaches the addresses that are next hops."""
        reached = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & self.vias)
        best = self._best(at)[:, reached].argmax(axis=0).tolist() if len(reached) else []
        return {
            self.prefixes[place].partition("/")[0]: self.ends[at][end][0].port
            for place, end in zip(reached.tolist(), best, strict=True)
        }

    def _best(
        self,
        at: int,
        away: Integers | None = None,
        up: Bools | bool = True,
        detour_metric: Integers | int = -1,
    ) -> Bools:
        """bool[E, P]: the sessions of one switch whose paths it uses.

        Args:
            at: the switch.
            away: the links to every prefix; None: those while nothing is down.
            up: bool[E], its sessions that are up.
            detour_metric: int64[E, P], the metrics of paths that are detours, -1 for others.
        """
        away = self.away if away is None else away
        ends = self.ends[at]
        far, metric = np.array([end for _, end in ends], np.int64), self._metrics(at)
        metric = np.where(np.greater_equal(detour_metric, 0), detour_metric, metric)
        usable = np.broadcast_to(up, len(far))[:, None] & (away[far] < away[at])
        length = np.where(usable, away[far], NO_PATH)
        order = length * (int(metric.max(initial=0)) + 1) + metric
        place = (order * len(self.own) + self.rank[far][:, None]).argsort(axis=0).argsort(axis=0)
        best: Bools = (order == order.min(axis=0, initial=NO_ORDER)) & (place < self.paths[at])
        return best & (length < NO_PATH)

    def _metrics(self, at: int) -> Integers:
        """int64[E, P]: the metrics that the sessions of a switch give prefixes."""
        metrics = np.array([session.metric for session, _ in self.ends[at]], np.int64)
        by_prefix = np.tile(metrics[:, None], (1, len(self.prefixes)))
        for row, (session, _) in enumerate(self.ends[at]):
            for prefix, metric in session.preferred.items():
                if prefix in self.place:
                    by_prefix[row, self.place[prefix]] = metric
        return by_prefix

    def table(self, at: int, file: str) -> Lookup | None:
        """The best paths of a switch as a routing table; None where it has no neighbour."""
        ends = self.ends[at]
        if not ends:
            return None
        routed = np.flatnonzero((self.away[at] > 0) & (self.away[at] < NO_PATH) & ~self.vias)
        best = self._best(at)[:, routed]
        lines = np.array([session.line for session, _ in ends], np.int64)
        names = [self.prefixes[place] for place in routed.tolist()]
        sets, number = np.unique(best, axis=1, return_inverse=True)
        rows = EmittedRows(file, names, number.reshape(-1), lines[best.argmax(axis=0)])
        chains = [
            (tuple((ends[end][0].port, 1) for end in np.flatnonzero(column)),) for column in sets.T
        ]
        return Lookup(rows, chains, np.arange(len(chains)))


def _established(
    speakers: Sequence[BgpSwitch], sessions: Sequence[Sequence[BgpNeighbour]]
) -> list[list[tuple[BgpNeighbour, int]]]:
    """For each switch the sessions that both ends configure, with the place of the far end."""
    place = {speaker.as_number: at for at, speaker in enumerate(speakers)}
    established: list[list[tuple[BgpNeighbour, int]]] = []
    for speaker, neighbours in zip(speakers, sessions, strict=True):
        established.append([])
        for neighbour in neighbours:
            far = place.get(neighbour.as_number, -1)
            if far >= 0 and any(back.as_number == speaker.as_number for back in sessions[far]):
                established[-1].append((neighbour, far))
    return established


def _router_id(text: str) -> int:
    try:
        return int(exact_address(text))
    except ValueError:
        return 0
