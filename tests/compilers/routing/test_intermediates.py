"""Intermediates: paths, loads and failures by the minimal paths of both legs; rows; who refuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network
from itertools import pairwise, product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compilers.evaluation.saturation import LinkLoads, throughput
from compilers.forwarding.single_packets import DELIVERED, SinglePackets
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.name_lookup import find_failure
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.routing.intermediates import intermediates
from compilers.spec.fabric_file import load_fabric
from compilers.spec.forwarding import PLAIN
from compilers.tables.build import Build
from compilers.targets.openflow.pipeline import Pipeline
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, check_switch, write
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3}
SMALL = IQ | {"degree": 0}
OTHERS = {
    "slimfly": {"family": "slimfly", "q": 4},
    "jellyfish": {"family": "jellyfish", "nodes": 16, "degree": 4, "seed": 1},
    "pn": {"family": "pn", "q": 3},
}


def over(**fabric: object) -> Build:
    """A fabric whose packets go by intermediates; its tables are those of minimal routes."""
    build = routed(**fabric)  # type: ignore[arg-type]
    forwarding = replace(build.forwarding, intermediates=True)
    build = replace(build, balance="valiant", forwarding=forwarding, identity=IDENTITY)
    both = replace(build.addressing, ipv6=IPv6Network("fd00::/48"))
    return replace(build, addressing=both)


@cache
def compiled(name: str, protect: str = "link") -> Build:
    """A fabric of another family, from its spec."""
    spec = {"name": "lab", "topology": OTHERS[name], "hosts_per_node": 2}
    return compile_fabric(
        load_fabric({**spec, "routing": {"balance": "valiant", "protect": protect}})
    )


def legs(build: Build) -> dict[tuple[int, int], tuple[int, ...]]:
    """The minimal path of every pair, by the explanation of minimal routes."""
    plain, order = replace(build, forwarding=PLAIN), range(len(build.wiring.names))
    return {(s, d): explain(plain, s, d).minimal for s in order for d in order}


@pytest.mark.parametrize("build", [over(q=3), over(**SMALL)], ids=["polarfly", "polarstar"])
def test_every_path_is_two_minimal_paths(build: Build) -> None:
    path, order = legs(build), len(build.wiring.names)
    for s, d in product(range(0, order, 4), range(1, order, 4)):
        found = explain(build, s, d)
        alternates = Counter(path[s, r] + path[r, d][1:] for r in range(order))
        assert found.weights[0] == alternates.pop(path[s, d])
        assert Counter(found.alternates) == alternates
        assert set(found.weights[1:]) == {1}
        for chosen, middle, channel in zip(
            found.alternates,
            found.intermediates,
            found.as_dict(build)["alternate_channels"],
            strict=True,
        ):
            assert chosen == path[s, middle] + path[middle, d][1:]
            assert channel == sorted(channel)
            turn = chosen.index(middle)
            assert turn in (0, len(chosen) - 1) or channel[turn - 1] < channel[turn]


def test_source_and_destination_are_drawn_as_often_as_any_other_switch() -> None:
    """The minimal path weighs as many draws as it has switches: both ends, and what is between."""
    build = over(q=3)
    pairs = [(s, d) for s in (0, 5) for d in range(13) if s != d]
    explained = [explain(build, s, d) for s, d in pairs]
    assert {len(pair.minimal) for pair in explained} == {2, 3}
    assert all(pair.weights[0] == len(pair.minimal) for pair in explained)
    assert all(sum(pair.weights) == 13 for pair in explained)


@pytest.mark.parametrize("build", [over(q=3), over(**SMALL)], ids=["polarfly", "polarstar"])
def test_loads_are_those_of_every_path(build: Build) -> None:
    path, order = legs(build), len(build.wiring.names)
    found = LinkLoads.of(build, "tornado", 1)
    load: Counter[tuple[int, int]] = Counter()
    half = [(s, (s + order // 2) % order) for s in range(order)]
    for s, d in half:
        for r in range(order):
            for link in pairwise(path[s, r] + path[r, d][1:]):
                load[link] += 1
    f = found.fluid.forwarding
    assert found.by_tables is not None
    for arc in np.flatnonzero(f.far_arc >= 0).tolist():
        link = arc // f.arcs_a_switch, int(f.far_arc[arc]) // f.arcs_a_switch
        assert found.by_tables[arc] == pytest.approx(load[link] / order)


@pytest.mark.parametrize("q", [3])
def test_every_permutation_gets_the_same(q: int) -> None:
    """Each sends and gets as much as any other, and what intermediates see is no more than that."""
    build = over(q=q, hosts=(q + 1) // 2)
    for pattern in ("uniform", "tornado", "permutation", "perm1hop", "longest"):
        found = throughput(build, pattern, hosts=(q + 1) // 2)
        assert found.as_emitted is not None
        assert found.adaptive is None
        # The fullest links have a quadric at one end: 2·q pairs of switches cross them in each leg.
        assert found.as_emitted.share == pytest.approx((q * q + q + 1) / (2 * q * (q + 1)))


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_other_families_carry_every_permutation_at_half_of_uniform(name: str) -> None:
    build = compiled(name)
    report = verify(build, ProofOptions())
    assert report.passed
    assert report.counts_legs
    assert [case.lost_pairs for case in report.failures] == [0]
    got = {
        pattern: throughput(build, pattern, hosts=4).as_emitted
        for pattern in ("uniform", "permutation", "perm1hop", "longest")
    }
    shares = [one.peak for one in got.values() if one]
    assert len(shares) == 4
    assert max(shares) == pytest.approx(min(shares))


@pytest.mark.parametrize(("q", "protect"), [(3, "none"), (4, "node")])
def test_what_is_proved_of_legs_holds_of_paths(q: int, protect: str) -> None:
    build = over(q=q, protect=protect)
    kinds = ("link", "node", "2") if protect == "node" else ()
    report = verify(build, ProofOptions(channels=True))
    assert report.passed
    assert report.alternates is not None
    order = q * q + q + 1
    assert (report.alternates.paths, report.alternates.strays, report.alternates.max_hops) == (
        order * order * (order - 1),
        0,
        4,
    )
    assert {case.kind: case.lost_pairs for case in report.failures} == dict.fromkeys(kinds, 0)
    assert report.channels is not None
    assert (report.channels.count, report.channels.is_deadlock_free) == (3, True)


@pytest.mark.parametrize("build", [over(q=3, protect="node"), over(**IQ, protect="node")],
                         ids=["polarfly", "polarstar"])  # fmt: skip
def test_every_path_arrives_with_any_link_or_switch_down(build: Build) -> None:
    """Followed switch by switch; a neighbour of a dead intermediate sends packets on from there."""
    far, order = build.wiring.far, len(build.wiring.names)
    links = [(s, int(d)) for s in range(order) for d in far[s] if d > s]
    random = np.random.default_rng(order)
    down = [set(links[n]) for n in random.choice(len(links), 6, replace=False)]
    down += [{int(v)} for v in random.choice(order, 6, replace=False)]
    for cut in down:
        dead = find_failure(build, "-".join(map(str, cut)))
        left = [v for v in range(order) if len(cut) == 2 or v not in cut]
        for s, d in random.choice(left, (8, 2)).tolist():
            packets = SinglePackets.with_failures(build, d, (dead,))
            for _, (path, outcome, _, _) in packets.intermediate_paths(s) if s != d else ():
                assert (path[0], path[-1], outcome) == (s, d, DELIVERED)
                assert cut not in [set(link) for link in pairwise(path)]
                assert len(cut) == 2 or not cut & set(path)


def test_without_repair_packets_over_a_dead_link_are_lost() -> None:
    build = over(q=3)
    near = int(build.wiring.far[0, 0])
    found = explain(build, 0, near, (find_failure(build, f"0-{near}"),))
    assert {bool(chosen.fault) for chosen in found.failing} == {True, False}


def test_a_leg_to_a_part_that_is_cut_off_breaks_the_promise(tmp_path: Path) -> None:
    """Two rings and a bridge: a packet may be sent to a switch beyond, its own path is whole."""
    graph = nx.cycle_graph(4)
    graph.add_edges_from([(4, 5), (5, 6), (6, 7), (7, 4), (0, 4)])
    nx.write_edgelist(graph, tmp_path / "edges.txt", data=False)
    spec = "name: lab\ntopology: {family: graph, file: edges.txt}\nrouting: "
    for balance, passed in (("minimal", True), ("valiant", False)):
        file = tmp_path / "fabric.yaml"
        file.write_text(spec + f"{{balance: {balance}, protect: link}}\n")
        report = verify(compile_fabric(load_fabric(file)), ProofOptions())
        assert report.passed == passed


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("modulo_n,13,0", "modulo_n,12,0", "intermediate drawn"),
        ("udp,5,modulo_n", "udp,6,modulo_n", "intermediate drawn"),
        ("set_field:02:50:46:80:00:00->eth_dst,multi", "set_field:02:50:46:80:01:00->eth_dst,multi",
         "intermediate drawn"),
        ("ip_dst=10.0.0.40/29,actions=dec_ttl", "ip_dst=10.0.0.48/29,actions=dec_ttl", "own block"),
        ("00:00/ff:ff:ff:ff:00:00", "00:00/ff:ff:ff:00:00:00", "ff:ff:ff:00"),
        ("80:00:05,actions=set_field", "80:00:06,actions=set_field", "intermediate reached"),
        ("load:0->NXM_OF_IN_PORT[],resubmit", "resubmit", "resubmit"),
        ("load:0->NXM_NX_REG0[0..15],", "", "resubmit"),
        ("members:1)", "members:2)", "intermediate"),
        ("bundle_load(symmetric_l3l4+udp,0,active_backup,ofport,NXM_NX_REG0[0..15],members:1),", "",
         "intermediate"),
    ],
)  # fmt: skip
def test_what_ovs_is_given_is_read_back(old: str, new: str, says: str, tmp_path: Path) -> None:
    build = over(q=3, protect="link", hosts=2)
    write("ovs", build, tmp_path)
    path = tmp_path / "5" / "flows.txt"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = check_switch("ovs", build, tmp_path, 5)
    assert found.differences
    assert any(says in str(each) for each in found.examples)


@pytest.mark.parametrize("build", [over(q=2), over(q=3, protect="link", hosts=2)])
def test_rows_by_intermediate_lead_where_routes_lead(build: Build, tmp_path: Path) -> None:
    """Every class that is swapped for another in a row by an intermediate is told."""
    write("ovs", build, tmp_path)
    assert not check("ovs", build, tmp_path).differences
    pipeline, ends = Pipeline(build), intermediates(build)
    for v in (len(ends) - 1,):
        path = tmp_path / str(v) / "flows.txt"
        text = path.read_text()
        lines = [line for line in text.splitlines() if line and line[0] != "#"]
        assert len(lines) == pipeline.row_count(v)
        rows = [line for line in lines if "504600000000000f" in line and "table=1" in line]
        assert len(rows) == len(ends)
        row = next(line for line in rows if "write_metadata:" in line)
        head, tail = row.split("write_metadata:")
        number, rest = tail.split("/", 1)
        path.write_text(text.replace(row, f"{head}write_metadata:{int(number) ^ 1}/{rest}"))
        found = check("ovs", build, tmp_path)
        assert found.differences == 2, "a row is missing, and there is one too many"
        path.write_text(text.replace(row + "\n", ""))
        assert check("ovs", build, tmp_path).differences == 1
        path.write_text(text)


@pytest.mark.parametrize("target", ["linux", "eos", "opensm"])
def test_who_cannot_carry_them_refuses_by_name(target: str, tmp_path: Path) -> None:
    said = f"as target {target}.* cannot do .*packets that carry an intermediate switch"
    with pytest.raises(InputError, match=said):
        write(target, over(q=3), tmp_path)


def test_fabrics_with_switches_without_hosts_are_refused() -> None:
    spec = {"name": "lab", "topology": {"family": "oft", "q": 2}}
    with pytest.raises(InputError, match="another balance in family oft, where not every"):
        compile_fabric(load_fabric({**spec, "routing": {"balance": "valiant"}}))


def test_a_host_with_the_address_of_an_intermediate_is_refused() -> None:
    hosts = [{"name": "h", "mac": "02:50:46:80:00:07"}]
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(13)]
    leaf = {"ports": [{"name": "a{}", "count": 8}]}
    inventory = {"node_types": {"leaf": leaf}, "nodes": [{**nodes[0], "hosts": hosts}, *nodes[1:]]}
    fabric = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "inventory": inventory}
    compile_fabric(load_fabric(fabric))
    with pytest.raises(InputError, match="no other host has, nor the gateway, given 02:50:46:8"):
        compile_fabric(load_fabric({**fabric, "routing": {"balance": "valiant"}}))
