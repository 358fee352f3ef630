"""Sources with one operator or number changed, and whether their tests see it.

    python -m tests.mutants.source_mutants --count 200 --seed 1

Every mutant runs in a scratch copy of the tree, never in the tree itself.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PATIENCE = 180
COPIED = ("compilers", "controller", "inventory", "mininet_scenarios", "polarfab", "templates")
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
TARGETS = "tests/compilers/targets"
TESTS = {
    "compilers/proof": ("tests/compilers/proof", "tests/mutants/test_array_mutants.py"),
    "compilers/targets/openflow": (
        f"{TARGETS}/test_large_numbers.py",
        f"{TARGETS}/test_ovs_text.py",
        "tests/compilers/readers/test_ovs_reader.py",
        f"{TARGETS}/test_openflow_wire.py",
    ),
    "compilers/targets/routed": (
        f"{TARGETS}/test_large_numbers.py",
        f"{TARGETS}/test_routed_text.py",
        f"{TARGETS}/test_network_systems_files.py",
        f"{TARGETS}/test_srv6_text.py",
        f"{TARGETS}/test_sonic_srv6.py",
        f"{TARGETS}/test_targets_agree.py",
        f"{TARGETS}/test_frr_bgp.py",
        f"{TARGETS}/test_junos_entering.py",
    ),
}
"""The fast tests of each folder of sources."""


@dataclass(frozen=True, slots=True)
class SourceMutant:
    """One change: the file, its line, the node by its place in the tree, what it becomes."""

    file: str
    line: int
    node: int
    number: int
    change: str

    def __str__(self) -> str:
        """`compilers/proof/x.py:12: a > b`."""
        return f"{self.file}:{self.line}: {self.change}"

    def text(self, source: str) -> str:
        """The module with the change."""
        tree = ast.parse(source)
        place = next(node for i, node in enumerate(ast.walk(tree)) if i == self.node)
        changed = list(_changes(copy.deepcopy(place)))[self.number]
        place.__dict__.update(changed.__dict__)
        place.__class__ = changed.__class__
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants_of(file: str, source: str) -> Iterator[SourceMutant]:
    """Every mutant of a module."""
    tree = ast.parse(source)
    types = {id(part) for node in ast.walk(tree) for part in _types(node)}
    for place, node in enumerate(ast.walk(tree)):
        for number, changed in enumerate(_changes(node) if id(node) not in types else ()):
            line = getattr(node, "lineno", 0)
            yield SourceMutant(file, line, place, number, ast.unparse(changed))


def _types(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of the type that a node is declared to have: they do nothing when it runs."""
    for word in ("annotation", "returns"):
        if declared := getattr(node, word, None):
            yield from ast.walk(declared)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may become: off by one, another comparison, a term dropped, the low byte."""
    if isinstance(node, ast.Compare) and (new := COMPARED.get(type(node.ops[0]))):
        yield ast.Compare(node.left, [new(), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.BitOr):
        yield copy.deepcopy(node.left)
        yield ast.BinOp(node, ast.BitAnd(), ast.Constant(0xFF))
    elif isinstance(node, ast.BoolOp):
        more = len(node.values) > 2
        yield ast.BoolOp(node.op, node.values[:-1]) if more else copy.deepcopy(node.values[0])
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)


def chosen(seed: int, count: int) -> list[SourceMutant]:
    """So many mutants, as many of each folder."""
    random = Random(seed)  # noqa: S311
    result = []
    for folder in TESTS:
        found = [
            mutant
            for path in sorted((ROOT / folder).rglob("*.py"))
            for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_text())
        ]
        result += random.sample(found, min(len(found), count // len(TESTS)))
    return result


class Scratch:
    """Copies of the tree, one a worker."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.free: Queue[Path] = Queue()
        for number in range(workers):
            place = folder / str(number)
            ignored = shutil.ignore_patterns("__pycache__")
            for name in (*COPIED, "tests", "docs"):
                shutil.copytree(ROOT / name, place / name, ignore=ignored)
            for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
                shutil.copy(ROOT / name, place / name)
            self.free.put(place)

    def survives(self, mutant: SourceMutant, tests: tuple[str, ...] = ()) -> bool:
        """Whether the tests of the mutant's folder pass with it."""
        wanted = tests or next(t for f, t in TESTS.items() if mutant.file.startswith(f"{f}/"))
        place = self.free.get()
        file = place / mutant.file
        before = file.read_text()
        try:
            file.write_text(mutant.text(before))
            return _pass(place, wanted)
        finally:
            file.write_text(before)
            self.free.put(place)


def _pass(place: Path, tests: tuple[str, ...]) -> bool:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not live and not long and not browser")
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survivors(mutants: list[SourceMutant], workers: int = 2) -> Iterator[SourceMutant]:
    """Those that no test sees, as they are found."""
    with TemporaryDirectory(prefix="mutants-") as name, ThreadPoolExecutor(workers) as pool:
        scratch = Scratch(Path(name), workers)
        for mutant, survived in zip(mutants, pool.map(scratch.survives, mutants), strict=True):
            if survived:
                yield mutant


def main() -> None:
    """Print the survivors, for people to judge: some change nothing that anybody can see."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    mutants = chosen(words.seed, words.count)
    found = 0
    for mutant in survivors(mutants):
        found += 1
        print(f"survived: {mutant}", flush=True)
    print(f"{len(mutants)} mutants of sources, {found} survived")


if __name__ == "__main__":
    main()
