"""A fabric of conforming switches: cables between them, what its hosts send, and who gets it."""

from __future__ import annotations

import select
import socket
import struct
from dataclasses import replace
from functools import cached_property
from itertools import count
from time import monotonic

import numpy as np

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow import protocol as of
from tests.controller.switches.conforming_switch import (
    DROPPED,
    ConformingSwitch,
    Shape,
    hello,
    packet_in_of,
)

MOST_HOPS = 8
OPEN_VSWITCH = Shape(made=b"Open vSwitch")


def strict(ids):
    """Switches without ports by their datapath ids, which hold a controller to account."""
    shape = replace(OPEN_VSWITCH, strict=True)
    return {number: ConformingSwitch(number, (), shape) for number in map(int, ids)}


def numbers(kind, code):
    """The names of error numbers."""
    return f"error {kind}", f"code {code}"


class ConformingFabric:
    """The switches of a build, all of one shape. send(vertex, bytes) tells their controller.

    silent: the ends of cables that carry nothing of what is sent there, though both ports are up.
    """

    def __init__(self, build, shape, send):
        self.build, self.send, w = build, send, build.wiring
        self._judged, self.silent = (None, []), set()
        self.hosts = [
            (v, h, int(port)) for v, row in enumerate(w.host_port) for h, port in enumerate(row)
        ]
        self.switches = [
            ConformingSwitch(int(w.datapath_id[v]), [*_there(w.port[v]), *_there(row)], shape)
            for v, row in enumerate(w.host_port)
        ]
        self.far = {
            (v, int(w.port[v, k])): (int(w.far[v, k]), int(w.far_port[v, k]))
            for v, k in np.argwhere(w.far >= 0).tolist()
        }
        self.links = [end for end, far in self.far.items() if end < far]

    def cable(self, end, up, tell=True):
        """Both ends of a cable go down or come up; whether the controller is told."""
        for vertex, port in (end, self.far[end]):
            said = self.switches[vertex].link(port, up)
            if tell:
                self.send(vertex, said)

    def lost(self):
        """Pairs of hosts some of whose packets are lost, loop, or arrive as they should not."""
        state = [*self.silent], [(one, one.changes, *one.up.items()) for one in self.switches]
        if self._judged[0] != state:
            self._judged = state, self._lost()
        return [*self._judged[1]]

    def _lost(self):
        memo = {}
        return [
            (source, target)
            for (source, target), packet in self._packets.items()
            if not self._arrives(*source[::2], packet, target, memo)
        ]

    @cached_property
    def _packets(self):
        """By pair of hosts, what the first sends to the second; none without addresses."""
        if not (a := self.build.addressing):
            return {}
        address = {end: int(a.host(*end[:2])) for end in self.hosts}
        common = {"eth_dst": a.gateway_mac, "eth_src": 1, "eth_type": 0x0800, "ttl": 64}
        return {
            (source, target): tuple(
                sorted((common | {"ipv4_src": sender, "ipv4_dst": receiver}).items())
            )
            for target, receiver in address.items()
            for source, sender in address.items()
            if source != target
        }

    def _arrives(self, vertex, in_port, packet, target, memo, hops=0):
        """Whether every path that a packet may take from here ends at its host."""
        key = vertex, in_port, packet
        if key not in memo:
            memo[key] = hops < MOST_HOPS and all(
                path is not DROPPED and self._goes_on(vertex, *path, target, memo, hops)
                for path in self.switches[vertex].forward(in_port, dict(packet))
            )
        return memo[key]

    def _goes_on(self, vertex, port, packet, target, memo, hops):
        fields = dict(packet)
        assert fields.pop("ttl") == 63
        fields.pop("ipv4_src", None)  # only the first switch may look at it
        if (vertex, port) in self.silent:
            return False
        if (vertex, port) in self.far:
            onward = tuple(sorted((fields | {"ttl": 64}).items()))
            return self._arrives(*self.far[vertex, port], onward, target, memo, hops + 1)
        mac = int(self.build.addressing.host_mac[target[0], target[1]])
        rewritten = fields["eth_dst"] == mac and fields["eth_src"] == self.gateway_mac
        return (vertex, port) == (target[0], target[2]) and rewritten

    @property
    def gateway_mac(self):
        return self.build.addressing.gateway_mac

    def unanswered(self):
        """Hosts that get a wrong answer, or none, to an ARP request for gateway and neighbours."""
        a, wrong = self.build.addressing, []
        for vertex, host, port in self.hosts:
            mac, own = int(a.host_mac[vertex, host]), int(a.host(vertex, host))
            mates = [int(a.host(v, h)) for v, h, _ in self.hosts if v == vertex]
            for target in (int(a.gateway(vertex)), *mates):
                ask = {"eth_type": 0x0806, "arp_op": 1, "arp_sha": mac, "arp_spa": own}
                ask |= {"eth_dst": (1 << 48) - 1, "eth_src": mac, "arp_tha": 0, "arp_tpa": target}
                answer = {"eth_type": 0x0806, "arp_op": 2, "arp_sha": self.gateway_mac}
                answer |= {"eth_src": self.gateway_mac, "eth_dst": mac, "arp_tha": mac}
                answer |= {"arp_spa": target, "arp_tpa": own}
                expected = DROPPED if target == own else (port, tuple(sorted(answer.items())))
                if self.switches[vertex].forward(port, ask) != [expected]:
                    wrong.append((vertex, host, target))
        return wrong


