"""FRR with eBGP when cables die: pulled, silent, or shut down at one end; from any interfaces.

Links are taken down one after the other, and mended. After each change every flow of every pair
arrives again, and once the link is back the kernel has the compiled routes (`Routers.settle`).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import NAMESPACES

pytestmark = pytest.mark.live
HOLD = 9.0
"""Seconds after which BGP itself gives a silent neighbour up: BFD is sooner."""


def failures(folder, q, live, wanted):
    """[how, u, v, seconds to the last lost datagram, seconds to the compiled routes, the same]."""
    spec = f'name: lab\ntopology: {{family: polarfly, q: {q}}}\naddressing: {{ipv6: "fd00::/48"}}\n'
    (folder / "fabric.yaml").write_text(spec)
    save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b")
    build = load(folder / "b")
    target("frr").render(build, folder / "out", options={"routing": "bgp", "bfd": "on"})
    edges = build.topology.graph.edges().tolist()
    todo = {"live": live, "failures": wanted(edges)}
    script = Path(__file__).with_name("live_bgp.py")
    done = subprocess.run(
        [*NAMESPACES, sys.executable, script, folder / "b", folder / "out", json.dumps(todo)],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)["failures"]
    assert [one[:3] for one in seen] == todo["failures"]
    for how in {how for how, *_ in seen}:
        assert min(down for kind, _, _, down, *_ in seen if kind == how) < HOLD / 2, seen
    return seen


@pytest.mark.long
def test_dead_cables(tmp_path):
    """The quick case: one of each kind, where interfaces had addresses already."""
    failures(
        tmp_path,
        2,
        True,
        lambda edges: [["pull", *edges[0]], ["silence", *edges[3]], ["shut", *edges[6]]],
    )


@pytest.mark.long
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("how", ["pull", "silence"])
def test_every_cable_of_q3(how, live, tmp_path):
    failures(tmp_path, 3, live, lambda edges: [[how, *edge] for edge in edges])


@pytest.mark.long
def test_one_end_of_every_third_cable_of_q3(tmp_path):
    failures(tmp_path, 3, True, lambda edges: [["shut", *edge] for edge in edges[::3]])


@pytest.mark.long
def test_cables_of_q4(tmp_path):
    kinds = ("pull", "silence")
    failures(
        tmp_path, 4, True, lambda edges: [[k, *e] for e in edges[:: len(edges) // 4] for k in kinds]
    )
