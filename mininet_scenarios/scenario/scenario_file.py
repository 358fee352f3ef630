"""Scenario files: fabric, engine, timeline and expectations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compilers.spec.fabric_file import LoadedFabric, load_fabric
from compilers.spec.fabric_spec import FabricSpec
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load as load_build
from compilers.tables.folders.generations import is_build
from compilers.tables.folders.plane_folders import builds_in
from inventory.document_errors import validate
from inventory.inventory_file import schema_of
from inventory.problems import InputError, did_you_mean
from inventory.yamlfile import STDIN, Document, Unreadable, read
from mininet_scenarios.scenario.scenario_format import HAPPENS, MOVES, Scenario

SHIPPED = Path(__file__).parents[1] / "library"


class InlineScenario(Scenario):
    """A scenario that contains its fabric, with the keys of fabric.yaml."""

    fabric: FabricSpec


class ReferringScenario(Scenario):
    """The fabric is a fabric.yaml or a build folder, its name relative to the scenario's."""

    fabric: str


class ScenarioFile(Scenario):
    """A scenario: what `polarfab emulate` brings up, does to it, and expects of it."""

    fabric: FabricSpec | str


@dataclass(frozen=True, slots=True, eq=False)
class LoadedScenario:
    """A scenario and what it rehearses: a build folder, or else a fabric still to compile.

    document is its file, for messages about what stands there; None where there is none. others:
    the other planes, where it is about one of several: what happens to them is left out.
    """

    scenario: Scenario
    folder: Path | None = None
    fabric: LoadedFabric | None = None
    document: Document | None = field(default=None, repr=False)
    others: tuple[Build, ...] = field(default=(), repr=False)


def schema() -> dict[str, Any]:
    """The JSON schema of a scenario file, for an editor's completion."""
    return schema_of(ScenarioFile)


def shipped() -> dict[str, Path]:
    """The scenarios that come with polarfab, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def load_scenario(wanted: str) -> LoadedScenario:
    """The scenario that a user means: a shipped one's name, a file (`-`: stdin), a build folder.

    A file with the fabric's own keys (`topology` on top) is a scenario with the defaults.

    Raises:
        InputError: there is no such scenario, or every mistake in it and in its fabric.
    """
    if is_build(Path(wanted)):
        return LoadedScenario(Scenario(name=_name(Path(wanted))), folder=Path(wanted))
    if "/" not in wanted and not wanted.endswith((".yaml", ".yml")) and wanted != STDIN:
        wanted = str(_shipped(wanted))
    document = read(wanted)
    fabric = document.data.get("fabric")
    if isinstance(fabric, str):
        scenario = validate(ReferringScenario, document)
        _check(scenario, document)
        where = Path(fabric) if wanted == STDIN else Path(wanted).parent / fabric
        if is_build(where):
            return LoadedScenario(scenario, folder=where, document=document)
        try:
            return LoadedScenario(scenario, fabric=load_fabric(where), document=document)
        except Unreadable as error:
            raise document.unreadable(("fabric",), error) from None
    if "topology" in document.data and "fabric" not in document.data:
        loaded = load_fabric(wanted, document)
        return LoadedScenario(Scenario(name=loaded.spec.name), fabric=loaded)
    inline = validate(InlineScenario, document)
    _check(inline, document)
    part = replace(document, data=document.data["fabric"])
    return LoadedScenario(inline, fabric=load_fabric(wanted, part), document=document)


def _name(folder: Path) -> str:
    """The name of the fabric in a build folder, without that of a plane."""
    first, *more = builds_in(folder)
    name = load_build(first).name
    return name.removesuffix("-p1") if more else name


def _check(scenario: Scenario, document: Document) -> None:
    """Check the timeline across its moments.

    Raises:
        InputError: all that is wrong with the timeline.
    """
    problems = []
    before = 0.0
    for number, moment in enumerate(scenario.timeline):
        path = ("timeline", number)
        if len(words := moment.happens()) != 1:
            problems.append(
                document.problem(
                    path,
                    f"one of {', '.join(HAPPENS)}",
                    " and ".join(words) or "none of them",
                    "one moment, one event" if words else "add one",
                )
            )
        if moment.in_round is not None and not _in_a_move(scenario, number):
            required = "controller: killed, in the moment after one with build, policy or expand"
            problems.append(document.problem((*path, "in_round"), required, "another moment"))
        for word in {"rules", "shares"} & moment.expect.model_fields_set:
            required = "an expectation at the top of the scenario, before anything happens"
            problems.append(document.problem((*path, "expect", word), required, "a moment's"))
        if moment.at is not None:
            if moment.at < before:
                earlier = f"{moment.at:g} after {before:g}"
                problems.append(document.problem((*path, "at"), "times that rise", earlier))
            before = moment.at
    if problems:
        raise InputError(problems)


def _in_a_move(scenario: Scenario, number: int) -> bool:
    """Whether this moment kills the controller while the one before it moves the fabric."""
    moment, before = scenario.timeline[number], scenario.timeline[max(0, number - 1)]
    return moment.controller == "killed" and bool({*MOVES} & {*before.happens()})


def _shipped(name: str) -> Path:
    known = shipped()
    if name not in known:
        required = "a scenario file, a build or the name of a scenario"
        todo = did_you_mean(name, known, "polarfab emulate --list has the names")
        if Path(name).is_dir():
            todo = "name a file in it; polarfab emulate --list has the scenarios that are there"
        raise InputError.of(required, name, todo, key="SCENARIO")
    return known[name]
