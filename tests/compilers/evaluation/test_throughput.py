"""Throughput: loads against paths walked one by one, known cases, and the papers' shape."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import GAP, fit
from compilers.evaluation.saturation import throughput
from compilers.evaluation.traffic import PATTERNS
from compilers.evaluation.valiant_traffic import two_legs
from compilers.forwarding.single_packets import SinglePackets
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.tables.intermediate_form import local
from tests.compilers.build_digests import Case
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "supernode": "inductive-quad"}


def loads_by_hand(build: Build, pattern: str, hosts: int) -> Counter[tuple[int, int]]:
    """What each link carries each way: every flow split by the weights, every part walked."""
    cables = build.wiring.far_by_port()
    fib = Fib.of(build.tables, cables)
    traffic, classes = PATTERNS[pattern](build.topology, hosts, 0), build.tables.classes
    load: Counter[tuple[int, int]] = Counter()
    for s, d, amount in zip(traffic.source, traffic.destination, traffic.amount, strict=True):
        k = int(fib.egress(np.array([d]))[s, 0])
        ports = [int(classes.port[s, k]), *classes.alternate[s, k].tolist()]
        weights = classes.weight[s, k].tolist()
        for port, weight in zip(ports, weights, strict=True):
            if weight:
                after = int(cables[s, port])
                rest, _ = SinglePackets(build, int(d)).minimal_path(after)
                for link in pairwise([int(s), *rest]):
                    load[link] += amount * weight / sum(weights)
    return load


@pytest.mark.parametrize(
    ("build", "pattern"),
    [
        (routed(q=4, spread=True), "uniform"),
        (routed(q=4, spread=True), "perm2hop"),
        (routed("oft", q=2), "uniform"),
        (routed("oft", q=2), "shuffle"),
        (routed(q=2, degree=3, spread=True, **IQ), "adversarial"),
    ],
    ids=lambda it: it if isinstance(it, str) else it.topology.title(),
)
def test_loads_are_those_of_every_path(build: Build, pattern: str) -> None:
    fluid = Fluid.of(build)
    found = fluid.loads_by_weights(PATTERNS[pattern](build.topology, 3, 0))
    slots, end = fluid.forwarding.arcs_a_switch, fluid.forwarding.far_arc
    ours = {(a // slots, int(end[a]) // slots): found[a] for a in np.flatnonzero(found).tolist()}
    expected = loads_by_hand(build, pattern, 3)
    assert ours.keys() == expected.keys()
    assert all(ours[link] == pytest.approx(expected[link]) for link in expected)


@pytest.mark.parametrize("q", [4])
def test_uniform_load_is_that_of_the_projective_paper(q: int) -> None:
    """demi-PN: 2q pairs use an arc at a quadric, 2q - 1 any other (facts of the PN paper)."""
    build = routed(q=q)
    fluid = Fluid.of(build)
    load = (
        fluid.loads(PATTERNS["uniform"](build.topology, 1, 0), fluid.minimal_shares()) * q * (q + 1)
    )
    slots, end = fluid.forwarding.arcs_a_switch, fluid.forwarding.far_arc
    arcs = np.flatnonzero(end >= 0)
    quadric = build.topology.kind == 0
    touches = quadric[arcs // slots] | quadric[end[arcs] // slots]
    np.testing.assert_allclose(load[arcs], np.where(touches, 2 * q, 2 * q - 1))


@pytest.mark.parametrize("q", [7])
def test_shape_of_the_paper(q: int) -> None:
    """PolarFly §VIII: permutations saturate near 1/p on minimal paths, and at 50 to 66 % else."""
    p = (q + 1) // 2
    build = routed(q=q, spread=True)
    two = throughput(build, "perm2hop", p)
    assert two.as_emitted is not None
    assert two.adaptive is not None
    assert 1 / (3 * p) <= two.minimal.share <= 1 / p
    assert two.minimal.share < two.as_emitted.share < two.adaptive.share
    assert 0.5 <= 2 / ((q + 1) * two.adaptive.peak) <= 0.66
    one = throughput(build, "perm1hop", p)
    assert one.adaptive is not None
    assert one.minimal.share == pytest.approx(1 / p)
    assert one.adaptive.share == pytest.approx(1 / p)
    uniform = throughput(build, "uniform", p)
    assert uniform.minimal.share > 0.95
    assert uniform.adaptive is None or uniform.adaptive.share >= uniform.minimal.share


@pytest.mark.parametrize("q", [4])
def test_fitted_weights_find_the_optimum(q: int) -> None:
    """One flow from a quadric has q paths that share no link (facts: alternates): 1/q on each."""
    build = routed(q=q, spread=True)
    traffic = PATTERNS["perm2hop"](build.topology, 1, 0)
    first = int(np.flatnonzero(build.topology.kind[traffic.source] == 0)[0])
    part = slice(first, first + 1)
    one = Traffic(traffic.source[part], traffic.destination[part], traffic.amount[part])
    fluid = Fluid.of(build)
    assert fit(fluid.paths(one)).loads.max() == pytest.approx(1 / q)
    far = replace(
        fluid, table_shares=fluid.table_shares * np.linspace(1, 3, len(fluid.table_shares))[:, None]
    )
    assert fit(far.paths(one)).loads.max() == pytest.approx(1 / q, rel=0.03)


@pytest.mark.parametrize(("q", "pattern"), [(4, "perm2hop")])
def test_fit_is_near_the_linear_program(q: int, pattern: str) -> None:
    """Shares a switch and class, and the peak, as the variables of scipy's solver."""
    build = routed(q=q, spread=True)
    fluid, traffic = Fluid.of(build), PATTERNS[pattern](build.topology, 3, 0)
    egress = Fib.of(build.tables, build.wiring.far_by_port()).egress(
        np.arange(build.tables.switches)
    )
    switch_class = traffic.source * 1000 + egress[traffic.source, traffic.destination]
    blocks, equal = [], []
    for key in np.unique(switch_class).tolist():
        s, c = divmod(key, 1000)
        column = s * (fluid.forwarding.classes + 2) + c
        part = switch_class == key
        some = Traffic(traffic.source[part], traffic.destination[part], traffic.amount[part])
        paths = np.flatnonzero(fluid.table_shares[:, column])
        for path in paths:
            only = np.zeros_like(fluid.table_shares)
            only[path, column] = 1
            blocks.append(fluid.loads(some, only))
        equal.append(len(paths))
    load = np.array(blocks).T
    most = load.shape[1]
    group = np.repeat(np.arange(len(equal)), equal) == np.arange(len(equal))[:, None]
    solved = linprog(
        c=[0] * most + [1],
        A_ub=np.column_stack((load, -np.ones(len(load)))),
        b_ub=np.zeros(len(load)),
        A_eq=np.column_stack((group, np.zeros(len(equal)))),
        b_eq=np.ones(len(equal)),
    )
    assert solved.success
    found = fit(fluid.paths(traffic))
    assert found.load_bound - 1e-9 <= solved.fun <= found.loads.max() + 1e-9
    assert found.loads.max() <= (1 + GAP) * found.load_bound


