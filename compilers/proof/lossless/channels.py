"""Count the virtual channels that keep a lossless fabric free of deadlock, and prove that they do.

What comes in is a build and a scheme. What goes out are `Channels`. `verify` and the lossless
extension call `find_channels`.

On lossless links a packet holds the buffer of the link that it came over while it waits for the
buffer of the next link. If such waits can form a cycle, the fabric can stop for ever: a deadlock.
There can be no deadlock if the graph of all waits that the tables can cause has no cycle (the
channel dependency graph: Dally and Seitz, 1987). To break cycles, buffers are split into virtual
channels, and a packet changes to the next channel on its way. A *scheme* says where:

- *hop*: at every switch. It needs as many channels as the longest path has links.
- *valley*: where a packet came down and goes up again, in a ranking of the switches. One channel
  holds paths that rise and then fall: rising packets wait for links to higher switches, falling
  packets for links to lower switches, so there is no cycle. A path of h links has at most h/2
  valleys, so 1 + ⌊h/2⌋ channels are enough (docs/concepts/channels.md). A switch needs one bit a
  port, whether it leads up: packets change channels where ingress and egress port lead up.
- *single*: nowhere. This is how the tables behave without channels.
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
"""About how many states of packets are followed between two calls of `progress`."""


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that a scheme needs, and whether they are free of deadlock."""

    scheme: str
    """`hop`, `valley` or `single`."""
    count: int
    """How many channels are needed; 0 if no number is enough, as packets are forwarded for ever.

    Where packets go by intermediates, the second leg uses the channels after those of the first.
    """
    dependencies: int
    """How many pairs of links there are in which the first link waits for the second, within a
    channel."""
    cycle: tuple[int, ...]
    """The switches along a cycle of waits, the first one again at the end; empty if there is no
    cycle, so that no deadlock can occur."""

    @property
    def is_deadlock_free(self) -> bool:
        """Whether no deadlock can occur."""
        return self.count > 0 and not self.cycle


def switch_ranks(build: Build) -> NDArray[np.int64]:
    """The rank of each switch in the scheme *valley*, int64[S].

    Switches without hosts are above the others, and among equals the number decides. So in an OFT,
    whose spines have no hosts, every path rises once and falls once, and one channel is enough.
    """
    switches = build.tables.switches
    return np.where(build.topology.endpoints, 0, switches) + np.arange(switches)


def rising_links(build: Build) -> NDArray[np.bool_]:
    """Whether each link leads to a switch of higher rank, bool[S, K]."""
    rank, far = switch_ranks(build), build.wiring.far
    up: NDArray[np.bool_] = (far >= 0) & (rank[far] > rank[:, None])
    return up


def channels_along(build: Build, path: Sequence[int]) -> list[int]:
    """The channel of each link of a path of switches in the scheme *valley*, from 0."""
    rank = switch_ranks(build)[list(path)]
    valleys = (rank[:-2] > rank[1:-1]) & (rank[1:-1] < rank[2:])
    return [0, *np.cumsum(valleys).tolist()][: len(path) - 1]


