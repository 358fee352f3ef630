"""`transit: ecmp`: all shortest paths at every hop, from the tables to the emitted text."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compilers.evaluation.saturation import throughput
from compilers.evaluation.traffic import PATTERNS
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.lossless.channels import find_channels
from compilers.proof.name_lookup import find_failure
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, check_switch, write
from tests.compilers.routing.makers import HYPERX, TREE, Topology, compiled, graph_of

SMALL_HYPERX: Topology = {"family": "hyperx", "sides": "3x2x2"}
FABRICS = [
    SMALL_HYPERX,
    TREE,
    {"family": "oft", "q": 2},
    {"family": "jellyfish", "nodes": 16, "degree": 4, "seed": 1},
    {"family": "megafly", "h": 2, "a": 4},
    {"family": "mlfm", "n": 4},
]


def name(topology: Topology) -> str:
    return "-".join(map(str, topology.values()))


@pytest.mark.parametrize("topology", FABRICS[:4], ids=name)
def test_paths_are_all_shortest_ones_with_equal_shares_at_each_switch(topology: Topology) -> None:
    build = compiled(topology)
    graph = graph_of(build)
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    for s in ends[:: max(1, len(ends) // 4)]:
        for d in ends:
            if s == d:
                continue
            found = explain(build, s, d)
            paths = list(map(tuple, nx.all_shortest_paths(graph, s, d)))
            assert sorted([found.minimal, *found.alternates]) == sorted(paths)
            ahead = {v: len({p[i + 1] for p in paths if p[i] == v}) for i, v in _passed(paths)}
            shares = dict(zip([found.minimal, *found.alternates], found.weights, strict=True))
            total = sum(shares.values())
            for path, share in shares.items():
                part = np.prod([Fraction(1, ahead[v]) for v in path[:-1]])
                assert Fraction(share, total) == part


def _passed(paths: list[tuple[int, ...]]) -> set[tuple[int, int]]:
    return {(i, v) for path in paths for i, v in enumerate(path[:-1])}


@pytest.mark.parametrize("topology", FABRICS, ids=name)
def test_nothing_is_lost_under_any_single_failure(topology: Topology) -> None:
    """MLFM is not protected by one way in transit."""
    build = compiled(topology, protect="node")
    report = verify(build, ProofOptions())
    assert report.passed
    assert not report.local
    assert [f.lost_pairs for f in report.failures] == [f.cut_off for f in report.failures]


@pytest.mark.parametrize("topology", FABRICS[:4], ids=name)
def test_minimal_hops_need_a_channel_a_link(topology: Topology) -> None:
    build = compiled(topology)
    found = find_channels(build, "hop")
    assert found.is_deadlock_free
    assert found.count == verify(build).max_hops
    assert find_channels(build).is_deadlock_free


def lost_by_hand(build: Build, dead: tuple[int, int]) -> set[tuple[int, int]]:
    """Pairs of which some packet is lost or goes round while a link is down: the rule again."""
    c, w = build.tables.classes, build.wiring
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    egress = build.tables.routes.egress

    def far(s: int, port: int) -> int:
        return int(w.far[s][w.port[s].tolist().index(port)])

    def onward(s: int, came: int, d: int) -> list[int]:
        k = int(egress[s, d])
        minimal, *others = (int(c.port[s, k]), *c.alternate[s, k].tolist())
        alternates = [far(s, p) for p in (minimal, *others) if p]
        up = [v for v in alternates if {s, v} != set(dead)]
        if len(alternates) > 1 and came not in alternates and up:
            return up
        order = [far(s, p) for p in (minimal, *c.protection[s, k].tolist()) if p]
        bounce = [far(s, p) for p in c.bounce[s, k].tolist() if p]
        tried = [*bounce, alternates[0]] if came in alternates else order
        left = [v for v in tried if v != came and {s, v} != set(dead)]
        return left[:1] or ([came] if came in order else [])

    lost = set()
    for d in ends:
        step = cache(lambda s, came, d=d: tuple(onward(s, came, d)))
        for source in ends:
            states, waiting = {(source, -1): list[tuple[int, int]]()}, deque([(source, -1)])
            while waiting:
                s, came = waiting.popleft()
                if s == d:
                    continue
                for v in step(s, came):
                    states[s, came].append((v, s))
                    if (v, s) not in states:
                        states[v, s] = []
                        waiting.append((v, s))
            if any(not after and s != d for (s, _), after in states.items()):
                lost.add((source, d))
            edges = [(one, other) for one, after in states.items() for other in after]
            if not nx.is_directed_acyclic_graph(nx.DiGraph(edges)):
                lost.add((source, d))
    return lost


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_walker_by_hand_loses_the_same_pairs(spoilt: bool) -> None:
    build = compiled(SMALL_HYPERX, protect="link")
    if spoilt:  # some switches repair by a link alone that others repair by, or not at all
        c = build.tables.classes
        bounce, protection = np.array(c.bounce), np.array(c.protection)
        bounce[3:7], protection[::2, :, 0], protection[1::4] = 0, 1, 0
        classes = replace(c, bounce=bounce, protection=protection)
        build = replace(build, tables=replace(build.tables, classes=classes))
    wanted = 0
    for s, v in build.topology.graph.edges().tolist():
        wanted += len(lost_by_hand(build, (s, v)))
    found = verify(build, ProofOptions(failures=("link",))).failures[0]
    assert found.lost_pairs == wanted
    assert bool(wanted) == spoilt


@pytest.mark.parametrize("topology", FABRICS[:2], ids=name)
def test_loads_are_those_of_shares_by_hand(topology: Topology) -> None:
    build = compiled(topology)
    hosts = 2
    found = throughput(build, "uniform", hosts)
    traffic = PATTERNS["uniform"](build.topology, hosts, 0)
    load: dict[tuple[int, int], float] = {}
    for s, d, amount in zip(traffic.source, traffic.destination, traffic.amount, strict=True):
        hop = explain(build, int(s), int(d))
        for path, weight in zip((hop.minimal, *hop.alternates), hop.weights, strict=True):
            for link in pairwise(path):
                load[link] = load.get(link, 0) + amount * weight / sum(hop.weights)
    assert found.as_emitted is not None
    assert found.as_emitted.peak == pytest.approx(max(load.values()))
    assert found.adaptive is None


def test_shared_at_every_hop_carries_more_than_at_the_first() -> None:
    first = compile_fabric(
        load_fabric({"name": "lab", "topology": HYPERX, "routing": {"balance": "ecmp"}})
    )
    loads = [throughput(build, "uniform", 2).as_emitted for build in (first, compiled(HYPERX))]
    assert loads[0] is not None
    assert loads[1] is not None
    assert loads[1].peak < 0.8 * loads[0].peak


@pytest.mark.parametrize(
    ("topology", "protect"), [(SMALL_HYPERX, "node"), (TREE, "none"), (FABRICS[2], "node")]
)
def test_text_for_open_vswitch_says_the_same(
    topology: Topology, protect: str, tmp_path: Path
) -> None:
    build = replace(compiled(topology, protect=protect), identity=IDENTITY)
    write("ovs", build, tmp_path)
    assert not check("ovs", build, tmp_path).differences


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hrw,ofport,members:1,", "hrw,ofport,members:"),
        ("udp,0,hrw", "udp,1,hrw"),
        ("in_port=1,metadata", "in_port=2,metadata"),
    ],
)
def test_a_changed_row_is_told(old: str, new: str, tmp_path: Path) -> None:
    build = replace(compiled(HYPERX, protect="link"), identity=IDENTITY)
    write("ovs", build, tmp_path, only=[0])
    assert check("ovs", build, tmp_path, only={0}).passed
    file = tmp_path / "0" / "flows.txt"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    assert check_switch("ovs", build, tmp_path, 0).differences


def test_failed_links_are_explained() -> None:
    build = compiled(HYPERX, protect="link")
    found = explain(build, 0, 17, [find_failure(build, "0-1")])
    assert found.passed
    assert len(found.failing) == 4
    assert all(hop.path[1] != 1 for hop in found.failing)
    down = explain(build, 0, 17, [find_failure(build, "17")])
    assert "switch 17 is down" in down.failing[0].fault


@pytest.mark.parametrize(
    ("topology", "routing", "said"),
    [
        (HYPERX, {"balance": "minimal"}, "transit: required minimal with `balance: minimal`"),
        (HYPERX, {"demand": "worst-case"}, "demand: required no demand with `transit: ecmp`"),
        (
            {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3},
            {},
            "transit: required minimal in a polarstar, whose rows lead to whole supernodes",
        ),
    ],
)
def test_messages(topology: Topology, routing: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compiled(topology, **routing)


def test_a_target_that_cannot_share_in_transit_refuses(tmp_path: Path) -> None:
    build = replace(compiled(HYPERX), identity=IDENTITY)
    said = "transit: required minimal, as target eos cannot do traffic in transit shared over"
    with pytest.raises(InputError, match=said):
        write("eos", build, tmp_path)


def test_two_switches_share_packets_over_the_only_link() -> None:
    build = compiled({"family": "hyperx", "sides": "2"}, protect="none")
    assert verify(build).passed
