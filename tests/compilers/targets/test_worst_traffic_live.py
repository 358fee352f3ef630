"""The traffic that gets no more than the guarantee, in packets on real Open vSwitch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compilers.evaluation.guarantee import guarantee
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from polarfab.fabric import Fabric
from tests.compilers.targets.live_worst_traffic import PACKETS

pytestmark = pytest.mark.live
HOSTS = 2
SIGMAS = 5


def test_the_full_link_carries_what_the_guarantee_says(tmp_path: Path) -> None:
    """Within what hashes of connections give."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "hosts_per_node": HOSTS}
    fabric = Fabric.from_spec(spec | {"routing": {"balance": "compact-valiant"}}).compile()
    build = fabric.save(tmp_path / "build").build
    target("ovs").render(build, tmp_path / "text")
    found = guarantee(build)
    flows = [(flow.source, flow.destination, round(flow.rate)) for flow in found.traffic]
    script = Path(__file__).with_name("live_worst_traffic.py")
    places = [tmp_path / "build", tmp_path / "text", tmp_path / "ovs"]
    (tmp_path / "ovs").mkdir()
    done = subprocess.run(
        [*NAMESPACES, sys.executable, str(script), *map(str, places)],
        input=json.dumps(flows),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    assert seen["sent"] == PACKETS * sum(hosts for *_, hosts in flows)
    assert found.link is not None
    s, d = found.link
    port = int(build.wiring.port[s, np.flatnonzero(build.wiring.far[s] == d)[0]])
    left = seen["left"][f"{s} {port}"]
    assert left == pytest.approx(PACKETS / found.share, abs=SIGMAS * np.sqrt(PACKETS / found.share))
    cabled = {
        f"{v} {build.wiring.port[v, k]}" for v, k in np.argwhere(build.wiring.far >= 0).tolist()
    }
    most = max(count for key, count in seen["left"].items() if key in cabled)
    assert most <= left + SIGMAS * np.sqrt(left)
