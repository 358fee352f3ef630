"""A lone controller that is killed in a move or while a build is on trial, and its next process."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from random import Random
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner

from compilers.tables.folders.build_folder import load, save
from compilers.tables.folders.written_file import lock
from compilers.targets.openflow import protocol as of
from compilers.update.move_plan import plan
from compilers.update.slots import BEGINNING
from controller.management.action_log import ActionLog
from controller.rollout import build_history, move_journal
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import (
    LONGEST_WRITE,
    Record,
    record_from_json,
    record_to_json,
)
from controller.rollout.folder_lock import FolderLock
from controller.rollout.folder_sync import FOLDER_RETRY
from controller.rollout.resumption import mover_with_journal, restore_folder
from controller.rollout.rollout import ROLLOUT_PATIENCE, SETTLE
from controller.rollout.survey import SURVEY_PATIENCE
from controller.rollout.trial import FALL_BACK_RETRY, LEFT_STEP, MOST_LEFT, RETURN_PATIENCE
from controller.switches.current import read_build
from controller.switches.session import LiveFabric
from controller.upkeep.background import InOrder, at_once, in_thread
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError
from polarfab.cli import cli
from tests.compilers.update.updates import Moving, build
from tests.controller.makers import Unwatched, read_once
from tests.controller.message_lists import listed
from tests.controller.switches.conforming_fabric import numbers, strict
from tests.waiting import until

SMALL, POLICY = "{family: hyperx, sides: 2x2}", ("compact-valiant", "link")
WITHIN = 600.0


class Site:
    """The switches of a fabric, and the process of a controller that can be killed."""

    start_write, files = staticmethod(at_once), staticmethod(at_once)

    def __init__(self, folder, saved):
        self.folder, self.now, self.ahead = folder / "build", 1e9, 0.0
        self.old, self.new, self.update = saved.old, saved.new, saved.update
        for name in ("build", "new"):
            shutil.copytree(saved.folder / name, folder / name)
        self.walking = False
        self.ends = strict(self.update.nodes.datapath_id)
        self.start()

    @cached_property
    def moving(self):
        """The programs of all rounds, and how packets go."""
        return Moving(self.update)

    def start(self, watched=False):
        """A new process: it has only what is on the disk; returns who watches links, if asked."""
        current = read_once(self.folder)
        self.fabric = LiveFabric(current, numbers, clock=lambda: self.now)
        history = BuildHistory(self.folder)
        keeper = Keeper(self.fabric) if watched else Unwatched()
        self.mover = mover_with_journal(self.fabric, history, keeper, self.start_write, self.files)
        self.mover._time_of_day = lambda: self.now + self.ahead
        for number in self.ends:
            self.fabric.connected(number, number)
        return keeper

    def step(self, only=None):
        self.now += SETTLE
        self.fabric.tick()
        self.mover.tick()
        while out := self.fabric.send.take():
            for o in out:
                if o.data is None or (only is not None and o.key not in only):
                    continue
                end = self.ends[o.key]
                before = end.changes
                for _, answer in listed(end.take(o.data), of.HEADER):
                    self.fabric.received(o.key, answer)
                if self.walking and end.changes != before:
                    self.walk()

    def walk(self):
        ids = self.update.nodes.datapath_id.tolist()
        self.moving.switches = [self.ends[number].walked for number in ids]
        assert not self.moving.worst()[1], "packets are lost or loop"

    def until(self, true, only=None, steps=300):
        for _ in range(steps):
            if true():
                return
            self.step(only)
        pytest.fail(str(self.mover.status()))

    def holds(self, identity):
        return self.fabric.complete and self.fabric.identity == identity and not self.mover.busy

    def move(self, **options):
        self.until(lambda: self.fabric.complete)
        self.mover.move(read_once(self.folder.parent / "new"), True, **options)

    @property
    def journal(self):
        return self.folder.with_name(".build.journal")

    def told(self, kind):
        return [event.text for event in self.fabric.take_events() if event.kind == kind]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The build that a fabric begins with and the one that it moves to, in a folder."""
    folder = tmp_path_factory.mktemp("saved")
    old = save(build(SMALL), folder / "build")
    new = save(build(SMALL, POLICY), folder / "new")
    return SimpleNamespace(folder=folder, old=old, new=new, update=plan(old, new))


@pytest.fixture
def site(tmp_path, saved):
    return Site(tmp_path, saved)


def settled(site, round):
    """Whether this round is the last, and every switch has confirmed it."""
    return site.mover.rollout.round == round and not site.mover.rollout.status()["waiting"]


def test_the_next_process_goes_on_with_a_move(site):
    """Killed in every round, at once with those who heard it and those who did not."""
    site.move()
    site.walking = True
    for round in range(site.update.last_round + 1):
        reached = lambda round=round: site.mover.rollout.round == round  # noqa: E731
        heard = Random(round).sample(sorted(site.ends), 3)  # noqa: S311
        site.until(reached)
        site.step(only=heard)
        assert json.loads(site.journal.read_text())["round"] == round
        assert load(site.folder).identity == site.old.identity
        site.start()
        assert site.mover.busy or round == site.update.last_round
    site.until(lambda: site.holds(site.new.identity))
    site.step()
    assert load(site.folder).identity == site.new.identity, "the folder has it"
    assert not site.journal.exists()
    site.start()
    site.until(lambda: site.fabric.complete)
    assert site.fabric.differences["none"] == len(site.ends)


def test_the_next_process_begins_a_move_that_was_only_requested(site):
    """Its journal has the round before the first. It was called damaged: all were surveyed, and the
    move was forgotten.
    """
    site.move()
    site.until(site.journal.exists)
    assert json.loads(site.journal.read_text())["round"] == BEGINNING
    site.start()
    assert site.told("journal-damaged") == []
    site.until(lambda: site.holds(site.new.identity))


def test_the_next_process_goes_on_around_what_is_drained(site):
    """Its plan led through a drained switch: all were given other rows in the midst of a move."""
    keeper = site.start(watched=True)
    site.until(lambda: site.fabric.complete)
    keeper.drain(site.old.wiring.names[3])
    site.until(lambda: not keeper.rounds.busy)
    site.move()
    site.until(lambda: settled(site, 1))
    planned = site.mover.rollout.programs.update
    keeper = site.start(watched=True)
    assert keeper.drained[3]
    going_on = site.mover.rollout.programs.update
    for one, other in ((planned.old, going_on.old), (planned.new, going_on.new)):
        assert np.array_equal(one.tables.routes.egress, other.tables.routes.egress)
    site.until(lambda: site.fabric.complete)
    assert site.fabric.differences["none"] == len(site.ends), "all hold what is planned"
    site.until(lambda: site.holds(site.new.identity))


def test_a_move_that_was_taken_back_is_taken_back_further(site):
    site.move()
    site.until(lambda: settled(site, 2))
    site.walking = True
    site.mover.rollout.reason = "for this test"
    site.until(lambda: site.mover.rollout.state == "back" and site.mover.rollout.round == 1)
    site.start()
    site.until(lambda: site.holds(site.old.identity))
    assert site.mover.progress()["state"] == "failed"
    assert load(site.folder).identity == site.old.identity
    site.mover.move(site.fabric.current)
    assert site.mover.progress()["state"] == "none", "it is there, and nothing has failed"


def test_a_move_without_switches_that_are_amiss_waits_for_those_that_are_about_to_connect(site):
    """It began without them, and most pairs lost packets until they were there."""
    site.until(lambda: site.fabric.complete)
    save(build(SMALL, POLICY), site.folder.with_name("new"))
    ends, site.ends = site.ends, dict([*site.ends.items()][:2])
    site.start(watched=True)
    site.mover.move(
        read_build(site.folder.with_name("new"), unverified=True), True, all_or_none=False
    )
    for _ in range(20):
        site.step()
    assert site.mover.rollout.state == "reading"
    site.ends, site.walking = ends, True
    for number in [*ends][2:]:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(site.new.identity))


