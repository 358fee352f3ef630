"""Sends numbered packets between hosts, in a round or as a probe, and records which arrive.

A *round* sends one packet from host to host for each pair of hosts, few at a time. A *probe* sends
packets for some pairs again and again, at a constant rate, to measure how long an outage lasts. It
runs in a process of its own (`ProbeProcess`), so that nothing else delays it. The engines of
scenarios call both; `UdpProber` sends UDP from sockets in hosts' network namespaces.
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.machine.netns import entered, module_process
from mininet_scenarios.scenario.engine import EngineError, Progress
from mininet_scenarios.scenario.observations import SILENT, ProbePackets, hops_of

PROBE_PORT, ROUND_PORT = 5046, 5047
"""The UDP ports of a probe and of a round, which differ as both may run at a time."""
PACKET = struct.Struct("!4sII")
"""The payload of a packet: the prober's signature, the index of the pair, and how many packets of
the pair were sent before."""
HEADER_BYTES = 14 + 20 + 8
"""Bytes of the headers of Ethernet, IPv4 and UDP."""
SO_NO_CHECK, SO_RCVBUFFORCE, IP_RECVTTL, IPV6_RECVHOPLIMIT = 11, 33, 12, 51
"""Options of Linux's sockets that Python does not name (socket(7), ip(7), ipv6(7))."""
UDP_NO_CHECK6 = 101, 102
"""The options by which a UDP socket of IPv6 neither sends nor checks checksums."""
RECEIVE_BUFFER = 1 << 22
"""Bytes of a socket's receive buffer."""
PROBE_LATE = 2.0
"""After the end of a probe, the seconds without an arrival after which missing packets are lost."""
AT_ONCE = 64
"""The most packets that are sent in one turn of the loop, or received from a socket."""
LONGEST_TURN = 0.1
"""The most seconds to wait for arrivals in one turn. If no packet of a round arrives in a turn, all
that are missing count as lost.
"""


class Arrival(NamedTuple):
    """A packet that has arrived."""

    at: float
    """When it arrived, by `time.monotonic`."""
    links: int
    """The links that it has crossed."""


class Prober(ABC):
    """Sends packets for all pairs of hosts in turn, and receives them, in one thread."""

    under_way = AT_ONCE
    """How many packets of a round may be under way at a time."""
    late = 5.0
    """After the last packet of a round, the seconds without an arrival after which missing packets
    are lost. It is long, as hosts first ask for each other's addresses.
    """

    def __init__(self, pairs: int) -> None:
        self.pairs = pairs
        """How many pairs of hosts there are."""
        self.sent: list[float] = []
        """When each packet was sent, by `time.monotonic`."""
        self.arrivals: dict[int, Arrival] = {}
        """The first arrival of each packet that has arrived, by its index in `sent`."""

    @abstractmethod
    def send(self, count: int) -> None:
        """Send the next `count` packets, and add their times to `sent`."""

    @abstractmethod
    def hear(self, patience: float) -> None:
        """Wait for arrivals for at most `patience` seconds, and add them to `arrivals`."""

    @abstractmethod
    def close(self) -> None:
        """End sending and receiving."""

    def run_probe(self, interval: float, stop: Connection) -> ProbePackets:
        """Send for all pairs at a constant rate until a message arrives over a connection.

        Args:
            interval: seconds between two packets of a pair.
            stop: the connection over which the probe is stopped.
        """
        spacing, begin = interval / self.pairs, time.monotonic()
        while not stop.poll():
            # How many packets should have been sent by now, and were not.
            due = int((time.monotonic() - begin) / spacing) + 1 - len(self.sent)
            if due > 0:
                self.send(min(due, AT_ONCE))
            until_next = begin + len(self.sent) * spacing - time.monotonic()
            self.hear(min(max(0.0, until_next), LONGEST_TURN))
        return self._finish(PROBE_LATE)

    def run_round(self, progress: Progress) -> NDArray[np.int16]:
        """Send one packet for each pair, few at a time.

        Returns:
            int16[n], the links that each packet crossed; SILENT if it was lost.
        """
        lost = 0  # packets that are given up, so that others may be under way in their place
        while len(self.sent) < self.pairs:
            sent, heard = len(self.sent), len(self.arrivals)
            room = self.under_way - (sent - heard - lost)
            # Many packets are sent together: a turn with room for few waits for arrivals.
            if 2 * room > self.under_way:
                self.send(min(self.pairs - sent, room))
            self.hear(LONGEST_TURN)
            if len(self.arrivals) == heard:
                lost = len(self.sent) - heard
            progress(len(self.arrivals), self.pairs)
        return self._finish(self.late).hops

    def _finish(self, patience: float) -> ProbePackets:
        """Wait until all packets have arrived, or none for `patience` seconds, and close.

        Returns:
            The record of all packets.
        """
        deadline = time.monotonic() + patience
        while len(self.arrivals) < len(self.sent) and time.monotonic() < deadline:
            heard = len(self.arrivals)
            self.hear(max(0.0, deadline - time.monotonic()))
            if len(self.arrivals) > heard:
                deadline = time.monotonic() + patience
        self.close()
        received, hops = np.full(len(self.sent), np.nan), np.full(len(self.sent), SILENT)
        for index, (at, links) in self.arrivals.items():
            received[index], hops[index] = at, links
        return ProbePackets.of(self.pairs, self.sent, received, hops)


