"""Links of real switches go down, without a controller: every packet arrives, as predicted."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from compilers.forwarding.host_paths import TabulatedHops
from compilers.forwarding.walks import Walks
from compilers.proof.explanation import explain
from compilers.proof.failures.risk_cases import element_of_links
from compilers.routing.plane_choices import with_plane_alternates, with_plane_repairs
from compilers.routing.split_classes import split_direct
from compilers.tables.folders.build_folder import save
from compilers.targets.openflow.entry_counts import entries
from polarfab.fabric import Fabric
from tests.compilers.routed import routed, with_alternates
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live


def protected(build, disjoint=True, share=None):
    forwarding = with_alternates(share, disjoint, "link")
    tables = split_direct(build.tables, build.wiring)
    tables = with_plane_alternates(tables, build.wiring, forwarding)
    tables = with_plane_repairs(tables, build.wiring)
    return replace(build, balance="compact-valiant", forwarding=forwarding, tables=tables)


def observed(build, folder, cases, flows=None, dead=None, timeout=600):
    save(build, folder / "build")
    (folder / "logs").mkdir()
    script = Path(__file__).with_name("live_failures.py")
    places = [str(folder / name) for name in ("build", "logs")]
    printed = printed_apart(
        script, *places, *map(json.dumps, (cases, flows, dead)), timeout=timeout
    )
    return json.loads(printed)


def predicted(build, dead=()):
    """Of each pair the links of each path, int64[n], and the TTL of 64 that is left on arrival."""
    walks, switches = Walks.of(build), len(build.wiring.names)
    p, (s, d) = walks.program, np.nonzero(~np.eye(switches, dtype=bool))
    paths = TabulatedHops.of(walks, p, np.array(dead, np.int64)).paths(s, d)
    assert (paths.links_or_fault >= 0).all()
    left = {}
    for pair, value in zip(paths.pair.tolist(), (63 - paths.links_or_fault).tolist(), strict=True):
        left.setdefault((int(s[pair]), int(d[pair])), set()).add(value)
    return paths.links_or_fault, left


def outcomes(build, seen, cases):
    """(case, flows, hops) of each case; every flow arrived over a path that the tables have."""
    cable = Walks.of(build).program.cable
    for case, flows in [((), seen["up"]), *zip(cases, seen["down"], strict=True)]:
        hops, ttl = predicted(build, [cable[tuple(link)] for link in case])
        assert len(flows) == len(build.wiring.names) * (len(build.wiring.names) - 1) * 6
        wrong = [flow for flow in flows if flow[3] not in ttl[flow[0], flow[1]]]
        assert not wrong, (case, wrong[:5])
        yield case, flows, hops


def check(build, seen, cases):
    """Every flow arrived over a path that the tables have for it, of so many links at most."""
    for case, _, hops in outcomes(build, seen, cases):
        ends = {v for link in case for v in (link[0], far(build, link))}
        quadric = 0 in build.topology.kind[list(ends)]
        most = 9 if len(case) == 2 else 6 if quadric else 4 if case else 3
        assert hops.max() <= most


def far(build, link):
    return int(build.wiring.far[tuple(link)])


def every_link(build):
    links = np.argwhere(build.wiring.far > np.arange(len(build.wiring.far))[:, None])
    assert len(links) == build.topology.graph.size
    return [[link] for link in links.tolist()]


def pairs_at_quadrics(build):
    """Every two links of the same quadric."""
    return [
        [[d, one], [d, other]]
        for d in np.flatnonzero(build.topology.kind == 0).tolist()
        for one, other in combinations(np.flatnonzero(build.wiring.far[d] >= 0).tolist(), 2)
    ]


def spread_of(build, vertex, flows):
    """Flows from a vertex to all destinations of its class 0, and the shares of each link."""
    others = np.flatnonzero(build.tables.routes.egress[vertex] == 0).tolist()
    c = build.tables.classes
    weight = dict(
        zip([c.port[vertex, 0], *c.alternate[vertex, 0]], c.weight[vertex, 0].tolist(), strict=True)
    )
    asked = np.array([weight.get(port, 0) for port in build.wiring.port[vertex]])
    return [vertex, others, flows], asked / asked.sum()


def check_spread(shares, seen):
    """Pearson's test: what is beyond this happens once in some thousand times by chance."""
    seen = np.array(seen)
    assert not seen[shares == 0].any()
    expected = seen.sum() * shares[shares > 0]
    assert len(expected) > 2
    freedom = len(expected) - 1
    assert ((seen[shares > 0] - expected) ** 2 / expected).sum() < freedom + 4 * (
        2 * freedom
    ) ** 0.5


def check_dead_switch(seen):
    """Packets to it go around until their TTL of 64 ends; docs/concepts/failures.md says so."""
    assert np.sum(seen["loads"]) == 63 * seen["packets"]


@pytest.mark.long
def test_every_link_of_q3_goes_down_in_turn(compiled, tmp_path):
    """And the two pairs of links that would lose packets if bounces had no goals."""
    build = protected(compiled(3))
    links = every_link(build)
    assert len(links) == 24
    cases = links + [
        case
        for case in pairs_at_quadrics(build)
        if {far(build, link) for link in case} in ({5, 10}, {2, 7})
    ]
    assert len(cases) == 26
    flows, shares = spread_of(build, 5, 300)
    seen = observed(build, tmp_path, cases, flows)
    check(build, seen, cases)
    check_spread(shares, seen["spread"])