def test_a_folder_that_was_replaced_before_the_move(site):
    """As SIGHUP does it: the folder has the new build from the start; the old one is kept."""
    site.until(lambda: site.fabric.complete)
    save(build(SMALL, POLICY), site.folder)
    site.mover.move(read_build(site.folder, unverified=True), True, all_or_none=False)
    site.until(lambda: site.mover.rollout.round == 1)
    site.walking = True
    site.start()
    assert site.fabric.identity == site.old.identity
    site.until(lambda: site.holds(site.new.identity))


def test_a_journal_whose_builds_are_gone_is_told(site):
    site.journal.write_text('{"build": "0000000000000000", "to": "1111111111111111"}')
    site.start()
    assert "0000000000000000" in site.told("kept")[0]
    site.until(lambda: site.holds(site.old.identity))


def test_links_are_watched_after_a_move_that_the_next_process_has_ended(site):
    """Where the folder had the new build already: its programs were taken for those of others."""
    site.until(lambda: site.fabric.complete)
    save(build(SMALL, POLICY), site.folder)
    site.mover.move(read_build(site.folder, unverified=True), True, all_or_none=False)
    site.until(lambda: site.mover.rollout.round == 1)
    keeper = site.start(watched=True)
    site.until(lambda: site.holds(site.new.identity))
    assert keeper.change_number is not None


def damage(site):
    """The fabric holds the new build, the folder has the old one, and the journal is damaged."""
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    site.step()
    save(build(SMALL), site.folder)
    site.journal.write_text("{")


def test_a_damaged_journal_is_put_aside_and_the_fabric_is_read(site):
    """It stopped the start; without it the folder's build was loaded on all switches at once."""
    damage(site)
    before = [dict(end.rows) for end in site.ends.values()]
    site.start()
    assert site.fabric.identity == site.old.identity
    site.walking = True
    site.until(lambda: site.holds(site.new.identity))
    assert [dict(end.rows) for end in site.ends.values()] == before
    assert site.fabric.differences["added"] == site.fabric.differences["removed"] == 0
    told = [event.kind for event in site.fabric.take_events()]
    assert ("journal-damaged" in told, "surveyed" in told) == (True, True)
    assert site.journal.with_name(".build.journal.damaged").read_text() == "{"
    assert load(site.folder).identity == site.new.identity
    assert site.old.identity in site.mover.history.kept_builds()
    site.start()
    site.until(lambda: site.holds(site.new.identity))
    assert [dict(end.rows) for end in site.ends.values()] == before, "and so it stays"


def test_a_process_that_ends_while_it_asks_leaves_that_to_the_next(site):
    """The journal was put aside before, and the next one loaded the folder's build on all at once;
    a move that began meanwhile was lost when the switches had answered.
    """
    damage(site)
    site.start()
    site.walking = True
    for _ in range(3):
        site.step(only=[3])
    with pytest.raises(InputError, match="asked what they hold; wait 30 s; if none"):
        site.mover.move(read_build(site.folder, unverified=True), True, all_or_none=False)
    site.start()
    site.until(lambda: site.holds(site.new.identity))
    assert site.fabric.differences["added"] == site.fabric.differences["removed"] == 0


def test_a_survey_does_not_end_while_the_controller_stood_still(site):
    """One switch would have decided for those whose answers were unread."""
    damage(site)
    ends, site.ends = site.ends, dict([*site.ends.items()][:1])
    site.start()
    site.until(lambda: site.fabric.survey)
    site.step()
    for paused in (0.0, 3 * SURVEY_PATIENCE):
        site.now += paused
        site.fabric.listening_clock.update(None)
    site.step()
    assert len(site.fabric.survey) == 1
    site.ends = ends
    for number in [*ends][1:]:
        site.fabric.connected(number, number)
    site.until(lambda: site.fabric.survey is None)


def test_a_fabric_that_does_not_answer_is_not_given_the_folders_build(site):
    """After 30 s without an answer it was loaded on all at once, as they came back."""
    damage(site)
    ends, site.ends = site.ends, {}
    site.start()
    site.now += 3 * SURVEY_PATIENCE
    site.step()
    site.ends, site.walking = ends, True
    for number in ends:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(site.new.identity))
    assert site.fabric.differences["added"] == site.fabric.differences["removed"] == 0


def test_records_of_other_versions_are_read(site):
    """A version before one with more members stopped at them."""
    site.move()
    site.until(lambda: site.mover.rollout.round == 1)
    said = json.loads(site.journal.read_text())
    assert said["version"] == 1
    name = site.fabric.names[3]
    said |= {"hosts": ["of a later version"], "known": {"drained": [[name]], "suns": [["1", 2]]}}
    del said["before"], said["version"], said["digest"]
    said["known"] |= {"links": [[name, 1], 7], "down": "3", "switches": [[3, 0.0], [name, "soon"]]}
    site.journal.write_text(json.dumps(said))
    keeper = site.start(watched=True)
    assert site.told("journal-damaged") == []
    assert np.flatnonzero(keeper.drained).tolist() == [3]
    site.journal.write_text(json.dumps(said | {"known": [1]}))
    site.start()
    assert "known: [1]" in site.told("journal-damaged")[0]
    said["version"] = 2
    site.journal.write_text(json.dumps(said))
    site.start()
    assert "does not know" in site.told("journal-damaged")[0]


def test_the_first_build_is_dated_by_the_time_when_the_fabric_came_to_hold_it(site):
    """And not by the first move away from it."""
    site.until(lambda: site.fabric.complete)
    site.step()
    assert [one.build for one in site.mover.history.entries()] == [site.old.identity]


def test_the_first_build_is_kept_although_a_switch_is_away(site):
    """The next build, compiled before a restart, was loaded on all switches at once."""
    site.ends.popitem()
    site.start()
    site.until(lambda: len(site.fabric.in_sync) == len(site.ends))
    site.step()
    assert site.mover.history.kept_builds() == []
    site.now += RETURN_PATIENCE
    site.step()
    assert site.mover.history.kept_builds() == [site.old.identity]


def test_a_move_tells_that_a_build_is_loaded_when_it_is(site):
    """Its first round said that the old build was loaded, and the fabric complete."""
    site.until(lambda: site.fabric.complete)
    site.fabric.take_events()
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    told = [e for e in site.fabric.take_events() if e.kind in ("loaded", "complete", "moved")]
    new = site.new.identity
    assert [(e.kind, e.node) for e in told] == [("loaded", new), ("moved", new), ("complete", new)]


