"""Reader of flows.txt and groups.txt, rows and groups as `ovs-ofctl -O OpenFlow13` takes them.

The check of emitted files calls `read_ovs` for target ovs and for the messages of the controller,
and gets an `EmittedSwitch`. The rows are those of the pipeline in `compilers/targets/openflow`.
Table 1 has routes, from a prefix to an egress class, which is written into metadata. Table 2 has a
row for each class, and a row for each ingress port whose packets the class treats in another way.
These rows lead to groups.

Words of `EmittedSwitch`: an *entry* is what routes lead to, a class and an address family. Its
*chain* is the sequence of port sets that the switch tries. `anywhere` has the chains for packets
from any port that no row or group names, and `by_ingress` those for packets from each other port.
A *claim* is a fact besides forwarding that a row states.

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
    Chain,
    Claim,
    EmittedRows,
    EmittedSwitch,
    LineText,
    Lookup,
    Port,
    PortSet,
    address_text,
    covering,
    marked,
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
"""Bits of metadata: the class, packets from hosts, and packets that a link brought with a mark."""
DIRECT = 0x4000
"""The bit of classes to neighbours, for which marked packets are not spread."""
SPREAD_PRIORITY = 3
"""The priority of rows that spread marked packets, above those of all classes."""
FROM_HOSTS = "from hosts"
"""In the place of a family: packets from hosts at a switch without hosts."""
ALL = (1 << 64) - 1
"""The mask of metadata that is matched as a whole."""
LARGEST_WEIGHT = (1 << 16) - 1
"""The largest weight of a bucket, which has 16 bits."""
MOST_DEPTH = 2
"""How many groups may lead to each other, the first one not counted."""
NUMBER = "(0|[1-9][0-9]*)"
"""A decimal number without leading zeros, as a group of a regular expression."""
GROUP = re.compile(
    rf"group_id={NUMBER},type=(indirect|select|fast_failover|ff)((?:,bucket=[^=].*)?)"
)
"""A line of groups.txt, such as `group_id=7,type=indirect,bucket=actions=output:3`."""
BUCKET = re.compile(
    rf"(?:weight:{NUMBER},)?(?:watch_(port|group):{NUMBER},)?actions="
    r"(?:set_field:((?:[0-9a-f]{2}:){5}[0-9a-f]{2})->eth_dst,)?"
    rf"(?:(output|group):{NUMBER}|(in_port))"
)
"""A bucket behind `bucket=`, such as `weight:2,watch_port:3,actions=output:3`."""


class ProgramFiles(NamedTuple):
    """The names of the files of a switch."""

    flows: str
    """The file of rows."""
    groups: str
    """The file of groups."""


@dataclass(frozen=True, slots=True)
class ProgramText:
    """The rows and groups of a switch, a line each."""

    flows: Sequence[str]
    """The lines of rows."""
    groups: Sequence[str]
    """The lines of groups."""
    files: ProgramFiles
    """The names of the files."""

    @classmethod
    def read(cls, folder: Path) -> ProgramText:
        """Read the folder of a switch.

        Raises:
            OSError: a file is not there.
        """
        flows, groups = folder / "flows.txt", folder / "groups.txt"
        group_lines = exact_lines(read_exact(groups))
        files = ProgramFiles(str(flows), str(groups))
        return cls(exact_lines(read_exact(flows)), group_lines, files)


@dataclass(frozen=True, slots=True)
class OptionalFeatures:
    """The optional features of OpenFlow that a switch has, and on which its rows depend."""

    moves_fields: bool = True
    """Whether ARP and ND replies are made from the request by `move`; else they are constants."""
    matches_masked_metadata: bool = True
    """Whether rows match single bits of metadata, one of which marks packets from hosts; else rows
    match the ports of hosts."""

    @property
    def form(self) -> str:
        """The word in the grammar for rows of such switches.

        The third word, `single`, is for switches with a single table (`single_table_reader`).
        """
        return "moves" if self.moves_fields else "constants"

    @property
    def claimed_kinds(self) -> frozenset[str]:
        """The kinds of claims that the rows have to make in full."""
        kinds = claim_kinds_of(self.form) | {"neighbour", "intermediate", "shared class"}
        if self.matches_masked_metadata:
            return kinds
        return (kinds - UNMASKED.keys()) | {*UNMASKED.values()}


UNMASKED = {"forwarded": "dispatched", "admitted": "admitted unmasked"}
"""By the kind of a claim, the kind that it is at a switch that matches no bits of metadata."""


OF_OPEN_VSWITCH = OptionalFeatures()
"""The features of Open vSwitch."""


class ReadIntermediateRow(NamedTuple):
    """A row that routes packets to their intermediate."""

    mac: str
    """The address that names the intermediate."""
    egress: int
    """The egress class to the intermediate."""
    port: int
    """The port that has to be up; 0: none has to."""


class ReadPrefix(NamedTuple):
    """A row of a single table, from a prefix to a group; only `single_table_reader` reads such."""

    family: str
    """The address family, `ip` or `ipv6`."""
    mac: str
    """The Ethernet address that packets have to have."""
    prefix: str
    """The prefix, as the row writes it."""
    in_port: int
    """The ingress port; 0: any."""
    group: int
    """The group to which packets go."""
    has_priority_of_length: bool
    """Whether the priority is that of the prefix's length."""


