"""Routers with a configuration of lines: a push types the rendered lines that the device lacks.

`ConfiguredDevice` compares the running configuration with the one that polarfab rendered, section
by section. A *section* is an indented block, such as that of an interface; its first line is its
*head*. *Foreign* lines are those that others have added. They stay, also in sections of the fabric,
and a port that somebody has shut stays shut; the user can *overrule* both. The devices of routers,
by a shell or by NAPALM, derive from this class, and `controller.devices` runs the push.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

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

PORT_HEAD = "interface "
"""How the head of a port's section begins."""
SHUT, OPEN = "shutdown", "no shutdown"
"""The lines in the section of a port that shut and open it."""
HOST_NAME = re.compile(r"^(?:hostname|switchname|set system host-name) (\S+)", re.M)
"""`hostname n7`, `switchname n7` or `set system host-name n7`."""
SET_ONCE = frozenset({"description", "mtu", "speed", "fec", "vrf", "switchport", "hostname"})
"""First words of lines that a section has once: another line with the word replaces the first."""
FRAME = re.compile(r"\s*(!|#|$|end$|exit|Current configuration|Building configuration)")
"""Lines that configure nothing: `!`, `# …`, `end`, `exit-address-family`, and empty lines."""
DRAINED = re.compile(r"route-map announced-\S+ permit 5$")
"""`route-map announced-ipv4 permit 5`: a line of a switch that `polarfab drain` has drained."""
WITHDRAWN = re.compile(r"network \S+/(32|128)$")
"""`network 10.0.0.1/32`: an announcement of a next hop, which a drained switch has withdrawn."""
POLICY_ENTRY = re.compile(
    r"(?P<list>(?:ipv?6? prefix-list|(?:bgp|ip) as-path access-list|route-map) \S+)"
    r" (?:(?:permit|deny|seq) (?P<number>\d+)|(?P<rest>.*))"
)
"""`ip prefix-list hosts seq 5 …`, `route-map announced permit 10`: an entry of a policy, which is a
prefix list, AS-path list or route map. Two entries of a policy with one number replace each other.
"""
ROUTER_BGP = re.compile(r"^router bgp (\S+) *$", re.M)
"""`router bgp 4200000007`: the line with the AS number of a switch."""
CONFIRM_MINUTES = 10
"""Minutes after which a device takes an unconfirmed change back."""
Section = tuple[str, ...]
"""The head lines of the sections that a line is in, the outermost first; () outside of sections."""


@dataclass(frozen=True, slots=True)
class _ComparedSections:
    """The rendered lines of every section, and those that a device has."""

    rendered_lines: list[tuple[Section, str]]
    """The rendered lines in their order, each with its section."""
    rendered: defaultdict[Section, dict[str, None]]
    """The rendered lines of each section."""
    present: defaultdict[Section, dict[str, None]]
    """The lines of each section on the device."""
    routes: set[str]
    """The rendered lines about routes of the fabric, which `route_changes` compares."""


class _Policies(NamedTuple):
    """The policies among lines outside of sections: prefix lists, AS-path lists, route maps."""

    names: frozenset[str]
    """Each policy, as `route-map announced`."""
    entries: frozenset[str]
    """Each entry twice: as it is written, and as policy and number (`_numbered_entry`)."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> _Policies:
        """The policies in these lines."""
        matches = [entry for entry in map(POLICY_ENTRY.match, lines) if entry]
        texts = (text for entry in matches for text in (entry[0], _numbered_entry(entry)) if text)
        return cls(frozenset(entry["list"] for entry in matches), frozenset(texts))

    def has(self, entry: re.Match[str]) -> bool:
        """Whether an entry is one of these, or has the policy and the number of one.

        An entry with the number of another one would replace it.
        """
        return entry[0] in self.entries or _numbered_entry(entry) in self.entries


class ConfiguredDevice(RouterDevice):
    """A router whose routes are in a configuration of lines.

    Three configurations occur, each as a text: the one that polarfab has `rendered`, the `running`
    one, and the `saved` one, which a reboot would load.
    """

    can_overrule = frozenset({PORTS_SHUT, LINES})
    ports_start_shut: ClassVar[bool] = False
    """Whether ports are shut until `no shutdown` opens them."""
    save_commands: ClassVar[tuple[str, ...]] = ()
    """The commands that save the configuration; () where every commit saves it."""
    long_heads: ClassVar[tuple[str, ...]] = ()
    """Beginnings of lines whose first three words say what they set; in other lines the first two
    words do."""
    repeatable: ClassVar[tuple[str, ...]] = ()
    """Beginnings of lines that a section may have several times, each with another value."""

    def name(self) -> str:
        """See `RouterDevice.name`: the host name in its configuration."""
        match = HOST_NAME.search(self.running())
        return match[1].strip('"') if match else ""

    @abstractmethod
    def running(self) -> str:
        """The running configuration of the device."""

    def saved(self) -> str:
        """The configuration that a reboot would load, in the form of `running`."""
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
            DeviceError: the configuration cannot be read.
        """
        try:
            return list(fabric_lines(self.all_lines(text), self.pools, self.vrf))
        except (LookupError, ValueError) as error:
            raise DeviceError(f"a configuration that cannot be read: {error}") from error

    def route_changes(self, wanted: Iterable[RouteLine], running: str) -> Remediation:
        """The lines that give a device the wanted routes.

        Args:
            wanted: the routes.
            running: the running configuration of the device.
        """
        return remediation(self.lines(running), wanted)

    def plan(self, wanted: Iterable[RouteLine] | None = None) -> DevicePlan:
        """See `RouterDevice.plan`.

        The plan also saves the running configuration if it changes it, or if after a reboot there
        would be other lines to type.

        Args:
            wanted: the routes that the device is to have; None: the rendered ones.

        Raises:
            DeviceError: its BGP runs with another AS number, which no line changes.
        """
        wanted = self.lines(self.rendered()) if wanted is None else list(wanted)
        running_text = self.running()
        self._require_as_number(running_text)
        plan = self._full_plan(wanted, running_text)
        plan_after_reboot = plan
        if self.save_commands:
            plan_after_reboot = self._full_plan(wanted, self.saved())
        drain_would_return = plan_after_reboot.drained and not plan.drained
        differs_after_reboot = plan_after_reboot.lines != plan.lines or drain_would_return
        changes_running = plan.lines and not self.driver  # drivers save what they commit
        needs_save = differs_after_reboot or changes_running
        return replace(plan, save=self.save_commands if needs_save else ())

    def _require_as_number(self, running: str) -> None:
        """Refuse to give a switch whose BGP runs another AS number."""
        rendered_bgp, running_bgp = ROUTER_BGP.search(self.rendered()), ROUTER_BGP.search(running)
        if rendered_bgp is None or running_bgp is None:
            return
        new, old = rendered_bgp[1], running_bgp[1]
        if new != old:
            raise DeviceError(
                f"required the AS number {new} of the build, given {old}, which no push "
                f"changes while BGP runs; type `no router bgp {old}` there, which ends its "
                "sessions, and push again, or keep the number (`asn` of its node)"
            )

    def _full_plan(self, wanted: Iterable[RouteLine], running: str) -> DevicePlan:
        """The plan for a device with a running configuration: lines of routes and all others."""
        plan, routes = self.section_plan(running), self.route_changes(wanted, running)
        return replace(plan, add=(*plan.add, *routes.add), remove=(*routes.remove, *plan.remove))

    def section_plan(self, running: str) -> DevicePlan:
        """The plan without routes: the lines that a configuration lacks, section by section.

        Foreign lines in the fabric's sections and policies are kept, or removed if the user
        overrules them.
        """
        sections = self._compared_sections(running)
        shut = [
            section
            for section in sections.rendered
            if section and section[0].startswith(PORT_HEAD) and self._is_shut(section, sections)
        ]
        is_drained = any(map(DRAINED.match, sections.present[()]))
        missing = self._missing_lines(sections, shut)
        if is_drained:  # what the drain withdrew stays withdrawn until its end
            missing = [(section, line) for section, line in missing if not WITHDRAWN.match(line)]
        foreign = self._foreign_in_sections(sections)
        to_remove = [
            (section, line)
            for section, line in foreign
            if LINES in self.overrule and _is_inside(section, line, sections.rendered)
        ]
        to_keep = [line for line in foreign if line not in to_remove]
        removals = ((section, _removal(line)) for section, line in to_remove)
        still_shut = () if self.opens_ports else shut
        return DevicePlan(
            add=tuple(lines_to_type(missing, sections.rendered.keys())),
            remove=tuple(lines_to_type(removals, ())),
            kept=tuple(": ".join((*section, line)) for section, line in to_keep),
            shut=frozenset(section[-1].removeprefix(PORT_HEAD) for section in still_shut),
            drained=is_drained,
        )

    def _compared_sections(self, running: str) -> _ComparedSections:
        """The lines of each section, as they are rendered and in a running configuration."""
        rendered_text = self.rendered()
        rendered_lines = list(by_section(rendered_text))
        return _ComparedSections(
            rendered_lines=rendered_lines,
            rendered=_lines_by_section(rendered_lines),
            present=_lines_by_section(by_section(running)),
            routes=self._route_lines(rendered_text),
        )

    def _missing_lines(
        self, sections: _ComparedSections, shut: Collection[Section]
    ) -> list[tuple[Section, str]]:
        """The rendered lines that the device lacks, without routes, each with its section.

        Args:
            sections: the rendered lines, and those of the device.
            shut: the sections of the ports that somebody has shut.
        """
        missing = [
            (section, line)
            for section, line in sections.rendered_lines
            if line not in sections.present[section]
            and line not in sections.routes
            and (line != OPEN or self._types_no_shutdown(section in shut))
        ]
        if self.opens_ports:  # `no shutdown` is not rendered where ports start open
            missing += [(port, OPEN) for port in shut if OPEN not in sections.rendered[port]]
        return missing

    def _foreign_in_sections(self, sections: _ComparedSections) -> list[tuple[Section, str]]:
        """The foreign lines of the device in sections that are rendered, each with its section."""
        return [
            (section, line)
            for section in sections.rendered
            for line in sections.present[section]
            if self._is_foreign(line, section, sections) and line not in sections.routes
        ]

    def _types_no_shutdown(self, is_shut: bool) -> bool:
        """Whether a push types the rendered `no shutdown` of a port, if the device lacks the line.

        Args:
            is_shut: whether somebody has shut the port.
        """
        return self.opens_ports if is_shut else self.ports_start_shut

    def _is_shut(self, section: Section, sections: _ComparedSections) -> bool:
        """Whether somebody has shut the port of a section.

        Where ports start shut, a port with the fabric's description was open before.

        Args:
            section: the section of the port.
            sections: the rendered lines, and those of the device.
        """
        rendered, present = sections.rendered[section], sections.present[section]
        descriptions = (line for line in rendered if line.startswith("description "))
        was_pushed = any(line in present for line in descriptions)
        is_open = OPEN in present or OPEN not in rendered
        return SHUT in present or (self.ports_start_shut and was_pushed and not is_open)

    def _route_lines(self, text: str) -> set[str]:
        """The lines of a configuration about routes of the fabric."""
        return {
            " ".join(part.split())
            for line in self.lines(text)
            for part in line.add.splitlines()
            if line.prefix in part
        }

    def _is_foreign(self, line: str, section: Section, sections: _ComparedSections) -> bool:
        """Whether a line is foreign: no rendered line, and none that a rendered line replaces.

        Outside of sections only heads of sections and entries of the fabric's policies are foreign.

        Args:
            line: a line on the device.
            section: the section that it is in.
            sections: the rendered lines, and those of the device.
        """
        rendered = sections.rendered[section]
        if line in rendered or line in (SHUT, OPEN):
            return False
        if not section:
            policies = _Policies.of(rendered)
            if (entry := POLICY_ENTRY.match(line)) and entry["list"] in policies.names:
                return not policies.has(entry)
            return (line,) in sections.present  # whether it is the head of a section
        head = self._head(line)
        return not any(f"{rendered_line} ".startswith(f"{head} ") for rendered_line in rendered)

    def _head(self, line: str) -> str:
        """The first words of a line, which say what it sets: a line with the same replaces it."""
        words = line.split()
        if line.startswith(self.repeatable):
            return line
        if words[0] in SET_ONCE:
            return words[0]
        count = 3 if line.startswith(self.long_heads) else 2
        return " ".join(words[:count])

    def foreign_routes(self, tables: str, compare: Compare) -> list[RouteDifference]:
        """See `RouterDevice.foreign_routes`: all but static routes of the configuration.

        With eBGP it reports no routes, as many differ until BGP has converged.
        """
        differences = compare(tables)
        if self.bgp:
            return []
        static_routes = {line.key for line in self.lines(self.running())}
        return [route for route in differences if route.found and route.key not in static_routes]


