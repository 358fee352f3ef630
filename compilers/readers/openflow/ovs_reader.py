"""Reader of rows and groups as `ovs-ofctl -O OpenFlow13` takes them: flows.txt and groups.txt.

Open vSwitch never sends a packet back to where it came in unless the output says `in_port`. A
fast-failover group takes the first bucket that is up, and a select group shares by weight among
those that are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    MARKED,
    Chain,
    Claim,
    EmittedRows,
    EmittedSwitch,
    Lookup,
    Port,
    Stage,
    address_text,
    covering,
    network_text,
    prefix_text,
)
from compilers.readers.exact_text import bare, exact_lines, exact_number, read_exact, strange
from compilers.readers.grammar.rules import Verb, grammar
from compilers.readers.route_tables import Numbers

Entry = tuple[int, str]
"""The class to which a prefix is sent, and the prefix's family."""
Fact = tuple[str, tuple[str | int, ...]]
"""The kind and the value of a claim."""
CLASS, INGRESS, CAME_MARKED = 0xFFFF, 0x10000, 0x20000
"""Bits of metadata: the class, what tells packets from hosts, and those that came marked."""
DIRECT = 0x4000
"""Where packets are marked: the bit of classes to a neighbour, to which they are not spread."""
SPREAD_PRIORITY = 3
"""Of the rows that spread marked packets: above all classes."""
FROM_HOSTS = "from hosts"
"""In the place of the family: packets from hosts, at a switch that has none."""
ALL = (1 << 64) - 1
"""The mask of metadata that is matched whole."""
LARGEST_WEIGHT = (1 << 16) - 1
NUMBER = "(0|[1-9][0-9]*)"
GROUP = re.compile(
    rf"group_id={NUMBER},type=(indirect|select|fast_failover|ff)((?:,bucket=[^=].*)?)"
)
BUCKET = re.compile(
    rf"(?:weight:{NUMBER},)?(?:watch_(port|group):{NUMBER},)?actions="
    r"(?:set_field:((?:[0-9a-f]{2}:){5}[0-9a-f]{2})->eth_dst,)?"
    rf"(?:(output|group):{NUMBER}|(in_port))"
)


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The rows and groups of a switch as ovs-ofctl writes them, and the names of their files."""

    flows: Sequence[str]
    groups: Sequence[str]
    files: tuple[str, str]
    """Of the rows, and of the groups."""

    @classmethod
    def read(cls, folder: Path) -> ProgramText:
        """What is in the folder of a switch.

        Raises:
            OSError: a file is not there.
        """
        flows, groups = folder / "flows.txt", folder / "groups.txt"
        group_lines = exact_lines(read_exact(groups))
        return cls(exact_lines(read_exact(flows)), group_lines, (str(flows), str(groups)))


@dataclass(frozen=True, slots=True)
class PipelineParts:
    """The parts of OpenFlow on which the rows of a switch depend.

    moves: ARP and ND are answered by moves, not in constants. masks: metadata tells packets from
    hosts, and not their port.
    """

    moves: bool = True
    masks: bool = True

    @property
    def form(self) -> str:
        """The word of the grammar for such switches."""
        return "moves" if self.moves else "constants"

    @property
    def claimed(self) -> frozenset[str]:
        """The kinds of claims that are made in full."""
        kinds = claimed_by(self.form) | {"neighbour", "intermediate", "shared class"}
        return kinds if self.masks else kinds - {"forwarded"} | {"dispatched"}


WHOLE = PipelineParts()
"""Those of Open vSwitch."""


class ReadCarried(NamedTuple):
    """A row by an intermediate: its address, the class, the port that has to be up or 0."""

    mac: str
    egress: int
    port: int


class ReadPrefix(NamedTuple):
    """A row of the only table; in_port 0: any. right: whether its priority follows its length."""

    family: str
    mac: str
    prefix: str
    in_port: int
    group: int
    right: bool


class ReadRoute(NamedTuple):
    """A row of table 1 that sends a prefix to a class; masked: it keeps other bits of metadata."""

    prefix: str
    entry: Entry
    masked: bool


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A row of table 2; in_port 0: any; group 0: over the members, by a hash of this basis."""

    priority: int
    in_port: int
    metadata: int
    mask: int
    group: int
    basis: str = ""
    members: tuple[int, ...] = ()


