"""Switches that do what they are told, for tests of what a controller tells them.

They stand for switches, as none can run here: bundles, flow-mods, group-mods and multipart requests
as the OpenFlow specification has them. The live tests have real ones.
"""

from __future__ import annotations

import numpy as np

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.bundled_blocks import GROUP_FORM, ROW
from compilers.targets.openflow.protocol import (
    BUNDLE_CONTROL,
    BUNDLED,
    ERROR,
    FLOW_MOD,
    FLOW_STATS,
    GROUP_DESC,
    GROUP_MOD,
    HEADER,
    MULTIPART,
    OXM,
    PORT,
    PORT_MODIFIED,
    PORT_STATS,
    PORT_STATUS,
    WRAPPER_BYTES,
    Bundle,
    ErrorType,
    FlowCommand,
    GroupCommand,
    Malformed,
    MessageType,
    Multipart,
    OnfMessage,
)
from controller.openflow import row_forms
from controller.switches.reconcile import Held
from controller.switches.session import LiveFabric

IPV4_MASKED = parts.oxm("ipv4_dst", 0, 0)[0]
DESCRIPTION = protocol.DESCRIPTION.pack(hardware=b"Open vSwitch")


class FakeSwitch:
    """A switch of a build: its rows and groups, ports that are up, bytes that left by each.

    carried: the bytes of IPv4 routes, by their network as four bytes.
    """

    def __init__(self, ports):
        self.flows, self.groups, self.bundle = {}, {}, []
        self.up = dict.fromkeys(ports, True)
        self.sent = dict.fromkeys(ports, 0)
        self.frames, self.mods = [], []
        self.refuses = False
        self.carried = {}

    def held(self):
        forms = (np.frombuffer(form, np.uint8)[None] for form, _ in self.flows.values())
        return Held(tuple(forms), groups=self.groups)

    def answer(self, message):
        """What it says to a message."""
        kind, _, xid = protocol.header(message)
        if kind == MessageType.BARRIER_REQUEST:
            return [protocol.message(MessageType.BARRIER_REPLY, xid)]
        if kind == MessageType.ECHO_REQUEST:
            return [protocol.message(MessageType.ECHO_REPLY, xid)]
        if kind == MessageType.MULTIPART_REQUEST:
            wanted = MULTIPART.read(message, HEADER.size).kind
            return [multipart(wanted, xid, self.report(wanted))]
        if kind == MessageType.PACKET_OUT:
            self.frames.append(message)
        if kind == MessageType.EXPERIMENTER:
            return self.experiment(message, xid)
        return []

    def experiment(self, message, xid):
        said = BUNDLE_CONTROL.read(message, HEADER.size)
        if said.kind == OnfMessage.BUNDLE_ADD:
            added = message[WRAPPER_BYTES:]
            if self.refuses:
                refusal = ERROR.pack(type=ErrorType.FLOW_MOD) + added[: HEADER.size]
                return [protocol.message(MessageType.ERROR, xid, refusal)]
            self.bundle.append(added)
        elif said.request == Bundle.OPEN:
            self.bundle = []
        elif said.request == Bundle.COMMIT:
            for part in self.bundle:
                self.change(part)
            return [parts.bundle(Bundle.COMMIT_REPLY, rows.BUNDLE, xid)]
        return []

    def change(self, message):
        self.mods.append(message)
        kind, mod = protocol.header(message)[0], message[HEADER.size :]
        if kind == MessageType.GROUP_MOD:
            said, removes = GROUP_MOD.read(mod), GroupCommand.DELETE
            changes = said.command == GroupCommand.MODIFY
            assert (said.group in self.groups) == changes or said.command == removes
            self.groups.pop(said.group, None)
            if said.command != removes:
                self.groups[said.group] = restated(mod, GROUP_MOD, GROUP_FORM)
            return
        form, command = restated(mod, FLOW_MOD, ROW), FLOW_MOD.read(mod).command
        place = row_forms.place(form)
        assert command in (FlowCommand.ADD, FlowCommand.DELETE_STRICT)
        self.flows.pop(place, None)
        if command == FlowCommand.ADD:
            self.flows[place] = form, mod

    def counted(self, mod):
        """The bytes that a row has carried."""
        place = mod.find(IPV4_MASKED, FLOW_MOD.size) + OXM.size
        return self.carried.get(mod[place : place + 4], 6) if self.carried else 6

    def report(self, wanted):
        if wanted == Multipart.FLOW:
            return b"".join(as_entry(mod, self.counted(mod)) for _, mod in self.flows.values())
        if wanted == Multipart.GROUP_DESC:
            return b"".join(
                restated(group, GROUP_FORM, GROUP_DESC, group=number)
                for number, group in self.groups.items()
            )
        if wanted == Multipart.AGGREGATE:
            return protocol.AGGREGATE_STATS.pack(flows=len(self.flows))
        if wanted == Multipart.DESC:
            return DESCRIPTION
        layout = PORT if wanted == Multipart.PORT_DESC else PORT_STATS
        body = np.zeros(len(self.up), layout.dtype)
        body["port"] = list(self.up)
        if layout is PORT:
            body["state"] = [not up for up in self.up.values()]
            body["current_speed"] = 1000
        else:
            body["sent_bytes"] = list(self.sent.values())
        return body.tobytes()


