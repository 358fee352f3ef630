"""`polarfab analyse`: measures of a built graph: distances, paths, load, bisection, resilience."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from polarfab.output import (
    json_option,
    print_csv,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
)

if TYPE_CHECKING:
    from compilers.evaluation.analysis.analyses import Analysis
    from compilers.topology.labelled_graph import Topology


MOST_ROWS = 40


@click.command("analyse")
@click.argument("family")
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--q", type=int, help="Order of the field, a prime power.")
@click.option("--supernode", help="PolarStar: inductive-quad, paley or complete.")
@click.option("--degree", type=int, help="PolarStar: degree of the supernode.")
@click.option(
    "--what",
    help="Some of distances,paths,load,bisection,resilience,expansion; by default all that apply.",
)
@click.option("--runs", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of failures.")
@click.option(
    "--racks", type=click.IntRange(1, 1000), default=4, show_default=True, help="Expansion: up to."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print the table of one analysis as CSV.")
@json_option
def command(
    family: str,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    what: str | None,
    runs: int,
    seed: int,
    racks: int,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Build the graph of FAMILY and measure it. The baselines take their parameters as words.

    \b
        polarfab analyse polarfly --q 31
        polarfab analyse polarfly --q 31 --what resilience --csv > curve.csv
        polarfab analyse polarstar --q 11 --supernode inductive-quad --degree 3
        polarfab analyse dragonfly h=6 a=12 --what bisection,load
    """
    from compilers.evaluation.analysis.analyses import applicable, check
    from inventory.problems import InputError
    from polarfab.topologies import analyse
    from polarfab.topologies import topology as built

    wanted = [name.strip() for name in what.split(",")] if what else []
    if problems := check(wanted):
        raise InputError(problems)
    if as_csv and len(wanted) != 1:
        raise click.UsageError("--csv prints one table: say which with --what")
    given = {"q": q, "supernode": supernode, "degree": degree} | _words(parameters)
    topology = built(family, **given)
    found: dict[str, Analysis] = {}
    for name in wanted or applicable(topology):
        with progress(name) as report:
            found |= analyse(topology, [name], runs, seed, racks, report)
        if not (as_csv or as_json):
            _print(topology, name, found[name])
    if as_json:
        print_json(_document(topology, found))
    elif as_csv:
        print_csv(found[wanted[0]].rows)
    elif not wanted and "bisection" not in found:
        say("left out: bisection needs pymetis (pip install 'polarfab[analyse]')")


def _words(parameters: tuple[str, ...]) -> dict[str, int | str | None]:
    given: dict[str, int | str | None] = {}
    for word in parameters:
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise click.UsageError(f"required NAME=VALUE, as in h=6, given {word}")
        given[name] = int(value) if value.isascii() and value.isdigit() else value
    return given


def _document(topology: Topology, found: dict[str, Analysis]) -> dict[str, Any]:
    return {
        "family": topology.family,
        "parameters": dict(topology.parameters),
        "nodes": topology.graph.order,
        "links": topology.graph.size,
        **{name: {**each.facts, "rows": each.rows} for name, each in found.items()},
    }


def _print(topology: Topology, name: str, finding: Analysis) -> None:
    print_facts(f"{topology.title()}: {name}", finding.facts.items())
    if finding.rows:
        body = [list(row.values()) for row in finding.rows[:MOST_ROWS]]
        print_table("", list(finding.rows[0]), body)
    if (more := len(finding.rows) - MOST_ROWS) > 0:
        say(f"{more:,} more rows: see --json or --csv")
