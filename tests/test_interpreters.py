"""The Pythons that pages name are those that the package claims."""

import re
from pathlib import Path

import pytest

from tests.interpreters import claimed

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md", "docs/tutorial.md"])
def test_pages_name_the_versions_that_are_claimed(page):
    minors = sorted(int(version[2:]) for version in claimed())
    assert minors == [*range(minors[0], minors[-1] + 1)]
    named = re.findall(r"Python 3\.(\d+) to 3\.(\d+)", (ROOT / page).read_text())
    assert named == [(str(minors[0]), str(minors[-1]))]