def find_channels(
    build: Build,
    scheme: str = "valley",
    failures: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Channels:
    """Follow every packet that the tables can send, and look for a cycle of waits.

    Args:
        build: its tables and cables. Packets take minimal ports, alternates and repairs.
        scheme: `hop`, `valley` or `single`.
        failures: "link", "node" or both, if packets are also followed under each single failure.
        progress: called with destinations done and all.
    """
    walks = Walks.of(build)
    changes = _channel_changes(build, scheme)
    # By switch, ingress link and next link: whether packets wait for the next link.
    waits = np.zeros(changes.shape, np.bool_)
    destinations = np.flatnonzero(walks.has_hosts)
    # Packets to a destination have about S·K states.
    step = max(1, STATES_AT_ONCE // changes.size * changes.shape[2])
    highest, endless = 0, False
    for first in range(0, len(destinations), step):
        block = destinations[first : first + step]
        outcome = for_packets(walks.packets, link_waits)(
            walks.program,
            walks.has_hosts,
            walks.egress(block),
            block,
            "link" in failures,
            "node" in failures,
            changes,
            waits,
        )
        highest, endless = max(highest, outcome.highest), endless or outcome.is_endless
        if progress:
            progress(min(first + step, len(destinations)), len(destinations))
    waits &= changes == 0
    legs = 2 if build.forwarding.intermediates else 1
    count = 0 if endless else legs * (int(highest) + 1)
    if legs == 2 and scheme == "valley":
        # A path of h links, both legs together, has at most h/2 valleys. The scheme *hop* needs h
        # channels for the longest path.
        most_links = find_channels(build, "hop", failures).count
        count = min(count, 1 + most_links // 2)
    return Channels(
        scheme=scheme,
        count=count,
        dependencies=int(np.count_nonzero(waits)),
        cycle=tuple(_find_cycle(_WaitGraph.of(waits, walks.program))),
    )


def _channel_changes(build: Build, scheme: str) -> NDArray[np.int8]:
    """How many channels a packet goes up, int8[S, K, K], by switch, ingress link and next link."""
    switches, most_links = build.wiring.far.shape
    if scheme == "valley":
        up = rising_links(build)
        return (up[:, :, None] & up[:, None]).astype(np.int8)
    return np.full((switches, most_links, most_links), int(scheme == "hop"), np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class _WaitGraph:
    """The graph of waits. Its vertices are *arcs*: links with a direction.

    Arc s·K + k is taken by the packets that come into switch s by its link k. They wait for the arc
    by which they leave.
    """

    waits: NDArray[np.bool_]
    """bool[S·K, K], by arc and link of its switch, whether packets of the arc wait for the link."""
    arc_of_link: NDArray[np.int64]
    """int64[S·K], by switch and link the arc by which packets leave over the link: it comes in at
    the far end."""

    @classmethod
    def of(cls, waits: NDArray[np.bool_], program: Program) -> _WaitGraph:
        """The graph of waits, bool[S, K, K] by switch, ingress link and next link."""
        most_links = waits.shape[2]
        arc_of_link = (program.far.astype(np.int64) * most_links + program.far_link).ravel()
        return cls(waits.reshape(-1, most_links), arc_of_link)

    def awaited(self, arcs: NDArray[np.int64], links: NDArray[np.int64]) -> NDArray[np.int64]:
        """The arc by which packets of each of n arcs leave over a link of its switch, int64[n]."""
        first_of_switch = arcs - arcs % self.waits.shape[1]
        awaited: NDArray[np.int64] = self.arc_of_link[first_of_switch + links]
        return awaited


def _find_cycle(graph: _WaitGraph) -> list[int]:
    """The switches along a cycle of the graph of waits; [] if there is none.

    Arcs that no other arc waits for are removed until none are left (Kahn, 1962). What remains has
    a cycle.
    """
    arc_count, most_links = graph.waits.shape
    # The edges: each arc in `waiting` waits for the one in `awaited`.
    waiting, link = np.nonzero(graph.waits)
    awaited = graph.awaited(waiting, link)
    waiters = np.bincount(awaited, minlength=arc_count)  # by arc, how many arcs wait for it
    remains = waiters > 0
    remains[waiting] = True
    free = np.flatnonzero(remains & (waiters == 0))
    while len(free):
        remains[free] = False
        row, link = np.nonzero(graph.waits[free])
        awaited_by_free = graph.awaited(free[row], link)
        np.subtract.at(waiters, awaited_by_free, 1)
        free = np.unique(awaited_by_free[waiters[awaited_by_free] == 0])
    if not remains.any():
        return []
    # Some remaining arc waits for each remaining arc: going back from one to the next comes to a
    # cycle.
    waiter = np.full(arc_count, -1)
    inside = remains[waiting]
    waiter[awaited[inside]] = waiting[inside]
    trail = [int(np.flatnonzero(remains)[0])]
    while (arc := int(waiter[trail[-1]])) not in trail:
        trail.append(arc)
    cycle = [*trail[trail.index(arc) :], arc]
    return [arc // most_links for arc in reversed(cycle)]
