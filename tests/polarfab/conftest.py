"""What the tests of the command line share."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from polarfab import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def polarfab(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process; gives exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["polarfab", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        return code, out, err

    return run
