"""Predictions under outages, beside the failure walker and beside other wiring."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.failures.failure_walks import walk_failures
from compilers.routing.plane_choices import with_plane_alternates, with_plane_repairs
from compilers.routing.split_classes import split_direct
from mininet_scenarios.scenario.outage import Miswire, Outage, PhysicalChange
from mininet_scenarios.verdict.predict import Prediction
from tests.compilers.routed import with_alternates


def protected(build):
    forwarding = with_alternates(protect="link")
    tables = split_direct(build.tables, build.wiring)
    tables = with_plane_repairs(
        with_plane_alternates(tables, build.wiring, forwarding), build.wiring
    )
    return replace(build, balance="compact-valiant", forwarding=forwarding, tables=tables)


def links(build):
    far = enumerate(build.wiring.far.tolist())
    return [(str(u), str(v)) for u, row in far for v in row if u < v]


def off_diagonal(up):
    return up[:, None] & up & ~np.eye(len(up), dtype=bool)


@pytest.mark.parametrize("kind", ["link", "node"])
@pytest.mark.parametrize("make", [protected, lambda build: build])
@pytest.mark.parametrize("q", [2, 3])
def test_all_single_failures_as_the_failure_walker_finds_them(compiled, q, make, kind):
    build = make(compiled(q))
    whole = Prediction.of(build)
    changes = (
        [PhysicalChange((link,)) for link in links(build)]
        if kind == "link"
        else [PhysicalChange(switches=(v,)) for v in build.wiring.names]
    )
    lost, longest = 0, 0
    for change in changes:
        outage = Outage().after(change)
        now = whole.under(outage)
        pairs = off_diagonal(outage.up(build.wiring.names))
        lost += np.count_nonzero(pairs & (now.fewest_hops < 0))
        changed = pairs & (now.most_hops != whole.most_hops)
        longest = max(longest, int(now.most_hops[changed].max(initial=0)))
    report = walk_failures(build, kind)
    assert (lost, len(changes)) == (report.lost_pairs, report.cases)
    assert longest <= report.max_hops or not report.max_hops


def test_what_happened_and_was_undone_is_nothing():
    outage = Outage()
    events = [
        PhysicalChange((("4", "1"),)),
        PhysicalChange(switches=("3", "5")),
        Miswire(("0", "1"), ("2", "3")),
    ]
    for event in events:
        outage = outage.after(event)
    assert outage.links == {("1", "4")}
    assert outage.switches == {"3", "5"}
    for event in (
        Miswire(("0", "1"), ("2", "3"), repaired=True),
        PhysicalChange((("1", "4"),), up=True),
        PhysicalChange(switches=("3", "5"), up=True),
    ):
        outage = outage.after(event)
    assert outage == Outage()


def swappable(build):
    near = {str(u): {str(v) for v in row} for u, row in enumerate(build.wiring.far.tolist())}
    for u, v in links(build):
        for x, y in links(build):
            if len({u, v, x, y}) == 4 and y not in near[u] and v not in near[x]:
                return Miswire((u, v), (x, y))
    raise AssertionError


def test_a_miswire_is_the_fabric_that_is_cabled_so(compiled):
    build = compiled(4)
    wrong = swappable(build)
    (u, v), (x, y) = (map(int, link) for link in (wrong.one, wrong.other))
    wiring = build.wiring
    far, far_port = wiring.far.copy(), wiring.far_port.copy()
    for here, there, now, its in ((u, v, y, x), (y, x, u, v), (x, y, v, u), (v, u, x, y)):
        link = wiring.far[here] == there
        far[here, link] = now
        far_port[here, link] = wiring.port[now, wiring.far[now] == its]
    other = Prediction.of(replace(build, wiring=replace(wiring, far=far, far_port=far_port)))
    seen = Prediction.of(build, Outage().after(wrong))
    assert (seen.fewest_hops == other.fewest_hops).all()
    assert (seen.fewest_hops != Prediction.of(build).fewest_hops).any()
    packets = np.where(other.fewest_hops > 0, 3, 0)
    assert (seen.loads(packets) == other.loads(packets)).all()


def test_a_dark_switch_neither_sends_nor_hears(compiled):
    seen = Prediction.of(compiled(3), Outage(switches=frozenset({"5"})))
    assert (seen.fewest_hops[5] < 0).all()
    assert (seen.most_hops[:, 5] < 0).all()
    assert not seen.loads(np.ones((13, 13), np.int64))[5].any()