@pytest.mark.long
def test_every_two_links_of_a_quadric_of_q3_go_down(compiled, tmp_path):
    build = protected(compiled(3))
    cases = pairs_at_quadrics(build)
    assert len(cases) == 12
    check(build, observed(build, tmp_path, cases), cases)


def test_a_packet_goes_back_where_nothing_else_is_up(compiled, tmp_path):
    """A quadric of q=2 has two links: what came in on one and finds the other down must return."""
    build = protected(compiled(2))
    links = every_link(build)
    check(build, observed(build, tmp_path, links), links)


def test_entering_traffic_spreads_by_weight_and_packets_to_a_dead_switch_end(compiled, tmp_path):
    build = protected(compiled(3), disjoint=False, share=Fraction(1, 2))
    flows, shares = spread_of(build, 5, 500)
    assert sorted(shares) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
    seen = observed(build, tmp_path, [], flows, dead=5)
    check(build, seen, [])
    check_spread(shares, seen["spread"])
    check_dead_switch(seen["dead"])


@pytest.mark.long
def test_every_link_of_q4_goes_down_in_turn(compiled, tmp_path):
    build = protected(compiled(4))
    links = every_link(build)
    check(build, observed(build, tmp_path, links, timeout=1200), links)


@pytest.mark.long
def test_a_sample_of_links_of_q7_goes_down(compiled, tmp_path):
    build = protected(compiled(7))
    sample = np.random.default_rng(7).permutation(every_link(build))[:12].tolist()
    flows, shares = spread_of(build, 30, 300)
    seen = observed(build, tmp_path, sample, flows, timeout=1200)
    check(build, seen, sample)
    check_spread(shares, seen["spread"])


def paths_by_hand(build, source, destination, dead):
    """By path, its share; what explain says, with all links up or the dead one down."""
    found = explain(build, source, destination, dead)
    if dead:
        assert not any(taken.fault for taken in found.failing)
        return {taken.path: 1 for taken in found.failing}
    total = sum(found.weights)
    paths = (found.minimal, *found.alternates)
    return {path: w / total for path, w in zip(paths, found.weights, strict=True)}


@pytest.mark.parametrize(
    ("family", "q", "source", "other"),
    [
        ("polarfly", 3, 5, 1),
        pytest.param("oft", 2, 0, 5, marks=pytest.mark.long),
    ],
)
def test_marked_packets_are_spread_by_the_next_switch_and_links_go_down(
    family, q, source, other, tmp_path
):
    """Hosts get them without the mark, and over each link its share of the flows of one pair."""
    build = routed(family, q=q, spread=True, marks=True, protect="link")
    cases, ends = every_link(build)[:1], np.flatnonzero(build.topology.endpoints).tolist()
    seen = observed(build, tmp_path, cases, [source, [other], 800])
    for case, flows in [((), seen["up"]), *zip(cases, seen["down"], strict=True)]:
        pairs = (tuple(sorted((v, far(build, (v, k))))) for v, k in case)
        dead = tuple(map(element_of_links(build).__getitem__, pairs))
        assert len(flows) == len(ends) * (len(ends) - 1) * 6
        for s, d, port, ttl in flows:
            paths = paths_by_hand(build, ends[s], ends[d], dead)
            assert ttl in {64 - len(path) for path in paths}, (case, s, d, port)
    shares = np.zeros(build.wiring.far.shape)
    for path, share in paths_by_hand(build, source, other, ()).items():
        for here, after in pairwise(path):
            shares[here, build.wiring.far[here].tolist().index(after)] += share
    carried = np.array(seen["carried"])
    assert not carried[shares == 0].any()
    for switch in np.flatnonzero((shares > 0).sum(axis=1) > 2):
        check_spread(shares[switch] / shares[switch].sum(), carried[switch])
    expected = 800 * shares[shares > 0]
    assert ((carried[shares > 0] - expected) ** 2 / expected).sum() < 3 * len(expected)


def test_a_random_graph_with_fitted_shares_when_links_go_down(tmp_path):
    """A graph that no algebra routes: protection and bounced paths were searched for."""
    topology = {"family": "jellyfish", "nodes": 12, "degree": 4, "seed": 1}
    routing = {"balance": "compact-valiant", "adjacent": "bounce", "protect": "node"}
    routing["demand"] = "worst-case"
    fabric = Fabric.from_spec({"name": "lab", "topology": topology, "routing": routing})
    report, build = fabric.verify(method="walk").reports[0], fabric.build
    cases = every_link(build)[::12]
    seen = observed(build, tmp_path, cases)
    most = next(kind.max_hops for kind in report.failures if kind.kind == "link")
    for case, _, hops in outcomes(build, seen, cases):
        assert hops.max() <= (most if case else report.alternates.max_hops)


def test_far_fewer_entries_than_an_emitter_without_classes_would_need(compiled):
    made = {q: entries(protected(compiled(q))) for q in (3, 7)}
    for q, found in made.items():
        # N routes, a row and a group each of 9 kinds a link, and what hosts and dispatch take.
        assert found.emitted <= q * q + q + 1 + 18 * (q + 1) + 6
        assert found.naive > (1.2 if q == 3 else 2.4) * found.emitted


def test_packets_wait_until_open_vswitch_has_noticed_a_cable(tmp_path):
    """Machines with much work notice late; fast reroute follows what has been noticed."""
    save(routed("polarfly", q=3, protect="link"), tmp_path / "build")
    (tmp_path / "logs").mkdir()
    script = Path(__file__).with_name("live_notice.py")
    printed = printed_apart(script, str(tmp_path / "build"), str(tmp_path / "logs"), timeout=120)
    assert json.loads(printed) == [0, 0, 0, 0]
