"""Frames exchanged until they have arrived: a slow machine loses none, only a fabric does."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.frames import HostFrame
from mininet_scenarios.traffic.probing import widen_receiving

PATIENCE = (0.1, 0.3, 1.0)
"""Seconds without any frame after which those that are missing are sent again, the last time lost.

A frame takes the same path each time: Open vSwitch's hash does not look behind the ports.
"""


STILL = 0.1
"""Seconds without any awaited frame after which the next are sent."""
WAVE = 32
"""Frames sent at once: Open vSwitch drops packet-ins when more than a hundred wait."""


class HostEnds(Protocol):
    """Sends frames as hosts, and gets theirs."""

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""

    def hear(self, patience: float) -> list[HostFrame]:
        """What hosts get first within so many seconds; nothing where that is nothing."""


def send_all(
    ends: HostEnds,
    frames: Sequence[HostFrame],
    awaited: Callable[[HostFrame], bool],
    answers: int,
    patience: float,
    wave: int = WAVE,
) -> list[HostFrame]:
    """Send frames; what hosts get until so many awaited ones have come.

    One that comes twice, as it was sent again, counts once. patience: seconds without any of
    these after which it ends, too: others, like a controller's LLDP, may come for ever. wave: so
    many are sent at once.
    """
    heard: list[HostFrame] = []
    came: set[HostFrame] = set()
    lost = 0
    for first in range(0, len(frames), wave):
        ends.send(frames[first : first + wave])
        sent = min(first + wave, len(frames))
        still = STILL if sent < len(frames) else patience
        lost *= sent < len(frames)  # some may have come late
        left = still
        while len(came) + lost < min(answers, sent):
            asked = time.monotonic()
            heard += (more := ends.hear(left))
            new = set(filter(awaited, more)) - came
            came |= new
            left = still if new else left - (time.monotonic() - asked)
            if not more or left <= 0:
                lost = min(answers, sent) - len(came)
    return heard


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
        got = send_all(ends, [frames[n] for n in waiting], awaited, answers, patience)
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

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""
        for host, data in frames:
            with suppress(OSError):  # one that an interface does not take is lost
                self.sockets[host].send(data)

    def hear(self, patience: float) -> list[HostFrame]:
        """What comes first within so many seconds; what hosts themselves send is not heard."""
        heard, limit = list[HostFrame](), time.monotonic() + patience
        while not heard and (left := limit - time.monotonic()) > 0:
            for file, _ in self.poll.poll(left):
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
