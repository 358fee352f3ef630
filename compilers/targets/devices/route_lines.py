"""Static routes as lines of a configuration, and what to type to get from some to others.

A configuration says more than routes. Only lines inside the fabric's address pools and in its own
tables are looked at: others belong to other owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compilers.readers.devices.held_routes import MAIN, Place, inside, prefix_text

DEFAULTS = ("default", "")
"""What systems call the table of everybody."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """Lines to type: those that add, then those that take away."""

    add: tuple[str, ...]
    remove: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.add or self.remove)


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
        if (line.table in (MAIN, vrf) or line.table.isdecimal()) and inside(line.prefix, pools):
            yield line


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
