"""`polarfab draw`: a fabric as a picture or an interactive page, and plots of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from inventory.problems import InputError
from polarfab.family_choice import chosen_fabric, chosen_topology, parameter_options
from polarfab.output.verb_output import (
    file_form,
    json_option,
    print_json,
    progress,
    say,
    write_file,
)
from polarfab.shared_options import output_option, shared

if TYPE_CHECKING:
    from compilers.choices import Chart, PictureForm
    from compilers.drawing.plots import Panel

PLOTS = ("moore", "resilience")
SHOWN = ("fabric", "racks", "load", "failures", "rounds")
RADIXES = range(8, 129)


@click.command("draw")
@click.argument("subjects", metavar="FAMILY|FABRIC|BUILD|FILE...", nargs=-1)
@parameter_options
@click.option(
    "--layout",
    "layout_name",
    default="",
    show_default=False,
    help="The boxes: clusters (fans, stars, supernodes, …), or racks for the inventory's.",
)
@click.option(
    "--mark",
    metavar="A|A,B|GROUP",
    help="Highlight what leaves a rack or cluster, what is between two of them, or the links of "
    "what shares a risk: module:NODE/MODULE, rack:RACK, trunk:RACK-RACK, risk:NAME.",
)
@click.option(
    "--show",
    type=click.Choice((*SHOWN, *PLOTS)),
    default="fabric",
    help="The fabric with its racks and cables, or what each link carries, each failed link does, "
    "each round of a move changes; or a plot of the papers: moore, resilience.",
)
@shared("--pattern", "for --show load; else uniform")
@shared("--from", "for --show rounds", "old")
@output_option("FILE.svg, .html or .png", required=True)
@json_option
def command(
    subjects: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    layout_name: str,
    mark: str | None,
    show: Chart | Literal["fabric", "moore", "resilience"],
    pattern: str | None,
    old: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    """Draw a family, or the fabric of a fabric.yaml or of a build.

    An HTML page is interactive and needs no network: hover a node, click two for the paths between
    them.

    \b
        polarfab draw polarfly --q 7 -o er7.svg
        polarfab draw polarfly --q 7 --mark quadrics,fan3 -o pair.svg
        polarfab draw polarstar --q 5 --supernode paley --degree 2 -o star.html
        polarfab draw build -o lab.html
        polarfab draw build --mark A1 -o rack.svg
        polarfab draw build --mark module:A1-3/oio0 -o module.svg
        polarfab draw build --show load --pattern tornado -o load.svg
        polarfab draw build --show rounds --from oldbuild -o rounds.svg

    Plots need Matplotlib (pip install 'polarfab[plots]'). Those of failures read what
    `polarfab analyse --what resilience --json` has printed.

    \b
        polarfab draw --show moore -o moore.svg
        polarfab draw --show resilience er31.json slimfly.json -o resilience.png
    """
    marked = tuple(word.strip() for word in mark.split(",")) if mark else ()
    if len(marked) > 2:
        raise InputError.of("at most two racks or clusters, as in 0,3", str(mark), key="--mark")
    _fitting(
        show,
        ("--pattern", "load", pattern),
        ("--from", "rounds", old),
        ("--layout", "fabric", layout_name),
        ("--mark", "fabric", marked),
    )
    if show == "moore" or show == "resilience":
        from compilers.drawing.plots import plot as plotted

        form = file_form(output, "svg", "png")
        write_file(output, plotted(_panels(show, subjects), form))
        _tell(f"{show} plotted in {output}", {"plot": show}, output, as_json)
        return
    from polarfab.drawing import chart, draw
    from polarfab.fabric import Fabric

    if len(subjects) != 1:
        raise click.UsageError("name one family, fabric.yaml or build")
    picture_form: PictureForm = "html" if file_form(output, "svg", "html") == "html" else "svg"
    words = {"q": q, "supernode": supernode, "degree": degree}
    if fabric := chosen_fabric(subjects[0], words):
        build, topology = fabric.build.identity, fabric.topology
        title = f"{fabric.name}: {topology.title()}"
        if show == "fabric":
            picture = draw(fabric, picture_form, layout_name, marked)
        else:
            before = Fabric.load(old) if old else None
            with progress(f"drawing {show}") as report:
                given = fabric, show, picture_form
                picture = chart(*given, pattern=pattern or "", before=before, progress=report)
    elif show == "fabric":
        topology = chosen_topology(subjects[0], words, measured=True)
        build, title = None, topology.title()
        picture = draw(topology, picture_form, layout_name, marked)
    else:
        todo = "write one with: polarfab init lab"
        raise InputError.of(f"a fabric.yaml or a build for --show {show}", subjects[0], todo)
    write_file(output, [picture])
    facts = {
        "build": build,
        "topology": topology.title(),
        "nodes": topology.graph.order,
        "links": topology.graph.size,
    }
    _tell(f"{title} drawn in {output}", facts, output, as_json)


def _tell(line: str, facts: Mapping[str, object], output: Path, as_json: bool) -> None:
    """What was drawn: a line for people, or the facts and the file's for machines."""
    if not as_json:
        say(line)
        return
    form, size = output.suffix.removeprefix("."), output.stat().st_size
    print_json({**facts, "target": form, "file": str(output), "bytes": size})


def _panels(plot: str, files: tuple[str, ...]) -> tuple[Panel, ...]:
    from compilers.drawing.plots import efficiency, failures, read_failures

    if plot == "resilience":
        if not files:
            raise click.UsageError("Name the files to plot: polarfab analyse … --json > FILE")
        return failures([read_failures(Path(file)) for file in files])
    if files:
        raise click.UsageError("--show moore takes no family, build or file.")
    from compilers.evaluation.comparison.designs import families, within

    return efficiency(within(RADIXES, among=families(baselines=True)))


def _fitting(show: str, *given: tuple[str, str, object]) -> None:
    """Refuse options (name, the picture that they are for, value) of another picture."""
    for name, wanted, value in given:
        if value and show != wanted:
            raise click.UsageError(f"{name} belongs to --show {wanted}")
