"""The numbers that change between two builds: addresses, AS numbers, labels of cables and bundles.

`compile`, `diff` and `plan` name them. Nothing else of a running fabric should be touched by a
change of the inventory, so each of these is a surprise or was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from compilers.spec.allocations import BUNDLE, CABLE, LINK
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.node_systems import system_target
from compilers.targets.options import OFF
from compilers.targets.routed.bgp.bgp_options import SHARING_AGREEMENTS
from compilers.targets.routed.bgp.control_plane import announced_pools
from compilers.targets.routed.link_addresses import (
    LINK_AGREEMENTS,
    LINKS,
    UNNUMBERED,
    addresses_a_link,
)
from compilers.update.matching import Matching
from compilers.wiring.addressing import as_numbers
from compilers.wiring.link_numbers import ends_of, link_numbers, numbers_by_key

LINK_ADDRESSES, LABEL = "addresses of a link", "label of a cable"
BUNDLE_LABEL = "bundle of a cable"
NEXT_HOPS = "announced next hops"
NONE = "none"
BALANCE = "balance"
BLOCK, AS_NUMBER = "block of a switch", "AS number"
ON_BOTH_ENDS = frozenset({LINK_ADDRESSES, NEXT_HOPS, AS_NUMBER})
"""The kinds of numbers that a switch and its neighbours have to have alike."""

NumberByKey = Mapping[str, int | str]
"""The number of each link or cable by its key, or `NONE`."""


class Renumbering(NamedTuple):
    """A number that changes."""

    kind: str
    """What kind of number it is."""
    what: str
    """The switch, or the switches at both ends."""
    was: str
    """The old number or address."""
    now: str
    """The new one."""


def renumbered(old: Build, new: Build) -> tuple[Renumbering, ...]:
    """The numbers of switches and cables that both builds have, where they differ.

    Labels are compared where both builds have a list of their numbers.
    """
    pairs = Matching.of(old, new).pairs
    return (
        *_pools(old, new),
        *_links(old, new, dict(pairs)),
        *_of_switches(old, new, pairs),
    )


def _links(old: Build, new: Build, vertices: dict[int, int]) -> list[Renumbering]:
    """The addresses, labels and bundles that differ, of links between switches that stay.

    vertices: the new vertex of each old one.
    """
    moves = []
    names = new.wiring.names
    compared: tuple[tuple[str, NumberByKey, NumberByKey], ...] = (
        (LINK_ADDRESSES, _pairs_of(old), _pairs_of(new)),
        (LABEL, old.allocations.of(CABLE).used, new.allocations.of(CABLE).used),
        (BUNDLE_LABEL, _bundles(old), _bundles(new)),
    )
    for kind, before, after in compared:
        there = {ends_of(key): number for key, number in after.items()}
        for key, number in before.items():
            u, v, index = ends_of(key)
            lower, upper = sorted((vertices.get(u, -1), vertices.get(v, -1)))
            now = there.get((lower, upper, index), number)
            if now != number:
                ends = f"{names[lower]} to {names[upper]}"
                moves.append(Renumbering(kind, ends, str(number), str(now)))
    return moves


def _bundles(build: Build) -> NumberByKey:
    """The number on the label of each cable's bundle, by the cable's key.

    A cable gets into another bundle if the switch at one of its ends moves to another rack.
    """
    hardware, numbers = build.hardware, build.allocations.of(BUNDLE).used
    if hardware is None or not numbers:
        return {}
    ends = {key: ends_of(key)[:2] for key in build.allocations.of(CABLE).used}
    return {key: numbers.get(hardware.bundle_between(*ends[key]), NONE) for key in ends}


def _pools(old: Build, new: Build) -> Iterator[Renumbering]:
    """What gives all links or all switches other addresses.

    Where nothing says which systems switches have, links count as having addresses. Whether they
    have them is not known: a build whose systems have none is then not compared.
    """
    chosen = [_agreements(build) for build in (old, new)]
    is_known = bool(old.systems) and bool(new.systems)
    for kind, of in ((LINK_ADDRESSES, LINK_AGREEMENTS), (NEXT_HOPS, SHARING_AGREEMENTS)):
        what = "all links" if kind == LINK_ADDRESSES else "all switches"
        for name in of:
            was, now = (values.get(name, NONE) for values in chosen)
            is_compared = is_known or NONE not in (was, now)
            if is_compared and _first(was) != _first(now):
                yield Renumbering(kind, f"{what} ({CONTROL_KEYS[name]})", was, now)
    was, now = (values.get(BALANCE, NONE) for values in chosen)
    if was != now and NONE not in (was, now):
        yield Renumbering(LINK_ADDRESSES, "all links (routing.balance)", was, now)


def _first(pool: str) -> str:
    """The first address of a pool, from which all others are counted."""
    return pool.partition("/")[0]


def _agreements(build: Build) -> dict[str, str]:
    """The pools that a build uses, and how many addresses of a pool a link has, by their names."""
    if build.systems:
        chosen = dict(system_target(build).chosen(build))
    else:
        options = {**LINK_AGREEMENTS, **SHARING_AGREEMENTS}
        chosen = {name: option.default for name, option in options.items()} | dict(build.control)
    if chosen.get(UNNUMBERED, OFF) != OFF:
        chosen = {name: value for name, value in chosen.items() if name not in LINK_AGREEMENTS}
    if LINKS in chosen and build.systems:
        chosen[BALANCE] = f"{addresses_a_link(build)} addresses a link"
    if not announced_pools(build, chosen):
        chosen = {name: value for name, value in chosen.items() if name not in SHARING_AGREEMENTS}
    return chosen


def _pairs_of(build: Build) -> dict[str, int]:
    """The number of each link's pair of addresses."""
    numbers = build.allocations.of(LINK).used
    return dict(numbers) or numbers_by_key(build.wiring, link_numbers(build.wiring, {}))


def _of_switches(old: Build, new: Build, pairs: list[tuple[int, int]]) -> list[Renumbering]:
    """The blocks and AS numbers that differ, of switches that stay.

    pairs: the old and the new vertex of each.
    """
    of_old, of_new = (as_numbers(b.base, b.wiring.names).tolist() for b in (old, new))
    moves = []
    for before, after in pairs:
        name = new.wiring.names[after]
        blocks = [str(old.addressing.network(before)), str(new.addressing.network(after))]
        if old.addressing.ipv6 and new.addressing.ipv6:
            blocks[0] += f" and {old.addressing.network6(before)}"
            blocks[1] += f" and {new.addressing.network6(after)}"
        if blocks[0] != blocks[1]:
            moves.append(Renumbering(BLOCK, name, *blocks))
        if of_old[before] != of_new[after]:
            numbers = str(of_old[before]), str(of_new[after])
            moves.append(Renumbering(AS_NUMBER, name, *numbers))
    return moves
