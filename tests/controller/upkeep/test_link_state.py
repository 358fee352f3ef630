"""Dead links from port states, discovery and lost switches; damping with a clock of the test's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compilers.wiring.shared_risk import links_and_switches, resolve_name
from compilers.wiring.wiring import Wiring
from controller.settings import PENALTY_STEP, Damping, Duties
from controller.upkeep.discovery import LinkEnds, LinkSightings
from controller.upkeep.flap_damping import Penalties
from controller.upkeep.link_state import DOWN, Links
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.compilers.wiring.makers import damaged, missing


def fabric() -> tuple[Links, LinkEnds]:
    links = Links(routed(q=3).wiring)
    for vertex in range(13):
        links.connected(vertex, 0.0)
    links.update(0.0)
    return links, links.cables


def kinds(links: Links, now: float) -> list[str]:
    return [event.kind for event in links.update(now)[1]]


def fit(links: Links, vertex: int) -> None:
    """It was read to hold its program, and its turn came."""
    links.program_held(vertex)
    links.return_switches()


def test_a_port_that_goes_down_kills_the_link_at_both_ends_until_both_are_up() -> None:
    links, cables = fabric()
    (u, k), (v, j) = cables.ends[7].tolist()
    wiring = routed(q=3).wiring
    ports = (u, int(wiring.port[u, k])), (v, int(wiring.port[v, j]))
    for vertex, port in ports:
        links.set_port(vertex, port, DOWN, 1.0)
    changed, news = links.update(1.0)
    assert changed
    assert [(e.kind, e.switch, e.port, e.reason) for e in news] == [
        ("link-down", wiring.names[u], wiring.port_name(*ports[0]), "port down")
    ]
    assert set(map(tuple, np.argwhere(links.dead))) == {(u, k), (v, j)}
    links.set_port(*ports[0], "", 2.0)
    assert links.update(2.0) == (False, [])
    links.set_port(*ports[1], "", 2.0)
    assert kinds(links, 2.0) == ["link-up"]
    assert not links.dead.any()


def test_ports_that_a_switch_has_not_are_down_and_host_ports_do_not_matter() -> None:
    links, _ = fabric()
    wiring = routed(q=3).wiring
    links.set_port(0, int(wiring.host_port[0, 0]), DOWN, 0.0)
    links.set_port(0, 4000, DOWN, 0.0)
    assert links.update(0.0) == (False, [])
    links.set_ports(0, {int(wiring.host_port[0, 0]): ""}, 0.0)  # not cabled yet
    assert kinds(links, 0.0) == []
    here = {int(p): "" for p in wiring.port[0] if p}
    del here[1]
    links.set_ports(0, here, 0.0)
    assert kinds(links, 0.0) == ["link-down"]
    links.set_ports(0, here | {1: ""}, 0.0)
    assert kinds(links, 0.0) == ["link-up"]


def test_a_link_that_is_dead_is_not_said_to_stay_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when others turn silent after it, and one cause may be behind all."""
    links = Links(routed(q=3).wiring, Duties(discover=True))
    one, none = np.arange(24) == 3, np.zeros(24, np.bool_)
    monkeypatch.setattr(links.discovery, "sight", lambda *_: LinkSightings(one, none, none))
    links.evaluate(1.0)
    assert kinds(links, 1.0) == ["link-down"]
    monkeypatch.setattr(links.discovery, "sight", lambda *_: LinkSightings(none, none, one))
    links.evaluate(2.5)
    assert kinds(links, 2.5) == []
    assert links.status()["doubtful"] == []


def test_a_link_that_discovery_does_not_see_is_dead() -> None:
    links, _ = fabric()
    unseen = np.zeros(24, np.bool_)
    unseen[3] = True
    links.update_seen(unseen, ~unseen, 0.0)
    assert [event.text for event in links.update(0.0)[1]] == ["not seen"]
    assert links.dead.sum() == 2
    unseen[3] = False
    links.update_seen(unseen, unseen, 1.0)
    assert kinds(links, 1.0) == [], "it cannot tell"
    links.update_seen(unseen, ~unseen, 1.0)
    assert kinds(links, 1.0) == ["link-up"]


def test_a_flapping_link_is_suppressed_and_used_again_when_it_is_calm() -> None:
    links, cables = fabric()
    (u, k), _ = cables.ends[0].tolist()
    port = int(routed(q=3).wiring.port[u, k])
    told = []
    for flap in range(3):
        links.set_port(u, port, DOWN, float(flap))
        links.set_port(u, port, "", flap + 0.1)  # within one tick: it counts all the same
        told += kinds(links, flap + 0.2)
    assert told == [
        "link-down",
        "link-up",
        "link-down",
        "link-up",
        "link-down",
        "suppressed",
        "link-up",
    ]
    assert links.dead.sum() == 2
    wait = links.link_penalties.wait(0, 2.2)
    assert kinds(links, 2.2 + wait - 0.1) == []
    assert kinds(links, 2.2 + wait + 0.1) == ["reused"]
    assert not links.dead.any()


def test_a_switch_that_comes_back_without_ports_carries_nothing() -> None:
    """Its only line card is dead: it was taken for one that is not cabled yet, and got transit."""
    links, _ = fabric()
    wiring, switch = routed(q=3).wiring, 5
    ports = wiring.port[switch, wiring.far[switch] >= 0].tolist()
    links.set_ports(switch, {}, 0.0)
    links.update(0.0)
    assert not links.dead.any(), "not cabled yet"
    links.set_ports(switch, dict.fromkeys(ports, ""), 1.0)
    links.set_ports(switch, {}, 2.0)
    links.update(2.0)
    assert (~links.dead[switch] & (wiring.far[switch] >= 0)).sum() == 0


def test_damping_cuts_no_switch_off_whose_links_are_up() -> None:
    """All links of a switch flapped three times, as when its line card starts: it was cut off for
    21 s more, 1,468 of 1,500 packets of its own pairs lost.
    """
    links, cables = fabric()
    wiring, switch = routed(q=3).wiring, 5
    ports = wiring.port[switch, wiring.far[switch] >= 0].tolist()
    for flap in range(3):
        for fault in (DOWN, ""):
            for port in ports:
                links.set_port(switch, port, fault, float(flap))
            told = links.update(float(flap))[1]
    assert (~links.dead[switch]).sum() == 1
    kept = [event for event in told if event.kind == "not-suppressed"]
    assert [event.links for event in kept] == [1]
    assert len(links.status()["suppressed"]) == len(ports) - 1
    links.set_port(switch, int(wiring.port[switch, ~links.dead[switch]][0]), DOWN, 3.0)
    links.update(3.0)
    assert (~links.dead[switch]).sum() == 1, "another one, as that is down"
    links.update(200.0)
    assert len(cables.ends) * 2 - 2 == ((wiring.far >= 0) & ~links.dead).sum()


def test_a_link_between_halves_that_flaps_is_used_if_the_only_other_way_is_drained() -> None:
    links, _ = fabric()
    wiring, switch = routed(q=3).wiring, 5
    ports = wiring.port[switch, wiring.far[switch] >= 0].tolist()
    for flap in range(3):
        for fault in (DOWN, ""):
            for port in ports[1:]:
                links.set_port(switch, port, fault, float(flap))
            links.update(float(flap))
    assert (~links.dead[switch]).sum() == 1, "the calm one is enough"
    links.drain({"far": resolve_name(wiring, None, wiring.names[wiring.far[switch, 0]])})
    links.update(3.0)
    links.update(3.0)
    assert (~links.dead[switch]).sum() == 2


def cut(links: Links, switch: int, ends: list[int], fault: str = DOWN, now: float = 0.0) -> None:
    """Set the fault of a switch's links to these neighbours."""
    wiring = links.wiring
    for end in ends:
        (link,) = np.flatnonzero(wiring.far[switch] == end).tolist()
        links.set_port(switch, int(wiring.port[switch, link]), fault, now)


def neighbours(links: Links, switch: int) -> list[int]:
    near = links.wiring.far[switch]
    return [int(end) for end in near if end >= 0]


@pytest.mark.parametrize("avoided", ["drained", "flapping"])
def test_links_that_are_up_are_used_if_the_only_other_neighbour_leaves(avoided: str) -> None:
    """Link and switch each waited for the other: the switch kept its transit, without rows."""
    links, _ = fabric()
    switch, names = 8, links.wiring.names
    *near, last = neighbours(links, switch)
    for flap in range(4 * (avoided == "flapping")):
        cut(links, switch, near, now=0.1 * flap)
        cut(links, switch, near, "", 0.1 * flap)
    if avoided == "drained":
        words = [f"{names[switch]}-{names[end]}" for end in near]
        links.drain({word: resolve_name(links.wiring, None, word) for word in words})
    links.update(0.5)
    used = ~links.dead[switch] & (links.wiring.far[switch] >= 0)
    assert links.wiring.far[switch, used].tolist() == [last]
    links.left(last, 0.5)
    told = kinds(links, 6.0)
    assert np.flatnonzero(links.drained).tolist() == [last]
    assert "not-suppressed" in told
    used = ~links.dead[switch] & (links.wiring.far[switch] >= 0)
    assert used.sum() == 2, "one of them, and that of the switch that has left, for its own hosts"
    links.connected(last, 7.0)
    fit(links, last)
    assert kinds(links, 7.0) == ["back"]
    used = ~links.dead[switch] & (links.wiring.far[switch] >= 0)
    assert links.wiring.far[switch, used].tolist() == [last]


def test_a_drained_switch_is_used_again_as_long_as_others_have_no_path_without_it() -> None:
    """It had lost its management only. Links failed after it was drained, and 21 pairs lost all
    packets for good; the other way round they lost none.
    """
    links, _ = fabric()
    switch = 8
    *near, last = neighbours(links, switch)
    links.left(last, 0.0)
    assert kinds(links, 6.0) == ["drained"]
    cut(links, switch, near)
    told = links.update(7.0)[1]
    assert [event.kind for event in told] == ["link-down"] * len(near) + ["not-drained"]
    assert not links.drained.any()
    record = links.as_record(7.0, 1000.0)
    other = Links(links.wiring)
    other.take_over(record, 0.0, 1000.0)
    assert not other.drained.any(), "the next process uses it, too"
    cut(other, switch, near[:1], "")
    other.update(1.0)
    assert np.flatnonzero(other.drained).tolist() == [last]
    cut(links, switch, near[:1], "", 8.0)
    assert kinds(links, 8.0) == ["link-up", "drained"]
    cut(links, switch, near[:1], DOWN, 9.0)
    assert kinds(links, 9.0) == ["link-down", "not-drained"]
    links.connected(last, 9.0)
    fit(links, last)
    assert kinds(links, 9.0) == ["back"]


