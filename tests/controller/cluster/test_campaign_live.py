"""Faults of all kinds at once against the controller over real Open vSwitch (`campaign`)."""

from __future__ import annotations

import os
import subprocess

import pytest

from compilers.tables.build_folder import load
from tests.controller.cluster.campaign import Campaign, Killable
from tests.controller.cluster.campaign_plan import KINDS, plan
from tests.controller.conftest import POLARFAB, PORTS, own_network

SPEC = "name: {0}\ntopology: {{family: polarfly, q: 3}}\nrouting: {1}\n"
POLICIES = {
    "one": "{balance: compact-valiant, protect: link}",
    "two": "{balance: minimal}",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Builds of one fabric with two policies."""
    made = []
    for name, routing in POLICIES.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "fabric.yaml").write_text(SPEC.format("lab", routing))
        words = [POLARFAB, "compile", folder / "fabric.yaml", "-o", folder / "build"]
        subprocess.run(words, check=True, capture_output=True)
        made.append(folder / "build")
    return made


def campaign(folders, work, seed, events):
    (work / "ovs").mkdir(parents=True)
    with own_network(), Killable(work / "ovs") as ovs:
        found = Campaign(ovs, folders, work, seed)
        report = found.run(plan(found.build, seed, events), PORTS)
    print(report)
    assert report.events.total() == events
    return report


def test_a_seed_gives_the_same_events_again(folders):
    build = load(folders[0])
    assert plan(build, 5, 60) == plan(build, 5, 60) != plan(build, 6, 60)
    kinds = {event.kind for events in plan(build, 1, 1000) for event in events}
    assert kinds == set(KINDS)


@pytest.mark.live
def test_every_switch_holds_its_program_after_every_round(folders, tmp_path):
    campaign(folders, tmp_path, 1, 12)


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("seed", os.environ.get("POLARFAB_SEEDS", "2 3").split())
def test_hundreds_of_events(folders, tmp_path, seed):
    campaign(folders, tmp_path, int(seed), 200)
