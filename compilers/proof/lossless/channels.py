"""Channels: virtual channels that keep a lossless fabric free of deadlock, and the proof.

On lossless links a packet holds the buffer of the link it came over while it waits for the next. If
such waits can form a cycle, the fabric can stop for ever; if the graph of all waits that the tables
can cause (the channel dependency graph: Dally and Seitz, 1987) has no cycle, it cannot. Buffers are
split into virtual channels, and a packet changes to the next one on its way:

- *hop*: at every switch. Needs as many channels as the longest path has links.
- *valley*: only where it came down and goes up again, in a ranking of the switches. One channel
  holds paths that rise and then fall: rising packets wait for links to higher switches, falling
  ones for links to lower switches, so there is no cycle. A path of h links has at most h/2 valleys,
  so 1 + ⌊h/2⌋ channels are enough (docs/concepts/channels.md). A port leads up or it does not,
  and a packet changes where both its ports lead up: a switch needs one bit per port.
- *single*: never. This is how the tables behave without channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_waits import link_waits
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.rule import Program
from compilers.forwarding.walks import Walks
from compilers.tables.build import Build

STATES_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that a scheme needs, and whether they are free of deadlock."""

    scheme: str
    count: int
    """Channels, 0 if packets loop; with the scheme hop, the links of the longest path. Where
    packets go by intermediates the scheme goes on over the intermediate: two legs need no more than
    twice the channels of one, and by valley no more than 1 + h, h the links of the longest leg."""
    dependencies: int
    """Waits between links within one channel."""
    cycle: tuple[int, ...]
    """The switches along a cycle of waits, first and last the same; empty if there is none, so that
    no deadlock can occur."""

    @property
    def free(self) -> bool:
        """Whether no deadlock can occur."""
        return self.count > 0 and not self.cycle


def ranking(build: Build) -> NDArray[np.int64]:
    """int64[S], the rank of each switch: those without hosts above the others, then by number.

    In an OFT, whose spines have no hosts, every path rises once and falls once: one channel.
    """
    order = build.tables.switches
    return np.where(build.topology.endpoints, 0, order) + np.arange(order)


def rising(build: Build) -> NDArray[np.bool_]:
    """bool[S, K]: whether each link leads to a switch of higher rank."""
    rank, far = ranking(build), build.wiring.far
    up: NDArray[np.bool_] = (far >= 0) & (rank[far] > rank[:, None])
    return up


def along(build: Build, path: Sequence[int]) -> list[int]:
    """The channel of each link of a path of switches, by valley, from 0."""
    rank = ranking(build)[list(path)]
    valleys = (rank[:-2] > rank[1:-1]) & (rank[1:-1] < rank[2:])
    return [0, *np.cumsum(valleys).tolist()][: len(path) - 1]


def channels(
    build: Build,
    scheme: str = "valley",
    failures: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Channels:
    """Follow every packet that the tables can send, and look for a cycle of waits.

    Args:
        build: its tables and cables; alternates, protection and bounce are followed too.
        scheme: hop, valley or single, as above.
        failures: "link", "node" or both: also under each single failure of these kinds.
        progress: called with destinations done and all.
    """
    walks = Walks.of(build)
    switches, links = walks.program.far.shape
    changes = np.full((switches, links, links), int(scheme == "hop"), np.int8)
    if scheme == "valley":
        up = rising(build)
        changes[...] = up[:, :, None] & up[:, None]
    waits = np.zeros(changes.shape, np.bool_)
    ends = np.flatnonzero(walks.ends)
    step = max(1, STATES_AT_ONCE // changes.size * links)
    highest, looped = 0, False
    kinds = "link" in failures, "node" in failures
    for first in range(0, len(ends), step):
        some = ends[first : first + step]
        result = for_packets(walks.packets, link_waits)(
            walks.program, walks.ends, walks.egress(some), some, *kinds, changes, waits
        )
        highest, looped = max(highest, result[0]), looped or result[1]
        if progress:
            progress(min(first + step, len(ends)), len(ends))
    waits &= changes == 0
    count = 0 if looped else (1 + build.forwarding.intermediates) * (int(highest) + 1)
    if (
        build.forwarding.intermediates and scheme == "valley"
    ):  # two legs of h links have at most h valleys
        count = min(count, 1 + channels(build, "hop", failures).count // 2)
    return Channels(
        scheme=scheme,
        count=count,
        dependencies=int(np.count_nonzero(waits)),
        cycle=tuple(_cycle(waits, walks.program)),
    )


def _cycle(waits: NDArray[np.bool_], program: Program) -> list[int]:
    """The switches along a cycle of the graph of waits, [] if there is none.

    Links that nothing waits for are removed until none are left (Kahn, 1962).
    """
    width = waits.shape[2]  # link k of switch s has the number s·K + k
    waits = waits.reshape(-1, width)
    end = (program.far.astype(np.int64) * width + program.far_link).ravel()
    links, out = np.nonzero(waits)
    before = links - links % width + out
    after = end[before]
    waiting = np.bincount(after, minlength=len(waits))
    left = waiting > 0
    left[links] = True
    ready = np.flatnonzero(left & (waiting == 0))
    while len(ready):
        left[ready] = False
        row, out = np.nonzero(waits[ready])
        after_ready = end[ready[row] - ready[row] % width + out]
        np.subtract.at(waiting, after_ready, 1)
        ready = np.unique(after_ready[waiting[after_ready] == 0])
    if not left.any():
        return []
    cause = np.full(len(waits), -1)
    inside = left[links]
    cause[after[inside]] = links[inside]
    trail = [int(np.flatnonzero(left)[0])]
    while (link := int(cause[trail[-1]])) not in trail:
        trail.append(link)
    cycle = [*trail[trail.index(link) :], link]
    return [link // width for link in reversed(cycle)]
