"""The mark that verification has passed on a build: `verified.json` in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.folders.artefact import replace_file
from compilers.tables.folders.generations import VERIFIED, mark
from inventory.problems import InputError


def mark_verified(folder: Path, identity: str, result: Mapping[str, Any] | None) -> None:
    """Write the mark that verification has passed on this build; without a result, remove it.

    A link in its place is replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    if result is None:
        (folder / VERIFIED).unlink(missing_ok=True)
    else:
        text = json.dumps({"build": identity, **result}, indent=1)
        replace_file(folder / VERIFIED, [text.encode()])


def require_verified(folder: Path, build: Build) -> None:
    """Refuse a build that has not passed verification.

    Raises:
        InputError: it has not.
    """
    if mark(folder) != build.identity:
        raise InputError.of(
            file=str(folder),
            required="a build that has passed polarfab verify",
            given="one that has not",
            todo=f"run: polarfab verify {folder} (or use it as it is, with --unverified)",
        )
