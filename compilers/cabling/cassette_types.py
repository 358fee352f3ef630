"""The types of cassettes: which cassettes have the same wires inside.

`shuffle` chooses the positions of links on trunks. Then `types_of_cassettes` says which cassettes
can be bought as one type. Halves and connectors are those of `compilers.cabling.connectors`.
In shapes, C is the number of cassettes, and H of the halves in connectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.cabling.connectors import (
    Bools,
    Connectors,
    Halves,
    Numbers,
    other_half,
    rank_of_rows,
    rows_of_groups,
)


class CassetteType(NamedTuple):
    """A type of cassettes: all that have the same wires."""

    name: str
    """The name of the type: `cassette-1`."""
    fronts: tuple[str, ...]
    """For each front port a text with a word for each lane: `T1.2` leads to position 2 of the first
    trunk behind, `F2.8` to lane 8 of the second front port; `-` is dark."""


def types_of_cassettes(
    connectors: Connectors, halves: Halves, rear_position: Numbers, room: int
) -> tuple[Numbers, tuple[CassetteType, ...]]:
    """The type of each cassette, int64[C], and all types.

    Args:
        connectors: all connectors.
        halves: where the halves are plugged.
        rear_position: int64[H], the position that each half takes among all positions of the rear
            ports of its cassette; each port has `room` positions.
        room: how many links a trunk holds.
    """
    width, half = halves.width, connectors.half
    lanes = (int(halves.front_port.max(initial=0)) + 1) * width
    # By cassette and lane, the other end of the lane: a lane of the cassette; from `lanes` on, a
    # position of a rear port; -1, none.
    lane_end = np.full((len(halves.cluster), lanes), -1)
    lane_end[halves.cassette, halves.cassette_lane] = other_half(halves.cassette_lane)
    lane_end[halves.cassette[half], halves.cassette_lane[half]] = lanes + rear_position
    _, first, pattern = np.unique(lane_end, axis=0, return_index=True, return_inverse=True)
    # Types are numbered in the order of their first cassettes.
    cassette_type = np.argsort(np.argsort(first))[pattern.ravel()]

    def word(end: int) -> str:
        """The other end of a lane, in a word."""
        if end < 0:
            return "-"
        if end < lanes:
            front_port, lane = divmod(end, width)
            return f"F{front_port + 1}.{lane + 1}"
        rear_port, position = divmod(end - lanes, room)
        return f"T{rear_port + 1}.{position + 1}"

    types = []
    for number, row in enumerate(lane_end[np.sort(first)], 1):
        lanes_of_ports = row.reshape(-1, width)
        used_ports = _without_dark_end(lanes_of_ports, (lanes_of_ports >= 0).any(axis=1))
        used_lanes = (_without_dark_end(port, port >= 0) for port in used_ports)
        fronts = tuple(" ".join(map(word, port.tolist())) for port in used_lanes)
        types.append(CassetteType(f"cassette-{number}", fronts))
    return cassette_type, tuple(types)


def _without_dark_end(values: Numbers, lit: Bools) -> Numbers:
    """The values up to the last that is lit; the first value in any case.

    Args:
        values: int64[n, …], lanes or ports.
        lit: bool[n], which lanes or ports lead to another end.
    """
    return values[: int(np.flatnonzero(lit).max(initial=0)) + 1]


def fewest_cassette_types(connectors: Connectors, halves: Halves) -> int:
    """A lower bound on the number of types: cassettes that differ whatever positions links take.

    They differ in the number of switches, of links inside, or of links to other cassettes.
    """
    cassette, count = halves.cassette, len(halves.cluster)
    # By used front port, the cassette: a switch has a front port of its own.
    ports = np.unique(np.stack((cassette, halves.front_port)), axis=1)[0]
    inside = np.bincount(cassette, cassette == other_half(cassette), count)
    by_links = np.lexsort((connectors.links, connectors.near))
    outside = rows_of_groups(connectors.near[by_links], connectors.links[by_links], count)
    counts = np.column_stack((np.bincount(ports, minlength=count), inside, outside))
    return int(rank_of_rows(counts).max()) + 1
