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

DARK = -1
"""In place of the other end of a lane: the lane leads nowhere."""


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
    half = connectors.half
    lanes = (int(halves.front_port.max(initial=0)) + 1) * halves.width
    # int64[C, lanes]: the other end of each lane of a cassette. It is a lane of the cassette, or,
    # from `lanes` on, a position at its rear ports, or `DARK`.
    far_end = np.full((len(halves.cluster), lanes), DARK)
    far_end[halves.cassette, halves.cassette_lane] = other_half(halves.cassette_lane)
    far_end[halves.cassette[half], halves.cassette_lane[half]] = lanes + rear_position
    _, first_cassette, row_number = np.unique(
        far_end, axis=0, return_index=True, return_inverse=True
    )
    # Different rows are types, which are numbered in the order of their first cassettes.
    type_of_row = np.argsort(np.argsort(first_cassette))
    types = tuple(
        CassetteType(f"cassette-{number}", _fronts(row.reshape(-1, halves.width), room))
        for number, row in enumerate(far_end[np.sort(first_cassette)], 1)
    )
    return type_of_row[row_number.ravel()], types


def _fronts(far_end: Numbers, room: int) -> tuple[str, ...]:
    """`CassetteType.fronts`: front ports, and lanes of each, up to the last that is not dark.

    Args:
        far_end: int64[front ports, lanes of a port], the other end of each lane: a lane of the
            cassette, counted over all its front ports; or a position at its rear ports, counted
            from the number of these lanes on; or `DARK`.
        room: how many positions a rear port has.

    Two front ports with two lanes: lane 2 of the first one leads to lane 1 of the second one, and
    lane 1 of the first one to position 1 of the first trunk.

    >>> _fronts(np.array([[4, 2], [1, DARK]]), 8)
    ('T1.1 F2.1', 'F1.2')
    """
    lanes, lanes_of_port = far_end.size, far_end.shape[1]

    def word(end: int) -> str:
        """The other end of a lane, in a word."""
        if end == DARK:
            return "-"
        if end < lanes:
            front_port, lane = divmod(end, lanes_of_port)
            return f"F{front_port + 1}.{lane + 1}"
        rear_port, position = divmod(end - lanes, room)
        return f"T{rear_port + 1}.{position + 1}"

    is_lit = far_end != DARK
    used_ports = _without_dark_end(far_end, is_lit.any(axis=1))
    used_lanes = (_without_dark_end(port, port != DARK) for port in used_ports)
    return tuple(" ".join(map(word, port.tolist())) for port in used_lanes)


def _without_dark_end(values: Numbers, is_lit: Bools) -> Numbers:
    """The values up to the last that is lit; the first value in any case.

    Args:
        values: int64[n, …], lanes or ports.
        is_lit: bool[n], which of them lead to another end.
    """
    return values[: int(np.flatnonzero(is_lit).max(initial=0)) + 1]


def fewest_cassette_types(connectors: Connectors, halves: Halves) -> int:
    """A lower bound on the number of types: cassettes that differ whatever positions links take.

    They differ in the number of switches, of links inside, or of links to other cassettes.
    """
    cassette, count = halves.cassette, len(halves.cluster)
    # A switch has a front port of its own, so switches are counted by used front ports.
    cassette_of_port, _ = np.unique(np.stack((cassette, halves.front_port)), axis=1)
    switches = np.bincount(cassette_of_port, minlength=count)
    halves_inside = np.bincount(cassette, cassette == other_half(cassette), count)
    by_links = np.lexsort((connectors.links, connectors.near))
    links_outside = rows_of_groups(connectors.near[by_links], connectors.links[by_links], count)
    counts = np.column_stack((switches, halves_inside, links_outside))
    return int(rank_of_rows(counts).max()) + 1
