"""An emulation: a scenario compiled, proved, brought up on an engine and checked."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from compilers.pipeline import compile_fabric
from compilers.proof.verification import judge
from compilers.proof.walks.delivery import Report
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from compilers.tables.folders.generations import require_verified
from inventory.problems import InputError
from mininet_scenarios.engines.engine_kinds import ENGINES, require, require_known
from mininet_scenarios.machine import preflight
from mininet_scenarios.machine.provenance import provenance
from mininet_scenarios.machine.resources import require as require_resources
from mininet_scenarios.machine.runs import add_folder, recorded
from mininet_scenarios.run.rehearsal import Observer, Rehearsal
from mininet_scenarios.scenario.cabled_build import as_cabled, ground_of
from mininet_scenarios.scenario.engine import Ability, HostSample, Progress, Setup
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.scenario.scenario_format import MOVES, Scenario
from mininet_scenarios.scenario.timeline_builds import Builds
from mininet_scenarios.scenario.timeline_events import cases, needs
from mininet_scenarios.verdict.checks import Check
from mininet_scenarios.verdict.plan_check import promise
from mininet_scenarios.verdict.report import RehearsalReport
from mininet_scenarios.verdict.result import Result


class WrongTables(Exception):
    """Verification has not passed on a build that was to be emulated."""

    def __init__(self, build: Build, report: Report) -> None:
        super().__init__(f"verification has not passed on {build.name}: {report}")
        self.build, self.report = build, report


class Silent:
    """An observer that tells nothing."""

    def step(self, what: str) -> AbstractContextManager[Progress]:  # noqa: ARG002
        """A step without a word."""
        return nullcontext(lambda done, total: None)  # noqa: ARG005

    def note(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Emulated:
    """What was run (scenario, engine, framework, build, topology, counts), when, where and by which
    version, and what it found.
    """

    facts: dict[str, Any]
    result: Result

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return self.result.passed

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.facts, **self.result.as_dict()}

    def write(self, where: Path, command: str = "") -> list[Path]:
        """Write a report: FILE.html, FILE.xml (JUnit), FILE.json, or all three into a folder.

        Args:
            where: the file, or the folder.
            command: what runs the same again, for the report.

        Raises:
            InputError: it cannot be written.
        """
        return RehearsalReport(self.facts, self.result, command).write(where)

    def __repr__(self) -> str:
        """`<Emulated lab on model passed: 12 of 12 pairs delivered>`."""
        word = "passed" if self.passed else "FAILED"
        pairs = f"{self.result.delivered:,} of {self.result.pairs:,} pairs delivered"
        return f"<Emulated {self.facts['scenario']} on {self.facts['engine']} {word}: {pairs}>"


@dataclass(frozen=True, slots=True)
class Emulation:
    """A scenario that is to be run.

    keep: the folder where the build and the logs stay, None for nowhere. unverified: run tables
    that verification has found wrong too. terminal: for Mininet's prompt at the end, "" for none.
    """

    loaded: LoadedScenario
    keep: Path | None = None
    unverified: bool = False
    terminal: str = ""
    observer: Observer = field(default_factory=Silent)

    def run(self) -> Emulated:
        """Compile, verify, bring up, check and tear down.

        Raises:
            InputError: the scenario or its fabric is wrong, or the machine lacks something.
            WrongTables: verification has not passed on a build.
            EngineError: an engine could not do its part.
        """
        with recorded() as record, work_folder(self.keep) as work:
            if not self.keep:
                add_folder(record, work)
            return self._run(work, record)

    def _run(self, work: Path, record: Path) -> Emulated:
        loaded, scenario = self.loaded, self.loaded.scenario
        engine_name, framework = self._choose(scenario)
        began, begun = provenance(), perf_counter()
        first, folder = self._build(work)
        folders = self._moves_to(first, work)
        compiled = perf_counter() - begun
        builds = [first, *map(load, folders.values())]
        build = ground_of(builds) if folders else first
        first = as_cabled(first, build)
        events = cases(scenario, first, loaded.document, folders, build, loaded.others)
        needed = needs(scenario, events)
        if scenario.engine == "auto" and (why := _lacks(engine_name, needed)):
            self._tell_model(f"Mininet cannot do {why}", "(--engine model)")
            engine_name, framework = "model", ""
        kind = require(engine_name, needed)
        where = dict(zip((b.identity for b in builds), (folder, *folders.values()), strict=True))
        promised = self._promises(builds)
        if engine_name == "mininet":
            hosts = HostSample.of(build, scenario.hosts)
            require_resources(build, hosts, scenario.traffic.flows)
        setup = Setup(
            build=build,
            folder=where[build.identity],
            work=work,
            hosts=scenario.hosts,
            framework=framework,
            unverified=self.unverified,
            temporary=not self.keep,
            patience=scenario.patience,
            rate=scenario.traffic.link_rate,
            record=record,
            running=folder if folders else None,
        )
        engine = kind.make(setup)
        then = partial(engine.prompt, self.terminal) if self.terminal else None  # type: ignore[attr-defined]
        result = Rehearsal(scenario, first, engine, self.observer, events, then, build).run()
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
            **began,
        }
        if folders:
            facts["moves_to"] = [other.identity for other in builds[1:]]
        return Emulated(facts, result)

    def _choose(self, scenario: Scenario) -> tuple[str, str]:
        """The engine and framework; says so where Mininet was not to be had."""
        if scenario.engine != "auto" and not ENGINES[scenario.engine].needs_framework:
            return scenario.engine, ""
        try:
            engine = "mininet" if scenario.engine == "auto" else scenario.engine
            return engine, preflight.require(scenario.framework, engine)
        except InputError as error:
            if scenario.engine != "auto":
                raise
            self._tell_model("Mininet cannot run here", "(--engine model). What is missing:")
            for problem in error.problems:
                self.observer.note(f"  {problem.required}: {problem.todo}")
            return "model", ""

    def _tell_model(self, why: str, more: str) -> None:
        self.observer.note(f"{why}, so no packet is sent: the packet walker")
        self.observer.note(f"answers from the tables alone {more}")

    def _build(self, work: Path) -> tuple[Build, Path]:
        """The build and its folder, verified unless that is not asked for."""
        loaded = self.loaded
        if loaded.folder:
            build = load(loaded.folder)
            if not self.unverified:
                require_verified(loaded.folder, build)
            return build, loaded.folder
        assert loaded.fabric is not None  # noqa: S101
        folder = work / "build"
        with self.observer.step("compile the fabric and walk every pair through its tables") as to:
            return self._proved(compile_fabric(loaded.fabric), folder, to), folder

    def _proved(self, build: Build, folder: Path, progress: Progress) -> Build:
        """The build, saved and walked."""
        build = save(build, folder)
        (report,) = judge([build], [folder], progress, failures=()).reports
        if not report.passed and not self.unverified:
            raise WrongTables(build, report)
        return build

    def _moves_to(self, build: Build, work: Path) -> dict[int, Path]:
        """The folders of the builds that the timeline moves to, by the event's number."""

        def keep(made: Build, folder: Path) -> Build:
            what = "compile the next build, and walk every pair through it"
            with self.observer.step(what) as progress:
                return self._proved(made, folder, progress)

        def accept(folder: Path, known: Build) -> None:
            if not self.unverified:
                require_verified(folder, known)

        if not any({*MOVES} & {*moment.happens()} for moment in self.loaded.scenario.timeline):
            return {}
        return Builds(work, keep, accept).of(self.loaded, build)

    def _promises(self, builds: Sequence[Build]) -> list[Check]:
        """What the plan of each move promises, proved by walking."""
        checks = []
        for old, new in pairwise(builds):
            with self.observer.step(f"plan the move to {new.identity}, and walk its states"):
                check, words = promise(old, new)
            self.observer.note(words)
            checks.append(check)
        return checks


def chosen(loaded: LoadedScenario, engine: str | None, framework: str | None) -> LoadedScenario:
    """The scenario on this engine and framework; None for what it says itself.

    Raises:
        InputError: there is no such engine or framework.
    """
    require_known(engine, framework)
    given = {"engine": engine, "framework": framework}
    said = {word: value for word, value in given.items() if value}
    return replace(loaded, scenario=loaded.scenario.model_copy(update=said))


def _lacks(engine: str, needed: dict[Ability, str]) -> str:
    """What of a scenario an engine cannot do."""
    return ", ".join(why for what, why in needed.items() if what not in ENGINES[engine].abilities)


@contextmanager
def work_folder(keep: Path | None) -> Iterator[Path]:
    """Where the build and the logs go: the folder to keep, or one that goes with the run."""
    if keep:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            required, given = "a folder that can be written", error.strerror or str(error)
            raise InputError.of(required, given, "", str(keep), key="--keep") from error
        yield keep
        return
    work = Path(tempfile.mkdtemp(prefix="polarfab-emulate-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
