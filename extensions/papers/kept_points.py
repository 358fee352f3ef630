"""Keep simulated points in a file, so that a figure that takes hours can be stopped and resumed.

A line of `points.csv` is one load with one seed: what was simulated, the digest of the code that
simulated it, and the result. `kept_point` takes a point from the file, or computes and keeps it.
`checked` simulates some of them again, to see whether they still hold.
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
    """What was simulated for a kept point."""

    fabric: str
    """A `PaperFabric` as JSON."""
    pattern: str
    """The traffic pattern."""
    load: float
    """The offered load."""
    seed: int
    """The seed of the run."""
    settings: str
    """The fields of `SimulationSettings` that are not the defaults, nor the network's, as JSON."""


class KeptPoint(NamedTuple):
    """A point of a file, and the digest of the code that simulated it."""

    what: PointOf
    """What was simulated."""
    code: str
    """The digest of the code that simulated it."""
    point: LoadPoint
    """What was measured."""


class _Kept(NamedTuple):
    """The points of a file."""

    file: Path
    """The file."""
    points: dict[PointOf, LoadPoint]
    """What was measured, by what was simulated."""
    alone: bool = False
    """Whether a point that the file lacks is an error; else it is computed."""


_KEPT: ContextVar[_Kept | None] = ContextVar("points that are kept", default=None)
VALUES = tuple(field.name for field in fields(LoadPoint))
COLUMNS = (*PointOf._fields, "code", *VALUES)


@cache
def points_digest() -> str:
    """The digest of the code on which points depend."""
    simulator = folder_digest(SOURCES / "extensions" / "simulation")
    return hashlib.sha256(f"{source_digest()}{simulator}".encode()).hexdigest()[:16]


@contextmanager
def keeping(folder: Path | None) -> Iterator[None]:
    """While this is open, keep computed points in `points.csv` of a folder, which is read once."""
    token = _KEPT.set(_kept(folder / FILE) if folder else None)
    try:
        yield
    finally:
        _KEPT.reset(token)


@contextmanager
def from_points(file: Path | None) -> Iterator[None]:
    """While this is open, take all points from a file, whatever code has computed them.

    A point that the file lacks then raises an InputError, but see `is_lacking`. None: no points.
    """
    points = {kept.what: kept.point for kept in kept_points(file)} if file else {}
    token = _KEPT.set(_Kept(file or Path(FILE), points, alone=True))
    try:
        yield
    finally:
        _KEPT.reset(token)


def _kept(file: Path) -> _Kept:
    """The points of a file that this code has computed."""
    if not file.exists():
        return _Kept(file, {})
    mine = (kept for kept in kept_points(file) if kept.code == points_digest())
    return _Kept(file, {kept.what: kept.point for kept in mine})


def is_lacking(what: PointOf) -> bool:
    """Whether all points are taken from a file, and it lacks this one."""
    kept = _KEPT.get()
    return kept is not None and kept.alone and what not in kept.points


def kept_point(what: PointOf, compute: Callable[[], LoadPoint]) -> LoadPoint:
    """A point from the file, or else computed; within `keeping` it is kept then.

    A point that other code has computed is computed again, except within `from_points`.
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
    """Append the line of a point at once; a line before it that was cut short is ended first."""
    if not file.exists() or not file.stat().st_size:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(",".join(COLUMNS) + "\n")
    with file.open("a+b") as stream:
        stream.seek(-1, SEEK_END)
        cut_short = stream.read() != b"\n"
        line = "\n" + _line(kept) if cut_short else _line(kept)
        stream.write(line.encode())


def kept_points(file: Path) -> Iterator[KeptPoint]:
    """Yield the points of a file; lines that are no points, such as one cut short, are left out.

    Raises:
        InputError: the file has other columns.
    """
    head, *lines = read_text(file).text.splitlines() or [""]
    if head not in ("", ",".join(COLUMNS)):
        required, todo = f"the columns {', '.join(COLUMNS)}", "remove the file, or name another one"
        raise InputError.of(required, shown(head), todo, str(file), 1)
    for line in lines:
        try:
            cells = dict(zip(COLUMNS, next(csv.reader([line])), strict=True))
            load, seed = _numbers(cells, "load", "seed")
            if not (0 < load <= 1 and seed >= 0 and isinstance(seed, int)):
                continue
            what = PointOf(cells["fabric"], cells["pattern"], load, seed, cells["settings"])
            values = {name: json.loads(cells[name]) for name in VALUES}
            ends = {name: tuple(values[name]) for name in ("hottest", "deadlock")}
            yield KeptPoint(what, cells["code"], LoadPoint(**{**values, **ends}))
        except (ValueError, TypeError, StopIteration):
            continue


def _numbers(cells: Mapping[str, str], *names: str) -> list[Any]:
    """The numbers in some cells of a line."""
    return [json.loads(cells[name]) for name in names]


def _line(kept: KeptPoint) -> str:
    """The line of a point."""
    values = (json.dumps(value) for value in asdict(kept.point).values())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([*kept.what, kept.code, *values])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """A kept point that was simulated again."""

    what: PointOf
    """What was simulated."""
    kept: float
    """The accepted load that is kept."""
    now: float
    """The accepted load of the new run."""
    within: float | None
    """How far `now` may be from `kept`.

    By the same code it is 0: both have to be equal. By other code it is half of the 95 % prediction
    interval of the kept runs of the same load, and `kept` is their mean. None if one run is kept,
    which does not say how far runs differ.
    """
    same_code: bool
    """Whether the code is that of the kept point."""

    @property
    def agrees(self) -> bool | None:
        """Whether the point still holds; None: undecided."""
        return None if self.within is None else abs(self.now - self.kept) <= self.within + 1e-9


def checked(
    file: Path, sample: int, seed: int, simulate: Callable[[PointOf], LoadPoint]
) -> Iterator[CheckedPoint]:
    """Simulate a random sample of the points of a file again.

    Args:
        file: a file that `keeping` has written.
        sample: how many points are simulated.
        seed: of the sample.
        simulate: simulates a point.

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
        by_seed = {run.what: run.point.accepted for run in points if _same_load(kept, run)}
        runs = list(by_seed.values())
        if not same and len(runs) > 1:
            centre = fmean(runs)
            within = student(len(runs)) * stdev(runs) * sqrt(1 + 1 / len(runs))
        yield CheckedPoint(kept.what, centre, simulate(kept.what).accepted, within, same)


def _same_load(one: KeptPoint, other: KeptPoint) -> bool:
    """Whether two points are runs of the same load by the same code."""
    return one.code == other.code and one.what._replace(seed=0) == other.what._replace(seed=0)
