"""Reader of flows.txt and groups.txt, rows and groups as `ovs-ofctl -O OpenFlow13` takes them.

The check of emitted files calls `read_ovs` for target ovs and for the messages of the controller,
and gets an `EmittedSwitch`. The rows are those of the pipeline in `compilers/targets/openflow`.
Table 1 has routes, from a prefix to an egress class, which is written into metadata. Table 2 has a
row for each class, and a row for each ingress port whose packets the class treats in another way.
These rows lead to groups:

    table=1,priority=29,…,ip,ip_dst=10.0.0.8/29,actions=write_metadata:3/0xffff,goto_table:2
    table=2,priority=1,…,metadata=3/0xffff,actions=group:4

An *entry* is what routes lead to, a class and an address family: here `(3, "ip")`. Its *chain* is
the sequence of port sets that the switch tries. If group 4 outputs to port 1, and to port 2 while
port 1 is down, the chain is port 1, then port 2. There are the chains of each port that a row or
group names (`EmittedSwitch.by_ingress`), and the chains of all other ports (`anywhere`).

A *claim* is a fact besides forwarding that a row states, a kind and a value. `expected_claims`
lists the kinds with their values. Two rows of table 0 for the host 10.0.0.2 at port 4:

    table=0,priority=3,…,ip,in_port=4,eth_dst=02:50:46:00:00:01,ip_src=10.0.0.2,actions=dec_ttl,…
    table=0,priority=2,…,in_port=4,actions=drop

The first claims `admitted`, with the values `ip`, 02:50:46:00:00:01, 4 and 10.0.0.2: from this port
and address, packets to the gateway's MAC address are routed. The second claims `guarded`, 4: all
else that comes in at this port is dropped. A row that routes packets from any port, or marks those
of a host by a bit of metadata, claims `forwarded`. On a switch that cannot match single bits of
metadata, `forwarded` becomes `dispatched`, without a port, and `admitted` becomes `admitted
unmasked` (`UNMASKED`).

`program_text` parses single lines, and `ovs_program` says how groups forward packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network

import numpy as np

from compilers.readers.emitted_forwarding import (
    Claim,
    EmittedRows,
    EmittedSwitch,
    LineText,
    covering,
    prefix_text,
)
from compilers.readers.openflow.ovs_program import (
    CAME_MARKED,
    CLASS,
    OvsProgram,
    lookups,
    read_groups,
)
from compilers.readers.openflow.program_text import (
    ALL,
    Entry,
    ProgramFiles,
    ProgramText,
    ReadClass,
    ReadIntermediateRow,
    ReadPrefix,
    ReadRoute,
    ReadRow,
    claim_kinds_of,
    parse_row,
    statements,
)
from compilers.readers.route_tables import Numbering

DIRECT = 0x4000
"""The bit of classes to neighbours, for which marked packets are not spread."""
SPREAD_PRIORITY = 3
"""The priority of rows that spread marked packets, above those of all classes."""
FROM_HOSTS = "from hosts"
"""In the place of an address family: packets from hosts at a switch without hosts."""
NO_PORT = 0
"""In the place of a host port: no packet comes in there."""


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
        """The word in the grammar for rows of such switches; see also SINGLE_TABLE."""
        return "moves" if self.moves_fields else "constants"

    @property
    def claimed_kinds(self) -> frozenset[str]:
        """The kinds of claims that the rows have to make in full."""
        kinds = claim_kinds_of(self.form) | {"neighbour", "intermediate", "shared class"}
        if self.matches_masked_metadata:
            return kinds
        return (kinds - UNMASKED.keys()) | {*UNMASKED.values()}


UNMASKED = {"forwarded": "dispatched", "admitted": "admitted unmasked"}
"""By the kind of a claim, its kind at a switch that cannot match single bits of metadata."""


OF_OPEN_VSWITCH = OptionalFeatures()
"""The features of Open vSwitch."""


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
            row = parse_row(statement, features.form)
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
                if row.is_masked != features.matches_masked_metadata:
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
        rows_of_class = program.class_rows.setdefault(row.metadata & CLASS, {})
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
    classes = sorted(program.class_rows)
    class_entries = {egress & ~DIRECT: entries[egress, "ip"] for egress in classes}
    host_class_entries = None
    if features.matches_masked_metadata and not program.ports_of_hosts:
        # The switch has no hosts, but rows for packets from hosts. They are compared by entries of
        # their own, as if NO_PORT were the port of a host.
        program.ports_of_hosts[FROM_HOSTS] = {NO_PORT}
        host_class_entries = {egress & ~DIRECT: entries[egress, FROM_HOSTS] for egress in classes}
    table, by_ingress = lookups(program, rows, list(entries), files)
    return EmittedSwitch(
        anywhere=(table,),
        by_ingress=by_ingress,
        claimed_kinds=features.claimed_kinds,
        claims=claims,
        wrong=wrong,
        unused=list(_unused(program, files, features)),
        class_entries=class_entries,
        host_class_entries=host_class_entries,
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
    """Note the ports whose packets get the bit INGRESS, by the rows that claim it."""
    for claim in claims:
        if claim.kind == "forwarded":
            family, _gateway_mac, port, _source_address = claim.value
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
        if unknown := {bucket.marking_mac for bucket in group.buckets} - marks - {""}:
            text = f"group {group.number} marks packets by {min(unknown)}, which no row takes"
            yield files.groups, program.group_lines[group.number], text


def _wrong_groups(program: OvsProgram, files: ProgramFiles) -> Iterator[LineText]:
    """Yield the rows of classes that lead to a group which does not exist."""
    for row, line in program.row_lines.items():
        if not row.members and row.group not in program.groups:
            text = f"group {row.group}, which is not there: Open vSwitch takes no such row"
            yield files.flows, line, text


def _unmasked(claim: Claim) -> Claim:
    """A claim as it is without single bits of metadata.

    `dispatched` has neither port nor source address. If the row states one, the claim keeps it, and
    so differs from what is expected.
    """
    kind, value = UNMASKED[claim.kind], claim.value
    if kind == "dispatched":
        family, gateway_mac, port, source_address = value
        if not port and not source_address:
            value = family, gateway_mac
    return replace(claim, kind=kind, value=value)


def _unused(
    program: OvsProgram, files: ProgramFiles, features: OptionalFeatures
) -> Iterator[LineText]:
    """Yield groups to which nothing leads, and second rows of one match and priority.

    Two things are right without a use. A class may have rows and no route, as classes to switches
    without hosts have. If rows cannot match single bits of metadata, a switch without hosts has
    groups for packets from hosts, and no rows that lead there.
    """
    matches = set()
    for row, line in program.row_lines.items():
        match = row.priority, row.in_port, row.metadata, row.mask
        if match in matches:
            yield files.flows, line, "a second row of one match"
        matches.add(match)
    used = {row.group for row in program.row_lines}
    for group in program.groups.values():
        used |= {bucket.target for bucket in group.buckets if bucket.action == "group"}
    if features.matches_masked_metadata:
        for number, line in program.group_lines.items():
            if number not in used:
                yield files.groups, line, f"group {number}"