ReadRow = ReadRoute | ReadClass | ReadCarried | ReadPrefix | Fact


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: its weight, the port or group that it watches, where it sends; 0 is IN_PORT.

    mark: the MAC address that it sets before, "": none.
    """

    weight: int
    watch: tuple[str, int]
    kind: str
    to: int
    mark: str = ""


@dataclass(frozen=True, slots=True)
class OvsProgram:
    """Classes and groups of a switch with their lines, and what tells packets from hosts.

    rows: those of each class, by the port where packets come in, 0: any. matched: the ports whose
    packets are distinguished from others, by family.
    """

    rows: dict[int, dict[int, list[ReadClass]]] = field(default_factory=dict)
    groups: dict[int, tuple[str, tuple[Bucket, ...]]] = field(default_factory=dict)
    matched: dict[str, set[int]] = field(default_factory=dict)
    row_lines: dict[ReadClass, int] = field(default_factory=dict)
    group_lines: dict[int, int] = field(default_factory=dict)

    def row(self, entry: Entry, in_port: int) -> ReadClass | None:
        """The row that a packet of a class meets."""
        egress, family = entry
        metadata = egress | INGRESS * (in_port in self.matched.get(family, ()))
        of_class = self.rows.get(egress, {})
        rows = [
            row
            for row in (*of_class.get(in_port, ()), *of_class.get(0, ()))
            if metadata & row.mask == row.metadata
        ]
        return max(rows, key=lambda row: row.priority, default=None)

    def led(self, row: ReadClass, in_port: int) -> Chain:
        """What a row does with a packet."""
        if not row.members:
            return self.chain(row.group, in_port)
        back = f"port {in_port}, where it came in"
        return (tuple((port if port != in_port else back, 1) for port in row.members),)

    def chain(self, number: int, in_port: int, depth: int = 0) -> Chain:
        """What a group does with a packet."""
        kind, buckets = self.groups.get(number, ("indirect", ()))
        if kind == "select":
            return (tuple((self._port(b, in_port), b.weight) for b in buckets),)
        stages: list[Stage] = []
        for bucket in buckets:
            if bucket.kind == "group":
                watched = bucket.watch == ("group", bucket.to) and depth < 2
                inner = self.chain(bucket.to, in_port, depth + 1)
                watched = watched and not bucket.mark
                stages += inner if watched else ((("a group that is not watched", 1),),)
            elif bucket.kind == "output" and bucket.to == in_port:
                stages.append(())
            else:
                stages.append(((self._port(bucket, in_port), 1),))
        return tuple(stages)

    @staticmethod
    def _port(bucket: Bucket, in_port: int) -> int | str:
        to = in_port if bucket.kind == "in_port" else bucket.to
        if bucket.kind == "group":
            return f"group {to}"
        if bucket.watch not in (("port", to), ("", 0)):
            return f"port {to} while {' '.join(map(str, bucket.watch))} is up"
        if (bucket.kind, to) == ("output", in_port):
            return f"port {to}, where it came in"
        return to + MARKED if bucket.mark else to

    def aware(self, number: int, depth: int = 0) -> set[int]:
        """The ports whose packets a group may treat otherwise than those of other ports."""
        found: set[int] = set()
        for bucket in self.groups.get(number, ("", ()))[1]:
            if bucket.kind == "group":
                found |= self.aware(bucket.to, depth + 1) if depth < 2 else set()
            else:
                found.add(bucket.to or bucket.watch[1])
        return found


def read_ovs(text: ProgramText, parts: PipelineParts = WHOLE) -> EmittedSwitch:
    """The program of a switch of several tables.

    Args:
        text: of the switch.
        parts: of OpenFlow that it has.

    Raises:
        ValueError: an address makes no sense.
    """
    files = text.files
    program, wrong = read_groups(text)
    claims = list[Claim]()
    entries: Numbers[Entry] = Numbers()
    routes: list[tuple[int, ReadRoute]] = []
    carried: list[tuple[int, ReadCarried]] = []
    for line, said in statements(text.flows):
        row = read_row(said, parts.form)
        if isinstance(row, ReadCarried) and parts.masks:
            carried.append((line, row))
        elif isinstance(row, ReadRoute) and row.masked == parts.masks:
            routes.append((line, row))
        elif isinstance(row, ReadClass) and (row.mask != ALL) == parts.masks:
            several = row.mask & CLASS != CLASS
            marked = parts.masks and row.mask & CAME_MARKED
            if several or marked or row.priority >= SPREAD_PRIORITY:
                wrong.append((files[0], line, said))
                continue
            program.row_lines[row] = line
            if row.members:
                value = str(row.metadata & CLASS), row.basis
                claims.append(Claim("shared class", value, files[0], line))
            of_class = program.rows.setdefault(row.metadata & CLASS, {})
            of_class.setdefault(row.in_port, []).append(row)
        elif row and not isinstance(row, ReadRoute | ReadClass | ReadCarried | ReadPrefix):
            claims.append(Claim(*row, files[0], line))
        else:
            wrong.append((files[0], line, said))
    _marks(program, claims, routes, files, wrong)
    wrong += [
        (files[0], line, f"group {row.group}, which is not there: Open vSwitch takes no such row")
        for row, line in program.row_lines.items()
        if not row.members and row.group not in program.groups
    ]
    if carried:
        known = ((row.prefix, row.entry[0]) for _, row in routes if row.entry[1] == "ip")
        claims += carried_claims(carried, known, files[0])
    if parts.masks:
        for claim in claims:
            if claim.kind == "forwarded" and claim.value[2]:
                program.matched.setdefault(str(claim.value[0]), set()).add(int(claim.value[2]))
    else:
        claims = [_dispatched(claim) if claim.kind == "forwarded" else claim for claim in claims]
    rows = EmittedRows(
        files[0],
        [row.prefix for _, row in routes],
        entries.of([row.entry for _, row in routes]),
        np.array([line for line, _ in routes], np.int64),
    )
    numbered = {egress & ~DIRECT: entries[egress, "ip"] for egress in sorted(program.rows)}
    entering = None
    if parts.masks and not program.matched:
        program.matched[FROM_HOSTS] = {0}
        entering = {e & ~DIRECT: entries[e, FROM_HOSTS] for e in sorted(program.rows)}
    table, by_ingress = lookups(program, rows, list(entries), files)
    return EmittedSwitch(
        (table,),
        by_ingress,
        parts.claimed,
        claims,
        wrong=wrong,
        unused=list(_unused(program, files, parts.masks)),
        numbered=numbered,
        entering=entering,
    )


def carried_claims(
    rows: Iterable[tuple[int, ReadCarried]], routes: Iterable[tuple[str, int]], file: str
) -> Iterator[Claim]:
    """The rows by an intermediate as claims, which tell a class by the lowest of its networks.

    Args:
        rows: with their lines.
        routes: prefixes of IPv4, and their classes.
        file: of the rows.
    """
    lowest: dict[int, int] = {}
    for prefix, egress in routes:
        if not covering(prefix):
            continue  # it is no prefix, and a difference as such
        first = int(IPv4Network(prefix).network_address)
        lowest[egress] = min(first, lowest.get(egress, first))
    for line, row in rows:
        network = str(IPv4Address(lowest[row.egress])) if row.egress in lowest else "no route"
        yield Claim("intermediate", (row.mac, network, row.port), file, line)


def _marks(
    program: OvsProgram,
    claims: list[Claim],
    routes: Sequence[tuple[int, ReadRoute]],
    files: tuple[str, str],
    wrong: list[tuple[str, int, str]],
) -> None:
    """Add the prefixes that marked packets are not spread to, and buckets with other marks."""
    marks = {str(claim.value[1]) for claim in claims if claim.kind == "marked"}
    if marks:
        claims += [
            Claim("neighbour", (prefix_text(row.prefix),), files[0], line)
            for line, row in routes
            if row.entry[0] & DIRECT
        ]
    for number, (_, buckets) in program.groups.items():
        if unknown := {bucket.mark for bucket in buckets} - marks - {""}:
            text = f"group {number} marks packets by {min(unknown)}, which no row takes"
            wrong.append((files[1], program.group_lines[number], text))


def read_groups(text: ProgramText) -> tuple[OvsProgram, list[tuple[str, int, str]]]:
    """The groups of a switch, and the lines that are none."""
    program = OvsProgram()
    wrong: list[tuple[str, int, str]] = []
    for line, said in statements(text.groups):
        if (group := _group(said)) and group[0] not in program.groups:
            program.groups[group[0]] = group[1:]
            program.group_lines[group[0]] = line
        else:
            wrong.append((text.files[1], line, said))
    return program, wrong


def _dispatched(claim: Claim) -> Claim:
    """A row for packets of all ports; one for those of a host's port has no place there."""
    family, mac, port = claim.value
    value = (family, mac, port) if port else (family, mac)
    return replace(claim, kind="dispatched", value=value)


