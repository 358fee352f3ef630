"""Frames of any kind from and to the hosts of a network: raw sockets in their namespaces."""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.collector_frames import STILL, WAVE, Awaited
from mininet_scenarios.ovs.frames import HostFrame
from mininet_scenarios.traffic.probing import widen_receiving

EVERY_PROTOCOL = 3
"""ETH_P_ALL of Linux."""
LARGEST_FRAME = 2048


class HostFrames:
    """A socket at the interface `eth0` of each host, by the id of a process in its namespace."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self.sockets = {host: _socket(process) for host, process in processes.items()}
        self.host = {end.fileno(): host for host, end in self.sockets.items()}
        self.poll = select.epoll()
        for file in self.host:
            self.poll.register(file, select.EPOLLIN)

    def close(self) -> None:
        """Close them."""
        self.poll.close()
        for end in self.sockets.values():
            end.close()

    def exchange(
        self, frames: Sequence[HostFrame], awaited: Awaited, answers: int, patience: float
    ) -> list[HostFrame]:
        """Send each frame from its host; what hosts get until so many awaited ones have come.

        One that comes twice, as it was sent again, counts once.

        patience: seconds without any frame after which it ends, too.
        """
        heard: list[HostFrame] = []
        came: set[HostFrame] = set()
        for first in range(0, len(frames), WAVE):
            wave = frames[first : first + WAVE]
            for host, data in wave:
                with suppress(OSError):  # one that an interface does not take is lost
                    self.sockets[host].send(data)
            sent = first + len(wave)
            still = STILL if sent < len(frames) else patience
            while len(came) < min(answers, sent) and (more := self._hear(still)):
                heard += more
                came.update(filter(awaited, more))
        return heard

    def _hear(self, patience: float) -> list[HostFrame]:
        """What comes within so many seconds; what hosts themselves send is not heard."""
        heard = []
        for file, _ in self.poll.poll(patience):
            host = self.host[file]
            while True:
                try:
                    data, address = self.sockets[host].recvfrom(LARGEST_FRAME)
                except BlockingIOError:
                    break
                if address[2] != socket.PACKET_OUTGOING:
                    heard.append((host, data))
        return heard


def _socket(process: int) -> socket.socket:
    with entered(process):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        end.bind(("eth0", EVERY_PROTOCOL))
    widen_receiving(end)
    end.setblocking(False)
    return end
