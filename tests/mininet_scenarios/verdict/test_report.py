"""Reports: what machines read back, and the page in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from junitparser import JUnitXml

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


def test_the_page_is_self_contained_and_escapes(emulate, tmp_path):
    file = tmp_path / "report.html"
    assert emulate(155, "--report", file)[0] == 1
    page = file.read_text()
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert not re.search(r"@import|url\((?!#)", page)
    assert "<td>link 0-1 down: delivered</td>" in page
    assert ">FAIL</td>" in page
    for title in ("Reachability over time", "Loss per event", "Load per link"):
        assert f'aria-label="{title}' in page
    assert not list(tmp_path.glob("*.part"))


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
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
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
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= browser.execute_script("return window.innerWidth")
