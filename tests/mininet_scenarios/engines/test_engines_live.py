"""The engines ovs-fabric, linux and frr as users run them, each also with a table that is wrong."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.tables.folders.build_folder import save
from tests.polarfab.forked import command_line

pytestmark = pytest.mark.live


def emulate(*args, timeout=300):
    return command_line().run("emulate", *args, "--json", timeout=timeout, copies=True)


def passed(*args, timeout=300):
    done = emulate(*args, timeout=timeout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    report = json.loads(done.stdout)
    assert report["passed"]
    assert "expected" in report["caught"]
    return report, {check["name"]: check["seen"] for check in report["checks"]}


def check_links(seen, what, links):
    """All counters of all links, in both directions, were compared."""
    assert seen[f"{what}: link counters as predicted"] == 2 * links


def test_every_pair_by_packets_and_links_that_fail():
    report, seen = passed("fabric-q3")
    assert (report["engine"], report["delivered"]) == ("ovs-fabric", 156)
    assert report["hops"]["seen"] == {"1": 48, "2": 108}
    assert seen["each link down, 4: delivered"] == 4 * 156
    check_links(seen, "every pair", 24)
    check_links(seen, "each link down, 4", 4 * 24)


def test_ipv6_without_hosts():
    _, seen = passed("dual-stack-q2", "--engine", "ovs-fabric")
    assert seen["every pair over IPv6: arrived"] == 42


@pytest.mark.long
def test_swapped_cables_by_packets_one_way():
    _, seen = passed("miswire-q3", "--engine", "ovs-fabric")
    assert seen["cables 9-10 and 7-12 swapped: arrived"] == 24


def test_paths_are_those_that_open_vswitch_traces(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    fabric = "fabric: {name: traced, topology: {family: polarfly, q: 3}}"
    paths = "{paths: [[0, 4, 2], [3, 2], [2, 4], [0, 1, 2]]}"
    scenario.write_text(f"name: traced\n{fabric}\nexpect: {paths}\n")
    done = emulate(scenario, "--engine", "ovs-fabric")
    assert done.returncode == 1
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["every pair: paths"]["seen"] == 3
    (wrong,) = checks["every pair: paths"]["mismatches"]
    assert wrong == {"where": "0 → 2", "expected": "0 1 2", "seen": "0 4 2"}


@pytest.mark.long
def test_alternates_and_a_switch_without_power():
    report, _ = passed("alternates-q3", "--engine", "ovs-fabric")
    assert report["hops"]["seen"]["3"] > 0
    passed("node-failure-q3", "--engine", "ovs-fabric")


@pytest.mark.long  # test_ovs_live traces the same rows
@pytest.mark.parametrize("engine", ["ovs-fabric", "mininet"])
def test_marked_packets_of_both_families(engine):
    report, seen = passed("marked-spread-q3", "--engine", engine)
    assert report["rules"]["exercised"] == report["rules"]["all"] == 2558
    assert seen["every pair over IPv6: arrived"] == 156
    assert seen["links have their shares of packets"] == 48
    assert seen["each link down, 4: delivered"] == 4 * 156
    assert report["hops"]["seen"]["4"] > 0


@pytest.mark.long  # test_routed_live has the same files in kernels
@pytest.mark.parametrize("name", ["linux-q3", "frr-q3"])
def test_kernels_forward_by_rendered_files(name):
    report, seen = passed(name)
    assert report["delivered"] == 156
    assert seen["each link down, 2: delivered"] == 2 * 156
    check_links(seen, "every pair", 24)


def test_a_probe_runs_while_a_link_of_kernels_fails(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "name: probed\nengine: linux\nprove_checker: false\n"
        "fabric: {name: probed, topology: {family: polarfly, q: 2}, routing: {protect: link}}\n"
        "traffic: {probe: {interval: 0.1}}\n"
        "timeline: [{link_down: 1-4, expect: {delivered: 42}}]\n"
    )
    done = emulate(scenario)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    checks = {check["name"]: check["seen"] for check in json.loads(done.stdout)["checks"]}
    assert checks["probe, link 1-4 down: nothing lost after 1 s"] == 42


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "hosts", "links", "pairs", "more"),
    [
        ("polarfly, q: 3", 1, 24, 156, ""),
        ("polarfly, q: 4", 1, 6, 420, ""),
        ("polarfly, q: 3", 2, 3, 650, "balance: spread, "),
        ("jellyfish, nodes: 20, degree: 6, seed: 1", 1, 3, 380, "balance: spread, "),
    ],
)
@pytest.mark.parametrize("engine", ["linux", "frr"])
def test_rendered_files_lose_nothing_with_any_link_down(
    engine, topology, hosts, links, pairs, more, tmp_path
):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        f"name: links\nengine: {engine}\n"
        f"fabric:\n  name: links\n  topology: {{family: {topology}}}\n"
        f"  hosts_per_node: {hosts}\n  routing: {{{more}protect: link}}\n"
        f"timeline: [{{each: link, sample: {links}, expect: {{delivered: {pairs}}}}}]\n"
    )
    report, seen = passed(scenario, timeout=900)
    assert report["delivered"] == pairs
    assert seen[f"each link down, {links}: delivered"] == links * pairs


@pytest.mark.long  # test_bgp_live takes links of the same fabric down, with BFD
def test_waypoints_on_64_routers():
    example = Path(__file__).parents[3] / "examples" / "jellyfish-64" / "scenario.yaml"
    _, seen = passed(example, timeout=900)
    assert seen["every pair: arrived"] == seen["each link down, 1: delivered"] == 64 * 63


@pytest.mark.long  # `passed` requires of every engine that it sees a wrong table
def test_a_wrong_table_of_kernels_fails_and_names_the_pair(tmp_path, compiled):
    folder = tmp_path / "build"
    build = compiled(2)
    egress = np.array(build.tables.routes.egress)
    far = next(d for d in range(7) if d != 2 and d not in build.wiring.far[2])
    egress[2, far] = (egress[2, far] + 1) % 2
    routes = replace(build.tables.routes, egress=egress)
    save(replace(build, tables=replace(build.tables, routes=routes)), folder)
    done = emulate(folder, "--unverified", "--engine", "linux")
    assert done.returncode == 1, done.stderr
    failed = {
        c["name"]: c["mismatches"] for c in json.loads(done.stdout)["checks"] if not c["passed"]
    }
    assert {"where": f"h2 → h{far}", "expected": "2 hops", "seen": "3 hops"} in failed[
        "every pair: shortest paths"
    ]
    assert not any("predicted" in name for name in failed)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "nodes", "links"),
    [("fabric-q16", 273, 2312), ("fabric-polarstar", 248, 1116), ("fabric-q31", 993, 15872)],
)
def test_real_size(name, nodes, links):
    report, seen = passed(name, timeout=3600)
    assert report["delivered"] == report["pairs"] == nodes * (nodes - 1)
    assert report["hops"]["seen"] == report["hops"]["predicted"]
    check_links(seen, "every pair", links)
