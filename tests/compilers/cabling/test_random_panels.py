"""Panels of random graphs: boxes of one type where they are made of boxes, else a bound."""

from dataclasses import replace
from math import exp, lgamma, log

import numpy as np
import pytest

from compilers.cabling.panel_plan import panel_plan
from compilers.spec.fabric_file import load_fabric
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.families import build_topology, family_of
from compilers.wiring.placed_fabric import place_fabric
from polarfab.cabling import cables
from polarfab.fabric import Fabric
from tests.compilers.cabling.test_panel_plan import led, spec, wanted


def through_boxes(rack, trunk="mpo24", parallel=1, **size):
    given = spec(trunk=trunk, rack=rack, parallel=parallel)
    given["topology"] = {"family": "rng", **size}
    return given


def plan_of(given):
    placed = place_fabric(load_fabric(given))
    return panel_plan(placed.topology, placed.wiring, placed.hardware())


@pytest.mark.parametrize("trunk", ["mpo8", "mpo24"])
@pytest.mark.parametrize(
    ("nodes", "degree", "ports", "lanes", "seed"),
    [
        (64, 8, 16, 4, 0),
        (64, 16, 32, 4, 3),
        (96, 12, 8, 2, 1),
        (100, 6, 20, 3, 2),
        (48, 9, 8, 1, 5),
    ],
)
def test_quasi_random_graphs_run_through_boxes_of_one_type(
    nodes, degree, ports, lanes, seed, trunk
):
    size = {"nodes": nodes, "degree": degree, "ports": ports, "lanes": lanes, "seed": seed}
    plan = plan_of(through_boxes(ports, trunk, **size))
    assert led(plan) == wanted(plan)
    boxes = nodes // ports * degree // lanes
    assert (len(plan.types), plan.least, len(plan.names)) == (1, 1, boxes)
    assert not plan.turned.any()
    assert len(plan.ends) == boxes * lanes // 2 * -(-ports // plan.room)
    ribbons = [row for row in plan.cords() if row[1] == "ribbon"]
    assert len(ribbons) == nodes * degree // lanes
    assert {row[10] for row in ribbons} == {lanes}
    assert all(row[2] == row[5] for row in ribbons)  # a row's boxes are in its rack
    ports_of = [row[4].split(" to ") for row in ribbons]
    first, last = ([int(p[i].removeprefix("eth")) for p in ports_of] for i in (0, -1))
    assert {b - a for a, b in zip(first, last, strict=True)} == {lanes - 1}


def test_a_trunk_of_a_box_is_one_trunk_where_the_library_has_such_large_ones():
    plan = plan_of(through_boxes(12, nodes=60, degree=6, ports=12, lanes=3))
    assert led(plan) == wanted(plan)
    assert len(plan.ends) == 5 * 2 * 3 // 2
    assert np.bincount(plan.trunk).tolist() == [12] * len(plan.ends)


def test_boxes_are_for_whole_graphs_with_a_cable_a_link():
    size = {"nodes": 64, "degree": 8, "ports": 16}
    given = through_boxes(16, **size)
    placed = place_fabric(load_fabric(given))
    u, v = (placed.wiring.names[n] for n in placed.topology.graph.edges()[0])
    given["inventory"]["dead_links"] = [{"a": u, "b": v}]
    assert not cables(Fabric.from_spec(given).compile()).plans
    many = plan_of(through_boxes(16, parallel=2, **size))
    assert led(many) == wanted(many)
    assert len(many.types) > 1


def test_a_graph_that_its_seed_does_not_give_has_no_boxes():
    family, size = family_of("rng"), {"nodes": 64, "degree": 8, "ports": 16}
    one, other = (build_topology("rng", size | {"seed": seed}) for seed in (0, 1))
    assert family.boxes(one)
    assert family.boxes(replace(one, graph=other.graph)) is None


def racked(nodes, degree, size, seed=0):
    """A Jellyfish in racks of this size with few links between them."""
    given = spec(family="jellyfish", nodes=nodes, degree=degree, seed=seed, layout="partition")
    racks = [{"name": f"R{r}", "units": size, "row": 0, "column": r} for r in range(nodes // size)]
    given["inventory"] |= {"racks": racks}
    placed = place_fabric(load_fabric(given))
    return panel_plan(placed.topology, placed.wiring, placed.hardware())


@pytest.mark.parametrize(("nodes", "degree", "size"), [(64, 8, 16), (96, 12, 8)])
def test_racks_of_a_random_graph_need_a_type_each(nodes, degree, size):
    """By the links inside and to other racks alone: no numbering of switches and lanes helps."""
    plan = racked(nodes, degree, size)
    assert led(plan) == wanted(plan)
    assert plan.least == len(plan.types) == len(plan.names) == nodes // size


def regular_graphs(nodes, degree):
    """The logarithm of how many there are, asymptotically (Bender and Canfield)."""
    ends = nodes * degree
    pairings = lgamma(ends + 1) - lgamma(ends / 2 + 1) - ends / 2 * log(2)
    return pairings - nodes * lgamma(degree + 1) - (degree * degree - 1) / 4


def fewest_types(nodes, degree, size, room):
    """A bound for most random regular graphs, in whatever racks of this size: they are counted.

    A graph is told by the place of each switch, the pairs of plugs that trunks join, and a type
    for each rack; a type is an order of its lanes at most.
    """
    trunks, graphs = nodes * degree / (2 * room), regular_graphs(nodes, degree)
    places = lgamma(nodes + 1)
    plugs = lgamma(2 * trunks + 1) - lgamma(trunks + 1) - trunks * log(2)
    racks = nodes / size
    types = 1
    while places + plugs + types * lgamma(size * degree + 1) + racks * log(types) < graphs:
        types += 1
    return types


@pytest.mark.parametrize(
    ("nodes", "degree", "size", "types"), [(1024, 32, 32, 9), (512, 24, 16, 10)]
)
def test_most_random_graphs_need_many_types_however_they_are_racked(nodes, degree, size, types):
    assert fewest_types(nodes, degree, size, 12) == types


def test_the_count_of_regular_graphs_is_right():
    """Cubic labelled graphs by OEIS A002829: it is more by a share that falls as 1/n."""
    known = {8: 19355, 14: 19506631814670, 20: 976273961160363172131825}
    over = [n * (exp(regular_graphs(n, 3)) / count - 1) for n, count in known.items()]
    assert over == pytest.approx([2.3, 2.3, 2.3], abs=0.3)


def mean_hops(topology):
    found = distances(neighbour_table(topology.graph), np.arange(topology.graph.order))
    return found.sum() / (len(found) * (len(found) - 1))


@pytest.mark.parametrize(("lanes", "boxes", "plugs"), [(8, 16, 1408), (4, 32, 2432)])
def test_more_lanes_save_plugs_and_cost_no_distance(lanes, boxes, plugs):
    size = {"nodes": 256, "degree": 16}
    counts = plan_of(through_boxes(32, ports=32, lanes=lanes, **size)).summary()
    assert (counts["cassettes"], counts["types"], counts["trunks"]) == (boxes, 1, 192)
    assert (counts["plugs"], counts["plugs_of_direct_cables"]) == (plugs, 4096)
    boxed = mean_hops(build_topology("rng", {**size, "ports": 32, "lanes": lanes}))
    assert round(boxed, 2) == round(mean_hops(build_topology("jellyfish", size)), 2) == 2.28
