"""Reader of flows.txt and groups.txt, rows and groups as `ovs-ofctl -O OpenFlow13` takes them.

It reads the pipeline of `compilers/targets/openflow`: table 1 has routes, from a prefix to an
egress class, which is written into metadata; table 2 has a row of each class, and of each ingress
port that the class treats in another way; these lead to groups.

A fast-failover group uses the first bucket that is up. A select group shares by weight among the
buckets that are up. Open vSwitch sends no packet back to its ingress port unless the action is
`in_port` (OpenFlow Switch Specification 1.3.5, §5.6.1 and §4.5).
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
from compilers.readers.route_tables import Numbering

Entry = tuple[int, str]
"""The class to which a prefix is sent, and the prefix's family."""
Fact = tuple[str, tuple[str | int, ...]]
"""The kind and the value of a claim."""
CLASS, INGRESS, CAME_MARKED = 0xFFFF, 0x10000, 0x20000
"""Bits of metadata: the class, packets from hosts, and packets that a link brought marked."""
DIRECT = 0x4000
"""The bit of classes to neighbours, for which marked packets are not spread."""
SPREAD_PRIORITY = 3
"""The priority of rows that spread marked packets, above those of all classes."""
FROM_HOSTS = "from hosts"
"""In the place of a family: packets from hosts at a switch without hosts."""
ALL = (1 << 64) - 1
"""The mask of metadata that is matched as a whole."""
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
    """The rows and groups of a switch, a line each."""

    flows: Sequence[str]
    groups: Sequence[str]
    files: tuple[str, str]
    """The names of the files of rows and of groups."""

    @classmethod
    def read(cls, folder: Path) -> ProgramText:
        """Read the folder of a switch.

        Raises:
            OSError: a file is not there.
        """
        flows, groups = folder / "flows.txt", folder / "groups.txt"
        group_lines = exact_lines(read_exact(groups))
        return cls(exact_lines(read_exact(flows)), group_lines, (str(flows), str(groups)))


@dataclass(frozen=True, slots=True)
class PipelineParts:
    """The optional features of OpenFlow that a switch has, and on which its rows depend."""

    moves: bool = True
    """ARP and ND replies are made from the request by `move`; else they are constants."""
    masks: bool = True
    """A bit of metadata tells packets from hosts; else rows match the ports of hosts."""

    @property
    def form(self) -> str:
        """The word in the grammar for rows of such switches."""
        return "moves" if self.moves else "constants"

    @property
    def claimed(self) -> frozenset[str]:
        """The kinds of claims that the rows have to make in full."""
        kinds = claimed_by(self.form) | {"neighbour", "intermediate", "shared class"}
        return kinds if self.masks else (kinds - UNMASKED.keys()) | {*UNMASKED.values()}


UNMASKED = {"forwarded": "dispatched", "admitted": "admitted unmasked"}
"""By the kind of a claim, the kind that it is at a switch that matches no bits of metadata."""


WHOLE = PipelineParts()
"""The features of Open vSwitch."""


class ReadCarried(NamedTuple):
    """A row that routes packets to their intermediate."""

    mac: str
    """The address that names the intermediate."""
    egress: int
    port: int
    """The port that has to be up, or 0."""


class ReadPrefix(NamedTuple):
    """A row of a single table, from a prefix to a group."""

    family: str
    mac: str
    prefix: str
    in_port: int
    """0: any port."""
    group: int
    right: bool
    """Whether the priority is that of the prefix's length."""


