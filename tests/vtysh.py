"""FRR's `vtysh -C`, which judges the lines of a file without any daemon."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import pytest

NEEDS_VTYSH = pytest.mark.skipif(not which("vtysh"), reason="needs vtysh (Debian package frr)")


@cache
def _settings() -> TemporaryDirectory[str]:
    """A folder with empty settings: since FRR 10, those of the machine are not for everybody."""
    folder = TemporaryDirectory(prefix="polarfab-vtysh-")
    Path(folder.name, "vtysh.conf").touch()
    return folder


def judged(file: Path) -> tuple[int, str, str]:
    """The exit code of vtysh for a file, and what it prints on stdout and stderr."""
    command = ["vtysh", "--config_dir", _settings().name, "-C", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr
