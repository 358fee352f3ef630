"""Dead links from port states, discovery and lost switches; damping with a clock of the test's."""

from __future__ import annotations

import numpy as np
import pytest

from controller.settings import PENALTY_STEP, Damping
from controller.upkeep.damping import Penalties
from controller.upkeep.link_state import LinkEnds, Links
from inventory.problems import InputError
from tests.compilers.routed import routed


def fabric() -> tuple[Links, LinkEnds]:
    links = Links(routed(q=3).wiring, patience=5)
    for vertex in range(13):
        links.present(vertex, True, 0.0)
    links.settle(0.0)
    return links, links.cables


def kinds(links: Links, now: float) -> list[str]:
    return [news.what for news in links.settle(now)[1]]


def test_links_are_numbered_once_and_know_both_ends() -> None:
    wiring = routed(q=3).wiring
    cables = LinkEnds.of(wiring)
    assert len(cables.ends) == 24
    for number, ((u, k), (v, j)) in enumerate(cables.ends.tolist()):
        assert (wiring.far[u, k], wiring.far[v, j]) == (v, u)
        assert wiring.far_port[u, k] == wiring.port[v, j]
        assert cables.number[u, k] == cables.number[v, j] == number


def test_a_fabric_where_no_link_has_changed_is_not_looked_through() -> None:
    """A controller of 3,783 switches asks it of every switch that describes its ports."""
    links, cables = fabric()
    before = links.dead
    links.ports(4, dict.fromkeys(np.flatnonzero(cables.place[4] >= 0).tolist(), True), 1.0)
    assert links.settle(1.0) == (False, [])
    assert links.dead is before


def test_a_port_that_goes_down_kills_the_link_at_both_ends_until_both_are_up() -> None:
    links, cables = fabric()
    (u, k), (v, j) = cables.ends[7].tolist()
    wiring = routed(q=3).wiring
    ports = (u, int(wiring.port[u, k])), (v, int(wiring.port[v, j]))
    for vertex, port in ports:
        links.port(vertex, port, False, 1.0)
    changed, news = links.settle(1.0)
    assert changed
    assert [(n.what, n.switch, n.link, n.why) for n in news] == [("down", u, k, "port down")]
    assert set(map(tuple, np.argwhere(links.dead))) == {(u, k), (v, j)}
    links.port(*ports[0], True, 2.0)
    assert links.settle(2.0) == (False, [])
    links.port(*ports[1], True, 2.0)
    assert kinds(links, 2.0) == ["up"]
    assert not links.dead.any()


def test_ports_that_a_switch_has_not_are_down_and_host_ports_do_not_matter() -> None:
    links, _ = fabric()
    wiring = routed(q=3).wiring
    links.port(0, int(wiring.host_port[0, 0]), False, 0.0)
    links.port(0, 4000, False, 0.0)
    assert links.settle(0.0) == (False, [])
    here = {int(p): True for p in wiring.port[0] if p}
    del here[1]
    links.ports(0, here, 0.0)
    assert kinds(links, 0.0) == ["down"]
    links.ports(0, here | {1: True}, 0.0)
    assert kinds(links, 0.0) == ["up"]
    links.ports(0, {int(wiring.host_port[0, 0]): True}, 0.0)  # not cabled yet
    assert kinds(links, 0.0) == []


def test_a_link_that_discovery_does_not_see_is_dead() -> None:
    links, _ = fabric()
    unseen = np.zeros(24, np.bool_)
    unseen[3] = True
    links.unseen(unseen, 0.0)
    assert [n.why for n in links.settle(0.0)[1]] == ["not seen"]
    assert links.dead.sum() == 2
    unseen[3] = False
    links.unseen(unseen, 1.0)
    assert kinds(links, 1.0) == ["up"]


