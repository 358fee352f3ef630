"""Fabrics too large for the machine are refused before the work begins."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time

import pytest

from compilers.memory_bound import MemoryBound, memory_findings, require_graph
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.topology.families import edge_blocks, family_of, known_families
from compilers.topology.field import prime_powers_near
from inventory.problems import InputError
from polarfab import Fabric, analyse, draw, simulate, throughput, topology
from tests.memory_limits import memory_left

GB = 10**9
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
Q7 = {"name": "lab", "topology": {"family": "polarfly", "q": 7}}
"""A fabric of 57 switches."""
REFUSED = r"57 switches of up to 8 links take at least 0\.1 GB, given 0\.1 GB available"
WORKS: dict[str, Callable[[Fabric], object]] = {
    "compile": lambda _: Fabric.from_spec(Q7).compile(),
    "topology": lambda _: topology("polarfly", q=7),
    "analyse": lambda f: analyse(f.topology, ["load"]),
    "draw": draw,
    "verify": lambda f: f.verify(),
    "throughput": lambda f: throughput(f, ["uniform"]),
    "render": lambda f: f.render("frr", "out", unverified=True, check=False),
}


def needed(routing: dict[str, str], **parameters: int | str) -> int:
    """Bytes of compiling a fabric."""
    spec = {"name": "lab", "topology": parameters, "routing": routing}
    return MemoryBound.of_spec(load_fabric(spec).spec).needed


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
        ("jellyfish", {"nodes": 9 * 10**7, "degree": 8, "seed": 1}),
        ("hyperx", {"sides": "400x400x400"}),
    ],
)
def test_graphs_are_refused_with_numbers(family: str, given: dict[str, int | str]) -> None:
    with memory_left(4 * GB):
        with pytest.raises(
            InputError, match=r"take at least [0-9,.]+ GB, given [34].[0-9] GB"
        ) as error:
            require_graph(family, given)
        found = re.search(r"; take a smaller fabric: (\w+) fits up to ([0-9]+),", str(error.value))
        assert bool(found) == (family != "hyperx")  # its size is no number
        if found:
            require_graph(family, {**given, found[1]: int(found[2])})


def test_the_largest_that_compiles_is_named() -> None:
    def refusals(q: int) -> list[str]:
        spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}}
        return [str(each.problem()) for each in memory_findings(load_fabric(spec).spec)]

    with memory_left(2 * GB):
        (said,) = refusals(509)
        found = re.search(r"; take a smaller fabric: q fits up to ([0-9]+),", said)
        assert found
        q = int(found[1])
        assert refusals(q) == []
        assert len(refusals(prime_powers_near(q)[1])) == 1


@pytest.mark.parametrize(
    ("q", "protect", "switches", "links"),
    [
        (251, "link", "63,253", "252"),
        (1009, "none", "1,019,091", "1,010"),
    ],
)
def test_what_does_not_compile_is_said_at_once(
    tmp_path: Path, q: int, protect: str, switches: str, links: str
) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text(
        f"name: lab\ntopology: {{family: polarfly, q: {q}}}\nrouting: {{protect: {protect}}}\n"
    )
    size = rf"{switches} switches of up to {links} links take at least [0-9.]+ GB"
    said = rf"fabric\.yaml:2: topology\.q: .*{size}"
    start = process_time()
    with memory_left(4 * GB), pytest.raises(InputError, match=said):
        compile_fabric(load_fabric(file))
    assert process_time() - start < 1


def test_the_bound_is_not_far_from_what_was_measured() -> None:
    """Peaks of processes: docs/evidence.md, and 1.1 GB for 16,257 protected switches."""
    protected = {"balance": "compact-valiant", "protect": "node"}
    assert 0.5 * GB < needed(protected, family="polarfly", q=127) < 1.1 * GB
    star = {"family": "polarstar", "q": 64, "supernode": "inductive-quad", "degree": 63}
    assert 3 * GB < needed({"balance": "minimal"}, **star) < 5.6 * GB
    searched = {"family": "jellyfish", "nodes": 8000, "degree": 8, "seed": 1}
    assert needed(protected, **searched) > 3 * GB > needed({"balance": "minimal"}, **searched)


@pytest.fixture(scope="module")
def built() -> Fabric:
    return Fabric.from_spec(Q7).compile()


@pytest.mark.parametrize("what", WORKS)
def test_each_work_is_refused_before_it_begins(
    what: str, built: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """57 switches take little, which this process has no more."""
    monkeypatch.chdir(tmp_path)
    WORKS[what](built)
    with memory_left(60 * 10**6), pytest.raises(InputError, match=REFUSED):
        WORKS[what](built)


def test_a_simulation_is_refused_before_it_begins(built: Fabric) -> None:
    import_module("extensions.simulation.build_simulation")  # numba takes address space
    with memory_left(60 * 10**6), pytest.raises(InputError, match=REFUSED):
        simulate(built, "tornado", [0.1])


def test_edges_need_no_memory() -> None:
    assert next(edge_blocks("polarfly", {"q": 1009}))[0].tolist() == [0, 1]
    assert family_of("polarfly").degree({"q": 1009}) == 1010


PEAK = """
import sys
from pathlib import Path
from polarfab import Fabric
build = Fabric.from_spec(sys.argv[1]).compile()
build.verify()
print(next(line.split()[1] for line in Path("/proc/self/status").open() if "VmHWM" in line))
"""


@pytest.mark.parametrize("q", [31, pytest.param(61, marks=pytest.mark.long)])
def test_a_process_stays_near_the_bound(q: int, tmp_path: Path) -> None:
    spec = tmp_path / "fabric.yaml"
    spec.write_text(f"name: lab\ntopology: {{family: polarfly, q: {q}}}\n")
    command = [sys.executable, "-c", PEAK, str(spec)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024
    bound = MemoryBound.of_spec(load_fabric(spec).spec).needed
    assert 0.8 * bound < peak < 3 * bound


ADDRESS_SPACE = """
import resource, sys
from compilers.memory import available
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
print(available())
"""


def test_a_limit_of_address_space_counts() -> None:
    """As `ulimit -v` sets it: what the process has already is not left."""
    for more, least in ((1 << 28, (1 << 28) - (1 << 25)), (1 << 60, 1 << 28)):
        command = [sys.executable, "-c", ADDRESS_SPACE, str(more)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert least < int(printed) <= more
