"""Files for Topograph, Kubernetes and NCCL, held against what their manuals say."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
import yaml

from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from extensions.clusters.nccl_order import ring_order
from inventory.problems import InputError
from tests.extensions.clusters.exported import exported

SPEC = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "hosts_per_node": 2}


@pytest.fixture(scope="module")
def build() -> Build:
    return compile_fabric(load_fabric(SPEC))


def made(form: str, *builds: Build) -> dict[str, str]:
    return exported(form, builds)


def test_topograph_finds_every_host_of_a_model_under_its_switch(build: Build) -> None:
    """Read as pkg/models/model.go of Topograph v1.0.0 does: `switches` of a switch, `blocks`."""
    model = yaml.safe_load(made("topograph", build)["model.yaml"])
    assert set(model) == {"switches", "blocks"}
    assert all(set(switch) == {"switches"} for switch in model["switches"].values())
    parent: dict[str, str] = {}
    for name, switch in model["switches"].items():
        for child in switch["switches"]:
            assert parent.setdefault(child, name) == name  # one parent each
    names = {*model["switches"], *parent}  # a child needs no definition of its own
    tiers: dict[str, list[str]] = {}
    for block in model["blocks"]:
        assert set(block) == {"switch", "nodes"}
        assert block["switch"] in names
        above = [block["switch"], parent[block["switch"]]]
        for node in block["nodes"]:
            assert node not in tiers
            tiers[node] = [*above, parent[above[-1]]]
    assert len(parent) == 57 + 8
    assert len(tiers) == 57 * 2
    assert tiers == labelled(build)


def test_labels_are_those_that_topograph_writes_by_default(build: Build) -> None:
    """`fabric.topograph.run/tier-N`, 0 next to the node (v1.0.0, pkg/topology/topology.go)."""
    tiers = labelled(build)
    assert len(tiers) == 57 * 2
    assert tiers["h9-1"] == tiers["h9-0"]
    assert tiers["h9-0"][0] == "9"
    assert {core for *_, core in tiers.values()} == {"lab"}
    assert len({cluster for _, cluster, _ in tiers.values()}) == 8


def labelled(build: Build) -> dict[str, list[str]]:
    """The switch, the cluster and the fabric of each host."""
    listed = json.loads(made("kubernetes", build)["labels.json"])
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    nodes = [node["metadata"] for node in listed["items"]]
    keys = [f"fabric.topograph.run/tier-{tier}" for tier in range(3)]
    assert all(list(node["labels"]) == keys for node in nodes)
    return {node["name"]: list(node["labels"].values()) for node in nodes}


@pytest.mark.parametrize(
    ("node", "host", "told"),
    [
        ("s0", "GPU_1", "required a node's name of small letters, digits, - and ., given GPU_1"),
        ("s0_", "gpu1", "required a label's value: .*, given s0_"),
    ],
)
def test_names_that_kubernetes_does_not_take(node: str, host: str, told: str) -> None:
    nodes = [{"name": node, "type": "copackaged-4x8", "hosts": [{"name": host}]}]
    nodes += [{"name": f"s{i}", "type": "copackaged-4x8"} for i in range(1, 7)]
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "inventory": {"nodes": nodes},
    }
    with pytest.raises(InputError, match=told):
        made("kubernetes", compile_fabric(load_fabric(spec)))


def test_a_ring_goes_from_neighbour_to_neighbour(build: Build) -> None:
    graph = build.topology.graph
    hosts = made("nccl", build)["hostfile"].split()
    assert len(hosts) == 57 * 2
    order = [int(re.findall(r"\d+", host)[0]) for host in hosts[::2]]
    assert sorted(order) == list(range(57))
    assert order == [int(re.findall(r"\d+", host)[0]) for host in hosts[1::2]]
    assert _links(graph, order) == 56  # the first quadric's cluster leads
    assert _links(graph, ring_order(graph, range(57))) >= 54
    assert _links(graph, range(57)) == 14
    assert "nccl.conf" not in made("nccl", build)


def _links(graph: Graph, order: Sequence[int]) -> int:
    return sum(b in graph.neighbours(a) for a, b in pairwise(order))


def test_planes_are_not_crossed() -> None:
    settings = made("nccl", *compile_planes(load_fabric(SPEC | {"planes": 2})))["nccl.conf"]
    lines = [line for line in settings.splitlines() if not line.startswith("#")]
    assert lines == ["NCCL_CROSS_NIC=0"]