def test_a_flapping_link_is_suppressed_and_used_again_when_it_is_calm() -> None:
    links, cables = fabric()
    (u, k), _ = cables.ends[0].tolist()
    port = int(routed(q=3).wiring.port[u, k])
    told = []
    for flap in range(3):
        links.port(u, port, False, float(flap))
        links.port(u, port, True, flap + 0.1)  # within one tick: it counts all the same
        told += kinds(links, flap + 0.2)
    assert told == ["down", "up", "down", "up", "down", "suppressed", "up"]
    assert links.dead.sum() == 2
    wait = links.penalties.wait(0, 2.2)
    assert kinds(links, 2.2 + wait - 0.1) == []
    assert kinds(links, 2.2 + wait + 0.1) == ["reused"]
    assert not links.dead.any()


def test_a_suppressed_link_that_is_down_when_it_is_calm_stays_dead() -> None:
    links, cables = fabric()
    (u, k), _ = cables.ends[0].tolist()
    port = int(routed(q=3).wiring.port[u, k])
    for flap in range(4):
        links.port(u, port, True, float(flap))
        links.port(u, port, False, float(flap))
    links.settle(4.0)
    changed, news = links.settle(100.0)
    assert (changed, [n.what for n in news]) == (False, ["reused"])
    assert links.dead.sum() == 2


def test_penalties_halve_and_have_a_ceiling() -> None:
    damping = Damping(half_life=10, suppress=2500, reuse=750, longest=40)
    assert damping.ceiling == 750 * 16
    penalties = Penalties(1, damping)
    assert not penalties.flap(0, 0.0)
    assert penalties.penalty(10.0, 0) == pytest.approx(PENALTY_STEP / 2)
    for _ in range(100):
        penalties.flap(0, 10.0)
    assert penalties.penalty(10.0, 0) == damping.ceiling
    assert penalties.wait(0, 10.0) == pytest.approx(40)
    assert len(penalties.release(49.9)) == 0
    assert penalties.release(50.1).tolist() == [0]


def test_a_switch_that_is_gone_is_drained_after_a_while_and_comes_back() -> None:
    links, _ = fabric()
    links.present(4, False, 1.0)
    assert links.settle(5.9) == (False, [])
    assert kinds(links, 6.0) == ["drained"]
    assert np.flatnonzero(links.drained).tolist() == [4]
    links.present(4, True, 7.0)
    assert kinds(links, 7.0) == ["back"]


def test_when_most_switches_are_gone_nothing_more_is_drained() -> None:
    links, _ = fabric()
    links.present(0, False, 0.0)
    assert kinds(links, 6.0) == ["drained"]
    for vertex in range(1, 9):
        links.present(vertex, False, 6.0)
    assert links.settle(20.0) == (False, [])
    assert np.flatnonzero(links.drained).tolist() == [0]


def test_switches_that_were_never_there_are_not_lost() -> None:
    links = Links(routed(q=3).wiring)
    links.present(3, False, 0.0)
    assert links.settle(100.0) == (False, [])


@pytest.mark.parametrize(
    "text", ["", "1,2", "15,2200,1000,x", "0,3,2,1", "15,1000,1000,60", "1,inf,2,3", "1,3,2,nan"]
)
def test_damping_that_makes_no_sense_is_one_message(text: str) -> None:
    with pytest.raises(InputError, match=r"--damping: required half-life.*for example 15,2200"):
        Damping.parse(text, "--damping")


def test_damping_as_it_is_written() -> None:
    assert Damping.parse("15,2200,1000,60", "--damping") == Damping()


def test_switches_that_leave_within_a_fifth_of_the_patience_are_drained_together() -> None:
    links, _ = fabric()
    for vertex, at in ((2, 1.0), (5, 1.5), (7, 2.0), (9, 2.1)):
        links.present(vertex, False, at)
    assert links.settle(5.9) == (False, [])
    assert kinds(links, 6.0) == ["drained"] * 3
    assert np.flatnonzero(links.drained).tolist() == [2, 5, 7]
    assert links.settle(6.5) == (False, [])
    assert kinds(links, 7.1) == ["drained"]
    links.present(7, True, 8.0)
    assert kinds(links, 8.0) == ["back"]
    links.present(7, False, 8.5)
    assert links.settle(13.4) == (False, [])
    assert kinds(links, 13.5) == ["drained"]
