"""Controllers that die in the middle of a move, and their successors; switches of our own.

The store and the switches are fakes: an election as in `test_leading`, values in a dictionary, and
switches that know roles. What real ones do is in `test_several_live`.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import cached_property
from random import Random
from types import SimpleNamespace

import pytest

from compilers.tables.folders.build_folder import save
from compilers.tables.folders.verified_mark import mark_verified
from compilers.targets.openflow import protocol as of
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING, messages
from controller.cluster.build_copies import COPY_PERIOD, COPY_RETRY, BuildCopies
from controller.cluster.cluster_member import ClusterMember
from controller.cluster.election import LEADER_PERIOD, Election
from controller.cluster.shared_record import (
    RECORD_CHUNK_BYTES,
    SharedRecord,
    fetch_archive,
    read_record,
    write_record,
)
from controller.cluster.store import Unavailable
from controller.openflow import messages as wire
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record, record_to_json
from controller.rollout.mover import Mover
from controller.rollout.rollout import SETTLE
from controller.rollout.trial import LEFT_STEP
from controller.settings import StoreGroup
from controller.switches.current import read_build
from controller.switches.session import LiveFabric
from controller.upkeep.background import at_once
from inventory.problems import InputError
from tests.compilers.update.updates import Moving, build, grown
from tests.controller.cluster.test_leading import Etcd, Wire
from tests.controller.makers import Unwatched, read_once
from tests.controller.message_lists import listed
from tests.controller.rollout.makers import sent, wrong_route
from tests.controller.switches.conforming_fabric import numbers, strict
from tests.waiting import until

SMALL, POLICY = "{family: polarfly, q: 2}", ("compact-valiant", "link")
RING = "{family: hyperx, sides: 2x2}"
PAIRS = {
    "policy": lambda: (build(RING), build(RING, POLICY)),
    "expanded": lambda: (build(SMALL, POLICY), grown(build(SMALL, POLICY), "fan", 1)),
    "in place": lambda: (build(SMALL, ("compact-valiant", "none")), build(SMALL, POLICY)),
}

PLACES = 0, "middle", "last"
QUICK = [("policy", 0.5, 0), ("policy", 0.5, "last"), ("expanded", 0.5, "middle")]
PARTS = {"expanded": (0.0, 0.5, 1.0), "policy": (0.0,), "in place": (0.0, 0.5)}
REST = [(case, part, place) for case in PARTS for part in PARTS[case] for place in PLACES]


class Store:
    """Values, put by the leader of a term only."""

    def __init__(self, etcd):
        self.etcd, self.values = etcd, {}

    def get(self, key):
        return self.values.get(key)

    def put(self, key, value, term):
        good = bool(self.etcd.key) and self.etcd.key[2] == term
        if good:
            self.values[key] = value
        return good

    def delete(self, key, term):
        del term
        self.values = {k: v for k, v in self.values.items() if not k.startswith(key)}
        return True

    def keys(self, start):
        return [key for key in self.values if key.startswith(start)]


class Later:
    """The future of a job that is done when its answer is asked for."""

    def __init__(self, job):
        self.result = job

    def done(self):
        return True


class Instance:
    """ahead: seconds that its time of day is ahead of the others'."""

    def __init__(self, site, name, folder, ahead=0.0):
        self.site, self.name = site, name
        current = read_once(folder)
        self.fabric = LiveFabric(current, numbers, clock=lambda: site.time)
        self.election = Election(Wire(site.etcd), name, lambda: site.time)
        history = BuildHistory(folder)
        record = SharedRecord(site.store, history, Later)
        wall = lambda: site.time + ahead  # noqa: E731
        mover = Mover(self.fabric, Unwatched(), history, record, wall)
        copies = BuildCopies(self.fabric, site.store, history, at_once, at_once)
        self.several = ClusterMember(mover, record, self.election, copies)
        for number in site.ends:
            self.several.roles.connected(number, number)

    @property
    def rollout(self):
        return self.several.mover.rollout

    def step(self, only=None):
        """Go on for a moment; only: the switches that hear what it says."""
        self.election.step()
        for one in (self.fabric, self.several.mover, self.several):
            one.tick()
        while not self.several.lapsed:
            out = self.fabric.send.take()
            if not out:
                return
            for key, data in ((one.key, one.data) for one in out):
                if data is None or (only is not None and key not in only):
                    continue
                for answer in self.site.hear(self.name, key, data):
                    self.several.roles.received(key, answer)


