"""Readers of what OpenSM gets: the subnet in ibsim's words, the tables, settings and QoS policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_lines, exact_words, read_exact, strange
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.text_lines import TextLines

N = "0|[1-9][0-9]{0,9}"
CABLE = re.compile(rf'\[({N})\](?:\(([0-9a-f]{{1,16}})\))?[ \t]+"([SH]-[0-9a-f]{{16}})"\[({N})\]')
DEVICE = re.compile(rf'(Ca|Switch)[ \t]+({N})[ \t]+"([SH]-[0-9a-f]{{16}})"[ \t]+# "(.*)"')
PORT_GUID = re.compile(r"0x[0-9a-f]{16}")
ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|caguid|switchguid)=(\S+)")
HEAD = re.compile(rb"^Unicast lids guid 0x([0-9a-f]{16})\n", re.MULTILINE)
ENTRY = re.compile(r"0x([0-9a-f]{4}) ([0-9]{3}) portguid 0x([0-9a-f]{16})")
WIDTH, PORT = 39, slice(7, 10)
"""Of a line of a table, and where the port is in it."""
FIRST_MULTICAST = 0xC000


@dataclass(slots=True)
class SubnetText:
    """A subnet as `ibnetdiscover` prints it."""

    names: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The name and the line of every device, by its id."""
    ports: dict[str, int] = field(default_factory=dict)
    """How many ports a device has, by its id."""
    cables: dict[tuple[str, int], tuple[str, int, int]] = field(default_factory=dict)
    """The id and the port at the other end, and the line, by id and port."""
    guids: dict[int, str] = field(default_factory=dict)
    """The id of a host, by its port GUID."""


def _told(file: Path, differences: DifferenceList) -> Iterator[tuple[int, str]]:
    """The lines of a file but for strange ones, which are differences unless they are comments."""
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if not strange(text):
            yield line, text
        elif text[0] != "#":
            differences.unread(file, line, text)


def read_subnet(file: Path, differences: DifferenceList) -> SubnetText:
    """The devices and cables of a file for ibsim; lines that make no sense go to `differences`.

    Attributes of a device are above it, its ports below, and an empty line ends it (ibsim,
    README, "Net file format"; with one before its ports ibsim 0.12 does not start).
    """
    subnet, here = SubnetText(), ""
    above: dict[str, tuple[str, int]] = {}
    for line, text in _told(file, differences):
        if device := DEVICE.fullmatch(text):
            kind, ports, here, name = device.groups()
            if here in subnet.names:
                differences.add(file, line, f"{here} again", "one device of that id")
            if kind == "Ca" and ports != "1":
                differences.add(file, line, f"host {name} with {ports} ports", "1")
            subnet.names[here], subnet.ports[here] = (name, line), int(ports)
            _attributes(file, line, (kind, here[2:]), above, differences)
            above = {}
        elif cable := CABLE.match(text):
            end = here, int(cable[1])
            if end in subnet.cables:
                differences.add(file, line, f"port {cable[1]} again", "one cable a port")
            if not here or not 0 < int(cable[1]) <= subnet.ports[here]:
                differences.add(file, line, f"port {cable[1]} of {here}", "a port that it has")
            subnet.cables[end] = cable[3], int(cable[4]), line
            if bool(cable[2]) != (here[:1] == "H"):
                differences.unread(file, line, text)
            if cable[2]:
                subnet.guids[int(cable[2], 16)] = here
        elif (said := ATTRIBUTE.fullmatch(text)) and said[1] not in above:
            above[said[1]] = said[2], line
        elif not text:
            here = ""
            if above:
                differences.add(
                    file, line, "an empty line", "the device of the attributes above it"
                )
        elif text[0] != "#":
            differences.unread(file, line, text)
    for name, (value, line) in above.items():
        differences.add(file, line, f"{name}={value}", "a device below it")
    return subnet


def _attributes(
    file: Path,
    line: int,
    device: tuple[str, str],
    above: dict[str, tuple[str, int]],
    differences: DifferenceList,
) -> None:
    """Compare the attributes of a device, which are its GUIDs and no vendor, with its id."""
    kind, digits = device
    guid_name = "switchguid" if kind == "Switch" else "caguid"
    short = f"({digits.lstrip('0')})" if kind == "Switch" else ""
    wanted = {"vendid": "0x0", "devid": "0x0", "sysimgguid": f"0x{digits}"}
    wanted[guid_name] = f"0x{digits}{short}"
    for name in wanted.keys() | above.keys():
        value, at = above.get(name, ("nothing", line))
        if value != wanted.get(name):
            differences.add(file, at, f"{name}={value}", wanted.get(name, "none such"))


