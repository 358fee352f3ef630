"""The benchmark of a dead link on a small fabric: that it measures, not how fast."""

from __future__ import annotations

import json

from click.testing import CliRunner

from polarfab.commands.upkeep.bench import command


def test_a_dead_link_is_timed_beside_its_tables():
    result = CliRunner().invoke(command, ["repair", "--q", "3", "--spread", "--json"])
    assert result.exit_code == 0, result.output
    tables, dead, slowest, back = json.loads(result.output)
    assert tables["ratio"] == 1
    assert slowest["seconds"] >= dead["seconds"] > 0
    assert back["seconds"] > 0
