"""What eBGP converges to, computed from the configurations of all switches.

Every switch is an autonomous system of its own, so the length of an AS path is its number of links.
Of the paths that its policies accept, a switch takes the shortest ones (RFC 4271, section 9.1.2.2),
among these the ones with the least metric, and among these as many as it uses at once, the lowest
router ids first. A policy may give detours a metric of their own. A detour is a path over another
neighbour of the switch; it is never the shortest while that neighbour is up.

What comes in are the `BgpSwitch` of all switches, as `bgp_reader` reads them. What goes out are
routing tables (`FabricFamily.table`), and what is left of them while links are down
(`ports_left`, `converged`).

A `SwitchFamily` is what one switch configures for an address family. A `FabricFamily` has that of
all switches. It computes the lengths of the best paths (`_distances`), and then which sessions have
them: the best session for all switches at once (`converged`), or all sessions that one switch uses
(`_used_sessions`).

In arrays S is the number of switches, P of prefixes, E of all sessions (each from both its ends),
and N of the sessions of one switch. An *order* is one number for everything that BGP compares of a
path, the most important first, so that the path with the least order is the best one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_speaker import (
    SAME_METRIC,
    AcceptedPrefixes,
    BgpNeighbour,
    BgpSwitch,
    SwitchFamily,
)
from compilers.readers.emitted_forwarding import EmittedRows, Lookup
from compilers.readers.exact_text import exact_address
from compilers.readers.route_tables import Integers

NO_PATH = 1 << 14
"""The length of a path that BGP does not find."""
NO_ORDER = (1 << 63) - 1
"""More than the order of any path."""
NO_DETOUR = -1
"""In place of the metric of a detour where the path is no detour. Must equal SAME_METRIC, so that a
detour without a metric of its own is treated as an ordinary path."""
SILENT = SwitchFamily(
    announced=(), sessions=(), accepted=AcceptedPrefixes(pool="", shortest=0, longest=-1)
)
"""A family that a switch does not have. It announces nothing, and accepts nothing: no prefix has a
length up to -1."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EstablishedSession:
    """A session that both ends configure, as one of them has it."""

    neighbour: BgpNeighbour
    """The configuration of the session at this end."""
    far: int
    """The switch at the far end."""


@dataclass(frozen=True, slots=True)
class SessionColumns:
    """The sessions of all switches, in the order of the switches."""

    source: Integers
    """int64[E]: the switch that receives the announcements of the session."""
    far: Integers
    """int64[E]: the switch that sends them."""
    metric: Integers
    """int64[E, P]: the metric that the session gives each prefix."""


@dataclass(frozen=True, slots=True)
class BgpOutcome:
    """What BGP converges to while some switches and sessions are down."""

    reachable_by_links: Bools
    """bool[S, P]: whether a path of links that are up leads to the prefix, accepted by policies or
    not."""
    distance: Integers
    """int64[S, P]: the links of the best path; `NO_PATH` where BGP finds none."""
    session: Integers
    """int64[S, P]: the session of the best path, -1 where there is none."""


