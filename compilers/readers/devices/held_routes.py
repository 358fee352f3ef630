"""The routes of a device by table and prefix, in words that all systems share.

A prefix leads to choices in order of preference; a choice is the next hops that share the traffic.
Plain tuples, equal for equal routes: a fabric has millions.
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
"""Gateway, interface, weight. The gateway is "" where there is none, ANY where it is not known."""
Hops = tuple[Hop, ...]
Choices = tuple[Hops, ...]
Place = tuple[str, str]
"""Table and prefix. The main table is MAIN; prefixes are as `ip_network` writes them."""
RouteTables = dict[str, dict[str, Choices]]
"""Table, prefix, choices."""

MAIN = "main"
ANY = "*"
DISCARD: Hops = (("discard", "", 1),)
THROW: Hops = (("throw", "", 1),)
"""Of a Linux kernel: the packet is looked up in the table of the next rule."""
RULES = IPV4_RULES, IPV6_RULES = "rules of IPv4", "rules of IPv6"
"""Tables of policy rules: `iif eth1` leads to `table 5001`."""


@dataclass(slots=True)
class HeldRoutes:
    """The routes of a device while they are read.

    whole: whether all choices are shown, not the best one alone.
    """

    whole: bool = False
    rows: dict[str, dict[str, dict[int, Hops]]] = field(default_factory=dict)

    def add(self, table: str, prefix: str, preference: int, hops: Hops) -> None:
        """A route; a lower preference is tried first, routes of one preference share."""
        rows = self.rows.get(table)
        if rows is None:
            rows = self.rows[table] = {}
        choices = rows.get(prefix)
        if choices is None:
            rows[prefix] = {preference: hops}
        elif choices.setdefault(preference, hops) != hops:
            choices[preference] = shared((*choices[preference], *hops))

    def tables(self, known: AbstractSet[str] = frozenset()) -> RouteTables:
        """Everything that was read.

        Args:
            known: prefixes that are as `ip_network` writes them.

        Raises:
            ValueError: a prefix is none.
        """
        return {
            table: {
                prefix if prefix in known or table in RULES else prefix_text(prefix): tuple(
                    choices.values()
                )
                if len(choices) == 1
                else tuple(hops for _, hops in sorted(choices.items()))
                for prefix, choices in rows.items()
            }
            for table, rows in self.rows.items()
        }


@dataclass(frozen=True, slots=True)
class RoutingTables:
    """A form of routing tables, as the devices of a system print them."""

    commands: str
    """What prints it."""
    fits: Callable[[Any], bool]
    """Whether a document looks like this."""
    read: Callable[[Iterable[Any]], HeldRoutes]
    """The routes of a device, from its documents."""
    rules_key: str = ""
    """A key that policy rules alone have, which may be given with the tables of another system; ""
    for none."""
    text: re.Pattern[str] | None = None
    """How the same tables begin as text, which is not read."""


@lru_cache(1 << 16)
def shared(hops: Hops) -> Hops:
    """Next hops in one order, each once, by weights without a common divisor.

    Raises:
        TypeError: a gateway or an interface is no text.
    """
    for gateway, interface, _ in hops:
        if not isinstance(gateway, str) or not isinstance(interface, str):
            raise TypeError(f"next hop {gateway!r} at {interface!r}")
    once = sorted(set(hops))
    divisor = gcd(*(weight for _, _, weight in once)) or 1
    return tuple((gateway, interface, weight // divisor) for gateway, interface, weight in once)


def comparable(table: Mapping[str, Choices]) -> dict[str, Choices]:
    """A table whose next hops are in any order in that in which tables are compared."""
    known: dict[int, Choices] = {}
    for choices in table.values():
        if id(choices) not in known:
            known[id(choices)] = tuple(map(shared, choices))
    return {prefix: known[id(choices)] for prefix, choices in table.items()}


def whole_prefix(text: str) -> str:
    """The prefix with its length: systems leave out that of a single address."""
    if "/" in text:
        return text
    return f"{text}/128" if ":" in text else f"{text}/32"


@lru_cache(1 << 16)
def prefix_text(text: str) -> str:
    """The one text of a prefix.

    Raises:
        ValueError: it is none.
    """
    return str(ip_network(text, strict=False))


@lru_cache(1 << 16)
def inside(prefix: str, pools: tuple[str, ...]) -> bool:
    """Whether a prefix is in one of these networks.

    Raises:
        ValueError: one of them is none.
    """
    network = ip_network(prefix, strict=False)
    return any(
        network.version == pool.version and network.subnet_of(pool)  # type: ignore[arg-type]
        for pool in map(ip_network, pools)
    )


def choices_text(choices: Choices) -> str:
    """`10.0.0.9 eth1 weight 2 and 10.0.0.17 eth2, then discard`; "nothing" without a choice."""
    return ", then ".join(" and ".join(map(_hop_text, hops)) for hops in choices) or "nothing"


def _hop_text(hop: Hop) -> str:
    gateway, interface, weight = hop
    words = [gateway.replace(ANY, "any gateway"), interface, f"weight {weight}" * (weight != 1)]
    return " ".join(filter(None, words))


def as_dicts(choices: Choices) -> list[list[dict[str, str | int]]]:
    """The choices for JSON."""
    return [
        [dict(zip(("gateway", "interface", "weight"), hop, strict=True)) for hop in hops]
        for hops in choices
    ]


def hops_of(hops: Iterable[Hop]) -> Hops:
    """These next hops as a choice."""
    return shared(tuple(hops))