class Site:
    """Switches, a store, and controllers that come and go."""

    def __init__(self, folder, old, new):
        self.etcd, self.time, self.instances, self.folder = Etcd(), 0.0, {}, folder
        self.store = Store(self.etcd)
        self.old, self.new = save(old, folder / "old"), save(new, folder / "new")
        self.update = plan(self.old, self.new)
        self.ends = strict(self.update.nodes.datapath_id)
        self.walking = False
        self.start("a", "old")

    @cached_property
    def moving(self):
        """The programs of all rounds, and how packets go."""
        return Moving(self.update)

    def start(self, name, which, ahead=0.0):
        (self.folder / name).mkdir()
        folder = self.folder / name / "build"
        save(getattr(self, which), folder)
        self.instances[name] = Instance(self, name, folder, ahead)
        return self.instances[name]

    def kill(self, name):
        del self.instances[name]

    def step(self, only=None, seconds=SETTLE):
        self.time += seconds
        self.etcd.pass_time(seconds)
        for instance in list(self.instances.values()):
            instance.step(only)
        leaders = [one for one in self.instances.values() if one.several.state == "leader"]
        assert len([one for one in leaders if not one.several.lapsed]) < 2

    def hear(self, who, key, data):
        """A switch hears something; where it has changed, packets are walked."""
        end = self.ends[key]
        before, answers = end.changes, end.take(data, who)
        if self.walking and end.changes != before:
            self.walk()
        return [answer for _, answer in listed(answers, of.HEADER)]

    def walk(self):
        self.moving.switches = [
            self.ends[number].walked for number in self.update.nodes.datapath_id.tolist()
        ]
        assert not self.moving.worst()[1], "packets are lost or loop"

    def until(self, true, seconds=SETTLE, steps=300):
        for _ in range(steps):
            self.step(seconds=seconds)
            if true():
                return
        pytest.fail(str([(n, i.several.status()) for n, i in self.instances.items()]))

    def holds(self, programs):
        ids = self.update.nodes.datapath_id.tolist()
        return all(self.ends[i].walked == s for i, s in zip(ids, programs, strict=True))


def moving(tmp_path, case):
    """A fabric that holds its old build, and whose leader is about to move it."""
    site = Site(tmp_path, *PAIRS[case]())
    a = site.instances["a"]
    site.until(lambda: a.fabric.complete)
    site.walking = True
    a.several.mover.move(read_build(site.folder / "new", unverified=True), accept_loss=True)
    return site, a


