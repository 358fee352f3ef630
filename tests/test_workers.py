"""`pytest --workers` tells what fails in any of its processes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSING = """\
import os, warnings
import pytest

@pytest.fixture(scope="session")
def used():
    yield
    os.write(2, b"put away\\n")

def test_passes(used, tmp_path, other):
    warnings.warn("look here")
    other.write_text(str(tmp_path))
"""
FAILING = """\
import os

def test_fails(other):
    print("what it printed")
    assert other is None

def test_ends_the_process():
    os.kill(os.getpid(), 9)
"""
COMMON = """\
from pathlib import Path
import pytest
from tests.workers import shared_folder

@pytest.fixture
def other(tmp_path_factory):
    return shared_folder(tmp_path_factory) / "file"
"""


def test_failures_and_dead_processes_are_told(tmp_path):
    for name, text in ("passes", PASSING), ("fails", FAILING):
        (tmp_path / f"test_{name}.py").write_text(text)
    (tmp_path / "conftest.py").write_text(COMMON)
    shared = tmp_path / "temporary"
    command = [sys.executable, "-m", "pytest", "-p", "tests.workers", "--workers=2"]
    options = "--capture=sys", "-c", "/dev/null", "--rootdir", tmp_path, f"--basetemp={shared}"
    ran = subprocess.run(
        [*command, *options, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "2 failed, 1 passed, 1 warning" in ran.stdout
    assert "what it printed" in ran.stdout
    assert "UserWarning: look here" in ran.stdout
    assert "A worker died in test_fails.py::test_ends_the_process." in ran.stdout
    assert ran.stderr == "put away\n"
    assert Path((shared / "file").read_text()).parents[1] == shared
