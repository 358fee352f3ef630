"""A switch written from the OpenFlow 1.3.5 specification, to see what a controller makes of it.

It shares no code with the product. Each optional part can be left out, and is then refused with the
error that the specification has for it: bundles (ONF extension 230), Open vSwitch's moves and
fields, masks on metadata, fast failover, more than so many buckets, tables, rows or groups.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

HELLO, ERROR, ECHO, ECHO_REPLY, EXPERIMENTER, FEATURES = 0, 1, 2, 3, 4, 5
PORT_STATUS, PACKET_OUT, FLOW_MOD, GROUP_MOD, MULTIPART, BARRIER, ROLE = 12, 13, 14, 15, 18, 20, 24
BAD_REQUEST, BAD_ACTION, BAD_INSTRUCTION, BAD_MATCH, FLOW_FAILED, GROUP_FAILED = range(1, 7)
SELECT, INDIRECT, FAILOVER = 1, 2, 3
ONF, IN_PORT, ANY = 0x4F4E4600, 0xFFFFFFF8, 0xFFFFFFFF
BASIC, METADATA = 0x8000, 2
NAMES = {0: "in_port", 2: "metadata", 3: "eth_dst", 4: "eth_src", 5: "eth_type", 10: "ip_proto"}
NAMES |= {12: "ipv4_dst", 21: "arp_op", 22: "arp_spa", 23: "arp_tpa", 24: "arp_sha", 25: "arp_tha"}
NAMES |= {26: "ipv6_src", 27: "ipv6_dst", 29: "icmpv6_type", 31: "nd_target", 33: "nd_tll"}
NEEDS = {"ipv4_dst": 0x0800, "arp_op": 0x0806, "arp_tpa": 0x0806, "ipv6_dst": 0x86DD}
DROPPED = None


class Refused(Exception):
    """An error of the specification: its type and code."""


@dataclass(frozen=True)
class Shape:
    """What a switch can do; None: any number.

    metadata: any, not just masks on it. claims: its features name fast failover all the same.
    told_rows: how many rows a table holds by its features, where that is not so. features: whether
    it tells those of tables and groups; properties: whether also those of each table.
    """

    bundles: bool = True
    experimenters: bool = True
    masks: bool = True
    fast_failover: bool = True
    select_liveness: bool = True
    metadata: bool = True
    buckets: int | None = None
    tables: int = 254
    rows: int = 100_000
    groups: int = 1 << 20
    claims: bool = False
    told_rows: int | None = None
    features: bool = True
    properties: bool = True


@dataclass(frozen=True)
class Row:
    """A flow entry: its match as fields, and what stands in it as bytes."""

    table: int
    priority: int
    fields: tuple
    match: bytes
    instructions: bytes
    cookie: int
    rest: bytes


@dataclass
class Tables:
    """Flow entries by table, priority and match; groups by number: type and bytes of buckets."""

    rows: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)

    def copy(self):
        return Tables(dict(self.rows), dict(self.groups))


class ConformingSwitch:
    """take(bytes) gives the bytes that it answers; forward(in_port, packet) what may leave it."""

    def __init__(self, datapath_id, ports, shape):
        self.datapath_id, self.shape = datapath_id, shape
        self.up = dict.fromkeys(ports, True)
        self.tables, self.changes, self.refusals = Tables(), 0, 0
        self._bundle, self._data, self._known, self._by_table = None, b"", {}, {}

    # What it is told

    def take(self, data):
        self._data += data
        answers = []
        while len(self._data) >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", self._data)
            if len(self._data) < length:
                break
            message, self._data = self._data[:length], self._data[length:]
            try:
                answers.append(self._message(kind, xid, message))
            except Refused as refused:
                self.refusals += 1
                answers.append(_message(ERROR, xid, struct.pack("!HH", *refused.args) + message))
        return b"".join(answers)

    def _message(self, kind, xid, message):
        body = message[8:]
        if kind == ECHO:
            return _message(ECHO_REPLY, xid, body)
        if kind == FEATURES:
            said = (self.datapath_id, 0, self.shape.tables, 0, 0x4F, 0)
            return _message(6, xid, struct.pack("!QIBB2xII", *said))
        if kind in (BARRIER, ROLE):
            return _message(kind + 1, xid, body)
        if kind == MULTIPART:
            (what,) = struct.unpack_from("!H", body)
            return _message(19, xid, struct.pack("!HH4x", what, 0) + self._report(what))
        if kind == EXPERIMENTER:
            return self._experimenter(xid, body)
        if kind in (FLOW_MOD, GROUP_MOD):
            self._change(self.tables, kind, body)
            self._changed()
        elif kind not in (HELLO, ERROR, ECHO_REPLY, 9, PACKET_OUT):
            raise Refused(BAD_REQUEST, 1)
        return b""

    def _experimenter(self, xid, body):
        experimenter, what, _, request = struct.unpack_from("!IIIH", body.ljust(14, b"\0"))
        if not self.shape.bundles or experimenter != ONF:
            raise Refused(BAD_REQUEST, 3)
        if what == 2301:
            inner = body[16:]
            self._change(self._bundle, inner[1], inner[8:])
            return b""
        if request == 0:
            self._bundle = self.tables.copy()
        elif request == 4:
            self.tables, self._bundle = self._bundle, None
            self._changed()
        return _message(EXPERIMENTER, xid, body[:12] + struct.pack("!HH", request + 1, 3))

    def _changed(self):
        self.changes += 1
        self._known.clear()
        self._by_table.clear()

    def _change(self, tables, kind, body):
        (self._flow if kind == FLOW_MOD else self._group)(tables, body)

    def _flow(self, tables, body):
        head = struct.unpack_from("!QQBBHHHIIIH", body)
        cookie, _, table, command, _, _, priority = head[:7]
        (length,) = struct.unpack_from("!H", body, 42)
        end = 40 + -(-length // 8) * 8
        fields = tuple(self._match(body[44 : 40 + length]))
        if table >= self.shape.tables:
            raise Refused(FLOW_FAILED, 2)
        key = table, priority, fields
        if command == 4:
            tables.rows.pop(key, None)
            return
        assert command == 0, command
        self._check(tables, table, body[end:])
        if key not in tables.rows and len(tables.rows) >= self.shape.rows:
            raise Refused(FLOW_FAILED, 1)
        rest = body[18:22] + body[36:38]
        tables.rows[key] = Row(*key, body[40:end], body[end:], cookie, rest)

    def _match(self, match):
        """(name, value, mask or None) of each field."""
        place, ether = 0, None
        while place < len(match):
            space, number, size = struct.unpack_from("!HBB", match, place)
            value = match[place + 4 : place + 4 + size]
            if space != BASIC or number >> 1 not in NAMES:
                raise Refused(BAD_MATCH, 6)
            name, mask = NAMES[number >> 1], None
            if name == "metadata" and not self.shape.metadata:
                raise Refused(BAD_MATCH, 6)
            if number & 1:
                if name == "metadata" and not self.shape.masks:
                    raise Refused(BAD_MATCH, 8)
                value, mask = value[: size // 2], int.from_bytes(value[size // 2 :], "big")
            value = int.from_bytes(value, "big")
            ether = value if name == "eth_type" else ether
            if NEEDS.get(name, ether) != ether:
                raise Refused(BAD_MATCH, 9)
            yield name, value, mask
            place += 4 + size

    def _check(self, tables, table, instructions):
        for kind, body in _list(instructions):
            if kind == 1 and not table < body[4] < self.shape.tables:
                raise Refused(BAD_INSTRUCTION, 2)
            if kind == 2 and not self.shape.metadata:
                raise Refused(BAD_INSTRUCTION, 3)
            if kind == 2 and not self.shape.masks and body[16:24] != b"\xff" * 8:
                raise Refused(BAD_INSTRUCTION, 4)
            for action, value in _list(body[8:]) if kind == 4 else ():
                if action == 0xFFFF and not self.shape.experimenters:
                    raise Refused(BAD_ACTION, 2)
                space = struct.unpack_from("!H", value, 4)[0] if action == 25 else BASIC
                if space != BASIC and not self.shape.experimenters:
                    raise Refused(BAD_ACTION, 13)
                if action == 22 and _number(value) not in tables.groups:
                    raise Refused(BAD_ACTION, 9)

    def _group(self, tables, body):
        command, kind, number = struct.unpack_from("!HBxI", body)
        if command == 2:
            tables.groups.pop(number, None)
            # Rows that lead to a group go with it (§6.7).
            for key, row in list(tables.rows.items()):
                if any(_number(v) == number for a, v in _actions(row.instructions) if a == 22):
                    del tables.rows[key]
            return
        if (number in tables.groups) != (command == 1):
            raise Refused(GROUP_FAILED, 8 if command else 0)
        buckets = list(_buckets(body[8:]))
        if kind == FAILOVER and not self.shape.fast_failover:
            raise Refused(GROUP_FAILED, 10)
        if self.shape.buckets is not None and len(buckets) > self.shape.buckets:
            raise Refused(GROUP_FAILED, 4)
        if kind == INDIRECT and len(buckets) != 1:
            raise Refused(GROUP_FAILED, 1)
        for _, port, group, actions in buckets:
            if kind == FAILOVER and (port, group) == (ANY, ANY):
                raise Refused(GROUP_FAILED, 13)
            if any(a == 0xFFFF for a, _ in actions) and not self.shape.experimenters:
                raise Refused(BAD_ACTION, 2)
            if any(a == 22 and _number(v) not in tables.groups for a, v in actions):
                raise Refused(GROUP_FAILED, 9)
        tables.groups[number] = kind, body[8:]

    # What it tells

    def _report(self, what):
        if what == 1:
            return b"".join(map(_flow_stats, self.tables.rows.values()))
        if what == 7:
            return b"".join(
                struct.pack("!HBxI", 8 + len(buckets), kind, number) + buckets
                for number, (kind, buckets) in self.tables.groups.items()
            )
        if what in (8, 12) and not self.shape.features:
            raise Refused(BAD_REQUEST, 2)
        if what == 8:
            failover = self.shape.fast_failover or self.shape.claims
            types = 1 << SELECT | 1 << INDIRECT | failover << FAILOVER
            capabilities = 0xD | self.shape.select_liveness << 1
            return struct.pack("!II4I4I", types, capabilities, *[self.shape.groups] * 4, *[0] * 4)
        if what == 12:
            return b"".join(map(self._table_features, range(self.shape.tables)))
        if what == 13:
            return b"".join(map(self._port, self.up))
        raise Refused(BAD_REQUEST, 2)

    def _table_features(self, table):
        rows = self.shape.rows if self.shape.told_rows is None else self.shape.told_rows
        properties = b""
        if self.shape.properties:
            last, metadata = table == self.shape.tables - 1, self.shape.metadata
            kinds = [kind for kind, there in ((1, not last), (2, metadata), (4, True)) if there]
            masked = self.shape.masks << 8 | 8 << self.shape.masks
            fields = [BASIC << 16 | n << 9 | 4 for n in NAMES if n != METADATA]
            fields += [BASIC << 16 | METADATA << 9 | masked] if metadata else []
            properties = _property(0, [kind << 16 | 4 for kind in kinds]) + _property(8, fields)
        head = struct.pack("!HB5x32sQQII", 64 + len(properties), table, b"", 0, 0, 0, rows)
        return head + properties

    def _port(self, port):
        return struct.pack("!I4x6s2x16sII24x", port, b"", b"", 0, not self.up[port])

    def link(self, port, up):
        """A port goes down or comes up; what it says of it."""
        self.up[port] = up
        self._known.clear()
        return _message(PORT_STATUS, 0, struct.pack("!B7x", 2) + self._port(port))

    # Forwarding

    def forward(self, in_port, packet):
        """All that may happen to a packet, {field: value}: (port, packet), or DROPPED."""
        key = in_port, tuple(sorted(packet.items()))
        if key not in self._known:
            self._known[key] = list(self._table(0, {**packet, "in_port": in_port, "metadata": 0}))
        return self._known[key]

    def _table(self, table, packet):
        row = None
        for one in self._ordered(table):
            if row is not None and one.priority < row.priority:
                break
            if all(_matches(packet, *field) for field in one.fields):
                assert row is None, f"two rows of one priority match: {row}, {one}"
                row = one
        if row is None:
            yield DROPPED
            return
        packet, found = dict(packet), dict(_list(row.instructions))
        outputs = [DROPPED]
        if 4 in found:
            outputs = list(self._apply(list(_list(found[4][8:])), packet))
        if 2 in found:
            value, mask = struct.unpack_from("!QQ", found[2], 8)
            packet["metadata"] = packet["metadata"] & ~mask | value & mask
        yield from self._table(found[1][4], packet) if 1 in found else outputs

    def _ordered(self, table):
        """The rows of a table, the highest priority first."""
        if table not in self._by_table:
            rows = [row for row in self.tables.rows.values() if row.table == table]
            self._by_table[table] = sorted(rows, key=lambda row: -row.priority)
        return self._by_table[table]

    def _apply(self, actions, packet):
        """Carries actions out on the packet; yields what may leave."""
        for kind, value in actions:
            if kind == 24:
                packet["ttl"] -= 1
            elif kind == 25:
                _, number, _ = struct.unpack_from("!HBB", value, 4)
                size = value[7]
                packet[NAMES[number >> 1]] = int.from_bytes(value[8 : 8 + size], "big")
            elif kind == 0xFFFF:
                _change_field(value, packet)
            elif kind == 0:
                yield self._output(_number(value), packet)
            elif kind == 22:
                yield from self._through(_number(value), packet)

    def _output(self, port, packet):
        to = packet["in_port"] if port == IN_PORT else port
        if port == packet["in_port"] or not self.up.get(to, False) or packet.get("ttl", 1) < 1:
            return DROPPED
        left = {k: v for k, v in packet.items() if k not in ("in_port", "metadata", "reg0")}
        return to, tuple(sorted(left.items()))

    def _through(self, number, packet):
        kind, body = self.tables.groups[number]
        buckets = list(_buckets(body))
        if self.shape.select_liveness if kind == SELECT else kind == FAILOVER:
            buckets = [b for b in buckets if self._live(b)]
        buckets = buckets if kind == SELECT else buckets[:1]
        for _, _, _, actions in buckets:
            yield from self._apply(actions, dict(packet))
        if not buckets:
            yield DROPPED

    def _live(self, bucket):
        _, port, group, _ = bucket
        if port != ANY:
            return self.up.get(port, False)
        return group != ANY and any(map(self._live, _buckets(self.tables.groups[group][1])))


def _message(kind, xid, body):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def hello():
    """The first message of either side."""
    return _message(HELLO, 1, b"")


def _flow_stats(row):
    head = struct.pack("!BxII", row.table, 3, 4) + struct.pack("!H", row.priority) + row.rest
    body = head + bytes(4) + struct.pack("!QQQ", row.cookie, 5, 6) + row.match + row.instructions
    return struct.pack("!H", 2 + len(body)) + body


def _list(data):
    """(type, bytes) of instructions or actions."""
    place = 0
    while place < len(data):
        kind, length = struct.unpack_from("!HH", data, place)
        yield kind, data[place : place + length]
        place += length


def _actions(instructions):
    for kind, body in _list(instructions):
        if kind == 4:
            yield from _list(body[8:])


def _number(action):
    return struct.unpack_from("!I", action, 4)[0]


def _buckets(data):
    """(weight, watched port, watched group, actions) of each."""
    place = 0
    while place < len(data):
        length, weight, port, group = struct.unpack_from("!HHII", data, place)
        yield weight, port, group, list(_list(data[place + 16 : place + length]))
        place += length


def _property(kind, words):
    """A property of a table: 32-bit words, and padding."""
    body = struct.pack(f"!HH{len(words)}I", kind, 4 + 4 * len(words), *words)
    return body + bytes(-len(body) % 8)


def _matches(packet, name, value, mask):
    there = packet.get(name)
    return there is not None and (there == value if mask is None else there & mask == value)


def _change_field(action, packet):
    """NXAST_REG_MOVE and NXAST_REG_LOAD: of bits of a field, into as many bits of another."""
    names = {(0, 1): "eth_dst", (0, 2): "eth_src", (0, 16): "arp_spa", (0, 17): "arp_tpa"}
    names |= {(1, 0): "reg0", (1, 17): "arp_sha", (1, 18): "arp_tha", (1, 19): "ipv6_src"}
    names[1, 29] = "ttl"

    def name(place):
        space, number = struct.unpack_from("!HB", action, place)
        return names[space, number >> 1]

    subtype, bits, first, start = struct.unpack_from("!4H", action, 8)
    if subtype == 6:
        value, target = packet[name(16)] >> first, name(20)
    else:
        start, bits = bits >> 6, (bits & 63) + 1
        value, target = int.from_bytes(action[16:24], "big"), name(12)
    mask = (1 << bits) - 1
    packet[target] = packet.get(target, 0) & ~(mask << start) | (value & mask) << start
