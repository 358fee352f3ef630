"""The Pythons of this machine that polarfab can use: `python -m tests.interpreters` lists them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
OLDEST = int(PROJECT["requires-python"].removeprefix(">=3."))
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def installed() -> dict[str, list[Path]]:
    """By version, where PATH and pyenv have it: "3.12", and the programs, which may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    own = Path(sys.base_prefix, "bin")
    folders = [own, *map(Path, os.get_exec_path()), *sorted(pyenv.glob("versions/3.*/bin"))]
    found: dict[str, list[Path]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("python3.*"))):
        minor = re.fullmatch(r"python3\.(\d+)", path.name)
        if minor and int(minor[1]) >= OLDEST:
            found.setdefault(f"3.{minor[1]}", []).append(path)
    return dict(sorted(found.items(), key=lambda item: int(item[0][2:])))


def interpreters() -> dict[str, Path]:
    """By version, from the oldest, a Python that runs.

    Raises:
        SystemExit: a version is installed, and none of its programs runs: it would go untested.
    """
    running, broken = {}, []
    for version, paths in installed().items():
        works = next((path for path in paths if _version(path) == version), None)
        if works:
            running[version] = works
        else:
            places = ", ".join(map(str, paths))
            broken.append(f"Python {version} is installed and does not run: {places}")
    if broken:
        raise SystemExit("\n".join(broken))
    return running


def _version(python: Path) -> str:
    """What a program says of itself, "" where it does not run (as pyenv's shims often do)."""
    try:
        return subprocess.run(
            [python, "-I", "-c", VERSION], capture_output=True, text=True, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def claimed() -> set[str]:
    """The versions that pyproject.toml names."""
    named = (re.search(r":: (3\.\d+)$", line) for line in PROJECT["classifiers"])
    return {version[1] for version in named if version}


if __name__ == "__main__":
    found = interpreters()
    for version in sorted(claimed() - found.keys()):
        print(f"Python {version} is not here: not tested", file=sys.stderr)
    for version, python in found.items():
        print(version, python)
