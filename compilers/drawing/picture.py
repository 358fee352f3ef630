"""Draw a fabric as a picture or as an interactive page, or a build as a chart.

`draw` and `draw_chart` are what `polarfab draw` calls. A picture is placed by `positions`, composed
by `scene`, and printed by a template; a page has the data of `page` besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from compilers.choices import Chart, PictureForm
from compilers.drawing.page import page_data
from compilers.drawing.positions import RACKS, by_kind, noun_of, place
from compilers.drawing.scene import NOTHING, Marked, compose, name_width
from compilers.forwarding.walks import Progress
from compilers.memory_bound import MemoryBound
from compilers.routing.minimal_routes import minimal_tables
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layout_names, layouts, places_in
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.hardware import Hardware
from compilers.wiring.shared_risk import GROUP_KINDS, find_group
from compilers.wiring.wire import wire
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem, at_key, did_you_mean, shown
from templates import environment

MOST_PICTURE_NODES = 20_000
"""The most nodes of a picture."""
MOST_WRITTEN_NODES = 200
"""The most nodes that have their names written in them."""
PICTURE_FORMS = get_args(PictureForm)
"""A picture, and an interactive page."""
CHARTS = get_args(Chart)
"""The names of the charts of a build that can be drawn in place of a picture of the fabric."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a picture shows: a fabric with its nodes, and its tables if it is compiled."""

    title: str
    """The heading of the picture."""
    topology: Topology
    """The graph, and its coordinates."""
    wiring: Wiring
    """Vertices on nodes, and links on ports."""
    tables: Tables | None
    """The forwarding tables; None where only the cabling is drawn."""
    sites: tuple[str, ...] = ()
    """The place of each node in words, such as `R1 unit 12`; empty where places are unknown."""
    racks: Layout | None = None
    """The racks of the inventory; None where it has none."""
    build: str = ""
    """The identity of the build; "" where none was compiled."""
    hardware: Hardware | None = None
    """The models of switches and cables; None where they are unknown."""


def subject_of_topology(topology: Topology) -> Subject:
    """A topology on generated nodes, named by their vertices.

    Raises:
        InputError: memory cannot hold its picture.
    """
    MemoryBound.of_topology(topology).require()
    wiring = wire(topology, generated_inventory(topology, 0), 0)
    return Subject(topology.title(), topology, wiring, None)


def subject_of_build(build: Build) -> Subject:
    """A build, with the names and ports of its nodes and its tables.

    Raises:
        InputError: memory cannot hold its picture.
    """
    MemoryBound.of_topology(build.topology).require()
    title = f"{build.name}: {build.topology.title()}"
    return Subject(
        title=title,
        topology=build.topology,
        wiring=build.wiring,
        tables=build.tables,
        sites=_sites(build),
        racks=_racks(build),
        build=build.identity,
        hardware=build.hardware,
    )


def _sites(build: Build) -> tuple[str, ...]:
    """The place of each node in words, such as `R1 unit 12`: in the inventory, or as proposed.

    () if the build was compiled without an inventory.
    """
    hardware = build.hardware
    if hardware is None:
        return ()
    places = zip(hardware.rack.tolist(), hardware.unit.tolist(), strict=True)
    return tuple(
        hardware.rack_names[rack] + (f" unit {unit}" if unit else "") for rack, unit in places
    )


def _racks(build: Build) -> Layout | None:
    """The racks of the inventory as a layout, nodes from the lowest unit up.

    None if the inventory names no racks, so that racks are clusters.
    """
    hardware = build.hardware
    if hardware is None or hardware.rack_names == hardware.cluster_names:
        return None
    position = places_in(hardware.rack, hardware.unit)
    return Layout.of_one_kind(RACKS, hardware.rack, position, "rack", hardware.rack_names)


