"""`polarfab topology`: print a fabric graph."""

from __future__ import annotations

import sys

import click

from polarfab.family_choice import chosen_topology, given_parameters, graph_options, is_family
from polarfab.output.verb_output import chosen_format, json_option

PRINTED_FORMATS = ("edges", "json", "graphml", "dot", "booksim", "node-link")


@click.command("topology")
@graph_options
@click.option("--format", "form", type=click.Choice(PRINTED_FORMATS), help="edges unless given.")
@json_option
def command(
    subject: str,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    form: str | None,
    as_json: bool,
) -> None:
    """Print the graph of a family (polarfly, …), of a fabric.yaml or of a build.

    Vertices have canonical numbers; a build leaves out what its inventory calls dead.

    The families that the papers compare with take their parameters as words.

    \b
        polarfab topology polarfly --q 7 | wc -l
        polarfab topology polarfly --q 7 --json
        polarfab topology dragonfly h=2 a=4
        polarfab topology build --format graphml
    """
    from compilers.estimates import require_graph
    from compilers.topology.families import edge_blocks, family_of
    from compilers.topology.files.graph_formats import edge_lines, write

    printed = chosen_format(form, as_json, "edges")
    given = given_parameters(parameters, q=q, supernode=supernode, degree=degree)
    if printed == "edges" and is_family(subject):
        if family_of(subject).holds_edges:
            require_graph(subject, given)
        sys.stdout.writelines(edge_lines(edge_blocks(subject, given)))
    else:
        write(chosen_topology(subject, given), printed, sys.stdout)
