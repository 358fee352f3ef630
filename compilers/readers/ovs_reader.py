"""Reader of flows.txt and groups.txt, as `ovs-ofctl -O OpenFlow13` takes them.

Open vSwitch never sends a packet back to where it came in unless the output says `in_port`. A
fast-failover group takes the first bucket that is up, and a select group shares by weight among
those that are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from compilers.readers.emitted_forwarding import (
    Chain,
    Claim,
    EmittedRows,
    EmittedSwitch,
    Lookup,
    Stage,
    address_text,
    network_text,
)

CLASS, INGRESS = 0xFFFF, 0x10000
"""Bits of metadata: the class, and what tells packets from hosts."""
MAC = r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
PRIORITY_ROW = re.compile(r"table=1,priority=(\d+),cookie=0x5046000000000004,(ip|ipv6),\2")
"""What stands before `_dst=` in a row that sends a prefix to a class."""
CLASS_WRITTEN = re.compile(r"actions=write_metadata:(\d+)/0xffff,goto_table:2")
CLASS_ROW = re.compile(
    r"table=2,priority=(\d+),cookie=0x5046000000000006,(?:in_port=(\d+),)?"
    r"metadata=(\d+)/0x([0-9a-f]+),actions=group:(\d+)"
)
GROUP = re.compile(r"group_id=(\d+),type=(indirect|select|fast_failover|ff)((?:,bucket=[^=].*)?)")
BUCKET = re.compile(
    r"(?:weight:(\d+),)?(?:watch_(port|group):(\d+),)?actions=(?:(output|group):(\d+)|(in_port))"
)
FACTS = (
    (
        "host",
        re.compile(
            rf"table=1,priority=(?:32|128),cookie=0x5046000000000005,(?:ip,ip|ipv6,ipv6)_dst="
            rf"(?P<a>[0-9a-f.:]+),actions=set_field:(?P<gateway>{MAC})->eth_src,"
            rf"set_field:(?P<mac>{MAC})->eth_dst,output:(?P<port>\d+)"
        ),
        ("a", "mac", "gateway", "port"),
    ),
    (
        "address of a host",
        re.compile(
            r"table=0,priority=4,cookie=0x5046000000000001,arp,in_port=(?P<port>\d+),arp_op=1,"
            r"arp_tpa=(?P<a>[0-9.]+),actions=drop"
        ),
        ("a", "port"),
    ),
    (
        "address of a host",
        re.compile(
            r"table=0,priority=4,cookie=0x5046000000000001,icmp6,in_port=(?P<port>\d+),"
            r"icmpv6_type=135,nd_target=(?P<a>[0-9a-f:]+),actions=drop"
        ),
        ("a", "port"),
    ),
    (
        "answered block",
        re.compile(
            r"table=0,priority=3,cookie=0x5046000000000002,arp,arp_op=1,arp_tpa=(?P<n>[0-9./]+),"
            r"actions=move:arp_tpa->reg0,move:arp_spa->arp_tpa,move:reg0->arp_spa,"
            rf"move:arp_sha->arp_tha,set_field:(?P<mac>{MAC})->arp_sha,set_field:2->arp_op,"
            r"move:eth_src->eth_dst,set_field:(?P=mac)->eth_src,in_port"
        ),
        ("n", "mac"),
    ),
    (
        "solicited block",
        re.compile(
            r"table=0,priority=3,cookie=0x5046000000000002,icmp6,icmpv6_type=135,"
            r"nd_target=(?P<n>[0-9a-f:/]+),actions=move:ipv6_src->ipv6_dst,"
            r"move:nd_target->ipv6_src,set_field:136->icmpv6_type,set_field:2->nd_options_type,"
            r"set_field:0xe0000000->nd_reserved,goto_table:3"
        ),
        ("n",),
    ),
    (
        "neighbour answer",
        re.compile(
            r"table=3,priority=3,cookie=0x5046000000000002,icmp6,icmpv6_type=136,actions="
            rf"set_field:(?P<mac>{MAC})->nd_tll,move:eth_src->eth_dst,"
            r"set_field:(?P=mac)->eth_src,in_port"
        ),
        ("mac",),
    ),
    (
        "forwarded",
        re.compile(
            rf"table=0,priority=1,cookie=0x5046000000000003,(?P<f>ip|ipv6),eth_dst=(?P<mac>{MAC}),"
            r"actions=dec_ttl,goto_table:1"
        ),
        ("f", "mac"),
    ),
    (
        "forwarded",
        re.compile(
            r"table=0,priority=2,cookie=0x5046000000000003,(?P<f>ip|ipv6),in_port=(?P<port>\d+),"
            rf"eth_dst=(?P<mac>{MAC}),"
            r"actions=dec_ttl,write_metadata:0x10000/0x10000,goto_table:1"
        ),
        ("f", "mac", "port"),
    ),
    (
        "identity",
        re.compile(r"table=0,priority=0,cookie=0x504[75](?P<id>[0-9a-f]{12}),actions=drop"),
        ("id",),
    ),
)
"""Every other row: a kind of claim, what the whole line is, and which parts it claims."""
CLAIMED = frozenset(kind for kind, _, _ in FACTS)


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A row of table 2; in_port 0: any."""

    priority: int
    in_port: int
    metadata: int
    mask: int
    group: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: its weight, the port or group that it watches, where it sends; 0 is IN_PORT."""

    weight: int
    watch: tuple[str, int]
    kind: str
    to: int


@dataclass(frozen=True, slots=True)
class OvsProgram:
    """Classes and groups of a switch, and the ports whose packets are told from others.

    rows: those of each class, by the port where packets come in, 0: any.
    """

    rows: dict[int, dict[int, list[ReadClass]]] = field(default_factory=dict)
    groups: dict[int, tuple[str, tuple[Bucket, ...]]] = field(default_factory=dict)
    told: dict[str, set[int]] = field(default_factory=dict)

    def chain(self, entry: int, in_port: int) -> Chain:
        """What happens to a packet of a class; entries of IPv6 have their family's bit."""
        egress, family = entry >> 1, "ipv6" if entry & 1 else "ip"
        metadata = egress | INGRESS * (in_port in self.told.get(family, ()))
        of_class = self.rows.get(egress, {})
        rows = [
            row
            for row in (*of_class.get(in_port, ()), *of_class.get(0, ()))
            if metadata & row.mask == row.metadata
        ]
        if not rows:
            return ()
        best = max(rows, key=lambda row: row.priority)
        return self._group(best.group, in_port, 0)

    def aware(self, entry: int) -> list[int]:
        """The ports whose packets have rows of their own in a class."""
        told = self.told.get("ipv6" if entry & 1 else "ip", ())
        return [*self.rows.get(entry >> 1, ()), *told]

    def _group(self, number: int, in_port: int, depth: int) -> Chain:
        kind, buckets = self.groups.get(number, ("indirect", ()))
        if kind == "select":
            return (tuple((self._port(b, in_port), b.weight) for b in buckets),)
        stages: list[Stage] = []
        for bucket in buckets:
            if bucket.kind == "group":
                watched = bucket.watch == ("group", bucket.to) and depth < 2
                inner = self._group(bucket.to, in_port, depth + 1)
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
        return f"port {to}, where it came in" if (bucket.kind, to) == ("output", in_port) else to


