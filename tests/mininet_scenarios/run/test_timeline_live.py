"""Scenarios with a timeline and with flows on real switches, hosts and cables."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.mininet_scenarios.scenario.test_scenario import GROUPS, RISKS
from tests.polarfab.forked import command_line

pytestmark = pytest.mark.live


def passed(scenario, *words):
    words = ("emulate", scenario, "--engine", "mininet", "--json", *words)
    done = command_line().run(*words, timeout=900, copies=True)
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == 0, [check for check in report["checks"] if not check["passed"]]
    return report


@pytest.mark.long
def test_a_quadrics_link_fails_under_traffic():
    report = passed("quadric-link-q3")
    down, up = report["timeline"][1:]
    assert (down["reached"], up["reached"]) == (156, 156)
    assert 4 <= down["max_hops"] <= 6
    assert report["probe"]["sent"] > 156 * 40
    assert report["probe"]["received"] == report["probe"]["sent"] - sum(
        event["lost"] for event in report["timeline"]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("link-failures-q3", [156] * 25),
        ("node-failure-q3", [156, 132, 132, 156]),
        ("rack-failure-q3", [156, 90, 90, 156]),
        ("miswire-q3", [156, 136, 156]),
    ],
)
def test_failures_are_as_the_tables_say(name, reached):
    report = passed(name)
    assert [event["reached"] for event in report["timeline"]] == reached


REPAIRED = """
name: repaired
fabric: {name: repaired, topology: {family: polarfly, q: 2}}
traffic: {probe: {interval: 0.1, pairs: 0}}
expect: {rules: none}
timeline:
  - link_down: 0-1
    expect: {delivered: 42, converged_within: 3}
  - node_down: 4
    expect: {delivered: 30, converged_within: 3}
  - node_up: 4
    expect: {delivered: 42, converged_within: 5}
  - link_up: 0-1
    expect: {delivered: 42, max_hops: 2, converged_within: 3}
"""


def test_the_controller_routes_around_failures(tmp_path):
    """An unprotected fabric; the prediction is made of the tables that the controller computes."""
    file = tmp_path / "scenario.yaml"
    file.write_text(REPAIRED)
    report = passed(file)
    assert [event["reached"] for event in report["timeline"]] == [42, 30, 42, 42]
    assert all(0 < event["repaired"] < 5 for event in report["timeline"])


@pytest.mark.long
def test_a_module_that_fails_loses_nothing(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(GROUPS.replace("engine: model\n", "").replace("q: 4", "q: 3"))
    (tmp_path / "inventory.yaml").write_text(RISKS)
    report = passed(file)
    *modules, both = report["timeline"]
    assert [event["reached"] for event in modules] == [156] * 5
    assert (both["reached"], both["expected"], both["pairs"]) == (128, 128, 132)
    assert report["passed"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["hot-permutation-q4", "tornado-q5"])
def test_udp_flows_get_what_fairness_gives(name):
    found = passed(name)["throughput"]
    assert 0.85 < found["carried"] / found["fair"] < 1.15


@pytest.mark.long
def test_tcp_flows(tmp_path):
    file = tmp_path / "scenario.yaml"
    flows = "{link_rate: 5, flows: {pattern: tornado, protocol: tcp, seconds: 5}}"
    fabric = "{name: lab, topology: {family: polarfly, q: 3}}"
    file.write_text(f"name: tcp\nfabric: {fabric}\ntraffic: {flows}\n")
    found = passed(file)["throughput"]
    assert found["flows"] == 13
    assert 0.75 < found["carried"] <= 1


@pytest.mark.long
@pytest.mark.parametrize("name", ["first-light-polarstar", "first-light-pn", "equal-paths-pn"])
def test_other_families(name):
    assert passed(name)["passed"]


def test_the_probe_between_two_namespaces(tmp_path):
    """Numbered packets one way over a veth pair: all arrive, at the rate asked for, none twice."""
    script = tmp_path / "probe.sh"
    script.write_text(
        "set -e; ip link set lo up; unshare -n sleep 60 & other=$!\n"
        "own=$(readlink /proc/self/ns/net)\n"
        "while [ $(readlink /proc/$other/ns/net) = $own ]; do :; done\n"
        "ip link add name near type veth peer name far netns $other\n"
        "ip address add 10.9.0.1/24 dev near; ip link set near up\n"
        "nsenter -t $other -n ip address add 10.9.0.2/24 dev far\n"
        "nsenter -t $other -n ip link set far up\n"
        f'{sys.executable} -c "$1" $$ $other; kill $other\n'
    )
    code = (
        "import pickle, sys, time\n"
        "from mininet_scenarios.traffic.probing import PROBE_PORT, ProbeProcess, UdpProber\n"
        "ends = [(int(sys.argv[1]), '10.9.0.1'), (int(sys.argv[2]), '10.9.0.2')]\n"
        "pairs = [(0, 1), (1, 0)]\n"
        "probe = ProbeProcess(0.01, UdpProber, ends, pairs, PROBE_PORT)\n"
        "time.sleep(1); print(pickle.dumps(probe.stop()).hex())\n"
    )
    done = subprocess.run(
        [*NAMESPACES, "sh", str(script), code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    probed = pickle.loads(bytes.fromhex(done.stdout.split()[-1]))  # noqa: S301
    assert 150 <= len(probed.sent) <= 220
    assert np.bincount(probed.pair).max() - np.bincount(probed.pair).min() <= 1
    late = probed.received - probed.sent
    assert np.isfinite(late).all()
    assert (late > 0).all()
    assert (probed.hops == 0).all()
