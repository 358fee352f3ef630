"""Static routes as lines of a configuration, and what to type to get from some to others.

A configuration says more than routes. Only lines inside the fabric's address pools and in its own
tables are looked at: others are somebody else's.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_network
from typing import Any

from compilers.audit.route_remediation import Remediation
from inventory.neighbours.facts import items, mapping
from inventory.route_tables.held_routes import MAIN, prefix_text

JUNOS_ROUTE = re.compile(
    r"set (?P<at>(?:routing-instances (?P<table>\S+) )?routing-options (?:rib \S+ )?static route "
    r"(?P<prefix>\S+)) (?P<leaf>\S+)(?P<value>.*)"
)
SRLINUX_ROUTE = re.compile(
    r"set / (?P<at>network-instance (?P<table>\S+) static-routes route (?P<prefix>\S+)) "
    r"(?P<leaf>\S+)(?P<value>.*)"
)
DEFAULTS = ("default", "")
"""What systems call the table of everybody."""
STATIC_ROUTE = "STATIC_ROUTE"
SET = "nv set "
Place = tuple[str, str]
"""Table and prefix."""


@dataclass(frozen=True, slots=True)
class RouteLine:
    """A line about a static route.

    table: the VRF or the number, MAIN for that of everybody. words: what tells the line from others
    about the prefix, in one order. leaf: what the prefix has once only, so that another line
    replaces this one; "" for a next hop of several. add: types the line; drop takes it away, clear
    the whole prefix ("" where lines go one by one).
    """

    table: str
    prefix: str
    words: tuple[str, ...]
    leaf: str
    add: str
    drop: str
    clear: str = ""

    @property
    def place(self) -> Place:
        """Table and prefix."""
        return self.table, self.prefix

    def moved(self, prefix: str) -> RouteLine:
        """The same of another prefix."""
        add, drop, clear = (
            text.replace(self.prefix, prefix) for text in (self.add, self.drop, self.clear)
        )
        return replace(self, prefix=prefix, add=add, drop=drop, clear=clear)


def remediation(there: Iterable[RouteLine], wanted: Iterable[RouteLine]) -> Remediation:
    """What to type on a device that has some lines so that it has the wanted ones."""
    wanted = list(wanted)
    there = list(there)
    held = {(*line.place, line.words) for line in there}
    kept: dict[Place, set[str]] = {}
    for line in wanted:
        kept.setdefault(line.place, set()).add(line.leaf)
    asked = {(*line.place, line.words) for line in wanted}
    add = [line.add for line in wanted if (*line.place, line.words) not in held]
    remove = []
    for line in there:
        if (*line.place, line.words) not in asked:
            leaves = kept.get(line.place)
            if leaves is None:
                remove.append(line.clear or line.drop)
            elif not line.leaf or line.leaf not in leaves:
                remove.append(line.drop)
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


def fabric_lines(
    lines: Iterable[RouteLine], pools: tuple[str, ...], vrf: str = ""
) -> Iterator[RouteLine]:
    """Those of the fabric's tables (MAIN, numbers, the VRF of the hosts) inside its pools."""
    for line in lines:
        if (line.table in (MAIN, vrf) or line.table.isdecimal()) and _inside(line.prefix, pools):
            yield line


@lru_cache(1 << 16)
def _inside(prefix: str, pools: tuple[str, ...]) -> bool:
    network = ip_network(prefix, strict=False)
    return any(
        network.version == pool.version and network.subnet_of(pool)  # type: ignore[arg-type]
        for pool in map(ip_network, pools)
    )


def section_lines(text: str) -> Iterator[RouteLine]:
    """Those of FRR, EOS and NX-OS; the words behind a prefix may be printed in another order."""
    section = ""
    for line in text.splitlines():
        words, inside = line.split(), line[:1] == " "
        if not inside:
            section = line.rstrip() if words[:1] == ["vrf"] else ""
        if words[:2] not in (["ip", "route"], ["ipv6", "route"]) or (inside and not section):
            continue
        table, rest = section.split()[-1] if inside else MAIN, words[2:]
        if rest[0] == "vrf":
            table, rest = rest[1], rest[2:]
        elif "table" in rest:
            table = rest[rest.index("table") + 1]
        # Without `exit` the next line of the main table would be about the VRF.
        typed = f"{section}\n  {{}}{' '.join(words)}\n  exit" if inside else f"{{}}{line.rstrip()}"
        yield RouteLine(
            table,
            prefix_text(rest[0]),
            tuple(sorted(rest[1:])),
            leaf="",
            add=typed.format(""),
            drop=typed.format("no "),
        )


