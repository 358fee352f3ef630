"""`polarfab reproduce` at the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


def test_figures_are_written_once(polarfab, tmp_path: Path) -> None:
    words = ("reproduce", "projective-fig2", "projective-table5", "--quick", "-o", tmp_path)
    code, out, err = polarfab(*words, "--json")
    assert (code, err) == (0, "")
    verdicts = {row["id"]: row["verdict"] for row in json.loads(out)}
    assert verdicts == {"projective-fig2": "equal", "projective-table5": "differs"}
    found = json.loads((tmp_path / "projective-table5" / "verdict.json").read_text())
    assert {"says", "printed", "computed", "why"} <= set(found["claims"][0])
    code, out, err = polarfab(*words, "--json")
    assert (code, err) == (0, "there already: 2 of 2\n")
    assert {row["id"]: row["verdict"] for row in json.loads(out)} == verdicts


def test_what_is_not_said_is_asked_for(polarfab, tmp_path: Path) -> None:
    for words in ((), ("all",), ("list", "all"), ("projective-fig1",)):
        assert polarfab("reproduce", *words)[0] == 2
    assert "--output: required a folder" in polarfab("reproduce", "projective-fig1")[2]
    for output in ((), ("-o", tmp_path)):
        code, _, err = polarfab("reproduce", "projective-fig12", *output)
        assert code == 2
        assert "did you mean projective-fig2?" in err


def test_without_matplotlib_nothing_is_computed_or_written(
    polarfab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figure was computed first, and its folder was left without picture and verdict."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = tmp_path / "figures"
    words = ("reproduce", "projective-table4", "projective-fig7", "--quick", "-o", output)
    code, out, err = polarfab(*words)
    assert (code, out) == (2, "")
    assert err == (
        "error: required Matplotlib, for plots, given an installation without it;"
        " pip install 'polarfab[plots]'\n"
    )
    assert not output.exists()
    # Tables and drawings of graphs do without.
    assert polarfab("reproduce", "projective-table4", "projective-fig1", "-o", output)[0] == 0
