"""`polarfab topology`: print a fabric graph."""

from __future__ import annotations

import sys

import click

from polarfab.output import json_option

PRINTED_FORMATS = ("edges", "json", "graphml", "dot", "booksim", "node-link")


@click.command("topology")
@click.argument("family")
@click.option("--q", type=int, required=True, help="Order of the field, a prime power.")
@click.option("--supernode", help="PolarStar: inductive-quad, paley or complete.")
@click.option("--degree", type=int, help="PolarStar: degree of the supernode.")
@click.option("--format", "form", type=click.Choice(PRINTED_FORMATS), help="edges unless given.")
@json_option
def command(
    family: str,
    q: int,
    supernode: str | None,
    degree: int | None,
    form: str | None,
    as_json: bool,
) -> None:
    """Print the graph of FAMILY (polarfly, …) in canonical numbering.

    \b
        polarfab topology polarfly --q 7 | wc -l
        polarfab topology polarfly --q 7 --json
    """
    from compilers.topology.families import build_topology
    from compilers.topology.graph_formats import write

    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json is --format json; leave --format {form} or --json out.")
    topology = build_topology(family, {"q": q, "supernode": supernode, "degree": degree})
    write(topology, "json" if as_json else form or "edges", sys.stdout)