def by_section(text: str) -> Iterator[tuple[Section, str]]:
    """The lines of a configuration, each with its section, and with single blanks between words.

    >>> list(by_section("interface eth1\\n  mtu   9000"))
    [((), 'interface eth1'), (('interface eth1',), 'mtu 9000')]
    """
    heads: list[tuple[int, str]] = []  # indentation and words, the outermost first
    for line in text.splitlines():
        if FRAME.match(line):
            continue
        indent, words = len(line) - len(line.lstrip()), " ".join(line.split())
        while heads and heads[-1][0] >= indent:
            heads.pop()
        yield tuple(head for _, head in heads), words
        heads.append((indent, words))


def _lines_by_section(
    lines: Iterable[tuple[Section, str]],
) -> defaultdict[Section, dict[str, None]]:
    """The lines of each section in their order, without repetitions, as keys of a mapping."""
    grouped: defaultdict[Section, dict[str, None]] = defaultdict(dict)
    for section, line in lines:
        grouped[section][line] = None
    return grouped


def _numbered_entry(entry: re.Match[str]) -> str:
    """The policy and the number of an entry, `route-map announced 10`; "" without a number."""
    return f"{entry['list']} {entry['number']}" if entry["number"] else ""


def _is_inside(section: Section, line: str, rendered: Mapping[Section, Collection[str]]) -> bool:
    """Whether a foreign line is in a section or policy of the fabric, and not of a drain."""
    if section:
        return True
    entry = POLICY_ENTRY.match(line)
    policies = _Policies.of(rendered[()])
    return bool(entry and entry["list"] in policies.names and not DRAINED.match(line))


def _removal(line: str) -> str:
    """The line that removes a line: `no …`, or without its `no`."""
    return f"no {line}".removeprefix("no no ")


def lines_to_type(
    lines: Iterable[tuple[Section, str]], sections: Collection[Section]
) -> Iterator[str]:
    """The lines to type so that lines arrive in their sections, with heads and `exit` as needed.

    Args:
        lines: the lines, each with its section.
        sections: all sections of the configuration. A line that is the head of one of them enters
            it, which is left by `exit` before a line of another section.
    """
    current: Section = ()
    end = (Section(), "")  # leaves the last section
    for section, line in (*lines, end):
        if section != current:
            yield from ("  " * depth + "exit" for depth in range(len(current), 0, -1))
            yield from ("  " * depth + head for depth, head in enumerate(section))
        if line:
            yield "  " * len(section) + line
        section_of_head = (*section, line)
        current = section_of_head if section_of_head in sections else section