def test_without_room_nothing_is_changed(site, monkeypatch):
    """`rollback` ended well on a full disk, and the folder kept the other build."""
    site.until(lambda: site.fabric.complete)
    before = [dict(end.rows) for end in site.ends.values()]
    monkeypatch.setattr(build_history, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(InputError, match="bytes of room for build"):
        site.move()
    assert not site.mover.busy
    assert site.fabric.identity == site.old.identity
    assert [dict(end.rows) for end in site.ends.values()] == before


def on_trial(site):
    site.move(within=WITHIN)
    site.until(lambda: site.holds(site.new.identity))


def test_a_build_that_nobody_confirms_goes(site):
    """Also when the controller is killed while it is on trial, and while it goes."""
    on_trial(site)
    site.walking = True
    assert site.mover.status()["before"] == site.old.identity
    with pytest.raises(InputError, match="on trial"):
        site.mover.move(read_build(site.folder, unverified=True), True, all_or_none=False)
    site.start()
    site.until(lambda: site.fabric.complete)
    assert site.fabric.identity == site.new.identity
    site.now += WITHIN
    site.step()
    assert site.told("unconfirmed") == [site.old.identity]
    site.until(lambda: site.mover.rollout.round == 1)
    site.start()
    site.until(lambda: site.holds(site.old.identity))
    site.step()
    assert (site.mover.trial, site.journal.exists()) == (None, False)
    assert load(site.folder).identity == site.old.identity


def test_a_build_that_is_confirmed_stays(site):
    with pytest.raises(InputError, match="a build on trial"):
        site.mover.confirm()
    site.move(within=WITHIN, by="alice")
    site.until(lambda: site.holds(site.new.identity))
    site.mover.confirm()
    site.now += WITHIN
    site.step()
    assert site.holds(site.new.identity)
    assert not site.journal.exists()


def test_a_fall_back_that_is_refused_is_tried_again(site):
    site.move(within=1.0)
    site.until(lambda: site.holds(site.new.identity))
    site.ends[3].takes = 0
    site.now += WITHIN
    site.until(lambda: site.mover.rollout.state == "failed")
    site.ends[3].takes = 1 << 30
    site.now += FALL_BACK_RETRY
    site.until(lambda: site.holds(site.old.identity))


def test_a_trial_is_not_prolonged_by_the_one_before(site):
    """It lasted until the retry of the earlier fall-back: 30 s where 1 s was requested."""
    for _ in range(2):
        site.move(within=1.0)
        site.until(lambda: site.holds(site.new.identity))
        site.now += 1.0
        site.step()
        assert site.told("unconfirmed") == [site.old.identity]
        site.until(lambda: site.holds(site.old.identity))


def save_of_others(site, folder, shift=1000):
    """Save a build of other switches, as that of another plane is.

    Their datapath ids are larger by `shift`.
    """
    wiring = replace(site.new.wiring, datapath_id=site.new.wiring.datapath_id + shift)
    return save(replace(site.new, wiring=wiring, identity="5" * 16), folder)


def test_a_build_without_any_of_the_connected_switches_is_refused(site):
    """That of another plane: it was loaded, and all switches were said to hold it."""
    site.until(lambda: site.fabric.complete)
    other = save_of_others(site, site.folder.parent / "other")
    target = read_build(site.folder.parent / "other", unverified=True)
    with pytest.raises(InputError, match=f"build {other.identity}, which has none of the 4 conn"):
        site.mover.move(target, True, within=WITHIN)
    assert (site.mover.trial, site.mover.busy) == (None, False)
    assert site.holds(site.old.identity)


def test_a_build_that_removes_all_switches_connected_so_far_is_not_refused(site):
    """It has two switches of the fabric, which had not connected yet."""
    site.ends = dict([*site.ends.items()][:2])
    site.start()
    site.until(lambda: site.fabric.in_sync)
    save_of_others(site, site.folder.parent / "other", shift=2)
    target = read_build(site.folder.parent / "other", unverified=True)
    site.mover.move(target, True, all_or_none=False)
    assert site.mover.busy


def test_a_trial_of_a_build_with_all_new_switches_falls_back(site):
    """The build before was refused as that of another fabric, every 30 s for ever."""
    site.until(site.mover.history.kept_builds)
    other = save_of_others(site, site.folder.parent / "other")
    target = read_build(site.folder.parent / "other", unverified=True)
    site.ends = {}
    site.start()
    site.mover.move(target, True, within=WITHIN, all_or_none=False)
    site.ends = strict(site.update.nodes.datapath_id + 1000)
    for number in site.ends:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(other.identity))
    site.now += WITHIN
    site.until(lambda: site.fabric.identity == site.old.identity)


def test_strangers_do_not_end_a_survey(site, monkeypatch):
    """Four that connected first ended it. A trial was taken for over, as the folder, which could
    not be written, had the build before: that was loaded on all switches at once.
    """
    with monkeypatch.context() as patch:
        patch.setattr(BuildHistory, "install", Mock(side_effect=InputError.of("room", "none")))
        on_trial(site)
        for _ in range(2):
            site.step()
    assert load(site.folder).identity == site.old.identity
    ends, site.ends = site.ends, {}
    site.start()
    for number in range(1001, 1005):
        site.fabric.connected(number, number)
    site.step()
    site.now += SURVEY_PATIENCE
    site.step()
    site.ends = ends
    for number in ends:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(site.new.identity))
    assert site.mover.trial
    assert site.fabric.differences["none"] == len(ends)


def test_a_second_survey_lasts_as_long_as_the_first(site):
    """It ended with the first, and did not wait for the others."""
    site.until(site.mover.history.kept_builds)
    record = {"build": "2" * 16, "before": "3" * 16, "left": WITHIN}
    site.journal.write_text(json.dumps(record))
    save(build(SMALL, ("minimal", "link")), site.folder)
    ends, site.ends = site.ends, dict([*site.ends.items()][:1])
    site.start()
    for _ in range(3):
        site.step()
    site.now += SURVEY_PATIENCE
    site.until(lambda: site.told("kept"))
    site.step()
    assert len(site.fabric.survey) == 1
    site.ends = ends
    for number in [*ends][1:]:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(site.old.identity))
    assert site.fabric.differences["none"] == len(ends)


def test_switches_are_asked_although_the_folder_is_of_another_plane(site):
    """After a damaged journal, those of the other plane were asked for ever."""
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    site.step()
    site.journal.write_text("{")
    shutil.rmtree(site.folder)
    other = save_of_others(site, site.folder)
    site.start()
    assert site.fabric.survey == {}
    site.until(lambda: site.holds(site.new.identity))
    assert site.fabric.differences["none"] == len(site.ends)
    assert load(site.folder).identity == other.identity


def test_a_start_with_the_last_build_reads_it_once(site, monkeypatch):
    """It was read from the history as well."""
    site.until(site.mover.history.kept_builds)
    read = Mock(side_effect=BuildHistory.read)
    monkeypatch.setattr(BuildHistory, "read", read)
    site.start()
    site.until(lambda: site.holds(site.old.identity))
    assert not read.called


def test_a_start_with_the_folder_of_another_plane_keeps_the_last_build(site):
    """All switches were strangers, which were asked for ever: no failure was repaired."""
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    site.step()
    shutil.rmtree(site.folder)
    other = save_of_others(site, site.folder)
    site.start()
    assert f"build {other.identity} of the folder has none" in site.told("kept")[0]
    site.until(lambda: site.holds(site.new.identity))
    assert site.fabric.differences["none"] == len(site.ends)
    assert load(site.folder).identity == other.identity


def test_a_trial_is_gone_on_with_although_the_folder_is_of_another_plane(site):
    """The switches were asked for ever, and it neither was confirmed nor fell back."""
    on_trial(site)
    shutil.rmtree(site.folder)
    save_of_others(site, site.folder)
    site.start()
    assert site.fabric.survey == {}
    site.until(lambda: site.fabric.complete)
    assert site.fabric.identity == site.new.identity
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def test_a_trial_falls_back_although_the_history_is_damaged(site):
    """The build before was removed as the next process noted its first one."""
    on_trial(site)
    file = site.mover.history.place / "history.json"
    file.write_bytes(bytes(100))
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    assert len(site.told("history-damaged")) == 1
    assert site.mover.history.previous_build(site.new.identity) == site.old.identity
    held = [entry.build for entry in site.mover.history.entries()]
    assert held == [site.old.identity, site.new.identity]
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    assert site.told("history-damaged") == []
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))
    assert load(site.folder).identity == site.old.identity


def test_a_trial_falls_back_to_a_build_that_the_history_does_not_name(site):
    on_trial(site)
    file = site.mover.history.place / "history.json"
    file.write_text(json.dumps(json.loads(file.read_text())[-1:]))
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    assert site.old.identity in site.mover.history.kept_builds()


def test_rollback_and_history(site):
    site.until(lambda: site.fabric.complete)
    with pytest.raises(InputError, match="none is kept"):
        site.mover.roll_back()
    site.move(by="alice")
    site.until(lambda: site.holds(site.new.identity))
    site.mover.roll_back(by="bob")
    site.until(lambda: site.holds(site.old.identity))
    held = [(one.build, one.by) for one in site.mover.history.entries()]
    old, new = site.old.identity, site.new.identity
    assert held == [(old, ""), (new, "alice"), (old, "bob")]
    assert set(site.mover.history.kept_builds()) == {old, new}
    with pytest.raises(InputError, match="one of the builds that are kept"):
        site.mover.roll_back("2" * 16)


def turn_a_bit(file):
    """Damage a file by one bit."""
    content = bytearray(file.read_bytes())
    content[-1] ^= 4
    file.write_bytes(content)


