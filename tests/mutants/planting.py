"""Tests run on changed sources: in a fork of this process, the change in its memory only.

This process has loaded what others wrote and nothing of ours, so a fork starts in no time and its
tests import every module of ours anew, the changed one among them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import suppress
from cProfile import Profile
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import hypothesis  # noqa: F401
import jinja2  # noqa: F401
import networkx  # noqa: F401
import numpy  # noqa: F401
import pydantic  # noqa: F401
import pytest
import yaml  # noqa: F401

from tests.mutants.source_mutants import ROOT, SourceMutant

LIMIT = 900
"""Most seconds of processor time of a process. One with a mutant has 20 and five times what its
tests took, but a third of this.
"""
ENOUGH = 30.0
"""Seconds that the tests of one mutant may take, as they took without it; three times as many where
those of its own folder, or of one above it, call its function.
"""
MEMORY = 6 << 30
"""Most bytes of a process with a mutant: one may be of what refuses too large a fabric."""
WAITED = 5.0
"""Seconds after which a test that fails has to fail once more: the machine may have been busy."""
KEPT = ROOT / ".pytest_cache" / "mutants"
"""What each test file calls, as long as neither it nor a source changes."""
TRANSLATED = ("compilers/forwarding/", "compilers/proof/local/")
"""Where loops are: a library of machine code holds them as they are on disk."""
QUIET = (
    *("-q", "-p", "no:cacheprovider", "-m", "not (live or long or browser)"),
    "--hypothesis-profile=mutant",
)
UNSEEN = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
SEEN = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""How tests end with a mutant that they see; modules may fail to load."""
T = TypeVar("T")


