"""Readers of the files that OpenSM gets: the subnet, tables, settings, QoS policy and topology.

The subnet is in the form of ibsim, the topology in that of ibdm. `subnet_check` calls the readers,
and compares what they return with a build. Every reader puts lines that make no sense into a
`DifferenceList`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_lines, exact_words, read_exact, strange
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.text_lines import TextLines

NUMBER = "0|[1-9][0-9]{0,9}"
"""A number without leading zeros."""
CABLE = re.compile(
    rf'\[({NUMBER})\](?:\(([0-9a-f]{{1,16}})\))?[ \t]+"([SH]-[0-9a-f]{{16}})"\[({NUMBER})\]'
)
"""The line of a cable: `[1](250460000010003) "S-0250460000010000"[36]`; hosts state a port GUID."""
DEVICE = re.compile(rf'(Ca|Switch)[ \t]+({NUMBER})[ \t]+"([SH]-[0-9a-f]{{16}})"[ \t]+# "(.*)"')
"""The line of a device: `Switch 36 "S-0250460000010000" # "leaf0"`."""
PORT_GUID = re.compile(r"0x[0-9a-f]{16}")
"""A port GUID: `0x0250460000010003`."""
ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|caguid|switchguid)=(\S+)")
"""The line of an attribute: `vendid=0x0`."""
HEAD = re.compile(rb"^Unicast lids guid 0x([0-9a-f]{16})\n", re.MULTILINE)
"""The first line of a switch's table: `Unicast lids guid 0x0250460000010000`."""
ENTRY = re.compile(r"0x([0-9a-f]{4}) ([0-9]{3}) portguid 0x([0-9a-f]{16})")
"""A line of a table: `0x0001 005 portguid 0x0250460000010003`."""
ROW_WIDTH = 39
"""The characters of a line of a table."""
PORT_DIGITS = slice(7, 10)
"""The characters of the port in a line of a table."""
FIRST_MULTICAST = 0xC000
"""The first LID that is not unicast."""
SERVICE_LEVELS = {str(level) for level in range(16)}
"""The service levels that a policy can name."""


class DevicePort(NamedTuple):
    """An end of a cable."""

    device: str
    """The device: its id in the subnet (`S-…` or `H-…`), or its name in the topology."""
    port: int
    """The number of the port."""


@dataclass(frozen=True, slots=True)
class Device:
    """A switch, or a host's adapter, of a subnet."""

    name: str
    """The name that the comment behind the device says."""
    ports: int
    """How many ports it has."""
    line: int
    """The line of the device."""


@dataclass(frozen=True, slots=True)
class CableEnd:
    """What a line says of the cable at a port."""

    far: DevicePort
    """The other end."""
    line: int
    """The number of the line."""


@dataclass(slots=True)
class SubnetText:
    """A subnet as `ibnetdiscover` prints it."""

    devices: dict[str, Device] = field(default_factory=dict)
    """The devices by id."""
    cables: dict[DevicePort, CableEnd] = field(default_factory=dict)
    """The cables by each of their ends."""
    hosts: dict[int, str] = field(default_factory=dict)
    """The id of each host, by its port GUID."""


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value that a line of a file says."""

    text: str
    """The value."""
    line: int
    """The number of the line."""


ABSENT = TextValue("nothing", 0)
"""In place of a value that no line says."""


def _plain_lines(file: Path, differences: DifferenceList) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, but for those with strange characters.

    Such lines are differences, unless they are comments.
    """
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if not strange(text):
            yield line, text
        elif text[0] != "#":
            differences.add_unread(file, line, text)


def read_subnet(file: Path, differences: DifferenceList) -> SubnetText:
    """The devices and cables of a file for ibsim.

    The attributes of a device are above it, its ports below, and an empty line ends it (ibsim,
    README, "Net file format"; with one before its ports ibsim 0.12 does not start).
    """
    reader = _SubnetReader(file, differences)
    for line, text in _plain_lines(file, differences):
        if device := DEVICE.fullmatch(text):
            reader.device(device, line)
        elif cable := CABLE.match(text):
            reader.cable(cable, text, line)
        elif (attribute := ATTRIBUTE.fullmatch(text)) and attribute[1] not in reader.attributes:
            reader.attributes[attribute[1]] = TextValue(attribute[2], line)
        elif not text:
            reader.end_device(line)
        elif text[0] != "#":
            differences.add_unread(file, line, text)
    for name, value in reader.attributes.items():
        differences.add(file, value.line, f"{name}={value.text}", "a device below it")
    return reader.subnet


