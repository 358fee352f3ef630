"""`polarfab topology`: print a fabric graph."""

from __future__ import annotations

import sys

import click

from polarfab.family_choice import family_options, given_parameters
from polarfab.output import chosen_format, json_option

PRINTED_FORMATS = ("edges", "json", "graphml", "dot", "booksim", "node-link")


@click.command("topology")
@family_options
@click.option("--format", "form", type=click.Choice(PRINTED_FORMATS), help="edges unless given.")
@json_option
def command(
    family: str,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    form: str | None,
    as_json: bool,
) -> None:
    """Print the graph of FAMILY (polarfly, …) in canonical numbering.

    The families that the papers compare with take their parameters as words.

    \b
        polarfab topology polarfly --q 7 | wc -l
        polarfab topology polarfly --q 7 --json
        polarfab topology dragonfly h=2 a=4
    """
    from compilers.topology.families import build_any
    from compilers.topology.graph_formats import write

    printed = chosen_format(form, as_json, "edges")
    given = given_parameters(parameters, q=q, supernode=supernode, degree=degree)
    write(build_any(family, given), printed, sys.stdout)
