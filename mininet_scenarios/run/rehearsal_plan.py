"""The plan of a rehearsal: its builds, compiled and walked, its events, and what moves promise.

It is made of the scenario and its files alone, without an engine, and nothing is written.
`mininet_scenarios.run.rehearsal` carries it out.
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
from compilers.proof.walks.delivery import Report
from compilers.spec.fabric_file import LoadedFabric, load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import identified, load, save
from compilers.tables.folders.generations import mark_verified, require_verified
from compilers.update.loss import loss
from compilers.update.move_plan import plan as plan_move
from compilers.update.update_proof import prove
from inventory.problems import InputError, Problem
from mininet_scenarios.scenario.engine import Ability, Check, Event, Mismatch, Progress
from mininet_scenarios.scenario.scenario_file import LoadedScenario, Scenario, TimelineEntry
from mininet_scenarios.scenario.timeline_events import (
    Case,
    as_cabled,
    cases,
    ground_of,
    needs,
    of_moment,
)


class Observer(Protocol):
    """Is notified of each step: its start, its progress and its end."""

    def step(self, what: str) -> AbstractContextManager[Progress]:
        """A step that ends with the context; its value takes (done, all)."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""


class Silent:
    """An observer that tells nothing."""

    def step(self, what: str) -> AbstractContextManager[Progress]:  # noqa: ARG002
        """A step without a word."""
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
    """What its walk found; None if it was read from a folder."""

    def placed(self, folder: Path) -> Path:
        """The build's folder, or this one: the build is saved there, and marked if it passed."""
        if self.folder:
            return self.folder
        saved = save(self.build, folder)
        if self.report and self.report.passed:
            mark_verified(folder, saved.identity, self.report.as_dict())
        return folder


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be rehearsed."""

    scenario: Scenario
    """The scenario."""
    builds: tuple[PlannedBuild, ...]
    """The first build, and those that the fabric moves to."""
    cabled: Build
    """The one of them that has all switches and cables of the others, whose names go for all."""
    cases: tuple[Case, ...] = ()
    """The events of the timeline."""
    promises: tuple[tuple[Check, str], ...] = ()
    """For each move what its plan promises, as a check and in words."""

    def build(self, number: int) -> Build:
        """A build, from 0, as the cabled one names it."""
        return as_cabled(self.builds[number].build, self.cabled)

    @property
    def needs(self) -> dict[Ability, str]:
        """The abilities that it needs of an engine, and what of it needs them."""
        return needs(self.scenario, self.cases)

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
                    "event": _said(case.event),
                    "undo": case.undo and _said(case.undo),
                    "at": case.at,
                    "expect": case.expect.model_dump(mode="json", exclude_unset=True),
                }
                for case in self.cases
            ],
            "promises": [{"words": words, "met": check.passed} for check, words in self.promises],
        }


def plan(
    loaded: LoadedScenario, unverified: bool = False, observer: Observer | None = None
) -> Plan:
    """Compile and walk the builds of a scenario, name its events, and prove its moves.

    Args:
        loaded: the scenario.
        unverified: take tables that verification has found wrong too.
        observer: is notified of each step.

    Raises:
        InputError: the scenario or a fabric of it is wrong; all of a timeline's, with lines.
        WrongTables: verification has not passed on a build.
    """
    maker = _Maker(loaded, unverified, observer or Silent())
    builds, numbers = maker.builds()
    several = [planned.build for planned in builds]
    cabled = ground_of(several)
    promises = tuple(map(maker.promise, pairwise(several)))
    moves = {moment: (n, several[n]) for moment, n in numbers.items()}
    first = as_cabled(several[0], cabled)
    events = cases(loaded.scenario, first, loaded.document, moves, cabled, loaded.others)
    return Plan(loaded.scenario, tuple(builds), cabled, events, promises)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the builds of a rehearsal."""

    loaded: LoadedScenario
    """The scenario and its fabric."""
    unverified: bool
    """Whether builds are taken that verification has found wrong."""
    observer: Observer
    """Is told of the progress."""

    def builds(self) -> tuple[list[PlannedBuild], dict[int, int]]:
        """The first build and those of the moments, and the number of each moment's."""
        loaded, fabric = self.loaded, self.loaded.fabric
        if loaded.folder:
            planned = [self._known(loaded.folder)]
        else:
            if fabric is None:
                raise ValueError("a scenario without a fabric")
            what = "compile the fabric and walk every pair through its tables"
            with self.observer.step(what) as progress:
                planned = [self._proved(compile_fabric(fabric), progress)]
        numbers: dict[int, int] = {}
        problems: list[Problem] = []
        for number, moment in enumerate(loaded.scenario.timeline):
            try:
                target, fabric = self._of(moment, planned[-1].build, fabric)
            except InputError as error:
                problems += [of_moment(p, number, moment, loaded.document) for p in error.problems]
                continue
            if target:
                numbers[number] = len(planned)
                planned.append(target)
        if problems:
            raise InputError(problems)
        return planned, numbers

    def promise(self, builds: tuple[Build, Build]) -> tuple[Check, str]:
        """Whether every pair arrives in every state of a move, and the promise in words.

        Raises:
            InputError: no order of rows is safe.
        """
        old, new = builds
        with self.observer.step(f"plan the move to {new.identity}, and walk its states"):
            update = plan_move(old, new)
            proof, lost = prove(update), loss(update)
        faults = tuple(
            Mismatch(f"round {f.round + 1}: {f.source} → {f.destination}", "delivered", f.what)
            for f in proof.faults
        )
        wrong = len({fault.round for fault in proof.faults})
        words = (
            f"{update.rounds} rounds, {proof.states} states of {proof.pairs:,} pairs of switches"
        )
        if lost.cables:
            one = len(lost.cables) == 1
            words += f"; {len(lost.cables):,} cable{'s go' if not one else ' goes'}, which "
            words += f"{lost.exposed:,} pairs of hosts may take: left in until the move is over"
        words += "; no pair may lose a packet" if not faults else "; pairs lose packets"
        self.observer.note(words)
        name = f"plan to {new.identity}: states in which every pair arrives"
        return Check(name, proof.states, proof.states - wrong, faults), words

    def _of(
        self, moment: TimelineEntry, before: Build, fabric: LoadedFabric | None
    ) -> tuple[PlannedBuild | None, LoadedFabric | None]:
        """The build that a moment moves to, and its fabric; None where it moves to none."""
        if moment.build is not None:
            document = self.loaded.document
            where = Path(document.file).parent / moment.build if document else Path(moment.build)
            if where.is_dir():
                return self._known(where), None
            fabric = load_fabric(where)
        elif moment.policy is not None:
            fabric = _with_policy(fabric, moment)
        elif moment.expand is not None:
            return self._next(_grown(before, moment.expand)), None
        else:
            return None, fabric
        return self._next(compile_fabric(fabric)), fabric

    def _known(self, folder: Path) -> PlannedBuild:
        """A build folder, verified unless that is not asked for."""
        build = load(folder)
        if not self.unverified:
            require_verified(folder, build)
        return PlannedBuild(build, folder)

    def _next(self, build: Build) -> PlannedBuild:
        what = "compile the next build, and walk every pair through it"
        with self.observer.step(what) as progress:
            return self._proved(build, progress)

    def _proved(self, build: Build, progress: Progress) -> PlannedBuild:
        build = identified(build)
        (report,) = judge([build], (), ProofOptions(failures=(), progress=progress)).reports
        if not report.passed and not self.unverified:
            raise WrongTables(build, report)
        return PlannedBuild(build, report=report)


def _grown(build: Build, clusters: str) -> Build:
    """The build with so many clusters more."""
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


def _said(event: Event) -> dict[str, Any]:
    """An event for JSON."""
    return {"kind": type(event).__name__, **asdict(event)}
