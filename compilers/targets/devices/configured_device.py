"""Routers with a configuration of lines: a push compares it with the rendered one, and types lines.

Lines that others have added stay, also in sections of the fabric, and so does a port that somebody
has shut.
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
"""How the line of a port begins, and the lines in its section that close and open it."""
HOST_NAME = re.compile(r"^(?:hostname|switchname|set system host-name) (\S+)", re.M)
"""`hostname n7`, or as other systems say it."""
ONCE = frozenset({"description", "mtu", "speed", "fec", "vrf", "switchport", "hostname"})
"""First words of lines that a section has once: another line with the word replaces it."""
FRAME = re.compile(r"\s*(!|#|$|end$|exit|Current configuration|Building configuration)")
"""Lines that configure nothing: `!`, `# …`, `end`, `exit-address-family`, and an empty one."""
DRAINED = re.compile(r"route-map announced-\S+ permit 5$")
"""`route-map announced-ipv4 permit 5`: a line of a switch that `polarfab drain` has drained."""
WITHDRAWN = re.compile(r"network \S+/(32|128)$")
"""`network 10.0.0.1/32`: the lines that a drained switch lacks."""
POLICY_ENTRY = re.compile(
    r"(?P<list>(?:ipv?6? prefix-list|(?:bgp|ip) as-path access-list|route-map) \S+)"
    r" (?:(?:permit|deny|seq) (?P<number>\d+)|(?P<rest>.*))"
)
"""`ip prefix-list hosts seq 5 …`, `route-map announced permit 10`: an entry of a policy.

