"""Routers with a configuration: its lines are compared with the rendered ones, and typed.

Lines of others stay, also in the sections of the fabric, and so does a port that is shut by hand.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.devices.route_lines import (
    Remediation,
    RouteLine,
    fabric_lines,
    remediation,
    section_lines,
)
from compilers.targets.devices.router_device import (
    LINES,
    PORTS_SHUT,
    Compare,
    DevicePlan,
    RouterDevice,
)

PORT, SHUT, OPEN = "interface ", "shutdown", "no shutdown"
HOST_NAME = re.compile(r"^(?:hostname|switchname|set system host-name) (\S+)", re.M)
ONCE = frozenset({"description", "mtu", "speed", "fec", "vrf", "switchport", "hostname"})
"""What a section has once: another line that begins so replaces it."""
FRAME = re.compile(r"\s*(!|#|$|end$|exit|Current configuration|Building configuration)")
"""Lines of a text in sections that configure nothing."""
DRAINED = re.compile(r"route-map announced-\S+ permit 5$")
WITHDRAWN = re.compile(r"network \S+/(32|128)$")
"""The line of a switch that `polarfab drain` has drained, and those that it lacks then."""
CONFIRM_MINUTES = 10
"""Until a device takes an unconfirmed change back."""
Section = tuple[str, ...]


class ConfiguredDevice(RouterDevice):
    """A router whose routes are in a configuration of lines."""

    overrules = frozenset({PORTS_SHUT, LINES})
    shut_at_first: ClassVar[bool] = False
    """Whether ports are shut unless they are opened."""
    saves: ClassVar[tuple[str, ...]] = ()
    """What saves the configuration, unless every commit does."""

    def name(self) -> str:
        """See `RouterDevice.name`: the host name of its configuration."""
        found = HOST_NAME.search(self.running())
        return found[1].strip('"') if found else ""

    @abstractmethod
    def running(self) -> str:
        """The configuration of the device."""

    def saved(self) -> str:
        """The configuration that a reboot leads to, in the form of `running`."""
        return ""

    @abstractmethod
    def rendered(self) -> str:
        """The rendered configuration."""

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """The static routes of a configuration, the fabric's and others."""
        return section_lines(text)

    def lines(self, text: str) -> list[RouteLine]:
        """The static routes of the fabric in a configuration of the device."""
        try:
            return list(fabric_lines(self.all_lines(text), self.pools, self.vrf))
        except (LookupError, ValueError) as error:
            raise DeviceError(f"a configuration that cannot be read: {error}") from error

    def lacking(self, wanted: Iterable[RouteLine], running: str) -> Remediation:
        """What to type so that a device with this configuration has these routes."""
        return remediation(self.lines(running), wanted)

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`; wanted: other routes than the rendered ones.

        What runs is saved if a reboot would leave the same to do.
        """
        wanted = self.lines(self.rendered()) if wanted is None else list(wanted)
        plan = self._plan(wanted, self.running())
        saved = self._plan(wanted, self.saved()) if self.saves else plan
        unlike = saved.lines != plan.lines or saved.drained > plan.drained
        save = unlike or (plan.lines and not self.driver)  # drivers save what they commit
        return replace(plan, save=self.saves if save else ())

    def _plan(self, wanted: Iterable[RouteLine], running: str) -> DevicePlan:
        plan, routes = self.compared(running), self.lacking(wanted, running)
        return replace(plan, add=(*plan.add, *routes.add), remove=(*routes.remove, *plan.remove))

    def compared(self, running: str) -> DevicePlan:
        """The plan but for routes: by sections, what the configuration lacks and others did there.

        What takes others' lines away is in it where that was asked for.
        """
        text = self.rendered()
        rendered = list(by_section(text))
        wanted, found = _grouped(rendered), _grouped(by_section(running))
        routes = self._route_lines(text)
        ports = [section for section in wanted if section and section[0].startswith(PORT)]
        shut = {section for section in ports if self._shut(wanted[section], found[section])}
        missing = [
            (section, line)
            for section, line in rendered
            if line not in routes
            and line not in found[section]
            and (line != OPEN or (self.opens if section in shut else self.shut_at_first))
        ]
        drained = any(map(DRAINED.match, found[()]))
        if drained:  # what it withdrew stays withdrawn until --end
            missing = [one for one in missing if not WITHDRAWN.match(one[1])]
        foreign = [
            (section, line)
            for section in wanted
            for line in found[section]
            if _foreign(line, section, wanted[section], found) and line not in routes
        ]
        inside = [(section, line) for section, line in foreign if section]
        gone = [
            (at, f"no {one}".removeprefix("no no ")) for at, one in inside if LINES in self.overrule
        ]
        kept = [": ".join((*section, line)) for section, line in foreign if not gone or not section]
        held = [] if self.opens else [one[-1].removeprefix(PORT) for one in ports if one in shut]
        return DevicePlan(
            add=tuple(typed(missing, wanted.keys())),
            remove=tuple(typed(gone, ())),
            kept=tuple(kept),
            shut=frozenset(held),
            drained=drained,
        )

    def _shut(self, wanted: Iterable[str], found: Collection[str]) -> bool:
        """Whether a port is shut by hand; where ports are shut unless opened, one that was ours."""
        ours = any(line in found for line in wanted if line.startswith("description "))
        return SHUT in found or (
            self.shut_at_first and ours and OPEN in wanted and OPEN not in found
        )

    def _route_lines(self, text: str) -> set[str]:
        """The lines about routes of the fabric."""
        return {
            " ".join(part.split())
            for line in self.lines(text)
            for part in line.add.splitlines()
            if line.prefix in part
        }

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: those that no static route of the configuration says.

        With eBGP there are many until it has converged.
        """
        found = compare(tables)
        if self.bgp:
            return []
        said = {line.place for line in self.lines(self.running())}
        return [one for one in found if one.found and one.place not in said]


def by_section(text: str) -> Iterator[tuple[Section, str]]:
    """Every line, and those that it is indented under; blanks in it count as one."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if FRAME.match(line):
            continue
        indent, words = len(line) - len(line.lstrip()), " ".join(line.split())
        while above and above[-1][0] >= indent:
            above.pop()
        yield tuple(word for _, word in above), words
        above.append((indent, words))


def _grouped(lines: Iterable[tuple[Section, str]]) -> defaultdict[Section, dict[str, None]]:
    """The lines of each section, in their order."""
    found: defaultdict[Section, dict[str, None]] = defaultdict(dict)
    for section, line in lines:
        found[section][line] = None
    return found


def _foreign(
    line: str, section: Section, wanted: Collection[str], found: Mapping[Section, Collection[str]]
) -> bool:
    """Whether a line is of others: at the top a section, in one of the fabric's any line.

    Not one that the fabric's replaces.
    """
    if line in wanted or line in (SHUT, OPEN):
        return False
    if not section:
        return (line,) in found
    first, *rest = line.split()
    heads = {first} if first in ONCE else {" ".join((first, *rest[:1]))}
    return not any(f"{one} ".startswith(f"{head} ") for head in heads for one in wanted)


def typed(lines: Iterable[tuple[Section, str]], sections: Collection[Section]) -> Iterator[str]:
    """Lines with those that lead to their sections; each section is left again.

    Else a line of the top would be about the section.
    """
    at: Section = ()
    for section, line in (*lines, ((), "")):
        if section != at:
            yield from ("  " * depth + "exit" for depth in range(len(at), 0, -1))
            yield from ("  " * depth + words for depth, words in enumerate(section))
        if line:
            yield "  " * len(section) + line
        at = (*section, line) if (*section, line) in sections else section
