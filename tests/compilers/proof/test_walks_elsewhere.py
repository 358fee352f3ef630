"""Walks agree with a plain walker where fabrics are unusual: planes, parallel cables, damage.

The plain walker (`tests/compilers/proof/oracle.py`) knows ports and cables only, and shares no code
with the walks. Damaged fabrics come with every balance that can be had in them, and with protection
or without.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from compilers.pipeline import compile_fabric, compile_placed
from compilers.planes import compile_planes
from compilers.proof.failures.failure_walks import walk_failures
from compilers.spec.fabric_file import load_fabric
from compilers.targets.rendering.plane_check import check_planes
from compilers.targets.rendering.plane_rendering import PlaneRendering
from compilers.wiring.placed_fabric import place_fabric
from tests.compilers.build_digests import damaged
from tests.compilers.proof.oracle import ARRIVED, Oracle

Q3 = {"family": "polarfly", "q": 3}
FAMILIES = {
    "polarfly": Q3,
    "polarstar": {"family": "polarstar", "q": 2, "supernode": "complete", "degree": 2},
    "pn": {"family": "pn", "q": 2},
    "oft": {"family": "oft", "q": 2},
    "jellyfish": {"family": "jellyfish", "nodes": 16, "degree": 4, "seed": 3},
    "hyperx": {"family": "hyperx", "sides": "3x3"},
}
PORTS = [{"name": "e{}", "count": 8, "role": "fabric"}, {"name": "h{}", "count": 4, "role": "host"}]


def agree(build, kinds=("link", "node")):
    """Lost pairs of single failures, summed over all of a kind, are those of the plain walker."""
    far = build.wiring.far
    links = [(s, int(t)) for s in range(len(far)) for t in far[s] if t > s]
    nodes = np.flatnonzero((far >= 0).any(axis=1)).tolist()
    some = {"link": [({frozenset(link)}, set()) for link in links]}
    some["node"] = [(set(), {node}) for node in nodes]
    oracle = Oracle(build)
    for kind in kinds:
        lost = longest = 0
        for gone, down in some[kind]:
            oracle.fail(gone, down)
            for _, _, paths in oracle.outcomes():
                lost += any(outcome != ARRIVED for _, outcome in paths)
                longest = max([longest, *(len(p) - 1 for p, end in paths if end == ARRIVED)])
        report = walk_failures(build, kind)
        assert (report.cases, report.lost_pairs) == (len(some[kind]), lost), kind
        assert report.max_hops <= longest


def built(topology, more=None, **routing):
    keys = {"name": "lab", "topology": topology, "routing": routing} | (more or {})
    return compile_fabric(load_fabric(keys))


@pytest.mark.parametrize(
    ("family", "balance", "protect"),
    [
        *((family, "compact-valiant", "node") for family in FAMILIES),
        ("polarfly", "compact-valiant", "none"),
        ("polarfly", "minimal", "node"),
        ("polarstar", "minimal", "node"),
        ("oft", "ecmp", "node"),
        ("jellyfish", "ecmp", "none"),
    ],
)
def test_damaged_fabrics_of_every_balance(family, balance, protect):
    routing = {"balance": balance, "protect": protect}
    keys = {"name": "lab", "topology": FAMILIES[family], "routing": routing}
    placed = place_fabric(load_fabric(keys))
    seed = random.Random(f"{family} {balance}").randrange(100)  # noqa: S311
    agree(compile_placed(damaged(placed, seed, 1, 2)))


def two_planes(topology, balance, protect):
    """Each host is on a switch of every plane; the second is damaged, and has its own tables."""
    spec = {
        "name": "lab",
        "topology": topology,
        "planes": 2,
        "routing": {"balance": balance, "protect": protect},
        "inventory": {
            "node_types": {"leaf": {"ports": PORTS}},
            "generate": {"type": "leaf"},
            "dead_links": [{"a": "p2-n0", "b": f"p2-n{_near(topology, 0)}"}],
        },
    }
    return compile_planes(load_fabric(spec))


@pytest.mark.parametrize("balance", ["minimal", "compact-valiant"])
def test_planes(balance):
    builds = two_planes(Q3, balance, "node")
    assert len(builds) == 2
    assert builds[0].topology.graph.size == builds[1].topology.graph.size + 1
    for build in builds:
        agree(build)


@pytest.mark.parametrize(("name", "balance"), [("linux", "minimal"), ("ovs", "compact-valiant")])
def test_files_that_were_not_checked(name, balance, tmp_path):
    """As `render --no-check` writes them, of hosts on several switches."""
    builds = [replace(b, identity="0" * 16) for b in two_planes(Q3, balance, "none")]
    assert builds[0].wiring.host_names == builds[1].wiring.host_names
    PlaneRendering(builds, name, check=False).into(tmp_path)
    assert all(report.passed for report in check_planes(builds, tmp_path, name))


def _near(topology, vertex):
    return int(built(topology).wiring.far[vertex, 0])


def test_parallel_cables_are_one_link():
    """A port of two sockets is one port to the rule, and its cables die together."""
    ports = [PORTS[0] | {"parallel": 2, "member": "e{}m{lane}"}, PORTS[1]]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "generate": {"type": "leaf"}}
    agree(built(Q3, {"inventory": inventory}, balance="compact-valiant", protect="node"))


@pytest.mark.parametrize("family", ["polarfly", "pn", "jellyfish"])
def test_fitted_weights(family):
    """Alternates that a demand leaves without weight are no paths of hosts."""
    routing = {"balance": "compact-valiant", "protect": "node", "demand": "worst-case"}
    agree(built(FAMILIES[family], **routing))


def test_uneven_hosts():
    nodes = [{"name": f"n{v}", "type": "leaf", "host_count": v % 3} for v in range(13)]
    inventory = {"node_types": {"leaf": {"ports": PORTS}}, "nodes": nodes}
    more = {"inventory": inventory, "hosts_per_node": 2}
    agree(built(Q3, more, balance="compact-valiant", protect="node"))


def test_modules():
    ports = [{"name": "m{module}/{}", "modules": 2, "count": 4, "role": "fabric"}, PORTS[1]]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "generate": {"type": "leaf"}}
    agree(built(Q3, {"inventory": inventory}, balance="compact-valiant", protect="module"))
