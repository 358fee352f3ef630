"""Checks that recursive static routes deliver packets under every failure of a link or a switch.

A switch with alternates balances packets from hosts by static routes with several next hops (ECMP;
`routed.bgp.control_plane`). These next hops are addresses that neighbours announce, so BGP resolves
them: it says by which port packets leave. A *share* is one next hop of such a route.

What comes in are the BGP configurations of all switches; what goes out is a `ShareFailures`.
`share_failures` computes for each failure what BGP converges to (`bgp_outcome`), resolves all
shares by it, and follows their packets to the destination, in both address families. `bgp_reader`
calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_outcome import NO_PATH, BgpOutcome, FabricFamily
from compilers.readers.bgp.bgp_speaker import BgpSwitch
from compilers.readers.emitted_forwarding import VIA, Lookup
from compilers.readers.emitted_report import DifferenceList

MOST_SWITCHES = 200
"""Larger fabrics are followed without failures only: a failure takes 0.1 s with 183 switches."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ShareFailures:
    """The result of following shares under failures."""

    cases: int
    """How many cases were tried, over both families: each failure, and the case without any."""
    followed: int
    """How many shares were followed, in all cases together."""
    longest: int
    """The most links that a packet took."""
    faults: tuple[str, ...]
    """A text for each case in which packets are lost."""
    unproved: str = ""
    """What was not tried, "" where everything was."""

    def differences(self, folder: Path) -> DifferenceList:
        """The faults as differences of the files of a folder."""
        differences = DifferenceList(unproved=self.unproved)
        for text in self.faults:
            # Line 0: the fault is of the whole folder. The tables say that the packet arrives.
            differences.add(str(folder), 0, says=text, tables="it arrives")
        return differences


class Share(NamedTuple):
    """A next hop of a static route."""

    switch: int
    """The switch that has the route."""
    prefix: int
    """The destination, by its number in `FabricFamily.prefixes`."""
    next_hop: int
    """The next hop, a single address, by its number in `FabricFamily.prefixes`."""


@dataclass(frozen=True, slots=True)
class FollowedCase:
    """The shares of one address family, followed under one failure."""

    followed: int
    """How many shares BGP resolves."""
    longest: int
    """The most links that a packet took."""
    fault: str = ""
    """The first lost share and the number of other lost ones, in words; "" where none is lost."""


def share_failures(
    speakers: Sequence[BgpSwitch], families: Sequence[FabricFamily]
) -> ShareFailures:
    """Follow every share of all switches: with nothing down, then under each failure.

    With more than `MOST_SWITCHES` switches no failure is tried, and `unproved` says so.

    Args:
        speakers: all switches.
        families: their address families.
    """
    too_many = len(speakers) > MOST_SWITCHES
    most_cases = 1 if too_many else None
    cases = [
        case
        for family in families
        if family.is_next_hop.any()
        for case in islice(_FamilyShares(speakers, family).follow_all_cases(), most_cases)
    ]
    unproved = (
        f"shares with a link or a switch down: tried up to {MOST_SWITCHES} switches, these are"
        f" {len(speakers):,}; with nothing down every path was followed"
    )
    return ShareFailures(
        cases=len(cases),
        followed=sum(case.followed for case in cases),
        longest=max((case.longest for case in cases), default=0),
        faults=tuple(case.fault for case in cases if case.fault),
        unproved=unproved if too_many else "",
    )


