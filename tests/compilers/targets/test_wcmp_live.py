"""eBGP that shares at every hop on FRR: kernels weigh neighbours by the paths behind them."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import networkx as nx
import pytest

from compilers.audit.route_report import RouteReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target_lookup import target
from tests.compilers.audit.device_tables import DISCARD, kernel, write
from tests.compilers.routed import agreed
from tests.compilers.targets.live_bgp import ROUNDED
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
GRAPH = "u a\nu b\na x\na y\na w\nb z\nb w\nx d\ny d\nz d\nw d\n"
"""From u three paths lead to d by a, and two by b."""
SPEC = """name: uneven
topology: {family: graph, file: g.txt}
routing: {balance: ecmp, transit: ecmp}
addressing: {ipv6: "fd00::/48"}
"""


def expected(graph, source, destination):
    """{neighbour: share of traffic} by the number of next hops that each has itself."""
    away = dict(nx.all_pairs_shortest_path_length(graph))

    def following(v):
        return [n for n in graph[v] if away[n][destination] == away[v][destination] - 1]

    behind = {n: len(following(n)) or 1 for n in following(source)}
    return {n: count / sum(behind.values()) for n, count in behind.items()}


def compiled(folder, control):
    (folder / "g.txt").write_text(GRAPH)
    (folder / "fabric.yaml").write_text(SPEC)
    save(agreed(compile_fabric(load_fabric(folder / "fabric.yaml")), control), folder / "b")
    build = load(folder / "b")
    target("frr").render(build, folder / "out")
    return build


@pytest.mark.parametrize("wcmp", ["on", "off"])
def test_weights_are_the_paths_behind_each_neighbour(wcmp, tmp_path):
    """Before, with the cable a - x pulled, and after it is back; without `wcmp` all are alike."""
    build = compiled(tmp_path, {"routing": "bgp", "bfd": "on", "wcmp": wcmp})
    w = build.wiring
    number = {name: v for v, name in enumerate(w.names)}

    def port(name, other):
        (k,) = (w.far[number[name]] == number[other]).nonzero()[0].tolist()
        return w.port_name(number[name], int(w.port[number[name], k]))

    def wanted(graph):
        """{switch: {prefix: {port: share}}} of all pairs."""
        found = {name: {} for name in w.names}
        for source, destination in permutations(w.names, 2):
            shares = expected(graph, source, destination)
            if wcmp == "off":
                shares = dict.fromkeys(shares, 1 / len(shares))
            by_port = {port(source, n): share for n, share in shares.items()}
            for network in (build.addressing.network, build.addressing.network6):
                found[source][str(network(number[destination]))] = by_port
        return found

    whole = nx.Graph(line.split() for line in GRAPH.splitlines())
    lacking = whole.copy()
    lacking.remove_edge("a", "x")
    a, x = number["a"], number["x"]
    steps = [[wanted(whole)], ["pull", a, x, wanted(lacking)], ["mend", a, x, wanted(whole)]]
    script = Path(__file__).with_name("live_bgp.py")
    todo = {"live": True, "weights": True, "failures": steps}
    printed = printed_apart(script, tmp_path / "b", json.dumps(todo), tmp_path / "out", timeout=300)
    for (*_, right), found in zip(steps, json.loads(printed), strict=True):
        for source, routes in right.items():
            for prefix, shares in routes.items():
                hops = found[source][prefix]
                assert hops.keys() == shares.keys(), (source, prefix)
                for name, share in shares.items():
                    part = hops[name] / sum(hops.values())
                    assert part == pytest.approx(share, abs=ROUNDED), (source, prefix)
        uneven = [s for routes in right.values() for s in routes.values() if len({*s.values()}) > 1]
        assert bool(uneven) is (wcmp == "on")
    held, _, _ = json.loads(printed)
    assert not differences(build, tmp_path, held)
    other = {"on": "off", "off": "on"}[wcmp]
    assert {*differences(agreed(build, {"wcmp": other}), tmp_path, held)} == {"weight"}


def differences(build, folder, held):
    """The kinds of what `check routes` finds in the kernels' routes; the pools are discarded."""
    (folder / "said").mkdir(exist_ok=True)
    for node, routes in held.items():
        paths = {
            ("main", prefix): [[("fe80::1", *hop) for hop in hops.items()]]
            for prefix, hops in routes.items()
        }
        pools = {("main", pool): DISCARD for pool in fabric_pools(build.addressing)}
        write(folder / "said" / f"{node}.json", kernel(paths | pools))
    report = RouteReport.of(build, [folder / "said"], "frr")
    return [one.kind for one in report.differences]
