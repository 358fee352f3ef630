"""The examples in the docstrings of the library's public functions give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

import polarfab

MODULES = sorted({home for home in polarfab.HOMES.values() if home.startswith("polarfab.")})


@pytest.mark.parametrize("module", MODULES)
def test_examples_give_what_they_say(module: str) -> None:
    results = doctest.testmod(import_module(module))
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("name", [n for n, home in polarfab.HOMES.items() if home in MODULES])
def test_every_public_name_has_an_example(name: str) -> None:
    if name not in ("cable_paths", "check_wiring", "export"):  # they read files of others
        assert ">>> " in (getattr(polarfab, name).__doc__ or "")
