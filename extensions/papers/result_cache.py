"""The result cache of simulations, so that a figure that takes hours can be stopped and resumed.

A line of `points.csv` is a simulated point: the result of one load with one seed (`PointKey`). A
line of `times.csv` is the time of a collective with one seed (`TimeKey`). Each line has the digest
of the code that computed it. Within `caching_in`, `cached_result` reads a result from the folder,
or computes and adds it. Within `only_from`, results are only read. `recompute_sample` computes some
again, to see whether they hold.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
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


class PointKey(NamedTuple):
    """The key of a simulated load in the result cache."""

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


class TimeKey(NamedTuple):
    """The key of a collective's time in the result cache."""

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
    """The fields of `SimulationSettings` that are not the defaults, nor the network's, as JSON."""

    @property
    def allowed(self) -> bool:
        """Whether a run may have this size, these rows and this seed."""
        are_integers = all(isinstance(number, int) for number in (self.size, self.rows, self.seed))
        return are_integers and self.size > 0 and self.rows >= 0 and self.seed >= 0


Key = TypeVar("Key", bound=PointKey | TimeKey)
Measured = TypeVar("Measured", bound=LoadPoint | CompletionTime)


class CachedResult(NamedTuple, Generic[Key, Measured]):
    """A result with its key, as a line of a file has it."""

    key: Key
    """What was simulated."""
    code: str
    """The digest of the code that computed the result."""
    result: Measured
    """What was measured."""


@dataclass(frozen=True, slots=True)
class _CacheFile(Generic[Key, Measured]):
    """A kind of file with cached results, and its columns: the key, the code, the result."""

    name: str
    """The name of the file in a folder."""
    key_type: type[Key]
    """The type of the keys."""
    result_type: type[Measured]
    """The type of the results."""
    number_columns: tuple[str, ...]
    """The columns of the key that are read as numbers; the others are text."""

    @property
    def result_columns(self) -> list[str]:
        """The columns of the result that are not in the key."""
        names = (field.name for field in fields(self.result_type))
        return [name for name in names if name not in self.key_type._fields]

    @property
    def head(self) -> str:
        """The first line, with the names of the columns."""
        return ",".join((*self.key_type._fields, "code", *self.result_columns))

    def parse(self, line: str) -> CachedResult[Key, Measured] | None:
        """The cached result of a line; None if the line has none."""
        try:
            columns, cells = self.head.split(","), next(csv.reader([line]))
            row: dict[str, Any] = dict(zip(columns, cells, strict=True))
            for name in (*self.number_columns, *self.result_columns):
                row[name] = json.loads(row[name])
            key = self.key_type(*(row[name] for name in self.key_type._fields))
            if not key.allowed:
                return None
            values = {field.name: row[field.name] for field in fields(self.result_type)}
            measured: dict[str, Any] = {
                # JSON has lists in place of tuples.
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
            }
            return CachedResult(key, row["code"], self.result_type(**measured))
        except (ValueError, TypeError, StopIteration):
            return None

    def line(self, cached: CachedResult[Key, Measured]) -> str:
        """The line of a cached result."""
        measured = asdict(cached.result)
        text = io.StringIO()
        values = (json.dumps(measured[name]) for name in self.result_columns)
        cells = [*cached.key, cached.code, *values]
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()


POINTS = _CacheFile("points.csv", PointKey, LoadPoint, ("load", "seed"))
"""The files of simulated points."""
TIMES = _CacheFile("times.csv", TimeKey, CompletionTime, ("size", "rows", "seed"))
"""The files of times of collectives."""


class _ResultCache(NamedTuple):
    """The results of a folder or of a file."""

    path: Path
    """The folder of the files; the file of a cache that is only read."""
    results: dict[PointKey | TimeKey, Any]
    """The `LoadPoint` or `CompletionTime` of each key."""
    read_only: bool = False
    """Whether a missing result is an error; else it is computed and added to the folder's files."""


_CACHE: ContextVar[_ResultCache | None] = ContextVar("result cache", default=None)
"""The cache that is in use; None without one: then every result is computed."""


