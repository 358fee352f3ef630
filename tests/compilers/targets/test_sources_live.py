"""Real Open vSwitch: what a host sends with another source address, or a mark, arrives nowhere."""

import json
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.target_lookup import target
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[3]
COPIES = 3
OWN = {"own 4": COPIES, "own 6": COPIES}
BUILDS = {
    "spread": {"balance": "spread", "protect": "link"},
    "valiant": {"balance": "valiant", "protect": "link"},
}
STEERED = {"spread": "marked 4", "valiant": "intermediate 4"}
"""The frames that switches of a balance steer by what the host has written."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    places = []
    for name, checks in (*((name, True) for name in BUILDS), *((name, False) for name in STEERED)):
        spec = {
            "name": "lab",
            "topology": {"family": "polarfly", "q": 3},
            "hosts_per_node": 2,
            "addressing": {"ipv6": "fd00::/48", "source_checks": checks},
            "routing": BUILDS[name],
        }
        place = folder / (name if checks else f"{name} unchecked")
        target("ovs").render(save(compile_fabric(load_fabric(spec)), place), folder / f"{place}-t")
        places += [str(place), f"{place}-t"]
    script = Path(__file__).with_name("live_sources.py")
    printed = printed_apart(script, str(folder / "ovs"), *places, timeout=240)
    return json.loads(printed)


@pytest.mark.parametrize("name", BUILDS)
def test_only_a_hosts_own_packets_pass(seen, name):
    assert seen[name] == {"neighbour": OWN, "far": OWN}


@pytest.mark.parametrize("name", STEERED)
def test_without_checks_others_pass_too(seen, name):
    """So the frames are such as arrive, and marks such as switches follow."""
    for got in seen[f"{name} unchecked"].values():
        assert "router advertisement" not in got
        assert {"as victim 4", "as victim 6", "as neighbour 4", STEERED[name], *OWN} <= got.keys()
