"""A switch that reads the bundled OpenFlow messages that we send, and forwards IPv4 by them.

It shares only layouts with the encoders and the update: the tests' oracle of what a fabric does
between two builds. All ports are up. Like Open vSwitch it drops what an output sends back to where
it came in, unless the output says IN_PORT. A packet is marked by the MAC address it is sent to, or
carries an intermediate there.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from compilers.targets.openflow import protocol as of
from tests.controller.message_lists import listed

APPLY, DROP = of.Instruction.APPLY_ACTIONS, "dropped"
APPLIED = of.Action.EXPERIMENTER
IPV4 = 0x0800
MARK_SHIFT, MARKED = 16, 0x20000
"""Of an outcome: where the MAC address of a packet that leaves marked begins; in metadata."""
remembered = lru_cache(1 << 14)
"""For functions of bytes: many switches hold the same rows, before and after a change of others."""
NAMES = {(space, number): name for name, (space, number, _) in of.FIELDS.items()}


def messages(data):
    """The type and body of each message in bundle-adds, one after the other."""
    for _, outer in listed(data, of.HEADER):
        for head, inner in listed(outer[of.WRAPPER_BYTES :], of.HEADER):
            yield head.type, inner[of.HEADER.size :]


class Switch:
    """rows: (table, priority, match) to (cookie, instructions); groups: number to type, buckets."""

    def __init__(self):
        self.rows, self.groups, self._index = {}, {}, None

    def copy(self):
        other = Switch()
        other.rows, other.groups = dict(self.rows), dict(self.groups)
        other._index = self._index  # it is made anew when rows change
        return other

    def __eq__(self, other):
        return (self.rows, self.groups) == (other.rows, other.groups)

    def apply(self, blocks):
        """Carry out all messages of a bundle."""
        for block in blocks:
            for kind, body in messages(block.tobytes()):
                (self._flow if kind == of.MessageType.FLOW_MOD else self._group)(body)
        self._index = None
        return self

    def _flow(self, body):
        row = of.FLOW_MOD.read(body)
        start = of.FLOW_MOD.size - of.MATCH.size
        end = start + of.padded(row.match_length)
        key = row.table, row.priority, body[of.FLOW_MOD.size : start + row.match_length]
        if row.command == of.FlowCommand.ADD:
            self.rows[key] = row.cookie, body[end:]
        else:
            assert row.command == of.FlowCommand.DELETE_STRICT, row
            assert end == len(body)
            assert key in self.rows, "removes a row that is not there"
            del self.rows[key]

    def _group(self, body):
        said = of.GROUP_MOD.read(body)
        there = said.group in self.groups
        if said.command == of.GroupCommand.DELETE:
            assert there, "removes a group that is not there"
            assert not self._leads_to(said.group), "removes a group that rows lead to"
            del self.groups[said.group]
            return
        changes = said.command == of.GroupCommand.MODIFY
        assert there == changes, "adds a group twice, or changes none"
        self.groups[said.group] = said.type, body[of.GROUP_MOD.size :]

    def _leads_to(self, number):
        action = of.GROUP.pack(type=of.Action.GROUP, length=of.GROUP.size, group=number)
        return any(action in instructions for _, instructions in self.rows.values())

    # Forwarding

    def outcomes(self, in_port, source, address, mark=0):
        """The ports that a packet may leave by, (port,) for a host's; DROP where there is none.

        source: its source address, 0 for a packet in transit.
        mark: the MAC address that it is sent to, 0 for the gateway's; a port by which it leaves
        marked has it above `MARK_SHIFT`.
        """
        if self._index is None:
            self._index = _Index(self)
        packet = in_port, source, address, mark
        known = self._index.known
        if packet not in known:
            known[packet] = self._index.outcomes(*packet)
        return known[packet]


class _Index:
    """The rows of a switch by what they match."""

    def __init__(self, switch):
        self.known = {}
        self.groups = {n: (kind, _buckets(b)) for n, (kind, b) in switch.groups.items()}
        self.routes, self.classes, self.carried = {}, {}, {}
        self.gateway, self.dispatch, self.spread = 0, [], []
        for (table, priority, match), (_, instructions) in switch.rows.items():
            fields = dict(_fields(match))
            if table == 0:
                if fields.pop("eth_type", (IPV4, None)) == (IPV4, None):
                    self.dispatch.append((priority, fields, instructions))
                    if fields.keys() == {"eth_dst"} and not _written(instructions):
                        value, mask = fields["eth_dst"]
                        self.gateway = self.gateway if mask else value
            elif table == 1 and priority == 200:
                self.carried[fields["eth_dst"][0]] = _written(instructions)
            elif table == 2 and "reg0" in fields:
                pass  # for ports that are down; here all are up
            elif table == 1 and "ipv4_dst" in fields:
                value, mask = fields["ipv4_dst"]
                length = 32 if mask is None else mask.bit_count()
                assert length == priority
                self.routes.setdefault(length, {})[value] = _route(instructions)
            elif table == 2 and priority == 3:
                ports = _bundle_of(instructions)
                self.spread.append((*fields["metadata"], fields["in_port"][0], ports))
            elif table == 2:
                value, mask = fields["metadata"]
                came = fields.get("in_port", (None,))[0]
                self.classes.setdefault(value & 0xFFFF, []).append(
                    (priority, value, mask, came, _led(instructions))
                )
        for rows in self.classes.values():
            rows.sort(key=lambda row: -row[0])

    def outcomes(self, in_port, source, address, mark):
        packet = {
            "in_port": in_port,
            "eth_dst": mark or self.gateway,
            "ipv4_src": source,
            "ipv4_dst": address,
        }
        matching = [row for row in self.dispatch if _matches(row[1], packet)]
        best = max((row[0] for row in matching), default=0)
        taken = [row[2] for row in matching if row[0] == best]
        if not taken or not taken[0]:
            return {DROP}
        assert len(taken) == 1, "two rows of one priority match"
        written = _written(taken[0])
        if written == (MARKED, MARKED):
            assert self.gateway.to_bytes(6, "big") in taken[0], "the mark stays"
            return self._routed(MARKED, in_port, address)
        if written:
            return self._routed(written[0], in_port, address)
        if len(_done(taken[0])) > 1:
            drawn = _drawn(taken[0])
            return set().union(*(self._carried(mac, in_port, address) for mac in drawn))
        return self._carried(mark, in_port, address) if mark else self._routed(0, in_port, address)

    def _carried(self, mac, in_port, address):
        """What becomes of a packet by the way of an intermediate: it keeps its address, or is one
        that came in nowhere.
        """
        if mac not in self.carried:
            return {DROP}
        if (written := self.carried[mac]) is None:
            return self._routed(0, 0, address)
        assert written[1] == 0xFFFF
        out = self._class(written[0], in_port)
        return {each if each == DROP else each | mac << MARK_SHIFT for each in out}

    def _routed(self, metadata, in_port, address):
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

    def _through(self, led, in_port):
        if isinstance(led, tuple):
            return {DROP if port == in_port else port for port in led}
        kind, buckets = self.groups[led]
        chosen = buckets if kind == of.GroupType.SELECT else buckets[:1]
        found = set()
        for where, value, mark in chosen:
            if where == "group":
                found |= self._through(value, in_port)
            elif value == in_port:
                found.add(DROP)
            else:
                found.add(in_port if value == of.IN_PORT else value | mark << MARK_SHIFT)
        return found


def _matches(fields, packet):
    """Whether a packet has the values of a match."""
    return all(
        name in packet and packet[name] & (-1 if mask is None else mask) == value
        for name, (value, mask) in fields.items()
    )


@remembered
def _fields(match):
    """Name, value and mask of each field that a match has."""
    return tuple(_read_fields(match))


def _read_fields(match):
    place = 0
    while place < len(match):
        head, start = of.OXM.read(match, place), place + of.OXM.size
        place = start + head.length
        body = match[start:place]
        half = head.length // 2 if head.field & 1 else head.length
        mask = int.from_bytes(body[half:], "big") if head.field & 1 else None
        yield NAMES[head.space, head.field >> 1], (int.from_bytes(body[:half], "big"), mask)


@remembered
def _route(instructions):
    if written := _written(instructions):
        value, mask = written
        assert mask == 0xFFFF
        return "class", value
    return "host", of.OUTPUT.read(_done(instructions)[-1]).port


@remembered
def _done(instructions):
    """The actions that are applied at once."""
    done = [whole for head, whole in listed(instructions, of.TYPED) if head.type == APPLY]
    return [action for each in done for _, action in listed(each[of.INSTRUCTION.size :], of.TYPED)]


@remembered
def _written(instructions):
    """What is written into metadata, and the mask."""
    for head, whole in listed(instructions, of.TYPED):
        if head.type == of.Instruction.WRITE_METADATA:
            said = of.WRITE_METADATA.read(whole)
            return said.metadata, said.mask
    return None


@remembered
def _drawn(instructions):
    """The MAC addresses of all intermediates that a packet may get."""
    *_, sets, draws = _done(instructions)
    ((name, (first, _)),) = _fields(sets[of.SET_FIELD.size :][: of.OXM.size + 6])
    said = of.MULTIPATH.read(draws)
    kind = said.type, said.experimenter, said.subtype
    assert (name, *kind) == ("eth_dst", APPLIED, of.NICIRA, of.MULTIPATH_SUBTYPE)
    return range(first, first + said.most + 1)


@remembered
def _led(instructions):
    """The group that a row leads to, or the ports that share its packets."""
    (action,) = _done(instructions)
    if of.TYPED.read(action).type == APPLIED:
        return _bundle_of(instructions)
    said = of.GROUP.read(action)
    assert said.type == of.Action.GROUP
    return said.group


def _bundle_of(instructions):
    """The ports of a bundle action of Nicira's, which is all that a row does."""
    (action,) = _done(instructions)
    said = of.BUNDLE_ACTION.read(action)
    kind = said.type, said.experimenter, said.subtype
    assert kind == (of.Action.EXPERIMENTER, of.NICIRA, of.BUNDLE_SUBTYPE)
    assert len(action) == of.BUNDLE_ACTION.size + of.padded(2 * said.member_count)
    ports = np.frombuffer(action, ">u2", said.member_count, of.BUNDLE_ACTION.size)
    return tuple(ports.tolist())


@remembered
def _buckets(data):
    """What each bucket of a group does with a packet."""
    return tuple(_read_buckets(data))


def _read_buckets(data):
    for _, whole in listed(data, of.BUCKET):
        mark = 0
        *before, (last, action) = listed(whole[of.BUCKET.size :], of.TYPED)
        for head, done in before:  # what is done to the TTL, and the MAC address
            assert head.type in (of.Action.EXPERIMENTER, of.Action.SET_FIELD)
            if head.type == of.Action.SET_FIELD:
                ((name, (mark, _)),) = _fields(done[of.SET_FIELD.size :][: of.OXM.size + 6])
                assert name == "eth_dst"
        if last.type == of.Action.GROUP:
            yield "group", of.GROUP.read(action).group, mark
        else:
            assert last.type == of.Action.OUTPUT
            yield "port", of.OUTPUT.read(action).port, mark
