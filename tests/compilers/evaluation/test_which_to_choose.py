"""The figures by which docs/concepts/policies.md has a balance chosen are what comes out."""

from __future__ import annotations

from contextlib import suppress

import pytest

from benchmarks.carried_shares import (
    BEST,
    FABRICS,
    FOR_A_DEMAND,
    FOR_EACH,
    NO_ROUTING,
    POLICIES,
    README,
    build_of,
    cell,
    fabric_of,
    percent,
    shares,
    table,
)
from compilers.evaluation.guarantee import guarantee
from compilers.spec.balances import balance_for, measured_balances
from compilers.topology.families import build_topology
from inventory.problems import InputError

FIGURES = measured_balances()
PAGE = table(POLICIES)


@pytest.mark.long
@pytest.mark.parametrize("row", PAGE[1:], ids=lambda row: row[0])
def test_a_row_of_the_table(row: list[str]) -> None:
    policy, *cells = row
    for heading, printed in zip(PAGE[0][1:], cells, strict=True):
        assert cell(shares(fabric_of(heading), policy)) == printed


def test_halves_are_printed_and_not_rounded() -> None:
    """README had 12 for 12.5, beside 13 for 13.46."""
    assert [percent(share) for share in (0.125, 0.135, 0.62500000000003, 0.1346, 1.0, None)] == [
        "12.5",
        "13.5",
        "62.5",
        "13",
        "100",
        "–",
    ]


@pytest.mark.parametrize("policy", FIGURES)
def test_figures_that_init_writes_are_measured(policy: str) -> None:
    measured = shares(FABRICS["PolarFly"], policy)
    assert measured
    assert tuple(FIGURES[policy]) == tuple(x if x is None else float(percent(x)) for x in measured)


def test_readme_and_the_page_have_the_same_figures() -> None:
    readme = {row[0]: row[2:] for row in table(README)[1:]}
    page = {row[0]: row[1] for row in PAGE[1:]}
    limits = [text.removesuffix(" %") for text in readme.pop(NO_ROUTING)]
    assert page[NO_ROUTING] == f"{', '.join(limits)} %"
    for policy, figures in FIGURES.items():
        words = [None if text == "–" else float(text.split()[0]) for text in readme[policy]]
        assert words == [*figures]
        row = FOR_EACH if policy == FOR_A_DEMAND else policy
        assert page[row] == f"{', '.join('–' if x is None else f'{x:g}' for x in figures)} %"
    assert readme.keys() == FIGURES.keys()


def test_no_balance_is_said_to_guarantee_more_than_distances_allow() -> None:
    most = {row[0]: row for row in PAGE}[NO_ROUTING]
    for policy, *cells in PAGE[1:]:
        for printed, limit in zip(cells, most[1:], strict=True):
            if printed != "refused":
                figures = printed.removesuffix(" %").split(", ")
                limits = limit.removesuffix(" %").split(", ")
                both = zip(figures, limits, strict=True)
                assert all(a == "–" or float(a) <= float(b) for a, b in both), policy


@pytest.mark.parametrize(
    "topology",
    [
        {"family": "polarfly", "q": 3},
        {"family": "polarfly", "q": 5},
        {"family": "oft", "q": 2},
        {"family": "pn", "q": 3},
        {"family": "jellyfish", "nodes": 12, "degree": 5},
        {"family": "fat-tree", "k": 4},
    ],
    ids=lambda topology: "-".join(map(str, topology.values())),
)
def test_init_for_any_traffic_takes_a_balance_that_guarantees_most(topology: dict) -> None:
    """Or at most 15 % less than `valiant`, which few targets can do."""
    parameters = {key: value for key, value in topology.items() if key != "family"}
    chosen = balance_for("any", build_topology(topology["family"], parameters))
    names = ("minimal", "ecmp", "ecmp, transit: ecmp", "compact-valiant", "spread", "valiant")
    guaranteed = {}
    for policy in (f"balance: {name}" for name in names):
        with suppress(InputError):
            guaranteed[policy] = guarantee(build_of(topology, policy)).share
    assert guaranteed[chosen] >= 0.85 * max(guaranteed.values())
    assert BEST not in chosen
