"""Where things stand: nothing overlaps, everything is in its rack, triangles can be seen."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from compilers.drawing.positions import Positions, by_kind, place
from compilers.families.polarfly import triangles
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layouts

IQ3 = {"supernode": "inductive-quad", "degree": 3}
FABRICS = [
    ("polarfly", {"q": 2}, "fans"),
    ("polarfly", {"q": 7}, "fans"),
    ("polarfly", {"q": 8}, "fans"),
    ("polarfly", {"q": 8}, "stars"),
    ("polarstar", {"q": 5, **IQ3}, "clusters"),
    ("polarstar", {"q": 3, "supernode": "paley", "degree": 6}, "supernodes"),
    ("pn", {"q": 4}, "subplanes"),
    ("pn", {"q": 7}, ""),
    ("oft", {"q": 4}, ""),
]


@cache
def placed(number: int, widest_name: float = 0.0) -> tuple[Topology, Layout, Positions]:
    family, parameters, name = FABRICS[number]
    topology = build_topology(family, parameters)
    racks = layout(topology, name) if layouts(topology) else by_kind(topology)
    return topology, racks, place(topology, racks, widest_name)


def apart(middles: np.ndarray, half_width: float, half: float) -> bool:
    """Whether discs, drawn out to this width, keep clear of each other round these points."""
    dx, dy = np.abs(middles[:, None, :] - middles[None, :, :]).transpose(2, 0, 1)
    distance = np.hypot(np.maximum(dx - 2 * (half_width - half), 0), dy)
    np.fill_diagonal(distance, np.inf)
    return bool(distance.min() > 2 * half)


@pytest.mark.parametrize("widest_name", [0.0, 60.0])
@pytest.mark.parametrize("number", range(len(FABRICS)))
def test_no_two_vertices_overlap(number: int, widest_name: float) -> None:
    _, _, placement = placed(number, widest_name)
    assert apart(placement.middles, placement.half_width, placement.half)
    assert placement.half_width >= placement.half >= 2.5


@pytest.mark.parametrize("number", range(len(FABRICS)))
def test_vertices_are_in_their_boxes_and_boxes_apart(number: int) -> None:
    topology, racks, placement = placed(number)
    box = racks.rack
    if len(placement.discs):
        members = topology.graph.order // len(placement.discs)
        disc = np.arange(topology.graph.order) // members
        box = placement.disc_box[disc]
        reach = np.hypot(*(placement.middles - placement.discs[disc, :2]).T)
        assert (reach + placement.half <= placement.discs[disc, 2]).all()
        assert apart(placement.discs[:, :2], placement.discs[0, 2], placement.discs[0, 2])
    x, y, width, height = placement.boxes[box].T
    left, top = placement.middles.T
    assert (left - placement.half >= x).all()
    assert (left + placement.half <= x + width).all()
    assert (top - placement.half >= y).all()
    assert (top + placement.half <= y + height).all()

    low, size = placement.boxes[:, :2], placement.boxes[:, 2:]
    overlap = (low[:, None] < low[None] + size[None]) & (low[None] < low[:, None] + size[:, None])
    assert overlap.all(axis=2).sum() == len(low)
    assert ((low + size).max(axis=0) <= np.array(placement.size) + 1e-9).all()
    assert low.min() >= 0


def test_quadrics_are_on_top() -> None:
    topology, _, placement = placed(1)
    quadrics = topology.of_kind("W")
    others = np.setdiff1d(np.arange(topology.graph.order), quadrics)
    assert placement.middles[quadrics, 1].max() < placement.middles[others, 1].min()


@pytest.mark.parametrize("number", [1, 2])
def test_triangles_of_a_fan_stand_together(number: int) -> None:
    """The two ends of a triangle with the centre are each other's nearest on the ring."""
    topology, racks, placement = placed(number)
    found = triangles(topology)
    inside = found[(racks.rack[found] == racks.rack[found[:, :1]]).all(axis=1)]
    assert len(inside) == (len(racks.names) - 1) * (int(topology.parameters["q"]) // 2)
    for triangle in inside:
        centre = racks.centre[racks.rack[triangle[0]]]
        u, v = triangle[triangle != centre]
        ring = np.setdiff1d(racks.members(racks.rack[u]), [centre, u])
        distance = np.hypot(*(placement.middles[ring] - placement.middles[u]).T)
        assert ring[np.argmin(distance)] == v


def test_a_centre_is_in_the_middle_of_its_ring() -> None:
    _, racks, placement = placed(1)
    for rack in range(1, len(racks.names)):
        centre, *ring = racks.members(rack)
        assert centre == racks.centre[rack]
        reach = np.hypot(*(placement.middles[ring] - placement.middles[centre]).T)
        assert np.allclose(reach, reach[0])
