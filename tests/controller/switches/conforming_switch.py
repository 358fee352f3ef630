"""A switch written from the OpenFlow 1.3.5 specification, to see what a controller makes of it.

It shares only layouts and numbers with the product. Each optional part can be left out, and is then
refused with the error that the specification has for it: bundles (ONF extension 230), Open
vSwitch's moves and fields, masks on metadata, fast failover, more than so many buckets, tables,
rows or groups. Of several controllers it heeds the master of the latest term (§6.3.6).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from compilers.targets.openflow import protocol as of
from tests.compilers.targets.openflow_switch import Switch
from tests.controller.message_lists import listed

BASIC, EXACT = 0x8000, (1 << 64) - 1
NAMES = {number: name for name, (space, number, _) in of.FIELDS.items() if space == BASIC}
METADATA = of.FIELDS["metadata"][1]
NEEDS = {"ipv4_src": 0x0800, "ipv4_dst": 0x0800, "arp_op": 0x0806, "arp_tpa": 0x0806}
NEEDS |= {"ipv6_src": 0x86DD, "ipv6_dst": 0x86DD}
UNANSWERED = [
    of.MessageType[name] for name in ("HELLO", "ERROR", "ECHO_REPLY", "SET_CONFIG", "PACKET_OUT")
]
CHANGES = {of.MessageType[name] for name in ("EXPERIMENTER", "FLOW_MOD", "GROUP_MOD")}
DROPPED = None


TABLE_FULL, TIMED_OUT = (of.ErrorType.FLOW_MOD, 1), (of.ErrorType.EXPERIMENTER, 2314, of.ONF)
STALE = 11, 0
"""A role of an earlier term."""


class Refused(Exception):
    """An error of the specification: its type and code, and the experimenter whose it is."""


@dataclass(frozen=True)
class Shape:
    """What a switch can do; None: any number.

    metadata: any, not just masks on it. claims: its features name fast failover all the same.
    told_rows: how many rows a table holds by its features, where that is not so. features: whether
    it tells those of tables and groups; properties: whether also those of each table. lies: whether
    it confirms changes and makes none. made: who made it, where it says so. strict: to remove what
    is not there, or what is in use, is a fault of the controller.
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
    lies: bool = False
    made: bytes | None = None
    strict: bool = False


@dataclass(frozen=True)
class Row:
    """A flow entry: its match as fields; the flow-mod that added it, the lists in that as bytes."""

    table: int
    priority: int
    fields: tuple
    said: tuple
    match: bytes
    instructions: bytes

    @property
    def key(self):
        """The match without its padding."""
        return self.match[: self.said.match_length - of.MATCH.size]

    @property
    def held(self):
        return self.said.cookie, self.instructions


@dataclass
class Tables:
    """Flow entries by table, priority and match; groups by number: type and bytes of buckets."""

    rows: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)

    def copy(self):
        return Tables(dict(self.rows), dict(self.groups))


