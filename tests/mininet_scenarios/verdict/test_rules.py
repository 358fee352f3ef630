"""The rules of a program, which of them packets have to reach, and the checks of an exercise."""

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.openflow.flow_tables import FlowPriority, Table
from mininet_scenarios.ovs.frames import FRAME_KINDS, FrameWriter, frame_number
from mininet_scenarios.run.rehearsal import rules_expected
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import Exercise
from mininet_scenarios.scenario.scenario_file import load_scenario
from mininet_scenarios.verdict.result import rule_checks, rules_in_words
from mininet_scenarios.verdict.rule_set import RuleSet


@pytest.fixture(scope="module")
def build_of(tmp_path_factory):
    """A function of the routing policy: a saved build of q=3 with IPv6, two hosts per switch."""

    def build(routing):
        folder = tmp_path_factory.mktemp("rules")
        text = "name: lab\ntopology: {family: polarfly, q: 3}\nhosts_per_node: 2\n"
        text += f'addressing: {{ipv6: "fd00::/48"}}\nrouting: {routing}\n'
        (folder / "fabric.yaml").write_text(text)
        return save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "build")

    return build


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("kind", FRAME_KINDS, ids=str)
def test_frames_arrive_whole_or_the_difference_is_named(build_of, version, kind):
    build = build_of("{}")
    writer = FrameWriter(build, HostSample.of(build), version)
    frames = writer.of_kind(kind, np.array([0, 3]), np.array([5, 9]), 1024, 70)
    assert max(kind.size + 14, 50) <= frames.sent.dtype.itemsize <= max(kind.size + 14, 90)
    arrived = frames.arriving[1:2].copy()
    assert frame_number(arrived.tobytes()) == 71
    assert frames.difference(1, arrived.tobytes()) == (0, "")
    arrived["ethernet"]["from"][0, 0] ^= 1
    assert "source MAC address" in frames.difference(1, arrived.tobytes())[1]
    assert "bytes instead of" in frames.difference(1, arrived.tobytes()[:-1])[1]
    name = "traffic_class" if version == 4 else "version"
    changed = frames.arriving[1:2].copy()
    changed["ip"][name] ^= 4
    assert "class" in frames.difference(1, changed.tobytes())[1] or version == 4
    assert frames.difference(1, changed.tobytes())[1]


def exercise(**other):
    fields = {"rules": 10, "due": 8, "missed": ("0: route 1",), "waiting": ("0: a", "0: b")}
    wrong = (Mismatch("0, port 1", "50 %", "0 %"),)
    checks = Check.of("arrivals", 5, ()), Check.of("shares", 2, wrong)
    return Exercise(**(fields | {"checks": checks} | other))


def test_checks_name_what_was_missed():
    rules, arrivals, shares = rule_checks(exercise())
    assert (rules.required, rules.seen, rules.passed) == (8, 7, False)
    assert str(rules.mismatches[0]) == "0: route 1: expected packets, seen none"
    assert arrivals.passed
    assert (shares.seen, shares.passed) == (1, False)
    assert rules_in_words(exercise()) == "7 of 10; 2 wait until a port fails"
    assert [check.name for check in rule_checks(exercise(), "new, ")][1] == "new, arrivals"


@pytest.mark.parametrize(("hosts", "rows"), [(1, 0), (2, 4)])
def test_rows_to_hosts_of_the_same_switch_are_due_if_it_has_two(build_of, hosts, rows):
    build = build_of("{balance: valiant}")
    due = RuleSet(build, HostSample.of(build, hosts)).due
    place = Table.DISPATCH, FlowPriority.SAME_SWITCH
    assert sum(rule.key[:2] == place for rule in due) == 13 * rows


FABRIC = "fabric: {name: x, topology: {family: polarfly, q: 2}}\n"


@pytest.mark.parametrize(
    ("more", "hosts", "wanted"),
    [
        ("", 13, "reachable"),
        ("", 57, "none"),
        ("expect: {rules: all}\n", 57, "all"),
    ],
)
def test_small_fabrics_are_exercised_without_asking(tmp_path, more, hosts, wanted):
    file = tmp_path / "scenario.yaml"
    file.write_text(f"name: x\n{FABRIC}{more}")
    assert rules_expected(load_scenario(str(file)).scenario, hosts) == wanted
