"""Real Open vSwitch: shortest paths shared at every hop, whole and with links down."""

import json
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.target_lookup import target
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live

FABRIC = {
    "name": "lab",
    "topology": {"family": "hyperx", "sides": "2x2x2"},
    "routing": {"balance": "ecmp", "transit": "ecmp", "protect": "link"},
}


def test_packets_take_every_shortest_path_and_none_is_lost(tmp_path):
    made = save(compile_fabric(load_fabric(FABRIC)), tmp_path / "b")
    target("ovs").render(made, tmp_path / "text")
    script = Path(__file__).with_name("live_every_hop.py")
    places = [str(tmp_path / name) for name in ("b", "text", "ovs")]
    printed = printed_apart(script, *places, timeout=300)
    seen = json.loads(printed)
    graph = nx.Graph(made.topology.graph.edges().tolist())
    for (source, destination), packets in zip(seen["pairs"], seen["whole"], strict=True):
        assert all(arrives for _, arrives in packets)
        found = Counter(tuple(passed) for passed, _ in packets)
        wanted = {tuple(path) for path in nx.all_shortest_paths(graph, source, destination)}
        assert set(found) <= wanted
        # 24 flows over 6 paths at most: that fewer than half of them are seen, one in millions.
        assert len(found) > len(wanted) // 2
    assert not seen["lost"]
    assert len(seen["links"]) > 60
    usual = dict(nx.all_pairs_shortest_path_length(graph))
    longer = sum(links > usual[s][d] for s, d, links in seen["links"])
    assert longer > len(seen["links"]) // 20  # they met a dead link
