"""An emulation: a scenario compiled, proved, brought up on an engine and checked.

A *scenario* is what a file describes: a fabric, an engine, and events with what is expected of
them. Its *emulation* compiles and verifies the builds, plans the checks (`rehearsal_plan`), and
carries the plan out on the engine (`rehearsal`). A fabric of several planes is emulated one plane
after the other; `plane_results` puts the results together. The library calls it
(`polarfab.rehearsals`).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from compilers.planes import compile_planes
from compilers.proof.proof_options import ProofOptions
from compilers.proof.verification import judge
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, plane_folders, save_planes
from inventory.document_errors import validate
from inventory.problems import InputError, shown
from inventory.values import LONGEST_PATH
from inventory.yamlfile import from_values
from mininet_scenarios.engines.engine_kinds import ENGINES, make, require
from mininet_scenarios.machine import preflight
from mininet_scenarios.machine.preflight import require_neighbours, require_resources
from mininet_scenarios.run.plane_results import merged
from mininet_scenarios.run.rehearsal import carry_out
from mininet_scenarios.run.rehearsal_plan import Observer, Plan, PlannedBuild, Silent, WrongTables
from mininet_scenarios.run.rehearsal_plan import plan as make_plan
from mininet_scenarios.scenario.engine import HostSample, Setup
from mininet_scenarios.scenario.scenario_file import LoadedScenario, Scenario
from mininet_scenarios.verdict.report import Emulated


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine of an emulation."""

    name: str
    """The engine's name, a key of `ENGINES`."""
    framework: str
    """The controller's framework; "" for an engine without a controller."""


