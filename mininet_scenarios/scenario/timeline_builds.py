"""The builds that a timeline moves the fabric to, compiled beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import LoadedFabric, load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from inventory.problems import InputError, Problem
from inventory.yamlfile import Document
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.scenario.scenario_format import TimelineEntry

Keep = Callable[[Build, Path], Build]
"""Saves a build to a folder, and verifies it."""
Accept = Callable[[Path, Build], None]
"""Refuses a build folder that is not verified."""


@dataclass(frozen=True, slots=True)
class Builds:
    """How the builds of a timeline come about: `keep` and `accept`; work is where folders go."""

    work: Path
    keep: Keep
    accept: Accept

    def of(self, loaded: LoadedScenario, first: Build) -> dict[int, Path]:
        """The folder of each moment's build, by the moment's number, where it has one.

        Raises:
            InputError: what a moment says cannot be made; all of them, with lines.
        """
        build, fabric = first, loaded.fabric
        folders: dict[int, Path] = {}
        problems: list[Problem] = []
        for number, moment in enumerate(loaded.scenario.timeline):
            folder = self.work / f"build-{number + 1}"
            try:
                if moment.build is not None:
                    folder, build, fabric = self._named(moment.build, folder, loaded.document)
                elif moment.policy is not None:
                    fabric = _with_policy(fabric, moment)
                    build = self.keep(compile_fabric(fabric), folder)
                elif moment.expand is not None:
                    build, fabric = self.keep(_grown(build, moment.expand), folder), None
                else:
                    continue
            except InputError as error:
                problems += [_placed(p, number, moment, loaded.document) for p in error.problems]
                continue
            folders[number] = folder
        if problems:
            raise InputError(problems)
        return folders

    def _named(
        self, name: str, folder: Path, document: Document | None
    ) -> tuple[Path, Build, LoadedFabric | None]:
        """A build folder, or a fabric.yaml that is compiled to `folder`."""
        where = Path(document.file).parent / name if document else Path(name)
        if where.is_dir():
            build = load(where)
            self.accept(where, build)
            return where, build, None
        fabric = load_fabric(where)
        return folder, self.keep(compile_fabric(fabric), folder), fabric


def _grown(build: Build, clusters: str) -> Build:
    """The build with so many clusters more, all of its cables still there."""
    method, _, count = clusters.partition(":")
    grown = grow(build, method, int(count or 1))
    if gone := len(grown.removed):
        raise InputError.of(
            required="clusters that only add cables, as nobody pulls one while an emulation runs",
            given=f"{clusters}, which takes {gone} out",
            todo="compare both with `polarfab plan`, and emulate the larger fabric by itself",
        )
    return grown.build


def _with_policy(fabric: LoadedFabric | None, moment: TimelineEntry) -> LoadedFabric:
    """The same fabric with the routing policy of a moment."""
    assert moment.policy is not None  # noqa: S101
    if fabric is None:
        required = "a fabric before it that is compiled from fabric.yaml"
        todo = "compile it with that policy, and write build: FOLDER"
        raise InputError.of(required, "a build folder, or a fabric that has grown", todo)
    return fabric.with_routing(**moment.policy.model_dump(mode="json", exclude_unset=True))


def _placed(
    problem: Problem, number: int, moment: TimelineEntry, document: Document | None
) -> Problem:
    """At the moment's line, where the problem has no better place."""
    if document is None or (problem.file and problem.file != document.file):
        return problem
    path = ("timeline", number, moment.happens()[0])
    return document.problem(path, problem.required, problem.given, problem.todo)