@cache
def points_digest() -> str:
    """The digest of the code on which results depend."""
    simulator = folder_digest(SOURCES / "extensions" / "simulation")
    return hashlib.sha256(f"{source_digest()}{simulator}".encode()).hexdigest()[:16]


@contextmanager
def caching_in(folder: Path | None) -> Iterator[None]:
    """While this is open, results are read from files of a folder, and added to them.

    The files are read once, at the beginning. None: nothing is cached.
    """
    token = _CACHE.set(_read_cache(folder) if folder else None)
    try:
        yield
    finally:
        _CACHE.reset(token)


@contextmanager
def only_from(file: Path | None) -> Iterator[None]:
    """While this is open, take all results from a file, whatever code has computed them.

    A missing result then raises an InputError, but see `is_missing`. None: all are missing.
    """
    results = {cached.key: cached.result for cached in cached_results(file)} if file else {}
    path = file or Path(POINTS.name)  # without a file messages name the usual file
    token = _CACHE.set(_ResultCache(path, results, read_only=True))
    try:
        yield
    finally:
        _CACHE.reset(token)


def _read_cache(folder: Path) -> _ResultCache:
    """The results in the files of a folder that this code has computed."""
    points, times = folder / POINTS.name, folder / TIMES.name
    every_result: list[CachedResult[Any, Any]] = [
        *(_results_of(points, POINTS) if points.exists() else ()),
        *(_results_of(times, TIMES) if times.exists() else ()),
    ]
    current = (cached for cached in every_result if cached.code == points_digest())
    return _ResultCache(folder, {cached.key: cached.result for cached in current})


def is_missing(key: PointKey) -> bool:
    """Whether the cache in use is only read, and lacks the result of this key."""
    current = _CACHE.get()
    return current is not None and current.read_only and key not in current.results


def cached_result(key: PointKey | TimeKey, compute: Callable[[], Measured]) -> Measured:
    """The result of a key from the cache in use, or else computed and added to it.

    A result that other code has computed is computed again, except within `only_from`.

    Raises:
        InputError: the cache is only read, and lacks the result.
    """
    current = _CACHE.get()
    if current is None:
        return compute()
    if key not in current.results and current.read_only:
        raise InputError.of(_in_words(key), "no such point", file=str(current.path))
    if key not in current.results:
        current.results[key] = compute()
        cache_file: _CacheFile[Any, Any] = POINTS if isinstance(key, PointKey) else TIMES
        line = cache_file.line(CachedResult(key, points_digest(), current.results[key]))
        _append_line(current.path / cache_file.name, cache_file.head, line)
    measured: Measured = current.results[key]
    return measured


def _in_words(key: PointKey | TimeKey) -> str:
    """A key in words: `uniform, load 0.3, seed 0 of {…}`."""
    if isinstance(key, PointKey):
        return f"{key.pattern}, load {key.load:g}, seed {key.seed} of {key.fabric}"
    return f"{key.collective}, size {key.size}, seed {key.seed} of {key.fabric}"


def _append_line(file: Path, head: str, line: str) -> None:
    """Append a line in one write; a line before it that was cut short is ended first."""
    if not file.exists() or not file.stat().st_size:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(head + "\n")
    with file.open("a+b") as stream:
        stream.seek(-1, SEEK_END)
        cut_short = stream.read() != b"\n"
        stream.write(("\n" + line if cut_short else line).encode())


def cached_results(file: Path) -> Iterator[CachedResult[Any, Any]]:
    """Yield the cached results of a file, of points or of times.

    Lines without a result, such as one cut short, are left out.

    Raises:
        InputError: the file has other columns.
    """
    head, _, _ = read_text(file).text.partition("\n")
    return _results_of(file, TIMES if head == TIMES.head else POINTS)


