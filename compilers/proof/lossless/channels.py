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
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Dead, Forwarding, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

STATES_AT_ONCE = 1 << 21
Numbers = NDArray[np.integer]
Changes = Callable[[Numbers, Numbers], Numbers]


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that a scheme needs, and whether they are free of deadlock.

    count: channels, 0 if packets loop; with the scheme hop, the links of the longest path.
    dependencies: waits between links within one channel. cycle: the switches along a cycle of
    waits, first and last the same; empty if there is none, so that no deadlock can occur.
    """

    scheme: str
    count: int
    dependencies: int
    cycle: tuple[int, ...]

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
    forwarding = Forwarding.of(build)
    walk = _Walk(forwarding, _changes(build, scheme))
    ends = np.flatnonzero(build.topology.endpoints)
    step = max(1, STATES_AT_ONCE // len(forwarding.end))
    for first in range(0, len(ends), step):
        towards = Towards.of(forwarding, ends[first : first + step])
        starts = walk.undisturbed(towards, ends)
        for kind in failures:
            walk.disturbed(towards, starts, kind)
        if progress:
            progress(min(first + step, len(ends)), len(ends))
    waits = walk.waits & ~walk.changed()
    return Channels(
        scheme=scheme,
        count=0 if walk.looped else walk.channel + 1,
        dependencies=int(np.count_nonzero(waits)),
        cycle=tuple(_cycle(waits, forwarding)),
    )


def _changes(build: Build, scheme: str) -> Changes:
    """The channel change, 0 or 1, of a packet that came in over one arc and leaves over another."""
    if scheme != "valley":
        value = int(scheme == "hop")
        return lambda arcs, _: np.full(arcs.shape, value, np.int8)
    up = np.pad(rising(build), ((0, 0), (0, 1))).ravel().astype(np.int8)
    return lambda arcs, out: up[arcs] & up[out]


@dataclass(slots=True)
class _Walk:
    """The walk of all packets: the highest channel seen, and the waits.

    waits: bool[S·L, L], whether some packet comes in over an arc and goes out over a link of that
    switch (arcs as in `Forwarding`).
    """

    forwarding: Forwarding
    changes: Changes
    waits: NDArray[np.bool_] = field(init=False)
    channel: int = 0
    looped: bool = False

    def __post_init__(self) -> None:
        slots = self.forwarding.slots
        self.waits = np.zeros((len(self.forwarding.end), slots), np.bool_)

    def undisturbed(
        self, towards: Towards, sources: Numbers
    ) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Follow all packets without failures.

        Returns every state that occurs, int64[n] as arc·D + column, including those of hosts, with
        its highest channel, int8[n].
        """
        f, width = self.forwarding, len(towards.destinations)
        held = np.full(len(f.end) * width, -1, np.int8)
        column = np.tile(np.arange(width), len(sources))
        entry = np.repeat(f.hosts[sources], width)
        away = np.repeat(sources, width) != towards.destinations[column]
        entry, column = entry[away], column[away]
        hosts = entry * width + column
        row = towards.row(entry // f.slots, column)
        marked = np.zeros(len(held) * f.marks, np.bool_)
        for number, weighted in enumerate(f.weighted):
            way = weighted[row]
            into = (f.end[way].astype(np.int64) * width + column)[way >= 0]
            if number >= f.first_marked:
                marked[into] = True
            else:
                held[into] = 0
        self._spread(towards, np.flatnonzero(marked), held)
        states: Numbers = np.flatnonzero(held >= 0)
        hops = 1
        while len(states) and hops <= MOST_HOPS:
            states = self._step(towards, states, held)
            hops += 1
        self.looped |= bool(len(states))
        self.channel = max(self.channel, int(held.max(initial=0)))
        held[hosts] = 0
        seen = np.flatnonzero(held >= 0)
        return seen, held[seen]

    def _spread(self, towards: Towards, marked: Numbers, held: NDArray[np.int8]) -> None:
        """Move marked packets, which have taken one link, on by others until marks have ended."""
        f, width = self.forwarding, len(towards.destinations)
        channel = np.zeros(len(marked), np.int8)
        while len(marked):
            arcs, column = np.divmod(marked, width)
            there = ~towards.spreads(arcs // f.slots, column)
            np.maximum.at(held, marked[there], channel[there])
            which, out = towards.onward(arcs, column)
            channel = channel[which] + self._wait(arcs[which], out).astype(np.int8)
            into = f.end[out].astype(np.int64) * width + column[which]
            self.channel = max(self.channel, int(channel.max(initial=0)))
            kept = towards.keeps(arcs[which] // f.slots, column[which])
            np.maximum.at(held, into[~kept], channel[~kept])
            marked, place = np.unique(into[kept], return_inverse=True)
            most = np.zeros(len(marked), np.int8)
            np.maximum.at(most, place, channel[kept])
            channel = most

    def _step(self, towards: Towards, states: Numbers, held: NDArray[np.int8]) -> Numbers:
        """Move packets on by one link; returns the states whose highest channel has risen."""
        width = len(towards.destinations)
        arcs, column = np.divmod(states, width)
        which, out = towards.ways_out(arcs, column)
        which, out = which[out >= 0], out[out >= 0]
        arcs, column = arcs[which], column[which]
        channel = held[states[which]] + self._wait(arcs, out)
        into = self.forwarding.end[out].astype(np.int64) * width + column
        higher = channel > held[into]
        into, channel = into[higher], channel[higher]
        risen = np.zeros(held.shape, np.bool_)
        risen[into] = True
        for value in range(int(channel.max(initial=-1)) + 1):
            held[into[channel == value]] = value
        return np.flatnonzero(risen)

    def disturbed(
        self, towards: Towards, starts: tuple[NDArray[np.int64], NDArray[np.int8]], kind: str
    ) -> None:
        """Follow the packets that meet one failure, from the switch that detects it.

        Up to there they went as without failures, so the next link of every state is a case.
        """
        f, (states, channel) = self.forwarding, starts
        arcs, column = np.divmod(states, len(towards.destinations))
        entering = f.end[arcs] < 0
        choice = np.count_nonzero(f.weighted >= 0, axis=0)
        only = np.where(choice == 1, f.weighted.max(axis=0), -1)
        row = towards.row(arcs // f.slots, column)
        entering[towards.shared(arcs, column)[0]] = True  # another way is up
        out = np.where(entering, only[row], towards.way_out(arcs, column))
        meets = out >= 0
        part = f.element[kind == "node"][out]
        if kind == "node":
            meets &= part != f.links + towards.destinations[column]
        kept = np.flatnonzero(meets)
        self._follow(towards, arcs[kept], column[kept], channel[kept], (part[kept],))

    def _follow(
        self, towards: Towards, arcs: Numbers, column: Numbers, channel: Numbers, dead: Dead
    ) -> None:
        f = self.forwarding
        hops = 0
        while len(arcs) and hops <= MOST_HOPS:
            which, out = towards.ways_out(arcs, column, dead)
            which, out = which[out >= 0], out[out >= 0]
            channel = channel[which] + self._wait(arcs[which], out)
            self.channel = max(self.channel, int(channel.max(initial=0)))
            arcs, column = f.end[out].astype(np.int64), column[which]
            dead = tuple(part[which] for part in dead)
            if f.every_hop:  # where ways meet again, packets are alike
                states = np.stack((arcs, column, channel, *dead))
                _, first = np.unique(states, axis=1, return_index=True)
                arcs, column, channel = arcs[first], column[first], channel[first]
                dead = tuple(part[first] for part in dead)
            hops += 1
        self.looped |= bool(len(arcs))

    def _wait(self, arcs: Numbers, out: Numbers) -> Numbers:
        """Record the waits; returns the channel changes. Packets of hosts cause no waits."""
        transit = self.forwarding.end[arcs] >= 0
        self.waits[arcs[transit], out[transit] % self.forwarding.slots] = True
        return self.changes(arcs, out) & transit

    def changed(self) -> NDArray[np.bool_]:
        """bool[S·L, L]: the turns at which a packet changes channel."""
        slots = self.forwarding.slots
        arcs = np.arange(len(self.waits))[:, None]
        out = arcs - arcs % slots + np.arange(slots)
        return self.changes(np.broadcast_to(arcs, out.shape), out).astype(np.bool_)


def _cycle(waits: NDArray[np.bool_], forwarding: Forwarding) -> list[int]:
    """The switches along a cycle of the graph of waits, [] if there is none.

    Links that nothing waits for are removed until none are left (Kahn, 1962).
    """
    links, out = np.nonzero(waits)
    before = links - links % forwarding.slots + out
    after = forwarding.end[before]
    waiting = np.bincount(after, minlength=len(waits))
    left = waiting > 0
    left[links] = True
    ready = np.flatnonzero(left & (waiting == 0))
    while len(ready):
        left[ready] = False
        row, out = np.nonzero(waits[ready])
        after_ready = forwarding.end[ready[row] - ready[row] % forwarding.slots + out]
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
    return [link // forwarding.slots for link in reversed(cycle)]
