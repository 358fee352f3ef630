"""`polarfab verify` counts channels, under the failures that it is asked to try."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from polarfab.commands.builds.compile import command as compile_verb
from polarfab.commands.builds.verify import command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("channels")
    (path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 3}\n"
        "routing: {balance: compact-valiant, protect: link}\n"
    )
    compile_verb.main([str(path / "fabric.yaml"), "-o", str(path / "build")], standalone_mode=False)
    return path / "build"


@pytest.mark.parametrize(("words", "count"), [((), 2), (("--failures", "link"), 4)])
def test_channels_by_valley(folder: Path, words: tuple[str, ...], count: int) -> None:
    result = CliRunner().invoke(command, [str(folder), "--json", *words], catch_exceptions=False)
    assert result.exit_code == 0
    channels = json.loads(result.stdout)["channels"]
    assert (channels["scheme"], channels["count"], channels["cycle"]) == ("valley", count, [])


def test_they_can_be_left_out(folder: Path) -> None:
    words = [str(folder), "--json", "--no-channels"]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert json.loads(result.stdout)["channels"] is None