@dataclass(frozen=True, slots=True)
class Emulation:
    """A scenario that is to be emulated, and how."""

    loaded: LoadedScenario
    """The scenario and its fabric."""
    keep: Path | None = None
    """The folder where the build and the logs stay; None for nowhere."""
    unverified: bool = False
    """Whether tables that verification has found wrong are emulated all the same."""
    terminal: str = ""
    """The terminal for Mininet's prompt at the end; "" for none."""
    observer: Observer = field(default_factory=Silent)
    """Gets notified of each step."""

    def run(self) -> Emulated:
        """Compile, verify, bring up, check and take down the fabric, plane after plane.

        The results are those of all planes.

        Raises:
            InputError: the scenario or its fabric is wrong, or the machine lacks something.
            WrongTables: verification has not passed on a build.
            EngineError: an engine failed.
        """
        loaded = self.loaded
        folders = plane_folders(loaded.folder) if loaded.folder else ()
        planes = len(folders) or (loaded.fabric.spec.planes if loaded.fabric else 1)
        if planes > 1 and self.terminal:
            raise InputError.of("a fabric of one plane", f"{planes} planes", "name one", key="cli")
        with work_folder(self.keep) as work:
            if planes == 1:
                return self._emulate_plane(work)
            folders = folders or _compile_planes(self, work / "build")
            builds = [load(folder) for folder in folders]
            return merged(loaded, builds, list(_run_planes(self, builds, folders)))

    def _emulate_plane(self, work: Path) -> Emulated:
        """Emulate a fabric of one plane, with the build and the logs in a folder."""
        preferred = self._preferred_engine(self.loaded.scenario)
        provenance, begin = _provenance(), perf_counter()
        plan = make_plan(self.loaded, self.unverified, self.observer)
        compile_seconds = perf_counter() - begin
        choice = self._capable_engine(preferred, plan)
        engine = make(choice.name, self._setup(plan, choice.framework, work))
        # Only Mininet's engine has a prompt, and only its verb gives a terminal.
        prompt = partial(engine.prompt, self.terminal) if self.terminal else None  # type: ignore[attr-defined]
        result = carry_out(plan, engine, self.observer, prompt)
        result.seconds = {
            "compile": round(compile_seconds, 2),
            **result.seconds,
            "all": round(perf_counter() - begin, 2),
        }
        return Emulated(_facts(plan, choice, provenance), result)

    def _capable_engine(self, preferred: EngineChoice, plan: Plan) -> EngineChoice:
        """The preferred engine, or the model if `auto` preferred one that lacks an ability.

        Raises:
            InputError: the engine lacks an ability, or the machine lacks resources for it.
        """
        scenario = self.loaded.scenario
        choice, abilities = preferred, ENGINES[preferred.name]
        lacking = [words for ability, words in plan.needs.items() if ability not in abilities]
        if scenario.engine == "auto" and lacking:
            self._note_model(f"Mininet cannot do {', '.join(lacking)}", "(the engine model)")
            choice = EngineChoice("model", "")
        require(choice.name, plan.needs)
        hosts = HostSample.of(plan.cabled, scenario.hosts)
        if choice.name == "mininet":
            require_resources(plan.cabled, hosts, scenario.traffic.flows)
        elif choice.name in ("linux", "frr"):
            require_neighbours(choice.name, plan.cabled, hosts)
        return choice

    def _setup(self, plan: Plan, framework: str, work: Path) -> Setup:
        """The parameters of the engine, with the builds in their folders."""
        builds = [planned.build for planned in plan.builds]
        names = ["build", *(f"build-{n}" for n in range(1, len(builds)))]
        folders = map(PlannedBuild.save_in, plan.builds, (work / name for name in names))
        return Setup(
            builds=tuple(builds),
            folders=tuple(folder.resolve() for folder in folders),
            work=work.resolve(),
            cabled=builds.index(plan.cabled),
            hosts=plan.scenario.hosts,
            framework=framework,
            unverified=self.unverified,
            temporary=not self.keep,
            patience=plan.scenario.patience,
            rate=plan.scenario.traffic.link_rate,
            repair=plan.scenario.repair,
        )

    def _preferred_engine(self, scenario: Scenario) -> EngineChoice:
        """The engine that the scenario names.

        For `auto` this is Mininet, or the model if the machine lacks something for Mininet. Then
        the observer gets a note that says what is missing.
        """
        if scenario.engine == "model":
            return EngineChoice("model", "")
        try:
            engine = "mininet" if scenario.engine == "auto" else scenario.engine
            return EngineChoice(engine, preflight.require(engine, scenario.framework))
        except InputError as error:
            if scenario.engine != "auto":
                raise
            self._note_model("Mininet cannot run here", "(the engine model). What is missing:")
            for problem in error.problems:
                self.observer.note(f"  {problem.required}: {problem.todo}")
            return EngineChoice("model", "")

    def _note_model(self, reason: str, ending: str) -> None:
        """Tell the observer that the model runs in place of Mininet."""
        self.observer.note(f"{reason}, so no packet is sent: the packet walker")
        self.observer.note(f"answers from the tables alone {ending}")


def with_engine(
    loaded: LoadedScenario, engine: str | None, framework: str | None
) -> LoadedScenario:
    """The scenario with another engine and framework; None keeps the scenario's own.

    Raises:
        InputError: there is no such engine or framework.
    """
    options = {"engine": engine, "framework": framework}
    changes = {key: value for key, value in options.items() if value is not None}
    validate(Scenario, from_values({"name": loaded.scenario.name, **changes}))
    return replace(loaded, scenario=loaded.scenario.model_copy(update=changes))


@contextmanager
def work_folder(keep: Path | None) -> Iterator[Path]:
    """The folder for build and logs: `keep`, or one that is removed after the emulation."""
    if keep is None:
        prefix = "polarfab-emulate-"
        with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as work:
            yield Path(work)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        required, given = "a folder that can be written", error.strerror or str(error)
        raise InputError.of(required, given, "", str(keep), key="keep") from error
    yield keep


