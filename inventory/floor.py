"""The floor as values: racks on a grid, cable types in stock, and cables by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from inventory.problems import Finding
from inventory.values import (
    Colour,
    Line,
    Metres,
    Model,
    Name,
    PortName,
    TypeName,
    Whole,
    refusal,
)

Media = Literal[
    "cat3",
    "cat5",
    "cat5e",
    "cat6",
    "cat6a",
    "cat7",
    "cat7a",
    "cat8",
    "mrj21-trunk",
    "coaxial",
    "dac-active",
    "dac-passive",
    "mmf",
    "mmf-om1",
    "mmf-om2",
    "mmf-om3",
    "mmf-om4",
    "mmf-om5",
    "smf",
    "smf-os1",
    "smf-os2",
    "aoc",
]
"""NetBox's types of cables that carry packets (`CableTypeChoices`)."""
STOCK = tuple(map(float, (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000)))
Position = Annotated[Whole, Field(ge=0, le=10_000)]


class Rack(Model):
    """A rack; `row` and `column` are its place on the floor grid, from 0.

    Without them it is in row 0, in the column of its place in the list.
    """

    name: Name
    row: Position | None = None
    column: Position | None = None
    units: Annotated[Whole, Field(ge=1, le=1000)] = 42


class CableType(Model):
    """A kind of cable in stock: `lengths` in metres, `media` in the words of NetBox."""

    name: Name
    media: Media = "smf-os2"
    lengths: Annotated[tuple[Metres, ...], Field(min_length=1)] = STOCK
    colour: Colour | None = None


class Cabling(Model):
    """Cable lengths and the cable types in stock.

    A cable between racks rises to the tray, `tray` metres above its rack, runs along rows and
    columns and goes down again; `slack` metres are added to every cable. Of `types` a link takes
    the first that has a length for it. A lane needs `cores` fibre cores; multi-core fibres have
    `fibre_cores` cores, or without it as many as their bundle needs.
    """

    row_pitch: Metres = 2.4
    column_pitch: Metres = 0.6
    tray: Metres = 0.5
    slack: Metres = 0.5
    types: Annotated[tuple[CableType, ...], Field(min_length=1)] = (CableType(name="smf"),)
    cores: Annotated[Whole, Field(ge=1, le=64)] = 2
    fibre_cores: Annotated[Whole, Field(ge=1, le=10_000)] | None = None


Layout = Literal[
    "fans",
    "stars",
    "supernodes",
    "clusters",
    "subplanes",
    "parallels",
    "groups",
    "rows",
    "partition",
]


class Placement(Model):
    """Placement of clusters (of PolarFly, or PolarStar supernodes) in racks.

    layout: its name, the usual one of the topology without; `partition`: of any graph, a rack each,
    with few links between them. order: the clusters as they come, or so that cables are short.
    modules: whether a node's links go to all its modules alike (`spread`), so that one module's
    death costs as little as possible, or fill one after the other, links to one rack together
    (`filled`).
    """

    layout: Layout | None = None
    order: Literal["listed", "shortest"] = "listed"
    modules: Literal["spread", "filled"] = "spread"


class RackGrid(Model):
    """As many equal racks as needed, `columns` to a row (by default about a square)."""

    name: PortName = "rack{}"
    units: Annotated[Whole, Field(ge=1, le=1000)] = 42
    columns: Annotated[Whole, Field(ge=1, le=10_000)] | None = None


class GeneratedPart(Model):
    """The next `count` vertices, all that are left without it: nodes of a type, with a group."""

    type: TypeName
    count: Annotated[Whole, Field(ge=1)] | None = None
    name: PortName | None = None
    group: Name | None = None


class Generate(Model):
    """Nodes for a whole fabric, {} in their name the vertex, instead of a list.

    They are of one `type`, or part by part of `types`.
    """

    type: TypeName | None = None
    types: tuple[GeneratedPart, ...] = ()
    name: PortName = "n{}"
    racks: RackGrid = RackGrid.model_construct()

    @property
    def parts(self) -> tuple[GeneratedPart, ...]:
        """The types in order; the last takes all vertices that are left."""
        if self.type is None:
            return self.types
        return (GeneratedPart.model_construct(type=self.type),)


class Cable(Model):
    """A link with fixed ports; the cable schedule takes its other values."""

    a: Name
    a_port: Line
    b: Name
    b_port: Line
    type: Name | None = None
    length: Metres | None = None
    label: Line | None = None


class DeadLink(Model):
    """A link that is known to be dead, by the nodes at its ends."""

    a: Name
    b: Name


def _no_risk(word: str) -> str:
    """A word that is no other shared risk: these are not nested."""
    if word.startswith("risk:"):
        todo = "write what fails with that risk here, too"
        raise refusal("a node, a link or a group other than a shared risk", todo)
    return word


Failing = Annotated[Line, AfterValidator(_no_risk)]


class SharedRisk(Model):
    """Links and nodes that fail together, such as those of a power feed or a conduit.

    fails: each a node, a link `A-B` by its nodes, or a group: module:NODE/MODULE, cage:NODE/PORT,
    rack:RACK, trunk:RACK-RACK.
    """

    name: Name
    fails: Annotated[tuple[Failing, ...], Field(min_length=1)]


class SharedRisks(Model):
    """A file of groups to try failures of, as an inventory lists them."""

    shared_risks: Annotated[tuple[SharedRisk, ...], Field(min_length=1)]


def repeated_names(risks: Iterable[tuple[int, SharedRisk]]) -> Iterator[Finding]:
    """Shared risks, with their places, whose name another has: one of them would not be tried."""
    first: dict[str, int] = {}
    for i, risk in risks:
        if (before := first.setdefault(risk.name, i)) != i:
            required, todo = "a name that no other shared risk has", "change one of them"
            path, also = ("shared_risks", i, "name"), ("shared_risks", before, "name")
            yield Finding(path, required, risk.name, todo, also)
