"""Kernels with seg6: path sets over two planes, every carrier, probes, and the hosts' repair."""

import json
from pathlib import Path

import pytest

from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load_planes, save_planes
from compilers.targets.rendering.plane_rendering import PlaneRendering
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
TTL = 64
STRAY = 12
"""Packets of neighbour discovery on a link."""


def live(folder, q, orders):
    """What two planes of q are seen to do."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}, "planes": 2}
    pools = {"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"}
    save_planes(compile_planes(load_fabric(spec | {"addressing": pools})), folder / "b")
    for name in ("linux", "srv6"):
        PlaneRendering(load_planes(folder / "b"), name).into(folder / "out" / name)
    script = Path(__file__).with_name("live_host_paths.py")
    words = [str(folder / "b"), str(folder / "out"), json.dumps(orders)]
    printed = printed_apart(script, *words, timeout=600)
    return json.loads(printed)


def every_path_works(seen, order, paths):
    """All pairs answer, no switch saw the inner packet, and every packet took its path."""
    everyone = [[TTL if s != d else 0 for d in range(order)] for s in range(order)]
    assert seen["pings"] == everyone
    assert seen["all"]["paths"] == paths
    assert seen["all"]["wrong"] == 0
    assert seen["all"]["fewest"] >= 0
    assert seen["all"]["most"] <= STRAY


def test_two_planes_carry_probe_and_repair(tmp_path):
    """q = 3: a link of the second plane goes down; probes name it, and hosts go around it."""
    flows = 400
    seen = live(tmp_path, 3, {"count": 8, "down": [1, 2, 4], "flows": flows})
    every_path_works(seen, 13, 13 * 12 * 8)
    assert seen["whole"].startswith("no probe was lost")
    assert seen["report"] == "p2-2-p2-4 is down"
    assert seen["broken"] < seen["repaired"] == flows


@pytest.mark.long
def test_every_path_of_every_pair_of_q7_over_two_planes(tmp_path):
    seen = live(tmp_path, 7, {"count": 16})
    every_path_works(seen, 57, 57 * 56 * 16)
