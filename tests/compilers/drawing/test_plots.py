"""Plots: the figures in them are those of the papers, the bytes are the same every time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from compilers.drawing.plots import (
    COLOURS,
    INCHES,
    Curve,
    Panel,
    efficiency,
    failures,
    plot,
    read_failures,
)
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from inventory.problems import InputError
from polarfab.cli import cli

ROWS = [
    {"fraction": 0.0, "failed": 0, "diameter": 2, "mean_distance": 1.8},
    {"fraction": 0.5, "failed": 45, "diameter": 5, "mean_distance": 2.5},
    {"fraction": 0.6, "failed": 54, "diameter": None, "mean_distance": None},
]


@pytest.fixture(scope="module")
def panels() -> tuple[Panel, ...]:
    return efficiency(designs_of_radixes(range(8, 33), among=families(baselines=True)))


def test_efficiency_is_that_of_the_largest_design(panels: tuple[Panel, ...]) -> None:
    two, three = (
        {curve.name: dict(zip(curve.x, curve.y, strict=True)) for curve in panel.curves}
        for panel in panels
    )
    assert two["polarfly"][32] == pytest.approx(100 * 993 / (1 + 32 * 32))
    assert two["slimfly"][29] == pytest.approx(100 * 2 * 19**2 / (1 + 29 * 29))
    assert three["polarstar"][15] == pytest.approx(100 * 1064 / (1 + 15 * (1 + 14 + 14**2)))
    assert three["polarstar"][8] > three["dragonfly"][8] > three["hyperx"][8]
    assert "polarfly" not in three


def test_indirect_networks_are_left_out(panels: tuple[Panel, ...]) -> None:
    names = {curve.name for panel in panels for curve in panel.curves}
    assert names & {"oft", "fat-tree", "mlfm", "megafly"} == set()
    assert {"polarfly", "polarstar", "pn", "slimfly", "bundlefly", "spectralfly"} <= names


def test_failures_end_where_the_network_falls_apart() -> None:
    diameter, mean = failures([("polarfly q=5", ROWS)])
    assert (diameter.curves[0].x, diameter.curves[0].y) == ((0.0, 50.0), (2.0, 5.0))
    assert (mean.curves[0].x, mean.curves[0].y) == ((0.0, 50.0), (1.8, 2.5))


def _panels(*names: str) -> list[Panel]:
    """A panel for each word, with a curve for each letter."""
    return [
        Panel(word, "x", "y", tuple(Curve(letter, (0.0, 1.0), (1.0, 2.0)) for letter in word))
        for word in names
    ]


def _drawn(*names: str) -> str:
    return plot(_panels(*names), "svg", plain=True).decode()


def test_a_curve_has_one_colour_in_all_panels() -> None:
    svg = _drawn("ABC", "C")
    marks = [svg.count(f"stroke: {colour}") for colour in COLOURS[:4]]
    assert marks[0] == marks[1] > 0
    assert marks[2] > marks[1]
    assert marks[3] == 0


@pytest.mark.parametrize(("names", "legends"), [(("AB", "AB", "B"), 1), (("AB", "AC"), 2)])
def test_one_legend_where_a_panel_has_all_curves(names: tuple[str, ...], legends: int) -> None:
    assert len(re.findall(r"<text[^>]*>A</text>", _drawn(*names))) == legends


def test_ticks_have_names() -> None:
    (panel,) = _panels("AB")
    svg = plot([replace(panel, ticks=("low", "high"))], "svg", plain=True).decode()
    assert re.search(r">low</text>.*>high</text>", svg, re.DOTALL)


@pytest.mark.parametrize(("count", "across"), [(4, 2), (10, 4)])
def test_panels_of_two_rows_are_below_each_other(count: int, across: int) -> None:
    found = re.search(r'width="([\d.]+)pt"', _drawn(*["A"] * count))
    assert found is not None
    assert float(found[1]) == pytest.approx(72 * across * INCHES[across - 1][0])


@pytest.mark.parametrize("axis", ["x"])
def test_a_logarithmic_axis_has_powers_of_ten(axis: str) -> None:
    curves = (
        Curve("all", (10.0, 1e4), (10.0, 1e4)),
        Curve("marks", (10.0, 1e4), (10.0, 1e4), "points"),
        Curve("bound", (10.0, 1e4), (20.0, 2e4), "limit"),
    )
    straight, bent = (
        plot([Panel("T", "a", "b", curves, logarithmic=log)], "svg", plain=True).decode()
        for log in ("", axis)
    )
    assert [text.count(">10000</text>") for text in (straight, bent)] == [2, 1]
    assert bent.count("fill: none; stroke: #b34700") == 2  # its line, and in the legend
    assert "fill: none; stroke: #0063a0" not in bent
    assert "stroke: #000000; stroke-width: 2.4" in bent


def test_bars_of_names_have_no_numbers_below() -> None:
    """They had 0 to 7, as if these were a quantity."""
    bars = tuple(Curve(name, (n - 0.4, n + 0.4), (9.0,)) for n, name in enumerate("AB"))
    svgs = [plot([Panel("T", w, "y", bars, steps=True)], "svg", plain=True) for w in ("", "x")]
    assert [svg.count(b">1</text>") for svg in svgs] == [0, 1]


def test_what_analyse_prints_is_read(tmp_path: Path) -> None:
    words = ["analyse", "polarfly", "--q", "5", "--what", "resilience", "--orders", "3", "--json"]
    printed = CliRunner().invoke(cli, words).stdout
    file = tmp_path / "er5.json"
    file.write_text(printed)
    name, rows = read_failures(file)
    assert name == "polarfly q=5"
    assert rows[0] == {"fraction": 0.0, "diameter": 2, "mean_distance": pytest.approx(56 / 31)}
    assert len(rows) > 5


@pytest.mark.parametrize(
    "content",
    [
        None,
        "not json",
        json.dumps({"family": "polarfly", "parameters": {}}),
        json.dumps({"family": "x", "parameters": {}, "resilience": {"rows": [{"fraction": "a"}]}}),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "other.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(
        InputError, match="required the output of polarfab analyse --what resilience"
    ):
        read_failures(file)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'polarfab\[plots\]'"):
        plot(failures([("polarfly q=5", ROWS)]), "svg")


def test_pictures_do_without_matplotlib() -> None:
    code = "import sys, compilers.drawing.picture; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
