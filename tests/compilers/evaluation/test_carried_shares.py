"""What `design` says that traffic gets, by formula, is what the tables carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilers.evaluation.comparison.formulas import BOUND, EXACT, formulas
from compilers.topology.families import FAMILIES, build_topology
from compilers.topology.family import Design
from polarfab import Fabric, guarantee, throughput

CASES = [
    ("polarfly", {"q": 2}, 1),
    ("polarfly", {"q": 4}, 3),
    ("polarfly", {"q": 5}, 3),
    ("oft", {"q": 2}, 3),
    ("polarstar", {"q": 4, "supernode": "complete", "supernode_degree": 3}, 2),
]


def design(family: str, values: dict[str, Any]) -> Design:
    designs = (found for radix in range(2, 20) for found in FAMILIES[family].designs(radix))
    return next(d for d in designs if all(getattr(d, k) == v for k, v in values.items()))


def compiled(topology: dict[str, Any], hosts: int, balance: str) -> Fabric:
    spec = {"name": "lab", "topology": topology, "hosts_per_node": hosts}
    return Fabric.from_spec(spec | {"routing": {"balance": balance}}).compile()


def uniform(topology: dict[str, Any], hosts: int, balance: str) -> float:
    """The share of hosts' links that the tables carry of uniform traffic."""
    return throughput(compiled(topology, hosts, balance), ("uniform",))[0].emitted.share


@pytest.mark.parametrize(("family", "values", "hosts"), CASES)
def test_uniform_and_guaranteed(family: str, values: dict[str, Any], hosts: int) -> None:
    chosen = design(family, values)
    known = formulas(chosen)
    topology = {"family": family, **chosen.parameters}
    even = known.uniform(hosts, even=True)
    least = known.guaranteed(hosts, even=True)
    assert even
    assert least
    carried = uniform(topology, hosts, even.balance)
    assert even.share == pytest.approx(carried, rel=0.001 if even.basis == EXACT else 0.08)
    carried = guarantee(compiled(topology, hosts, least.balance)).share
    if least.basis == BOUND:
        assert 0.85 * carried < least.share <= carried * 1.001
    else:
        assert least.share == pytest.approx(carried, rel=1e-9 if least.basis == EXACT else 0.08)


def test_there_is_no_formula_where_tables_take_one_of_several_shortest_paths() -> None:
    known = formulas(design("pn", {"q": 3}))
    assert known.guaranteed(2, even=True) is None
    assert known.uniform(2, even=True).balance == "ecmp"
    assert known.uniform(2, even=True).share == pytest.approx(
        uniform({"family": "pn", "q": 3}, 2, "ecmp"), rel=0.001
    )


def test_uneven_hosts_get_no_more_than_the_most_and_nothing_is_called_exact() -> None:
    chosen = design("polarfly", {"q": 7})
    known = formulas(chosen)
    least, even = known.guaranteed(5, even=False), known.guaranteed(5, even=True)
    assert least
    assert even
    assert (least.basis, least.share) == (BOUND, even.share)
    found = known.uniform(5, even=False)
    assert found
    assert (found.basis, found.share) == ("estimate", pytest.approx(0.8))


def test_the_estimate_of_uneven_hosts_is_near_to_what_links_carry() -> None:
    topology = build_topology("polarfly", {"q": 8})
    order, far = topology.graph.order, topology.graph.padded()
    adjacent = np.zeros((order, order))
    for vertex, row in enumerate(far):
        adjacent[vertex, row[row >= 0]] = 1
    chance, shares = np.random.default_rng(0), []
    for _ in range(20):
        hosts = np.full(order, 4)
        hosts[chance.permutation(order)[:8]] += 1
        assert hosts.sum() == 300
        sent = np.outer(hosts, hosts) / (300 - hosts)[:, None]
        np.fill_diagonal(sent, 0)
        over_two = sent * (1 - adjacent)
        loads = adjacent * (sent + over_two @ adjacent + adjacent @ over_two)
        shares.append(1 / loads.max())
    chosen = design("polarfly", {"q": 8})
    found = formulas(chosen).uniform(5, even=False)
    assert found
    assert found.share == pytest.approx(min(shares), rel=0.08)
    assert found.share == pytest.approx(max(shares), rel=0.08)
