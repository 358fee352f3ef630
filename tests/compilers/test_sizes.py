"""Sizes are refused from formulas before any work: no array, no search for factors."""

from __future__ import annotations

import re
from dataclasses import replace
from time import process_time

import pytest

from compilers import estimates
from compilers.estimates import beyond_memory, require_graph
from compilers.memory import GB
from compilers.spec.fabric_file import load_fabric
from compilers.topology.families import known_families
from compilers.topology.field import prime_powers_near
from inventory.problems import InputError

HUGE = {
    "dragonfly": {"h": 10**15},
    "slimfly": {"q": 1000000000000000003},
    "jellyfish": {"nodes": 10**9, "degree": 4, "seed": 1},
    "hyperx": {"sides": "99999999999999999999"},
    "fat-tree": {"k": 10**15},
    "pn": {"q": 1000000000000000003},
    "oft": {"q": 10**30},
    "polarfly": {"q": 10**18 + 9},
    "polarstar": {"q": 10**18 + 9, "supernode": "paley", "degree": 4},
    "spectralfly": {"p": 10**18 + 9, "q": 10**18 + 9},
    "mlfm": {"h": 10**15},
    "megafly": {"h": 10**15, "a": 4},
}


@pytest.mark.parametrize("family", HUGE)
def test_huge_parameters_are_refused_at_once(family: str) -> None:
    assert family in known_families()
    start = process_time()
    with pytest.raises(InputError):
        require_graph(family, HUGE[family])
    with pytest.raises(InputError):
        load_fabric({"name": "lab", "topology": {"family": family, **HUGE[family]}})
    assert process_time() - start < 5


@pytest.mark.parametrize(
    ("family", "given"),
    [
        ("pn", {"q": 1021}),
        ("oft", {"q": 509}),
        ("jellyfish", {"nodes": 9 * 10**7, "degree": 8, "seed": 1}),
        ("hyperx", {"sides": "400x400x400"}),
        ("fat-tree", {"k": 4000}),
        ("slimfly", {"q": 2003}),
    ],
)
def test_what_memory_cannot_hold_is_refused_with_numbers(
    family: str, given: dict[str, int | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "available", lambda: 4 * GB)
    with pytest.raises(InputError, match=r"takes [0-9,.]+ GB, given 4.0 GB available") as error:
        require_graph(family, given)
    found = re.search(r"; here (\w+) fits up to ([0-9]+)$", str(error.value))
    assert bool(found) == (family != "hyperx")  # its size is no number
    if found:
        require_graph(family, {**given, found[1]: int(found[2])})


def test_the_largest_that_compiles_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "available", lambda: 2 * GB)

    def refusals(q: int) -> list[str]:
        spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}}
        found = beyond_memory(load_fabric(spec).spec)
        return [str(each.problem()) for each in found]

    (said,) = refusals(509)
    found = re.search(r"given 2.0 GB available; lower q, .*; here q fits up to ([0-9]+)$", said)
    assert found
    q = int(found[1])
    assert refusals(q) == []
    assert len(refusals(prime_powers_near(q)[1])) == 1


def test_a_seed_may_be_large() -> None:
    require_graph("jellyfish", {"nodes": 20, "degree": 4, "seed": 10**12})


def test_channels_are_counted_for_pairs_of_switches() -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 7}}
    small = estimates.Size.of_spec(load_fabric(spec).spec)
    large = replace(small, switches=2 * small.switches)
    seconds = estimates.WORKS["channels"].seconds
    assert seconds(large) == 4 * seconds(small)
