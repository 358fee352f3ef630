"""Weights that follow loads, over stand-in switches that count what rows and ports carry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from compilers.demand.fluid import Fluid
from compilers.demand.weight_fit import fit
from compilers.evaluation.traffic import PATTERNS
from compilers.wiring.addressing import Addressing
from controller.settings import Duties
from controller.upkeep import repair_keeper
from extensions.load_balancing import adaptation
from extensions.load_balancing.measured_traffic import FabricPaths
from extensions.load_balancing.meters import RouteKeys
from inventory.problems import InputError
from tests.compilers.routed import routed, weights
from tests.controller.upkeep.makers import BUILD, CALM, Beside, hold, links_of, mods, network, told
from tests.extensions.load_balancing.followed import followed

SECOND = 125_000
"""What a port carries: the stand-ins say 1 Mb/s."""


def minimal(q: int, **more: bool):
    """A build whose compiled weights are those of minimal ports."""
    build = routed(q=q, spread=True, **more)
    classes = build.tables.classes
    count = np.count_nonzero(classes.alternate, axis=2)
    alone = weights(count, classes.alternate.shape[2], Fraction(1))
    tables = replace(build.tables, classes=replace(classes, weight=alone))
    return replace(build, identity="0123456789abcdef", balance="ugal-pf", tables=tables)


def networks(build) -> list[bytes]:
    """The network of each prefix, as in rows."""
    return [int(network).to_bytes(4, "big") for network in build.addressing.ipv4_prefixes()[0]]


def carry(net, keeper, traffic, amount: float, keys: list[bytes]) -> float:
    """A second of traffic; returns the load that the hottest link should carry."""
    sent, rows = followed(net.build, keeper.build.tables.classes.weight, traffic)
    for v, switch in enumerate(net.switches):
        for port in switch.sent:
            switch.sent[port] += int(SECOND * min(1.0, amount * sent[v, port]))
        for d in np.flatnonzero(rows[v]).tolist():
            switch.carried[keys[d]] = switch.carried.get(keys[d], 6) + int(
                SECOND * amount * rows[v, d]
            )
    net.tick(1.0)
    return float(amount * sent.max())


@pytest.mark.parametrize("bounces", [False, True])
def test_tornado_comes_near_the_best_in_few_changes_and_stays(bounces: bool) -> None:
    """q = 7, four hosts a switch send all they can: a link is to carry eight times its rate."""
    build = minimal(7, bounces=bounces)
    net, keeper = network(Duties(damping=CALM), build)
    traffic, keys = PATTERNS["tornado"](build.topology, 1, 0), networks(build)
    every = routed(q=7, spread=True, bounces=bounces)
    best = 4 * fit(Fluid.of(every).paths(traffic)).loads.max()
    peaks, changes = [], []
    for switch in net.switches:
        switch.mods.clear()
    for _ in range(60):
        peaks.append(carry(net, keeper, traffic, 4.0, keys))
        changes.append(sum(len(switch.mods) for switch in net.switches))
        for switch in net.switches:
            switch.mods.clear()
    assert peaks[0] == pytest.approx(8)  # two switches over one link
    assert peaks[-1] <= 1.1 * max(best, 0.63)
    assert np.count_nonzero(changes) <= 6
    assert not any(changes[-25:])
    assert max(peaks[i + 1] - peaks[i] for i in range(59)) < 0.02 * best
    assert not hold(net, keeper.build.tables)
    classes = len({*map(tuple, np.argwhere(keeper.build.tables.classes.weight[..., 1:].any(2)))})
    assert max(changes) <= 3 * classes  # the first time a group is added, a row, the old one gone


class Fitting:
    """A full fabric whose shares are fitted beside it."""

    def __init__(self) -> None:
        self.beside, self.build = Beside(), minimal(3)
        self.net, self.keeper = network(Duties(damping=CALM), self.build, self.beside.start)
        self.traffic = PATTERNS["perm2hop"](self.build.topology, 1, 0)
        told(self.net)

    def pass_second(self) -> list[str]:
        """What is told in a second of traffic."""
        carry(self.net, self.keeper, self.traffic, 2.0, networks(self.build))
        return told(self.net)

    def wait(self) -> None:
        """Go on until shares are being fitted."""
        for _ in range(40):
            if self.beside.waiting:
                return
            assert self.pass_second() == []
        raise AssertionError("no fit has begun")


def test_shares_are_fitted_while_switches_are_heard() -> None:
    one = Fitting()
    one.wait()
    for _ in range(5):
        assert one.pass_second() == []
    assert len(one.beside.waiting) == 1
    assert not hold(one.net, one.build.tables)
    one.beside.finish()
    one.net.tick()
    assert set(told(one.net)) == {"shifted"}
    assert one.keeper.status()["shifted_classes"] > 0
    assert not hold(one.net, one.keeper.build.tables)
    one.wait()


def test_shares_for_tables_that_are_gone_are_not_taken() -> None:
    one = Fitting()
    one.wait()
    one.net.cable(*links_of(one.build)[2], False)
    assert told(one.net) == ["link-down", "repaired"]
    one.beside.finish()
    one.net.tick()
    assert told(one.net) == []
    assert one.keeper.status()["shifted_classes"] == 0
    one.wait()
    one.beside.finish()
    one.net.tick()
    assert set(told(one.net)) == {"shifted"}


def test_a_fit_that_fails_is_told_and_tried_again_after_a_rest() -> None:
    one = Fitting()
    for rest in (6, 12):
        one.wait()
        one.beside.fail(MemoryError("no room"))
        with pytest.raises(MemoryError, match="no room"):
            one.net.tick()
        for _ in range(rest):
            assert not one.beside.waiting
            one.pass_second()
    one.wait()
    one.beside.finish()
    one.net.tick()
    assert set(told(one.net)) == {"shifted"}


def test_rows_are_not_asked_for_while_no_link_is_hot(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    asked = []
    wanted = adaptation.flows_wanted
    monkeypatch.setattr(adaptation, "flows_wanted", lambda: asked.append(1) or wanted())
    build = minimal(3)
    net, keeper = network(Duties(damping=CALM), build)
    traffic = PATTERNS["perm2hop"](build.topology, 1, 0)
    for _ in range(20):
        carry(net, keeper, traffic, 0.2, networks(build))
    assert not asked
    for _ in range(20):
        carry(net, keeper, traffic, 0.9, networks(build))
    assert asked


def test_counters_are_read_by_prefix_in_both_families() -> None:
    star = routed("polarstar", q=2, supernode="inductive-quad", degree=3)
    plan: Addressing = star.addressing
    networks4, lengths = plan.ipv4_prefixes()
    keys = RouteKeys((networks4, lengths), None)
    assert len(set(zip(networks4.tolist(), lengths.tolist(), strict=True))) == keys.count
    net, _ = network(Duties(damping=CALM, adapt=False), replace(star, identity="0123456789abcdef"))
    switch = net.switches[5]
    switch.carried = {int(n).to_bytes(4, "big"): 1000 + int(n) % 977 for n in networks4}
    found = keys.bytes_of(switch.report(1, b""))
    routes = star.tables.routes
    held = routes.prefixes(5)[routes.egress[5] < np.iinfo(routes.egress.dtype).max - 1]
    assert np.flatnonzero(found).tolist() == sorted(held.tolist())
    assert found[held].tolist() == [1000 + int(n) % 977 for n in networks4[held]]


def test_a_fabric_with_more_rows_than_can_be_read_is_refused(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(adaptation, "MOST_ROWS", 100)
    with pytest.raises(InputError, match="adapt: required a fabric of at most 100 rows"):
        network(Duties(adapt=True), minimal(3))


def test_marked_packets_have_fixed_weights() -> None:
    with pytest.raises(InputError, match="as a controller that shifts weights cannot follow"):
        FabricPaths.of(replace(minimal(3), balance="spread"))


def test_weights_follow_loads_with_one_group_mod_a_class():
    build = replace(BUILD, balance="ugal-pf", policy={"threshold": "2/3"})
    net, keeper = network(Duties(damping=CALM), build)
    told(net)
    mods(net)
    hot, routes = int(build.wiring.port[4, 1]), build.tables.routes
    behind = int(np.flatnonzero(routes.egress[4] == 1)[0])
    row = int(build.addressing.ipv4_prefixes()[0][behind]).to_bytes(4, "big")
    for second in range(12):
        net.switches[4].sent[hot] += 125_000  # what the port carries in a second
        net.switches[4].carried[row] = 1_000_000 * second  # and what the switches send by it
        net.tick(1.0)
    shifted = [event for event in net.sessions.drain() if event.kind == "shifted"]
    assert shifted
    assert {event.node for event in shifted} == {build.wiring.names[4]}
    changed = [message for switch in net.switches for message in switch.mods]
    assert len(changed) == len(shifted)
    assert all(message[1] == 15 for message in changed)
    assert keeper.utilisation is not None
    assert keeper.utilisation[4, 1] > 0.9
    assert keeper.status()["shifted_classes"] == 1
    link = links_of()[20]
    net.cable(*link, False)
    assert keeper.build.tables.classes.weight[4].max() > 1  # a repair keeps what has moved
    for _ in range(60):
        net.tick(1.0)
    net.cable(*link, True)
    assert not hold(net, BUILD.tables)


def test_weights_can_move_only_where_there_are_alternates():
    build = replace(routed(q=3), identity="0123456789abcdef")
    with pytest.raises(InputError, match="adapt: required a build with alternates"):
        network(Duties(adapt=True), build)


class Still:
    """An adaptation of another package that shifts nothing."""

    shifted, load = 7, np.zeros((13, 4))

    def __init__(self, build, _fabric, rate, _start):
        self.given = build.balance, rate

    def weighting(self):
        return lambda tables: tables

    def described(self, *_):
        pass

    left = step = ask = described


def test_a_balance_may_have_an_adaptation_of_its_own(monkeypatch):
    group = "polarfab.adaptations"
    entry = EntryPoint("compact-valiant", f"{__name__}:Still", group)
    ours = repair_keeper.registered(group)
    monkeypatch.setattr(repair_keeper, "registered", lambda _: ours | {entry.name: (entry,)})
    net, keeper = network(Duties(adapt=True, link_rate=5e6), replace(BUILD, balance=entry.name))
    net.tick()
    assert keeper._kept.adaptation.given == (entry.name, 5e6)
    assert keeper.status()["shifted_classes"] == 7
    _, keeper = network(Duties(adapt=True), replace(BUILD, balance="ugal-pf"))
    assert isinstance(keeper._kept.adaptation, adaptation.UgalAdaptation)


def test_without_a_package_that_shifts_weights_the_controller_says_what_to_do(monkeypatch):
    entry = EntryPoint("compact-valiant", f"{__name__}:Still", "polarfab.adaptations")
    monkeypatch.setattr(repair_keeper, "registered", lambda _: {entry.name: (entry,)})
    _, keeper = network(Duties(adapt=True), replace(BUILD, balance=entry.name))
    assert isinstance(keeper._kept.adaptation, Still)
    monkeypatch.setattr(repair_keeper, "registered", lambda _: {})
    with pytest.raises(InputError, match=r"adapt: required one package .* none.* `no_adapt`"):
        network(Duties(adapt=True), replace(BUILD, balance="ugal-pf"))
    monkeypatch.setattr(repair_keeper, "registered", lambda _: {entry.name: (entry, entry)})
    with pytest.raises(InputError, match=r"adapt: required one package .* given \S+ and \S+"):
        network(Duties(adapt=True), replace(BUILD, balance=entry.name))
