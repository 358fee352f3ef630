"""`polarfab emulate`: bring a scenario up on real parts, check it, tear it down."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import json_option, print_facts, print_json, print_table, progress, say

if TYPE_CHECKING:
    from compilers.build import Build
    from mininet_scenarios.engine import Progress
    from mininet_scenarios.format import Scenario
    from mininet_scenarios.result import Result
    from mininet_scenarios.scenario import LoadedScenario

LISTED = 12
"""Events that are printed; all are in the JSON and in the report."""
SHOWN = 10
"""Mismatches of a check that are printed; all are in the JSON."""


@click.command("emulate")
@click.argument("wanted", metavar="SCENARIO", required=False)
@click.option(
    "--list", "list_all", is_flag=True, help="List the scenarios that come with polarfab."
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "mininet", "ovs-fabric", "linux", "frr", "model"]),
    help="What to run on, whatever the scenario says; auto is Mininet where it can run.",
)
@click.option(
    "--framework",
    type=click.Choice(["ryu", "os-ken"]),
    help="The controller's framework; Ryu when both are installed.",
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the build and all logs in this folder.",
)
@click.option(
    "--report",
    metavar="DIR|FILE",
    type=click.Path(path_type=Path),
    help="Write a report: FILE.html, FILE.xml (JUnit), FILE.json, or all three into DIR.",
)
@click.option(
    "--cli",
    "prompt",
    is_flag=True,
    help="When all is checked, Mininet's prompt inside; path, fail, heal and load know the fabric.",
)
@click.option(
    "--clean",
    "clean_up",
    is_flag=True,
    help="Remove what runs that were killed have recorded and left, and nothing else.",
)
@click.option(
    "--unverified",
    is_flag=True,
    help="Run tables that verification has found wrong too; what they do wrong is reported.",
)
@json_option
def command(
    wanted: str | None,
    list_all: bool,
    engine: str | None,
    framework: str | None,
    keep: Path | None,
    report: Path | None,
    prompt: bool,
    clean_up: bool,
    unverified: bool,
    as_json: bool,
) -> None:
    """Bring SCENARIO up, prove that a wrong table would be seen, check every pair and every link.

    SCENARIO is the name of one that comes with polarfab (--list), a scenario file, or a build
    folder. Real Open vSwitch, Mininet hosts and the real controller run in namespaces of their own:
    the host is not touched, and nothing is left, whatever happens. Every ordered pair of hosts
    pings; hops (from the TTL) and the counter of every link must be what the tables predict.

    \b
        polarfab emulate first-light-q3
        polarfab emulate build/ --framework os-ken --keep logs/
    """
    from mininet_scenarios.engine import EngineError
    from mininet_scenarios.runs import add_folder, recorded
    from mininet_scenarios.scenario import load_scenario

    if list_all or clean_up:
        (_clean if clean_up else _list)(as_json)
        return
    if wanted is None:
        raise click.UsageError("which SCENARIO? --list shows those that come with polarfab")
    terminal = _terminal() if prompt else ""
    loaded = load_scenario(wanted)
    given = {"engine": "mininet" if prompt else engine, "framework": framework}
    scenario = loaded.scenario.model_copy(update={k: v for k, v in given.items() if v})
    observer = Silent() if as_json else Narrator()
    with recorded() as record, _work_folder(keep) as work:
        if not keep:
            add_folder(record, work)
        try:
            facts, result = _run(
                loaded, scenario, observer, work, record, unverified, not keep, terminal
            )
        except EngineError as error:
            say(f"the emulation failed: {error}")
            say(f"the logs are in {keep}" if keep else "run it with --keep DIR to keep the logs")
            raise click.exceptions.Exit(1) from error
    if as_json:
        print_json({**facts, **result.as_dict()})
    else:
        _print(facts, result)
    if report:
        from mininet_scenarios.report import Report

        again = _command(wanted, facts, unverified)
        for file in Report(facts, result, again).write(report):
            say(f"reported in {file}")
    if not result.passed:
        raise click.exceptions.Exit(1)


def _run(
    loaded: LoadedScenario,
    scenario: Scenario,
    observer: Silent | Narrator,
    work: Path,
    record: Path,
    unverified: bool,
    temporary: bool,
    terminal: str,
) -> tuple[dict[str, Any], Result]:
    """Compile, verify and rehearse; returns what was run, and what it found."""
    from mininet_scenarios.engine import Hosts, Setup
    from mininet_scenarios.engines import require
    from mininet_scenarios.moments import cases, needs
    from mininet_scenarios.rehearsal import Rehearsal
    from mininet_scenarios.resources import require as enough

    engine_name, framework = _choose(scenario, observer)
    begun = perf_counter()
    build, folder = _build(loaded, observer, work, unverified)
    compiled = perf_counter() - begun
    events = cases(scenario, build, loaded.document)
    kind = require(engine_name, needs(scenario, events))
    if engine_name == "mininet":
        enough(build, Hosts.of(build, scenario.hosts), scenario.traffic.flows)
    setup = Setup(
        build=build,
        folder=folder,
        work=work,
        hosts=scenario.hosts,
        framework=framework,
        unverified=unverified,
        temporary=temporary,
        patience=scenario.patience,
        rate=scenario.traffic.link_rate,
        record=record,
    )
    engine = kind.make(setup)
    then = partial(engine.prompt, terminal) if terminal else None  # type: ignore[attr-defined]
    result = Rehearsal(scenario, build, engine, observer, events, then).run()
    result.seconds = {
        "compile": round(compiled, 2),
        **result.seconds,
        "all": round(perf_counter() - begun, 2),
    }
    facts = {
        "scenario": scenario.name,
        "engine": engine_name,
        "framework": framework or None,
        "build": build.identity,
        "topology": build.topology.title(),
        "switches": build.tables.switches,
        "links": build.topology.graph.size,
    }
    return facts, result


def _choose(scenario: Scenario, observer: Silent | Narrator) -> tuple[str, str]:
    """The engine and framework; says so where Mininet was not to be had."""
    from inventory.problems import InputError
    from mininet_scenarios.engines import ENGINES
    from mininet_scenarios.preflight import require

    if scenario.engine != "auto" and not ENGINES[scenario.engine].needs_framework:
        return scenario.engine, ""
    try:
        engine = "mininet" if scenario.engine == "auto" else scenario.engine
        return engine, require(scenario.framework)
    except InputError as error:
        if scenario.engine != "auto":
            raise
        observer.note("Mininet cannot run here, so no packet is sent: the packet walker")
        observer.note("answers from the tables alone (--engine model). What is missing:")
        for problem in error.problems:
            observer.note(f"  {problem.required}: {problem.todo}")
        return "model", ""


def _build(
    loaded: LoadedScenario, observer: Silent | Narrator, work: Path, unverified: bool
) -> tuple[Build, Path]:
    """The build and its folder, verified unless that is not asked for."""
    from compilers.build import load, require_verified, save
    from compilers.pipeline import compile_fabric
    from polarfab.commands.verify import check, failed

    if loaded.folder:
        build = load(loaded.folder)
        if unverified:
            say(f"{loaded.folder} may be unverified: its tables may lose packets or loop")
        else:
            require_verified(loaded.folder, build)
        return build, loaded.folder
    assert loaded.fabric is not None  # noqa: S101
    folder = work / "build"
    with observer.step("compile the fabric and walk every pair through its tables") as report:
        build = save(compile_fabric(loaded.fabric), folder)
        verdict = check(build, folder, report)
    if not verdict.passed and not unverified:
        failed(build, verdict)
    return build, folder


def _terminal() -> str:
    """The terminal that the prompt is to use.

    Raises:
        InputError: there is none.
    """
    from inventory.problems import InputError, Problem

    if not sys.stdin.isatty():
        raise InputError(Problem("a terminal on standard input", "something else", key="--cli"))
    return os.ttyname(sys.stdin.fileno())


def _command(wanted: str, facts: dict[str, Any], unverified: bool) -> str:
    """What runs the same again."""
    words = ["polarfab", "emulate", wanted, "--engine", facts["engine"]]
    words += ["--framework", facts["framework"]] if facts["framework"] else []
    words += ["--unverified"] * unverified
    return shlex.join(words)


@contextmanager
def _work_folder(keep: Path | None) -> Iterator[Path]:
    """Where the build and the logs go: the folder to keep, or one that goes with the run."""
    if keep:
        _make_folder(keep)
        yield keep
        return
    work = Path(tempfile.mkdtemp(prefix="polarfab-emulate-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    from inventory.problems import InputError, Problem

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        required, given = "a folder that can be written", error.strerror or str(error)
        problem = Problem(file=str(folder), key="--keep", required=required, given=given)
        raise InputError(problem) from error


class Silent:
    """Tells nothing, for --json."""

    def step(self, what: str) -> AbstractContextManager[Progress]:  # noqa: ARG002
        """A step without a word."""
        return nullcontext(lambda done, total: None)  # noqa: ARG005

    def note(self, text: str) -> None:
        """Nothing."""


class Narrator:
    """A line a step with its time on stdout, and a bar on stderr while it lasts."""

    @contextmanager
    def step(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """The line comes when the step has ended."""
        begun = perf_counter()
        with progress(what) as report:
            yield report or (lambda done, total: None)  # noqa: ARG005
        click.echo(f"{perf_counter() - begun:6.1f} s  {what}")

    def note(self, text: str) -> None:
        """A line."""
        click.echo(f"          {text}")


def _clean(as_json: bool) -> None:
    from mininet_scenarios.runs import clean

    found = clean()
    rows = [
        {
            "record": str(each.record),
            "state": "still runs" if each.alive else "cleaned",
            "processes": list(each.processes),
            "folders": list(each.folders),
        }
        for each in found
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        removed = [f"process {pid}" for pid in row["processes"]] + [*row["folders"]]
        what = "left alone" if row["state"] == "still runs" else ", ".join(removed) or "nothing"
        say(f"{row['record']}: {row['state']}: {what}")
    if not rows:
        say("no run has left anything")


def _list(as_json: bool) -> None:
    from mininet_scenarios.scenario import load_scenario, shipped

    loaded = {name: load_scenario(name) for name in shipped()}
    rows = [
        {"name": name, "topology": _topology(scenario), "engine": scenario.scenario.engine}
        for name, scenario in loaded.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table("Scenarios", ["name", "topology", "engine"], [[*row.values()] for row in rows])


def _topology(loaded: LoadedScenario) -> str:
    assert loaded.fabric is not None  # noqa: S101
    spec = loaded.fabric.spec.topology
    return " ".join([spec.family, *(f"{k}={v}" for k, v in spec.parameters().items())])


def _print_timeline(result: Result) -> None:
    """The first events, those in which most pairs were cut off."""
    probed = result.watched is not None
    columns = ["s", "event", "pairs", "to be delivered", "delivered", "most links"]
    columns += ["packets lost", "of one pair", "until, s"] if probed else []
    order = sorted(result.happened, key=lambda e: (e.reached or 0) - (e.pairs or 0))[:LISTED]
    rows = [
        [e.at, e.what, e.pairs, e.expected, e.reached, e.max_hops]
        + ([e.lost, e.worst, e.converged] if probed else [])
        for e in sorted(order, key=lambda e: e.at)
    ]
    more = len(result.happened) > len(rows)
    title = f"timeline: {LISTED} of {len(result.happened)} events" if more else "timeline"
    print_table(title, columns, rows)


def _print(facts: dict[str, Any], result: Result) -> None:
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
            f"over {h} link{'s' * (h != 1)}",
            f"{seen.get(h, 0):,} pairs"
            + (f", {predicted.get(h, 0):,} predicted" if predicted else ""),
        )
        for h in sorted(predicted.keys() | seen.keys())
    ]
    delivered = ("delivered", f"{result.delivered:,} of {result.pairs:,} pairs")
    seconds = ("seconds", "  ".join(f"{name} {t:g}" for name, t in result.seconds.items()))
    print_facts("", [delivered, *hops, ("build", facts["build"]), seconds])
    for check in result.checks:
        for mismatch in check.mismatches[:SHOWN]:
            say(f"wrong: {check.name}: {mismatch}")
        if more := len(check.mismatches[SHOWN:]):
            say(f"wrong: {check.name}: {more:,} more like these")
    verdict = "passed" if result.passed else "FAILED"
    say(f"{facts['scenario']} {verdict} in {result.seconds['all']:.1f} s")
