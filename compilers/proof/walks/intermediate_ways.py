"""Single packets over intermediates: both legs by the rows that they hit, with failures or without.

The rule is that of `compilers.routing.intermediates`.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.proof.lossless.channels import along
from compilers.proof.walks.single_packets import DROPPED, FROM_HOST, HOME, SinglePackets
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.walk import LOOPED, MOST_HOPS

Way = tuple[tuple[int, ...], int]
"""The switches that a packet passes, and its outcome as in `SinglePackets.path`."""


def ways_over(packets: SinglePackets, source: int) -> Iterator[tuple[int, Way]]:
    """Each intermediate, ascending, with the way over it to the destination of these packets."""
    down = packets.dead_links, packets.dead_switches
    for middle in intermediates(packets.build).tolist():
        path, outcome = _first_leg(SinglePackets(packets.build, middle, *down), source)
        if outcome == HOME:
            rest, outcome = packets.path(path[-1])
            path += rest[1:]
        yield middle, (tuple(path), outcome)


def channels_over(build: Build, path: tuple[int, ...], middle: int) -> list[int]:
    """The channel of each link of a way: the second leg has those behind the first one's."""
    turn = path.index(middle)
    first, second = along(build, path[: turn + 1]), along(build, path[turn:])
    last = first[-1] + 1 if first else 0
    return [*first, *(last + channel for channel in second)]


def _first_leg(packets: SinglePackets, source: int) -> tuple[list[int], int]:
    """The switches up to the intermediate, or to its neighbour that gives it up; HOME: there."""
    switch, entry, path = source, FROM_HOST, [source]
    middle, build = packets.destination, packets.build
    while len(path) <= MOST_HOPS:
        if switch == middle:
            return path, HOME
        link = packets.minimal_link(switch)
        if link >= 0 and build.wiring.far[switch, link] == middle:
            if not packets.is_up(switch, link):
                return path, HOME if build.protect != "none" else DROPPED
        else:
            link = packets.way_out(switch, entry)
        if link < 0:
            return path, DROPPED
        switch, entry = packets.over(switch, link)
        path.append(switch)
    return path, LOOPED