class ConformingSwitch:
    """take(bytes) gives the bytes that it answers; forward(in_port, packet) what may leave it.

    sent: bytes by port. carried: bytes of IPv4 routes by network, four bytes. mods: what bundles
    have changed; frames: what it was told to send out. takes: how many bundles more it finds no
    fault in; fault, faults: what it says of the next, and of how many.
    """

    def __init__(self, datapath_id, ports, shape):
        self.datapath_id, self.shape = datapath_id, shape
        self.up, self.sent = dict.fromkeys(ports, True), dict.fromkeys(ports, 0)
        self.tables, self.changes, self.refusals = Tables(), 0, 0
        self.mods, self.frames, self.carried = [], [], {}
        self.takes, self.fault, self.faults = 1 << 30, TABLE_FULL, 1
        self.term, self.master = 0, None
        self._bundle, self._filled, self._data = None, [], b""
        self._known, self._by_table, self._walked = {}, {}, None

    @property
    def rows(self):
        return self.tables.rows

    @property
    def groups(self):
        return self.tables.groups

    @property
    def walked(self):
        """What it holds, for a walk of packets."""
        if self._walked is None:
            self._walked, rows = Switch(), self.rows.values()
            self._walked.rows = {(r.table, r.priority, r.key): r.held for r in rows}
            self._walked.groups = dict(self.groups)
        return self._walked

    @property
    def reports_lldp(self):
        """Whether a row sends LLDP frames to the controller."""
        return any(("eth_type", 0x88CC, None) in row.fields for row in self.rows.values())

    def forget(self):
        """It holds nothing any more."""
        self.tables = Tables()
        self.committed()

    def apply(self, blocks):
        """Carry out bundled messages."""
        for block in blocks:
            for message in block[:, of.WRAPPER_BYTES :]:
                data = message.tobytes()
                self.change(self.tables, data[1], data[of.HEADER.size :])
        self.committed()
        return self

    # What it is told

    def take(self, data, who=None):
        """Who: one of several controllers."""
        self._data += data
        answers = []
        while len(self._data) >= of.HEADER.size:
            head = of.HEADER.read(self._data)
            if len(self._data) < head.length:
                break
            heard, self._data = self._data[: head.length], self._data[head.length :]
            if head.type == of.MessageType.PACKET_OUT:
                self.frames.append(heard)
            try:
                if self.master not in (None, who) and head.type in CHANGES:
                    raise Refused(of.ErrorType.BAD_REQUEST, of.BadRequest.IS_SLAVE)
                if head.type == of.MessageType.ROLE_REQUEST:
                    self._role(who, heard[of.HEADER.size :])
                answers.append(self._message(head.type, head.xid, heard[of.HEADER.size :]))
            except Refused as refused:
                self.refusals += 1
                said = dict(zip(("type", "code", "experimenter"), refused.args, strict=False))
                said = (of.EXPERIMENTER_ERROR if len(said) > 2 else of.ERROR).pack(**said)
                answers.append(of.message(of.MessageType.ERROR, head.xid, said + heard))
        return b"".join(answers)

    def _message(self, kind, xid, body):
        if kind == of.MessageType.ECHO_REQUEST:
            return of.message(of.MessageType.ECHO_REPLY, xid, body)
        if kind == of.MessageType.FEATURES_REQUEST:
            said = {"datapath_id": self.datapath_id, "tables": self.shape.tables}
            return of.message(
                of.MessageType.FEATURES_REPLY, xid, of.FEATURES.pack(capabilities=0x4F, **said)
            )
        if kind in (of.MessageType.BARRIER_REQUEST, of.MessageType.ROLE_REQUEST):
            return of.message(kind + 1, xid, body)
        if kind == of.MessageType.MULTIPART_REQUEST:
            what = of.MULTIPART.read(body).kind
            said = of.MULTIPART.pack(kind=what) + self.report(what, body)
            return of.message(of.MessageType.MULTIPART_REPLY, xid, said)
        if kind == of.MessageType.EXPERIMENTER:
            return self._experimenter(xid, body)
        if kind in (of.MessageType.FLOW_MOD, of.MessageType.GROUP_MOD):
            if not self.shape.lies:
                self.change(self.tables, kind, body)
                self.committed()
        elif kind not in UNANSWERED:
            raise Refused(of.ErrorType.BAD_REQUEST, 1)
        return b""

    def _role(self, who, body):
        said = of.ROLE.read(body)
        if said.generation < self.term:
            raise Refused(*STALE)
        self.term = said.generation
        if said.role == of.ControllerRole.MASTER:
            self.master = who

    def _experimenter(self, xid, body):
        said = of.BUNDLE_CONTROL.read(body.ljust(of.BUNDLE_CONTROL.size, b"\0"))
        if not self.shape.bundles or said.experimenter != of.ONF:
            raise Refused(of.ErrorType.BAD_REQUEST, 3)
        if said.kind == of.OnfMessage.BUNDLE_ADD:
            self._filled.append(body[of.WRAPPER_BYTES - of.HEADER.size :])
            if not self.takes and len(self._filled) == 1:
                raise Refused(*self.fault)
            for head, inner in listed(body[of.WRAPPER_BYTES - of.HEADER.size :], of.HEADER):
                self.change(self._bundle, head.type, inner[of.HEADER.size :])
            return b""
        if said.request == of.Bundle.OPEN:
            self._bundle, self._filled = self.tables.copy(), []
        elif said.request == of.Bundle.DISCARD:
            self.faults -= not self.takes
            if not self.faults:
                self.takes, self.faults = 1 << 30, 1
            return b""
        elif said.request == of.Bundle.COMMIT:
            self.takes -= 1
            if not self.shape.lies:
                self.tables, self._bundle = self._bundle, None
                self.mods += self._filled
            self.committed()
        answer = of.BUNDLE_CONTROL.pack(**said._asdict() | {"request": said.request + 1})
        return of.message(of.MessageType.EXPERIMENTER, xid, answer)

    def committed(self):
        self.changes += 1
        self._known.clear()
        self._by_table.clear()
        self._walked = None

    def change(self, tables, kind, body):
        (self._flow if kind == of.MessageType.FLOW_MOD else self._group)(tables, body)

    def _flow(self, tables, body):
        said = of.FLOW_MOD.read(body)
        start = of.FLOW_MOD.size - of.MATCH.size
        end = start + of.padded(said.match_length)
        fields = tuple(self._match(body[of.FLOW_MOD.size : start + said.match_length]))
        if said.table >= self.shape.tables:
            raise Refused(of.ErrorType.FLOW_MOD, 2)
        key = said.table, said.priority, fields
        if said.command == of.FlowCommand.DELETE_STRICT:
            assert key in tables.rows or not self.shape.strict, "removes a row that is not there"
            tables.rows.pop(key, None)
            return
        assert said.command == of.FlowCommand.ADD, said
        self._check(tables, said.table, body[end:])
        if key not in tables.rows and len(tables.rows) >= self.shape.rows:
            raise Refused(of.ErrorType.FLOW_MOD, 1)
        tables.rows[key] = Row(*key, said, body[of.FLOW_MOD.size : end], body[end:])

    def _match(self, match):
        """(name, value, mask or None) of each field."""
        place, ether = 0, None
        while place < len(match):
            space, number, size = of.OXM.read(match, place)
            start = place + of.OXM.size
            place = start + size
            value = match[start:place]
            if space != BASIC or number >> 1 not in NAMES:
                raise Refused(of.ErrorType.BAD_MATCH, 6)
            name, mask = NAMES[number >> 1], None
            if name == "metadata" and not self.shape.metadata:
                raise Refused(of.ErrorType.BAD_MATCH, 6)
            if number & 1:
                if name == "metadata" and not self.shape.masks:
                    raise Refused(of.ErrorType.BAD_MATCH, 8)
                value, mask = value[: size // 2], int.from_bytes(value[size // 2 :], "big")
            value = int.from_bytes(value, "big")
            ether = value if name == "eth_type" else ether
            if NEEDS.get(name, ether) != ether:
                raise Refused(of.ErrorType.BAD_MATCH, 9)
            yield name, value, mask

    def _check(self, tables, table, instructions):
        later = range(table + 1, self.shape.tables)
        for kind, body in _typed(instructions):
            if kind == of.Instruction.GOTO_TABLE and of.GOTO_TABLE.read(body).table not in later:
                raise Refused(of.ErrorType.BAD_INSTRUCTION, 2)
            writes = kind == of.Instruction.WRITE_METADATA
            if writes and not self.shape.metadata:
                raise Refused(of.ErrorType.BAD_INSTRUCTION, 3)
            if writes and not self.shape.masks and of.WRITE_METADATA.read(body).mask != EXACT:
                raise Refused(of.ErrorType.BAD_INSTRUCTION, 4)
        for action, value in _actions(instructions):
            if action == of.Action.EXPERIMENTER and not self.shape.experimenters:
                raise Refused(of.ErrorType.BAD_ACTION, 2)
            sets = action == of.Action.SET_FIELD and not self.shape.experimenters
            if sets and of.OXM.read(value, of.SET_FIELD.size).space != BASIC:
                raise Refused(of.ErrorType.BAD_ACTION, 13)
            if action == of.Action.GROUP and of.GROUP.read(value).group not in tables.groups:
                raise Refused(of.ErrorType.BAD_ACTION, 9)

    def _group(self, tables, body):
        said = of.GROUP_MOD.read(body)
        if said.command == of.GroupCommand.DELETE:
            there = tables.groups.pop(said.group, None)
            # Rows that lead to a group go with it (§6.7).
            led = [
                k for k, r in tables.rows.items() if said.group in _groups(_actions(r.instructions))
            ]
            assert (there and not led) or not self.shape.strict, "removes a group in use, or none"
            for key in led:
                del tables.rows[key]
            return
        changes = said.command == of.GroupCommand.MODIFY
        if (said.group in tables.groups) != changes:
            raise Refused(of.ErrorType.GROUP_MOD, 8 if changes else 0)
        buckets = list(_buckets(body[of.GROUP_MOD.size :]))
        failover = said.type == of.GroupType.FAST_FAILOVER
        if failover and not self.shape.fast_failover:
            raise Refused(of.ErrorType.GROUP_MOD, 10)
        if self.shape.buckets is not None and len(buckets) > self.shape.buckets:
            raise Refused(of.ErrorType.GROUP_MOD, 4)
        if said.type == of.GroupType.INDIRECT and len(buckets) != 1:
            raise Refused(of.ErrorType.GROUP_MOD, 1)
        for bucket, actions in buckets:
            if failover and (bucket.watch_port, bucket.watch_group) == (of.ANY, of.ANY):
                raise Refused(of.ErrorType.GROUP_MOD, 13)
            if (
                any(a == of.Action.EXPERIMENTER for a, _ in actions)
                and not self.shape.experimenters
            ):
                raise Refused(of.ErrorType.BAD_ACTION, 2)
            if not tables.groups.keys() >= _groups(actions):
                raise Refused(of.ErrorType.GROUP_MOD, 9)
        tables.groups[said.group] = said.type, body[of.GROUP_MOD.size :]

    # What it tells

    def report(self, what, body):
        if what == of.Multipart.AGGREGATE:
            said = of.FLOW_REQUEST.read(body, of.MULTIPART.size)
            rows = [row.said.cookie & said.cookie_mask for row in self.tables.rows.values()]
            return of.AGGREGATE_STATS.pack(flows=rows.count(said.cookie))
        if what == of.Multipart.FLOW:
            return b"".join(map(self._flow_stats, self.tables.rows.values()))
        if what == of.Multipart.GROUP_DESC:
            return b"".join(
                of.GROUP_DESC.pack(
                    length=of.GROUP_DESC.size + len(buckets), type=kind, group=number
                )
                + buckets
                for number, (kind, buckets) in self.tables.groups.items()
            )
        if what == of.Multipart.PORT_DESC:
            return b"".join(map(self._port, self.up))
        if what == of.Multipart.PORT_STATS:
            told = (of.PORT_STATS.pack(port=p, sent_bytes=n) for p, n in self.sent.items())
            return b"".join(told)
        if what == of.Multipart.DESC and self.shape.made is not None:
            return of.DESCRIPTION.pack(hardware=self.shape.made)
        if self.shape.features and what == of.Multipart.GROUP_FEATURES:
            failover = self.shape.fast_failover or self.shape.claims
            kinds = (
                of.GroupType.SELECT,
                of.GroupType.INDIRECT,
                *[of.GroupType.FAST_FAILOVER] * failover,
            )
            return of.GROUP_FEATURES.pack(
                types=sum(1 << kind for kind in kinds),
                capabilities=0xD | self.shape.select_liveness << 1,
                **{name: self.shape.groups for name in of.GROUP_FEATURES.formats if "most" in name},
            )
        if self.shape.features and what == of.Multipart.TABLE_FEATURES:
            return b"".join(map(self._table_features, range(self.shape.tables)))
        raise Refused(of.ErrorType.BAD_REQUEST, 2)

    def _flow_stats(self, row):
        carried = 6
        for name, value, mask in row.fields if self.carried else ():
            if name == "ipv4_dst" and mask is not None:
                carried = self.carried.get(value.to_bytes(4, "big"), 6)
        known = {
            name: value
            for name, value in row.said._asdict().items()
            if name in of.FLOW_STATS.formats
        }
        rest = row.match + row.instructions
        counted = {"seconds": 3, "nanoseconds": 4, "packets": 5, "bytes": carried}
        return of.FLOW_STATS.pack(length=of.FLOW_STATS.size + len(rest), **counted, **known) + rest

    def _table_features(self, table):
        rows = self.shape.rows if self.shape.told_rows is None else self.shape.told_rows
        properties = b""
        if self.shape.properties:
            last, metadata = table == self.shape.tables - 1, self.shape.metadata
            kinds = [kind for kind, there in ((1, not last), (2, metadata), (4, True)) if there]
            masked = self.shape.masks << 8 | 8 << self.shape.masks
            fields = [BASIC << 16 | n << 9 | 4 for n in NAMES if n != METADATA]
            fields += [BASIC << 16 | METADATA << 9 | masked] if metadata else []
            properties = _property(
                of.TableProperty.INSTRUCTIONS, [kind << 16 | 4 for kind in kinds]
            )
            properties += _property(of.TableProperty.MATCH, fields)
        length = of.TABLE_FEATURES.size + len(properties)
        return of.TABLE_FEATURES.pack(length=length, table=table, most_entries=rows) + properties

    def _port(self, port):
        return of.PORT.pack(port=port, state=not self.up[port], current_speed=1000)

    def link(self, port, up, reason=of.PORT_MODIFIED):
        """A port goes down or comes up; what it says of it."""
        self.up[port] = up
        self._known.clear()
        said = of.PORT_STATUS.pack(reason=reason, port=port, state=not up)
        return of.message(of.MessageType.PORT_STATUS, 0, said)

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
        packet, found = dict(packet), dict(_typed(row.instructions))
        outputs = list(self._apply(_actions(row.instructions), packet))
        if written := found.get(of.Instruction.WRITE_METADATA):
            said = of.WRITE_METADATA.read(written)
            packet["metadata"] = packet["metadata"] & ~said.mask | said.metadata & said.mask
        if after := found.get(of.Instruction.GOTO_TABLE):
            yield from self._table(of.GOTO_TABLE.read(after).table, packet)
        else:
            yield from outputs or [DROPPED]

    def _ordered(self, table):
        """The rows of a table, the highest priority first."""
        if table not in self._by_table:
            rows = [row for row in self.tables.rows.values() if row.table == table]
            self._by_table[table] = sorted(rows, key=lambda row: -row.priority)
        return self._by_table[table]

    def _apply(self, actions, packet):
        """Carries actions out on the packet; yields what may leave."""
        for kind, value in actions:
            if kind == of.Action.DEC_TTL:
                packet["ttl"] -= 1
            elif kind == of.Action.SET_FIELD:
                place = of.SET_FIELD.size + of.OXM.size
                field = of.OXM.read(value, of.SET_FIELD.size)
                packet[NAMES[field.field >> 1]] = _number(value[place : place + field.length])
            elif kind == of.Action.EXPERIMENTER:
                _change_field(value, packet)
            elif kind == of.Action.OUTPUT:
                yield self._output(of.OUTPUT.read(value).port, packet)
            elif kind == of.Action.GROUP:
                yield from self._through(of.GROUP.read(value).group, packet)

    def _output(self, port, packet):
        to = packet["in_port"] if port == of.IN_PORT else port
        if port == packet["in_port"] or not self.up.get(to, False) or packet.get("ttl", 1) < 1:
            return DROPPED
        left = {k: v for k, v in packet.items() if k not in ("in_port", "metadata", "reg0")}
        return to, tuple(sorted(left.items()))

    def _through(self, number, packet):
        kind, body = self.tables.groups[number]
        buckets = list(_buckets(body))
        selects, failover = kind == of.GroupType.SELECT, kind == of.GroupType.FAST_FAILOVER
        if self.shape.select_liveness if selects else failover:
            buckets = [b for b in buckets if self._live(b)]
        buckets = buckets if selects else buckets[:1]
        for _, actions in buckets:
            yield from self._apply(actions, dict(packet))
        if not buckets:
            yield DROPPED

    def _live(self, bucket):
        watched, _ = bucket
        if watched.watch_port != of.ANY:
            return self.up.get(watched.watch_port, False)
        group = watched.watch_group
        return group != of.ANY and any(map(self._live, _buckets(self.tables.groups[group][1])))


def hello():
    """The first of.message of either side."""
    return of.message(of.MessageType.HELLO, 1)


def packet_in_of(port: int, frame: bytes) -> bytes:
    """As Open vSwitch sends it: metadata in the match, too."""
    oxm = struct.pack("!LL", 0x80000004, port) + struct.pack("!LQ", 0x80000408, 7)
    match = struct.pack("!HH", 1, 4 + len(oxm)) + oxm
    match += bytes(-len(match) % 8)
    body = struct.pack("!LHBBQ", 0xFFFFFFFF, len(frame), 1, 0, 0) + match + b"\0\0" + frame
    return struct.pack("!BBHL", 4, 10, 8 + len(body), 0) + body


def _typed(data):
    """(type, bytes) of instructions or actions."""
    return [(head.type, whole) for head, whole in listed(data, of.TYPED)]


def _actions(instructions):
    found = dict(_typed(instructions)).get(of.Instruction.APPLY_ACTIONS, b"")
    return _typed(found[of.INSTRUCTION.size :])


def _groups(actions):
    return {of.GROUP.read(value).group for kind, value in actions if kind == of.Action.GROUP}


def _buckets(data):
    """The head of each, and its actions."""
    return [(head, _typed(whole[of.BUCKET.size :])) for head, whole in listed(data, of.BUCKET)]


def _number(data):
    return int.from_bytes(data, "big")


def _property(kind, words):
    """A property of a table: 32-bit words, and padding."""
    body = np.array(words, ">u4").tobytes()
    length = of.PROPERTY.size + len(body)
    return of.PROPERTY.pack(type=kind, length=length) + body + bytes(-length % 8)


def _matches(packet, name, value, mask):
    there = packet.get(name)
    return there is not None and (there == value if mask is None else there & mask == value)


def _change_field(action, packet):
    """NXAST_REG_MOVE and NXAST_REG_LOAD: of bits of a field, into as many bits of another."""
    names = {(*place,): name for name, place in of.MOVABLE.items()}

    def name(field):
        return names[field >> 16, field >> 9 & 0x7F]

    if of.NICIRA_ACTION.read(action).subtype == of.REG_MOVE_SUBTYPE:
        said = of.REG_MOVE.read(action)
        value, target = packet[name(said.source)] >> said.source_offset, name(said.target)
        start, bits = said.target_offset, said.bits
    else:
        said = of.REG_LOAD.read(action)
        value, target = said.value, name(said.target)
        start, bits = said.place >> 6, (said.place & 63) + 1
    mask = (1 << bits) - 1
    packet[target] = packet.get(target, 0) & ~(mask << start) | (value & mask) << start