class ProbeProcess:
    """A probe that runs in a process of its own."""

    def __init__(self, interval: float, make: Callable[..., Prober], *arguments: Any) -> None:
        """Start the process; returns when the prober has its sockets.

        Args:
            interval: seconds between two packets of a pair.
            make: makes the prober, in the process.
            arguments: of `make`.

        Raises:
            EngineError: the probe could not be started.
        """
        self.process, self.connection = module_process("mininet_scenarios.traffic.probing")
        try:
            self.connection.send((interval, make, arguments))
            self.connection.recv()
        except (EOFError, OSError) as error:
            raise EngineError("the probe did not start") from error

    def stop(self) -> ProbePackets:
        """End the probe: wait for the last packets, and return the record of all.

        Raises:
            EngineError: the process has ended before.
        """
        with self.process, self.connection:
            try:
                self.connection.send(None)
                probed: ProbePackets = self.connection.recv()
            except (EOFError, OSError) as error:
                raise EngineError("the probe has ended before it was stopped") from error
        return probed


class UdpProber(Prober):
    """Sends UDP packets from host to host."""

    def __init__(
        self,
        ends: Sequence[tuple[int, str]],
        pairs: Sequence[tuple[int, int]],
        port: int = ROUND_PORT,
        frames: Sequence[int] = (),
    ) -> None:
        """Open a socket in each host.

        Args:
            ends: for each host the id of a process in its namespace, and its address.
            pairs: n pairs of a sending and a receiving host, by number.
            port: the UDP port at both ends.
            frames: for each pair, the bytes of a frame with all headers; empty for small frames.
        """
        super().__init__(len(pairs))
        sizes = frames or [0] * len(pairs)
        self.padding = [bytes(max(0, size - HEADER_BYTES - PACKET.size)) for size in sizes]
        """For each pair, the zeros that pad its packets to their size."""
        hosts = sorted({host for pair in pairs for host in pair})
        sockets = {host: _socket(*ends[host], port) for host in hosts}
        self.sockets = {sock.fileno(): sock for sock in sockets.values()}
        """The sockets by file descriptor."""
        self.senders = [
            (sockets[source], (ends[destination][1], port)) for source, destination in pairs
        ]
        """For each pair, the socket that sends, and the address to send to."""
        self.signature = os.urandom(4)
        """The bytes that begin the packets of this prober."""
        self.poll = select.epoll()
        for file in self.sockets:
            self.poll.register(file, select.EPOLLIN)

    def close(self) -> None:
        """Close the sockets."""
        self.poll.close()
        for sock in self.sockets.values():
            sock.close()

    def send(self, count: int) -> None:
        """Send the next packets; they are lost where a link is down or nobody answers to ARP."""
        for _ in range(count):
            number, pair = divmod(len(self.sent), self.pairs)
            sock, address = self.senders[pair]
            self.sent.append(time.monotonic())
            packet = PACKET.pack(self.signature, pair, number) + self.padding[pair]
            with suppress(OSError):
                sock.sendto(packet, address)

    def hear(self, patience: float) -> None:
        """Note the packets that the hosts' sockets have received."""
        for file, _ in self.poll.poll(patience):
            for _ in range(AT_ONCE):
                try:
                    data, ancillary, _, _ = self.sockets[file].recvmsg(PACKET.size, 64)
                except OSError:
                    break
                if len(data) == PACKET.size and data.startswith(self.signature):
                    _, pair, number = PACKET.unpack(data)
                    _, _, time_to_live = ancillary[0]  # level, type and data of the option
                    # Between hosts of one router, no router takes from the time to live.
                    hops = max(0, hops_of(int.from_bytes(time_to_live[:4], sys.byteorder)))
                    arrival = Arrival(time.monotonic(), hops)
                    self.arrivals.setdefault(number * self.pairs + pair, arrival)


def _socket(pid: int, address: str, port: int) -> socket.socket:
    """A UDP socket in the network namespace of a process, without checksums.

    Open vSwitch's userspace datapath does not complete checksums, so a receiver would drop packets.
    """
    with entered(pid):
        sock = socket.socket(
            socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM
        )
    if ":" in address:
        for option in UDP_NO_CHECK6:
            sock.setsockopt(socket.IPPROTO_UDP, option, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    widen_receive_buffer(sock)
    sock.setblocking(False)
    sock.bind(("", port))
    return sock


def widen_receive_buffer(sock: socket.socket) -> None:
    """Give a socket a large receive buffer; without privilege, as large as the system allows."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


def main() -> None:
    """Run one probe, for the `ProbeProcess` at standard input."""
    connection = Connection(0)
    interval, make, arguments = connection.recv()
    prober = make(*arguments)
    connection.send("ready")
    connection.send(prober.run_probe(interval, connection))


if __name__ == "__main__":
    main()
