"""Simulated points in a folder, so that a figure of hours can be stopped and begun again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path

from compilers.tables.folders.artefact import put_file
from compilers.workers.source_digest import source_digest
from extensions.simulation.load_point import LoadPoint

POINTS = "points"
_FOLDER: ContextVar[Path | None] = ContextVar("folder of points", default=None)


@contextmanager
def keeping(folder: Path | None) -> Iterator[None]:
    """Keep the points that are computed inside, in a folder of their own below this one."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def kept_point(name: str, compute: Callable[[], LoadPoint]) -> LoadPoint:
    """A point: as it was kept, else computed and, inside `keeping`, kept.

    A point that other code has computed is computed again.

    Args:
        name: of what is simulated, with all that the point depends on.
        compute: makes the point.
    """
    folder = _FOLDER.get()
    if folder is None:
        return compute()
    file = folder / POINTS / f"{name}.json"
    code = source_digest()
    if (known := _read(file, code)) is not None:
        return known
    point = compute()
    put_file(file, [json.dumps({"code": code, **asdict(point)}).encode()], folders=True)
    return point


def _read(file: Path, code: str) -> LoadPoint | None:
    """A point that the same code wrote; None where there is none."""
    try:
        found = json.loads(file.read_text())
        if found.pop("code") != code:
            return None
        ends = {name: tuple(found[name]) for name in ("hottest", "deadlock")}
        return LoadPoint(**{**found, **ends})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