def with_damaged_copy(site):
    """The history's copy of the build that the fabric holds is damaged; returns the file."""
    site.until(lambda: site.fabric.complete)
    site.step()
    file = site.mover.history.place / site.old.identity / "arrays" / "far.npy"
    turn_a_bit(file)
    return file


def test_a_damaged_copy_of_the_running_build_is_written_again_before_a_move(site):
    """After the move there was no way back."""
    file = with_damaged_copy(site)
    target = read_once(site.folder.parent / "new")
    site.mover.prepare(target, lambda _: None)
    site.mover.move(target, True)
    site.step()
    assert site.told("copy-damaged") == ["a changed file"]
    assert load(file.parents[1]).identity == site.old.identity
    site.until(lambda: site.holds(site.new.identity))
    shutil.rmtree(site.folder)
    site.mover.roll_back()
    site.until(lambda: site.holds(site.old.identity))


def test_a_copy_that_is_damaged_during_the_move_to_it_still_comes_into_the_folder(site):
    """The folder kept the old build, and nobody was told."""
    site.move()
    turn_a_bit(site.mover.history.place / site.new.identity / "arrays" / "far.npy")
    site.until(lambda: site.holds(site.new.identity))
    site.step()
    assert load(site.folder).identity == site.new.identity


def test_a_damaged_copy_is_called_damaged(site):
    """It was called none of the builds that are kept, of which it was one."""
    on_trial(site)
    file = site.mover.history.place / site.new.identity / "arrays" / "far.npy"
    turn_a_bit(file)
    shutil.rmtree(site.folder)
    with pytest.raises(InputError) as refused:
        site.mover.history.read(site.new.identity)
    text = f"{file}: required an undamaged copy of build {site.new.identity}, given a changed file"
    assert str(refused.value) == f"{text}; apply this build again"


def test_a_return_that_cannot_be_made_is_told_once(site):
    """Each 30 s it was told, and logged as an action, that the fabric goes back."""
    on_trial(site)
    file = site.mover.history.place / site.old.identity / "arrays" / "far.npy"
    turn_a_bit(file)
    site.start()
    site.until(lambda: site.fabric.complete)
    site.now += WITHIN
    told = []
    for _ in range(4):
        site.step()
        site.now += FALL_BACK_RETRY
        told += site.fabric.take_events()
    kinds = [event.kind for event in told]
    assert kinds.count("cannot-return") == 1
    assert not {"unconfirmed", "kept"} & {*kinds}
    assert str(file) in told[kinds.index("cannot-return")].text
    turn_a_bit(file)
    site.until(lambda: site.holds(site.old.identity))
    assert site.told("unconfirmed") == [site.old.identity]


def test_a_trial_falls_back_to_the_last_build_of_the_folder(site, saved):
    """Where the history was gone, the build stayed that nobody confirmed."""
    on_trial(site)
    shutil.copytree(saved.folder / "build", site.folder.with_name(".build.last"))
    shutil.rmtree(site.mover.history.place)
    site.start()
    site.until(lambda: site.fabric.complete)
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


@pytest.mark.parametrize("damaged", ["arrays/far.npy", "manifest.json", "manifest.sha256", ""])
def test_the_folder_gets_the_running_build_again_at_a_start(site, damaged):
    """With a damaged folder, or none, no controller started, and the trial never ended."""
    on_trial(site)
    assert restore_folder(BuildHistory(site.folder)) == ""
    if damaged:
        turn_a_bit(site.folder / damaged)
    else:
        shutil.rmtree(site.folder)
    said = restore_folder(BuildHistory(site.folder))
    assert str(site.folder) in said
    assert f"build {site.new.identity}, which the fabric has, is put into {site.folder}" in said
    site.start()
    site.until(lambda: site.fabric.complete)
    assert site.fabric.identity == site.new.identity
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def test_a_start_says_why_the_disk_does_not_take_the_running_build_again(site, monkeypatch):
    """Nothing was said of it: the start named the damaged file only."""
    on_trial(site)
    turn_a_bit(site.folder / "arrays" / "far.npy")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(build_history, "copy2", Mock(side_effect=full))
    started = CliRunner().invoke(cli, ["controller", str(site.folder)])
    copy = site.mover.history.place / site.new.identity
    damage, unwritable = str(started.exception).splitlines()
    assert "far.npy: required the file as it was compiled" in damage
    assert f"{copy} is a sound copy, given No space left on device" in unwritable
    assert "make room" in unwritable


def test_a_second_controller_changes_nothing_in_a_damaged_folder(site):
    """It put the build there again before it was refused."""
    on_trial(site)
    file = site.folder / "arrays" / "far.npy"
    turn_a_bit(file)
    before = file.read_bytes()
    lock = FolderLock(site.folder, print, at_once)
    started = CliRunner().invoke(cli, ["controller", str(site.folder)])
    assert f"one that process {os.getpid()} uses" in str(started.exception)
    assert file.read_bytes() == before
    lock.release()
    assert restore_folder(BuildHistory(site.folder))
    assert file.read_bytes() != before


def test_a_controller_starts_although_its_folder_is_damaged(site, monkeypatch):
    on_trial(site)
    turn_a_bit(site.folder / "arrays" / "far.npy")
    monkeypatch.setattr("signal.signal", Mock())
    monkeypatch.setattr("controller.app.serve", serve := Mock())
    started = CliRunner().invoke(cli, ["controller", str(site.folder)], catch_exceptions=False)
    assert "far.npy: a changed file; build" in started.output
    _, read_folder, *_ = serve.call_args.args
    assert read_folder().identity == site.new.identity


def test_a_damaged_build_that_people_put_into_the_folder_stays_there(site):
    on_trial(site)
    save(build(SMALL, ("minimal", "link")), site.folder)
    file = site.folder / "arrays" / "far.npy"
    turn_a_bit(file)
    before = file.read_bytes()
    assert restore_folder(BuildHistory(site.folder)) == ""
    assert file.read_bytes() == before


def test_a_start_removes_what_a_kill_has_left_of_a_write(site):
    """It stayed for ever, one more with each kill in the middle of a write."""
    names = ["..build.journal.0123abcd.polarfab", "..build.journal.4567cdef.polarfab"]
    of_others = [".build.0123abcd.polarfab", "..build.journal.mine.polarfab", ".build.journal.old"]
    files = [site.folder.with_name(name) for name in (*names, *of_others)]
    for file in files:
        file.write_bytes(b"{")
    with files[1].open("rb") as stream:
        assert lock(stream.fileno()), "as a process that is writing it"
        site.start()
    assert [file.exists() for file in files] == [False, True, True, True, True]


def test_a_journal_that_cannot_be_written_is_told_once(site):
    site.journal.mkdir()
    (site.journal / "file").touch()
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    assert len(site.told("status")) == 1


@pytest.fixture
def hung(site, monkeypatch):
    """A disk that answers once this event is set."""
    answers, replace_file = Event(), move_journal.replace_file

    def late(file, pieces):
        assert answers.wait(60.0), "the loop waits for the disk"
        return replace_file(file, pieces)

    monkeypatch.setattr(move_journal, "replace_file", late)
    site.start_write = lambda work: (at_once if answers.is_set() else in_thread)(work)
    yield answers
    answers.set()


def test_repairs_go_on_while_the_disk_does_not_answer(site, hung):
    """A second dead link was not repaired for as long, and switches left."""
    keeper = site.start(watched=True)
    site.until(lambda: site.fabric.complete)
    for vertex in (2, 3):
        keeper.drain(site.old.wiring.names[vertex])
        before = sum(end.changes for end in site.ends.values())
        site.until(lambda: not keeper.rounds.busy)
        assert sum(end.changes for end in site.ends.values()) > before
        assert not site.mover.records_links()
    assert site.told("status") == []
    site.now += LONGEST_WRITE
    for _ in range(3):
        site.step()
    assert site.told("status") == ["the disk does not answer"], "once"
    site.mover.finish(0.0)
    assert site.told("status") == ["the disk did not answer before the end"]
    hung.set()
    site.mover.finish(60.0)
    assert site.told("status") == []
    assert site.mover.records_links()
    assert np.flatnonzero(site.start(watched=True).drained).tolist() == [2, 3]


