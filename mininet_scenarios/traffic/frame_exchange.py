"""Frames exchanged until they have arrived: a slow machine loses none, only a fabric does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from mininet_scenarios.ovs.collector_frames import Awaited
from mininet_scenarios.ovs.frames import HostFrame

PATIENCE = (0.1, 0.3, 1.0)
"""Seconds without any frame after which those that are missing are sent again, the last time lost.

A frame takes the same way each time: Open vSwitch's hash does not look behind the ports.
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
