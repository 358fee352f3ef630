"""Fabrics that no algebra routes, from spec to emitted text: all pairs, all single failures."""

from pathlib import Path

import pytest

from inventory.problems import InputError
from polarfab.fabric import Fabric

NODE = {"balance": "compact-valiant", "protect": "node"}
PROTECTED = [
    {"family": "slimfly", "q": 4},
    {"family": "jellyfish", "nodes": 20, "degree": 5, "seed": 0},
    {"family": "dragonfly", "h": 2},
    {"family": "hyperx", "sides": "3x3x2"},
    {"family": "bundlefly", "q": 3, "degree": 2},
]


def fabric(topology, **routing):
    return Fabric.from_spec({"name": "lab", "topology": topology, "routing": routing})


def name(topology):
    return "-".join(map(str, topology.values()))


@pytest.mark.parametrize("topology", PROTECTED, ids=name)
def test_all_single_failures_in_the_tables(topology):
    found = fabric(topology, **NODE)
    assert found.verify(method="walk").passed
    (judged,) = found.builds
    assert judged.topology.family == topology["family"]


EVERY_TEXT = [(target, topology) for target in ("ovs", "linux", "frr") for topology in PROTECTED]
QUICK = {("ovs", 1), ("linux", 3)}


@pytest.mark.parametrize(
    ("target", "topology"),
    [
        pytest.param(
            *pair,
            id=f"{pair[0]}-{name(pair[1])}",
            marks=[] if (pair[0], i % len(PROTECTED)) in QUICK else [pytest.mark.long],
        )
        for i, pair in enumerate(EVERY_TEXT)
    ],
)
def test_all_pairs_in_the_emitted_text(target, topology, tmp_path: Path):
    protect = "link" if target == "frr" else "node"
    found = fabric(topology, balance="compact-valiant", protect=protect)
    found.render(target, tmp_path / "out", unverified=True, check=False)
    assert all(report.passed for report in found.check_emitted(tmp_path / "out"))


@pytest.mark.parametrize("topology", [{"family": "fat-tree", "k": 4}, {"family": "mlfm", "n": 4}])
def test_switches_without_hosts_have_no_addresses(topology):
    assert fabric(topology).verify().passed


@pytest.mark.parametrize(
    ("topology", "balance"),
    [
        ({"family": "fat-tree", "k": 4}, "minimal"),
        ({"family": "fat-tree", "k": 4, "pods": 8}, "compact-valiant"),
        ({"family": "megafly", "h": 2, "a": 4}, "compact-valiant"),
        ({"family": "mlfm", "n": 4}, "minimal"),
    ],
)
def test_trees_lose_nothing_under_any_link_and_most_under_any_switch(topology, balance):
    """A spine without another way down sends to a switch that bounces the packet past it."""
    word = "link" if topology["family"] == "mlfm" else "node"
    report = fabric(topology, balance=balance, protect=word).verify(method="walk")
    assert report.passed
    assert {case.kind for case in report.reports[0].failures} >= {"link", word}


def test_what_no_search_can_repair_is_not_usable():
    assert not fabric({"family": "mlfm", "n": 4}, protect="node").verify().passed


def test_a_graph_beside_its_fabric(tmp_path: Path):
    (tmp_path / "ring.txt").write_text("lon par\npar ber\nber rom\nrom lon\n")
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: ring\ntopology: {family: graph, file: ring.txt}\n")
    found = Fabric.from_spec(spec)
    assert found.verify().passed
    assert found.build.wiring.names == ("lon", "par", "ber", "rom")
    assert "graph" in found.build.inputs
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {leaf: {ports: [{name: 'eth{}', count: 4}]}}\n"
        "nodes: [{name: rom, type: leaf}, {name: par, type: leaf}, {name: ber, type: leaf},"
        " {name: lon, type: leaf}]\n"
    )
    spec.write_text(spec.read_text() + "inventory: inventory.yaml\n")
    assert Fabric.from_spec(spec).build.wiring.names == ("lon", "par", "ber", "rom")
    (tmp_path / "ring.txt").write_text("lon par\npar lon!\n")
    with pytest.raises(InputError, match=r"ring\.txt: required names of at most 63 .* given .lon!"):
        Fabric.from_spec(spec)
