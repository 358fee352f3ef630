"""A switch that reads the bundled OpenFlow messages that we send, and forwards IPv4 by them.

It shares no code with the encoders and the update: the tests' oracle of what a fabric does between
two builds. All ports are up. Like Open vSwitch it drops what an output sends back to where it came
in, unless the output says IN_PORT. A packet is marked by the MAC address that it is sent to.
"""

from __future__ import annotations

import struct

IN_PORT = 0xFFFFFFF8
SELECT, INDIRECT, FAST_FAILOVER = 1, 2, 3
DROP = "dropped"
MARK_SHIFT, MARKED = 16, 0x20000
"""Of an outcome: where the MAC address of a packet that leaves marked begins; in metadata."""


def messages(data):
    """The type and body of each message in bundle-adds, one after the other."""
    place = 0
    while place < len(data):
        length = struct.unpack_from(">H", data, place + 2)[0]
        inner = data[place + 24 : place + length]
        assert struct.unpack_from(">H", inner, 2)[0] == len(inner)
        yield inner[1], inner[8:]
        place += length


class Switch:
    """rows: (table, priority, match) to (cookie, instructions); groups: number to type, buckets."""

    def __init__(self):
        self.rows, self.groups, self._index = {}, {}, None

    def copy(self):
        other = Switch()
        other.rows, other.groups = dict(self.rows), dict(self.groups)
        return other

    def __eq__(self, other):
        return (self.rows, self.groups) == (other.rows, other.groups)

    def apply(self, blocks):
        """Carry out all messages of a bundle."""
        for block in blocks:
            for kind, body in messages(block.tobytes()):
                (self._flow if kind == 14 else self._group)(body)
        self._index = None
        return self

    def _flow(self, body):
        cookie, _, table, command, _, _, priority = struct.unpack_from(">QQBBHHH", body)
        length = struct.unpack_from(">H", body, 42)[0]
        end = 40 + -(-length // 8) * 8
        key = table, priority, body[44 : 40 + length]
        if command == 0:
            self.rows[key] = cookie, body[end:]
        else:
            assert command == 4, command
            assert end == len(body)
            assert key in self.rows, "removes a row that is not there"
            del self.rows[key]

    def _group(self, body):
        command, kind, number = struct.unpack_from(">HBxL", body)
        if command == 2:
            assert number in self.groups, "removes a group that is not there"
            assert not self._leads_to(number), "removes a group that rows lead to"
            del self.groups[number]
            return
        assert (number in self.groups) == (command == 1), "adds a group twice, or changes none"
        self.groups[number] = kind, body[8:]

    def _leads_to(self, number):
        action = struct.pack(">HHL", 22, 8, number)
        return any(action in instructions for _, instructions in self.rows.values())

    # Forwarding

    def outcomes(self, in_port, host, address, mark=0):
        """The ports that a packet may leave by, (port,) for a host's; DROP where there is none.

        mark: the MAC address that it is sent to, 0 for the gateway's; a port by which it leaves
        marked has it above `MARK_SHIFT`.
        """
        if self._index is None:
            self._index = _Index(self)
        return self._index.outcomes(in_port, host, address, mark)


class _Index:
    """The rows of a switch by what they match."""

    def __init__(self, switch):
        self.groups = {n: (kind, list(_buckets(b))) for n, (kind, b) in switch.groups.items()}
        self.entering, self.routes, self.classes = set(), {}, {}
        self.gateway, self.marks, self.spread = 0, {}, []
        for (table, priority, match), (_, instructions) in switch.rows.items():
            fields = dict(_fields(match))
            if table == 0 and priority == 2 and fields[5] == (0x0800, None):
                self.entering.add(fields[0][0])
            elif table == 0 and priority == 1 and fields[5] == (0x0800, None):
                if _writes_mark(instructions):
                    self.marks[fields[3][0]] = instructions
                else:
                    self.gateway = fields[3][0]
            elif table == 1 and 12 in fields:
                value, mask = fields[12]
                length = 32 if mask is None else mask.bit_count()
                assert length == priority
                self.routes.setdefault(length, {})[value] = _route(instructions)
            elif table == 2 and priority == 3:
                self.spread.append((*fields[2], fields[0][0], _bundle_of(instructions)))
            elif table == 2:
                value, mask = fields[2]
                self.classes.setdefault(value & 0xFFFF, []).append(
                    (priority, value, mask, fields.get(0, (None,))[0], _group_of(instructions))
                )
        for rows in self.classes.values():
            rows.sort(key=lambda row: -row[0])

    def outcomes(self, in_port, host, address, mark):
        metadata = 0x10000 if host and in_port in self.entering else 0
        if mark:
            if mark not in self.marks:
                return {DROP}
            assert self.gateway.to_bytes(6, "big") in self.marks[mark], "the mark stays"
            metadata = MARKED
        for length in sorted(self.routes, reverse=True):
            found = self.routes[length].get(address >> 32 - length << 32 - length)
            if found is None:
                continue
            kind, value = found
            if kind == "host":
                return {(value,)}
            return self._class(metadata & ~0xFFFF | value, in_port)
        return {DROP}

    def _class(self, metadata, in_port):
        for value, mask, port, ports in self.spread:
            if metadata & mask == value and in_port == port:
                assert in_port not in ports
                return set(ports) or {DROP}
        rows = [
            row
            for row in self.classes.get(metadata & 0xFFFF, ())
            if metadata & row[2] == row[1] and row[3] in (None, in_port)
        ]
        if not rows:
            return {DROP}
        assert len(rows) == 1 or rows[0][0] > rows[1][0], "two rows of one priority match"
        return self._through(rows[0][4], in_port)

    def _through(self, number, in_port):
        kind, buckets = self.groups[number]
        chosen = buckets if kind == SELECT else buckets[:1]
        found = set()
        for where, value, mark in chosen:
            if where == "group":
                found |= self._through(value, in_port)
            elif value == in_port:
                found.add(DROP)
            else:
                found.add(in_port if value == IN_PORT else value | mark << MARK_SHIFT)
        return found


def _fields(match):
    place = 0
    while place < len(match):
        _, field, size = struct.unpack_from(">HBB", match, place)
        body = match[place + 4 : place + 4 + size]
        half = size // 2 if field & 1 else size
        mask = int.from_bytes(body[half:], "big") if field & 1 else None
        yield field >> 1, (int.from_bytes(body[:half], "big"), mask)
        place += 4 + size


def _route(instructions):
    kind, _ = struct.unpack_from(">HH", instructions)
    if kind == 2:
        value, mask = struct.unpack_from(">QQ", instructions, 8)
        assert mask == 0xFFFF
        return "class", value
    return "host", struct.unpack_from(">L", instructions, len(instructions) - 12)[0]


def _group_of(instructions):
    kind, _, action, _, number = struct.unpack(">HHxxxxHHL", instructions)
    assert (kind, action) == (4, 22)
    return number


def _writes_mark(instructions):
    """Whether instructions, with actions first, write the mark into metadata."""
    length = struct.unpack_from(">H", instructions, 2)[0]
    return instructions[length + 8 : length + 24] == struct.pack(">QQ", MARKED, MARKED)


def _bundle_of(instructions):
    """The ports of a bundle action of Nicira's, which is all that a row does."""
    kind, _, action, length, vendor, subtype = struct.unpack_from(">HHxxxxHHLH", instructions)
    assert (kind, action, vendor, subtype) == (4, 0xFFFF, 0x2320, 12)
    count = struct.unpack_from(">H", instructions, 8 + 20)[0]
    assert length == len(instructions) - 8 == 32 + -(-count // 4) * 8
    return struct.unpack_from(f">{count}H", instructions, 8 + 32)


def _buckets(data):
    place = 0
    while place < len(data):
        size, _ = struct.unpack_from(">HH", data, place)
        end, at = place + size, place + 16
        action, length, value = struct.unpack_from(">HHL", data, at)
        mark = 0
        while action in (0xFFFF, 25):  # what is done to the TTL, and the MAC address
            if action == 25:
                assert value == 3 << 9 | 0x80000000 | 6
                mark = int.from_bytes(data[at + 8 : at + 14], "big")
            at += length
            action, length, value = struct.unpack_from(">HHL", data, at)
        assert at + length == end
        yield ("group" if action == 22 else "port"), value, mark
        place = end
