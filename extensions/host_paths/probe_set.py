"""The smallest set of probes: paths that cross every link once in each direction.

A probe is a simple path of at most L links from a host to another. The links of a fabric, each in
both directions, are divided among the probes, so at least ⌈2E/L⌉ are needed. A link is known by the
two probes that cross it, one in each direction; no two links have the same two. Probes are first
laid greedily; then two of them that meet at a switch exchange their ends where that makes short
ones shorter, until those vanish or the bound is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

Path = tuple[int, ...]
STEPS, STEPS_AN_ARC = 200_000, 100
"""Exchanges that are tried at most: in all, and for each link and direction."""


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
    left: list[list[int]]
    """The heads of arcs that no probe crosses yet, by their tail."""
    probes: dict[int, Path] = field(default_factory=dict)
    """The path of each probe, by its number."""
    of_arc: dict[tuple[int, int], int] = field(default_factory=dict)
    """The probe that crosses each arc."""
    at: list[set[int]] = field(default_factory=list)
    """The probes that pass each switch."""

    def lay(self) -> None:
        """Lay probes along arcs that are left, each from the end of the one before."""
        self.at = [set() for _ in self.left]
        for heads in self.left:
            self.random.shuffle(heads)
        end = 0
        while any(self.left):
            if not self.left[end]:
                end = max(range(len(self.left)), key=lambda switch: len(self.left[switch]))
            end = self._lay_from(end)

    def _lay_from(self, start: int) -> int:
        """Lay one probe from a switch, over links that no probe has in this direction yet."""
        number, path = len(self.probes), [start]
        mates: set[int | None] = {number}
        while len(path) <= self.longest:
            switch = path[-1]
            free = [
                next_switch
                for next_switch in self.left[switch]
                if next_switch not in path and self.of_arc.get((next_switch, switch)) not in mates
            ]
            if not free:
                break
            next_switch = max(free, key=lambda switch: len(self.left[switch]))
            self.left[switch].remove(next_switch)
            self.of_arc[switch, next_switch] = number
            back = self.of_arc.get((next_switch, switch))
            mates |= {back} - {None}
            path.append(next_switch)
        self._put({number: tuple(path)})
        return path[-1]

    def _put(self, probes: dict[int, Path]) -> None:
        """Have these in the place of those of the same numbers; a path without links vanishes."""
        for number, path in probes.items():
            for switch in self.probes.pop(number, ()):
                self.at[switch].discard(number)
            if len(path) > 1:
                self.probes[number] = path
                for switch in path:
                    self.at[switch].add(number)

    def exchange(self, bound: int) -> None:
        """Let probes that meet exchange their ends, until there are no more than the bound."""
        short = {n: None for n, path in self.probes.items() if len(path) <= self.longest}
        for _ in range(min(STEPS, STEPS_AN_ARC * len(self.of_arc))):
            if len(self.probes) <= bound or not short:
                return
            one = self.random.choice(list(short))
            place = self.random.randrange(len(self.probes[one]))
            met = self.at[self.probes[one][place]] - {one}
            if not met:
                continue
            other = self.random.choice(sorted(met))
            for number in self._exchanged(one, place, other):
                path = self.probes.get(number, ())
                short.pop(number, None)
                if 0 < len(path) <= self.longest:
                    short[number] = None

    def _exchanged(self, one: int, place: int, other: int) -> tuple[int, ...]:
        """The numbers of both if they could exchange their ends, () if not."""
        first, second = self.probes[one], self.probes[other]
        cut = second.index(first[place])
        new = {one: first[:place] + second[cut:], other: second[:cut] + first[place:]}
        before = len(first) ** 2 + len(second) ** 2
        lengths = [len(path) for path in new.values()]
        if max(lengths) > self.longest + 1 or sum(n * n for n in lengths) < before:
            return ()
        self._own(new)
        if not all(self._sound(number, path) for number, path in new.items()):
            self._own({one: first, other: second})
            return ()
        self._put(new)
        return one, other

    def _own(self, probes: dict[int, Path]) -> None:
        """Enter the links of probes, each in its direction."""
        for number, path in probes.items():
            for arc in pairwise(path):
                self.of_arc[arc] = number

    def _sound(self, number: int, path: Path) -> bool:
        """Whether a path is simple, and shares at most one link with every other probe."""
        back = [self.of_arc[next_switch, switch] for switch, next_switch in pairwise(path)]
        return len(set(path)) == len(path) and len({number, *back}) == len(back) + 1
