"""Keep simulated points in a file, so that a figure that takes hours can be stopped and resumed.

A line of `points.csv` is one load with one seed: what was simulated, the digest of the code that
simulated it, and the result. A line of `times.csv` is a collective with one seed, and its time.
`kept_point` takes a point from its file, or computes and keeps it. `checked` simulates some of them
again, to see whether they still hold.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from functools import cache
from math import sqrt
from os import SEEK_END
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from compilers.workers.source_digest import SOURCES, folder_digest, source_digest
from extensions.simulation.collective_completion import CompletionTime
from extensions.simulation.load_point import LoadPoint, student
from inventory.problems import InputError, shown
from inventory.yamlfile import read_text


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

    @property
    def allowed(self) -> bool:
        """Whether a run may have this load and this seed."""
        return 0 < self.load <= 1 and isinstance(self.seed, int) and self.seed >= 0


class TimeOf(NamedTuple):
    """What was simulated for a kept time of a collective."""

    fabric: str
    """A `PaperFabric` as JSON."""
    collective: str
    """The collective, one of `COLLECTIVES`."""
    size: int
    """Bytes of the vector, or of each message."""
    rows: int
    """The rows of a sweep's grid; 0 for a grid that is as near to a square as can be."""
    seed: int
    """The seed of the run."""
    settings: str
    """As for `PointOf`."""

    @property
    def allowed(self) -> bool:
        """Whether a run may have this size, these rows and this seed."""
        whole = all(isinstance(number, int) for number in (self.size, self.rows, self.seed))
        return whole and self.size > 0 and self.rows >= 0 and self.seed >= 0


What = TypeVar("What", bound=PointOf | TimeOf)
Measured = TypeVar("Measured", bound=LoadPoint | CompletionTime)


class KeptPoint(NamedTuple, Generic[What, Measured]):
    """A point of a file, and the digest of the code that simulated it."""

    what: What
    """What was simulated."""
    code: str
    """The digest of the code that simulated it."""
    point: Measured
    """What was measured."""


@dataclass(frozen=True, slots=True)
class _Lines(Generic[What, Measured]):
    """What the lines of a file of points have."""

    file: str
    """The name of the file in a folder."""
    what: type[What]
    """What was simulated."""
    measured: type[Measured]
    """What was measured."""
    numbers: tuple[str, ...]
    """The columns of what was simulated that have numbers."""

    @property
    def values(self) -> list[str]:
        """The columns of what was measured."""
        names = (field.name for field in fields(self.measured))
        return [name for name in names if name not in self.what._fields]

    @property
    def head(self) -> str:
        """The first line, with the names of the columns."""
        return ",".join((*self.what._fields, "code", *self.values))

    def point(self, line: str) -> KeptPoint[What, Measured] | None:
        """The point of a line; None if it has none."""
        try:
            columns, cells = self.head.split(","), next(csv.reader([line]))
            row: dict[str, Any] = dict(zip(columns, cells, strict=True))
            for name in (*self.numbers, *self.values):
                row[name] = json.loads(row[name])
            what = self.what(*(row[name] for name in self.what._fields))
            if not what.allowed:
                return None
            measured: dict[str, Any] = {
                field.name: tuple(value) if isinstance(value, list) else value
                for field in fields(self.measured)
                for value in [row[field.name]]
            }
            return KeptPoint(what, row["code"], self.measured(**measured))
        except (ValueError, TypeError, StopIteration):
            return None

    def line(self, kept: KeptPoint[What, Measured]) -> str:
        """The line of a point."""
        measured = asdict(kept.point)
        text = io.StringIO()
        cells = [*kept.what, kept.code, *(json.dumps(measured[name]) for name in self.values)]
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()


LOADS = _Lines("points.csv", PointOf, LoadPoint, ("load", "seed"))
TIMES = _Lines("times.csv", TimeOf, CompletionTime, ("size", "rows", "seed"))


class _Kept(NamedTuple):
    """The points that are kept."""

    place: Path
    """The folder of their files, or their file."""
    points: dict[PointOf | TimeOf, Any]
    """What was measured, by what was simulated."""
    alone: bool = False
    """Whether `place` is a file. Then a point that it lacks is an error; else it is computed."""


_KEPT: ContextVar[_Kept | None] = ContextVar("points that are kept", default=None)


@cache
def points_digest() -> str:
    """The digest of the code on which points depend."""
    simulator = folder_digest(SOURCES / "extensions" / "simulation")
    return hashlib.sha256(f"{source_digest()}{simulator}".encode()).hexdigest()[:16]


@contextmanager
def keeping(folder: Path | None) -> Iterator[None]:
    """While this is open, keep computed points in files of a folder, which are read once."""
    token = _KEPT.set(_kept(folder) if folder else None)
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
    token = _KEPT.set(_Kept(file or Path(LOADS.file), points, alone=True))
    try:
        yield
    finally:
        _KEPT.reset(token)