def junos_lines(text: str) -> Iterator[RouteLine]:
    """Those of `show configuration | display set`."""
    return _leaves(text, JUNOS_ROUTE, "delete ", {"next-hop"})


def srlinux_lines(text: str) -> Iterator[RouteLine]:
    """Those of `info flat from running`."""
    return _leaves(text, SRLINUX_ROUTE, "delete / ", frozenset())


def _leaves(
    text: str, form: re.Pattern[str], delete: str, several: Iterable[str]
) -> Iterator[RouteLine]:
    for line in text.splitlines():
        if found := form.fullmatch(line.strip()):
            at, leaf, value = found["at"], found["leaf"], found["value"]
            many = leaf in several
            table = found["table"] or ""
            yield RouteLine(
                MAIN if table in DEFAULTS else table,
                prefix_text(found["prefix"]),
                (leaf, value.strip()),
                leaf="" if many else leaf,
                add=line.strip(),
                drop=f"{delete}{at} {leaf}{value if many else ''}",
                clear=f"{delete}{at}",
            )


def nvue_lines(tree: Mapping[str, Any]) -> Iterator[RouteLine]:
    """Those of NVUE's model, by its commands."""
    for vrf, known in mapping(tree.get("vrf")).items():
        static = mapping(mapping(mapping(known).get("router")).get("static"))
        for prefix, route in static.items():
            at = f"vrf {vrf} router static {prefix}"
            for words in _paths(mapping(route)):
                several = words[0] in ("via", "distance")
                yield RouteLine(
                    MAIN if vrf in DEFAULTS else vrf,
                    prefix_text(prefix),
                    words,
                    leaf="" if several else words[0],
                    add=f"{SET}{at} {' '.join(words)}",
                    drop=f"nv unset {at} {' '.join(words[: 2 if several else 1])}",
                    clear=f"nv unset {at}",
                )


def _paths(tree: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The keys that lead to each value, and the value."""
    for key, inner in tree.items():
        if isinstance(inner, Mapping) and inner:
            yield from ((key, *path) for path in _paths(inner))
        else:
            yield (key,) if isinstance(inner, Mapping) else (key, str(inner))


def sonic_lines(tree: Mapping[str, Any]) -> Iterator[RouteLine]:
    """Those of CONFIG_DB: an entry is written in one command, or readers would see half of it."""
    for key, entry in mapping(tree.get(STATIC_ROUTE)).items():
        vrf, _, prefix = key.rpartition("|")
        at = shlex.quote(f"{STATIC_ROUTE}|{key}")
        pairs = sorted((name, str(value)) for name, value in mapping(entry).items())
        values = " ".join(f"{name} {shlex.quote(value)}" for name, value in pairs)
        yield RouteLine(
            MAIN if vrf in DEFAULTS else vrf,
            prefix_text(prefix),
            tuple(f"{name}={value}" for name, value in pairs),
            leaf="entry",
            add=f"sonic-db-cli CONFIG_DB HSET {at} {values}",
            drop=f"sonic-db-cli CONFIG_DB DEL {at}",
        )


def srlinux_commands(tree: object) -> Iterator[str]:
    """A configuration in SR Linux's JSON (RFC 7951) as the lines of `info flat`."""
    yield from (f"set / {words}" for words in _srlinux(tree))


KEYS = (
    *("name", "index", "ip-prefix", "prefix", "address", "host"),
    *("afi-safi-name", "group-name", "peer-address", "id"),
)
"""Of lists in the parts of SR Linux's model that are rendered; a second key follows as a leaf."""


def _srlinux(tree: object) -> Iterator[str]:
    for name, inner in mapping(tree).items():
        word = name.rpartition(":")[2]
        if isinstance(inner, Mapping):
            yield from (f"{word} {rest}" for rest in _srlinux(inner))
        elif isinstance(inner, list) and all(isinstance(entry, Mapping) for entry in inner):
            for entry in items(inner):
                key = next(one for one in KEYS if one in entry)
                others = {k: value for k, value in entry.items() if k != key}
                at = f"{word} {_value(entry[key])}"
                yield from (f"{at} {rest}" for rest in _srlinux(others)) if others else (at,)
        elif isinstance(inner, list):
            yield f"{word} [ {' '.join(map(_value, inner))} ]"
        else:
            yield f"{word} {_value(inner)}"


def _value(value: object) -> str:
    if isinstance(value, str):
        bare = value.rpartition(":")[2] if value.startswith("srl_nokia") else value
        return json.dumps(bare) if re.search(r"[^\w./:@-]", bare) else bare
    return json.dumps(value)
