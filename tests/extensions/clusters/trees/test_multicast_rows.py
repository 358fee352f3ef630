"""Trees as OpenFlow rows: read back and flooded, and on real Open vSwitch with real frames."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import polarfab
from compilers.tables.folders.build_folder import identified
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow.encoder import Encoder
from controller.switches import reconcile
from extensions.clusters.trees import trees as trees_of
from extensions.clusters.trees.multicast_rows import (
    COOKIE,
    FILE,
    PRIORITY,
    address,
    multicast_files,
)
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.controller.reported import as_entries

GROUP = re.compile(r"group add group_id=(\d+),type=all((?:,bucket=actions=output:\d+)*)")
ROW = re.compile(
    r"flow add table=0,priority=5,cookie=0x5054[0-9a-f]{12},ip,"
    r"eth_dst=01:00:5e:50:46:([0-9a-f]{2}),ip_dst=239\.80\.70\.(\d+),actions=dec_ttl,group:(\d+)"
)


def ports(files):
    """The ports of each tree on each switch, from the text."""
    found = {}
    for name, lines in files:
        groups = {m[1]: re.findall(r"\d+", m[2]) for m in map(GROUP.fullmatch, lines) if m}
        for row in filter(None, map(ROW.fullmatch, lines)):
            assert int(row[1], 16) == int(row[2])
            found[name, int(row[2])] = {int(port) for port in groups.pop(row[3])}
        assert not groups
    return found


def flooded(fabric, found, tree, start, came):
    """Copies that each host port gets, and packets on each link, of one packet of a host."""
    w = fabric.build.wiring
    number = {name: v for v, name in enumerate(w.names)}
    copies, links, queue = Counter(), Counter(), [(start, came)]
    while queue:
        name, came = queue.pop()
        assert len(queue) < 100, "it circles"
        for port in found.get((name, tree), set()) - {came}:
            v = number[name]
            slots = (w.port[v] == port).nonzero()[0]
            if len(slots):
                far = w.names[w.far[v, slots[0]]]
                links[frozenset((name, far))] += 1
                queue.append((far, int(w.far_port[v, slots[0]])))
            else:
                assert port in w.host_port[v]
                copies[name, port] += 1
    return copies, links


@pytest.mark.parametrize("kind", ["disjoint", "low-depth"])
def test_every_host_gets_one_copy_and_every_link_one_packet(kind):
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 4}, "hosts_per_node": 2}
    fabric = polarfab.Fabric.from_spec(spec).compile()
    host_port = fabric.build.wiring.host_port.tolist()
    everyone = {(str(v), port) for v, own in enumerate(host_port) for port in own}
    for fail in ([], ["0-1"], ["6"]):
        trees = trees_of(fabric, kind, fail=fail)
        found = ports(multicast_files(trees))
        for tree in range(1, len(trees.trees) + 1):
            for v in (0, 13):
                came = host_port[v][0]
                copies, links = flooded(fabric, found, tree, str(v), came)
                there = {host for host in everyone if host[0] not in fail}
                assert copies == Counter(there - {(str(v), came)})
                assert set(links.values()) == {1}
                assert len(links) == trees.switches - 1


def test_branches_lead_to_members_only():
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 2}
    fabric = polarfab.Fabric.from_spec(spec).compile()
    trees = trees_of(fabric, root="0", members=["5", "9"])
    found = ports(multicast_files(trees))
    own = fabric.build.wiring.host_port.tolist()
    copies, _ = flooded(fabric, found, 1, "0", own[0][0])
    assert set(copies) == {("0", own[0][1]), *((v, p) for v in ("5", "9") for p in own[int(v)])}


def test_a_repair_changes_the_ends_of_two_links_only():
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 4}}
    fabric = polarfab.Fabric.from_spec(spec).compile()
    whole = trees_of(fabric)
    for u, v in whole.trees[0].edges.tolist():
        after = trees_of(fabric, fail=[f"{u}-{v}"])
        files = [dict(multicast_files(trees)) for trees in (whole, after)]
        differ = {int(name) for name in files[0] if files[0][name] != files[1][name]}
        (more,) = set(links_of_as_text(after)) - set(links_of_as_text(whole))
        assert differ == {u, v, *more}


def links_of_as_text(trees):
    return [tuple(sorted(edge)) for edge in trees.trees[0].edges.tolist()]


def test_rows_of_trees_stand_over_none_of_the_program():
    """What a controller tells of rows of others that take packets of ours."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "hosts_per_node": 2}
    build = polarfab.Fabric.from_spec(spec | {"addressing": {"ipv6": "fd00::/48"}}).compile().build
    program = Encoder(identified(build)).program(0)
    match = {"eth_dst": 0x01005E504601, "eth_type": 0x800, "ipv4_dst": int(address(0))}
    fields = tuple(parts.oxm(name, value) for name, value in match.items())
    body = b"".join(parts.flow_add(0, PRIORITY, COOKIE | 1, fields).body)
    own = [entry for block in program.flows for entry in as_entries(block)]
    foreign = as_entries(parts.block(rows.bundled_add(14, body, 0)))
    held = reconcile.held(b"".join(own + foreign), b"")
    assert len(held.foreign) == 1
    assert reconcile.difference(program, held).shadowing == ()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    fabric = polarfab.Fabric.from_spec(spec).compile().save(folder / "build")
    fabric.render("ovs", folder / "program", unverified=True)
    u, v = trees_of(fabric).trees[0].edges[2].tolist()
    for name, trees in (
        ("whole", trees_of(fabric)),
        ("repaired", trees_of(fabric, fail=[f"{u}-{v}"])),
    ):
        for node, lines in multicast_files(trees):
            (folder / name / node).mkdir(parents=True)
            (folder / name / node / FILE).write_text("\n".join(lines) + "\n")
    script = Path(__file__).with_name("live_multicast.py")
    done = subprocess.run(
        [*NAMESPACES, sys.executable, str(script), str(folder), str(u), str(v)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return fabric, (u, v), json.loads(done.stdout)


def links_of(tree):
    return sorted(sorted(edge) for edge in tree.edges.tolist())


@pytest.mark.live
def test_on_open_vswitch_each_host_gets_one_copy_and_each_link_one_packet(seen):
    fabric, _, result = seen
    for number, tree in enumerate(trees_of(fabric).trees, 1):
        one = result["whole"][str(number)]
        assert one["copies"] == [1] * 12
        assert sorted(sorted(link) for link, _ in one["links"]) == links_of(tree)
        assert {count for _, count in one["links"]} == {1}
        assert one["ttl"] == 64 - 1 - trees_of(fabric, root="0").trees[number - 1].depth


@pytest.mark.live
def test_a_dead_link_leaves_the_other_tree_whole_and_the_broken_one_is_joined_again(seen):
    fabric, link, result = seen
    assert 0 < sum(result["broken"]["1"]["copies"]) < 12
    assert result["broken"]["2"]["copies"] == [1] * 12
    for number, tree in enumerate(trees_of(fabric, fail=["-".join(map(str, link))]).trees, 1):
        one = result["repaired"][str(number)]
        assert one["copies"] == [1] * 12
        assert sorted(sorted(ends) for ends, _ in one["links"]) == links_of(tree)
        assert {count for _, count in one["links"]} == {1}


@pytest.mark.live
def test_the_program_stays_as_it_is(seen):
    result = seen[2]
    assert result["rows"]["program"] > 12
    assert result["rows"]["trees"] == result["rows"]["program"] + 2
    assert result["rows"]["again"] == result["rows"]["trees"]