class ReadRoute(NamedTuple):
    """A row of table 1, from a prefix to an egress class."""

    prefix: str
    """The prefix, as the row writes it."""
    entry: Entry
    """The egress class and the address family."""
    masked: bool
    """Whether it keeps the other bits of metadata."""


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A row of table 2, from an egress class to a group, or to ports by a hash."""

    priority: int
    """The priority of the row."""
    in_port: int
    """The ingress port; 0: any."""
    metadata: int
    """The metadata that packets have to have in the bits of `mask`."""
    mask: int
    """The bits of metadata that are matched."""
    group: int
    """The group to which packets go; 0: they go to one of `members`."""
    basis: str = ""
    """The basis of the hash that chooses a member."""
    members: tuple[int, ...] = ()
    """The ports of which the hash chooses one."""


ReadRow = ReadRoute | ReadClass | ReadIntermediateRow | ReadPrefix | Fact
"""A row of flows.txt, by its purpose; a `Fact` is a row that states a claim."""


@dataclass(frozen=True, slots=True)
class BucketText:
    """A bucket in the words of groups.txt."""

    weight: int
    """The weight in a select group."""
    watch: tuple[str, int]
    """The watched element: `port` or `group`, and its number; ("", 0): none."""
    kind: str
    """The kind of its action: `output`, `group` or `in_port`."""
    target: int
    """The number of the port or the group to which it sends."""
    mark: str = ""
    """The MAC address that it sets before; "": none."""


class GroupText(NamedTuple):
    """A group in the words of groups.txt."""

    number: int
    """The number of the group."""
    kind: str
    """The type: `indirect`, `select`, `fast_failover` or `ff`."""
    buckets: tuple[BucketText, ...]
    """Its buckets, in order."""


@dataclass(frozen=True, slots=True)
class OvsProgram:
    """The egress classes and groups of a switch."""

    rows: dict[int, dict[int, list[ReadClass]]] = field(default_factory=dict)
    """The rows of classes, by class and by ingress port (0: any)."""
    groups: dict[int, GroupText] = field(default_factory=dict)
    """The groups, by number."""
    ports_of_hosts: dict[str, set[int]] = field(default_factory=dict)
    """The ports whose packets have the bit `INGRESS`, by address family."""
    row_lines: dict[ReadClass, int] = field(default_factory=dict)
    """The line of each row in flows.txt."""
    group_lines: dict[int, int] = field(default_factory=dict)
    """The line of each group in groups.txt, by number."""

    def row(self, entry: Entry, in_port: int) -> ReadClass | None:
        """The row that packets of a class from a port meet."""
        egress, family = entry
        metadata = egress
        if in_port in self.ports_of_hosts.get(family, ()):
            metadata |= INGRESS
        rows_of_class = self.rows.get(egress, {})
        rows = [
            row
            for row in (*rows_of_class.get(in_port, ()), *rows_of_class.get(0, ()))
            if metadata & row.mask == row.metadata
        ]
        return max(rows, key=lambda row: row.priority, default=None)

    def row_chain(self, row: ReadClass, in_port: int) -> Chain:
        """The chain of ports by which a row forwards a packet from a port."""
        if not row.members:
            return self.chain(row.group, in_port)
        ingress = f"port {in_port}, where it came in"
        return (tuple((port if port != in_port else ingress, 1) for port in row.members),)

    def chain(self, number: int, in_port: int, depth: int = 0) -> Chain:
        """The chain of ports by which a group forwards a packet from a port.

        Args:
            number: the number of the group.
            in_port: the ingress port; 0: any that no bucket names.
            depth: how many groups have led to this one.
        """
        group = self.groups.get(number, GroupText(number, "indirect", ()))
        if group.kind == "select":
            return (tuple((self._port(b, in_port), b.weight) for b in group.buckets),)
        chain: list[PortSet] = []
        for bucket in group.buckets:
            if bucket.kind == "group":
                is_watched = bucket.watch == ("group", bucket.target) and not bucket.mark
                if is_watched and depth < MOST_DEPTH:
                    chain += self.chain(bucket.target, in_port, depth + 1)
                else:
                    chain.append((("a group that is not watched", 1),))
            elif bucket.kind == "output" and bucket.target == in_port:
                chain.append(())  # Open vSwitch drops a packet that would go back by `output`
            else:
                chain.append(((self._port(bucket, in_port), 1),))
        return tuple(chain)

    @staticmethod
    def _port(bucket: BucketText, in_port: int) -> int | str:
        """The port of a bucket; words where no port of the tables does the same."""
        target = in_port if bucket.kind == "in_port" else bucket.target
        if bucket.kind == "group":
            return f"group {target}"
        if bucket.watch not in (("port", target), ("", 0)):
            return f"port {target} while {' '.join(map(str, bucket.watch))} is up"
        if (bucket.kind, target) == ("output", in_port):
            return f"port {target}, where it came in"
        return marked(target) if bucket.mark else target

    def special_ports(self, number: int, depth: int = 0) -> set[int]:
        """The ports whose packets a group may treat in another way than those of other ports.

        Args:
            number: the number of the group.
            depth: how many groups have led to this one.
        """
        ports: set[int] = set()
        group = self.groups.get(number)
        for bucket in group.buckets if group else ():
            if bucket.kind != "group":
                _, watched_port = bucket.watch
                ports.add(bucket.target or watched_port)
            elif depth < MOST_DEPTH:
                ports |= self.special_ports(bucket.target, depth + 1)
        return ports


@dataclass(frozen=True, slots=True)
class FlowsText:
    """The rows of flows.txt by their purpose; those of classes are in the `OvsProgram`."""

    file: str
    """The name of the file."""
    routes: list[tuple[int, ReadRoute]] = field(default_factory=list)
    """The rows of routes, each with its line."""
    to_intermediates: list[tuple[int, ReadIntermediateRow]] = field(default_factory=list)
    """The rows to intermediates, each with its line."""
    claims: list[Claim] = field(default_factory=list)
    """The facts that other rows state."""
    wrong: list[LineText] = field(default_factory=list)
    """The rows that no rule reads, or that are wrong."""

    @classmethod
    def read(cls, text: ProgramText, features: OptionalFeatures, program: OvsProgram) -> FlowsText:
        """Read the rows of a switch; those of classes are added to its program."""
        flows = cls(text.files.flows)
        for line, statement in statements(text.flows):
            row = read_row(statement, features.form)
            if row is None or not flows._add(row, line, features, program):
                flows.wrong.append((flows.file, line, statement))
        return flows

    def _add(
        self, row: ReadRow, line: int, features: OptionalFeatures, program: OvsProgram
    ) -> bool:
        """Add a row; False: it is not a row of switches with these features."""
        match row:
            case ReadClass():
                return self._add_class(row, line, features, program)
            case ReadRoute():
                if row.masked != features.matches_masked_metadata:
                    return False
                self.routes.append((line, row))
            case ReadIntermediateRow():
                if not features.matches_masked_metadata:
                    return False
                self.to_intermediates.append((line, row))
            case ReadPrefix():
                return False
            case kind, value:
                self.claims.append(Claim(kind, value, self.file, line))
        return True

    def _add_class(
        self, row: ReadClass, line: int, features: OptionalFeatures, program: OvsProgram
    ) -> bool:
        """Add the row of a class to the program; False: it is a row of no single class."""
        if (row.mask != ALL) is not features.matches_masked_metadata:
            return False
        is_of_several_classes = row.mask & CLASS != CLASS
        is_for_marked = features.matches_masked_metadata and row.mask & CAME_MARKED
        if is_of_several_classes or is_for_marked or row.priority >= SPREAD_PRIORITY:
            return False
        program.row_lines[row] = line
        if row.members:
            value = str(row.metadata & CLASS), row.basis
            self.claims.append(Claim("shared class", value, self.file, line))
        rows_of_class = program.rows.setdefault(row.metadata & CLASS, {})
        rows_of_class.setdefault(row.in_port, []).append(row)
        return True


def read_ovs(text: ProgramText, features: OptionalFeatures = OF_OPEN_VSWITCH) -> EmittedSwitch:
    """The forwarding of a switch with several tables.

    Args:
        text: its rows and groups.
        features: the features of OpenFlow that it has.

    Raises:
        ValueError: an address makes no sense.
    """
    files = text.files
    program, wrong = read_groups(text)
    flows = FlowsText.read(text, features, program)
    claims = list(_claims(flows))
    wrong += [*flows.wrong, *_wrong_marks(program, claims, files), *_wrong_groups(program, files)]
    if features.matches_masked_metadata:
        _note_ports_of_hosts(program, claims)
    else:
        claims = [_unmasked(claim) if claim.kind in UNMASKED else claim for claim in claims]
    entries: Numbering[Entry] = Numbering()
    rows = EmittedRows(
        files.flows,
        [row.prefix for _, row in flows.routes],
        entries.of([row.entry for _, row in flows.routes]),
        np.array([line for line, _ in flows.routes], np.int64),
    )
    # Both dicts: by the number of a class in the build, its entry; for packets in general, and for
    # packets from hosts at a switch that has none.
    numbered = {egress & ~DIRECT: entries[egress, "ip"] for egress in sorted(program.rows)}
    entering = None
    if features.matches_masked_metadata and not program.ports_of_hosts:
        # The switch has no hosts, but rows for packets from hosts. No packet comes in by port 0, so
        # it stands for the ports of hosts, of the entries with FROM_HOSTS only. (In a row, 0 means
        # any ingress port.)
        program.ports_of_hosts[FROM_HOSTS] = {0}
        entering = {
            egress & ~DIRECT: entries[egress, FROM_HOSTS] for egress in sorted(program.rows)
        }
    table, by_ingress = lookups(program, rows, list(entries), files)
    return EmittedSwitch(
        (table,),
        by_ingress,
        features.claimed_kinds,
        claims,
        wrong=wrong,
        unused=list(_unused(program, files, features.matches_masked_metadata)),
        numbered=numbered,
        entering=entering,
    )


def _claims(flows: FlowsText) -> Iterator[Claim]:
    """Yield all facts that the rows of a switch state.

    If a row takes marked packets, routes to neighbours claim the prefixes for which these are not
    spread.
    """
    yield from flows.claims
    if any(claim.kind == "marked" for claim in flows.claims):
        for line, row in flows.routes:
            if row.entry[0] & DIRECT:
                yield Claim("neighbour", (prefix_text(row.prefix),), flows.file, line)
    if flows.to_intermediates:
        ipv4_routes = (
            (row.prefix, row.entry[0]) for _, row in flows.routes if row.entry[1] == "ip"
        )
        yield from _intermediate_claims(flows.to_intermediates, ipv4_routes, flows.file)


def _note_ports_of_hosts(program: OvsProgram, claims: Iterable[Claim]) -> None:
    """Note the ports whose packets get the bit `INGRESS`, by the rows that claim it."""
    for claim in claims:
        if claim.kind == "forwarded":
            family, _, port, *_ = claim.value
            if port:
                program.ports_of_hosts.setdefault(str(family), set()).add(int(port))


def _intermediate_claims(
    rows: Iterable[tuple[int, ReadIntermediateRow]], routes: Iterable[tuple[str, int]], file: str
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


def _wrong_marks(
    program: OvsProgram, claims: Iterable[Claim], files: ProgramFiles
) -> Iterator[LineText]:
    """Yield the groups that mark packets by an address that no row takes."""
    marks = {str(claim.value[1]) for claim in claims if claim.kind == "marked"}
    for group in program.groups.values():
        if unknown := {bucket.mark for bucket in group.buckets} - marks - {""}:
            text = f"group {group.number} marks packets by {min(unknown)}, which no row takes"
            yield files.groups, program.group_lines[group.number], text


def _wrong_groups(program: OvsProgram, files: ProgramFiles) -> Iterator[LineText]:
    """Yield the rows of classes that lead to a group which does not exist."""
    for row, line in program.row_lines.items():
        if not row.members and row.group not in program.groups:
            text = f"group {row.group}, which is not there: Open vSwitch takes no such row"
            yield files.flows, line, text


def read_groups(text: ProgramText) -> tuple[OvsProgram, list[LineText]]:
    """The groups of a switch, and the lines that are no groups or repeat a group's number."""
    program = OvsProgram()
    wrong: list[LineText] = []
    for line, statement in statements(text.groups):
        group = _group(statement)
        if group and group.number not in program.groups:
            program.groups[group.number] = group
            program.group_lines[group.number] = line
        else:
            wrong.append((text.files.groups, line, statement))
    return program, wrong


