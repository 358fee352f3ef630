"""Repairs of many failures: one for all, computed while switches are heard, and tried again."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.targets.openflow import protocol
from compilers.targets.openflow.encoder import Encoder
from controller.settings import Duties
from controller.upkeep import repair_keeper
from tests.controller.makers import loaded
from tests.controller.upkeep import makers
from tests.controller.upkeep.makers import BUILD, CALM, Beside, hold, links_of, tables_for, told

GONE = (1, 4, 6, 9)


def network(monkeypatch, rows=0):
    monkeypatch.setattr(repair_keeper, "ROWS_AT_ONCE", rows)
    beside = Beside()
    net, keeper = makers.network(Duties(patience=5, damping=CALM), start=beside.start)
    told(net)
    return net, keeper, beside


def drained_tables(*vertices):
    none = np.zeros(BUILD.wiring.far.shape, np.bool_)
    aside = np.isin(np.arange(13), vertices)
    return repair_tables(IntactBuild.of(BUILD), none, aside).tables


def left(*vertices):
    return [v for v in range(13) if v not in vertices]


def test_switches_that_are_cut_off_at_once_are_one_repair(monkeypatch):
    net, keeper, _ = network(monkeypatch, rows=1 << 20)
    for vertex in GONE:
        net.sessions.closed(vertex)
        net.now[0] += 0.15
    for _ in range(40):
        net.tick()
    assert keeper.repairs == 1
    assert np.flatnonzero(keeper.drained).tolist() == list(GONE)
    assert not hold(net, drained_tables(*GONE), left(*GONE))
    for vertex in GONE:
        net.sessions.connected(vertex, int(BUILD.wiring.datapath_id[vertex]))
    for _ in range(8):
        net.tick()
    assert keeper.repairs == 2  # when all were read to hold their programs
    assert not hold(net, BUILD.tables)


def test_a_large_repair_is_computed_while_switches_are_heard(monkeypatch):
    net, keeper, beside = network(monkeypatch)
    one, two = links_of()[2], links_of()[17]
    net.cable(*one, False)
    assert len(beside.waiting) == 1
    assert keeper.status()["repairing"]
    assert not hold(net, BUILD.tables)
    net.sessions.received(3, protocol.message(protocol.MessageType.ECHO_REPLY, 0))
    net.cable(*two, False)
    net.tick()
    assert len(beside.waiting) == 1
    assert not hold(net, BUILD.tables)
    beside.finish()
    net.tick()
    assert not hold(net, tables_for(one))
    assert len(beside.waiting) == 1
    beside.finish()
    net.tick()
    assert keeper.repairs == 2
    assert not hold(net, tables_for(one, two))
    assert told(net) == ["link-down", "link-down", "repaired", "repaired"]
    assert not keeper.status()["repairing"]


def test_a_switch_that_comes_back_meanwhile_goes_from_the_tables_that_stand(monkeypatch):
    net, _, beside = network(monkeypatch)
    u, k = links_of()[5]
    net.cable(u, k, False)
    net.sessions.closed(u)
    net.switches[u].forget()
    net.connect(u)
    assert not hold(net, BUILD.tables)
    beside.finish()
    net.tick()
    assert not hold(net, tables_for((u, k)))


def test_a_switch_whose_rows_have_other_numbers_meanwhile_is_read(monkeypatch):
    net, _, beside = network(monkeypatch)
    u, k = links_of()[5]
    net.cable(u, k, False)
    net.sessions.closed(u)
    switch = net.switches[u]
    switch.forget()
    program = net.sessions.current.programs.program(u, 1)
    switch.apply((*program.groups, *program.flows))
    net.connect(u)
    assert net.sessions.present[u].generation == 1
    beside.finish()
    net.tick()
    encoder = Encoder(BUILD).with_tables(tables_for((u, k)))
    after = encoder.program(u, 1)
    assert len(switch.rows) == sum(map(len, after.flows))
    assert len(switch.groups) == sum(map(len, after.groups))
    net.sessions.differences["none"] = 0
    net.sessions.present[u].request_reading()
    net.run()
    assert net.sessions.differences["none"] == 1  # it holds just its program


def test_a_computation_that_fails_is_tried_again_ever_later(monkeypatch):
    """It is told once; other duties go on, and what stands in the status says why it takes long."""
    net, keeper, beside = network(monkeypatch)
    link = links_of()[5]
    net.cable(*link, False)
    waits = []
    for number in range(9):
        beside.fail(MemoryError("no room"))
        if number:
            net.tick()
        else:
            with pytest.raises(MemoryError, match="no room"):
                net.tick()
        said = keeper.status()["repair_failure"]
        assert (said["error"], said["tries"]) == ("MemoryError('no room')", number + 1)
        began = net.now[0]
        while not beside.waiting:
            net.tick()
        waits.append(net.now[0] - began)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    beside.fail(ValueError("another"))
    with pytest.raises(ValueError, match="another"):
        net.tick()
    net.tick(60)
    beside.finish()
    net.tick()
    assert keeper.repairs == 11
    assert not hold(net, tables_for(link))
    assert keeper.status()["repair_failure"] is None
    net.cable(*link, True)
    beside.fail(MemoryError("no room"))
    with pytest.raises(MemoryError, match="no room"):
        net.tick()
    assert keeper.status()["repair_failure"]["again_seconds"] == 1


def test_other_failures_are_repaired_at_once_after_a_computation_that_failed(monkeypatch):
    net, _, beside = network(monkeypatch)
    one, two = links_of()[2], links_of()[17]
    net.cable(*one, False)
    beside.fail(MemoryError("no room"))
    with pytest.raises(MemoryError, match="no room"):
        net.tick()
    net.tick()
    assert not beside.waiting
    net.cable(*two, False)
    beside.finish()
    net.tick()
    assert not hold(net, tables_for(one, two))


def test_a_drain_meanwhile_does_not_delay_a_repair(monkeypatch):
    """It waited for a switch that had just left, like the drain."""
    net, keeper, beside = network(monkeypatch)
    links = links_of()
    net.cable(*links[2], False)
    net.cable(*links[17], False)
    net.sessions.closed(GONE[-1])
    keeper.drain(net.sessions.names[GONE[0]], yield_to_others=beside.finish)
    net.run()
    assert len(beside.waiting) == 1


def test_what_was_computed_for_a_build_that_is_gone_is_not_sent(monkeypatch):
    net, _, beside = network(monkeypatch)
    link = links_of()[5]
    net.cable(*link, False)
    net.sessions.load(loaded(BUILD))
    net.run()
    net.tick()
    net.tick()
    beside.finish()
    net.tick()
    assert not hold(net, tables_for(link))
    net.cable(*link, True)
    beside.finish()
    net.tick()
    beside.finish()
    net.tick()
    assert not hold(net, BUILD.tables)