@dataclass(slots=True)
class _SubnetReader:
    """Reads a subnet device by device."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects lines that make no sense."""
    subnet: SubnetText = field(default_factory=SubnetText)
    """What has been read."""
    current: str = ""
    """The id of the device whose ports are read; "" for none."""
    attributes: dict[str, TextValue] = field(default_factory=dict)
    """By name, the attributes of the next device."""

    def device(self, match: re.Match[str], line: int) -> None:
        """Begin a device."""
        kind, ports, self.current, name = match.groups()
        if self.current in self.subnet.devices:
            self.differences.add(self.file, line, f"{self.current} again", "one device of that id")
        if kind == "Ca" and ports != "1":
            self.differences.add(self.file, line, f"host {name} with {ports} ports", "1")
        self.subnet.devices[self.current] = Device(name, int(ports), line)
        self._compare_attributes(kind, line)
        self.attributes = {}

    def cable(self, match: re.Match[str], text: str, line: int) -> None:
        """Enter the cable at a port of the current device."""
        port = int(match[1])
        near = DevicePort(self.current, port)
        if near in self.subnet.cables:
            self.differences.add(self.file, line, f"port {port} again", "one cable a port")
        if not self.current or not 0 < port <= self.subnet.devices[self.current].ports:
            stated = f"port {port} of {self.current}"
            self.differences.add(self.file, line, stated, "a port that it has")
        far = DevicePort(match[3], int(match[4]))
        self.subnet.cables[near] = CableEnd(far, line)
        port_guid, is_host = match[2], self.current.startswith("H")
        if bool(port_guid) != is_host:
            self.differences.add_unread(self.file, line, text)
        if port_guid:
            self.subnet.hosts[int(port_guid, 16)] = self.current

    def end_device(self, line: int) -> None:
        """End the current device, at an empty line."""
        self.current = ""
        if self.attributes:
            expected = "the device of the attributes above it"
            self.differences.add(self.file, line, "an empty line", expected)

    def _compare_attributes(self, kind: str, line: int) -> None:
        """Compare the attributes of the current device, its GUIDs and no vendor, with its id."""
        digits = self.current.partition("-")[2]
        expected = {"vendid": "0x0", "devid": "0x0", "sysimgguid": f"0x{digits}"}
        if kind == "Switch":
            expected["switchguid"] = f"0x{digits}({digits.lstrip('0')})"
        else:
            expected["caguid"] = f"0x{digits}"
        for name in expected.keys() | self.attributes.keys():
            value = self.attributes.get(name, TextValue("nothing", line))
            if value.text != expected.get(name):
                stated = f"{name}={value.text}"
                self.differences.add(self.file, value.line, stated, expected.get(name, "none such"))


@dataclass(frozen=True, slots=True, eq=False)
class TableText:
    """The forwarding table of a switch, as a file has it."""

    switch: int
    """The node GUID of the switch."""
    line: int
    """The first line of its block."""
    lid: NDArray[np.int64]
    """int64[n], the LIDs."""
    guid: NDArray[np.uint64]
    """uint64[n], the port GUID of each LID."""
    port: NDArray[np.int64]
    """int64[n], the egress port of each LID."""


