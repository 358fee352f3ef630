"""The switch's end of a connection: tells what it holds, carries out bundles or refuses them."""

from __future__ import annotations

import numpy as np

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import protocol
from compilers.targets.openflow.message_parts import bundle
from compilers.targets.openflow.protocol import (
    AGGREGATE_STATS,
    BUNDLE_CONTROL,
    ERROR,
    EXPERIMENTER_ERROR,
    FLOW_STATS,
    GROUP_DESC,
    HEADER,
    MATCH,
    MULTIPART,
    ONF,
    OXM_MATCH,
    Bundle,
    ErrorType,
    MessageType,
    Multipart,
    OnfMessage,
    padded,
)
from controller.openflow.messages import BUNDLE_TIMEOUT
from tests.compilers.targets.openflow_switch import Switch
from tests.controller.reported import DESCRIPTION, multipart

FLOW_FAILED = ERROR.pack(type=ErrorType.FLOW_MOD, code=1)
TIMED_OUT = EXPERIMENTER_ERROR.pack(
    type=ErrorType.EXPERIMENTER, code=BUNDLE_TIMEOUT, experimenter=ONF
)


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
            what = MULTIPART.read(message, HEADER.size).kind
            told = {
                Multipart.DESC: lambda: DESCRIPTION,
                Multipart.FLOW: self._flows,
                Multipart.GROUP_DESC: self._groups,
                Multipart.AGGREGATE: lambda: AGGREGATE_STATS.pack(flows=len(self.switch.rows)),
            }
            yield multipart(what, xid, told.get(what, bytes)())
        elif kind == MessageType.BARRIER_REQUEST:
            yield protocol.message(MessageType.BARRIER_REPLY, xid)
        elif kind == MessageType.ECHO_REQUEST:
            yield protocol.message(MessageType.ECHO_REPLY, xid)
        elif kind == MessageType.EXPERIMENTER:
            yield from self._bundle(xid, message)

    def _bundle(self, xid, message):
        said = BUNDLE_CONTROL.read(message, HEADER.size)
        if said.kind == OnfMessage.BUNDLE_ADD:
            if not self.takes and not self._filled:
                quoted = protocol.message(MessageType.FLOW_MOD, xid, bytes(56))
                yield protocol.message(MessageType.ERROR, xid, self.fault + quoted)
            self._filled.append(np.frombuffer(message, np.uint8)[None, :])
        elif said.request == Bundle.COMMIT:
            self.switch.apply(self._filled)
            self._filled = []
            self.takes -= 1
            yield bundle(Bundle.COMMIT_REPLY, rows.BUNDLE, xid)
        elif said.request == Bundle.DISCARD:
            self._filled, self.takes = [], 1 << 30

    def _flows(self):
        found = []
        for (table, priority, match), (cookie, instructions) in self.switch.rows.items():
            length = MATCH.size + len(match)
            rest = match + bytes(padded(length) - length) + instructions
            head = FLOW_STATS.pack(
                length=FLOW_STATS.size + len(rest),
                table=table,
                seconds=1,
                nanoseconds=2,
                priority=priority,
                cookie=cookie,
                packets=3,
                bytes=4,
                match_type=OXM_MATCH,
                match_length=length,
            )
            found.append(head + rest)
        return b"".join(found)

    def _groups(self):
        found = []
        for number, (kind, buckets) in self.switch.groups.items():
            length = GROUP_DESC.size + len(buckets)
            found.append(GROUP_DESC.pack(length=length, type=kind, group=number) + buckets)
        return b"".join(found)
