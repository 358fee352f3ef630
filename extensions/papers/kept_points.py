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
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

from compilers.workers.source_digest import SOURCES, folder_digest, source_digest
from extensions.simulation.load_point import LoadPoint, student
from inventory.problems import InputError
from inventory.yamlfile import read_text

FILE = "points.csv"
_FOLDER: ContextVar[Path | None] = ContextVar("folder of points", default=None)


class PointOf(NamedTuple):
    """What a point is of. fabric: JSON of a `PaperFabric`; load: offered."""

    fabric: str
    pattern: str
    load: float
    seed: int


class KeptPoint(NamedTuple):
    """A point of a file, and the digest of the code that simulated it."""

    what: PointOf
    code: str
    point: LoadPoint


VALUES = tuple(field.name for field in fields(LoadPoint))
COLUMNS = (*PointOf._fields, "code", *VALUES)


@cache
def points_digest() -> str:
    """The digest of the code that points follow from."""
    simulator = folder_digest(SOURCES / "extensions" / "simulation")
    return hashlib.sha256(f"{source_digest()}{simulator}".encode()).hexdigest()[:16]


@contextmanager
def keeping(folder: Path | None) -> Iterator[None]:
    """Keep the points that are computed inside in `points.csv` of a folder."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def kept_point(what: PointOf, compute: Callable[[], LoadPoint]) -> LoadPoint:
    """A point: as it was kept, else computed and, inside `keeping`, kept.

    A point that other code has computed is computed again.
    """
    folder = _FOLDER.get()
    if folder is None:
        return compute()
    file = folder / FILE
    for each in kept_points(file) if file.exists() else ():
        if (each.what, each.code) == (what, points_digest()):
            return each.point
    point = compute()
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(",".join(COLUMNS) + "\n")
    with file.open("a", newline="") as stream:
        stream.write(_line(KeptPoint(what, points_digest(), point)))  # in one piece
    return point


def kept_points(file: Path) -> Iterator[KeptPoint]:
    """The points of a file; lines that are none, as one cut short, are left out."""
    for row in csv.reader(io.StringIO(read_text(file).text)):
        try:
            found = dict(zip(COLUMNS, row, strict=True))
            what = PointOf(found["fabric"], found["pattern"], *_numbers(found, "load", "seed"))
            values = {name: json.loads(found[name]) for name in VALUES}
            ends = {name: tuple(values[name]) for name in ("hottest", "deadlock")}
            yield KeptPoint(what, found["code"], LoadPoint(**{**values, **ends}))
        except (ValueError, TypeError):
            continue


def _numbers(found: Mapping[str, str], *names: str) -> list[Any]:
    return [json.loads(found[name]) for name in names]


def _line(kept: KeptPoint) -> str:
    values = (json.dumps(value) for value in asdict(kept.point).values())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([*kept.what, kept.code, *values])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """A kept point, simulated again. kept, now: the accepted load.

    within: how far one run may be from another: that of a 95 % prediction interval of the runs that
    are kept of the same load; 0 where there is one only. same_code: the code is that of the point,
    so that both have to be equal.
    """

    what: PointOf
    kept: float
    now: float
    within: float
    same_code: bool

    @property
    def agrees(self) -> bool:
        """Whether the point still is what it was."""
        slack = 0.0 if self.same_code else self.within
        return abs(self.now - self.kept) <= slack + 1e-9


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
    known = list(kept_points(file))
    if not known:
        raise InputError.of("points, as reproduce -o writes them", "none", file=str(file))
    chosen = np.random.default_rng(seed).permutation(len(known))[:sample]
    for each in (known[number] for number in sorted(chosen)):
        runs = [other.point.accepted for other in known if _alike(each.what, other.what)]
        centre, within = each.point.accepted, 0.0
        same = each.code == points_digest()
        if len(runs) > 1:
            within = student(len(runs)) * stdev(runs) * sqrt(1 + 1 / len(runs))
            centre = centre if same else fmean(runs)
        yield CheckedPoint(each.what, centre, simulate(each.what).accepted, within, same)


def _alike(one: PointOf, other: PointOf) -> bool:
    return one._replace(seed=0) == other._replace(seed=0)