def draw(subject: Subject, form: str, layout_name: str = "", marked: tuple[str, ...] = ()) -> str:
    """A picture as SVG, or a page as self-contained HTML.

    Args:
        subject: the fabric.
        form: one of PICTURE_FORMS.
        layout_name: one of `layouts(topology)`, or `racks` for the racks of the inventory. "" is
            `racks` if some of these are marked, else the default layout.
        marked: names or numbers of up to two racks or clusters to highlight; or in a picture one
            group that shares a risk, such as `module:A/0`.

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
            todo="write the graph for a tool of your own by polarfab export",
        )
    picture_layout = layout_of_picture(subject, layout_name, marked)
    written_names = subject.wiring.names if topology.graph.order <= MOST_WRITTEN_NODES else ()
    with at_key("mark"):
        highlighted = find_marked(subject, picture_layout, marked)
    if interactive and highlighted.group:
        raise InputError.of("a picture (svg) to highlight a group", "a page", key="form")
    scene = compose(
        subject.title,
        topology=topology,
        wiring=subject.wiring,
        racks=picture_layout,
        placement=place(topology, picture_layout, name_width(written_names)),
        marked=NOTHING if interactive else highlighted,
    )
    if not interactive:
        return environment().get_template("draw/picture.svg.j2").render(s=scene)
    tables = subject.tables or minimal_tables(topology, subject.wiring)
    data = page_data(
        scene,
        topology=topology,
        wiring=subject.wiring,
        tables=tables,
        racks=picture_layout,
        marked=highlighted.racks,
        sites=subject.sites,
    )
    return environment().get_template("draw/page.html.j2").render(s=scene, data=data)


def draw_chart(
    build: Build,
    show: str,
    form: str = "svg",
    pattern: str = "",
    before: Build | None = None,
    progress: Progress | None = None,
) -> str:
    """A chart of a build as SVG, or as a page around it.

    Args:
        build: the fabric.
        show: one of CHARTS.
        form: one of PICTURE_FORMS.
        pattern: the traffic of `load`; "" for uniform.
        before: the build that switches hold, for `rounds`.
        progress: called with destinations done and all while failures are walked.

    Raises:
        InputError: no such chart, form or pattern, no build to move from, or no order of rounds.
    """
    from compilers.drawing.link_matrix import failure_chart, load_chart
    from compilers.drawing.move_chart import move_chart
    from compilers.drawing.rack_chart import rack_chart

    if form not in PICTURE_FORMS:
        raise InputError.of(" or ".join(PICTURE_FORMS), shown(form), key="form")
    if show == "racks":
        chart = rack_chart(build)
    elif show == "load":
        chart = load_chart(build, pattern or "uniform")
    elif show == "failures":
        chart = failure_chart(build, progress)
    elif show == "rounds":
        if before is None:
            todo = "name it: `from OLDBUILD`"
            raise InputError.of("the build that the switches hold", "none", todo, key="from")
        chart = move_chart(before, build)
    else:
        raise InputError.of(", ".join(CHARTS), shown(show), key="show")
    return chart.html() if form == "html" else chart.svg()


def layout_of_picture(subject: Subject, layout_name: str, marked: tuple[str, ...]) -> Layout:
    """The layout of a picture: the racks of the inventory if these are named, else clusters.

    Args:
        subject: the fabric.
        layout_name: as in `draw`.
        marked: as in `draw`.

    Raises:
        InputError: there is no such layout, or the fabric has no racks.
    """
    topology, racks = subject.topology, subject.racks
    marks_racks = racks is not None and bool(marked) and set(marked) <= set(racks.names)
    if layout_name == RACKS or (not layout_name and marks_racks):
        if racks is None:
            todo = "compile it with an inventory that has racks"
            raise InputError.of("a fabric in racks", subject.title, todo, key="layout")
        return racks
    clusters = layout_names(topology)
    if racks is not None and layout_name and layout_name not in clusters:
        raise InputError.of(", ".join((*clusters, RACKS)), layout_name, key="layout")
    return layout(topology, layout_name) if layout_name or layouts(topology) else by_kind(topology)


def _abridged(names: tuple[str, ...]) -> str:
    """All names if they are few, else the first and the last."""
    return f"{names[0]} … {names[-1]}" if len(names) > 5 else ", ".join(names)


def find_marked(subject: Subject, picture_layout: Layout, words: tuple[str, ...]) -> Marked:
    """What the words of a user highlight.

    Args:
        subject: the fabric.
        picture_layout: the layout of the picture: the racks of the inventory, or clusters.
        words: names or numbers of parts of the layout, or the name of one group that shares a risk.

    Raises:
        InputError: there is no such part or group, or one is named twice.
    """
    if len(words) == 1 and words[0].partition(":")[0] in GROUP_KINDS:
        return Marked(group=find_group(subject.wiring, subject.hardware, words[0]))
    noun, names = noun_of(picture_layout), picture_layout.names
    required = f"a {noun}: {_abridged(names)}, or 0..{len(names) - 1}"
    rack_names: tuple[str, ...] = ()
    if subject.racks is not None and subject.racks is not picture_layout:
        rack_names = subject.racks.names
        required += f"; or a rack: {_abridged(rack_names)}"
    problems = []
    numbers = []
    for word in words:
        if word in names:
            numbers.append(names.index(word))
        elif word.isdecimal() and int(word) < len(names):
            numbers.append(int(word))
        else:
            todo = did_you_mean(word, (*names, *rack_names))
            if word in rack_names:
                todo = f"racks are marked in the layout {RACKS}, without a {noun}"
            problems.append(Problem(required=required, given=word, todo=todo))
    if len(set(numbers)) < len(numbers):
        problems.append(
            Problem(key=noun, required=f"two different {noun}s", given=" and ".join(words))
        )
    if problems:
        raise InputError(problems)
    return Marked(tuple(numbers))
