"""`transit: ecmp` on Linux kernels, targets linux and frr: text, mutants, kernels that forward."""

import json
import re
from dataclasses import replace
from functools import cache
from ipaddress import IPv6Network

import networkx as nx
import numpy as np
import pytest

from compilers.proof.failures.failure_walks import walk_failures
from compilers.readers.devices.held_routes import DISCARD, MAIN_TABLE
from compilers.targets.linux.route_lines import kernel_remediation
from compilers.targets.linux.routing_tables import read
from compilers.targets.routed.linux_tables import kernel_tables
from compilers.targets.routed.static_routes import BuildRouters
from compilers.targets.target_lookup import target
from tests.compilers.readers.emitted import IDENTITY, check, write
from tests.compilers.routing.makers import HYPERX, TREE, compiled, graph_of
from tests.compilers.targets.kernels import on_kernels

FLOWS = 2000
PAIRS = [(0, 17), (4, 9)]
"""Of HyperX 3x3x2: of 6 and of 6 shortest paths."""


@cache
def fabric(protect="link"):
    return addressed(HYPERX, protect)


def addressed(topology, protect):
    build = compiled(topology, protect=protect)
    plan = replace(
        build.addressing, ipv6=IPv6Network("fd00::/48"), hierarchy=build.topology.hierarchy
    )
    return replace(build, identity=IDENTITY, addressing=plan)


@pytest.mark.parametrize(
    ("topology", "protect", "name", "options"),
    [
        (HYPERX, "link", "linux", {}),
        (TREE, "node", "frr", {"version": "10.7"}),
        ({"family": "pn", "q": 2}, "none", "frr", {}),
    ],
)
def test_every_file_says_what_the_tables_say(topology, protect, name, options, tmp_path):
    build = addressed(topology, protect)
    write(name, build, tmp_path, options)
    report = check(name, build, tmp_path, options)
    assert not report.differences
    assert report.delivered == report.pairs > 0


def test_main_shares_every_shortest_path_and_no_table_tells_hosts_apart(tmp_path):
    """By the words of the files and the cables alone, in both targets."""
    build = fabric(protect="none")
    graph, w = graph_of(build), build.wiring
    away = dict(nx.all_pairs_shortest_path_length(graph))
    for name in ("linux", "frr"):
        write(name, build, tmp_path / name)
        for v in range(build.tables.switches):
            files = tmp_path / name / w.names[v]
            assert "rule add" not in (files / "rules.batch").read_text()
            far = {w.port_name(v, int(p)): int(f) for p, f in zip(w.port[v], w.far[v], strict=True)}
            for d in set(graph) - {v}:
                paths = {
                    name for name, f in far.items() if f in graph[v] and away[f][d] < away[v][d]
                }
                for block in (build.addressing.network(d), build.addressing.network6(d)):
                    assert first_choice(files, str(block)) == paths, (name, v, d)


def first_choice(files, prefix):
    """The interfaces that share packets to a prefix, by its first route of table main."""
    if (files / "frr.conf").exists():
        text = (files / "frr.conf").read_text()
        return set(re.findall(rf"^ipv?6? route {prefix} \S+ (\S+)(?: onlink)?$", text, re.M))
    text = (files / "routes.batch").read_text()
    hops = dict(re.findall(r"replace id (\d+) via \S+ dev (\S+)", text))
    groups = dict(re.findall(r"replace id (\d+) group (\S+)", text))
    (path,) = re.findall(rf"route replace {prefix} nhid (\d+) metric 1 table 254 ", text)
    return {hops[m.removesuffix(",1")] for m in groups.get(path, f"{path},1").split("/")}


