"""Which Pythons `make test-versions` takes."""

import re
import sys
from pathlib import Path

import pytest

from tests.interpreters import claimed, interpreters

ROOT = Path(__file__).resolve().parent.parent


def program(path: Path, *, prints: str = "") -> Path:
    """A program that prints a version, or that fails as a shim of pyenv does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{f'echo {prints}' if prints else 'exit 127'}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without a Python but that of the tests."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "own"))
    program(tmp_path / "own/bin/python3.11", prints="3.11")
    return tmp_path


def test_all_that_run_from_the_oldest(machine):
    program(machine / "bin/python3.10", prints="3.10")
    program(machine / "bin/python3.12-config", prints="3.12")
    far = program(machine / "bin/python3.100", prints="3.100")
    program(machine / "bin/python3.13")
    real = program(machine / "pyenv/versions/3.13.0/bin/python3.13", prints="3.13")
    assert interpreters() == {
        "3.11": machine / "own/bin/python3.11",
        "3.13": real,
        "3.100": far,
    }


def test_one_that_is_installed_and_does_not_run(machine):
    broken = program(machine / "pyenv/versions/3.12.1/bin/python3.12")
    program(machine / "bin/python3.13", prints="3.12")
    with pytest.raises(SystemExit, match=r"3\.12 is installed and does not run") as caught:
        interpreters()
    assert str(broken) in str(caught.value)
    assert "Python 3.13 is installed" in str(caught.value)


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/install.md", "docs/tutorial.md"])
def test_pages_name_the_versions_that_are_claimed(page):
    minors = sorted(int(version[2:]) for version in claimed())
    assert minors == [*range(minors[0], minors[-1] + 1)]
    named = re.findall(r"Python 3\.(\d+) to 3\.(\d+)", (ROOT / page).read_text())
    assert named == [(str(minors[0]), str(minors[-1]))]