def _unmasked(claim: Claim) -> Claim:
    """A claim as it is without bits of metadata: `dispatched` has no port, unless it is wrong."""
    kind, value = UNMASKED[claim.kind], claim.value
    if kind == "dispatched" and not any(value[2:]):
        value = value[:2]
    return replace(claim, kind=kind, value=value)


def lookups(
    program: OvsProgram, rows: EmittedRows, entries: Sequence[Entry], files: ProgramFiles
) -> tuple[Lookup, dict[Port, tuple[Lookup, ...]]]:
    """The table for packets from any port, and the tables for packets from ports that differ.

    Args:
        program: the classes and groups.
        rows: the routes.
        entries: the class and the family to which each entry leads.
        files: the files of rows and of groups.
    """
    chains = _Chains(program, files)
    for_any_port = np.array([chains.number(entry, 0) for entry in entries], np.int64)
    by_port: dict[int, NDArray[np.int64]] = {}
    for index, entry in enumerate(entries):
        for port in _ports_that_differ(program, entry):
            if port not in by_port:
                by_port[port] = for_any_port.copy()
            by_port[port][index] = chains.number(entry, port)
    by_ingress: dict[Port, tuple[Lookup, ...]] = {
        port: (Lookup(rows, chains.chains, numbers, chains.places),)
        for port, numbers in by_port.items()
    }
    return Lookup(rows, chains.chains, for_any_port, chains.places), by_ingress