def _there(ports):
    return [int(port) for port in ports if port > 0]


class InMemory:
    """The switches of a build without sockets, the sessions of a controller, and its clock.

    hung: those that say nothing, and whose connections stay. also: what a tick does besides.
    """

    def __init__(self, build, sessions, now, shape=OPEN_VSWITCH):
        self.also = []
        self.build, self.sessions, self.now, self.hung = build, sessions, now, set()
        self.fabric = ConformingFabric(build, shape, sessions.received)
        self.switches = self.fabric.switches

    def connect(self, *vertices):
        for v in vertices or range(len(self.switches)):
            self.sessions.connected(v, self.switches[v].datapath_id)
        self.run()

    def run(self):
        """Carry messages until nobody has anything to say."""
        while out := self.sessions.send.take():
            for one in out:
                if one.data is None:
                    self.sessions.closed(one.key)
                elif one.key not in self.hung:
                    self._answers(one.key, self.switches[one.key].take(bytes(one.data)))

    def _answers(self, key, data):
        while data:
            length = of.HEADER.read(data).length
            try:
                self.sessions.received(key, data[:length])
            except Malformed as error:
                self.sessions.malformed(key, str(error))
                self.sessions.closed(key)
                return
            data = data[length:]

    def tick(self, seconds=0.25):
        self.now[0] += seconds
        self.sessions.tick()
        for one in self.also:
            one()
        self.run()

    def carry_frames(self):
        """Carry the LLDP frames that switches were told to send; those with a row for them tell."""
        for vertex, switch in enumerate(self.switches):
            for message in switch.frames:
                end = vertex, int.from_bytes(message[28:32], "big")
                far, far_port = self.fabric.far[end]
                tells = far in self.sessions.present and far not in self.hung
                if tells and end not in self.fabric.silent and self.switches[far].reports_lldp:
                    self.sessions.received(far, packet_in_of(far_port, message[40:]))
            switch.frames.clear()

    def port(self, vertex, port, up, reason=of.PORT_MODIFIED):
        """A port goes down or comes up (or 1: goes away), and the switch says so."""
        self.sessions.received(vertex, self.switches[vertex].link(port, up, reason))

    def cable(self, vertex, link, up):
        """Both ends of a cable."""
        self.fabric.cable((vertex, int(self.build.wiring.port[vertex, link])), up)
        self.run()


class Loopback:
    """The connections of a fabric to a controller on this machine, and of switches of others.

    hung: sockets of switches that read nothing and say nothing.
    """

    def __init__(self, build, shape, port, foreign=()):
        self.fabric = ConformingFabric(build, shape, self._send)
        self.others = [ConformingSwitch(number, [1, 2, 3], shape) for number in foreign]
        self.every = [*self.fabric.switches, *self.others]
        self.sockets, self.hung = [], set()
        for _ in self.every:
            sock = socket.create_connection(("127.0.0.1", port))
            sock.sendall(hello())
            self.sockets.append(sock)

    def _send(self, vertex, data):
        self.sockets[vertex].sendall(data)

    def tell(self, switch, data):
        """A switch says something of its own accord."""
        self.sockets[self.every.index(switch)].sendall(data)

    def until(self, true, what, limit=90.0):
        """Carry messages until this is so; looked at when something has changed, and at times."""
        seen, end = -1, monotonic() + limit
        for turn in count():
            assert monotonic() < end, f"{what}: not within {limit} s"
            heard = [sock for sock in self.sockets if sock not in self.hung]
            ready = select.select(heard, [], [], 0.05)[0]
            for sock in ready:
                data = sock.recv(1 << 18)
                assert data, "the controller closed a connection"
                sock.sendall(self.every[self.sockets.index(sock)].take(data))
            changes = sum(switch.changes for switch in self.every)
            if (changes != seen and not ready) or turn % 5 == 0:
                seen = changes
                if true():
                    return

    def close(self):
        """End all connections at once."""
        for sock in self.sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
