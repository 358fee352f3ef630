"""Reports of a rehearsal: HTML for people, JUnit XML and JSON for pipelines.

A rehearsal returns an `Emulated`, the facts of the run and its result; the verb `emulate` writes
its reports.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.plots import COLOURS, Curve, Panel, plot
from compilers.tables.folders.written_file import replace_file
from inventory.problems import InputError
from mininet_scenarios.verdict.result import Result, rules_in_words
from templates import environment

REPORT_SUFFIXES = (".html", ".xml", ".json")
"""The suffixes of the files that a report can be: a page, a JUnit test suite, a JSON document."""
REPORTED_MISMATCHES = 20
"""The most mismatches of a check that the page shows."""
MOST_BARS = 24
"""The most bars of a histogram."""
PLOT_SIZE = (4.6, 3.1)
"""The width and height of a plot in inches."""
PAGE_COLOURS = {
    "fill: #ffffff": "fill: none",
    "stroke: #000000": "stroke: currentColor",
    "#d9dee3": "var(--line)",
    COLOURS[0]: "var(--curve)",
}
"""By style or colour in a plot's SVG, what replaces it in the page, which may be dark."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Emulated:
    """A rehearsal that was run, and its result."""

    facts: dict[str, Any]
    """The facts about the run, by their keys in JSON:

    - `scenario`, `engine` and `framework`: the names of what was run and how;
    - `build`, `topology`, `switches`, `links`: the fabric, with its numbers of switches and links;
    - `moves_to`: a list of builds, only if the fabric moves;
    - `at`, `host`, `version`: the time, the machine, and the version of polarfab.
    """
    result: Result
    """The result."""

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return self.result.passed

    def as_dict(self) -> dict[str, Any]:
        """The rehearsal for JSON."""
        return {**self.facts, **self.result.as_dict()}

    def __repr__(self) -> str:
        """`<Emulated lab on model passed: 12 of 12 pairs delivered>`."""
        outcome = "passed" if self.passed else "FAILED"
        pairs = f"{self.result.delivered:,} of {self.result.pairs:,} pairs delivered"
        return f"<Emulated {self.facts['scenario']} on {self.facts['engine']} {outcome}: {pairs}>"

    def write(self, path: Path, command: str = "") -> list[Path]:
        """Write a report: FILE.html, FILE.xml (JUnit), FILE.json, or all three into a folder.

        Args:
            path: the file, or the folder.
            command: the command that repeats the rehearsal, for the report.

        Returns:
            The files that were written.

        Raises:
            InputError: a file cannot be written.
        """
        if path.suffix in REPORT_SUFFIXES:
            files = [path]
        else:
            files = [path / f"report{suffix}" for suffix in REPORT_SUFFIXES]
        writers = {".html": self.html, ".xml": self.junit, ".json": self.json}
        try:
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(file, [writers[file.suffix](command).encode()])
        except OSError as error:
            required, given = "a place that can be written", error.strerror or str(error)
            raise InputError.of(required, given, file=str(path), key="report") from error
        return files

    def json(self, command: str) -> str:
        """The rehearsal as a JSON document, with all mismatches."""
        document = {**self.facts, "command": command, **self.result.as_dict()}
        return json.dumps(document, indent=2) + "\n"

    def junit(self, command: str) -> str:
        """The rehearsal as a JUnit test suite, with a test case for each check."""
        from junitparser import Failure, JUnitXml, TestCase, TestSuite

        suite = TestSuite(str(self.facts["scenario"]))
        for name in ("engine", "build", "topology", "version", "host"):
            suite.add_property(name, str(self.facts[name]))
        suite.add_property("command", command)
        for check in self.result.checks:
            case = TestCase(check.name, classname=f"polarfab.{self.facts['scenario']}")
            if not check.passed:
                text = f"required {check.required:,}, seen {check.seen:,}"
                failure = Failure(text)
                failure.text = "\n".join(map(str, check.mismatches))
                case.result = [failure]
            suite.add_testcase(case)
        suite.timestamp = self.facts["at"]
        suite.time = self.result.seconds.get("all", 0.0)
        document = JUnitXml("polarfab emulate")
        document.add_testsuite(suite)
        written: bytes = document.tostring()  # type: ignore[no-untyped-call]
        return written.decode()

    def html(self, command: str) -> str:
        """The report as one self-contained page."""
        result = self.result
        seconds = ", ".join(f"{name} {time:g}" for name, time in result.seconds.items())
        rows = {
            "run": datetime.fromisoformat(self.facts["at"]).strftime("%Y-%m-%d %H:%M:%S %Z"),
            "polarfab": self.facts["version"],
            "host": self.facts["host"],
            "fabric": self.facts["topology"],
            "switches, links": f"{self.facts['switches']:,}, {self.facts['links']:,}",
            "engine": " with ".join(filter(None, (self.facts["engine"], self.facts["framework"]))),
            "build": self.facts["build"],
            "delivered": f"{result.delivered:,} of {result.pairs:,} ordered pairs of hosts",
            "checker": result.wrong_table_found
            and f"saw a wrong table: {result.wrong_table_found}",
            "rules exercised": result.exercise and rules_in_words(result.exercise),
            "moves to": ", ".join(self.facts.get("moves_to", ())),
            "probe slowed": "; ".join(result.slowed),
            "seconds": seconds,
        }
        template = environment().get_template("report/report.html.j2")
        return template.render(
            facts=self.facts,
            rows=[(name, value) for name, value in rows.items() if value],
            command=command,
            passed=result.passed,
            met=sum(check.passed for check in result.checks),
            checks=result.checks,
            shown=REPORTED_MISMATCHES,
            plots=[_inline(panel) for panel in panels(result)],
            happened=[event.as_dict() for event in result.events],
            probed=result.probe_history is not None,
            repaired=any(event.seconds_to_repair is not None for event in result.events),
        )


