"""Reports: what machines read back, and the page in a real browser."""

from __future__ import annotations

import json
import platform
import re
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from socket import gethostname

import numpy as np
import pytest
from junitparser import JUnitXml

from mininet_scenarios.verdict.report import panels
from mininet_scenarios.verdict.result import EventOutcome, Result
from tests.page_checks import faults

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "link-failures-q7.html"
SCENARIO = """name: rehearsal
engine: model
fabric: {name: lab, topology: {family: polarfly, q: 3}, routing: {protect: link}}
traffic:
  link_rate: 10
  probe: {pairs: 0}
  flows: {pattern: tornado}
timeline:
  - link_down: 0-1
    expect: {delivered: DELIVERED}
"""


@pytest.fixture
def emulate(tmp_path, monkeypatch, capfd):
    """Run `polarfab emulate` on the scenario in this process; gives exit code and stderr."""
    from polarfab import cli

    def run(delivered, *words):
        file = tmp_path / "scenario.yaml"
        file.write_text(SCENARIO.replace("DELIVERED", str(delivered)))
        monkeypatch.setattr("sys.argv", ["polarfab", "emulate", str(file), *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), capfd.readouterr().err

    return run


def test_all_three_in_a_folder(emulate, tmp_path):
    code, told = emulate(156, "--report", tmp_path / "out")
    assert code == 0
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"report.html", "report.xml", "report.json"}
    assert f"reported in {tmp_path / 'out' / 'report.html'}" in told
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert document["passed"]
    assert re.fullmatch(r"[0-9a-f]{16}", document["build"])
    assert document["command"].startswith("polarfab emulate ")
    assert document["command"].endswith("--engine model")
    assert document["timeline"][0]["what"] == "link 0-1 down"
    assert document["probe"]["sent"] == document["probe"]["received"] > 0
    assert datetime.fromisoformat(document["at"]).tzinfo is not None
    assert document["version"] == version("polarfab")
    assert document["host"].startswith(f"{gethostname()}, {platform.system()} ")
    page = (tmp_path / "out" / "report.html").read_text()
    told = re.findall(r'<tr><th scope="row">(\w+)</th><td>(.*?)</td></tr>', page)
    at = datetime.fromisoformat(document["at"]).strftime("%Y-%m-%d %H:%M:%S")
    assert told[0][1].startswith(at)
    assert told[1:3] == [("polarfab", document["version"]), ("host", document["host"])]
    assert document["throughput"]["carried"] == document["throughput"]["fair"]


def test_junit_counts_what_failed_and_says_why(emulate, tmp_path):
    file = tmp_path / "report.xml"
    code, _ = emulate(155, "--report", file)
    assert code == 1
    (suite,) = JUnitXml.fromfile(str(file))
    assert suite.name == "rehearsal"
    assert suite.failures == 1
    assert suite.tests == len(list(suite))
    (wrong,) = [case for case in suite if case.result]
    assert wrong.name == "link 0-1 down: delivered"
    assert wrong.result[0].message == "required 155, seen 156"
    properties = {p.name: p.value for p in suite.properties()}
    assert properties["engine"] == "model"
    assert properties["host"].startswith(gethostname())


def test_the_page_is_self_contained_and_escapes(emulate, tmp_path):
    file = tmp_path / "report.html"
    assert emulate(155, "--report", file)[0] == 1
    page = file.read_text()
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert not re.search(r"@import|url\((?!#)", page)
    assert "<td>link 0-1 down: delivered</td>" in page
    assert ">FAIL</td>" in page
    for title in ("Reachability over time", "Longest path after each event", "Load per link"):
        assert f'aria-label="{title}' in page
    assert not list(tmp_path.glob(".*.polarfab"))


def test_axes_have_bars_at_whole_numbers_and_one_unit():
    """A bar an event at its number; a bar a number of packets; no plot of nothing but zeros."""
    reached = [
        EventOutcome("a", 0.0, 6, 6, 6, 6, 2),
        EventOutcome("b", 1.5),
        EventOutcome("c", 2.0, 6, 4, 4, 4, 3),
    ]
    result = Result(6, events=reached, loads=np.array([26, 28, 28]))
    lost, longest, load = panels(result)
    assert (lost.up, longest.up) == ("ordered pairs", "links")
    assert lost.across == longest.across == "event, by its number in the timeline"
    assert lost.curves[0].x == longest.curves[0].x == (0.5, 1.5, 2.5, 3.5)
    assert (lost.curves[0].y, longest.curves[0].y) == ((0, 0, 2), (2, 0, 3))
    assert (load.curves[0].x, load.curves[0].y) == ((25.5, 26.5, 27.5, 28.5), (1, 0, 2))
    result.events = reached[:1]
    assert [panel.title for panel in panels(result)][:1] == ["Longest path after each event"]
    result.loads = np.array([0, 1000])
    edges = panels(result)[-1].curves[0].x
    assert len(edges) <= 26
    assert {edge % 1 for edge in edges} == {0.5}


def test_a_place_that_cannot_be_written(emulate, tmp_path):
    (tmp_path / "file").write_text("")
    code, told = emulate(156, "--report", tmp_path / "file" / "report.html")
    assert code == 2
    assert "--report: required a place that can be written" in told
    assert "Traceback" not in told


@pytest.mark.browser
def test_the_example_in_a_browser(browser):
    assert EXAMPLE.stat().st_size < 300_000
    browser.get(EXAMPLE.as_uri())
    assert browser.title == "link-failures-q7: passed"
    by = "css selector"
    verdict = browser.find_element(by, ".verdict")
    assert verdict.text.startswith("Passed: ")
    figures = browser.find_elements(by, "figure svg")
    assert len(figures) == 2
    for figure in figures:
        assert figure.size["width"] > 300
        assert figure.size["height"] > 200
    browser.find_element(by, "summary").click()
    assert len(browser.find_elements(by, "details tbody tr")) == 225
    assert faults(browser) == []