MUTANTS = [
    ("linux", "routes.batch", r"(?m)^route replace unreachable \S+ metric \d+ table .*\n", ""),
    ("linux", "routes.batch", r"replace unreachable (\S+ metric \d+ table)", r"replace throw \1"),
    ("linux", "routes.batch", r"(unreachable \S+ metric 400000000)0 table", r"\g<1>1 table"),
    ("linux", "routes.batch", r" group (\d+),1/", r" group \1,2/"),
    ("linux", "routes.batch", r" group \d+,1/(\d+),1/", r" group \1,1/"),
    ("linux", "routes.batch", r"nhid 6000(\d\d) metric 1", r"nhid 500001 metric 1"),
    (
        "linux",
        "routes.batch",
        r"nhid (\d+) metric 1 table 5001",
        r"nhid 500001 metric 1 table 5001",
    ),
    ("linux", "rules.batch", r"lookup 5001", "lookup 5002"),
    ("linux", "sysctl.conf", r"hash_seed = (\d+)\d", r"hash_seed = \g<1>0"),
    (
        "linux",
        "sysctl.conf",
        r"ipv6/fib_multipath_hash_policy = 3",
        "ipv6/fib_multipath_hash_policy = 1",
    ),
    ("linux", "load.sh", "flush table all type", "flush type"),
    ("frr", "frr.conf", r"(?m)^ip route \S+ reject 254 table .*\n", ""),
    ("frr", "frr.conf", r"reject 254 table", "reject 253 table"),
    ("frr", "frr.conf", r"(?m)^(ip route 10.0.0.68/30 \S+ eth)(\d) onlink\n", ""),
    ("frr", "frr.conf", r"(?m)^(ip route 10.0.0.68/30 \S+ eth\d) onlink$", r"\1 2 onlink"),
    ("frr", "sysctl.conf", r"hash_seed = (\d+)\d", r"hash_seed = \g<1>0"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The files of both targets."""
    places = {name: tmp_path_factory.mktemp(name) for name in ("linux", "frr")}
    for name, folder in places.items():
        write(name, fabric(), folder)
    return places


@pytest.mark.parametrize(("name", "file", "old", "new"), MUTANTS)
def test_a_changed_line_is_told(folders, name, file, old, new):
    path = folders[name] / "5" / file
    before = path.read_text()
    after = re.sub(old, new, before, count=1)
    assert after != before
    path.write_text(after)
    report = target(name).check_emitted(fabric(), folders[name], only=[5])
    path.write_text(before)
    assert report.differences


def shares(graph, source, destination):
    """{(switch, switch): part} of what goes by every shortest path, shared alike at each switch."""
    away = nx.shortest_path_length(graph, target=destination)
    part, load = {source: 1.0}, {}
    for v in sorted(away, key=away.get, reverse=True):
        after = [u for u in graph[v] if away[u] < away[v]] if v in part else []
        for u in after:
            load[v, u] = part[v] / len(after)
            part[u] = part.get(u, 0) + load[v, u]
    return load


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("name", ["linux", "frr"])
def test_kernels_share_at_every_hop_and_answer_around_a_cut_link(name, tmp_path):
    build, out, seen = on_kernels(fabric(), name, tmp_path, PAIRS, FLOWS)
    far, graph = build.wiring.far, graph_of(build)
    for (source, destination), by_family in zip(PAIRS, seen["sent"], strict=True):
        loads = shares(graph, source, destination)
        for sent in by_family:
            for v, k in np.argwhere(far >= 0).tolist():
                part = loads.get((v, int(far[v, k])), 0)
                deviation = (FLOWS * part * (1 - part)) ** 0.5
                close = pytest.approx(FLOWS * part, abs=5 * deviation + 12)
                assert sent[v][k] == close, (source, destination, v, int(far[v, k]))
    away = dict(nx.all_pairs_shortest_path_length(graph))
    everyone = range(len(far))
    ttl = [[63 - away[d][s] if s != d else 0 for d in everyone] for s in everyone]
    assert seen["pings"] == [ttl, ttl]
    down, apart = np.array(seen["down"]), ~np.eye(len(far), dtype=bool)
    assert down[:, apart].min() >= 63 - walk_failures(build, "link").max_hops
    assert down[:, apart].max() == 62
    if name == "linux":
        shown = [json.loads(text) for text in seen["held"]]
        held = read([each for each in shown if each]).tables()
        expected = kernel_tables(BuildRouters.of(build), 5, {4: "ipv6", 6: "ipv6"})
        assert any(DISCARD in c for t in expected if t != MAIN_TABLE for c in expected[t].values())
        for table, rows in expected.items():
            found = held.get(table, {})
            assert {prefix: found.get(prefix) for prefix in rows} == rows
            assert table == MAIN_TABLE or found.keys() == rows.keys()
        batch = (out / "5" / "routes.batch").read_text()
        routes = json.dumps([*shown[0], *shown[1]])
        assert not kernel_remediation(routes, json.dumps(shown[2]), batch)
