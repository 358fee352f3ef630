"""`polarfab analyse`: measures distances, paths, load, bisection and resilience of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from polarfab.family_choice import chosen_topology, graph_options, read_parameters
from polarfab.output.verb_output import (
    chosen_format,
    json_option,
    print_csv,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
)
from polarfab.shared_options import format_option, shared

if TYPE_CHECKING:
    from compilers.evaluation.analysis.analyses import Analysis
    from compilers.topology.labelled_graph import Topology


@click.command("analyse")
@graph_options
@click.option(
    "--what",
    help="Some of distances,paths,load,bisection,resilience,expansion; by default all that apply.",
)
@click.option(
    "--orders",
    type=click.IntRange(1, 10_000),
    default=100,
    help="Resilience: so many orders in which links fail.",
)
@shared("--seed", meaning="of the failures")
@format_option("csv", what="csv is the table of one analysis")
@shared("--scheduler")
@json_option
def command(
    subject: str,
    parameters: tuple[str, ...],
    q: int | None,
    supernode: str | None,
    degree: int | None,
    what: str | None,
    orders: int,
    seed: int,
    form: str | None,
    scheduler: str,
    as_json: bool,
) -> None:
    """Measure the graph of a family, of a fabric.yaml or of a build.

    The families that the papers compare with take their parameters as words.

    \b
        polarfab analyse polarfly --q 31
        polarfab analyse polarfly --q 31 --what resilience --json > er31.json
        polarfab analyse polarstar --q 11 --supernode inductive-quad --degree 3
        polarfab analyse dragonfly h=6 a=12 --what bisection,load
        polarfab analyse build --what distances
    """
    from compilers.evaluation.analysis.analyses import applicable, unknown_analysis_problems
    from inventory.problems import InputError, install_extra
    from polarfab.measures import analyse

    printed = chosen_format(form, as_json)
    as_csv, as_json = printed == "csv", printed == "json"
    names = [name.strip() for name in what.split(",")] if what else []
    problems = unknown_analysis_problems(names)
    if problems:
        raise InputError(problems)
    if as_csv and len(names) != 1:
        raise click.UsageError("--format csv prints one table: say which with --what")
    values = read_parameters(parameters, q=q, supernode=supernode, degree=degree)
    topology = chosen_topology(subject, values, will_be_measured=not scheduler)
    analyses: dict[str, Analysis] = {}
    for name in names or applicable(topology):
        with progress(name) as report:
            analyses |= analyse(
                topology, [name], orders, seed, progress=report, scheduler=scheduler
            )
        if not (as_csv or as_json):
            _print_analysis(topology, name, analyses[name])
    if as_json:
        print_json(_document(topology, analyses))
    elif as_csv:
        print_csv(analyses[names[0]].rows)
    elif not names and "bisection" not in analyses:
        say(f"left out: bisection needs pymetis ({install_extra('analyse')})")


def _document(topology: Topology, analyses: dict[str, Analysis]) -> dict[str, Any]:
    """The topology and its analyses for JSON."""
    return {
        "family": topology.family,
        "parameters": dict(topology.parameters),
        "nodes": topology.graph.order,
        "links": topology.graph.size,
        **{name: {**analysis.facts, "rows": analysis.rows} for name, analysis in analyses.items()},
    }


def _print_analysis(topology: Topology, name: str, analysis: Analysis) -> None:
    """Print the facts of an analysis, and its table if it has one."""
    print_facts(f"{topology.title()}: {name}", analysis.facts.items())
    if analysis.rows:
        body = [list(row.values()) for row in analysis.rows]
        print_table("", list(analysis.rows[0]), body)
