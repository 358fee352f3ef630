"""eBGP of the frr target: preferences where paths tie, against brute force; the manual's page."""

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from compilers.tables.fib import Fib
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed

BGP = {"routing": "bgp"}


def speaker(path):
    """{interface: AS}, {interface: prefixes preferred there} of a file."""
    text = path.read_text()
    numbers = re.findall(r"^ neighbor (\S+) interface v6only remote-as (\d+)$", text, re.M)
    preferred = {name: set() for name, _ in numbers}
    used = re.findall(r"^  neighbor (\S+) route-map (via-\d+-ipv4) in$", text, re.M)
    through = {policy: name for name, policy in used}
    for policy, prefix in re.findall(
        r"^ip prefix-list (via-\S+) seq \d+ permit (\S+)$", text, re.M
    ):
        preferred[through[policy]].add(prefix)
    return {name: int(number) for name, number in numbers}, preferred


@pytest.mark.parametrize(
    ("family", "parameters", "ties"),
    [
        ("polarfly", {"q": 3}, False),
        ("pn", {"q": 2}, True),
        ("oft", {"q": 2}, True),
        ("polarstar", {"q": 2, "supernode": "inductive-quad", "degree": 3}, True),
    ],
)
def test_best_paths_are_the_compiled_ones(family, parameters, ties, tmp_path):
    """The shortest AS path wins, then the metric: exactly the compiled next hop is left."""
    build = routed(family, **parameters)
    target("frr").render(agreed(build, BGP), tmp_path)
    w, order = build.wiring, build.tables.switches
    after = Fib.of(build.tables, w.far_by_port()).next_switch(np.arange(order))
    graph = nx.Graph(build.topology.graph.edges().tolist())
    away = dict(nx.all_pairs_shortest_path_length(graph))
    tied = 0
    for v, node in enumerate(w.names):
        numbers, preferred = speaker(tmp_path / node / "frr.conf")
        behind = {name: number - 4_200_000_000 for name, number in numbers.items()}
        assert set(behind.values()) == set(graph[v])
        text = (tmp_path / node / "frr.conf").read_text()
        assert "graceful-restart" not in text, "a stopped FRR forwards nothing"
        assert text.index("bgp route-map delay-timer 1\n") < text.index("\nip prefix-list "), (
            "bgpd waits five seconds with policies that it reads before"
        )
        own = re.findall(r"^  network (\S+)$", text, re.M)
        known = build.topology.endpoints[v]
        assert own == ([str(build.addressing.network(v))] if known else [])
        for d in set(np.flatnonzero(build.topology.endpoints).tolist()) - {v}:
            shortest = [name for name, u in behind.items() if away[u][d] == away[v][d] - 1]
            prefix = str(build.addressing.network(d))
            first = [name for name in shortest if prefix in preferred[name]] or shortest
            assert [behind[name] for name in first] == [after[v, d]]
            tied += len(shortest) > 1
    assert bool(tied) is ties


def test_longer_paths_than_need_be_are_refused(tmp_path):
    """Switch 0 sends what is for its neighbour 1 by another one."""
    build = routed(q=3)
    egress = build.tables.routes.egress.copy()
    egress[0, 1] = egress[0, 2]
    routes = replace(build.tables.routes, egress=egress)
    wrong = replace(build, tables=replace(build.tables, routes=routes))
    with pytest.raises(InputError, match="static: BGP takes the shortest path and the compiled"):
        target("frr").render(agreed(wrong, BGP), tmp_path / "out")
    assert not (tmp_path / "out").exists()
