"""docs/targets/index.md: its tables are what the targets themselves say, and what was checked."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from compilers.spec.features import (
    AGGREGATES,
    BOUNCES,
    CHANNELS,
    INGRESS,
    INTERMEDIATES,
    MARKS,
    REPAIR,
    SHARES,
    TRANSIT,
    WEIGHTS,
)
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.targets.options import choose
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.compilers.targets.evidence import COLUMNS as CHECKED
from tests.compilers.targets.evidence import EBGP, EVIDENCE, REPAIRED, RUN

TESTS = Path(__file__).parents[2]
PAGE = Path(__file__).parents[3] / "docs" / "targets" / "index.md"
COLUMNS = (
    WEIGHTS,
    SHARES,
    INGRESS,
    TRANSIT,
    REPAIR,
    BOUNCES,
    MARKS,
    INTERMEDIATES,
    AGGREGATES,
    CHANNELS,
)


def table():
    """The lines of the capability table as they must be."""
    lines = ["| target | options | routes | groups | " + " | ".join(COLUMNS) + " |"]
    lines.append("|---" * (4 + len(COLUMNS)) + "|")
    for name in SHIPPED_SYSTEMS:
        module = target(name)
        can = module.capabilities
        limits = [f"{limit:,}" if limit else "" for limit in (can.rows, can.groups)]
        options = ", ".join(f"`{option}`" for option in module.options)
        ticks = ["yes" if column in can.features else "" for column in COLUMNS]
        lines.append(
            f"| [{name}]({_page(name)}) | " + " | ".join([options, *limits, *ticks]) + " |"
        )
    return lines


def _page(name):
    return "openflow.md" if name == "ovs" else f"{name}.md"


def matrix():
    """The lines of the matrix of checks: how strong the strongest is, or why there is none."""
    lines = ["| target | " + " | ".join(CHECKED) + " |", "|---" * (1 + len(CHECKED)) + "|"]
    for name, cells in EVIDENCE.items():
        words = [level or f"no: {reason}" for level, reason in map(cells.__getitem__, CHECKED)]
        lines.append(f"| [{name}]({_page(name)}) | {' | '.join(words)} |")
    return lines


@pytest.mark.parametrize(("mark", "lines"), [("capabilities", table), ("checks", matrix)])
def test_the_table_is_what_the_targets_say(request, mark, lines):
    text = PAGE.read_text()
    head, rest = text.split(f"<!-- {mark} -->\n")
    shown, tail = rest.split("<!-- end -->\n", 1)
    wanted = "\n".join(lines()) + "\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{head}<!-- {mark} -->\n{wanted}<!-- end -->\n{tail}")
    else:
        assert shown == wanted


def speaks(name):
    """EBGP and REPAIRED, where the target has them and does not refuse them."""
    system, able = target(name), set()
    for word, build in ((EBGP, routed(q=2)), (REPAIRED, routed(q=3, spread=True))):
        with suppress(InputError):
            system.require(build, choose(name, system.options, {"routing": "bgp"}))
            able.add(word)
    return able


@pytest.mark.parametrize("name", SHIPPED_SYSTEMS)
def test_every_ability_has_a_check_that_is_there(name):
    able, cells = target(name).capabilities.features | speaks(name), EVIDENCE[name]
    assert cells.keys() == CHECKED.keys()
    for column, (level, where) in cells.items():
        assert bool(level) == (CHECKED[column] <= able), column
        if "::" in where:
            file, test = where.split("::")
            text = (TESTS / file).read_text()
            assert re.search(rf"^def {test}\(", text, re.M), where
            assert ("mark.live" in text) or level != RUN, where
        elif level:
            assert level != RUN
            assert "## What was proved" in (PAGE.parent / where).read_text()


def test_every_target_has_its_page():
    assert all((PAGE.parent / _page(name)).is_file() for name in SHIPPED_SYSTEMS)