def read_tables(file: Path, differences: DifferenceList) -> Iterator[TableText]:
    """The forwarding tables of all switches.

    A table that is like the one before but for its ports, as tables of a whole fabric are, is read
    as an array.
    """
    data = file.read_bytes()
    heads = list(HEAD.finditer(data))
    # Each table ends where the next one begins, the last one with the file. Without a table there
    # is no end.
    ends = [*(head.start() for head in heads[1:]), len(data)][: len(heads)]
    for number, text in enumerate(data[: heads[0].start() if heads else None].split(b"\n"), 1):
        if text and not text.startswith(b"#"):
            differences.add_unread(file, number, text.decode(errors="replace"))
    pattern: NDArray[np.uint8] | None = None
    lid, guid = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    line = data.count(b"\n", 0, heads[0].start()) + 1 if heads else 1
    for head, end in zip(heads, ends, strict=True):
        body = data[head.end() : end]
        rows = _byte_rows(body)
        if rows is None or pattern is None or not _differ_in_ports_only(rows, pattern):
            entries = list(_entries(file, body, line, differences))
            lid = np.array([entry.lid for entry in entries], np.int64)
            guid = np.array([entry.guid for entry in entries], np.uint64)
            port = np.array([entry.port for entry in entries], np.int64)
            pattern = rows if rows is not None and len(rows) == len(entries) else None
        else:
            port = (rows[:, PORT_DIGITS].astype(np.int64) - ord("0")) @ np.array([100, 10, 1])
        yield TableText(int(head[1], 16), line, lid, guid, port)
        line += 1 + body.count(b"\n")


def _byte_rows(body: bytes) -> NDArray[np.uint8] | None:
    """The lines of a table, uint8[n, ROW_WIDTH]; None if their lengths do not fit."""
    rows = np.frombuffer(body, np.uint8)
    return None if len(rows) % ROW_WIDTH else rows.reshape(-1, ROW_WIDTH)


def _differ_in_ports_only(rows: NDArray[np.uint8], pattern: NDArray[np.uint8]) -> bool:
    """Whether lines are those of another table, with other ports of three digits."""
    if rows.shape != pattern.shape:
        return False
    digits = rows[:, PORT_DIGITS]
    differs = rows != pattern
    differs[:, PORT_DIGITS] = (digits < ord("0")) | (digits > ord("9"))
    return not differs.any()


class TableEntry(NamedTuple):
    """A line of a table."""

    lid: int
    """The LID."""
    guid: int
    """The port GUID of the LID."""
    port: int
    """The egress port."""


def _entries(
    file: Path, body: bytes, line: int, differences: DifferenceList
) -> Iterator[TableEntry]:
    """The entries of a table, and differences for lines that are none.

    Args:
        file: the file, for messages.
        body: the lines of the table below its head.
        line: the number of the line of the head.
        differences: gets the lines that cannot be read.
    """
    lids: set[int] = set()
    for number, text in enumerate(exact_lines(body.decode(errors="replace")), line + 1):
        entry = ENTRY.fullmatch(text)
        if entry is None:
            differences.add_unread(file, number, text)
            continue
        lid = int(entry[1], 16)
        if lid in lids or not 0 < lid < FIRST_MULTICAST:
            differences.add(file, number, text, "a unicast LID that no other line has")
        lids.add(lid)
        yield TableEntry(lid, int(entry[3], 16), int(entry[2]))


class PlugName(NamedTuple):
    """An end of a cable in a topology file."""

    system: str
    """The name of the system."""
    plug: str
    """The name of its plug, such as `P1`."""


@dataclass(frozen=True, slots=True)
class TopologyCable:
    """What a line of a topology file says of the cable at a plug."""

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
    """A topology file of ibdm."""

    cables: dict[PlugName, TopologyCable] = field(default_factory=dict)
    """The cables by the end under which they are listed."""
    mentions: list[SystemMention] = field(default_factory=list)
    """All mentions of systems."""


def read_topology(file: Path, differences: DifferenceList) -> TopologyText:
    """The cables and systems of a topology file of ibdm."""
    topology, current, systems = TopologyText(), "", set[str]()
    for line, text in _plain_lines(file, differences):
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
    for line, text in _plain_lines(file, differences):
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


def read_settings(file: Path, differences: DifferenceList, sign: str = " ") -> dict[str, TextValue]:
    """The settings of an opensm.conf by name; the last one of a name is used.

    Args:
        file: with a setting on each line.
        differences: gets names that occur twice.
        sign: between name and value.
    """
    settings: dict[str, TextValue] = {}
    for line, text in _plain_lines(file, differences):
        name, _, value = bare(text).partition(sign)
        if not name or name[0] == "#":
            continue
        if name in settings:
            differences.add(file, line, f"{name} again", "one value")
        settings[name] = TextValue(bare(value), line)
    return settings


