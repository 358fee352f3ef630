"""BookSim agrees: what was measured is within bounds, and what we still simulate."""

from __future__ import annotations

import pytest

from extensions.simulation.simulated_network import HostTraffic
from tests.extensions.simulation.booksim.agreement import (
    CASES,
    Agreement,
    Case,
    ours,
    prepared,
    read,
)
from tests.extensions.simulation.booksim.program import network_text, routes_text, rows_text

MEASURED = read()
AGAIN = [
    case
    for case in MEASURED
    if case.network == "PolarFly q = 5" and case.load in (0.1, 0.3) and case.routes != "VAL"
]
"""Those that take a second."""


@pytest.mark.parametrize("each", MEASURED.values(), ids=lambda each: str(tuple(each.case)))
def test_both_simulators_agree(each: Agreement) -> None:
    if each.case.load:
        assert each.flit == pytest.approx(each.theirs, rel=0.05)
        assert each.packet == pytest.approx(each.theirs, rel=0.08)
    else:
        assert each.flit == pytest.approx(each.theirs, abs=0.0201)
        assert each.packet == pytest.approx(each.theirs, abs=0.0301)


def test_every_point_is_one_of_the_cases() -> None:
    assert set(MEASURED) <= set(CASES)


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: str(tuple(case)))
def test_our_points_are_still_those(case: Case) -> None:
    assert ours(case, "packet") == pytest.approx(MEASURED[case].packet, rel=0.005)


def test_booksim_is_given_what_we_simulate() -> None:
    network, traffic, _ = prepared(Case("PolarFly q = 5", "complement", "MIN", 0.1, link=10))
    first = network_text(network).splitlines()[0].split()
    assert first[:8] == ["router", "0", "node", "0", "node", "1", "node", "2"]
    assert first[8::3] == ["router"] * 6
    assert first[10::3] == ["10"] * 6
    rows = rows_text(traffic, 3).splitlines()
    assert (rows[0], rows[63], rows[64]) == ("63", "0", "")
    lines = routes_text(network).splitlines()
    assert lines[:3] == ["0 0 0", "0 1 1", "0 2 2"]
    assert len(lines) == 31 * 93
    uniform = HostTraffic.of_pattern("uniform", _topology(), 3, 0)
    row = rows_text(uniform, 3).splitlines()[4].split()
    assert sorted(map(int, row)) == [*range(3), *range(6, 93)]


def _topology():
    from polarfab.fabric import Fabric

    return Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 5}}).topology
