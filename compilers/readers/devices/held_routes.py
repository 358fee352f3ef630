"""The routes that a device holds, in one form for all systems.

The reader of a system finds routes in the output of a device, and fills a `HeldRoutes`. Its tables
are what `check routes` and a push compare with the tables of the build.

A prefix leads to *choices* in the order of preference. A choice is a set of next hops that share
traffic (ECMP, or weighted). Next hops and choices are plain tuples, as a fabric has millions of
them. They are in canonical form, so that equal routes are equal tuples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_network
from math import gcd
from typing import Any

Hop = tuple[str, str, int]
"""A next hop: gateway, interface, weight. The gateway is "" for none, ANY where it is not known."""
Hops = tuple[Hop, ...]
"""A choice: the next hops that share traffic."""
Choices = tuple[Hops, ...]
"""What a prefix leads to, the most preferred choice first."""
RouteKey = tuple[str, str]
"""The table and the prefix of a route, with the prefix as `ip_network` writes it."""
RouteTables = dict[str, dict[str, Choices]]
"""The choices by table and by prefix."""

ONE_PREFERENCE = 0
"""The preference of all routes of a device that prints only the active routes of a prefix."""
MAIN_TABLE = "main"
"""The name of the main table, on systems with VRFs that of the default VRF."""
ANY = "*"
"""In place of a gateway that is not known."""
DISCARD: Hops = (("discard", "", 1),)
"""The next hop of a route that discards."""
THROW: Hops = (("throw", "", 1),)
"""A `throw` route of a Linux kernel: the packet is looked up by the next policy rule."""
RULES = IPV4_RULES, IPV6_RULES = "rules of IPv4", "rules of IPv6"
"""Names of tables whose routes are policy rules: `iif eth1` in place of a prefix, `table 5001` in
place of a next hop."""


@dataclass(slots=True)
class HeldRoutes:
    """The routes of a device while they are read."""

    all_choices: bool = False
    """Whether the device prints all choices, and not only the best one."""
    by_table: dict[str, dict[str, dict[int, Hops]]] = field(default_factory=dict)
    """The next hops by table, prefix and preference (the lowest is tried first)."""

    def add(self, table: str, prefix: str, preference: int, hops: Hops) -> None:
        """Add a route; routes of one preference share traffic.

        Args:
            table: the name of the table.
            prefix: the destination.
            preference: routes of lower preference are tried first.
            hops: the next hops.
        """
        # Without `setdefault`, which would make a new mapping for each of millions of routes.
        routes = self.by_table.get(table)
        if routes is None:
            routes = self.by_table[table] = {}
        choices = routes.get(prefix)
        if choices is None:
            routes[prefix] = {preference: hops}
        elif choices.setdefault(preference, hops) != hops:
            choices[preference] = canonical_hops((*choices[preference], *hops))

    def tables(self, canonical: AbstractSet[str] = frozenset()) -> RouteTables:
        """The tables, with prefixes as `ip_network` writes them.

        Args:
            canonical: prefixes that are known to be in canonical form; looking them up is quicker
                than making the form again.

        Raises:
            ValueError: a text is no prefix.
        """
        tables: RouteTables = {}
        for table, routes in self.by_table.items():
            tables[table] = {}
            for prefix, choices in routes.items():
                is_canonical = prefix in canonical or table in RULES
                text = prefix if is_canonical else prefix_text(prefix)
                tables[table][text] = tuple(choices[preference] for preference in sorted(choices))
        return tables


@dataclass(frozen=True, slots=True)
class RoutingTableForm:
    """A form in which the devices of a system print their routing tables."""

    commands: str
    """The commands that print it."""
    fits: Callable[[Any], bool]
    """Whether a JSON document has this form."""
    read: Callable[[Iterable[Any]], HeldRoutes]
    """The routes of a device, from its documents."""
    rules_key: str = ""
    """A key that every policy rule has, and no route; "" where the form has no rules. People may
    collect rules with the tables of another system on the same device."""
    text: re.Pattern[str] | None = None
    """Matches tables that a device prints as text and not as JSON; they are refused."""


@lru_cache(1 << 16)
def canonical_hops(hops: Hops) -> Hops:
    """Next hops in canonical form: sorted, each once, with weights of no common divisor.

    Raises:
        TypeError: a gateway or an interface is no text.

    >>> canonical_hops((("10.0.0.9", "eth2", 4), ("10.0.0.1", "eth1", 2)))
    (('10.0.0.1', 'eth1', 1), ('10.0.0.9', 'eth2', 2))
    """
    for gateway, interface, _ in hops:
        if not isinstance(gateway, str) or not isinstance(interface, str):
            raise TypeError(f"next hop {gateway!r} at {interface!r}")
    distinct = sorted(set(hops))
    divisor = gcd(*(weight for _, _, weight in distinct)) or 1
    return tuple((gateway, interface, weight // divisor) for gateway, interface, weight in distinct)


def canonical_table(table: Mapping[str, Choices]) -> dict[str, Choices]:
    """A table with its next hops in canonical form; see `canonical_hops`."""
    # Many prefixes have the same tuple object, so the canonical form is by the object's `id`.
    canonical: dict[int, Choices] = {}
    for choices in table.values():
        if id(choices) not in canonical:
            canonical[id(choices)] = tuple(map(canonical_hops, choices))
    return {prefix: canonical[id(choices)] for prefix, choices in table.items()}


def whole_prefix(text: str) -> str:
    """A prefix with its length, which systems leave out for a single address.

    >>> whole_prefix("10.0.0.1")
    '10.0.0.1/32'
    """
    if "/" in text:
        return text
    return f"{text}/128" if ":" in text else f"{text}/32"


@lru_cache(1 << 16)
def prefix_text(text: str) -> str:
    """A prefix in its canonical form, without bits beyond its length.

    Raises:
        ValueError: the text is no prefix.
    """
    return str(ip_network(text, strict=False))


@lru_cache(1 << 16)
def is_within(prefix: str, pools: tuple[str, ...]) -> bool:
    """Whether one of some networks contains a prefix.

    Raises:
        ValueError: a text is no prefix.
    """
    network = ip_network(prefix, strict=False)
    return any(
        network.version == pool.version and network.subnet_of(pool)  # type: ignore[arg-type]
        for pool in map(ip_network, pools)
    )


def choices_text(choices: Choices) -> str:
    """The choices of a prefix in words.

    >>> choices_text(((("10.0.0.9", "eth1", 2), ("10.0.0.17", "eth2", 1)), DISCARD))
    '10.0.0.9 eth1 weight 2 and 10.0.0.17 eth2, then discard'
    """
    return ", then ".join(" and ".join(map(_hop_text, hops)) for hops in choices) or "nothing"


def _hop_text(hop: Hop) -> str:
    """A next hop in words."""
    gateway, interface, weight = hop
    words = [gateway.replace(ANY, "any gateway"), interface]
    if weight != 1:
        words.append(f"weight {weight}")
    return " ".join(filter(None, words))


def as_dicts(choices: Choices) -> list[list[dict[str, str | int]]]:
    """The choices for JSON."""
    return [
        [
            {"gateway": gateway, "interface": interface, "weight": weight}
            for gateway, interface, weight in hops
        ]
        for hops in choices
    ]


def hops_of(hops: Iterable[Hop]) -> Hops:
    """Next hops of any order as a choice; see `canonical_hops`."""
    return canonical_hops(tuple(hops))
