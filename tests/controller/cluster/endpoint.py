"""The switch's end of a connection: tells what it holds, carries out bundles or refuses them."""

from __future__ import annotations

import struct

import numpy as np

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import MessageType
from tests.compilers.targets.openflow_switch import Switch
from tests.controller.fake_switches import DESCRIPTION

COMMIT, DISCARD, CONTROL, ADD = 4, 6, 2300, 2301
DESC, FLOW, GROUP_DESC = 0, 1, 7
FLOW_FAILED = struct.pack("!HH", 5, 1)
TIMED_OUT = struct.pack("!HHI", 0xFFFF, 2314, protocol.ONF)


class Endpoint:
    """takes: how many bundles more it finds no fault in; fault: what it says then.

    silent: whether it answers at all.
    """

    def __init__(self, datapath_id, switch=None):
        self.datapath_id, self.switch = datapath_id, switch or Switch()
        self.takes, self.silent = 1 << 30, False
        self.fault, self._filled = FLOW_FAILED, []

    def take(self, data):
        """Read what it is sent; gives the answers."""
        answers = []
        while data:
            kind, length, xid = protocol.header(data)
            message, data = bytes(data[:length]), data[length:]
            answers += self._answer(kind, xid, message)
        return [] if self.silent else answers

    def _answer(self, kind, xid, message):
        if kind == MessageType.MULTIPART_REQUEST:
            what = struct.unpack_from("!H", message, 8)[0]
            told = {DESC: lambda: DESCRIPTION, FLOW: self._flows, GROUP_DESC: self._groups}
            body = told.get(what, bytes)()
            yield protocol.message(
                MessageType.MULTIPART_REPLY, xid, struct.pack("!HH4x", what, 0) + body
            )
        elif kind == MessageType.BARRIER_REQUEST:
            yield protocol.message(MessageType.BARRIER_REPLY, xid)
        elif kind == MessageType.EXPERIMENTER:
            yield from self._bundle(xid, message)

    def _bundle(self, xid, message):
        _, request, _, control = struct.unpack_from("!IIIH", message, 8)
        if request == ADD:
            if not self.takes and not self._filled:
                quoted = protocol.message(14, xid, bytes(56))
                yield protocol.message(MessageType.ERROR, xid, self.fault + quoted)
            self._filled.append(np.frombuffer(message, np.uint8)[None, :])
        elif control == COMMIT:
            self.switch.apply(self._filled)
            self._filled = []
            self.takes -= 1
            body = struct.pack("!IIIHH", protocol.ONF, CONTROL, rows.BUNDLE, COMMIT + 1, 3)
            yield protocol.message(MessageType.EXPERIMENTER, xid, body)
        elif control == DISCARD:
            self._filled, self.takes = [], 1 << 30

    def _flows(self):
        found = []
        for (table, priority, match), (cookie, instructions) in self.switch.rows.items():
            padded = struct.pack("!HH", 1, 4 + len(match)) + match
            padded += bytes(-len(padded) % 8)
            head = struct.pack("!BxIIHHHH4xQQQ", table, 1, 2, priority, 0, 0, 0, cookie, 3, 4)
            entry = head + padded + instructions
            found.append(struct.pack("!H", len(entry) + 2) + entry)
        return b"".join(found)

    def _groups(self):
        found = []
        for number, (kind, buckets) in self.switch.groups.items():
            found.append(struct.pack("!HBxL", 8 + len(buckets), kind, number) + buckets)
        return b"".join(found)
