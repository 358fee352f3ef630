"""Real Open vSwitch: packets go by every intermediate alike, and around what is down."""

import json
from ast import literal_eval
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.openflow.pipeline import Pipeline
from compilers.targets.target_lookup import target
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[3]
FABRIC = {
    "name": "lab",
    "topology": {"family": "polarfly", "q": 2},
    "hosts_per_node": 2,
    "addressing": {"ipv6": "fd00::/48"},
    "routing": {"balance": "valiant", "protect": "node"},
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    return save(compile_fabric(load_fabric(FABRIC)), folder / "b"), folder


@pytest.fixture(scope="module")
def seen(build):
    made, folder = build
    target("ovs").render(made, folder / "text")
    script = Path(__file__).with_name("live_intermediates.py")
    printed = printed_apart(script, *(folder / n for n in ("b", "text", "ovs")), timeout=240)
    return json.loads(printed)


def test_hosts_reach_each_other(build, seen):
    """A switch takes one from the TTL; two legs have four links at most."""
    assert seen["flows"] == Pipeline(build[0]).row_count(5)
    ttls = [ttl for pair in seen["pings"] for ttl in pair]
    assert None not in ttls
    assert {63} < set(ttls) <= {63, 62, 61, 60, 59}


def test_every_packet_takes_a_way_of_the_tables(build, seen):
    for s, d, path, arrived in seen["usual"]:
        found = explain(build[0], s, d)
        assert arrived
        assert tuple(path) in (found.minimal, *found.alternates)
    assert len({len(path) for *_, path, _ in seen["usual"]}) > 2


def test_every_intermediate_has_its_share_of_flows(build, seen):
    found = explain(build[0], 0, 5)
    expected = Counter({found.minimal: found.weights[0]})
    expected.update(found.alternates)
    shares = Counter(tuple(path) for path in seen["shares"])
    assert shares.keys() == expected.keys()
    for path, paths in expected.items():
        mean = 260 * paths / 7
        assert abs(shares[path] - mean) < 5 * mean**0.5


def test_nothing_is_lost_with_a_link_cut(build, seen):
    far = build[0].wiring.far
    for cut, packets in seen["link"].items():
        v, k = literal_eval(cut)
        for _, d, path, arrived in packets:
            assert arrived
            assert path[-1] == d
            assert {v, int(far[v, k])} not in [set(link) for link in pairwise(path)]


def test_packets_over_a_dead_intermediate_go_on_from_its_neighbour(seen):
    for cut, packets in seen["switch"].items():
        others = [each for each in packets if int(cut) not in each[:2]]
        assert len(others) > 12
        assert all(arrived and path[-1] == d for _, d, path, arrived in others)
        assert not any(int(cut) in path for _, _, path, _ in others)
