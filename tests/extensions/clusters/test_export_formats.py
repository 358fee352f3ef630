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


def test_a_model_keeps_the_rules_of_topograph(build: Build) -> None:
    model = yaml.safe_load(made("topograph", build)["model.yaml"])
    switches = model["switches"]
    below = [child for switch in switches.values() for child in switch.get("switches", ())]
    nodes = [node for switch in switches.values() for node in switch.get("nodes", ())]
    assert set(below) | {"lab"} == set(switches)
    assert len(below) == len(set(below)) == 57 + 8  # one parent each
    assert len(nodes) == len(set(nodes)) == 57 * 2
    assert set(model["nodes"]) == set(nodes)


def test_labels_tell_switch_cluster_and_fabric(build: Build) -> None:
    listed = json.loads(made("kubernetes", build)["labels.json"])
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    tiers = {
        node["metadata"]["name"]: {
            key.removeprefix("network.topology.nvidia.com/"): value
            for key, value in node["metadata"]["labels"].items()
        }
        for node in listed["items"]
    }
    assert len(tiers) == len(listed["items"]) == 57 * 2
    assert tiers["h9-1"] == tiers["h9-0"]
    assert tiers["h9-0"]["leaf"] == "9"
    assert {tier["core"] for tier in tiers.values()} == {"lab"}
    assert len({tier["spine"] for tier in tiers.values()}) == 8


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