@dataclass(frozen=True, slots=True, eq=False)
class TableText:
    """The forwarding table of a switch, as text has it."""

    switch: int
    """The vertex of the switch."""
    line: int
    """The first line of its block."""
    lid: NDArray[np.int64]
    """int64[n], the LIDs."""
    guid: NDArray[np.uint64]
    """uint64[n], the port GUID of each LID."""
    port: NDArray[np.int64]
    """int64[n], the egress port of each LID."""


def read_tables(file: Path, differences: DifferenceList) -> Iterator[TableText]:
    """The forwarding tables of every switch; lines that make no sense go to `differences`.

    Tables that are alike but for their ports, as those of a whole fabric are, are read at once.
    """
    data = file.read_bytes()
    heads = list(HEAD.finditer(data))
    ends = [*(head.start() for head in heads[1:]), len(data)][: len(heads)]
    for number, text in enumerate(data[: heads[0].start() if heads else None].split(b"\n"), 1):
        if text and not text.startswith(b"#"):
            differences.unread(file, number, text.decode(errors="replace"))
    alike: NDArray[np.uint8] | None = None
    lid, guid = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    line = data.count(b"\n", 0, heads[0].start()) + 1 if heads else 1
    for head, end in zip(heads, ends, strict=True):
        body = data[head.end() : end]
        rows = _rows(body)
        if rows is None or alike is None or not _same(rows, alike):
            entries = list(_entries(file, body, line, differences))
            lid, port = (np.array([entry[i] for entry in entries], np.int64) for i in (0, 2))
            guid = np.array([entry[1] for entry in entries], np.uint64)
            alike = rows if rows is not None and len(rows) == len(entries) else None
        else:
            port = (rows[:, PORT].astype(np.int64) - ord("0")) @ np.array([100, 10, 1])
        yield TableText(int(head[1], 16), line, lid, guid, port)
        line += 1 + body.count(b"\n")


def _rows(body: bytes) -> NDArray[np.uint8] | None:
    """uint8[n, WIDTH], the lines; None where they are of different lengths."""
    rows = np.frombuffer(body, np.uint8)
    return None if len(rows) % WIDTH else rows.reshape(-1, WIDTH)