def test_a_switch_without_its_program_takes_the_place_of_no_drained_one() -> None:
    links, _ = fabric()
    switch = 8
    *near, last = neighbours(links, switch)
    name = links.wiring.names[near[0]]
    links.drain({name: resolve_name(links.wiring, None, name)})
    links.program_lost(last, 0.0)
    cut(links, switch, near[1:])
    links.update(1.0)
    assert np.flatnonzero(links.drained).tolist() == [last]
    cut(links, switch, near[:1])
    assert "not-drained" in kinds(links, 2.0), "it may forward all the same"
    assert np.flatnonzero(links.drained).tolist() == near[:1]


def paths(
    far: NDArray[np.int32], live: NDArray[np.bool_], passes: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """bool[S, S]: whether a path joins two switches."""
    arcs, (near, link) = np.zeros((len(far),) * 2, np.int64), np.nonzero(live)
    arcs[near, far[near, link]] = 1
    reached = np.eye(len(far), dtype=np.int64)
    reached |= arcs
    while True:
        longer = (reached * passes) @ arcs + reached > 0
        if (longer == reached).all():
            return longer
        reached = longer.astype(np.int64)


def happen(links: Links, chance: np.random.Generator, state: Happened, now: float) -> None:
    """Let one thing happen to a link or a switch, which may be any."""
    wiring, vertex = links.wiring, int(chance.integers(len(links.wiring.far)))
    number = int(chance.integers(len(links.cables.ends)))
    (u, k), (v, j) = links.cables.ends[number].tolist()
    port, names = int(wiring.port[u, k]), wiring.names
    words = {"drain-link": f"{names[u]}-{names[v]}", "drain-node": names[vertex]}
    what = str(
        chance.choice(
            ["cut", "cut", "mend", "flap", "leave", "leave", "lose", "back", *words, "end"]
        )
    )
    if what in ("cut", "mend"):
        state.down[[u, v], [k, j]] = what == "cut"
        links.set_port(u, port, DOWN if what == "cut" else "", now)
    elif what == "flap" and not state.down[u, k]:
        for fault in (DOWN, "") * 4:
            links.set_port(u, port, fault, now)
    elif what in words:
        group = resolve_name(wiring, None, words[what])
        links.drain({**links.requested, words[what]: group})
    elif what == "end" and links.requested:
        name = str(chance.choice([*links.requested]))
        links.drain({key: group for key, group in links.requested.items() if key != name})
    elif what == "leave":
        state.away.add(vertex)
        links.left(vertex, now)
    elif what == "lose" and vertex not in state.away:
        state.unfit.add(vertex)
        links.program_lost(vertex, now)
    elif what == "back":
        state.away.discard(vertex)
        state.unfit.discard(vertex)
        links.connected(vertex, now)
        fit(links, vertex)


@dataclass
class Happened:
    """What has happened to a fabric."""

    down: NDArray[np.bool_]
    """bool[S, K], the links that were cut."""
    away: set[int] = field(default_factory=set)
    """The switches that have left."""
    unfit: set[int] = field(default_factory=set)
    """The switches that have lost their program."""


def test_pairs_have_a_path_unless_broken_things_alone_cut_them_off() -> None:
    spared = Counter[str]()
    shapes: list[dict[str, Any]] = [{"q": 2}, {"q": 3}, {"family": "oft", "q": 2}]
    for shape in shapes:
        wiring = routed(**shape).wiring
        for case in range(5):
            _check_random_events(wiring, np.random.default_rng(case), spared)
    assert spared["switches"]
    assert spared["links"]


def _check_random_events(wiring: Wiring, chance: np.random.Generator, spared: Counter[str]) -> None:
    """Let forty things happen to a fabric, and judge what is used after each.

    Args:
        wiring: of the fabric.
        chance: draws what happens.
        spared: counts the avoided links and switches that were used, and were needed.
    """
    far, order = wiring.far, len(wiring.far)
    hosts = np.count_nonzero(wiring.host_port, axis=1) > 0
    pairs = np.outer(hosts, hosts)
    links, now = Links(wiring), 0.0
    state = Happened(np.zeros(far.shape, np.bool_))
    for vertex in range(order):
        links.connected(vertex, now)
    for _ in range(40):
        happen(links, chance, state, now)
        now += float(chance.choice((0.0, 0.5, 6.0)))
        links.update(now)
        assert not links.update(now)[0], "nothing is left to be decided"
        up, used = (far >= 0) & ~state.down, (far >= 0) & ~links.dead
        drained, fits = links.drained, ~np.isin(np.arange(order), [*state.unfit])
        has_path = paths(far, used, ~drained) & pairs
        assert (has_path == paths(far, up, np.ones(order, np.bool_)) & pairs).all()
        if 2 * len(state.away | state.unfit) > order:
            continue  # these are not drained
        assert (paths(far, used, ~drained & fits) & pairs == paths(far, up, fits) & pairs).all()
        if state.unfit:
            continue
        avoided = links.as_record(now, now).get("drained", [])
        for vertex in [wiring.names.index(name) for (name,) in avoided]:
            if not drained[vertex]:
                spared["switches"] += 1
                less = ~drained & (np.arange(order) != vertex)
                assert (paths(far, up, less) & pairs != has_path).any()
        numbers = links.cables.number
        suppressed = np.append(links.link_penalties.suppressed, False)[numbers]
        merely = suppressed | links_and_switches(far, links.requested.values())[0]
        # One without hosts may be joined, although no pair needs it.
        merely &= hosts[:, None] & hosts[far]
        for number in np.unique(numbers[merely & used]).tolist():
            spared["links"] += 1
            less = used & (numbers != number)
            assert (paths(far, less, ~drained) & pairs != has_path).any()


@pytest.mark.parametrize("order", ["it comes first", "it comes last"])
def test_a_switch_without_ports_at_cables_that_work_has_no_links(order: str) -> None:
    """Its card had died while no controller ran: packets went into it for good (832 lost)."""
    wiring = routed(q=3).wiring
    links, without = Links(wiring), 5
    vertices = [v for v in range(13) if v != without]
    vertices = [without, *vertices] if order == "it comes first" else [*vertices, without]
    for vertex in vertices:
        numbers = wiring.port[vertex][wiring.far[vertex] >= 0].tolist()
        links.connected(vertex, 0.0)
        links.set_ports(vertex, {} if vertex == without else dict.fromkeys(numbers, ""), 0.0)
    links.update(0.0)
    assert (links.dead[without] == (wiring.far[without] >= 0)).all()
    assert links.dead.sum() == 2 * (wiring.far[without] >= 0).sum()


def test_a_suppressed_link_that_is_down_when_it_is_calm_stays_dead() -> None:
    links, cables = fabric()
    (u, k), _ = cables.ends[0].tolist()
    port = int(routed(q=3).wiring.port[u, k])
    for flap in range(4):
        links.set_port(u, port, "", float(flap))
        links.set_port(u, port, DOWN, float(flap))
    links.update(4.0)
    changed, news = links.update(100.0)
    assert (changed, [event.kind for event in news]) == (False, ["reused"])
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


def test_what_another_clock_said_is_held_no_longer_than_the_ceiling() -> None:
    """A controller whose clock is hours ahead wrote it, or the clock has gone back."""
    penalties = Penalties(2, Damping(half_life=10, suppress=2500, reuse=750, longest=40))
    penalties.hold(0, 18_000.0, 0.0)
    penalties.hold(1, -18_000.0, 0.0)
    assert penalties.wait(0, 0.0) == pytest.approx(40)
    assert penalties.release(0.0).tolist() == [1]
    assert penalties.release(40.1).tolist() == [0]


def test_a_switch_that_is_gone_is_drained_after_a_while_and_comes_back() -> None:
    links, _ = fabric()
    links.left(4, 1.0)
    assert links.update(5.9) == (False, [])
    assert kinds(links, 6.0) == ["drained"]
    assert np.flatnonzero(links.drained).tolist() == [4]
    links.connected(4, 7.0)
    assert links.update(7.0) == (False, []), "it has not shown what it holds"
    fit(links, 4)
    assert kinds(links, 7.0) == ["back"]


def test_a_switch_whose_neighbours_see_their_ports_down_is_not_cabled() -> None:
    """Nobody sees the link between two neighbours without power: a move waited for ever."""
    links, _ = fabric()
    other = neighbours(links, 4)[0]
    for vertex in (4, other):
        links.left(vertex, 1.0)
        assert links.is_cabled(vertex)
    for vertex in (4, other):
        for end in sorted({*neighbours(links, vertex)} - {4, other}):
            assert links.is_cabled(vertex)
            cut(links, end, [vertex])
        assert not links.is_cabled(vertex)


def test_a_switch_is_not_cabled_if_no_neighbour_may_send_it_packets() -> None:
    """It counted as cabled, as nobody was there to report its ports."""
    links, _ = fabric()
    dark = [4, *neighbours(links, 4)]
    for vertex in dark:
        links.left(vertex, 1.0)
    for vertex in dark[1:]:
        assert links.is_cabled(4)
        for end in sorted({*neighbours(links, vertex)} - {*dark}):
            cut(links, end, [vertex])
    assert not links.is_cabled(4)


def test_what_a_switch_said_of_its_ports_before_it_left_may_be_old() -> None:
    links, _ = fabric()
    cut(links, 4, neighbours(links, 4))
    links.left(4, 1.0)
    assert links.is_cabled(4), "the ports at the far ends are up"


def test_switches_may_forward_while_none_is_connected() -> None:
    links, _ = fabric()
    for vertex in range(13):
        links.left(vertex, 1.0)
    assert links.is_cabled(4)


def test_switches_are_not_drained_if_others_would_have_no_path() -> None:
    """All neighbours of a switch without management: it was cut off, and all of them forwarded."""
    links, _ = fabric()
    near = routed(q=3).wiring.far[0]
    near = near[near >= 0].tolist()
    for vertex in near:
        links.left(vertex, 0.0)
    events = links.update(links.patience + 1.0)[1]
    assert [event.kind for event in events].count("drained") == len(near) - 1
    kept = [event for event in events if event.kind == "not-drained"]
    assert [event.switches for event in kept] == [1]
    assert links.update(links.patience + 2.0) == (False, [])
    dead = np.argwhere(routed(q=3).wiring.far == near[-1])
    for vertex, link in dead.tolist():  # it is dead indeed: its neighbours have lost their links
        links.set_port(
            vertex, int(routed(q=3).wiring.port[vertex, link]), DOWN, links.patience + 3.0
        )
    assert "drained" in kinds(links, links.patience + 3.0)


def test_when_most_switches_are_gone_nothing_more_is_drained() -> None:
    links, _ = fabric()
    links.left(0, 0.0)
    assert kinds(links, 6.0) == ["drained"]
    for vertex in range(1, 9):
        links.left(vertex, 6.0)
    assert links.update(20.0) == (False, [])
    assert np.flatnonzero(links.drained).tolist() == [0]


def outage(patience: float = 5.0) -> Links:
    """All switches left at 1 s, and are away at 20 s; none is drained."""
    links = Links(routed(q=3).wiring, Duties(patience=patience))
    for vertex in range(13):
        links.connected(vertex, 0.0)
    for vertex in range(13):
        links.left(vertex, 1.0)
    assert [kinds(links, second) for second in range(1, 21)] == [[]] * 20
    return links


def back(links: Links, vertices: Iterable[int], now: float) -> None:
    """These switches return and are read."""
    for vertex in vertices:
        links.connected(vertex, now)
        fit(links, vertex)


def drains(links: Links, seconds: Iterable[int]) -> dict[int, list[int]]:
    """The switches that come to be drained, by the second in which they do."""
    drained, result = links.drained, {}
    for second in seconds:
        links.update(second)
        if (links.drained & ~drained).any():
            result[second] = np.flatnonzero(links.drained & ~drained).tolist()
        drained = links.drained
    return result


def test_after_an_outage_switches_may_return_in_turn() -> None:
    """Those still away were drained as soon as most were back, and the drain could wait for no
    others: 48 of 15,056 packets of a fabric with dead links were lost. Then they were drained 5 s
    after most were back: 104 of some 35,000 packets were lost in the middle of a move.
    """
    links = outage()
    back(links, range(8), 20.0)
    assert drains(links, range(20, 33)) == {}
    back(links, range(8, 10), 33.0)
    assert drains(links, range(33, 43)) == {}
    back(links, range(10, 13), 43.0)
    assert drains(links, range(43, 100)) == {}


@pytest.mark.parametrize(("patience", "wait"), [(0.0, 15), (5.0, 15), (20.0, 20)])
def test_a_switch_that_does_not_return_after_an_outage_is_drained(
    patience: float, wait: int
) -> None:
    links = outage(patience)
    back(links, range(1, 13), 20.0)
    assert drains(links, range(20, 100)) == {20 + wait: [0]}


@pytest.mark.parametrize(("patience", "wait"), [(5.0, 25), (40.0, 40)])
def test_returns_that_go_on_do_not_keep_a_missing_switch_in_use(patience: float, wait: int) -> None:
    links, step = outage(patience), wait // 5
    back(links, range(7), 20.0)
    for number, vertex in enumerate(range(7, 11)):
        start = 20 + number * step
        assert drains(links, range(start, start + step)) == {}
        back(links, [vertex], start + step)
    drained = drains(links, range(20 + 4 * step, 120))
    assert list(drained.values()) == [[11, 12]]
    assert [*drained] == pytest.approx([20 + wait], abs=1)


def test_a_switch_that_is_read_slowly_after_an_outage_is_not_drained() -> None:
    """One whose answers came 3 s late was drained: 171 of 74,120 packets were lost."""
    links = outage()
    links.connected(0, 20.0)
    back(links, range(1, 13), 20.0)
    assert drains(links, range(20, 43)) == {}
    fit(links, 0)
    assert drains(links, range(43, 100)) == {}


def test_a_switch_that_is_being_read_as_the_next_outage_begins_is_awaited_further() -> None:
    links = outage()
    links.connected(0, 20.0)
    back(links, range(1, 13), 20.0)
    assert drains(links, range(20, 24)) == {}
    for vertex in range(1, 13):
        links.left(vertex, 24.0)
    assert drains(links, range(24, 40)) == {}
    back(links, range(1, 13), 40.0)
    assert drains(links, range(40, 60)) == {}


def test_switches_that_were_read_in_a_move_keep_no_missing_one_in_use() -> None:
    """What was read counts after the move alone."""
    links = outage()
    for vertex in range(1, 13):
        links.connected(vertex, 20.0)
        links.program_held(vertex)
    assert drains(links, range(20, 60)) == {35: [0]}


def test_a_switch_that_is_never_read_after_an_outage_is_drained_and_keeps_no_other() -> None:
    links = outage()
    links.connected(0, 20.0)
    back(links, range(2, 13), 20.0)
    assert drains(links, range(20, 100)) == {45: [0, 1]}


def test_a_switch_that_was_read_to_lack_its_program_after_an_outage_is_drained_at_once() -> None:
    links = outage()
    links.connected(0, 20.0)
    back(links, range(1, 13), 20.0)
    links.program_lost(0, 20.0)
    assert kinds(links, 20.0) == ["drained"]


@pytest.mark.parametrize("flaps", [False, True])
def test_a_switch_that_leaves_after_its_return_has_no_more_time_than_before(flaps: bool) -> None:
    """It waited for others that returned slowly, or came and went."""
    links = outage()
    links.connected(0, 20.0)
    back(links, range(1, 13), 20.0)
    if flaps:
        fit(links, 0)
        for second in range(20, 60):
            links.left(0, second)
            links.connected(0, second + 0.5)
            fit(links, 0)
            links.update(second)
    now = 60 if flaps else 22
    links.update(now)
    links.left(5, now)
    drained_at = [when for when, which in drains(links, range(now, now + 10)).items() if 5 in which]
    assert drained_at in ([now + 4], [now + 5]), "by a fifth of the patience earlier with others"


def test_outages_that_come_again_and_again_do_not_keep_a_missing_switch_in_use() -> None:
    """They put its drain off for ever."""
    links = outage()
    drained: dict[int, list[int]] = {}
    for start in range(20, 140, 6):
        back(links, range(1, 13), start)
        drained |= drains(links, range(start, start + 3))
        for vertex in range(1, 13):
            links.left(vertex, start + 3)
        drained |= drains(links, range(start + 3, start + 6))
    assert list(drained.values()) == [[0]]
    assert 20 + 25 < min(drained) <= 20 + 3 * 25


def test_what_a_switch_missed_in_one_outage_does_not_count_in_the_next() -> None:
    links = outage()
    back(links, range(8), 20.0)
    assert drains(links, range(20, 33)) == {}
    back(links, range(8, 13), 33.0)
    assert drains(links, range(33, 60)) == {}
    for vertex in range(13):
        links.left(vertex, 60.0)
    assert drains(links, range(60, 80)) == {}
    back(links, range(8), 80.0)
    assert drains(links, range(80, 94)) == {}


def test_an_outage_that_no_update_sees_counts() -> None:
    """In a move there may be no update for seconds."""
    links, _ = fabric()
    for vertex in range(13):
        links.left(vertex, 1.0)
    back(links, range(8), 8.0)
    assert drains(links, range(8, 20)) == {}


def test_a_switch_that_was_read_in_a_move_is_not_drained_before_its_turn() -> None:
    """What was read counted after the move alone, and the drain came before."""
    links, _ = fabric()
    links.left(4, 1.0)
    links.connected(4, 2.0)
    links.program_held(4)
    assert drains(links, range(2, 20)) == {}


def test_switches_that_leave_with_most_others_do_not_flap() -> None:
    """The first of each outage counted, and were drained after the third."""
    links, _ = fabric()
    for start in (10, 30, 50, 70):
        for vertex in range(13):
            links.left(vertex, start + vertex / 10)
            links.update(start + vertex / 10)
        back(links, range(13), start + 5.0)
        assert drains(links, range(start + 5, start + 20)) == {}
    assert not links.drained.any()


@pytest.mark.parametrize("follows", [False, True], ids=["start", "takeover"])
def test_switches_that_connect_late_are_given_time_in_turn(follows: bool) -> None:
    """An outage at the start: most connect after the time that they have for it."""
    links = Links(routed(q=3).wiring)
    start = 1000 if follows else 0
    for second in range(start):
        links.update(second)
    links.expect(start)
    assert drains(links, range(start, start + 40)) == {}
    for number in range(13):
        now = start + 40 + 3 * number
        back(links, [number], now)
        assert drains(links, range(now, now + 3)) == {}


def test_switches_that_were_never_there_are_not_lost() -> None:
    links = Links(routed(q=3).wiring)
    links.left(3, 0.0)
    assert links.update(100.0) == (False, [])


@pytest.mark.parametrize("text", ["", "1,2", "15,2200,1000,x", "15,1000,1000,60", "1,inf,2,3"])
def test_damping_that_makes_no_sense_is_one_message(text: str) -> None:
    with pytest.raises(InputError, match=r"--damping: required half-life.*for example 15,2200"):
        Damping.parse(text, "--damping")


def test_switches_that_leave_within_a_fifth_of_the_patience_are_drained_together() -> None:
    links, _ = fabric()
    for vertex, at in ((2, 1.0), (5, 1.5), (7, 2.0), (9, 2.1)):
        links.left(vertex, at)
    assert links.update(5.9) == (False, [])
    assert kinds(links, 6.0) == ["drained"] * 3
    assert np.flatnonzero(links.drained).tolist() == [2, 5, 7]
    assert links.update(6.5) == (False, [])
    assert kinds(links, 7.1) == ["drained"]
    links.connected(7, 8.0)
    fit(links, 7)
    assert kinds(links, 8.0) == ["back"]
    links.left(7, 8.5)
    assert links.update(13.4) == (False, [])
    assert kinds(links, 13.5) == ["drained"]


def test_a_switch_that_returns_and_does_not_show_its_program_gets_no_transit() -> None:
    links, _ = fabric()
    links.left(4, 1.0)
    links.connected(4, 3.0)
    assert links.update(7.9) == (False, [])
    assert kinds(links, 8.0) == ["drained"]
    fit(links, 4)
    assert kinds(links, 9.0) == ["back"]
    links.program_lost(4, 10.0)
    (news,) = links.update(10.0)[1]
    assert (news.kind, news.text) == ("drained", "does not hold its program")


def test_a_switch_that_reboots_in_a_loop_is_not_used_until_it_is_calm() -> None:
    """3 s up, 6.5 s away: its neighbours' traffic was lost half of the time."""
    links, _ = fabric()
    now, told = 0.0, []
    for _ in range(8):
        links.left(4, now)
        told += links.update(now + 6.4)[1]
        links.connected(4, now + 6.5)
        fit(links, 4)
        told += links.update(now + 6.6)[1]
        now += 9.5
    assert [event.kind for event in told] == ["drained", "back"] * 3 + ["drained"]
    assert kinds(links, now + 100.0) == ["back"]


def test_a_switch_that_never_came_is_gone_and_others_are_not() -> None:
    links = Links(routed(q=3).wiring)
    links.expect(0.0)
    for vertex in range(12):
        links.connected(vertex, 2.0)
    assert links.update(29.9) == (False, [])
    (news,) = links.update(30.0)[1]
    assert (news.kind, news.switch, news.text) == ("drained", "12", "has not connected")
    links.connected(12, 40.0)
    assert links.update(40.0) == (False, [])
    fit(links, 12)
    assert kinds(links, 41.0) == ["back"]


def test_what_was_known_is_taken_over() -> None:
    links, cables = fabric()
    (u, k), _ = cables.ends[0].tolist()
    (v, j), _ = cables.ends[9].tolist()
    port = routed(q=3).wiring.port
    assert links.as_record(0.0, 1000.0) == {}
    for flap in range(4):
        links.set_port(u, int(port[u, k]), "", float(flap))
        links.set_port(u, int(port[u, k]), DOWN, float(flap))
    links.set_port(u, int(port[u, k]), "", 4.0)
    links.set_port(v, int(port[v, j]), DOWN, 4.0)
    links.left(11, 4.0)
    links.update(20.0)
    known = links.as_record(20.0, 1000.0)
    assert known.keys() == {"drained", "down", "links"}
    other = Links(routed(q=3).wiring)
    other.take_over(known, 500.0, 1000.0)
    assert (other.dead == links.dead).all()
    assert np.flatnonzero(other.drained).tolist() == [11]
    assert other.as_record(500.0, 1000.0) == known
    for vertex in range(11):
        other.connected(vertex, 501.0)
    other.set_port(v, int(port[v, j]), "", 501.0)
    assert kinds(other, 501.0) == ["link-up"]
    assert np.flatnonzero(other.drained).tolist() == [11]
    other.connected(11, 502.0)
    assert kinds(other, 502.0) == []
    fit(other, 11)
    assert kinds(other, 503.0) == ["back"]
    assert kinds(other, 600.0) == ["reused"]
    assert not other.dead.any()


def test_switches_that_do_not_hold_their_program_hide_no_switch_that_is_gone() -> None:
    """Six that refused counted as gone: one more that died was taken for a fault of our own."""
    links, _ = fabric()
    unfit = [0, 1, 2, 4, 5, 7]  # without them and 9, all others have a path
    for vertex in unfit:
        links.program_lost(vertex, 1.0)
    links.left(9, 1.0)
    links.update(7.0)
    assert np.flatnonzero(links.drained).tolist() == [*unfit, 9]


@pytest.mark.parametrize("cause", ["gone", "unfit", "flaps"])
def test_a_fault_of_most_switches_is_taken_for_our_own(cause: str) -> None:
    links, _ = fabric()
    for vertex in range(7):
        if cause == "unfit":
            links.program_lost(vertex, 1.0)
        for _ in range({"gone": 1, "unfit": 0, "flaps": 3}[cause]):
            links.left(vertex, 1.0)
            if cause == "flaps":
                links.connected(vertex, 1.0)
                fit(links, vertex)
    assert links.update(9.0) == (False, [])


def test_a_switch_that_flaps_among_most_is_drained_if_it_does_not_hold_its_program() -> None:
    """It kept its transit for as long as most flapped."""
    links, _ = fabric()
    for vertex in range(8):
        for _ in range(4):
            links.left(vertex, 1.0)
            links.connected(vertex, 1.0)
        fit(links, vertex)
    links.update(1.0)
    assert links.switch_penalties.suppressed.sum() == 8
    assert not links.drained.any()
    links.program_lost(3, 2.0)
    links.update(2.0)
    assert np.flatnonzero(links.drained).tolist() == [3]


PLANNED = [0, 2, 7, 9, 10, 11]


def half_planned() -> tuple[Links, list[int]]:
    """The links between the nodes that are installed, and these: all are expected and there."""
    links = Links(damaged(routed(q=3), missing(routed(q=3).wiring, PLANNED, [])).wiring)
    there = sorted({*range(13)}.difference(PLANNED))
    links.expect(0.0)
    for vertex in there:
        links.connected(vertex, 1.0)
        fit(links, vertex)
    return links, there


@pytest.mark.parametrize("gone", [1, 3, 4])
def test_planned_nodes_are_not_absent_and_count_in_no_majority(gone: int) -> None:
    """They were drained; so a switch that failed was not, nor were three of seven."""
    links, there = half_planned()
    assert links.update(100.0) == (False, [])
    for vertex in there[:gone]:
        links.left(vertex, 100.0)
    links.update(110.0)
    record = links.as_record(110.0, 0.0)  # also those that are spared
    avoided = [name for (name,) in record.get("drained", [])]
    assert avoided == [links.wiring.names[v] for v in there[: gone if gone < 4 else 0]]


def test_what_is_known_of_a_switch_is_forgotten_where_it_is_planned() -> None:
    """A drained one whose node became planned stayed drained for good, and counted as gone."""
    before, _ = fabric()
    for vertex in PLANNED[:2]:
        before.left(vertex, 0.0)
    for _ in range(3):
        before.connected(PLANNED[2], 0.0)
        before.left(PLANNED[2], 0.0)
    name = before.wiring.names[PLANNED[3]]
    before.drain({name: resolve_name(before.wiring, None, name)})
    before.update(9.0)
    assert np.flatnonzero(before.drained).tolist() == PLANNED[:4]
    links, there = half_planned()
    links.take_over(before.as_record(9.0, 1000.0), 9.0, 1000.0)
    assert not links.update(99.0)[1]
    assert not links.drained.any()
    assert [*links.requested] == [name], "for the time when it is installed"
    assert not links.switch_penalties.suppressed.any()
    links.left(there[0], 99.0)
    assert kinds(links, 110.0) == ["drained"]


@pytest.mark.parametrize("told_by", ["description", "port status", "discovery"])
def test_a_recorded_failure_counts_as_broken_once_an_end_or_discovery_says_so(told_by: str) -> None:
    before, cables = fabric()
    wiring, ends = before.wiring, cables.ends[7].tolist()
    unseen = np.arange(len(cables.ends)) == 7
    if told_by == "discovery":
        before.update_seen(unseen, ~unseen, 1.0)
    else:
        for end in ends:
            before.set_port(end[0], int(wiring.port[tuple(end)]), DOWN, 1.0)
    before.update(1.0)
    links, (vertex, link) = Links(wiring, Duties(discover=True)), ends[0]
    links.take_over(before.as_record(1.0, 1000.0), 2.0, 1001.0)
    other, other_link = cables.ends[0, 0].tolist()
    links.set_port(other, int(wiring.port[other, other_link]), DOWN, 2.0)
    links.update(2.0)
    assert links.dead[vertex, link]
    assert not links.broken[vertex, link], "it may have come back"
    port = int(wiring.port[vertex, link])
    if told_by == "description":
        works = {int(number): "" for number in wiring.port[vertex] if number}
        links.set_ports(vertex, works | {port: DOWN}, 3.0)
    elif told_by == "port status":
        links.set_port(vertex, port, DOWN, 3.0)
    else:
        links.update_seen(unseen, ~unseen, 3.0)
    assert links.update(3.0).has_changed
    assert links.broken[vertex, link]
    links.take_over({}, 4.0, 1003.0)  # after a survey
    assert links.broken[vertex, link], "it has been told since"


def returned_beside_a_silent_switch(both_recorded: bool) -> tuple[Links, int]:
    """The state after a takeover at which all ports of a switch were down, and that switch.

    All its neighbours except the first have returned, and say that their ports are up.

    Args:
        both_recorded: whether the record also has the neighbours' ports as down.
    """
    before, _ = fabric()
    wiring, silent = before.wiring, 5
    for port in map(int, wiring.port[silent]):
        if port:
            before.set_port(silent, port, DOWN, 1.0)
    if both_recorded:
        for vertex, link in zip(*np.nonzero(wiring.far == silent), strict=True):
            before.set_port(int(vertex), int(wiring.port[vertex, link]), DOWN, 1.0)
    links = Links(wiring)
    links.take_over(before.as_record(1.0, 1000.0), 2.0, 1001.0)
    for vertex in neighbours(links, silent)[1:]:
        reports_all_ports_up(links, vertex, 2.0)
    links.update(2.0)
    return links, silent


def reports_all_ports_up(links: Links, vertex: int, now: float) -> None:
    """A switch connects, and says that all its ports are up."""
    links.connected(vertex, now)
    links.set_ports(vertex, {int(port): "" for port in links.wiring.port[vertex] if port}, now)


def test_a_link_that_is_up_again_at_one_end_is_used_if_pairs_need_it() -> None:
    """It stayed dead as long as the other end was silent. Pairs were cut off for want of it, or a
    drain by request ended.
    """
    links, silent = returned_beside_a_silent_switch(both_recorded=True)
    assert links.dead[silent].tolist().count(False) == 1, "one is enough"
    assert not links.broken[silent].any()
    used = int(np.flatnonzero(~links.dead[silent])[0])
    far, *others = neighbours(links, silent)
    assert links.wiring.far[silent, used] in others, "of which an end has told that its port is up"
    links.set_port(silent, int(links.wiring.port[silent, used]), DOWN, 3.0)
    links.update(3.0)
    assert links.dead[silent, used]
    assert links.broken[silent, used]
    reports_all_ports_up(links, far, 3.0)
    reports_all_ports_up(links, silent, 3.0)
    links.update(3.0)
    assert not links.dead.any(), "both ends of each say that it is up"


def test_a_link_is_dead_whose_silent_end_alone_was_recorded_as_down() -> None:
    """The port at the other end works meanwhile: packets were led to such links (live 1,874 packets
    of 11 pairs).
    """
    links, silent = returned_beside_a_silent_switch(both_recorded=False)
    assert links.dead[silent].all()
    assert not links.broken[silent].any()


def test_switches_that_a_build_installs_are_drained_until_they_hold_their_program() -> None:
    """A build that was loaded while they were away led packets through them, for 30 s."""
    half, there = half_planned()
    whole = Links(routed(q=3).wiring)
    whole.take_over(half.as_record(9.0, 1000.0, whole.wiring), 9.0, 1000.0)
    assert np.flatnonzero(whole.drained).tolist() == PLANNED
    for vertex in (*there, *PLANNED[:2]):
        whole.connected(vertex, 10.0)
        fit(whole, vertex)
    whole.update(11.0)
    assert np.flatnonzero(whole.drained).tolist() == PLANNED[2:]


def test_a_link_that_is_drained_by_request_is_not_up_when_its_ports_are() -> None:
    links, cables = fabric()
    (u, k), (v, _) = cables.ends[7].tolist()
    name = "{}-{}".format(*(links.wiring.names[end] for end in (u, v)))
    port = int(routed(q=3).wiring.port[u, k])
    links.set_port(u, port, DOWN, 1.0)
    links.drain({name: resolve_name(links.wiring, None, name)})
    assert kinds(links, 1.0) == ["link-down"]
    links.set_port(u, port, "", 2.0)
    assert [(e.kind, e.text) for e in links.update(2.0)[1]] == [("link-down", "drained")]
    links.drain({})
    assert kinds(links, 3.0) == ["link-up"]
