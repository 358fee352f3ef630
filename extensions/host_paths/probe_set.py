"""The smallest set of probes: paths that cross every link once in each direction.

A probe is a simple path of at most L links from a host to another. The links of a fabric, each in
both directions, are divided among the probes, so at least ⌈2E/L⌉ are needed. A link is known by the
two probes that cross it, one in each direction; no two links have the same two probes. Probes are
first laid greedily. Then probes that meet at a switch exchange their ends where that makes the
shorter one shorter, until short probes vanish or the bound is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

Path = tuple[int, ...]
"""The switches of a probe, from host to host."""
STEPS = 200_000
"""The most exchanges that are tried."""
STEPS_AN_ARC = 100
"""The most exchanges that are tried for each link and direction."""


def probe_set(neighbours: Sequence[Sequence[int]], longest: int) -> list[Path]:
    """The probes of a connected graph, always the same ones.

    Args:
        neighbours: of every switch.
        longest: L, links of a probe at most.
    """
    chance = Random(0)  # noqa: S311 - the same in every run, nothing secret
    search = _Division(longest, chance, [list(near) for near in neighbours])
    search.lay()
    search.exchange(fewest(neighbours, longest))
    return sorted(search.probes.values())


def fewest(neighbours: Sequence[Sequence[int]], longest: int) -> int:
    """The number of probes below which no set covers all links in both directions."""
    return -(-sum(map(len, neighbours)) // longest)


@dataclass(slots=True)
class _Division:
    """A division of the arcs, the links in a direction, among probes."""

    longest: int
    """The most links of a probe."""
    random: Random
    """Draws the order in which arcs are tried."""
    uncrossed: list[list[int]]
    """The heads of arcs that no probe crosses yet, by their tail."""
    probes: dict[int, Path] = field(default_factory=dict)
    """The path of each probe, by its number."""
    of_arc: dict[tuple[int, int], int] = field(default_factory=dict)
    """The probe that crosses each arc."""
    passing: list[set[int]] = field(default_factory=list)
    """The probes that pass each switch."""

    def lay(self) -> None:
        """Lay probes along the uncrossed arcs, each from the end of the probe before."""
        self.passing = [set() for _ in self.uncrossed]
        for heads in self.uncrossed:
            self.random.shuffle(heads)
        end = 0
        while any(self.uncrossed):
            if not self.uncrossed[end]:
                switches = range(len(self.uncrossed))
                end = max(switches, key=lambda switch: len(self.uncrossed[switch]))
            end = self._lay_from(end)

    def _lay_from(self, start: int) -> int:
        """Lay one probe from a switch, over links that no probe has in this direction yet.

        Returns:
            The switch where the probe ends.
        """
        number, path = len(self.probes), [start]
        meets: set[int | None] = {number}
        """The probe itself, and the probes that share a link with it in the other direction."""
        while len(path) <= self.longest:
            switch = path[-1]
            free = [
                next_switch
                for next_switch in self.uncrossed[switch]
                if next_switch not in path and self.of_arc.get((next_switch, switch)) not in meets
            ]
            if not free:
                break
            next_switch = max(free, key=lambda switch: len(self.uncrossed[switch]))
            self.uncrossed[switch].remove(next_switch)
            self.of_arc[switch, next_switch] = number
            reverse = self.of_arc.get((next_switch, switch))
            if reverse is not None:
                meets.add(reverse)
            path.append(next_switch)
        self._replace({number: tuple(path)})
        return path[-1]

    def _replace(self, probes: dict[int, Path]) -> None:
        """Give probes other paths, by number; a path without links vanishes."""
        for number, path in probes.items():
            for switch in self.probes.pop(number, ()):
                self.passing[switch].discard(number)
            if len(path) > 1:
                self.probes[number] = path
                for switch in path:
                    self.passing[switch].add(number)

    def exchange(self, bound: int) -> None:
        """Let probes that meet exchange their ends, until there are no more than the bound."""
        short = {n: None for n, path in self.probes.items() if len(path) <= self.longest}
        for _ in range(min(STEPS, STEPS_AN_ARC * len(self.of_arc))):
            if len(self.probes) <= bound or not short:
                return
            probe = self.random.choice(list(short))
            place = self.random.randrange(len(self.probes[probe]))
            met = self.passing[self.probes[probe][place]] - {probe}
            if not met:
                continue
            partner = self.random.choice(sorted(met))
            for number in self._exchanged(probe, place, partner):
                path = self.probes.get(number, ())
                short.pop(number, None)
                if 0 < len(path) <= self.longest:
                    short[number] = None

    def _exchanged(self, probe: int, place: int, partner: int) -> tuple[int, ...]:
        """Let two probes exchange their ends; the numbers of both, () if they cannot.

        Args:
            probe: the number of a probe.
            place: where the switch at which both meet is on its path.
            partner: the number of the other probe.
        """
        first, second = self.probes[probe], self.probes[partner]
        cut = second.index(first[place])
        new = {probe: first[:place] + second[cut:], partner: second[:cut] + first[place:]}
        before = len(first) ** 2 + len(second) ** 2
        lengths = [len(path) for path in new.values()]
        if max(lengths) > self.longest + 1 or sum(n * n for n in lengths) < before:
            return ()
        self._enter_arcs(new)
        if not all(self._is_sound(number, path) for number, path in new.items()):
            self._enter_arcs({probe: first, partner: second})
            return ()
        self._replace(new)
        return probe, partner

    def _enter_arcs(self, probes: dict[int, Path]) -> None:
        """Enter the links of probes, each in its direction, into `of_arc`."""
        for number, path in probes.items():
            for arc in pairwise(path):
                self.of_arc[arc] = number

    def _is_sound(self, number: int, path: Path) -> bool:
        """Whether a path is simple, and shares at most one link with every other probe."""
        reverse = [self.of_arc[next_switch, switch] for switch, next_switch in pairwise(path)]
        return len(set(path)) == len(path) and len({number, *reverse}) == len(reverse) + 1
