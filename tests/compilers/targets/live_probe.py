"""Datagrams between all hosts of a fabric, all the time: which arrived, and when each was sent.

Two processes, one that sends and one that hears, with sockets in the network namespaces of all
hosts. They share memory with the test and know nothing of the fabric.
"""

import mmap
import os
import select
import signal
import socket
import time
from contextlib import suppress

import numpy as np

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.traffic.probing import widen_receive_buffer

PORT = 7000
KEPT = 1 << 22
"""Datagrams that are remembered."""
BATCH = 0.005
"""Seconds between two looks at what is due."""
BEHIND = 0.1
"""Seconds that a busy machine may make up for: then fewer are sent."""
LATE, SURE = 0.25, 1.0
"""Seconds after which a datagram that did not arrive may be lost, and after which it is."""


class Probe:
    """Every flow of every pair sends a datagram a round; flows are numbered in the order of rounds.

    Args:
        spaces: a process in the network namespace of each host.
        addresses: of each host, one of each family.
        flows: source ports of each host, each a flow to every other host and family.
        period: seconds of a round.
    """

    def __init__(self, spaces, addresses, flows, period):
        hosts = range(len(spaces))
        self.flows = np.array(
            [
                (s, (s + step) % len(spaces), family, k)
                for k in range(flows)
                for family in range(len(addresses[0]))
                for step in hosts[1:]
                for s in hosts
            ]
        )
        self.rate = len(self.flows) / period
        self.sent = np.frombuffer(mmap.mmap(-1, KEPT * 8), np.float64)
        self.arrived = np.frombuffer(mmap.mmap(-1, KEPT), np.uint8)
        self.number = np.frombuffer(mmap.mmap(-1, 8), np.int64)
        self.drawn = np.frombuffer(mmap.mmap(-1, 8), np.int64)
        self.spaces, self.addresses, self.ports = spaces, addresses, flows
        self.children = []
        for work in (self._hear, self._send):
            pid = os.fork()
            if not pid:
                try:
                    work()
                finally:
                    os._exit(1)
            self.children.append(pid)

    def close(self):
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _sockets(self, port):
        """{(host, family): a socket}."""
        found = {}
        for host, space in enumerate(self.spaces):
            with entered(space):
                for family, address in enumerate(self.addresses[host]):
                    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
                    end = found[host, family] = socket.socket(kind, socket.SOCK_DGRAM)
                    end.bind((address, port))
                    end.setblocking(False)
        return found

    def _hear(self):
        ends = {end.fileno(): end for end in self._sockets(PORT).values()}
        with select.epoll() as poll:
            for file, end in ends.items():
                widen_receive_buffer(end)
                poll.register(file, select.EPOLLIN)
            arrived = memoryview(self.arrived)
            while True:
                for file, _ in poll.poll():
                    receive = ends[file].recv
                    with suppress(BlockingIOError):
                        while True:
                            arrived[int.from_bytes(receive(8), "big") % KEPT] = 1

    def draw(self):
        """Other source ports from now on: other paths."""
        self.drawn[0] += 1

    def _todo(self, ends):
        return [
            (ends[k][s, family].sendto, (self.addresses[d][family], PORT))
            for s, d, family, k in self.flows.tolist()
        ]

    def _send(self):
        sent, arrived, count = map(memoryview, (self.sent, self.arrived, self.number))
        clock = time.monotonic
        start, number, drawn = clock(), 0, -1
        while True:
            if drawn != self.drawn[0]:
                drawn = int(self.drawn[0])
                todo = self._todo([self._sockets(0) for _ in range(self.ports)])
            start = max(start, clock() - number / self.rate - BEHIND)
            due = int((clock() - start) * self.rate)
            while number < due:
                send, there = todo[number % len(todo)]
                sent[number % KEPT], arrived[number % KEPT] = clock(), 0
                with suppress(OSError):  # no carrier: as lost
                    send(number.to_bytes(8, "big"), there)
                number += 1
                count[0] = number
            time.sleep(BATCH)

    def since(self, begin):
        """Of the datagrams that were sent from then on: when, whether each arrived, its flow.

        Those of the last moments are left out, which may be under way.
        """
        last, now = int(self.number[0]), time.monotonic()
        numbers = np.arange(
            max(0, last - KEPT // 2, last - int((now - begin + 1) * self.rate)), last
        )
        when = self.sent[numbers % KEPT]
        numbers = numbers[(when >= begin) & (when < now - LATE)]
        return (
            self.sent[numbers % KEPT],
            self.arrived[numbers % KEPT] > 0,
            numbers % len(self.flows),
        )
