"""Numbered UDP packets between hosts, from sockets in their namespaces: a round, or a probe.

A round sends so many over each pair, few at a time. A probe sends over some pairs at a constant
rate, evenly spread in time, in a process of its own, so that nothing else makes it late. That reads
its job, says that it is ready, and when it is asked tells what it saw.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

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
PROBE_LATE, ROUND_LATE = 2.0, 5.0
"""Seconds after which a packet that has not come is lost; in a round, hosts meet first."""
AT_ONCE, FRESH = 64, 0.1
"""Packets sent or heard before the other is looked at again; in a round, those under way, and the
seconds without any after which they count no longer."""


class ProbeProcess:
    """A probe that runs."""

    def __init__(
        self,
        ends: Sequence[tuple[int, str]],
        pairs: Sequence[tuple[int, int]],
        interval: float,
        frames: Sequence[int] = (),
    ) -> None:
        """Start it; returns when its sockets are there.

        Args:
            ends: for each host the id of a process in its namespace, and its IPv4 address.
            pairs: numbers of hosts.
            interval: seconds between two packets of a pair.
            frames: bytes of each pair's packets with all their headers; the fewest where left out.

        Raises:
            EngineError: it could not be started.
        """
        self.process, self.end = module_process("mininet_scenarios.traffic.probing")
        try:
            self.end.send((ends, pairs, frames, interval))
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


def probed(sent: Sequence[float], heard: Mapping[int, tuple[float, int]], pairs: int) -> Probed:
    """The packets of a probe or a round.

    Args:
        sent: when each packet was, those of a round one pair after the other.
        heard: by the place among these, when a packet came, and the links that it had crossed.
        pairs: how many.
    """
    received, hops = np.full(len(sent), np.nan), np.full(len(sent), SILENT)
    for place, (at, links) in heard.items():
        received[place], hops[place] = at, links
    return Probed.of(pairs, sent, received, hops)


def send_round(
    ends: Sequence[tuple[int, str]], pairs: Sequence[tuple[int, int]], progress: Progress
) -> NDArray[np.int16]:
    """A packet over each of these pairs; int16[n], the links it crossed, SILENT if it was lost.

    Args:
        ends: for each host the id of a process in its namespace, and its address.
        pairs: numbers of hosts.
        progress: takes (arrived, all).
    """
    prober = _Prober(ends, pairs, (), ROUND_PORT)
    prober.once(progress)
    return probed(prober.sent, prober.heard, len(pairs)).hops


class _Prober:
    """Sends and hears, in one thread."""

    def __init__(
        self,
        ends: Sequence[tuple[int, str]],
        pairs: Sequence[tuple[int, int]],
        frames: Sequence[int],
        port: int,
    ) -> None:
        self.filling = [
            bytes(max(0, n - HEADER_BYTES - PACKET.size)) for n in frames or [0] * len(pairs)
        ]
        used = sorted({host for pair in pairs for host in pair})
        self.sockets = {host: _socket(*ends[host], port) for host in used}
        self.of_file = {end.fileno(): end for end in self.sockets.values()}
        self.to = [(self.sockets[s], (ends[d][1], port)) for s, d in pairs]
        self.own = os.urandom(4)
        self.sent: list[float] = []
        self.heard: dict[int, tuple[float, int]] = {}
        self.poll = select.epoll()
        for file in self.of_file:
            self.poll.register(file, select.EPOLLIN)

    def run(self, interval: float, over: Connection) -> None:
        """Until something comes from there, and then until the last packets are there or late."""
        apart = interval / len(self.to)
        begin = time.monotonic()
        self.poll.register(over, select.EPOLLIN)
        while self._hear(begin + len(self.sent) * apart - time.monotonic()):
            for _ in range(AT_ONCE):
                if begin + len(self.sent) * apart > time.monotonic():
                    break
                self._send()
        self.poll.unregister(over)
        self._last(PROBE_LATE)

    def once(self, progress: Progress) -> None:
        """A packet over each pair, and the sockets closed."""
        lost = 0
        while (sent := len(self.sent)) < len(self.to):
            heard = len(self.heard)
            for _ in range(min(len(self.to) - sent, AT_ONCE - (sent - heard - lost))):
                self._send()
            self._hear(FRESH)
            if len(self.heard) == heard:
                lost = len(self.sent) - heard
            progress(len(self.heard), len(self.to))
        self._last(ROUND_LATE)
        self.poll.close()
        for end in self.sockets.values():
            end.close()

    def _last(self, patience: float) -> None:
        end = time.monotonic() + patience
        while len(self.heard) < len(self.sent) and (left := end - time.monotonic()) > 0:
            self._hear(left)

    def _send(self) -> None:
        number, pair = divmod(len(self.sent), len(self.to))
        end, address = self.to[pair]
        self.sent.append(time.monotonic())
        try:
            end.sendto(PACKET.pack(self.own, pair, number) + self.filling[pair], address)
        except OSError:
            return  # without a carrier or an answer to ARP the packet is lost like any other

    def _hear(self, patience: float) -> bool:
        """Take what comes within so many seconds, each packet once; False when it is over."""
        for file, _ in self.poll.poll(max(0.0, patience)):
            if file not in self.of_file:
                return False
            for _ in range(AT_ONCE):
                try:
                    data, more, _, _ = self.of_file[file].recvmsg(PACKET.size, 64)
                except OSError:
                    break
                if len(data) == PACKET.size and data.startswith(self.own):
                    _, pair, number = PACKET.unpack(data)
                    # From a host of the same router: not even that took from its time to live.
                    hops = max(0, hops_of(int.from_bytes(more[0][2][:4], sys.byteorder)))
                    self.heard.setdefault(number * len(self.to) + pair, (time.monotonic(), hops))
        return True


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
    """One probe."""
    end = Connection(0)
    ends, pairs, frames, interval = end.recv()
    prober = _Prober(ends, pairs, frames, PROBE_PORT)
    end.send("ready")
    prober.run(interval, end)
    end.send(probed(prober.sent, prober.heard, len(prober.to)))


if __name__ == "__main__":
    main()
