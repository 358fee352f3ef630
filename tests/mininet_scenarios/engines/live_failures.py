"""Run in namespaces of its own by test_failures_live.py: packets while links are down; prints JSON.

live_failures.py BUILD LOGS CASES FLOWS DEAD: programs the switches through a real controller, ends
it, and then takes down the links of each of CASES, JSON lists of [vertex, link], in turn. FLOWS is
null or [vertex, [other vertices], flows to each]: how these leave the vertex is counted, all links
up. DEAD is null or a vertex: all others send to it while all its links are down.
"""

import ctypes
import json
import os
import resource
import select
import socket
import struct
import sys
import time
from itertools import permutations
from pathlib import Path

import numpy as np

from mininet_scenarios.engines.inner_child import OPEN_FILES
from mininet_scenarios.engines.mininet_child import MininetChild
from mininet_scenarios.machine.netns import batch
from mininet_scenarios.ovs.ovsfabric import port_interface
from mininet_scenarios.scenario.engine import Setup

CLONE_NEWNET, SO_RCVBUFFORCE = 0x40000000, 33
LIBC = ctypes.CDLL(None, use_errno=True)
PORTS = range(7000, 7006)
"""TCP ports: so many flows a pair. Open vSwitch's hash leaves UDP ports out."""
RESET = 4
"""Of the TCP flags: what a host gives no answer to."""
LIMIT = 5.0
"""Seconds without any packet, after which what is missing is lost."""
RESEND = 0.25
"""Seconds without any, after which these are sent again: a burst can be too much for a queue."""


class End:
    """A socket in the network namespace of a host: it stays there, whatever the process does."""

    def __init__(self, pid):
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        assert LIBC.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        self.socket.setblocking(False)
        assert LIBC.setns(home, CLONE_NEWNET) == 0
        os.close(home)
        os.close(there)

    def send(self, address, port, data=b""):
        head = struct.pack(">HHLLBBHHH", 9, port, 0, 0, 5 << 4, RESET, 0, 0, 0)
        self.socket.sendto(head + data, (address, 0))


class Prober:
    """Sends packets between all hosts and sees what arrives, and with which TTL."""

    def __init__(self, network):
        self.ends = [End(host.pid) for host in network.hosts]
        self.address = [network.address(i, 4) for i in range(len(self.ends))]
        self.host = {end.socket.fileno(): i for i, end in enumerate(self.ends)}
        self.poll = select.poll()
        for end in self.ends:
            self.poll.register(end.socket, select.POLLIN)
        self.round = 0
        self.last = 0.0

    def round_of(self, pairs, ports=PORTS):
        """(source, destination, port, TTL) of each flow; None where it never arrived."""
        self.round += 1
        self.last = time.monotonic()
        wanted = {(*pair, port) for pair in pairs for port in ports}
        arrived = {}
        while len(arrived) < len(wanted) and time.monotonic() < self.last + LIMIT:
            for flow in sorted(wanted - arrived.keys()):
                s, d, port = flow
                data = struct.pack(">HHHH", self.round, *flow)
                self.ends[s].send(self.address[d], port, data)
                self._hear(arrived, 0)
            again = time.monotonic()
            while len(arrived) < len(wanted) and time.monotonic() < max(again, self.last) + RESEND:
                self._hear(arrived, 20)
        return [[*flow, arrived.get(flow)] for flow in sorted(wanted)]

    def settled(self, pairs):
        """A round after one in which the switches have seen what happened."""
        self.round_of(pairs)
        return self.round_of(pairs)

    def _hear(self, arrived, patience):
        for file, _ in self.poll.poll(patience):
            there = self.host[file]
            packet = self.ends[there].socket.recv(2048)
            turn, s, d, port = struct.unpack_from(">HHHH", packet.ljust(48, b"\0"), 40)
            if turn == self.round and d == there:
                arrived[s, d, port] = packet[8]
                self.last = time.monotonic()


def set_link(wiring, vertex, link, up):
    """Take a link of a switch down or up again, at both of its ends."""
    state = "up" if up else "down"
    far = wiring.far[vertex, link], wiring.far_port[vertex, link]
    ends = (vertex, wiring.port[vertex, link]), far
    batch([f"link set {port_interface(*end)} {state}" for end in ends])


def spread(inside, prober, vertex, others, flows):
    """Packets by switch and link when the vertex's host sends so many flows to each other."""
    before = inside.loads()
    ports = range(10000, 10000 + flows)
    heard = prober.round_of([(vertex, other) for other in others], ports)
    assert all(links for *_, links in heard)
    return np.take_along_axis(inside.loads() - before, inside.build.wiring.port, axis=1).tolist()


def load_of_dead(inside, prober, dead):
    """Packets that the others send to a vertex whose links are down, and how often each direction
    of a link carries one of them, by switch and port.
    """
    links = np.flatnonzero(inside.build.wiring.far[dead] >= 0).tolist()
    for link in links:
        set_link(inside.build.wiring, dead, link, up=False)
    others = [v for v in range(len(prober.ends)) if v != dead]
    prober.settled(list(permutations(others, 2)))
    before = inside.loads()
    for source in others:
        for port in PORTS:
            prober.ends[source].send(prober.address[dead], port)
    last, limit = before, time.monotonic() + 12 * LIMIT
    while ((now := inside.loads()) != last).any() or (now == before).all():
        assert time.monotonic() < limit, "packets go round and round"
        last = now
        prober.poll.poll(1000 * RESEND)
    return {"packets": len(others) * len(PORTS), "loads": (now - before).tolist()}


def main(build, logs, cases, flows, dead):
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    setup = Setup((), (Path(build),), Path(logs), hosts=1, framework="ryu", unverified=True)
    inside = MininetChild(setup, lambda *_: None)
    inside.start()
    inside.settle(120)
    inside.controller.kill()
    prober = Prober(inside.network)
    pairs = list(permutations(range(len(prober.ends)), 2))
    result = {"up": prober.round_of(pairs), "down": []}
    if flows:
        result["carried"] = spread(inside, prober, *flows)
        result["spread"] = result["carried"][flows[0]]
    for case in cases:
        for vertex, link in case:
            set_link(inside.build.wiring, vertex, link, up=False)
        result["down"].append(prober.settled(pairs))
        for vertex, link in case:
            set_link(inside.build.wiring, vertex, link, up=True)
        prober.settled(pairs)
    if dead is not None:
        result["dead"] = load_of_dead(inside, prober, dead)
    return result


if __name__ == "__main__":
    build, logs, *more = sys.argv[1:]
    found = main(build, logs, *map(json.loads, more))
    print(json.dumps(found))
