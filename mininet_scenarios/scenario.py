"""Scenarios as data: which fabric, on what, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from compilers.build import MANIFEST
from compilers.build import load as load_build
from compilers.load import LoadedFabric, load_fabric
from compilers.spec import FabricSpec
from inventory.model import Model, Name, Whole
from inventory.problems import InputError, Problem, nearest
from inventory.validate import validate
from inventory.yamlfile import STDIN, read

SHIPPED = Path(__file__).parent / "scenarios"

Count = Annotated[Whole, Field(ge=0, le=1_000_000)]
EngineName = Literal["auto", "mininet", "model"]
FrameworkName = Literal["ryu", "os-ken"]


class Expect(Model):
    """What must be so; what is left out follows from the build.

    delivered: ordered pairs of hosts that reach each other (all). max_hops: links on the longest
    path (the graph's diameter). minimal: whether every path is a shortest one (with minimal
    routing).
    """

    delivered: Count | None = None
    max_hops: Annotated[Whole, Field(ge=0, le=64)] | None = None
    minimal: bool | None = None


class Sample(Model):
    """Pairs that get 1, 2, 3, … requests each, so that a link's counter tells whose they were."""

    pairs: Annotated[Whole, Field(ge=0, le=200)] = 24
    seed: Annotated[Whole, Field(ge=0)] = 1


class Scenario(Model):
    """One rehearsal, of a fabric that `InlineScenario` or `ReferringScenario` says.

    hosts: how many of each switch's hosts take part (all). patience: seconds until every switch
    must have its program.
    """

    name: Name
    engine: EngineName = "auto"
    framework: FrameworkName | None = None
    hosts: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    expect: Expect = Expect()
    sample: Sample = Sample()
    prove_checker: bool = True
    patience: Annotated[Whole, Field(ge=1, le=3600)] = 60


class InlineScenario(Scenario):
    """The fabric stands in the scenario, with the keys of fabric.yaml."""

    fabric: FabricSpec


class ReferringScenario(Scenario):
    """The fabric is a fabric.yaml or a build folder, its name relative to the scenario's."""

    fabric: str


@dataclass(frozen=True, slots=True, eq=False)
class LoadedScenario:
    """A scenario and what it rehearses: a build folder, or else a fabric still to compile."""

    scenario: Scenario
    folder: Path | None = None
    fabric: LoadedFabric | None = None


def shipped() -> dict[str, Path]:
    """The scenarios that come with polarfab, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def load_scenario(wanted: str) -> LoadedScenario:
    """The scenario that a user means: a shipped one's name, a file (`-`: stdin), a build folder.

    A file with the fabric's own keys (`topology` on top) is a scenario with the defaults.

    Raises:
        InputError: there is no such scenario, or every mistake in it and in its fabric.
    """
    if (Path(wanted) / MANIFEST).is_file():
        return LoadedScenario(Scenario(name=load_build(Path(wanted)).name), folder=Path(wanted))
    if "/" not in wanted and not wanted.endswith((".yaml", ".yml")) and wanted != STDIN:
        wanted = str(_shipped(wanted))
    document = read(wanted)
    fabric = document.data.get("fabric")
    if isinstance(fabric, str):
        scenario = validate(ReferringScenario, document)
        where = Path(fabric) if wanted == STDIN else Path(wanted).parent / fabric
        if (where / MANIFEST).is_file():
            return LoadedScenario(scenario, folder=where)
        return LoadedScenario(scenario, fabric=load_fabric(where))
    if "topology" in document.data and "fabric" not in document.data:
        loaded = load_fabric(wanted, document)
        return LoadedScenario(Scenario(name=loaded.spec.name), fabric=loaded)
    inline = validate(InlineScenario, document)
    part = replace(document, data=document.data["fabric"])
    return LoadedScenario(inline, fabric=load_fabric(wanted, part))


def _shipped(name: str) -> Path:
    known = shipped()
    if name not in known:
        meant = nearest(name, known)
        raise InputError(
            Problem(
                key="SCENARIO",
                required=f"a file, a build folder or one of {', '.join(known)}",
                given=name,
                todo=f"did you mean {meant}?" if meant else "",
            )
        )
    return known[name]
