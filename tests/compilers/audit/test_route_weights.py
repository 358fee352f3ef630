"""Weights of BGP's next hops (`wcmp`): as many as there are paths behind, rounded by the system."""

from __future__ import annotations

import networkx as nx
import pytest

from compilers.audit.route_report import RouteReport
from compilers.targets.target_lookup import target
from tests.compilers.audit.device_tables import appl_db, frr, kernel, write
from tests.compilers.routed import agreed
from tests.compilers.targets.test_wcmp_live import GRAPH, compiled, expected

WCMP = {"routing": "bgp", "wcmp": "on"}
PRINTED = {"frr": frr, "kernel": kernel, "sonic": appl_db}


def said(build, system, weight):
    """{switch: {(table, prefix): [[hop, …]]}} with weights by `weight(share)` of each path."""
    graph = nx.Graph(line.split() for line in GRAPH.splitlines())
    names, w, a = build.wiring.names, build.wiring, build.addressing
    owner = {str(net(v)): n for v, n in enumerate(names) for net in (a.network, a.network6)}
    routes = target(system).routes_held(*target(system).check(agreed(build, WCMP)))
    found = {}
    for v, node in enumerate(names):
        through = {w.port_name(v, p): names[f] for p, f in zip(w.port[v], w.far[v], strict=True)}
        found[node] = {}
        for prefix, (hops, *_) in routes(v)["main"].items():
            if prefix not in owner:
                found[node]["main", prefix] = [[("discard", "", 1)]]
                continue
            parts = expected(graph, node, owner[prefix])
            gateway = "fe80::1" if system == "frr" or ":" in prefix else "169.254.0.1"
            gateway = gateway if system == "frr" else None
            found[node]["main", prefix] = [
                [(gateway or hop[0], hop[1], weight(parts[through[hop[1]]])) for hop in hops]
            ]
    return found


@pytest.mark.parametrize("printer", PRINTED)
def test_weights_are_those_of_the_paths_behind(printer, tmp_path):
    """FRR 8.4 brings them to 100, others to 255 or 65,535; alike, absent and turned are named."""
    system = "sonic" if printer == "sonic" else "frr"
    build = target(system).interfaces.named(compiled(tmp_path, {"routing": "bgp"}))

    def kinds(weight):
        for node, routes in said(build, system, weight).items():
            write(tmp_path / "said" / f"{node}.json", PRINTED[printer](routes))
        report = RouteReport.of(agreed(build, WCMP), [tmp_path / "said"], system)
        return {one.kind for one in report.differences}

    (tmp_path / "said").mkdir()
    for whole in (100, 255, 65535):
        assert kinds(lambda part, whole=whole: max(int(whole * part), 1)) == set()
    for wrong in (lambda _: 1, lambda part: int(100 / part)):
        assert kinds(wrong) == {"weight"}
    if printer != "sonic":
        assert kinds(lambda _: 0) == {"weight"}