def _same(rows: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    if rows.shape != other.shape:
        return False
    digits = rows[:, PORT]
    apart = rows != other
    apart[:, PORT] = (digits < ord("0")) | (digits > ord("9"))
    return not apart.any()


def _entries(
    file: Path, body: bytes, line: int, differences: DifferenceList
) -> Iterator[tuple[int, int, int]]:
    """LID, GUID and port of each line."""
    lids: set[int] = set()
    for number, text in enumerate(exact_lines(body.decode(errors="replace")), line + 1):
        entry = ENTRY.fullmatch(text)
        if entry is None:
            differences.unread(file, number, text)
            continue
        lid = int(entry[1], 16)
        if lid in lids or not 0 < lid < FIRST_MULTICAST:
            differences.add(file, number, text, "a unicast LID that no other line has")
        lids.add(lid)
        yield lid, int(entry[3], 16), int(entry[2])


def read_topology(
    file: Path, differences: DifferenceList
) -> tuple[dict[tuple[str, str], tuple[str, str, int]], list[tuple[str, str, int]]]:
    """A topology file of ibdm.

    Returns:
        The name and the port at the other end and the line, by name and port; and every mention of
        a name, with its system and the line.
    """
    cables: dict[tuple[str, str], tuple[str, str, int]] = {}
    mentions: list[tuple[str, str, int]] = []
    here, seen = "", set[str]()
    for line, text in _told(file, differences):
        words = exact_words(text)
        if len(words) == 2 and text[0] not in " #":
            here = words[1]
            if here in seen:
                differences.add(file, line, f"{text} again", "one system of that name")
            seen.add(here)
            mentions.append((here, words[0], line))
        elif len(words) == 5 and words[1] == "->" and here:
            if (here, words[0]) in cables:
                differences.add(file, line, f"port {words[0]} again", "one cable a port")
            cables[here, words[0]] = words[3], words[4], line
            mentions.append((words[3], words[2], line))
        elif words and text[0] != "#":
            differences.unread(file, line, text)
    return cables, mentions


def read_definition(file: Path, differences: DifferenceList) -> tuple[str, dict[str, str]]:
    """The only node of an IBNL file, `SW 36` or `CA 1`, and the plug of each of its ports."""
    node, plugs, top = "", dict[str, str](), False
    for line, text in _told(file, differences):
        words = exact_words(text)
        if words == ["TOPSYSTEM", file.stem] and not top:
            top = True
        elif words[:1] == ["NODE"] and words[3:] == [file.stem, "U1"] and top and not node:
            node = " ".join(words[1:3])
        elif len(words) == 3 and words[1] == "->" and node and words[0] not in plugs:
            plugs[words[0]] = words[2]
        elif words:
            differences.unread(file, line, text)
    return node, plugs


def read_settings(
    file: Path, differences: DifferenceList, sign: str = " "
) -> dict[str, tuple[str, int]]:
    """The settings of an opensm.conf, with their lines; the last of a name is used.

    Args:
        file: of a setting a line.
        differences: what is there twice goes there.
        sign: between name and value.
    """
    settings: dict[str, tuple[str, int]] = {}
    for line, text in _told(file, differences):
        name, _, value = bare(text).partition(sign)
        if not name or name[0] == "#":
            continue
        if name in settings:
            differences.add(file, line, f"{name} again", "one value")
        settings[name] = bare(value), line
    return settings


SERVICE_LEVELS = {str(level) for level in range(16)}


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


@dataclass(slots=True)
class _PolicyActor:
    """Reads the parts of a QoS policy."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects what is not as it should be."""
    parts: list[tuple[str, int, dict[str, str]]] = field(default_factory=list)
    """The kind of each part, the line where it begins, and its values by key."""

    def wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.wrong`."""
        self.differences.add(self.file, line, text, "a policy that OpenSM's parser takes")

    def unknown(self, line: int, text: str) -> None:
        """See `GrammarActor.unknown`."""
        self.differences.unread(self.file, line, text)

    def next_hop(self, place: Place, kind: str, *words: str) -> None:
        """See `GrammarActor.next_hop`: there are no routes."""

    def begin(self, place: Place) -> None:
        """A part."""
        self.parts.append((place.text, place.line, {}))

    def value(self, place: Place, key: str, text: str) -> None:
        """A value that a part has once."""
        if key in self.parts[-1][2]:
            self.wrong(place.line, f"{place.text} again")
        self.parts[-1][2][key] = text

    def more(self, place: Place, key: str, text: str) -> None:  # noqa: ARG002
        """A value that may take several lines."""
        facts = self.parts[-1][2]
        facts[key] = f"{facts[key]}, {text}" if key in facts else text


def read_policy(file: Path, differences: DifferenceList) -> tuple[list[QosRule], QosRule]:
    """The rules of a QoS policy, in the order in which OpenSM tries them.

    The second result is the level DEFAULT as a rule without GUIDs: that of pairs that no rule fits.
    """
    actor = _PolicyActor(file, differences)
    TextEngine(grammar("opensm", "qos-policy.conf"), actor).read(TextLines.read(file))
    groups: dict[str, tuple[int, ...]] = {}
    levels: dict[str, tuple[int, int]] = {}
    rules: list[QosRule] = []
    for kind, line, facts in actor.parts:
        name = facts.get("name", "")
        if kind == "port-group" and name not in groups:
            guids = exact_words(facts.get("port-guid", "").replace(",", " "))
            if odd := [guid for guid in guids if not PORT_GUID.fullmatch(guid)]:
                differences.add(
                    file, line, f"port-guid: {odd[0]}", "GUIDs such as 0x0250460000010003"
                )
            groups[name] = tuple(int(guid, 16) for guid in guids if guid not in odd)
        elif kind == "qos-level" and name not in levels and facts.get("sl") in SERVICE_LEVELS:
            levels[name] = int(facts["sl"]), line
        elif kind == "qos-match-rule" and facts.get("qos-level-name", "") in levels:
            ends = groups.get(facts.get("source", "")), groups.get(facts.get("destination", ""))
            if ends[0] is None or ends[1] is None:
                differences.add(file, line, f"{facts}", "port groups that are there")
                continue
            rules.append(QosRule(ends[0], ends[1], levels[facts["qos-level-name"]][0], line))
        else:
            differences.add(file, line, f"{kind} {name}", "one of that name, and whole")
    return rules, QosRule((), (), *levels.get("DEFAULT", (0, 0)))
