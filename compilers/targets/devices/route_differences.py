"""The routes of a switch against those that its build gives it.

What a switch holds besides is no fault (its management, its default route, its own hosts) unless
it is inside the fabric's address pools, where it would take packets from the routes of the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from compilers.readers.devices.held_routes import (
    ANY,
    MAIN,
    RULES,
    Choices,
    Hop,
    Hops,
    Place,
    RouteTables,
    as_dicts,
    choices_text,
    inside,
)

Kind = Literal["missing", "stale", "next hop", "weight", "order"]
KINDS: tuple[Kind, ...] = ("missing", "stale", "next hop", "weight", "order")
HUNDREDTH, TINY = 0.01, 1e-9


@dataclass(frozen=True, slots=True)
class RouteDifference:
    """A prefix that a switch forwards otherwise than its build says."""

    switch: str
    kind: Kind
    table: str
    prefix: str
    wanted: Choices
    """The choices of the build that the switch does not have; all of them if the order differs."""
    found: Choices
    """The choices of the switch that the build does not have; all of them if the order differs."""

    @property
    def place(self) -> Place:
        """Table and prefix."""
        return self.table, self.prefix

    def as_dict(self) -> dict[str, Any]:
        """The difference for JSON."""
        return {
            "switch": self.switch,
            "kind": self.kind,
            "table": self.table,
            "prefix": self.prefix,
            "wanted": as_dicts(self.wanted),
            "found": as_dicts(self.found),
        }

    def row(self) -> tuple[str, str, str, str, str]:
        """The columns of a printed table: switch, kind, prefix with its table, wanted, found."""
        where = self.prefix if self.table == MAIN else f"{self.prefix} in {self.table}"
        found = choices_text(self.found), choices_text(self.wanted)
        return self.switch, self.kind, where, found[1], found[0]


def route_differences(
    switch: str,
    wanted: RouteTables,
    held: RouteTables,
    pools: tuple[str, ...],
    own: tuple[str, ...],
    whole: bool = True,
    rounded: bool = False,
) -> Iterator[RouteDifference]:
    """Every prefix that a switch forwards otherwise than its build says.

    Args:
        switch: its name.
        wanted: the routes of the build, in every table that is the fabric's.
        held: those of the switch; without a table of rules these are not compared.
        pools: the addresses of the fabric.
        own: the blocks of the switch's own hosts, which it may divide as it likes.
        whole: whether the switch shows every choice, not the best one alone.
        rounded: whether it brings weights to a sum of its own, see `_rounded`.
    """
    for table, routes in wanted.items():
        found = held.get(table, {})
        if table in RULES and table not in held:
            continue
        for prefix, choices in routes.items():
            best = choices if whole else choices[:1]
            here = found.get(prefix, ())
            if rounded and len(here) == len(best):
                here = tuple(map(_rounded, best, here))
            if here != best and (kind := _difference(best, here)):
                yield RouteDifference(switch, *kind[:1], table, prefix, *kind[1:])
        for prefix in found.keys() - routes.keys():
            if table in RULES or (inside(prefix, pools) and not inside(prefix, own)):
                yield RouteDifference(switch, "stale", table, prefix, (), found[prefix])


def _difference(wanted: Choices, found: Choices) -> tuple[Kind, Choices, Choices] | None:
    """The kind of difference between two lists of choices, with the choices that differ.

    Returns:
        The kind, the choices that are missing and those that are too many; None: no difference.
    """
    lacking = tuple(hops for hops in wanted if not any(_same(hops, one) for one in found))
    besides = tuple(hops for hops in found if not any(_same(one, hops) for one in wanted))
    if len(wanted) == len(found):
        pairs = [pair for pair in zip(wanted, found, strict=True) if not _same(*pair)]
        if not pairs:
            return None
        if not lacking and not besides:
            return "order", wanted, found
        lacking, besides = (tuple(side) for side in zip(*pairs, strict=True))
    if lacking and besides:
        even = [[_even(hops) for hops in side] for side in (lacking, besides)]
        weights = len(lacking) == len(besides) and all(map(_same, *even))
        return ("weight" if weights else "next hop"), lacking, besides
    return ("missing" if lacking else "stale"), lacking, besides


def _rounded(wanted: Hops, found: Hops) -> Hops:
    """The choice of a switch with the wanted weights, if it has these rounded to hundredths.

    Some systems scale the weights of a route so that their sum is one of their own.
    """
    weight = {interface: weight for _, interface, weight in wanted}
    if weight.keys() != {interface for _, interface, _ in found} or len(weight) != len(found):
        return found
    parts = [(each, weight[port] / sum(weight.values())) for _, port, each in found]
    least = max(each / (part + HUNDREDTH) for each, part in parts)
    most = min(each / max(part - HUNDREDTH, TINY) for each, part in parts)
    return tuple((*hop[:2], weight[hop[1]]) for hop in found) if least < most else found


def _same(wanted: Hops, found: Hops) -> bool:
    """Whether two choices are one, as far as each says its gateways and interfaces."""
    if wanted == found:
        return True
    left = list(found)
    for one in wanted:  # in any order: what is not said decides nothing about it
        like = next((other for other in left if _alike(one, other)), None)
        if like is None:
            return False
        left.remove(like)
    return not left


def _alike(one: Hop, other: Hop) -> bool:
    """Whether two next hops have equal weights, and no different gateway or interface."""
    same = all(a == b or ANY in (a, b) for a, b in zip(one[:2], other[:2], strict=True))
    return same and one[2] == other[2]


def _even(hops: Hops) -> Hops:
    """The next hops of a choice with equal weights."""
    return tuple((gateway, interface, 1) for gateway, interface, _ in hops)
