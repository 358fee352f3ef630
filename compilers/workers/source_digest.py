"""Digests of folders, and of polarfab's own sources.

Results follow from their input and from the sources. A digest of the sources tells two checkouts of
the same version apart. `dask_cluster` requires the same digest of all workers of a cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[2]
"""The folder of polarfab's packages, in a checkout and where it is installed."""
RESULT_PACKAGES = ("compilers", "extensions", "inventory", "templates")
"""The packages whose code can change results."""


@cache
def source_digest() -> str:
    """Return the SHA-256 of polarfab's sources, as they were at the first call."""
    digests = "".join(folder_digest(SOURCES / package) for package in RESULT_PACKAGES)
    return hashlib.sha256(digests.encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and the content of all files below a folder.

    Compiled Python (`__pycache__`) is left out, as it follows from the sources.
    """
    digest = hashlib.sha256()
    for file in _files(folder):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{content} {file.relative_to(folder)}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, without compiled Python."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.relative_to(folder).parts:
            yield path