def _results_of(
    file: Path, cache_file: _CacheFile[Key, Measured]
) -> Iterator[CachedResult[Key, Measured]]:
    """Yield the cached results of a file of one kind.

    Raises:
        InputError: the file has other columns.
    """
    head, *lines = read_text(file).text.splitlines() or [""]
    if head not in ("", cache_file.head):
        names = cache_file.head.replace(",", ", ")
        required, todo = f"the columns {names}", "remove the file, or name another one"
        raise InputError.of(required, shown(head), todo, str(file), 1)
    for line in lines:
        cached = cache_file.parse(line)
        if cached:
            yield cached


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """A cached result that was computed again."""

    key: PointKey | TimeKey
    """What was simulated."""
    cached_value: float | None
    """The cached accepted load, or cycles of a time; None: the collective did not end.

    If other code has computed it, it is the mean of the cached runs of the same load."""
    recomputed_value: float | None
    """The accepted load or cycles of the new run; None: the collective did not end."""
    tolerance: float | None
    """How far `recomputed_value` may be from `cached_value`; None: that is not known
    (`_expected_of_other_code`)."""
    same_code: bool
    """Whether the code is that of the cached result."""

    @property
    def agrees(self) -> bool | None:
        """Whether the cached result still holds; None: undecided."""
        if self.tolerance is None:
            return None
        if self.cached_value is None or self.recomputed_value is None:
            return self.cached_value is self.recomputed_value
        return abs(self.recomputed_value - self.cached_value) <= self.tolerance + 1e-9


def recompute_sample(
    file: Path,
    sample: int,
    seed: int,
    simulate: Callable[[PointKey | TimeKey], LoadPoint | CompletionTime],
) -> Iterator[CheckedResult]:
    """Compute a random sample of the results of a file again.

    Args:
        file: a file that `caching_in` has written.
        sample: how many results are computed again.
        seed: the seed of the random sample.
        simulate: computes the result of a key.

    Raises:
        InputError: the file has no results.
    """
    results = list(cached_results(file))
    if not results:
        raise InputError.of("points, as `reproduce` writes them", "none", file=str(file))
    sampled = np.random.default_rng(seed).permutation(len(results))[:sample]
    for cached in (results[index] for index in sorted(sampled)):
        same_code = cached.code == points_digest()
        expected = _Expected(_compared_value(cached.result), tolerance=0.0)
        if not same_code:
            # By key, as a file may have a run twice.
            runs = {
                run.key: _compared_value(run.result)
                for run in results
                if _are_runs_of_one_load(cached, run)
            }
            expected = _expected_of_other_code(expected.value, list(runs.values()))
        recomputed = _compared_value(simulate(cached.key))
        yield CheckedResult(cached.key, expected.value, recomputed, expected.tolerance, same_code)


class _Expected(NamedTuple):
    """What a new run is compared with."""

    value: float | None
    """The value; None: the collective did not end."""
    tolerance: float | None
    """How far the new value may be from it; None: that is not known."""


def _expected_of_other_code(cached: float | None, runs: Sequence[float | None]) -> _Expected:
    """What a new run is compared with where other code has computed the cached one.

    Other code draws other random numbers. So the new run is compared with the mean of all cached
    runs, and may be as far from it as half of their 95 % prediction interval. If none of several
    runs ended, the new one must not end either. The tolerance is not known if one run is cached, or
    some of them ended and some did not.

    Args:
        cached: the value of the cached run.
        runs: the values of all cached runs of the same load, None where a collective did not end.
    """
    ended = [value for value in runs if value is not None]
    if len(runs) > 1 and len(ended) == len(runs):
        half_interval = student(len(ended)) * stdev(ended) * sqrt(1 + 1 / len(ended))
        return _Expected(fmean(ended), half_interval)
    return _Expected(cached, 0.0 if len(runs) > 1 and not ended else None)


def _compared_value(measured: LoadPoint | CompletionTime) -> float | None:
    """The accepted load of a point; the cycles of a time, None if the collective did not end."""
    if isinstance(measured, LoadPoint):
        return measured.accepted
    return None if measured.cycles is None else float(measured.cycles)


def _are_runs_of_one_load(first: CachedResult[Any, Any], second: CachedResult[Any, Any]) -> bool:
    """Whether two results are runs of the same load, or collective, by the same code."""
    same_key: bool = first.key._replace(seed=0) == second.key._replace(seed=0)
    return first.code == second.code and same_key