class _FamilyShares:
    """The shares of all switches in one address family, n in all, as columns of arrays."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: FabricFamily) -> None:
        self.family = family
        """The sessions and policies of all switches."""
        self.names = [Path(speaker.file).parent.name for speaker in speakers]
        """The name of each switch."""
        self.falls_through = np.array([speaker.falls_through for speaker in speakers], np.bool_)
        """bool[S]: whether a switch looks a packet up among BGP's own routes if its ingress table
        has no route for it (`BgpSwitch.falls_through`)."""
        self.sessions = family.columns
        """All sessions as columns."""
        self.announces = np.zeros(family.distance.shape, np.bool_)
        """bool[S, P]: the prefixes that each switch announces as its own."""
        for switch, prefixes in enumerate(family.announced):
            self.announces[switch, [family.column_of[prefix] for prefix in prefixes]] = True
        shares = np.array(sorted(self._shares(speakers)), np.int64).reshape(-1, 3)
        self.switch, self.prefix, self.next_hop = shares.T
        """int64[n] each: the fields of every `Share`."""

    def _shares(self, speakers: Sequence[BgpSwitch]) -> Iterator[Share]:
        """Yield every share that the configurations state."""
        next_hop_numbers = {
            f"{VIA}{prefix.partition('/')[0]}": number
            for prefix, number in self.family.column_of.items()
            if self.family.is_next_hop[number]
        }
        for switch, speaker in enumerate(speakers):
            tables = chain.from_iterable(speaker.without_bgp.by_ingress.values())
            for table in dict.fromkeys(tables):
                yield from self._shares_of_table(switch, table, next_hop_numbers)

    def _shares_of_table(
        self, switch: int, table: Lookup, next_hop_numbers: Mapping[str, int]
    ) -> Iterator[Share]:
        """Yield the shares of one table of a switch.

        Args:
            switch: the switch.
            table: a table for packets from hosts.
            next_hop_numbers: the number of each announced next hop, by the port `via ADDRESS`.
        """
        for row, entry in enumerate(table.rows.entries.tolist()):
            prefix = self.family.column_of.get(table.rows.name(row), -1)
            port_sets = table.chains[int(table.number[entry])]
            if prefix >= 0 and port_sets:
                ports_that_share = port_sets[0]  # with their weights
                for port, _ in ports_that_share:
                    if str(port) in next_hop_numbers:
                        yield Share(switch, prefix, next_hop_numbers[str(port)])

    def follow_all_cases(self) -> Iterator[FollowedCase]:
        """Follow the shares with nothing down, with each link down, and with each switch down."""
        all_switches = np.ones(len(self.names), np.bool_)
        source, far = self.sessions.source, self.sessions.far
        all_sessions = np.ones(len(source), np.bool_)
        yield self._follow_case("nothing", all_switches, all_sessions)
        # int64[2, E]: the switches at the ends of each session's link, the smaller first.
        ends = np.sort(np.stack((source, far)), axis=0)
        for u, v in np.unique(ends, axis=1).T.tolist():
            sessions_up = ~((ends[0] == u) & (ends[1] == v))
            link = f"link {self.names[u]} - {self.names[v]}"
            yield self._follow_case(link, all_switches, sessions_up)
        for dead, name in enumerate(self.names):
            alive = all_switches.copy()
            alive[dead] = False
            yield self._follow_case(f"switch {name}", alive, alive[source] & alive[far])

    def _follow_case(self, down: str, alive: Bools, sessions: Bools) -> FollowedCase:
        """Follow the shares while something is down.

        Args:
            down: the failed link or switch, in words.
            alive: bool[S], the switches that are up.
            sessions: bool[E], the sessions that are up.
        """
        outcome = self.family.converged(alive, sessions)
        connected = alive[self.switch] & outcome.reachable_by_links[self.switch, self.prefix]
        session = outcome.session[self.switch, self.next_hop]
        resolved = connected & (session >= 0)
        arrived, links = self._follow_packets(
            outcome, self.sessions.far[session[resolved]], resolved
        )
        # A packet is lost if no next hop of its route is resolved, unless the system then looks it
        # up among BGP's own routes.
        route = self.switch * len(self.family.prefixes) + self.prefix
        unresolved = connected & ~np.isin(route, route[resolved])
        has_route = outcome.distance[self.switch, self.prefix] < NO_PATH
        lost = unresolved & ~(self.falls_through[self.switch] & has_route)
        lost[resolved] = ~arrived
        return FollowedCase(
            followed=int(np.count_nonzero(resolved)),
            longest=int(links.max(initial=0)),
            fault=self._fault(down, lost) if lost.any() else "",
        )

    def _follow_packets(
        self, outcome: BgpOutcome, first_switch: NDArray[np.int64], resolved: Bools
    ) -> tuple[Bools, NDArray[np.int64]]:
        """Follow the packets of resolved shares.

        Args:
            outcome: the outcome of BGP.
            first_switch: int64[m], the neighbours to which packets of resolved shares leave.
            resolved: bool[n], the m shares that are resolved.

        Returns:
            bool[m], whether the packets arrive; int64[m], over how many links.
        """
        switch, prefix = first_switch.copy(), self.prefix[resolved]
        links = np.ones(len(switch), np.int64)
        # A path without a loop has fewer links than there are switches.
        for _ in range(len(self.names)):
            session = outcome.session[switch, prefix]
            moving = np.flatnonzero(~self.announces[switch, prefix] & (session >= 0))
            if not len(moving):
                break
            switch[moving] = self.sessions.far[session[moving]]
            links[moving] += 1
        return self.announces[switch, prefix], links

    def _fault(self, down: str, lost: Bools) -> str:
        """The first of the lost shares, bool[n], and the number of the others, in words."""
        first = int(lost.argmax())
        source = self.names[self.switch[first]]
        prefix = self.family.prefixes[self.prefix[first]]
        next_hop = self.family.prefixes[self.next_hop[first]].partition("/")[0]
        return (
            f"with {down} down packets of {source} for {prefix} by {next_hop} are lost"
            f", and {np.count_nonzero(lost) - 1:,} more paths"
        )
