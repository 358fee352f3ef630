"""Digests of folders, and of our own sources: what results follow from, besides their input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[2]
"""The folder of our packages, in a checkout and where polarfab is installed."""
ROOMS = ("compilers", "extensions", "inventory", "templates")
"""The packages that results follow from."""


@cache
def source_digest() -> str:
    """The digest of our own sources, as they are when it is first asked for."""
    every = "".join(folder_digest(SOURCES / room) for room in ROOMS)
    return hashlib.sha256(every.encode()).hexdigest()


def folder_digest(folder: Path) -> str:
    """The digest of the names and the content of all files below a folder."""
    found = hashlib.sha256()
    for file in _files(folder):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        found.update(f"{content} {file.relative_to(folder)}\n".encode())
    return found.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    every = sorted(folder.rglob("*"))
    return (p for p in every if p.is_file() and "__pycache__" not in p.relative_to(folder).parts)
