"""Static routes as lines of a configuration, and the lines to type that add and remove them.

A module of each system turns its running and its rendered configuration into `RouteLine`s.
`remediation` compares them for a push. Only routes inside the fabric's address pools and in its
tables are compared, as other routes have other owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compilers.readers.devices.held_routes import MAIN_TABLE, RouteKey, is_within, prefix_text

MAIN_NAMES = ("default", "")
"""The names that systems have for the main table."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """Lines to type on a device, first those that add something."""

    add: tuple[str, ...]
    """Lines that add something."""
    remove: tuple[str, ...]
    """Lines that remove something."""

    def __bool__(self) -> bool:
        """Whether there is any line to type."""
        return bool(self.add or self.remove)


@dataclass(frozen=True, slots=True)
class RouteLine:
    """A line about a static route, as a device has it or as it is rendered."""

    table: str
    """The VRF, or the number of the table; MAIN_TABLE for the main table."""
    prefix: str
    """The prefix, in canonical form."""
    words: tuple[str, ...]
    """The words that tell the line from other lines about the prefix, in canonical order."""
    unique_property: str
    """The property of the prefix that the line sets, such as `discard`: another line with the same
    property replaces this one. "" for a next hop, of which there may be several."""
    add: str
    """What to type to add the line."""
    remove: str
    """What to type to remove the line."""
    remove_all: str = ""
    """What to type to remove all lines of the prefix; "" where they are removed one by one."""

    @property
    def key(self) -> RouteKey:
        """Table and prefix."""
        return self.table, self.prefix

    def for_prefix(self, prefix: str) -> RouteLine:
        """A copy of this line that routes another prefix."""
        return replace(
            self,
            prefix=prefix,
            add=self.add.replace(self.prefix, prefix),
            remove=self.remove.replace(self.prefix, prefix),
            remove_all=self.remove_all.replace(self.prefix, prefix),
        )


def remediation(held: Iterable[RouteLine], wanted: Iterable[RouteLine]) -> Remediation:
    """The lines to type on a device.

    Args:
        held: the lines that the device has.
        wanted: the lines that the device is to have.
    """
    held, wanted = list(held), list(wanted)
    held_lines = {(line.key, line.words) for line in held}
    wanted_lines = {(line.key, line.words) for line in wanted}
    wanted_properties: dict[RouteKey, set[str]] = {}
    for line in wanted:
        wanted_properties.setdefault(line.key, set()).add(line.unique_property)
    add = [line.add for line in wanted if (line.key, line.words) not in held_lines]
    remove = []
    for line in held:
        if (line.key, line.words) not in wanted_lines:
            properties = wanted_properties.get(line.key)
            is_replaced = line.unique_property and line.unique_property in (properties or ())
            if properties is None:  # no route to the prefix is wanted
                remove.append(line.remove_all or line.remove)
            elif not is_replaced:
                remove.append(line.remove)
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


def fabric_lines(
    lines: Iterable[RouteLine], pools: tuple[str, ...], vrf: str = ""
) -> Iterator[RouteLine]:
    """The lines of routes in the fabric's pools and tables.

    The fabric's tables are the main table, the VRF of hosts, and all tables whose names are
    numbers.
    """
    for line in lines:
        if (line.table in (MAIN_TABLE, vrf) or line.table.isdecimal()) and is_within(
            line.prefix, pools
        ):
            yield line


def section_lines(text: str) -> Iterator[RouteLine]:
    """The static routes in a configuration of FRR, EOS or NX-OS.

    Devices may print the words behind a prefix in another order than they were typed.
    """
    vrf_head = ""
    for line in text.splitlines():
        words, is_indented = line.split(), line.startswith(" ")
        if not is_indented:
            vrf_head = line.rstrip() if words[:1] == ["vrf"] else ""
        if words[:2] not in (["ip", "route"], ["ipv6", "route"]):
            continue
        if is_indented and not vrf_head:
            continue  # a line of another section, which is no route
        table = vrf_head.split()[-1] if is_indented else MAIN_TABLE
        route_words = words[2:]
        if route_words[0] == "vrf":
            table, route_words = route_words[1], route_words[2:]
        elif "table" in route_words:
            table = route_words[route_words.index("table") + 1]
        prefix, *words_behind_prefix = route_words
        typed = line.rstrip()
        enter_vrf, leave_vrf = "", ""
        if is_indented:
            # Without `exit` the next line of the main table would be about the VRF.
            typed = " ".join(words)
            enter_vrf, leave_vrf = f"{vrf_head}\n  ", "\n  exit"
        yield RouteLine(
            table=table,
            prefix=prefix_text(prefix),
            words=tuple(sorted(words_behind_prefix)),
            unique_property="",
            add=f"{enter_vrf}{typed}{leave_vrf}",
            remove=f"{enter_vrf}no {typed}{leave_vrf}",
        )