@pytest.mark.parametrize(
    ("case", "part", "place"),
    [*QUICK, *(pytest.param(*one, marks=pytest.mark.long) for one in REST if one not in QUICK)],
)
def test_a_successor_goes_on_with_a_move(tmp_path, case, part, place):
    """Part: of the switches have heard the leader's last words."""
    site, a = moving(tmp_path, case)
    last = site.update.last_round
    round = {"middle": last // 2, "last": last}.get(place, place)
    site.start("b", "old")
    site.until(lambda: a.rollout.round == round - 1)
    while a.rollout.round < round:
        chosen = Random(round).sample(sorted(site.ends), int(part * len(site.ends)))  # noqa: S311
        site.step(only=chosen if a.rollout.round == round - 1 else None)
        site.walk()
    site.kill("a")
    b = site.instances["b"]
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.until(lambda: b.fabric.identity == site.new.identity and b.fabric.complete)
    site.until(lambda: read_record(site.store) == Record(site.new.identity))
    # Each switch in the numbers that it happens to have: both are right.
    both = zip(site.moving.new, Moving(site.update, generation=1).new, strict=True)
    ends = [site.ends[number].walked for number in site.update.nodes.datapath_id.tolist()]
    assert all(end in pair for end, pair in zip(ends, both, strict=True))
    names = {key.split("/")[1] for key in site.store.keys("builds/")}
    assert names == {site.old.identity, site.new.identity}, "people may return to the old one"


def test_a_move_waits_for_the_roles_of_switches_that_it_adds(tmp_path, monkeypatch):
    """It left them out if they confirmed our role after the others were read."""
    site = Site(tmp_path, *PAIRS["expanded"]())
    a, hear, held = site.instances["a"], site.hear, []
    site.until(lambda: a.fabric.complete)
    added = {*site.new.wiring.datapath_id.tolist()} - {*site.old.wiring.datapath_id.tolist()}

    def hear_late(who, key, data):
        answers = hear(who, key, data)
        is_role = [of.header(each)[0] == of.MessageType.ROLE_REPLY for each in answers]
        if key not in added or not any(is_role):
            return answers
        held.append((key, answers))
        return []

    monkeypatch.setattr(site, "hear", hear_late)
    site.walking = True
    new = read_build(site.folder / "new", unverified=True)
    a.several.mover.move(new, accept_loss=True, all_or_none=False)
    for _ in range(8):
        site.step()
    assert {key for key, _ in held} == added
    assert a.rollout.state == "reading"
    monkeypatch.setattr(site, "hear", hear)
    for key, answers in held:
        for answer in answers:
            a.several.roles.received(key, answer)
    site.until(lambda: a.rollout.over and a.fabric.complete)
    assert a.rollout.state == "done"
    assert site.holds(site.moving.new)


def test_a_successor_whose_clock_is_ahead_ends_no_trial_early(tmp_path):
    """Two hours ahead, it fell back as soon as it led."""
    site = Site(tmp_path, *PAIRS["policy"]())
    a, b = site.instances["a"], site.start("b", "old", ahead=7200.0)
    site.until(lambda: a.fabric.complete)
    a.several.mover.move(read_build(site.folder / "new", unverified=True), True, within=120.0)
    site.until(lambda: a.rollout.over and read_record(site.store).target == "")
    site.kill("a")
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.until(lambda: b.fabric.complete)
    for _ in range(20):
        site.step(seconds=LEADER_PERIOD)
    assert (b.fabric.identity, b.several.mover.busy) == (site.new.identity, False)
    left = b.several.mover.trial.ends - site.time
    assert 80 < left < 120
    site.until(lambda: b.fabric.identity == site.old.identity, seconds=LEADER_PERIOD, steps=600)
    assert site.time > 120 - LEFT_STEP


def on_trial_without_management(tmp_path, held):
    """A successor that no switch reaches, and the switches that are away.

    held: whether its predecessor has read that most switches hold the build on trial.
    """
    site = Site(tmp_path, *PAIRS["policy"]())
    a, b = site.instances["a"], site.start("b", "old")
    site.until(lambda: a.fabric.complete)
    site.walking = True
    a.several.mover.move(read_build(site.folder / "new", unverified=True), True, within=120.0)
    site.until(lambda: a.rollout.over and read_record(site.store).target == "")
    site.until(lambda: read_record(site.store).trial_held)
    if not held:
        record = replace(read_record(site.store), trial_held=False)
        site.store.put("record", record_to_json(record), a.several.term)
    ends, site.ends = site.ends, {}
    for number in ends:
        b.several.roles.closed(number)
    site.kill("a")
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    return site, b, ends


def test_a_leader_elected_while_management_is_away_ends_a_trial_with_the_switches(tmp_path):
    """It was "done" with none connected; each got the build when it returned, not in rounds."""
    site, b, ends = on_trial_without_management(tmp_path, held=True)
    for _ in range(1000):
        site.step(seconds=LEADER_PERIOD)
    assert (b.fabric.identity, b.several.mover.busy) == (site.new.identity, False)
    site.ends = ends
    for number in ends:
        b.several.roles.connected(number, number)
    site.until(lambda: b.rollout and b.rollout.over)
    assert site.holds(site.moving.old)


def test_a_leader_does_not_wait_for_switches_that_never_held_the_build_on_trial(tmp_path):
    """The build itself may keep them away."""
    site, b, _ = on_trial_without_management(tmp_path, held=False)
    site.until(lambda: b.fabric.identity == site.old.identity, seconds=LEADER_PERIOD)


def test_a_successor_goes_on_taking_back(tmp_path):
    site, a = moving(tmp_path, "policy")
    site.start("b", "old")
    site.until(lambda: a.rollout.round == 2)
    site.until(lambda: not a.rollout.status()["waiting"])
    a.rollout.reason = "for this test"
    site.until(lambda: a.rollout.state == "back" and a.rollout.round == 1)
    site.step(only=sorted(site.ends)[: len(site.ends) // 2])
    site.kill("a")
    assert read_record(site.store).direction == "back"
    b = site.instances["b"]
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.until(lambda: b.fabric.complete and not b.several.mover.busy)
    assert b.fabric.identity == site.old.identity
    assert site.holds(site.moving.old)
    site.until(lambda: read_record(site.store) == Record(site.old.identity))


def test_a_successor_that_misses_a_switch_takes_back_what_was_done(tmp_path):
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.round == 2)
    site.kill("a")
    gone = site.ends.pop(3)
    b.several.roles.closed(3)
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.walking = False  # what is gone cannot be walked
    site.until(lambda: b.rollout.over, seconds=LEADER_PERIOD)
    assert b.rollout.state == "failed"
    assert b.rollout.reason == f"not in sync: {b.fabric.names[2]}"
    assert b.fabric.differences["changed"] + b.fabric.differences["added"] == 0, "round by round"
    site.ends[3] = gone
    b.several.roles.connected(3, 3)
    site.until(lambda: b.fabric.complete)
    assert site.holds(site.moving.old)


def test_a_late_comer_takes_the_build_that_the_fabric_holds(tmp_path):
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    b = site.start("b", "old")
    site.kill("a")
    site.until(lambda: b.fabric.complete, seconds=LEADER_PERIOD)
    assert b.fabric.identity == site.new.identity
    assert b.fabric.differences["none"] == len(site.ends), "nothing was to be changed"
    told = [(e.node, e.text) for e in b.fabric.take_events() if e.kind == "inherited"]
    assert told == [(site.new.identity, site.old.identity)]


def test_a_paused_leader_says_nothing_when_it_wakes(tmp_path):
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.round == 1)
    b = site.start("b", "old")
    paused = site.instances.pop("a")
    site.until(lambda: b.fabric.complete and b.rollout.over, seconds=LEADER_PERIOD)
    before = [end.walked for end in site.ends.values()]
    paused.step()
    assert paused.several.lapsed, "its process starts anew"
    assert paused.several.status()["role"] == "follower"
    assert [end.walked for end in site.ends.values()] == before
    paused.election.step()
    assert (paused.election.term, paused.election.view.leader) == (0, "b")


def test_what_a_deposed_leader_sent_is_refused(tmp_path):
    """Even if it went on: the switches have another master."""
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.round == 1)
    blocks = messages(SwitchPrograms(site.update).slots(0), 1)
    sent_by_a = b"".join(block.tobytes() for block in blocks)
    b = site.start("b", "old")
    site.kill("a")
    site.until(lambda: b.fabric.complete and b.rollout.over, seconds=LEADER_PERIOD)
    before = site.ends[1].walked
    answers = listed(site.ends[1].take(sent_by_a, "a"), of.HEADER)
    assert {wire.Error.read(answer).code for _, answer in answers} == {of.BadRequest.IS_SLAVE}
    assert site.ends[1].walked == before


