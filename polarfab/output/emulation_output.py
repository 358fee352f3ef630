"""The output of `polarfab emulate` and `polarfab rehearse`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from polarfab.output.verb_output import (
    counted,
    painted,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
    volume,
    warn,
)
from polarfab.output.verification_output import stop_if_wrong

if TYPE_CHECKING:
    from mininet_scenarios.scenario.scenario_file import LoadedScenario
    from mininet_scenarios.verdict.checks import Happened, Result
    from mininet_scenarios.verdict.report import Emulated

LISTED_RUNS = 12
"""Events that are printed without --verbose; all are in the JSON and in the report."""
SHOWN_MISMATCHES = 10
"""Mismatches of a check that are printed; all are in the JSON."""


class Narrator:
    """A line a step with its time on stdout, and a bar on stderr while it lasts."""

    @contextmanager
    def step(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """The line comes when the step has ended."""
        begun = perf_counter()
        with progress(what) as report:
            yield report or (lambda done, total: None)  # noqa: ARG005
        if volume() >= 0:
            click.echo(f"{perf_counter() - begun:6.1f} s  {what}")

    def note(self, text: str) -> None:
        """A line."""
        if volume() >= 0:
            click.echo(f"          {text}")


def run(
    loaded: LoadedScenario,
    again: Sequence[str],
    as_json: bool,
    keep: Path | None,
    report: Path | None,
    unverified: bool,
    terminal: str = "",
) -> None:
    """Run a scenario, print what was found, write the report; exit code 1 if something is wrong.

    `again` are the words that run it again, without engine and framework.
    """
    from mininet_scenarios.run.emulation import Emulation
    from mininet_scenarios.run.rehearsal_plan import Silent, WrongTables
    from mininet_scenarios.scenario.engine import EngineError

    if unverified and loaded.folder:
        say(f"{loaded.folder} may be unverified: its tables may lose packets or loop")
    observer = Silent() if as_json else Narrator()
    try:
        emulated = Emulation(loaded, keep, unverified, terminal, observer).run()
    except EngineError as error:
        warn(f"the emulation failed: {error}")
        say(f"the logs are in {keep}" if keep else "run it with --keep DIR to keep the logs")
        raise click.exceptions.Exit(1) from error
    except WrongTables as error:
        stop_if_wrong(error.build, error.report)
        raise
    if as_json:
        print_json(emulated.as_dict())
    else:
        _print(emulated)
    if report:
        words = ["polarfab", *again, "--engine", emulated.facts["engine"]]
        words += ["--framework", framework] if (framework := emulated.facts["framework"]) else []
        if unverified:
            words.append("--unverified")
        for file in emulated.write(report, shlex.join(words)):
            say(f"reported in {file}")
    if not emulated.passed:
        raise click.exceptions.Exit(1)


def _print_timeline(result: Result) -> None:
    """Events in their order; of many those in which most pairs were cut off."""
    probed = result.watched is not None
    columns = ["s", "event", "pairs", "to be delivered", "delivered", "most links"]
    columns += ["packets lost", "of one pair", "until, s"] if probed else []
    repaired = any(event.repaired is not None for event in result.happened)
    columns += ["repaired in, s"] if repaired else []
    lost = [(event.reached or 0) - (event.pairs or 0) for event in result.happened]
    worst = sorted(range(len(lost)), key=lost.__getitem__)[:LISTED_RUNS]
    rows = [
        [e.at, e.what, e.pairs, _to_be_delivered(e), e.reached, e.max_hops]
        + ([e.lost, e.worst, e.converged] if probed else [])
        + ([e.repaired] if repaired else [])
        for e in map(result.happened.__getitem__, sorted(worst))
    ]
    more = len(result.happened) > len(rows)
    title = f"timeline: {LISTED_RUNS} of {len(result.happened)} events" if more else "timeline"
    print_table(title, columns, rows)


def _to_be_delivered(event: Happened) -> int | str | None:
    """The pairs that the tables deliver; `132 to 150` if that depends on the paths of 18."""
    if event.possible == event.expected:
        return event.expected
    return f"{event.expected:,} to {event.possible:,}"


def _print(emulated: Emulated) -> None:
    from mininet_scenarios.verdict.checks import rules_in_words

    facts, result = emulated.facts, emulated.result
    engine = f"{facts['engine']}, {facts['framework']}" if facts["framework"] else facts["engine"]
    checks = [
        [check.name, check.required, check.seen, "pass" if check.passed else "FAIL"]
        for check in result.checks
    ]
    title = f"{facts['scenario']}: {facts['topology']} on {engine}"
    click.echo()
    print_table(title, ["check", "required", "seen", ""], checks)
    if result.happened:
        _print_timeline(result)
    predicted, seen = result.predicted_hops, result.seen_hops
    hops = [
        (
            f"over {counted(h, 'link')}",
            f"{seen.get(h, 0):,} pairs"
            + (f", {predicted.get(h, 0):,} predicted" if predicted else ""),
        )
        for h in sorted(predicted.keys() | seen.keys())
    ]
    delivered = ("delivered", f"{result.delivered:,} of {result.pairs:,} pairs")
    seconds = ("seconds", "  ".join(f"{name} {t:g}" for name, t in result.seconds.items()))
    builds = [("build", " then ".join([facts["build"], *facts.get("moves_to", ())]))]
    exercise = [("rules exercised", rules_in_words(result.exercise))] if result.exercise else []
    slowed = [("probe slowed", "; ".join(result.slowed))] if result.slowed else []
    print_facts("", [delivered, *hops, *slowed], [*exercise, *builds, seconds])
    for check in result.checks:
        for mismatch in check.mismatches[:SHOWN_MISMATCHES]:
            warn(f"wrong: {check.name}: {mismatch}")
        if more := len(check.mismatches[SHOWN_MISMATCHES:]):
            warn(f"wrong: {check.name}: {more:,} more like these")
    took = f"in {result.seconds['all']:.1f} s"
    if result.passed:
        say(f"{facts['scenario']} {painted('passed', 'passed')} {took}")
    else:
        warn(f"FAILED: {facts['scenario']} {took}")