@dataclass(slots=True)
class Calls:
    """What the tests of a file call.

    digest: of the file and all sources; tests: each with its seconds of processor time, the first
    is the import of the file; called: by `file function` the numbers of the tests; failed: those
    that fail, and how.
    """

    digest: str
    tests: dict[str, float] = field(default_factory=dict)
    called: dict[str, list[int]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


@dataclass
class _Recorder:
    """A pytest plugin that notes the calls."""

    calls: Calls

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Any:
        return (yield from self._noted(""))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        return (yield from self._noted(item.nodeid))

    def _noted(self, test: str) -> Generator[None, Any, Any]:
        before = sum(os.times()[:4])
        profile = Profile(subcalls=False, builtins=False)  # far cheaper than `sys.settrace`
        try:
            with profile:
                return (yield)
        finally:
            number, root = len(self.calls.tests), f"{ROOT}/"
            self.calls.tests[test] = sum(os.times()[:4]) - before
            codes = (e.code for e in profile.getstats() if not isinstance(e.code, str))
            for code in {c for c in codes if c.co_filename.startswith(root)}:
                function = f"{code.co_filename.removeprefix(root)} {code.co_qualname}"
                self.calls.called.setdefault(function, []).append(number)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.calls.failed.append(f"{report.nodeid}: {report.longreprtext[-300:]}")


@dataclass(frozen=True)
class _Planted(MetaPathFinder, Loader):
    """Loads the changed module in place of the one on disk."""

    mutant: SourceMutant
    module: str

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        path = ROOT / self.mutant.file
        return spec_from_file_location(name, path, loader=self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        path = ROOT / self.mutant.file
        tree = self.mutant.tree(path.read_text())
        exec(compile(tree, str(path), "exec"), module.__dict__)  # noqa: S102


def recorded(files: Iterable[Path], workers: int) -> dict[str, Calls]:
    """Run the test files on the sources as they are, where that is not kept already."""
    sources = sha256()
    for room in ("compilers", "extensions", "inventory", "templates", "tests"):
        for path in sorted((ROOT / room).rglob("*.*")):
            if path.suffix != ".pyc" and not path.name.startswith("test_"):
                sources.update(path.read_bytes() if path.is_file() else b"")
    result = {}
    left = []
    for file in files:
        place = KEPT / f"{file.relative_to(ROOT)}.json"
        digest = sha256(sources.digest() + file.read_bytes()).hexdigest()
        calls = Calls(**json.loads(place.read_text())) if place.is_file() else Calls("")
        result[str(file.relative_to(ROOT))] = calls
        if calls.digest != digest:
            left.append((file, place, digest))

    def run(piece: tuple[Path, Path, str]) -> object:
        file, _, digest = piece
        recorder = _Recorder(Calls(digest))
        code = pytest.main([*QUIET, str(file)], plugins=[recorder])
        if code not in UNSEEN and not recorder.calls.failed:
            recorder.calls.failed.append(f"exit status {code}")
        return asdict(recorder.calls)

    for (file, place, _), found in _forked(run, left, workers):
        calls = Calls(**found) if found else Calls("", failed=["it did not run to its end"])
        result[str(file.relative_to(ROOT))] = calls
        if not calls.failed:
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(".part")
            part.write_text(json.dumps(asdict(calls)))
            part.replace(place)
    return result


def killed(
    mutants: Iterable[SourceMutant], calls: dict[str, Calls], workers: int
) -> Iterator[tuple[SourceMutant, str]]:
    """Every mutant, and how a test of those that call its function ends, as they end.

    The name of the test that fails, `endless` where none has within the limit, or `survived`.
    """

    def run(mutant: SourceMutant) -> object:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, _Planted(mutant, module))
        os.environ["POLARFAB_LOOPS"] = "python" if mutant.file.startswith(TRANSLATED) else ""
        chosen = _tests(mutant, calls)
        seconds = sum(calls[file].tests[name] for file in chosen for name in chosen[file])
        limit = min(LIMIT // 3, int(20 + 5 * seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, LIMIT + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        for file, order in chosen.items():
            wanted = _Wanted(order, calls[file].tests.keys())
            if (code := pytest.main([*QUIET, "-x", file], plugins=[wanted])) in UNSEEN:
                continue
            if code in SEEN and wanted.waited:
                wanted = _Wanted([wanted.failed], calls[file].tests.keys())
                if (code := pytest.main([*QUIET, "-x", file], plugins=[wanted])) in UNSEEN:
                    continue
            return [int(code), wanted.failed or file]
        return [0, "survived"]

    for mutant, ended in _forked(run, mutants, workers):
        code, how = ended or (1, "endless")
        if code and code not in SEEN:
            raise RuntimeError(f"pytest itself failed with {code}: {mutant}")
        yield mutant, how


@dataclass
class _Wanted:
    """A pytest plugin: only these tests, in this order, then those whose parameters changed.

    failed: the first that fails; waited: whether that took long.
    """

    tests: list[str]
    known: Collection[str]
    failed: str = ""
    waited: bool = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {name: number for number, name in enumerate(self.tests)}
        there = (item for item in items if item.nodeid in place or item.nodeid not in self.known)
        items[:] = sorted(there, key=lambda item: place.get(item.nodeid, len(place)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed, self.waited = report.nodeid, report.duration > WAITED


def _tests(mutant: SourceMutant, calls: dict[str, Calls]) -> dict[str, list[str]]:
    """By file, the quickest tests that call its function, then others of the files where it runs.

    The files that take the least time come first. Others see it where a helper of the file keeps
    what the function made for the first of them, or where it runs when a module is imported.
    A loop that machine code alone calls is looked for where its module is imported.
    """
    function = f"{mutant.file} {mutant.function or '<module>'}"
    if not any(function in there.called for there in calls.values()):
        function = f"{mutant.file} <module>"
    own = Path("tests", mutant.file).parent
    found = []
    for file, there in calls.items():
        first = set(there.called.get(function, ()))
        same = {n for f, of in there.called.items() if f.startswith(f"{mutant.file} ") for n in of}
        for number, (name, seconds) in enumerate(there.tests.items()):
            if first and number:
                found.append((2 - (number in first) - (number in same), seconds, name, file))
    result: dict[str, list[str]] = defaultdict(list)
    cost: dict[str, tuple[int, float]] = {}
    spent = 0.0
    for rank, seconds, name, file in sorted(found):
        near = not rank and own.is_relative_to(Path(file).parent)
        if spent and spent + seconds > ENOUGH * (3 if near else 1):
            continue
        spent += seconds
        result[file].append(name)
        first_rank, before = cost.get(file, (rank, 0.0))
        cost[file] = first_rank, before + seconds
    return {file: result[file] for file in sorted(cost, key=cost.__getitem__)}


def _forked(
    work: Callable[[T], object], pieces: Iterable[T], workers: int
) -> Iterator[tuple[T, Any]]:
    """work(piece) of each piece in a process of its own; None where that was ended."""
    running: dict[int, tuple[T, Path]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number, piece in enumerate(pieces):
            if len(running) == workers:
                yield _ended(running)
            answer = Path(folder) / str(number)
            if child := os.fork():
                running[child] = piece, answer
            else:
                _child(work, piece, answer)
        while running:
            yield _ended(running)


def _child(work: Callable[[T], object], piece: T, answer: Path) -> None:
    try:
        os.setsid()  # no terminal: what asks for one in the background would be stopped
        with suppress(OSError):  # Linux shares processors among sessions, whatever their nice is
            Path("/proc/self/autogroup").write_text(f"{os.nice(0)}")
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 1))
        signal.alarm(10 * LIMIT)
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        answer.write_text(json.dumps(work(piece)))
    finally:
        os._exit(0)


def _ended(running: dict[int, tuple[T, Path]]) -> tuple[T, Any]:
    child, _ = os.wait()
    piece, answer = running.pop(child)
    return piece, json.loads(answer.read_text()) if answer.exists() else None