def read_ovs(folder: Path) -> EmittedSwitch:
    """The program of a switch, from its folder.

    Raises:
        OSError: a file is not there.
        ValueError: a line makes no sense (file, line, text).
    """
    program, unread, claims = OvsProgram(), [], []
    groups, flows = folder / "groups.txt", folder / "flows.txt"
    group_lines: dict[int, int] = {}
    for line, text in _lines(groups):
        if (made := _group(text)) and made[0] not in program.groups:
            program.groups[made[0]] = made[1:]
            group_lines[made[0]] = line
        else:
            unread.append((str(groups), line, text))
    file = str(flows)
    prefixes: list[str] = []
    entries: list[int] = []
    lines: list[int] = []
    class_lines: dict[ReadClass, int] = {}
    for line, text in _lines(flows):
        head, _, rest = text.partition("_dst=")
        prefix, _, tail = rest.partition(",")
        route = _route(head, tail)
        if route is not None:
            if not prefix.endswith(route[0]):
                raise ValueError(file, line, text)
            prefixes.append(prefix)
            entries.append(route[1])
            lines.append(line)
        elif row := _class_row(text):
            class_lines[row] = line
            program.rows.setdefault(row.metadata & CLASS, {}).setdefault(row.in_port, []).append(
                row
            )
        elif fact := _fact(text):
            claims.append(Claim(*fact, file, line))
        else:
            unread.append((file, line, text))
    for claim in claims:
        if claim.kind == "forwarded" and claim.value[2]:
            program.told.setdefault(str(claim.value[0]), set()).add(int(claim.value[2]))
    unused = list(_unused(program, entries, class_lines, group_lines, file, str(groups)))
    table = Lookup(EmittedRows(file, prefixes, entries, lines), program.chain, program.aware)
    return EmittedSwitch((table,), claimed=CLAIMED, claims=claims, unread=unread, unused=unused)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    for line, text in enumerate(path.read_text().splitlines(), 1):
        if text and text[0] != "#":
            yield line, text


