"""Simulated points in a file, so that a figure of hours can be stopped, begun again, and checked.

A line of `points.csv` is one load with one seed: what was simulated, the digest of the code that
did it, and the point.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from functools import cache
from math import sqrt
from os import SEEK_END
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from compilers.workers.source_digest import SOURCES, folder_digest, source_digest
from extensions.simulation.load_point import LoadPoint, student
from inventory.problems import InputError, shown
from inventory.yamlfile import read_text

FILE = "points.csv"


class PointOf(NamedTuple):
    """What a kept point is of."""

    fabric: str
    """A `PaperFabric` as JSON."""
    pattern: str
    """The traffic pattern."""
    load: float
    """The offered load."""
    seed: int
    """The seed of the run."""


class KeptPoint(NamedTuple):
    """A point of a file, and the digest of the code that simulated it."""

    what: PointOf
    """What the point is of."""
    code: str
    """The digest of the code that simulated it."""
    point: LoadPoint
    """What was measured."""


class _Kept(NamedTuple):
    """The points of a file."""

    file: Path
    """The file."""
    points: dict[PointOf, LoadPoint]
    """What was measured, by what it is of."""
    alone: bool = False
    """Whether a point that the file lacks is refused, and not computed."""


_KEPT: ContextVar[_Kept | None] = ContextVar("points that are kept", default=None)
VALUES = tuple(field.name for field in fields(LoadPoint))
COLUMNS = (*PointOf._fields, "code", *VALUES)


@cache
def points_digest() -> str:
    """The digest of the code that points follow from."""
    simulator = folder_digest(SOURCES / "extensions" / "simulation")
    return hashlib.sha256(f"{source_digest()}{simulator}".encode()).hexdigest()[:16]


@contextmanager
def keeping(folder: Path | None) -> Iterator[None]:
    """Keep the points that are computed inside in `points.csv` of a folder, which is read once."""
    token = _KEPT.set(_kept(folder / FILE) if folder else None)
    try:
        yield
    finally:
        _KEPT.reset(token)


@contextmanager
def from_points(file: Path) -> Iterator[None]:
    """Take all points from a file, whatever code has computed them.

    Inside, a point that the file lacks raises an InputError.
    """
    points = {kept.what: kept.point for kept in kept_points(file)}
    token = _KEPT.set(_Kept(file, points, alone=True))
    try:
        yield
    finally:
        _KEPT.reset(token)


def _kept(file: Path) -> _Kept:
    if not file.exists():
        return _Kept(file, {})
    mine = (kept for kept in kept_points(file) if kept.code == points_digest())
    return _Kept(file, {kept.what: kept.point for kept in mine})


def kept_point(what: PointOf, compute: Callable[[], LoadPoint]) -> LoadPoint:
    """A point: as it was kept, else computed and, inside `keeping`, kept.

    A point that other code has computed is computed again, but inside `from_points`.
    """
    kept = _KEPT.get()
    if kept is None:
        return compute()
    if what not in kept.points and kept.alone:
        required = f"{what.pattern}, load {what.load:g}, seed {what.seed} of {what.fabric}"
        raise InputError.of(required, "no such point", file=str(kept.file))
    if what not in kept.points:
        kept.points[what] = compute()
        _add(kept.file, KeptPoint(what, points_digest(), kept.points[what]))
    return kept.points[what]


def _add(file: Path, kept: KeptPoint) -> None:
    """A line, in one piece; on a line of its own, also behind one that was cut short."""
    if not file.exists() or not file.stat().st_size:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(",".join(COLUMNS) + "\n")
    with file.open("a+b") as stream:
        stream.seek(-1, SEEK_END)
        cut = stream.read() != b"\n"
        stream.write(("\n" * cut + _line(kept)).encode())


def kept_points(file: Path) -> Iterator[KeptPoint]:
    """The points of a file; lines that are none, as one cut short, are left out.

    Raises:
        InputError: it has other columns.
    """
    head, *lines = read_text(file).text.splitlines() or [""]
    if head not in ("", ",".join(COLUMNS)):
        required, todo = f"the columns {', '.join(COLUMNS)}", "remove the file, or name another one"
        raise InputError.of(required, shown(head), todo, str(file), 1)
    for line in lines:
        try:
            cells = dict(zip(COLUMNS, next(csv.reader([line])), strict=True))
            what = PointOf(cells["fabric"], cells["pattern"], *_numbers(cells, "load", "seed"))
            values = {name: json.loads(cells[name]) for name in VALUES}
            ends = {name: tuple(values[name]) for name in ("hottest", "deadlock")}
            yield KeptPoint(what, cells["code"], LoadPoint(**{**values, **ends}))
        except (ValueError, TypeError, StopIteration):
            continue


def _numbers(cells: Mapping[str, str], *names: str) -> list[Any]:
    return [json.loads(cells[name]) for name in names]


def _line(kept: KeptPoint) -> str:
    values = (json.dumps(value) for value in asdict(kept.point).values())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([*kept.what, kept.code, *values])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """A kept point, simulated again."""

    what: PointOf
    """What the point is of."""
    kept: float
    """The accepted load that is kept."""
    now: float
    """The accepted load of the new run."""
    within: float | None
    """How far `now` may be from `kept`. By the same code 0: both have to be equal. Else half of the
    95 % prediction interval of the runs that are kept of the same load, of which `kept` is then the
    mean. None where one run is kept, which says nothing of how far."""
    same_code: bool
    """Whether the code is that of the kept point."""

    @property
    def agrees(self) -> bool | None:
        """Whether the point still is what it was; None: undecided."""
        return None if self.within is None else abs(self.now - self.kept) <= self.within + 1e-9


def checked(
    file: Path, sample: int, seed: int, simulate: Callable[[PointOf], LoadPoint]
) -> Iterator[CheckedPoint]:
    """Simulate a random sample of the points of a file again.

    Args:
        file: as `keeping` writes it.
        sample: how many.
        seed: of the sample.
        simulate: what a point is of.

    Raises:
        InputError: the file has no points.
    """
    points = list(kept_points(file))
    if not points:
        raise InputError.of("points, as reproduce -o writes them", "none", file=str(file))
    chosen = np.random.default_rng(seed).permutation(len(points))[:sample]
    for kept in (points[number] for number in sorted(chosen)):
        same = kept.code == points_digest()
        centre, within = kept.point.accepted, 0.0 if same else None
        runs = [*{o.what: o.point.accepted for o in points if _alike(kept, o)}.values()]
        if not same and len(runs) > 1:
            centre = fmean(runs)
            within = student(len(runs)) * stdev(runs) * sqrt(1 + 1 / len(runs))
        yield CheckedPoint(kept.what, centre, simulate(kept.what).accepted, within, same)


def _alike(one: KeptPoint, other: KeptPoint) -> bool:
    """Whether these are runs of one load, of one code."""
    return one.code == other.code and one.what._replace(seed=0) == other.what._replace(seed=0)
