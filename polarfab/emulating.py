"""What `polarfab emulate` and `polarfab rehearse` share: a run from scenario to verdict."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from polarfab.output import print_facts, print_json, print_table, progress, say

if TYPE_CHECKING:
    from compilers.tables.build import Build
    from mininet_scenarios.scenario.engine import Ability, Progress
    from mininet_scenarios.scenario.scenario_file import LoadedScenario
    from mininet_scenarios.scenario.scenario_format import Scenario
    from mininet_scenarios.verdict.checks import Check
    from mininet_scenarios.verdict.result import Result

LISTED_RUNS = 12
"""Events that are printed; all are in the JSON and in the report."""
SHOWN_MISMATCHES = 10
"""Mismatches of a check that are printed; all are in the JSON."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a scenario, as the command line asks for it.

    again: the words that run it again, without engine and framework. keep: where the build and the
    logs stay, None for nowhere. terminal: for Mininet's prompt at the end, "" for none.
    """

    loaded: LoadedScenario
    again: Sequence[str]
    as_json: bool = False
    keep: Path | None = None
    report: Path | None = None
    unverified: bool = False
    terminal: str = ""

    def perform(self) -> None:
        """Rehearse, print what was found, write the report; exit code 1 if something is wrong."""
        from mininet_scenarios.machine.runs import add_folder, recorded
        from mininet_scenarios.scenario.engine import EngineError

        observer = Silent() if self.as_json else Narrator()
        with recorded() as record, _work_folder(self.keep) as work:
            if not self.keep:
                add_folder(record, work)
            try:
                facts, result = self._rehearse(observer, work, record)
            except EngineError as error:
                say(f"the emulation failed: {error}")
                kept = f"the logs are in {self.keep}"
                say(kept if self.keep else "run it with --keep DIR to keep the logs")
                raise click.exceptions.Exit(1) from error
        if self.as_json:
            print_json({**facts, **result.as_dict()})
        else:
            _print(facts, result)
        if self.report:
            from mininet_scenarios.verdict.report import RehearsalReport

            for file in RehearsalReport(facts, result, self._command(facts)).write(self.report):
                say(f"reported in {file}")
        if not result.passed:
            raise click.exceptions.Exit(1)

    def _command(self, facts: dict[str, Any]) -> str:
        """What runs the same again."""
        words = ["polarfab", *self.again, "--engine", facts["engine"]]
        words += ["--framework", facts["framework"]] if facts["framework"] else []
        words += ["--unverified"] * self.unverified
        return shlex.join(words)

    def _rehearse(
        self, observer: Silent | Narrator, work: Path, record: Path
    ) -> tuple[dict[str, Any], Result]:
        """Compile, verify and rehearse; returns what was run, and what it found."""
        from compilers.tables.build_folder import load
        from mininet_scenarios.engines.engine_kinds import require
        from mininet_scenarios.machine.resources import require as enough
        from mininet_scenarios.run.rehearsal import Rehearsal
        from mininet_scenarios.scenario.engine import HostSample, Setup
        from mininet_scenarios.scenario.numbering import ground_of
        from mininet_scenarios.scenario.timeline_events import cases, needs

        loaded, scenario = self.loaded, self.loaded.scenario
        engine_name, framework = _choose(scenario, observer)
        begun = perf_counter()
        build, folder = _build(loaded, observer, work, self.unverified)
        folders = self._following(build, observer, work)
        compiled = perf_counter() - begun
        events = cases(scenario, build, loaded.document, folders)
        needed = needs(scenario, events)
        if scenario.engine == "auto" and (why := _lacks(engine_name, needed)):
            observer.note(f"Mininet cannot do {why}, so no packet is sent: the packet walker")
            observer.note("answers from the tables alone (--engine model)")
            engine_name, framework = "model", ""
        kind = require(engine_name, needed)
        running, promised, builds = None, [], [build]
        first, cabled = build, {build.identity: folder}
        if folders:
            builds += map(load, folders.values())
            cabled |= zip((b.identity for b in builds[1:]), folders.values(), strict=True)
            running, build = folder, ground_of(builds)
            promised = _promises(builds, observer)
        if engine_name == "mininet":
            enough(build, HostSample.of(build, scenario.hosts), scenario.traffic.flows)
        setup = Setup(
            build=build,
            folder=cabled[build.identity],
            work=work,
            hosts=scenario.hosts,
            framework=framework,
            unverified=self.unverified,
            temporary=not self.keep,
            patience=scenario.patience,
            rate=scenario.traffic.link_rate,
            record=record,
            running=running,
        )
        engine = kind.make(setup)
        then = partial(engine.prompt, self.terminal) if self.terminal else None  # type: ignore[attr-defined]
        ground = build if folders else None
        result = Rehearsal(scenario, first, engine, observer, events, then, ground).run()
        result.checks = promised + result.checks
        result.seconds = {
            "compile": round(compiled, 2),
            **result.seconds,
            "all": round(perf_counter() - begun, 2),
        }
        facts: dict[str, Any] = {
            "scenario": scenario.name,
            "engine": engine_name,
            "framework": framework or None,
            "build": first.identity,
            "topology": first.topology.title(),
            "switches": build.tables.switches,
            "links": build.topology.graph.size,
        }
        if folders:
            facts["moves_to"] = [other.identity for other in builds[1:]]
        return facts, result

    def _following(self, build: Build, observer: Silent | Narrator, work: Path) -> dict[int, Path]:
        """The builds that the timeline moves to."""
        from compilers.tables.build_folder import save
        from compilers.tables.verified_mark import require_verified
        from mininet_scenarios.scenario.scenario_format import MOVES
        from mininet_scenarios.scenario.timeline_builds import Builds
        from polarfab.commands.verify import check, failed

        def keep(made: Build, folder: Path) -> Build:
            with observer.step("compile the next build, and walk every pair through it") as report:
                made = save(made, folder)
                verdict = check(made, folder, report)
            if not verdict.passed and not self.unverified:
                failed(made, verdict)
            return made

        def accept(folder: Path, known: Build) -> None:
            if not self.unverified:
                require_verified(folder, known)

        if not any({*MOVES} & {*moment.happens()} for moment in self.loaded.scenario.timeline):
            return {}
        return Builds(work, keep, accept).of(self.loaded, build)


def _promises(builds: Sequence[Build], observer: Silent | Narrator) -> list[Check]:
    """What the plan of each move promises, proved by walking."""
    from mininet_scenarios.verdict.plan_check import promise

    checks = []
    for old, new in pairwise(builds):
        with observer.step(f"plan the move to {new.identity}, and walk its states"):
            check, words = promise(old, new)
        observer.note(words)
        checks.append(check)
    return checks


def _lacks(engine: str, needed: dict[Ability, str]) -> str:
    """What of a scenario an engine cannot do."""
    from mininet_scenarios.engines.engine_kinds import ENGINES

    return ", ".join(why for what, why in needed.items() if what not in ENGINES[engine].abilities)


def _choose(scenario: Scenario, observer: Silent | Narrator) -> tuple[str, str]:
    """The engine and framework; says so where Mininet was not to be had."""
    from inventory.problems import InputError
    from mininet_scenarios.engines.engine_kinds import ENGINES
    from mininet_scenarios.machine.preflight import require

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
    from compilers.pipeline import compile_fabric
    from compilers.tables.build_folder import load, save
    from compilers.tables.verified_mark import require_verified
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


def _print_timeline(result: Result) -> None:
    """The first events, those in which most pairs were cut off."""
    probed = result.watched is not None
    columns = ["s", "event", "pairs", "to be delivered", "delivered", "most links"]
    columns += ["packets lost", "of one pair", "until, s"] if probed else []
    order = sorted(result.happened, key=lambda e: (e.reached or 0) - (e.pairs or 0))[:LISTED_RUNS]
    rows = [
        [e.at, e.what, e.pairs, e.expected, e.reached, e.max_hops]
        + ([e.lost, e.worst, e.converged] if probed else [])
        for e in sorted(order, key=lambda e: e.at)
    ]
    more = len(result.happened) > len(rows)
    title = f"timeline: {LISTED_RUNS} of {len(result.happened)} events" if more else "timeline"
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
    builds = [("build", " then ".join([facts["build"], *facts.get("moves_to", ())]))]
    slowed = [("probe slowed", "; ".join(result.slowed))] if result.slowed else []
    print_facts("", [delivered, *hops, *builds, *slowed, seconds])
    for check in result.checks:
        for mismatch in check.mismatches[:SHOWN_MISMATCHES]:
            say(f"wrong: {check.name}: {mismatch}")
        if more := len(check.mismatches[SHOWN_MISMATCHES:]):
            say(f"wrong: {check.name}: {more:,} more like these")
    verdict = "passed" if result.passed else "FAILED"
    say(f"{facts['scenario']} {verdict} in {result.seconds['all']:.1f} s")
