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
    """Write the mark that verification has passed on this build; without a result, remove it."""
    mark = folder / VERIFIED
    if result is None:
        mark.unlink(missing_ok=True)
        return
    partial = folder / f".{VERIFIED}.{os.getpid()}"
    partial.write_text(json.dumps({"build": identity, **result}, indent=1))
    partial.rename(mark)


def require_verified(folder: Path, build: Build) -> None:
    """Refuse a build that has not passed verification, or that changed since.

    Raises:
        InputError: in both cases; damaged files are named.
    """
    try:
        mark = json.loads((folder / VERIFIED).read_text())["build"]
    except (OSError, ValueError, KeyError):
        mark = ""
    if mark != build.identity:
        raise InputError(
            Problem(
                file=str(folder),
                required="a build that has passed polarfab verify",
                given="one that has not",
                todo=f"run: polarfab verify {folder} (or use it as it is, with --unverified)",
            )
        )
    if problems := damaged(folder):
        raise InputError(problems)
