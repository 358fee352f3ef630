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
"""How many packets may be lost, of those that are lost by hand, and besides.

What is allowed besides is a third of what is in transit in one round at q = 2, .03 s. A switch
without power loses packets until zebra at its neighbours has seen that ports have no carrier. On a
busy machine this takes one fabric .05 s, and the other, at the same time, .3 s.
"""


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
    seen = carried_out(tmp_path, events_at(switches), *outs)
    assert not beyond(seen, len(switches)), seen


def events_at(switches):
    """Each event at each switch."""
    return [event for of in EVENTS.values() for u in switches for event in of(u)]


def beyond(seen, switches):
    """In which events more was lost than by hand and what is allowed, or routes stayed too long."""
    wrong = []
    for what in dict.fromkeys((one["event"][0], *one["event"][2:]) for one in seen):
        same = [one for one in seen if (one["event"][0], *one["event"][2:]) == what]
        assert len(same) == switches
        for count in ("transit", "all"):
            ours, theirs = (statistics.median(one[count][k] for one in same) for k in (0, 1))
            if ours > SHARE * theirs + MORE:
                wrong.append((*what, count, ours, theirs))
        wrong += [(*what, "stale", one) for one in same if one.get("stale", [0])[0] >= STALE]
    return wrong


LATE_BFD = " neighbor FABRIC bfd profile fabric\n"
"""The line by hand that sessions in FRR 10.3 have to wait for, see `without_bfd_first`."""


def without_bfd_first(hand):
    """Let a fabric by hand come up without BFD on sessions, which is added once they are up.

    bgpd of FRR 10.3 starts or accepts no session whose BFD is down. It can register the BFD session
    of a neighbour without addresses before it knows the interface, so that this stays down. Where
    both ends do, both wait for ever. FRR's pull request 18562 mends it.
    """
    for file in hand.glob("*/frr.conf"):
        text = file.read_text()
        assert LATE_BFD in text
        file.with_name("first.conf").write_text(text.replace(LATE_BFD, ""))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("suite", ["trixie", "forky"])
def test_statements_of_sonic_on_newer_frr(suite, tmp_path):
    """SONiC ships FRR 10.5, which is between these two; the medians of three switches."""
    (tmp_path / "fabric.yaml").write_text(SPEC.format(q=2, balance="compact-valiant"))
    build = SONIC.named(compile_fabric(load_fabric(tmp_path / "fabric.yaml")))
    save(build, tmp_path / "b")
    target("sonic").render(agreed(build, {"routing": "bgp", "bfd": "on"}), tmp_path / "out")
    for vertex, node in enumerate(build.wiring.names):
        stand_in(tmp_path / "out" / node, vertex)
    outs = tmp_path / "out", by_hand(build, tmp_path, tmp_path / "hand")
    if suite == "trixie":
        without_bfd_first(outs[1])
    root = unpacked(suite, ["frr", "iproute2"], tmp_path)
    switches = range(3)
    seen = carried_out(tmp_path, events_at(switches), *outs, root=root)
    assert not beyond(seen, len(switches)), seen
    for one in (one for one in seen if "stale" in one):
        assert one["seconds"][0] < HOLD / 2, seen
