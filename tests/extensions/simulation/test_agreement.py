"""BookSim agrees: what was measured is within bounds, and what we still simulate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extensions.simulation.latency_curve import simulate
from tests.extensions.simulation.booksim.agreement import (
    APART,
    CHANCE,
    COUNTED,
    HELD,
    PAGE,
    SIMULATORS,
    Agreement,
    Case,
    named,
    ours,
    prepared,
    read,
    table,
)

MEASURED = read()
AGAIN = [
    case
    for case in MEASURED
    if case.network == "PolarFly q = 5" and case.load in (0.1, 0.3) and case.routes != "VAL"
]
"""Those that take a second."""

WITHIN = {"packet": (0.065, 0.03), "flit": (0.05, 0.02)}
"""How far a latency may be off, of BookSim's, and a load of saturation."""


def agrees(each: Agreement, level: str) -> bool:
    ours_there, (part, load) = getattr(each, level), WITHIN[level]
    away = abs(ours_there - each.theirs)
    return bool(away <= (part * each.theirs if each.case.load else load + 1e-9))


@pytest.mark.parametrize("each", MEASURED.values(), ids=lambda each: str(tuple(each.case)))
def test_both_simulators_agree_but_where_we_say_why(each: Agreement) -> None:
    assert agrees(each, "flit") is not named(each.case)
    if not each.case.router and not named(each.case):
        assert agrees(each, "packet")


OTHERWISE = {COUNTED: "links counted", HELD: "stages overlap"}


@pytest.mark.parametrize("names", [names for names, why in APART.items() if why in OTHERWISE])
def test_booksim_agrees_where_it_is_changed_in_what_is_said(
    names: tuple[str, str, float, str],
) -> None:
    network, routes, load, router = names
    changed = f"{routes}, {OTHERWISE[APART[names]]}"
    assert agrees(MEASURED[Case(network, "uniform", changed, load, router=router)], "flit")


@pytest.mark.parametrize("names", [names for names, why in APART.items() if why == CHANCE])
def test_at_which_load_there_is_a_deadlock_is_chance(names: tuple[str, str, float, str]) -> None:
    network, routes, load, router = names
    case = Case(network, "uniform", routes, load, router=router)
    assert MEASURED[case].deadlocks == {*SIMULATORS}
    built, traffic, settings = prepared(case)
    above = MEASURED[case].theirs + 0.01
    first, second = (
        simulate(built, traffic, replace(settings, loads=(above,), seed=seed)).points[0]
        for seed in (0, 1)
    )
    assert first.sustained
    assert second.deadlock


def test_the_page_has_what_was_measured() -> None:
    assert table() in PAGE.read_text()


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: str(tuple(case)))
def test_our_points_are_still_those(case: Case) -> None:
    level = "flit" if case.router else "packet"  # which have no router to choose
    expected = getattr(MEASURED[case], level)
    assert ours(case, level).value == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("router", ["speedup=1", "routing=3", "islip=1,speedup=1"])
def test_routers_of_flits_are_still_those(router: str) -> None:
    case = Case("PolarFly q = 5", "uniform", "MIN", 0.5, router=router)
    assert ours(case, "flit").value == pytest.approx(MEASURED[case].flit, rel=0.005)