def test_a_leader_without_the_build_waits_for_it(tmp_path):
    site = Site(tmp_path, *PAIRS["policy"]())
    site.store.values["record"] = b'{"build": "0000000000000000"}'
    a = site.instances["a"]
    for _ in range(20):
        site.step(seconds=LEADER_PERIOD)
    assert (a.several.state, a.fabric.present) == ("preparing", {})
    (text,) = [event.text for event in a.fabric.take_events() if event.kind == "not-ready"]
    assert "build 0000000000000000 is neither on this machine nor in the store" in text
    del site.store.values["record"]
    site.until(lambda: a.fabric.complete, seconds=LEADER_PERIOD)


@pytest.mark.parametrize("other", [False, True])
def test_a_leader_does_not_take_a_build_that_loses_packets_from_the_store(tmp_path, other):
    """Nor another build than the record names; it waits, and no switch gets a row of it."""
    site = Site(tmp_path, build(SMALL), build(SMALL, POLICY))
    made, packed = sent(tmp_path / "bad", wrong_route(build(SMALL)))
    name = "0" * 16 if other else made.identity
    site.store.values["record"] = f'{{"build": "{name}"}}'.encode()
    site.store.values |= {
        f"builds/{name}/parts": b"1",
        f"builds/{name}/000000": zlib.compress(packed),
    }
    a = site.instances["a"]
    for _ in range(20):
        site.step(seconds=LEADER_PERIOD)
    assert (a.several.state, a.fabric.present) == ("preparing", {})
    texts = [event.text for event in a.fabric.take_events() if event.kind == "not-ready"]
    assert (f"required build {name}" if other else "3 of 42 pairs fail") in texts[0]


