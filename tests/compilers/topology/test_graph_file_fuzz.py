"""Mutated graph files are read, or end in an InputError that names the file; nothing else."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest

from compilers.topology.families import build_topology
from compilers.topology.files.graph_file import graph_file
from compilers.topology.files.graph_formats import pieces
from inventory.problems import InputError
from tests.compilers.spec.makers import mutated_bytes, mutated_tree
from tests.fuzzing import reading, ten_minutes

SUFFIXES = {
    **{"edges": ".txt", "json": ".json", "graphml": ".graphml"},
    **{"anynet": ".txt", "node-link": ".json"},
}
SEEDS = range(80)


def fuzz(form: str, seeds: range, folder: Path) -> None:
    stream = io.StringIO()
    stream.writelines(pieces(build_topology("polarfly", {"q": 2}), form))
    whole, good, bad = stream.getvalue().encode(), 0, 0
    file = folder / f"graph{SUFFIXES[form]}"
    for seed in seeds:
        chance = random.Random(seed)  # noqa: S311
        tree = SUFFIXES[form] == ".json" and chance.random() < 0.6
        text = mutated_tree(json.loads(whole), chance) if tree else mutated_bytes(whole, chance)
        file.write_bytes(text)
        try:
            found = graph_file(file)
        except InputError as error:
            problems = [*error.problems]
            bad += 1
        except Exception as error:
            raise AssertionError(f"{form}, seed {seed}: {text!r}"[:4000]) from error
        else:
            problems = []
            assert found.edges.shape[1] == 2, seed
            assert (found.edges >= 0).all(), seed
            assert len(set(found.names)) == len(found.hosts) > found.edges.max(initial=-1), seed
            good += 1
        assert all(problem.file.endswith(file.name) for problem in problems), seed
    assert bad
    assert good


@pytest.mark.parametrize("form", SUFFIXES)
def test_mutated_graphs(form: str, tmp_path: Path) -> None:
    fuzz(form, SEEDS, tmp_path)


@pytest.mark.long
def test_ten_minutes_of_graphs(tmp_path: Path) -> None:
    texts = dict[str, bytes]()
    for form in SUFFIXES:
        stream = io.StringIO()
        stream.writelines(pieces(build_topology("polarfly", {"q": 2}), form))
        texts[form] = stream.getvalue().encode()

    def case(chance: random.Random) -> str:
        form = chance.choice(list(texts))
        tree = SUFFIXES[form] == ".json" and chance.random() < 0.6
        whole, file = texts[form], tmp_path / f"graph{SUFFIXES[form]}"
        mutated = mutated_tree(json.loads(whole), chance) if tree else mutated_bytes(whole, chance)
        file.write_bytes(mutated)
        return reading(lambda: graph_file(file), tmp_path)

    ten_minutes("graphs", case)


def test_a_link_of_odd_names_is_named_in_letters(tmp_path: Path) -> None:
    """Found by ten minutes of graphs."""
    (tmp_path / "graph.txt").write_bytes(b"0\0 5\n0 1\n0\0 5\n")
    with pytest.raises(InputError, match="each link once") as caught:
        graph_file(tmp_path / "graph.txt")
    assert all(str(problem).isprintable() for problem in caught.value.problems)
