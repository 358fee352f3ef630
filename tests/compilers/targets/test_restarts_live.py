"""FRR is stopped, restarted or killed, and switches lose their power: beside a fabric by hand.

Packets of all pairs run all the time in both fabrics, in the same run of live_restarts.py.
The fabric by hand is `by_hand`: eBGP without addresses on links, ECMP and BFD.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.sonic.port_names import SONIC
from compilers.targets.target_lookup import target
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.routed import agreed
from tests.compilers.targets.test_bgp_live import FIRST, HOLD, SPEC, by_hand, compiled
from tests.compilers.targets.test_host_vrf_live import stand_in
from tests.debian_root import unpacked

pytestmark = pytest.mark.live
STALE = 10.0
"""Seconds after which no neighbour may hold a route over a switch without FRR."""
SHARE, MORE = 1.1, 20
"""How many packets may be lost, of those that are lost by hand, and besides."""


def carried_out(folder, events, *outs, root="-"):
    """What live_restarts.py saw of each event."""
    done = subprocess.run(
        [
            *(*FIRST, *NAMESPACES, sys.executable, "-m", "tests.compilers.targets.live_restarts"),
            *(folder / "b", json.dumps(events), root, *outs),
        ],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=3000,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.long
def test_neighbours_leave_a_switch_whose_bgpd_is_dead(tmp_path):
    """BFD goes on, so nothing but the end of the session tells them; graceful restart kept them."""
    compiled(tmp_path, 2, "compact-valiant")
    ended, back = carried_out(tmp_path, [["end_bgp", 1], ["begin", 1]], tmp_path / "out")
    assert max(ended["stale"]) < STALE
    assert max(ended["transit"] + back["transit"]) <= MORE, (ended, back)


EVENTS = {
    "stop": lambda u: [["stop", u], ["begin", u]],
    "restart": lambda u: [["restart", u]],
    "power": lambda u: [["off", u], ["on", u]],
    "bgpd": lambda u: [["die", u, "bgpd"]],
    "bfdd": lambda u: [["die", u, "bfdd"]],
    "staticd": lambda u: [["die", u, "staticd"]],
    "zebra": lambda u: [["die", u, "zebra"]],
}


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("q", [3, 4])
def test_no_more_is_lost_than_by_hand(q, tmp_path):
    """The median of three switches, of packets between others and of all, in both families."""
    build = compiled(tmp_path, q, "compact-valiant")
    outs = tmp_path / "out", by_hand(build, tmp_path, tmp_path / "hand")
    switches = range(0, 3 * (q + 1), q + 1)
    events = [event for of in EVENTS.values() for u in switches for event in of(u)]
    seen = carried_out(tmp_path, events, *outs)
    wrong = []
    for what in dict.fromkeys((one["event"][0], *one["event"][2:]) for one in seen):
        same = [one for one in seen if (one["event"][0], *one["event"][2:]) == what]
        assert len(same) == len(switches)
        for count in ("transit", "all"):
            ours, theirs = (statistics.median(one[count][k] for one in same) for k in (0, 1))
            if ours > SHARE * theirs + MORE:
                wrong.append((*what, count, ours, theirs))
        wrong += [(*what, "stale", one) for one in same if one.get("stale", [0])[0] >= STALE]
    assert not wrong, seen


FEW = 2 * MORE
"""How many packets in transit may be lost as FRR comes back, where nothing runs beside it."""


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("suite", ["trixie", "forky"])
def test_statements_of_sonic_on_newer_frr(suite, tmp_path):
    """SONiC ships FRR 10.5, which is between these two.

    The fabric by hand does not come up with FRR 10.3: between some neighbours without addresses
    bgpd waits for ever.
    """
    (tmp_path / "fabric.yaml").write_text(SPEC.format(q=2, balance="compact-valiant"))
    build = SONIC.named(compile_fabric(load_fabric(tmp_path / "fabric.yaml")))
    save(build, tmp_path / "b")
    target("sonic").render(agreed(build, {"routing": "bgp", "bfd": "on"}), tmp_path / "out")
    for vertex, node in enumerate(build.wiring.names):
        stand_in(tmp_path / "out" / node, vertex)
    root = unpacked(suite, ["frr", "iproute2"], tmp_path)
    events = [event for of in EVENTS.values() for event in of(0)]
    seen = carried_out(tmp_path, events, tmp_path / "out", root=root)
    for one in (one for one in seen if "stale" in one):
        assert one["stale"][0] < STALE, seen
        assert one["seconds"][0] < HOLD / 2, seen
    assert max(one["transit"][0] for one in seen if "stale" not in one) <= FEW, seen
