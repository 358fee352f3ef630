"""PN and OFT: minimal for every pair of switches, loads that are even."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.forwarding.walks import minimal_hops
from compilers.routing.plane_minimal import meeting_places
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Routes, Tables, local, no_route
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.families import FAMILIES, family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import cross, lines

Q = [2, 3, 4, 5, 7, 8, 9]


def compiled(family: str, q: int) -> tuple[Topology, Routes]:
    topology = FAMILIES[family].build({"q": q})
    return topology, family_of(family).routes(topology)


def hops(topology: Topology, routes: Routes, destinations: np.ndarray) -> np.ndarray:
    far = topology.graph.padded()
    port = np.where(far >= 0, np.arange(1, far.shape[1] + 1), 0).astype(np.int32)
    cables = np.concatenate((np.full((len(far), 1), -1, np.int32), far), axis=1)
    return minimal_hops(Fib.of(Tables(routes, Classes.minimal(port)), cables), destinations)


def loads(topology: Topology, routes: Routes) -> np.ndarray:
    """How many pairs of switches with hosts use each link, each direction by itself."""
    far, ends = topology.graph.padded(), np.flatnonzero(topology.endpoints)
    used = np.zeros(far.shape, np.int64)
    for d in ends:
        at = ends[ends != d]
        while len(at):
            link = routes.egress[at, d]
            np.add.at(used, (at, link), 1)
            at = far[at, link]
            at = at[at != d]
    return used[far >= 0]


@pytest.mark.parametrize("q", Q)
@pytest.mark.parametrize("family", ["pn", "oft"])
def test_from_every_switch_the_path_is_a_shortest_one(family: str, q: int) -> None:
    topology, routes = compiled(family, q)
    ends = np.flatnonzero(topology.endpoints)
    walked = hops(topology, routes, ends)
    assert (walked == distances(neighbour_table(topology.graph), ends).T).all()
    assert walked[ends].max() == {"pn": 3, "oft": 2}[family]


@pytest.mark.parametrize("q", [2, 3, 4])
def test_spines_have_no_prefix_and_leaves_deliver(q: int) -> None:
    topology, routes = compiled("oft", q)
    assert routes.exact
    spines, leaves = topology.of_kind("spine"), topology.of_kind("leaf")
    assert (routes.egress[:, spines] == no_route(routes.egress)).all()
    assert (routes.egress[:, leaves] != no_route(routes.egress)).all()
    here = routes.egress == local(routes.egress)
    assert here[leaves, leaves].all()
    assert here.sum() == len(leaves)
    assert (routes.rows() == len(leaves)).all()


@pytest.mark.parametrize("q", Q)
def test_loads_of_oft_differ_by_one_path(q: int) -> None:
    used = loads(*compiled("oft", q))
    assert set(used.tolist()) == {2 * q, 2 * q + 1}


@pytest.mark.parametrize("q", [5, 7, 8, 9, 11])
def test_loads_of_pn_are_at_most_a_few_paths_above_the_mean(q: int) -> None:
    """Spread over all q + 1 choices, each link of G_q would carry the mean."""
    used = loads(*compiled("pn", q))
    n = q * q + q + 1
    assert used.sum() == 2 * n * ((q + 1) + 2 * q * (q + 1) + 3 * q * q)
    assert used.max() <= used.mean() + 5


@pytest.mark.parametrize("q", Q)
def test_meets_are_cross_products(q: int) -> None:
    near = lines(q)
    table = meeting_places(near, np.arange(len(near)))
    s, d = np.nonzero(~np.eye(len(near), dtype=bool))
    assert (near[s, table[s, d]] == cross(q, s, d)).all()