def lookups(
    program: OvsProgram, rows: EmittedRows, entries: Sequence[Entry], files: tuple[str, str]
) -> tuple[Lookup, dict[Port, tuple[Lookup, ...]]]:
    """What packets from any port meet, and what those from ports that are matched do.

    Args:
        program: classes and groups.
        rows: the routes.
        entries: the class and the family to which their entries lead.
        files: of flows and of groups.
    """
    led = Counter(row.group for row in program.row_lines)
    chains: list[Chain] = []
    places: list[tuple[str, int]] = []
    known: Numbers[tuple[ReadClass | None, int]] = Numbers()

    def behaviour(entry: Entry, in_port: int) -> int:
        row = program.row(entry, in_port)
        number = known[row, in_port]
        if number < len(chains):
            return number
        if row is None:
            chains.append(())
            places.append((files[0], 0))
            return number
        # A group to which another row leads, too, is hardly what is wrong.
        own = led[row.group] == 1 and row.group in program.group_lines
        line = program.group_lines[row.group] if own else program.row_lines[row]
        chains.append(program.led(row, in_port))
        places.append((files[own], line))
        return number

    usual = np.array([behaviour(entry, 0) for entry in entries], np.int64)
    by_port: dict[int, NDArray[np.int64]] = {}
    for at, (egress, family) in enumerate(entries):
        ports = {*program.matched.get(family, ())}
        of_class = program.rows.get(egress, {})
        ports.update(of_class)
        for row in of_class.get(0, ()):
            # Those of packets from hosts are met by packets of ports that are matched.
            aware = program.aware(row.group).union(row.members)
            ports |= set() if row.metadata & INGRESS else aware
        for port in ports - {0}:
            if port not in by_port:
                by_port[port] = usual.copy()
            by_port[port][at] = behaviour((egress, family), port)
    by_ingress: dict[Port, tuple[Lookup, ...]] = {
        port: (Lookup(rows, chains, numbers, places),) for port, numbers in by_port.items()
    }
    return Lookup(rows, chains, usual, places), by_ingress


def statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    for number, line in enumerate(lines, 1):
        if (text := bare(line)) and text[0] != "#":
            yield number, text


@lru_cache
def _rules(form: str) -> tuple[tuple[str, re.Pattern[str], Verb], ...]:
    """How rows of a form of pipeline (moves, constants or single) begin, are, and what they say."""
    rules = grammar("ovs", "flows.txt").rules
    return tuple((r.head, r.pattern, r.verbs[1]) for r in rules if form in r.verbs[0][1:])


def claimed_by(form: str) -> frozenset[str]:
    """The kinds of claims that rows of a form make."""
    return frozenset(words[1] for _, _, words in _rules(form) if words[0] == "claim")


@lru_cache(1 << 17)
def read_row(text: str, form: str) -> ReadRow | None:
    """What a row of flows.txt says; switches share most of their rows, so most are known."""
    for head, pattern, does in _rules(form) if not strange(text) else ():
        if text.startswith(head) and (found := pattern.fullmatch(text)):
            said = {name: word for name, word in found.groupdict().items() if word is not None}
            try:
                return _said(does, said)
            except ValueError:  # an address or a prefix that is none
                return None
    return None


def _said(does: Verb, said: Mapping[str, str]) -> ReadRow | None:
    """What a rule with these fields says."""
    port, metadata = _number(said.get("port")), _number(said.get("metadata"))
    match does:
        case ["route"]:
            entry = metadata, said["f"]
            return ReadRoute(f"{said['a']}/{said['length']}", entry, "mask" in said)
        case ["class"]:
            bits = int(said["mask"], 16) if "mask" in said else ALL
            ports = (
                tuple(map(exact_number, said["members"].split(","))) if "members" in said else ()
            )
            ingress, group = (_number(said["priority"]), port), _number(said.get("group"))
            return ReadClass(*ingress, metadata, bits, group, said.get("basis", ""), ports)
        case ["carried"]:
            return ReadCarried(said["mac"], metadata, port)
        case ["prefix"]:
            right = _number(said["priority"]) == 2 * _number(said["length"]) + bool(port)
            prefix = f"{said['a']}/{said['length']}"
            return ReadPrefix(said["f"], said["mac"], prefix, port, _number(said["group"]), right)
        case [_, kind, *names]:
            return kind, tuple(_value(name, said.get(name, "")) for name in names)
    return None