def _kept(folder: Path) -> _Kept:
    """The points in the files of a folder that this code has computed."""
    loads, times = folder / LOADS.file, folder / TIMES.file
    kept: list[KeptPoint[Any, Any]] = [
        *(_points(loads, LOADS) if loads.exists() else ()),
        *(_points(times, TIMES) if times.exists() else ()),
    ]
    return _Kept(folder, {one.what: one.point for one in kept if one.code == points_digest()})


def is_lacking(what: PointOf) -> bool:
    """Whether all points are taken from a file, and it lacks this one."""
    kept = _KEPT.get()
    return kept is not None and kept.alone and what not in kept.points


def kept_point(what: PointOf | TimeOf, compute: Callable[[], Measured]) -> Measured:
    """A point from its file, or else computed; within `keeping` it is kept then.

    A point that other code has computed is computed again, except within `from_points`.
    """
    kept = _KEPT.get()
    if kept is None:
        return compute()
    if what not in kept.points and kept.alone:
        number = f"load {what.load:g}" if isinstance(what, PointOf) else f"size {what.size}"
        required = f"{what[1]}, {number}, seed {what.seed} of {what.fabric}"
        raise InputError.of(required, "no such point", file=str(kept.place))
    if what not in kept.points:
        kept.points[what] = compute()
        lines: _Lines[Any, Any] = LOADS if isinstance(what, PointOf) else TIMES
        line = lines.line(KeptPoint(what, points_digest(), kept.points[what]))
        _add(kept.place / lines.file, lines.head, line)
    measured: Measured = kept.points[what]
    return measured


def _add(file: Path, head: str, line: str) -> None:
    """Append the line of a point at once; a line before it that was cut short is ended first."""
    if not file.exists() or not file.stat().st_size:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(head + "\n")
    with file.open("a+b") as stream:
        stream.seek(-1, SEEK_END)
        cut_short = stream.read() != b"\n"
        stream.write(("\n" + line if cut_short else line).encode())


def kept_points(file: Path) -> Iterator[KeptPoint[Any, Any]]:
    """Yield the points of a file, of loads or of times.

    Lines that are no points, such as one cut short, are left out.

    Raises:
        InputError: the file has other columns.
    """
    of_times = read_text(file).text.partition("\n")[0] == TIMES.head
    return _points(file, TIMES) if of_times else _points(file, LOADS)


def _points(file: Path, lines: _Lines[What, Measured]) -> Iterator[KeptPoint[What, Measured]]:
    """Yield the points of a file.

    Raises:
        InputError: the file has other columns.
    """
    head, *rows = read_text(file).text.splitlines() or [""]
    if head not in ("", lines.head):
        columns = lines.head.replace(",", ", ")
        required, todo = f"the columns {columns}", "remove the file, or name another one"
        raise InputError.of(required, shown(head), todo, str(file), 1)
    for row in rows:
        if point := lines.point(row):
            yield point


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """A kept point that was simulated again."""

    what: PointOf | TimeOf
    """What was simulated."""
    kept: float | None
    """The accepted load, or the cycles of a time, that is kept; None: the collective did not end.
    """
    now: float | None
    """The same of the new run."""
    within: float | None
    """How far `now` may be from `kept`.

    By the same code it is 0: both have to be equal. By other code it is half of the 95 % prediction
    interval of the kept runs of the same load, and `kept` is their mean; if none of them ended, 0.
    None if that is not known: one run is kept, or some of them ended and some did not.
    """
    same_code: bool
    """Whether the code is that of the kept point."""

    @property
    def agrees(self) -> bool | None:
        """Whether the point still holds; None: undecided."""
        if self.within is None:
            return None
        if self.kept is None or self.now is None:
            return self.kept is self.now
        return abs(self.now - self.kept) <= self.within + 1e-9


def checked(
    file: Path,
    sample: int,
    seed: int,
    simulate: Callable[[PointOf | TimeOf], LoadPoint | CompletionTime],
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
        centre, within = _figure(kept.point), 0.0 if same else None
        by_seed = {run.what: _figure(run.point) for run in points if _same_load(kept, run)}
        runs = list(by_seed.values())
        ended = [figure for figure in runs if figure is not None]
        if not same and len(runs) > 1 and len(ended) == len(runs):
            centre = fmean(ended)
            within = student(len(ended)) * stdev(ended) * sqrt(1 + 1 / len(ended))
        elif not same and len(runs) > 1 and not ended:
            within = 0.0
        yield CheckedPoint(kept.what, centre, _figure(simulate(kept.what)), within, same)


def _figure(measured: LoadPoint | CompletionTime) -> float | None:
    """The accepted load of a point; the cycles of a time, None if the collective did not end."""
    if isinstance(measured, LoadPoint):
        return measured.accepted
    return None if measured.cycles is None else float(measured.cycles)


def _same_load(one: KeptPoint[Any, Any], other: KeptPoint[Any, Any]) -> bool:
    """Whether two points are runs of the same load, or collective, by the same code."""
    same: bool = one.what._replace(seed=0) == other.what._replace(seed=0)
    return one.code == other.code and same
