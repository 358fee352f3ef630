"""Fabrics too large for the machine are answered before the work begins."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compilers import memory
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from inventory.problems import InputError

SHAPES = (
    "{family: polarfly, q: 7}",
    "{family: polarstar, q: 5, supernode: inductive-quad, degree: 3}",
    "{family: polarstar, q: 4, supernode: paley, degree: 2}",
    "{family: pn, q: 4}",
    "{family: oft, q: 3}",
)


def fabric(folder: Path, topology: str, protect: str = "none") -> Path:
    file = folder / "fabric.yaml"
    file.write_text(f"name: lab\ntopology: {topology}\nrouting: {{protect: {protect}}}\n")
    return file


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path, kilobytes: int) -> None:
    file = folder / "meminfo"
    file.write_text(f"MemTotal: 99999999999 kB\nMemAvailable:   {kilobytes} kB\n")
    monkeypatch.setattr(memory, "MEMINFO", file)


@pytest.mark.parametrize("protect", ["none", "link"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_formula_has_the_tables_shape(tmp_path: Path, shape: str, protect: str) -> None:
    loaded = load_fabric(fabric(tmp_path, shape, protect))
    egress = compile_fabric(loaded).tables.routes.egress
    assert egress.itemsize == 1
    assert memory.needed(loaded.spec) == egress.size * (5 if protect == "none" else 14) // 4


@pytest.mark.parametrize(
    ("q", "protect", "said"),
    [
        (251, "none", r"63,253 switches need 5\.0 GB, given 4\.1 GB available"),
        (251, "link", r"63,253 switches need 28\.0 GB, given 4\.1 GB available"),
        (1009, "none", r"1,019,091 switches need 2,596\.4 GB, given 4\.1 GB available"),
    ],
)
def test_too_large_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, q: int, protect: str, said: str
) -> None:
    machine(monkeypatch, tmp_path, 4_000_000)
    start = time.process_time()
    with pytest.raises(InputError, match=rf"fabric\.yaml:2: topology\.q: .*{said}; lower q"):
        compile_fabric(load_fabric(fabric(tmp_path, f"{{family: polarfly, q: {q}}}", protect)))
    assert time.process_time() - start < 1


def test_what_just_fits_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_fabric(fabric(tmp_path, "{family: polarfly, q: 31}"))
    kilobytes = -(-memory.needed(loaded.spec) // 1024)
    machine(monkeypatch, tmp_path, kilobytes)
    assert not [*memory.beyond_memory(loaded.spec)]
    machine(monkeypatch, tmp_path, kilobytes - 1)
    assert [f.path for f in memory.beyond_memory(loaded.spec)] == [("topology", "q")]


def test_a_machine_without_meminfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")
    assert memory.available() > 1 << 20
