"""The mark that verification has passed on a build: `verified.json` in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.build_folder import damaged
from inventory.problems import InputError, Problem

VERIFIED = "verified.json"


def mark_verified(folder: Path, identity: str, result: Mapping[str, Any] | None) -> None:
    """Leave the mark that verification has passed on this build; None takes it away."""
    mark = folder / VERIFIED
    if result is None:
        mark.unlink(missing_ok=True)
        return
    beside = folder / f".{VERIFIED}.{os.getpid()}"
    beside.write_text(json.dumps({"build": identity, **result}, indent=1))
    beside.rename(mark)


def require_verified(folder: Path, build: Build) -> None:
    """Refuse a build that verification has not passed on, or that changed since.

    Raises:
        InputError: in both cases; what is damaged is named.
    """
    try:
        mark = json.loads((folder / VERIFIED).read_text())["build"]
    except (OSError, ValueError, KeyError):
        mark = ""
    if mark != build.identity:
        raise InputError(
            Problem(
                file=str(folder),
                required="a build that verify has passed on",
                given="one that it has not",
                todo=f"run: polarfab verify {folder} (or --unverified, to use it as it is)",
            )
        )
    if problems := damaged(folder):
        raise InputError(problems)