def test_a_round_is_sent_when_the_disk_has_it(site, hung):
    site.until(lambda: site.fabric.complete)
    site.start()
    site.move()
    before = [end.changes for end in site.ends.values()]
    for _ in range(20):
        site.step()
        site.now += ROLLOUT_PATIENCE / 2
    assert site.mover.rollout.state == "forth", "no switch is late while the disk is"
    assert [end.changes for end in site.ends.values()] == before
    hung.set()
    site.walking = True
    rounds = set()

    def over():
        site.mover.finish(60.0)
        if site.mover.busy and (round := site.mover.rollout.round) >= 0:
            rounds.add(round)
            assert json.loads(site.journal.read_text())["round"] >= round
        return site.holds(site.new.identity)

    site.until(over)
    assert rounds == {*range(site.update.last_round + 1)}


def test_a_build_on_trial_comes_also_where_each_write_takes_long(site):
    """What is left of the trial had changed whenever the disk answered: no round ever began."""

    def slowly(work):
        due, error = site.now + LEFT_STEP + 1, work()
        done = lambda: site.now >= due  # noqa: E731
        return SimpleNamespace(done=done, exception=lambda: None, result=lambda: error)

    site.until(lambda: site.fabric.complete)
    site.start_write = slowly
    site.start()
    site.move(within=WITHIN)
    site.until(lambda: site.holds(site.new.identity), steps=2000)
    assert site.mover.trial


@pytest.fixture
def hung_history(monkeypatch):
    """A disk that takes no list of builds until this event is set."""
    answers, put_file = Event(), build_history.put_file

    def late(*arguments, **named):
        assert answers.wait(60.0), "the loop waits for the disk"
        return put_file(*arguments, **named)

    monkeypatch.setattr(build_history, "put_file", late)
    yield answers
    answers.set()


def test_the_loop_does_not_wait_while_the_history_is_written(site, hung_history):
    """At the end of a move nobody answered the switches for as long. Until the folder has the
    build, the journal says that it has not.
    """
    hung_history.set()
    site.files = InOrder(0, "files of the test").add
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    site.mover.finish(60.0)
    site.move()
    hung_history.clear()
    site.until(lambda: site.holds(site.new.identity))
    assert site.mover.progress()["state"] == "writing"
    assert site.told("status") == []
    for _ in range(3):
        site.now += LONGEST_WRITE
        site.step()
    assert site.told("status") == ["the disk does not answer"], "once"
    assert site.mover.progress()["state"] == "done"
    record = json.loads(site.journal.read_text())
    assert (record["build"], record["folder"]) == (site.new.identity, site.old.identity)
    site.mover.finish(0.0)
    hung_history.set()
    site.mover.finish(60.0)
    assert load(site.folder).identity == site.new.identity
    site.step()
    assert not site.journal.exists()


def test_a_build_that_is_put_into_the_folder_meanwhile_stays_there(site, saved, hung_history):
    """The one before was replaced by the one that the fabric holds, and SIGHUP moved nowhere."""
    hung_history.set()
    site.files = InOrder(0, "files of the test").add
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    site.mover.finish(60.0)
    site.move()
    hung_history.clear()
    site.until(lambda: site.holds(site.new.identity))
    shutil.rmtree(site.folder)
    shutil.copytree(saved.folder / "build", site.folder)
    hung_history.set()
    site.mover.finish(60.0)
    assert load(site.folder).identity == site.old.identity


def test_the_folder_follows_two_moves_that_end_while_the_disk_hangs(site, hung_history):
    """It got the build of the first one, to which the next process would have moved."""
    hung_history.set()
    site.files = InOrder(0, "files of the test").add
    site.start()
    site.until(lambda: site.fabric.complete)
    site.step()
    site.mover.finish(60.0)
    site.move(within=WITHIN)
    hung_history.clear()
    site.until(lambda: site.holds(site.new.identity))
    site.mover.roll_back()
    site.until(lambda: site.holds(site.old.identity))
    hung_history.set()
    site.mover.finish(60.0)
    assert load(site.folder).identity == site.old.identity
    site.step()
    assert not site.journal.exists()


def test_a_build_is_kept_before_a_move_while_other_work_goes_on(site, hung_history):
    site.files = InOrder(0, "files of the test").add
    site.start()
    site.until(lambda: site.fabric.complete)
    target, breaths = read_build(site.folder.with_name("new"), unverified=True), []

    def pause(_):
        breaths.append(1)
        if len(breaths) > 3:
            hung_history.set()

    site.mover.prepare(target, pause)
    assert len(breaths) > 3
    assert set(site.mover.history.kept_builds()) == {site.old.identity, site.new.identity}


def test_a_move_is_refused_where_nothing_can_be_kept_before(site, hung_history):
    """It began whenever the disk answered, long after whoever had asked for it gave up."""
    site.files = InOrder(0, "files of the test").add
    site.start()
    site.until(lambda: site.fabric.complete)
    target = read_build(site.folder.with_name("new"), unverified=True)

    def pause(_):
        site.now += 1.0

    with pytest.raises(InputError, match="a disk that does not answer"):
        site.mover.prepare(target, pause)
    hung_history.set()
    site.mover.finish(60.0)
    site.step()
    assert site.mover.progress()["state"] == "none"


@pytest.mark.parametrize("within", [0.0, WITHIN])
def test_a_move_that_cannot_be_continued_changes_nothing(site, monkeypatch, within):
    """The fabric held half of what the journal said, and that was asked for again and again."""
    site.until(lambda: site.fabric.complete)
    save(build(SMALL, POLICY), site.folder)
    site.mover.move(read_build(site.folder, unverified=True), True, within=within)
    site.until(lambda: site.mover.rollout.round == 1)
    told = []
    with monkeypatch.context() as patch:
        patch.setattr("controller.rollout.mover.plan", Mock(side_effect=InputError.of("a", "b")))
        site.start()

        def refused():
            told.extend(event.kind for event in site.fabric.take_events())
            return "kept" in told

        site.until(refused)
    assert "inherited" not in told
    assert site.fabric.identity == site.new.identity
    assert (site.mover.trial, site.fabric.survey is None) == (None, False)
    site.until(lambda: site.holds(site.old.identity))


def test_a_record_is_written_as_soon_as_it_can_be(site):
    """A drain that met a full disk was written with the next change only, if there was one."""
    keeper = site.start(watched=True)
    site.until(lambda: site.fabric.complete)
    site.journal.unlink(missing_ok=True)
    site.journal.mkdir()
    keeper.drain(site.old.wiring.names[3])
    site.until(lambda: not keeper.rounds.busy)
    site.step()
    site.journal.rmdir()
    site.step()
    assert site.start(watched=True).drained[3]


def test_a_rollback_that_is_refused_leaves_the_trial(site):
    on_trial(site)
    with pytest.raises(InputError, match="one of the builds that are kept"):
        site.mover.roll_back("2" * 16)
    assert site.mover.status()["before"] == site.old.identity
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def return_to_a_third_build(site):
    """A build is on trial, and a return to another one than that before it has begun."""
    save(build(SMALL, ("minimal", "link")), site.folder.parent / "third")
    third = read_build(site.folder.parent / "third", unverified=True)
    site.mover.history.keep(third)
    on_trial(site)
    site.mover.roll_back(third.identity)
    site.until(lambda: site.mover.rollout.round == 0)
    return third.identity


@pytest.mark.parametrize("killed", [False, True])
def test_a_return_elsewhere_that_is_undone_leaves_the_trial(site, killed):
    """The trial had ended with the request, so that the build stayed that nobody confirmed."""
    return_to_a_third_build(site)
    if killed:
        site.start()
        site.until(lambda: site.mover.rollout)
    site.mover.rollout.reason = "a switch has refused its rows"
    site.until(lambda: site.holds(site.new.identity))
    assert site.mover.status()["before"] == site.old.identity
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def test_a_return_elsewhere_ends_the_trial(site):
    """Which the next process ends as well."""
    third = return_to_a_third_build(site)
    site.start()
    site.until(lambda: site.holds(third))
    site.step()
    assert site.mover.trial is None
    site.now += WITHIN
    for _ in range(20):
        site.step()
    assert site.holds(third)