def test_a_leader_takes_a_build_over_that_its_predecessor_was_told_to_take_unverified(tmp_path):
    """It waited for ever, so that nobody repaired the fabric."""
    site = Site(tmp_path, build(SMALL), build(SMALL, POLICY))
    made, packed = sent(tmp_path / "bad", wrong_route(build(SMALL)))
    free, site.etcd.key = site.etcd.key, (1, "z", 1)
    archive = {made.identity: packed}.get
    assert write_record(site.store, 1, Record(made.identity), archive, is_verified=lambda _: False)
    site.etcd.key = free
    a = site.instances["a"]
    site.until(lambda: a.fabric.complete and a.fabric.identity == made.identity, LEADER_PERIOD)


def test_nothing_goes_on_without_the_store(tmp_path):
    """No round begins that is not written down."""
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.round == 1)
    site.store.put = lambda *_: False
    for _ in range(50):
        site.step()
    assert a.rollout.round == 1
    assert read_record(site.store).round == 1


def test_a_move_that_has_not_begun_is_stopped_by_a_switch_that_leaves(tmp_path):
    site, a = moving(tmp_path, "policy")
    site.store.put = lambda *_: False
    for _ in range(10):
        site.step()
    assert (a.rollout.state, a.rollout.round) == ("forth", BEGINNING)
    a.several.roles.closed(3)
    site.step()
    assert a.rollout.state == "failed"
    assert a.fabric.identity == site.old.identity


def test_a_record_whose_answer_was_lost_may_be_in_the_store():
    """What is known went back to what it was: the store kept what it had got meanwhile."""
    etcd = Etcd()
    etcd.key = (1, "a", 7)
    store, calm, drained = Store(etcd), Record("a"), Record("a", link_state={"asked": [["3"]]})
    record = SharedRecord(
        store, SimpleNamespace(packed=lambda _: None, is_verified=lambda _: True), Later
    )
    record.lead(7, None)

    def agreed(one):
        record.ensure_stored(one)
        record.poll()
        return record.ensure_stored(one)

    def lost(key, value, term):
        Store.put(store, key, value, term)
        raise Unavailable("no answer in time")

    assert agreed(calm)
    store.put = lost
    assert not agreed(drained)
    record.poll()
    del store.put
    assert record.trouble == "no answer in time"
    assert read_record(store) == drained
    assert agreed(calm)
    assert record.trouble == ""
    assert read_record(store) == calm


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"{", "JSONDecodeError"),
        (record_to_json(Record("12" * 8)).replace(b"to", b"tn"), "differs from its digest"),
    ],
    ids=["no JSON", "one bit is wrong"],
)
def test_a_record_that_is_none_is_said_to_who_would_inherit_it(stored, said):
    store, answers = Store(Etcd()), []
    store.values["record"] = stored
    record = SharedRecord(
        store, SimpleNamespace(packed=lambda _: None, is_verified=lambda _: True), Later
    )
    record.inherit("x", answers.append)
    record.poll()
    record.poll()
    (answer,) = answers
    assert isinstance(answer, Unavailable)
    assert "content cannot be used" in str(answer)
    assert said in str(answer)