def _ports_that_differ(program: OvsProgram, entry: Entry) -> set[int]:
    """The ports whose packets an entry may treat in another way than those of other ports."""
    egress, family = entry
    rows_by_port = program.rows.get(egress, {})
    ports = {*program.ports_of_hosts.get(family, ()), *rows_by_port}
    for row in rows_by_port.get(0, ()):
        # Rows for packets from hosts are met from ports of hosts, which are counted above.
        if not row.metadata & INGRESS:
            ports |= program.special_ports(row.group).union(row.members)
    return ports - {0}


class _Chains:
    """The chains of a switch, numbered, each with the place that states it."""

    def __init__(self, program: OvsProgram, files: ProgramFiles) -> None:
        self.program, self.files = program, files
        self.chains: list[Chain] = []
        """The chains, by number."""
        self.places: list[tuple[str, int]] = []
        """The file and the line that state each chain."""
        self._numbers: Numbering[tuple[ReadClass | None, int]] = Numbering()
        """The number of the chain of a row for packets from a port."""
        self._rows_to_group = Counter(row.group for row in program.row_lines)
        """How many rows lead to each group."""

    def number(self, entry: Entry, in_port: int) -> int:
        """The number of the chain of an entry for packets from a port; 0: any port."""
        row = self.program.row(entry, in_port)
        number = self._numbers[row, in_port]
        if number == len(self.chains):
            self.chains.append(self.program.row_chain(row, in_port) if row else ())
            self.places.append(self._place(row))
        return number

    def _place(self, row: ReadClass | None) -> tuple[str, int]:
        """Where a difference of a row is: in its group, unless other rows lead there, too."""
        if row is None:
            return self.files.flows, 0
        group_lines = self.program.group_lines
        if self._rows_to_group[row.group] == 1 and row.group in group_lines:
            return self.files.groups, group_lines[row.group]
        return self.files.flows, self.program.row_lines[row]


def statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(lines, 1):
        if (text := bare(line)) and text[0] != "#":
            yield number, text


@lru_cache
def _rules(form: str) -> tuple[tuple[str, re.Pattern[str], Verb], ...]:
    """The rules for rows of a form of pipeline: beginning, pattern, and meaning.

    Args:
        form: `moves` or `constants` (`OptionalFeatures`), or `single`, of `single_table_reader`.
    """
    rules = grammar("ovs", "flows.txt").rules
    # The first verb of a rule names the forms of pipelines that have such rows.
    return tuple(
        (rule.head, rule.pattern, rule.verbs[1]) for rule in rules if form in rule.verbs[0][1:]
    )


def claim_kinds_of(form: str) -> frozenset[str]:
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
            return ReadIntermediateRow(fields["mac"], metadata, port)
        case ["prefix"]:
            priority = 2 * _number(fields["length"]) + (1 if port else 0)
            return ReadPrefix(
                family=fields["f"],
                mac=fields["mac"],
                prefix=f"{fields['a']}/{fields['length']}",
                in_port=port,
                group=_number(fields["group"]),
                has_priority_of_length=_number(fields["priority"]) == priority,
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
def _group(text: str) -> GroupText | None:
    """The group in a line of groups.txt; None: the line is no group."""
    match = GROUP.fullmatch(text)
    if not match or strange(text):
        return None
    number, kind, bucket_texts = match.groups()
    buckets = [_bucket(part, kind) for part in bucket_texts.split(",bucket=")[1:]]
    if None in buckets:
        return None
    return GroupText(exact_number(number), kind, tuple(bucket for bucket in buckets if bucket))


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
        target=_number(number),
        mark=mark or "",
    )


def _unused(program: OvsProgram, files: ProgramFiles, masks: bool) -> Iterator[LineText]:
    """Yield groups to which nothing leads, and second rows of one match and priority.

    Two things are right without a use. A class may have rows and no route, as classes to switches
    without hosts have. Without masks, a switch without hosts has groups for packets from hosts, and
    no rows that lead there.

    Args:
        program: the classes and groups.
        files: the files of rows and of groups.
        masks: of `OptionalFeatures`.
    """
    matches = set()
    for row, line in program.row_lines.items():
        match = row.priority, row.in_port, row.metadata, row.mask
        if match in matches:
            yield files.flows, line, "a second row of one match"
        matches.add(match)
    used = {row.group for row in program.row_lines}
    for group in program.groups.values():
        used |= {bucket.target for bucket in group.buckets if bucket.kind == "group"}
    for number, line in program.group_lines.items():
        if number not in used and masks:
            yield files.groups, line, f"group {number}"
