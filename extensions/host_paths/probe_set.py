"""Searches for a small set of probes: paths that cross every link once in each direction.

`localisation` calls `probe_set` for each plane of a fabric. A probe is a simple path of at most L
links from a host to another. The 2E arcs of a fabric (its E links in both directions) are divided
among the probes, so at least ⌈2E/L⌉ are needed. A link is identified by the two probes that cross
it, one in each direction: no two links have the same two probes.

Probes are first laid greedily. Then two probes that pass a common switch exchange their ends there,
unless that makes the shorter one longer. A probe without links left vanishes. The search ends when
there are no more than ⌈2E/L⌉ probes, or after a number of tries.

For example, the probes a-b-c-d and e-b exchange their ends at b, and are a-b and e-b-c-d. Then a-b
and f-a exchange theirs at a, and are the switch a alone, which vanishes, and f-a-b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from random import Random

SwitchPath = tuple[int, ...]
"""The switches of a probe, from host to host."""
MOST_EXCHANGES = 200_000
"""The most exchanges that are tried, so that large fabrics take seconds."""
EXCHANGES_AN_ARC = 100
"""The most exchanges that are tried for each arc, so that small fabrics take less."""


def probe_set(neighbours: Sequence[Sequence[int]], longest: int) -> list[SwitchPath]:
    """The paths of the probes of a connected graph. They are the same in every run.

    Args:
        neighbours: the neighbours of every switch.
        longest: L, the most links of a probe.
    """
    random = Random(0)  # noqa: S311 - the same in every run, nothing secret
    division = _Division(longest, random, [list(heads) for heads in neighbours])
    division.lay_probes()
    division.exchange_ends(least_probe_count(neighbours, longest))
    return sorted(division.probes.values())


def least_probe_count(neighbours: Sequence[Sequence[int]], longest: int) -> int:
    """The number of probes below which no set covers all links in both directions."""
    arcs = sum(map(len, neighbours))
    return ceil(arcs / longest)


@dataclass(slots=True)
class _Division:
    """A division of arcs among probes, which `lay_probes` makes and `exchange_ends` improves."""

    longest: int
    """The most links of a probe."""
    random: Random
    """Draws the order in which arcs are tried."""
    uncrossed: list[list[int]]
    """The heads of arcs that no probe crosses yet, by their tail."""
    probes: dict[int, SwitchPath] = field(default_factory=dict)
    """The path of each probe, by its number."""
    probe_of_arc: dict[tuple[int, int], int] = field(default_factory=dict)
    """The probe that crosses each arc, by its tail and head."""
    probes_at: list[set[int]] = field(default_factory=list)
    """The probes that pass each switch."""

    def lay_probes(self) -> None:
        """Lay probes along the uncrossed arcs, each from the end of the probe before."""
        self.probes_at = [set() for _ in self.uncrossed]
        for heads in self.uncrossed:
            self.random.shuffle(heads)
        end = 0
        while any(self.uncrossed):
            if not self.uncrossed[end]:
                switches = range(len(self.uncrossed))
                end = max(switches, key=lambda switch: len(self.uncrossed[switch]))
            end = self._lay_from(end)

    def _lay_from(self, start: int) -> int:
        """Lay one probe from a switch, over arcs that no probe crosses yet.

        Returns:
            The switch where the probe ends.
        """
        number, path = len(self.probes), [start]
        excluded: set[int | None] = {number}
        """The probe itself, and the probes that share a link with it: they share no second one."""
        while len(path) <= self.longest:
            switch = path[-1]
            allowed = [
                next_switch
                for next_switch in self.uncrossed[switch]
                if next_switch not in path
                and self.probe_of_arc.get((next_switch, switch)) not in excluded
            ]
            if not allowed:
                break
            # On to the switch with the most arcs left, so that no switch keeps many to the end.
            next_switch = max(allowed, key=lambda head: len(self.uncrossed[head]))
            self.uncrossed[switch].remove(next_switch)
            self.probe_of_arc[switch, next_switch] = number
            probe_back = self.probe_of_arc.get((next_switch, switch))
            if probe_back is not None:
                excluded.add(probe_back)
            path.append(next_switch)
        self._replace({number: tuple(path)})
        return path[-1]

    def _replace(self, probes: dict[int, SwitchPath]) -> None:
        """Give probes other paths, by number; a probe whose path has no links vanishes."""
        for number, path in probes.items():
            for switch in self.probes.pop(number, ()):
                self.probes_at[switch].discard(number)
            if len(path) > 1:
                self.probes[number] = path
                for switch in path:
                    self.probes_at[switch].add(number)

    def exchange_ends(self, bound: int) -> None:
        """Let probes exchange their ends at common switches, until there are at most `bound`."""
        # A dict as an ordered set: which probe is drawn must be the same in every run.
        with_room = {
            number: None for number, path in self.probes.items() if len(path) <= self.longest
        }
        for _ in range(min(MOST_EXCHANGES, EXCHANGES_AN_ARC * len(self.probe_of_arc))):
            if len(self.probes) <= bound or not with_room:
                return
            probe = self.random.choice(list(with_room))
            index = self.random.randrange(len(self.probes[probe]))
            partners = self.probes_at[self.probes[probe][index]] - {probe}
            if not partners:
                continue
            partner = self.random.choice(sorted(partners))
            for number in self._exchange_ends_of(probe, index, partner):
                path = self.probes.get(number, ())
                with_room.pop(number, None)
                if 0 < len(path) <= self.longest:
                    with_room[number] = None

    def _exchange_ends_of(self, probe: int, index: int, partner: int) -> tuple[int, ...]:
        """Let two probes exchange their ends at a common switch.

        Args:
            probe: the number of a probe.
            index: the index of the common switch on its path.
            partner: the number of the other probe.

        Returns:
            The numbers of both. () if they keep their ends, as a new path would be too long or not
            simple, the shorter one would get longer, or two links would have the same probes.
        """
        path, partner_path = self.probes[probe], self.probes[partner]
        partner_index = partner_path.index(path[index])
        new_paths = {
            probe: path[:index] + partner_path[partner_index:],
            partner: partner_path[:partner_index] + path[index:],
        }
        # The sum of both lengths stays, so the shorter one gets shorter if the longer one grows.
        lengths = [len(new_path) for new_path in new_paths.values()]
        if max(lengths) > self.longest + 1 or max(lengths) < max(len(path), len(partner_path)):
            return ()
        self._enter_arcs(new_paths)
        if not all(self._is_sound(number, new_path) for number, new_path in new_paths.items()):
            self._enter_arcs({probe: path, partner: partner_path})
            return ()
        self._replace(new_paths)
        return probe, partner

    def _enter_arcs(self, probes: dict[int, SwitchPath]) -> None:
        """Enter the arcs of probes into `probe_of_arc`."""
        for number, path in probes.items():
            for arc in pairwise(path):
                self.probe_of_arc[arc] = number

    def _is_sound(self, number: int, path: SwitchPath) -> bool:
        """Whether a path is simple, and shares at most one link with every other probe."""
        probes_back = [
            self.probe_of_arc[next_switch, switch] for switch, next_switch in pairwise(path)
        ]
        is_simple = len(set(path)) == len(path)
        return is_simple and len({number, *probes_back}) == len(probes_back) + 1
