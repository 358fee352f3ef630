"""The guarantee while something is down, against packets that are followed one by one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from compilers.evaluation.failure_guarantees import failure_guarantees
from compilers.evaluation.guarantee import guarantee
from compilers.forwarding.single_packets import HOME, SinglePackets
from compilers.pipeline import compile_fabric
from compilers.routing.link_repair import Intact, repaired
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.wiring.damage import remaining
from inventory.problems import InputError
from tests.compilers.wiring.makers import missing

HOSTS = 2


def compiled(balance: str = "compact-valiant", protect: str = "node") -> Build:
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "hosts_per_node": HOSTS,
        "routing": {"balance": balance, "protect": protect},
    }
    return compile_fabric(load_fabric(spec))


@pytest.fixture(scope="module")
def build() -> Build:
    return compiled()


def by_hand(build: Build, element: int) -> float:
    """Every packet of every pair that is left, by the live weights of its switch."""
    links = len(build.wiring.link_ends())
    left = [v for v in range(13) if v != element - links]
    load = defaultdict(lambda: np.zeros((13, 13)))
    for d in left:
        packets = SinglePackets.under(build, d, (element,))
        for s in left:
            weights, paths = packets.weights_of(s), [*packets.paths(s)] if s != d else []
            parts = [weights.get(path.first, 0) or (len(paths) == 1) for path in paths]
            for path, part in zip(paths, parts, strict=True):
                if path.outcome != HOME or path.switches[-1] != d:
                    return 0.0
                for link in pairwise(path.switches):
                    load[link][s, d] += part / sum(parts)
    peaks = (one[linear_sum_assignment(one, maximize=True)].sum() for one in load.values())
    return min(1.0, 1 / (HOSTS * max(peaks)))


@pytest.mark.parametrize("kind", ["link", "node"])
def test_each_case_is_what_its_packets_give(build: Build, kind: str) -> None:
    ends, names = build.wiring.link_ends(), build.wiring.names
    elements = {"-".join(names[v] for v in link): n for n, link in enumerate(ends.tolist())}
    elements |= {name: len(ends) + v for v, name in enumerate(names)}
    found = failure_guarantees(build, kind)
    assert len(found) == {"link": 24, "node": 13}[kind]
    assert [case.share for case in found] == sorted(case.share for case in found)
    for case in found[::4]:
        assert case.share == pytest.approx(by_hand(build, elements[case.element]))


def test_a_controllers_tables_are_looked_at_in_the_fabric_that_is_left(build: Build) -> None:
    found = {case.element: case for case in failure_guarantees(build, "link")}
    for a, b in (build.wiring.link_ends()[n].tolist() for n in (0, 9, 20)):
        link = int(np.flatnonzero(build.wiring.far[a] == b)[0])
        damage = missing(build.wiring, [], [(a, link)])
        topology, wiring = remaining(build.topology, build.wiring, damage)
        tables = repaired(Intact.of(build), damage.links).tables
        after = replace(build, topology=topology, wiring=wiring, tables=tables)
        assert found[f"{a}-{b}"].repaired == pytest.approx(guarantee(after).share)


def test_without_repair_in_the_switch_a_link_takes_all_until_a_controller_acts() -> None:
    found = failure_guarantees(compiled(protect="none"), "link")
    assert {case.share for case in found} == {0.0}
    assert min(case.repaired for case in found) > 0


def test_intermediates_are_refused() -> None:
    with pytest.raises(InputError, match="a balance without intermediates"):
        failure_guarantees(compiled("valiant", "none"), "link")


@pytest.mark.parametrize("kind", ["2", "link+node", "nodes"])
def test_kinds_of_several_failures_at_once_are_refused(build: Build, kind: str) -> None:
    with pytest.raises(InputError, match="failures: required failures of one at a time: link, no"):
        failure_guarantees(build, kind)
