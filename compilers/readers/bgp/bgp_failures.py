"""Shares whose next hops BGP finds, under every failure of a link or a switch.

By the text alone: the sessions, policies and static routes of all switches. In every case BGP's
outcome is computed (the shortest AS path that is left, then the metric, then the router id), every
next hop of every share is found by it, and every packet is followed to the end. Both families are
followed, each link and each switch is down in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_outcome import NO_PATH, SpeakerFamily
from compilers.readers.bgp.bgp_speaker import BgpSwitch
from compilers.readers.emitted_forwarding import VIA
from compilers.readers.emitted_report import DifferenceList

MOST_SWITCHES = 200
"""Of more only what holds with nothing down is followed: a case of 183 switches takes .1 s."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ShareFailures:
    """What was tried: cases, paths of shares followed in all of them, and the links of the longest.

    faults: what went wrong, a text each, at most one a case. unproved: what was not tried, "" where
    everything was.
    """

    cases: int
    followed: int
    longest: int
    faults: tuple[str, ...]
    unproved: str = ""

    def differences(self, folder: Path) -> DifferenceList:
        """The faults as differences of the files of a folder."""
        found = DifferenceList(unproved=self.unproved)
        for text in self.faults:
            found.add(str(folder), 0, text, "it arrives")
        return found


def share_failures(
    speakers: Sequence[BgpSwitch], families: Sequence[SpeakerFamily]
) -> ShareFailures:
    """Follow every path of every share of these speakers, before and under each failure.

    Of more than `MOST_SWITCHES` no failure is tried, which `unproved` says.

    Args:
        speakers: all switches.
        families: what they say in each address family.
    """
    each = [_FamilyCases(speakers, f) for f in families if f.vias.any()]
    many = len(speakers) > MOST_SWITCHES
    found = [out for one in each for out in islice(one.outcomes(), 1 if many else None)]
    faults = [fault for *_, fault in found if fault]
    longest = max((links for _, links, _ in found), default=0)
    followed = sum(count for count, *_ in found)
    unproved = (
        f"shares with a link or a switch down: tried up to {MOST_SWITCHES} switches, these are"
        f" {len(speakers):,}; with nothing down every path was followed"
    )
    return ShareFailures(len(found), followed, longest, tuple(faults), unproved * many)


class _FamilyCases:
    """A family of all speakers: sessions, and paths of shares, as columns."""

    def __init__(self, speakers: Sequence[BgpSwitch], family: SpeakerFamily) -> None:
        self.family = family
        self.names = [Path(speaker.file).parent.name for speaker in speakers]
        self.through = np.array([speaker.falls_through for speaker in speakers], np.bool_)
        self.source, self.far, self.metric = family.columns
        self.own = np.zeros(family.away.shape, np.bool_)
        for at, own in enumerate(family.own):
            self.own[at, [family.place[prefix] for prefix in own]] = True
        rows = np.array(sorted(self._shares(speakers)), np.int64).reshape(-1, 3)
        self.at, self.prefix, self.via = rows.T

    def _shares(self, speakers: Sequence[BgpSwitch]) -> Iterator[tuple[int, int, int]]:
        """Each path of each share: the switch, the prefix, and the next hop."""
        place = self.family.place
        hop = {f"{VIA}{p.partition('/')[0]}": place[p] for p in place if self.family.vias[place[p]]}
        for at, speaker in enumerate(speakers):
            lookups = {id(t): t for ts in speaker.rest.by_ingress.values() for t in ts}
            for table in lookups.values():
                chains = [[hop.get(str(p), -1) for p, _ in c[0]] if c else [] for c in table.chains]
                for row, entry in enumerate(table.rows.entries.tolist()):
                    if (prefix := place.get(table.rows.name(row), -1)) >= 0:
                        next_hops = chains[int(table.number[entry])]
                        yield from (
                            (at, prefix, next_hop) for next_hop in next_hops if next_hop >= 0
                        )

    def outcomes(self) -> Iterator[tuple[int, int, str]]:
        """Of each case the paths that were followed, the most links of one, and a fault or ""."""
        everything = np.ones(len(self.names), np.bool_)
        sessions = np.ones(len(self.source), np.bool_)
        yield self._case("nothing", everything, sessions)
        ends = np.sort(np.stack((self.source, self.far)), axis=0)
        for u, v in np.unique(ends, axis=1).T.tolist():
            left = sessions & ~((ends[0] == u) & (ends[1] == v))
            yield self._case(f"link {self.names[u]} - {self.names[v]}", everything, left)
        for dead, name in enumerate(self.names):
            alive = everything.copy()
            alive[dead] = False
            left = alive[self.source] & alive[self.far]
            yield self._case(f"switch {name}", alive, left)

    def _case(self, down: str, alive: Bools, left: Bools) -> tuple[int, int, str]:
        family = self.family
        cabled, away, hop = family.converged(alive, left)
        reached = alive[self.at] & cabled[self.at, self.prefix]
        first = hop[self.at, self.via]
        used = reached & (first >= 0)
        # Without any next hop that is found, packets of some systems are looked up as others are.
        pair = self.at * len(family.prefixes) + self.prefix
        left_alone = reached & ~np.isin(pair, pair[used])
        found = self.through[self.at] & (away[self.at, self.prefix] < NO_PATH)
        lost = left_alone & ~found
        at, to = self.far[first[used]], self.prefix[used]
        links = np.ones(len(at), np.int64)
        for _ in range(len(self.names)):
            going = np.flatnonzero(~self.own[at, to] & (hop[at, to] >= 0))
            if not len(going):
                break
            at[going] = self.far[hop[at[going], to[going]]]
            links[going] += 1
        lost[used] = ~self.own[at, to]
        fault = ""
        if lost.any():
            row = int(lost.argmax())
            names = self.names[self.at[row]], family.prefixes[self.prefix[row]]
            hop_text = family.prefixes[self.via[row]].partition("/")[0]
            fault = f"with {down} down packets of {names[0]} for {names[1]} by {hop_text} are lost"
            fault += f", and {np.count_nonzero(lost) - 1:,} more paths"
        return int(np.count_nonzero(used)), int(links.max(initial=0)), fault
