"""The figures by which docs/concepts/policies.md has a balance chosen are what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compilers.balances.compact_valiant import FITTED as WORDS
from compilers.spec.balances import measured_balances
from inventory.problems import InputError
from polarfab import Fabric, throughput

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "policies.md"
FABRICS = {
    "PolarFly": {"family": "polarfly", "q": 7},
    "Jellyfish": {"family": "jellyfish", "nodes": 64, "degree": 8},
    "fat tree": {"family": "fat-tree", "k": 4},
}
FIGURES, FOR_A_DEMAND = measured_balances(), f"balance: compact-valiant{WORDS}"
PERMUTATIONS = ("tornado", "permutation", "longest")
README = PAGE.parents[2] / "README.md"
FITTED = "the same, weights fitted to each traffic"
BEST = "balance: compact-valiant, adjacent: bounce"


def table(page: Path = PAGE) -> list[list[str]]:
    """The cells of the table, heading first."""
    text = re.search(r"<!-- figures -->\n(.*?)<!-- end -->", page.read_text(), re.S)
    assert text
    rows = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in text[1].splitlines()]
    return [rows[0], *rows[2:]]


def figures(topology: dict, policy: str, *, fitted: bool) -> str:
    """A cell: the share under uniform traffic and the least of those under permutations."""
    routing = yaml.safe_load(f"{{{policy}, protect: node}}")
    spec = {"name": "lab", "topology": topology, "hosts_per_node": 4, "routing": routing}
    try:
        found = throughput(Fabric.from_spec(spec).compile(), ("uniform", *PERMUTATIONS))
    except InputError:
        return "refused"
    seen = [(one.adaptive if fitted else one.as_emitted) or one.minimal for one in found]
    uniform, *others = [one.share for one in seen]
    return f"{100 * uniform:.0f}, {100 * min(others):.0f} %"


@pytest.mark.long
@pytest.mark.parametrize("row", table()[1:], ids=lambda row: row[0])
def test_a_row_of_the_table(row: list[str]) -> None:
    policy, *cells = row
    fitted = policy == FITTED
    for heading, cell in zip(table()[0][1:], cells, strict=True):
        family = next(name for name in FABRICS if heading.startswith(name))
        assert figures(FABRICS[family], BEST if fitted else policy, fitted=fitted) == cell


@pytest.mark.parametrize("policy", FIGURES)
def test_figures_that_init_writes_are_measured(policy: str) -> None:
    fitted = policy.startswith(FOR_A_DEMAND)
    uniform, worst = FIGURES[policy]
    measured = figures(FABRICS["PolarFly"], BEST if fitted else policy, fitted=fitted)
    assert measured == f"{uniform}, {worst} %"


def test_readme_and_the_page_have_the_same_figures() -> None:
    readme = {row[0]: tuple(int(cell.split()[0]) for cell in row[2:]) for row in table(README)[1:]}
    assert readme == FIGURES
    page = {row[0]: row[1] for row in table()[1:]}
    for policy, (uniform, worst) in FIGURES.items():
        row = FITTED if policy.startswith(FOR_A_DEMAND) else policy
        assert page[row] == f"{uniform}, {worst} %"