Two entries of a prefix list, AS-path list or route map with one number replace each other.
"""
ROUTER_BGP = re.compile(r"^router bgp (\S+) *$", re.M)
"""`router bgp 4200000007`: the line with the AS number of a switch."""
CONFIRM_MINUTES = 10
"""Minutes after which a device takes an unconfirmed change back."""
Section = tuple[str, ...]
"""The heads of sections that a line is in, the outermost first."""


class ConfiguredDevice(RouterDevice):
    """A router whose routes are in a configuration of lines."""

    overrules = frozenset({PORTS_SHUT, LINES})
    shut_at_first: ClassVar[bool] = False
    """Whether ports are shut until `no shutdown` opens them."""
    saves: ClassVar[tuple[str, ...]] = ()
    """The commands that save the configuration; () where every commit does."""
    long_heads: ClassVar[tuple[str, ...]] = ()
    """Beginnings of lines whose first three words say what they set; of others the first two do."""
    several: ClassVar[tuple[str, ...]] = ()
    """Beginnings of lines that never replace each other."""

    def name(self) -> str:
        """See `RouterDevice.name`: the host name in its configuration."""
        match = HOST_NAME.search(self.running())
        return match[1].strip('"') if match else ""

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
        """The static routes of a configuration, the fabric's and those of others."""
        return section_lines(text)

    def lines(self, text: str) -> list[RouteLine]:
        """The static routes of the fabric in a configuration.

        Raises:
            DeviceError: it cannot be read.
        """
        try:
            return list(fabric_lines(self.all_lines(text), self.pools, self.vrf))
        except (LookupError, ValueError) as error:
            raise DeviceError(f"a configuration that cannot be read: {error}") from error

    def lacking(self, wanted: Iterable[RouteLine], running: str) -> Remediation:
        """The lines that give a device with this configuration the wanted routes."""
        return remediation(self.lines(running), wanted)

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`.

        The running configuration is saved if a reboot would lead to one with other lines to type.

        Args:
            wanted: the routes that the device is to have; None: the rendered ones.

        Raises:
            DeviceError: its BGP runs with another AS number, which no line changes.
        """
        wanted = self.lines(self.rendered()) if wanted is None else list(wanted)
        running = self.running()
        self._require_as_number(running)
        plan = self._plan(wanted, running)
        saved = self._plan(wanted, self.saved()) if self.saves else plan
        differs = saved.lines != plan.lines or saved.drained > plan.drained
        save = differs or (plan.lines and not self.driver)  # drivers save what they commit
        return replace(plan, save=self.saves if save else ())

    def _require_as_number(self, running: str) -> None:
        """Refuse to give a switch whose BGP runs another AS number."""
        wanted, held = ROUTER_BGP.search(self.rendered()), ROUTER_BGP.search(running)
        if wanted and held and wanted[1] != held[1]:
            raise DeviceError(
                f"required the AS number {wanted[1]} of the build, given {held[1]}, which no push "
                f"changes while BGP runs; type `no router bgp {held[1]}` there, which ends its "
                "sessions, and push again, or keep the number (`asn` of its node)"
            )

    def _plan(self, wanted: Iterable[RouteLine], running: str) -> DevicePlan:
        plan, routes = self.compared(running), self.lacking(wanted, running)
        return replace(plan, add=(*plan.add, *routes.add), remove=(*routes.remove, *plan.remove))

    def compared(self, running: str) -> DevicePlan:
        """The plan without routes: the lines that a configuration lacks, section by section.

        Lines of others in the fabric's sections and policies are kept, or removed where the user
        asked for that.
        """
        text = self.rendered()
        rendered = list(by_section(text))
        wanted, held = _grouped(rendered), _grouped(by_section(running))
        routes = self._route_lines(text)
        ports = [section for section in wanted if section and section[0].startswith(PORT)]
        shut = [port for port in ports if self._is_shut(wanted[port], held[port])]
        not_held = [(at, line) for at, line in rendered if line not in held[at]]
        missing = [
            (section, line)
            for section, line in not_held
            if line not in routes and (line != OPEN or self._opens(section in shut))
        ]
        if self.opens:  # `no shutdown` is not rendered where ports are open at first
            missing += [(port, OPEN) for port in shut if OPEN not in wanted[port]]
        drained = any(map(DRAINED.match, held[()]))
        if drained:  # what the drain withdrew stays withdrawn until its end
            missing = [(section, line) for section, line in missing if not WITHDRAWN.match(line)]
        foreign = [
            (section, line)
            for section in wanted
            for line in held[section]
            if self._is_foreign(line, section, wanted[section], held) and line not in routes
        ]
        removed = [pair for pair in foreign if LINES in self.overrule and _is_inside(*pair, wanted)]
        kept = [pair for pair in foreign if pair not in removed]
        return DevicePlan(
            add=tuple(typed(missing, wanted.keys())),
            remove=tuple(typed(((at, _negated(line)) for at, line in removed), ())),
            kept=tuple(": ".join((*section, line)) for section, line in kept),
            shut=frozenset(() if self.opens else (port[-1].removeprefix(PORT) for port in shut)),
            drained=drained,
        )

    def _opens(self, is_shut: bool) -> bool:
        """Whether a push types the rendered `no shutdown` of a port that the device lacks.

        is_shut: whether somebody has shut the port.
        """
        return self.opens if is_shut else self.shut_at_first

    def _is_shut(self, wanted: Iterable[str], held: Collection[str]) -> bool:
        """Whether somebody has shut a port.

        Where ports are shut at first, one that the fabric has described was open before.

        Args:
            wanted: the rendered lines of the port.
            held: its lines on the device.
        """
        described = any(line in held for line in wanted if line.startswith("description "))
        closed_again = self.shut_at_first and described and OPEN in wanted and OPEN not in held
        return SHUT in held or closed_again

    def _route_lines(self, text: str) -> set[str]:
        """The lines of a configuration about routes of the fabric."""
        return {
            " ".join(part.split())
            for line in self.lines(text)
            for part in line.add.splitlines()
            if line.prefix in part
        }

    def _is_foreign(
        self,
        line: str,
        section: Section,
        wanted: Collection[str],
        held: Mapping[Section, Collection[str]],
    ) -> bool:
        """Whether others have added a line that the fabric's lines do not replace.

        Outside of sections only heads of sections and entries of the fabric's policies count.

        Args:
            line: the line.
            section: the section that it is in.
            wanted: the rendered lines of the section.
            held: the lines of all sections on the device.
        """
        if line in wanted or line in (SHUT, OPEN):
            return False
        if not section:
            lists, entries = _policies(wanted)
            if (entry := POLICY_ENTRY.match(line)) and entry["list"] in lists:
                return entry[0] not in entries and _numbered(entry) not in entries
            return (line,) in held
        head = self._head(line)
        return not any(f"{rendered} ".startswith(f"{head} ") for rendered in wanted)

    def _head(self, line: str) -> str:
        """The words of a line that say what it sets: a line with the same ones replaces it."""
        words = line.split()
        if line.startswith(self.several):
            return line
        if words[0] in ONCE:
            return words[0]
        return " ".join(words[: 3 if line.startswith(self.long_heads) else 2])

    def foreign(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign`: routes that are no static routes of the configuration.

        With eBGP none is reported, as there are many until it has converged.
        """
        differences = compare(tables)
        if self.bgp:
            return []
        static = {line.place for line in self.lines(self.running())}
        return [route for route in differences if route.found and route.place not in static]


def by_section(text: str) -> Iterator[tuple[Section, str]]:
    """The lines of a configuration, each with the heads of its sections and with single blanks.

    >>> list(by_section("interface eth1\\n  mtu   9000"))
    [((), 'interface eth1'), (('interface eth1',), 'mtu 9000')]
    """
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
    grouped: defaultdict[Section, dict[str, None]] = defaultdict(dict)
    for section, line in lines:
        grouped[section][line] = None
    return grouped


def _policies(lines: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The policies in lines outside of sections: their names, and their entries.

    An entry is there as it is written, and by the number that another entry would replace.
    """
    entries = [entry for entry in map(POLICY_ENTRY.match, lines) if entry]
    texts = (text for entry in entries for text in (entry[0], _numbered(entry)) if text)
    return frozenset(entry["list"] for entry in entries), frozenset(texts)


def _numbered(entry: re.Match[str]) -> str:
    """An entry of a policy by its number; "" without one."""
    return f"{entry['list']} {entry['number']}" if entry["number"] else ""


def _is_inside(section: Section, line: str, wanted: Mapping[Section, Collection[str]]) -> bool:
    """Whether a line of others is in a section or a policy of the fabric, and not of a drain."""
    if section:
        return True
    entry = POLICY_ENTRY.match(line)
    return bool(entry and entry["list"] in _policies(wanted[()])[0] and not DRAINED.match(line))


def _negated(line: str) -> str:
    """The line that takes another away."""
    return f"no {line}".removeprefix("no no ")


def typed(lines: Iterable[tuple[Section, str]], sections: Collection[Section]) -> Iterator[str]:
    """The lines to type so that lines arrive in their sections.

    Each section is left by `exit`, so that the next line is not taken for a part of it.

    Args:
        lines: the lines, each with its section.
        sections: lines that are heads of sections, with the section that they make.
    """
    at: Section = ()
    for section, line in (*lines, ((), "")):
        if section != at:
            yield from ("  " * depth + "exit" for depth in range(len(at), 0, -1))
            yield from ("  " * depth + words for depth, words in enumerate(section))
        if line:
            yield "  " * len(section) + line
        at = (*section, line) if (*section, line) in sections else section
