"""The keeper over fake switches: what they hold afterwards, what is told, what is not sent."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.wiring.shared_risk import links_and_switches, resolve_name
from controller.settings import Duties
from controller.upkeep.repair_keeper import ROUND_PATIENCE
from inventory.problems import InputError
from tests.compilers.modular import modular
from tests.compilers.routed import routed
from tests.controller.makers import loaded
from tests.controller.upkeep.makers import (
    BUILD,
    CALM,
    hold,
    links_of,
    mods,
    network,
    tables_for,
    told,
    unconnected,
)


@pytest.mark.parametrize("link", links_of()[::8])
def test_a_dead_link_is_repaired_and_undone(link):
    net, keeper = network()
    mods(net)
    told(net)
    net.cable(*link, False)
    assert not hold(net, tables_for(link))
    assert told(net) == ["link-down", "repaired"]
    assert 0 < mods(net) <= 100  # of 780 rows and groups of the fabric
    assert keeper.status()["down"]
    assert keeper.dead.sum() == 2
    net.cable(*link, True)
    assert not hold(net, BUILD.tables)
    assert told(net) == ["link-up", "repaired"]
    assert keeper.status()["down"] == []


def test_links_that_fail_while_tables_change_are_taken_together():
    net, keeper = network()
    one, two, three = links_of()[2], links_of()[9], links_of()[17]
    w = BUILD.wiring
    for u, k in (one, two, three):
        net.port(u, int(w.port[u, k]), False)
    assert keeper.rounds.busy
    net.run()
    assert not hold(net, tables_for(one, two, three))
    assert keeper.repairs == 2
    assert not keeper.rounds.busy


def test_ports_that_were_down_before_are_found_at_connection():
    net, _ = unconnected()
    u, k = links_of()[5]
    net.switches[u].up[int(BUILD.wiring.port[u, k])] = False
    net.connect()
    assert not hold(net, tables_for((u, k)))


def test_a_switch_that_connects_gets_the_tables_that_hold_now():
    net, _ = network()
    u, k = links_of()[5]
    net.cable(u, k, False)
    net.sessions.closed(u)
    net.switches[u].forget()
    net.connect(u)
    assert not hold(net, tables_for((u, k)))
    mods(net)
    net.sessions.present[u].request_reading()
    net.run()
    assert mods(net) == 0


def test_a_reload_keeps_the_repair():
    net, keeper = network()
    link = links_of()[5]
    net.cable(*link, False)
    mods(net)
    net.sessions.load(loaded(BUILD))
    net.run()
    assert mods(net) == 0
    assert not hold(net, tables_for(link))
    net.cable(*link, True)
    assert not hold(net, BUILD.tables)
    assert keeper.status()["down"] == []


def test_a_change_that_is_under_way_ends_with_its_build():
    """What its switches still confirm is no answer to a round of the next build."""
    net, keeper = network()
    net.port(0, int(BUILD.wiring.port[0, 1]), False)
    assert keeper.rounds.busy
    net.sessions.load(loaded(BUILD))
    assert not keeper.rounds.busy
    assert keeper.dead.any(), "the cables are the same, and so is what is known of them"
    net.run()
    net.tick()
    net.tick()
    assert not hold(net, tables_for((0, 1)))


@pytest.mark.parametrize("expects", [False, True])
def test_a_switch_that_only_the_next_build_has_is_expected_once_switches_are(expects):
    """Before that it is this controller that is not ready, or another one that leads."""
    net, keeper = network(Duties(damping=CALM, arrival=10))
    if expects:
        keeper.expect()
    datapath_id = BUILD.wiring.datapath_id.copy()
    datapath_id[7] += 1000  # a switch in the place of another
    other = replace(
        BUILD, wiring=replace(BUILD.wiring, datapath_id=datapath_id), identity="fedcba9876543210"
    )
    net.sessions.load(loaded(other))
    net.run()
    assert not keeper.drained.any()
    for _ in range(12):
        net.tick(1.0)
    assert np.flatnonzero(keeper.drained).tolist() == ([7] if expects else [])


def test_a_switch_that_refuses_is_read_and_put_right():
    net, _ = network()
    u, k = links_of()[5]
    net.switches[u].takes, net.switches[u].faults = 0, 1 << 30
    net.cable(u, k, False)
    assert u in hold(net, tables_for((u, k)))
    assert BUILD.wiring.names[u] in net.sessions.errors
    net.switches[u].takes = 1 << 30
    net.sessions.present[u].request_reading()
    net.run()
    assert not hold(net, tables_for((u, k)))


def test_a_silent_switch_does_not_hold_the_others_up_for_long():
    net, _ = network()
    u, k = links_of()[5]
    v = int(BUILD.wiring.far[u, k])
    net.hung.add(u)
    net.cable(u, k, False)
    assert v in hold(net, tables_for((u, k)))
    for _ in range(6):
        net.tick(ROUND_PATIENCE / 2 + 0.1)
    assert not hold(net, tables_for((u, k)), {v})


def test_without_repair_failures_are_told_only():
    net, _ = network(Duties(repair=False, damping=CALM))
    mods(net)
    told(net)
    net.cable(*links_of()[0], False)
    assert told(net) == ["link-down"]
    assert mods(net) == 0


def test_a_switch_that_has_left_is_drained_and_taken_back():
    net, keeper = network(Duties(patience=2, damping=CALM))
    net.sessions.closed(7)
    net.tick(1)
    assert not keeper.drained.any()
    net.tick(1.5)
    assert np.flatnonzero(keeper.drained).tolist() == [7]
    none = np.zeros(BUILD.wiring.far.shape, np.bool_)
    tables = repair_tables(IntactBuild.of(BUILD), none, np.arange(13) == 7).tables
    assert not hold(net, tables)
    net.connect(7)
    net.tick()
    assert not hold(net, BUILD.tables)


def test_discovery_asks_for_frames_and_goes_without_them():
    net, keeper = network(Duties(discover=True, damping=CALM))
    for _ in range(12):
        net.tick()
    assert all(switch.frames for switch in net.switches)
    rows = {len(switch.rows) for switch in net.switches}
    plain, _ = network()
    assert rows == {1 + len(switch.rows) for switch in plain.switches}
    for _ in range(40):
        net.tick()
    assert keeper.dead.sum() == 0  # nobody carries the frames: switches keep them to themselves


def test_a_controller_that_comes_back_while_a_link_is_dead_sends_nothing():
    """Switches describe their ports before they are read; the ends alone differ."""
    degrees = BUILD.topology.graph.degrees
    link = next((u, k) for u, k in links_of() if degrees[[u, BUILD.wiring.far[u, k]]].min() == 4)
    before, _ = network()
    before.cable(*link, False)
    after, _ = unconnected()
    after.switches[:] = before.switches
    mods(after)
    after.connect()
    assert not hold(after, tables_for(link))
    assert mods(after) == 0


def test_frames_leave_by_a_port_that_was_not_there_when_the_switch_connected():
    """As when a cage is filled, or a switch at the other end of a virtual cable comes back."""
    net, _ = network(Duties(discover=True, damping=CALM))
    u, k = links_of()[5]
    port = int(BUILD.wiring.port[u, k])

    def ports():
        net.switches[u].frames.clear()
        for _ in range(12):
            net.tick()
        return {int.from_bytes(frame[28:32], "big") for frame in net.switches[u].frames}

    assert port in ports()
    net.sessions.closed(u)
    del net.switches[u].up[port]
    net.connect(u)
    assert port not in ports()
    net.port(u, port, True)
    assert port in ports()
    net.port(u, port, True, reason=1)
    assert port not in ports()


MODULES = replace(modular(4, 2), identity="0123456789abcdef")


def drained(keeper):
    wiring = keeper.build.wiring
    links = {
        tuple(sorted((s, int(wiring.far[s, k])))) for s, k in np.argwhere(keeper.dead).tolist()
    }
    return links, np.flatnonzero(keeper.drained).tolist()


def test_a_module_is_drained_and_used_again():
    net, keeper = network(build=MODULES)
    group = resolve_name(MODULES.wiring, MODULES.hardware, "module:n3/m1")
    answer = keeper.drain("module:n3/m1")
    assert answer == {"asked": ["module:n3/m1"], "cut_off_pairs": 0, "repairing": True}
    net.run()
    assert drained(keeper) == ({*group.links}, [])
    dead = links_and_switches(MODULES.wiring.far, [group])[0]
    assert hold(net, repair_tables(IntactBuild.of(MODULES), dead).tables) == []
    assert keeper.status()["asked"] == ["module:n3/m1"]
    assert keeper.status()["down"] == []
    keeper.drain("n7")
    net.run()
    assert drained(keeper) == ({*group.links}, [7])
    with pytest.raises(InputError, match="did you mean"):
        keeper.drain("module:n3/m0", ends=True)
    keeper.drain("n7", ends=True)
    keeper.drain("module:n3/m1", ends=True)
    net.run()
    assert drained(keeper) == (set(), [])
    assert hold(net, MODULES.tables) == []


def test_nothing_that_pairs_need_is_drained():
    net, keeper = network(build=MODULES)
    keeper.drain("module:n3/m0")
    with pytest.raises(InputError, match="n3 without a link"):
        keeper.drain("module:n3/m1")
    net.run()
    assert keeper.status()["asked"] == ["module:n3/m0"]


def test_links_that_are_drained_are_used_where_the_others_fail():
    """Sixteen pairs lost all packets over links that were up, and the status said none."""
    net, keeper = network()
    wiring, switch = BUILD.wiring, 8
    names, (*drains, last) = wiring.names, np.flatnonzero(wiring.far[8] >= 0).tolist()
    for link in drains:
        keeper.drain(f"{names[switch]}-{names[wiring.far[switch, link]]}")
        net.run()
    assert np.flatnonzero(~keeper.dead[switch] & (wiring.far[switch] >= 0)).tolist() == [last]
    net.cable(switch, last, False)
    assert "not-suppressed" in told(net)
    (used,) = np.flatnonzero(~keeper.dead[switch] & (wiring.far[switch] >= 0)).tolist()
    assert used in drains
    assert keeper.status()["cut_off_pairs"] == 0
    # Every other drain was refused: "given n8 without a link".
    elsewhere = next(v for v in range(13) if v != switch and v not in wiring.far[switch])
    assert keeper.drain(names[elsewhere])["cut_off_pairs"] == 0
    keeper.drain(names[elsewhere], ends=True)
    net.run()
    away = next(v for v in range(13) if v != switch and v not in wiring.far[switch])
    net.sessions.closed(away)
    net.cable(switch, used, False)
    now_used = set(np.flatnonzero(~keeper.dead[switch] & (wiring.far[switch] >= 0)).tolist())
    assert now_used == {*drains} - {used}
    dead = [(v, k) for v, k in np.argwhere(keeper.dead).tolist() if v < wiring.far[v, k]]
    assert not hold(net, tables_for(*dead), [v for v in range(13) if v != away])
    net.cable(switch, last, True)
    assert np.flatnonzero(~keeper.dead[switch] & (wiring.far[switch] >= 0)).tolist() == [last]


SMALL = replace(routed(q=2), identity="0123456789abcdef")


@pytest.mark.parametrize(
    ("build", "first", "links"),
    [(SMALL, "drain", 0), (BUILD, "drain", 0), (SMALL, "drain", 1), (BUILD, "leave", 0)],
    ids=["q=2", "q=3", "its-link", "lost-management"],
)
def test_no_drain_cuts_off_the_hosts_of_a_drained_switch(build, first, links):
    """Its neighbours went after it, or a link of its own, and nothing said that it was alone."""
    net, keeper = network(Duties(patience=2, damping=CALM), build=build)
    degree, names = build.topology.graph.degrees, build.wiring.names
    switch = int(np.argmin(degree))
    neighbours = [names[v] for v in build.topology.graph.neighbours(switch).tolist()]
    if first == "drain":
        keeper.drain(names[switch])
    else:
        net.sessions.closed(switch)
        net.tick(3)
    net.run()
    for neighbour in neighbours[:-1]:
        what = f"{names[switch]}-{neighbour}" if links else neighbour
        assert keeper.drain(what)["cut_off_pairs"] == 0
        net.run()
    last = neighbours[-1]
    for what in (last, f"{names[switch]}-{last}"):
        with pytest.raises(InputError, match=f"{names[switch]} without a link"):
            keeper.drain(what)
    assert keeper.status()["cut_off_pairs"] == 0


def test_a_switch_that_has_left_keeps_a_way_to_the_hosts_of_a_drained_one():
    net, keeper = network(Duties(patience=2, damping=CALM), build=SMALL)
    switch = int(np.argmin(SMALL.topology.graph.degrees))
    one, other = SMALL.topology.graph.neighbours(switch).tolist()
    for vertex in (switch, one):
        keeper.drain(SMALL.wiring.names[vertex])
        net.run()
    net.sessions.closed(other)
    net.tick(3)
    assert sorted(drained(keeper)[1]) == sorted((switch, one))
    assert "not-drained" in told(net)


def test_the_next_process_drains_the_same():
    net, keeper = network(build=MODULES)
    for name in ("module:n3/m1", "n7"):
        keeper.drain(name)
    net.run()
    known = json.loads(json.dumps(keeper.links_record()))
    _, other = unconnected(build=MODULES)
    other.take_over(known)
    assert drained(other) == drained(keeper)
    known["asked"].append(["module:gone/m1"])
    other.take_over(known)
    asked = ["module:n3/m1", "n7", "module:gone/m1"]
    assert other.status()["asked"] == asked, "a build may have the last one again"
    assert other.drain(asked[2], ends=True)["asked"] == asked[:2]