class ReadRoute(NamedTuple):
    """A row of table 1, from a prefix to an egress class."""

    prefix: str
    entry: Entry
    masked: bool
    """Whether it keeps the other bits of metadata."""


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A row of table 2, from an egress class to a group, or to ports by a hash."""

    priority: int
    in_port: int
    """0: any port."""
    metadata: int
    mask: int
    group: int
    """0: packets go to one of `members`."""
    basis: str = ""
    """The basis of the hash that chooses a member."""
    members: tuple[int, ...] = ()


ReadRow = ReadRoute | ReadClass | ReadCarried | ReadPrefix | Fact


@dataclass(frozen=True, slots=True)
class BucketText:
    """A bucket in the words of groups.txt."""

    weight: int
    watch: tuple[str, int]
    """What it watches: `port` or `group`, and the number; ("", 0): nothing."""
    kind: str
    """What its action is: `output`, `group` or `in_port`."""
    to: int
    """The port or the group to which it sends."""
    mark: str = ""
    """The MAC address that it sets before, "": none."""


@dataclass(frozen=True, slots=True)
class OvsProgram:
    """The egress classes and groups of a switch."""

    rows: dict[int, dict[int, list[ReadClass]]] = field(default_factory=dict)
    """The rows of each class, by ingress port, 0: any."""
    groups: dict[int, tuple[str, tuple[BucketText, ...]]] = field(default_factory=dict)
    """The type and the buckets of each group."""
    matched: dict[str, set[int]] = field(default_factory=dict)
    """The ports whose packets have the bit `INGRESS`, by address family."""
    row_lines: dict[ReadClass, int] = field(default_factory=dict)
    group_lines: dict[int, int] = field(default_factory=dict)

    def row(self, entry: Entry, in_port: int) -> ReadClass | None:
        """The row that packets of a class from a port meet."""
        egress, family = entry
        metadata = egress
        if in_port in self.matched.get(family, ()):
            metadata |= INGRESS
        of_class = self.rows.get(egress, {})
        rows = [
            row
            for row in (*of_class.get(in_port, ()), *of_class.get(0, ()))
            if metadata & row.mask == row.metadata
        ]
        return max(rows, key=lambda row: row.priority, default=None)

    def row_chain(self, row: ReadClass, in_port: int) -> Chain:
        """What a row does with a packet from a port."""
        if not row.members:
            return self.chain(row.group, in_port)
        back = f"port {in_port}, where it came in"
        return (tuple((port if port != in_port else back, 1) for port in row.members),)

    def chain(self, number: int, in_port: int, depth: int = 0) -> Chain:
        """What a group does with a packet from a port."""
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
    def _port(bucket: BucketText, in_port: int) -> int | str:
        """The port of a bucket; words where no port of the tables does the same."""
        to = in_port if bucket.kind == "in_port" else bucket.to
        if bucket.kind == "group":
            return f"group {to}"
        if bucket.watch not in (("port", to), ("", 0)):
            return f"port {to} while {' '.join(map(str, bucket.watch))} is up"
        if (bucket.kind, to) == ("output", in_port):
            return f"port {to}, where it came in"
        return to + MARKED if bucket.mark else to

    def aware(self, number: int, depth: int = 0) -> set[int]:
        """The ports whose packets a group may treat in another way than those of other ports."""
        ports: set[int] = set()
        for bucket in self.groups.get(number, ("", ()))[1]:
            if bucket.kind == "group":
                ports |= self.aware(bucket.to, depth + 1) if depth < 2 else set()
            else:
                ports.add(bucket.to or bucket.watch[1])
        return ports


@dataclass(frozen=True, slots=True)
class FlowsText:
    """The rows of flows.txt, by what they are for."""

    file: str
    routes: list[tuple[int, ReadRoute]] = field(default_factory=list)
    carried: list[tuple[int, ReadCarried]] = field(default_factory=list)
    """Like `routes`: the line, and the row."""
    claims: list[Claim] = field(default_factory=list)
    wrong: list[tuple[str, int, str]] = field(default_factory=list)

    @classmethod
    def read(cls, text: ProgramText, parts: PipelineParts, program: OvsProgram) -> FlowsText:
        """Read the rows of a switch; those of classes are added to its program."""
        flows = cls(text.files[0])
        for line, statement in statements(text.flows):
            row = read_row(statement, parts.form)
            if isinstance(row, ReadCarried) and parts.masks:
                flows.carried.append((line, row))
            elif isinstance(row, ReadRoute) and row.masked == parts.masks:
                flows.routes.append((line, row))
            elif isinstance(row, ReadClass) and flows._add_class(row, line, parts, program):
                pass
            elif row and not isinstance(row, ReadRoute | ReadClass | ReadCarried | ReadPrefix):
                flows.claims.append(Claim(*row, flows.file, line))
            else:
                flows.wrong.append((flows.file, line, statement))
        return flows

    def _add_class(
        self, row: ReadClass, line: int, parts: PipelineParts, program: OvsProgram
    ) -> bool:
        """Add the row of a class to the program; False: it is a row of no single class."""
        if (row.mask != ALL) is not parts.masks:
            return False
        of_several_classes = row.mask & CLASS != CLASS
        marked = parts.masks and row.mask & CAME_MARKED
        if of_several_classes or marked or row.priority >= SPREAD_PRIORITY:
            return False
        program.row_lines[row] = line
        if row.members:
            value = str(row.metadata & CLASS), row.basis
            self.claims.append(Claim("shared class", value, self.file, line))
        of_class = program.rows.setdefault(row.metadata & CLASS, {})
        of_class.setdefault(row.in_port, []).append(row)
        return True


def read_ovs(text: ProgramText, parts: PipelineParts = WHOLE) -> EmittedSwitch:
    """The forwarding of a switch with several tables.

    Args:
        text: its rows and groups.
        parts: the features of OpenFlow that it has.

    Raises:
        ValueError: an address makes no sense.
    """
    files = text.files
    program, wrong = read_groups(text)
    flows = FlowsText.read(text, parts, program)
    claims, routes = flows.claims, flows.routes
    wrong += flows.wrong
    _marks(program, claims, routes, files, wrong)
    wrong += [
        (files[0], line, f"group {row.group}, which is not there: Open vSwitch takes no such row")
        for row, line in program.row_lines.items()
        if not row.members and row.group not in program.groups
    ]
    if flows.carried:
        ipv4_routes = ((row.prefix, row.entry[0]) for _, row in routes if row.entry[1] == "ip")
        claims += carried_claims(flows.carried, ipv4_routes, files[0])
    if parts.masks:
        for claim in claims:
            if claim.kind == "forwarded" and claim.value[2]:
                program.matched.setdefault(str(claim.value[0]), set()).add(int(claim.value[2]))
    else:
        claims = [_unmasked(claim) if claim.kind in UNMASKED else claim for claim in claims]
    entries: Numbering[Entry] = Numbering()
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
    """The claims of rows to intermediates, which name a class by the lowest of its networks.

    Args:
        rows: lines and rows.
        routes: prefixes of IPv4 and their classes.
        file: where the rows are.
    """
    lowest: dict[int, int] = {}
    for prefix, egress in routes:
        if not covering(prefix):
            continue  # no prefix: the check of the routes reports it
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
    """Claim the prefixes for which marked packets are not spread; unknown marks are wrong."""
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
    """The groups of a switch, and the lines that are no groups, or groups with a number again."""
    program = OvsProgram()
    wrong: list[tuple[str, int, str]] = []
    for line, statement in statements(text.groups):
        if (group := _group(statement)) and group[0] not in program.groups:
            number, kind, buckets = group
            program.groups[number] = kind, buckets
            program.group_lines[number] = line
        else:
            wrong.append((text.files[1], line, statement))
    return program, wrong


def _unmasked(claim: Claim) -> Claim:
    """A claim as it is without bits of metadata: `dispatched` has no port, unless it is wrong."""
    kind, value = UNMASKED[claim.kind], claim.value
    if kind == "dispatched" and not any(value[2:]):
        value = value[:2]
    return replace(claim, kind=kind, value=value)


def lookups(
    program: OvsProgram, rows: EmittedRows, entries: Sequence[Entry], files: tuple[str, str]
) -> tuple[Lookup, dict[Port, tuple[Lookup, ...]]]:
    """The table for packets from any port, and those for packets from ports that differ.

    Args:
        program: classes and groups.
        rows: the routes.
        entries: the class and the family to which each entry leads.
        files: of flows and of groups.
    """
    rows_to_group = Counter(row.group for row in program.row_lines)
    chains: list[Chain] = []
    places: list[tuple[str, int]] = []
    numbers: Numbering[tuple[ReadClass | None, int]] = Numbering()

    def chain_number(entry: Entry, in_port: int) -> int:
        """The number of the chain of an entry for packets from a port."""
        row = program.row(entry, in_port)
        number = numbers[row, in_port]
        if number < len(chains):
            return number
        if row is None:
            chains.append(())
            places.append((files[0], 0))
            return number
        # Where a difference is: in the group, unless other rows lead there, and are right.
        in_group = rows_to_group[row.group] == 1 and row.group in program.group_lines
        line = program.group_lines[row.group] if in_group else program.row_lines[row]
        chains.append(program.row_chain(row, in_port))
        places.append((files[1] if in_group else files[0], line))
        return number

    usual = np.array([chain_number(entry, 0) for entry in entries], np.int64)
    by_port: dict[int, NDArray[np.int64]] = {}
    for at, (egress, family) in enumerate(entries):
        ports = {*program.matched.get(family, ())}
        of_class = program.rows.get(egress, {})
        ports.update(of_class)
        for row in of_class.get(0, ()):
            # Rows for packets from hosts are met from matched ports, which are counted above.
            if not row.metadata & INGRESS:
                ports |= program.aware(row.group).union(row.members)
        for port in ports - {0}:
            if port not in by_port:
                by_port[port] = usual.copy()
            by_port[port][at] = chain_number((egress, family), port)
    by_ingress: dict[Port, tuple[Lookup, ...]] = {
        port: (Lookup(rows, chains, numbers, places),) for port, numbers in by_port.items()
    }
    return Lookup(rows, chains, usual, places), by_ingress


def statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(lines, 1):
        if (text := bare(line)) and text[0] != "#":
            yield number, text


@lru_cache
def _rules(form: str) -> tuple[tuple[str, re.Pattern[str], Verb], ...]:
    """The rules for rows of a form of pipeline: beginning, pattern, and meaning.

    Args:
        form: moves, constants or single.
    """
    rules = grammar("ovs", "flows.txt").rules
    return tuple((r.head, r.pattern, r.verbs[1]) for r in rules if form in r.verbs[0][1:])


def claimed_by(form: str) -> frozenset[str]:
    """The kinds of claims that rows of a form make."""
    return frozenset(words[1] for _, _, words in _rules(form) if words[0] == "claim")


@lru_cache(1 << 17)
def read_row(text: str, form: str) -> ReadRow | None:
    """A row of flows.txt; None: there is no such row. Switches share most of their rows."""
    for head, pattern, meaning in _rules(form) if not strange(text) else ():
        if text.startswith(head) and (match := pattern.fullmatch(text)):
            fields = {name: word for name, word in match.groupdict().items() if word is not None}
            try:
                return _row(meaning, fields)
            except ValueError:  # an address or a prefix that is none
                return None
    return None


def _row(meaning: Verb, fields: Mapping[str, str]) -> ReadRow | None:
    """The row by the meaning of its rule.

    Args:
        meaning: a verb of the grammar, with its arguments.
        fields: the fields of the row.
    """
    port, metadata = _number(fields.get("port")), _number(fields.get("metadata"))
    match meaning:
        case ["route"]:
            entry = metadata, fields["f"]
            return ReadRoute(f"{fields['a']}/{fields['length']}", entry, "mask" in fields)
        case ["class"]:
            members = fields["members"].split(",") if "members" in fields else []
            return ReadClass(
                priority=_number(fields["priority"]),
                in_port=port,
                metadata=metadata,
                mask=int(fields["mask"], 16) if "mask" in fields else ALL,
                group=_number(fields.get("group")),
                basis=fields.get("basis", ""),
                members=tuple(map(exact_number, members)),
            )
        case ["carried"]:
            return ReadCarried(fields["mac"], metadata, port)
        case ["prefix"]:
            length = _number(fields["length"])
            return ReadPrefix(
                family=fields["f"],
                mac=fields["mac"],
                prefix=f"{fields['a']}/{fields['length']}",
                in_port=port,
                group=_number(fields["group"]),
                right=_number(fields["priority"]) == 2 * length + (1 if port else 0),
            )
        case [_, kind, *names]:
            return kind, tuple(_value(name, fields.get(name, "")) for name in names)
    return None


def _value(name: str, text: str) -> str | int:
    """A part of a claim's value, by the name of its field; addresses in their canonical form."""
    if name == "port":
        return _number(text)
    if name == "src":
        return address_text(text) if text else ""
    return {"a": address_text, "own": address_text, "n": network_text}.get(name, str)(text)


