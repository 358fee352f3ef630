"""Tests run on changed sources: in a fork of this process, the change in its memory only.

This process has loaded what others wrote and nothing of ours, so a fork starts in no time and its
tests import every module of ours anew, the changed one among them.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType
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
"""Most seconds of CPU of a process. One with a mutant has 20 and five times what its tests took,
but a third of this."""
ENOUGH = 30.0
"""Seconds that the tests of one mutant may take, as they took without it; those of its own folder
are all run.
"""
TRANSLATED = ("compilers/forwarding/", "compilers/proof/local/")
"""Where loops are: a library of machine code holds them as they are on disk."""
QUIET = ("-q", "-p", "no:cacheprovider", "-m", "not (live or long or browser)")
SEEN = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""How tests end with a mutant that they see; modules may fail to load."""
UNSEEN = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
BROKEN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
T = TypeVar("T")


@dataclass(slots=True)
class Calls:
    """A test file: what it imports, what runs as `file function`, its tests and their seconds.

    failed: those that fail, and how.
    """

    imports: list[str] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    tests: dict[str, tuple[float, list[str]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=lambda: ["none of it ran to its end"])


class _Recorder:
    """A pytest plugin: what each test calls, and how long it takes."""

    def __init__(self) -> None:
        self.calls = Calls(failed=[])
        self.all: set[CodeType] = set()
        self.seen: set[CodeType] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Any:
        """What runs when modules are imported."""
        return (yield from self._traced())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        before = sum(os.times()[:4])
        try:
            return (yield from self._traced())
        finally:
            self.calls.tests[item.nodeid] = (sum(os.times()[:4]) - before, _ours(self.seen))

    def _traced(self) -> Generator[None, Any, Any]:
        self.seen = seen = set()

        def note(frame: FrameType, _event: str, _argument: object) -> None:
            seen.add(frame.f_code)

        sys.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.all |= seen

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.calls.called = _ours(self.all)
        if exitstatus not in UNSEEN and not self.calls.failed:
            self.calls.failed.append(f"exit status {exitstatus}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.calls.failed.append(f"{report.nodeid}: {report.longreprtext[-300:]}")


def _ours(codes: Iterable[CodeType]) -> list[str]:
    """Functions of ours, and modules and classes as their statements run."""
    root = f"{ROOT}/"
    return sorted(
        {
            f"{code.co_filename.removeprefix(root)} {code.co_qualname}"
            for code in codes
            if code.co_filename.startswith(root)
        }
    )


def _imports(file: Path) -> list[str]:
    """The files of the modules that a test file names in its imports."""
    nodes = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom))
    names = ((n.module or "", alias.name) for n in nodes for alias in n.names)
    paths = {f"{name.replace('.', '/')}.py" for m, n in names for name in (m, f"{m}.{n}")}
    return sorted(path for path in paths if (ROOT / path).is_file())


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
        tree: ast.Module = self.mutant.tree(path.read_text())
        exec(compile(tree, str(path), "exec"), module.__dict__)  # noqa: S102


def recorded(files: Iterable[Path], workers: int) -> dict[str, Calls]:
    """Run every test file once, on the sources as they are; those that come before an end."""

    def run(file: Path) -> object:
        recorder = _Recorder()
        pytest.main([*QUIET, str(file)], plugins=[recorder])
        calls = recorder.calls
        return _imports(file), calls.called, calls.tests, calls.failed

    return {
        str(file.relative_to(ROOT)): Calls(*found) if found else Calls()
        for file, found in _forked(run, files, workers)
    }


def killed(
    mutants: Iterable[SourceMutant], calls: dict[str, Calls], workers: int
) -> Iterator[tuple[SourceMutant, str]]:
    """Every mutant, and how a test of those that call its function ends, as they end.

    `failed`, `endless` where none has failed within the limit, or `survived`.
    """

    def run(mutant: SourceMutant) -> object:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, _Planted(mutant, module))
        os.environ["POLARFAB_LOOPS"] = "python" if mutant.file.startswith(TRANSLATED) else ""
        chosen = _tests(mutant, calls)
        seconds = sum(calls[file].tests[name][0] for file in chosen for name in chosen[file])
        limit = min(LIMIT // 3, int(20 + 5 * seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, LIMIT + 1))
        for file, order in chosen.items():
            plugins = [_Order(order, calls[file].tests.keys())]
            if (code := pytest.main([*QUIET, "-x", file], plugins=plugins)) not in UNSEEN:
                return int(code)
        return 0

    for mutant, code in _forked(run, mutants, workers):
        if code in BROKEN:
            raise RuntimeError(f"pytest itself failed with {code}: {mutant}")
        yield mutant, "endless" if code is None else "failed" if code in SEEN else "survived"


@dataclass
class _Order:
    """A pytest plugin: only these tests, in this order, then those whose parameters changed."""

    wanted: list[str]
    known: Collection[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {name: number for number, name in enumerate(self.wanted)}
        there = (item for item in items if item.nodeid in place or item.nodeid not in self.known)
        items[:] = sorted(there, key=lambda item: place.get(item.nodeid, len(place)))


def _tests(mutant: SourceMutant, calls: dict[str, Calls]) -> dict[str, list[str]]:
    """By file, the quickest tests that call its function, then others of the files where it runs.

    The files that take the least time come first. Others see it where a helper of the file keeps
    what the function made for the first of them, or where it runs when a module is imported.
    """
    function = f"{mutant.file} {mutant.function or '<module>'}"
    own = Path("tests", mutant.file).parent
    found = [
        (_rank(mutant, function, there, called), seconds, name, file)
        for file, there in calls.items()
        if function in there.called
        for name, (seconds, called) in there.tests.items()
    ]
    result: dict[str, list[str]] = defaultdict(list)
    cost: dict[str, tuple[int, float]] = {}
    spent = 0.0
    for rank, seconds, name, file in sorted(found):
        if spent and spent + seconds > ENOUGH and Path(file).parent != own:
            continue
        spent += seconds
        result[file].append(name)
        first, before = cost.get(file, (rank, 0.0))
        cost[file] = first, before + seconds
    return {file: result[file] for file in sorted(cost, key=cost.__getitem__)}


def _rank(mutant: SourceMutant, function: str, file: Calls, called: list[str]) -> int:
    """How near a test is to a mutant: it calls it, its file imports it, it calls its neighbours."""
    if function in called:
        return 0
    if mutant.file in file.imports:
        return 1
    return 3 - any(name.startswith(f"{mutant.file} ") for name in called)


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