def test_builds_larger_than_a_value_come_back_whole():
    etcd = Etcd()
    etcd.key = (1, "a", 7)
    store, data = Store(etcd), Random(1).randbytes(3 * RECORD_CHUNK_BYTES)  # noqa: S311
    assert write_record(store, 7, Record("a"), lambda _: data)
    assert fetch_archive(store, "a") == data
    assert max(map(len, store.values.values())) <= RECORD_CHUNK_BYTES
    assert write_record(store, 7, Record("b"), lambda _: b"small")
    assert (fetch_archive(store, "a"), fetch_archive(store, "b")) == (None, b"small")
    assert not write_record(store, 6, Record("z"), lambda _: b"late")
    assert read_record(store) == Record("b")


def test_urls_of_a_store():
    group = StoreGroup.parse("http://one:2379/lab,https://two/lab", "n")
    assert (group.urls, group.prefix) == (("http://one:2379", "https://two"), "polarfab/lab")
    assert StoreGroup.parse("http://[::1]:2379", "n").prefix == "polarfab"
    for text in ("", "one:2379", "ftp://one", "http://one/a,http://two/b", "http://[1"):
        with pytest.raises(InputError, match="URLs of etcd"):
            StoreGroup.parse(text, "n")


def lost_store(site):
    """The store loses all of its data."""
    site.store.values.clear()
    site.etcd.key = None
    site.etcd.leases.clear()


def restarted(site, name, which):
    """A new process of a controller, whose folder has got another build."""
    site.kill(name)
    site.etcd.key = None
    folder = site.folder / name / "build"
    mark_verified(folder, save(getattr(site, which), folder).identity, {})
    site.instances[name] = Instance(site, name, folder)
    return site.instances[name]


def test_a_leader_whose_store_lost_all_data_asks_the_switches_what_they_hold(tmp_path):
    """It loaded its folder's old build on all switches at once."""
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    a = restarted(site, "a", "old")
    lost_store(site)
    absent = max(site.ends)
    a.several.roles.closed(absent)
    for _ in range(10):
        site.step()
    assert read_record(site.store) is None, "another leader would load this build"
    a.several.roles.connected(absent, absent)
    site.until(lambda: a.fabric.complete)
    assert (a.fabric.identity, a.fabric.differences["none"]) == (site.new.identity, len(site.ends))
    site.until(lambda: read_record(site.store) == Record(site.new.identity))
    assert read_build(a.several.record.history.folder, True).identity == site.new.identity


def test_a_first_start_waits_for_no_absent_switch(tmp_path):
    site = Site(tmp_path, *PAIRS["policy"]())
    a, absent = site.instances["a"], max(site.ends)
    a.several.roles.closed(absent)
    site.until(lambda: len(a.fabric.in_sync) == len(site.ends) - 1)
    assert site.time < 2


def test_a_new_build_in_the_folder_is_moved_to_although_the_store_lost_all_data(tmp_path):
    site = Site(tmp_path, *PAIRS["policy"]())
    a = site.instances["a"]
    site.until(lambda: a.fabric.complete and a.several.record.history.entries())
    site.walking = True
    a = restarted(site, "a", "new")
    lost_store(site)
    site.until(lambda: a.fabric.complete and a.fabric.identity == site.new.identity)
    assert a.rollout.state == "done"


def test_a_first_store_gets_what_the_journal_of_a_lone_controller_says(tmp_path):
    """The journal was ignored: what was on trial stayed, and what was drained was used."""
    site, a = moving(tmp_path, "policy")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    a = restarted(site, "a", "new")
    lost_store(site)
    journal = a.several.record.history.folder.with_name(".build.journal")
    trial = Record(site.new.identity, fallback=site.old.identity, trial_seconds_left=60.0)
    journal.write_bytes(record_to_json(trial))
    site.until(lambda: a.fabric.complete and read_record(site.store) is not None)
    assert a.several.mover.trial.fallback == read_record(site.store).fallback == site.old.identity
    waited(site, lambda: not journal.exists())
    assert journal.with_name(".build.journal.old").exists()
    waited(site, lambda: "journal-retired" in [event.kind for event in a.fabric.take_events()])
    site.until(lambda: a.fabric.identity == site.old.identity, seconds=LEADER_PERIOD)