def test_a_return_to_the_build_on_trial_itself_confirms_nothing(site):
    """It moved nothing and ended the trial."""
    on_trial(site)
    site.mover.roll_back(site.new.identity)
    site.until(lambda: site.holds(site.new.identity))
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def fall_back_on_a_hung_disk(site, hung):
    """A trial is over, and the disk does not answer since; packets are walked."""
    hung.set()
    site.start()
    on_trial(site)
    site.until(lambda: site.mover.trial.held_by_most)
    site.mover.finish(60.0)
    hung.clear()
    site.now += WITHIN
    site.walking = True


def test_a_trial_falls_back_while_the_disk_hangs(site, hung, monkeypatch):
    """It stayed until the disk answered. The build to return to is not read, either."""
    fall_back_on_a_hung_disk(site, hung)
    monkeypatch.setattr(BuildHistory, "read", Mock(side_effect=InputError.of("a", "b")))
    site.until(lambda: site.holds(site.old.identity))
    assert site.told("unconfirmed") == [site.old.identity]
    assert site.mover.trial is None
    assert json.loads(site.journal.read_text())["before"] == site.old.identity, "as it was"
    hung.set()
    site.mover.finish(60.0)
    assert not site.journal.exists()
    assert load(site.folder).identity == site.old.identity


@pytest.mark.parametrize("written", [False, True])
def test_a_kill_after_that_leaves_the_switches_as_they_are(site, hung, monkeypatch, written):
    """The next process has a journal of the trial, and the other build in its folder."""
    fall_back_on_a_hung_disk(site, hung)
    if written:  # the disk hangs again from the second round on
        site.until(lambda: site.mover.busy)
        hung.set()
        site.mover.finish(60.0)
        hung.clear()
    monkeypatch.setattr(BuildHistory, "install", Mock(side_effect=InputError.of("a", "b")))
    site.until(lambda: site.holds(site.old.identity))
    monkeypatch.undo()
    assert (json.loads(site.journal.read_text())["to"] != "") == written
    assert load(site.folder).identity == site.new.identity
    site.start_write = at_once
    before = [dict(end.rows) for end in site.ends.values()]
    site.start()
    site.until(lambda: site.holds(site.old.identity))
    site.step()
    assert [dict(end.rows) for end in site.ends.values()] == before
    assert (site.mover.trial, site.journal.exists()) == (None, False)
    assert load(site.folder).identity == site.old.identity


def test_a_kill_halfway_ends_with_the_build_before_as_well(site, hung, monkeypatch):
    fall_back_on_a_hung_disk(site, hung)
    site.until(lambda: site.mover.rollout.round == 2)
    monkeypatch.undo()
    site.start_write, site.walking = at_once, False
    site.start()
    site.until(lambda: site.holds(site.new.identity))
    assert site.mover.trial
    site.now += WITHIN
    site.walking = True
    site.until(lambda: site.holds(site.old.identity))


def test_a_trial_that_ends_without_management_waits_for_the_switches(site):
    """It was "done" with none connected; each got the build when it returned, not in rounds."""
    on_trial(site)
    site.step()
    ends, site.ends = site.ends, {}
    for number in ends:
        site.fabric.closed(number)
    for seconds in (WITHIN, RETURN_PATIENCE + 1, 1):
        site.now += seconds
        site.step()
    assert site.fabric.identity == site.new.identity
    assert not site.mover.busy
    returned(site, ends)
    site.until(lambda: site.mover.busy)
    assert site.fabric.complete, "they are all back"
    site.until(lambda: site.holds(site.old.identity))


def returned(site, ends):
    """Have these switches connect again."""
    site.ends = ends
    for number in ends:
        site.fabric.connected(number, number)


def test_a_return_whose_switches_leave_before_its_rounds_waits_for_them(site):
    """The outage began less than 8 s before the end of the trial, so that none had left yet."""
    on_trial(site)
    site.step()
    site.now += WITHIN
    site.until(lambda: site.mover.busy)
    ends, site.ends = site.ends, {}
    for number in ends:
        site.fabric.closed(number)
    for seconds in (ROLLOUT_PATIENCE + 1, FALL_BACK_RETRY + 1, ROLLOUT_PATIENCE + 1):
        site.now += seconds
        for _ in range(100):
            site.step()
    assert site.fabric.identity == site.new.identity
    assert site.mover.trial
    returned(site, ends)
    site.until(lambda: site.mover.busy)
    assert len(site.fabric.present) == len(ends)
    site.until(lambda: site.holds(site.old.identity))


def test_a_restart_in_a_trial_does_not_wait_for_a_switch_that_is_away(site):
    on_trial(site)
    del site.ends[3]
    site.start()
    began = site.now
    site.until(lambda: len(site.fabric.in_sync) == len(site.ends))
    assert site.now - began < 1.0
    assert site.mover.trial


def test_a_build_on_trial_that_the_disk_keeps_halfway_goes_as_well(site, hung):
    """It waited for the disk with half of each build, however long ago the trial was over."""
    hung.set()
    site.start()
    site.move(within=2 * LONGEST_WRITE)
    site.until(lambda: site.mover.rollout.round == 1)
    hung.clear()
    site.walking = True
    ends = site.mover.trial.ends
    site.until(lambda: site.mover.waits_for)
    assert site.now < ends
    site.until(lambda: site.holds(site.old.identity))
    assert site.now > ends
    assert site.told("unconfirmed") == [site.old.identity]
    hung.set()
    site.mover.finish(60.0)
    assert (site.mover.trial, site.journal.exists()) == (None, False)


def test_a_trial_whose_controller_was_away_is_taken_back_in_rounds(site):
    """The time without a controller does not count, as no clock says how long it was."""
    on_trial(site)
    site.now += WITHIN - 1
    site.step()
    site.now += 7200
    site.walking = True
    site.start()
    site.now += LEFT_STEP
    site.step(only=[3])
    assert site.fabric.identity == site.new.identity, "others are not back yet"
    site.start()
    site.now += LEFT_STEP
    site.until(lambda: site.holds(site.old.identity))
    assert site.mover.rollout.state == "done"


def test_a_fall_back_does_not_wait_for_ever_for_switches(site):
    """A build that keeps a switch away is what trials are for."""
    on_trial(site)
    site.now += WITHIN
    site.fabric.closed(site.ends.popitem()[0])
    site.step()
    assert site.fabric.identity == site.new.identity
    site.now += RETURN_PATIENCE
    site.until(lambda: site.fabric.identity == site.old.identity)


def test_a_trial_lasts_as_long_whatever_the_time_of_day_is_for_the_next_process(site):
    """Two hours ahead ended it at once."""
    on_trial(site)
    site.ahead = 7200.0
    site.now += WITHIN / 2
    site.step()
    assert site.mover.trial
    shown = site.mover.status()["until"] - site.now - site.ahead
    assert 0 < shown < WITHIN
    site.start()
    site.until(lambda: site.fabric.complete)
    assert site.fabric.identity == site.new.identity
    site.now += WITHIN
    site.until(lambda: site.holds(site.old.identity))


def test_a_controller_that_ends_again_and_again_prolongs_no_trial(site):
    """Each one began with what its predecessor had, as none lasted until the next record."""
    site.move(within=4 * LEFT_STEP)
    site.until(lambda: site.holds(site.new.identity))
    ends = site.mover.trial.ends
    while site.mover.trial and site.now < ends:
        site.now += LEFT_STEP - 1
        site.step()
        site.start()
    site.until(lambda: site.holds(site.old.identity), steps=100)


def test_a_trial_of_an_earlier_version_ends_by_the_time_of_day(site):
    """Its record has no `left`; a clock that is behind does not leave it open."""
    on_trial(site)
    record = json.loads(site.journal.read_text())
    del record["left"], record["digest"]
    site.journal.write_text(json.dumps(record))
    site.ahead = -1e6
    site.start()
    site.until(lambda: site.fabric.complete)
    site.now += MOST_LEFT
    site.until(lambda: site.holds(site.old.identity))


