"""The rounds of a move on routers: which prefix of a switch changes when.

They are those of `move_plan`, which holds for any switch that forwards by prefix: a row changes
once the rows that its packets meet next have. What is no row (the route that discards what no other
is for, hosts of the switch itself) comes first and goes last. Shares of packets from hosts:

- in a VRF of their own they stay until the last round; any first hop will do, as the packet is in
  transit from there on, and routers may send it back to where it came from;
- where a rule leads to their table (FRR), those that change go first and come last. Meanwhile the
  packets keep to the minimal port, as `plan` wants it where repair looks at the port of entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.held_routes import Place
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.update.move_plan import Update, plan

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PrefixRounds:
    """The rounds in which the routes of one switch change, 0 to `last`."""

    rounds: Mapping[str, int]
    """The round of every prefix that is a row of the old or the new tables."""
    last: int
    """The number of the last round."""
    hosts: str
    """The routing table that is looked up for packets from hosts."""
    ruled: bool
    """Whether a rule leads to that table, so that packets without a route go on to MAIN."""

    def held_after(
        self,
        old: Mapping[Place, Value],
        new: Mapping[Place, Value],
        number: int,
        moved: Callable[[Value, str], Value],
    ) -> dict[Place, Value]:
        """What is held after a round.

        Args:
            old: what was held before, by table and prefix.
            new: what is to be held.
            number: of the round.
            moved: the same value of another prefix.
        """
        held = dict(old) if number < self.last else {}
        for place in dict.fromkeys((*old, *new)):
            if number >= self._round(place, old):
                held.pop(place, None)
                if place in new:
                    held[place] = new[place]
            elif place not in old and (whole := self._whole(place[1])):
                if (place[0], whole) in old:
                    held[place] = moved(old[place[0], whole], place[1])
            elif self.ruled and place[0] == self.hosts and old.get(place) != new.get(place):
                held.pop(place, None)
        return held

    def _round(self, place: Place, old: Mapping[Place, Value]) -> int:
        is_old = place in old
        if place[0] == self.hosts:
            return self.last if is_old or self.ruled else 0
        return self.rounds.get(place[1], self.last if is_old else 0)

    def _whole(self, prefix: str) -> str:
        """The aggregate that a prefix is inside of."""
        network = ip_network(prefix)
        for length in range(network.prefixlen - 1, -1, -1):
            if (text := str(network.supernet(new_prefix=length))) in self.rounds:
                return text
        return ""


@dataclass(frozen=True, slots=True)
class RouterMove:
    """A move of routers from one build to another."""

    update: Update
    """The rounds of the move."""
    texts: tuple[tuple[list[str], ...], tuple[list[str], ...]]
    """The text of every prefix of the old build and of the new one, IPv4 then IPv6."""

    @classmethod
    def of(cls, old: Build, new: Build) -> RouterMove:
        """The move.

        Raises:
            InputError: no order of rows is safe.
        """
        return cls(plan(old, new), (old.addressing.prefix_texts(), new.addressing.prefix_texts()))

    @property
    def last(self) -> int:
        """The last round."""
        return self.update.last

    def before(self, vertex: int) -> int:
        """The vertex that a switch of the new build had in the old one; below 0 if none."""
        nodes = self.update.nodes
        return int(nodes.before[nodes.node_after[vertex]])

    def rounds(self, vertex: int, hosts: str, ruled: bool) -> PrefixRounds:
        """The round in which each route of a switch of the new build changes."""
        update, earlier = self.update, self.before(vertex)
        by_prefix: dict[str, int] = {}
        if earlier >= 0:
            was = _rows(update.old, earlier)[0].astype(np.int64)
            for family, texts in enumerate(self.texts[0]):
                gone = update.rounds_of_gone(vertex, was, v6=bool(family)).tolist()
                by_prefix |= {texts[p]: r for p, r in zip(was.tolist(), gone, strict=True)}
        now, present = _rows(update.new, vertex)
        rounds = update.row[vertex][present].tolist()
        for texts in self.texts[1]:
            by_prefix |= {texts[p]: r for p, r in zip(now.tolist(), rounds, strict=True)}
        return PrefixRounds(by_prefix, self.last, hosts, ruled)


def _rows(build: Build, vertex: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """int32[n], the prefix numbers of a switch's rows, and bool[R], where they are."""
    routes = build.tables.routes
    present = routes.egress[vertex] < no_route(routes.egress)
    return routes.prefixes(vertex)[present], present
