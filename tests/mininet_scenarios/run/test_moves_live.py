"""Fabrics that move from build to build on real switches, by a right controller and wrong ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polarfab.forked import command_line

pytestmark = pytest.mark.live
POLARFAB = Path(sys.executable).with_name("polarfab")
FABRIC = "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: "
PLAIN = "generate: {type: copackaged-4x8}\n"
WRONG = """
import os, sys
if "controller" in sys.orig_argv:
    from dataclasses import replace
    import numpy as np
    from controller.rollout import mover, rollout
    from controller.rollout.round_programs import RoundPrograms
    right, begin, forth = mover.plan, rollout.Rollout.__post_init__, RoundPrograms.step
    def backwards(old, new):
        update = right(old, new)
        row = np.where(update.row_round > 0, update.last - update.row_round, 0).astype(np.uint8)
        return replace(update, row_round=row)
    def slowly(self):
        begin(self)
        self.settle = 0.5
    def skipping(self, vertex, back):
        skips = not back and self.done[vertex] + 2 == int(os.environ["SKIP"])
        return [] if skips else forth(self, vertex, back)
    rollout.Rollout.__post_init__ = slowly
    if os.environ["SKIP"]:
        RoundPrograms.step = skipping
    else:
        mover.plan = backwards
"""


@pytest.fixture
def a_link_goes(tmp_path):
    """A quadric's link goes, which is in no triangle: rows must change in order."""
    (tmp_path / "inventory.yaml").write_text(PLAIN)
    (tmp_path / "dead.yaml").write_text(f"{PLAIN}dead_links: [{{a: n7, b: n12}}]\n")
    (tmp_path / "fabric.yaml").write_text(f"{FABRIC}inventory.yaml\n")
    (tmp_path / "less.yaml").write_text(f"{FABRIC}dead.yaml\n")
    old, new = tmp_path / "fabric.yaml", tmp_path / "less.yaml"
    return "rehearse", str(new), "--from", str(old)


def run(*words, code=0, engine="mininet", **environment):
    words = *words, "--engine", engine, "--json"
    if environment:  # such as only a new Python looks at
        env = {**os.environ, **environment}
        done = subprocess.run([POLARFAB, *words], capture_output=True, text=True, env=env)
    else:
        done = command_line().run(*words, timeout=600, copies=True)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    found = json.loads(done.stdout)
    return found, {check["name"] for check in found["checks"] if not check["passed"]}


def wrong(tmp_path, skip=""):
    """For a controller that reverses the order of rows, or skips a round (from 1); both slow."""
    (tmp_path / "sitecustomize.py").write_text(WRONG)
    return {"PYTHONPATH": str(tmp_path), "SKIP": skip}


def test_a_link_that_goes_loses_nothing(a_link_goes):
    found, _ = run(*a_link_goes)
    (moved,) = found["timeline"]
    assert (moved["reached"], moved["lost"], moved["converged"]) == (156, 0, 0)
    assert found["probe"]["sent"] > 156 * 5


@pytest.mark.long
@pytest.mark.parametrize("engine", ["mininet", "ovs-fabric"])
def test_an_expansion_under_traffic(engine):
    found, _ = run("emulate", "expansion-under-traffic-q3", engine=engine)
    assert [event["reached"] for event in found["timeline"]] == [156, 272]
    assert [event["lost"] for event in found["timeline"]] == [0, 0]


@pytest.mark.long
def test_marks_that_come_and_go_under_traffic():
    found, _ = run("emulate", "marks-under-traffic-q3", engine="ovs-fabric")
    assert [event["reached"] for event in found["timeline"]] == 4 * [156]
    assert [event["lost"] for event in found["timeline"]] == 4 * [0]
    assert [event["max_hops"] for event in found["timeline"]] == [4, 3, 4, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "routing"),
    [
        ("polarfly, q: 3", "valiant, protect: link"),
        ("hyperx, sides: 3x3", "ecmp, transit: ecmp, protect: link"),
    ],
)
def test_intermediates_and_paths_at_every_hop_under_traffic(tmp_path, topology, routing):
    text = f"name: lab\ntopology: {{family: {topology}}}\n"
    (tmp_path / "plain.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(f"{text}routing: {{balance: {routing}}}\n")
    paths = [str(tmp_path / "plain.yaml"), str(tmp_path / "other.yaml")]
    for old, new in (paths, paths[::-1]):
        found, wrong = run("rehearse", new, "--from", old, engine="ovs-fabric")
        assert not wrong
        assert [event["lost"] for event in found["timeline"]] == [0]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["mininet", "ovs-fabric"])
