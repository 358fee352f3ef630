"""Evidence can be had again: each row names a test or a command, and each named test is there."""

from __future__ import annotations

import re

from polarfab.verb_list import verb_names
from tests.polarfab.pages import PAGES, ROOT

EVIDENCE = ROOT / "docs" / "evidence.md"
ROOMS = "compilers|extensions|controller|mininet_scenarios|polarfab|inventory|templates|manual"
NAMED = re.compile(rf"`((?:{ROOMS}|tests)/[a-z\d_./-]+|test_\w+\.py)`")
"""A file or a folder of the checkout, or a test module by its name alone."""
FILES = {path.name for path in (ROOT / "tests").rglob("*.py")}


def test_files_that_pages_name_are_there() -> None:
    lacking = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in NAMED.findall(page.read_text())
        if not ((ROOT / name).exists() if "/" in name else name in FILES)
    ]
    assert lacking == []


def test_each_row_of_evidence_can_be_had_again() -> None:
    tables = re.split(r"^## ", EVIDENCE.read_text(), flags=re.M)[1:]
    rows = [line for table in tables for line in table.splitlines() if line.startswith("| ")]
    bare = [row for row in rows if len(cells := row.split(" | ")) == 4 and not again(cells[3])]
    assert [row for row in bare if not row.startswith("| what |")] == []


def again(cell: str) -> bool:
    """Whether a cell names a test, a module that is run, a target of make, or a verb."""
    verbs = re.findall(r"`polarfab (\S+?)[ `]", cell)
    return bool(
        NAMED.findall(cell)
        or re.search("`(python -m (tests[.]|benchmarks |timeit )|make )", cell)
        or verbs
    ) and set(verbs) <= {*verb_names()}
