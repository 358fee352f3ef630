"""The plan of a rehearsal: its builds, compiled and walked, its events, and what moves promise.

`plan` makes a plan from the scenario and its files alone, without an engine, and writes nothing.
`rehearsal` carries the plan out.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.proof.proof_options import ProofOptions
from compilers.proof.verification import judge
from compilers.proof.walks.delivery_report import Report
from compilers.spec.fabric_file import LoadedFabric, load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save, with_identity
from compilers.tables.folders.verified_mark import mark_verified, require_verified
from compilers.update.loss import pair_loss
from compilers.update.move_plan import plan as plan_move
from compilers.update.update_proof import prove
from inventory.problems import InputError, Problem
from inventory.yamlfile import Unreadable
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import Ability, HostSample, Progress
from mininet_scenarios.scenario.outage import Event
from mininet_scenarios.scenario.scenario_file import LoadedScenario, Scenario, TimelineEntry
from mininet_scenarios.scenario.timeline_events import (
    MomentMove,
    TimelineCase,
    as_cabled,
    cabled_build,
    cases,
    needs,
    with_line_of_moment,
)
from mininet_scenarios.traffic.flow_patterns import host_flows


class Observer(Protocol):
    """Is notified of each step of a rehearsal: its start, its progress and its end."""

    def step(self, what: str) -> AbstractContextManager[Progress]:
        """Begin a step, in words. It ends with the context, whose value takes the progress."""

    def note(self, text: str) -> None:
        """Take a line about the rehearsal that belongs to no step."""


class Silent:
    """An observer that shows nothing."""

    def step(self, what: str) -> AbstractContextManager[Progress]:  # noqa: ARG002
        """Begin a step without a word."""
        return nullcontext(lambda done, total: None)  # noqa: ARG005

    def note(self, text: str) -> None:
        """Ignore a note."""


class WrongTables(Exception):
    """Verification has not passed on a build that was to be emulated."""

    def __init__(self, build: Build, report: Report) -> None:
        super().__init__(f"verification has not passed on {build.name}: {report}")
        self.build, self.report = build, report


@dataclass(frozen=True, slots=True, eq=False)
class PlannedBuild:
    """A build that the fabric is to hold."""

    build: Build
    """The build."""
    folder: Path | None = None
    """The folder that it was read from; None if it was compiled."""
    report: Report | None = None
    """The result of walking its tables; None if it was read from a folder."""

    def save_in(self, folder: Path) -> Path:
        """Save the build in a folder, unless it was read from one; return the folder that it is in.

        A build that is saved is marked as verified if it passed its walk.
        """
        if self.folder:
            return self.folder
        saved = save(self.build, folder)
        if self.report and self.report.passed:
            mark_verified(folder, saved.identity, self.report.as_dict())
        return folder


@dataclass(frozen=True, slots=True)
class MovePromise:
    """What the plan of a move promises."""

    check: Check
    """Whether every pair arrives in every state of the move."""
    words: str
    """The promise in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be rehearsed."""

    scenario: Scenario
    """The scenario, with the events and expectations."""
    builds: tuple[PlannedBuild, ...]
    """The first build, and those that the fabric moves to."""
    cabled: Build
    """The build that has all switches and cables of the others. Its names are used for all."""
    cases: tuple[TimelineCase, ...] = ()
    """The events of the timeline, with what is expected from each on."""
    promises: tuple[MovePromise, ...] = ()
    """What each move promises, in their order."""

    def build(self, number: int) -> Build:
        """A build, from 0, as the cabled one names it."""
        return as_cabled(self.builds[number].build, self.cabled)

    @property
    def needs(self) -> dict[Ability, str]:
        """By ability that the engine needs, the part of the scenario that needs it."""
        parts = needs(self.scenario, self.cases)
        for planned in self.builds:
            if planned.build.forwarding.intermediates:
                parts["intermediates"] = f"balance: {planned.build.balance}"
        return parts

    def as_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        return {
            "scenario": self.scenario.name,
            "builds": [
                {
                    "topology": planned.build.topology.title(),
                    "balance": planned.build.balance,
                    "protect": planned.build.forwarding.protect,
                    "switches": planned.build.tables.switches,
                    "links": planned.build.topology.graph.size,
                    "hosts": int((planned.build.wiring.host_port > 0).sum()),
                }
                for planned in self.builds
            ],
            "needs": self.needs,
            "cases": [
                {
                    "what": case.what,
                    "group": case.group,
                    "event": _event_values(case.event),
                    "undo": case.undo and _event_values(case.undo),
                    "at": case.at,
                    "expect": case.expect.model_dump(mode="json", exclude_unset=True),
                }
                for case in self.cases
            ],
            "promises": [
                {"words": promise.words, "met": promise.check.passed} for promise in self.promises
            ],
        }


def plan(
    loaded: LoadedScenario, unverified: bool = False, observer: Observer | None = None
) -> Plan:
    """Compile and walk the builds of a scenario, name its events, and prove its moves.

    Args:
        loaded: the scenario.
        unverified: whether to take tables that verification has found wrong.
        observer: is notified of each step.

    Raises:
        InputError: the scenario or a fabric of it is wrong; all problems of a timeline at once,
            with lines.
        WrongTables: verification has not passed on a build.
    """
    planner = _Planner(loaded, unverified, observer or Silent())
    planned = planner.builds()
    builds = [planned_build.build for planned_build in planned.builds]
    cabled = cabled_build(builds)
    _require_flows(loaded, cabled)
    promises = tuple(planner.promise(old, new) for old, new in pairwise(builds))
    moves = {
        moment: MomentMove(number, builds[number]) for moment, number in planned.by_moment.items()
    }
    first = as_cabled(builds[0], cabled)
    timeline_cases = cases(
        loaded.scenario,
        build=first,
        document=loaded.document,
        moves=moves,
        cabled=cabled,
        other_planes=loaded.others,
    )
    return Plan(loaded.scenario, tuple(planned.builds), cabled, timeline_cases, promises)


def _require_flows(loaded: LoadedScenario, build: Build) -> None:
    """Pass when the flows of the scenario can run on this build.

    Raises:
        InputError: the pattern has no flows, or its file has mistakes.
    """
    spec = loaded.scenario.traffic.flows
    hosts = HostSample.of(build, loaded.scenario.hosts)
    if spec is None or len(hosts) < 2:
        return
    try:
        host_flows(build, hosts, spec, 1.0)
    except Unreadable as error:
        if loaded.document is None:
            raise
        raise loaded.document.unreadable(("traffic", "flows", "pattern"), error) from None


@dataclass(frozen=True, slots=True)
class _PlannedBuilds:
    """The builds of a rehearsal, and the moments of its timeline that lead to them."""

    builds: list[PlannedBuild]
    """The first build, and those that moments move to."""
    by_moment: dict[int, int]
    """By the number of a moment: the number of the build that it moves to."""


@dataclass(frozen=True, slots=True)
class _MomentTarget:
    """What a moment of the timeline moves the fabric to."""

    planned: PlannedBuild | None
    """The build; None if the moment moves the fabric to none."""
    fabric: LoadedFabric | None
    """The fabric.yaml after this moment; None if the build does not come from one."""


@dataclass(frozen=True, slots=True)
class _Planner:
    """Compiles or loads the builds of a rehearsal, and proves its moves."""

    loaded: LoadedScenario
    """The scenario and its fabric."""
    unverified: bool
    """Whether builds are taken that verification has found wrong."""
    observer: Observer
    """Is notified of each step."""

    def builds(self) -> _PlannedBuilds:
        """Make the first build, and those that moments of the timeline move to.

        Raises:
            InputError: moments are wrong; all of them at once, with lines.
            WrongTables: verification has not passed on a build.
        """
        loaded, fabric = self.loaded, self.loaded.fabric
        if loaded.folder:
            builds = [self._load_build(loaded.folder)]
        else:
            if fabric is None:
                raise ValueError("a scenario without a fabric")
            words = "compile the fabric and walk every pair through its tables"
            with self.observer.step(words) as progress:
                builds = [self._walk(compile_fabric(fabric), progress)]
        by_moment: dict[int, int] = {}
        problems: list[Problem] = []
        for number, moment in enumerate(loaded.scenario.timeline):
            try:
                target = self._target(moment, builds[-1].build, fabric)
            except InputError as error:
                problems += [
                    with_line_of_moment(p, number, moment, loaded.document) for p in error.problems
                ]
                continue
            fabric = target.fabric
            if target.planned:
                by_moment[number] = len(builds)
                builds.append(target.planned)
        if problems:
            raise InputError(problems)
        return _PlannedBuilds(builds, by_moment)

    def promise(self, old: Build, new: Build) -> MovePromise:
        """Prove whether every pair arrives in every state of a move.

        Raises:
            InputError: no order of rows is safe.
        """
        with self.observer.step(f"plan the move to {new.identity}, and walk its states"):
            update = plan_move(old, new)
            proof, lost = prove(update), pair_loss(update)
        faults = tuple(
            Mismatch(
                where=f"round {fault.round + 1}: {fault.source} → {fault.destination}",
                expected="delivered",
                seen=fault.fault,
            )
            for fault in proof.faults
        )
        faulty_states = len({fault.round for fault in proof.faults})
        words = (
            f"{update.rounds} rounds, {proof.states} states of {proof.pairs:,} pairs of switches"
        )
        if lost.cables:
            cables = "cable goes" if len(lost.cables) == 1 else "cables go"
            words += f"; {len(lost.cables):,} {cables}, which "
            words += (
                f"{lost.exposed_pairs:,} pairs of hosts may take: left in until the move is over"
            )
        words += "; pairs lose packets" if faults else "; no pair may lose a packet"
        self.observer.note(words)
        name = f"plan to {new.identity}: states in which every pair arrives"
        check = Check(name, proof.states, proof.states - faulty_states, faults)
        return MovePromise(check, words)

    def _target(
        self, moment: TimelineEntry, before: Build, fabric: LoadedFabric | None
    ) -> _MomentTarget:
        """What a moment moves the fabric to.

        Args:
            moment: of the timeline.
            before: the build that the fabric holds before the moment.
            fabric: the fabric.yaml that this build comes from, if any.
        """
        if moment.build is not None:
            document = self.loaded.document
            path = Path(document.file).parent / moment.build if document else Path(moment.build)
            if path.is_dir():
                return _MomentTarget(self._load_build(path), None)
            fabric = load_fabric(path)
        elif moment.policy is not None:
            fabric = _with_policy(fabric, moment)
        elif moment.expand is not None:
            return _MomentTarget(self._walk_in_step(_grown(before, moment.expand)), None)
        else:
            return _MomentTarget(None, fabric)
        return _MomentTarget(self._walk_in_step(compile_fabric(fabric)), fabric)

    def _load_build(self, folder: Path) -> PlannedBuild:
        """Load the build of a folder, which must be verified unless `unverified` is set."""
        build = load(folder)
        if not self.unverified:
            require_verified(folder, build)
        return PlannedBuild(build, folder)

    def _walk_in_step(self, build: Build) -> PlannedBuild:
        """Walk a build after the first, as a step of its own."""
        words = "compile the next build, and walk every pair through it"
        with self.observer.step(words) as progress:
            return self._walk(build, progress)

    def _walk(self, build: Build, progress: Progress) -> PlannedBuild:
        """Give a build its identity, and walk every pair through its tables.

        Raises:
            WrongTables: a pair does not arrive, and only verified builds are taken.
        """
        build = with_identity(build)
        (report,) = judge([build], (), ProofOptions(failures=(), progress=progress)).reports
        if not report.passed and not self.unverified:
            raise WrongTables(build, report)
        return PlannedBuild(build, report=report)


def _grown(build: Build, clusters: str) -> Build:
    """The build with more clusters, as `expand` says: `METHOD` or `METHOD:COUNT`."""
    method, _, count = clusters.partition(":")
    return grow(build, method, int(count or 1)).build


def _with_policy(fabric: LoadedFabric | None, moment: TimelineEntry) -> LoadedFabric:
    """The fabric with the routing policy of a moment."""
    if moment.policy is None:
        raise ValueError("a moment without a policy")
    if fabric is None:
        required = "a fabric before it that is compiled from fabric.yaml"
        todo = "compile it with that policy, and write build: FOLDER"
        raise InputError.of(required, "a build folder, or a fabric that has grown", todo)
    return fabric.with_routing(**moment.policy.model_dump(mode="json", exclude_unset=True))


def _event_values(event: Event) -> dict[str, Any]:
    """An event for JSON."""
    return {"kind": type(event).__name__, **asdict(event)}
