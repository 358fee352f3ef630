"""The traffic that gets no more than the guarantee, in packets on real Open vSwitch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compilers.evaluation.guarantee import guarantee
from compilers.targets.target_lookup import target
from polarfab.fabric import Fabric
from tests.compilers.targets.live_worst_traffic import PACKETS
from tests.polarfab.forked import printed_apart

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
    printed = printed_apart(script, *map(str, places), timeout=240, given=json.dumps(flows))
    seen = json.loads(printed)
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
