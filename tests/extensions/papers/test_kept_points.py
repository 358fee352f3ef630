"""Points that are kept: a figure that was stopped goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

from extensions.papers import latency_curves
from extensions.papers.kept_points import keeping
from extensions.papers.latency_curves import PaperFabric, simulated_curve
from extensions.simulation.latency_curve import LatencyCurve

FABRIC = PaperFabric({"family": "polarfly", "q": 3}, 2, "MIN")


def curve(folder: Path | None) -> LatencyCurve:
    with keeping(folder):
        return simulated_curve(FABRIC, "uniform", quick=False)


def test_a_kept_point_is_not_computed_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(latency_curves, "LOADS", (0.1, 0.3))
    monkeypatch.setattr(latency_curves, "SEEDS", 2)
    whole = curve(None)
    assert curve(tmp_path) == whole
    kept = sorted((tmp_path / "points").iterdir())
    assert [file.name for file in kept] == [
        f"polarfly-3-2-MIN-uniform-{load}-{seed}.json" for load in (0.1, 0.3) for seed in (0, 1)
    ]
    monkeypatch.setattr(latency_curves, "_prepared", None)  # nothing is simulated
    assert curve(tmp_path) == whole


def test_a_point_of_other_code_or_half_a_file_is_computed_again(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(latency_curves, "LOADS", (0.1, 0.3))
    monkeypatch.setattr(latency_curves, "SEEDS", 2)
    whole = curve(tmp_path)
    first, second, *_ = sorted((tmp_path / "points").iterdir())
    found = json.loads(first.read_text())
    first.write_text(json.dumps({**found, "code": "other", "accepted": 0.9}))
    second.write_text(second.read_text()[:40])
    assert curve(tmp_path) == whole
