"""`polarfab draw`: a fabric as a picture or as a page."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.drawing.page import page_data
from compilers.drawing.positions import by_kind, place
from compilers.drawing.scene import compose, name_width
from compilers.routing.routes_by_family import minimal
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layouts
from compilers.wiring.wiring import Wiring, generated_inventory, wire
from inventory.problems import InputError, Problem, did_you_mean, shown
from templates import environment

MOST_PICTURE_NODES = 20_000
SMALL = 200
PICTURE_FORMS = ("svg", "html")
"""A picture, and an interactive page."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a picture: a fabric on its nodes, its tables, and the places of its nodes.

    sites: one text per vertex, or none if places are unknown. build: its identity, "" without one.
    """

    title: str
    topology: Topology
    wiring: Wiring
    tables: Tables | None
    sites: tuple[str, ...] = ()
    build: str = ""


def of_topology(topology: Topology) -> Subject:
    """A topology on generated nodes, named by their vertices."""
    wiring = wire(topology, generated_inventory(topology, 0), 0)
    return Subject(topology.title(), topology, wiring, None)


def of_build(build: Build) -> Subject:
    """A build, with the names and ports of its nodes and its tables."""
    title = f"{build.name}: {build.topology.title()}"
    return Subject(title, build.topology, build.wiring, build.tables, _sites(build), build.identity)


def _sites(build: Build) -> tuple[str, ...]:
    """`R1 unit 12`: the rack of the inventory, or the one that the compiler proposed."""
    hardware = build.hardware
    if hardware is None:
        return ()
    places = zip(hardware.rack.tolist(), hardware.unit.tolist(), strict=True)
    return tuple(
        hardware.rack_names[rack] + (f" unit {unit}" if unit else "") for rack, unit in places
    )


def draw(subject: Subject, form: str, layout_name: str = "", marked: tuple[str, ...] = ()) -> str:
    """The picture as SVG, or the page as self-contained HTML.

    Args:
        subject: the fabric.
        form: one of PICTURE_FORMS.
        layout_name: one of `layouts(topology)`, "" for the default.
        marked: names or numbers of up to two racks.

    Raises:
        InputError: no such form, layout or rack, or the fabric is too large.
    """
    if form not in PICTURE_FORMS:
        raise InputError.of(" or ".join(PICTURE_FORMS), shown(form), key="form")
    topology, interactive = subject.topology, form == "html"
    if topology.graph.order > MOST_PICTURE_NODES:
        raise InputError.of(
            required=f"at most {MOST_PICTURE_NODES:,} nodes in a picture",
            given=f"{topology.graph.order:,}",
            todo="write the graph for a tool of your own: polarfab topology --format",
        )
    racks = layout(topology, layout_name) if layout_name or layouts(topology) else by_kind(topology)
    written = subject.wiring.names if topology.graph.order <= SMALL else ()
    found = find_racks(racks, marked)
    scene = compose(
        subject.title,
        topology,
        subject.wiring,
        racks,
        place(topology, racks, name_width(written)),
        () if interactive else found,
    )
    if not interactive:
        return environment().get_template("draw/picture.svg.j2").render(s=scene)
    tables = subject.tables or minimal(topology, subject.wiring)
    data = page_data(scene, topology, subject.wiring, tables, racks, found, subject.sites)
    return environment().get_template("draw/page.html.j2").render(s=scene, data=data)


def find_racks(racks: Layout, words: tuple[str, ...]) -> tuple[int, ...]:
    """The racks of these names or numbers.

    Raises:
        InputError: there is no such rack, or one is named twice.
    """
    problems = []
    found = []
    for word in words:
        if word in racks.names:
            found.append(racks.names.index(word))
        elif word.isdecimal() and int(word) < len(racks.names):
            found.append(int(word))
        else:
            required = f"a rack: {racks.names[0]} … {racks.names[-1]}, or 0..{len(racks.names) - 1}"
            todo = did_you_mean(word, racks.names)
            problems.append(Problem(key="rack", required=required, given=word, todo=todo))
    if len(set(found)) < len(found):
        problems.append(
            Problem(key="rack", required="two different racks", given=" and ".join(words))
        )
    if problems:
        raise InputError(problems)
    return tuple(found)
