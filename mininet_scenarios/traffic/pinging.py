"""Echo requests between hosts, which their kernels answer.

One process has a socket in the network namespace of each host, so that thousands of pairs take no
process each.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

import numpy as np

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.scenario.engine import SILENT, Counts, Progress, hops_of
from mininet_scenarios.traffic.probing import widen_receiving

PATIENCE = 5.0
"""Seconds after which an answer is lost; that address is asked no more."""
AT_ONCE, FRESH = 64, 0.1
"""Requests under way at the same time, and the seconds after which one counts no longer."""
PROGRESS_EVERY = 0.1
"""Seconds."""
HEAD = struct.Struct("!BBHI")
"""Type, code, checksum, and what RFC 792 calls identifier and sequence number: our own number."""
NUMBERS = count()
SOL_RAW, ICMP_FILTER, IP_RECVTTL, IPV6_RECVHOPLIMIT = 255, 1, 12, 51
REQUEST, REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
"""The types of messages by version."""
Pair = tuple[int, int]
"""From a host to another."""


@dataclass(slots=True)
class Answers:
    """What one address answered: how often, and the smallest and largest TTL of the answers."""

    count: int = 0
    lowest: int = 255
    highest: int = 0

    def add(self, time_to_live: int) -> None:
        """One more answer."""
        self.count += 1
        self.lowest = min(self.lowest, time_to_live)
        self.highest = max(self.highest, time_to_live)


def ping_all(
    places: Sequence[int | tuple[int, str]],
    addresses: Sequence[str],
    requests: Iterable[Sequence[int]],
    progress: Progress,
) -> dict[Pair, Answers]:
    """Let hosts send echo requests, and wait for all answers.

    Args:
        places: of each host a process in its network namespace, and an interface if not any.
        addresses: of each host, or of whatever is asked, all of one version.
        requests: (from, to, count), indices of places and addresses.
        progress: takes (answers so far, requests in all).
    """
    wanted = [(here, there) for here, there, often in requests for _ in range(often)]
    with ExitStack() as stack:
        version = 6 if ":" in addresses[0] else 4
        ends = {i: stack.enter_context(_socket(places[i], version)) for i, _ in wanted}
        return _Round(ends, addresses, version).run(wanted, progress)


def observed(seen: dict[Pair, Answers], hosts: int) -> tuple[Counts, ...]:
    """replies, shortest and longest of an `Observation` of so many hosts.

    From a host at the same bridge it is no hop: not even the switch takes from its TTL.
    """
    replies = np.zeros((hosts, hosts), np.int64)
    shortest, longest = np.full((2, hosts, hosts), SILENT, np.int64)
    for (here, there), answers in seen.items():
        replies[here, there] = answers.count
        shortest[there, here] = max(0, hops_of(answers.highest))
        longest[there, here] = max(0, hops_of(answers.lowest))
    return replies, shortest, longest


class _Round:
    """Sends, and hears, in one thread."""

    def __init__(
        self, ends: dict[int, socket.socket], addresses: Sequence[str], version: int
    ) -> None:
        self.ends, self.addresses, self.version = ends, addresses, version
        self.asked: dict[int, Pair] = {}
        self.fresh: dict[int, float] = {}
        self.late: dict[int, float] = {}
        self.lost: set[Pair] = set()
        self.seen: dict[Pair, Answers] = {}

    def run(self, wanted: list[Pair], progress: Progress) -> dict[Pair, Answers]:
        """Until every request is answered or lost."""
        rest, told = iter(wanted), 0.0
        with select.epoll() as poll:
            of_file = {end.fileno(): end for end in self.ends.values()}
            for file in of_file:
                poll.register(file, select.EPOLLIN)
            while True:
                while len(self.fresh) < AT_ONCE and (pair := next(rest, None)):
                    if pair not in self.lost:
                        self._send(pair)
                if not self.fresh and not self.late:
                    return self.seen
                for file, _ in poll.poll(FRESH):
                    self._hear(of_file[file])
                self._age(now := time.monotonic())
                if now > told + PROGRESS_EVERY:
                    progress(sum(a.count for a in self.seen.values()), len(wanted))
                    told = now

    def _send(self, pair: Pair) -> None:
        here, there = pair
        number = next(NUMBERS) & 0xFFFFFFFF
        head = HEAD.pack(REQUEST[self.version], 0, 0, number)
        checksum = 0xFFFF - sum(struct.unpack("!4H", head)) % 0xFFFF
        head = HEAD.pack(REQUEST[self.version], 0, checksum, number)
        try:
            self.ends[here].sendto(head, (self.addresses[there], 0))
        except OSError:  # there is no route, or no carrier
            self.lost.add(pair)
            return
        self.asked[number], self.fresh[number] = pair, time.monotonic()

    def _hear(self, end: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                data, more, _, _ = end.recvmsg(128, 64)
            except OSError:
                return
            message = data[(data[0] & 15) * 4 :] if self.version == 4 else data
            kind, _, _, number = HEAD.unpack_from(message)
            pair = self.asked.get(number)
            if kind == REPLY[self.version] and pair and self.ends[pair[0]] is end:
                for known in (self.asked, self.fresh, self.late):
                    known.pop(number, None)
                ttl = int.from_bytes(more[0][2][:4], sys.byteorder)
                self.seen.setdefault(pair, Answers()).add(ttl)

    def _age(self, now: float) -> None:
        """Requests are in the order of time."""
        while self.fresh and now > (at := next(iter(self.fresh.values()))) + FRESH:
            self.late[number := next(iter(self.fresh))] = at
            del self.fresh[number]
        while self.late and now > next(iter(self.late.values())) + PATIENCE:
            number = next(iter(self.late))
            del self.late[number]
            self.lost.add(self.asked[number])


def _socket(place: int | tuple[int, str], version: int) -> socket.socket:
    """Hears echo replies alone, where there are not many kinds of messages besides."""
    pid, interface = place if isinstance(place, tuple) else (place, "")
    with entered(pid):
        if version == 4:
            end = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            end.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("I", 0xFFFFFFFF ^ 1 << REPLY[4]))
            end.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        else:
            end = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
            end.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)
    if interface:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    widen_receiving(end)
    end.setblocking(False)
    return end
