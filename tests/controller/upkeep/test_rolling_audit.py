"""The audit against switches that keep what they are told: drift, rows of others, its pace."""

import struct
from dataclasses import replace

import pytest

from compilers.targets.openflow.protocol import MessageType
from controller.state import Overview, State
from controller.upkeep.rolling_audit import RollingAudit
from tests.compilers.fabrics import polarfly_build
from tests.controller.upkeep.makers import network

PERIOD = 13.0


@pytest.fixture
def audited():
    """The 13 switches of ER_3, programmed; each is to be read once in 13 s."""
    build = replace(polarfly_build(3), identity="0123456789abcdef")
    net, keeper = network(build=build)
    net.also.append(RollingAudit(net.sessions, PERIOD, lambda: keeper.change_number).tick)
    net.sessions.take_events()
    return net


def foreign(switch, table, priority):
    """A row of another controller: match all, drop. Its place."""
    mod = struct.pack("!QQBBHHHIIIHH", 0x99, 0, table, 0, 0, 0, priority, 0, 0, 0, 0, 0)
    before = set(switch.rows)
    switch.change(switch.tables, MessageType.FLOW_MOD, mod + struct.pack("!HH4x", 1, 4))
    (place,) = set(switch.rows) - before
    return place


def ages(net):
    return [one.audited for one in State.of(net.sessions).switches]


def kinds(net):
    return [(event.kind, event.node) for event in net.sessions.take_events()]


def wait(net, seconds):
    for _ in range(int(seconds * 4)):
        net.tick()


def test_rows_and_groups_that_were_deleted_come_back_within_a_period(audited):
    switch = audited.switches[5]
    before = dict(switch.rows), dict(switch.groups)
    switch.rows.pop(next(iter(switch.rows)))
    switch.groups.pop(next(iter(switch.groups)))
    wait(audited, PERIOD + 1)
    assert (switch.rows, switch.groups) == before
    assert ("drift", "5") in kinds(audited)
    assert audited.sessions.complete


def test_every_switch_is_read_once_in_a_period_and_says_so(audited):
    for _ in range(3):
        wait(audited, PERIOD)
        assert max(ages(audited)) <= PERIOD + 1
    assert kinds(audited) == []
    health = Overview(lambda: State.of(audited.sessions)).health()
    assert health["oldest_audit"] == max(ages(audited)) <= PERIOD + 1
    assert len(set(ages(audited))) > 6, "they are spread over the period"


def test_rows_of_others_over_ours_are_told_once_and_stay(audited):
    before = dict(audited.switches[2].rows)
    harmless = foreign(audited.switches[2], 9, 7)
    over_all = foreign(audited.switches[3], 0, 60000)
    wait(audited, 2 * PERIOD + 1)
    assert kinds(audited) == [("shadowed", "3")]
    status = State.of(audited.sessions).status
    assert (status["foreign"], status["shadowed"]) == ({"2": 1, "3": 1}, {"3": 1})
    assert Overview(lambda: State.of(audited.sessions)).health()["shadowed"] == 1
    assert audited.switches[2].rows.keys() == {*before, harmless}
    del audited.switches[3].rows[over_all]
    wait(audited, PERIOD + 1)
    assert State.of(audited.sessions).status["shadowed"] == {}


def test_a_repair_is_no_drift(audited):
    """While links fail and come back the audit puts nothing right that is on its way."""
    for link in range(3):
        for up in (False, True):
            audited.cable(0, link, up)
            wait(audited, 3)
    wait(audited, PERIOD)
    assert not [kind for kind, _ in kinds(audited) if kind == "drift"]


def test_a_switch_that_does_not_answer_holds_up_nobody(audited):
    audited.hung.add(4)
    audited.switches[7].forget()
    wait(audited, PERIOD + 2)
    assert audited.switches[7].rows


def test_a_switch_that_garbles_a_reply_is_read_again(audited):
    """The connection ends; the audit does not wait for it ever after."""
    answer = audited.switches[4].report
    audited.switches[4].report = lambda *_: b"\0" * 9
    wait(audited, PERIOD + 1)
    assert ("malformed", "4") in kinds(audited)
    audited.switches[4].report = answer
    audited.connect(4)
    wait(audited, PERIOD + 1)
    assert max(ages(audited)) <= PERIOD + 1
