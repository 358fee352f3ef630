"""Reports of a rehearsal: HTML for people, JUnit XML and JSON for pipelines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compilers.drawing.plots import Curve, Panel, plot
from compilers.tables.artefact import replace_file
from inventory.problems import InputError
from mininet_scenarios.verdict.result import Result
from mininet_scenarios.verdict.rule_checks import rules_in_words
from templates import environment

FORMS = (".html", ".xml", ".json")
REPORTED_MISMATCHES = 20
"""Mismatches of a check that the page shows."""
BINS = 24


@dataclass(frozen=True, slots=True, eq=False)
class RehearsalReport:
    """What was run (by short names), what it found, and the command that runs it again."""

    facts: Mapping[str, Any]
    result: Result
    command: str

    def write(self, where: Path) -> list[Path]:
        """Write FILE.html, FILE.xml or FILE.json, or all three as `report` in a folder.

        Raises:
            InputError: it cannot be written there.
        """
        whole = [where / f"report{form}" for form in FORMS]
        files = [where] if where.suffix in FORMS else whole
        made = {".html": self.html, ".xml": self.junit, ".json": self.json}
        try:
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(file, [made[file.suffix]().encode()])
        except OSError as error:
            raise InputError.of(
                file=str(where),
                key="--report",
                required="a place that can be written",
                given=error.strerror or str(error),
            ) from error
        return files

    def json(self) -> str:
        """Everything, all mismatches too."""
        document = {**self.facts, "command": self.command, **self.result.as_dict()}
        return json.dumps(document, indent=2) + "\n"

    def junit(self) -> str:
        """A test suite with a test case an expectation."""
        from junitparser import Failure, JUnitXml, TestCase, TestSuite

        suite = TestSuite(str(self.facts["scenario"]))
        for name in ("engine", "build", "topology"):
            suite.add_property(name, str(self.facts[name]))
        suite.add_property("command", self.command)
        for check in self.result.checks:
            case = TestCase(check.name, classname=f"polarfab.{self.facts['scenario']}")
            if not check.passed:
                text = f"required {check.required:,}, seen {check.seen:,}"
                failure = Failure(text)
                failure.text = "\n".join(map(str, check.mismatches))
                case.result = [failure]
            suite.add_testcase(case)
        suite.time = self.result.seconds.get("all", 0.0)
        document = JUnitXml("polarfab emulate")
        document.add_testsuite(suite)
        written: bytes = document.tostring()  # type: ignore[no-untyped-call]
        return written.decode()

    def html(self) -> str:
        """One self-contained page."""
        result = self.result
        seconds = "  ".join(f"{name} {time:g}" for name, time in result.seconds.items())
        rows = {
            "fabric": self.facts["topology"],
            "switches, links": f"{self.facts['switches']:,}, {self.facts['links']:,}",
            "engine": " with ".join(filter(None, (self.facts["engine"], self.facts["framework"]))),
            "build": self.facts["build"],
            "delivered": f"{result.delivered:,} of {result.pairs:,} ordered pairs of hosts",
            "checker": result.caught and f"saw a wrong table: {result.caught}",
            "rules exercised": result.exercise and rules_in_words(result.exercise),
            "moves to": ", ".join(self.facts.get("moves_to", ())),
            "probe slowed": "; ".join(result.slowed),
            "seconds": seconds,
        }
        template = environment().get_template("report/report.html.j2")
        return template.render(
            facts=self.facts,
            rows=[(name, value) for name, value in rows.items() if value],
            command=self.command,
            passed=result.passed,
            met=sum(check.passed for check in result.checks),
            checks=result.checks,
            shown=REPORTED_MISMATCHES,
            plots=[_inline(panel) for panel in panels(result)],
            happened=result.happened,
            probed=result.watched is not None,
        )


def panels(result: Result) -> list[Panel]:
    """What can be plotted of a result."""
    found = []
    if watched := result.watched:
        busy = np.flatnonzero(watched.sent)
        times = tuple((busy * watched.stretch).tolist())
        arrived = 100 * watched.received[busy] / watched.sent[busy]
        curve = Curve("packets that arrived", times, tuple(arrived.tolist()))
        found.append(Panel("Reachability over time", "seconds", "% of the probe", (curve,)))
    asked = [event for event in result.happened if event.reached is not None]
    if len(asked) > 1:
        x = tuple(map(float, range(1, len(asked) + 1)))
        lost = [float(event.pairs or 0) - float(event.reached or 0) for event in asked]
        hops = [float(event.max_hops or 0) for event in asked]
        curves = (
            Curve("pairs not delivered", x, tuple(lost)),
            Curve("links of the longest path", x, tuple(hops)),
        )
        found.append(Panel("After each event", "event", "pairs, links", curves))
    if probed := [event for event in result.happened if event.lost is not None]:
        x = tuple(map(float, range(1, len(probed) + 1)))
        lost_packets = tuple(float(event.lost or 0) for event in probed)
        title = "Loss per event, of pairs that the tables deliver"
        found.append(Panel(title, "event", "packets", (Curve("lost", x, lost_packets),)))
    if result.loads is not None:
        found.append(_histogram("Load per link, all pairs", "packets", result.loads))
    if result.throughput is not None:
        loads = np.round(result.throughput.loads, 3)
        found.append(_histogram("Load per link, flows", "Mb/s", loads))
    if result.watched is not None and len(result.watched.latency):
        latency = 1000 * result.watched.latency
        at = np.unique(np.linspace(0, len(latency) - 1, 200).astype(int))
        share = 100 * (at + 1) / len(latency)
        curve = Curve("packets", tuple(latency[at].tolist()), tuple(share.tolist()))
        found.append(Panel("Latency", "ms, one way", "% that took at most so long", (curve,)))
    return found


def _histogram(title: str, unit: str, values: np.ndarray[Any, Any]) -> Panel:
    """How many links carry how much, as an outline."""
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high, BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    counts = np.histogram(values, edges)[0]
    x = [float(edges[0]), *np.repeat(edges[1:-1], 2).tolist(), float(edges[-1])]
    curve = Curve(
        "directions of links",
        (x[0], *x, x[-1]),
        (0.0, *np.repeat(counts, 2).astype(float).tolist(), 0.0),
    )
    return Panel(title, unit, "directions of links", (curve,))


def _inline(panel: Panel) -> str:
    """The panel as an SVG element without the head of a file."""
    text = plot([panel], "svg").decode()
    return text[text.index("<svg") :].replace(
        "<svg ", f'<svg role="img" aria-label="{panel.title}" ', 1
    )
