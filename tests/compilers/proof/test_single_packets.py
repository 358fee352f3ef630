"""Single packets take the paths of all packets at once, and read a few rows to find them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilers.forwarding.many_packets import ManyPackets
from compilers.forwarding.program import program_of
from compilers.forwarding.rule import DELIVER, DROP
from compilers.forwarding.single_packets import DELIVERED, DROPPED, SinglePackets
from compilers.forwarding.walks import minimal_hops
from compilers.proof.failures.risk_cases import element_of_links
from compilers.tables.fib import MOST_HOPS, Fib
from tests.compilers.proof.oracle import Oracle
from tests.compilers.proof.test_walks_elsewhere import built
from tests.compilers.routed import routed

FABRICS: list[dict[str, Any]] = [
    {"q": 4, "spread": True, "protect": "node"},
    {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3, "protect": "link"},
    {"family": "oft", "q": 2},
]


@pytest.mark.parametrize("words", FABRICS)
def test_single_packets_go_where_all_packets_go(words: dict[str, Any]) -> None:
    build = routed(**words)
    hops, fib = ManyPackets.of(build), Fib.of(build.tables, build.wiring.far_by_port())
    chance = np.random.default_rng(1)
    ends = np.flatnonzero(build.topology.endpoints)
    arcs = np.flatnonzero(hops.far_arc >= 0)
    for destination in chance.choice(ends, 8):
        towards = np.array([destination])
        minimal = minimal_hops(fib, towards)[:, 0]
        for arc in chance.choice(arcs, 30).tolist():
            switch, link = divmod(arc, hops.arcs_a_switch)
            dead = int(chance.integers(hops.program.cable_count + hops.switches))
            packets = SinglePackets.with_failures(build, int(destination), (dead,))
            (found,) = packets.paths(switch, link)
            path, at, first_row = [switch], np.array([arc]), np.zeros(1, np.int64)
            while len(path) <= MOST_HOPS:
                down = np.array([[dead]])
                out = hops.next_arcs(hops.walks.egress(towards), at, first_row, down).arc
                if out[0] < 0:
                    assert found.outcome == {DELIVER: DELIVERED, DROP: DROPPED}[int(out[0])]
                    break
                at = hops.far_arc[out]
                path.append(int(at[0]) // hops.arcs_a_switch)
            assert list(found.switches) == path
            assert packets.minimal_path(switch).links_or_fault == minimal[switch]


def test_links_are_numbered_by_their_ends() -> None:
    build = routed(q=4)
    program = program_of(build)
    for number, (one, other) in enumerate(build.wiring.link_ends().tolist()):
        assert one < other
        assert element_of_links(build)[one, other] == number
        assert program.cable[one][program.far[one] == other].tolist() == [number]


def test_a_path_over_an_intermediate_is_its_legs() -> None:
    build = built({"family": "polarfly", "q": 3}, balance="valiant")
    oracle, source, destination = Oracle(build), 2, 9

    def leg(one: int, other: int) -> list[int]:
        return next(oracle.paths(one, other))[0]

    found = dict(SinglePackets(build, destination).intermediate_paths(source))
    assert [*found] == [*range(13)]
    for via, path in found.items():
        assert list(path.switches) == leg(source, via) + leg(via, destination)[1:]
        assert path.outcome == DELIVERED


def test_packets_of_hosts_without_their_link_take_protection() -> None:
    build = built({"family": "polarfly", "q": 3}, balance="minimal", protect="link")
    for number, ends in enumerate(build.wiring.link_ends().tolist()):
        oracle = Oracle(build, {frozenset(ends)}, set())
        for source, destination in (ends, ends[::-1]):
            packets = SinglePackets.with_failures(build, destination, (number,))
            (found,) = packets.paths(source)
            ((path, _),) = oracle.paths(source, destination)
            assert (list(found.switches), found.outcome) == (path, DELIVERED)
