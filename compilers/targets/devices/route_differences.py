"""Compares the routes that a switch holds with those that its build gives it.

The routes of both come in as tables of *choices* by prefix; what goes out is a `RouteDifference`
for each prefix whose routes differ. `check routes` reports the differences, and a push proves by
them that it has taken effect.

A route to a prefix is a row of choices, which the switch tries in order; a choice has one or
several next hops that share packets by weight. Routes of the switch outside the fabric's address
pools, such as its default route, and those to its own hosts are no difference. Any other route
inside the pools is one: it would take packets from the routes of the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from compilers.readers.devices.held_routes import (
    ANY,
    MAIN_TABLE,
    RULES,
    Choices,
    Hop,
    Hops,
    RouteKey,
    RouteTables,
    as_dicts,
    choices_text,
    is_within,
)

Kind = Literal["missing", "stale", "next hop", "weight", "order"]
"""How the routes to a prefix differ: the switch has none or too few choices, or choices that the
build does not have, or other next hops, weights or another order."""
KINDS: tuple[Kind, ...] = ("missing", "stale", "next hop", "weight", "order")
"""All kinds, in the order in which reports count them."""
ROUNDING = 0.01
"""The largest error of a next hop's share on systems that round weights
(`_with_wanted_weights`)."""
SMALLEST_SHARE = 1e-9
"""The share that stands for a share of 0 or less as a divisor."""


@dataclass(frozen=True, slots=True)
class RouteDifference:
    """A prefix whose route on a switch is not that of the build."""

    switch: str
    """The name of the switch."""
    kind: Kind
    """How the routes differ."""
    table: str
    """The routing table."""
    prefix: str
    """The prefix, in canonical form."""
    wanted: Choices
    """The choices of the build that the switch does not have; all of them if the order differs."""
    found: Choices
    """The choices of the switch that the build does not have; all of them if the order differs."""

    @property
    def key(self) -> RouteKey:
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
        prefix = self.prefix if self.table == MAIN_TABLE else f"{self.prefix} in {self.table}"
        wanted, found = choices_text(self.wanted), choices_text(self.found)
        return self.switch, self.kind, prefix, wanted, found


def route_differences(
    switch: str,
    wanted: RouteTables,
    held: RouteTables,
    pools: tuple[str, ...],
    host_blocks: tuple[str, ...],
    shows_all_choices: bool = True,
    rounds_weights: bool = False,
) -> Iterator[RouteDifference]:
    """Every prefix whose route on a switch is not that of the build.

    Args:
        switch: the name of the switch.
        wanted: the routes of the build, in every table of the fabric.
        held: the routes of the switch. Policy rules are compared only if they are among them.
        pools: the address pools of the fabric.
        host_blocks: the blocks of the switch's own hosts, which it may divide as it likes.
        shows_all_choices: whether the switch shows every choice of a route, not the best one alone.
        rounds_weights: whether the switch scales and rounds weights (`_with_wanted_weights`).
    """
    for table, routes in wanted.items():
        if table in RULES and table not in held:
            continue
        held_routes = held.get(table, {})
        for prefix, all_choices in routes.items():
            wanted_choices = all_choices if shows_all_choices else all_choices[:1]
            held_choices = held_routes.get(prefix, ())
            if rounds_weights and len(held_choices) == len(wanted_choices):
                held_choices = tuple(map(_with_wanted_weights, wanted_choices, held_choices))
            if held_choices == wanted_choices:
                continue
            if difference := _choice_difference(wanted_choices, held_choices):
                yield RouteDifference(
                    switch=switch,
                    kind=difference.kind,
                    table=table,
                    prefix=prefix,
                    wanted=difference.wanted,
                    found=difference.held,
                )
        for prefix in held_routes.keys() - routes.keys():
            if table in RULES or (is_within(prefix, pools) and not is_within(prefix, host_blocks)):
                yield RouteDifference(
                    switch,
                    kind="stale",
                    table=table,
                    prefix=prefix,
                    wanted=(),
                    found=held_routes[prefix],
                )


@dataclass(frozen=True, slots=True)
class _ChoiceDifference:
    """The choices in which two routes to a prefix differ."""

    kind: Kind
    """How they differ."""
    wanted: Choices
    """The choices of the build in question."""
    held: Choices
    """The choices of the switch in question."""


def _choice_difference(wanted: Choices, held: Choices) -> _ChoiceDifference | None:
    """The choices in which two routes to a prefix differ; None if they do not.

    Routes with equally many choices are compared choice by choice. If one has more choices than the
    other, only the choices that the other does not have at all are a difference.
    """
    missing = tuple(choice for choice in wanted if not any(_alike(choice, other) for other in held))
    surplus = tuple(choice for choice in held if not any(_alike(other, choice) for other in wanted))
    if len(wanted) == len(held):
        unlike_pairs = [pair for pair in zip(wanted, held, strict=True) if not _alike(*pair)]
        if not unlike_pairs:
            return None
        if not missing and not surplus:
            return _ChoiceDifference("order", wanted, held)
        missing = tuple(wanted_choice for wanted_choice, _ in unlike_pairs)
        surplus = tuple(held_choice for _, held_choice in unlike_pairs)
    if missing and surplus:
        only_weights = len(missing) == len(surplus) and all(
            _alike(_without_weights(wanted_choice), _without_weights(held_choice))
            for wanted_choice, held_choice in zip(missing, surplus, strict=True)
        )
        return _ChoiceDifference("weight" if only_weights else "next hop", missing, surplus)
    return _ChoiceDifference("missing" if missing else "stale", missing, surplus)


def _with_wanted_weights(wanted: Hops, held: Hops) -> Hops:
    """The next hops of a switch, with the wanted weights if its weights only round these.

    Some systems scale the weights of a route to a certain sum, and round them to hundredths of the
    sum. If no sum explains the weights of the switch, its next hops are returned as they are.
    """
    wanted_weight = {interface: weight for _, interface, weight in wanted}
    if wanted_weight.keys() != {interface for _, interface, _ in held}:
        return held
    if len(wanted_weight) != len(held):
        return held
    total = sum(wanted_weight.values())
    # Each next hop limits the sum that the switch may have scaled to: its weight, divided by the
    # sum, is the wanted share up to ROUNDING.
    smallest_sum = max(
        weight / (wanted_weight[interface] / total + ROUNDING) for _, interface, weight in held
    )
    largest_sum = min(
        weight / max(wanted_weight[interface] / total - ROUNDING, SMALLEST_SHARE)
        for _, interface, weight in held
    )
    if smallest_sum >= largest_sum:
        return held
    return tuple((gateway, interface, wanted_weight[interface]) for gateway, interface, _ in held)


def _alike(wanted: Hops, held: Hops) -> bool:
    """Whether two choices have the same next hops, in any order.

    A gateway or interface that is not known (ANY) is like every other. So sorting the next hops
    would not pair them, and each one is searched for by itself.
    """
    if wanted == held:
        return True
    unmatched = list(held)
    for wanted_hop in wanted:
        match = next((hop for hop in unmatched if _alike_hops(wanted_hop, hop)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return not unmatched


def _alike_hops(first: Hop, second: Hop) -> bool:
    """Whether two next hops have equal weights, and no different gateway or interface."""
    gateway, interface, weight = first
    other_gateway, other_interface, other_weight = second
    return (
        weight == other_weight
        and (gateway == other_gateway or ANY in (gateway, other_gateway))
        and (interface == other_interface or ANY in (interface, other_interface))
    )


def _without_weights(hops: Hops) -> Hops:
    """The next hops of a choice with equal weights."""
    return tuple((gateway, interface, 1) for gateway, interface, _ in hops)
