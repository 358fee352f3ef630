"""Reader of the lossless priorities in an EOS configuration.

`EosPriorities.of` reads a text into maps, by the names that the configuration uses. The check in
`eos_priorities` compares them with the layers of a build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from compilers.readers.exact_text import bare, exact_lines, exact_number, exact_words, strange
from extensions.lossless.eos_priority_lines import QOS, SERVICE

HARMLESS_QUEUE = re.compile(r"      (random-detect ecn [a-z0-9 -]+|priority strict)")
"""A line of a queue that does not change which packets are lossless, such as `priority strict`."""
QUEUE_INDENT = "    "
"""Begins the lines below a queue of a QoS profile; lines of the profile are indented by three."""
ENTRY = re.compile(r"   [0-9]+ permit (ip|ipv6) any (\S+) dscp ([0-9]+)")
"""A line of an access list: `10 permit ip any 10.0.0.8/29 dscp 26`."""


class MarkedPrefix(NamedTuple):
    """The packets that an entry of an access list matches."""

    prefix: str
    """Their destinations."""
    dscp: int
    """Their DSCP."""


class UnreadLine(NamedTuple):
    """A line that cannot be read."""

    number: int
    """The number of the line, from 1."""
    text: str
    """The line."""


@dataclass(slots=True)
class EosPriorities:
    """The statements of a configuration about priorities, by the names of sections."""

    class_of_dscp: dict[int, int] = field(default_factory=dict)
    """The traffic class of each DSCP."""
    queue_of_class: dict[int, int] = field(default_factory=dict)
    """The transmit queue of each traffic class."""
    access_lists: dict[str, set[MarkedPrefix]] = field(default_factory=dict)
    """The packets that each access list matches."""
    class_maps: dict[str, str] = field(default_factory=dict)
    """The access list of each class map; "" before the map names one."""
    policy_maps: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """By policy map and class map, the values that it sets: `dscp` and `traffic-class`."""
    qos_profiles: dict[str, set[str]] = field(default_factory=dict)
    """The lines of each QoS profile."""
    profile_of_port: dict[str, str] = field(default_factory=dict)
    """The QoS profile of each interface."""
    unread: list[UnreadLine] = field(default_factory=list)
    """The lines that cannot be read."""

    @classmethod
    def of(cls, text: str) -> EosPriorities:
        """Read a configuration."""
        priorities, section, class_map = cls(), "", ""
        for number, line in enumerate(exact_lines(text), 1):
            if line[:1] != " ":
                section, class_map = line, ""
            if line.startswith("   class "):
                class_map = exact_words(line)[1]
            is_relevant = line.startswith(SERVICE) or QOS.match(section)
            if is_relevant and bare(line) != "!" and not priorities._read(section, class_map, line):
                priorities.unread.append(UnreadLine(number, line))
        return priorities

    def _read(self, section: str, class_map: str, line: str) -> bool:
        """Enter what a line states; False if it makes no sense, or names a missing section.

        Args:
            section: the first line of the section.
            class_map: the class map of a policy map that the line is below; "" for none.
            line: the line.
        """
        if strange(line):
            return False
        try:
            return self._enter_line(section, class_map, line)
        except (LookupError, ValueError):
            return False

    def _enter_line(self, section: str, class_map: str, line: str) -> bool:
        """Enter what a line states; False if no command has this form."""
        match exact_words(section), exact_words(line):
            case ["interface", port], ["service-profile", profile]:
                self.profile_of_port[port] = profile
            case _, ["qos", "map", "dscp", *dscps, "to", "traffic-class", number]:
                self.class_of_dscp |= dict.fromkeys(map(exact_number, dscps), exact_number(number))
            case _, ["qos", "map", "traffic-class", number, "to", "tx-queue", queue]:
                self.queue_of_class[exact_number(number)] = exact_number(queue)
            case [_, "access-list", name], [*_] if entry := ENTRY.fullmatch(line):
                self.access_lists[name].add(MarkedPrefix(entry[2], exact_number(entry[3])))
            case ["class-map", *_, name], ["match", "ip" | "ipv6", "access-group", access_list]:
                self.class_maps[name] = access_list
            case ["policy-map", *_, name], ["class", _]:
                self.policy_maps[name][class_map] = {}
            case ["policy-map", *_, name], ["set", key, value] if class_map:
                self.policy_maps[name][class_map][key] = exact_number(value)
            case ["qos", "profile", _], [*_] if line.startswith(QUEUE_INDENT):
                return HARMLESS_QUEUE.fullmatch(line) is not None
            case ["qos", "profile", name], [*words] if line != section:
                self.qos_profiles[name].add(" ".join(words))
            case section_words, _ if line == section:
                return self._begin_section(section_words)
            case _:
                return False
        return True

    def _begin_section(self, words: list[str]) -> bool:
        """Begin a section, by the words of its first line; False if there is no such section."""
        match words:
            case [_, "access-list", name]:
                self.access_lists[name] = set()
            case ["class-map", *_, name]:
                self.class_maps[name] = ""
            case ["policy-map", *_, name]:
                self.policy_maps[name] = {}
            case ["qos", "profile", name]:
                self.qos_profiles[name] = set()
            case _:
                return False
        return True
