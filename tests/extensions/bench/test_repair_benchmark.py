"""Benchmarks of the controller on a small fabric: that they measure, not how fast."""

from __future__ import annotations

import json

from click.testing import CliRunner

from extensions.bench.bench_verb import command


def test_a_dead_link_is_timed_beside_its_tables():
    result = CliRunner().invoke(
        command, ["repair", "--q", "3", "--balance", "compact-valiant", "--json"]
    )
    assert result.exit_code == 0, result.output
    tables, dead, slowest, back = json.loads(result.output)
    assert tables["ratio"] == 1
    assert slowest["seconds"] >= dead["seconds"] > 0
    assert back["seconds"] > 0


def test_the_proof_of_a_build_is_timed_beside_reading_it():
    result = CliRunner().invoke(command, ["receipt", "--q", "3", "--json"])
    assert result.exit_code == 0, result.output
    read, walk, receipt = json.loads(result.output)
    assert read["ratio"] == 1
    assert receipt["seconds"] > walk["seconds"] > 0