def test_a_journal_older_than_the_record_is_put_away(tmp_path):
    site = Site(tmp_path, *PAIRS["policy"]())
    journal = tmp_path / "a" / ".build.journal"
    journal.write_bytes(record_to_json(Record(site.old.identity, fallback=site.new.identity)))
    site.store.values["record"] = record_to_json(Record(site.old.identity))
    a = site.instances["a"]
    site.until(lambda: a.fabric.complete)
    assert a.several.mover.trial is None
    waited(site, lambda: not journal.exists())
    waited(site, lambda: "as the store has a record" in told(a, "journal-retired"))


def test_a_follower_puts_its_journal_away_when_the_store_has_a_record(tmp_path):
    """Months later the store lost its data; it came to lead, and went on from this journal."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    journal = tmp_path / "b" / ".build.journal"
    journal.write_bytes(record_to_json(Record(site.old.identity, link_state={"asked": [["n1"]]})))
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    waited(site, lambda: not journal.exists())
    waited(site, lambda: "as the store has a record" in told(b, "journal-retired"))
    rest(site, 2 * COPY_PERIOD)
    site.kill("a")
    lost_store(site)
    site.until(lambda: b.fabric.complete)
    assert (b.fabric.identity, b.fabric.differences["none"]) == (site.new.identity, len(site.ends))


def rest(site, seconds):
    """Time passes, in steps in which leases are renewed."""
    for _ in range(int(seconds / LEADER_PERIOD)):
        site.step(seconds=LEADER_PERIOD)


def waited(site, true):
    """Wait for a thread of a controller."""
    until(lambda: (site.step(), true())[1])


def told(instance, kind):
    """The text of the events of a kind."""
    return "".join(event.text for event in instance.fabric.take_events() if event.kind == kind)


def test_faults_of_the_store_that_take_turns_are_said_once(tmp_path):
    """TLS fails in two ways in turn: two lines a second were written until it worked again."""
    site, a = moving(tmp_path, "policy")

    def lines(*faults):
        """What is said while the store has each of these faults for a moment."""
        for fault in faults:
            site.etcd.pass_time(0.0)
            a.election.view = replace(a.election.view, trouble=fault)
            site.time += LEADER_PERIOD
            a.several.tick()
        return [event.node for event in a.fabric.take_events() if event.kind == "store"]

    assert lines(*["EOF", "bad certificate"] * 20) == ["EOF", "bad certificate"]
    assert lines(*["EOF", ""] * 20) == [], "it comes and goes"
    assert lines(*[""] * 5) == ["answers"]
    assert len(lines(*map(str, range(100)))) < 6
    assert lines(*[""] * 5, "EOF", "EOF") == ["answers", "EOF"]


def after_a_takeover(tmp_path, which, seconds):
    """A controller that leads after another one has moved the fabric, and died."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", which)
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    rest(site, seconds)
    site.kill("a")
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.until(lambda: b.fabric.complete)
    return site, b


@pytest.mark.parametrize("which", ["old", "new"])
@pytest.mark.parametrize("seconds", [0, 2 * COPY_PERIOD])
def test_a_move_of_another_controller_is_undone(tmp_path, which, seconds):
    """Not if the new leader had the old build in its folder, nor if the store had it."""
    site, b = after_a_takeover(tmp_path, which, seconds)
    rest(site, 2 * COPY_PERIOD)
    site.walking = False  # how a move loses nothing is another test's
    b.several.mover.roll_back()
    site.until(lambda: b.fabric.identity == site.old.identity and b.fabric.complete)
    assert told(b, "history-damaged") == ""


