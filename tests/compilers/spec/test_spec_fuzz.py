"""Mutated example files load or end in an InputError that names a file; nothing else happens."""

import random
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from compilers.planes import compile_planes
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build_codec import require_declared
from inventory.problems import InputError
from tests.compilers.spec.makers import mutated_bytes, mutated_tree
from tests.fuzzing import reading, ten_minutes

ROOT = Path(__file__).parents[3]
MUTANTS = {
    "examples/q7": 30,
    "examples/q7-copackaged": 30,
    "examples/polarstar-q5": 30,
    "tests/data/everything": 70,
}


@pytest.mark.parametrize("example", MUTANTS)
def test_mutated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # "-" as the inventory's name reads it
    folder = ROOT / example
    originals = {name: (folder / name).read_bytes() for name in ("fabric.yaml", "inventory.yaml")}
    trees = {name: yaml.safe_load(text) for name, text in originals.items()}
    for name in originals:
        shutil.copy(folder / name, tmp_path)
    good = bad = seed = 0
    while seed < MUTANTS[example] or not good or not bad:
        seed += 1
        rng = random.Random(seed)  # noqa: S311
        name = rng.choice(list(originals))
        text = (
            mutated_tree(trees[name], rng)
            if rng.random() < 0.6
            else mutated_bytes(originals[name], rng)
        )
        (tmp_path / name).write_bytes(text)
        problems = None
        try:
            compile_planes(load_fabric(tmp_path / "fabric.yaml"))
        except InputError as error:
            problems = error.problems
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}"[:4000]) from error
        (tmp_path / name).write_bytes(originals[name])
        if problems is None:
            good += 1
            continue
        bad += 1
        assert problems, seed
        for problem in problems:
            assert problem.file.startswith(str(tmp_path)), (seed, problem)
            assert len(str(problem)) < 600 + len(problem.file), (seed, problem)
            assert str(problem).isprintable(), (seed, problem)


@pytest.mark.long
def test_ten_minutes_of_documents(tmp_path: Path) -> None:
    """Specs and inventories, mutated as trees and as bytes; of what compiles some is proved."""
    files = dict[Path, bytes]()
    for example in MUTANTS:
        (place := tmp_path / Path(example).name).mkdir()
        for name in ("fabric.yaml", "inventory.yaml"):
            files[place / name] = (ROOT / example / name).read_bytes()
            (place / name).write_bytes(files[place / name])
    trees = {file: yaml.safe_load(text) for file, text in files.items()}

    def work(spec: Path, chance: random.Random) -> None:
        for build in compile_planes(load_fabric(spec)):
            require_declared(build)
            if chance.random() < 0.1:
                assert verify(build).passed, "the proof fails"

    def case(chance: random.Random) -> str:
        file = chance.choice(list(files))
        tree = chance.random() < 0.7
        text = mutated_tree(trees[file], chance) if tree else mutated_bytes(files[file], chance)
        file.write_bytes(text)
        try:
            return reading(lambda: work(file.with_name("fabric.yaml"), chance), tmp_path)
        finally:
            file.write_bytes(files[file])

    ten_minutes("documents", case)