@dataclass(frozen=True, slots=True)
class QosRule:
    """A rule of the QoS policy."""

    source: tuple[int, ...]
    """The port GUIDs that packets come from."""
    destination: tuple[int, ...]
    """The port GUIDs that packets are for."""
    level: int
    """The service level of these packets."""
    line: int
    """The line where the rule begins."""


@dataclass(frozen=True, slots=True)
class QosPolicy:
    """A QoS policy."""

    rules: list[QosRule]
    """The rules, in the order in which OpenSM tries them."""
    default: QosRule
    """The level DEFAULT as a rule without GUIDs: that of pairs that no rule fits."""


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """A part of a QoS policy: a port group, a level or a rule."""

    kind: str
    """The word that begins it."""
    line: int
    """The line where it begins."""
    values: dict[str, str]
    """Its values by key."""


@dataclass(slots=True)
class _PolicyActor:
    """Collects the parts of a QoS policy while its grammar is read."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects what is not as it should be."""
    parts: list[PolicyPart] = field(default_factory=list)
    """The parts that have been read."""

    def add_wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.add_wrong`."""
        self.differences.add(self.file, line, text, "a policy that OpenSM's parser takes")

    def add_unread(self, line: int, text: str) -> None:
        """See `GrammarActor.add_unread`."""
        self.differences.add_unread(self.file, line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> None:
        """See `GrammarActor.next_hop`: there are no routes."""

    def begin(self, statement: Statement) -> None:
        """Begin a part."""
        self.parts.append(PolicyPart(statement.text, statement.line, {}))

    def value(self, statement: Statement, key: str, text: str) -> None:
        """Enter a value that a part has once."""
        values = self.parts[-1].values
        if key in values:
            self.add_wrong(statement.line, f"{statement.text} again")
        values[key] = text

    def more(self, statement: Statement, key: str, text: str) -> None:  # noqa: ARG002
        """Enter a line of a value that may take several lines."""
        values = self.parts[-1].values
        values[key] = f"{values[key]}, {text}" if key in values else text


def read_policy(file: Path, differences: DifferenceList) -> QosPolicy:
    """The rules of a QoS policy, with the GUIDs of their port groups."""
    actor = _PolicyActor(file, differences)
    TextEngine(grammar("opensm", "qos-policy.conf"), actor).read(TextLines.read(file))
    groups: dict[str, tuple[int, ...]] = {}
    levels: dict[str, QosRule] = {}
    rules: list[QosRule] = []
    for part in actor.parts:
        name, level = part.values.get("name", ""), part.values.get("sl")
        if part.kind == "port-group" and name not in groups:
            groups[name] = _group_guids(part, file, differences)
        elif part.kind == "qos-level" and name not in levels and level in SERVICE_LEVELS:
            levels[name] = QosRule((), (), int(part.values["sl"]), part.line)
        elif part.kind == "qos-match-rule" and part.values.get("qos-level-name", "") in levels:
            source = groups.get(part.values.get("source", ""))
            destination = groups.get(part.values.get("destination", ""))
            if source is None or destination is None:
                differences.add(file, part.line, f"{part.values}", "port groups that are there")
                continue
            number = levels[part.values["qos-level-name"]].level
            rules.append(QosRule(source, destination, number, part.line))
        else:
            stated = f"{part.kind} {name}"
            differences.add(file, part.line, stated, "one of that name, and whole")
    return QosPolicy(rules, levels.get("DEFAULT", QosRule((), (), 0, 0)))


def _group_guids(part: PolicyPart, file: Path, differences: DifferenceList) -> tuple[int, ...]:
    """The port GUIDs of a port group."""
    texts = exact_words(part.values.get("port-guid", "").replace(",", " "))
    if malformed := [text for text in texts if not PORT_GUID.fullmatch(text)]:
        stated = f"port-guid: {malformed[0]}"
        differences.add(file, part.line, stated, "GUIDs such as 0x0250460000010003")
    return tuple(int(text, 16) for text in texts if text not in malformed)
