"""What a scenario runs on: an engine, the hosts on it, and what it saw."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.walk import TTL

Progress = Callable[[int, int], None]
"""Takes (done, all)."""
Step = Callable[[str, str], AbstractContextManager[Progress]]
"""Opens a step, by a short name and in words; its value is told how far the step is."""
Counts = NDArray[np.int64]
"""int64[H, H]: echo requests from each host to each other host."""
SILENT = -1
"""In place of hops, where nothing arrived."""


class EngineError(Exception):
    """The engine could not do what it was asked to; the text says why, and where the logs are."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The H hosts that take part: switch (int64[H]) and number at that switch (int64[H])."""

    switch: NDArray[np.int64]
    number: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, build: Build, most: int | None = None) -> Hosts:
        """All hosts of a build, or the first `most` of each switch, switch by switch."""
        here = build.wiring.host_port > 0
        if most is not None:
            here = here[:, :most]
        switch, number = np.nonzero(here)
        width = build.wiring.host_port.shape[1]
        names = (
            build.wiring.host_names[s * width + i] for s, i in zip(switch, number, strict=True)
        )
        return cls(switch, number, tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    def every_pair(self) -> Counts:
        """One request for each ordered pair of different hosts."""
        return 1 - np.eye(len(self), dtype=np.int64)

    def by_switch(self, counts: Counts, switches: int) -> Counts:
        """int64[S, S]: packets from switch to switch when requests and their replies travel."""
        packets = np.zeros((switches, switches), np.int64)
        np.add.at(packets, (self.switch[:, None], self.switch), counts + counts.T)
        return packets


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a round of echo requests.

    replies: int64[H, H], answers that each host had from each other. shortest and longest:
    int64[H, H], over how many links packets from host i reached host j (from the time to live of
    i's replies to j), SILENT where none did. loads: int64[S, ports + 1], packets that left each
    switch by each port meanwhile.
    """

    replies: Counts
    shortest: NDArray[np.int64]
    longest: NDArray[np.int64]
    loads: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Diversion:
    """A wrong table on purpose: egress class `egress` of `switch` leaves by `port`."""

    switch: int
    egress: int
    port: int


class Engine(Protocol):
    """A way to bring a build up and send packets over it."""

    name: str
    versions: tuple[int, ...]
    """Of the Internet protocol, that it can send."""

    def start(self, step: Step) -> None:
        """Bring up switches, links and hosts, and let the controller program every switch."""

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:
        """Send the echo requests, all hosts at once, and see what comes back."""

    def divert(self, diversion: Diversion) -> None:
        """Put a wrong table in place."""

    def restore(self) -> None:
        """Put the right table back."""

    def stop(self, step: Step) -> None:
        """Take everything down; harmless at any time."""


def hops_of(time_to_live: int) -> int:
    """Links that a packet has crossed: each switch, the last one too, took one from its TTL."""
    return TTL - 1 - time_to_live