def test_undo_leads_to_the_build_before_the_last_move_of_another_controller(tmp_path):
    """It led to the last build that this controller itself had held before."""
    site, a = moving(tmp_path, "policy")
    site.walking = False
    site.until(lambda: a.rollout.over)
    site.until(lambda: len(a.several.record.history.entries()) > 1)
    third = save(build(RING, ("minimal", "link")), tmp_path / "third")
    stored = Record(third.identity, previous=site.old.identity)
    other = BuildHistory(tmp_path / "third")
    free, site.etcd.key = site.etcd.key, (1, "z", 1)
    packs = {third.identity: other.packed, site.old.identity: a.several.record.history.packed}
    assert write_record(site.store, 1, stored, lambda build: packs[build](build), lambda _: False)
    site.etcd.key = free
    a = restarted(site, "a", "new")
    site.until(lambda: a.fabric.complete and a.fabric.identity == third.identity)
    a.several.mover.roll_back()
    site.until(lambda: a.fabric.complete and a.fabric.identity == site.old.identity)


def test_a_follower_keeps_the_fabrics_builds_although_the_store_loses_them(tmp_path):
    """It loaded its folder's old build on all switches at once."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    rest(site, 2 * COPY_PERIOD)
    history = b.several.record.history
    assert [held.build for held in history.entries()] == [site.old.identity, site.new.identity]
    site.kill("a")
    lost_store(site)
    site.until(lambda: b.fabric.complete)
    assert (b.fabric.identity, b.fabric.differences["none"]) == (site.new.identity, len(site.ends))
    assert read_build(history.folder, True).identity == site.new.identity


def test_a_follower_copies_a_build_again_whose_copy_is_damaged(tmp_path):
    """Once the store had lost its data, too, it could not take over with this build."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    rest(site, 2 * COPY_PERIOD)
    file = b.several.record.history.place / site.new.identity / "arrays" / "far.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    rest(site, 2 * COPY_PERIOD)
    assert file.read_bytes() == content


def test_a_build_that_cannot_be_copied_is_reported_once(tmp_path):
    site = Site(tmp_path, *PAIRS["policy"]())
    a = site.instances["a"]
    site.until(lambda: a.fabric.complete)
    site.until(lambda: read_record(site.store) is not None)
    name = "0" * 16
    site.store.values["record"] = record_to_json(Record(site.old.identity, previous=name))
    site.store.values |= {
        f"builds/{name}/parts": b"1",
        f"builds/{name}/000000": zlib.compress(b"no archive"),
    }
    rest(site, 2 * COPY_RETRY)
    texts = [event.text for event in a.fabric.take_events() if event.kind == "status"]
    assert len(texts) == 1, texts
    assert f"build {name} of the store" in texts[0]
    assert "ZIP" in texts[0]


def test_a_build_that_cannot_be_copied_holds_up_no_other(tmp_path):
    """The build of the fabric was not copied, as the one before it was damaged in the store."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    name = "0" * 16
    site.store.values["record"] = record_to_json(Record(site.new.identity, previous=name))
    site.store.values |= {f"builds/{name}/parts": b"1", f"builds/{name}/000000": b"damaged"}
    rest(site, 2 * COPY_PERIOD)
    history = b.several.record.history
    assert site.new.identity in history.kept_builds()
    assert history.entries()[-1].build == site.new.identity
    assert f"build {name} of the store" in told(b, "status")


def test_a_history_that_cannot_follow_is_reported_once(tmp_path):
    """Nobody looked at the result of the write."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))

    def record_held_elsewhere(*_, **__):
        raise InputError.of("a disk with room", "a full one")

    b.several.record.history.record_held_elsewhere = record_held_elsewhere
    rest(site, 5 * COPY_PERIOD)
    texts = [event.text for event in b.fabric.take_events() if event.kind == "status"]
    assert len(texts) == 1, texts
    assert "a full one" in texts[0]


def test_a_damaged_copy_keeps_no_controller_from_leading(tmp_path):
    """It waited for ever, and no other one could lead meanwhile: the store had the build."""
    site, a = moving(tmp_path, "policy")
    b = site.start("b", "old")
    site.until(lambda: a.rollout.over and read_record(site.store) == Record(site.new.identity))
    rest(site, 2 * COPY_PERIOD)
    damaged = b.several.record.history.place / site.new.identity / "arrays/far.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    site.kill("a")
    site.until(lambda: b.several.state == "leader", seconds=LEADER_PERIOD)
    site.until(lambda: b.fabric.complete)
    assert (b.fabric.identity, b.fabric.differences["none"]) == (site.new.identity, len(site.ends))
