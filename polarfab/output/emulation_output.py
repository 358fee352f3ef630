"""The output of `polarfab emulate` and `polarfab rehearse`.

Both verbs call `run` with a scenario. It runs the emulation, prints the steps, the checks, the
timeline and the facts, and writes the report.
"""

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
    from mininet_scenarios.verdict.report import Emulated
    from mininet_scenarios.verdict.result import EventOutcome, Result

LISTED_EVENTS = 12
"""The most events that are printed; all are in the JSON and in the report."""
SHOWN_MISMATCHES = 10
"""The most mismatches of a check that are printed; all are in the JSON."""


class Narrator:
    """Prints the steps of an emulation: a line for each, and a progress bar while it lasts."""

    @contextmanager
    def step(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Print the step and its seconds when it has ended; yields report(done, all)."""
        begin = perf_counter()
        with progress(what) as report:
            yield report or _no_report
        _print_unless_quiet(f"{perf_counter() - begin:6.1f} s  {what}")

    def note(self, text: str) -> None:
        """Print a line below the step."""
        _print_unless_quiet(f"          {text}")


def _print_unless_quiet(line: str) -> None:
    """Print a line, but not with --quiet."""
    if volume() >= 0:
        click.echo(line)


def _no_report(_done: int, _all: int) -> None:
    """Report nothing, because there is no bar."""


def run(
    loaded: LoadedScenario,
    arguments: Sequence[str],
    as_json: bool,
    keep: Path | None,
    report: Path | None,
    unverified: bool,
    terminal: str = "",
) -> None:
    """Run a scenario, print its result, and write the report.

    Args:
        loaded: the scenario.
        arguments: the words behind `polarfab` that repeat the run, without engine and framework.
        as_json: whether to print JSON instead of tables.
        keep: the folder for logs and files of the emulation; None to remove them.
        report: the folder for the report; None for no report.
        unverified: whether to run builds that have not passed verification.
        terminal: the terminal for Mininet's prompt at the end; "" for none.

    Raises:
        Exit: with code 1 if a check has not passed, or the engine failed.
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
        for file in emulated.write(report, _command(emulated, arguments, unverified)):
            say(f"reported in {file}")
    if not emulated.passed:
        raise click.exceptions.Exit(1)


def _command(emulated: Emulated, arguments: Sequence[str], unverified: bool) -> str:
    """The command that repeats a run on the same engine and framework."""
    command = ["polarfab", *arguments, "--engine", emulated.facts["engine"]]
    if emulated.facts["framework"]:
        command += ["--framework", emulated.facts["framework"]]
    if unverified:
        command.append("--unverified")
    return shlex.join(command)


def _print(emulated: Emulated) -> None:
    """Print the checks, the timeline and the facts of an emulation, and whether it passed."""
    facts, result = emulated.facts, emulated.result
    engine = f"{facts['engine']}, {facts['framework']}" if facts["framework"] else facts["engine"]
    title = f"{facts['scenario']}: {facts['topology']} on {engine}"
    checks = [
        [check.name, check.required, check.seen, "pass" if check.passed else "FAIL"]
        for check in result.checks
    ]
    click.echo()
    print_table(title, ["check", "required", "seen", ""], checks)
    if result.events:
        _print_timeline(result)
    _print_facts(emulated)
    _warn_of_mismatches(result)
    duration = f"in {result.seconds['all']:.1f} s"
    if result.passed:
        say(f"{facts['scenario']} {painted('passed', 'passed')} {duration}")
    else:
        warn(f"FAILED: {facts['scenario']} {duration}")


def _print_timeline(result: Result) -> None:
    """Print the events in their order; if there are many, those that cut off the most pairs."""
    events = result.events
    cut_off = [(event.pairs or 0) - (event.reached or 0) for event in events]
    most_cut_off = sorted(range(len(events)), key=lambda i: -cut_off[i])[:LISTED_EVENTS]
    listed = [events[i] for i in sorted(most_cut_off)]
    columns = ["s", "event", "pairs", "to be delivered", "delivered", "most links"]
    rows: list[list[object]] = [
        [event.at, event.what, event.pairs, _to_be_delivered(event), event.reached, event.max_hops]
        for event in listed
    ]
    if result.probe_history is not None:
        columns += ["packets lost", "of one pair", "until, s"]
        for row, event in zip(rows, listed, strict=True):
            row += [event.lost, event.most_lost_of_a_pair, event.seconds_to_converge]
    if any(event.seconds_to_repair is not None for event in events):
        columns.append("repaired in, s")
        for row, event in zip(rows, listed, strict=True):
            row.append(event.seconds_to_repair)
    title = "timeline"
    if len(events) > len(listed):
        title = f"timeline: {LISTED_EVENTS} of {len(events)} events"
    print_table(title, columns, rows)


def _to_be_delivered(event: EventOutcome) -> int | str | None:
    """The pairs that the tables deliver; `132 to 150` if 18 pairs arrive on some paths only."""
    if event.possible == event.expected:
        return event.expected
    return f"{event.expected:,} to {event.possible:,}"


def _print_facts(emulated: Emulated) -> None:
    """Print the pairs that were delivered, and over how many links; with --verbose more."""
    from mininet_scenarios.verdict.result import rules_in_words

    result = emulated.result
    facts: list[tuple[str, object]] = [
        ("delivered", f"{result.delivered:,} of {result.pairs:,} pairs")
    ]
    for hops in sorted(result.predicted_hops.keys() | result.seen_hops.keys()):
        pairs = f"{result.seen_hops.get(hops, 0):,} pairs"
        if result.predicted_hops:
            pairs += f", {result.predicted_hops.get(hops, 0):,} predicted"
        facts.append((f"over {counted(hops, 'link')}", pairs))
    if result.slowed:
        facts.append(("probe slowed", "; ".join(result.slowed)))
    verbose_facts: list[tuple[str, object]] = []
    if result.exercise:
        verbose_facts.append(("rules exercised", rules_in_words(result.exercise)))
    builds = [emulated.facts["build"], *emulated.facts.get("moves_to", ())]
    verbose_facts.append(("build", " then ".join(builds)))
    seconds = "  ".join(f"{step} {time:g}" for step, time in result.seconds.items())
    verbose_facts.append(("seconds", seconds))
    print_facts("", facts, verbose_facts)


def _warn_of_mismatches(result: Result) -> None:
    """Print the first mismatches of each check, and how many more there are."""
    for check in result.checks:
        for mismatch in check.mismatches[:SHOWN_MISMATCHES]:
            warn(f"wrong: {check.name}: {mismatch}")
        if len(check.mismatches) > SHOWN_MISMATCHES:
            unshown = len(check.mismatches) - SHOWN_MISMATCHES
            warn(f"wrong: {check.name}: {unshown:,} more like these")