def _value(name: str, text: str) -> str | int:
    if name == "port":
        return _number(text)
    return {"a": address_text, "own": address_text, "n": network_text}.get(name, str)(text)


def _number(text: str | None) -> int:
    """A number; 0 where it is not said."""
    return exact_number(text) if text else 0


@lru_cache(1 << 14)
def _group(text: str) -> tuple[int, str, tuple[Bucket, ...]] | None:
    found = GROUP.fullmatch(text)
    if not found or strange(text):
        return None
    number, kind, rest = found.groups()
    buckets = [BUCKET.fullmatch(part) for part in rest.split(",bucket=")[1:]]
    made = []
    for bucket in buckets:
        if not bucket:
            return None
        weight, watch, watched, mark, to, where, back = bucket.groups()
        if (kind == "select") != (weight is not None) or _number(weight) > LARGEST_WEIGHT:
            return None
        if (kind != "indirect") != (watch is not None):
            return None
        watches = watch or "", _number(watched)
        made.append(Bucket(_number(weight or "1"), watches, to or back, _number(where), mark or ""))
    return exact_number(number), kind, tuple(made)


def _unused(
    program: OvsProgram, files: tuple[str, str], masks: bool
) -> Iterator[tuple[str, int, str]]:
    """Groups that nothing leads to, and rows of one match and priority.

    Without masks a switch without hosts has no rows that lead to groups for packets from hosts. A
    class may have rows without a route that leads to it, as those of ports to switches without
    hosts: they do nothing.
    """
    seen = set()
    for row, line in program.row_lines.items():
        match = row.priority, row.in_port, row.metadata, row.mask
        if match in seen:
            yield files[0], line, "a second row of one match"
        seen.add(match)
    led = {row.group for row in program.row_lines}
    led |= {b.to for _, buckets in program.groups.values() for b in buckets if b.kind == "group"}
    for number, line in program.group_lines.items():
        if number not in led and masks:
            yield files[1], line, f"group {number}"
