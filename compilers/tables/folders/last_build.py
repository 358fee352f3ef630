"""Rollback: the last proved build in its place again."""

from __future__ import annotations

from pathlib import Path

from compilers.tables.build import Build
from compilers.tables.folders.artefact import exchange
from compilers.tables.folders.generations import is_build, last
from compilers.tables.folders.plane_folders import load_planes
from inventory.problems import InputError


def rollback(folder: Path) -> tuple[Build, ...]:
    """Put the last proved build back; the one that was in its place is then kept.

    Returns:
        The build of each plane that is in the place now.

    Raises:
        InputError: none is kept, it is damaged, or it cannot be renamed.
    """
    place = folder.resolve()
    kept, required = last(place), "an earlier build that was proved"
    if not is_build(kept):
        todo = "one is kept when another takes its place"
        raise InputError.of(required, "none is kept", todo, str(folder))
    builds = load_planes(kept)
    try:
        exchange(kept, place)
    except OSError as error:
        raise InputError.of(required, error.strerror or str(error), file=str(kept)) from error
    return builds
