"""The examples in the docstrings of the compilers give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import compilers

ROOT = Path(compilers.__file__).parent
MODULES = [
    ".".join(("compilers", *path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_say(module: str) -> None:
    results = doctest.testmod(import_module(module))
    assert results.attempted
    assert not results.failed
