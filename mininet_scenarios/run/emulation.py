"""An emulation: a scenario compiled, proved, brought up on an engine and checked.

A fabric of several planes is emulated one plane after the other. Planes share nothing but the
hosts, so what hosts have of all of them follows from the rounds that were seen: two hosts reach
each other where one plane delivers.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from compilers.planes import compile_planes
from compilers.proof.proof_options import ProofOptions
from compilers.proof.verification import judge
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import builds_in, load, save_planes
from inventory.document_errors import validate
from inventory.problems import InputError, shown
from inventory.values import LONGEST_PLACE
from inventory.yamlfile import from_values
from mininet_scenarios.engines.engine_kinds import ENGINES, make, require
from mininet_scenarios.machine import preflight
from mininet_scenarios.machine.preflight import require_neighbours, require_resources
from mininet_scenarios.run.rehearsal import carry_out
from mininet_scenarios.run.rehearsal_plan import Observer, Plan, PlannedBuild, Silent, WrongTables
from mininet_scenarios.run.rehearsal_plan import plan as make_plan
from mininet_scenarios.scenario.engine import Check, HostSample, Mismatch, Setup
from mininet_scenarios.scenario.scenario_file import LoadedScenario, Scenario
from mininet_scenarios.verdict.checks import Happened, PairsReached, Result
from mininet_scenarios.verdict.report import Emulated


@dataclass(frozen=True, slots=True)
class Emulation:
    """A scenario that is to be run."""

    loaded: LoadedScenario
    """The scenario and its fabric."""
    keep: Path | None = None
    """The folder where the build and the logs stay; None for nowhere."""
    unverified: bool = False
    """Whether tables are run that verification has found wrong."""
    terminal: str = ""
    """The terminal for Mininet's prompt at the end; "" for none."""
    observer: Observer = field(default_factory=Silent)
    """Is told of the progress."""

    def run(self) -> Emulated:
        """Compile, verify, bring up, check and tear down; of several planes each, and all together.

        Raises:
            InputError: the scenario or its fabric is wrong, or the machine lacks something.
            WrongTables: verification has not passed on a build.
            EngineError: an engine could not do its part.
        """
        loaded = self.loaded
        folders = builds_in(loaded.folder) if loaded.folder else ()
        count = len(folders) or (loaded.fabric.spec.planes if loaded.fabric else 1)
        if count > 1 and self.terminal:
            raise InputError.of("a fabric of one plane", f"{count} planes", "name one", key="cli")
        with work_folder(self.keep) as work:
            if count == 1:
                return self._run(work)
            folders = folders or _compiled(self, work / "build")
            builds = [load(folder) for folder in folders]
            return _merged(loaded, builds, list(_each(self, builds, folders)))

    def _run(self, work: Path) -> Emulated:
        scenario = self.loaded.scenario
        name, framework = self._choose(scenario)
        began, begun = _provenance(), perf_counter()
        plan = make_plan(self.loaded, self.unverified, self.observer)
        compiled = perf_counter() - begun
        lacking = [why for what, why in plan.needs.items() if what not in ENGINES[name]]
        if scenario.engine == "auto" and lacking:
            self._tell_model(f"Mininet cannot do {', '.join(lacking)}", "(the engine model)")
            name, framework = "model", ""
        require(name, plan.needs)
        hosts = HostSample.of(plan.cabled, scenario.hosts)
        if name == "mininet":
            require_resources(plan.cabled, hosts, scenario.traffic.flows)
        elif name in ("linux", "frr"):
            require_neighbours(name, plan.cabled, hosts)
        engine = make(name, self._setup(plan, framework, work))
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

    def _setup(self, plan: Plan, framework: str, work: Path) -> Setup:
        """What the engine gets, with the builds in their folders."""
        builds = [planned.build for planned in plan.builds]
        names = ["build", *(f"build-{n}" for n in range(1, len(builds)))]
        placed = map(PlannedBuild.placed, plan.builds, (work / name for name in names))
        return Setup(
            builds=tuple(builds),
            folders=tuple(folder.resolve() for folder in placed),
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

    def _choose(self, scenario: Scenario) -> tuple[str, str]:
        """The engine and framework; says so where Mininet was not to be had."""
        if scenario.engine == "model":
            return scenario.engine, ""
        try:
            engine = "mininet" if scenario.engine == "auto" else scenario.engine
            return engine, preflight.require(engine, scenario.framework)
        except InputError as error:
            if scenario.engine != "auto":
                raise
            self._tell_model("Mininet cannot run here", "(the engine model). What is missing:")
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
    given = {"engine": engine, "framework": framework}
    said = {word: value for word, value in given.items() if value is not None}
    validate(Scenario, from_values({"name": loaded.scenario.name, **said}))
    return replace(loaded, scenario=loaded.scenario.model_copy(update=said))


@contextmanager
def work_folder(keep: Path | None) -> Iterator[Path]:
    """The folder for build and logs: the one to keep, or one that is removed with the run."""
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
        "host": f"{gethostname()}, {system}, {cores} {'core' if cores == 1 else 'cores'}",
    }


def _compiled(emulation: Emulation, folder: Path) -> tuple[Path, ...]:
    """The folders of all planes, compiled and walked."""
    fabric = emulation.loaded.fabric
    if fabric is None:
        raise ValueError("a build folder is not compiled")
    what = "compile all planes, and walk every pair through their tables"
    with emulation.observer.step(what) as progress:
        builds = save_planes(compile_planes(fabric), folder)
        folders = builds_in(folder)
        reports = judge(builds, folders, ProofOptions(failures=(), progress=progress)).reports
    for build, report in zip(builds, reports, strict=True):
        if not report.passed and not emulation.unverified:
            raise WrongTables(build, report)
    return folders


