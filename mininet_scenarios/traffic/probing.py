"""The probe of engines whose hosts are network namespaces: a process that sends and receives.

Numbered UDP packets at a constant rate over some pairs of hosts, evenly spread in time, from
sockets in the hosts' namespaces. A process of its own, so that nothing else makes it late. It reads
one JSON line, says "ready", and at the end of its input prints what it saw.
"""

from __future__ import annotations

import base64
import io
import json
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.scenario.engine import SILENT, EngineError, Probed, hops_of

PROBE_PORT = 5046
PACKET = struct.Struct("!4sII")
MAGIC = b"plfb"
HEADER_BYTES = 14 + 20 + 8
"""Bytes of Ethernet, IPv4 and UDP before what PACKET says."""
SO_NO_CHECK, SO_RCVBUFFORCE, IP_RECVTTL = 11, 33, 12
"""Of Linux; Python names none of them."""
BUFFER = 1 << 22
PROBE_LATE = 1.0
"""Seconds after which a packet that has not come is lost."""
SENDERS_AT_ONCE = 64
"""Packets sent or heard before the other is looked at again."""
PROBE_COLUMNS = ("pair", "sequence", "sent", "received", "hops")


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
        command = [sys.executable, "-P", "-m", "mininet_scenarios.traffic.probing"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: S101, PT018
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        job = {"ends": ends, "pairs": pairs, "interval": interval, "frames": frames}
        self.stdin.write(json.dumps(job) + "\n")
        if self.stdout.readline().strip() != "ready":
            raise EngineError("the probe did not start")

    def stop(self) -> str:
        """Let it hear the last packets; what it saw, as `decode` takes it."""
        self.stdin.close()
        with self.process, self.stdout:
            return self.stdout.read()


def decode(text: str) -> Probed:
    """What `ProbeProcess.stop` gave, as arrays."""
    with np.load(io.BytesIO(base64.b64decode(text))) as columns:
        return Probed(*(columns[name] for name in PROBE_COLUMNS))


class _Prober:
    """Sends and hears, in one thread."""

    def __init__(
        self, ends: list[tuple[int, str]], pairs: list[tuple[int, int]], frames: list[int]
    ) -> None:
        self.filling = [
            bytes(max(0, n - HEADER_BYTES - PACKET.size)) for n in frames or [0] * len(pairs)
        ]
        used = sorted({host for pair in pairs for host in pair})
        self.sockets = {host: _socket(ends[host][0]) for host in used}
        self.of_file = {end.fileno(): end for end in self.sockets.values()}
        self.to = [(self.sockets[s], (ends[d][1], PROBE_PORT)) for s, d in pairs]
        self.sent: list[float] = []
        self.heard: list[tuple[int, int, float, int]] = []
        self.poll = select.epoll()
        for file in self.of_file:
            self.poll.register(file, select.EPOLLIN)

    def run(self, interval: float) -> None:
        """Until stdin ends, and then until the last packets are there or late."""
        apart = interval / len(self.to)
        begin = time.monotonic()
        self.poll.register(sys.stdin, select.EPOLLIN | select.EPOLLHUP)
        while self._hear(begin + len(self.sent) * apart - time.monotonic()):
            for _ in range(SENDERS_AT_ONCE):
                if begin + len(self.sent) * apart > time.monotonic():
                    break
                self._send()
        self.poll.unregister(sys.stdin)
        end = time.monotonic() + PROBE_LATE
        while len(self.heard) < len(self.sent) and (left := end - time.monotonic()) > 0:
            self._hear(left)

    def _send(self) -> None:
        number, pair = divmod(len(self.sent), len(self.to))
        end, address = self.to[pair]
        self.sent.append(time.monotonic())
        try:
            end.sendto(PACKET.pack(MAGIC, pair, number) + self.filling[pair], address)
        except OSError:
            return  # without a carrier or an answer to ARP the packet is lost like any other

    def _hear(self, patience: float) -> bool:
        """Take what comes within so many seconds; False at the end of stdin."""
        for file, _ in self.poll.poll(max(0.0, patience)):
            if file == sys.stdin.fileno():
                return False
            for _ in range(SENDERS_AT_ONCE):
                try:
                    data, more, _, _ = self.of_file[file].recvmsg(PACKET.size, 64)
                except OSError:
                    break
                if len(data) == PACKET.size and data.startswith(MAGIC):
                    _, pair, number = PACKET.unpack(data)
                    ttl = int.from_bytes(more[0][2][:4], sys.byteorder)
                    self.heard.append((pair, number, time.monotonic(), hops_of(ttl)))
        return True

    def columns(self) -> dict[str, Any]:
        """The arrays of `Probed`; of a packet that came twice, the first."""
        count, pairs = len(self.sent), len(self.to)
        received, hops = np.full(count, np.nan), np.full(count, SILENT, np.int16)
        for of, number, at, links in reversed(self.heard):
            received[number * pairs + of], hops[number * pairs + of] = at, links
        sequence, pair = np.divmod(np.arange(count, dtype=np.int32), np.int32(pairs))
        return dict(
            zip(PROBE_COLUMNS, (pair, sequence, np.array(self.sent), received, hops), strict=True)
        )


def _socket(pid: int) -> socket.socket:
    with entered(pid):
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    widen_receiving(end)
    end.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    end.setblocking(False)
    end.bind(("", PROBE_PORT))
    return end


def widen_receiving(end: socket.socket) -> None:
    """Give a socket a large receive buffer; as large as allowed to root of a user namespace."""
    try:
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    except PermissionError:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)


def main() -> None:
    """One probe."""
    job = json.loads(sys.stdin.readline())
    prober = _Prober(job["ends"], job["pairs"], job["frames"])
    print("ready", flush=True)
    prober.run(job["interval"])
    out = io.BytesIO()
    np.savez(out, **prober.columns())
    print(base64.b64encode(out.getvalue()).decode())


if __name__ == "__main__":
    main()