def _number(text: str | None) -> int:
    """The number that a text is; 0 without a text."""
    return exact_number(text) if text else 0


@lru_cache(1 << 14)
def _group(text: str) -> tuple[int, str, tuple[BucketText, ...]] | None:
    """The number, the type and the buckets of a group; None: it is no such line."""
    match = GROUP.fullmatch(text)
    if not match or strange(text):
        return None
    number, kind, rest = match.groups()
    buckets = [_bucket(part, kind) for part in rest.split(",bucket=")[1:]]
    if None in buckets:
        return None
    return exact_number(number), kind, tuple(bucket for bucket in buckets if bucket)


def _bucket(text: str, kind: str) -> BucketText | None:
    """A bucket of a group of some type; None: it is no bucket of such a group.

    Only buckets of select groups have weights, and all but those of indirect groups watch a port.
    """
    match = BUCKET.fullmatch(text)
    if not match:
        return None
    weight, watch, watched, mark, action, number, in_port = match.groups()
    if (kind == "select") != (weight is not None) or _number(weight) > LARGEST_WEIGHT:
        return None
    if (kind != "indirect") != (watch is not None):
        return None
    return BucketText(
        weight=_number(weight or "1"),
        watch=(watch or "", _number(watched)),
        kind=action or in_port,
        to=_number(number),
        mark=mark or "",
    )


def _unused(
    program: OvsProgram, files: tuple[str, str], masks: bool
) -> Iterator[tuple[str, int, str]]:
    """Groups to which nothing leads, and second rows of one match and priority.

    Two things are right without a use. A class may have rows and no route, as classes to switches
    without hosts have. Without masks, a switch without hosts has groups for packets from hosts, and
    no rows that lead there.
    """
    seen = set()
    for row, line in program.row_lines.items():
        match = row.priority, row.in_port, row.metadata, row.mask
        if match in seen:
            yield files[0], line, "a second row of one match"
        seen.add(match)
    used = {row.group for row in program.row_lines}
    used |= {b.to for _, buckets in program.groups.values() for b in buckets if b.kind == "group"}
    for number, line in program.group_lines.items():
        if number not in used and masks:
            yield files[1], line, f"group {number}"
