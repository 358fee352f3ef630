"""Static routes as lines of a configuration, and the lines to type to get from some to others.

Only routes inside the fabric's address pools and in its tables are compared: others have other
owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compilers.readers.devices.held_routes import MAIN, Place, inside, prefix_text

DEFAULTS = ("default", "")
"""The names that systems have for the main table."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """Lines to type on a device."""

    add: tuple[str, ...]
    """Lines that add, which are typed first."""
    remove: tuple[str, ...]
    """Lines that take away."""

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.add or self.remove)


@dataclass(frozen=True, slots=True)
class RouteLine:
    """A line about a static route."""

    table: str
    """The VRF, or the number of the table; MAIN for the main table."""
    prefix: str
    words: tuple[str, ...]
    """What tells the line from others about the prefix, in canonical order."""
    leaf: str
    """A property that the prefix has once, so that another line with it replaces this one; "" for
    one of several next hops."""
    add: str
    """Types the line."""
    drop: str
    """Takes the line away."""
    clear: str = ""
    """Takes all lines of the prefix away; "" where they go one by one."""

    @property
    def place(self) -> Place:
        """Table and prefix."""
        return self.table, self.prefix

    def moved(self, prefix: str) -> RouteLine:
        """A copy of this line that routes another prefix."""
        add, drop, clear = (
            text.replace(self.prefix, prefix) for text in (self.add, self.drop, self.clear)
        )
        return replace(self, prefix=prefix, add=add, drop=drop, clear=clear)


def remediation(held: Iterable[RouteLine], wanted: Iterable[RouteLine]) -> Remediation:
    """The lines to type on a device.

    Args:
        held: the lines that it has.
        wanted: the lines that it is to have.
    """
    held, wanted = list(held), list(wanted)
    held_lines = {(line.place, line.words) for line in held}
    wanted_lines = {(line.place, line.words) for line in wanted}
    wanted_leaves: dict[Place, set[str]] = {}
    for line in wanted:
        wanted_leaves.setdefault(line.place, set()).add(line.leaf)
    add = [line.add for line in wanted if (line.place, line.words) not in held_lines]
    remove = []
    for line in held:
        if (line.place, line.words) not in wanted_lines:
            leaves = wanted_leaves.get(line.place)
            if leaves is None:
                remove.append(line.clear or line.drop)
            elif not line.leaf or line.leaf not in leaves:
                remove.append(line.drop)
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


def fabric_lines(
    lines: Iterable[RouteLine], pools: tuple[str, ...], vrf: str = ""
) -> Iterator[RouteLine]:
    """The lines of the fabric: in its tables (MAIN, numbers, the VRF of hosts) and pools."""
    for line in lines:
        if (line.table in (MAIN, vrf) or line.table.isdecimal()) and inside(line.prefix, pools):
            yield line


def section_lines(text: str) -> Iterator[RouteLine]:
    """The static routes in a configuration of FRR, EOS or NX-OS.

    Devices may print the words behind a prefix in another order than they were typed.
    """
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
