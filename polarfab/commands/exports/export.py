"""`polarfab export`: writes a graph, or a build in a format of BookSim or of another package."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compilers.entry_points import EXPORTS, registered
from polarfab.family_choice import chosen_named_topology, graph_options, is_family, read_parameters
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_json,
    say_written,
    write_file,
    write_files,
)
from polarfab.shared_options import format_option, output_option

GRAPHS = ("edges", "graphml", "dot", "node-link", "anynet")
"""The formats of graphs, which need no build."""


@click.command("export")
@graph_options
@format_option(*GRAPHS, *registered(EXPORTS), what="else edges")
@output_option("a graph's file, else standard output; a folder for other files, else ./FORMAT")
@json_option
def command(
    subject: str,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    form: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Print the graph of a family, a fabric.yaml or a build, or write files that need a build.

    \b
    edges    the graph alone, as graphml, dot, node-link and --json are
    anynet   the graph as BookSim's network
    booksim  a network and a configuration; the tables, which it cannot take

    Vertices have canonical numbers; a build leaves out what its inventory calls dead. Hosts are
    named as in the inventory. For booksim each of several planes has a folder.

    \b
        polarfab export polarfly --q 7 | wc -l
        polarfab export dragonfly h=2 a=4 --format graphml
        polarfab export build --format booksim -o booksim
    """
    if form not in GRAPHS and form is not None:
        _write_registered_format(subject, form, output or Path(form), as_json)
        return
    from compilers.memory_bound import require_graph
    from compilers.topology.families import edge_blocks, family_of
    from compilers.topology.files.graph_formats import edge_lines, pieces

    printed = chosen_format(form, as_json, "edges")
    values = read_parameters(parameters, q=q, supernode=supernode, degree=degree)
    if printed == "edges" and is_family(subject):
        if family_of(subject).holds_edges:
            require_graph(subject, values)
        text = edge_lines(edge_blocks(subject, values))
    else:
        topology, names = chosen_named_topology(subject, values)
        text = pieces(topology, printed, names=names)
    if output:
        write_file(output, text)
        say_written(output)
    else:
        sys.stdout.writelines(text)


def _write_registered_format(subject: str, form: str, place: Path, as_json: bool) -> None:
    """Write the files of a registered format into a folder."""
    from polarfab.exports import export
    from polarfab.fabric import Fabric

    fabric = Fabric.load(subject)
    files = export(fabric, form)
    write_files(place, form, fabric.name, files)
    if as_json:
        print_json({"folder": str(place), "format": form, "files": list(files)})
