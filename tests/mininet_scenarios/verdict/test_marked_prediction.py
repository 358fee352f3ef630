"""Predictions, shares of links and rules of a fabric that marks packets, against paths by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import Flows
from mininet_scenarios.scenario.outage import Outage, PhysicalChange
from mininet_scenarios.verdict.flow_rates import FlowSpread, carry
from mininet_scenarios.verdict.link_share_check import link_share_check
from mininet_scenarios.verdict.predict import Prediction
from tests.compilers.routing.makers import loads_by_hand, marked, paths_by_hand


@pytest.mark.parametrize(("family", "q"), [("polarfly", 3), ("oft", 2)])
def test_hops_and_loads_are_bounded_by_the_paths_of_the_rule(family: str, q: int) -> None:
    build = marked(q, family=family)
    known, order = Prediction.of(build), build.tables.switches
    packets = np.random.default_rng(q).integers(0, 4, (order, order))
    packets *= build.topology.endpoints * build.topology.endpoints[:, None]
    np.fill_diagonal(packets, 0)
    bounds = np.zeros((2, order, build.wiring.far_by_port().shape[1]), np.int64)
    port = {
        (s, int(d)): int(build.wiring.port[s, k])
        for s in range(order)
        for k, d in enumerate(build.wiring.far[s])
    }
    for (s, d), paths in paths_by_hand(family, q).items():
        lengths = [len(path) - 1 for path in paths]
        assert (known.fewest_hops[s, d], known.most_hops[s, d]) == (min(lengths), max(lengths))
        links = [set(pairwise(path)) for path in paths]
        for link in set.union(*links):
            place = link[0], port[link]
            bounds[1][place] += packets[s, d]
            bounds[0][place] += packets[s, d] * all(link in taken for taken in links)
    least, most = known.load_bounds(packets)
    assert (least == bounds[0]).all()
    assert (most == bounds[1]).all()
    assert (known.loads(packets) <= most).all()


def test_flows_are_shared_as_by_hand_and_a_count_that_is_off_is_named() -> None:
    build = marked(4)
    known, hosts, order = Prediction.of(build), HostSample.of(build), 21
    source, destination = np.nonzero(1 - np.eye(order, dtype=np.int64))
    flows = Flows(source, destination, np.full(len(source), 100.0))
    spread = FlowSpread.of(known, hosts, flows)
    assert (spread.arrives > 1 - 1e-9).all()
    by_hand, far = loads_by_hand("polarfly", 4), build.wiring.far
    found = np.zeros((known.arcs, len(source)))
    np.add.at(found, (spread.arc, spread.flow), spread.share)
    for a in np.flatnonzero(far >= 0).tolist():
        link = a // far.shape[1], int(far.ravel()[a])
        assert found[a] == pytest.approx(by_hand[link][source, destination])

    seen = np.rint(100 * known.by_port(found.sum(axis=1))).astype(np.int64)
    cases = 2 * build.topology.graph.size
    right = link_share_check(known, hosts, flows, seen, 5)
    assert (right.required, right.mismatches) == (cases, ())
    seen[7, 2] *= 2
    (wrong,) = link_share_check(known, hosts, flows, seen, 5).mismatches
    assert wrong.where == f"7 → {build.wiring.far[7, 1]}"


def test_a_permutation_gets_what_throughput_says() -> None:
    """.46 of what four hosts a switch can send, q = 7: each to its like at the next switch."""
    build = marked(7, hosts=4)
    known, hosts = Prediction.of(build), HostSample.of(build)
    there = (np.arange(len(hosts)) + 4) % len(hosts)
    flows = Flows(np.arange(len(hosts)), there, np.full(len(hosts), 1.0))
    assert 0.46 < carry(known, hosts, flows, 1.0)[0].min() < 0.48


def test_a_dead_link_takes_paths_and_its_packets_take_others() -> None:
    """Behind a dead link groups and bundles leave out its port; without repair, pairs are lost."""
    build, order = marked(3, "link"), 13
    far = build.wiring.far
    whole = Prediction.of(build)
    for u in range(order):
        down = whole.under(Outage().after(PhysicalChange(((str(u), str(far[u, 0])),))))
        assert (down.fewest_hops >= 0).all()
        assert down.most_hops.max() <= 7
    bare = Prediction.of(marked(3)).under(Outage().after(PhysicalChange((("5", str(far[5, 0])),))))
    assert (bare.fewest_hops < 0).any()
    assert (bare.most_hops >= 0).sum() > (bare.fewest_hops >= 0).sum()
