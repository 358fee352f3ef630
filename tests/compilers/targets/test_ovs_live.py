"""Real Open vSwitch: wire bytes against text, hosts that ping, packets traced, faults refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.routing.plane_choices import with_plane_alternates, with_plane_repairs
from compilers.routing.split_classes import split_direct
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.target_lookup import target
from tests.compilers.routed import with_alternates
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live

FABRIC = """
name: lab
topology: {family: polarfly, q: 2}
hosts_per_node: 2
addressing: {ipv6: "fd00::/48"}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "fabric.yaml").write_text(FABRIC)
    return save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b"), folder


def with_policies(made):
    """Alternates and protection; one alternate has no weight, so that it is for repair only."""
    tables = split_direct(made.tables, made.wiring)
    forwarding = replace(with_alternates(disjoint=False, protect="link"), weights="any")
    tables = with_plane_alternates(tables, made.wiring, forwarding)
    tables = with_plane_repairs(tables, made.wiring)
    weight = tables.classes.weight.copy()
    weight[..., 1] = 0
    classes = replace(tables.classes, weight=weight)
    tables = replace(tables, classes=classes)
    return replace(made, balance="compact-valiant", forwarding=forwarding, tables=tables)


OTHERS = {
    "marked": ("polarfly, q: 3", "spread, protect: link"),
    "carried": ("polarfly, q: 2", "valiant, protect: link"),
    "shared": ("hyperx, sides: 3x3", "ecmp, transit: ecmp, protect: link"),
}


def other(folder, name):
    """A fabric that marks packets, sends them by intermediates, or shares them at every hop."""
    family, balance = OTHERS[name]
    text = FABRIC.replace("polarfly, q: 2", family) + f"routing: {{balance: {balance}}}\n"
    (folder / f"{name}.yaml").write_text(text)
    return compile_fabric(load_fabric(folder / f"{name}.yaml"))


@pytest.fixture(scope="module")
def seen(build):
    made, folder = build
    target("ovs").render(made, folder / "text")
    target("ovs").render(save(with_policies(made), folder / "policies"), folder / "policies-text")
    script = Path(__file__).with_name("live_ovs.py")
    for name in OTHERS:
        target("ovs").render(save(other(folder, name), folder / name), folder / f"{name}-text")
    names = "b", "text", "ovs", "policies", *OTHERS
    places = [str(folder / name) for name in names]
    printed = printed_apart(script, *places, timeout=120)
    return json.loads(printed)


def test_wire_bytes_and_text_give_the_same_switch(build, seen):
    encoder = Encoder(load(build[1] / "b"))
    for v, dumps in seen["plain"].items():
        assert dumps["wire"] == dumps["text"]
        assert len(dumps["wire"]["flows"]) == encoder.row_count(int(v))


def test_alternates_and_protection_too(build, seen):
    encoder = Encoder(load(build[1] / "policies"))
    for v, dumps in seen["with policies"].items():
        assert dumps["wire"] == dumps["text"]
        assert len(dumps["wire"]["flows"]) == encoder.row_count(int(v))
    for part in ("type=select", "type=ff", "watch_group:"):
        assert part in str(seen["with policies"])


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("marked", "bundle(symmetric_l3l4+udp,6,hrw,ofport,members: 02:50:46:80:00:01->eth_dst"),
        ("carried", "multipath(symmetric_l3l4+udp,6,modulo_n,7,0, bundle_load( resubmit(,1)"),
        ("shared", "bundle(symmetric_l3l4+udp,6,hrw,ofport,members:"),
    ],
)
def test_marks_intermediates_and_paths_at_every_hop_too(build, seen, name, parts):
    encoder = Encoder(load(build[1] / name))
    for v, dumps in seen[name].items():
        assert dumps["wire"] == dumps["text"]
        assert len(dumps["wire"]["flows"]) == encoder.row_count(int(v))
    assert all(part in str(seen[name]["6"]) for part in parts.split())


def test_hosts_reach_each_other_with_one_ttl_less_a_switch(build, seen):
    made, _ = build
    place = [0, 0, 3, 6]
    links = [
        0 if s == d else 1 if d in made.topology.graph.neighbours(s) else 2
        for i, s in enumerate(place)
        for j, d in enumerate(place)
        if i != j
    ]
    assert set(links) == {0, 1, 2}
    assert seen["pings"] == [[64 - (n + 1)] * 2 for n in links]


def test_the_switch_answers_arp_and_nd_with_the_gateway(seen):
    for text in seen["neighbours"]:
        entries = [line for line in text.splitlines() if "FAILED" not in line]
        assert any(line.startswith("10.") for line in entries)
        assert any(line.startswith("fd00:") for line in entries)
        assert all("02:50:46:00:00:01" in line for line in entries)


def test_hosts_keep_their_own_addresses(seen):
    assert not any("dadfailed" in text for text in seen["addresses"])


def test_every_pair_traced_passes_the_predicted_switches(build, seen):
    made, _ = build
    graph = made.topology.graph
    for pair, found in seen["traces"].items():
        s, d = map(int, pair.split())
        near = set(graph.neighbours(s).tolist())
        between = [] if d in near else [near & set(graph.neighbours(d).tolist())]
        passed = [int(name[1:]) for name in found["passed"]]
        assert passed[0] == s
        assert passed[-1] == d
        assert len(passed) == 2 + len(between)
        assert not between or {passed[1]} == between[0]
        assert found["ttl"] == len(passed)
        assert found["last"] == f"output:{made.wiring.host_port[d, 1]}"
        mac = made.addressing.mac(d, 1)
        assert found["rewrites"] == [
            "set_field:02:50:46:00:00:01->eth_src",
            f"set_field:{mac}->eth_dst",
        ]


def test_a_bad_row_is_reported_and_nothing_changes_before_commit(seen):
    refused, rows = seen["refused"], len(seen["plain"]["0"]["wire"]["flows"])
    [(_, _, words)] = refused["errors"]
    assert words.startswith("route 6 ")
    foreign = "cookie=0x99, table=9, priority=9,ip actions=group:2999"
    assert refused["after"]["flows"] == [foreign]
    assert refused["pushed"] == []
    # Why `prepare` and `commit` are two: Open vSwitch would commit what is left of the bundle.
    assert refused["rows if committed all the same"] == rows - 1
    assert foreign in refused["with foreign"]["flows"]
    assert len(refused["with foreign"]["flows"]) == rows + 1