def test_the_next_process_tries_to_write_the_folder_again(site, monkeypatch):
    """It knew what the folder lacked, and did not try until the next move."""
    on_trial(site)
    full = InputError.of("room", "none")
    with monkeypatch.context() as patch:
        for name in ("record_held", "keep", "install", "require_room"):
            patch.setattr(BuildHistory, name, Mock(side_effect=full))
        site.mover.roll_back(by="alice")
        site.until(lambda: site.holds(site.old.identity) and not site.mover.busy)
        site.step()
    assert load(site.folder).identity == site.new.identity, "it could not be replaced"
    site.start()
    site.until(lambda: site.holds(site.old.identity))
    site.now += FOLDER_RETRY
    site.until(lambda: load(site.folder).identity == site.old.identity)
    site.step()
    assert not site.journal.exists()


def test_the_folder_follows_the_next_move_after_a_return_on_a_full_disk(site, monkeypatch):
    """The journal went, and the folder kept the build that nobody had confirmed."""
    on_trial(site)
    full = InputError.of("room", "none")
    with monkeypatch.context() as patch:
        for name in ("record_held", "keep", "install", "require_room"):
            patch.setattr(BuildHistory, name, Mock(side_effect=full))
        site.mover.roll_back(by="alice")
        site.until(lambda: site.holds(site.old.identity))
        site.step()
    assert load(site.folder).identity == site.new.identity, "it could not be replaced"
    third = save(build(SMALL, ("minimal", "link")), site.folder.parent / "third")
    site.mover.move(read_build(site.folder.parent / "third", unverified=True), True)
    site.until(lambda: site.fabric.identity == third.identity and not site.mover.busy)
    site.step()
    assert load(site.folder).identity == third.identity


def test_a_move_that_a_full_disk_leaves_without_a_journal_has_switches_asked(site, monkeypatch):
    """The next process took the folder's build for theirs, and loaded it on all at once."""
    monkeypatch.setattr(move_journal, "replace_file", Mock(side_effect=OSError(28, "full")))
    site.move()
    site.until(lambda: site.mover.rollout.round == site.update.last_round)
    site.step()
    site.start()
    assert site.fabric.survey == {}
    monkeypatch.undo()
    site.until(lambda: site.holds(site.new.identity))


def test_a_journal_that_is_a_named_pipe_does_not_hang_the_start(site):
    os.mkfifo(site.journal)
    with pytest.raises(InputError, match="a journal that can be read, given a named pipe"):
        site.start()


def test_a_journal_of_brackets_is_damaged_like_any_other(site):
    """The start ended with a bug."""
    site.journal.write_text("[" * 200_000)
    site.start()
    assert site.fabric.survey == {}
    site.until(lambda: site.fabric.complete)
    assert not site.journal.exists()


def test_a_journal_that_names_a_build_no_longer_kept_has_switches_asked(site):
    """The folder's build was loaded on all at once, whatever they held."""
    site.move()
    site.until(lambda: site.holds(site.new.identity))
    site.mover.roll_back()
    site.until(lambda: site.holds(site.old.identity))
    record = {"version": 1, "build": "2" * 16, "to": site.new.identity, "round": 1}
    site.journal.write_text(json.dumps(record))
    shutil.rmtree(site.folder)
    save(build(SMALL, POLICY), site.folder)
    site.start()
    assert "cannot be continued" in site.told("kept")[0]
    assert site.fabric.survey == {}
    site.until(lambda: site.holds(site.old.identity))


def test_a_second_controller_of_a_folder_is_refused(tmp_path):
    (folder := tmp_path / "build").mkdir()
    told, word = [], "from pathlib import Path; from controller.rollout.folder_lock import *; "
    first = FolderLock(folder, told.append, at_once)
    with pytest.raises(InputError, match=f"one that process {os.getpid()} uses"):
        FolderLock(folder, told.append)
    first.file.unlink()
    words = f"{word}lock = FolderLock(Path({str(folder)!r}), print); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", words], check=False)
    last = FolderLock(folder, told.append, at_once)
    assert not told, "the lock of a killed process is gone"
    assert last.file.read_text() == f"{os.getpid()}\n"
    (tmp_path / "file").touch()
    FolderLock(tmp_path / "file" / "build", told.append)
    assert [event.kind for event in told] == ["status"]


def test_a_folder_is_locked_while_its_disk_hangs(tmp_path, disk):
    """A controller did not start until it answered: the lock file was emptied before all else."""
    (folder := tmp_path / "build").mkdir()
    told = []
    folder.with_name(".build.lock").touch()
    disk.clear()
    lock = FolderLock(folder, told.append)
    assert (told, lock.file.read_text()) == ([], "")
    disk.set()
    until(lock.file.read_text, "the number of the process")
    with pytest.raises(InputError, match=f"one that process {os.getpid()} uses"):
        FolderLock(folder, told.append)


def test_a_folder_whose_lock_cannot_be_made_in_time_has_none(tmp_path, monkeypatch):
    """The disk hangs since before the first start."""
    (folder := tmp_path / "build").mkdir()
    told = []
    monkeypatch.setattr("controller.rollout.folder_lock.OPEN_PATIENCE", 0.01)
    FolderLock(folder, told.append, lambda _: Future())
    assert [event.text for event in told] == ["the disk does not answer"]


def test_a_damaged_journal_goes_aside_while_the_disk_hangs(site, disk):
    """It was renamed in the loop."""
    site.until(lambda: site.fabric.complete)
    site.mover.finish(60.0)
    site.journal.write_text("{")
    site.start_write, site.files = in_thread, InOrder(0, "files of the test").add
    site.start()
    disk.clear()
    site.until(lambda: site.fabric.complete)
    for _ in range(3):
        site.step()
    assert site.journal.read_text() == "{"
    disk.set()
    site.mover.finish(60.0)
    assert site.journal.with_name(".build.journal.damaged").read_text() == "{"
    assert not site.journal.exists()


def test_a_link_to_a_folder_is_refused(tmp_path, monkeypatch):
    """After it was pointed elsewhere, builds went into the old folder; drains were forgotten."""
    (folder := tmp_path / "release" / "build").mkdir(parents=True)
    (tmp_path / "current").symlink_to("release")
    (tmp_path / "link").symlink_to(folder)
    for place in ("current/build", "link", "current/../release/build"):
        with pytest.raises(InputError, match=f"name {folder} itself"):
            FolderLock(tmp_path / place, print)
    assert list(folder.parent.iterdir()) == [folder]
    monkeypatch.chdir(tmp_path / "current")
    FolderLock(Path("../release/build/"), print)