def test_a_controller_that_dies_in_a_move(engine):
    found, _ = run("emulate", "controller-crash-in-rollout-q3", engine=engine)
    assert [event["reached"] for event in found["timeline"]] == [None, 156, 156]
    assert [event["lost"] for event in found["timeline"]] == [0, 0, 0]


@pytest.mark.long
def test_in_the_reversed_order_packets_are_lost(tmp_path, a_link_goes):
    found, failed = run(*a_link_goes, code=1, **wrong(tmp_path))
    assert any("at most 0 lost a pair" in name for name in failed)
    assert found["timeline"][0]["lost"] > 0


@pytest.mark.long
def test_an_expansion_with_a_round_skipped_fails(tmp_path):
    """Rows of the second round stay as they were, and their classes go in the last."""
    found, failed = run("emulate", "expansion-under-traffic-q3", code=1, **wrong(tmp_path, "2"))
    assert any("at most 0 lost a pair" in name for name in failed)
    assert sum(event["lost"] for event in found["timeline"]) > 0


@pytest.mark.long
def test_a_crash_in_a_move_with_a_round_skipped_fails(tmp_path):
    """New rows lead to classes that the switches have not got."""
    _, failed = run("emulate", "controller-crash-in-rollout-q3", code=1, **wrong(tmp_path, "1"))
    assert "controller killed in round 3: delivered" in failed
    assert "probe, controller killed in round 3: at most 0 lost a pair" in failed


@pytest.mark.long
def test_a_move_that_a_switch_refuses_is_taken_back(tmp_path):
    """Groups that were not put there cannot be used in the last round."""
    found, failed = run("emulate", "expansion-under-traffic-q3", code=1, **wrong(tmp_path, "1"))
    (check,) = [c for c in found["checks"] if c["name"].endswith("protect link: moved")]
    assert "refused round 4" in check["mismatches"][0]["seen"]
    assert found["timeline"][0]["reached"] == 156
    assert "expand: quadric:1: moved" in failed


@pytest.mark.long
def test_with_a_switch_down_the_build_is_loaded_at_once(tmp_path):
    file = tmp_path / "scenario.yaml"
    fabric = "fabric: {name: lab, topology: {family: polarfly, q: 3}}"
    events = "[node_down: 4, policy: {protect: node}, node_up: 4]"
    file.write_text(f"name: dark\n{fabric}\ntimeline: {events}\n")
    found, _ = run("emulate", str(file))
    assert [event["reached"] for event in found["timeline"]][1:] == [132, 156]


RULES = """name: rules
fabric:
  name: lab
  topology: {family: polarfly, q: 3}
  inventory: inventory.yaml
expect: {rules: RULES}
timeline: [EVENTS]
"""


@pytest.mark.parametrize(
    ("engine", "rules", "events"),
    [
        ("ovs-fabric", "reachable", "expand: quadric:1"),
        pytest.param(
            *(
                "mininet",
                "all",
                "{policy: {balance: compact-valiant, protect: link}}, {expand: quadric:1}",
            ),
            marks=pytest.mark.long,
        ),
    ],
)
def test_rules_are_those_of_the_build_that_is_live(tmp_path, engine, rules, events):
    """Switches have other numbers, classes and groups then: packets reach every rule of these."""
    (tmp_path / "inventory.yaml").write_text(PLAIN)
    text = RULES.replace("RULES", rules).replace("EVENTS", events)
    (tmp_path / "rules.yaml").write_text(text)
    found, _ = run("emulate", str(tmp_path / "rules.yaml"), engine=engine)
    checks = {check["name"]: check for check in found["checks"]}
    first, last = (checks[f"{of}rules exercised"]["required"] for of in ("", "new build, "))
    assert found["rules"]["exercised"] == found["rules"]["due"] == last > first
    assert ("new build, ports of select groups have their shares" in checks) == (rules == "all")