def _each(
    emulation: Emulation, builds: Sequence[Build], folders: Sequence[Path]
) -> Iterator[Emulated]:
    """Rehearse each plane, with the events of the timeline that concern it."""
    for plane, (build, folder) in enumerate(zip(builds, folders, strict=True), 1):
        emulation.observer.note(f"plane {plane}: {build.name}")
        others = tuple(other for other in builds if other is not build)
        loaded = replace(emulation.loaded, folder=folder, fabric=None, others=others)
        keep = emulation.keep / f"plane-{plane}" if emulation.keep else None
        yield replace(emulation, loaded=loaded, keep=keep).run()


def _merged(loaded: LoadedScenario, builds: Sequence[Build], runs: Sequence[Emulated]) -> Emulated:
    """The results of all planes as one: their checks and events, then those of all together."""
    results = [run.result for run in runs]
    whole = Result(
        pairs=sum(result.pairs for result in results),
        delivered=sum(result.delivered for result in results),
        predicted_hops=_sum([result.predicted_hops for result in results]),
        seen_hops=_sum([result.seen_hops for result in results]),
        caught="; ".join(filter(None, (result.caught for result in results))),
    )
    for build, result in zip(builds, results, strict=True):
        whole.checks += [replace(c, name=f"{build.name}: {c.name}") for c in result.checks]
        whole.happened += [replace(e, what=f"{build.name}: {e.what}") for e in result.happened]
        whole.seconds[build.name] = result.seconds["all"]
    whole.seconds["all"] = round(sum(whole.seconds.values()), 2)
    sampled = [HostSample.of(build, loaded.scenario.hosts).names for build in builds]
    names = tuple(dict.fromkeys(chain.from_iterable(sampled)))
    for state in _together(sampled, names, [result.reached for result in results]):
        check = _check(state, names)
        whole.checks.append(check)
        pairs = len(names) * (len(names) - 1)
        event = f"all planes: {state.what}"
        whole.happened.append(Happened(event, 0.0, pairs, check.required, check.seen))
    facts: dict[str, Any] = {**runs[0].facts, "scenario": loaded.scenario.name}
    facts["build"] = " and ".join(run.facts["build"] for run in runs)
    facts |= {word: sum(run.facts[word] for run in runs) for word in ("switches", "links")}
    facts["planes"] = [run.as_dict() for run in runs]
    return Emulated(facts, whole)


def _sum(histograms: Sequence[dict[int, int]]) -> dict[int, int]:
    """Pairs by their links in all planes; nothing where one plane leaves that to its switches."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(sorted(total.items())) if all(histograms) else {}


def _together(
    hosts: Sequence[tuple[str, ...]],
    names: Sequence[str],
    reached: Sequence[dict[int, PairsReached | None]],
) -> Iterator[PairsReached]:
    """Pairs of all hosts that any plane delivers, after each moment that all planes were asked.

    A plane that a moment does not touch is as it was after the last one that did.
    """
    index = {name: i for i, name in enumerate(names)}
    places = [
        np.ix_(numbers, numbers)
        for numbers in ([index[name] for name in names_of_plane] for names_of_plane in hosts)
    ]
    for moment in sorted(set().union(*reached)):
        now = [part[max(m for m in part if m <= moment)] for part in reached]
        told = [part[moment] for part in reached if moment in part]
        if None in now:
            continue
        sure, seen = np.zeros((2, len(names), len(names)), np.bool_)
        for place, state in zip(places, now, strict=True):
            if state is not None:
                sure[place] |= state.sure
                seen[place] |= state.reached
        what = next((state.what for state in told if state), "")
        yield PairsReached(what, sure, seen)


def _check(pairs: PairsReached, names: Sequence[str]) -> Check:
    """Whether every pair that a plane can deliver reached each other over one."""
    lost = tuple(
        Mismatch(f"{names[i]} → {names[j]}", "delivered by a plane", "by none")
        for i, j in np.argwhere(pairs.sure & ~pairs.reached).tolist()
    )
    return Check.of(f"all planes, {pairs.what}", int(np.count_nonzero(pairs.sure)), lost)


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
        new: another one.
        engine: what to run on; auto is Mininet where it can run.
        framework: of the controller.
        interval: seconds between two packets of a pair.
        pairs: how many pairs send all the time; 0 is all.

    Raises:
        InputError: `old` is neither, or has mistakes, `new` is no printable path, or there is no
            such engine or framework.
    """
    if not new.isprintable() or not 1 <= len(new) <= LONGEST_PLACE:
        required = f"a path of 1 to {LONGEST_PLACE:,} printable characters"
        raise InputError.of(required, shown(new), "rename it", key="BUILD")
    folder = Path(old) if Path(old).is_dir() else None
    fabric = None if folder else load_fabric(old)
    name = load(folder).name if folder else fabric.spec.name if fabric else ""
    said = {
        "name": name,
        "engine": engine,
        "framework": framework,
        "traffic": {"probe": {"interval": interval, "pairs": pairs}},
        "timeline": [{"build": new, "expect": {"lost": 0, "converged_within": 0}}],
    }
    return LoadedScenario(validate(Scenario, from_values(said)), folder=folder, fabric=fabric)
