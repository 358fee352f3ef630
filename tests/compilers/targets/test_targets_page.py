"""docs/targets/index.md: its matrix is what the targets themselves say, and what was checked."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from compilers.spec.features import TRANSIT
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed
from tests.compilers.routing.makers import HYPERX, compiled
from tests.compilers.targets.evidence import (
    COLUMNS,
    EBGP,
    EVIDENCE,
    READ,
    REPAIRED,
    RUN,
    WHY_NOT,
)

TESTS = Path(__file__).parents[2]
PAGE = Path(__file__).parents[3] / "docs" / "targets" / "index.md"
PAGES = {"linux": "frr", "ovs": "openflow"} | dict.fromkeys(
    ("eos", "junos", "nvue", "nxos", "sonic", "srlinux"), "routers"
)
"""The page of a target that has none of its own name."""
START, END = "<!-- checks -->\n", "<!-- end -->\n"


def test_the_matrix_is_what_was_checked(request):
    lines = ["| target | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name, checks in EVIDENCE.items():
        cells = [checks[column].cell for column in COLUMNS]
        lines.append(f"| [{name}]({PAGES.get(name, name)}.md) | {' | '.join(cells)} |")
    text = PAGE.read_text()
    head, rest = text.split(START)
    shown, tail = rest.split(END, 1)
    wanted = "\n".join(lines) + "\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{head}{START}{wanted}{END}{tail}")
    else:
        assert shown == wanted


def speaks(name):
    """EBGP, REPAIRED and TRANSIT, where the target has them with BGP and does not refuse them."""
    system, able = target(name), set()
    every_hop = compiled(HYPERX)
    for word, build in (
        (EBGP, routed(q=2)),
        (REPAIRED, routed(q=3, spread=True)),
        (TRANSIT, every_hop),
    ):
        if "routing" not in system.agreements:
            continue
        with suppress(InputError):
            system.require(build, system.chosen(agreed(build, {"routing": "bgp"})))
            able.add(word)
    return able


@pytest.mark.parametrize("name", SHIPPED_SYSTEMS)
def test_every_ability_has_a_check_that_is_there(name):
    able, checks = target(name).capabilities.features | speaks(name), EVIDENCE[name]
    assert checks.keys() == COLUMNS.keys()
    for column, check in checks.items():
        assert bool(check.level) == (COLUMNS[column] <= able), column
        usual = "" if check.level else WHY_NOT.get(column)
        assert check.source or check.level == RUN or f"| {usual} |" in PAGE.read_text(), column
        assert check.test or check.level != RUN, column
        assert not check.test or check.level != READ, column
        if check.test:
            file, test = check.test.split("::")
            text = (TESTS / file).read_text()
            assert re.search(rf"^def {test}\(", text, re.M), check.test
            assert "mark.live" in text or check.level != RUN, check.test


def test_every_target_has_its_page():
    assert all((PAGE.parent / f"{PAGES.get(name, name)}.md").is_file() for name in SHIPPED_SYSTEMS)
