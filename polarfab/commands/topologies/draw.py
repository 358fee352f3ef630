"""`polarfab draw`: draws a fabric as a picture or an interactive page, and plots comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from inventory.problems import InputError
from polarfab.family_choice import (
    chosen_fabric,
    chosen_topology,
    parameter_options,
    read_parameters,
)
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
    from compilers.topology.labelled_graph import Topology
    from polarfab.fabric import Fabric

PLOTS = ("moore", "resilience")
"""The values of --show that plot comparisons of the papers."""
PICTURES = ("fabric", "racks", "load", "failures", "rounds")
"""The values of --show that draw one fabric."""
RADIXES = range(8, 129)
"""The radixes of the plot `moore`."""


@click.command("draw")
@click.argument("subjects", metavar="FAMILY|FABRIC|BUILD|FILE... [NAME=VALUE]...", nargs=-1)
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
    type=click.Choice((*PICTURES, *PLOTS)),
    default="fabric",
    help="fabric: the nodes and links. racks: the racks, and the cables between them. load: what "
    "each link carries. failures: what the failure of each link does. rounds: what each round of a "
    "move changes. moore, resilience: plots of the papers.",
)
@shared("--pattern", meaning="for --show load; by default uniform")
@shared("--from", meaning="for --show rounds", parameter="old")
@output_option("FILE.svg or FILE.html; a plot as FILE.svg or FILE.png", required=True)
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
        polarfab draw dragonfly h=2 a=4 -o dragonfly.svg
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
    from polarfab import drawing

    mark_words = _mark_words(mark)
    _require_show(show, "load", "--pattern", pattern)
    _require_show(show, "rounds", "--from", old)
    _require_show(show, "fabric", "--layout", layout_name)
    _require_show(show, "fabric", "--mark", mark_words)
    if show == "moore" or show == "resilience":
        _plot(show, subjects, output)
        _print_result(f"{show} plotted in {output}", {"plot": show}, output, as_json)
        return
    if not subjects:
        raise click.UsageError("name one family, fabric.yaml or build")
    form: PictureForm = "html" if file_form(output, "svg", "html") == "html" else "svg"
    named, *words = subjects
    parameters = read_parameters(tuple(words), q=q, supernode=supernode, degree=degree)
    fabric = chosen_fabric(named, parameters)
    if show == "fabric":
        subject = fabric or chosen_topology(named, parameters, will_be_measured=True)
        picture: str = drawing.draw(subject, form, layout_name, mark_words)
    else:
        subject = _require_fabric(fabric, show, named)
        picture = _chart(subject, show, form, pattern or "", old)
    write_file(output, [picture])
    _print_picture_facts(subject, output, as_json)


def _require_fabric(fabric: Fabric | None, show: str, subject: str) -> Fabric:
    """The fabric of a chart.

    Raises:
        InputError: the subject is a family, which has a graph and no fabric.
    """
    if fabric is None:
        todo = "write one with: polarfab init lab"
        raise InputError.of(f"a fabric.yaml or a build for --show {show}", subject, todo)
    return fabric


def _mark_words(mark: str | None) -> tuple[str, ...]:
    """The racks, clusters or risk group of --mark."""
    words = tuple(word.strip() for word in mark.split(",")) if mark else ()
    if len(words) > 2:
        raise InputError.of("at most two racks or clusters, as in 0,3", str(mark), key="--mark")
    return words


def _plot(plot: Literal["moore", "resilience"], files: tuple[str, ...], output: Path) -> None:
    """Write a plot that compares families, as in the papers."""
    from compilers.drawing import plots

    form = file_form(output, "svg", "png")
    write_file(output, plots.plot(_panels(plot, files), form))


def _chart(fabric: Fabric, show: Chart, form: PictureForm, pattern: str, old: Path | None) -> str:
    """A chart of a fabric, as an SVG picture or an HTML page.

    Args:
        fabric: the fabric.
        show: the kind of chart.
        form: `svg` or `html`.
        pattern: the traffic pattern of the loads; "" for uniform.
        old: the build folder that a move starts from; None for charts without a move.
    """
    from polarfab.drawing import chart
    from polarfab.fabric import Fabric

    before = Fabric.load(old) if old else None
    with progress(f"drawing {show}") as report:
        return chart(fabric, show, form, pattern=pattern, before=before, progress=report)


def _print_picture_facts(subject: Fabric | Topology, output: Path, as_json: bool) -> None:
    """Print which fabric or graph was drawn, and its size."""
    from polarfab.fabric import Fabric

    fabric = subject if isinstance(subject, Fabric) else None
    topology = subject.topology if isinstance(subject, Fabric) else subject
    title = f"{fabric.name}: {topology.title()}" if fabric else topology.title()
    facts = {
        "build": fabric.build.identity if fabric else None,
        "topology": topology.title(),
        "nodes": topology.graph.order,
        "links": topology.graph.size,
    }
    _print_result(f"{title} drawn in {output}", facts, output, as_json)


def _print_result(line: str, facts: Mapping[str, object], output: Path, as_json: bool) -> None:
    """Print what was drawn: a line of text, or as JSON the facts and those of the file."""
    if not as_json:
        say(line)
        return
    form, size = output.suffix.removeprefix("."), output.stat().st_size
    print_json({**facts, "target": form, "file": str(output), "bytes": size})


def _panels(plot: str, files: tuple[str, ...]) -> tuple[Panel, ...]:
    """The panels of a plot.

    Args:
        plot: `moore` or `resilience`.
        files: the analyses to plot, for `resilience`.
    """
    from compilers.drawing.plots import efficiency, failures, read_failures

    if plot == "resilience":
        if not files:
            raise click.UsageError("Name the files to plot: polarfab analyse … --json > FILE")
        return failures([read_failures(Path(file)) for file in files])
    if files:
        raise click.UsageError("--show moore takes no family, build or file.")
    from compilers.evaluation.comparison.designs import designs_of_radixes, families

    return efficiency(designs_of_radixes(RADIXES, among=families(baselines=True)))


def _require_show(show: str, needed: str, option: str, value: object) -> None:
    """Refuse an option with a value if --show is not the kind of picture that it belongs to."""
    if value and show != needed:
        raise click.UsageError(f"{option} belongs to --show {needed}")
