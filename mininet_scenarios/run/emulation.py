"""An emulation: a scenario compiled, proved, brought up on an engine and checked."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from socket import gethostname
from time import perf_counter
from typing import Any

from inventory.problems import InputError
from mininet_scenarios.engines.engine_kinds import ENGINES, require, require_known
from mininet_scenarios.machine import preflight
from mininet_scenarios.machine.resources import require as require_resources
from mininet_scenarios.machine.runs import add_folder, recorded
from mininet_scenarios.run.rehearsal import carry_out
from mininet_scenarios.run.rehearsal_plan import Observer, RehearsalPlan, Silent
from mininet_scenarios.run.rehearsal_plan import plan as make_plan
from mininet_scenarios.scenario.engine import Ability, HostSample, Setup
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.scenario.scenario_format import Scenario
from mininet_scenarios.verdict.report import RehearsalReport
from mininet_scenarios.verdict.result import Result


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
        scenario = self.loaded.scenario
        name, framework = self._choose(scenario)
        began, begun = _provenance(), perf_counter()
        plan = make_plan(self.loaded, self.unverified, self.observer)
        compiled = perf_counter() - begun
        if scenario.engine == "auto" and (why := _lacks(name, plan.needs)):
            self._tell_model(f"Mininet cannot do {why}", "(--engine model)")
            name, framework = "model", ""
        kind = require(name, plan.needs)
        if name == "mininet":
            hosts = HostSample.of(plan.cabled, scenario.hosts)
            require_resources(plan.cabled, hosts, scenario.traffic.flows)
        engine = kind.make(self._setup(plan, framework, work, record))
        then = partial(engine.prompt, self.terminal) if self.terminal else None  # type: ignore[attr-defined]
        result = carry_out(plan, engine, self.observer, then)
        result.seconds = {
            "compile": round(compiled, 2),
            **result.seconds,
            "all": round(perf_counter() - begun, 2),
        }
        first, *others = (planned.build for planned in plan.builds)
        facts: dict[str, Any] = {
            "scenario": scenario.name,
            "engine": name,
            "framework": framework or None,
            "build": first.identity,
            "topology": first.topology.title(),
            "switches": plan.cabled.tables.switches,
            "links": plan.cabled.topology.graph.size,
            **began,
        }
        if others:
            facts["moves_to"] = [other.identity for other in others]
        return Emulated(facts, result)

    def _setup(self, plan: RehearsalPlan, framework: str, work: Path, record: Path) -> Setup:
        """What the engine gets, with the builds in their folders."""
        names = ["build", *(f"build-{n}" for n in range(1, len(plan.builds)))]
        folders = [
            planned.placed(work / word) for planned, word in zip(plan.builds, names, strict=True)
        ]
        builds, several = [planned.build for planned in plan.builds], len(folders) > 1
        return Setup(
            build=plan.cabled,
            folder=folders[builds.index(plan.cabled)],
            work=work,
            hosts=plan.scenario.hosts,
            framework=framework,
            unverified=self.unverified,
            temporary=not self.keep,
            patience=plan.scenario.patience,
            rate=plan.scenario.traffic.link_rate,
            record=record,
            builds=tuple(builds) if several else (),
            folders=tuple(folders) if several else (),
        )

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


def _provenance() -> dict[str, str]:
    """The time now with its zone, the version of polarfab, and the host with its system."""
    try:
        ours = version("polarfab")
    except PackageNotFoundError:  # a checkout that is not installed
        ours = "of a checkout"
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return {
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": ours,
        "host": f"{gethostname()}, {system}, {cores} core{'s' * (cores != 1)}",
    }
