"""BIRD's own parser, and BIRD in namespaces: every pair, and a cable that falls silent."""

import json
import subprocess
from pathlib import Path

import pytest

import polarfab
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.compilers.routed import agreed
from tests.polarfab.forked import printed_apart

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
CONTROLS = [
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
    ("name", "control"),
    [
        ("minimal", CONTROLS[0]),
        ("every hop", CONTROLS[1]),
        ("every hop", CONTROLS[2]),
        ("polarstar", CONTROLS[3]),
    ],
)
def test_bird_takes_every_file(name, control, builds, tmp_path):
    build = agreed(load(builds(name)), control)
    target("bird").render(build, tmp_path)
    report = target("bird").check_emitted(build, tmp_path)
    assert (report.differences, report.examples) == (0, ())
    assert report.pairs == report.delivered > 0
    for file in tmp_path.glob("*/bird.conf"):
        done = subprocess.run(["bird", "-p", "-c", file], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "control", "events"),
    [("minimal", CONTROLS[2], [["silence", 0, 1]])],
)
def test_every_pair_arrives(name, control, events, builds, tmp_path):
    """Tables of the kernels are those of the build, before a cable dies and after it is mended."""
    target("bird").render(agreed(load(builds(name)), control), tmp_path / "out")
    arrives(builds(name), tmp_path / "out", control, events)


def arrives(folder, out, control, events):
    script = Path(__file__).with_name("live_bird.py")
    words = folder, out, json.dumps(control), json.dumps(events)
    printed = printed_apart(script, *words, timeout=600, nice=-10)
    told = json.loads(printed)
    switches = load(folder).topology.graph.order
    assert told["flows"] == 2 * switches * (switches - 1)
    assert all(one["lost"] < HOLD / 2 for one in told["seen"] if "lost" in one), told
    return told["seen"]


@pytest.mark.parametrize(
    ("systems", "control", "events"),
    [
        (("frr", "bird", "linux"), {}, []),
        (("frr", "bird"), {"routes": "ebgp", "gtsm": True}, [["silence", 0, 1]]),
        (
            ("frr", "bird"),
            {"routes": "ebgp", "bfd": False},
            [["pull", 0, 1], ["forge", 0, 1], ["forge", 1, 0]],
        ),
    ],
)
def test_every_pair_arrives_between_systems(systems, control, events, tmp_path):
    """FRR and BIRD share packets at every hop, over links with addresses.

    Both notice a silent cable by BFD, which comes up beside GTSM as FRR starts with both. With GTSM
    a forged reset of a session ends it only if it comes from the neighbour itself (RFC 5082).
    """
    nodes = [
        {"name": f"n{v}", "type": "box", "system": systems[v % len(systems)]}
        for v in range(6 if control else 7)
    ]
    box = {"ports": [{"name": "eth{}", "count": 6}]}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "addressing": {"ipv6": "fd00::/48"},
        "control_plane": control,
        "inventory": {"node_types": {"box": box}, "nodes": nodes},
    }
    if control:
        spec["topology"] = {"family": "hyperx", "sides": "2x3"}
        spec["routing"] = {"balance": "ecmp", "transit": "ecmp"}
    fabric = polarfab.Fabric.from_spec(spec)
    fabric.save(tmp_path / "build")
    (rendering,) = fabric.render("", tmp_path / "out")
    assert rendering.checked
    seen = arrives(tmp_path / "build", tmp_path / "out", {}, events)
    kept = [one["kept"] for one in seen if "kept" in one]
    assert kept == [{"254": True, "255": False}] * len(kept)
