"""Readers of the topology of a fabric for the checker ibdm: its cables, and its kinds of systems.

A *system* is a switch or a host's adapter. Cables join *plugs* of systems. A topology file lists
systems and cables: a line with a system, and below it one for each of its cables:

    KIND leaf-0
        P1 -> KIND2 leaf-1 P4

An IBNL file defines a kind of systems: one node, and the plug of each port:

    TOPSYSTEM KIND
    NODE SW 36 KIND U1
        1 -> P1
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import exact_words
from extensions.infiniband.settings_text import plain_lines


class PlugName(NamedTuple):
    """An end of a cable in a topology file."""

    system: str
    """The name of the system."""
    plug: str
    """The name of its plug, such as `P1`."""


@dataclass(frozen=True, slots=True)
class TopologyCable:
    """The cable at a plug, as a line of a topology file states it."""

    far: PlugName
    """The other end."""
    line: int
    """The number of the line."""


@dataclass(frozen=True, slots=True)
class SystemMention:
    """A line of a topology file that names a system."""

    name: str
    """The name of the system."""
    kind: str
    """Its kind, which an IBNL file of that name defines."""
    line: int
    """The number of the line."""


@dataclass(slots=True)
class TopologyText:
    """The cables and systems of a topology file."""

    cables: dict[PlugName, TopologyCable] = field(default_factory=dict)
    """The cables by the end under which they are listed."""
    mentions: list[SystemMention] = field(default_factory=list)
    """All mentions of systems."""


def read_topology(file: Path, differences: DifferenceList) -> TopologyText:
    """The cables and systems of a topology file of ibdm."""
    topology, current, systems = TopologyText(), "", set[str]()
    for line, text in plain_lines(file, differences):
        words = exact_words(text)
        if len(words) == 2 and text[0] not in " #":
            kind, current = words
            if current in systems:
                differences.add(file, line, f"{text} again", "one system of that name")
            systems.add(current)
            topology.mentions.append(SystemMention(current, kind, line))
        elif len(words) == 5 and words[1] == "->" and current:
            plug, _, far_kind, far_system, far_plug = words
            near = PlugName(current, plug)
            if near in topology.cables:
                differences.add(file, line, f"port {plug} again", "one cable a port")
            topology.cables[near] = TopologyCable(PlugName(far_system, far_plug), line)
            topology.mentions.append(SystemMention(far_system, far_kind, line))
        elif words and text[0] != "#":
            differences.add_unread(file, line, text)
    return topology


@dataclass(slots=True)
class SystemDefinition:
    """An IBNL file, which defines a kind of systems with one node each."""

    node: str = ""
    """The node, such as `SW 36` or `CA 1`; "" for none."""
    plugs: dict[str, str] = field(default_factory=dict)
    """The plug of each of its ports."""


def read_definition(file: Path, differences: DifferenceList) -> SystemDefinition:
    """The system that an IBNL file defines."""
    system, has_begun = SystemDefinition(), False
    for line, text in plain_lines(file, differences):
        words = exact_words(text)
        is_node = words[:1] == ["NODE"] and words[3:] == [file.stem, "U1"]
        is_plug = len(words) == 3 and words[1] == "->"
        if words == ["TOPSYSTEM", file.stem] and not has_begun:
            has_begun = True
        elif is_node and has_begun and not system.node:
            system.node = " ".join(words[1:3])
        elif is_plug and system.node and words[0] not in system.plugs:
            system.plugs[words[0]] = words[2]
        elif words:
            differences.add_unread(file, line, text)
    return system
