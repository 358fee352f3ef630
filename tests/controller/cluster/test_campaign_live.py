"""Faults of all kinds at once against the controller over real Open vSwitch (`campaign`)."""

from __future__ import annotations

import os
from itertools import takewhile
from time import monotonic, time

import pytest

from compilers.tables.folders.build_folder import load
from tests.controller.cluster.campaign import LIMIT, Campaign, Killable
from tests.controller.cluster.campaign_plan import KINDS, LONGEST_OUTAGE, OUTAGE, Event, plan
from tests.controller.makers import PORTS, compile_into, own_network

SPEC = "name: {0}\ntopology: {{family: polarfly, q: 3}}\nrouting: {1}\n"
POLICIES = {
    "one": "{balance: compact-valiant, protect: link}",
    "two": "{balance: spread}",
}
NAMED = [
    [
        Event("controller killed in a move", chance=1),
        Event("idle connections", pause=0.3),
        Event("stolen certificate", 3, (3, 7)),
        Event("impostor", 4),
    ],
    [
        Event("foreign row over ours", 5),
        Event("row altered", 6, chance=7),
        Event("row deleted", 8, chance=7),
        Event("group deleted", 10, chance=2),
        Event("host forges its source"),
        Event("stolen certificate", 9, (2, 9), pause=0.3),
        Event("thread killed"),
    ],
    [
        Event(OUTAGE, away=(*range(13),), seconds=7),
        Event("cable silent one way", link=(0, 4), chance=1),
        Event("table limited", 3, pause=0.3),
        Event("port set to drop", link=(0, 1), chance=1),
        Event("cable cut", link=(2, 3), pause=0.3),
    ],
]
"""A round about who may connect, and a move; one about what others write; one about switches that
hold and carry less than they should, after an outage of management. The controller may open few
files."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Builds of one fabric with two policies."""
    made = []
    for name, routing in POLICIES.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "fabric.yaml").write_text(SPEC.format("lab", routing))
        made.append(compile_into(folder / "build", folder / "fabric.yaml"))
    return made


def campaign(folders, work, seed, rounds, *patience):
    (work / "ovs").mkdir(parents=True)
    with own_network(), Killable(work / "ovs") as ovs:
        found = Campaign(ovs, folders, work, seed, *patience)
        try:
            return found.run(rounds(found.build), PORTS)
        finally:
            print(found.report)


def test_a_seed_gives_the_same_events_again(folders):
    build = load(folders[0])
    assert plan(build, 5, 60) == plan(build, 5, 60) != plan(build, 6, 60)
    kinds = {event.kind for events in plan(build, 1, 3000) for event in events}
    assert kinds == {*KINDS, OUTAGE}


def test_the_first_outages_are_of_all_lengths(folders):
    """A campaign of half an hour had three or four of them, of whatever lengths."""
    every = [event for events in plan(load(folders[0]), 7, 1000) for event in events]
    outages = [event for event in every if event.kind == OUTAGE]
    lengths = list(range(1, LONGEST_OUTAGE + 1))
    assert sorted(event.seconds for event in outages[:LONGEST_OUTAGE]) == lengths
    assert {len(event.away) for event in outages} == {1, 4, 13}


@pytest.mark.live
def test_every_switch_holds_its_program_after_every_round(folders, tmp_path):
    """Thieves are sent away, and a controller really was killed in a round of a move."""
    report = campaign(folders, tmp_path, 1, lambda _: NAMED, LIMIT)
    assert report.checks["thieves sent away"] == 2
    assert report.checks["killed in a round"] == 1
    assert report.outages == [(7, 13)]


def lasting(rounds, seconds):
    """As many of the rounds as begin in this time."""
    end = monotonic() + seconds
    return takewhile(lambda _: monotonic() < end, rounds)


@pytest.mark.live
@pytest.mark.long
def test_half_an_hour_of_all_faults(folders, tmp_path):
    """Its seed is the time: a failure names it, to be had again with POLARFAB_SEED.

    Half an hour is enough for an outage of management of each length.
    """
    seed = int(os.environ.get("POLARFAB_SEED", time()))
    seconds = 60 * float(os.environ.get("POLARFAB_MINUTES", "30"))
    events = 20_000
    report = campaign(
        folders, tmp_path, seed, lambda b: lasting(plan(b, seed, events, endured=True), seconds)
    )
    assert report.checks["rounds endured"] > seconds / 120
