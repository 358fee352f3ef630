"""The mark that verification has passed on the build in a folder: the file `verified.json`.

The mark holds the identity of the build, what was proved, and a digest of both. So a mark that
somebody edited, or that was copied from another build, does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.folders.folder_contents import (
    VERIFIED,
    identity_in,
    json_document,
    plane_names,
)
from compilers.tables.folders.written_file import flush, replace_file
from inventory.problems import InputError


def is_proved(folder: Path) -> bool:
    """Whether verification has passed on the build in a folder, on every plane of it."""
    return all(verified_identity(folder / plane) for plane in plane_names(folder) or [""])


def mark_verified(folder: Path, identity: str, result: Mapping[str, Any] | None) -> None:
    """Write the mark that verification has passed on a build, or remove it.

    A link in the place of the mark is replaced.

    Args:
        folder: of the build.
        identity: of the build.
        result: what was proved; None where verification has not passed.

    Raises:
        OSError: the folder cannot be written.
    """
    if result is None:
        (folder / VERIFIED).unlink(missing_ok=True)
        return
    plain = json.loads(json.dumps({"build": identity, **result}))
    text = json.dumps(plain | {"digest": _digest_of_mark(plain)}, indent=1)
    replace_file(folder / VERIFIED, [text.encode()])
    flush(folder)


def _digest_of_mark(mark: Mapping[str, Any]) -> str:
    """Return the digest of a mark, which shows whether somebody edited the mark."""
    plain = {name: value for name, value in mark.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def verified_identity(folder: Path) -> str:
    """Return the identity of the build in a folder if its mark is for this build, else ""."""
    identity = identity_in(folder)
    return identity if verification_mark(folder).get("build") == identity else ""


def verification_mark(folder: Path) -> Mapping[str, Any]:
    """Return the content of the mark in a folder; {} where there is no mark, or it was edited."""
    mark = json_document(folder, VERIFIED)
    return mark if mark.get("digest") == _digest_of_mark(mark) else {}


def require_verified(folder: Path, build: Build) -> None:
    """Pass when a build has passed verification.

    Raises:
        InputError: it has not.
    """
    if verified_identity(folder) != build.identity:
        raise InputError.of(
            file=str(folder),
            required="a build that has passed polarfab verify",
            given="one that has not",
            todo=f"run: polarfab verify {folder} (or use it as it is, with `unverified`)",
        )
