"""Switches that do what they are told, for tests of what a controller tells them.

They stand for switches, as none can run here: bundles, flow-mods, group-mods and multipart requests
as the OpenFlow specification has them. The live tests have real ones.
"""

from __future__ import annotations

import struct

import numpy as np

from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import PORT, PORT_STATS, MessageType, Multipart
from controller.openflow import row_forms
from controller.switches.reconcile import Held
from controller.switches.session import LiveFabric

ADD, DELETE_STRICT = 0, 4
GROUP_DELETE = 2
IPV4_MASKED = bytes.fromhex("80001908")
DESCRIPTION = protocol.packed(protocol.DESCRIPTION, hardware=b"Open vSwitch")


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
            (wanted,) = struct.unpack_from("!H", message, 8)
            return [
                protocol.message(19, xid, struct.pack("!HH4x", wanted, 0) + self.report(wanted))
            ]
        if kind == MessageType.PACKET_OUT:
            self.frames.append(message)
        if kind == MessageType.EXPERIMENTER:
            return self.experiment(message, xid)
        return []

    def experiment(self, message, xid):
        _, what, _, request = struct.unpack_from("!IIIH", message, 8)
        if what == 2301:
            if self.refuses:
                return [
                    protocol.message(
                        MessageType.ERROR, xid, struct.pack("!HH", 5, 0) + message[24:32]
                    )
                ]
            self.bundle.append(message[24:])
        elif request == 0:
            self.bundle = []
        elif request == 4:
            for part in self.bundle:
                self.change(part)
            body = struct.pack("!IIIHH", protocol.ONF, 2300, 0x5046, 5, 3)
            return [protocol.message(MessageType.EXPERIMENTER, xid, body)]
        return []

    def change(self, message):
        self.mods.append(message)
        if message[1] == MessageType.GROUP_MOD:
            command, number = struct.unpack_from("!H2xI", message, 8)
            assert (number in self.groups) == (command == 1) or command == GROUP_DELETE
            self.groups.pop(number, None)
            if command != GROUP_DELETE:
                self.groups[number] = message[10:11] + message[16:]
            return
        mod = message[8:]
        form = mod[16:17] + mod[22:24] + mod[18:22] + mod[36:38] + mod[:8] + mod[40:]
        place = row_forms.place(form)
        assert mod[17] in (ADD, DELETE_STRICT)
        self.flows.pop(place, None)
        if mod[17] == ADD:
            self.flows[place] = form, mod

    def counted(self, mod):
        """The bytes that a row has carried."""
        place = mod.find(IPV4_MASKED, 40) + len(IPV4_MASKED)
        return self.carried.get(mod[place : place + 4], 6) if self.carried else 6

    def report(self, wanted):
        if wanted == Multipart.FLOW:
            return b"".join(as_entry(mod, self.counted(mod)) for _, mod in self.flows.values())
        if wanted == Multipart.GROUP_DESC:
            return b"".join(
                struct.pack("!HBxI", 8 + len(group) - 1, group[0], number) + group[1:]
                for number, group in self.groups.items()
            )
        if wanted == Multipart.DESC:
            return DESCRIPTION
        layout = PORT if wanted == Multipart.PORT_DESC else PORT_STATS
        body = np.zeros(len(self.up), layout)
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
        for message in block[:, 24:]:
            switch.change(message.tobytes())
    return switch.held()


def as_entry(mod, carried=6):
    """A row as a switch that holds it reports it."""
    entry = struct.pack("!BxII", mod[16], 77, 88) + mod[22:24] + mod[18:22] + mod[36:38]
    entry += bytes(4) + mod[:8] + struct.pack("!QQ", 5, carried) + mod[40:]
    return struct.pack("!H", len(entry) + 2) + entry


def as_entries(block):
    """Bundled flow-mods as a switch that holds their rows reports them, with ages and counters."""
    return [as_entry(message.tobytes()[32:]) for message in block]


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
        while out := self.fabric.take():
            for message in out:
                self.deliver(message.key, bytes(message.data))

    def deliver(self, key, data):
        while data:
            size = protocol.header(data)[1]
            if key not in self.silent:
                for answer in self.switches[key].answer(data[:size]):
                    self.fabric.received(key, answer)
            data = data[size:]

    def tick(self, seconds=0.25):
        self.now[0] += seconds
        self.fabric.tick()
        self.run()

    def port(self, vertex, port, up, reason=2):
        """A port goes down or comes up (or 1: goes away), and the switch says so."""
        self.switches[vertex].up[port] = up
        described = np.zeros(1, PORT)
        described["port"], described["state"] = port, not up
        body = struct.pack("!B7x", reason) + described.tobytes()
        self.fabric.received(vertex, protocol.message(MessageType.PORT_STATUS, 0, body))

    def cable(self, vertex, link, up):
        """Both ends of a cable."""
        w = self.build.wiring
        self.port(vertex, int(w.port[vertex, link]), up)
        self.port(int(w.far[vertex, link]), int(w.far_port[vertex, link]), up)
        self.run()
