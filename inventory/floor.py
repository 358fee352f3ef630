"""The models of the floor in an inventory: racks, cable types and cables, and generated nodes.

Also the models of dead links and shared risks, which name nodes and cables. `inventory.model` puts
these models together; the docstrings of fields are what users read about keys.
"""

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
STOCK_LENGTHS = tuple(
    map(float, (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000))
)
"""The lengths of cables in stock by default, in metres."""
REACH_METRES = {"dac-passive": 7, "dac-active": 15}
"""By the medium of copper cables with fixed plugs, their most metres at 10 Gbit/s; at 100 Gbit/s
they reach less far."""
Position = Annotated[Whole, Field(ge=0, le=10_000)]
"""A row or a column of the floor grid, from 0."""


class Rack(Model):
    """A rack on the floor grid. By default it is in row 0, in the column of its list index."""

    name: Name
    """The name of the rack."""
    row: Position | None = None
    """The row, from 0."""
    column: Position | None = None
    """The column, from 0."""
    units: Annotated[Whole, Field(ge=1, le=1000)] = 42
    """The height in rack units."""


class CableType(Model):
    """A kind of cable in stock."""

    name: Name
    """The name of the type."""
    media: Media = "smf-os2"
    """The medium, in the words of NetBox."""
    lengths: Annotated[tuple[Metres, ...], Field(min_length=1)] = STOCK_LENGTHS
    """The lengths in stock, in metres."""
    colour: Colour | None = None
    """The colour."""


class Cabling(Model):
    """Cable lengths and the cable types in stock.

    A cable between racks rises to the tray, runs along rows and columns and goes down again.
    """

    row_pitch: Metres = 2.4
    """The metres between two rows."""
    column_pitch: Metres = 0.6
    """The metres between two columns."""
    tray: Metres = 0.5
    """The metres from the top of a rack to the tray."""
    slack: Metres = 0.5
    """The metres that are added to every cable."""
    types: Annotated[tuple[CableType, ...], Field(min_length=1)] = (CableType(name="smf"),)
    """The types in stock. A link takes the first that has a length for it."""
    cores: Annotated[Whole, Field(ge=1, le=64)] = 2
    """The fibre cores of a lane."""
    fibre_cores: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """The cores of a multi-core fibre. Default: as many as its bundle needs."""


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
"""The layouts of clusters: by the structure of a family, or by a partition of the graph."""


class Placement(Model):
    """The placement of clusters (of PolarFly, or PolarStar supernodes) in racks."""

    layout: Layout | None = None
    """The layout. Default: the usual one of the topology. `partition` is for any graph: a rack for
    each part, with few links between them.
    """
    order: Literal["listed", "shortest"] = "listed"
    """Whether clusters come in the order of the list, or so that cables are short."""
    modules: Literal["spread", "filled"] = "spread"
    """How a node's links are divided among its modules. `spread`: to all alike, so that the death
    of one costs as little as possible. `filled`: one module after the other, links to one rack
    together.
    """


class RackGrid(Model):
    """As many equal racks as needed."""

    name: PortName = "rack{}"
    """The names of the racks, with {} for the number."""
    units: Annotated[Whole, Field(ge=1, le=1000)] = 42
    """The height of a rack in rack units."""
    columns: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """The racks of a row. Default: about a square."""


class GeneratedPart(Model):
    """The next vertices: nodes of one type."""

    type: TypeName
    """The type of the nodes."""
    count: Annotated[Whole, Field(ge=1)] | None = None
    """The number of vertices. Default: all that are left."""
    name: PortName | None = None
    """The names of the nodes, with {} for the vertex."""
    group: Name | None = None
    """The group of the nodes."""


class Generate(Model):
    """Nodes for a whole fabric, instead of a list."""

    type: TypeName | None = None
    """The type of all nodes."""
    types: tuple[GeneratedPart, ...] = ()
    """Instead of `type`, the types part by part."""
    name: PortName = "n{}"
    """The names of the nodes, with {} for the vertex."""
    racks: RackGrid = RackGrid.model_construct()
    """The racks that the nodes are in."""

    @property
    def parts(self) -> tuple[GeneratedPart, ...]:
        """The types in order; the last takes all vertices that are left."""
        if self.type is None:
            return self.types
        return (GeneratedPart.model_construct(type=self.type),)


class Cable(Model):
    """A link with fixed ports. The cable schedule takes its other values."""

    a: Name
    """The node at one end."""
    a_port: Line
    """The port at this end."""
    b: Name
    """The node at the other end."""
    b_port: Line
    """The port at the other end."""
    type: Name | None = None
    """The cable type."""
    length: Metres | None = None
    """The length in metres."""
    label: Line | None = None
    """The label on the cable."""


class DeadLink(Model):
    """A link that is known to be dead."""

    a: Name
    """The node at one end."""
    b: Name
    """The node at the other end."""


def _without_nested_risk(word: str) -> str:
    """A word that names no shared risk, because shared risks are not nested."""
    if word.startswith("risk:"):
        todo = "write what fails with that risk here, too"
        raise refusal("a node, a link or a group other than a shared risk", todo)
    return word


Failing = Annotated[Line, AfterValidator(_without_nested_risk)]
"""A node, a link or a group that fails with a shared risk."""


class SharedRisk(Model):
    """Links and nodes that fail together, such as those of a power feed or a conduit."""

    name: Name
    """The name of the risk."""
    fails: Annotated[tuple[Failing, ...], Field(min_length=1)]
    """What fails: a node, a link `A-B` by its nodes, or a group: module:NODE/MODULE,
    cage:NODE/PORT, rack:RACK, trunk:RACK-RACK.
    """


class SharedRisks(Model):
    """A file of groups to try failures of, as an inventory lists them."""

    shared_risks: Annotated[tuple[SharedRisk, ...], Field(min_length=1)]
    """The groups."""


def repeated_name_findings(risks: Iterable[tuple[int, SharedRisk]]) -> Iterator[Finding]:
    """Shared risks with the name of an earlier one.

    Args:
        risks: the shared risks, each with its place in the list.
    """
    first: dict[str, int] = {}
    for i, risk in risks:
        earlier = first.setdefault(risk.name, i)
        if earlier != i:
            required, todo = "a name that no other shared risk has", "change one of them"
            path, also = ("shared_risks", i, "name"), ("shared_risks", earlier, "name")
            yield Finding(path, required, risk.name, todo, also)
