"""What the README and the manual show is what the program prints."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo() -> list[str]:
    """The demo without packets: the same checks, the same tables."""
    words = ["emulate", "first-light-q3", "--engine", "model"]
    run = subprocess.run(
        [sys.executable, "-m", "polarfab", *words], capture_output=True, text=True, check=True
    )
    return [squeezed(line) for line in run.stdout.splitlines()]


def squeezed(line: str) -> str:
    """A line without the padding: a run with packets has a longer label, and so wider columns."""
    return " ".join(line.split())


def test_every_extra_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs/how-to/install.md").read_text()
    assert [name for name in project["optional-dependencies"] if f"`{name}`" not in text] == []


def test_the_capture_of_the_demo_is_up_to_date(demo: list[str]) -> None:
    shown = [squeezed(line) for line in (ROOT / "docs/how-to/emulate.md").read_text().splitlines()]
    rows = [line for line in demo if line.startswith(("│", "delivered", "over"))]
    assert len(rows) == 13
    assert [row for row in rows if row not in shown] == []