def test_a_journal_with_one_wrong_bit_says_the_same_or_is_damaged():
    """A quarter of all bits gave another valid record: a trial, or the drains, were forgotten."""
    known = {"drained": [["n1"]], "links": [["n2", 1]]}
    record = Record("89" * 8, "12" * 8, 2, "forth", "89" * 8, 1.9e9, 45.0, True, link_state=known)
    text = record_to_json(record)
    assert record_from_json(text) == record
    for bit in range(8 * len(text)):
        turned = bytearray(text)
        turned[bit // 8] ^= 1 << bit % 8
        try:
            read = record_from_json(bytes(turned))
        except (ValueError, TypeError):
            continue
        assert read == record, bytes(turned)


def test_a_journal_that_differs_from_its_digest_is_damaged(site):
    on_trial(site)
    text = site.journal.read_text()
    site.journal.write_text(text.replace('"before"', '"cefore"'))
    site.start()
    assert "differs from its digest" in site.told("journal-damaged")[0]
    site.until(lambda: site.holds(site.new.identity))


@pytest.mark.parametrize(
    "members",
    [
        '"left": NaN, "before": "0123456789abcdef"',
        '"until": 1e999, "before": "0123456789abcdef"',
        f'"known": {{"links": [["0", 1, 1{"0" * 400}]]}}',
        '"known": {"switches": [["0", Infinity]]}',
        '"round": -9, "to": "0123456789abcdef"',
        '"direction": "up"',
        '"to": "\\u0000"',
        '"before": "\\ud800", "left": 5.0',
        f'"folder": "{"x" * 5000}"',
    ],
)
def test_a_journal_with_numbers_and_builds_that_cannot_be_is_damaged(site, members):
    """Some ended each start with a bug; a round of -9 took the rows out of all switches."""
    site.journal.write_text(f'{{"version": 1, "build": "{site.old.identity}", {members}}}')
    site.start()
    assert len(site.told("journal-damaged")) == 1
    site.until(lambda: site.fabric.complete)


def test_a_journal_that_names_ports_by_truth_values_says_nothing(site):
    known = {"down": [[site.fabric.names[0], True]], "asked": [["x" * 1_000_000]] * 3}
    site.journal.write_text(json.dumps({"build": site.old.identity, "known": known}))
    assert not site.start(watched=True).dead.any()
    assert site.told("journal-damaged") == []


@pytest.mark.parametrize("drains", [False, True])
def test_a_build_compiled_before_a_restart_comes_in_rounds(site, drains):
    """It was loaded on all switches at once: 2 to 31 packets lost in each of four restarts, none by
    SIGHUP. With something drained, the folder got the old build back.
    """
    keeper = site.start(watched=True)
    site.until(site.mover.history.kept_builds)
    if drains:
        keeper.drain(site.fabric.names[3])
        site.until(site.journal.exists)
    save(build(SMALL, POLICY), site.folder)
    keeper = site.start(watched=True)
    site.mover.history.unverified = True
    before = [dict(end.rows) for end in site.ends.values()]
    site.until(lambda: site.mover.busy)
    assert site.fabric.differences["added"] == 0
    assert [dict(end.rows) for end in site.ends.values()] == before
    assert site.mover.status()["from"] == site.old.identity
    site.until(lambda: site.holds(site.new.identity))
    assert load(site.folder).identity == site.new.identity
    assert np.flatnonzero(keeper.drained).tolist() == ([3] if drains else [])


def compiled_and_restarted(site):
    """A build is compiled into the folder, and the controller started again; no switch is there
    yet. Returns all switches.
    """
    site.until(site.mover.history.kept_builds)
    save(build(SMALL, POLICY), site.folder)
    ends, site.ends = site.ends, {}
    site.start(watched=True)
    site.mover.history.unverified = True
    return ends


@pytest.mark.parametrize("late", [0.0, 3 * SURVEY_PATIENCE])
def test_it_comes_so_too_without_a_switch_and_long_after_the_restart(site, late, monkeypatch):
    """The move was refused while the others were asked, or begun before any had come back; then
    the old build was put into the folder again.
    """
    monkeypatch.setattr(Keeper, "is_cabled", lambda *_: False)  # the switch has no power
    ends = compiled_and_restarted(site)
    site.now += late
    site.step()
    site.ends = {number: end for number, end in ends.items() if number != 3}
    before = [dict(end.rows) for end in site.ends.values()]
    for number in site.ends:
        site.fabric.connected(number, number)
    site.until(lambda: site.mover.fabric.in_sync, steps=1000)
    assert [dict(end.rows) for end in site.ends.values()] == before
    assert site.fabric.identity == site.old.identity
    site.until(lambda: site.fabric.identity == site.new.identity, steps=4000)
    assert site.mover.rollout.state == "done"
    told = site.fabric.take_events()
    assert [event for event in told if event.kind == "kept"] == []
    log = ActionLog(site.folder, lambda _: None)
    for event in told:
        log.happened(event)
    log.finish(60.0)
    (line,) = map(json.loads, log.file.read_text().splitlines())
    assert (line["who"], line["action"], line["what"]) == (
        "controller",
        "reload",
        site.new.identity,
    )
    assert load(site.folder).identity == site.new.identity


def test_it_does_not_come_while_switches_may_hold_rows_of_several_tables(site, monkeypatch):
    """It came 30 s after the first switch was read, whatever was going on (live 325 packets)."""
    site.until(site.mover.history.kept_builds)
    save(build(SMALL, POLICY), site.folder)
    monkeypatch.setattr(Keeper, "holds_mixture", True)
    site.start(watched=True)
    site.mover.history.unverified = True
    for _ in range(1000):
        site.step()
        assert not site.mover.busy
    monkeypatch.setattr(Keeper, "holds_mixture", False)
    site.until(lambda: site.holds(site.new.identity))


def test_it_does_not_come_while_a_switch_is_missing_that_forwards(site):
    """This switch cannot be changed, and traffic cannot be led around it."""
    ends = compiled_and_restarted(site)
    site.ends = {number: end for number, end in ends.items() if number != 3}
    for number in site.ends:
        site.fabric.connected(number, number)
    site.until(lambda: site.mover.rollout and site.mover.rollout.over, steps=4000)
    assert site.mover.rollout.state == "failed"
    assert "switches that forward and cannot be changed" in site.mover.rollout.reason
    assert site.fabric.identity == site.old.identity
    assert load(site.folder).identity == site.new.identity, "it comes at the next start"


def test_a_move_asked_for_meanwhile_is_not_followed_by_one_to_the_folder(site):
    """A return that was asked for while a switch was missing was undone at once."""
    site.until(site.mover.history.kept_builds)
    save(build(SMALL, POLICY), site.folder)
    third = save(build(SMALL, ("minimal", "link")), site.folder.parent / "third")
    ends, site.ends = site.ends, dict([*site.ends.items()][:2])
    site.start(watched=True)
    site.mover.history.unverified = True
    site.until(lambda: site.fabric.in_sync, steps=1000)
    site.mover.move(
        read_build(site.folder.parent / "third", unverified=True), True, all_or_none=False
    )
    site.ends = ends
    for number in [*ends][2:]:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(third.identity))
    for _ in range(20):
        site.step()
    assert site.holds(third.identity)


def test_a_move_that_is_refused_does_not_take_the_place_of_the_one_to_the_folder(site):
    """Without the others the fabric stayed at the old build, and nothing said so."""
    site.until(site.mover.history.kept_builds)
    save(build(SMALL, POLICY), site.folder)
    save(build(SMALL, ("minimal", "link")), site.folder.parent / "third")
    ends, site.ends = site.ends, dict([*site.ends.items()][:2])
    site.start(watched=True)
    history = site.mover.history
    history.unverified = True
    site.until(lambda: site.fabric.in_sync, steps=1000)
    refused = InputError.of("room", "none")
    history.require_room = Mock(side_effect=refused)
    with pytest.raises(InputError, match="required room"):
        site.mover.move(read_build(site.folder.parent / "third", unverified=True), True)
    del history.require_room
    site.ends = ends
    for number in [*ends][2:]:
        site.fabric.connected(number, number)
    site.until(lambda: site.holds(site.new.identity))


def test_a_build_compiled_after_the_folder_could_not_be_written_stays_there(site):
    """It was replaced by the fabric's."""
    site.until(site.mover.history.kept_builds)
    folder = save(build(SMALL, ("minimal", "link")), site.folder.parent / "third").identity
    site.journal.write_text(json.dumps({"build": site.old.identity, "folder": folder}))
    save(build(SMALL, POLICY), site.folder)
    site.start()
    site.mover.history.unverified = True
    site.until(lambda: site.holds(site.new.identity))
    assert load(site.folder).identity == site.new.identity


def test_switches_are_not_asked_for_a_build_that_is_no_longer_kept(site):
    """A restart waited 30 s for one that was away, and could do nothing else after that."""
    site.until(site.mover.history.kept_builds)
    shutil.rmtree(site.mover.history.place / site.old.identity)
    save(build(SMALL, POLICY), site.folder)
    site.start()
    assert site.fabric.survey is None
    site.until(lambda: site.holds(site.new.identity))


def test_switches_that_hold_nothing_get_the_folders_build_whatever_was_held_before(site):
    """Another lab in the same folder."""
    site.until(site.mover.history.kept_builds)
    save(build(SMALL, POLICY), site.folder)
    site.ends = strict(site.update.nodes.datapath_id)
    site.start()
    site.until(lambda: site.holds(site.new.identity))
    assert site.mover.rollout is None