class FabricFamily:
    """One address family of all switches: their sessions, and their distances to every prefix."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: int) -> None:
        families = [
            speaker.families[family] if family < len(speaker.families) else SILENT
            for speaker in speakers
        ]
        self.announced = [spoken.announced for spoken in families]
        """The prefixes that each switch announces as its own."""
        self.most_paths = [spoken.most_paths for spoken in families]
        """How many paths to a prefix each switch uses at once (ECMP)."""
        self.longest_path = np.array([speaker.longest_path for speaker in speakers])[:, None]
        """int64[S, 1]: the most links of a path that each switch accepts."""
        self.prefixes = list(dict.fromkeys(chain.from_iterable(self.announced)))
        """All announced prefixes, P."""
        self.column_of = {prefix: column for column, prefix in enumerate(self.prefixes)}
        """The index of each prefix in `prefixes`, and its column in arrays by prefix."""
        self.is_next_hop = self._next_hop_mask(families)
        """bool[P]: the prefixes that are next hops of static routes."""
        self._accepts = self._acceptance(families)
        """bool[S, P]: the prefixes that each switch accepts, and announces further."""
        self.sessions = _established(speakers, [spoken.sessions for spoken in families])
        """The sessions of each switch."""
        is_adjacent = self._adjacency()
        self.adjacent = is_adjacent > 0
        """bool[S, S]: the switches that have a session with each other."""
        self.distance = self._distances(np.ones(len(speakers), np.bool_), is_adjacent)
        """int64[S, P]: the links of the best paths while nothing is down."""
        detour_metrics = [
            session.neighbour.detour_metric for session in chain.from_iterable(self.sessions)
        ]
        self.detour_metric = np.array(detour_metrics, np.int64)[:, None]
        """int64[E, 1]: the metric that each session gives detours, or SAME_METRIC."""
        ids = sorted({speaker.router_id for speaker in speakers}, key=_router_id)
        self.rank = np.array([ids.index(speaker.router_id) for speaker in speakers], np.int64)
        """int64[S]: the rank of each switch by router id, 0 for the lowest."""

    def _next_hop_mask(self, families: Sequence[SwitchFamily]) -> Bools:
        """bool[P]: the prefixes that some switch accepts as next hops of static routes."""
        policies = {spoken.accepted for spoken in families if spoken.accepted.next_hop_pool}
        return np.array(
            [any(policy.is_next_hop(prefix) for policy in policies) for prefix in self.prefixes],
            np.bool_,
        )

    def _acceptance(self, families: Sequence[SwitchFamily]) -> Bools:
        """bool[S, P]: the prefixes that each switch accepts, and announces further."""
        rows = {  # by policy, as most switches have the same one
            policy: [policy.holds(prefix) for prefix in self.prefixes]
            for policy in {spoken.accepted for spoken in families}
        }
        accepts = np.array([rows[spoken.accepted] for spoken in families], np.bool_)
        return accepts.reshape(len(families), len(self.prefixes))

    def _adjacency(self) -> NDArray[np.float32]:
        """float32[S, S]: 1 where there is a session."""
        is_adjacent = np.zeros((len(self.sessions), len(self.sessions)), np.float32)
        for switch, sessions in enumerate(self.sessions):
            is_adjacent[switch, [session.far for session in sessions]] = 1
        return is_adjacent

    @cached_property
    def columns(self) -> SessionColumns:
        """All sessions as columns."""
        source = np.repeat(np.arange(len(self.sessions)), list(map(len, self.sessions)))
        far = [session.far for session in chain.from_iterable(self.sessions)]
        metrics = [
            self._metrics(switch) for switch, sessions in enumerate(self.sessions) if sessions
        ]
        # In front of the others, so that there is an array even without any session.
        no_sessions = np.zeros((0, len(self.prefixes)), np.int64)
        return SessionColumns(source, np.array(far), np.concatenate([no_sessions, *metrics]))

    def converged(self, alive: Bools, sessions: Bools) -> BgpOutcome:
        """The outcome while some switches and sessions are down.

        Args:
            alive: bool[S], the switches that are up.
            sessions: bool[E], the sessions of `columns` that are up.
        """
        source, far = self.columns.source, self.columns.far
        is_adjacent = np.zeros(self.adjacent.shape, np.float32)
        is_adjacent[source[sessions], far[sessions]] = 1
        reachable_by_links = self._distances(alive, is_adjacent, by_policies=False) < NO_PATH
        distance = self._distances(alive, is_adjacent)
        return BgpOutcome(reachable_by_links, distance, self._best_sessions(distance, sessions))

    def _best_sessions(self, distance: Integers, sessions: Bools) -> Integers:
        """int64[S, P]: the session of the best path, -1 where there is none.

        Args:
            distance: int64[S, P], the links of the best path.
            sessions: bool[E], the sessions that are up.
        """
        up = np.flatnonzero(sessions)
        if not len(up):
            return np.full(distance.shape, -1, np.int64)
        source, far = self.columns.source[up], self.columns.far[up]
        # int64[len(up), P]: a session announces a path if its far end is nearer to the prefix.
        length = np.where(distance[far] < distance[source], distance[far], NO_PATH)
        is_detour = np.zeros(length.shape, np.bool_)
        best = self._best_of_paths(distance, up, length, is_detour)
        if len(up) == len(sessions):
            return best  # nothing is down, so no shortest path is a detour
        # The best paths decide which announcements are detours, and the metrics of detours decide
        # the best paths. So both are computed in turn until nothing changes. This ends:
        # whether a session announces a detour depends on the best path of its far end, which is
        # nearer to the prefix. So the best paths settle in the order of distances.
        while True:
            was_detour = is_detour
            is_detour = self._detours(best)[up] & (length < NO_PATH)
            if (was_detour == is_detour).all():
                return best
            best = self._best_of_paths(distance, up, length, is_detour)

    def _best_of_paths(
        self, distance: Integers, up: Integers, length: Integers, is_detour: Bools
    ) -> Integers:
        """int64[S, P]: the session of the best path, -1 where there is none.

        Args:
            distance: int64[S, P], the links of the best path.
            up: the sessions that are up, in the order of their switches.
            length: int64[len(up), P], the links of the path that each of these announces.
            is_detour: bool[len(up), P], whether that path is a detour.
        """
        source, far = self.columns.source[up], self.columns.far[up]
        metric = np.where(is_detour, self.detour_metric[up], self.columns.metric[up])
        order = self._order_with_router_id(_order(length, metric), far)
        # The number of the session is the last digit of its order, so that it can be read from it.
        count = len(self.columns.source)
        order_and_session = order * count + up[:, None]
        # The sessions of one switch are consecutive rows. The least order among them is that of its
        # best session.
        first_of_switch = np.flatnonzero(np.diff(source, prepend=-1))
        least = np.minimum.reduceat(order_and_session, first_of_switch, axis=0)
        best = np.full(distance.shape, -1, np.int64)
        best[source[first_of_switch]] = least % count
        best[(distance == 0) | (distance >= NO_PATH)] = -1
        return best

    def _detours(self, best: Integers) -> Bools:
        """bool[E, P]: the sessions that announce a path over another neighbour of the switch.

        Args:
            best: int64[S, P], the session of each switch's best path.
        """
        source, far = self.columns.source, self.columns.far
        # The switch behind the far end, on the path that the far end announces.
        second_switch = np.where(best >= 0, far[best], -1)[far]
        over_neighbour = self.adjacent[source[:, None], second_switch] & (second_switch >= 0)
        has_metric: Bools = self.detour_metric != SAME_METRIC
        return over_neighbour & has_metric

    def ports_left(self, closed: Collection[tuple[int, str]]) -> list[dict[str, frozenset[str]]]:
        """The ports of BGP's best paths while some ports are closed.

        Args:
            closed: the number of a switch and the name of a port, for each closed port. The far
                ends of their links are down too.

        Returns:
            For each switch, the ports by prefix.
        """
        links = [
            frozenset((switch, session.far))
            for switch, sessions in enumerate(self.sessions)
            for session in sessions
        ]
        ports = [session.neighbour.port for session in chain.from_iterable(self.sessions)]
        ends = zip(self.columns.source.tolist(), ports, strict=True)
        cut = {link for link, end in zip(links, ends, strict=True) if end in closed}
        up = np.array([link not in cut for link in links], np.bool_)
        outcome = self.converged(np.ones(len(self.sessions), np.bool_), up)
        is_detour = self._detours(outcome.session)
        detour_metric = np.where(is_detour, self.detour_metric, NO_DETOUR)
        # The rows of each switch in arrays by session.
        first = np.searchsorted(self.columns.source, np.arange(len(self.sessions) + 1))
        ports_of_switches = []
        for switch, (begin, end) in enumerate(pairwise(first.tolist())):
            used = self._used_sessions(
                switch, outcome.distance, up[begin:end], detour_metric[begin:end]
            )
            used &= outcome.distance[switch] < NO_PATH
            ports_of_switches.append(self._ports_by_prefix(switch, used, outcome.distance[switch]))
        return ports_of_switches

    def _ports_by_prefix(
        self, switch: int, used: Bools, distance: Integers
    ) -> dict[str, frozenset[str]]:
        """The ports by which a switch reaches every prefix but its own ones.

        Args:
            switch: the switch.
            used: bool[N, P], its sessions whose paths it uses.
            distance: int64[P], the links to every prefix.
        """
        ports = [session.neighbour.port for session in self.sessions[switch]]
        return {
            self.prefixes[column]: frozenset(ports[row] for row in np.flatnonzero(used[:, column]))
            for column in np.flatnonzero(distance).tolist()
        }

    def _distances(
        self, alive: Bools, is_adjacent: NDArray[np.float32], *, by_policies: bool = True
    ) -> Integers:
        """int64[S, P]: the links to every prefix, by paths that every switch on them accepts.

        Args:
            alive: bool[S], the switches that announce their own prefixes.
            is_adjacent: see `_adjacency`.
            by_policies: whether policies decide what switches accept; else they accept everything.
        """
        distance = np.full(self._accepts.shape, NO_PATH, np.int64)
        for switch in np.flatnonzero(alive).tolist():
            distance[switch, [self.column_of[prefix] for prefix in self.announced[switch]]] = 0
        for links in range(1, NO_PATH):
            # A switch announces only prefixes that it accepts.
            announces = distance == links - 1
            if by_policies:
                announces &= self._accepts
            reached = (is_adjacent @ announces.astype(np.float32) > 0) & (distance == NO_PATH)
            if by_policies:
                reached &= self._accepts & (links <= self.longest_path)
            if not reached.any():
                break
            distance[reached] = links
        return distance

    def ports_to_next_hops(self, switch: int) -> dict[str, str]:
        """The ports by which a switch reaches the addresses that are next hops."""
        distance = self.distance[switch]
        columns = np.flatnonzero((distance > 0) & (distance < NO_PATH) & self.is_next_hop)
        if not len(columns):
            return {}
        first = self._sessions_without_failures(switch)[:, columns].argmax(axis=0).tolist()
        return {
            self.prefixes[column].partition("/")[0]: self.sessions[switch][row].neighbour.port
            for column, row in zip(columns.tolist(), first, strict=True)
        }

    def _sessions_without_failures(self, switch: int) -> Bools:
        """bool[N, P]: the sessions of a switch whose paths it uses while nothing is down."""
        count = len(self.sessions[switch])
        no_detours = np.full((count, 1), NO_DETOUR, np.int64)
        return self._used_sessions(switch, self.distance, np.ones(count, np.bool_), no_detours)

    def _used_sessions(
        self, switch: int, distance: Integers, up: Bools, detour_metric: Integers
    ) -> Bools:
        """bool[N, P]: the sessions of one switch whose paths it uses.

        Args:
            switch: the switch.
            distance: int64[S, P], the links to every prefix.
            up: bool[N], its sessions that are up.
            detour_metric: int64[N, P] or int64[N, 1], the metrics of paths that are detours,
                NO_DETOUR for others.
        """
        far = np.array([session.far for session in self.sessions[switch]], np.int64)
        is_detour = detour_metric != NO_DETOUR
        metric = np.where(is_detour, detour_metric, self._metrics(switch))
        is_usable = up[:, None] & (distance[far] < distance[switch])
        length = np.where(is_usable, distance[far], NO_PATH)
        order = _order(length, metric)
        is_best = order == order.min(axis=0, initial=NO_ORDER)
        # int64[N, P]: the sessions from the best to the worst, and the rank of each, 0 for the
        # best, which is the inverse of that permutation.
        from_best = self._order_with_router_id(order, far).argsort(axis=0)
        rank = from_best.argsort(axis=0)
        used: Bools = is_best & (rank < self.most_paths[switch]) & (length < NO_PATH)
        return used

    def _order_with_router_id(self, order: Integers, far: Integers) -> Integers:
        """int64[n, P]: an order of paths in which the lowest router id decides between equal ones.

        Args:
            order: int64[n, P], the order without router ids.
            far: int64[n], the switch at the far end of each session.
        """
        return order * len(self.rank) + self.rank[far][:, None]

    def _metrics(self, switch: int) -> Integers:
        """int64[N, P]: the metrics that the sessions of a switch give prefixes."""
        neighbours = [session.neighbour for session in self.sessions[switch]]
        metrics = np.array([neighbour.metric for neighbour in neighbours], np.int64)
        by_prefix = np.tile(metrics[:, None], (1, len(self.prefixes)))
        for row, neighbour in enumerate(neighbours):
            for prefix, metric in neighbour.preferred.items():
                if prefix in self.column_of:
                    by_prefix[row, self.column_of[prefix]] = metric
        return by_prefix

    def table(self, switch: int, file: str) -> Lookup | None:
        """The best paths of a switch as a routing table; None where it has no neighbour."""
        sessions, distance = self.sessions[switch], self.distance[switch]
        if not sessions:
            return None
        # One entry for each set of sessions that some prefix uses together.
        routed = np.flatnonzero((distance > 0) & (distance < NO_PATH) & ~self.is_next_hop)
        used = self._sessions_without_failures(switch)[:, routed]
        lines = np.array([session.neighbour.line for session in sessions], np.int64)
        names = [self.prefixes[column] for column in routed.tolist()]
        session_sets, entry = np.unique(used, axis=1, return_inverse=True)
        rows = EmittedRows(file, names, entry.reshape(-1), lines[used.argmax(axis=0)])
        chains = []
        for session_set in session_sets.T:
            members = np.flatnonzero(session_set).tolist()
            chains.append((tuple((sessions[row].neighbour.port, 1) for row in members),))
        return Lookup(rows, chains, np.arange(len(chains)))


def _order(length: Integers, metric: Integers) -> Integers:
    """The order of paths by their length, and of paths of one length by their metric.

    >>> _order(np.array([2, 1, 2]), np.array([0, 9, 5])).tolist()
    [20, 19, 25]
    """
    return length * (int(metric.max(initial=0)) + 1) + metric


def _established(
    speakers: Sequence[BgpSwitch], neighbours: Sequence[Sequence[BgpNeighbour]]
) -> list[list[EstablishedSession]]:
    """For each switch the sessions that both ends configure.

    Args:
        speakers: the switches.
        neighbours: the neighbours that each switch configures.
    """
    switch_of = {speaker.as_number: switch for switch, speaker in enumerate(speakers)}
    established: list[list[EstablishedSession]] = []
    for speaker, of_switch in zip(speakers, neighbours, strict=True):
        sessions: list[EstablishedSession] = []
        for neighbour in of_switch:
            far = switch_of.get(neighbour.as_number)
            if far is not None and _has_neighbour(neighbours[far], speaker.as_number):
                sessions.append(EstablishedSession(neighbour, far))
        established.append(sessions)
    return established


def _has_neighbour(neighbours: Sequence[BgpNeighbour], as_number: int) -> bool:
    """Whether one of the neighbours is the autonomous system."""
    return any(neighbour.as_number == as_number for neighbour in neighbours)


def _router_id(text: str) -> int:
    """A router id as a number; 0 for a text that is no address."""
    try:
        return int(exact_address(text))
    except ValueError:
        return 0
