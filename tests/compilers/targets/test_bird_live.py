"""BIRD's own parser, and BIRD in namespaces: every pair, and a cable that falls silent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import polarfab
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import NAMESPACES

pytestmark = pytest.mark.live
FIRST = "nice", "-n", "-10"
"""Routers that wait for other tests lose BFD's packets."""
HOLD = 9.0
"""Seconds after which BGP itself gives a silent neighbour up: BFD is sooner."""
SPEC = """name: lab
topology: {topology}
routing: {{balance: {balance}, transit: {transit}}}
addressing: {{ipv6: "fd00::/48"}}
hosts_per_node: {hosts}
"""
STAR = "{family: polarstar, supernode: inductive-quad, q: 2, degree: 0}"
FABRICS = {
    "minimal": ("{family: polarfly, q: 2}", "minimal", "minimal", 1),
    "every hop": ("{family: hyperx, sides: 3x3}", "ecmp", "ecmp", 2),
    "polarstar": (STAR, "minimal", "minimal", 1),
}
OPTIONS = [
    {"routing": "static", "bfd": "on"},
    {"routing": "static", "bfd": "off"},
    {"routing": "bgp", "bfd": "on"},
    {"routing": "bgp", "bfd": "off"},
]


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    known = {}

    def of(name):
        if name not in known:
            topology, balance, transit, hosts = FABRICS[name]
            folder = tmp_path_factory.mktemp("bird")
            spec = {"topology": topology, "balance": balance, "transit": transit, "hosts": hosts}
            (folder / "fabric.yaml").write_text(SPEC.format(**spec))
            save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b")
            known[name] = folder / "b"
        return known[name]

    return of


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("minimal", OPTIONS[0]),
        ("every hop", OPTIONS[1]),
        ("every hop", OPTIONS[2]),
        ("polarstar", OPTIONS[3]),
    ],
)
def test_bird_takes_every_file(name, options, builds, tmp_path):
    build = load(builds(name))
    target("bird").render(build, tmp_path, options=options)
    report = target("bird").check_emitted(build, tmp_path, options)
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered > 0
    for file in tmp_path.glob("*/bird.conf"):
        done = subprocess.run(["bird", "-p", "-c", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "options", "events"),
    [
        ("minimal", OPTIONS[0], []),
        ("minimal", OPTIONS[2], [["silence", 0, 1]]),
        ("every hop", OPTIONS[2], [["pull", 0, 1]]),
    ],
)
def test_every_pair_arrives(name, options, events, builds, tmp_path):
    """Tables of the kernels are those of the build, before a cable dies and after it is mended."""
    target("bird").render(load(builds(name)), tmp_path / "out", options=options)
    arrives(builds(name), tmp_path / "out", options, events)


def arrives(folder, out, options, events):
    script = Path(__file__).with_name("live_bird.py")
    words = folder, out, json.dumps(options), json.dumps(events)
    done = subprocess.run(
        [*FIRST, *NAMESPACES, sys.executable, script, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    switches = load(folder).topology.graph.order
    assert told["flows"] == 2 * switches * (switches - 1)
    assert all(one["lost"] < HOLD / 2 for one in told["seen"]), told


@pytest.mark.parametrize(
    ("systems", "routes", "events"),
    [
        (("frr", "bird", "linux"), "static", []),
        (("frr", "bird"), "ebgp", [["silence", 0, 1]]),
    ],
)
def test_every_pair_arrives_between_systems(systems, routes, events, tmp_path):
    """FRR speaks eBGP and BFD with BIRD over numbered links; a silent cable is noticed by both."""
    nodes = [
        {"name": f"n{v}", "type": "box", "system": systems[v % len(systems)]} for v in range(7)
    ]
    box = {"ports": [{"name": "eth{}", "count": 4}]}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "addressing": {"ipv6": "fd00::/48"},
        "control_plane": {"routes": routes},
        "inventory": {"node_types": {"box": box}, "nodes": nodes},
    }
    fabric = polarfab.Fabric.from_spec(spec)
    fabric.save(tmp_path / "build")
    (rendering,) = fabric.render("", tmp_path / "out")
    assert rendering.checked
    arrives(tmp_path / "build", tmp_path / "out", {}, events)