@lru_cache(1 << 16)
def _route(head: str, tail: str) -> tuple[str, int] | None:
    """The length and the entry of a row that leads a prefix to a class."""
    row, written = PRIORITY_ROW.fullmatch(head), CLASS_WRITTEN.fullmatch(tail)
    if not row or not written:
        return None
    return f"/{row[1]}", int(written[1]) << 1 | (row[2] == "ipv6")


@lru_cache(1 << 16)
def _class_row(text: str) -> ReadClass | None:
    found = CLASS_ROW.fullmatch(text)
    if not found:
        return None
    priority, in_port, metadata, mask, group = found.groups()
    return ReadClass(int(priority), int(in_port or 0), int(metadata), int(mask, 16), int(group))


def _fact(text: str) -> tuple[str, tuple[str | int, ...]] | None:
    for kind, pattern, parts in FACTS:
        if found := pattern.fullmatch(text):
            values = found.groupdict()
            return kind, tuple(_value(part, values.get(part)) for part in parts) + (
                (0,) if kind == "forwarded" and "port" not in parts else ()
            )
    return None


def _value(part: str, text: str | None) -> str | int:
    if part == "port":
        return int(text or 0)
    canonical = {"a": address_text, "n": network_text}.get(part, str)
    return canonical(text or "")


@lru_cache(1 << 14)
def _group(text: str) -> tuple[int, str, tuple[Bucket, ...]] | None:
    found = GROUP.fullmatch(text)
    if not found:
        return None
    number, kind, rest = found.groups()
    buckets = [BUCKET.fullmatch(part) for part in rest.split(",bucket=")[1:]]
    made = []
    for bucket in buckets:
        if not bucket:
            return None
        weight, watch, watched, to, where, back = bucket.groups()
        if (kind == "select") != (weight is not None):
            return None
        if (kind != "indirect") != (watch is not None):
            return None
        made.append(
            Bucket(int(weight or 1), (watch or "", int(watched or 0)), to or back, int(where or 0))
        )
    return int(number), kind, tuple(made)


def _unused(
    program: OvsProgram,
    entries: list[int],
    class_lines: dict[ReadClass, int],
    group_lines: dict[int, int],
    flows: str,
    groups: str,
) -> Iterator[tuple[str, int, str]]:
    """Rows and groups that nothing leads to, and rows of one match and priority."""
    used = {entry >> 1 for entry in entries}
    seen = set()
    for row, line in class_lines.items():
        if row.metadata & CLASS not in used:
            yield flows, line, f"class {row.metadata & CLASS}"
        match = row.priority, row.in_port, row.metadata, row.mask
        if match in seen:
            yield flows, line, "a second row of one match"
        seen.add(match)
    led = {row.group for row in class_lines}
    led |= {b.to for _, buckets in program.groups.values() for b in buckets if b.kind == "group"}
    for number, line in group_lines.items():
        if number not in led:
            yield groups, line, f"group {number}"
