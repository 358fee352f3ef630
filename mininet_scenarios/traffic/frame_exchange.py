"""Frames exchanged until they have arrived: a slow machine loses none, only a fabric does."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.collectors import STILL, WAVE, Awaited
from mininet_scenarios.ovs.frames import HostFrame
from mininet_scenarios.traffic.probing import widen_receiving

PATIENCE = (0.1, 0.3, 1.0)
"""Seconds without any frame after which those that are missing are sent again, the last time lost.

A frame takes the same path each time: Open vSwitch's hash does not look behind the ports.
"""


class HostEnds(Protocol):
    """Sends frames as hosts, and gets theirs."""

    def exchange(
        self, frames: Sequence[HostFrame], awaited: Awaited, answers: int, patience: float
    ) -> list[HostFrame]:
        """Send each frame from its host; what hosts get until so many awaited ones have come.

        patience: seconds without any frame after which it ends, too.
        """


def exchanged(
    ends: HostEnds,
    frames: Sequence[HostFrame],
    due: Sequence[Hashable],
    came: Callable[[HostFrame], Hashable],
) -> tuple[list[HostFrame], list[int]]:
    """Send frames, and again those of which nothing came; what hosts got, and how often each went.

    due: what has to come of each frame; None where nothing has to. came: what a frame that a host
    gets is of those.
    """
    heard: list[HostFrame] = []
    waiting, times = list(range(len(frames))), [0] * len(frames)
    missing = {what for what in due if what is not None}

    def awaited(frame: HostFrame) -> bool:
        return came(frame) in missing

    for patience in PATIENCE:
        for number in waiting:
            times[number] += 1
        answers = sum(due[number] in missing for number in waiting)
        got = ends.exchange([frames[number] for number in waiting], awaited, answers, patience)
        heard += got
        missing -= set(map(came, got))
        waiting = [number for number in waiting if due[number] in missing]
        if not waiting:
            break
    return heard, times


EVERY_PROTOCOL = 3
"""ETH_P_ALL of Linux."""
LARGEST_FRAME = 2048


class HostFrames:
    """A socket at the interface `eth0` of each host, by the id of a process in its namespace."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self.sockets = {host: _raw_socket(process) for host, process in processes.items()}
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


def _raw_socket(process: int) -> socket.socket:
    with entered(process):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        end.bind(("eth0", EVERY_PROTOCOL))
    widen_receiving(end)
    end.setblocking(False)
    return end
