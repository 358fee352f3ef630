"""Arrays that are computed stand where stored ones stand, in memory and in build folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import minimal_tables
from compilers.spec.forwarding import PLAIN, Forwarding
from compilers.tables import computed_array
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray
from compilers.tables.fib import Fib
from compilers.tables.folders.build_folder import load, save, with_identity
from compilers.tables.line_rows import LineEgress
from compilers.tables.star_rows import StarEgress, StarPrefixes
from inventory.problems import InputError
from tests.compilers.routed import routed, with_alternates

POLARSTAR = {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3}
ARRAYS: dict[str, Callable[[Build], Any]] = {
    "route_prefix": lambda build: build.tables.routes.prefix,
    "route_egress": lambda build: build.tables.routes.egress,
    "class_alternate": lambda build: build.tables.classes.alternate,
    "class_weight": lambda build: build.tables.classes.weight,
}
CASES: list[tuple[dict[str, Any], Forwarding]] = [
    *(({"q": q}, with_alternates(protect="node")) for q in (2, 4, 7)),
    ({"q": 8}, with_alternates(Fraction(1, 3), disjoint=False)),
    (POLARSTAR, with_alternates()),
    *(
        ({**POLARSTAR, "q": q, "supernode": kind, "degree": degree}, PLAIN)
        for kind, q, degree in [
            ("inductive-quad", 2, 0),
            ("inductive-quad", 4, 4),
            ("paley", 3, 4),
            ("complete", 3, 3),
            ("bdf", 3, 5),
            ("cayley", 2, 1),
        ]
    ),
]


def built(words: dict[str, Any], forwarding: Forwarding) -> Build:
    whole = routed.__wrapped__(**words)
    tables = minimal_tables(whole.topology, whole.wiring)
    tables = choices(tables, whole.topology, whole.wiring, forwarding)
    balance = "compact-valiant" if forwarding.has_alternates else "minimal"
    return replace(whole, tables=tables, balance=balance, forwarding=forwarding)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)


@pytest.mark.parametrize(("words", "forwarding"), CASES)
def test_computed_arrays_hold_what_stored_ones_hold(
    words: dict[str, Any], forwarding: Forwarding, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = built(words, forwarding)
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)
    monkeypatch.setattr(computed_array, "COMPUTED_CELLS_AT_ONCE", 1000)
    computed = built(words, forwarding)
    chance = np.random.default_rng(1)
    assert np.array_equal(computed.tables.routes.rows(), stored.tables.routes.rows())
    pairs = [(array(computed), array(stored)) for array in ARRAYS.values()]
    pairs = [pair for pair in pairs if isinstance(pair[0], ComputedArray)]
    assert len(pairs) >= 2
    for ours, theirs in pairs:
        assert isinstance(theirs, np.ndarray)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert np.array_equal(ours, theirs)
        places = tuple(chance.integers(n, size=(3, 20)) for n in theirs.shape)
        some = places[0][0]
        for index in (3, -1, slice(2, 9, 3), some, some[:, None], np.arange(len(theirs)) % 3 == 1):
            assert np.array_equal(ours[index], theirs[index])
            assert np.array_equal(ours[index, 1], theirs[index, 1])
            assert np.array_equal(ours[index, ..., 1:], theirs[index, ..., 1:])
        assert np.array_equal(ours[places], theirs[places])
        assert np.array_equal(ours[places[:2]], theirs[places[:2]])
        assert np.array_equal(ours[..., 0], theirs[..., 0])
        assert np.array_equal(ours > 1, theirs > 1)
        assert ours.max() == theirs.max()
        assert all(np.array_equal(*rows) for rows in zip(ours, theirs, strict=True))
        assert all(np.array_equal(ours[s], theirs[s]) for s in chance.permutation(len(theirs)))


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(("words", "forwarding"), [CASES[2], CASES[-3]])
def test_a_folder_keeps_what_arrays_are_computed_from(
    words: dict[str, Any], forwarding: Forwarding, tmp_path: Path
) -> None:
    build = built(words, forwarding)
    back = save(build, tmp_path / "build")
    again = save(back, tmp_path / "again")
    assert with_identity(build).identity == back.identity == again.identity
    files = {path.stem for path in (tmp_path / "build" / "arrays").iterdir()}
    for name, array in ARRAYS.items():
        if isinstance(array(build), ComputedArray):
            assert name not in files
            assert np.array_equal(array(back), array(build))


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("case", [CASES[1], CASES[-3]])
def test_what_arrays_are_computed_from_is_checked(
    case: tuple[dict[str, Any], Forwarding], tmp_path: Path
) -> None:
    folder = tmp_path / "build"
    save(built(*case), folder)
    for file in sorted((folder / "arrays").glob("s*_*.npy")):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(InputError, match=f"{file.stem}.*a changed file"):
            load(folder)
        file.unlink()
        with pytest.raises(InputError, match=f"{file.stem}.*no file"):
            load(folder)
        file.write_bytes(whole)
    load(folder)


@pytest.mark.usefixtures("packed")
def test_computed_rows_are_walked_and_proved_as_stored_ones() -> None:
    build = built({**POLARSTAR, "supernode": "paley", "degree": 4}, PLAIN)
    tables = build.tables
    routes = replace(
        tables.routes,
        prefix=np.asarray(tables.routes.prefix),
        egress=np.asarray(tables.routes.egress),
    )
    cables = build.wiring.far_by_port()
    ours = Fib.of(tables, cables)
    theirs = Fib.of(replace(tables, routes=routes), cables)
    ends = np.arange(build.topology.graph.order)
    assert np.array_equal(ours.egress(ends), theirs.egress(ends))
    reports = [
        verify(b, ProofOptions(failures=(), method="local"))
        for b in (build, replace(build, tables=replace(tables, routes=routes)))
    ]
    used = [replace(report.local, program=False) for report in reports if report.local]
    assert used[0] == used[1]
    alike = [replace(report, local=None) for report in reports]
    assert alike[0] == alike[1]
    assert reports[0].passed


@pytest.mark.usefixtures("packed")
def test_a_wrong_rule_is_found() -> None:
    build = built({**POLARSTAR, "degree": 4}, PLAIN)
    program = build.tables.routes.egress.packed  # type: ignore[union-attr]
    case = program.case.copy()
    case[0, 2, 3] = (case[0, 2, 3] + 1) % 3
    wrong = replace(program, case=case)
    routes = replace(build.tables.routes, egress=StarEgress(wrong), prefix=StarPrefixes(wrong))  # type: ignore[arg-type]
    spoilt = replace(build, tables=replace(build.tables, routes=routes))
    assert not verify(spoilt, ProofOptions(failures=(), method="local")).passed


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("fabric", [{"q": 3}, POLARSTAR])
def test_rows_of_classes_that_there_are_not_are_refused(
    fabric: dict[str, Any], tmp_path: Path
) -> None:
    """Such a stored row is refused as the build is read; a computed one was a traceback later."""
    build = built(fabric, PLAIN)
    routes: Any = build.tables.routes
    word = "direct" if isinstance(routes.egress, LineEgress) else "shift"
    beyond = np.full_like(getattr(routes.egress.packed, word), 1)
    packed = replace(routes.egress.packed, **{word: beyond})
    routes = replace(routes, egress=type(routes.egress)(packed))
    if word == "shift":
        routes = replace(routes, prefix=StarPrefixes(packed))
    with pytest.raises(InputError, match=r"rows for \d+ classes of"):
        save(replace(build, tables=replace(build.tables, routes=routes)), tmp_path / "build")


def test_stored_arrays_are_read_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build has every array, or the smaller ones that it is computed from."""
    case = CASES[1]
    stored = save(built(*case), tmp_path / "stored")
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)
    packed = save(built(*case), tmp_path / "packed")
    back = load(tmp_path / "stored")
    assert back.identity == stored.identity != packed.identity
    for array in ARRAYS.values():
        assert isinstance(array(back), np.ndarray)
        assert np.array_equal(array(back), array(packed))
