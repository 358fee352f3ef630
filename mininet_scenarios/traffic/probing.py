"""Numbered packets between hosts: a round, or a probe; UDP from sockets in hosts' namespaces.

A round sends over each pair, few at a time. A probe sends over some pairs at a constant rate,
evenly spread in time, in a process of its own, so that nothing else makes it late. That reads its
job, says that it is ready, and when it is asked tells what it saw.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.machine.netns import entered, module_process
from mininet_scenarios.scenario.engine import SILENT, EngineError, Probed, Progress, hops_of

PROBE_PORT, ROUND_PORT = 5046, 5047
"""Rounds are while a probe runs, too."""
PACKET = struct.Struct("!4sII")
"""The sender's own number, the pair's, and that of the packet."""
HEADER_BYTES = 14 + 20 + 8
"""Bytes of Ethernet, IPv4 and UDP before what PACKET says."""
SO_NO_CHECK, SO_RCVBUFFORCE, IP_RECVTTL, IPV6_RECVHOPLIMIT = 11, 33, 12, 51
UDP_NO_CHECK6 = 101, 102
"""Of Linux; Python names none of them."""
BUFFER = 1 << 22
PROBE_LATE = 2.0
"""Seconds without any that came, after the end of a probe, when the others are lost."""
AT_ONCE, FRESH = 64, 0.1
"""Packets sent or heard before the other is looked at again, and the most seconds until then; in a
round without any that came, those under way count no longer."""


class Prober(ABC):
    """Sends packets, one pair after the other, and hears them, in one thread.

    sent: when each was. heard: by the place among these, when it came, and the links that it had
    crossed; each once. under_way: how many a round sends before any has come. late: when all of a
    round are sent, seconds without any that came after which the others are lost.
    """

    under_way, late = AT_ONCE, 5.0  # hosts meet first

    def __init__(self, pairs: int) -> None:
        self.pairs = pairs
        self.sent: list[float] = []
        self.heard: dict[int, tuple[float, int]] = {}

    @abstractmethod
    def send(self, count: int) -> None:
        """Send the next ones."""

    @abstractmethod
    def hear(self, patience: float) -> None:
        """Take what comes within so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Send and hear no more."""

    def run(self, interval: float, over: Connection) -> Probed:
        """Probe until something comes over the connection, then wait for the last packets."""
        apart, begin = interval / self.pairs, time.monotonic()
        while not over.poll():
            due = int((time.monotonic() - begin) / apart) + 1 - len(self.sent)
            if due > 0:
                self.send(min(due, AT_ONCE))
            next_one = begin + len(self.sent) * apart - time.monotonic()
            self.hear(min(max(0.0, next_one), FRESH))
        return self._ended(PROBE_LATE)

    def once(self, progress: Progress) -> NDArray[np.int16]:
        """A packet over each pair; int16[n], the links it crossed, SILENT if it was lost."""
        lost = 0
        while (sent := len(self.sent)) < self.pairs:
            heard = len(self.heard)
            free = self.under_way - (sent - heard - lost)
            if 2 * free > self.under_way:  # else a round with losses goes on by ones and twos
                self.send(min(self.pairs - sent, free))
            self.hear(FRESH)
            if len(self.heard) == heard:
                lost = len(self.sent) - heard
            progress(len(self.heard), self.pairs)
        return self._ended(self.late).hops

    def _ended(self, patience: float) -> Probed:
        end = time.monotonic() + patience
        while (heard := len(self.heard)) < len(self.sent) and (left := end - time.monotonic()) > 0:
            self.hear(left)
            if len(self.heard) > heard:
                end = time.monotonic() + patience
        self.close()
        received, hops = np.full(len(self.sent), np.nan), np.full(len(self.sent), SILENT)
        for place, (at, links) in self.heard.items():
            received[place], hops[place] = at, links
        return Probed.of(self.pairs, self.sent, received, hops)


class ProbeProcess:
    """A probe that runs."""

    def __init__(self, interval: float, make: Callable[..., Prober], *arguments: Any) -> None:
        """Start what `make` makes of these arguments; returns when it has its sockets.

        Raises:
            EngineError: it could not be started.
        """
        self.process, self.end = module_process("mininet_scenarios.traffic.probing")
        try:
            self.end.send((interval, make, arguments))
            self.end.recv()
        except (EOFError, OSError) as error:
            raise EngineError("the probe did not start") from error

    def stop(self) -> Probed:
        """Let it hear the last packets; what it saw.

        Raises:
            EngineError: it has ended.
        """
        with self.process, self.end:
            try:
                self.end.send(None)
                probed: Probed = self.end.recv()
            except (EOFError, OSError) as error:
                raise EngineError("the probe has ended before it was stopped") from error
        return probed


class UdpProber(Prober):
    """UDP from host to host."""

    def __init__(
        self,
        ends: Sequence[tuple[int, str]],
        pairs: Sequence[tuple[int, int]],
        port: int = ROUND_PORT,
        frames: Sequence[int] = (),
    ) -> None:
        """Get ready.

        Args:
            ends: for each host the id of a process in its namespace, and its address.
            pairs: numbers of hosts.
            port: at both ends.
            frames: bytes of each pair's packets with all their headers; the fewest where left out.
        """
        super().__init__(len(pairs))
        self.filling = [
            bytes(max(0, n - HEADER_BYTES - PACKET.size)) for n in frames or [0] * len(pairs)
        ]
        used = sorted({host for pair in pairs for host in pair})
        sockets = {host: _socket(*ends[host], port) for host in used}
        self.of_file = {end.fileno(): end for end in sockets.values()}
        self.to = [(sockets[s], (ends[d][1], port)) for s, d in pairs]
        self.signature = os.urandom(4)
        self.poll = select.epoll()
        for file in self.of_file:
            self.poll.register(file, select.EPOLLIN)

    def close(self) -> None:
        """Close the sockets."""
        self.poll.close()
        for end in self.of_file.values():
            end.close()

    def send(self, count: int) -> None:
        """Send the next packets; without a carrier or an answer to ARP they are lost."""
        for _ in range(count):
            number, pair = divmod(len(self.sent), self.pairs)
            end, address = self.to[pair]
            self.sent.append(time.monotonic())
            with suppress(OSError):
                end.sendto(PACKET.pack(self.signature, pair, number) + self.filling[pair], address)

    def hear(self, patience: float) -> None:
        """Note the packets that the hosts' sockets have received."""
        for file, _ in self.poll.poll(patience):
            for _ in range(AT_ONCE):
                try:
                    data, more, _, _ = self.of_file[file].recvmsg(PACKET.size, 64)
                except OSError:
                    break
                if len(data) == PACKET.size and data.startswith(self.signature):
                    _, pair, number = PACKET.unpack(data)
                    # From a host of the same router: not even that took from its time to live.
                    hops = max(0, hops_of(int.from_bytes(more[0][2][:4], sys.byteorder)))
                    self.heard.setdefault(number * self.pairs + pair, (time.monotonic(), hops))


def _socket(pid: int, address: str, port: int) -> socket.socket:
    """Open vSwitch's userspace datapath leaves checksums as they are: none is sent or looked at."""
    with entered(pid):
        end = socket.socket(
            socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM
        )
    if ":" in address:
        for option in UDP_NO_CHECK6:
            end.setsockopt(socket.IPPROTO_UDP, option, 1)
        end.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)
    else:
        end.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        end.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    widen_receiving(end)
    end.setblocking(False)
    end.bind(("", port))
    return end


def widen_receiving(end: socket.socket) -> None:
    """Give a socket a large receive buffer; as large as allowed to root of a user namespace."""
    try:
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    except PermissionError:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)


def main() -> None:
    """Run one probe in a process of its own."""
    end = Connection(0)
    interval, make, arguments = end.recv()
    prober = make(*arguments)
    end.send("ready")
    end.send(prober.run(interval, end))


if __name__ == "__main__":
    main()
