"""Traffic patterns: what they promise, on several families."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "supernode": "inductive-quad"}
FABRICS: list[dict[str, int | str]] = [
    {"q": 2},
    {"q": 7},
    {"family": "pn", "q": 4},
    {"family": "oft", "q": 3},
    {"q": 3, "degree": 3, **IQ},
]


def links(topology: Topology, traffic: Traffic) -> np.ndarray:
    """The distance that each flow has to go."""
    far = distances(neighbour_table(topology.graph), np.arange(topology.graph.order))
    return far[traffic.source, traffic.destination]


@pytest.mark.parametrize("parameters", FABRICS, ids=str)
def test_no_switch_sends_or_gets_more_than_its_hosts_can(parameters: dict[str, int | str]) -> None:
    topology = routed(**parameters).topology
    order = topology.graph.order
    for pattern, of in PATTERNS.items():
        traffic = of(topology, 3, 1)
        sent = np.bincount(traffic.source, traffic.amount, minlength=order)
        got = np.bincount(traffic.destination, traffic.amount, minlength=order)
        assert max(sent.max(), got.max()) <= 1 + 1e-9, pattern
        assert not (sent + got)[~topology.endpoints].any(), pattern
        assert (traffic.source != traffic.destination).all(), pattern
        assert (np.diff(traffic.destination) >= 0).all(), pattern


@pytest.mark.parametrize("q", [3, 4, 11])
@pytest.mark.parametrize("hops", [1, 2])
def test_perm_hops_are_permutations_at_that_distance(q: int, hops: int) -> None:
    topology = routed(q=q).topology
    traffic = PATTERNS[f"perm{hops}hop"](topology, 1, 1)
    order = q * q + q + 1
    assert sorted(traffic.source.tolist()) == list(range(order))
    assert traffic.destination.tolist() == list(range(order))
    assert (links(topology, traffic) == hops).all()


def test_a_matching_is_as_large_as_networkx_finds() -> None:
    """Perm1Hop of a tree, where not all switches can take part."""
    topology = routed("oft", q=2).topology
    assert len(PATTERNS["perm1hop"](topology, 1, 0).source) == 0
    topology = routed("pn", q=2).topology
    graph = networkx.Graph(topology.graph.edges().tolist())
    assert networkx.is_perfect_matching(graph, networkx.max_weight_matching(graph))
    assert len(PATTERNS["perm1hop"](topology, 1, 0).source) == 14


def test_longest_paths_are_as_long_in_sum_as_an_assignment_makes_them() -> None:
    """scipy's assignment; in PolarFly every switch finds one two links away."""
    for parameters in (
        *FABRICS,
        {"q": 3, "supernode": "paley", "degree": 2, "family": "polarstar"},
    ):
        topology = routed(**parameters).topology  # type: ignore[arg-type]
        ends = np.flatnonzero(topology.endpoints)
        far = distances(neighbour_table(topology.graph), ends)[:, ends].astype(np.int64)
        best = far[linear_sum_assignment(far, maximize=True)].sum()
        assert links(topology, PATTERNS["longest"](topology, 1, 0)).sum() == best


def test_bits_of_host_numbers() -> None:
    """q = 2: 7 switches, 3 hosts each, 16 of the 21 hosts take part."""
    topology = routed(q=2).topology
    for pattern, to in (
        ("shuffle", lambda i: int(f"{i:04b}"[1:] + f"{i:04b}"[0], 2)),
        ("reverse", lambda i: int(f"{i:04b}"[::-1], 2)),
        ("complement", lambda i: 15 - i),
        ("transpose", lambda i: int(f"{i:04b}"[2:] + f"{i:04b}"[:2], 2)),
    ):
        traffic = PATTERNS[pattern](topology, 3, 0)
        expected = np.zeros((7, 7))
        for i in range(16):
            if i // 3 != to(i) // 3:
                expected[i // 3, to(i) // 3] += 1 / 3
        found = np.zeros((7, 7))
        found[traffic.source, traffic.destination] = traffic.amount
        np.testing.assert_allclose(found, expected)


def test_tornado_goes_half_way_round() -> None:
    traffic = PATTERNS["tornado"](routed(q=3).topology, 1, 0)
    assert ((traffic.destination - traffic.source) % 13 == 6).all()


@pytest.mark.parametrize("q", [3, 4])
def test_adversaries_send_a_supernode_to_one_other(q: int) -> None:
    topology = routed(q=q, degree=3, **IQ).topology
    traffic = PATTERNS["adversarial"](topology, 5, 2)
    assert len(traffic.source) == topology.graph.order
    assert (links(topology, traffic) == 3).all()
    pairs = np.unique(np.stack((traffic.source // 8, traffic.destination // 8)), axis=1)
    assert pairs.shape[1] == topology.graph.order // 8
    assert len(PATTERNS["adversarial"](routed(q=3).topology, 1, 0).source) == 0
