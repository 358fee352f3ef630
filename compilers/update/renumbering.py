"""The numbers that change between two builds: addresses, AS numbers, labels of cables and bundles.

A build keeps the numbers of an earlier build for switches and links that stay, unless the user asks
for others: a new pool, another first AS number. `renumberings` compares two builds, and the verbs
`compile`, `diff` and `plan` name each number that changes.

The numbers of a build are in its *allocations*. A link or cable has a key there, from which
`numbers_of_key` gives the vertices at its ends and its index among parallel links. The addresses of
links are counted from the first address of a *pool*, by the numbers of the links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from compilers.spec.allocations import BUNDLE, CABLE, LINK
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.node_systems import system_target
from compilers.targets.options import OFF
from compilers.targets.routed.bgp.bgp_checks import announced_pools
from compilers.targets.routed.bgp.bgp_options import SHARING_AGREEMENTS
from compilers.targets.routed.link_addresses import (
    LINK_AGREEMENTS,
    LINKS,
    UNNUMBERED,
    addresses_a_link,
)
from compilers.update.matching import SwitchMatching
from compilers.update.switch_settings import new_names
from compilers.wiring.as_numbers import as_numbers
from compilers.wiring.link_numbers import KeyNumbers, link_numbers, numbers_by_key, numbers_of_key

LINK_ADDRESSES = "addresses of a link"
"""A kind of number: the two addresses of a link."""
NEXT_HOPS = "announced next hops"
"""A kind of number: the addresses that BGP announces as next hops."""
LABEL = "label of a cable"
"""A kind of number: the one on the label of a cable."""
BUNDLE_LABEL = "bundle of a cable"
"""A kind of number: that of the bundle in which a cable is laid."""
BLOCK = "block of a switch"
"""A kind of number: the address blocks of the hosts of a switch."""
AS_NUMBER = "AS number"
"""A kind of number: the AS number of a switch."""
ON_BOTH_ENDS = frozenset({LINK_ADDRESSES, NEXT_HOPS, AS_NUMBER})
"""The kinds of numbers on which both ends of a link have to agree."""
NONE = "none"
"""In place of a pool or of a number: there is none."""
ADDRESSES_A_LINK = "balance"
"""The key in `_shared_settings` of the number of addresses that a link has. It is set by the
balance, the load-balancing rule: no option has this name."""

NumberByKey = Mapping[str, int | str]
"""The number of each link or cable by its key, or `NONE`."""


class Renumbering(NamedTuple):
    """A number that changes."""

    kind: str
    """The kind of number, such as `LINK_ADDRESSES`."""
    owner: str
    """In words, what has the number: a switch, the two ends of a link, or all links or switches."""
    old_number: str
    """The old number or address."""
    new_number: str
    """The new number or address."""


def renumberings(old: Build, new: Build) -> tuple[Renumbering, ...]:
    """The numbers that differ, of the switches and cables that both builds have.

    Labels are compared only if both builds list the numbers on them.
    """
    pairs = same_switches(old, new)
    return (
        *_pool_renumberings(old, new),
        *_link_renumberings(old, new, dict(pairs)),
        *_switch_renumberings(old, new, pairs),
    )


def same_switches(old: Build, new: Build) -> list[tuple[int, int]]:
    """The old and the new vertex of each switch that both builds have.

    A switch is known by its serial or its name, also if it is at another vertex. A switch that is
    known by neither, and has the datapath id of an old one, replaces it and has its numbers.
    """
    old_vertex_of_name, new_vertex_of_name = _vertex_by_name(old), _vertex_by_name(new)
    known = [
        (old_vertex_of_name[name], new_vertex_of_name[new_name])
        for name, new_name in new_names(old, new).items()
        if name in old_vertex_of_name and new_name in new_vertex_of_name
    ]
    known_old, known_new = {before for before, _ in known}, {after for _, after in known}
    replaced = [
        (before, after)
        for before, after in SwitchMatching.of(old, new).vertex_pairs
        if before not in known_old and after not in known_new
    ]
    return sorted(known + replaced)


def _vertex_by_name(build: Build) -> dict[str, int]:
    """The vertex of each installed switch, by its name."""
    vertices = np.flatnonzero(build.topology.present).tolist()
    return {build.wiring.names[vertex]: vertex for vertex in vertices}


def _link_renumberings(old: Build, new: Build, new_vertex: dict[int, int]) -> list[Renumbering]:
    """The addresses, labels and bundles that differ, of links between switches that stay.

    Args:
        old: the build before.
        new: the build after.
        new_vertex: by vertex of the old build, the vertex of the same switch in the new build.
    """
    changes = []
    names = new.wiring.names
    numbers_by_kind: tuple[tuple[str, NumberByKey, NumberByKey], ...] = (
        (LINK_ADDRESSES, _address_pairs(old), _address_pairs(new)),
        (LABEL, old.allocations.of(CABLE).used, new.allocations.of(CABLE).used),
        (BUNDLE_LABEL, _bundle_numbers(old), _bundle_numbers(new)),
    )
    for kind, before, after in numbers_by_kind:
        new_numbers = {numbers_of_key(key): number for key, number in after.items()}
        for key, number in before.items():
            old_lower, old_upper, index = numbers_of_key(key)
            if old_lower not in new_vertex or old_upper not in new_vertex:
                continue  # a switch is gone
            lower, upper = sorted((new_vertex[old_lower], new_vertex[old_upper]))
            new_number = new_numbers.get(KeyNumbers(lower, upper, index), number)
            if new_number != number:
                ends = f"{names[lower]} to {names[upper]}"
                changes.append(Renumbering(kind, ends, str(number), str(new_number)))
    return changes


def _bundle_numbers(build: Build) -> NumberByKey:
    """The number on the label of each cable's bundle, by the cable's key.

    A cable gets into another bundle if the switch at one of its ends moves to another rack.
    """
    hardware, numbers = build.hardware, build.allocations.of(BUNDLE).used
    if hardware is None or not numbers:
        return {}
    bundle_numbers: dict[str, int | str] = {}
    for key in build.allocations.of(CABLE).used:
        ends = numbers_of_key(key)
        bundle = hardware.bundle_between(ends.lower, ends.upper)
        bundle_numbers[key] = numbers.get(bundle, NONE)
    return bundle_numbers


def _pool_renumberings(old: Build, new: Build) -> Iterator[Renumbering]:
    """Yield the pools and balances that change, so that all links or all switches get new
    addresses.

    A build that does not name the operating systems of its switches does not say whether its links
    have addresses. Then the pools of two builds are compared only if both have one.
    """
    before, after = _shared_settings(old), _shared_settings(new)
    both_have_systems = bool(old.systems) and bool(new.systems)
    for kind, options in ((LINK_ADDRESSES, LINK_AGREEMENTS), (NEXT_HOPS, SHARING_AGREEMENTS)):
        what = "all links" if kind == LINK_ADDRESSES else "all switches"
        for name in options:
            was, now = before.get(name, NONE), after.get(name, NONE)
            is_compared = both_have_systems or NONE not in (was, now)
            if is_compared and _first_address(was) != _first_address(now):
                yield Renumbering(kind, f"{what} ({CONTROL_KEYS[name]})", was, now)
    was, now = before.get(ADDRESSES_A_LINK, NONE), after.get(ADDRESSES_A_LINK, NONE)
    if was != now and NONE not in (was, now):
        yield Renumbering(LINK_ADDRESSES, "all links (routing.balance)", was, now)


def _first_address(pool: str) -> str:
    """The first address of a pool, from which all others are counted."""
    return pool.partition("/")[0]


def _shared_settings(build: Build) -> dict[str, str]:
    """The pools of addresses, by option, and how many addresses a link has (`ADDRESSES_A_LINK`).

    Both ends of a link must agree on them. Pools that are not used are left out: those of links
    without addresses of their own, and those of next hops that BGP does not announce.
    """
    if build.systems:
        settings = dict(system_target(build).chosen(build))
    else:
        options = {**LINK_AGREEMENTS, **SHARING_AGREEMENTS}
        settings = {name: option.default for name, option in options.items()} | dict(build.control)
    if settings.get(UNNUMBERED, OFF) != OFF:
        settings = {name: value for name, value in settings.items() if name not in LINK_AGREEMENTS}
    if LINKS in settings and build.systems:
        settings[ADDRESSES_A_LINK] = f"{addresses_a_link(build)} addresses a link"
    if not announced_pools(build, settings):
        settings = {
            name: value for name, value in settings.items() if name not in SHARING_AGREEMENTS
        }
    return settings


def _address_pairs(build: Build) -> dict[str, int]:
    """The number of each link's pair of addresses, by the link's key."""
    numbers = build.allocations.of(LINK).used
    return dict(numbers) or numbers_by_key(build.wiring, link_numbers(build.wiring, {}))


def _switch_renumberings(old: Build, new: Build, pairs: list[tuple[int, int]]) -> list[Renumbering]:
    """The address blocks and AS numbers that differ, of switches that stay.

    Args:
        old: the build before.
        new: the build after.
        pairs: the old and the new vertex of each switch.
    """
    old_as_numbers = as_numbers(old.base, old.wiring.names, old.allocations).tolist()
    new_as_numbers = as_numbers(new.base, new.wiring.names, new.allocations).tolist()
    has_ipv6 = bool(old.addressing.ipv6 and new.addressing.ipv6)
    changes = []
    for before, after in pairs:
        name = new.wiring.names[after]
        was, now = _blocks_in_words(old, before, has_ipv6), _blocks_in_words(new, after, has_ipv6)
        if was != now:
            changes.append(Renumbering(BLOCK, name, was, now))
        if old_as_numbers[before] != new_as_numbers[after]:
            old_number, new_number = str(old_as_numbers[before]), str(new_as_numbers[after])
            changes.append(Renumbering(AS_NUMBER, name, old_number, new_number))
    return changes


def _blocks_in_words(build: Build, vertex: int, has_ipv6: bool) -> str:
    """The blocks of a switch in words: `10.0.0.12/30 and fd00::3:0:0/64`."""
    block = str(build.addressing.network(vertex))
    return f"{block} and {build.addressing.network6(vertex)}" if has_ipv6 else block