def panels(result: Result) -> list[Panel]:
    """The plots of a result."""
    panels = []
    history = result.probe_history
    if history:
        stretches = np.flatnonzero(history.sent)  # the stretches in which packets were sent
        percent_arrived = 100 * history.received[stretches] / history.sent[stretches]
        # A stretch is an interval of so many seconds; its point is drawn at its beginning.
        seconds = tuple((stretches * history.stretch).tolist())
        curves = (Curve("", seconds, tuple(percent_arrived.tolist())),)
        label = "% of packets that arrived"
        panels.append(Panel("Reachability over time", "seconds", label, curves, top=105))
    # What was not measured after an event is None, and has no bar.
    not_delivered = [(event.pairs or 0) - (event.reached or 0) for event in result.events]
    longest = [event.max_hops or 0 for event in result.events]
    lost = [event.lost or 0 for event in result.events]
    for title, unit, values in (
        ("Pairs of hosts not delivered after each event", "ordered pairs", not_delivered),
        ("Longest path after each event", "links", longest),
        ("Loss per event, of pairs that the tables deliver", "packets", lost),
    ):
        if any(values):
            edges = np.arange(len(values) + 1) + 0.5
            x_label = "event, by its number in the timeline"
            panels.append(_bars(title, x_label, unit, edges, np.array(values, np.float64)))
    if result.loads is not None:
        loads = result.loads.astype(np.float64)
        panels.append(_histogram("Load per link, all pairs", "packets", loads))
    if result.throughput is not None:
        link_rates = np.round(result.throughput.link_rates, 3)
        panels.append(_histogram("Load per link, flows", "Mb/s", link_rates))
    return panels


def _bars(
    title: str, x_label: str, y_label: str, edges: NDArray[Any], heights: NDArray[np.float64]
) -> Panel:
    """A plot of n bars.

    Args:
        title: the heading.
        x_label: the label of the horizontal axis.
        y_label: the label of the vertical axis.
        edges: float64[n + 1], where the bars begin and end.
        heights: float64[n], the height of each bar.
    """
    curve = Curve("", tuple(edges.tolist()), tuple(heights.tolist()))
    return Panel(title, x_label, y_label, (curve,), steps=True)


def _histogram(title: str, unit: str, values: NDArray[np.float64]) -> Panel:
    """A histogram of the loads of links, each direction by itself.

    If all loads are integers, the width of a bar is an integer, too, and each bar begins half a
    unit below its first integer. If all loads are equal, there is one bar of width 1.
    """
    low, high = float(values.min()), float(values.max())
    are_integers = bool((values == np.round(values)).all())
    width = (high - low) / MOST_BARS
    if are_integers or not width:
        width = max(1.0, np.ceil((high - low + 1) / MOST_BARS))
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, high, MOST_BARS + 1)
    counts, _ = np.histogram(values, edges)
    x_label = f"{unit} over a link in one direction"
    y_label = "links, each direction for itself"
    return _bars(title, x_label, y_label, edges, counts.astype(np.float64))


def _inline(panel: Panel) -> str:
    """The panel as an SVG element in the colours of the page, without the head of an SVG file."""
    text = plot([panel], "svg", PLOT_SIZE, plain=True).decode()
    for drawn_colour, page_colour in PAGE_COLOURS.items():
        text = text.replace(drawn_colour, page_colour)
    y_label, x_label = panel.up, panel.across
    label = escape(f"{panel.title}: {y_label} over {x_label}", quote=True)
    return text[text.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