def _provenance() -> dict[str, str]:
    """The time with its zone, the version of polarfab, and the host with its system."""
    try:
        installed = version("polarfab")
    except PackageNotFoundError:  # a checkout that is not installed
        installed = "of a checkout"
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return {
        "at": datetime.now().astimezone().isoformat(timespec="seconds"),
        "version": installed,
        "host": f"{gethostname()}, {system}, {cores} {'core' if cores == 1 else 'cores'}",
    }


def _facts(plan: Plan, engine: EngineChoice, provenance: dict[str, str]) -> dict[str, Any]:
    """The facts of an emulation: scenario, engine, build, sizes, time and machine."""
    first, *others = (planned.build for planned in plan.builds)
    facts: dict[str, Any] = {
        "scenario": plan.scenario.name,
        "engine": engine.name,
        "framework": engine.framework or None,
        "build": first.identity,
        "topology": first.topology.title(),
        "switches": plan.cabled.tables.switches,
        "links": plan.cabled.topology.graph.size,
        **provenance,
    }
    if others:
        facts["moves_to"] = [other.identity for other in others]
    return facts


def _compile_planes(emulation: Emulation, folder: Path) -> tuple[Path, ...]:
    """Compile all planes into a folder, and walk every pair through their tables.

    Returns:
        The folders of the planes.

    Raises:
        WrongTables: a pair does not arrive, and only verified builds are taken.
    """
    fabric = emulation.loaded.fabric
    if fabric is None:
        raise ValueError("a build folder is not compiled")
    step = "compile all planes, and walk every pair through their tables"
    with emulation.observer.step(step) as progress:
        builds = save_planes(compile_planes(fabric), folder)
        folders = plane_folders(folder)
        reports = judge(builds, folders, ProofOptions(failures=(), progress=progress)).reports
    for build, report in zip(builds, reports, strict=True):
        if not report.passed and not emulation.unverified:
            raise WrongTables(build, report)
    return folders


def _run_planes(
    emulation: Emulation, builds: Sequence[Build], folders: Sequence[Path]
) -> Iterator[Emulated]:
    """Emulate each plane, with the events of the timeline that concern it."""
    for plane, (build, folder) in enumerate(zip(builds, folders, strict=True), 1):
        emulation.observer.note(f"plane {plane}: {build.name}")
        others = tuple(other for other in builds if other is not build)
        loaded = replace(emulation.loaded, folder=folder, fabric=None, others=others)
        keep = emulation.keep / f"plane-{plane}" if emulation.keep else None
        yield replace(emulation, loaded=loaded, keep=keep).run()


def move_scenario(
    old: str,
    new: str,
    engine: str = "auto",
    framework: str | None = None,
    interval: float = 0.1,
    pairs: int = 0,
) -> LoadedScenario:
    """The scenario of one move under a probe over all pairs, in which no packet may be lost.

    Args:
        old: a build folder or a fabric.yaml.
        new: the build folder or fabric.yaml to move to.
        engine: the name of the engine; `auto` is Mininet where it can run.
        framework: of the controller.
        interval: seconds between two packets of a pair.
        pairs: how many pairs of hosts the probe sends over; 0 is all.

    Raises:
        InputError: `old` is neither, or has mistakes; `new` is no printable path; or there is no
            such engine or framework.
    """
    if not new.isprintable() or not 1 <= len(new) <= LONGEST_PATH:
        required = f"a path of 1 to {LONGEST_PATH:,} printable characters"
        raise InputError.of(required, shown(new), "rename it", key="BUILD")
    folder, fabric = None, None
    if Path(old).is_dir():
        folder = Path(old)
        name = load(folder).name
    else:
        fabric = load_fabric(old)
        name = fabric.spec.name
    values = {
        "name": name,
        "engine": engine,
        "framework": framework,
        "traffic": {"probe": {"interval": interval, "pairs": pairs}},
        "timeline": [{"build": new, "expect": {"lost": 0, "converged_within": 0}}],
    }
    return LoadedScenario(validate(Scenario, from_values(values)), folder=folder, fabric=fabric)
