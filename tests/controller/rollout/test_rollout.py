"""A fabric of switches of our own moves to another build, or back: the state machine alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from random import Random
from unittest.mock import create_autospec

import numpy as np
import pytest

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.targets.openflow import protocol as of
from compilers.targets.openflow.encoder import Encoder
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import messages
from controller.rollout.fabric_record import LONGEST_WRITE, FabricRecord, Record
from controller.rollout.move_journal import MoveJournal
from controller.rollout.mover import Mover
from controller.rollout.resumption import Resumption
from controller.rollout.rollout import (
    DETOUR_AFTER,
    ROLLOUT_PATIENCE,
    SETTLE,
    UNDO_PATIENCE,
    Rollout,
)
from controller.settings import Duties
from controller.switches.current import Upkeep
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError
from tests.compilers.fabrics import polarfly_build
from tests.compilers.routed import routed
from tests.compilers.targets.openflow_switch import Switch
from tests.compilers.update.updates import MINIMAL, SPARSE_LINKS, Moving, build, grown, links_of
from tests.controller.makers import Unwatched, loaded, no_history
from tests.controller.message_lists import listed
from tests.controller.reported import holds
from tests.controller.switches.conforming_fabric import InMemory, numbers, strict
from tests.controller.switches.conforming_switch import TIMED_OUT, ConformingSwitch
from tests.controller.switches.session_talk import names
from tests.controller.upkeep.makers import CALM, network, tables_for
from tests.controller.upkeep.makers import links_of as links_of_network

SMALL, Q3 = "{family: polarfly, q: 2}", "{family: polarfly, q: 3}"
POLICY = ("compact-valiant", "link")
OTHER_SPARSE_LINKS = (
    ("n0", "n4"),
    ("n0", "n7"),
    ("n1", "n6"),
    ("n2", "n3"),
    ("n3", "n4"),
    ("n5", "n12"),
    ("n9", "n10"),
)
"""Dead links of another fabric of 17 cables than that of `SPARSE_LINKS`."""


class Site:
    """The switches of two builds, connected to a fabric that has the old one loaded."""

    def __init__(self, old, new, seed=1):
        self.update, self.time, self.chance = plan(old, new), 0.0, Random(seed)  # noqa: S311
        self.programs = SwitchPrograms(self.update)
        self.fabric = LiveFabric(loaded(old), numbers, clock=lambda: self.time)
        ids = self.update.nodes.datapath_id.tolist()
        self.ends, self.hung = strict(ids), set()
        for number in ids:
            self.fabric.connected(number, number)
        self.settle()
        self.changes = None

    @cached_property
    def moving(self):
        """The programs of all rounds, and how packets go."""
        return Moving(self.update)

    def settle(self):
        """Carry messages until nobody has anything to say; switches answer in any order."""
        while out := self.fabric.send.take():
            for key in self.chance.sample(sorted({o.key for o in out}), len({o.key for o in out})):
                data = b"".join(o.data for o in out if o.key == key and o.data)
                end = self.ends.get(key)
                told = end.take(data) if end and key not in self.hung else b""
                for _, answer in listed(told, of.HEADER):
                    self.fabric.received(key, answer)

    def start(self, **options):
        self.rollout = Rollout(self.fabric, self.programs, loaded(self.update.new), **options)
        return self

    def run(self, until="done", steps=400):
        """Let time pass until a state; packets are walked after each step that changed a switch."""
        for _ in range(steps):
            if self.rollout.state == until:
                self.settle()
                return
            self.settle()
            self.rollout.tick()
            self.walk()
            self.time += SETTLE
        pytest.fail(f"still {self.rollout.status()}")

    def reach(self, round):
        """Let time pass until a round was begun."""
        while self.rollout.round < round:
            self.settle()
            self.rollout.tick()
            self.time += SETTLE

    def walk(self):
        changes = [end.changes for end in self.ends.values()]
        if changes == self.changes:
            return
        self.changes = changes
        self.moving.switches = [
            self.ends[number].walked for number in self.update.nodes.datapath_id.tolist()
        ]
        assert not self.moving.worst()[1]

    def holds(self, programs):
        ids = self.update.nodes.datapath_id.tolist()
        return all(self.ends[i].walked == s for i, s in zip(ids, programs, strict=True))


CASES = {
    "policy": lambda: (build(SMALL), build(SMALL, POLICY)),
    "back to minimal": lambda: (build(SMALL, POLICY), build(SMALL)),
    "a dead link": lambda: (build(SMALL), build(SMALL, MINIMAL, tuple(links_of(build(SMALL))[:1]))),
    "expanded": lambda: (build(SMALL, POLICY), grown(build(SMALL, POLICY), "fan", 1)),
    "in place": lambda: (build(SMALL, ("compact-valiant", "none")), build(SMALL, POLICY)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fabric_moves_and_loses_nothing(case):
    site = Site(*CASES[case]())
    assert site.fabric.complete
    site.start().run()
    assert site.holds(site.moving.new)
    assert site.fabric.identity == site.update.new.identity
    assert site.fabric.complete
    told = [(e.kind, e.node) for e in site.fabric.take_events() if e.kind in ("round", "moved")]
    rounds = site.update.rounds
    steps = [("round", f"{n} of {rounds}") for n in range(1, rounds + 1)]
    assert told == [*steps, ("moved", site.update.new.identity)]


def test_a_second_move_uses_the_other_generation_again():
    old, new = build(SMALL), build(SMALL, POLICY)
    site = Site(old, new)
    site.start().run()
    site.update = plan(new, old)
    site.programs = SwitchPrograms(site.update)
    site.moving = Moving(site.update, generation=1)
    site.start().run()
    assert site.holds(site.moving.new)
    assert site.holds([Switch().apply((*p.groups, *p.flows)) for p in programs_of(old)])


def programs_of(made):
    encoder = Encoder(made)
    return [encoder.program(v) for v in range(made.tables.switches)]


@pytest.mark.parametrize(
    "case", ["policy", "in place", pytest.param("expanded", marks=pytest.mark.long)]
)
def test_a_refusal_in_any_round_takes_all_back(case):
    old, new = CASES[case]()
    site = Site(old, new)
    rounds = [r for r in range(site.update.rounds) if _acts(site, 3, r)]
    assert rounds
    for place in {0, len(rounds) // 2, len(rounds) - 1}:
        round = rounds[place]
        site = Site(old, new, seed=place)
        before = [site.ends[n].walked for n in site.update.nodes.datapath_id.tolist()]
        site.ends[3].takes = place
        site.start().run("failed")
        name = site.fabric.names[2]
        assert site.rollout.reason.startswith(f"{name} refused round {round + 1}: ")
        assert "code 1" in site.rollout.reason
        assert site.holds(before)
        assert site.fabric.identity == old.identity
        assert site.fabric.complete


def test_a_round_that_timed_out_in_a_switch_is_sent_again():
    site = Site(*CASES["policy"]())
    site.ends[3].takes, site.ends[3].fault = 1, TIMED_OUT
    site.start().run()
    assert site.ends[3].takes > 1
    assert site.holds(site.moving.new)


def _acts(site, datapath_id, round):
    node = int(np.flatnonzero(site.update.nodes.datapath_id == datapath_id)[0])
    return bool(messages(site.programs.slots(node), round))


def test_a_switch_that_leaves_stops_it_and_is_put_right_when_it_returns():
    site = Site(*CASES["policy"]())
    before = [site.ends[n].walked for n in site.update.nodes.datapath_id.tolist()]
    site.start()
    site.reach(1)
    site.fabric.closed(5)
    gone = site.ends.pop(5)
    for _ in range(200):
        site.settle()
        site.rollout.tick()
        site.time += SETTLE
    assert site.rollout.state == "failed"
    assert "left in round 2" in site.rollout.reason
    site.ends[5] = gone
    site.fabric.connected(5, 5)
    site.settle()
    assert site.holds(before)
    assert site.fabric.complete


def test_a_silent_switch_stops_it():
    site = Site(*CASES["policy"]())
    site.start()
    site.reach(1)
    site.hung.add(7)
    site.time += ROLLOUT_PATIENCE + 1
    site.settle()
    site.rollout.tick()
    assert (site.rollout.state, site.fabric.names[6] in site.rollout.reason) == ("back", True)


def test_no_switch_is_late_while_the_controller_stood_still():
    """After a pause of 40 s it was said that switches did not answer, and the move was undone."""
    site = Site(*CASES["policy"]())
    site.start()
    site.reach(1)
    for paused in (0.0, 4 * ROLLOUT_PATIENCE):  # the switches' answers are unread
        site.time += paused
        site.fabric.listening_clock.update(None)
        site.rollout.tick()
    site.run()
    assert site.holds(site.moving.new)


def test_a_round_takes_as_long_as_switches_confirm(monkeypatch):
    site, take = Site(*CASES["policy"]()), ConformingSwitch.take

    def slowly(end, data):
        site.time += ROLLOUT_PATIENCE / 4
        return take(end, data)

    monkeypatch.setattr(ConformingSwitch, "take", slowly)
    site.start().run()
    assert site.holds(site.moving.new)


def test_it_does_not_begin_before_all_are_there():
    site = Site(*CASES["policy"]())
    missing = int(site.update.nodes.datapath_id[-1])
    site.fabric.closed(missing)
    site.ends.pop(missing)
    site.start()
    for _ in range(3):
        site.settle()
        site.rollout.tick()
        site.time += ROLLOUT_PATIENCE
    assert site.rollout.state == "failed"
    assert "not in sync: " in site.rollout.reason
    assert site.fabric.identity == site.update.old.identity


def test_rounds_wait_for_all_switches_and_a_pause():
    site = Site(*CASES["policy"]())
    site.start(settle=1.0)
    times = []
    for _ in range(400):
        before = site.rollout.round
        site.settle()
        site.rollout.tick()
        if site.rollout.round != before:
            times.append(site.time)
        site.time += 0.1
        if site.rollout.over:
            break
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))


def test_a_move_while_a_link_is_dead_leads_to_repaired_tables():
    """What the keeper has repaired stays repaired, in every round and afterwards."""
    net, keeper = network()
    link = links_of_network()[5]
    net.cable(*link, False)
    new = replace(routed(q=3, spread=False), identity="f" * 16)
    mover = Mover(net.sessions, keeper, no_history())
    mover.move(loaded(new))
    steps = 0
    while not mover.rollout.over:
        net.run()
        net.now[0] += SETTLE
        net.sessions.tick()
        mover.tick()
        steps += 1
        assert steps < 100, mover.status()
    for switch in net.switches:
        switch.mods.clear()
    net.run()
    assert mover.rollout.state == "done"
    assert net.sessions.complete
    encoder = Encoder(replace(new, tables=tables_for(link, build=new)))
    for vertex, switch in enumerate(net.switches):
        assert holds(switch, encoder.program(vertex, 1))
        assert not switch.mods


class Hung(FabricRecord):
    """A record of a store that takes steps up to this place, and says nothing from then on."""

    def __init__(self, *place):
        super().__init__()
        self.place = place

    def ensure_stored(self, record, leads_back=False):  # noqa: ARG002
        return (record.round, record.direction) != self.place


class Kept(FabricRecord):
    """A record that keeps what was written last; it takes nothing while it hangs."""

    hangs, kept = False, None

    def ensure_stored(self, record, leads_back=False):  # noqa: ARG002
        if not self.hangs:
            self.kept = record
        return not self.hangs


IN_PLACE = ("compact-valiant", "none")


WAITS = {
    "before the first round": ((0, "forth"), IN_PLACE),
    "before the second round": ((1, "forth"), POLICY),
    "before the last round": ((3, "forth"), IN_PLACE),
    "after the last round was refused": ((3, "back"), IN_PLACE),
}


@pytest.mark.parametrize(("place", "policy"), WAITS.values(), ids=WAITS)
def test_links_that_die_while_a_move_waits_for_the_disk_are_repaired(place, policy):
    """Nothing was repaired for as long as the disk hung, and nothing said that the move waited."""
    net, keeper = network(Duties(damping=CALM), build(SMALL))
    record, clock = Hung(*place), net.now
    mover = Mover(net.sessions, keeper, no_history(), record)
    mover.move(loaded(build(SMALL, policy)))

    def steps(number):
        for _ in range(number):
            net.run()
            clock[0] += SETTLE
            net.sessions.tick()
            mover.tick()

    if place[1] == "back":
        while mover.rollout.round < place[0]:
            steps(1)
        mover.rollout.reason = "for this test"
    steps(int(2 * LONGEST_WRITE / SETTLE))
    assert (mover.rollout.state, mover.rollout.over) == (place[1], False)
    assert mover.progress()["waits_for"] == "the disk"
    assert not net.fabric.lost()
    dead = links_of_network(net.build)[3:5]
    for link in dead:
        net.cable(*link, False)
        assert net.fabric.lost(), "nothing is protected here"
        steps(int(3 * DETOUR_AFTER / SETTLE))
        assert not net.fabric.lost()
        assert keeper.repair_seconds < DETOUR_AFTER
    told = [event.kind for event in net.sessions.take_events()]
    assert [told.count(kind) for kind in ("move-waits", "repaired")] == [1, 2]
    record.place = ()
    while not (mover.rollout.over and net.sessions.complete):
        steps(1)
        assert not net.fabric.lost()
    assert mover.rollout.state == ("failed" if place[1] == "back" else "done")
    assert mover.progress()["waits_for"] == ""
    wanted = tables_for(*dead, build=mover.fabric.current.build)
    assert np.array_equal(keeper.build.tables.routes.egress, wanted.routes.egress)


def test_traffic_avoids_a_switch_that_leaves_while_a_move_waits_for_the_disk():
    """It came back: the move is taken back, as it left, when the disk answers."""
    net, keeper = network(Duties(damping=CALM), build(Q3))
    record, away = Hung(1, "forth"), 3
    mover = Mover(net.sessions, keeper, no_history(), record)
    mover.move(loaded(build(Q3, IN_PLACE)))
    net.also.append(mover.tick)

    def lost():
        return [pair for pair in net.fabric.lost() if away not in (pair[0][0], pair[1][0])]

    for _ in range(20):
        net.tick()
    assert mover.rollout.seconds_waiting > DETOUR_AFTER
    for port in [*net.switches[away].up]:
        net.switches[away].link(port, False)
    net.sessions.closed(away)
    assert lost()
    for _ in range(40):
        net.tick()
    assert (lost(), keeper.drained[away]) == ([], True)
    record.place = (2, "back")
    for port in [*net.switches[away].up]:
        net.switches[away].link(port, True)
    net.connect(away)
    for _ in range(40):
        net.tick()
    assert mover.rollout.state == "failed"
    assert net.sessions.complete
    assert not net.fabric.lost()


@pytest.mark.parametrize(("dies", "all_or_none"), [("a link", True), ("a switch", False)])
def test_what_fails_while_a_move_waits_for_an_absent_switch_is_repaired(dies, all_or_none):
    """A switch had lost its management only: a link far away was repaired 33 s after it had failed,
    and so was a switch that failed just as the move began.
    """
    net, keeper = network(Duties(damping=CALM), build(Q3))
    absent, dead = 0, 5
    mover = Mover(net.sessions, keeper, no_history(), Hung(-1, ""))
    net.sessions.closed(absent)
    mover.move(loaded(build(Q3, IN_PLACE)), all_or_none=all_or_none)
    net.also.append(mover.tick)

    def lost():
        gone = [dead] if dies == "a switch" else []
        return [pair for pair in net.fabric.lost() if not {pair[0][0], pair[1][0]} & {*gone}]

    for _ in range(10):
        net.tick()
    assert mover.rollout.state == "reading"
    if dies == "a link":
        net.cable(*links_of_network(net.build)[-1], False)
    else:
        net.sessions.closed(dead)
        for link in np.flatnonzero(net.build.wiring.far[dead] >= 0).tolist():
            net.cable(dead, link, False)
    for _ in range(30):  # 7.5 s: the absent switch is drained after 5
        net.tick()
    assert not lost()
    for _ in range(200):
        net.tick()
        assert not lost()
    wanted = "failed" if all_or_none else "done"
    assert mover.rollout.state == wanted, mover.rollout.reason


def test_switches_that_return_while_a_move_reads_are_not_led_around_anew():
    """Each return led to tables that switches took as they were read: 25 pairs lost packets."""
    net, keeper = network(Duties(damping=CALM), build(Q3))
    mover = Mover(net.sessions, keeper, no_history(), Hung(-1, ""))
    away = [0, 3, 5]
    for vertex in away:
        net.sessions.closed(vertex)
    for _ in range(40):
        net.tick()
    assert keeper.drained[away].all()
    mover.move(loaded(build(Q3, IN_PLACE)), all_or_none=True)
    net.also.append(mover.tick)
    repairs = keeper.repairs
    for vertex in away:
        net.tick()
        assert mover.rollout.state == "reading"
        assert keeper.repairs == repairs
        net.connect(vertex)
    for _ in range(60):
        net.tick()
        assert not net.fabric.lost()
    assert mover.rollout.state == "done"
    assert not keeper.drained.any()


def moved(net, mover, new):
    """Move to a build, to the end."""
    mover.move(loaded(new))
    for _ in range(100):
        net.run()
        net.now[0] += SETTLE
        net.sessions.tick()
        mover.tick()
    assert mover.rollout is None or mover.rollout.state == "done"
    assert net.sessions.complete


def test_a_drain_goes_on_under_the_new_name_of_its_node():
    """It was called by the old name until a restart, which forgot it."""
    net, keeper = network(Duties(damping=CALM), build(Q3))
    names = net.build.wiring.names
    far = int(net.build.wiring.far[2, 0])
    keeper.drain(names[5])
    keeper.drain(f"{names[2]}-{names[far]}")
    for _ in range(20):
        net.tick()
    wiring = replace(net.build.wiring, names=tuple(f"leaf{v}" for v in range(13)))
    renamed = replace(net.build, wiring=wiring, identity="e" * 16)
    moved(net, Mover(net.sessions, keeper, no_history(), Hung(-1, "")), renamed)
    assert keeper.status()["drained"] == ["leaf5"]
    assert keeper.status()["asked"] == ["leaf5", f"leaf2-leaf{far}"]
    after = network(Duties(damping=CALM), renamed)[1]
    after.take_over(keeper.links_record())
    assert after.status()["asked"] == ["leaf5", f"leaf2-leaf{far}"]
    assert after.status()["drained"] == ["leaf5"]


def test_a_record_is_read_by_the_names_of_its_build():
    """The folder had got a build with other names: another switch was drained after a restart."""
    net, keeper = network(Duties(damping=CALM), build(Q3))
    names = net.build.wiring.names
    keeper.drain(names[10])
    for _ in range(20):
        net.tick()
    wiring = replace(net.build.wiring, names=(*names[1:], names[0]))
    after = network(Duties(damping=CALM), replace(net.build, wiring=wiring, identity="e" * 16))[1]
    after.take_over(json.loads(json.dumps(keeper.links_record())), net.build)
    assert np.flatnonzero(after.drained).tolist() == [10]
    assert after.status()["asked"] == [wiring.names[10]]


def test_a_build_with_names_that_certificates_lack_is_refused():
    """All 13 connections were closed when it was loaded, and nobody repaired any more."""
    net, keeper = network(Duties(damping=CALM), build(Q3))
    for vertex, switch in net.sessions.present.items():
        switch.certificate = frozenset({net.build.wiring.names[vertex], "leaf7"})
    wiring = replace(net.build.wiring, names=tuple(f"leaf{v}" for v in range(13)))
    mover = Mover(net.sessions, keeper, no_history(), Hung(-1, ""))
    renamed = loaded(replace(net.build, wiring=wiring, identity="e" * 16))
    with pytest.raises(InputError, match="leaf0, leaf1, leaf2, leaf3, leaf4, which none"):
        mover.move(renamed)
    assert net.sessions.complete


def test_a_drain_outlasts_a_build_that_lacks_what_is_drained():
    """The fabric fell back to the build before, and traffic was back on the link."""
    old, new = build(Q3), polarfly_build(2)
    net, keeper = network(Duties(damping=CALM), old)
    link = f"{old.wiring.names[11]}-{old.wiring.names[int(old.wiring.far[11, 0])]}"
    keeper.drain(link)
    for _ in range(20):
        net.tick()
    dead = keeper.dead.copy()
    assert dead.sum() == 2
    keeper.adopt(loaded(replace(new, identity="d" * 16)))
    assert (keeper.status()["asked"], keeper.dead.any()) == ([link], False)
    keeper.adopt(loaded(old))
    assert (keeper.status()["asked"], keeper.dead.tolist()) == ([link], dead.tolist())


def test_a_move_to_other_cables_leads_around_what_is_drained():
    """Its tables led through a drained switch until they had been repaired after the move."""
    net, keeper = network()
    name = net.build.wiring.names[3]
    keeper.drain(name)
    new = replace(polarfly_build(4), identity="f" * 16)
    drained = np.array([one == name for one in new.wiring.names])
    dead = np.zeros(new.wiring.far.shape, bool)
    wanted = repair_tables(IntactBuild.of(new), dead, drained).tables
    assert not np.array_equal(wanted.routes.egress, new.tables.routes.egress)
    assert np.array_equal(keeper.foresee(new).tables.routes.egress, wanted.routes.egress)


class Cabled(Upkeep):
    """Knows of switches without a connection whether their links are up."""

    is_up, is_in_use = True, False

    def is_cabled(self, _):
        return self.is_up

    def has_transit(self, _):
        return self.is_in_use


def around(made, datapath_id, links=()):
    """A build whose tables lead no traffic between others through a switch, or over links.

    links: a switch and the index of the link there, each.
    """
    drained = made.wiring.datapath_id == datapath_id
    dead = np.zeros(made.wiring.far.shape, np.bool_)
    for u, k in links:
        v = made.wiring.far[u, k]
        dead[u, k] = dead[v, made.wiring.far[v] == u] = True
    return replace(made, tables=repair_tables(IntactBuild.of(made), dead, drained).tables)


@pytest.mark.parametrize("balance", ["spread", "valiant"])
@pytest.mark.parametrize("returns", [True, False])
def test_switches_forget_no_marks_while_a_switch_without_management_marks(balance, returns):
    """Its neighbours no longer knew what they meant: its hosts lost packets until it came back.

    A switch whose links are down, too, marks nothing.
    """
    absent = 4
    site = Site(around(build(Q3, (balance, "none")), absent), around(build(Q3), absent))
    site.fabric.upkeep = upkeep = Cabled()
    site.fabric.closed(absent)
    rollout = site.start(all_or_none=False).rollout
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run(steps=int(2 * ROLLOUT_PATIENCE / SETTLE))
    assert (rollout.state, rollout.round) == ("forth", site.update.last_round - 1)
    assert rollout.awaited == "n3 (absent), whose links are up"
    assert rollout.seconds_waiting > ROLLOUT_PATIENCE
    if returns:
        site.fabric.connected(absent, absent)
        site.run()
        site.settle()
        assert site.holds(site.moving.new)
    else:
        upkeep.is_up = False
        rollout.tick()
        site.settle()
        rollout.tick()
        assert rollout.round == site.update.last_round
    assert rollout.awaited == ""


def test_switches_forget_no_marks_while_a_switch_that_refuses_its_rows_marks():
    """Only switches without a connection were awaited."""
    refuses = 4
    site = Site(around(build(Q3, ("spread", "none")), refuses), around(build(Q3), refuses))
    site.fabric.upkeep, end = Cabled(), site.ends[refuses]
    end.takes, end.faults = 0, 1 << 30
    del end.rows[next(key for key, row in end.rows.items() if row.priority == 0)]
    end.committed()
    site.fabric.present[refuses - 1].request_reading()
    site.settle()
    rollout = site.start(all_or_none=False).rollout
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run(steps=int(2 * ROLLOUT_PATIENCE / SETTLE))
    assert (rollout.state, rollout.round) == ("forth", site.update.last_round - 1)
    assert rollout.awaited == "n3 (refused), whose links are up"


def left_in_a_move(away, seed=1, absent=(), last=3):
    """A fabric whose switches lose their management in a round, and the switches away.

    absent: the switches that are away before the move.
    last: the round in which they do.
    """
    links = links_of(build(Q3))
    old, new = (build(Q3, MINIMAL, tuple(links[start::6])) for start in (0, 3))
    site = Site(old, new, seed)
    site.fabric.upkeep = Cabled()
    for number in absent:
        site.ends.pop(number)
        site.fabric.closed(number)
    site.start(all_or_none=not absent).reach(last)
    site.settle()  # they hold this round
    ends = {number: site.ends.pop(number) for number in away}
    for number in ends:
        site.fabric.closed(number)
    return site, ends


def passes(site, seconds):
    """Let time pass."""
    end = site.time + seconds
    while site.time < end:
        site.settle()
        site.rollout.tick()
        site.time += SETTLE


@pytest.mark.parametrize("seed", range(3))
def test_an_outage_in_a_move_ends_in_rounds_once_the_switches_are_back(seed):
    """All counted as undone, so each got the old build when it came back, and not in rounds."""
    site, ends = left_in_a_move(range(1, 14), seed)
    passes(site, UNDO_PATIENCE + 3 * ROLLOUT_PATIENCE)
    assert (site.rollout.state, site.rollout.round) == ("back", 2)
    assert site.rollout.seconds_waiting > UNDO_PATIENCE
    assert site.rollout.awaited.endswith("and 8 more, whose links are up")
    for number in site.chance.sample(sorted(ends), len(ends)):
        site.ends[number] = ends[number]
        site.fabric.connected(number, number)
        passes(site, 1.0)
        if len(site.ends) == len(ends):
            site.walk()
    site.run("failed")
    assert site.holds(site.moving.old)


def test_a_few_switches_that_are_away_are_awaited_for_a_while():
    """They may be back soon; after that traffic has been led around them."""
    site, _ = left_in_a_move({4, 9})
    passes(site, ROLLOUT_PATIENCE - 1)
    assert (site.rollout.state, site.rollout.round) == ("back", 2)
    assert site.rollout.awaited == "n3 (absent), n8 (absent), whose links are up"
    passes(site, 5)
    assert site.rollout.state == "failed"
    assert site.rollout.awaited == "", "the next move would not wait for the end of a repair"


def test_a_switch_that_traffic_cannot_be_led_around_is_awaited_without_a_limit():
    """After 30 s the others went on, two rounds apart from it: 11 pairs of a tree lost all packets
    until it was back.
    """
    site, ends = left_in_a_move({4, 9})
    site.fabric.upkeep.is_in_use = True
    passes(site, 3 * ROLLOUT_PATIENCE)
    assert site.rollout.awaited == "n3 (absent), n8 (absent), whose links are up"
    assert site.rollout.leads_around_absent
    site.fabric.upkeep.is_in_use = False
    site.ends |= ends
    passes(site, 1.0)
    assert site.rollout.awaited == ""
    for number in ends:
        site.fabric.connected(number, number)
    site.run("failed")
    assert site.holds(site.moving.old)


def sparse_network(discover=False):
    """Switches with all cables of a PolarFly, and the mover and the keeper of a build that uses 17
    of these; the switches hold it.
    """
    now = [100.0]
    sparse = loaded(build(Q3, MINIMAL, SPARSE_LINKS))
    sessions = LiveFabric(sparse, names, clock=lambda: now[0])
    keeper = Keeper(sessions, Duties(damping=CALM, discover=discover))
    net = InMemory(build(Q3), sessions, now)
    net.connect()
    mover = Mover(sessions, keeper, no_history())
    net.also.append(mover.tick)
    return net, mover, keeper


def succeeded(net, record, folder, other):
    """The switches, and the mover of a successor that has a record; a build is in its folder."""
    sessions = LiveFabric(folder, names, clock=lambda: net.now[0])
    keeper = Keeper(sessions, Duties(damping=CALM, discover=False))
    mover = Mover(sessions, keeper, history := no_history())
    builds = {build.identity: build for build in (folder, other)}
    history.read.side_effect = builds.__getitem__
    history.kept_builds.return_value = [*builds]
    history.entries.return_value = []
    journal = create_autospec(MoveJournal, instance=True, damaged=False)
    journal.read.return_value = record
    Resumption(mover, journal).begin()
    later = InMemory(net.build, sessions, net.now)
    later.switches[:] = net.switches
    later.also.append(mover.tick)
    return later, mover


@pytest.mark.parametrize("returns", [False, True])
def test_no_move_leads_traffic_through_a_switch_that_it_cannot_change(returns):
    """Traffic was led around n7 and n8, of which the other build needs one. A move by SIGHUP began
    at once: 25 pairs lost their packets there until both were back.
    """
    net, mover, keeper = sparse_network()
    for vertex in (7, 8):
        net.sessions.closed(vertex)
    for _ in range(80):
        net.tick(0.25)
    assert np.flatnonzero(keeper.drained).tolist() == [7, 8]
    mover.move(loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS)), True, all_or_none=False)
    for passed in range(int(8 * ROLLOUT_PATIENCE)):
        if returns and passed == 2 * ROLLOUT_PATIENCE:
            net.connect(7, 8)
        net.tick(0.25)
        assert not net.fabric.lost()
    if returns:
        assert mover.rollout.state == "done"
    else:
        assert "led through switches that forward and cannot be changed (n8)" in (
            mover.rollout.reason
        )


def test_a_cable_that_becomes_silent_while_a_move_waits_is_led_around():
    """Discovery rested in a move, and the move waited 30 s for a switch whose connection hung: all
    the while packets over the cable were lost. Later, a successor began without the detour, as no
    record had it.
    """
    net, mover, keeper = sparse_network(discover=True)
    record = mover.record = Kept()
    net.also.append(net.carry_frames)
    for _ in range(80):
        net.tick()
    assert not keeper.dead.any()
    mover.move(loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS)), True, all_or_none=False)
    net.hung.add(3)
    net.fabric.silent.add((4, 25))
    lossy_ticks = 0
    while mover.rollout.state == "reading":
        net.tick()
        lossy_ticks += bool(net.fabric.lost())
        assert net.now[0] < 160, "the move did not begin"
        if mover.rollout.state == "reading" and mover.rollout.has_detour:
            assert record.kept.link_state["unseen"] == [["n1", 9]]
    assert 0 < lossy_ticks <= 4 * 8
    assert mover.rollout.has_detour
    assert not net.fabric.lost()


@pytest.mark.parametrize("hang", [0, 60])
@pytest.mark.parametrize(("round", "returning"), [(0, 2), (2, 6), (2, 7)])
def test_a_switch_that_returns_in_the_rounds_of_a_move_is_used_after_it(round, returning, hang):
    """A successor planned the move through a switch that had returned in the rounds, and used it
    where the move had waited for the disk. Its predecessor had planned it around this switch.
    """
    net, mover, _ = sparse_network()
    record = mover.record = Kept()
    old, new = mover.fabric.current, loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS))
    net.sessions.closed(returning)
    for _ in range(160):
        net.tick()
    mover.move(new, True, all_or_none=False)
    while mover.rollout.round < round:
        net.tick(SETTLE)
    record.hangs = True
    net.connect(returning)
    for _ in range(hang):
        net.tick(SETTLE)
    record.hangs = False
    for _ in range(4):
        net.tick(SETTLE)
    assert mover.rollout.state == "forth"
    later, successor = succeeded(net, record.kept, old, new)
    for vertex in range(len(later.switches)):
        later.connect(vertex)
        for _ in range(3):
            later.tick(SETTLE)
            assert not later.fabric.lost()
    while successor.busy:
        later.tick(SETTLE)
        assert not later.fabric.lost()


@pytest.mark.parametrize("within", [0.0, 300.0])
@pytest.mark.parametrize("folder_is_new", [False, True])
def test_a_successor_knows_which_tables_are_in_force(folder_is_new, within):
    """A drain waited for a silent switch, and a move to other cables for its first reading. The
    successor took the drain for in force if its folder had the new build, or if the move was on
    trial, so that a survey came first. It corrected each switch to it: packets looped.
    """
    net, mover, keeper = sparse_network()
    record = mover.record = Kept()
    old, new = mover.fabric.current, loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS))
    net.sessions.closed(4)
    net.tick(1)
    keeper.drain("n6")
    net.tick(1)
    assert keeper.status()["repairing"]
    mover.move(new, True, within=within, all_or_none=False)
    net.tick()
    assert mover.rollout.state == "reading"
    folder, other = (new, old) if folder_is_new else (old, new)
    later, _ = succeeded(net, record.kept, folder, other)
    later.connect(*({*range(13)} - {4}))
    for _ in range(40):
        later.tick()
        assert not later.fabric.lost()


def test_a_drain_in_a_survey_is_not_in_force():
    """A successor found a move to other cables in its last round, and surveyed. It took what was
    drained meanwhile for in force as it loaded the new build (live, 14 pairs for 24 s).
    """
    net, mover, _ = sparse_network()
    record = mover.record = Kept()
    old, new = mover.fabric.current, loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS))
    mover.move(new, True, within=300.0, all_or_none=False)
    while mover.rollout.round < mover.rollout.programs.update.last_round:
        net.tick(SETTLE)
    net.sessions.closed(1)
    net.tick()
    later, successor = succeeded(net, record.kept, new, old)
    successor.keeper.drain("n2")
    later.connect(*({*range(13)} - {1}))
    for _ in range(40):
        later.tick()
        assert not later.fabric.lost()
    assert successor.keeper.status()["asked"] == ["n2"]


@pytest.mark.parametrize("folder", ["not started again", "old", "new"])
def test_what_fails_in_the_rounds_of_a_move_is_repaired_in_rounds_after_it(folder):
    """The build with other cables counted as one that leads around the failure already. So each
    switch was corrected by itself, and packets looped at those that hung (3 s). Later, it was so
    for a successor whose folder had the new build.
    """
    old, new = loaded(build(Q3)), loaded(build(Q3, MINIMAL, SPARSE_LINKS))
    net, keeper = network(Duties(damping=CALM, discover=False), old.build)
    mover = Mover(net.sessions, keeper, no_history(), record := Kept())
    net.also.append(mover.tick)
    mover.move(new, True, all_or_none=False)
    if folder != "not started again":
        while mover.rollout.round < 1:
            net.tick(SETTLE)
        both = (new, old) if folder == "new" else (old, new)
        net, mover = succeeded(net, record.kept, *both)
        net.connect()
    while mover.rollout.round < mover.rollout.programs.update.last_round:
        net.tick(SETTLE)
    net.fabric.cable((5, 25), False)
    net.also.append(lambda: mover.rollout.over and net.hung.add(4))
    while not mover.rollout.over:
        net.tick(SETTLE)
    lossy_ticks = 0
    for _ in range(40):
        net.tick()
        lossy_ticks += bool(net.fabric.lost())
    assert lossy_ticks <= 1


@pytest.mark.parametrize("flaps", [False, True])
def test_a_detour_has_the_record_name_a_round_of_its_plan(flaps):
    """The record had the number of the plan before, which had more rounds: a successor took the
    move for finished (live, 2,281 packets of 9 pairs). So it did if the link was back before the
    detour was computed (live, 1,783 packets): the record did not have it.
    """
    spread, plain = build(Q3, ("spread", "none")), loaded(build(Q3, MINIMAL))
    net, keeper = network(Duties(damping=CALM, discover=False), spread)
    mover = Mover(net.sessions, keeper, no_history(), record := Kept())
    net.also.append(mover.tick)
    net.sessions.closed(5)
    for _ in range(160):
        net.tick()
    mover.move(plain, True, all_or_none=False)
    while mover.rollout.seconds_waiting < DETOUR_AFTER:
        net.tick()
    rounds = mover.rollout.programs.update.last_round
    net.cable(*links_of_network(spread)[-1], False)
    net.tick()
    if flaps:
        net.cable(*links_of_network(spread)[-1], True)
    net.tick()
    assert mover.rollout.has_detour
    assert record.kept.link_state["down"]
    assert mover.rollout.programs.update.last_round != rounds
    assert record.kept.round == mover.rollout.round < mover.rollout.programs.update.last_round


def test_switches_send_lldp_frames_in_all_rounds_of_a_move():
    net, mover, _ = sparse_network(discover=True)
    mover.move(loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS)), True)
    while mover.busy:
        net.tick(SETTLE)
        assert all(switch.reports_lldp for switch in net.switches)
    assert mover.rollout.state == "done"


@pytest.mark.parametrize(("round", "absent"), [(2, 5), (4, 0), (6, 2)])
def test_a_switch_that_is_silent_for_a_while_in_a_move_changes_nothing(round, absent):
    """Traffic was led around it in mid-move, at each switch as it was read, and back again when it
    returned: packets looped meanwhile.
    """
    net, mover, keeper = sparse_network()
    mover.move(loaded(build(Q3, MINIMAL, OTHER_SPARSE_LINKS)), True)
    while mover.rollout.round < round:
        net.tick(SETTLE)
    net.sessions.closed(absent)
    for _ in range(int((ROLLOUT_PATIENCE - 5) / SETTLE)):
        net.tick(SETTLE)
        assert not net.fabric.lost()
    assert mover.rollout.awaited
    assert keeper.drained[absent]
    assert not keeper.repairs
    net.connect(absent)
    for _ in range(100):
        net.tick(SETTLE)
        assert not net.fabric.lost()
    assert mover.rollout.state == "failed"
    assert net.sessions.complete


def test_a_switch_that_is_back_is_awaited_until_it_is_read():
    """The others went on as soon as its connection was there: two rounds apart."""
    site, ends = left_in_a_move({4, 9})
    passes(site, 1.0)
    site.ends |= ends
    site.hung = {4}
    for number in ends:
        site.fabric.connected(number, number)
    passes(site, 5.0)
    assert site.rollout.awaited == "n3 (reading), whose links are up"
    assert site.rollout.round == 2
    site.hung.clear()
    site.fabric.closed(4)
    site.fabric.connected(4, 4)
    site.run("failed")
    assert site.holds(site.moving.old)


def test_a_successor_awaits_switches_that_its_predecessor_left_a_round_ahead():
    """The record says which round is undone: a switch that is away may still hold it."""
    site, ends = left_in_a_move({4, 9})
    site.fabric = LiveFabric(loaded(site.update.old), numbers, clock=lambda: site.time)
    site.fabric.upkeep = Cabled()
    for number in site.ends:
        site.fabric.connected(number, number)
    goes_back = Record(site.update.old.identity, site.update.new.identity, 3, "back")
    site.start(inherited=goes_back)
    passes(site, ROLLOUT_PATIENCE + 5)
    assert (site.rollout.state, site.rollout.round) == ("back", 2)
    assert site.rollout.awaited == "n3 (absent), n8 (absent), whose links are up"
    site.ends |= ends
    for number in ends:
        site.fabric.connected(number, number)
    site.run("failed")
    assert site.holds(site.moving.old)


def test_a_way_back_that_is_planned_anew_awaits_those_that_hold_a_later_round():
    """The new plan has fewer rounds. A switch that is not ahead in it is not awaited."""
    site, ends = left_in_a_move({4}, last=5)
    passes(site, 1.0)
    assert (site.rollout.round, site.rollout.awaited) == (4, "n3 (absent), whose links are up")
    ends[9] = site.ends.pop(9)  # holds the round that is undone next
    site.fabric.closed(9)
    passes(site, 1.0)
    replanned = plan(site.update.old, site.update.old)
    assert replanned.last_round == 1
    site.rollout.replan(SwitchPrograms(replanned), lambda: None)
    passes(site, 5.0)
    assert (site.rollout.round, site.rollout.awaited) == (1, "n3 (absent), whose links are up")
    site.ends[4] = ends[4]
    site.fabric.connected(4, 4)
    passes(site, 5.0)
    assert (site.rollout.round, site.rollout.awaited) == (0, "n8 (absent), whose links are up")


def test_a_switch_that_leaves_later_on_the_way_back_has_a_limit_of_its_own():
    """It was awaited only as long as was left of the limit of the first."""
    site, ends = left_in_a_move({4})
    passes(site, ROLLOUT_PATIENCE - 5)
    site.rollout.settle = 5.0  # the other one leaves between two rounds
    site.ends[4] = ends[4]
    site.fabric.connected(4, 4)
    passes(site, 1.0)
    assert (site.rollout.state, site.rollout.awaited) == ("back", "")
    site.ends.pop(9)
    site.fabric.closed(9)
    passes(site, 10.0)
    assert site.rollout.awaited == "n8 (absent), whose links are up"
    passes(site, ROLLOUT_PATIENCE - 15)
    assert site.rollout.awaited == "n8 (absent), whose links are up"


def test_switches_that_were_left_out_make_no_outage():
    """One that left in the move was awaited for ever, as six had been away before it began."""
    absent = {1, 2, 3, 10, 11, 12}
    site, _ = left_in_a_move({9}, absent=absent)
    passes(site, ROLLOUT_PATIENCE + 5)
    assert site.rollout.state == "failed"


def test_switches_whose_links_are_down_are_not_awaited():
    site, _ = left_in_a_move({4})
    site.fabric.upkeep.is_up = False
    passes(site, 5)
    assert site.rollout.state == "failed"


def test_no_switch_is_awaited_where_marks_stay():
    site, absent = Site(build(Q3, ("spread", "none")), build(Q3, ("spread", "link"))), 4
    site.fabric.upkeep = Cabled()
    site.fabric.closed(absent)
    site.start(all_or_none=False).run()


def test_a_move_that_waits_for_a_switch_can_be_undone():
    absent = 4
    old, new = around(build(Q3, ("spread", "none")), absent), around(build(Q3), absent)
    site = Site(old, new)
    site.fabric.upkeep = Cabled()
    site.fabric.closed(absent)
    mover = Mover(site.fabric, Unwatched(), no_history())
    mover.move(loaded(new), True, all_or_none=False)
    site.rollout = mover.rollout
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run(steps=int(2 * LONGEST_WRITE / SETTLE))
    mover.tick()
    assert mover.waits_for == mover.rollout.awaited
    assert [event.text for event in site.fabric.take_events() if event.kind == "move-waits"]
    mover.roll_back(by="alice")
    site.run("failed")
    assert mover.rollout.reason == "undone by alice"
    assert mover.rollout.awaited == "", "the next move would not wait for the end of a repair"
    assert site.holds(site.moving.old)


def loses_in_the_last_round(site, number):
    """A switch loses its connection as soon as it holds the last round, and forwards on."""
    end, last = site.ends[number], site.update.last_round
    site.reach(last)
    before = end.changes
    while end.changes == before:
        sent = site.fabric.send.take()
        assert sent, "it never got the last round"
        for key in sorted({one.key for one in sent}):
            data = b"".join(one.data for one in sent if one.key == key and one.data)
            for _, answer in listed(site.ends[key].take(data), of.HEADER):
                site.fabric.received(key, answer)
    site.fabric.closed(number)


@pytest.mark.parametrize(
    ("old", "new", "round"),
    [("", "spread", 0), ("valiant", "spread", -2), ("spread", "valiant", -2)],
)
def test_undoing_a_move_forgets_no_marks_of_a_switch_that_may_hold_the_last_round(old, new, round):
    """It lost its connection in that round: its neighbours no longer knew what it wrote.

    round: the one that is not undone before it is back; -1 would be the last one.
    """
    absent = 4
    made = [around(build(Q3, (name, "none")) if name else build(Q3), absent) for name in (old, new)]
    site = Site(*made)
    site.fabric.upkeep = Cabled()
    rollout = site.start().rollout
    loses_in_the_last_round(site, absent)
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run("failed", steps=int(2 * ROLLOUT_PATIENCE / SETTLE))
    assert (rollout.state, rollout.round) == ("back", range(site.update.rounds)[round])
    assert rollout.awaited == "n3 (absent), whose links are up"
    site.fabric.connected(absent, absent)
    site.run("failed")
    assert rollout.reason == f"n3 left in round {site.update.rounds}"
    site.settle()
    site.walk()
    assert site.holds(site.moving.old)


LONG_WAYS = ((2, 0), (4, 0), (7, 3))
"""Links without which a move around a switch has a round more."""


@pytest.mark.parametrize("back", [False, True])
def test_a_move_that_is_planned_anew_goes_on_to_await_a_switch(back):
    """It went over the round in which marks are forgotten, as the new plan had other rounds."""
    absent, fewer = 4, not back
    made = [build(Q3, (name, "none")) for name in ("spread", "valiant")]
    short = [around(one, absent) for one in made]
    long = [around(one, absent, LONG_WAYS) for one in made]
    site = Site(*(long if fewer else short))
    site.fabric.upkeep = Cabled()
    if not back:
        site.fabric.closed(absent)
    rollout = site.start(all_or_none=back).rollout
    if back:
        loses_in_the_last_round(site, absent)
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run("failed", steps=100)
    assert rollout.awaited
    replanned = plan(*(short if fewer else long))
    assert replanned.last_round == site.update.last_round + (-1 if fewer else 1)
    rollout.replan(SwitchPrograms(replanned), lambda: None)
    with pytest.raises(pytest.fail.Exception, match="still"):
        site.run("failed", steps=100)
    assert rollout.awaited
    assert rollout.round == replanned.last_round - (1 if back else 2)


@pytest.mark.parametrize("last", [False, True])
def test_the_way_back_waits_for_no_switch_that_never_got_the_last_round(last):
    """It left in the first round, or was left out of a move that somebody undoes in the last."""
    absent = 4
    site = Site(around(build(Q3), absent), around(build(Q3, ("spread", "none")), absent))
    site.fabric.upkeep = Cabled()
    if last:
        site.fabric.closed(absent)
    rollout = site.start(all_or_none=not last).rollout
    site.reach(site.update.last_round if last else 0)
    if last:
        rollout.reason = "for this test"
    else:
        site.fabric.closed(absent)
    site.run("failed")