def test_a_pattern_without_flows_is_no_limit() -> None:
    found = throughput(routed(q=3, spread=True), "adversarial", 2)
    assert (found.flows, found.minimal.share, found.adaptive) == (0, 1.0, None)


def test_weights_matter() -> None:
    """All the weight on the minimal port is minimal routing."""
    build = routed(q=3, spread=True)
    weight = build.tables.classes.weight.copy()
    weight[..., 1:] = 0
    classes = replace(build.tables.classes, weight=weight)
    minimal = replace(build, tables=replace(build.tables, classes=classes))
    assert throughput(minimal, "perm2hop", 3) == throughput(routed(q=3), "perm2hop", 3)


def test_the_optimum_bounds_what_weights_reach() -> None:
    """Bounced paths with fitted weights carry much of it."""
    build = routed(q=7, spread=True, bounces=True)
    found = throughput(build, "perm1hop", 4)
    assert found.adaptive is not None
    assert found.as_emitted is not None
    assert 0.58 <= found.adaptive.share <= found.optimum
    assert found.share_of_optimum == pytest.approx(found.as_emitted.share / found.optimum)


@pytest.mark.parametrize("family", ["polarfly", "oft"])
def test_valiant_loads_every_link_as_twice_uniform_traffic(family: str) -> None:
    """Whatever the permutation: each leg is uniform, but for what would begin or end at an end."""
    build = routed(family, q=5)
    source = np.flatnonzero(build.topology.endpoints)
    traffic = Traffic.of(source, np.roll(source, 7))
    legs = two_legs(traffic, build.topology.endpoints)
    assert legs is not None
    count = len(source)
    assert legs.amount.sum() == pytest.approx(2 * count)
    sent = np.bincount(legs.source, legs.amount, minlength=build.tables.switches)
    assert sent[source] == pytest.approx(2)  # its own, and what it passes on
    direct = set(zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True))
    for s, d, amount in zip(legs.source, legs.destination, legs.amount, strict=True):
        assert amount == pytest.approx((2 - 2 * ((int(s), int(d)) in direct)) / (count - 2))
    found, uniform = (throughput(build, pattern, 6) for pattern in ("tornado", "uniform"))
    assert found.valiant is not None
    assert found.valiant.peak == pytest.approx(2 * uniform.minimal.peak, rel=0.08)


def test_packets_that_go_round_for_ever_have_loads_all_the_same() -> None:
    case = Case("ring", {"family": "fat-tree", "k": 2}, {"balance": "ecmp", "transit": "ecmp"})
    build = case.compiled()
    egress = np.array(build.tables.routes.egress)
    egress[build.wiring.far[0][build.wiring.far[0] >= 0], 1] = egress[2, 0]
    egress[egress == local(egress)] = 0
    tables = replace(build.tables, routes=replace(build.tables.routes, egress=egress))
    fluid = Fluid.of(replace(build, tables=tables))
    traffic = Traffic.of(np.array([0]), np.array([1]))
    assert fluid.loads_by_weights(traffic).sum() == pytest.approx(MOST_HOPS)
