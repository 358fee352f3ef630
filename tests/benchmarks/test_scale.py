"""Whole processes timed from size to size, and the peers beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale_peers
from benchmarks.scale import EXPLAIN, MINIMAL, PROTECTED, STEPS, Step, run, scale_timings
from compilers.topology.families import FAMILIES
from compilers.topology.polarity import structure

TINY = tuple(Step({"family": "polarfly", "q": q}, q * q + q + 1, {MINIMAL: 1.0}) for q in (2, 3))
PYTHON = sys.executable, "-I", "-S", "-c"


def test_rows_of_ours_with_ratios_and_growth() -> None:
    rows = list(scale_timings((*PYTHON, "0"), TINY, False, 20, 1 << 30))
    assert [(row.fabric, row.what) for row in rows] == [
        (f"polarfly q={q}", what) for q in (2, 3) for what in (MINIMAL, PROTECTED)
    ], "what made no build is not explained"
    assert all(row.seconds and row.megabytes and row.ratio == 1 and not row.why for row in rows)
    assert [row.growth is None for row in rows] == [True, True, False, False]
    assert rows[0].budget == 1


def test_the_real_ones_run() -> None:
    ours = sys.executable, "-m", "polarfab"
    rows = list(scale_timings(ours, TINY[:1], False, 60, 1 << 33))
    assert [(row.what, row.why) for row in rows] == [
        (MINIMAL, ""),
        (EXPLAIN, ""),
        (PROTECTED, ""),
    ]


def test_what_runs_first_in_a_clone_is_not_timed(tmp_path: Path) -> None:
    """In a new clone both fabrics took over 10 s: numba had to translate the loops first."""
    log = tmp_path / "fabrics"
    code = f"import sys; open({str(log)!r}, 'a').write(open(sys.argv[2]).read() + '\\n')"
    rows = list(scale_timings((*PYTHON, code), TINY, False, 0, 1 << 30))
    assert {row.why for row in rows} == {"over 0 s"}
    untimed = [json.loads(line) for line in log.read_text().splitlines()[:4]]
    assert [spec["topology"]["q"] for spec in untimed] == [2, 2, 3, 3]
    assert ["routing" in spec for spec in untimed] == [False, True, False, True]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("while True: pass", "over 0 s"),
        ("import sys; sys.exit('no such fabric')", "no such fabric"),
        ("raise SystemExit(3)", "exit code 3"),
        ("b = bytes(1 << 32)", "out of memory"),
        ("import os; os.kill(os.getpid(), 9)", "killed, for memory as a rule"),
        ("print(7)", ""),
    ],
)
def test_a_process_that_does_not_end_well_says_why(code: str, why: str) -> None:
    taken = run((*PYTHON, code), 0.3 if "while" in code else 20, 1 << 30)
    assert taken.why == why
    assert why or (taken.printed, 0 < taken.seconds < 5, taken.megabytes > 1) == ("7", True, True)


def test_steps_are_what_they_say() -> None:
    for step in STEPS:
        values = {word: value for word, value in step.topology.items() if word != "family"}
        family = FAMILIES[str(step.topology["family"])]
        assert not family.check(values)
        assert family.order(values) == step.switches
    assert [step.switches for step in STEPS] == sorted(step.switches for step in STEPS)


def test_peers_do_the_work_that_they_are_timed_for() -> None:
    graph = structure(3)[0]
    scipy, networkx, igraph, rustworkx = (peer(graph, True) for peer in scale_peers.PEERS.values())
    assert networkx == 13 * 13
    assert np.array_equal(scipy[0], igraph)
    assert np.array_equal(scipy[0], rustworkx)
    assert all(peer(graph, False) is not None for peer in scale_peers.PEERS.values())
