"""Benchmarks on small fabrics: that they measure, not how fast."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner

from benchmarks import receipt, repair, simulate, tables
from inventory.problems import InputError


def run(command: Command, *words: str) -> tuple[list[dict[str, float]], str]:
    """What a script prints, read as JSON, and what it says beside."""
    result = CliRunner().invoke(command, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_tables_are_timed_beside_other_libraries() -> None:
    ours, *others = run(tables.command, "--q", "3")[0]
    assert ours["ratio"] == 1
    assert len(others) == 4
    assert all(row["seconds"] > 0 for row in others)
    with pytest.raises(InputError, match="a prime power"):
        run(tables.command, "--q", "6")


def test_a_dead_link_is_timed_beside_its_tables() -> None:
    words = ("--q", "3", "--balance", "compact-valiant")
    routes, dead, slowest, back = run(repair.command, *words)[0]
    assert routes["ratio"] == 1
    assert slowest["seconds"] >= dead["seconds"] > 0
    assert back["seconds"] > 0


def test_the_proof_of_a_build_is_timed_beside_reading_it() -> None:
    read, walk, whole = run(receipt.command, "--q", "3")[0]
    assert read["ratio"] == 1
    assert whole["seconds"] > walk["seconds"] > 0


def test_the_simulator_is_timed_at_both_levels_beside_booksim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # without a compiler no SimGrid
    theirs = tmp_path / "booksim"
    theirs.write_text("#!/bin/sh\necho Time taken is 3000 cycles\necho Total run time 2.5\n")
    theirs.chmod(0o755)
    words = ("--q", "3", "--booksim", str(theirs))
    rows, said = run(simulate.command, *words)
    assert "SimGrid is left out: it needs cc and libsimgrid" in said
    assert [row["what"].split(",")[0] for row in rows] == ["BookSim", "polarfab", "polarfab"]
    # 26 hosts, half of their links, 1.7 links a flit, 3,000 cycles in 2.5 seconds.
    assert rows[0]["flit_hops"] == pytest.approx(26 * 0.5 * 1.7 * 3_000 / 2.5, rel=0.03)
    assert rows[0]["ratio"] == 1
    theirs.write_text("#!/bin/sh\necho something else\n")
    with pytest.raises(InputError, match="what BookSim 2 prints at its end, given something else"):
        run(simulate.command, *words)