def held_by(program):
    """What a switch holds that has just this program."""
    switch = FakeSwitch(())
    for block in (*program.groups, *program.flows):
        for message in block[:, WRAPPER_BYTES:]:
            switch.change(message.tobytes())
    return switch.held()


def as_entry(mod, carried=6):
    """A row as a switch that holds it reports it."""
    counted = {"seconds": 77, "nanoseconds": 88, "packets": 5, "bytes": carried}
    return restated(mod, FLOW_MOD, FLOW_STATS, **counted)


def restated(data, layout, form, **members):
    """A structure in another form: its members of one name, these, and what follows it."""
    said = layout.read(data)._asdict()
    members |= {name: value for name, value in said.items() if name in form.formats}
    rest = data[layout.size :]
    if "length" in form.formats:
        members["length"] = form.size + len(rest)
    return form.pack(**members) + rest


def multipart(kind, xid, body=b"", more=0):
    """A part of a multipart reply."""
    head = MULTIPART.pack(kind=kind, flags=more)
    return protocol.message(MessageType.MULTIPART_REPLY, xid, head + body)


def as_entries(block):
    """Bundled flow-mods as a switch that holds their rows reports them, with ages and counters."""
    return [as_entry(message.tobytes()[BUNDLED:]) for message in block]


class FakeNetwork:
    """All switches of a build, and the fabric that they are connected to; time is `now`."""

    def __init__(self, build, fabric: LiveFabric, now):
        wiring = build.wiring
        self.build, self.fabric, self.now = build, fabric, now
        self.switches = [
            FakeSwitch(wiring.port[v][wiring.port[v] > 0].tolist()) for v in range(len(wiring.far))
        ]
        self.silent = set()

    def connect(self, *vertices):
        for v in vertices or range(len(self.switches)):
            self.fabric.connected(v, int(self.build.wiring.datapath_id[v]))
        self.run()

    def run(self):
        """Carry messages until nobody has anything to say."""
        while out := self.fabric.send.take():
            for message in out:
                if message.data is None:
                    self.fabric.closed(message.key)
                else:
                    self.deliver(message.key, bytes(message.data))

    def deliver(self, key, data):
        while data:
            size = protocol.header(data)[1]
            if key not in self.silent:
                for answer in self.switches[key].answer(data[:size]):
                    try:
                        self.fabric.received(key, answer)
                    except Malformed as error:
                        self.fabric.malformed(key, str(error))
                        self.fabric.closed(key)
                        return
            data = data[size:]

    def tick(self, seconds=0.25):
        self.now[0] += seconds
        self.fabric.tick()
        self.run()

    def port(self, vertex, port, up, reason=PORT_MODIFIED):
        """A port goes down or comes up (or 1: goes away), and the switch says so."""
        self.switches[vertex].up[port] = up
        body = PORT_STATUS.pack(reason=reason, port=port, state=not up)
        self.fabric.received(vertex, protocol.message(MessageType.PORT_STATUS, 0, body))

    def cable(self, vertex, link, up):
        """Both ends of a cable."""
        w = self.build.wiring
        self.port(vertex, int(w.port[vertex, link]), up)
        self.port(int(w.far[vertex, link]), int(w.far_port[vertex, link]), up)
        self.run()
